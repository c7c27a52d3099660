//! Links that lose frames, in the simulation and in namespaces: the latter need root.

mod common;

use std::process::Output;

use common::{alone, command, privileged};
use serde_json::Value;

/// An incast of four senders, through a switch that drops nothing. Each frame passes two links, which each lose 2 %.
const LOSSY: [&str; 11] = [
    "transport.profile=linux-6",
    "workload.senders=4",
    "workload.request_size=80 kB",
    "workload.service_delay_max=1 ms",
    "link.rate=100 Mb/s",
    "readout.link.rate=100 Mb/s",
    "link.delay=25 us",
    "link.loss=0.02",
    "run.warmup=300 ms",
    "run.duration=5 s",
    "tor.buffer=10 MB",
];

/// Plays the incast. It ends well, or with 4 because others keep this machine busy.
fn played(arguments: &[&str]) -> Value {
    let sets = LOSSY.iter().flat_map(|set| ["--set", set]);
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json", "-"]).chain(sets).collect();
    let Output { status, stdout, stderr } = command(&arguments).output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(matches!(status.code(), Some(0 | 4)), "{status:?} {said}");
    serde_json::from_slice(&stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Returns true if enough frames for a share were sent.
fn has_frames(summary: &Value) -> bool {
    summary["network"]["packets"].as_f64().unwrap() > 300.0
}

/// Of frames that pass two links, 4 % are lost, within five standard deviations of that number of draws.
fn assert_share_lost(summary: &Value) {
    let network = &summary["network"];
    let [lost, packets] = ["link_losses", "packets"].map(|key| network[key].as_f64().unwrap());
    let (expected, deviation) = (0.04 * packets, (0.04 * 0.96 * packets).sqrt());
    assert!(has_frames(summary), "{summary}");
    assert!((lost - expected).abs() < 5.0 * deviation, "{lost} of {packets}: {summary}");
    assert_eq!(network["drops"], 0, "{summary}");
}

#[test]
fn a_simulated_link_loses_its_share() {
    assert_share_lost(&played(&["sim", "incast"]));
}

#[test]
fn a_link_between_namespaces_loses_its_share() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let folder = std::env::temp_dir().join(format!("fanin-losses-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let out = folder.to_str().unwrap();
    let with_seed = |seed: &str| {
        played(&["run", "incast", "--place", "namespaces", "--overwrite", "--out", out, "--seed", seed])
    };
    // A segment that is lost four times in a row stops an incast for the whole run: chance then gives no frames to count.
    let mut runs = ["1", "2", "3"].into_iter().map(with_seed);
    assert_share_lost(&runs.find(has_frames).expect("one of three incasts goes on"));
    std::fs::remove_dir_all(&folder).unwrap();
}
