//! Starts, watches and ends all processes of a barrier workload on one machine.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fanin_scenario::Loaded;
use rustix::process::Signal;

use super::config::BarrierSystem;
use super::error::BarrierError;
use super::result::{AGGREGATOR_FILE, STARTED_FILE, sender_file};
use crate::child;
use crate::clock::std_duration;
use crate::key::{KEY_FILE, write_key};

/// Maximum time from the start of the processes to the first round.
const READY_MAX: Duration = Duration::from_secs(30);
/// Time that is granted beyond the stall limit before the aggregator is signalled, and again before it is killed. Also
/// the maximum time for the senders to end.
const END_MARGIN: Duration = Duration::from_secs(5);
const TURN: Duration = Duration::from_millis(20);

/// The role of a process in a barrier workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BarrierRole {
    /// The process that requests.
    Aggregator,
    /// A process that answers, with its number from 0.
    Sender(u16),
}

impl BarrierRole {
    /// Returns the name of the process in messages and files.
    fn process(self) -> String {
        match self {
            Self::Aggregator => "aggregator".to_owned(),
            Self::Sender(index) => format!("sender-{index}"),
        }
    }
}

/// Chooses the hosts and addresses of a workload's processes.
pub trait BarrierPlace: std::fmt::Debug {
    /// Returns the address at which a sender listens; `None` if the network has no host for it.
    fn address(&self, sender: u16) -> Option<SocketAddr>;

    /// Changes `command`, which is complete otherwise, so that it runs on the host of this process.
    fn command(&self, role: BarrierRole, command: Command) -> Command;
}

/// Options of a barrier workload's start.
#[derive(Debug)]
pub struct BarrierLaunch<'a> {
    /// The checked scenario.
    pub loaded: &'a Loaded,
    /// An existing folder for the workload's files.
    pub folder: &'a Path,
    /// Path of the `fanin` program.
    pub program: &'a Path,
    /// The network in which the processes run; `None` is the loopback of this machine.
    pub place: Option<&'a dyn BarrierPlace>,
}

/// A running workload. Dropping it kills its processes.
#[derive(Debug)]
pub struct LiveBarrier {
    folder: PathBuf,
    senders: Vec<BarrierProcess>,
    aggregator: BarrierProcess,
    stall: Duration,
}

#[derive(Debug)]
struct BarrierProcess {
    name: String,
    child: Child,
}

impl BarrierProcess {
    /// Returns true for success, and the exit status as text; `None` while the process runs.
    fn ended(&mut self) -> Option<(bool, String)> {
        let status = self.child.try_wait().ok()??;
        Some((status.success(), status.to_string()))
    }
}

