//! Tear-down: FINs, resets, forged segments, TIME-WAIT, and a reader that stops.

use fanin_tcp::ConnectionState as S;
use fanin_tcp::{CloseReason, Config, Flags, Segment, TcpConnection};
use fanin_units::{Duration, Instant};

use crate::pair::{Pair, segment};

#[test]
fn the_side_that_closes_first_waits() {
    let mut pair = Pair::established();
    pair.send(0, 10_000);
    pair.close(0);
    assert_eq!(pair.ends[0].state(), S::FinWait1);
    pair.settle();
    assert_eq!(pair.states(), [S::FinWait2, S::CloseWait]);
    assert!(pair.ends[1].is_receive_closed());
    assert_eq!(pair.ends[1].received(), 10_000, "the FIN is no byte");
    // The other half still works.
    pair.send(1, 70_000);
    pair.settle();
    assert_eq!(pair.ends[0].received(), 70_000);
    pair.close(1);
    assert_eq!(pair.ends[1].state(), S::LastAck);
    pair.settle();
    assert_eq!(pair.states(), [S::TimeWait, S::Closed]);
    let before = pair.now;
    pair.finish();
    assert_eq!(pair.states(), [S::Closed; 2]);
    assert!(pair.now > before + Duration::from_secs(59), "two segment lifetimes");
    assert!(pair.ends.iter().all(|end| end.close_reason() == Some(CloseReason::Finished)));
}

#[test]
fn simultaneous_close() {
    let mut pair = Pair::established();
    pair.ends[0].close();
    pair.ends[1].close();
    pair.drain();
    pair.settle();
    assert_eq!(pair.states(), [S::TimeWait; 2]);
    for history in &pair.history {
        assert_eq!(history[history.len() - 3..], [S::FinWait1, S::Closing, S::TimeWait]);
    }
    pair.finish();
    assert_eq!(pair.states(), [S::Closed; 2]);
}

#[test]
fn fin_and_its_ack_in_one_segment() {
    let mut pair = Pair::established();
    pair.close(0);
    // The peer's FIN carries the ACK of ours: from FIN-WAIT-1 straight to TIME-WAIT.
    let fin = Segment { ts_value: 9, ..segment(0, 1, Flags::ACK | Flags::FIN | Flags::TIMESTAMP) };
    pair.inject(0, fin);
    assert_eq!(pair.ends[0].state(), S::TimeWait);
    assert_eq!((pair.last().ack, pair.last().offset), (1, 1), "it is acknowledged");
}

#[test]
fn a_fin_goes_with_the_last_data() {
    let mut pair = Pair::established();
    let before = pair.segments.len();
    pair.ends[0].send(1_000).unwrap();
    pair.close(0);
    assert_eq!(pair.segments.len(), before + 1);
    assert_eq!((pair.last().payload, pair.last().end()), (1_000, 1_001));
    assert!(pair.last().flags.contains(Flags::FIN));
}

#[test]
fn an_abort_resets_the_peer() {
    let mut pair = Pair::established();
    pair.ends[0].abort();
    pair.drain();
    pair.settle();
    assert_eq!(pair.states(), [S::Closed; 2]);
    let reasons = [pair.ends[0].close_reason(), pair.ends[1].close_reason()];
    assert_eq!(reasons, [Some(CloseReason::Aborted), Some(CloseReason::Reset)]);

    // A listener that is aborted in the middle of a handshake continues to listen.
    let mut pair = Pair::linux();
    pair.open();
    while pair.ends[1].state() != S::SynReceived {
        assert!(pair.step(Instant::FAR_FUTURE));
    }
    pair.inject(1, segment(0, 0, Flags::RST));
    assert_eq!(pair.ends[1].state(), S::Listen);
}

#[test]
fn an_abort_before_the_handshake_is_silent() {
    for opens in [TcpConnection::listen, TcpConnection::connect] {
        let mut end = TcpConnection::new(Config::linux_6());
        opens(&mut end).unwrap();
        end.abort();
        assert_eq!((end.state(), end.close_reason()), (S::Closed, Some(CloseReason::Aborted)));
        assert_eq!(end.poll_transmit(Instant::START), None);
        assert_eq!(end.poll_deadline(), None);
    }
}

#[test]
fn a_reset_ends_the_handshake_and_the_close() {
    // Simultaneous open: an active opener in SYN-RECEIVED is refused.
    let mut pair = Pair::linux();
    pair.ends[0].connect().unwrap();
    pair.drain();
    pair.inject(0, segment(0, 0, Flags::SYN));
    assert_eq!(pair.ends[0].state(), S::SynReceived);
    pair.inject(0, segment(0, 0, Flags::RST));
    assert_eq!(pair.ends[0].close_reason(), Some(CloseReason::Refused));

    // CLOSING: both FINs have been sent, and a RST loses nothing (RFC 9293 §3.10.7.4).
    let mut pair = Pair::established();
    pair.close(0);
    pair.inject(0, segment(0, 0, Flags::FIN | Flags::ACK));
    assert_eq!(pair.ends[0].state(), S::Closing);
    pair.inject(0, segment(1, 0, Flags::RST));
    assert_eq!(pair.ends[0].close_reason(), Some(CloseReason::Finished));

    // LAST-ACK.
    let mut pair = Pair::established();
    pair.close(0);
    pair.settle();
    pair.close(1);
    assert_eq!(pair.ends[1].state(), S::LastAck);
    pair.inject(1, segment(1, 0, Flags::RST));
    assert_eq!(pair.ends[1].close_reason(), Some(CloseReason::Finished));
}

