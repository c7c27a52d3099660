//! Errors of launching a system.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::ConfigError;

/// Maximum number of processes on one machine.
pub const PROCESSES_MAX: u64 = 512;

/// Errors of launching a system.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The scenario has more than [`PROCESSES_MAX`] processes.
    #[error(
        "the scenario has {count} processes; one machine runs at most {PROCESSES_MAX}: \
         use fewer hosts, or `live.processors=\"timers\"`"
    )]
    TooMany {
        /// Number of processes.
        count: u64,
    },
    /// The scenario has a setting that the live system does not support.
    #[error("{0}")]
    Unsupported(String),
    /// The folder holds files of other origin, so it is not emptied.
    #[error("{} holds other files; choose an empty folder", path.display())]
    NotOurs {
        /// Path of the folder.
        path: PathBuf,
    },
    /// Another run uses the folder.
    #[error(
        "another run is using {}; wait until it ends, or choose another folder with --out",
        path.display()
    )]
    InUse {
        /// Path of the folder.
        path: PathBuf,
    },
    /// A process of the system runs.
    #[error("a process is using {}; stop all processes, the supervisor first", path.display())]
    Runs {
        /// Path of the lock that the process holds.
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
    /// The file of the system that the launcher wrote is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A process ended and is not restarted.
    #[error("{process} ended ({status})\nLast lines of its log:\n{log}")]
    Ended {
        /// Name of the process.
        process: String,
        /// Exit status or signal.
        status: String,
        /// Last lines of the process's log.
        log: String,
    },
    /// No event was assigned in time.
    #[error(
        "no event was assigned within {} s{}\nLast lines of the logs:\n{logs}",
        limit.as_secs(),
        if ended.is_empty() { String::new() } else { format!(", and {ended}") }
    )]
    NotReady {
        /// Maximum time to the first event.
        limit: Duration,
        /// The processes that ended meanwhile, with the number of times, in words; empty if none did.
        ended: String,
        /// Last lines of the logs of the supervisor and of processes that report a fault.
        logs: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scripts, and the attempts of `fanin run`, show the first line alone.
    #[test]
    fn the_first_line_of_an_error_is_its_cause_without_a_log() {
        let ready = |ended: &str| LaunchError::NotReady {
            limit: Duration::from_secs(60),
            ended: ended.to_owned(),
            logs: "supervisor:\nWARN no readout".to_owned(),
        };
        let first = |error: LaunchError| error.to_string().lines().next().map(str::to_owned);
        assert_eq!(first(ready("")).as_deref(), Some("no event was assigned within 60 s"));
        let ended = "no event was assigned within 60 s, and readout-0 ended 3 times";
        assert_eq!(first(ready("readout-0 ended 3 times")).as_deref(), Some(ended));
    }
}
