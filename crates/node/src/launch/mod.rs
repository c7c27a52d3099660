//! Runs a whole system from one command: starts its processes in order, restarts failed ones, and stops them in order.
//!
//! A [`Placement`] decides where processes run. [`Loopback`] runs all of them on this machine; a test network may have a
//! network namespace for each host.

mod activity;
mod child;
mod cpu;
mod error;
mod follow;
mod lock;
mod metrics_file;
mod options;
mod place;
mod prepare;
mod ready;
mod restart;
mod standby;
mod stop;

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
use follow::JournalFollower;
use prepare::{OURS, absolute, prepare};
use ready::ready_limit;

pub use activity::{ActivitySample, ActivityWatch, ProcessActivity, hang_limit};
pub use cpu::ended_cpu_seconds;
pub use error::{LaunchError, PROCESSES_MAX};
pub use lock::FolderLock;
pub use metrics_file::{METRICS_FILE, MetricsFile, ServedMetrics};
pub use options::{SystemLaunch, processes};
pub use place::{Loopback, Placement};
pub use restart::RestartPlan;
pub use standby::StandbyTerms;
pub use stop::{ProcessStop, STOP_ORDER, StopAction, StoppingProcess, stop_limit};

const TURN: Duration = Duration::from_millis(20);
/// Interval at which processes are checked and the supervisor's journal is read.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum time for a restarted supervisor to open its journal before it is asked to stop.
const SETTLE_MAX: Duration = Duration::from_secs(2);

/// A running system. Dropping it kills its processes.
pub struct LiveSystem<P> {
    system: System,
    program: PathBuf,
    place: P,
    children: Vec<ChildProcess>,
    restart: bool,
    metrics: BTreeMap<String, SocketAddr>,
    follower: JournalFollower,
    /// Follows the journal of the standby, if the system has one. The two journals are copies of one log, and one may be
    /// shorter.
    standby_follower: Option<JournalFollower>,
    /// True once an event was assigned. From then on, no failed process ends the run if restarts are on.
    is_ready: bool,
    checked_at: Instant,
    restarts: u64,
    ended: BTreeMap<String, u64>,
    killed: Vec<String>,
    hung: BTreeMap<String, u64>,
    blocked: BTreeMap<String, u64>,
    /// Quick ends in a row of each process without which the system continued.
    without: BTreeMap<String, u32>,
    _lock: FolderLock,
}

