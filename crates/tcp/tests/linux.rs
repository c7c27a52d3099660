//! Rules of Linux that the comparison with this machine's kernel has found (`tests/kernel`): one sender, and hand-made ACKs.

mod harness;

use fanin_tcp::{Config, CongestionConfig, CongestionState, DelayedAck, Flags};
use fanin_units::Duration;
use harness::sender::{MSS, Sender, started, without_probe};

// RFC 5682 §3.1 step 2b, and step 3a.
#[test]
fn after_a_timeout_new_data_tests_whether_it_was_needless() {
    let mut sender = started(without_probe(), 40_000);
    let first_new = sender.window() + 10;
    assert_eq!(sender.wait(), [10]);
    let stamp = sender.stamp();
    sender.now += 40_000;
    assert_eq!(sender.ack(11, stamp, &[]), [first_new, first_new + 1]);
    sender.now += 40_000;
    // The new data arrives, and nothing before it: the loss was real.
    assert_eq!(sender.ack(11, stamp, &[(first_new, first_new + 1)])[0], 11);
    assert_eq!(sender.state(), CongestionState::Loss);
}

// tcp_enter_loss tests each timeout of a retransmission that nothing has followed (icsk_retransmits).
#[test]
fn a_repeated_timeout_is_tested_as_well() {
    let mut sender = started(without_probe(), 40_000);
    let first_new = sender.window() + 10;
    assert_eq!((sender.wait(), sender.wait()), (vec![10], vec![10]));
    let stamp = sender.stamp();
    sender.now += 40_000;
    assert_eq!(sender.ack(11, stamp, &[]), [first_new, first_new + 1]);
}

#[test]
fn after_a_timeout_an_original_proves_it_needless() {
    let mut sender = started(without_probe(), 40_000);
    let window = sender.window();
    let before = sender.stamp();
    assert_eq!(sender.wait(), [10]);
    sender.now += 10_000;
    sender.ack(12, before, &[]);
    assert_eq!((sender.state(), sender.window() >= window), (CongestionState::Open, true));
}

// tcp_clean_rtx_queue: without SACK an ACK of a retransmission proves nothing about the originals that it covers.
#[test]
fn without_sack_a_mixed_ack_proves_nothing() {
    let state_after = |sack: bool| {
        let mut sender = started(Config { sack, ..without_probe() }, 40_000);
        sender.wait();
        sender.now += 10_000;
        let stamp = sender.stamp();
        sender.ack(12, stamp, &[]);
        sender.state()
    };
    assert_eq!(state_after(true), CongestionState::Open);
    assert_eq!(state_after(false), CongestionState::Loss);
}

// tcp_identify_packet_loss finds a retransmission lost: tcp_fastretrans_alert enters Recovery from Loss.
#[test]
fn a_lost_retransmission_after_a_timeout_begins_recovery() {
    let mut sender = started(without_probe(), 40_000);
    assert_eq!(sender.wait(), [10]);
    sender.now += 40_000;
    let new = sender.ack(11, sender.stamp(), &[]);
    sender.now += 40_000;
    let repaired = sender.ack(11, sender.stamp(), &[(new[0], new[0] + 1)]);
    assert_eq!(repaired[0], 11);
    // A later transmission arrives more than a reordering window later: 11 is lost again.
    sender.now += 40_000;
    let repaired = sender.ack(11, sender.stamp(), &[(new[0], new[0] + 2)]);
    let last = *repaired.last().unwrap();
    sender.now += 60_000;
    sender.ack(11, sender.stamp(), &[(last, last + 1), (new[0], new[0] + 2)]);
    assert_eq!(sender.state(), CongestionState::Recovery);
}

