//! `fanin tune --in run` from outside: searches by live runs in namespaces, which need root.

mod common;

use std::process::Output;

use common::{Folder, alone, command, ledger_of, privileged, stderr, wait_for};
use serde_json::Value;

/// A small incast: 24 senders of 10 kB through 100 Mb/s.
const INCAST: [&str; 12] = [
    "incast",
    "--in=run",
    "-q",
    "--set=transport.profile=linux-6",
    "--set=workload.senders=24",
    "--set=workload.request_size=10 kB",
    "--set=workload.service_delay_max=1 ms",
    "--set=link.rate=100 Mb/s",
    "--set=link.delay=25 us",
    "--set=run.warmup=300 ms",
    "--set=run.duration=1 s",
    "--seeds=1",
];

fn tune<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ["tune"].iter().chain(&INCAST).chain(more).copied().collect()
}

fn read(folder: &Folder, output: &Output) -> Value {
    let text = std::fs::read_to_string(folder.path().join("out/tune.json"));
    let text = text.unwrap_or_else(|error| panic!("{error}: {}", stderr(output)));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn live_runs_find_a_buffer_that_holds_the_burst() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let folder = Folder::new("tune-live");
    let out = format!("--out={}", folder.file("out"));
    let over = "--over=tor.buffer=64..512kB";
    let goal = ["--minimise=mean", "--subject=drops=0", "--simulations=5", over, &out];
    // 4: others keep this machine busy.
    let tried = (0..3).map(|_| command(&tune(&goal)).output().unwrap());
    let Some(output) = tried.into_iter().find(|output| output.status.code() != Some(4)) else {
        return common::skip::not_measured("the machine was the bottleneck three times");
    };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let value = read(&folder, &output);
    assert_eq!((&value["in"], &value["simulations"]), (&"run".into(), &5.into()));
    let points = value["points"].as_array().unwrap();
    let drops = |set: &str| {
        let point = points.iter().find(|point| point["set"][0] == set);
        point.unwrap_or_else(|| panic!("{set} in {value}"))["figures"]["drops"]["mean"].as_f64().unwrap()
    };
    // The first windows and their headers are 260 kB.
    assert!(drops("tor.buffer=64 kB") > 0.0, "{value}");
    assert_eq!(value["best"]["figures"]["drops"]["mean"], 0.0, "{value}");
    let answer = value["answer"][0].as_str().unwrap();
    assert!(answer.contains("5 points tried in 5 live runs of ") && answer.contains(" requests"), "{answer}");
    for run in points {
        let run = folder.path().join("out").join(run["folders"][0].as_str().unwrap());
        let summary = fanin_report::read(&run).unwrap().summary;
        assert_eq!(summary.kind, fanin_report::ResultKind::Run);
    }
}

#[test]
fn ctrl_c_ends_the_run_of_a_search_in_order() {
    if !privileged() {
        return;
    }
    let _machine = alone();
    let folder = Folder::new("tune-live-stopped");
    let out = format!("--out={}", folder.file("out"));
    let goal = ["--minimise=mean", "--over=tor.buffer=64..512kB", "--set=run.duration=60 s", &out];
    let mut child = command(&tune(&goal)).spawn().unwrap();
    let task = format!("/proc/{0}/task/{0}/children", child.id());
    let (ledger, _) = wait_for("network of a run", || {
        let run: u32 = std::fs::read_to_string(&task).ok()?.split_whitespace().next()?.parse().ok()?;
        ledger_of(run).filter(|_| folder.path().join("out/000/live/aggregator.started").exists())
    });
    common::interrupt(&mut child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(!ledger.exists(), "the run's namespaces are left");
    assert_eq!(read(&folder, &output)["stopped"], true);
}
