//! The rules of the RFCs, in black-box tests: two endpoints, a wire, and losses of chosen segments.

mod harness;

use fanin_tcp::{Config, CongestionConfig, CongestionState, DelayedAck, Endpoint, Flags, Segment};
use fanin_units::{Duration, Instant};
use harness::{Pair, Wire};

fn millis(ms: u64) -> Instant {
    Instant::START + Duration::from_millis(ms)
}

/// A transfer of `segments` full segments from side 0; the segments numbered in `lost` are lost once.
fn transfer(config: &Config, segments: u64, lost: &[u64]) -> Pair {
    let mut wire = Wire::new("1 Gb/s", "5 ms");
    let back = wire.clone();
    wire.drop_data = lost.iter().copied().collect();
    let mut pair = Pair::with(
        [config.clone(), config.clone()],
        [Endpoint::new(config), Endpoint::new(config)],
        [wire, back],
        1,
    );
    pair.write(0, segments * u64::from(config.mss));
    pair
}

fn finish(pair: &mut Pair, segments: u64) -> Duration {
    let bytes = segments * u64::from(pair.configs[0].mss);
    let end = pair.run_until_delivered(1, bytes, millis(100_000)).expect("the transfer ends");
    end - Instant::START
}

fn newreno() -> Config {
    let mut config = Config::textbook();
    config.sack = false;
    config.delayed_ack = DelayedAck::Off;
    config
}

// RFC 6582: partial ACKs repair two losses in one window, one a round trip, without a timeout and with one reduction.
#[test]
fn newreno_repairs_a_hole_a_round_trip() {
    let mut pair = transfer(&newreno(), 40, &[3, 6]);
    let took = finish(&mut pair, 40);
    let stats = pair.ends[0].stats(&pair.configs[0]);
    assert_eq!((stats.timeouts, stats.fast_retransmits, stats.retransmits), (0, 1, 2), "{}", pair.show());
    assert!(took < Duration::from_millis(80), "{took}");
    let again: Vec<_> =
        pair.trace.iter().filter(|line| line.2.flags.contains(Flags::RETRANSMISSION)).collect();
    assert_eq!(again[0].2.offset, 2 * 1460);
    assert_eq!(again[1].2.offset, 5 * 1460);
    let apart = again[1].0 - again[0].0;
    assert!(apart >= Duration::from_millis(10) && apart < Duration::from_millis(12), "{apart}");
}

// RFC 5681 §3.2: the third duplicate, not the second, sends again; the threshold is half the flight.
#[test]
fn the_third_duplicate_counts() {
    let mut config = newreno();
    config.limited_transmit = false;
    let mut pair = transfer(&config, 10, &[1]);
    finish(&mut pair, 10);
    let stats = pair.ends[0].stats(&config);
    assert_eq!((stats.timeouts, stats.fast_retransmits), (0, 1));
    assert_eq!(stats.ssthresh, 5 * 1460);
    let duplicates_before = pair
        .trace
        .iter()
        .take_while(|line| !line.2.flags.contains(Flags::RETRANSMISSION))
        .filter(|line| line.1 == 1 && line.2.ack == 0)
        .count();
    assert!(duplicates_before >= 3);
}

// RFC 5681 §3.2, and the reason for incast: a loss with fewer than three segments after it waits for the timeout.
#[test]
fn a_lost_tail_waits_for_the_timeout() {
    for name in ["linux-2.6.32", "linux-2.6.26", "ns3-newreno", "textbook"] {
        let config = Config::profile(name).unwrap();
        let count = u64::from(config.initial_window);
        let mut pair = transfer(&config, count, &[count]);
        let took = finish(&mut pair, count);
        let stats = pair.ends[0].stats(&config);
        assert_eq!((stats.timeouts, stats.fast_retransmits), (1, 0), "{name}");
        assert!(took >= config.rto.min, "{name}: {took}");
    }
    // RACK-TLP repairs it after two round trips.
    let config = Config::linux_6();
    let mut pair = transfer(&config, 10, &[10]);
    let took = finish(&mut pair, 10);
    let stats = pair.ends[0].stats(&config);
    assert_eq!((stats.timeouts, stats.tail_loss_probes), (0, 1));
    assert!(took < Duration::from_millis(300), "{took}");
}

// RFC 6675: with SACK, holes known at once are repaired in one round trip.
#[test]
fn sack_repairs_many_holes_at_once() {
    for name in ["linux-2.6.32", "linux-6", "textbook"] {
        let config = Config::profile(name).unwrap();
        let mut pair = transfer(&config, 120, &[40, 42, 44, 46]);
        finish(&mut pair, 120);
        let stats = pair.ends[0].stats(&config);
        assert_eq!((stats.timeouts, stats.fast_retransmits, stats.retransmits), (0, 1, 4), "{name}");
        assert_eq!(stats.state, CongestionState::Open, "{name}");
    }
}

