//! Rules of Linux's DCTCP that the comparison with this machine's kernel has found (`tests/kernel`).

mod harness;

use fanin_tcp::{Config, CongestionConfig, CongestionState, DctcpParameters, Flags, Segment};
use harness::sender::{MSS, Sender, started, without_probe};

/// `config` with DCTCP. α begins at a quarter, and moves to a window's share by `gain` millionths.
fn with_dctcp(config: &Config, gain: u32) -> Config {
    let parameters = DctcpParameters { gain, alpha_initial: 250_000, window_min: 2 };
    Config {
        ecn: true,
        ecn_exact: true,
        congestion_control: CongestionConfig::Dctcp(parameters),
        ..config.clone()
    }
}

/// The threshold in segments.
fn threshold(sender: &Sender) -> u64 {
    sender.end.stats(&sender.config).ssthresh / MSS
}

// dctcp_react_to_loss: recovery and a timeout halve the window, whatever the share of marks.
#[test]
fn a_loss_halves_the_window_whatever_the_share_of_marks() {
    let mut sender = started(with_dctcp(&without_probe(), 0), 40_000);
    let (before, stamp) = (sender.window(), sender.stamp());
    sender.now += 40_000;
    sender.ack(10, stamp, &[(11, 14)]);
    assert_eq!(sender.state(), CongestionState::Recovery);
    assert_eq!(threshold(&sender), before / 2);

    let mut sender = started(with_dctcp(&without_probe(), 0), 40_000);
    let before = sender.window();
    assert_eq!(sender.wait(), [10]);
    assert_eq!(sender.state(), CongestionState::Loss);
    assert_eq!(threshold(&sender), before / 2);
}

// dctcp_react_to_loss, dctcp_ssthresh: a mark lowers the threshold by its share, and a recovery while the window falls halves it.
#[test]
fn recovery_after_a_mark_halves_the_window() {
    let mut sender = started(with_dctcp(&without_probe(), 0), 40_000);
    let (before, stamp) = (sender.window(), sender.stamp());
    sender.now += 40_000;
    sender.ack_with(11, stamp, &[], Flags::ECE);
    assert_eq!(sender.state(), CongestionState::Cwr);
    assert_eq!(threshold(&sender), before - before / 8);
    let lowered = sender.window();
    sender.ack(11, stamp, &[(12, 15)]);
    assert_eq!(sender.state(), CongestionState::Recovery);
    assert_eq!(threshold(&sender), lowered / 2);
}

// dctcp_update_alpha counts by tp->delivered and tp->delivered_ce: a segment counts with the ACK that SACKs it.
#[test]
fn marks_of_sacked_segments_count() {
    let mut sender = Sender::new(with_dctcp(&without_probe(), 1_000_000));
    assert_eq!(sender.write(10).len(), 10);
    sender.now = 40_000;
    // The first ACK ends an empty window.
    sender.ack(1, 1, &[]);
    assert_eq!(sender.end.stats(&sender.config).alpha_ppm, 0);
    for end in 3..=10 {
        sender.ack_with(1, 1, &[(2, end)], Flags::ECE);
    }
    let resent = sender.stamp();
    sender.now += 40_000;
    sender.ack(10, resent, &[]);
    // Eight of nine were marked. The ninth, sent again, was not. 910 parts of 1024.
    assert_eq!(sender.end.stats(&sender.config).alpha_ppm, 888_671);
}

// dctcp_ssthresh: a loss that a probe repaired lowers the threshold by the share of marks.
#[test]
fn a_loss_that_a_probe_repaired_costs_the_share_of_marks() {
    let mut sender = Sender::new(with_dctcp(&Config::linux_6(), 0));
    assert_eq!(sender.write(10).len(), 10);
    sender.now = 40_000;
    for acked in 1..=9 {
        sender.ack(acked, 1, &[]);
    }
    assert_eq!(sender.wait(), [9]);
    let stamp = sender.stamp();
    sender.now += 40_000;
    sender.ack(10, stamp, &[]);
    assert_eq!(sender.write(1), [10]);
    let (before, stamp) = (sender.window(), sender.stamp());
    sender.now += 40_000;
    sender.ack(11, stamp, &[]);
    assert_eq!(sender.state(), CongestionState::Open);
    assert_eq!(threshold(&sender), before - before / 8);
}

/// α of 1024 parts (`dctcp_alpha`).
fn alpha(sender: &Sender) -> u64 {
    (u64::from(sender.end.stats(&sender.config).alpha_ppm) * 1024).div_ceil(1_000_000)
}

