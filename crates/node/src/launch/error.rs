//! Errors of launching a system.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::ConfigError;

/// One machine is not asked for more processes than this.
pub const PROCESSES_MAX: u64 = 512;
/// Most time from the start of the processes to the first event.
pub(super) const READY_MAX: Duration = Duration::from_secs(60);

/// Errors of launching a system.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The scenario has more processes than one machine runs.
    #[error(
        "the scenario has {count} processes, and one machine is asked for {PROCESSES_MAX} at most; \
         use fewer hosts, or `live.processors=\"timers\"`"
    )]
    TooMany {
        /// Number of processes.
        count: u64,
    },
    /// The scenario has a setting that the live system does not support.
    #[error("{0}")]
    Unsupported(String),
    /// The folder is not one that may be emptied.
    #[error("{} holds other files; choose an empty folder", path.display())]
    NotOurs {
        /// Path of the folder.
        path: PathBuf,
    },
    /// Another run works in the folder.
    #[error(
        "another run works in {}; wait for its end, or choose another folder with --out",
        path.display()
    )]
    InUse {
        /// Path of the folder.
        path: PathBuf,
    },
    /// A file or folder cannot be used.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A process cannot be started.
    #[error("cannot start {process}: {error}")]
    Spawn {
        /// Name of the process.
        process: String,
        /// The system's error.
        error: io::Error,
    },
    /// The file that was made for the processes is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A process ends again and again.
    #[error("{process} ended ({status}); last lines of its log:\n{said}")]
    Ended {
        /// Name of the process.
        process: String,
        /// Exit status or signal.
        status: String,
        /// The end of its log.
        said: String,
    },
    /// No event came within a minute.
    #[error("no event was assigned within {} s; last lines of the logs:\n{said}", READY_MAX.as_secs())]
    NotReady {
        /// Last lines of the logs of the supervisor and of processes that report a fault.
        said: String,
    },
}
