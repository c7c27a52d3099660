//! `fanin switch` from outside: mistakes, missing privileges, a graceful stop, and what is left after a crash.

mod common;

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use common::hang_guard::HangGuard;
use common::{Folder, fanin, stderr, stdout};

const CONFIG: &str = "
[switch]
name = \"test\"
memory = \"8 MB\"

[[port]]
name = \"one\"
interface = \"p0\"

[[port]]
name = \"two\"
interface = \"p1\"
";

fn config(folder: &Folder, text: &str) -> String {
    let path = folder.file("switch.toml");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_configuration_is_checked_without_starting_anything() {
    let folder = Folder::new("switch-check");
    let here = CONFIG.replace("\"p0\"", "\"lo\"");
    let here = here.replace("[[port]]\nname = \"two\"\ninterface = \"p1\"\n", "");
    let check = |text: &str| fanin(&["switch", &config(&folder, text), "--check"]);
    let good = check(&here);
    assert_eq!(good.status.code(), Some(0), "{}", stderr(&good));
    assert!(stdout(&good).contains("1 port, 0 rings, 0 rules, 8 MB of packet memory"), "{}", stdout(&good));
    let token = folder.file("token");
    std::fs::write(&token, "short\n").unwrap();
    let control = format!("[control]\nhttp = \"127.0.0.1:0\"\ntoken_file = \"{token}\"\n{here}");
    for (text, words) in [
        (here.replace("\"lo\"", "\"p1-nowhere\""), "there is no interface `p1-nowhere` here"),
        (here.replace("name = \"test\"", "cores = [8191]"), "cannot run on core 8191"),
        (control, "the token has 5 characters; at least 16 are needed"),
    ] {
        let bad = check(&text);
        assert_eq!(bad.status.code(), Some(2), "{}", stderr(&bad));
        assert!(stderr(&bad).contains(words), "{}", stderr(&bad));
    }
    let bad = fanin(&[
        "switch",
        &config(&folder, &CONFIG.replace("interface = \"p1\"", "interfac = \"p1\"")),
        "--check",
    ]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(
        stderr(&bad).contains("did you mean `interface`?") && stderr(&bad).contains("switch.toml:12:1"),
        "{}",
        stderr(&bad)
    );
    assert_eq!(stdout(&bad), "");
    assert_eq!(fanin(&["switch", "there-is-no-such-file.toml"]).status.code(), Some(2));
}

#[test]
fn without_privileges_it_says_so_in_one_sentence() {
    let folder = Folder::new("switch-privileges");
    let path = config(
        &folder,
        &CONFIG.replace("\"p0\"", "\"lo\"").replace("[[port]]\nname = \"two\"\ninterface = \"p1\"\n", ""),
    );
    // Root has every privilege: the user 65534 runs a copy of the program, in a folder that it may enter.
    let program = folder.file("fanin");
    // Another process copies it: a child of another test would keep it open for writing, and nothing could run it.
    let copied = Command::new("cp").args([env!("CARGO_BIN_EXE_fanin"), &program]).status().unwrap();
    assert!(copied.success(), "cp {program}");
    for (open, mode) in [(folder.path(), 0o755), (Path::new(&program), 0o755), (Path::new(&path), 0o644)] {
        std::fs::set_permissions(open, Permissions::from_mode(mode)).unwrap();
    }
    let mut command = Command::new(&program);
    command.args(["switch", &path]);
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("needs root"), "{}", stderr(&output));
}

fn run(words: &str) -> Output {
    let mut parts = words.split_whitespace();
    Command::new(parts.next().unwrap())
        .args(parts)
        .output()
        .unwrap_or_else(|error| panic!("{words}: {error}"))
}

/// A namespace with two veth pairs, which goes when this is dropped.
struct Namespace(String);

impl Namespace {
    fn new(name: &str) -> Option<Self> {
        let namespace = Self(format!("switch-{name}-{}", std::process::id()));
        let added = Command::new("ip").args(["netns", "add", &namespace.0]).output();
        if !added.as_ref().is_ok_and(|output| output.status.success()) {
            common::skip::skip(format!("network namespaces need root and ip: {added:?}"));
            return None;
        }
        for port in ["p0", "p1"] {
            namespace.join(port, 1);
        }
        Some(namespace)
    }

    /// Creates a veth pair with this number of queues at both ends.
    fn join(&self, port: &str, queues: u32) {
        let queues = format!("numtxqueues {queues} numrxqueues {queues}");
        let command =
            format!("ip -n {} link add {port} {queues} type veth peer name {port}x {queues}", self.0);
        let made = run(&command);
        assert!(made.status.success(), "{}", stderr(&made));
        for end in [port.to_owned(), format!("{port}x")] {
            run(&format!("ip -n {} link set {end} up", self.0));
        }
    }

    fn delete(&self, port: &str) {
        assert!(run(&format!("ip -n {} link del {port}", self.0)).status.success());
    }

    /// Starts the switch and waits until it says that it runs.
    fn start(&self, path: &str) -> Child {
        self.start_with(path, Stdio::piped())
    }

    fn start_with(&self, path: &str, complaints: Stdio) -> Child {
        let mut child = Command::new("ip")
            .args(["netns", "exec", &self.0, env!("CARGO_BIN_EXE_fanin"), "switch", path])
            .stdout(Stdio::piped())
            .stderr(complaints)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("test is running: 2 ports"), "{line:?} {:?}", child.wait_with_output());
        child
    }

    fn has_program(&self) -> bool {
        stdout(&run(&format!("ip -n {} -d link show p0", self.0))).contains("xdp")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run(&format!("ip netns del {}", self.0));
    }
}

