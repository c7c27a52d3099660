//! Two connections over a channel that can lose, duplicate and delay each segment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fanin_tcp::{Config, ConnectionState as S, Flags, Segment, TcpConnection};
use fanin_units::{Duration, Instant, MIX_STEP, mix};

const DELAY: Duration = Duration::from_micros(100);

/// A reproducible random number generator (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(MIX_STEP);
        number % bound.max(1)
    }
}

/// Two connections and the channel between them.
pub(crate) struct Pair {
    pub(crate) ends: [TcpConnection; 2],
    pub(crate) now: Instant,
    pub(crate) in_flight: BinaryHeap<Reverse<(Instant, usize)>>,
    pub(crate) segments: Vec<(usize, Segment)>,
    /// States of each end so far.
    pub(crate) history: [Vec<S>; 2],
    /// Numbers of segments (counted from 0) to drop.
    pub(crate) lost: Vec<usize>,
    /// Chances in 1/1000.
    pub(crate) loss: u64,
    pub(crate) duplication: u64,
    pub(crate) reordering: u64,
    pub(crate) random: Random,
    /// True if applications read data as soon as it arrives.
    pub(crate) reads: bool,
}

impl Pair {
    pub(crate) fn new(configs: [Config; 2]) -> Self {
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

    pub(crate) fn linux() -> Self {
        Self::new([Config::linux_6(), Config::linux_6()])
    }

    /// End 0 connects to end 1.
    pub(crate) fn open(&mut self) {
        self.ends[1].listen().unwrap();
        self.ends[0].connect().unwrap();
        self.drain();
    }

    pub(crate) fn established() -> Self {
        let mut pair = Self::linux();
        pair.open();
        pair.settle();
        assert_eq!(pair.states(), [S::Established; 2]);
        pair
    }

    pub(crate) fn states(&self) -> [S; 2] {
        [self.ends[0].state(), self.ends[1].state()]
    }

    /// Notes the states, reads, and puts the ends' segments on the channel.
    pub(crate) fn drain(&mut self) {
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

    pub(crate) fn step(&mut self, until: Instant) -> bool {
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

    pub(crate) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// Runs for ten round trips and a delayed acknowledgement: without loss everything settles.
    pub(crate) fn settle(&mut self) {
        self.run(Duration::new(20 * DELAY.get()) + Duration::from_millis(50));
    }

    /// Runs until nothing is pending, TIME-WAIT included.
    pub(crate) fn finish(&mut self) {
        while self.step(Instant::FAR_FUTURE) {}
    }

    pub(crate) fn close(&mut self, side: usize) {
        self.ends[side].close();
        self.drain();
    }

    pub(crate) fn send(&mut self, side: usize, bytes: u64) {
        self.ends[side].send(bytes).unwrap();
        self.drain();
    }

    pub(crate) fn inject(&mut self, side: usize, segment: Segment) {
        self.ends[side].handle_segment(self.now, &segment);
        self.drain();
    }

    pub(crate) fn last(&self) -> Segment {
        self.segments.last().expect("a segment").1
    }
}

pub(crate) fn segment(offset: u64, ack: u64, flags: Flags) -> Segment {
    Segment { offset, ack, window: 60_000, flags, ..Segment::default() }
}
