//! The death of a switch process during `fanin run`, or one that hangs: these need root.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::{Folder, alone, command, privileged, stderr, stdout, wait_for};

/// The switches of a run, by the folder of their configuration.
fn switches_of(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).into_owned();
        // The machine is measured with a switch of its own before.
        if line.contains("\0switch\0")
            && !line.contains("/calibration/")
            && line.contains(folder.to_str().unwrap())
        {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

/// Sends a signal to the switches of a run, which start soon.
fn signal_switches(folder: &Path, signal: &str) {
    let network = folder.canonicalize().unwrap().join("network");
    let switches = wait_for("a switch", || Some(switches_of(&network)).filter(|found| !found.is_empty()));
    for switch in switches {
        assert!(Command::new("kill").args([signal, &switch]).status().unwrap().success());
    }
}

/// Starts a run, signals its switches once `is_ready` returns true, and returns its output.
fn killed(
    folder: &Path,
    arguments: &[&str],
    signal: &str,
    awaited: &str,
    is_ready: impl Fn() -> bool,
) -> Output {
    let base = ["--out", folder.to_str().unwrap(), "--place", "namespaces", "--set", "run.duration=300 s"];
    let child = command(&[&["run"][..], arguments, &base].concat()).spawn().unwrap();
    wait_for(awaited, || is_ready().then_some(()));
    signal_switches(folder, signal);
    let output = child.wait_with_output().unwrap();
    // By the switch's death, not after the 300 s of the run or the 60 s of a start.
    let (said, complaint) = (stdout(&output), stderr(&output));
    assert!(said.contains("\nended early       the switch "), "{said}{complaint}");
    assert_eq!(output.status.code(), Some(1), "{said}{complaint}");
    assert!(folder.join("summary.json").is_file(), "{said}{complaint}");
    output
}

fn has_text(path: &Path, text: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|found| found.contains(text))
}

const REPLAY: [&str; 13] = [
    "replay",
    "--set",
    "readout.hosts=4",
    "--set",
    "collectors.hosts_per_rack=1",
    "--set",
    "collectors.units_per_host=1",
    "--set",
    "link.rate=100 Mb/s",
    "--set",
    "readout.link.rate=100 Mb/s",
    "--set",
    "live.drain=1 s",
];

/// Starts a run of event building, signals its switches after the first event, and returns what the run says.
fn said_after_an_event(name: &str, signal: &str, settings: &[&str]) -> String {
    let folder = Folder::new(name);
    let arguments = [&REPLAY[..], &["--set", "supervisor.rate=5 Hz"], settings].concat();
    let journal = folder.path().join("live/supervisor.journal");
    let output = killed(folder.path(), &arguments, signal, "an event", || has_text(&journal, " completed "));
    let said = stdout(&output).to_owned();
    assert!(said.contains("events assigned = "), "{settings:?}: {said}");
    said
}

#[test]
fn the_death_of_the_switch_ends_the_run_at_once_with_an_audit_and_a_summary() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    said_after_an_event("dead-switch", "-KILL", &[]);
}

#[test]
fn a_switch_that_hangs_ends_a_run_with_an_audit_and_a_summary() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    // A run at automatic scale does not begin again either: events are lost.
    for scale in [&["--set", "run.scale=0.5"][..], &[]] {
        let said = said_after_an_event("hung-switch", "-STOP", scale);
        assert!(said.contains("has not answered for"), "{scale:?}: {said}");
    }
}

#[test]
fn a_run_whose_switch_hangs_at_the_start_begins_again_at_half_the_scale() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let folder = Folder::new("hung-switch-early");
    let base = ["--out", folder.path().to_str().unwrap(), "--place", "namespaces"];
    let arguments = [&["run"], &REPLAY[..], &["--set", "run.duration=1 s"], &base].concat();
    let child = command(&arguments).spawn().unwrap();
    wait_for("a network", || folder.path().join("network").exists().then_some(()));
    signal_switches(folder.path(), "-STOP");
    let output = child.wait_with_output().unwrap();
    let (said, complaint) = (stdout(&output), stderr(&output));
    assert!(matches!(output.status.code(), Some(0 | 4)), "{said}{complaint}");
    assert!(
        complaint.contains("spoilt the run at scale ") && complaint.contains(": the switch "),
        "{complaint}"
    );
    let summary = std::fs::read(folder.path().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    let spoilt = summary["machine"]["spoilt"][0].as_str().unwrap();
    assert!(spoilt.contains("the switch "), "{spoilt}");
}

#[test]
fn the_death_of_the_switch_before_the_first_event_is_named() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let folder = Folder::new("dead-switch-early");
    // One event in a quarter of an hour.
    let arguments = [&REPLAY[..], &["--set", "supervisor.rate=1 mHz"]].concat();
    let journal = folder.path().join("live/collector-0.journal");
    let output = killed(folder.path(), &arguments, "-KILL", "a collector", || journal.exists());
    assert!(stdout(&output).contains("events assigned = "), "{}", stdout(&output));
    assert!(stderr(&output).contains("error: the switch "), "{}", stderr(&output));
    assert!(!has_text(&folder.path().join("live/supervisor.journal"), " assigned "));
}

#[test]
fn the_death_of_the_switch_ends_an_incast_with_a_summary() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let folder = Folder::new("dead-switch-incast");
    let started = folder.path().join("live/aggregator.started");
    let rates = ["--set", "link.rate=100 Mb/s", "--set", "readout.link.rate=100 Mb/s"];
    // With a given scale the switches are not asked while the workload runs.
    let arguments =
        [&["incast", "--set", "workload.senders=4", "--set", "run.scale=0.1"][..], &rates].concat();
    let output = killed(folder.path(), &arguments, "-KILL", "a round", || started.exists());
    assert!(stderr(&output).contains("error: the switch "), "{}", stderr(&output));
    // The senders were killed, and their counters with them.
    let summary = std::fs::read(folder.path().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    assert!(summary.get("tcp").is_none(), "{}", summary["tcp"]);
    assert!(summary["requests"].get("timeouts_mean").is_none(), "{}", summary["requests"]);
    let rounds = fanin_report::read(folder.path()).unwrap().records.events;
    assert!(rounds.iter().all(|round| round.timeouts.is_none()), "{rounds:?}");
}
