//! A standby on real processes: the supervisor is killed and not started again.

mod common;
#[path = "../../../tests/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{System as LaunchedSystem, program};
use fanin_dataflow::EventStep;
use fanin_node::audit::{Audit, AuditScope, audit};
use fanin_node::config::{Role, System, loopback_file};
use fanin_node::journal;
use fanin_node::launch::{Loopback, Placement};
use fanin_node::names::process_name;
use rustix::process::{Pid, Signal, kill_process};

const SCENARIO: &str = r#"
[readout]
hosts = 3
fragments_per_host = 2
fragment_size = "1 kB"
[collectors]
hosts_per_rack = 2
units_per_host = 2
processing_time = "4 ms"
[supervisor]
rate = "150 Hz"
clear_group = 20
[logger]
hosts = 2
accept = "0.5"
[live]
processors = "timers"
request_timeout = "500 ms"
readout_wait = "400 ms"
reassign_delay = "400 ms"
silence_max = "1 s"
drain = "20 s"
"#;

/// Processes of one system, which a test starts and ends by hand.
struct Pair {
    folder: PathBuf,
    children: Vec<(Role, u16, Child)>,
    /// The program of processes that are started.
    program: PathBuf,
    /// Versions of messages that processes speak; empty for a program that does not have this option.
    versions: &'static str,
}

/// Versions of the release before this one, and of this one.
const OLD: &str = "1-1";
const NEW: &str = "1-2";

impl Pair {
    fn start(name: &str) -> Self {
        Self::start_with(name, SCENARIO, NEW)
    }

    fn start_with(name: &str, scenario: &str, versions: &'static str) -> Self {
        let mut pair = Self::prepare(name, scenario, versions);
        pair.spawn_all();
        pair
    }

    fn spawn_all(&mut self) {
        for (role, count) in
            [(Role::Logger, 2), (Role::Readout, 3), (Role::Supervisor, 2), (Role::Collector, 2)]
        {
            (0..count).for_each(|index| self.spawn(role, index));
        }
    }

