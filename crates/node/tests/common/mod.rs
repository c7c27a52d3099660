//! A small live system of real processes, and means to hurt it.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

#[path = "../../../../tests/hang_guard.rs"]
pub(crate) mod hang_guard;
pub mod pair;

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fanin_dataflow::{EventStep, Peer, Random};
use fanin_events::convert::{Pairing, compare};
use fanin_events::sample;
use fanin_message::{ConnectionOptions, EndpointEvent, EndpointSettings, MessageEndpoint, SharedKey};
use fanin_node::audit::{Audit, AuditScope, audit};
use fanin_node::config::{PredictedBand, PredictedBands, Role};
use fanin_node::journal::{self, JournalLine};
use fanin_node::launch::{LaunchError, LiveSystem, Loopback, Placement, SystemLaunch};
use fanin_node::names::process_name;
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

/// This machine, with worse disks.
#[derive(Default)]
pub struct Limited {
    pub loopback: Loopback,
    /// A limit to the size of files of the first logger: a disk that is full for it.
    pub file_kib: Option<u32>,
    /// The same for the first readout, which writes its journal.
    pub journal_kib: Option<u32>,
    /// A library that the loggers load first.
    pub preload: Option<PathBuf>,
}

/// A library in which bringing a file to disk takes 200 ms, so that loggers always have events that are not there yet.
pub fn slow_disk() -> PathBuf {
    const SOURCE: &str = "#define _GNU_SOURCE\n#include <sys/syscall.h>\n#include <time.h>\n#include <unistd.h>\n\
        int fdatasync(int fd) {\n  struct timespec time = {0, 200000000};\n  nanosleep(&time, 0);\n\
        return syscall(SYS_fdatasync, fd);\n}\n";
    let base = std::env::temp_dir().join(format!("fanin-node-slow-disk-{}", std::process::id()));
    let (source, library) = (base.with_extension("c"), base.with_extension("so"));
    std::fs::write(&source, SOURCE).unwrap();
    // The linker of this very test.
    let mut command = Command::new("cc");
    let built = command.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(built.unwrap().success());
    std::fs::remove_file(source).unwrap();
    library
}

impl Placement for Limited {
    fn address(&mut self, role: Role, index: u16) -> std::io::Result<SocketAddr> {
        self.loopback.address(role, index)
    }

    fn command(&self, role: Role, index: u16, mut command: Command) -> Command {
        if let (Some(library), Role::Logger) = (&self.preload, role) {
            command.env("LD_PRELOAD", library);
        }
        let limit = match (role, index) {
            (Role::Logger, 0) => self.file_kib,
            (Role::Readout, 0) => self.journal_kib,
            _ => None,
        };
        let Some(kib) = limit else { return command };
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
    pub live: LiveSystem<Limited>,
    pub folder: PathBuf,
    stop: AtomicBool,
    /// The key of this test's own connections.
    key: Option<SharedKey>,
}

/// The program that the tests' processes run: the example of this crate, built with the tests.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let debug = test.parent().and_then(|deps| deps.parent()).unwrap();
    let program = debug.join("examples").join("process");
    assert!(program.exists(), "{} is not built; `cargo test -p fanin-node` builds it", program.display());
    program
}

/// Bands that the supervisor serves.
pub const PREDICTED: PredictedBands = {
    let band = Some(PredictedBand { low: 0.5, high: 2.5 });
    PredictedBands {
        collection_time: band,
        collection_time_median: band,
        collection_time_p99: band,
        collection_time_p999: band,
        collection_rate: band,
        data_rate: band,
        assignment_rate: band,
        rejection_rate: band,
        storage_rate: band,
        timeout_rate: band,
        retransmission_rate: band,
        events_outstanding: band,
        units_free: band,
        credits_used: band,
        requests_waiting: band,
    }
};

impl System {
    /// Starts a small system with some settings of its own, and waits for its first event.
    pub fn start(name: &str, sets: &[&str]) -> Self {
        Self::start_in(name, sets, None, Limited::default())
    }

