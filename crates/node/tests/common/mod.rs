//! A small live system of real processes, and means to hurt it.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fanin_dataflow::{Random, What};
use fanin_events::convert::{Pairing, compare};
use fanin_events::sample;
use fanin_node::audit::{Audit, audit};
use fanin_node::config::Role;
use fanin_node::journal::{self, Line};
use fanin_node::launch::{Launch, Live, Loopback, Place, process_name};
use rustix::process::{Pid, Signal, kill_process};

/// Times that a fault test's system has: short, so that a test is.
const SETTINGS: &[&str] = &[
    "live.replay=bes3",
    "readout.hosts=4",
    "collectors.hosts_per_rack=2",
    "collectors.units_per_host=2",
    "collectors.processing_time=4 ms",
    "supervisor.rate=150 Hz",
    "supervisor.clear_group=20",
    "logger.hosts=2",
    "logger.accept=0.5",
    "live.processor_timeout=600 ms",
    "live.request_timeout=500 ms",
    "live.request_retries=1",
    "live.readout_wait=400 ms",
    "live.logger_timeout=1500 ms",
    "live.reassign_delay=400 ms",
    "live.silence_max=1 s",
    "live.file_size=200 kB",
    "live.drain=20 s",
];

/// This machine, with a limit to the size of files that the first logger can write: a disk that is full for it.
#[derive(Default)]
pub struct Limited {
    loopback: Loopback,
    pub file_kib: Option<u32>,
}

impl Place for Limited {
    fn address(&mut self, role: Role, index: u16) -> std::io::Result<SocketAddr> {
        self.loopback.address(role, index)
    }

    fn command(&self, role: Role, index: u16, command: Command) -> Command {
        let (Some(kib), Role::Logger, 0) = (self.file_kib, role, index) else { return command };
        // The signal of a write beyond the limit is ignored, so that the write itself fails.
        let mut limited = Command::new("bash");
        limited.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {kib}; exec \"$@\"")).arg("bash");
        limited.arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            value.map(|value| limited.env(key, value));
        }
        let log = std::env::temp_dir().join(format!("fanin-limited-{}.log", std::process::id()));
        limited.stdin(Stdio::null()).stderr(std::fs::File::create(log).unwrap()).process_group(0);
        limited
    }

    fn ready(&mut self) {
        self.loopback.ready();
    }
}

pub struct System {
    pub live: Live<Limited>,
    pub folder: PathBuf,
    stop: AtomicBool,
}

/// The program that the tests' processes run: the example of this crate, built beside the tests.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let debug = test.parent().and_then(|deps| deps.parent()).unwrap();
    let program = debug.join("examples").join("process");
    assert!(program.exists(), "{} is not built; `cargo test -p fanin-node` builds it", program.display());
    program
}

impl System {
    /// Starts a small system with some settings of its own, and waits for its first event.
    pub fn start(name: &str, sets: &[&str]) -> Self {
        Self::start_in(name, sets, None, None)
    }

    /// The same, with stored events in a folder of its own, or a limit to the first logger's files.
    pub fn start_in(name: &str, sets: &[&str], data: Option<&Path>, file_kib: Option<u32>) -> Self {
        let sets: Vec<String> = SETTINGS.iter().chain(sets).map(|set| (*set).to_owned()).collect();
        let loaded = fanin_scenario::load("replay", &sets).unwrap_or_else(|errors| panic!("{errors}"));
        let folder = std::env::temp_dir().join(format!("fanin-node-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let launch = Launch {
            loaded: &loaded,
            folder: &folder,
            scenario_folder: "".as_ref(),
            data,
            program: &program(),
            restart: true,
            metrics: true,
        };
        let place = Limited { file_kib, ..Limited::default() };
        let live = Live::start(&launch, place).unwrap_or_else(|error| panic!("{error}"));
        let mut system = Self { live, folder, stop: AtomicBool::new(false) };
        assert!(system.live.wait_ready(&system.stop).unwrap_or_else(|error| panic!("{error}")));
        system
    }

    pub fn work(&mut self, ms: u64) {
        let worked = self.live.work(Duration::from_millis(ms), &self.stop, &|_| {});
        worked.unwrap_or_else(|error| panic!("{error}"));
    }

    pub fn signal(&self, role: Role, index: u16, signal: Signal) {
        if let Some(pid) = self.live.pid(role, index) {
            send(pid, signal);
        }
    }

    /// The processors of a collector.
    pub fn processors(&self, collector: u16) -> Vec<u32> {
        let Some(pid) = self.live.pid(Role::Collector, collector) else { return Vec::new() };
        let mut children = Vec::new();
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        children
    }

    /// Stops the system in order, and reads what it left behind.
    pub fn finish(mut self) -> Finished {
        self.live.stop();
        let killed = self.live.killed().to_vec();
        let restarts = self.live.restarts();
        let data = self.live.system().data.clone();
        let audited = audit(&self.folder, &data, true);
        if audited.is_err() || !killed.is_empty() {
            eprintln!("kept for a look: {}", self.folder.display());
        }
        let audit = audited.unwrap_or_else(|finding| panic!("{finding}"));
        assert_eq!(killed, [""; 0], "processes that did not end by themselves");
        let finished = Finished { audit, restarts, folder: self.folder.clone(), data };
        finished.check_fragments();
        finished
    }
}

pub struct Finished {
    pub audit: Audit,
    pub restarts: u64,
    pub folder: PathBuf,
    pub data: PathBuf,
}

impl Finished {
    /// Every stored fragment is, byte for byte, the one of the replayed file, or says that it is missing.
    fn check_fragments(&self) {
        let input = sample::bes3();
        let (mut same, mut other) = (0, 0);
        for entry in std::fs::read_dir(&self.data).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            if bytes.is_empty() || path.to_string_lossy().ends_with(".writing") {
                continue;
            }
            let found = compare(&bytes, &input, Pairing::Cycle).unwrap();
            assert_eq!((found.added, found.unknown_events, found.absent), (0, 0, 0), "{}", path.display());
            same += found.same;
            other += found.different;
        }
        assert_eq!(other, self.audit.missing, "fragments that differ are those that are marked missing");
        assert!(same > 0);
    }

    /// How many lines of all journals are like this.
    pub fn count(&self, wanted: impl Fn(&What) -> bool) -> u64 {
        let mut count = 0;
        for entry in std::fs::read_dir(&self.folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "journal") {
                journal::read(&path, |_, Line { record, .. }| count += u64::from(wanted(&record.what)))
                    .unwrap();
            }
        }
        count
    }

    pub fn remove(self) {
        std::fs::remove_dir_all(self.folder).unwrap();
    }
}

pub fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// The seed of a test's random times: from the environment, where a run is to be repeated.
pub fn random(test: &str) -> Random {
    let seed = std::env::var("FANIN_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed =
        seed.unwrap_or_else(|| u64::from(std::process::id()) ^ Instant::now().elapsed().as_nanos() as u64);
    eprintln!("{test}: seed {seed}; again with FANIN_SEED={seed}");
    Random::new(seed)
}

/// A name for messages.
pub fn name(role: Role, index: u16) -> String {
    process_name(role, index)
}
