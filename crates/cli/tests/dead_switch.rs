//! The death of a switch process during `fanin run`: it needs root.

mod common;

use std::path::Path;
use std::process::Command;

use common::{command, privileged, stderr, stdout, wait_for};

/// The switches of a run, by the folder of their configuration.
fn switches_of(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains("\0switch\0") && line.contains(folder.to_str().unwrap()) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn the_death_of_the_switch_ends_the_run_at_once_with_an_audit_and_a_summary() {
    if !privileged() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("fanin-dead-switch-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let mut command = command(&["run", "replay", "--out", folder.to_str().unwrap(), "--place", "namespaces"]);
    for set in [
        "readout.hosts=4",
        "collectors.hosts_per_rack=1",
        "collectors.units_per_host=1",
        "supervisor.rate=5 Hz",
        "link.rate=100 Mb/s",
        "readout.link.rate=100 Mb/s",
        "live.drain=1 s",
        "run.duration=300 s",
    ] {
        command.args(["--set", set]);
    }
    let child = command.spawn().unwrap();
    let journal = folder.join("live/supervisor.journal");
    wait_for("an event", || {
        std::fs::read_to_string(&journal).ok().filter(|text| text.contains(" completed "))
    });
    let network = folder.canonicalize().unwrap().join("network");
    let switches = wait_for("a switch", || Some(switches_of(&network)).filter(|found| !found.is_empty()));
    for switch in switches {
        assert!(Command::new("kill").args(["-KILL", &switch]).status().unwrap().success());
    }
    let output = child.wait_with_output().unwrap();
    let (said, complaint) = (stdout(&output), stderr(&output));
    // By the switch's death, not after the 300 s of the run.
    assert!(said.contains("\nended early       the switch "), "{said}{complaint}");
    assert_eq!(output.status.code(), Some(1), "{said}{complaint}");
    assert!(said.contains("events assigned = "), "{said}{complaint}");
    assert!(folder.join("summary.json").is_file(), "{said}{complaint}");
    std::fs::remove_dir_all(&folder).unwrap();
}
