//! Background traffic, in the simulation and in namespaces: the latter need root.

mod common;

use std::path::PathBuf;
use std::process::Output;

use common::{alone, command, privileged, stderr};
use serde_json::Value;

/// An incast of four senders at 50 Mb/s, with two background connections.
const INCAST: [&str; 9] = [
    "transport.profile=linux-6",
    "workload.senders=4",
    "workload.request_size=40 kB",
    "link.rate=50 Mb/s",
    "readout.link.rate=50 Mb/s",
    "run.warmup=500 ms",
    "run.duration=3 s",
    "tor.buffer=100 kB",
    "background.connections=2",
];

const TRANSFERS: [&str; 3] =
    ["background.kind=transfers", "background.load=0.3", "background.transfer_size=20 kB"];

fn arguments<'a>(head: &[&'a str], sets: &[&[&'a str]]) -> Vec<&'a str> {
    let sets = sets.iter().flat_map(|sets| sets.iter()).flat_map(|set| ["--set", *set]);
    head.iter().copied().chain(["--json", "-"]).chain(sets).collect()
}

/// Plays a scenario. It ends well, or with 4 because others keep this machine busy.
fn played(head: &[&str], sets: &[&[&str]]) -> Value {
    let Output { status, stdout, stderr } = command(&arguments(head, sets)).output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    assert!(matches!(status.code(), Some(0 | 4)), "{status:?} {said}");
    serde_json::from_slice(&stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("fanin-background-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// The background connections and the incast together fill the link, and each gets a part.
fn assert_bulk(summary: &Value) {
    let background = &summary["background"];
    let goodput = |value: &Value| value.as_f64().unwrap() / 1e6;
    let (others, own) = (goodput(&background["goodput_bps"]), goodput(&summary["goodput_bps"]["total"]));
    // 1448 of 1538 bytes of a frame are payload: 47 Mb/s.
    assert!(others > 5.0 && own > 1.0 && others + own < 48.0, "{others} + {own}: {summary}");
    assert!(others + own > 35.0, "{others} + {own}: {summary}");
    assert_eq!((&background["connections"], &background["transfers"]), (&2.into(), &Value::Null));
    assert!(goodput(&background["goodput_bps_min"]) > 0.5, "{summary}");
    assert!(summary["requests"]["completed"].as_u64() > Some(5), "{summary}");
}

/// Transfers come at their rate: 30 % of 50 Mb/s in transfers of 20 kB, each with 14 headers.
fn assert_transfers(summary: &Value) {
    let background = &summary["background"];
    let transfers = background["transfers"].as_f64().unwrap();
    let wanted = 3.0 * 0.3 * 50e6 / 8.0 / (20e3 + 14.0 * 90.0);
    assert!((transfers / wanted - 1.0).abs() < 0.3, "{transfers} of {wanted}: {summary}");
    let mean = background["transfer_ms"]["mean"].as_f64().unwrap();
    // Alone 3.4 ms.
    assert!(mean > 3.0 && mean < 400.0, "{summary}");
    assert!(background["goodput_bps"].as_f64() > Some(8e6), "{summary}");
}

#[test]
fn a_simulated_incast_shares_its_link() {
    assert_bulk(&played(&["sim", "incast"], &[&INCAST]));
    assert_transfers(&played(&["sim", "incast"], &[&INCAST, &TRANSFERS]));
}

#[test]
fn an_incast_shares_its_link_with_the_kernels_tcp() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let out = folder("incast");
    let head = ["run", "incast", "--place", "namespaces", "--out", out.to_str().unwrap()];
    assert_bulk(&played(&head, &[&INCAST]));
    let records = fanin_report::read(&out).unwrap().records;
    let flows: Vec<u64> = records.flows.iter().map(|row| row.flow).collect();
    assert_eq!(flows, [0, 1, 2, 3, 4, 5]);
    assert!(records.flows[4..].iter().all(|row| row.acked_bytes > 1_000_000), "{:?}", records.flows);
    // Another congestion control than that of the system.
    let mixed = ["transport.congestion_control=newreno", "background.congestion_control=cubic"];
    assert_transfers(&played(&head, &[&INCAST, &TRANSFERS, &mixed]));
    std::fs::remove_dir_all(&out).unwrap();
}

#[test]
fn events_are_built_next_to_the_kernels_tcp() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let out = folder("building");
    let building = [
        "transport.profile=linux-6",
        "readout.hosts=4",
        "readout.fragments_per_host=2",
        "readout.fragment_size=2 kB",
        "readout.link.rate=50 Mb/s",
        "collectors.hosts_per_rack=2",
        "collectors.units_per_host=2",
        "collectors.processing_time=1 ms",
        "collectors.processing_time_sd=0 s",
        "link.rate=50 Mb/s",
        "supervisor.rate=50 Hz",
        "network.topology=star",
        "tor.buffer=200 kB",
        "live.processors=timers",
        "run.warmup=500 ms",
        "run.duration=3 s",
        "background.connections=2",
    ];
    let head = ["run", "thesis-a-500hz", "--place", "namespaces", "--out", out.to_str().unwrap()];
    let summary = played(&head, &[&building, &TRANSFERS]);
    let events = &summary["events"];
    assert!(events["collected"].as_u64() > Some(100) && events["lost"] == 0, "{summary}");
    let transfers = summary["background"]["transfers"].as_f64().unwrap();
    let wanted = 2.0 * 3.0 * 0.3 * 50e6 / 8.0 / (20e3 + 14.0 * 90.0);
    assert!((transfers / wanted - 1.0).abs() < 0.3, "{transfers} of {wanted}: {summary}");
    assert_eq!(summary["background"]["connections"], 4, "{summary}");
    std::fs::remove_dir_all(&out).unwrap();
}

#[test]
fn background_traffic_that_cannot_run_is_refused() {
    let refused = |head: &[&str], sets: &[&str]| {
        let output = command(&arguments(head, &[&INCAST, sets])).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output).to_owned()
    };
    let loopback = refused(&["run", "incast", "--loopback"], &[]);
    assert!(loopback.contains("background.connections") && loopback.contains("loopback"), "{loopback}");
    if privileged() {
        let program =
            refused(&["run", "incast", "--place", "namespaces"], &["background.congestion_control=dctcp"]);
        assert!(program.contains("background.congestion_control") && program.contains("cubic"), "{program}");
    }
}
