//! The cost of each technique against the plain simulation of the same scenario: processor time a packet-hop.
//!
//! `cargo bench -p fanin-sim --bench techniques` prints one line for each; `-- NAME` only those whose name has NAME in it. Plain
//! and technique take turns, so that other work on the machine touches both alike. The ratio is the median over the pairs;
//! the times are the least of the repeats. The scenario is the thesis' rack at 1 kHz with 480 credits. Nothing is lost in it,
//! so the data packets are the same. A technique may send acknowledgements or window updates of its own, or shape by itself,
//! and then has a few more or fewer hops. The last column but one gives this difference; the ratio is by hop. The last column
//! is the ratio by packet. It also counts messages outside TCP as packets, such as PAUSE frames and Fastpass' requests and
//! timeslots, which take time on a host's link. SIRD is also compared on the classical incast, where a hop of TCP costs
//! least.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it measures")]

use fanin_runs::{RunControl, RunEnd, run};
use fanin_scenario::{Scenario, load};

/// Repeats of each pair.
const REPEATS: usize = 5;

/// A preset, and keys to set.
type Plain = (&'static str, &'static [&'static str]);

const RACK: Plain = (
    "thesis-a-1000hz",
    &["run.warmup=0 s", "run.duration=600 ms", "supervisor.policy=node-round-robin", "shaping.credits=480"],
);

const INCAST: Plain = ("incast", &["tor.buffer=8 MB", "run.duration=10 s"]);

/// A technique: name, and keys to set.
type Technique = (&'static str, &'static [&'static str]);

const ON_THE_INCAST: &[Technique] = &[("SIRD, incast", &["transport.congestion_control=sird"])];

const ON_THE_RACK: &[Technique] = &[
    ("static window", &["transport.congestion_control=static"]),
    ("DIATCP", &["transport.congestion_control=diatcp"]),
    ("DCTCP", &["transport.congestion_control=dctcp", "tor.ecn.mode=threshold"]),
    ("ECN with a threshold", &["transport.ecn=true", "tor.ecn.mode=threshold"]),
    ("RED that marks", &["transport.ecn=true", "tor.ecn.mode=red-mark"]),
    ("RED that drops", &["tor.ecn.mode=red-drop"]),
    ("M21TCP", &["transport.congestion_control=m21tcp", "tor.m21=true"]),
    ("ICTCP", &["transport.congestion_control=ictcp"]),
    ("Swift", &["transport.congestion_control=swift"]),
    ("SIRD", &["transport.congestion_control=sird"]),
    ("minimum RTO of 1 ms", &["transport.rto_min=1 ms"]),
    ("PAUSE at the rack", &["tor.pause.mode=pause"]),
    ("PAUSE everywhere", &["tor.pause.mode=pause", "core.pause.mode=pause"]),
    ("priority flow control", &["tor.pause.mode=priority"]),
    ("daqrings at the rack", &["tor.buffering=daqring", "tor.daqring.rate=0.95 Gb/s"]),
    ("Fastpass", &["shaping.method=fastpass"]),
    ("paced credits", &["shaping.method=paced-credits"]),
];

fn scenario((preset, sets): Plain, more: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().chain(more).map(|&set| set.to_owned()).collect();
    match load(preset, &sets) {
        Ok(loaded) => loaded.scenario,
        Err(errors) => panic!("{}", errors.render(false)),
    }
}

/// Returns nanoseconds a packet-hop, the number of packet-hops, and the number of messages outside the simulated frames.
fn measure(scenario: &Scenario) -> (f64, u64, u64) {
    let outcome = run(scenario, 1, &RunControl::default()).expect("the case can be simulated");
    assert_eq!(outcome.end, RunEnd::Complete);
    let speed = outcome.summary.speed.expect("a run says what it cost");
    let cpu_s = speed.cpu_s.or(speed.wall_s).expect("a run takes time");
    let hops = speed.packet_hops.expect("hops are counted");
    let sent = |technique: &str, message: &str| {
        outcome.summary.techniques.get(technique).and_then(|figures| figures[message].as_u64()).unwrap_or(0)
    };
    let messages = sent("fastpass", "requests")
        + sent("fastpass", "slots")
        + sent("pause", "pauses")
        + sent("pause", "resumes");
    (cpu_s * 1e9 / hops as f64, hops, messages)
}

fn compare(plain: Plain, techniques: &[Technique], wanted: Option<&str>) {
    let without = scenario(plain, &[]);
    for &(name, sets) in techniques.iter().filter(|(name, _)| wanted.is_none_or(|part| name.contains(part))) {
        let with = scenario(plain, sets);
        let (mut least, mut least_plain, mut share, mut of_packets) = (f64::MAX, f64::MAX, 1.0, 1.0);
        let mut ratios = Vec::new();
        for _ in 0..REPEATS {
            let (plain_ns, plain_hops, _) = measure(&without);
            let (ns, hops, messages) = measure(&with);
            least_plain = least_plain.min(plain_ns);
            least = least.min(ns);
            ratios.push(ns / plain_ns);
            share = hops as f64 / plain_hops as f64;
            of_packets = hops as f64 / (hops + messages) as f64;
        }
        ratios.sort_by(f64::total_cmp);
        let median = ratios[ratios.len() / 2];
        let by_packet = median * of_packets;
        println!("{name:24} {least_plain:>9.1} {least:>9.1} {median:>7.2} {share:>11.2}× {by_packet:>9.2}");
    }
}

fn main() {
    let wanted = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    println!(
        "{:24} {:>9} {:>9} {:>7} {:>12} {:>9}",
        "technique", "plain, ns", "ns a hop", "ratio", "its hops", "a packet"
    );
    compare(RACK, ON_THE_RACK, wanted.as_deref());
    compare(INCAST, ON_THE_INCAST, wanted.as_deref());
}
