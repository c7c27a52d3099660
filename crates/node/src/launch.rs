//! A whole system from one command: its processes started in order, watched, started again, and stopped in order.
//!
//! Where processes run is the business of a [`Place`]: [`Loopback`] is this machine as it is; a test network with a
//! namespace for each host is another.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fanin_scenario::{Loaded, Processors, Scenario, SizeModel};
use rustix::process::{Pid, Signal, kill_process};

use crate::clock::std_duration;
use crate::config::{ConfigError, Role, System, loopback_file};
use crate::roles::processor::PARENT;

/// One machine is not asked for more processes than this.
pub const PROCESSES_MAX: u64 = 512;
/// From the start of the processes to the first event.
const READY_MAX: Duration = Duration::from_secs(60);
/// Beyond what a process may take to finish its work, until it is ended by force.
const END_MARGIN: Duration = Duration::from_secs(5);
/// Listening processes are found at this port and above.
const PORTS_FIRST: u16 = 10_000;
const TURN: Duration = Duration::from_millis(20);
/// A process that dies again and again is started again so often, and no more.
const RESTARTS_MAX: u32 = 20;
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The first line of the file that makes a folder one of this module's.
const OURS: &str = "# Made by `fanin run`; the folder is emptied by the next run into it.\n";

/// Where processes run.
pub trait Place {
    /// Where a process that listens is to be found; each call gives another address.
    ///
    /// # Errors
    /// If there is none.
    fn address(&mut self, role: Role, index: u16) -> io::Result<SocketAddr>;

    /// Makes `command`, which is complete otherwise, run where this process belongs.
    fn command(&self, role: Role, index: u16, command: Command) -> Command {
        let _ = (role, index);
        command
    }

    /// All addresses are chosen; the processes that use them start now.
    fn ready(&mut self) {}
}

/// This machine as it is: every process at a free port of 127.0.0.1. No privilege is needed.
#[derive(Debug, Default)]
pub struct Loopback {
    /// Held until all are chosen, so that no port comes twice.
    held: Vec<TcpListener>,
}

/// Ports that this process has tried: several systems of one process, as in tests, do not take the same ones.
static TRIED: AtomicU32 = AtomicU32::new(0);

/// The first port that the kernel gives to outgoing connections (ip-sysctl, `ip_local_port_range`).
fn ephemeral_first() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768)
}

impl Place for Loopback {
    fn address(&mut self, _role: Role, _index: u16) -> io::Result<SocketAddr> {
        // A port below those that the kernel gives to outgoing connections, so that none of them takes it while its
        // process is away.
        let first = ephemeral_first();
        let count = first.saturating_sub(PORTS_FIRST);
        let start = u32::from(count).max(1);
        let start =
            (std::process::id().wrapping_mul(251).wrapping_add(TRIED.load(Ordering::Relaxed))) % start;
        for place in 0..u32::from(count) {
            let port = PORTS_FIRST + ((start + place) % u32::from(count)) as u16;
            if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                TRIED.fetch_add(place + 1, Ordering::Relaxed);
                self.held.push(listener);
                return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            }
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        self.held.push(listener);
        Ok(address)
    }

    fn ready(&mut self) {
        self.held.clear();
    }
}

/// Why a system does not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It has more processes than one machine is asked for.
    #[error(
        "the scenario has {got} processes, and one machine is asked for {PROCESSES_MAX} at most; \
         use fewer hosts, or `live.processors=\"timers\"`"
    )]
    TooMany {
        /// Processes.
        got: u64,
    },
    /// The live system does not do what the scenario asks for.
    #[error("{0}")]
    Unsupported(String),
    /// The folder is not one that may be emptied.
    #[error("{} holds files of something else; choose an empty folder", path.display())]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// A file or folder cannot be used.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A process cannot be started.
    #[error("cannot start {process}: {error}")]
    Spawn {
        /// Which.
        process: String,
        /// Why.
        error: io::Error,
    },
    /// The file that was made for the processes is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A process ends again and again.
    #[error("{process} ended ({status}); it last said:\n{said}")]
    Ended {
        /// Which.
        process: String,
        /// How.
        status: String,
        /// The end of its log.
        said: String,
    },
    /// No event came within a minute.
    #[error("no event was assigned within {} s; what its processes last said:\n{said}", READY_MAX.as_secs())]
    NotReady {
        /// The ends of the logs of the supervisor and of those who report a fault.
        said: String,
    },
}

/// How a system is started.
#[derive(Debug)]
pub struct Launch<'a> {
    /// What it is.
    pub loaded: &'a Loaded,
    /// A folder for its files: it is made, or emptied if it is an earlier run's.
    pub folder: &'a Path,
    /// Where a relative file of the scenario is sought.
    pub scenario_folder: &'a Path,
    /// Where stored events go, if not into the folder `data` of the folder.
    pub data: Option<&'a Path>,
    /// The `fanin` program.
    pub program: &'a Path,
    /// Whether processes that die are started again.
    pub restart: bool,
    /// Serve the metrics of every process, each at a free port of 127.0.0.1.
    pub metrics: bool,
}

