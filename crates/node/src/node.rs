//! The interface between a role and the process that drives it, and the errors of a process.

use std::io;
use std::path::PathBuf;

use fanin_dataflow::{EventRecord, Message, Peer, Unexpected};
use fanin_units::Instant;

use crate::config::{Role, System};
use crate::data::Data;
use crate::journal::{Journal, JournalError, JournalSpan};
use crate::metrics::Metrics;
use crate::source::SourceError;
use crate::unit::client::ProcessorError;
use crate::wire::WireError;

/// A change to the log that two supervisors share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogChange {
    /// Append whole lines.
    Append(Vec<u8>),
    /// Append the header of this process, then lines.
    Begin {
        /// Words of the header about the offset in the log and the unfinished work; empty within a file.
        words: String,
        /// Whole lines behind the header.
        lines: String,
    },
    /// Put the file aside: the lines of the changes behind this one begin a new file.
    PutAside,
    /// Replace the log by an empty one that begins at this offset.
    Restart(u64),
}

impl LogChange {
    /// Applies the change to a journal. Lines are in its file after the next commit.
    ///
    /// # Errors
    /// If the journal cannot be replaced.
    pub fn apply(self, journal: &mut Journal) -> io::Result<()> {
        match self {
            Self::Append(text) => journal.append(&text),
            Self::Begin { words, lines } => {
                let header = journal.header_with(&words);
                journal.append(header.as_bytes());
                journal.append(lines.as_bytes());
            }
            Self::PutAside => journal.put_aside(),
            Self::Restart(start) => journal.restart(start)?,
        }
        Ok(())
    }
}

/// State of a supervisor in a system with a standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SuccessionState {
    /// The latest decided term that this supervisor knows.
    pub term: u64,
    /// True if this supervisor leads: it assigns events.
    pub leads: bool,
    /// True if this supervisor leads paired, or is the partner that may take over. False while it proposes a term.
    pub is_paired: bool,
    /// True if this supervisor is the partner in a pairing of its log that is not known to be decided.
    pub is_pairing: bool,
}

/// State machine of a role, with the inputs and outputs of its process.
pub trait RoleNode {
    /// Handles a new connection to a peer.
    fn handle_connected(&mut self, now: Instant, peer: Peer);
    /// Handles the loss of the connection to a peer.
    fn handle_closed(&mut self, now: Instant, peer: Peer);
    /// Handles a message of a peer.
    ///
    /// # Errors
    /// If the message is not expected in this state. The process then closes the connection.
    fn handle_message(&mut self, now: Instant, peer: Peer, message: Message<Data>) -> Result<(), Unexpected>;
    /// Handles the deadline that [`Self::poll_deadline`] returned, once it is reached.
    fn handle_deadline(&mut self, now: Instant);
    /// Handles a wake-up by another thread of the process.
    fn handle_woken(&mut self, _now: Instant) {}
    /// Returns the error that must end the process, once; `None` if the role can continue.
    fn failure(&mut self) -> Option<ProcessError> {
        None
    }
    /// Begins an orderly end: the role takes no new work, and the process ends when the role is idle.
    fn handle_stop(&mut self, _now: Instant) {}
    /// Applies the settings that can change while the process runs.
    fn handle_reload(&mut self, _system: &System) {}
    /// Returns true if the role has no unfinished work.
    fn is_idle(&mut self) -> bool;
    /// Returns the next message to send, with its receiver; `None` if there is none.
    fn poll_transmit(&mut self) -> Option<(Peer, Message<Data>)>;
    /// Returns the next record for the journal, and the event's fragment bytes so far (0 unless the step is `Collected`).
    fn poll_record(&mut self) -> Option<(EventRecord, u64)>;
    /// Returns the time at which [`Self::handle_deadline`] must be called; `None` without a deadline.
    fn poll_deadline(&mut self) -> Option<Instant>;
    /// Returns the next change of a shared log that is no record of this process; `None` if there is none.
    fn poll_log(&mut self) -> Option<LogChange> {
        None
    }
    /// Notes that all changes and records so far are committed. `span` has the offsets of the journal's file.
    fn handle_committed(&mut self, _now: Instant, _span: JournalSpan) {}
    /// Returns the state of a supervisor in a system with a standby; `None` for other roles and systems.
    fn succession(&self) -> Option<SuccessionState> {
        None
    }
    /// Returns a description of what the role lacks besides connections; `None` if it is ready.
    fn lacks(&self) -> Option<&'static str> {
        None
    }
    /// Returns true if the process may add its own records. The journal of a supervisor that follows is a copy of the
    /// leader's.
    fn owns_journal(&self) -> bool {
        true
    }
    /// Returns true if the process must end when its journal cannot be written, because messages depend on records.
    fn needs_journal(&self) -> bool {
        false
    }
    /// Panics if the role's counts of credits, memory or event states contradict each other.
    fn check(&self) {}
    /// Returns names and sizes of the role's tables that are empty when no event is in progress.
    fn tables(&self) -> Vec<(&'static str, usize)> {
        Vec::new()
    }
    /// Returns the unfinished work for the header of the next journal, as [`Resume::to_words`](crate::resume::Resume::to_words)
    /// gives it: older journals may be deleted. Empty for a role that resumes nothing.
    fn checkpoint(&self) -> String {
        String::new()
    }
    /// Returns the number of events whose fragments a readout keeps.
    fn events_kept(&self) -> u64 {
        0
    }
    /// Returns the number of events that a logger refused because the supervisor never assigned them.
    fn events_unassigned(&self) -> u64 {
        0
    }
    /// Updates the metrics of the role.
    fn measure(&self, now: Instant, metrics: &Metrics);
}

