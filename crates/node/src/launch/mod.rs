//! A whole system from one command: its processes started in order, watched, started again, and stopped in order.
//!
//! A [`Placement`] decides where processes run: [`Loopback`] is this machine as it is; a test network with a namespace for
//! each host is another.

mod cpu;
mod error;
mod options;
mod place;
mod prepare;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::clock::std_duration;
use crate::config::{Role, System, loopback_file};
use crate::names::process_name;
use crate::roles::processor::PARENT;

use cpu::cpu_seconds;
use error::READY_MAX;
use prepare::{OURS, absolute, prepare};

pub use cpu::ended_cpu_seconds;
pub use error::{LaunchError, PROCESSES_MAX};
pub use options::{SystemLaunch, processes};
pub use place::{Loopback, Placement};

/// Beyond what a process may take to finish its work, until it is ended by force.
const END_MARGIN: Duration = Duration::from_secs(5);
const TURN: Duration = Duration::from_millis(20);
/// A process that dies again and again is started again so often, and no more.
const RESTARTS_MAX: u32 = 20;
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

struct ChildProcess {
    role: Role,
    index: u16,
    name: String,
    /// `None` between its end and its next start.
    child: Option<Child>,
    /// When it is started again.
    again: Option<Instant>,
    restarts: u32,
    started: Instant,
    status: Option<ExitStatus>,
}

/// A system that runs.
pub struct LiveSystem<P> {
    system: System,
    program: PathBuf,
    place: P,
    running: Vec<ChildProcess>,
    restart: bool,
    metrics: BTreeMap<String, SocketAddr>,
    restarts: u64,
    killed: Vec<String>,
}