// tcp_timeout_mark_lost: a segment sent within the last round trip is still on its way.
#[test]
fn a_timeout_leaves_out_what_was_just_sent() {
    let mut sender = Sender::new(without_probe());
    sender.write(12);
    sender.now = 40_000;
    let released: Vec<u64> = (1..=10).flat_map(|acked| sender.ack(acked, 1, &[])).collect();
    assert_eq!(released, [10, 11]);
    sender.now = sender.end.poll_deadline().get() / 1_000_000 - 30_000;
    assert_eq!(sender.write(1), [12]);
    assert_eq!(sender.wait(), [10]);
    let board = sender.end.scoreboard(&sender.config);
    assert_eq!((board.outstanding, board.lost), (3, 2));
}

// tcp_try_undo_partial: the first hole was late, not lost.
#[test]
fn a_late_segment_undoes_the_reduction() {
    let mut sender = started(without_probe(), 40_000);
    let window = sender.window();
    let first_flight = sender.stamp();
    sender.now += 40_000;
    for end in 12..=14 {
        sender.ack(10, first_flight, &[(11, end)]);
    }
    assert_eq!(sender.state(), CongestionState::Recovery);
    sender.now += 1_000;
    // The original of 10 has arrived, and the echo is older than the retransmission.
    sender.ack(14, first_flight, &[]);
    assert!(sender.window() >= window, "{}", sender.window());
    assert_ne!(sender.state(), CongestionState::Recovery);
    assert_eq!(sender.end.scoreboard(&sender.config).reordering_seen, 1);
}

// tcp_fastretrans_alert: an ACK that undoes a recovery and shows another loss begins the next one.
#[test]
fn an_undone_recovery_begins_again_with_the_same_ack() {
    let mut sender = started(without_probe(), 40_000);
    let stamp = sender.stamp();
    sender.now += 40_000;
    assert_eq!(sender.ack(10, stamp, &[(11, 14)])[0], 10);
    let resent = sender.stamp();
    sender.now += 40_000;
    // The original of 10 arrived as well, and 14 and 15 are missing.
    let sent = sender.ack(14, resent, &[(10, 11), (16, 20)]);
    assert_eq!(sender.end.stats(&sender.config).fast_retransmits, 2);
    assert_eq!((sender.state(), sent[0]), (CongestionState::Recovery, 14));
}

// tcp_ecn_withdraw_cwr: a reduction that was undone is not announced to the receiver.
#[test]
fn an_undone_reduction_is_not_announced() {
    let announced = |is_late: bool| {
        let mut sender = started(Config { ecn: true, ..without_probe() }, 40_000);
        let first_flight = sender.stamp();
        sender.now += 40_000;
        for end in 12..=14 {
            assert!(sender.ack(10, first_flight, &[(11, end)]).iter().all(|&number| number <= 30));
        }
        sender.now += 1_000;
        sender.has_announced = false;
        let echo = if is_late { first_flight } else { sender.stamp() };
        sender.ack(30, echo, &[]);
        sender.has_announced
    };
    assert!(announced(false));
    assert!(!announced(true));
}

/// The time until segment 30 counts as lost, after a SACK of 31 with all before 30 acknowledged.
fn wait_for_reordering(sender: &mut Sender) -> u64 {
    let stamp = sender.stamp();
    sender.now += 40_000;
    sender.ack(30, stamp, &[(31, 32)]);
    let begin = sender.now;
    assert_eq!(sender.wait()[0], 30);
    sender.now - begin
}

// tcp_rack_update_reo_wnd: a DSACK widens the reordering window for the next recoveries as well.
#[test]
fn the_wider_reordering_window_outlasts_the_recovery() {
    let wait_of = |with_report: bool| {
        let mut sender = started(without_probe(), 40_000);
        let first_flight = sender.stamp();
        sender.now += 40_000;
        for end in 12..=14 {
            sender.ack(10, first_flight, &[(11, end)]);
        }
        sender.now += 1_000;
        sender.ack(14, first_flight, &[]);
        sender.now += 1_000;
        let report: &[(u64, u64)] = if with_report { &[(10, 11)] } else { &[] };
        sender.ack(30, first_flight, report);
        wait_for_reordering(&mut sender)
    };
    let (narrow, wide) = (wait_of(false), wait_of(true));
    // A quarter of the least round trip more.
    assert!((8_000..=12_000).contains(&(wide - narrow)), "{narrow} {wide}");
}