/// The next request, with further flags.
fn request(sender: &mut Sender, ack: u64, flags: Flags) {
    let segment = Segment {
        ack: ack * MSS,
        window: 1 << 20,
        payload: 100,
        flags: Flags::ACK | flags,
        ..Segment::default()
    };
    sender.end.handle_segment(&sender.config, sender.time(), &segment);
}

// tcp_ack calls in_ack_event while nothing is outstanding, too, and dctcp_update_alpha takes that for a window without marks. Header
// prediction keeps plain requests from tcp_ack.
#[test]
fn an_echo_while_nothing_is_outstanding_is_a_window_without_marks() {
    for (flags, expected) in [(Flags::default(), 240), (Flags::ECE, 225)] {
        let mut sender = Sender::new(with_dctcp(&without_probe(), 62_500));
        assert_eq!(sender.write(1).len(), 1);
        sender.now = 40_000;
        sender.ack(1, 1, &[]);
        assert_eq!(alpha(&sender), 240, "256 less a sixteenth");
        request(&mut sender, 1, flags);
        assert_eq!(alpha(&sender), expected, "{flags:?}");
        assert_eq!(sender.state(), CongestionState::Open);
    }
}

// tcp_cwnd_reduction returns at an ACK that delivers nothing, such as the echo of a change of marks.
#[test]
fn an_echo_that_delivers_nothing_takes_no_step_of_the_reduction() {
    let mut sender = started(with_dctcp(&without_probe(), 0), 40_000);
    let (before, stamp) = (sender.window(), sender.stamp());
    sender.now += 40_000;
    sender.ack_with(10, stamp, &[], Flags::ECE);
    assert_eq!((sender.state(), sender.window()), (CongestionState::Cwr, before));
    for acked in 11..=14 {
        sender.ack_with(acked, stamp, &[], Flags::ECE);
    }
    assert!(sender.window() < before);
}

// tcp_send_loss_probe does not count to prr_out.
#[test]
fn a_probe_is_no_part_of_a_reduction() {
    let mut sender = Sender::new(with_dctcp(&Config::linux_6(), 0));
    assert_eq!(sender.write(10).len(), 10);
    sender.now = 40_000;
    sender.ack_with(1, 1, &[], Flags::ECE);
    assert_eq!(sender.state(), CongestionState::Cwr);
    assert_eq!(sender.wait(), [9]);
    sender.ack_with(2, 1, &[], Flags::ECE);
    // Eight segments and the probe's copy are outstanding. One segment may leave, as none has since the reduction began.
    assert_eq!(sender.window(), 9 + 1);
}

// tcp_may_raise_cwnd reads no mark: after a timeout the window grows with marked ACKs, too.
#[test]
fn the_window_grows_with_marked_acks_after_a_timeout() {
    let mut sender = started(with_dctcp(&without_probe(), 0), 40_000);
    assert_eq!(sender.wait(), [10]);
    let stamp = sender.stamp();
    sender.now += 40_000;
    sender.ack(11, stamp, &[]);
    sender.wait();
    // The second timeout after progress leaves a threshold of two segments.
    assert_eq!((sender.state(), threshold(&sender)), (CongestionState::Loss, 2));
    for acked in 12..=24 {
        let stamp = sender.stamp();
        sender.now += 40_000;
        sender.ack_with(acked, stamp, &[], Flags::ECE);
        assert_eq!(sender.state(), CongestionState::Loss);
    }
    assert!(sender.window() >= 4, "{}", sender.window());
}

// tcp_data_queue drops a duplicate before it looks at its mark.
#[test]
fn a_duplicate_changes_no_echo() {
    let mut receiver = Sender::new(with_dctcp(&Config::linux_6(), 0));
    let take = |receiver: &mut Sender, number: u64, mark: Flags| {
        let flags = Flags::ACK | Flags::ECT | mark;
        let data = Segment {
            offset: number * MSS,
            payload: MSS as u16,
            window: 1 << 20,
            flags,
            ..Segment::default()
        };
        let now = receiver.time();
        receiver.end.handle_segment(&receiver.config, now, &data);
        let mut acks = Vec::new();
        while let Some(ack) = receiver.end.poll_transmit(&receiver.config, now) {
            acks.push(ack.flags.contains(Flags::ECE));
        }
        acks
    };
    take(&mut receiver, 0, Flags::default());
    assert_eq!(take(&mut receiver, 1, Flags::CE).last(), Some(&true));
    assert_eq!(take(&mut receiver, 0, Flags::default()), [true], "the echo of the last new segment");
}
