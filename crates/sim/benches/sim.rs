//! How fast the simulator is: packet-hops a second of processor time.
//!
//! `cargo bench -p fanin-sim --bench sim` prints one line for each case: the classical incast without loss (S1), the
//! thesis' rack with credits (S3), both again in collapse, and a full farm. The best of a few repeats counts: other work on
//! the machine only ever slows a run down. Times differ from machine to machine; what to compare are the ratios of the last
//! lines: collapse beside the same without loss, and a farm beside one rack.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it measures")]

use fanin_scenario::load;
use fanin_sim::{Control, End, run};

/// Repeats of each case.
const REPEATS: usize = 3;

/// A name, a preset, and what is set beside it.
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

fn main() {
    println!("{:34} {:>12} {:>10} {:>14} {:>8}", "case", "packet-hops", "CPU s", "hops / CPU s", "drops");
    let mut costs = Vec::new();
    for &(name, preset, sets) in CASES {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let scenario = match load(preset, &sets) {
            Ok(loaded) => loaded.scenario,
            Err(errors) => panic!("{name}: {}", errors.render(false)),
        };
        let mut best: Option<(f64, u64)> = None;
        let mut drops = 0;
        for _ in 0..REPEATS {
            let outcome = run(&scenario, 1, &Control::default()).expect("the case can be simulated");
            assert_eq!(outcome.end, End::Complete, "{name}");
            let speed = outcome.summary.speed.expect("a run says what it cost");
            let (Some(cpu_s), Some(hops)) = (speed.cpu_s.or(speed.wall_s), speed.packet_hops) else {
                continue;
            };
            if best.is_none_or(|(least, _)| cpu_s < least) {
                best = Some((cpu_s, hops));
            }
            drops = outcome.summary.network.and_then(|network| network.drops).unwrap_or(0);
        }
        let (cpu_s, hops) = best.expect("a case is run");
        println!("{name:34} {hops:>12} {cpu_s:>10.3} {:>12.2} M {drops:>8}", hops as f64 / cpu_s / 1e6);
        costs.push((cpu_s / hops as f64, cpu_s / (hops + drops) as f64));
    }
    let [incast, collapse, rack, rack_collapse, farm] = costs[..] else { unreachable!("five cases") };
    println!("S1 in collapse, beside no loss: {:.2} a hop", collapse.0 / incast.0);
    // Two hops a packet, and one where it was dropped.
    println!("                                {:.2} a packet", collapse.1 / incast.1);
    println!("S3 in collapse, beside no loss: {:.2} a hop", rack_collapse.0 / rack.0);
    println!("farm beside S3:                 {:.2} a hop", farm.0 / rack.0);
}
