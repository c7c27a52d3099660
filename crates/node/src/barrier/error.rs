//! Errors of a barrier workload.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Errors of a barrier workload's processes and files.
#[derive(Debug, Error)]
pub enum BarrierError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file has the wrong content.
    #[error("{}: {text}", path.display())]
    Garbled {
        /// Path of the file.
        path: PathBuf,
        /// The mistake, its place, and the correct form.
        text: String,
    },
    /// The traced windows cannot be read.
    #[error(transparent)]
    Trace(#[from] crate::trace::TraceError),
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] fanin_scenario::Errors),
    /// The aggregator cannot work with these settings.
    #[error(transparent)]
    Settings(#[from] fanin_dataflow::AggregatorError),
    /// The workload has no sender of this number.
    #[error("there is no sender {index}; the workload has {count}, numbered from 0")]
    NoSuchSender {
        /// The number given.
        index: u16,
        /// The number of senders.
        count: usize,
    },
    /// A connection cannot be made or used.
    #[error("{action} {address}: {source}")]
    Network {
        /// The action that failed.
        action: &'static str,
        /// The address, or a name for several peers.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// The peer violated the protocol: a sender received no valid request, or the aggregator received an excess answer.
    #[error("{address} does not follow the protocol of a barrier workload: {why}")]
    Protocol {
        /// Address of the peer.
        address: String,
        /// Description of the mistake.
        why: &'static str,
    },
    /// A sender closed its connection.
    #[error("the sender at {address} closed its connection in round {round}")]
    Gone {
        /// Address of the sender.
        address: String,
        /// The round in progress.
        round: u64,
    },
    /// No byte arrived for `run.stall_limit`.
    #[error(
        "{answered} of {senders} senders have answered round {round}, and no byte arrived for {seconds} s"
    )]
    Stalled {
        /// Senders that have answered.
        answered: u32,
        /// Number of all senders.
        senders: usize,
        /// The round in progress.
        round: u64,
        /// The limit, in seconds.
        seconds: u64,
    },
    /// A process failed.
    #[error("{process} ended ({status})\nIts log:\n{log}")]
    Ended {
        /// Name of the process.
        process: String,
        /// Exit status of the process.
        status: String,
        /// Content of its log.
        log: String,
    },
    /// The aggregator began no round in time.
    #[error("{process} began no round within {seconds} s\nIts log:\n{log}")]
    NotReady {
        /// Name of the process.
        process: String,
        /// The time that it had.
        seconds: u64,
        /// Content of its log.
        log: String,
    },
    /// Processes missed a deadline.
    #[error("{processes} {problem}\nThe log of the first:\n{log}")]
    Late {
        /// Names of the processes.
        processes: String,
        /// The awaited step, and the time that they had.
        problem: String,
        /// Content of the first one's log.
        log: String,
    },
    /// A process cannot be started.
    #[error("cannot start {process}: {source}")]
    Spawn {
        /// Name of the process.
        process: String,
        /// The system's error.
        source: io::Error,
    },
}

impl BarrierError {
    /// Returns true if the same command fails again: a setting or a file is wrong.
    pub const fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::File { .. }
                | Self::Garbled { .. }
                | Self::Trace(_)
                | Self::Scenario(_)
                | Self::Settings(_)
                | Self::NoSuchSender { .. }
        )
    }

    pub(super) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }

    pub(super) fn network(action: &'static str, address: &impl ToString, source: io::Error) -> Self {
        Self::Network { action, address: address.to_string(), source }
    }
}