// tcp_dsack_seen: a DSACK widens the window only if reordering was seen.
#[test]
fn a_reported_copy_widens_no_window_where_nothing_was_reordered() {
    let wait_of = |with_report: bool| {
        let mut sender = started(without_probe(), 40_000);
        sender.now += 40_000;
        let stamp = sender.stamp();
        let report: &[(u64, u64)] = if with_report { &[(9, 10)] } else { &[] };
        sender.ack(10, stamp, report);
        sender.now += 1_000;
        sender.ack(30, stamp, &[]);
        wait_for_reordering(&mut sender)
    };
    assert_eq!(wait_of(true), wait_of(false));
}

// tcp_enter_loss announces the reduction (tcp_ecn_queue_cwr).
#[test]
fn a_timeout_is_announced() {
    let mut sender = started(Config { ecn: true, ..without_probe() }, 40_000);
    sender.has_announced = false;
    assert_eq!(sender.wait(), [10]);
    assert!(!sender.has_announced, "a retransmission announces nothing");
    let stamp = sender.stamp();
    sender.now += 40_000;
    sender.ack(30, stamp, &[]);
    assert!(sender.has_announced);
}

// tcp_init_cwnd_reduction sets the end of the episode: recovery that begins during a reduction ends with it.
#[test]
fn recovery_within_a_reduction_ends_with_it() {
    let state_of = |is_marked: bool| {
        let mut sender = started(Config { ecn: true, ..without_probe() }, 40_000);
        let stamp = sender.stamp();
        sender.now += 40_000;
        sender.ack_with(11, stamp, &[], if is_marked { Flags::ECE } else { Flags::default() });
        let is_reducing = sender.state() == CongestionState::Cwr;
        assert_eq!(is_reducing, is_marked);
        let end = 30;
        for last in 13..=15 {
            sender.ack(11, stamp, &[(12, last)]);
        }
        // Data that was sent after the mark.
        while sender.highest <= end {
            let last = sender.highest;
            sender.now += 100;
            sender.ack(11, stamp, &[(12, last)]);
        }
        assert_eq!(sender.state(), CongestionState::Recovery);
        sender.ack(end, sender.stamp(), &[]);
        sender.state()
    };
    assert_eq!(state_of(false), CongestionState::Recovery);
    assert_eq!(state_of(true), CongestionState::Open);
}

/// A sender with the state CWR and nothing outstanding.
fn marked(config: Config) -> Sender {
    let mut sender = Sender::new(config);
    assert_eq!(sender.write(8).len(), 8);
    sender.now += 40_000;
    sender.ack_with(8, 1, &[], Flags::ECE);
    sender
}

// tcp_fastretrans_alert: CWR is held until something above its end is acknowledged. Then the window is the threshold.
#[test]
fn a_reduction_is_held_until_later_data_is_acknowledged() {
    let mut sender = marked(Config { ecn: true, ..without_probe() });
    assert_eq!(sender.state(), CongestionState::Cwr);
    let (lowered, threshold) = (sender.window(), sender.end.stats(&sender.config).ssthresh / MSS);
    assert!(lowered <= threshold);
    let stamp = sender.stamp();
    assert!(!sender.write(4).is_empty());
    assert!(sender.has_announced);
    sender.now += 40_000;
    sender.ack(9, stamp, &[]);
    assert_eq!(sender.state(), CongestionState::Open);
    assert_eq!(sender.window(), threshold);
}

// tcp_ack, no_queue: a mark that comes while nothing is outstanding reduces nothing.
#[test]
fn a_mark_without_outstanding_data_is_ignored() {
    let mut sender = Sender::new(Config { ecn: true, ..without_probe() });
    assert_eq!(sender.write(4).len(), 4);
    sender.now += 40_000;
    sender.ack(4, 1, &[]);
    sender.ack_with(4, 1, &[], Flags::ECE);
    assert_eq!(sender.state(), CongestionState::Open);
}

