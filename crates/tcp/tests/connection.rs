//! Connections from SYN to TIME-WAIT: each transition of RFC 9293, the loss of each segment of set-up and tear-down, and a
//! channel that loses, reorders and duplicates.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fanin_tcp::ConnectionState as S;
use fanin_tcp::{
    CloseReason, Config, ConnectionLimits, Flags, PROFILES, Segment, SynOptions, TcpConnection, WrongState,
};
use fanin_units::{Duration, Instant};
use proptest::prelude::*;

const DELAY: Duration = Duration::from_micros(100);

/// A reproducible random number generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

/// Two connections and the channel between them.
struct Pair {
    ends: [TcpConnection; 2],
    now: Instant,
    in_flight: BinaryHeap<Reverse<(Instant, usize)>>,
    segments: Vec<(usize, Segment)>,
    /// States that each end went through.
    history: [Vec<S>; 2],
    /// Numbers of segments (counted from 0) to drop.
    lost: Vec<usize>,
    /// Chances in 1/1000.
    loss: u64,
    duplication: u64,
    reordering: u64,
    random: Random,
    /// Applications read as soon as something is there.
    reads: bool,
}

impl Pair {
    fn new(configs: [Config; 2]) -> Self {
        let ends = configs.map(TcpConnection::new);
        Self {
            history: [vec![S::Closed], vec![S::Closed]],
            ends,
            now: Instant::START,
            in_flight: BinaryHeap::new(),
            segments: Vec::new(),
            lost: Vec::new(),
            loss: 0,
            duplication: 0,
            reordering: 0,
            random: Random(1),
            reads: true,
        }
    }

    fn linux() -> Self {
        Self::new([Config::linux_6(), Config::linux_6()])
    }

    /// End 0 connects to end 1.
    fn open(&mut self) {
        self.ends[1].listen().unwrap();
        self.ends[0].connect().unwrap();
        self.drain();
    }

    fn established() -> Self {
        let mut pair = Self::linux();
        pair.open();
        pair.settle();
        assert_eq!(pair.states(), [S::Established; 2]);
        pair
    }

    fn states(&self) -> [S; 2] {
        [self.ends[0].state(), self.ends[1].state()]
    }

    /// Notes the states, reads, and puts on the channel what the ends send.
    fn drain(&mut self) {
        for side in 0..2 {
            self.ends[side].check();
            if self.reads {
                self.ends[side].read(u64::MAX);
            }
            while let Some(segment) = self.ends[side].poll_transmit(self.now) {
                let number = self.segments.len();
                self.segments.push((1 - side, segment));
                let copies = 1 + usize::from(self.random.below(1000) < self.duplication);
                for _ in 0..copies {
                    if self.lost.contains(&number) || self.random.below(1000) < self.loss {
                        continue;
                    }
                    let is_late = self.random.below(1000) < self.reordering;
                    let extra = if is_late { self.random.below(20 * DELAY.get()) } else { 0 };
                    let arrival = self.now + DELAY + Duration::new(extra);
                    self.in_flight.push(Reverse((arrival, number)));
                }
                assert!(self.segments.len() < 1_000_000, "a connection sends without end");
            }
            let state = self.ends[side].state();
            if self.history[side].last() != Some(&state) {
                self.history[side].push(state);
            }
        }
    }

    fn step(&mut self, until: Instant) -> bool {
        let arrival = self.in_flight.peek().map(|next| next.0.0);
        let deadlines = [self.ends[0].poll_deadline(), self.ends[1].poll_deadline()];
        let Some(next) = [arrival, deadlines[0], deadlines[1]].into_iter().flatten().min() else {
            return false;
        };
        if next > until {
            return false;
        }
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let Reverse((_, number)) = self.in_flight.pop().unwrap();
            let (side, segment) = self.segments[number];
            self.ends[side].handle_segment(self.now, &segment);
        } else {
            let side = usize::from(deadlines[0] != Some(next));
            self.ends[side].handle_deadline(self.now);
        }
        self.drain();
        true
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// Ten round trips: without loss everything settles.
    fn settle(&mut self) {
        self.run(Duration::new(20 * DELAY.get()));
    }

    /// Until nothing is pending, TIME-WAIT included.
    fn finish(&mut self) {
        while self.step(Instant::FAR_FUTURE) {}
    }

    fn close(&mut self, side: usize) {
        self.ends[side].close();
        self.drain();
    }

    fn send(&mut self, side: usize, bytes: u64) {
        self.ends[side].send(bytes).unwrap();
        self.drain();
    }

