//! A whole system from one command: its processes started in order, watched, started again, and stopped in order.
//!
//! A [`Placement`] decides where processes run: [`Loopback`] is this machine as it is; a test network with a namespace for
//! each host is another.

mod child;
mod cpu;
mod error;
mod follow;
mod lock;
mod metrics_file;
mod options;
mod place;
mod prepare;
mod restart;
mod standby;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::clock::std_duration;
use crate::config::{Role, System, loopback_file};
use crate::key::{KEY_FILE, write_key};
use crate::names::{STANDBY, process_name};
use crate::roles::processor::PARENT;

use child::ChildProcess;
use cpu::cpu_seconds;
use error::READY_MAX;
use follow::JournalFollower;
use prepare::{OURS, absolute, prepare};

pub use cpu::ended_cpu_seconds;
pub use error::{LaunchError, PROCESSES_MAX};
pub use lock::FolderLock;
pub use metrics_file::{METRICS_FILE, MetricsFile, ServedMetrics};
pub use options::{SystemLaunch, processes};
pub use place::{Loopback, Placement};
pub use restart::RestartPlan;
pub use standby::StandbyTerms;

/// Margin beyond a process's time to finish its work, after which it is killed.
const END_MARGIN: Duration = Duration::from_secs(5);
const TURN: Duration = Duration::from_millis(20);
/// A process hangs, and is ended by force, if its main thread does not run for `live.silence_max` times this.
const HANG_SILENCES: u32 = 3;
/// Least time after which a process counts as hanging, for short `live.silence_max`.
const HANG_MIN: Duration = Duration::from_secs(3);
/// Interval at which processes are checked and the supervisor's journal is read.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A supervisor that was started again gets so long to open its journal before it is asked to stop.
const SETTLE_MAX: Duration = Duration::from_secs(2);

/// A system that runs.
pub struct LiveSystem<P> {
    system: System,
    program: PathBuf,
    place: P,
    children: Vec<ChildProcess>,
    restart: bool,
    metrics: BTreeMap<String, SocketAddr>,
    follower: JournalFollower,
    /// Follows the journal of the standby, if there is one. The two journals are one log, of which one may end early.
    standby_follower: Option<JournalFollower>,
    /// An event was assigned: from then on nothing but the plan ends the run.
    is_ready: bool,
    looked: Instant,
    restarts: u64,
    killed: Vec<String>,
    hung: BTreeMap<String, u64>,
    /// The most quick ends in a row of each process that the system went on without.
    without: BTreeMap<String, u32>,
    _lock: FolderLock,
}

