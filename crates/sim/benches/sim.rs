//! How fast the simulator is: packet-hops a second of processor time.
//!
//! `cargo bench -p fanin-sim --bench sim` prints one line for each case. They are the classical incast without loss (S1),
//! the thesis' rack with credits (S3), both again in collapse, and a full farm. The best of a few repeats counts: other
//! work on the machine only ever slows a run down. Times differ from machine to machine. Compare the ratios of the last
//! lines: collapse against the same without loss, and a farm against one rack.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it measures")]

use fanin_runs::{RunControl, RunEnd, run};
use fanin_scenario::{Scenario, load};

/// Repeats of each case.
const REPEATS: usize = 5;

/// A case: name, preset, and keys to set.
type Case = (&'static str, &'static str, &'static [&'static str]);

const CASES: &[Case] = &[
    ("S1: incast of 16, no loss", "incast", &["tor.buffer=8 MB", "run.duration=20 s"]),
    ("S1 in collapse", "incast", &["run.duration=100 s"]),
    (
        "S3: thesis rack, 1 kHz, credits",
        "thesis-a-1000hz",
        &["run.warmup=0 s", "run.duration=1 s", "supervisor.policy=node-round-robin", "shaping.credits=480"],
    ),
    (
        "S3 in collapse",
        "thesis-a-1000hz",
        &[
            "run.warmup=0 s",
            "run.duration=1 s",
            "supervisor.start_order=random",
            "transport.window_state=warm",
        ],
    ),
    (
        "farm: 50 racks, 100 GB/s",
        "thesis-a-1000hz",
        &[
            "run.warmup=0 s",
            "run.duration=20 ms",
            "readout.hosts=100",
            "readout.links_per_host=4",
            "readout.link.rate=10 Gb/s",
            "readout.fragments_per_host=20",
            "network.readouts_per_group=0",
            "collectors.racks=50",
            "collectors.hosts_per_rack=40",
            "supervisor.rate=45 kHz",
            "supervisor.policy=node-round-robin",
            "shaping.credits=480",
            "uplink.rate=20 Gb/s",
        ],
    ),
];

/// The least time of a case, and its counts.
#[derive(Clone, Copy)]
struct Cost {
    cpu_s: f64,
    hops: u64,
    drops: u64,
}

fn scenario(&(name, preset, sets): &Case) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    match load(preset, &sets) {
        Ok(loaded) => loaded.scenario,
        Err(errors) => panic!("{name}: {}", errors.render(false)),
    }
}

fn measure(scenario: &Scenario) -> Cost {
    let outcome = run(scenario, 1, &RunControl::default()).expect("the case can be simulated");
    assert_eq!(outcome.end, RunEnd::Complete);
    let speed = outcome.summary.speed.expect("a run says what it cost");
    Cost {
        cpu_s: speed.cpu_s.or(speed.wall_s).expect("a run takes time"),
        hops: speed.packet_hops.expect("hops are counted"),
        drops: outcome.summary.network.and_then(|network| network.drops).unwrap_or(0),
    }
}

fn main() {
    let scenarios: Vec<Scenario> = CASES.iter().map(scenario).collect();
    let mut least: Vec<Cost> = scenarios.iter().map(measure).collect();
    // The cases take turns, so that other work on the machine slows all of them.
    for _ in 1..REPEATS {
        for (cost, scenario) in least.iter_mut().zip(&scenarios) {
            cost.cpu_s = cost.cpu_s.min(measure(scenario).cpu_s);
        }
    }
    println!("{:34} {:>12} {:>10} {:>14} {:>8}", "case", "packet-hops", "CPU s", "hops / CPU s", "drops");
    for ((name, ..), Cost { cpu_s, hops, drops }) in CASES.iter().zip(&least) {
        println!("{name:34} {hops:>12} {cpu_s:>10.3} {:>12.2} M {drops:>8}", *hops as f64 / cpu_s / 1e6);
    }
    let [incast, collapse, rack, rack_collapse, farm] = least[..] else { unreachable!("five cases") };
    let by_hop = |one: Cost, other: Cost| one.cpu_s / one.hops as f64 / (other.cpu_s / other.hops as f64);
    // Two hops a packet, and one where it was dropped.
    let by_packet = |one: Cost, other: Cost| {
        one.cpu_s / (one.hops + one.drops) as f64 / (other.cpu_s / (other.hops + other.drops) as f64)
    };
    println!("S1 in collapse, against no loss: {:.2} a hop", by_hop(collapse, incast));
    println!("                                {:.2} a packet", by_packet(collapse, incast));
    println!("S3 in collapse, against no loss: {:.2} a hop", by_hop(rack_collapse, rack));
    println!("farm against S3:                {:.2} a hop", by_hop(farm, rack));
}