impl LiveBarrier {
    /// Starts all senders, then the aggregator.
    ///
    /// # Errors
    /// If a file cannot be written or a process cannot be started. No process runs afterwards.
    pub fn start(launch: &BarrierLaunch<'_>) -> Result<Self, BarrierError> {
        let folder =
            launch.folder.canonicalize().map_err(|source| BarrierError::file(launch.folder, source))?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|source| BarrierError::file(&path, source)).map(|()| path)
        };
        for stale in [STARTED_FILE, AGGREGATOR_FILE] {
            let _ = fs::remove_file(folder.join(stale));
        }
        write("scenario.toml", &launch.loaded.to_toml())?;
        let count = launch.loaded.scenario.workload.senders as u16;
        let addresses = addresses(launch, count)?;
        let key = folder.join(KEY_FILE);
        write_key(&key).map_err(|source| BarrierError::file(&key, source))?;
        let config =
            write("barrier.toml", &BarrierSystem::text("scenario.toml", Some(KEY_FILE), &addresses))?;
        let mut senders = Vec::new();
        for index in 0..count {
            for stale in [sender_file(index.into()), format!("sender-{index}.windows")] {
                let _ = fs::remove_file(folder.join(stale));
            }
            match spawn(launch, &folder, BarrierRole::Sender(index), &config) {
                Ok(process) => senders.push(process),
                Err(error) => {
                    end(&mut senders);
                    return Err(error);
                }
            }
        }
        match spawn(launch, &folder, BarrierRole::Aggregator, &config) {
            Ok(aggregator) => {
                let stall = std_duration(launch.loaded.scenario.run.stall_limit);
                Ok(Self { folder, senders, aggregator, stall })
            }
            Err(error) => {
                end(&mut senders);
                Err(error)
            }
        }
    }

    /// Waits until the first round begins. Returns `false` if `stop` was set before.
    ///
    /// # Errors
    /// If a process fails, or if no round begins within 30 s.
    pub fn wait_ready(&mut self, stop: &AtomicBool) -> Result<bool, BarrierError> {
        self.wait_ready_with(stop, || Ok(()))
    }

    /// As [`Self::wait_ready`]; calls `check`, such as one of the network, again and again.
    ///
    /// # Errors
    /// As for [`Self::wait_ready`], and the first error of `check`.
    pub fn wait_ready_with<E: From<BarrierError>>(
        &mut self,
        stop: &AtomicBool,
        check: impl Fn() -> Result<(), E>,
    ) -> Result<bool, E> {
        let until = Instant::now() + READY_MAX;
        while !self.folder.join(STARTED_FILE).exists() {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            check()?;
            self.check()?;
            if Instant::now() >= until {
                let (process, seconds) = (self.aggregator.name.clone(), READY_MAX.as_secs());
                let log = self.log_of(&process);
                return Err(BarrierError::NotReady { process, seconds, log }.into());
            }
            std::thread::sleep(TURN);
        }
        Ok(true)
    }

    /// Lets the workload run for `time` and calls `tick` with the time since the call. Returns early if `stop` is set, and
    /// false if the aggregator has ended.
    ///
    /// # Errors
    /// If a process fails.
    pub fn work(
        &mut self,
        time: Duration,
        stop: &AtomicBool,
        tick: &dyn Fn(Duration),
    ) -> Result<bool, BarrierError> {
        let start = Instant::now();
        while start.elapsed() < time && !stop.load(Ordering::Relaxed) {
            if self.aggregator.ended().is_some() {
                return Ok(false);
            }
            self.check()?;
            tick(start.elapsed());
            std::thread::sleep(TURN.min(time.saturating_sub(start.elapsed())));
        }
        Ok(true)
    }

    /// Waits until the aggregator has ended, then at most 5 s for the senders. Asks the aggregator to end if `stop` is set, or
    /// after 5 s beyond the stall limit. Kills an aggregator that does not end within 10 s beyond the stall limit.
    ///
    /// # Errors
    /// If a process fails, or if a sender still runs: it is killed.
    pub fn finish(&mut self, stop: &AtomicBool) -> Result<(), BarrierError> {
        let until = Instant::now() + self.stall + END_MARGIN;
        let mut is_signalled = false;
        loop {
            if let Some((is_success, status)) = self.aggregator.ended() {
                if is_success {
                    break;
                }
                return Err(self.ended(&self.aggregator.name, status));
            }
            if (stop.load(Ordering::Relaxed) || Instant::now() >= until) && !is_signalled {
                is_signalled = true;
                child::signal(&self.aggregator.child, Signal::TERM);
            }
            if Instant::now() >= until + END_MARGIN {
                let _ = self.aggregator.child.kill();
            }
            std::thread::sleep(TURN);
        }
        self.end_senders(END_MARGIN)
    }

    /// Waits at most `margin` for all senders to end, and kills those that still run.
    fn end_senders(&mut self, margin: Duration) -> Result<(), BarrierError> {
        let until = Instant::now() + margin;
        let mut late = Vec::new();
        for place in 0..self.senders.len() {
            while Instant::now() < until && self.senders[place].ended().is_none() {
                std::thread::sleep(Duration::from_millis(2));
            }
            if self.senders[place].ended().is_none() {
                late.push(place);
            }
        }
        // A sender that failed may be the reason why others wait.
        self.check()?;
        if late.is_empty() {
            return Ok(());
        }
        for &place in &late {
            let child = &mut self.senders[place].child;
            let _ = child.kill();
            let _ = child.wait();
        }
        let names: Vec<&str> = late.iter().map(|&place| self.senders[place].name.as_str()).collect();
        let problem =
            format!("still ran {} s after the aggregator had ended, and had to be killed", margin.as_secs());
        Err(self.late(&names, problem))
    }

    /// Returns an error if a process has failed.
    fn check(&mut self) -> Result<(), BarrierError> {
        for place in 0..self.senders.len() {
            if let Some((false, status)) = self.senders[place].ended() {
                return Err(self.ended(&self.senders[place].name, status));
            }
        }
        match self.aggregator.ended() {
            Some((false, status)) => Err(self.ended(&self.aggregator.name, status)),
            _ => Ok(()),
        }
    }

    fn ended(&self, process: &str, status: String) -> BarrierError {
        BarrierError::Ended { process: process.to_owned(), status, log: self.log_of(process) }
    }

    fn late(&self, processes: &[&str], problem: String) -> BarrierError {
        let log = processes.first().map(|process| self.log_of(process)).unwrap_or_default();
        BarrierError::Late { processes: processes.join(", "), problem, log }
    }

    fn log_of(&self, process: &str) -> String {
        child::read_log(&self.folder, process)
    }
}