    /// The folder of a system that does not run.
    fn prepare(name: &str, scenario: &str, versions: &'static str) -> Self {
        let folder = std::env::temp_dir().join(format!("fanin-standby-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("scenario.toml"), scenario).unwrap();
        let mut place = Loopback::default();
        let mut addresses = |role, count: u16| -> Vec<_> {
            (0..count).map(|index| place.address(role, index).unwrap()).collect()
        };
        let supervisors = addresses(Role::Supervisor, 2);
        let (readouts, loggers) = (addresses(Role::Readout, 3), addresses(Role::Logger, 2));
        let text = loopback_file(Path::new("scenario.toml"), 3, &supervisors, &readouts, 2, &loggers);
        std::fs::write(folder.join("system.toml"), format!("insecure = true\n{text}")).unwrap();
        System::load(&folder.join("system.toml")).unwrap_or_else(|error| panic!("{error}"));
        place.ready();
        Self { folder, children: Vec::new(), program: program(), versions }
    }

    fn spawn(&mut self, role: Role, index: u16) {
        let options = ["--versions", self.versions];
        self.spawn_with(role, index, if self.versions.is_empty() { &[] } else { &options });
    }

    fn spawn_with(&mut self, role: Role, index: u16, options: &[&str]) {
        let log = self.folder.join(format!("{}.log", process_name(role, index)));
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(&self.program);
        command.args(["node", role.name()]).arg(self.folder.join("system.toml"));
        command.args(["--index", &index.to_string()]).args(options).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.children.push((role, index, command.spawn().unwrap()));
    }

    /// Sends a signal, and waits for the end of the process.
    fn end(&mut self, role: Role, index: u16, signal: Signal) {
        let place = self.children.iter().position(|(of, number, _)| (*of, *number) == (role, index)).unwrap();
        let (.., mut child) = self.children.swap_remove(place);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        assert!(signal == Signal::KILL || status.success(), "{role} {index}: {status}");
    }

    fn text(&self, process: &str) -> String {
        let bytes = std::fs::read(self.folder.join(format!("{process}.journal"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn assigned(&self, process: &str) -> usize {
        self.text(process).lines().filter(|line| line.contains(" assigned ")).count()
    }

    fn log(&self, process: &str) -> String {
        std::fs::read_to_string(self.folder.join(format!("{process}.log"))).unwrap_or_default()
    }

    /// Waits, and shows the logs if it takes far too long.
    fn wait(&self, wanted: &str, is_there: impl Fn(&Self) -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !is_there(self) {
            if Instant::now() > until {
                panic!("not {wanted}:\n{}\n{}", self.log("supervisor"), self.log("standby"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until both logs have the same last term, in which the two are paired.
    fn wait_paired(&self) {
        let last = |pair: &Self, process: &str| {
            let text = pair.text(process);
            text.lines().rfind(|line| line.starts_with("# fanin leads")).map(str::to_owned)
        };
        self.wait("paired", |pair| {
            let term = last(pair, "supervisor");
            term == last(pair, "standby") && term.is_some_and(|term| !term.ends_with(" 0"))
        });
    }

    /// Stops all processes in order.
    fn end_all(&mut self) {
        for role in [Role::Supervisor, Role::Collector, Role::Logger, Role::Readout] {
            for index in 0..3 {
                if self.children.iter().any(|(of, number, _)| (*of, *number) == (role, index)) {
                    self.end(role, index, Signal::TERM);
                }
            }
        }
    }

    /// Stops each process in order and starts it again, one after the other, under load.
    fn replace_each(&mut self) {
        let assigned = |pair: &Self| pair.assigned("supervisor").max(pair.assigned("standby"));
        for (role, count) in
            [(Role::Logger, 2), (Role::Readout, 3), (Role::Collector, 2), (Role::Supervisor, 2)]
        {
            for index in 0..count {
                self.wait_paired();
                self.end(role, index, Signal::TERM);
                self.spawn(role, index);
                let before = assigned(self);
                // More events than there are units: events are finished again.
                self.wait("assigning again", |pair| assigned(pair) > before + 50);
            }
        }
    }

    fn finish(mut self, folders: &[&Path]) -> Audit {
        self.end_all();
        let data = self.folder.join("data");
        let scope = AuditScope { folders, data: &[&data], loggers: true, assigned_min: 1 };
        let audited = audit(&scope).unwrap_or_else(|finding| panic!("{}: {finding}", self.folder.display()));
        std::fs::remove_dir_all(&self.folder).unwrap();
        audited
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for (.., child) in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The longest time between two assignments.
fn longest_stop(path: &Path) -> Duration {
    let mut times = Vec::new();
    journal::read(path, |epoch_us, line| {
        if matches!(line.record.step, EventStep::Assigned { direct: false, .. }) {
            times.push(epoch_us + line.record.at.get() / 1_000_000);
        }
    })
    .unwrap();
    Duration::from_micros(times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or(0))
}

#[test]
fn a_standby_goes_on_without_the_supervisor() {
    let mut pair = Pair::start("takeover");
    pair.wait("assigning", |pair| pair.assigned("standby") > 100);
    pair.wait_paired();
    pair.end(Role::Supervisor, 0, Signal::KILL);
    let before = pair.assigned("standby");
    pair.wait("assigning again", |pair| pair.assigned("standby") > before + 100);
    let journal = pair.folder.join("standby.journal");
    // A report: a busy machine lengthens it. Simulated worlds assert the limit of 3 s (`crates/world/src/tests/takeover.rs`).
    eprintln!("assignment stopped for {:?}", longest_stop(&journal));
    // Of the first supervisor's disk nothing is left.
    std::fs::remove_file(pair.folder.join("supervisor.journal")).unwrap();
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert!(audited.totals.assigned > 200, "{audited:?}");
}

#[test]
fn both_supervisors_are_replaced_one_after_the_other() {
    let mut pair = Pair::start("turns");
    pair.wait("assigning", |pair| pair.assigned("standby") > 50);
    pair.wait_paired();
    // The standby takes over, and the first supervisor comes back as its standby.
    pair.end(Role::Supervisor, 0, Signal::KILL);
    let before = pair.assigned("standby");
    pair.wait("assigning again", |pair| pair.assigned("standby") > before + 50);
    pair.spawn(Role::Supervisor, 0);
    pair.wait_paired();
    // It has all events, and leads in its turn.
    pair.end(Role::Supervisor, 1, Signal::KILL);
    let before = pair.assigned("supervisor");
    pair.wait("assigning once more", |pair| pair.assigned("supervisor") > before + 50);
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert!(audited.totals.assigned > 150, "{audited:?}");
}

#[test]
fn a_supervisor_goes_on_without_its_standby() {
    let mut pair = Pair::start("alone");
    pair.wait("assigning", |pair| pair.assigned("standby") > 50);
    pair.wait_paired();
    pair.end(Role::Supervisor, 1, Signal::KILL);
    let before = pair.assigned("supervisor");
    pair.wait("assigning alone", |pair| pair.assigned("supervisor") > before + 50);
    // A standby that lost its disk gets all events again.
    std::fs::remove_file(pair.folder.join("standby.journal")).unwrap();
    pair.spawn(Role::Supervisor, 1);
    pair.wait_paired();
    pair.end(Role::Supervisor, 0, Signal::KILL);
    let before = pair.assigned("standby");
    pair.wait("assigning again", |pair| pair.assigned("standby") > before + 50);
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert!(audited.totals.assigned > 150, "{audited:?}");
}

/// The scenario with times for a busy machine, whose processes may take long to start.
fn patient() -> String {
    SCENARIO
        .replace("request_timeout = \"500 ms\"", "request_timeout = \"30 s\"")
        .replace("readout_wait = \"400 ms\"", "readout_wait = \"30 s\"")
}

#[test]
fn every_process_is_upgraded_in_order_and_nothing_is_lost() {
    let scenario = patient();
    let mut pair = Pair::start_with("rolling", &scenario, OLD);
    let assigned = |pair: &Pair| pair.assigned("supervisor").max(pair.assigned("standby"));
    pair.wait("assigning", |pair| assigned(pair) > 50);
    assert!(!pair.log("standby").contains("version=2"));
    pair.versions = NEW;
    pair.replace_each();
    // The last connections between the supervisors, and to a readout that was upgraded before them.
    for (process, peer) in [("standby", "supervisor"), ("supervisor", "standby"), ("supervisor", "readout 0")]
    {
        let log = pair.log(process);
        let last = log.lines().rfind(|line| line.contains(&format!(" connected peer={peer} version=")));
        assert!(last.is_some_and(|line| line.contains("version=2")), "{process}, {peer}: {last:?}");
    }
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert_eq!((audited.totals.debug, audited.missing), (0, 0), "{audited:?}");
    assert_eq!(audited.totals.assigned, audited.totals.rejected + audited.totals.stored, "{audited:?}");
}

/// Runs a command in the repository, and returns what it prints.
fn output(program: &str, arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(program).args(arguments).current_dir(root).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the program of the release that `FANIN_PREVIOUS` names as a git reference. It is built once.
fn previous() -> Option<PathBuf> {
    let Ok(reference) = std::env::var("FANIN_PREVIOUS") else {
        skip::not_asked("FANIN_PREVIOUS names no earlier release, as a git reference");
        return None;
    };
    let commit = output("git", &["rev-parse", "--verify", "--short=12", &format!("{reference}^{{commit}}")]);
    let all = program().ancestors().nth(3).unwrap().join("previous");
    let folder = all.join(&commit);
    let program = folder.join("process");
    if !program.exists() {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        std::fs::create_dir_all(&folder).unwrap();
        let unpack = r#"git archive "$1" | tar -x -C "$2""#;
        output("sh", &["-c", unpack, "sh", &commit, &text(&folder)]);
        // A target directory of its own: cargo takes what another commit has built there for this one's.
        let build = folder.join("target");
        let (manifest, target) = (text(&folder.join("Cargo.toml")), text(&build));
        let places = ["--manifest-path", &manifest, "--target-dir", &target];
        let build_arguments = ["build", "--locked", "--package", "fanin-node", "--example", "process"];
        output(env!("CARGO"), &[&build_arguments[..], &places].concat());
        std::fs::copy(build.join("debug/examples/process"), &program).unwrap();
        std::fs::remove_dir_all(build).unwrap();
    }
    Some(program)
}

/// The previous release runs a system, and this one takes its place: one process after the other if both greet alike. If
/// not, the processes say so, and all are stopped before this release goes on with their files.
#[test]
fn a_system_of_the_previous_release_is_upgraded_and_nothing_is_lost() {
    let Some(previous) = previous() else { return };
    let mut pair = Pair::prepare("previous", &patient(), "");
    pair.program = previous;
    pair.spawn_all();
    let assigned = |pair: &Pair| pair.assigned("supervisor").max(pair.assigned("standby"));
    pair.wait("assigning", |pair| assigned(pair) > 50);
    pair.wait_paired();
    pair.end(Role::Logger, 1, Signal::TERM);
    (pair.program, pair.versions) = (program(), NEW);
    let old_lines = pair.log("logger-1").lines().count();
    pair.spawn(Role::Logger, 1);
    let log = |pair: &Pair| pair.log("logger-1").lines().skip(old_lines).collect::<Vec<_>>().join("\n");
    let is_refused = |pair: &Pair| log(pair).contains(" is needed; upgrade the process that ");
    pair.wait("an answer", |pair| is_refused(pair) || log(pair).contains(" connected peer=collector "));
    if is_refused(&pair) {
        eprintln!("the previous release greets otherwise: all its processes are stopped first");
        let before = assigned(&pair);
        pair.wait("assigning without the logger", |pair| assigned(pair) > before + 50);
        pair.end_all();
        pair.spawn_all();
        let before = assigned(&pair);
        pair.wait("assigning with this release", |pair| assigned(pair) > before + 50);
        pair.wait_paired();
    } else {
        pair.replace_each();
    }
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert_eq!((audited.totals.debug, audited.missing), (0, 0), "{audited:?}");
    assert_eq!(audited.totals.assigned, audited.totals.rejected + audited.totals.stored, "{audited:?}");
}

#[test]
fn a_process_of_other_versions_is_refused_until_it_is_replaced() {
    let mut pair = Pair::prepare("versions", SCENARIO, NEW);
    let metrics = Loopback::default().address(Role::Supervisor, 0).unwrap().to_string();
    pair.spawn_with(Role::Supervisor, 0, &["--metrics", &metrics]);
    pair.spawn_with(Role::Readout, 2, &["--versions", "3-4"]);
    for (role, index) in [
        (Role::Supervisor, 1),
        (Role::Logger, 0),
        (Role::Logger, 1),
        (Role::Readout, 0),
        (Role::Readout, 1),
        (Role::Collector, 0),
        (Role::Collector, 1),
    ] {
        pair.spawn(role, index);
    }
    let remedy = "upgrade \"supervisor\" to a release that speaks version 3";
    let here = format!(
        "\"supervisor\" speaks versions 1 to 2 of the messages, \"readout-2\" versions 3 to 4; {remedy}"
    );
    let there = format!(
        "\"readout-2\" speaks versions 3 to 4 of the messages, \"supervisor\" versions 1 to 2; {remedy}"
    );
    pair.wait("refused", |pair| {
        pair.log("supervisor").contains(&here) && pair.log("readout-2").contains(&there)
    });
    let counted = |pair: &Pair| {
        let text = http_text(&metrics, "/metrics");
        let line = text.lines().find(|line| line.starts_with("fanin_no_common_version_total{"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).unwrap_or_else(|| {
            panic!("{text}\n{}", pair.log("supervisor"));
        })
    };
    pair.wait("counted", |pair| counted(pair) > 0);
    // The others work meanwhile, and one line says it all: attempts are repeated, and the log is not.
    pair.wait("counted again", |pair| counted(pair) > 3);
    assert_eq!(pair.log("supervisor").matches(&here).count(), 1);
    pair.end(Role::Readout, 2, Signal::KILL);
    pair.spawn(Role::Readout, 2);
    pair.wait_paired();
    let before = pair.assigned("supervisor");
    pair.wait("assigning", |pair| pair.assigned("supervisor") > before + 50);
    let folder = pair.folder.clone();
    let audited = pair.finish(&[&folder]);
    assert!(audited.totals.assigned > 50, "{audited:?}");
}

/// The body of the answer to a request.
fn http_text(address: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut text = String::new();
    let Ok(mut stream) = std::net::TcpStream::connect(address) else { return text };
    let _ = write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let _ = stream.read_to_string(&mut text);
    text
}

#[test]
fn a_launched_system_goes_on_when_its_supervisor_is_killed_again_and_again() {
    let mut system = LaunchedSystem::start("standby", &["live.standby=true"]);
    let terms = |system: &LaunchedSystem| system.live.standby().unwrap().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while terms(&system).paired == 0 {
        assert!(Instant::now() < until, "never paired: {:?}", terms(&system));
        system.work(50);
    }
    let kill = |system: &LaunchedSystem| {
        let pid = system.live.pid(Role::Supervisor, 0).and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL);
        }
    };
    while terms(&system).takeovers == 0 {
        assert!(Instant::now() < until, "nothing took over: {:?}", terms(&system));
        kill(&system);
        system.work(50);
    }
    let before = system.live.assigned();
    while system.live.assigned() < before + 50 {
        assert!(Instant::now() < until, "{} events assigned", system.live.assigned());
        kill(&system);
        system.work(50);
    }
    let finished = system.finish();
    assert!(finished.audit.totals.assigned > 50, "{:?}", finished.audit);
    finished.remove();
}
