//! DCTCP by RFC 8257, in black-box tests with two endpoints and a wire that marks.

mod harness;

use fanin_tcp::{Config, CongestionConfig, DctcpParameters, DelayedAck, Endpoint, Flags, Segment};
use fanin_units::{Duration, Instant};
use harness::{Pair, Wire};

fn dctcp() -> Config {
    let parameters = DctcpParameters { gain: 62_500, alpha_initial: 1_000_000, window_min: 2 };
    Config {
        ecn: true,
        ecn_exact: true,
        congestion_control: CongestionConfig::Dctcp(parameters),
        ..Config::textbook()
    }
}

fn at(us: u64) -> Instant {
    Instant::START + Duration::from_micros(us)
}

/// Sends a data segment to an end; returns its answer.
fn receive(end: &mut Endpoint, config: &Config, us: u64, number: u64, ce: bool) -> Vec<Segment> {
    let mut flags = Flags::ACK | Flags::ECT;
    if ce {
        flags.insert(Flags::CE);
    }
    let segment =
        Segment { offset: number * 1460, payload: 1460, flags, window: 1 << 20, ..Segment::default() };
    end.handle_segment(config, at(us), &segment);
    std::iter::from_fn(|| end.poll_transmit(config, at(us))).collect()
}

// RFC 8257 §3.2: with delayed acknowledgements, the state machine of figure 1.
#[test]
fn every_acknowledgement_echoes_the_mark_of_what_it_covers() {
    let mut config = dctcp();
    config.delayed_ack = DelayedAck::Rfc1122 { timeout: Duration::from_millis(200) };
    let mut end = Endpoint::new(&config);
    let marks = [false, false, false, true, true, true, true, false, true, true];
    let mut acks = Vec::new();
    for (number, &ce) in marks.iter().enumerate() {
        for ack in receive(&mut end, &config, 10 * number as u64, number as u64, ce) {
            assert!(ack.flags.contains(Flags::ECT), "every segment is ECN-capable");
            acks.push((ack.ack / 1460, ack.flags.contains(Flags::ECE)));
        }
    }
    // Every second segment while the mark is constant. At a change, first an ACK of the waiting data with its mark,
    // then of the change.
    assert_eq!(
        acks,
        [(2, false), (3, false), (4, true), (6, true), (7, true), (8, false), (9, true)]
            .into_iter()
            .collect::<Vec<_>>()
    );
    // No byte is reported with another byte's mark: the sender counts exactly the marked bytes.
    let (mut before, mut marked) = (0, 0);
    for (ack, ece) in acks {
        marked += if ece { ack - before } else { 0 };
        before = ack;
    }
    assert_eq!(marked, marks[..9].iter().filter(|&&ce| ce).count() as u64);
}

// RFC 8257 §3.3: a share of marked bytes reduces the window by half that share, once a round trip.
#[test]
fn the_window_follows_the_share_of_marks() {
    for (mark, low, high) in [(1000, 0.9, 1.0), (250, 0.15, 0.35), (0, 0.0, 0.05)] {
        let mut config = dctcp();
        config.receive_window = 60_000;
        config.receive_window_initial = 60_000;
        let mut wire = Wire::new("100 Mb/s", "1 ms");
        let back = wire.clone();
        wire.mark = mark;
        let ends = [Endpoint::new(&config), Endpoint::new(&config)];
        let mut pair = Pair::with([config.clone(), config.clone()], ends, [wire, back], 1);
        pair.write(0, 20_000_000);
        pair.run(at(100_000_000));
        assert_eq!(pair.ends[1].delivered(), 20_000_000);
        let stats = pair.ends[0].stats(&config);
        let alpha = f64::from(stats.alpha_ppm) / 1e6;
        assert!((low..=high).contains(&alpha), "{mark}: {alpha}");
        assert_eq!((stats.retransmits, stats.timeouts), (0, 0), "marks lose nothing");
        // The floor of two segments holds, marks or not.
        assert!(stats.cwnd >= 2 * 1460, "{}", stats.cwnd);
    }
}

// RFC 8257 §3.5: a loss halves the window, however small the share of marks.
#[test]
fn a_loss_halves_the_window() {
    let mut config = dctcp();
    config.delayed_ack = DelayedAck::Off;
    let CongestionConfig::Dctcp(parameters) = &mut config.congestion_control else { unreachable!() };
    parameters.alpha_initial = 0;
    let mut wire = Wire::new("1 Gb/s", "5 ms");
    let back = wire.clone();
    wire.drop_data = [11].into();
    let ends = [Endpoint::new(&config), Endpoint::new(&config)];
    let mut pair = Pair::with([config.clone(), config.clone()], ends, [wire, back], 1);
    pair.write(0, 60 * 1460);
    pair.run(at(19_000));
    let before = pair.ends[0].stats(&config).cwnd;
    pair.run(at(35_000));
    let stats = pair.ends[0].stats(&config);
    assert_eq!(stats.fast_retransmits, 1);
    assert!(stats.ssthresh <= before * 6 / 10 && stats.ssthresh >= before * 4 / 10, "{before} {stats:?}");
    pair.run(at(10_000_000));
    assert_eq!(pair.ends[1].delivered(), 60 * 1460);
}