impl<P: Placement> LiveSystem<P> {
    /// Starts the processes of a system: loggers, readouts, supervisors, then collectors, which start their processors.
    ///
    /// # Errors
    /// [`LaunchError`]; no process runs afterwards.
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
            checked_at: Instant::now(),
            restarts: 0,
            ended: BTreeMap::new(),
            killed: Vec::new(),
            hung: BTreeMap::new(),
            blocked: BTreeMap::new(),
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
        // Ctrl-C reaches only the parent, which stops the other processes in order.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        self.place.command(role, index, command).spawn().map_err(fail)
    }

    /// Returns the configuration that the processes use.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Returns the address at which a process serves its metrics; `None` if it does not.
    pub fn metrics(&self, process: &str) -> Option<SocketAddr> {
        self.metrics.get(process).copied()
    }

    /// Returns the names of all processes that serve metrics, with their addresses.
    pub fn all_metrics(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        self.metrics.iter().map(|(process, address)| (process.as_str(), *address))
    }

    /// Returns the number of restarts.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Returns the processes that ended before the system stopped, each with the number of times. Processes that hung are not
    /// among them.
    pub fn ended(&self) -> &BTreeMap<String, u64> {
        &self.ended
    }

    /// Returns the names of processes that were killed because they did not end when the system stopped.
    pub fn killed(&self) -> &[String] {
        &self.killed
    }

    /// Returns the processes that hung, each with the number of times. A process that hangs is killed and restarted.
    pub fn hung(&self) -> &BTreeMap<String, u64> {
        &self.hung
    }

    /// Returns the processes that waited for a disk for as long as one that hangs, each with the number of times. No signal
    /// reaches such a process; it goes on when the disk answers.
    pub fn blocked(&self) -> &BTreeMap<String, u64> {
        &self.blocked
    }

    /// Returns the processes without which the system continued, each with its quick ends in a row.
    pub fn without(&self) -> &BTreeMap<String, u32> {
        &self.without
    }

    /// Returns the indispensable roles without any process: the system continues without all supervisors, or all collectors.
    pub fn absent(&self) -> Vec<Role> {
        let now = Instant::now();
        let is_absent =
            |&role: &Role| self.places(role).into_iter().all(|place| self.children[place].is_absent(now));
        [Role::Supervisor, Role::Collector].into_iter().filter(is_absent).collect()
    }

    /// Returns the number of assigned events in the supervisors' journals, as of the last time they were read.
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

    /// Returns the PID of a process; `None` while it does not run.
    pub fn pid(&self, role: Role, index: u16) -> Option<u32> {
        self.children.iter().find(|one| (one.role, one.index) == (role, index))?.pid()
    }

    /// Returns the CPU time of the processes that run now, in seconds, without processors.
    pub fn cpu_seconds(&self) -> f64 {
        self.children.iter().filter_map(ChildProcess::pid).map(|pid| cpu_seconds(&pid.to_string())).sum()
    }

    /// Waits until the first event is assigned. Returns `false` if `stop` was set before.
    ///
    /// # Errors
    /// If a process ends and is not restarted, or if no event is assigned in time.
    pub fn wait_ready(&mut self, stop: &AtomicBool) -> Result<bool, LaunchError> {
        self.wait_ready_with(stop, || Ok(()))
    }

    /// As [`Self::wait_ready`]; calls `check`, such as one of the network, again and again.
    ///
    /// # Errors
    /// As for [`Self::wait_ready`], and the first error of `check`.
    pub fn wait_ready_with<E: From<LaunchError>>(
        &mut self,
        stop: &AtomicBool,
        check: impl Fn() -> Result<(), E>,
    ) -> Result<bool, E> {
        let limit = ready_limit(&self.system.scenario().supervisor);
        let until = Instant::now() + limit;
        loop {
            self.follow();
            if self.assigned() > 0 {
                self.is_ready = true;
                return Ok(true);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            check()?;
            self.watch()?;
            if Instant::now() >= until {
                let ended = self.ended.iter().map(|(process, ends)| format!("{process} ended {ends} times"));
                let ended = ended.collect::<Vec<_>>().join(", ");
                return Err(LaunchError::NotReady { limit, ended, logs: self.complaints() }.into());
            }
            std::thread::sleep(TURN);
        }
    }

    /// Lets the system work for `time` and calls `tick` with the time since the call. Returns early if `stop` is set.
    ///
    /// # Errors
    /// If a process ends and is not restarted.
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
    /// If a process ends and is not restarted: restarts are off, or it fails for good before an event was assigned.
    pub fn watch(&mut self) -> Result<(), LaunchError> {
        self.watch_all(None)
    }

    fn watch_all(&mut self, except: Option<Role>) -> Result<(), LaunchError> {
        let now = Instant::now();
        let is_check_due = now.saturating_duration_since(self.checked_at) >= CHECK_INTERVAL;
        if is_check_due {
            self.checked_at = now;
            self.follow();
        }
        for place in 0..self.children.len() {
            if except == Some(self.children[place].role) {
                continue;
            }
            if let Some(status) = self.children[place].reap() {
                self.handle_ended(place, status, now)?;
            }
            if is_check_due && self.restart {
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
        if child.take_killed() {
            tracing::warn!(process = name, %status, "a process that was killed ended late");
        } else {
            tracing::warn!(process = name, %status, "a process ended");
            *self.ended.entry(name.clone()).or_default() += 1;
        }
        child.plan_restart(now);
        // Exit status 2 means wrong settings before the first event. Later, the files of the run may have been removed.
        let is_hopeless = child.is_given_up() || status.code() == Some(2);
        if !self.restart || (is_hopeless && !self.is_ready) {
            let log = self.log_tail(&name);
            return Err(LaunchError::Ended { process: name, status: status.to_string(), log });
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
        let limit = hang_limit(std_duration(self.system.scenario().live.silence_max));
        let child = &mut self.children[place];
        match child.activity(now, limit) {
            ProcessActivity::Works => {}
            ProcessActivity::Hangs => {
                tracing::error!(
                    process = child.name,
                    ?limit,
                    "killed a process that hung; starting it again"
                );
                *self.hung.entry(child.name.clone()).or_default() += 1;
                if child.kill() {
                    child.plan_restart(now);
                } else {
                    // It is started again when it has ended.
                    child.forget_activity(now);
                }
            }
            ProcessActivity::Blocked => {
                tracing::error!(
                    process = child.name,
                    ?limit,
                    "a process waits for the disk, and does nothing else"
                );
                *self.blocked.entry(child.name.clone()).or_default() += 1;
            }
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

    /// Returns the last 2000 bytes of a process's log.
    fn log_tail(&self, process: &str) -> String {
        const BYTES: u64 = 2000;
        let path = self.system.folder.join("log").join(format!("{process}.log"));
        let mut tail = Vec::new();
        if let Ok(mut file) = File::open(path) {
            let length = file.metadata().map_or(0, |metadata| metadata.len());
            let _ = file.seek(SeekFrom::Start(length.saturating_sub(BYTES)));
            let _ = file.take(BYTES).read_to_end(&mut tail);
        }
        String::from_utf8_lossy(&tail).trim_end().to_owned()
    }

    /// Returns the last lines of the supervisors' logs, and of up to three other logs with a warning or an error in them.
    fn complaints(&self) -> String {
        const OTHERS_MAX: usize = 3;
        let tail = |one: &ChildProcess| (one.name.clone(), self.log_tail(&one.name));
        let complains = |(_, text): &(String, String)| text.contains("ERROR") || text.contains("WARN");
        let (supervisor, others): (Vec<&ChildProcess>, Vec<&ChildProcess>) =
            self.children.iter().partition(|one| one.role == Role::Supervisor);
        let others = others.into_iter().map(tail).filter(complains).take(OTHERS_MAX);
        let all = supervisor.into_iter().map(tail).chain(others);
        all.map(|(name, text)| format!("{name}:\n{text}")).collect::<Vec<_>>().join("\n")
    }

    /// Stops the system in order: the supervisors, which finish all events first, then collectors, loggers and readouts.
    /// Processes that do not end in time are killed; [`Self::killed`] returns their names. A supervisor gets one more life then.
    pub fn stop(&mut self) {
        let limit = stop_limit(std_duration(self.system.scenario().live.drain));
        for role in STOP_ORDER {
            self.stop_role(role, limit);
        }
        self.follow();
    }

    /// Stops the processes of a role. A supervisor that fails before is restarted: its journal names the unfinished events. With
    /// a standby, the other supervisor may finish them instead.
    fn stop_role(&mut self, role: Role, limit: Duration) {
        let places = self.places(role);
        let mut stops = vec![ProcessStop::new(Instant::now(), limit); places.len()];
        if role != Role::Supervisor {
            places.iter().for_each(|&place| self.children[place].retire());
        }
        // For each process: the incarnation in which it was last asked to stop, and true once it has ended.
        let mut asked = vec![None; places.len()];
        let mut has_ended = vec![false; places.len()];
        while has_ended.contains(&false) {
            let now = Instant::now();
            self.follow();
            for (number, &place) in places.iter().enumerate() {
                let (asked, has_ended) = (&mut asked[number], &mut has_ended[number]);
                *has_ended |= self.has_stopped(place, now);
                let incarnation = self.incarnations(place);
                let child = &self.children[place];
                let is_new = asked.is_none_or(|asked| incarnation > asked);
                let process = StoppingProcess {
                    role,
                    has_ended: *has_ended,
                    is_running: child.is_running(),
                    // Before a supervisor has opened its journal, the signal would end it at once.
                    is_settled: role != Role::Supervisor
                        || incarnation > 0 && is_new
                        || child.age(now) >= SETTLE_MAX,
                    // A supervisor that was given up is not needed if the other one runs.
                    is_restarted: self.restart && !(child.is_given_up() && places.len() > 1),
                };
                match stops[number].next(now, process, limit) {
                    StopAction::Done => *has_ended = true,
                    StopAction::Ask => {
                        if role == Role::Supervisor || asked.is_none() {
                            child.signal(Signal::TERM);
                        }
                        *asked = Some(incarnation);
                    }
                    StopAction::Wait => {
                        *has_ended =
                            !child.is_running() && child.is_due(now) && self.start_again(place, now).is_err();
                    }
                    StopAction::Replace => {
                        tracing::error!(
                            process = self.children[place].name,
                            ?limit,
                            "killed a supervisor that did not stop; starting it again"
                        );
                        self.kill(place);
                        // One that waits for the disk is started again when it has ended.
                        if !self.children[place].is_running() {
                            self.children[place].plan_restart(now);
                        }
                    }
                    StopAction::Kill => {
                        self.kill(place);
                        *has_ended = true;
                    }
                }
            }
            if role == Role::Supervisor && self.restart {
                // The supervisor cannot finish without a failed collector: restart it.
                let _ = self.watch_all(Some(Role::Supervisor));
            }
            if has_ended.contains(&false) {
                std::thread::sleep(TURN);
            }
        }
        places.iter().for_each(|&place| self.children[place].retire());
    }

    /// Returns true if a process has just ended as it was asked to. Plans the restart of a supervisor that failed.
    fn has_stopped(&mut self, place: usize, now: Instant) -> bool {
        let child = &mut self.children[place];
        let Some(status) = child.reap() else { return false };
        if child.role != Role::Supervisor || status.success() {
            return true;
        }
        if child.take_killed() {
            tracing::warn!(process = child.name, %status, "a supervisor that was killed ended late");
        } else {
            tracing::warn!(process = child.name, %status, "a supervisor ended before it had finished");
            *self.ended.entry(child.name.clone()).or_default() += 1;
        }
        child.plan_restart(now);
        false
    }

    /// Returns the number of a supervisor's incarnations that have written into its journal.
    fn incarnations(&self, place: usize) -> u64 {
        let follower = match &self.standby_follower {
            Some(standby) if self.children[place].index > 0 => standby,
            _ => &self.follower,
        };
        follower.incarnations()
    }

    /// Returns the positions of a role's processes in `children`.
    fn places(&self, role: Role) -> Vec<usize> {
        (0..self.children.len()).filter(|&place| self.children[place].role == role).collect()
    }

    fn kill(&mut self, place: usize) {
        let child = &mut self.children[place];
        if child.is_running() {
            if !child.kill() {
                tracing::error!(
                    process = child.name,
                    "a killed process waits for the disk, and has not ended"
                );
            }
            self.killed.push(child.name.clone());
        }
    }
}

impl<P> Drop for LiveSystem<P> {
    /// Kills all processes that still run.
    fn drop(&mut self) {
        for child in &mut self.children {
            child.kill();
        }
    }
}
