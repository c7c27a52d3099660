//! Helpers of the command's tests.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "each file of tests is a crate of its own and uses a part of this"
)]

#[path = "../../../../tests/hang_guard.rs"]
pub(crate) mod hang_guard;
#[path = "../../../../tests/privileged.rs"]
mod privileged;
#[path = "../../../../tests/skip.rs"]
pub mod skip;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hang_guard::HangGuard;

pub(crate) use privileged::privileged;

/// The command, ready to be started with other pipes.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanin"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the command to its end.
pub fn fanin(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// The text on standard output.
pub fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

/// The text on standard error.
pub fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

/// Settings of a small system that is run live for a short time.
pub const SMALL: [&str; 14] = [
    "--set",
    "readout.hosts=8",
    "--set",
    "collectors.hosts_per_rack=2",
    "--set",
    "collectors.units_per_host=1",
    "--set",
    "supervisor.rate=40 Hz",
    "--set",
    "logger.accept=0.5",
    "--set",
    "run.warmup=100 ms",
    "--set",
    "run.duration=1 s",
];

/// Presses Ctrl-C, once the command is ready for it.
pub fn interrupt(child: &mut Child) {
    // The handler is in place before the thread that serves it appears.
    let threads = Path::new("/proc").join(child.id().to_string()).join("task");
    wait(child, || std::fs::read_dir(&threads).is_ok_and(|threads| threads.count() >= 2));
    signal(child);
}

/// Presses Ctrl-C once the command has computed for so long: beyond reading its scenario.
pub fn interrupt_after(child: &mut Child, busy: Duration) {
    let stat = Path::new("/proc").join(child.id().to_string()).join("stat");
    // A tick is a hundredth of a second on every Linux that Rust runs on.
    let ticks = busy.as_millis() as u64 / 10;
    wait(child, || {
        let Ok(text) = std::fs::read_to_string(&stat) else { return false };
        let Some((_, fields)) = text.rsplit_once(") ") else { return false };
        // Fields 14 and 15 of proc(5): time in user and kernel mode; the rest begins with field 3.
        let used: u64 =
            fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        used >= ticks
    });
    signal(child);
}

fn wait(child: &mut Child, is_ready: impl Fn() -> bool) {
    let guard = HangGuard::new();
    while !is_ready() {
        assert_eq!(child.try_wait().unwrap(), None, "the command ended by itself");
        guard.check("the command to begin");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn signal(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// A folder of this test process alone; removed when the test is over.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder; `name` distinguishes the tests of one process.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fanin-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The name of a file in it.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system cleans files that cannot be removed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Held by a test while its network works: two networks at once would disturb each other's times.
pub fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks for `awaited` until it is there.
pub fn wait_for<T>(awaited: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let guard = HangGuard::new();
    loop {
        if let Some(found) = look() {
            return found;
        }
        guard.check(awaited);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The ledger of the network that a process has built, and its content.
pub fn ledger_of(pid: u32) -> Option<(PathBuf, serde_json::Value)> {
    for entry in std::fs::read_dir("/run/fanin").ok()?.flatten() {
        let Ok(text) = std::fs::read(entry.path()) else { continue };
        let Ok(ledger) = serde_json::from_slice::<serde_json::Value>(&text) else { continue };
        if ledger["pid"] == pid {
            return Some((entry.path(), ledger));
        }
    }
    None
}