    fn inject(&mut self, side: usize, segment: Segment) {
        self.ends[side].handle_segment(self.now, &segment);
        self.drain();
    }

    fn last(&self) -> Segment {
        self.segments.last().expect("a segment").1
    }
}

fn segment(offset: u64, ack: u64, flags: Flags) -> Segment {
    Segment { offset, ack, window: 60_000, flags, ..Segment::default() }
}

#[test]
fn three_way_handshake() {
    let mut pair = Pair::linux();
    pair.open();
    assert_eq!(pair.states(), [S::SynSent, S::Listen]);
    pair.settle();
    assert_eq!(pair.states(), [S::Established; 2]);
    let flags: Vec<Flags> = pair.segments.iter().map(|(_, segment)| segment.flags).collect();
    let stamped = Flags::TIMESTAMP;
    assert_eq!(flags, [Flags::SYN | stamped, Flags::SYN | Flags::ACK | stamped, Flags::ACK | stamped]);
    for end in &pair.ends {
        assert_eq!(end.config(), &Config::linux_6());
        assert_eq!(end.endpoint().stats(end.config()).srtt, Duration::from_micros(200), "the first sample");
    }
}

#[test]
fn data_written_before_the_handshake_follows_it() {
    let mut pair = Pair::linux();
    pair.open();
    pair.send(0, 5_000);
    assert_eq!(pair.segments.len(), 1, "only the SYN");
    pair.settle();
    assert_eq!(pair.ends[1].received(), 5_000);
    assert_eq!(pair.segments[2].1.payload, 1448, "the ACK of the handshake carries data");
}

#[test]
fn ends_agree_on_what_both_can() {
    let plain = Config::ns3_newreno();
    let full = Config { ecn: true, ..Config::linux_6() };
    for configs in [[plain.clone(), full.clone()], [full, plain]] {
        let mut pair = Pair::new(configs);
        pair.open();
        pair.send(0, 20_000);
        pair.settle();
        for end in &pair.ends {
            let config = end.config();
            assert_eq!((config.mss, config.timestamps, config.sack, config.ecn), (1460, false, false, false));
        }
        assert_eq!(pair.ends[1].received(), 20_000);
    }
    let with_ecn = Config { ecn: true, ..Config::linux_6() };
    let mut pair = Pair::new([with_ecn.clone(), with_ecn]);
    pair.open();
    pair.settle();
    assert!(pair.ends.iter().all(|end| end.config().ecn));
    assert!(pair.segments[0].1.flags.contains(Flags::ECE | Flags::CWR));
    assert!(!pair.segments[1].1.flags.contains(Flags::CWR), "ECE alone agrees");
}

#[test]
fn simultaneous_open() {
    let mut pair = Pair::linux();
    pair.ends[0].connect().unwrap();
    pair.ends[1].connect().unwrap();
    pair.drain();
    pair.settle();
    assert_eq!(pair.states(), [S::Established; 2]);
    for history in &pair.history {
        assert_eq!(history, &[S::Closed, S::SynSent, S::SynReceived, S::Established]);
    }
    pair.send(0, 3_000);
    pair.send(1, 4_000);
    pair.settle();
    assert_eq!((pair.ends[1].received(), pair.ends[0].received()), (3_000, 4_000));
}

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
fn close_before_anything_is_established() {
    let mut pair = Pair::linux();
    pair.ends[0].connect().unwrap();
    pair.ends[0].close();
    pair.ends[1].listen().unwrap();
    pair.ends[1].close();
    assert_eq!(pair.states(), [S::Closed; 2]);

    // In SYN-RECEIVED the FIN waits for the handshake.
    let mut pair = Pair::linux();
    pair.open();
    while pair.ends[1].state() != S::SynReceived {
        assert!(pair.step(Instant::FAR_FUTURE));
    }
    pair.close(1);
    pair.settle();
    assert_eq!(pair.states(), [S::CloseWait, S::FinWait2]);
    assert_eq!(pair.history[1], [S::Closed, S::Listen, S::SynReceived, S::FinWait1, S::FinWait2]);
}

