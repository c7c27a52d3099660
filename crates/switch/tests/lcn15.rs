//! The experiments of "A lossless switch for data acquisition networks" (LCN 2015) on ports in memory, in simulated time.
//!
//! Twelve hosts with 10 Gb/s each. A collector requests its next event from all sources on other hosts as soon as it has the
//! last one. A source answers with a burst of full frames at line rate, without congestion control.

use std::collections::VecDeque;

use fanin_switch::config::{Hugepages, PortSpec, RingSpec, RuleSpec, StationSpec};
use fanin_switch::{Config, Mac, MemoryPorts, Pool, Switch};
use fanin_units::{Bytes, Duration, Instant, Packets, Rate};

const HOSTS: usize = 12;
const LINE: Rate = Rate::new(10_000_000_000);
/// "Rate limit of 0.78 Gbps for each destination DCM."
const LIMIT: Rate = Rate::new(780_000_000);
const FRAME: usize = 1514;
const WIRE: u64 = FRAME as u64 + 24;

fn mac(kind: u8, number: usize) -> [u8; 6] {
    [2, kind, 0, 0, (number >> 8) as u8, number as u8]
}

struct Experiment {
    /// The host of each collector.
    collectors: Vec<usize>,
    /// Sources on each host.
    sources: usize,
    /// Frames of a source's answer.
    burst: usize,
    limit: Option<Rate>,
    ring_frames: u64,
    time: Duration,
}

#[derive(Debug)]
struct Outcome {
    /// Frames delivered a second, as a rate on the wire, bit/s.
    delivered: f64,
    drops: u64,
    /// The most frames in any ring.
    longest: u64,
    events: u64,
}

fn run(experiment: &Experiment) -> Outcome {
    let collectors = experiment.collectors.len();
    let mut config = Config {
        port: (0..HOSTS)
            .map(|port| PortSpec { rate: Some(LINE), ..PortSpec::new(&format!("p{port}")) })
            .collect(),
        ..Config::default()
    };
    let flows = experiment.sources * (HOSTS - 1);
    let most = (flows * experiment.burst) as u64;
    config.switch.memory = Bytes::new(((most + 64) * collectors as u64 + 4096) * 2048);
    for (number, &host) in experiment.collectors.iter().enumerate() {
        let name = format!("dcm-{number}");
        config.ring.push(RingSpec {
            frames: Some(Packets::new(experiment.ring_frames)),
            rate: experiment.limit,
            ..RingSpec::new(&name, &format!("p{host}"))
        });
        config.rule.push(RuleSpec {
            name: name.clone(),
            ring: Some(name),
            destination_mac: Some(Mac(mac(2, number)).to_string().parse().unwrap()),
            ..RuleSpec::default()
        });
        config.station.push(StationSpec { mac: Mac(mac(2, number)), port: format!("p{host}"), vlan: None });
    }
    let pool = Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Off, 1).unwrap().remove(0);
    let mut switch = Switch::new(config, MemoryPorts::new(pool, HOSTS)).unwrap();

    let slot = LINE.time_to_send(Bytes::new(WIRE));
    let mut frame = vec![0; FRAME];
    // The backlog of each host's link: collector and remaining frames of each burst.
    let mut links: Vec<VecDeque<(usize, usize)>> = vec![VecDeque::new(); HOSTS];
    let mut received = vec![0usize; collectors];
    let (mut frames, mut events) = (0u64, 0u64);
    let ask = |links: &mut Vec<VecDeque<(usize, usize)>>, collector: usize| {
        // Each collector starts with another host, which spreads the requests.
        for offset in 0..HOSTS {
            let host = (collector + offset) % HOSTS;
            if host != experiment.collectors[collector] {
                links[host].push_back((collector, experiment.sources * experiment.burst));
            }
        }
    };
    (0..collectors).for_each(|collector| ask(&mut links, collector));
    let (start, end) = (Instant::START + Duration::from_micros(1), Instant::START + experiment.time);
    let warm = Instant::new(start.get() + experiment.time.get() / 4);
    let mut now = start;
    while now < end {
        for (host, link) in links.iter_mut().enumerate() {
            let Some((collector, left)) = link.front_mut() else { continue };
            frame[..6].copy_from_slice(&mac(2, *collector));
            frame[6..12].copy_from_slice(&mac(1, host));
            frame[12..14].copy_from_slice(&[0x88, 0xb5]);
            assert!(switch.driver_mut().inject(host, &frame), "packet memory for all bursts");
            *left -= 1;
            // Bursts of several collectors share a link frame by frame.
            let entry = link.pop_front().unwrap();
            if entry.1 > 0 {
                link.push_back(entry);
            }
        }
        switch.poll(now, true);
        for port in 0..HOSTS {
            while let Some(out) = switch.driver_mut().take(port) {
                let collector = usize::from(out[4]) << 8 | usize::from(out[5]);
                assert_eq!(experiment.collectors[collector], port, "a frame came out of a wrong port");
                frames += u64::from(now >= warm);
                received[collector] += 1;
                if received[collector] == flows * experiment.burst {
                    received[collector] = 0;
                    events += 1;
                    ask(&mut links, collector);
                }
            }
        }
        now = now + slot;
    }
    let snapshot = switch.snapshot(false);
    Outcome {
        delivered: (frames * WIRE * 8) as f64 / (end - warm).as_secs_f64(),
        drops: snapshot.drops(),
        longest: snapshot.rings.iter().map(|ring| ring.queue.frames_max).max().unwrap_or(0),
        events,
    }
}