// RFC 5681 §3.1 and §3.5: after a timeout one segment, then slow start to half the flight.
#[test]
fn a_timeout_starts_over() {
    let config = newreno();
    let mut pair = transfer(&config, 10, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let mut sent = Vec::new();
    finish(&mut pair, 10);
    for line in pair.trace.iter().filter(|line| line.1 == 0).skip(10) {
        match sent.last_mut() {
            Some((at, count)) if line.0 - *at < Duration::from_millis(5) => *count += 1,
            _ => sent.push((line.0, 1)),
        }
    }
    assert_eq!(sent[0].0, millis(1_000));
    let bursts: Vec<_> = sent.iter().map(|entry| entry.1).collect();
    assert_eq!(bursts, [1, 2, 4, 3]);
    assert_eq!(pair.ends[0].stats(&config).timeouts, 1);
}

// RFC 6298 §5.5: the timeout doubles.
#[test]
fn timeouts_back_off() {
    let config = newreno();
    let mut pair = transfer(&config, 1, &[1, 2, 3, 4]);
    finish(&mut pair, 1);
    let at: Vec<_> = pair.trace.iter().filter(|line| line.1 == 0).map(|line| line.0).collect();
    assert_eq!(at, [0, 1_000, 3_000, 7_000, 15_000].map(millis));
}

// RFC 3168 §6.1.2: one reduction a round trip, announced by CWR; the echo stops then.
#[test]
fn ecn_reduces_once_a_round_trip() {
    for name in ["linux-6", "linux-2.6.32", "textbook"] {
        let mut config = Config::profile(name).unwrap();
        config.ecn = true;
        let mut wire = Wire::new("1 Gb/s", "5 ms");
        let back = wire.clone();
        wire.mark = 1000;
        let mut pair = Pair::with(
            [config.clone(), config.clone()],
            [Endpoint::new(&config), Endpoint::new(&config)],
            [wire, back],
            1,
        );
        pair.write(0, 30 * u64::from(config.mss));
        pair.run(millis(12));
        let stats = pair.ends[0].stats(&config);
        assert_eq!((stats.ecn_reductions, stats.retransmits), (1, 0), "{name}");
        pair.run(millis(5_000));
        assert_eq!(pair.ends[1].delivered(), 30 * u64::from(config.mss), "{name}");
        assert!(pair.trace.iter().any(|line| line.2.flags.contains(Flags::CWR)), "{name}");
    }
}

// Thesis §6.4: a static window always has its number of segments.
#[test]
fn a_static_window_stays() {
    for segments in [1, 2, 10] {
        let mut config = Config::linux_2_6_32();
        config.congestion_control = CongestionConfig::Static { static_window: segments };
        config.delayed_ack = DelayedAck::Off;
        let mut pair = transfer(&config, 100, &[]);
        let mut most = 0;
        while pair.ends[1].delivered() < 144_800 {
            assert!(pair.step(millis(10_000)));
            most = most.max(pair.ends[0].outstanding());
        }
        assert_eq!(most, u64::from(segments) * 1448);
    }
}

// With one segment a window and delayed ACKs every segment takes 40 ms or more, once the quick acknowledgements are
// used up.
#[test]
fn a_window_of_one_meets_the_delayed_ack() {
    let mut config = Config::linux_2_6_32();
    config.congestion_control = CongestionConfig::Static { static_window: 1 };
    let mut slow = transfer(&config, 60, &[]);
    let slow = finish(&mut slow, 60);
    config.delayed_ack = DelayedAck::Off;
    let mut quick = transfer(&config, 60, &[]);
    let quick = finish(&mut quick, 60);
    assert!(quick < Duration::from_millis(650), "{quick}");
    assert!(slow > quick + Duration::from_millis(40 * 20), "{slow}");
}

// The receiver's window: if the application does not read, the sender stops; a probe finds the window open.
#[test]
fn a_closed_window_is_probed() {
    for name in ["linux-6", "ns3-newreno", "textbook"] {
        let mut config = Config::profile(name).unwrap();
        config.receive_window = 20_000;
        config.receive_window_initial = 20_000;
        let mut pair = transfer(&config, 40, &[]);
        pair.ends[1].set_reading(false);
        pair.run(millis(3_000));
        let full = pair.ends[1].delivered();
        assert!((15_000..=20_200).contains(&full), "{name}: {full}");
        pair.ends[1].read(&config, u64::MAX);
        pair.ends[1].set_reading(true);
        // The update itself is lost.
        while pair.ends[1].poll_transmit(&config, pair.now).is_some() {}
        finish(&mut pair, 40);
    }
}

// DIATCP: the receiver bounds the data in flight.
#[test]
fn the_window_clamp_bounds_the_flight() {
    let mut config = Config::linux_6();
    config.shrink_window = true;
    let mut pair = transfer(&config, 400, &[]);
    pair.run(millis(50));
    pair.ends[1].set_window_clamp(4 * 1448);
    pair.run(millis(75));
    for _ in 0..100 {
        assert!(pair.step(millis(10_000)));
        assert!(pair.ends[0].outstanding() <= 4 * 1448 + 128);
    }
    finish(&mut pair, 400);
}

// The path window (M21TCP) that the other end echoes bounds the flight.
#[test]
fn an_echoed_path_window_bounds_the_flight() {
    let mut config = Config::linux_2_6_32();
    config.path_window = true;
    config.mss -= 8;
    let ends = [Endpoint::new(&config), Endpoint::new(&config)];
    let wire = Wire::new("1 Gb/s", "5 ms");
    let mut pair = Pair::with([config.clone(), config.clone()], ends, [wire.clone(), wire], 1);
    pair.write(0, 1440);
    pair.run(millis(50));
    // The switch on the path lowers the window in the option.
    let mut segment = pair.trace.last().expect("an acknowledgement").2;
    segment.flags.insert(Flags::PATH_WINDOW_ECHO);
    segment.path_window_echo = 3 * 1440 + 100;
    pair.ends[0].handle_segment(&config, pair.now, &segment);
    assert_eq!(pair.ends[0].stats(&config).cwnd, 3 * 1440);
}

// Randomised timeouts keep flows that lost together from retrying together (Vasudevan et al. 2009).
#[test]
fn jitter_spreads_timeouts() {
    let mut config = newreno();
    config.rto.spread = 512;
    let mut first_retries = Vec::new();
    for salt in 0..20 {
        let mut pair = transfer(&config, 1, &[1]);
        pair.ends[0].set_salt(salt);
        // The timeout was started before the salt was set; the second one has it.
        pair.wires[0].drop_data = [1, 2].into();
        finish(&mut pair, 1);
        let at: Vec<_> = pair.trace.iter().filter(|line| line.1 == 0).map(|line| line.0).collect();
        let wait = at[2] - at[1];
        assert!(wait >= Duration::from_secs(2) && wait <= Duration::from_secs(3), "{wait}");
        first_retries.push(wait);
    }
    first_retries.sort_unstable();
    first_retries.dedup();
    assert!(first_retries.len() >= 18, "{first_retries:?}");
}

// RFC 3522 and RFC 5682: a path that stalls for longer than the timeout does not reduce the window.
#[test]
fn a_spurious_timeout_is_undone() {
    for name in ["linux-6", "linux-2.6.32"] {
        let config = Config::profile(name).unwrap();
        let mut pair = transfer(&config, 60, &[]);
        pair.run(millis(12));
        let before = pair.ends[0].stats(&config);
        // All data in flight arrives, but the ACKs are delayed.
        pair.wires[1].delay = Duration::from_millis(700);
        pair.run(millis(600));
        assert_eq!(pair.ends[0].stats(&config).state, CongestionState::Loss, "{name}");
        finish(&mut pair, 60);
        pair.run(millis(5_000));
        let after = pair.ends[0].stats(&config);
        assert!(after.timeouts >= 1 && after.cwnd >= before.cwnd, "{name}: {after:?}");
        assert_eq!(after.state, CongestionState::Open, "{name}");
    }
}

// ns-3 has no Karn's algorithm: any new acknowledgement ends the back-off. In RFC 6298 it lasts until a segment without
// a retransmission is acknowledged. Without timestamps the copy does not count as such.
#[test]
fn back_off_after_a_time_out() {
    for (profile, after) in [("ns3-newreno", 200), ("textbook", 400)] {
        let mut config = Config::profile(profile).unwrap();
        config.rto.min = Duration::from_millis(200);
        let mut sender = Endpoint::established(&config, Duration::from_micros(100));
        let mut now = Instant::new(1_000_000);
        sender.write(10 * 1460);
        while sender.poll_transmit(&config, now).is_some() {}
        while sender.stats(&config).timeouts == 0 {
            now = sender.poll_deadline();
            sender.handle_deadline(&config, now);
        }
        assert_eq!(sender.stats(&config).rto, Duration::from_millis(400), "{profile}: doubled");
        while sender.poll_transmit(&config, now).is_some() {}
        let ack = Segment { ack: 1460, window: 1 << 20, flags: Flags::ACK, ..Segment::default() };
        sender.handle_segment(&config, now + Duration::from_micros(100), &ack);
        assert_eq!(sender.stats(&config).rto, Duration::from_millis(after), "{profile}");
    }
}
