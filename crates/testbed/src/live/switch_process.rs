//! A software switch as a process: `fanin switch CONFIG` in its namespace, queried through its local socket.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanin_switch::control::{Client, ClientError, ControlAddress};
use serde_json::Value;
use thiserror::Error;

/// The longest time from a switch's start to its first answer.
const READY_MAX: Duration = Duration::from_secs(20);
const TURN: Duration = Duration::from_millis(10);
/// Time between the request to end and a kill; the queues need a fifth of a second to drain.
const END_MAX: Duration = Duration::from_secs(2);

/// Failures of a switch.
#[derive(Debug, Clone, Error)]
pub enum SwitchError {
    /// The switch cannot be started.
    #[error("cannot start the switch {name}: {source}")]
    Spawn {
        /// The switch's name in the scenario's network.
        name: String,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// The process ended.
    #[error("the switch {name} ended ({status})\nIts log:\n{log}")]
    Ended {
        /// The switch's name in the scenario's network.
        name: String,
        /// The exit status of the process.
        status: String,
        /// The text of the switch's log.
        log: String,
    },
    /// The switch ended while the run needed it.
    #[error("the switch {name} ended during the run; its log is in the folder `network` of --out")]
    Died {
        /// The switch's name in the scenario's network.
        name: String,
    },
    /// The switch did not answer in time after its start.
    #[error("the switch {name} was not ready within {} s: {source}", READY_MAX.as_secs())]
    NotReady {
        /// The switch's name in the scenario's network.
        name: String,
        /// The error of the last request.
        source: Arc<ClientError>,
    },
    /// The switch does not answer.
    #[error("the switch {name}: {source}")]
    Silent {
        /// The switch's name in the scenario's network.
        name: String,
        /// The error of the last request.
        source: Arc<ClientError>,
    },
}

impl SwitchError {
    fn silent(name: &str, source: ClientError) -> Self {
        Self::Silent { name: name.to_owned(), source: Arc::new(source) }
    }

    /// Returns true for a switch that runs and does not answer in time, for instance on a slow machine.
    pub fn is_late(&self) -> bool {
        match self {
            Self::NotReady { .. } => true,
            Self::Silent { source, .. } => matches!(**source, ClientError::Silent { .. }),
            Self::Spawn { .. } | Self::Ended { .. } | Self::Died { .. } => false,
        }
    }
}

/// A running switch.
#[derive(Debug)]
pub(super) struct SwitchProcess {
    pub(super) name: String,
    child: Child,
    socket: PathBuf,
    log: PathBuf,
}

impl SwitchProcess {
    /// Starts the switch; `command` is the program in the switch's namespace.
    pub(super) fn start(
        name: String,
        mut command: Command,
        config: &Path,
        socket: PathBuf,
    ) -> Result<Self, SwitchError> {
        let fail = |source| SwitchError::Spawn { name: name.clone(), source: Arc::new(source) };
        let log = config.with_extension("log");
        let file = File::create(&log).map_err(fail)?;
        command.arg("switch").arg(config).arg("--quiet");
        command.stdin(Stdio::null()).stdout(file.try_clone().map_err(fail)?).stderr(file);
        // Ctrl-C reaches the parent only.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().map_err(fail)?;
        Ok(Self { name, child, socket, log })
    }

    /// Returns the id of the switch's process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Makes a separate client, for another thread.
    pub(super) fn client(&self) -> Client {
        Client::new(ControlAddress::Socket(self.socket.clone()))
    }

    /// Waits for the switch's first answer.
    pub(super) fn wait_ready(&mut self) -> Result<(), SwitchError> {
        let until = Instant::now() + READY_MAX;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                let (name, status, log) = (self.name.clone(), status.to_string(), self.log());
                return Err(SwitchError::Ended { name, status, log });
            }
            match self.client().read("/v1/version") {
                Ok(_) => return Ok(()),
                Err(source) if Instant::now() >= until => {
                    return Err(SwitchError::NotReady { name: self.name.clone(), source: Arc::new(source) });
                }
                Err(_) => std::thread::sleep(TURN),
            }
        }
    }

    fn log(&self) -> String {
        let mut log = String::new();
        if let Ok(mut file) = File::open(&self.log) {
            let _ = file.read_to_string(&mut log);
        }
        log.trim_end().to_owned()
    }
}

impl Drop for SwitchProcess {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            // The process was not waited for yet, so its number was not reused.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let until = Instant::now() + END_MAX;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(TURN);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads all counters of a switch.
pub(super) fn snapshot(name: &str, client: &Client) -> Result<Value, SwitchError> {
    client.read("/v1/snapshot").map_err(|source| SwitchError::silent(name, source))
}

/// Resets a switch's high-water marks to the present occupancy.
pub(super) fn reset_marks(name: &str, client: &Client) -> Result<(), SwitchError> {
    let sent = client.send("POST", "/v1/marks/reset", None);
    sent.map(|_| ()).map_err(|source| SwitchError::silent(name, source))
}