// tcp_newreno_mark_lost compares with the degree that the connection has learnt.
#[test]
fn without_sack_the_learnt_degree_of_reordering_counts() {
    let mut sender = started(Config { sack: false, ..without_probe() }, 40_000);
    let first_flight = sender.stamp();
    sender.now += 40_000;
    for _ in 0..3 {
        sender.ack(10, first_flight, &[]);
    }
    assert_eq!(sender.state(), CongestionState::Recovery);
    sender.now += 1_000;
    sender.ack(16, first_flight, &[]);
    assert_eq!(sender.end.scoreboard(&sender.config).reordering, 6);
    for _ in 0..5 {
        sender.ack(16, first_flight, &[]);
        assert_eq!(sender.state(), CongestionState::Disorder);
    }
    sender.ack(16, first_flight, &[]);
    assert_eq!(sender.state(), CongestionState::Recovery);
}

// tcp_tso_should_defer since 6.18: no burst waits for an ACK that is more than 1 ms away.
#[test]
fn no_burst_waits_for_a_far_ack() {
    let released = |age: u64| {
        let mut sender = started(without_probe(), 60_000);
        let first_flight = sender.stamp();
        sender.now += age;
        sender.ack(10, first_flight, &[(12, 13)]);
        sender.now += 100;
        sender.ack(10, first_flight, &[(12, 14)]).len()
    };
    assert_eq!(released(40_000), 1, "20 ms before the round trip is over");
    assert_eq!(released(59_800), 0, "at the end of the round trip");
}

// tcp_tso_should_defer compares bytes with a third of the window: one segment of four waits. A last segment does not.
#[test]
fn less_than_a_third_of_the_window_waits() {
    let released = |initial_window: u32, unsent: u64| {
        let mut sender = Sender::new(Config { initial_window, ..without_probe() });
        let first = u64::from(initial_window);
        // The window doubles within a round trip.
        assert_eq!(sender.write(3 * first + unsent).len(), first as usize);
        sender.now = 900;
        for acked in 1..=first {
            sender.ack(acked, 1, &[]);
        }
        assert_eq!((sender.highest, sender.window()), (3 * first, 2 * first));
        // Shortly before the next ACK is due.
        sender.now += 880;
        sender.ack(first, 1, &[(first + 1, first + 2)]).len()
    };
    assert_eq!(released(1, 20), 1, "half of the window");
    assert_eq!(released(2, 20), 0, "a quarter");
    assert_eq!(released(2, 1), 1, "all that is left, in one segment");
    assert_eq!(released(2, 2), 0, "the last buffer waits, too");
}

// tcp_rto_min_us is kept in ticks, rounded up; tcp_delack_max lies one tick below (since 6.11).
#[test]
fn a_least_timeout_bounds_delayed_acks() {
    let with = |mut config: Config, micros: u64| {
        config.set_rto_min(Duration::from_micros(micros));
        let DelayedAck::Linux { max } = config.delayed_ack else { panic!("another delay") };
        (config.rto.min.get(), config.probe_delayed_ack.get(), max.get())
    };
    let ms = |millis: u64| Duration::from_millis(millis).get();
    assert_eq!(with(Config::linux_6(), 10_000), (ms(12), ms(12), ms(8)));
    assert_eq!(with(Config::linux_6(), 1_000), (ms(4), ms(4), ms(4)));
    assert_eq!(with(Config::linux_6(), 200_000), (ms(200), ms(200), ms(196)));
    assert_eq!(with(Config::linux_2_6_32(), 10_000), (ms(10), ms(10), ms(200)));
    // The least one may exceed the largest by its rounding alone.
    let mut narrow = Config::linux_6();
    narrow.rto.max = Duration::from_millis(10);
    narrow.set_rto_min(Duration::from_millis(10));
    let narrow = Sender::new(narrow);
    assert_eq!(narrow.end.stats(&narrow.config).rto, Duration::from_millis(12));
}