/// Errors that end a process.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The system has no process of this number.
    #[error("there is no {role} {index}; the system has {count}")]
    NoSuchProcess {
        /// Role of the process.
        role: Role,
        /// The requested number.
        index: u16,
        /// Number of processes of this role.
        count: usize,
    },
    /// A folder cannot be created.
    #[error("cannot make the folder {}: {error}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Another process of this name writes in the folder.
    #[error("{process} is already running in {}: two processes would write the same files", folder.display())]
    Runs {
        /// Name of the process.
        process: String,
        /// Folder of its journal, or of its stored events.
        folder: PathBuf,
    },
    /// The file that keeps a second process of the same name out cannot be locked.
    #[error("cannot lock {}: {error}", path.display())]
    Lock {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The journal of the process cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal cannot be opened or written, and the process may send nothing that is not recorded.
    #[error("cannot write the journal {}: {error}", path.display())]
    JournalWrite {
        /// Path of the journal.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The readout has no fragments to serve.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The connections of the process cannot be set up or polled.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A thread, socket or file of the process failed.
    #[error("{failure}: {error}")]
    Own {
        /// Description of the failure.
        failure: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The scenario has more hosts, units or fragments than a role can number.
    #[error(transparent)]
    TooMany(#[from] fanin_scenario::role_configs::TooMany),
    /// The scenario has a setting that a live system does not support.
    #[error("{0}")]
    Unsupported(String),
    /// The settings or the files of the process are invalid or contradict each other.
    #[error("{0}")]
    Settings(String),
    /// Processors that worked earlier in the run no longer start.
    #[error("{0}")]
    Processors(String),
    /// The processor's connection to its collector failed.
    #[error(transparent)]
    Collector(#[from] ProcessorError),
    /// The process that started this one is gone.
    #[error("the process that started this one has ended")]
    Orphan,
}

impl ProcessError {
    /// Returns true if a restart fails again, because the settings or files are wrong.
    pub const fn is_permanent(&self) -> bool {
        match self {
            Self::Folder { .. } | Self::Lock { .. } | Self::JournalWrite { .. } => false,
            Self::Wire(_)
            | Self::Own { .. }
            | Self::Processors(_)
            | Self::Collector(_)
            | Self::Orphan
            | Self::Journal(JournalError::Io { .. }) => false,
            Self::NoSuchProcess { .. }
            | Self::Runs { .. }
            | Self::Journal(_)
            | Self::Source(_)
            | Self::TooMany(_)
            | Self::Unsupported(_)
            | Self::Settings(_) => true,
        }
    }
}
