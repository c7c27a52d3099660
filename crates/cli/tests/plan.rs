//! `fanin plan` from outside.

mod common;

use std::process::Command;

use common::{Folder, command, fanin, interrupt, stderr, stdout};
use serde_json::Value;

#[test]
fn the_table_says_what_the_scenario_does() {
    let output = fanin(&["plan", "thesis-a-1000hz"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let table = stdout(&output);
    assert!(table.contains("always loses frames: burst 2112 kB + headers"), "{table}");
    assert!(table.contains("> 786 kB"), "{table}");
    assert!(!table.contains('\x1b'), "a pipe gets no colours");
}

#[test]
fn a_setting_changes_the_verdict() {
    let verdict = |sets: &[&str]| {
        let output = fanin(&[&["plan", "thesis-a-1000hz", "--json", "-"], sets].concat());
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        summary["plan"]["verdict"]["loses_frames"].as_bool()
    };
    assert_eq!(verdict(&[]), Some(true));
    assert_eq!(verdict(&["--set", "shaping.credits=120"]), Some(false));
    // Nothing is promised that a simulation could break.
    assert_eq!(verdict(&["--set", "tor.buffer=4 MB"]), None);
    assert_eq!(verdict(&["--set", "shaping.credits=480"]), None);
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
    // Thesis §4.2.1, with timestamps and the fields of messages: 417.5 us + 2259.5 kB at 1 Gb/s.
    assert_eq!(summary["ideal"]["collection_time_ms"], 18.4937056);
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
fn quiet_prints_no_table() {
    let output = fanin(&["plan", "incast", "-q"]);
    assert_eq!((output.status.code(), stdout(&output), stderr(&output)), (Some(0), "", ""));
}

#[test]
fn json_in_a_file_leaves_the_table_on_stdout() {
    let folder = Folder::new("plan");
    let file = folder.file("plan.json");
    let output = fanin(&["plan", "incast", "--json", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("Classical incast"));
    let summary: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
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
fn wrong_input_exits_with_two() {
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
    // Opening a FIFO for writing blocks until a reader opens it; there is none.
    let folder = Folder::new("fifo");
    let fifo = folder.file("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut child = command(&["plan", "incast", "--json", &fifo]).spawn().unwrap();
    interrupt(&mut child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