fn signal(child: &Child, name: &str) {
    let sent = run(&format!("kill -{name} {}", child.id()));
    assert!(sent.status.success(), "{}", stderr(&sent));
}

#[test]
fn it_stops_gracefully_and_leaves_nothing_after_a_crash() {
    let folder = Folder::new("switch-stop");
    let Some(namespace) = Namespace::new("stop") else { return };
    let path = config(&folder, CONFIG);

    let child = namespace.start(&path);
    assert!(namespace.has_program());
    // Only the thread that opens interfaces again keeps capabilities: CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_BPF.
    let mut kept = 0;
    for thread in std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten() {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap();
        let is_opener = status.starts_with("Name:\tswitch-reopen\n");
        // The handler of signals began before the ports were opened, and does nothing but set a flag.
        if status.starts_with("Name:\tctrl-c\n") {
            continue;
        }
        let wanted = if is_opener { "0000008000007000" } else { "0000000000000000" };
        kept += u32::from(is_opener);
        for set in ["CapEff", "CapPrm"] {
            let line = status.lines().find(|line| line.starts_with(set)).unwrap();
            assert!(line.trim_end().ends_with(wanted), "wrong capabilities: {status}");
        }
    }
    assert_eq!(kept, 1);
    signal(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("frames out") && stdout(&output).contains("two"), "{}", stdout(&output));
    assert!(!namespace.has_program());

    // A crash: the program goes with the process, and another switch starts where it was.
    let mut crashed = namespace.start(&path);
    signal(&crashed, "KILL");
    crashed.wait().unwrap();
    let guard = HangGuard::new();
    while namespace.has_program() {
        guard.check("the end of the redirect program, which outlives its switch");
        std::thread::sleep(Duration::from_millis(10));
    }
    let child = namespace.start(&path);
    signal(&child, "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn an_interface_that_cannot_be_attached_again_is_reported_with_the_reason() {
    let folder = Folder::new("switch-queues");
    let Some(namespace) = Namespace::new("queues") else { return };
    namespace.delete("p1");
    namespace.join("p1", 2);
    let path = config(&folder, &format!("{CONFIG}queues = 2\n"));
    let log = folder.file("complaints");
    let child = namespace.start_with(&path, std::fs::File::create(&log).unwrap().into());
    let wait_for = |awaited: &str| {
        let guard = HangGuard::new();
        loop {
            let text = std::fs::read_to_string(&log).unwrap();
            if let Some(line) = text.lines().find(|line| line.contains(awaited)) {
                return line.to_owned();
            }
            guard.check(format!("`{awaited}` in {text}"));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    // An interface of the same name with fewer queues than the port is configured with.
    namespace.delete("p1");
    namespace.join("p1", 1);
    let line = wait_for(" already; its port stays down");
    assert!(line.starts_with("warning: p1: opening an AF_XDP socket: Invalid argument"), "{line}");
    // The right one is attached, and nothing was given up.
    namespace.delete("p1");
    namespace.join("p1", 2);
    wait_for("was recreated; its port is attached");
    assert_eq!(std::fs::read_to_string(&log).unwrap().matches("stays down").count(), 1);
    signal(&child, "TERM");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}