#[test]
fn a_syn_to_a_closed_port_is_refused() {
    let mut pair = Pair::linux();
    pair.ends[0].connect().unwrap();
    pair.drain();
    pair.settle();
    assert_eq!(pair.ends[0].state(), S::Closed);
    assert_eq!(pair.ends[0].close_reason(), Some(CloseReason::Refused));
    assert!(pair.last().flags.contains(Flags::RST | Flags::ACK));
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

    // A listener that was aborted in the handshake's middle listens on.
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

    // CLOSING: both FINs have been sent, and nothing is lost by a RST (RFC 9293 §3.10.7.4).
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

#[test]
fn a_second_syn_gets_a_second_answer() {
    let mut end = TcpConnection::new(Config::linux_6());
    end.listen().unwrap();
    let syn = segment(0, 0, Flags::SYN);
    for _ in 0..2 {
        end.handle_segment(Instant::START, &syn);
        let answer = end.poll_transmit(Instant::START).expect("a SYN-ACK");
        assert!(answer.flags.contains(Flags::SYN | Flags::ACK));
        assert_eq!(end.state(), S::SynReceived);
    }
    // An ACK of bytes that were never sent does not establish it.
    end.handle_segment(Instant::START, &segment(0, 5, Flags::ACK));
    let reset = end.poll_transmit(Instant::START).expect("a RST");
    assert_eq!((reset.offset, reset.flags, end.state()), (5, Flags::RST, S::SynReceived));
}

// The abort's RST lies beyond what the peer has received: a challenge ACK finds it out (RFC 5961 §3.2).
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
        // §5.2: an ACK of what was not sent.
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

#[test]
fn stray_segments_before_the_handshake() {
    let mut pair = Pair::linux();
    pair.ends[1].listen().unwrap();
    pair.inject(1, segment(0, 0, Flags::RST));
    assert!(pair.segments.is_empty());
    pair.inject(1, segment(7, 9, Flags::ACK));
    assert_eq!((pair.last().offset, pair.last().flags), (9, Flags::RST));
    assert_eq!(pair.ends[1].state(), S::Listen);

    // In SYN-SENT an ACK of something else is answered with a RST, and a RST needs an ACK to count.
    let mut pair = Pair::linux();
    pair.ends[0].connect().unwrap();
    pair.drain();
    pair.inject(0, segment(0, 5, Flags::SYN | Flags::ACK));
    assert_eq!((pair.last().offset, pair.last().flags), (5, Flags::RST));
    pair.inject(0, segment(0, 0, Flags::RST));
    pair.inject(0, segment(0, 0, Flags::ACK));
    assert_eq!(pair.ends[0].state(), S::SynSent);
    pair.inject(0, segment(0, 0, Flags::RST | Flags::ACK));
    assert_eq!(pair.ends[0].close_reason(), Some(CloseReason::Refused));
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
fn calls_in_the_wrong_state() {
    let mut end = TcpConnection::new(Config::linux_6());
    assert_eq!(end.send(1), Err(WrongState { got: S::Closed, call: "send" }));
    end.listen().unwrap();
    assert_eq!(end.listen(), Err(WrongState { got: S::Listen, call: "listen" }));
    end.connect().unwrap();
    assert_eq!(end.connect().unwrap_err().to_string(), "cannot connect in state SynSent");
    end.send(10).unwrap();
    end.close();
    assert!(end.send(1).is_err());
    end.connect().unwrap();
    assert_eq!(end.endpoint().written(), 0, "a new connection");
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

#[test]
fn a_silent_peer_is_given_up() {
    let limits = ConnectionLimits { syn_retries_max: 3, retries_max: 4, ..ConnectionLimits::default() };
    let mut end = TcpConnection::with_limits(Config::linux_6(), limits);
    end.connect().unwrap();
    let mut now = Instant::START;
    let mut syns = 0;
    loop {
        syns += std::iter::from_fn(|| end.poll_transmit(now)).count();
        let Some(next) = end.poll_deadline() else { break };
        now = next;
        end.handle_deadline(now);
    }
    assert_eq!((syns, end.close_reason()), (4, Some(CloseReason::TimedOut)));
    // 1 + 2 + 4 + 8 seconds, and ticks of the timer wheel.
    assert!(now > Instant::START + Duration::from_secs(15), "{now}");

    let mut pair = Pair::established();
    pair.loss = 1000;
    pair.send(0, 1_000);
    pair.finish();
    assert_eq!(pair.ends[0].close_reason(), Some(CloseReason::TimedOut));
    assert_eq!(pair.ends[1].state(), S::Established, "it has nothing to send");
}

/// Opens, transfers both ways, closes both sides; the numbers in `lost` are those of segments to drop.
fn exchange(lost: &[usize]) -> Pair {
    let mut pair = Pair::linux();
    pair.lost = lost.to_vec();
    pair.open();
    pair.send(0, 2_000);
    let mut has_closed = [false; 2];
    while pair.step(Instant::FAR_FUTURE) {
        for (side, has_closed) in has_closed.iter_mut().enumerate() {
            if pair.ends[side].state() == S::Established && !*has_closed && pair.ends[1].received() == 2_000 {
                *has_closed = true;
                pair.ends[side].send(3_000).unwrap();
                pair.close(side);
            }
        }
    }
    pair
}

#[test]
fn the_loss_of_any_segment_is_repaired() {
    let count = exchange(&[]).segments.len();
    assert!(count > 8, "{count}");
    for first in 0..count {
        for second in first..count + 2 {
            let pair = exchange(&[first, second]);
            assert_eq!(pair.states(), [S::Closed; 2], "lost {first} and {second}");
            assert_eq!(pair.ends[1].received(), 5_000, "lost {first} and {second}");
            for end in &pair.ends {
                assert_eq!(end.close_reason(), Some(CloseReason::Finished), "lost {first} and {second}");
            }
        }
    }
}

#[test]
fn a_lost_syn_leaves_no_sample() {
    let config = Config { timestamps: false, mss: 1460, ..Config::linux_6() };
    let mut pair = Pair::new([config.clone(), config]);
    pair.lost = vec![0];
    pair.open();
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.states(), [S::Established; 2]);
    let stats = pair.ends[0].endpoint().stats(pair.ends[0].config());
    assert_eq!((stats.srtt, stats.rto), (Duration::ZERO, Duration::from_secs(3)), "RFC 6298 §5.7");
    // The SYN-ACK was sent once.
    assert!(pair.ends[1].endpoint().stats(pair.ends[1].config()).srtt > Duration::ZERO);
}

#[test]
fn options_of_a_foreign_syn() {
    let mut end = TcpConnection::new(Config::linux_6());
    end.listen().unwrap();
    let mut syn = segment(0, 0, Flags::SYN);
    syn.set_syn_options(SynOptions { mss: 1000, window_scale: None, sack_permitted: true });
    end.handle_segment(Instant::START, &syn);
    let answer = end.poll_transmit(Instant::START).expect("a SYN-ACK");
    assert_eq!(answer.syn_options(), SynOptions { mss: 1000, window_scale: None, sack_permitted: true });
    assert!(!answer.flags.contains(Flags::TIMESTAMP));
    assert_eq!((end.config().mss, end.config().receive_window), (1000, 65_535));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn everything_arrives_and_both_ends_close(
        profiles in [0..PROFILES.len(), 0..PROFILES.len()],
        loss in 0..250_u64,
        duplication in 0..200_u64,
        reordering in 0..300_u64,
        seed: u64,
        bytes in [0..200_000_u64, 0..200_000_u64],
        is_simultaneous: bool,
        // When each end closes: at once, or after it has received everything.
        closes_early in [any::<bool>(), any::<bool>()],
        small_window: bool,
        nodelay: bool,
    ) {
        let configs = profiles.map(|profile| {
            let mut config = Config::profile(PROFILES[profile]).unwrap();
            config.nodelay = nodelay;
            if small_window {
                config.receive_window = 5_000;
                config.receive_window_initial = 5_000;
            }
            config
        });
        let mut pair = Pair::new(configs);
        let limits = ConnectionLimits { syn_retries_max: 30, retries_max: 30, ..ConnectionLimits::default() };
        pair.ends = [0, 1].map(|side| TcpConnection::with_limits(pair.ends[side].config().clone(), limits));
        (pair.loss, pair.duplication, pair.reordering, pair.random) = (loss, duplication, reordering, Random(seed));
        if is_simultaneous {
            pair.ends[1].connect().unwrap();
        } else {
            pair.ends[1].listen().unwrap();
        }
        pair.ends[0].connect().unwrap();
        pair.drain();
        let mut has_sent = [false; 2];
        let mut has_closed = [false; 2];
        let mut received = [0; 2];
        while pair.step(Instant::FAR_FUTURE) {
            for side in 0..2 {
                received[side] = pair.ends[side].received().max(received[side]);
                let state = pair.ends[side].state();
                if !matches!(state, S::Established | S::CloseWait) {
                    continue;
                }
                if !has_sent[side] {
                    has_sent[side] = true;
                    pair.send(side, bytes[side]);
                }
                let has_all = received[side] == bytes[1 - side];
                if !has_closed[side] && (closes_early[side] || has_all || state == S::CloseWait) {
                    has_closed[side] = true;
                    pair.close(side);
                }
            }
        }
        prop_assert_eq!(pair.states(), [S::Closed; 2]);
        for (end, reasons) in pair.ends.iter().zip([CloseReason::Finished; 2]) {
            prop_assert_eq!(end.close_reason(), Some(reasons));
        }
        prop_assert_eq!(received, [bytes[1], bytes[0]]);
    }
}