// tcp_enter_loss: after progress a timeout reduces the threshold again, even before the first one's data is acknowledged.
#[test]
fn a_timeout_after_progress_reduces_again() {
    let mut sender = started(Config { sack: false, ..without_probe() }, 40_000);
    assert_eq!(sender.wait(), [10]);
    let threshold = sender.end.stats(&sender.config).ssthresh;
    let stamp = sender.stamp();
    sender.wait();
    assert_eq!(sender.end.stats(&sender.config).ssthresh, threshold, "no progress");
    sender.now += 40_000;
    sender.ack(11, stamp, &[]);
    sender.wait();
    assert_eq!(sender.end.stats(&sender.config).ssthresh, 2 * MSS);
    // Two acknowledged segments open the window by slow start to the threshold only.
    sender.now += 40_000;
    let stamp = sender.stamp();
    sender.ack(13, stamp, &[]);
    assert_eq!(sender.window(), 2);
}

fn bbr() -> Config {
    Config { congestion_control: CongestionConfig::Bbr, ..without_probe() }
}

// tcp_xmit_retransmit_queue asks tcp_pacing_check before each buffer, the first included. It sends a lost buffer at once.
#[test]
fn pacing_delays_a_fast_retransmission() {
    let mut sender = started(bbr(), 40_000);
    let mut last = sender.wait();
    while sender.end.sent() < 24 * MSS {
        last = sender.wait();
    }
    assert_eq!(last.len(), 2, "bursts of two");
    let (lost, next) = (last[0], sender.end.sent() / MSS);
    let stamp = sender.stamp();
    // Until its paced time no further burst leaves.
    sender.now += 10;
    assert!(sender.ack(lost, stamp, &[]).is_empty());
    let paced = sender.wait();
    assert_eq!(paced, [next, next + 1]);
    let spacing = sender.now;
    // Both segments of the burst before are missing, and this burst arrives just after it has left.
    sender.now += 10;
    let held = sender.ack(lost, stamp, &[(next, next + 2)]);
    assert_eq!((sender.state(), held.is_empty()), (CongestionState::Recovery, true), "{held:?}");
    assert_eq!(sender.wait(), [lost, lost + 1]);
    assert!(sender.now - spacing > 1_000, "{} us", sender.now - spacing);
}

// tcp_is_non_sack_preventing_reopen: without SACK recovery lasts until data above its end is acknowledged, and duplicates release
// nothing then.
#[test]
fn without_sack_recovery_outlasts_its_end() {
    let mut sender = started(Config { sack: false, ..without_probe() }, 40_000);
    let first_flight = sender.stamp();
    sender.now += 40_000;
    for _ in 0..2 {
        sender.ack(10, first_flight, &[]);
    }
    let end = sender.end.sent() / MSS;
    sender.ack(10, first_flight, &[]);
    assert_eq!(sender.state(), CongestionState::Recovery);
    let stamp = sender.stamp();
    sender.now += 40_000;
    sender.ack(end, stamp, &[]);
    assert_eq!(sender.state(), CongestionState::Recovery);
    for _ in 0..4 {
        assert!(sender.ack(end, stamp, &[]).is_empty());
    }
    assert_eq!(sender.state(), CongestionState::Recovery);
    sender.now += 40_000;
    let stamp = sender.stamp();
    sender.ack(end + 1, stamp, &[]);
    assert_eq!(sender.state(), CongestionState::Open);
}

// tcp_process_loss: after a timeout duplicates count only if they may come from new data.
#[test]
fn without_sack_duplicates_after_a_timeout_release_nothing() {
    let mut sender = started(Config { sack: false, ..without_probe() }, 40_000);
    assert_eq!(sender.wait(), [10]);
    sender.now += 1_000;
    let stamp = sender.stamp();
    for _ in 0..5 {
        assert!(sender.ack(10, stamp, &[]).is_empty());
    }
    assert_eq!(sender.state(), CongestionState::Loss);
}
