//! Open vSwitch on its userspace datapath, for comparison: a separate database and daemon in a temporary directory.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Path of the daemon with DPDK in Debian's `openvswitch-switch-dpdk`; FANIN_OVS_DPDK overrides it.
#[allow(dead_code, reason = "each user takes what it needs")]
pub(crate) const WITH_DPDK: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
const START_MAX: Duration = Duration::from_secs(30);

/// A running Open vSwitch with one bridge, `br0`. Dropping this stops it and removes its files.
pub(crate) struct OpenVswitch {
    directory: PathBuf,
    namespace: Option<String>,
    children: Vec<Child>,
}

impl OpenVswitch {
    /// Starts one with these settings of `other_config`, in a network namespace if `namespace` is given.
    ///
    /// # Errors
    /// If a program is missing or fails.
    pub(crate) fn start(daemon: &str, namespace: Option<&str>, settings: &[String]) -> Result<Self, String> {
        let directory = std::env::temp_dir().join(format!("fanin-ovs-{}", std::process::id()));
        fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut ovs = Self { directory, namespace: namespace.map(str::to_owned), children: Vec::new() };
        ovs.call("ovsdb-tool", &["create", &ovs.path("conf.db"), SCHEMA])?;
        let remote = format!("--remote=punix:{}", ovs.path("db.sock"));
        ovs.spawn("ovsdb-server", &[&ovs.path("conf.db"), &remote, &ovs.control("db.ctl")])?;
        ovs.wait_for("db.sock")?;
        ovs.vsctl(&["--no-wait", "init"])?;
        for setting in settings {
            ovs.vsctl(&["--no-wait", "set", "Open_vSwitch", ".", &format!("other_config:{setting}")])?;
        }
        let database = format!("unix:{}", ovs.path("db.sock"));
        ovs.spawn(daemon, &[&database, &ovs.control("switch.ctl")])?;
        ovs.wait_for("switch.ctl")?;
        ovs.vsctl(&["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev"])?;
        Ok(ovs)
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    fn control(&self, name: &str) -> String {
        format!("--unixctl={}", self.path(name))
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = match &self.namespace {
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace, program]);
                command
            }
            None => Command::new(program),
        };
        command.args(words).stdin(Stdio::null());
        for variable in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR"] {
            command.env(variable, &self.directory);
        }
        command
    }

    fn call(&self, program: &str, words: &[&str]) -> Result<String, String> {
        let output = self.command(program, words).output().map_err(|error| format!("{program}: {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }

    fn spawn(&mut self, program: &str, words: &[&str]) -> Result<(), String> {
        let log = fs::File::create(self.directory.join("log")).map_err(|error| error.to_string())?;
        let mut command = self.command(program, words);
        let child = command.stdout(Stdio::null()).stderr(log).spawn();
        self.children.push(child.map_err(|error| format!("{program}: {error}"))?);
        Ok(())
    }

    fn wait_for(&mut self, name: &str) -> Result<(), String> {
        let began = Instant::now();
        while !self.directory.join(name).exists() {
            let ended = self.children.last_mut().is_some_and(|child| matches!(child.try_wait(), Ok(Some(_))));
            if ended || began.elapsed() > START_MAX {
                let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
                return Err(format!("it does not start: {}", log.lines().last().unwrap_or_default()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Runs `ovs-vsctl`.
    pub(crate) fn vsctl(&self, words: &[&str]) -> Result<String, String> {
        let database = format!("--db=unix:{}", self.path("db.sock"));
        let words: Vec<&str> = [database.as_str(), "--timeout=30"].iter().chain(words).copied().collect();
        self.call("ovs-vsctl", &words)
    }

    /// Adds a port.
    pub(crate) fn add_port(&self, name: &str, settings: &[&str]) -> Result<(), String> {
        let mut words = vec!["add-port", "br0", name, "--", "set", "Interface", name];
        words.extend(settings);
        self.vsctl(&words)?;
        let error = self.vsctl(&["get", "Interface", name, "error"])?;
        if error.trim() == "[]" { Ok(()) } else { Err(format!("{name}: {}", error.trim())) }
    }

    /// Replaces the rules by these.
    #[allow(dead_code, reason = "each user takes what it needs")]
    pub(crate) fn set_rules(&self, rules: &[&str]) -> Result<(), String> {
        let bridge = format!("unix:{}", self.path("br0.mgmt"));
        self.call("ovs-ofctl", &["del-flows", &bridge])?;
        rules.iter().try_for_each(|rule| self.call("ovs-ofctl", &["add-flow", &bridge, rule]).map(drop))
    }

    /// Frames that a port has sent.
    #[allow(dead_code, reason = "each user takes what it needs")]
    pub(crate) fn sent(&self, port: u32) -> Result<u64, String> {
        let bridge = format!("unix:{}", self.path("br0.mgmt"));
        let text = self.call("ovs-ofctl", &["dump-ports", &bridge, &port.to_string()])?;
        let count = text.split_once("tx pkts=").and_then(|(_, rest)| rest.split(',').next()?.parse().ok());
        count.ok_or_else(|| format!("port {port}: {text}"))
    }

    /// Counters of its forwarding thread: frames, idle cycles and busy cycles.
    #[allow(dead_code, reason = "each user takes what it needs")]
    pub(crate) fn work(&self) -> Result<[u64; 3], String> {
        let text =
            self.call("ovs-appctl", &["-t", &self.path("switch.ctl"), "dpif-netdev/pmd-stats-show"])?;
        let of_thread = text.split("pmd thread").nth(1).unwrap_or_default();
        let count = |name: &str| {
            let (_, rest) = of_thread.split_once(name)?;
            rest.split_whitespace().next()?.parse().ok()
        };
        let counts = ["packets received:", "idle cycles:", "processing cycles:"].map(count);
        let [Some(frames), Some(idle), Some(busy)] = counts else { return Err(format!("it says: {text}")) };
        Ok([frames, idle, busy])
    }

    /// CPU time of the daemon's threads that forward, in ns.
    #[allow(dead_code, reason = "each user takes what it needs")]
    pub(crate) fn forwarding_ns(&self) -> Option<u64> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.children.last()?.id())).ok()?;
        let of_task = |task: fs::DirEntry| {
            let name = fs::read_to_string(task.path().join("comm")).ok()?;
            let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
            name.starts_with("pmd").then(|| times.split_whitespace().next()?.parse::<u64>().ok()).flatten()
        };
        Some(tasks.flatten().filter_map(of_task).sum())
    }
}

impl Drop for OpenVswitch {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            // SAFETY: a signal to a process that was started here and has not been waited for.
            unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
            let began = Instant::now();
            while matches!(child.try_wait(), Ok(None)) && began.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(20));
            }
            // It may be gone already.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}