impl Drop for LiveBarrier {
    fn drop(&mut self) {
        let _ = self.aggregator.child.kill();
        let _ = self.aggregator.child.wait();
        end(&mut self.senders);
    }
}

fn end(processes: &mut [BarrierProcess]) {
    for process in processes {
        let _ = process.child.kill();
        let _ = process.child.wait();
    }
}

fn addresses(launch: &BarrierLaunch<'_>, count: u16) -> Result<Vec<SocketAddr>, BarrierError> {
    let fail = |source| BarrierError::network("cannot listen at", &Ipv4Addr::LOCALHOST, source);
    if let Some(place) = launch.place {
        let missing = || fail(io::Error::new(io::ErrorKind::NotFound, "the network has too few hosts"));
        return (0..count).map(|sender| place.address(sender).ok_or_else(missing)).collect();
    }
    // All listeners stay open until all ports are chosen, so no port is chosen twice.
    let held: io::Result<Vec<TcpListener>> =
        (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect();
    held.and_then(|held| held.iter().map(TcpListener::local_addr).collect()).map_err(fail)
}

fn spawn(
    launch: &BarrierLaunch<'_>,
    folder: &Path,
    role: BarrierRole,
    config: &Path,
) -> Result<BarrierProcess, BarrierError> {
    let name = role.process();
    let fail = |source| BarrierError::Spawn { process: name.clone(), source };
    fs::create_dir_all(folder.join("log")).map_err(fail)?;
    let mut command = Command::new(launch.program);
    command.arg("node");
    match role {
        BarrierRole::Aggregator => command.arg("aggregator").arg(config),
        BarrierRole::Sender(index) => command.arg("sender").arg(config).args(["--index", &index.to_string()]),
    };
    child::attach(&mut command, folder, &name).map_err(fail)?;
    let mut command = match launch.place {
        Some(place) => place.command(role, command),
        None => command,
    };
    let child = command.spawn().map_err(fail)?;
    Ok(BarrierProcess { name, child })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(name: &str, program: &str, arguments: &[&str]) -> BarrierProcess {
        let child = Command::new(program).args(arguments).spawn().unwrap();
        BarrierProcess { name: name.to_owned(), child }
    }

    #[test]
    fn a_sender_that_runs_on_after_the_end_is_named_and_killed() {
        let folder = std::env::temp_dir().join(format!("fanin-node-late-{}", std::process::id()));
        fs::create_dir_all(folder.join("log")).unwrap();
        fs::write(child::log_path(&folder, "sender-1"), "waits for its disk\n").unwrap();
        let mut live = LiveBarrier {
            folder: folder.clone(),
            senders: vec![process("sender-0", "true", &[]), process("sender-1", "sleep", &["600"])],
            aggregator: process("aggregator", "true", &[]),
            stall: Duration::ZERO,
        };
        live.aggregator.child.wait().unwrap();
        live.senders[0].child.wait().unwrap();
        let error = live.end_senders(Duration::ZERO).unwrap_err().to_string();
        assert!(live.senders[1].ended().is_some(), "the sender still runs");
        assert!(error.starts_with("sender-1 still ran 0 s after"), "{error}");
        assert!(error.ends_with("waits for its disk"), "{error}");
        live.end_senders(Duration::ZERO).expect_err("a killed sender did not succeed");
        fs::remove_dir_all(folder).unwrap();
    }
}
