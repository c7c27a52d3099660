//! `fanin plan` from outside.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

fn fanin(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fanin")).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

/// A file name of this test process alone; removed when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("fanin-{}-{name}", std::process::id())))
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What was never made cannot be removed.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn the_table_says_what_the_scenario_does() {
    let output = fanin(&["plan", "thesis-a-1000hz"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let table = stdout(&output);
    assert!(table.contains("loses frames: burst 2112 kB + headers"), "{table}");
    assert!(table.contains("> 786 kB at"), "{table}");
    assert!(!table.contains('\x1b'), "a pipe gets no colours");
}

#[test]
fn a_setting_changes_the_verdict() {
    let verdict = |sets: &[&str]| {
        let output = fanin(&[&["plan", "thesis-a-1000hz", "--json", "-"], sets].concat());
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        summary["plan"]["verdict"]["loses_frames"].as_bool().unwrap()
    };
    assert!(verdict(&[]));
    assert!(!verdict(&["--set", "tor.buffer=4 MB"]));
    assert!(!verdict(&["--set", "shaping.credits=480"]));
}

#[test]
fn json_on_stdout_is_alone_and_follows_the_contract() {
    let output = fanin(&["plan", "thesis-a-1000hz", "--json", "-"]);
    assert_eq!(output.status.code(), Some(0));
    let summary: Value = serde_json::from_slice(&output.stdout).expect("one JSON object and nothing else");
    assert_eq!(summary["schema"], "fanin.summary/1");
    assert_eq!(summary["kind"], "plan");
    assert_eq!(summary["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(summary["scenario"]["name"], "thesis-a-1000hz");
    // Thesis §4.2.1, with the timestamps that its system used: 400 us + 2256 kB at 1 Gb/s.
    assert_eq!(summary["ideal"]["collection_time_ms"], 18.448);
    assert!(has_no_null(&summary), "a key that does not apply is absent");
}

fn has_no_null(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => items.iter().all(has_no_null),
        Value::Object(entries) => entries.values().all(has_no_null),
        _ => true,
    }
}

#[test]
fn json_in_a_file_leaves_the_table_on_stdout() {
    let file = Scratch::new("plan.json");
    let output = fanin(&["plan", "incast", "--json", file.text()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("Classical incast"));
    let summary: Value = serde_json::from_str(&std::fs::read_to_string(&file.0).unwrap()).unwrap();
    assert_eq!(summary["scenario"]["name"], "incast");
}

#[test]
fn every_preset_has_a_plan_with_its_cost() {
    let list = fanin(&["scenario", "list"]);
    for name in stdout(&list).lines().filter_map(|line| line.split(' ').next()) {
        let output = fanin(&["plan", name, "--cost"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        let long = stdout(&output).lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "{name} has a line that wraps in a terminal");
    }
}

#[test]
fn what_cannot_be_used_is_two() {
    let cases: [(&[&str], &str); 6] = [
        (&["plan"], "required"),
        (&["plan", "incest"], "did you mean the preset `incast`?"),
        (&["plan", "incast", "--set", "workload.senders=many"], "--set:1:18"),
        (&["plan", "incast", "--json", "/dev/null/plan.json"], "cannot write /dev/null/plan.json"),
        (&["plan", "incast", "--catalogue", "/dev/null/prices.toml"], "/dev/null/prices.toml"),
        (&["plan", "incast", "--quantile", "1"], "above 0 and below 1"),
    ];
    for (arguments, expected) in cases {
        let output = fanin(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn ctrl_c_is_130() {
    // Opening a FIFO for writing blocks until somebody reads it, and nobody does.
    let fifo = Scratch::new("fifo");
    assert!(Command::new("mkfifo").arg(&fifo.0).status().unwrap().success());
    let mut child = Command::new(env!("CARGO_BIN_EXE_fanin"))
        .args(["plan", "incast", "--json", fifo.text()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // The handler is in place before the thread that serves it appears.
    let threads = Path::new("/proc").join(child.id().to_string()).join("task");
    while std::fs::read_dir(&threads).unwrap().count() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
