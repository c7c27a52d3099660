//! A role as a process drives it, and why a process ends.

use std::path::PathBuf;

use fanin_dataflow::{EventRecord, Message, Peer, Unexpected};
use fanin_units::Instant;

use crate::config::{Role, System};
use crate::data::Data;
use crate::journal::JournalError;
use crate::metrics::Metrics;
use crate::source::SourceError;
use crate::unit::client::ProcessorError;
use crate::wire::WireError;

/// A change of the log that two supervisors share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogChange {
    /// Whole lines are added.
    Append(Vec<u8>),
    /// The header of this process is added, and these lines.
    Begin(String),
    /// The log is begun anew.
    Restart,
}

/// The part of a supervisor in a pair of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SuccessionState {
    /// The latest decided term that it knows.
    pub term: u64,
    /// True if it assigns events.
    pub leads: bool,
    /// True if it leads paired and proposes no other term, or is the partner that may take over.
    pub is_paired: bool,
    /// True if a pairing with its log stands there, which is not known to be decided.
    pub is_pairing: bool,
}

/// A role as a process drives it.
pub trait RoleNode {
    /// A connection stands.
    fn handle_connected(&mut self, now: Instant, peer: Peer);
    /// A connection is lost.
    fn handle_closed(&mut self, now: Instant, peer: Peer);
    /// A message arrived.
    ///
    /// # Errors
    /// If it is not expected in this state.
    fn handle_message(&mut self, now: Instant, peer: Peer, message: Message<Data>) -> Result<(), Unexpected>;
    /// The deadline that [`Self::poll_deadline`] returned has come.
    fn handle_deadline(&mut self, now: Instant);
    /// Another thread called the waker.
    fn handle_woken(&mut self, _now: Instant) {}
    /// The error that ended the process for good, if any.
    fn failure(&mut self) -> Option<ProcessError> {
        None
    }
    /// Starts an orderly end: no new work, and an end when it is idle.
    fn handle_stop(&mut self, _now: Instant) {}
    /// Takes over those settings that can change while it runs.
    fn handle_reload(&mut self, _system: &System) {}
    /// True if nothing is left to finish.
    fn is_idle(&mut self) -> bool;
    /// The next message to send.
    fn poll_transmit(&mut self) -> Option<(Peer, Message<Data>)>;
    /// The next record, and bytes of fragments in it.
    fn poll_record(&mut self) -> Option<(EventRecord, u64)>;
    /// Time at which [`Self::handle_deadline`] must be called.
    fn poll_deadline(&mut self) -> Option<Instant>;
    /// The next change of the journal that is no record of this process.
    fn poll_log(&mut self) -> Option<LogChange> {
        None
    }
    /// Everything before is in the journal, which has this size.
    fn handle_committed(&mut self, _now: Instant, _size: u64) {}
    /// The state of a supervisor that has a partner.
    fn succession(&self) -> Option<SuccessionState> {
        None
    }
    /// The thing besides connections that it lacks for its work, in words; `None` if it is ready.
    fn lacks(&self) -> Option<&'static str> {
        None
    }
    /// True if the journal is its own. The journal of a supervisor that follows is a copy of the leader's.
    fn owns_journal(&self) -> bool {
        true
    }
    /// True if nothing may be sent before it stands in the journal.
    fn needs_journal(&self) -> bool {
        false
    }
    /// Panics if its counts of credits, memory or event states contradict each other.
    fn check(&self) {}
    /// The tables of this process, by name, that are empty when no event is under way.
    fn tables(&self) -> Vec<(&'static str, usize)> {
        Vec::new()
    }
    /// Updates the metrics of its role.
    fn measure(&self, metrics: &Metrics);
}

/// Reasons why a process ended too early.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The system has no process of this number.
    #[error("there is no {role} {index}; the system has {count}")]
    NoSuchProcess {
        /// Role of the process.
        role: Role,
        /// The number asked for.
        index: u16,
        /// Number of processes of this role.
        count: usize,
    },
    /// A folder cannot be made.
    #[error("cannot make the folder {}: {error}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// Its journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Its journal cannot be written, and nothing may be done that does not stand in it.
    #[error("cannot write the journal {}: {error}", path.display())]
    JournalWrite {
        /// Path of the journal.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The readout has no fragments to serve.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The process cannot reach others.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A thread, socket or file of its own failed.
    #[error("{failure}: {error}")]
    Own {
        /// The thing that failed.
        failure: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
    /// More hosts, units or fragments than a role can count.
    #[error(transparent)]
    TooMany(#[from] fanin_scenario::machines::TooMany),
    /// The scenario has a setting that a live system does not support.
    #[error("{0}")]
    Unsupported(String),
    /// Its settings cannot work together.
    #[error("{0}")]
    Settings(String),
    /// The collector's connection failed.
    #[error(transparent)]
    Collector(#[from] ProcessorError),
    /// The process that started this one is gone.
    #[error("the process that started this one is gone")]
    Orphan,
}

impl ProcessError {
    /// True if trying again cannot help: the settings are wrong.
    pub const fn is_permanent(&self) -> bool {
        match self {
            Self::Folder { .. } | Self::JournalWrite { .. } | Self::Wire(_) | Self::Own { .. } => false,
            Self::Collector(_) | Self::Orphan | Self::Journal(JournalError::Io { .. }) => false,
            Self::NoSuchProcess { .. }
            | Self::Journal(_)
            | Self::Source(_)
            | Self::TooMany(_)
            | Self::Unsupported(_)
            | Self::Settings(_) => true,
        }
    }
}
