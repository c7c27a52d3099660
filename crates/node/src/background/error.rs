//! Errors of background traffic.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Errors of the processes of background traffic, and of their files.
#[derive(Debug, Error)]
pub enum BackgroundError {
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
        /// The mistake, and the correct form.
        text: String,
    },
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] fanin_scenario::Errors),
    /// The scenario's network cannot be built.
    #[error(transparent)]
    Topology(#[from] fanin_network::NetworkError),
    /// The system has no host of this number with background traffic.
    #[error("{host} {index} has no background traffic; hosts with it are {hosts}")]
    NoSuchHost {
        /// Kind of the host.
        host: &'static str,
        /// The number given.
        index: u16,
        /// The hosts with background traffic, in words.
        hosts: String,
    },
    /// A connection cannot be made or used.
    #[error("{action} {address}: {source}")]
    Network {
        /// The action that failed.
        action: &'static str,
        /// Address of the sink.
        address: String,
        /// The system's error.
        source: io::Error,
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
    /// A process cannot be started.
    #[error("cannot start {process}: {source}")]
    Spawn {
        /// Name of the process.
        process: String,
        /// The system's error.
        source: io::Error,
    },
}

impl BackgroundError {
    /// Returns true if the same command fails again: a setting or a file is wrong.
    pub const fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::File { .. }
                | Self::Garbled { .. }
                | Self::Scenario(_)
                | Self::Topology(_)
                | Self::NoSuchHost { .. }
        )
    }

    pub(super) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }

    pub(super) fn network(action: &'static str, address: &impl ToString, source: io::Error) -> Self {
        Self::Network { action, address: address.to_string(), source }
    }
}