// The RST of an abort lies beyond the peer's received data: a challenge ACK finds this out (RFC 5961 §3.2).
#[test]
fn an_abort_with_data_lost_before_it() {
    let mut pair = Pair::established();
    pair.lost = vec![pair.segments.len()];
    pair.send(0, 1_000);
    pair.ends[0].abort();
    pair.drain();
    pair.settle();
    assert_eq!(pair.ends[1].close_reason(), Some(CloseReason::Reset));
}

#[test]
fn forged_segments_are_challenged() {
    let ack = |pair: &Pair| pair.last().flags.contains(Flags::ACK) && pair.last().payload == 0;
    for (forged, is_challenged) in [
        // RFC 5961 §3.2: a RST in the window, but not at RCV.NXT; one outside.
        (segment(1_000, 0, Flags::RST), true),
        (segment(1 << 40, 0, Flags::RST), false),
        // §4.2: a SYN.
        (segment(0, 0, Flags::SYN), true),
        (segment(5_000, 0, Flags::SYN | Flags::ACK), true),
        // §5.2: an ACK of data that was never sent.
        (segment(0, 1_000, Flags::ACK), true),
        // No ACK at all, and data beyond the window (RFC 9293 §3.10.7.4).
        (Segment { payload: 100, ..segment(0, 0, Flags::NONE) }, false),
        (Segment { payload: 100, ..segment(1 << 40, 0, Flags::ACK) }, true),
    ] {
        let mut pair = Pair::established();
        let before = pair.segments.len();
        pair.inject(1, forged);
        assert_eq!(pair.states(), [S::Established; 2], "{forged:?}");
        assert_eq!(pair.segments.len() - before, usize::from(is_challenged), "{forged:?}");
        assert!(!is_challenged || ack(&pair));
        assert_eq!(pair.ends[1].received(), 0, "{forged:?}");
    }
    // §7: not more than one in half a second.
    let mut pair = Pair::established();
    let before = pair.segments.len();
    for _ in 0..100 {
        pair.inject(1, segment(0, 0, Flags::SYN));
    }
    assert_eq!(pair.segments.len(), before + 1);
    pair.inject(1, segment(0, 0, Flags::RST));
    assert_eq!(pair.ends[1].close_reason(), Some(CloseReason::Reset), "a RST at RCV.NXT counts");
}

// RFC 1337: neither a RST nor old data cuts TIME-WAIT short; a FIN prolongs it.
#[test]
fn time_wait_is_not_assassinated() {
    let mut pair = Pair::established();
    pair.close(0);
    pair.settle();
    pair.close(1);
    pair.settle();
    assert_eq!(pair.ends[0].state(), S::TimeWait);
    pair.inject(0, segment(1, 1, Flags::RST));
    assert_eq!(pair.ends[0].state(), S::TimeWait);
    pair.run(Duration::from_secs(40));
    let before = pair.segments.len();
    pair.ends[0].handle_segment(pair.now, &segment(0, 1, Flags::FIN | Flags::ACK));
    let ack = pair.ends[0].poll_transmit(pair.now).expect("the FIN is acknowledged again");
    assert_eq!((ack.ack, pair.segments.len()), (1, before));
    pair.run(Duration::from_secs(40));
    assert_eq!(pair.ends[0].state(), S::TimeWait, "from the start again");
    pair.run(Duration::from_secs(21));
    assert_eq!(pair.ends[0].state(), S::Closed);
}

#[test]
fn an_application_that_does_not_read_closes_the_window() {
    let mut pair = Pair::new([Config::linux_6(), Config { receive_window: 30_000, ..Config::linux_6() }]);
    pair.reads = false;
    pair.open();
    pair.settle();
    pair.send(0, 100_000);
    pair.close(0);
    pair.run(Duration::from_secs(100));
    assert!(pair.ends[1].readable() <= 30_000 + 1448 && pair.ends[1].readable() > 20_000);
    assert_eq!(pair.states(), [S::FinWait1, S::Established], "probed, but not given up");
    let mut read = 0;
    while !(pair.ends[1].is_receive_closed() && pair.ends[1].readable() == 0) {
        read += pair.ends[1].read(u64::MAX);
        pair.drain();
        assert!(pair.step(Instant::FAR_FUTURE));
    }
    assert_eq!(read + pair.ends[1].read(u64::MAX), 100_000);
}