impl<P: Placement> LiveSystem<P> {
    /// Starts the processes of a system: loggers, readouts, supervisor, collectors with their processors.
    ///
    /// # Errors
    /// If the scenario, the folder or the machine does not allow it; nothing runs then.
    pub fn start(launch: &SystemLaunch<'_>, mut place: P) -> Result<Self, LaunchError> {
        launch.check()?;
        let scenario = &launch.loaded.scenario;
        let lock = prepare(launch.folder, launch.overwrite)?;
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
        let supervisors = addresses(Role::Supervisor, 1 + u64::from(scenario.live.standby))?;
        let readouts = addresses(Role::Readout, u64::from(scenario.readout.hosts))?;
        let loggers = addresses(Role::Logger, u64::from(scenario.logger.hosts))?;
        let collectors = scenario.collectors_total();
        let run = launch.loaded.scenario.run.seed as u32;
        let scenario_name = Path::new("scenario.toml");
        let text = loopback_file(scenario_name, run, &supervisors, &readouts, collectors as usize, &loggers);
        let system_file = folder.join("system.toml");
        // A TOML string of a path needs its quotes and backslashes escaped.
        let data = launch.data.map_or_else(String::new, |data| {
            format!("data = {}\n", toml::Value::String(data.to_string_lossy().into_owned()))
        });
        write_key(&folder.join(KEY_FILE)).map_err(io(&folder.join(KEY_FILE)))?;
        let key = format!("key = \"{KEY_FILE}\"\n");
        let rate = launch
            .ideal_rate
            .map_or_else(String::new, |rate| format!("ideal_rate = \"{} b/s\"\n", rate.get()));
        let figures = format!("\n[metrics]\n{rate}{}", launch.predicted.to_toml());
        std::fs::write(&system_file, format!("{OURS}{key}{data}{text}{figures}"))
            .map_err(io(&system_file))?;
        let (mut metrics, mut served) = (BTreeMap::new(), MetricsFile::default());
        let roles = [
            (Role::Logger, loggers.len() as u64),
            (Role::Readout, readouts.len() as u64),
            (Role::Supervisor, supervisors.len() as u64),
            (Role::Collector, collectors),
        ];
        if launch.metrics {
            for (role, count) in roles {
                for (index, address) in (0..).zip(addresses(role, count)?) {
                    metrics.insert(process_name(role, index), address);
                }
            }
            let all =
                roles.iter().flat_map(|&(role, count)| (0..count as u16).map(move |index| (role, index)));
            for (role, index) in all {
                let name = process_name(role, index);
                let (address, namespace) = (metrics[&name], place.namespace(role, index));
                served.process.push(ServedMetrics { name, address, namespace });
            }
            served.write(&folder).map_err(io(&folder.join(METRICS_FILE)))?;
        }
        let system = System::load(&system_file)?;
        let mut live = Self {
            follower: JournalFollower::new(system.journal("supervisor")),
            standby_follower: system.standby.as_ref().map(|_| JournalFollower::new(system.journal(STANDBY))),
            system,
            program: launch.program.to_owned(),
            place,
            children: Vec::new(),
            restart: launch.restart,
            metrics,
            is_ready: false,
            looked: Instant::now(),
            restarts: 0,
            killed: Vec::new(),
            hung: BTreeMap::new(),
            without: BTreeMap::new(),
            _lock: lock,
        };
        live.place.ready();
        for (role, count) in roles {
            for index in 0..count as u16 {
                let child = live.spawn(role, index)?;
                let name = process_name(role, index);
                live.children.push(ChildProcess::new(role, index, name, child, Instant::now()));
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

    /// Address at which a process serves its metrics.
    pub fn metrics(&self, process: &str) -> Option<SocketAddr> {
        self.metrics.get(process).copied()
    }

    /// Addresses at which all processes serve their metrics.
    pub fn all_metrics(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        self.metrics.iter().map(|(process, address)| (process.as_str(), *address))
    }

    /// Times that a process was started again.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Processes that did not end by themselves when the system stopped.
    pub fn killed(&self) -> &[String] {
        &self.killed
    }

    /// Processes that hung while the system worked, and how often; each was ended by force and started again.
    pub fn hung(&self) -> &BTreeMap<String, u64> {
        &self.hung
    }

    /// Processes without which the system continued for a while, and their failures in a row.
    pub fn without(&self) -> &BTreeMap<String, u32> {
        &self.without
    }

    /// Events that were assigned, as seen while the system ran.
    pub fn assigned(&self) -> u64 {
        let standby = self.standby_follower.as_ref().map_or(0, JournalFollower::assigned);
        self.follower.assigned().max(standby)
    }

    /// Reads the lines that the supervisors added to their journals.
    fn follow(&mut self) {
        self.follower.poll();
        if let Some(standby) = &mut self.standby_follower {
            standby.poll();
        }
    }

    /// The number that the kernel has for a process; `None` while it does not run.
    pub fn pid(&self, role: Role, index: u16) -> Option<u32> {
        self.children.iter().find(|one| (one.role, one.index) == (role, index))?.pid()
    }

    /// Processor time that the processes took so far, without their processors, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.children.iter().filter_map(ChildProcess::pid).map(|pid| cpu_seconds(&pid.to_string())).sum()
    }

    /// Waits until the first event is assigned.
    ///
    /// # Errors
    /// If a process cannot work, or nothing happens. `false` where `stop` was set.
    pub fn wait_ready(&mut self, stop: &AtomicBool) -> Result<bool, LaunchError> {
        let until = Instant::now() + READY_MAX;
        loop {
            self.follow();
            if self.assigned() > 0 {
                self.is_ready = true;
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

    /// Lets the system work for a while; `tick` receives the time since the call. Ends early where `stop` is set.
    ///
    /// # Errors
    /// If a process ends and is not to be started again.
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

    /// Restarts ended processes, and kills hanging ones.
    ///
    /// # Errors
    /// If a process is not restarted: restarts are off, or it fails with these settings before any event was assigned.
    pub fn watch(&mut self) -> Result<(), LaunchError> {
        self.watch_all(None)
    }

    fn watch_all(&mut self, except: Option<Role>) -> Result<(), LaunchError> {
        let now = Instant::now();
        let looks = now.saturating_duration_since(self.looked) >= LOOK_EVERY;
        if looks {
            self.looked = now;
            self.follow();
        }
        for place in 0..self.children.len() {
            if except == Some(self.children[place].role) {
                continue;
            }
            if let Some(status) = self.children[place].reap() {
                self.handle_ended(place, status, now)?;
            }
            if looks && self.restart {
                self.end_if_hung(place, now);
            }
            if self.children[place].is_due(now) {
                self.start_again(place, now)?;
            }
        }
        Ok(())
    }

    fn handle_ended(&mut self, place: usize, status: ExitStatus, now: Instant) -> Result<(), LaunchError> {
        let child = &mut self.children[place];
        let name = child.name.clone();
        tracing::warn!(process = name, %status, "a process ended");
        child.plan_restart(now);
        // Settings that are wrong are wrong from the start; later the files of the run may be gone.
        let is_hopeless = child.is_given_up() || status.code() == Some(2);
        if !self.restart || (is_hopeless && !self.is_ready) {
            let said = self.said(&name);
            return Err(LaunchError::Ended { process: name, status: status.to_string(), said });
        }
        let child = &self.children[place];
        if child.is_given_up() {
            tracing::error!(
                process = name,
                ends = child.quick_ends(),
                "the system goes on without a process"
            );
            self.without.insert(name, child.quick_ends());
        }
        Ok(())
    }

    fn end_if_hung(&mut self, place: usize, now: Instant) {
        let limit = (std_duration(self.system.scenario().live.silence_max) * HANG_SILENCES).max(HANG_MIN);
        let child = &mut self.children[place];
        if child.hangs(now, limit) {
            tracing::error!(process = child.name, ?limit, "killed a process that hung; starting it again");
            *self.hung.entry(child.name.clone()).or_default() += 1;
            child.kill();
            child.plan_restart(now);
        }
    }

    fn start_again(&mut self, place: usize, now: Instant) -> Result<(), LaunchError> {
        let (role, index) = (self.children[place].role, self.children[place].index);
        match self.spawn(role, index) {
            Ok(child) => {
                self.children[place].handle_started(child, now);
                self.restarts += 1;
            }
            Err(error) if !self.is_ready => return Err(error),
            Err(error) => {
                tracing::error!(%error, "a process is not started again");
                self.children[place].plan_restart(now);
            }
        }
        Ok(())
    }

    /// The end of the log of a process.
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

    /// The end of the supervisor's log, and of the first few others that hold a warning.
    fn complaints(&self) -> String {
        const OTHERS_MAX: usize = 3;
        let said = |one: &ChildProcess| (one.name.clone(), self.said(&one.name));
        let complains = |(_, text): &(String, String)| text.contains("ERROR") || text.contains("WARN");
        let (supervisor, others): (Vec<&ChildProcess>, Vec<&ChildProcess>) =
            self.children.iter().partition(|one| one.role == Role::Supervisor);
        let others = others.into_iter().map(said).filter(complains).take(OTHERS_MAX);
        let all = supervisor.into_iter().map(said).chain(others);
        all.map(|(name, text)| format!("{name}:\n{text}")).collect::<Vec<_>>().join("\n")
    }

    /// Stops the system in order: the supervisors when all events are finished with, then collectors, loggers and
    /// readouts. Processes that do not end by themselves are ended by force, and named by [`Self::killed`].
    pub fn stop(&mut self) {
        let limit = std_duration(self.system.scenario().live.drain) + END_MARGIN;
        self.stop_supervisors(limit);
        for role in [Role::Collector, Role::Logger, Role::Readout] {
            self.stop_role(role, limit);
        }
        self.follow();
    }

    /// Lets the supervisors finish all events. One that dies before it has done so is started again: only it knows which
    /// events are left, or the other one of two does.
    fn stop_supervisors(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        let places = self.places(Role::Supervisor);
        // The lives in which each was asked to stop, and whether it has ended.
        let mut asked = vec![0; places.len()];
        let mut has_ended = vec![false; places.len()];
        while has_ended.contains(&false) {
            let now = Instant::now();
            self.follow();
            for ((&place, asked), has_ended) in places.iter().zip(&mut asked).zip(&mut has_ended) {
                let lives = self.lives(place);
                let child = &mut self.children[place];
                match child.reap() {
                    Some(status) if status.success() => *has_ended = true,
                    Some(status) => {
                        tracing::warn!(process = child.name, %status, "a supervisor ended before it had finished");
                        child.plan_restart(now);
                    }
                    None => {}
                }
                if *has_ended {
                    continue;
                }
                if now >= until {
                    self.kill(place);
                    *has_ended = true;
                } else if !self.children[place].is_running() {
                    // The system stops without one that it went on without, if there is another one.
                    let child = &self.children[place];
                    *has_ended = !self.restart
                        || child.is_given_up() && places.len() > 1
                        || child.is_due(now) && self.start_again(place, now).is_err();
                } else if lives > *asked || self.children[place].age(now) >= SETTLE_MAX {
                    // Before it has opened its journal, a signal would end it at once. A further one changes nothing.
                    *asked = lives;
                    self.children[place].signal(Signal::TERM);
                }
            }
            if self.restart {
                // A collector that died needs another life for the supervisor to finish.
                let _ = self.watch_all(Some(Role::Supervisor));
            }
            std::thread::sleep(TURN);
        }
        places.iter().for_each(|&place| self.children[place].retire());
    }

    /// Lives of a supervisor that came as far as to write into its journal.
    fn lives(&self, place: usize) -> u64 {
        let follower = match &self.standby_follower {
            Some(standby) if self.children[place].index > 0 => standby,
            _ => &self.follower,
        };
        follower.lives()
    }

    /// Places of the processes of a role.
    fn places(&self, role: Role) -> Vec<usize> {
        (0..self.children.len()).filter(|&place| self.children[place].role == role).collect()
    }

    fn stop_role(&mut self, role: Role, limit: Duration) {
        let places = self.places(role);
        for &place in &places {
            self.children[place].retire();
            self.children[place].signal(Signal::TERM);
        }
        let until = Instant::now() + limit;
        loop {
            for &place in &places {
                let _ = self.children[place].reap();
            }
            if places.iter().all(|&place| !self.children[place].is_running()) {
                return;
            }
            if Instant::now() >= until {
                places.iter().for_each(|&place| self.kill(place));
                return;
            }
            std::thread::sleep(TURN);
        }
    }

    fn kill(&mut self, place: usize) {
        if self.children[place].is_running() {
            self.children[place].kill();
            self.killed.push(self.children[place].name.clone());
        }
    }
}

impl<P> Drop for LiveSystem<P> {
    /// No process outlives this.
    fn drop(&mut self) {
        self.children.iter_mut().for_each(ChildProcess::kill);
    }
}