    /// The same, with stored events in a folder of its own, or worse disks.
    pub fn start_in(name: &str, sets: &[&str], data: Option<&Path>, place: Limited) -> Self {
        Self::try_start(name, sets, data, place).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same, where it may not come up.
    pub fn try_start(
        name: &str,
        sets: &[&str],
        data: Option<&Path>,
        place: Limited,
    ) -> Result<Self, LaunchError> {
        let sets: Vec<String> = SETTINGS.iter().chain(sets).map(|set| (*set).to_owned()).collect();
        let loaded = fanin_scenario::load("replay", &sets).unwrap_or_else(|errors| panic!("{errors}"));
        let folder = std::env::temp_dir().join(format!("fanin-node-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let launch = SystemLaunch {
            loaded: &loaded,
            folder: &folder,
            overwrite: false,
            scenario_folder: "".as_ref(),
            data,
            program: &program(),
            restart: true,
            metrics: true,
            ideal_rate: None,
            predicted: PREDICTED,
        };
        let live = LiveSystem::start(&launch, place)?;
        let key = live.system().key.clone();
        let mut system = Self { live, folder, stop: AtomicBool::new(false), key };
        assert!(system.live.wait_ready(&system.stop)?);
        Ok(system)
    }

    pub fn work(&mut self, ms: u64) {
        let worked = self.live.work(Duration::from_millis(ms), &self.stop, &|_| {});
        worked.unwrap_or_else(|error| panic!("{error}"));
    }

    pub fn set_key(&mut self, key: SharedKey) {
        self.key = Some(key);
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

    /// Connects to a readout under a collector's name: the older connection is cut, as by a fault of the network.
    pub fn cut(&self, collector: u16, readout: u16) {
        let address = self.live.system().address(Peer::Readout(readout)).unwrap().to_owned();
        let address: SocketAddr = address.parse().unwrap();
        let name = format!("collector-{collector}");
        let mut endpoint =
            MessageEndpoint::new(EndpointSettings { name, ..EndpointSettings::default() }).unwrap();
        let key = self.key.clone();
        // The readout may be on its way back from a fault before this one.
        endpoint.connect(
            &format!("readout-{readout}"),
            address,
            ConnectionOptions { key, ..ConnectionOptions::default() },
        );
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            if let Some(EndpointEvent::Connected { .. }) = endpoint.poll(Some(until)).unwrap() {
                return;
            }
        }
        panic!("readout {readout} does not answer");
    }

    /// Stops the system in order, and reads what it left behind.
    pub fn finish(self) -> Finished {
        self.finish_by_force(&[])
    }

    /// The same, where these processes do not end by themselves.
    pub fn finish_by_force(mut self, by_force: &[&str]) -> Finished {
        self.live.stop();
        let killed = self.live.killed().to_vec();
        let restarts = self.live.restarts();
        let data = self.live.system().data.clone();
        let assigned_min = self.live.assigned();
        let deletes_journals = self.live.system().scenario().live.journal_parts > 0;
        let scope = AuditScope {
            folders: &[&self.folder],
            data: &[&data],
            loggers: true,
            assigned_min,
            deletes_journals,
        };
        let audited = audit(&scope);
        if audited.is_err() || killed != by_force {
            eprintln!("kept for a look: {}", self.folder.display());
        }
        let audit = audited.unwrap_or_else(|finding| panic!("{finding}"));
        assert_eq!(killed, by_force, "processes that did not end by themselves");
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
            assert_eq!(found.different, 0, "{}", path.display());
            other += found.missing;
        }
        assert_eq!(other, self.audit.missing, "the files and the audit agree on what is missing");
        assert!(same > 0);
    }

    /// How often a process was started: each incarnation begins its journal anew.
    pub fn incarnations(&self, process: &str) -> u64 {
        let mut epochs = BTreeSet::new();
        journal::read(&self.folder.join(format!("{process}.journal")), |epoch, _| {
            epochs.insert(epoch);
        })
        .unwrap();
        epochs.len() as u64
    }

    /// How many lines of all journals are like this.
    pub fn count(&self, wanted: impl Fn(&EventStep) -> bool) -> u64 {
        let mut count = 0;
        for entry in std::fs::read_dir(&self.folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "journal") {
                journal::read(&path, |_, JournalLine { record, .. }| {
                    count += u64::from(wanted(&record.step));
                })
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
    // `RandomState` is seeded by the system.
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(test));
    eprintln!("{test}: seed {seed}; again with FANIN_SEED={seed}");
    Random::new(seed)
}

/// A name for messages.
pub fn name(role: Role, index: u16) -> String {
    process_name(role, index)
}
