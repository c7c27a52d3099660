//! Small fixed runs for counting instructions: `instructions CASE`. The count is independent of the machine's other work.
//!
//! `scripts/instructions.py` counts them under valgrind and compares with `instructions.toml`.

use std::process::ExitCode;

use fanin_sim::{RunControl, RunEnd, run};

/// A case: name, preset, and keys to set.
type Case = (&'static str, &'static str, &'static [&'static str]);

const CASES: [Case; 3] = [
    ("incast", "incast", &["tor.buffer=8 MB", "run.duration=500 ms"]),
    ("collapse", "incast", &["workload.senders=32", "run.duration=2 s"]),
    (
        "rack",
        "thesis-a-1000hz",
        &[
            "run.warmup=0 s",
            "run.duration=50 ms",
            "supervisor.policy=node-round-robin",
            "shaping.credits=480",
            "collectors.units_per_host=8",
        ],
    ),
];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    let Some((_, preset, sets)) = CASES.iter().find(|case| Some(case.0) == wanted.as_deref()) else {
        let names: Vec<&str> = CASES.iter().map(|case| case.0).collect();
        eprintln!("usage: instructions {}", names.join("|"));
        return ExitCode::from(2);
    };
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = fanin_scenario::load(preset, &sets).expect("the preset is sound").scenario;
    let outcome = run(&scenario, 1, &RunControl::default()).expect("the case can be simulated");
    assert_eq!(outcome.end, RunEnd::Complete);
    let speed = outcome.summary.speed.expect("a run says what it cost");
    eprintln!("packet-hops: {}", speed.packet_hops.expect("hops are counted"));
    ExitCode::SUCCESS
}
