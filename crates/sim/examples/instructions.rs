//! A small fixed run for counting instructions, which do not depend on what else the machine does:
//!
//! `valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/instructions`
//!
//! prints `Collected : N`; N is compared with the number on record, within 3 %.

use fanin_sim::{Control, End, run};

/// The thesis' rack, lossless, for 50 ms; and a small incast that collapses, for half a second.
const CASES: [(&str, &[&str]); 2] = [
    (
        "thesis-a-1000hz",
        &[
            "run.warmup=0 s",
            "run.duration=50 ms",
            "supervisor.policy=node-round-robin",
            "shaping.credits=480",
            "collectors.units_per_host=8",
        ],
    ),
    ("incast", &["workload.senders=32", "run.duration=500 ms"]),
];

fn main() {
    for (preset, sets) in CASES {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let scenario = fanin_scenario::load(preset, &sets).expect("the preset is sound").scenario;
        let outcome = run(&scenario, 1, &Control::default()).expect("the case can be simulated");
        assert_eq!(outcome.end, End::Complete);
    }
}
