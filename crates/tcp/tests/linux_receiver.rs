//! Rules of Linux for the receiver of data, which the comparison with this machine's kernel has found (`tests/kernel`).

mod harness;

use fanin_tcp::{Config, DelayedAck, Flags, Segment};
use harness::sender::{MSS, Sender};

/// Sends one segment of data to `receiver` after `pause` us, by its number. Returns true if it is acknowledged at once.
fn acknowledges(receiver: &mut Sender, number: u64, pause: u64, flags: Flags) -> bool {
    receiver.now += pause;
    let data = Segment {
        offset: number * MSS,
        payload: MSS as u16,
        window: 1 << 20,
        flags: Flags::ACK | flags,
        ..Segment::default()
    };
    let now = receiver.time();
    receiver.end.handle_segment(&receiver.config, now, &data);
    receiver.end.poll_transmit(&receiver.config, now).is_some()
}

/// A receiver that has used its quick ACKs, so that it delays the ACK of a single segment; and the number of segments for
/// this.
fn receiver_without_quick_acks(config: Config) -> (Sender, u64) {
    let mut receiver = Sender::new(config);
    let mut number = 0;
    while acknowledges(&mut receiver, number, 10_000, Flags::ECT) {
        number += 1;
    }
    // The next one is the second, and acknowledges both.
    assert!(acknowledges(&mut receiver, number + 1, 100, Flags::ECT));
    (receiver, number + 2)
}

// tcp_send_dupack: the ACK of a segment below the last ACK is none of the quick ones that it starts.
#[test]
fn a_duplicate_starts_sixteen_more_quick_acks() {
    let (mut receiver, next) = receiver_without_quick_acks(Config::linux_6());
    assert!(acknowledges(&mut receiver, 0, 100, Flags::ECT), "a duplicate");
    let quick = (0..40).take_while(|&it| acknowledges(&mut receiver, next + it, 10_000, Flags::ECT)).count();
    assert_eq!(quick, 16);
}

// tcp_dec_quickack_mode since 6.6: data that acknowledges nothing new uses no quick ACK.
#[test]
fn data_that_acknowledges_nothing_uses_no_quick_ack() {
    let mut receiver = Sender::new(Config::linux_6());
    let before = (0..4).all(|number| acknowledges(&mut receiver, number, 10_000, Flags::ECT));
    assert!(before);
    // Later than an answer of an interactive session.
    receiver.now += 100_000;
    assert_eq!(receiver.write(8).len(), 8);
    let quick = (4..60).take_while(|&number| acknowledges(&mut receiver, number, 10_000, Flags::ECT)).count();
    let (_, all) = receiver_without_quick_acks(Config::linux_6());
    assert_eq!(quick as u64 + 4, all - 2);
}

// __tcp_ecn_check_ce: a segment without ECT is a retransmission, and starts two quick ACKs.
#[test]
fn a_segment_without_ect_starts_quick_acks() {
    let quick_after = |flags: Flags| {
        let (mut receiver, next) = receiver_without_quick_acks(Config { ecn: true, ..Config::linux_6() });
        acknowledges(&mut receiver, next, 10_000, flags)
    };
    assert!(quick_after(Flags::default()));
    assert!(!quick_after(Flags::ECT));
}

// tcp_ecn_accept_cwr: a segment that announces a reduction is acknowledged at once.
#[test]
fn an_announced_reduction_is_acknowledged_at_once() {
    let acknowledged = |flags: Flags| {
        let (mut receiver, next) = receiver_without_quick_acks(Config { ecn: true, ..Config::linux_6() });
        acknowledges(&mut receiver, next, 10_000, flags)
    };
    assert!(acknowledged(Flags::ECT | Flags::CWR));
    assert!(!acknowledged(Flags::ECT));
}

/// The window of the ACK that a full segment brings about; `number` counts segments from the stream's start.
fn window_after(receiver: &mut Sender, number: u64) -> u32 {
    let data = Segment {
        offset: number * MSS,
        payload: MSS as u16,
        window: 1 << 20,
        flags: Flags::ACK,
        ..Segment::default()
    };
    let now = receiver.time();
    receiver.end.handle_segment(&receiver.config, now, &data);
    receiver.end.poll_transmit(&receiver.config, now).unwrap().window
}

// tcp_data_queue_ofo: segments out of order widen the window as well.
#[test]
fn the_window_grows_while_a_gap_is_open() {
    let grown = |config: Config| {
        let mut receiver = Sender::new(config);
        let mut edges = Vec::new();
        for number in 1..=4 {
            edges.push(window_after(&mut receiver, number));
        }
        edges[3] - edges[0]
    };
    assert!(grown(Config::linux_6()) >= 5 * MSS as u32);
    assert_eq!(grown(Config { sack: false, ..Config::linux_6() }), 0, "duplicate ACKs must look alike");
    assert_eq!(grown(Config::linux_2_6_32()), 0);
}

