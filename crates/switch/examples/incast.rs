//! The kernel's TCP through the switch: many senders answer one collector at once, through a shallow buffer and
//! through a ring of the same rate.
//!
//! `cargo run --release -p fanin-switch --example incast -- [SENDERS [ANSWER_BYTES [SECONDS]]]`, as root. 32 senders, 10 kB and
//! 5 s by default, at 100 Mb/s.

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Duration;

use common::{Incast, Lab, address, incast};
use fanin_switch::config::{RingSpec, RuleSpec};
use fanin_switch::{Config, Snapshot};
use fanin_units::{Bytes, Rate};

const RATE: Rate = Rate::new(100_000_000);

fn run(lab: &Lab, config: &Config, senders: usize, bytes: usize, time: Duration) -> (Incast, Snapshot) {
    let running = lab.start(config).unwrap_or_else(|error| panic!("{error}"));
    let seen = incast(lab, senders, bytes, time);
    (seen, running.stop().snapshot)
}

#[expect(clippy::print_stdout, reason = "an example says what it measured")]
fn main() {
    let number = |place, otherwise| {
        std::env::args().nth(place).map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (senders, bytes, time) = (number(1, 32), number(2, 10_000), Duration::from_secs(number(3, 5) as u64));
    let Some(lab) = Lab::new("example", senders + 1, 1500) else { std::process::exit(3) };

    let mut shallow = lab.config();
    (shallow.port[0].rate, shallow.port[0].buffer) = (Some(RATE), Some(Bytes::new(64_000)));
    let mut deep = lab.config();
    deep.ring.push(RingSpec {
        bytes: Some(Bytes::new(32_000_000)),
        rate: Some(RATE),
        // The burst compensates idle time between two rounds, so that the average rate is this rate.
        burst: Some(Bytes::new(256_000)),
        ..RingSpec::new("dcm", "p0")
    });
    deep.rule.push(RuleSpec {
        name: "to-dcm".to_owned(),
        ring: Some("dcm".to_owned()),
        destination_ip: Some(address(0).to_string().parse().expect("an address")),
        ..RuleSpec::default()
    });
    println!("{senders} senders, {bytes} B each at a barrier, one collector at {RATE}, CUBIC");
    for (name, config) in [("64 kB shared by all", shallow), ("ring of 32 MB", deep)] {
        let (seen, snapshot) = run(&lab, &config, senders, bytes, time);
        let missed: u64 = snapshot.ports.iter().map(|port| port.missed).sum();
        let most = snapshot.rings.iter().map(|ring| ring.queue.bytes_max).max();
        println!(
            "{name:<20} {:6.1} Mb/s, {} frames dropped, {missed} missed, {} segments sent again, {} timeouts, most held {}",
            seen.goodput as f64 / 1e6,
            snapshot.drops(),
            seen.retransmits,
            seen.timeouts,
            Bytes::new(most.unwrap_or(snapshot.ports[0].queue.bytes_max))
        );
    }
}
