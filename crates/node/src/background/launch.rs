//! Starts, watches and ends the processes of background traffic.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use fanin_scenario::Loaded;
use rustix::process::Signal;

use super::config::{BackgroundSystem, pairs, source_hosts};
use super::error::BackgroundError;
use super::result::{BackgroundResult, read_result};
use crate::child;

/// Maximum time for processes to write their results and end.
const END_MAX: Duration = Duration::from_secs(5);
const TURN: Duration = Duration::from_millis(5);

/// The role of a process of background traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BackgroundRole {
    /// The process on a collector's host, which receives.
    Sink(u16),
    /// The process on a readout's host, which sends.
    Source(u16),
}

impl BackgroundRole {
    /// Returns the name of the process in messages and files.
    fn process(self) -> String {
        match self {
            Self::Sink(index) => format!("background-sink-{index}"),
            Self::Source(index) => format!("background-source-{index}"),
        }
    }

    /// Returns the words for `fanin node`.
    fn words(self) -> (&'static str, u16) {
        match self {
            Self::Sink(index) => ("background-sink", index),
            Self::Source(index) => ("background-source", index),
        }
    }
}

/// Chooses the hosts and addresses of the processes.
pub trait BackgroundPlace {
    /// Returns the address at which a collector's sink listens; `None` if the network has no host for it.
    fn sink(&self, collector: u16) -> Option<SocketAddr>;

    /// Changes `command`, which is complete otherwise, so that it runs on the host of this process.
    fn place(&self, role: BackgroundRole, command: Command) -> Command;
}

/// Options of the start.
pub struct BackgroundLaunch<'a> {
    /// The checked scenario.
    pub loaded: &'a Loaded,
    /// The folder for the files; it is made.
    pub folder: &'a Path,
    /// Path of the `fanin` program.
    pub program: &'a Path,
    /// The network in which the processes run.
    pub place: &'a dyn BackgroundPlace,
}

/// Running background traffic. Dropping it kills its processes.
#[derive(Debug)]
pub struct LiveBackground {
    folder: PathBuf,
    sinks: Vec<BackgroundProcess>,
    sources: Vec<BackgroundProcess>,
}

#[derive(Debug)]
struct BackgroundProcess {
    name: String,
    child: Child,
}

impl LiveBackground {
    /// Starts all sinks, then all sources. Returns `None` for a scenario without background traffic.
    ///
    /// # Errors
    /// If a file cannot be written or a process cannot be started. No process runs afterwards.
    pub fn start(launch: &BackgroundLaunch<'_>) -> Result<Option<Self>, BackgroundError> {
        let scenario = &launch.loaded.scenario;
        if scenario.background.connections == 0 {
            return Ok(None);
        }
        let folder = launch.folder;
        // Results of an earlier attempt would be read in place of missing ones.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder.join("log")).map_err(|source| BackgroundError::file(folder, source))?;
        let folder = folder.canonicalize().map_err(|source| BackgroundError::file(folder, source))?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|source| BackgroundError::file(&path, source)).map(|()| path)
        };
        write("scenario.toml", &launch.loaded.to_toml())?;
        let collectors = scenario.background_connections() / u64::from(scenario.background.connections);
        let missing = |collector: u16| BackgroundError::NoSuchHost {
            host: "collector",
            index: collector,
            hosts: "those of the network".to_owned(),
        };
        let address = |collector| launch.place.sink(collector).ok_or_else(|| missing(collector));
        let addresses: Vec<SocketAddr> = (0..collectors as u16).map(address).collect::<Result<_, _>>()?;
        let config = write("background.toml", &BackgroundSystem::text("scenario.toml", &addresses))?;
        let sources = source_hosts(&pairs(scenario)?);
        // From here on, an error drops the processes, which ends them.
        let mut live = Self { folder, sinks: Vec::new(), sources: Vec::new() };
        for collector in 0..collectors as u16 {
            let process = spawn(launch, &live.folder, BackgroundRole::Sink(collector), &config)?;
            live.sinks.push(process);
        }
        for readout in sources {
            let process = spawn(launch, &live.folder, BackgroundRole::Source(readout), &config)?;
            live.sources.push(process);
        }
        Ok(Some(live))
    }

    /// Checks that all processes run.
    ///
    /// # Errors
    /// [`BackgroundError::Ended`] with the first process that has ended.
    pub fn check(&mut self) -> Result<(), BackgroundError> {
        for process in self.sinks.iter_mut().chain(&mut self.sources) {
            if let Ok(Some(status)) = process.child.try_wait() {
                return Err(ended(&self.folder, &process.name, status.to_string()));
            }
        }
        Ok(())
    }

    /// Ends the traffic, and reads its results.
    ///
    /// # Errors
    /// If a process has failed, or left no result.
    pub fn finish(mut self, loaded: &Loaded) -> Result<BackgroundResult, BackgroundError> {
        self.check()?;
        // Sources end first, so that they count what they have sent.
        for processes in [&mut self.sources, &mut self.sinks] {
            processes.iter().for_each(|process| child::signal(&process.child, Signal::TERM));
            let until = Instant::now() + END_MAX;
            for process in processes {
                while Instant::now() < until && matches!(process.child.try_wait(), Ok(None)) {
                    std::thread::sleep(TURN);
                }
                match process.child.try_wait() {
                    Ok(Some(status)) if status.success() => {}
                    Ok(Some(status)) => return Err(ended(&self.folder, &process.name, status.to_string())),
                    _ => {
                        let late = format!("not within {} s", END_MAX.as_secs());
                        return Err(ended(&self.folder, &process.name, late));
                    }
                }
            }
        }
        read_result(&self.folder, &loaded.scenario)
    }
}

impl Drop for LiveBackground {
    fn drop(&mut self) {
        for process in self.sinks.iter_mut().chain(&mut self.sources) {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

fn ended(folder: &Path, process: &str, status: String) -> BackgroundError {
    BackgroundError::Ended { process: process.to_owned(), status, log: child::read_log(folder, process) }
}

fn spawn(
    launch: &BackgroundLaunch<'_>,
    folder: &Path,
    role: BackgroundRole,
    config: &Path,
) -> Result<BackgroundProcess, BackgroundError> {
    let name = role.process();
    let fail = |source| BackgroundError::Spawn { process: name.clone(), source };
    let mut command = Command::new(launch.program);
    let (word, index) = role.words();
    command.arg("node").arg(word).arg(config).args(["--index", &index.to_string()]);
    child::attach(&mut command, folder, &name).map_err(fail)?;
    let child = launch.place.place(role, command).spawn().map_err(fail)?;
    Ok(BackgroundProcess { name, child })
}
