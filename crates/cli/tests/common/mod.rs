//! What every test of the command needs.

#![allow(dead_code, unreachable_pub, reason = "each file of tests is a crate of its own and uses a part of this")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

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

/// What it printed.
pub fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

/// What it complained of.
pub fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

/// Presses Ctrl-C, once the command is ready for it.
pub fn interrupt(child: &Child) {
    // The handler is in place before the thread that serves it appears.
    let threads = Path::new("/proc").join(child.id().to_string()).join("task");
    while std::fs::read_dir(&threads).unwrap().count() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    signal(child);
}

/// Sends SIGINT.
pub fn signal(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// A folder of this test process alone; removed when the test is over.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder; `name` tells the tests of one process apart.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fanin-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Where it is.
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
        // What cannot be removed is the system's to clean.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
