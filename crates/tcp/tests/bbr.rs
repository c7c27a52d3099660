//! BBR by its authors' description, in black-box tests with two endpoints and a bottleneck.

mod harness;

use fanin_tcp::{Config, CongestionConfig, Endpoint, Flags, Stats};
use fanin_units::{Duration, Instant};
use harness::{Pair, Wire};

const MSS: u64 = 1448;

fn config(congestion_control: CongestionConfig) -> Config {
    Config { congestion_control, ..Config::linux_6() }
}

fn at(ms: u64) -> Instant {
    Instant::START + Duration::from_millis(ms)
}

/// A transfer over a bottleneck that holds `queue_frames`, with losses in 1/1000.
fn transfer(congestion_control: CongestionConfig, wire: Wire, loss: u64, queue_frames: usize) -> Pair {
    let config = config(congestion_control);
    let rtt = wire.delay + wire.delay;
    let mut forward = wire.clone();
    forward.loss = loss;
    forward.queue_frames = queue_frames;
    let mut pair = Pair::with(
        [config.clone(), config.clone()],
        [Endpoint::established(&config, rtt), Endpoint::established(&config, rtt)],
        [forward, wire],
        7,
    );
    pair.write(0, 4_000_000_000);
    pair
}

/// Goodput in Mb/s from one time to another.
fn goodput(pair: &mut Pair, from_ms: u64, to_ms: u64) -> f64 {
    pair.run(at(from_ms));
    let before = pair.ends[1].delivered();
    pair.run(at(to_ms));
    (pair.ends[1].delivered() - before) as f64 * 8.0 / ((to_ms - from_ms) as f64 * 1e3)
}

fn stats(pair: &Pair) -> Stats {
    pair.ends[0].stats(&pair.configs[0])
}

// At Kleinrock's operating point: the whole bandwidth, with hardly a queue.
#[test]
fn it_fills_the_link_and_leaves_the_buffer_empty() {
    let mut pair = transfer(CongestionConfig::Bbr, Wire::new("100 Mb/s", "5 ms"), 0, 1000);
    let rate = goodput(&mut pair, 1_000, 5_000);
    // 1448 of 1538 bytes are payload.
    assert!(rate > 0.93 * 94.1, "{rate} Mb/s");
    assert_eq!(pair.wires[0].dropped, 0);
    let stats = stats(&pair);
    // The queue is a round trip at a gain of 1.25, and three bursts: far from the 120 ms that the buffer holds.
    assert!(stats.srtt < Duration::from_millis(16), "{}", stats.srtt);
    let mut cubic = transfer(Config::linux_6().congestion_control, Wire::new("100 Mb/s", "5 ms"), 0, 1000);
    cubic.run(at(5_000));
    let cubic = cubic.ends[0].stats(&cubic.configs[0]);
    assert!(cubic.srtt > Duration::from_millis(20), "CUBIC fills the buffer: {}", cubic.srtt);
}

// BBR does not take loss for congestion (ACM Queue 2016, figure 8): 1 % of loss leaves its rate, and reduces CUBIC's.
#[test]
fn random_loss_leaves_the_rate() {
    let wire = Wire::new("100 Mb/s", "5 ms");
    let bbr = goodput(&mut transfer(CongestionConfig::Bbr, wire.clone(), 10, 1000), 1_000, 6_000);
    let cubic = goodput(&mut transfer(Config::linux_6().congestion_control, wire, 10, 1000), 1_000, 6_000);
    assert!(bbr > 80.0, "BBR {bbr} Mb/s");
    assert!(cubic < bbr / 2.0, "CUBIC {cubic} Mb/s, BBR {bbr} Mb/s");
}

// After start-up it paces: a burst waits until the burst before has left at the bottleneck's rate.
#[test]
fn bursts_are_spread_over_time() {
    let mut pair = transfer(CongestionConfig::Bbr, Wire::new("100 Mb/s", "5 ms"), 0, 1000);
    pair.run(at(2_000));
    pair.trace.clear();
    pair.run(at(2_500));
    let mut sent: Vec<(Instant, u64)> = Vec::new();
    for (time, side, segment) in &pair.trace {
        if *side == 0 && segment.payload > 0 {
            match sent.last_mut() {
                Some((last, bytes)) if last == time => *bytes += u64::from(segment.payload),
                _ => sent.push((*time, u64::from(segment.payload))),
            }
        }
    }
    assert!(sent.len() > 100);
    // A burst is at most a millisecond's worth, and bursts are no closer than a gain of 1.25 allows.
    let rate = 100e6 / 8.0 * 1.3;
    for pair in sent.windows(2) {
        let [(first, bytes), (second, _)] = pair else { unreachable!() };
        assert!(*bytes <= 16 * MSS, "{bytes} bytes at {first}");
        let gap = second.saturating_since(*first).as_secs_f64();
        assert!(gap > 0.5 * *bytes as f64 / rate, "{gap} s after {bytes} bytes");
    }
}

// Every ten seconds four segments are outstanding for 200 ms, so that the round-trip time is seen without a queue.
#[test]
fn the_round_trip_time_is_probed_after_ten_seconds() {
    let mut pair = transfer(CongestionConfig::Bbr, Wire::new("100 Mb/s", "5 ms"), 0, 1000);
    pair.tracing = false;
    let mut small_ms = Vec::new();
    for ms in (20..13_000).step_by(10) {
        pair.run(at(ms));
        if ms > 2_000 && stats(&pair).cwnd <= 4 * MSS {
            small_ms.push(ms);
        }
    }
    let (first, last) = (small_ms[0], small_ms[small_ms.len() - 1]);
    assert!((9_000..12_500).contains(&first), "{first} ms");
    assert!((180..400).contains(&(last - first)), "{first} to {last} ms");
}

// After an outage of a second BBR finds its model again.
#[test]
fn a_timeout_is_survived() {
    let mut pair = transfer(CongestionConfig::Bbr, Wire::new("100 Mb/s", "5 ms"), 0, 1000);
    pair.run(at(1_000));
    pair.wires[0].loss = 1000;
    pair.run(at(2_000));
    assert!(stats(&pair).timeouts > 0);
    pair.wires[0].loss = 0;
    let rate = goodput(&mut pair, 4_000, 6_000);
    assert!(rate > 85.0, "{rate} Mb/s after the outage");
    let retransmitted =
        pair.trace.iter().filter(|(_, _, segment)| segment.flags.contains(Flags::RETRANSMISSION));
    assert!(retransmitted.count() > 0);
}