impl Launch<'_> {
    /// Whether this system can run at all; nothing is made.
    ///
    /// # Errors
    /// If the scenario, its data or the number of its processes do not allow it.
    pub fn check(&self) -> Result<(), LaunchError> {
        let scenario = &self.loaded.scenario;
        let unsupported = |error: String| LaunchError::Unsupported(error);
        crate::roles::settings::check(scenario).map_err(|error| unsupported(error.to_string()))?;
        crate::roles::processor::check(scenario, self.scenario_folder)
            .map_err(|error| unsupported(error.to_string()))?;
        let got = processes(scenario);
        if got > PROCESSES_MAX {
            return Err(LaunchError::TooMany { got });
        }
        // What is wrong with the data is said once, and before anything runs.
        let supplied = crate::source::supply(scenario, self.scenario_folder);
        supplied.map(|_| ()).map_err(|error| unsupported(error.to_string()))
    }
}

struct Running {
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
pub struct Live<P> {
    system: System,
    program: PathBuf,
    place: P,
    running: Vec<Running>,
    restart: bool,
    metrics: BTreeMap<String, SocketAddr>,
    restarts: u64,
    killed: Vec<String>,
}

/// How many processes a scenario has.
pub fn processes(scenario: &Scenario) -> u64 {
    let collectors = scenario.collectors_total();
    let units = match scenario.live.processors {
        Processors::Processes => collectors * u64::from(scenario.collectors.units_per_host),
        Processors::Timers => 0,
    };
    1 + u64::from(scenario.readout.hosts) + collectors + units + u64::from(scenario.logger.hosts)
}

fn prepare(folder: &Path) -> Result<(), LaunchError> {
    let io = |error| LaunchError::Io { path: folder.to_owned(), error };
    let file = folder.join("system.toml");
    let ours = std::fs::read_to_string(&file).is_ok_and(|text| text.starts_with(OURS));
    let is_empty = || std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    if folder.exists() && !is_empty() {
        if !ours {
            return Err(LaunchError::NotOurs { path: folder.to_owned() });
        }
        std::fs::remove_dir_all(folder).map_err(io)?;
    }
    std::fs::create_dir_all(folder.join("log")).map_err(io)
}

impl<P: Place> Live<P> {
    /// Starts the processes of a system: loggers, readouts, supervisor, collectors with their processors.
    ///
    /// # Errors
    /// If the scenario, the folder or the machine does not allow it; nothing runs then.
    pub fn start(launch: &Launch<'_>, mut place: P) -> Result<Self, LaunchError> {
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
                live.running.push(Running {
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
        let said = |one: &Running| (one.name.clone(), self.said(&one.name));
        let complains = |(_, text): &(String, String)| text.contains("ERROR") || text.contains("WARN");
        let (supervisor, others): (Vec<&Running>, Vec<&Running>) =
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

impl<P> Drop for Live<P> {
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

/// Processor time of a process, in user and system mode, in seconds.
fn cpu_seconds(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat_seconds(&stat, 11)
}

/// Processor time of the processes that this one has started, and that ended and were waited for, in seconds.
pub fn ended_cpu_seconds() -> f64 {
    stat_seconds(&std::fs::read_to_string("/proc/self/stat").unwrap_or_default(), 13)
}

/// Two neighbouring fields of proc_pid_stat(5), which count hundredths of a second on every Linux that runs this;
/// `behind` many fields stand between the program's name and them.
fn stat_seconds(stat: &str, behind: usize) -> f64 {
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(behind).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// How a process is called.
pub fn process_name(role: Role, index: u16) -> String {
    if role == Role::Supervisor { role.name().to_owned() } else { format!("{}-{index}", role.name()) }
}

/// The scenario with the places of its data and of its processors' files written out, because its file is moved.
fn absolute(launch: &Launch<'_>) -> String {
    let mut loaded = launch.loaded.clone();
    let live = &mut loaded.scenario.live;
    if live.replay.is_empty()
        && let SizeModel::File { path } = &loaded.scenario.readout.fragment_size
    {
        live.replay.clone_from(path);
    }
    if let SizeModel::PerSource { path, .. } = &mut loaded.scenario.readout.fragment_size
        && let Ok(place) = Path::new(path.as_str()).canonicalize()
        && place.is_file()
    {
        *path = place.to_string_lossy().into_owned();
    }
    if let Ok(path) = launch.scenario_folder.join(&live.replay).canonicalize()
        && path.is_file()
    {
        live.replay = path.to_string_lossy().into_owned();
    }
    for (place, word) in live.processor.iter_mut().enumerate() {
        // A bare first word is a program that PATH has. Links stay: a virtual environment's interpreter is one, and knows by
        // its name where its modules are.
        if (place > 0 || word.contains('/'))
            && let Ok(path) = std::path::absolute(launch.scenario_folder.join(&*word))
            && path.is_file()
        {
            *word = path.to_string_lossy().into_owned();
        }
    }
    loaded.to_toml()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beside_a_scenario_are_found_from_elsewhere() {
        let folder = std::env::temp_dir().join(format!("fanin-launch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("choose.py"), "").unwrap();
        std::os::unix::fs::symlink("choose.py", folder.join("link.py")).unwrap();
        let sets = [r#"live.processor=["python3", "choose.py", "link.py", "--cut=3"]"#.to_owned()];
        let loaded = fanin_scenario::load("replay", &sets).unwrap_or_else(|errors| panic!("{errors}"));
        let launch = Launch {
            loaded: &loaded,
            folder: Path::new("elsewhere"),
            scenario_folder: &folder,
            data: None,
            program: Path::new("fanin"),
            restart: false,
            metrics: false,
        };
        let text = absolute(&launch);
        let (script, link) = (folder.join("choose.py"), folder.join("link.py"));
        let wanted = format!("[\"python3\", {script:?}, {link:?}, \"--cut=3\"]");
        assert!(text.contains(&wanted), "no {wanted} in\n{text}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