impl<P: Placement> LiveSystem<P> {
    /// Starts the processes of a system: loggers, readouts, supervisor, collectors with their processors.
    ///
    /// # Errors
    /// If the scenario, the folder or the machine does not allow it; nothing runs then.
    pub fn start(launch: &SystemLaunch<'_>, mut place: P) -> Result<Self, LaunchError> {
        launch.check()?;
        let scenario = &launch.loaded.scenario;
        prepare(launch.folder)?;
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| LaunchError::Io { path, error }
        };
        let folder = launch.folder.canonicalize().map_err(io(launch.folder))?;
        let scenario_file = folder.join("scenario.toml");
        std::fs::write(&scenario_file, absolute(launch)).map_err(io(&scenario_file))?;
        let mut addresses = |role, count: u64| -> Result<Vec<SocketAddr>, LaunchError> {
            (0..count).map(|index| place.address(role, index as u16).map_err(io(&folder))).collect()
        };
        let supervisor = addresses(Role::Supervisor, 1)?[0];
        let readouts = addresses(Role::Readout, u64::from(scenario.readout.hosts))?;
        let loggers = addresses(Role::Logger, u64::from(scenario.logger.hosts))?;
        let collectors = scenario.collectors_total();
        let run = launch.loaded.scenario.run.seed as u32;
        let scenario_name = Path::new("scenario.toml");
        let text = loopback_file(scenario_name, run, supervisor, &readouts, collectors as usize, &loggers);
        let system_file = folder.join("system.toml");
        // A TOML string of a path needs its quotes and backslashes escaped.
        let data = launch.data.map_or_else(String::new, |data| {
            format!("data = {}\n", toml::Value::String(data.to_string_lossy().into_owned()))
        });
        std::fs::write(&system_file, format!("{OURS}{data}{text}")).map_err(io(&system_file))?;
        let mut metrics = BTreeMap::new();
        let roles = [
            (Role::Logger, loggers.len() as u64),
            (Role::Readout, readouts.len() as u64),
            (Role::Supervisor, 1),
            (Role::Collector, collectors),
        ];
        if launch.metrics {
            for (role, count) in roles {
                for (index, address) in addresses(role, count)?.into_iter().enumerate() {
                    metrics.insert(process_name(role, index as u16), address);
                }
            }
        }
        let mut live = Self {
            system: System::load(&system_file)?,
            program: launch.program.to_owned(),
            place,
            running: Vec::new(),
            restart: launch.restart,
            metrics,
            restarts: 0,
            killed: Vec::new(),
        };
        live.place.ready();
        for (role, count) in roles {
            for index in 0..count as u16 {
                let child = Some(live.spawn(role, index)?);
                let name = process_name(role, index);
                let started = Instant::now();
                live.running.push(ChildProcess {
                    role,
                    index,
                    name,
                    child,
                    again: None,
                    restarts: 0,
                    started,
                    status: None,
                });
            }
        }
        Ok(live)
    }

    fn spawn(&self, role: Role, index: u16) -> Result<Child, LaunchError> {
        let process = process_name(role, index);
        let fail = |error| LaunchError::Spawn { process: process.clone(), error };
        let log = self.system.folder.join("log").join(format!("{process}.log"));
        let log = File::options().create(true).append(true).open(log).map_err(fail)?;
        let mut command = Command::new(&self.program);
        command.arg("node").arg(role.name()).arg(&self.system.path).args(["--index", &index.to_string()]);
        if let Some(address) = self.metrics.get(&process) {
            command.args(["--metrics", &address.to_string()]);
        }
        command.env(PARENT, std::process::id().to_string());
        command.stdin(Stdio::null()).stdout(log.try_clone().map_err(fail)?).stderr(log);
        // Ctrl-C is for the parent alone: it stops the others in order.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        self.place.command(role, index, command).spawn().map_err(fail)
    }

    /// The system as its processes know it.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Where a process serves its metrics.
    pub fn metrics(&self, process: &str) -> Option<SocketAddr> {
        self.metrics.get(process).copied()
    }

    /// Where all processes serve theirs.
    pub fn all_metrics(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        self.metrics.iter().map(|(process, address)| (process.as_str(), *address))
    }

    /// Times that a process was started again.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Processes that did not end by themselves.
    pub fn killed(&self) -> &[String] {
        &self.killed
    }

    /// The number that the kernel has for a process; `None` while it does not run.
    pub fn pid(&self, role: Role, index: u16) -> Option<u32> {
        let running = self.running.iter().find(|one| (one.role, one.index) == (role, index))?;
        running.child.as_ref().map(Child::id)
    }

    /// Processor time that the processes took so far, without their processors, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        let children = self.running.iter().filter_map(|one| one.child.as_ref());
        children.map(|child| cpu_seconds(&child.id().to_string())).sum()
    }

    /// Waits until the first event is assigned.
    ///
    /// # Errors
    /// If a process ends, or nothing happens. `false` where `stop` was set.
    pub fn wait_ready(&mut self, stop: &AtomicBool) -> Result<bool, LaunchError> {
        let until = Instant::now() + READY_MAX;
        let journal = self.system.journal("supervisor");
        loop {
            let text = std::fs::read_to_string(&journal).unwrap_or_default();
            if text.contains(" assigned ") {
                return Ok(true);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            self.watch()?;
            if Instant::now() >= until {
                return Err(LaunchError::NotReady { said: self.complaints() });
            }
            std::thread::sleep(TURN);
        }
    }

    /// Lets the system work for a while; `tick` is told how long it did. Ends early where `stop` is set.
    ///
    /// # Errors
    /// If a process ends that should not, and is not started again.
    pub fn work(
        &mut self,
        time: Duration,
        stop: &AtomicBool,
        tick: &dyn Fn(Duration),
    ) -> Result<(), LaunchError> {
        let start = Instant::now();
        while start.elapsed() < time && !stop.load(Ordering::Relaxed) {
            self.watch()?;
            tick(start.elapsed());
            std::thread::sleep(TURN.min(time.saturating_sub(start.elapsed())));
        }
        Ok(())
    }

    /// Looks for processes that ended, and starts them again.
    ///
    /// # Errors
    /// If one may not be, or not again.
    pub fn watch(&mut self) -> Result<(), LaunchError> {
        for place in 0..self.running.len() {
            let one = &mut self.running[place];
            if let Some(child) = &mut one.child
                && let Ok(Some(status)) = child.try_wait()
            {
                one.child = None;
                one.status = Some(status);
                let pause = PAUSE_MIN.saturating_mul(1 << one.restarts.min(6)).min(PAUSE_MAX);
                one.again = Some(Instant::now() + pause);
                one.restarts =
                    if one.started.elapsed() > Duration::from_secs(10) { 1 } else { one.restarts + 1 };
                let (name, restarts) = (one.name.clone(), one.restarts);
                tracing::warn!(process = name, %status, "a process ended");
                // Wrong settings do not become right by trying again.
                if !self.restart || restarts > RESTARTS_MAX || status.code() == Some(2) {
                    let said = self.said(&name);
                    return Err(LaunchError::Ended { process: name, status: status.to_string(), said });
                }
            }
            let one = &self.running[place];
            if one.child.is_none() && one.again.is_some_and(|at| at <= Instant::now()) {
                let child = self.spawn(one.role, one.index)?;
                let one = &mut self.running[place];
                (one.child, one.again, one.started) = (Some(child), None, Instant::now());
                self.restarts += 1;
            }
        }
        Ok(())
    }

    /// The end of a process' log.
    fn said(&self, process: &str) -> String {
        const BYTES: u64 = 2000;
        let path = self.system.folder.join("log").join(format!("{process}.log"));
        let mut said = Vec::new();
        if let Ok(mut file) = File::open(path) {
            let length = file.metadata().map_or(0, |metadata| metadata.len());
            let _ = file.seek(SeekFrom::Start(length.saturating_sub(BYTES)));
            let _ = file.take(BYTES).read_to_end(&mut said);
        }
        String::from_utf8_lossy(&said).trim_end().to_owned()
    }

    /// What the supervisor said, and the first few others that have something to complain of.
    fn complaints(&self) -> String {
        const OTHERS_MAX: usize = 3;
        let said = |one: &ChildProcess| (one.name.clone(), self.said(&one.name));
        let complains = |(_, text): &(String, String)| text.contains("ERROR") || text.contains("WARN");
        let (supervisor, others): (Vec<&ChildProcess>, Vec<&ChildProcess>) =
            self.running.iter().partition(|one| one.role == Role::Supervisor);
        let others = others.into_iter().map(said).filter(complains).take(OTHERS_MAX);
        let all = supervisor.into_iter().map(said).chain(others);
        all.map(|(name, text)| format!("{name}:\n{text}")).collect::<Vec<_>>().join("\n")
    }

    /// Stops the system in order: the supervisor when all events are finished with, then collectors, loggers and
    /// readouts. What does not end by itself is ended by force, and named by [`Self::killed`].
    pub fn stop(&mut self) {
        let limit = std_duration(self.system.scenario().live.drain) + END_MARGIN;
        for role in [Role::Supervisor, Role::Collector, Role::Logger, Role::Readout] {
            for one in self.running.iter_mut().filter(|one| one.role == role) {
                one.again = None;
                if let Some(child) = &one.child {
                    signal(child, Signal::TERM);
                }
            }
            let until = Instant::now() + limit;
            loop {
                let others_start_again = role == Role::Supervisor;
                let mut left = 0;
                for one in self.running.iter_mut().filter(|one| one.role == role) {
                    let Some(child) = &mut one.child else { continue };
                    match child.try_wait() {
                        Ok(None) if Instant::now() < until => left += 1,
                        Ok(None) => {
                            let _ = child.kill();
                            one.status = child.wait().ok();
                            one.child = None;
                            self.killed.push(one.name.clone());
                        }
                        Ok(status) => {
                            one.status = status;
                            one.child = None;
                        }
                        Err(_) => one.child = None,
                    }
                }
                if left == 0 {
                    break;
                }
                if others_start_again && self.restart {
                    // A collector that died needs another life for the supervisor to finish.
                    let _ = self.watch_others(role);
                }
                std::thread::sleep(TURN);
            }
        }
    }

    fn watch_others(&mut self, but: Role) -> Result<(), LaunchError> {
        let those = self.running.iter_mut().enumerate().filter(|(_, one)| one.role == but);
        let held: Vec<(usize, Option<Child>)> = those.map(|(place, one)| (place, one.child.take())).collect();
        let watched = self.watch();
        for (place, child) in held {
            self.running[place].child = child;
        }
        watched
    }
}

impl<P> Drop for LiveSystem<P> {
    /// No process outlives this.
    fn drop(&mut self) {
        for one in &mut self.running {
            if let Some(child) = &mut one.child {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended meanwhile; as it is not waited for yet, its number is still its own.
        let _ = kill_process(pid, signal);
    }
}