/// "All-to-all traffic: 12 ROSEs and 144 DCMs", 990 packets in 11 flows for each.
fn all_to_all(limit: Option<Rate>) -> Outcome {
    run(&Experiment {
        collectors: (0..144).map(|number| number % HOSTS).collect(),
        sources: 1,
        burst: 90,
        limit,
        ring_frames: 4096,
        time: Duration::from_millis(60),
    })
}

/// "All-to-one traffic: 110 ROSEs and 1 DCM", 9790 packets in 110 flows.
fn all_to_one(ring_frames: u64) -> Outcome {
    run(&Experiment {
        collectors: vec![0],
        sources: 10,
        burst: 89,
        limit: Some(LIMIT),
        ring_frames,
        time: Duration::from_millis(480),
    })
}

#[test]
fn all_to_all_uses_the_links_and_loses_nothing() {
    let outcome = all_to_all(None);
    eprintln!("all-to-all: {outcome:?}");
    assert_eq!(outcome.drops, 0);
    // "97 % of theoretical throughput".
    let possible = 12.0 * 10e9;
    assert!(
        outcome.delivered >= 0.97 * possible,
        "{:.1} Gb/s of {:.1}",
        outcome.delivered / 1e9,
        possible / 1e9
    );
    assert!(outcome.events > 0);
}

#[test]
fn all_to_all_with_a_limit_keeps_every_limit_busy() {
    let outcome = all_to_all(Some(LIMIT));
    eprintln!("all-to-all, 0.78 Gb/s each: {outcome:?}");
    assert_eq!(outcome.drops, 0);
    let possible = 144.0 * 0.78e9;
    assert!(
        outcome.delivered >= 0.97 * possible,
        "{:.1} Gb/s of {:.1}",
        outcome.delivered / 1e9,
        possible / 1e9
    );
    assert!(outcome.delivered <= 1.001 * possible, "limits are not kept");
    // "Ring size can be adjusted to match the total burst size towards a DCM."
    assert!(outcome.longest <= 990, "{}", outcome.longest);
}

#[test]
fn all_to_one_needs_a_ring_for_the_burst() {
    let outcome = all_to_one(14_000);
    eprintln!("all-to-one, 14000 frames: {outcome:?}");
    assert_eq!(outcome.drops, 0);
    assert!(outcome.delivered >= 0.97 * 0.78e9 && outcome.delivered <= 1.001 * 0.78e9, "{outcome:?}");
    // "No incast for ring sizes above 9000": frames arrive at line rate and leave hardly slower.
    assert!((9_000..=9_790).contains(&outcome.longest), "{}", outcome.longest);
    let short = all_to_one(8_500);
    eprintln!("all-to-one, 8500 frames: {short:?}");
    assert!(short.drops > 0, "a ring shorter than the burst must lose frames");
}
