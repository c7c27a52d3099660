//! Two supervisors and the other processes of one system, which a test starts and ends by hand.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fanin_node::audit::{Audit, AuditScope, audit};
use fanin_node::config::{Role, System, loopback_file};
use fanin_node::launch::{Loopback, Placement};
use fanin_node::names::process_name;
use rustix::process::{Pid, Signal, kill_process};

use super::hang_guard::HangGuard;
use super::program;

pub const SCENARIO: &str = r#"
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
pub struct Pair {
    pub folder: PathBuf,
    pub children: Vec<(Role, u16, Child)>,
    /// The program of processes that are started.
    pub program: PathBuf,
    /// Versions of messages that processes speak; empty for a program without this option.
    pub versions: &'static str,
}

/// Versions of the release before this one, and of this one.
pub const OLD: &str = "1-1";
pub const NEW: &str = "1-2";

impl Pair {
    pub fn start(name: &str) -> Self {
        Self::start_with(name, SCENARIO, NEW)
    }

    pub fn start_with(name: &str, scenario: &str, versions: &'static str) -> Self {
        let mut pair = Self::prepare(name, scenario, versions);
        pair.spawn_all();
        pair
    }

    pub fn spawn_all(&mut self) {
        for (role, count) in
            [(Role::Logger, 2), (Role::Readout, 3), (Role::Supervisor, 2), (Role::Collector, 2)]
        {
            (0..count).for_each(|index| self.spawn(role, index));
        }
    }

    /// The folder of a system that does not run.
    pub fn prepare(name: &str, scenario: &str, versions: &'static str) -> Self {
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

    pub fn spawn(&mut self, role: Role, index: u16) {
        let options = ["--versions", self.versions];
        self.spawn_with(role, index, if self.versions.is_empty() { &[] } else { &options });
    }

    pub fn spawn_with(&mut self, role: Role, index: u16, options: &[&str]) {
        let log = self.folder.join(format!("{}.log", process_name(role, index)));
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(&self.program);
        command.args(["node", role.name()]).arg(self.folder.join("system.toml"));
        command.args(["--index", &index.to_string()]).args(options).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.children.push((role, index, command.spawn().unwrap()));
    }

    /// Sends a signal, and waits for the end of the process.
    pub fn end(&mut self, role: Role, index: u16, signal: Signal) {
        let place = self.children.iter().position(|(of, number, _)| (*of, *number) == (role, index)).unwrap();
        let (.., mut child) = self.children.swap_remove(place);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        assert!(signal == Signal::KILL || status.success(), "{role} {index}: {status}");
    }

    pub fn text(&self, process: &str) -> String {
        let bytes = std::fs::read(self.folder.join(format!("{process}.journal"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub fn assigned(&self, process: &str) -> usize {
        self.text(process).lines().filter(|line| line.contains(" assigned ")).count()
    }

    pub fn log(&self, process: &str) -> String {
        std::fs::read_to_string(self.folder.join(format!("{process}.log"))).unwrap_or_default()
    }

    /// Waits, and shows the logs if it takes far too long.
    pub fn wait(&self, wanted: &str, is_there: impl Fn(&Self) -> bool) {
        let guard = HangGuard::new();
        while !is_there(self) {
            guard.check(format_args!("{wanted}:\n{}\n{}", self.log("supervisor"), self.log("standby")));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until both logs have the same last term, in which the two are paired.
    pub fn wait_paired(&self) {
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
    pub fn end_all(&mut self) {
        for role in [Role::Supervisor, Role::Collector, Role::Logger, Role::Readout] {
            for index in 0..3 {
                if self.children.iter().any(|(of, number, _)| (*of, *number) == (role, index)) {
                    self.end(role, index, Signal::TERM);
                }
            }
        }
    }

    /// Stops each process in order and starts it again, one after the other, under load.
    pub fn replace_each(&mut self) {
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

    pub fn finish(mut self, folders: &[&Path]) -> Audit {
        self.end_all();
        let data = self.folder.join("data");
        let scope =
            AuditScope { folders, data: &[&data], loggers: true, assigned_min: 1, deletes_journals: false };
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

/// The scenario with times for a busy machine, whose processes may take long to start.
pub fn patient() -> String {
    SCENARIO
        .replace("request_timeout = \"500 ms\"", "request_timeout = \"30 s\"")
        .replace("readout_wait = \"400 ms\"", "readout_wait = \"30 s\"")
}
