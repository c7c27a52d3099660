//! What each technique costs beside the plain simulation of the same scenario: processor time a packet-hop.
//!
//! `cargo bench -p fanin-sim --bench techniques` prints one line for each. Plain and technique take turns, and the least of
//! some repeats of each counts, so that other work on the machine touches both alike; what to look at is the ratio. The
//! scenario is the thesis' rack at 1 kHz with 480 credits, in which nothing is lost: the data packets are the same. Where a
//! technique sends acknowledgements or window updates of its own, or shapes by itself, its hops differ a little in number,
//! which the last column says; the ratio is by hop.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it measures")]

use fanin_scenario::{Scenario, load};
use fanin_sim::{Control, End, run};

/// Repeats of each pair.
const REPEATS: usize = 5;

const SCENARIO: &[&str] =
    &["run.warmup=0 s", "run.duration=200 ms", "supervisor.policy=node-round-robin", "shaping.credits=480"];

/// A name, and what is set beside [`SCENARIO`].
type Technique = (&'static str, &'static [&'static str]);

const TECHNIQUES: &[Technique] = &[
    ("static window", &["transport.congestion_control=static"]),
    ("DIATCP", &["transport.congestion_control=diatcp"]),
    ("DCTCP", &["transport.congestion_control=dctcp", "tor.ecn.mode=threshold"]),
    ("ECN with a threshold", &["transport.ecn=true", "tor.ecn.mode=threshold"]),
    ("RED that marks", &["transport.ecn=true", "tor.ecn.mode=red-mark"]),
    ("RED that drops", &["tor.ecn.mode=red-drop"]),
    ("M21TCP", &["transport.congestion_control=m21tcp", "tor.m21=true"]),
    ("ICTCP", &["transport.congestion_control=ictcp"]),
    ("Swift", &["transport.congestion_control=swift"]),
    ("minimum RTO of 1 ms", &["transport.rto_min=1 ms"]),
    ("PAUSE at the rack", &["tor.pause.mode=pause"]),
    ("PAUSE everywhere", &["tor.pause.mode=pause", "core.pause.mode=pause"]),
    ("priority flow control", &["tor.pause.mode=priority"]),
    ("daqrings at the rack", &["tor.buffering=daqring", "tor.daqring.rate=0.95 Gb/s"]),
    ("Fastpass", &["shaping.method=fastpass"]),
];

fn scenario(sets: &[&str]) -> Scenario {
    let sets: Vec<String> = SCENARIO.iter().chain(sets).map(|&set| set.to_owned()).collect();
    match load("thesis-a-1000hz", &sets) {
        Ok(loaded) => loaded.scenario,
        Err(errors) => panic!("{}", errors.render(false)),
    }
}

/// Nanoseconds a packet-hop, and the packet-hops.
fn measure(scenario: &Scenario) -> (f64, u64) {
    let outcome = run(scenario, 1, &Control::default()).expect("the case can be simulated");
    assert_eq!(outcome.end, End::Complete);
    let speed = outcome.summary.speed.expect("a run says what it cost");
    let cpu_s = speed.cpu_s.or(speed.wall_s).expect("a run takes time");
    let hops = speed.packet_hops.expect("hops are counted");
    (cpu_s * 1e9 / hops as f64, hops)
}

fn main() {
    let wanted = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    println!("{:24} {:>9} {:>9} {:>7} {:>12}", "technique", "plain, ns", "ns a hop", "ratio", "its hops");
    let plain = scenario(&[]);
    for &(name, sets) in TECHNIQUES {
        if wanted.as_ref().is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let with = scenario(sets);
        let (mut least, mut least_plain, mut share) = (f64::MAX, f64::MAX, 1.0);
        for _ in 0..REPEATS {
            let (plain_ns, plain_hops) = measure(&plain);
            let (ns, hops) = measure(&with);
            least_plain = least_plain.min(plain_ns);
            least = least.min(ns);
            share = hops as f64 / plain_hops as f64;
        }
        println!("{name:24} {least_plain:>9.1} {least:>9.1} {:>7.2} {share:>11.2}×", least / least_plain);
    }
}