// __tcp_select_window, tcp_grow_window: unread data takes space from the buffer, not from the window. Each full segment widens the
// window by two announced segments, until the last one and the window fill the buffer.
#[test]
fn unread_data_takes_space_from_the_buffer_only() {
    let mut receiver = Sender::new(Config { receive_window_initial: 44 * 1460, ..Config::linux_6() });
    receiver.end.set_reading(false);
    let mut windows = Vec::new();
    for number in 0..8 {
        windows.push(window_after(&mut receiver, number));
        receiver.end.read(&receiver.config, MSS);
        let now = receiver.time();
        assert_eq!(receiver.end.poll_transmit(&receiver.config, now), None);
    }
    // As this machine's kernel, whose buffer of 131 072 bytes holds 81 920 bytes of data.
    let rounded = |window: u32| window.next_multiple_of(128);
    let full = rounded(81_920 - MSS as u32);
    let expected = [67_200, 70_144, 73_088, 76_032, 78_848, full, full, full];
    assert_eq!(windows, expected);
}

/// A receiver without quick ACKs whose window no longer grows, and the number of segments received. The last one echoes a
/// timestamp of `round_trip` ticks before, zero for none.
fn settled_receiver(round_trip: u32) -> (Sender, u64) {
    let window = 64_240;
    let config = Config { receive_window: window, receive_window_initial: window, ..Config::linux_6() };
    let (mut receiver, number) = receiver_without_quick_acks(config);
    let data = Segment {
        offset: number * MSS,
        payload: MSS as u16,
        flags: Flags::ACK | Flags::TIMESTAMP,
        window: 1 << 20,
        ts_echo: if round_trip == 0 { 0 } else { receiver.stamp() - round_trip },
        ..Segment::default()
    };
    let now = receiver.time();
    receiver.end.handle_segment(&receiver.config, now, &data);
    assert!(acknowledges(&mut receiver, number + 1, 100, Flags::ECT), "the second segment");
    (receiver, number + 2)
}

// __tcp_ack_snd_check: of data above a hole three segments are acknowledged at once. The others wait for a twentieth of the
// receiver's round-trip time and 100 us, and 44 of them at most.
#[test]
fn acks_above_a_hole_are_joined() {
    for (round_trip, delay) in [(0, 100), (4, 300), (60, 1100)] {
        let (mut receiver, next) = settled_receiver(round_trip);
        let at_once: Vec<bool> =
            (1..=6).map(|above| acknowledges(&mut receiver, next + above, 10, Flags::ECT)).collect();
        assert_eq!(at_once, [true, true, true, false, false, false]);
        let first_joined = receiver.now - 20;
        assert_eq!(receiver.wait().len(), 1, "one ACK for all");
        assert_eq!(receiver.now - first_joined, delay, "{round_trip} ms");
    }
    let (mut receiver, next) = settled_receiver(60);
    let at_once: Vec<u64> =
        (1..=60).filter(|above| acknowledges(&mut receiver, next + above, 1, Flags::ECT)).collect();
    assert_eq!(at_once, [1, 2, 3, 48]);
}

// tcp_event_ack_sent: an ACK for another reason is one for those that wait, too.
#[test]
fn filling_the_hole_ends_the_wait() {
    let (mut receiver, next) = settled_receiver(0);
    for above in 1..=5 {
        acknowledges(&mut receiver, next + above, 10, Flags::ECT);
    }
    assert!(acknowledges(&mut receiver, next, 10, Flags::ECT), "the hole is filled");
    receiver.now += 1000;
    let now = receiver.time();
    receiver.end.handle_deadline(&receiver.config, now);
    assert!(receiver.sent().is_empty(), "nothing waits");
}

// Each ACK counts without SACK, or with TCP_QUICKACK, and joined ones are younger than Linux 2.6.32.
#[test]
fn without_sack_or_delays_no_ack_waits() {
    let without = Config { sack: false, ..Config::linux_6() };
    for config in [without, Config::linux_2_6_32()] {
        let (mut receiver, next) = receiver_without_quick_acks(config);
        assert!((1..=20).all(|above| acknowledges(&mut receiver, next + above, 10, Flags::ECT)));
    }
    let mut quick = Sender::new(Config { delayed_ack: DelayedAck::Off, ..Config::linux_6() });
    assert!((0..40).chain(41..80).all(|number| acknowledges(&mut quick, number, 10, Flags::ECT)));
}
