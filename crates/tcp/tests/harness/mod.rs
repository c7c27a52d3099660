//! Two endpoints and the wires between them, for the TCP tests: a small event loop of its own.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

pub mod sender;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use fanin_tcp::{Config, Endpoint, Flags, Segment};
use fanin_units::{Bytes, Duration, Instant, MIX_STEP, Rate, mix};

/// A reproducible random number generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(MIX_STEP);
        number
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True with a probability in 1/1000.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

/// One direction of the path.
#[derive(Clone, Debug)]
pub struct Wire {
    pub rate: Rate,
    pub delay: Duration,
    /// Frames that may wait, the one in service included.
    pub queue_frames: usize,
    /// Chances in 1/1000.
    pub loss: u64,
    pub duplication: u64,
    pub reordering: u64,
    pub mark: u64,
    /// Numbers of payload-carrying segments (counted from 1) to drop.
    pub drop_data: BTreeSet<u64>,
    sent: u64,
    free_at: u64,
    queued: Vec<u64>,
    pub dropped: u64,
}

impl Wire {
    pub fn new(rate: &str, delay: &str) -> Self {
        Self {
            rate: rate.parse().unwrap(),
            delay: delay.parse().unwrap(),
            queue_frames: usize::MAX,
            loss: 0,
            duplication: 0,
            reordering: 0,
            mark: 0,
            drop_data: BTreeSet::new(),
            sent: 0,
            free_at: 0,
            queued: Vec::new(),
            dropped: 0,
        }
    }

    /// Returns the arrival of each copy of the segment; none if it is dropped.
    fn carry(&mut self, random: &mut Random, now: Instant, segment: &mut Segment) -> Vec<Instant> {
        if segment.payload > 0 {
            self.sent += 1;
            if self.drop_data.contains(&self.sent) {
                self.dropped += 1;
                return Vec::new();
            }
        }
        self.queued.retain(|&until| until > now.get());
        if random.chance(self.loss) || self.queued.len() >= self.queue_frames {
            self.dropped += 1;
            return Vec::new();
        }
        if random.chance(self.mark) && segment.flags.contains(Flags::ECT) {
            segment.flags.insert(Flags::CE);
        }
        // On Ethernet: at least 46 bytes, and 38 around them.
        let wire_bytes = segment.ip_bytes().max(46) + 38;
        let time = self.rate.time_to_send(Bytes::new(u64::from(wire_bytes)));
        self.free_at = self.free_at.max(now.get()) + time.get();
        self.queued.push(self.free_at);
        let mut arrival = Instant::new(self.free_at) + self.delay;
        if random.chance(self.reordering) {
            arrival = arrival + Duration::new(random.below(4 * self.delay.get().max(1)));
        }
        let mut arrivals = vec![arrival];
        if random.chance(self.duplication) {
            arrivals.push(arrival + Duration::new(random.below(self.delay.get().max(1))));
        }
        arrivals
    }
}

/// A line of the trace: time, sending side, segment.
pub type Line = (Instant, usize, Segment);

pub struct Pair {
    pub configs: [Config; 2],
    pub ends: [Endpoint; 2],
    /// `wires[i]` carries the segments of `ends[i]`.
    pub wires: [Wire; 2],
    pub random: Random,
    pub now: Instant,
    pub trace: Vec<Line>,
    pub tracing: bool,
    /// Check the invariants after every step.
    pub checking: bool,
    in_flight: BinaryHeap<Reverse<(Instant, u64, usize, usize)>>,
    segments: Vec<Segment>,
    order: u64,
}

impl Pair {
    pub fn new(config: &Config, wire: &Wire, seed: u64) -> Self {
        Self::with(
            [config.clone(), config.clone()],
            [Endpoint::new(config), Endpoint::new(config)],
            [wire.clone(), wire.clone()],
            seed,
        )
    }

    pub fn with(configs: [Config; 2], ends: [Endpoint; 2], wires: [Wire; 2], seed: u64) -> Self {
        Self {
            configs,
            ends,
            wires,
            random: Random(seed),
            now: Instant::START,
            trace: Vec::new(),
            tracing: true,
            checking: true,
            in_flight: BinaryHeap::new(),
            segments: Vec::new(),
            order: 0,
        }
    }

    pub fn write(&mut self, side: usize, bytes: u64) {
        self.ends[side].write(bytes);
        self.drain(side);
    }

    /// Puts the segments of an end on its wire.
    pub fn drain(&mut self, side: usize) {
        let mut burst = 0;
        while let Some(mut segment) = self.ends[side].poll_transmit(&self.configs[side], self.now) {
            burst += 1;
            assert!(burst < 1_000_000, "an endpoint sends without end");
            if self.tracing {
                self.trace.push((self.now, side, segment));
            }
            if self.checking {
                self.check_segment(side, &segment);
            }
            for at in self.wires[side].carry(&mut self.random, self.now, &mut segment) {
                self.order += 1;
                self.segments.push(segment);
                self.in_flight.push(Reverse((at, self.order, 1 - side, self.segments.len() - 1)));
            }
        }
        if self.checking {
            self.ends[side].check(&self.configs[side]);
        }
    }

    fn check_segment(&self, side: usize, segment: &Segment) {
        let end = segment.offset + u64::from(segment.payload);
        assert!(u32::from(segment.payload) <= u32::from(self.configs[side].mss));
        assert!(end <= self.ends[side].written());
        if segment.payload > 0 && !segment.flags.contains(Flags::RETRANSMISSION) {
            assert!(end <= self.ends[side].window_edge(), "beyond the offered window");
        }
        // DCTCP acknowledges the data before a change of marks separately.
        let delivered = self.ends[side].delivered();
        assert!(segment.ack == delivered || (self.configs[side].ecn_exact && segment.ack < delivered));
    }

    /// Takes one step; returns `false` if nothing is scheduled any more.
    pub fn step(&mut self, until: Instant) -> bool {
        let arrival = self.in_flight.peek().map_or(Instant::FAR_FUTURE, |next| next.0.0);
        let deadlines = [self.ends[0].poll_deadline(), self.ends[1].poll_deadline()];
        let next = arrival.min(deadlines[0]).min(deadlines[1]);
        if next > until || next == Instant::FAR_FUTURE {
            return false;
        }
        self.now = self.now.max(next);
        if arrival == next {
            let Reverse((_, _, side, index)) = self.in_flight.pop().unwrap();
            let segment = self.segments[index];
            let before = self.ends[side].delivered();
            self.ends[side].handle_segment(&self.configs[side], self.now, &segment);
            assert!(self.ends[side].delivered() >= before);
            self.drain(side);
        } else {
            let side = usize::from(deadlines[0] > deadlines[1]);
            self.ends[side].handle_deadline(&self.configs[side], self.now);
            self.drain(side);
            assert!(self.ends[side].poll_deadline() > self.now, "a deadline does not move");
        }
        true
    }

    /// Runs until nothing is pending or the time is over.
    pub fn run(&mut self, until: Instant) {
        let mut steps = 0_u64;
        while self.step(until) {
            steps += 1;
            assert!(steps < 50_000_000, "a run without end");
        }
    }

    /// Runs until side `side` has received `bytes`; returns the time it took, or `None` at the limit.
    pub fn run_until_delivered(&mut self, side: usize, bytes: u64, limit: Instant) -> Option<Instant> {
        while self.ends[side].delivered() < bytes {
            if !self.step(limit) {
                return None;
            }
        }
        Some(self.now)
    }

    /// The trace as text, one line a segment.
    pub fn show(&self) -> String {
        use std::fmt::Write;
        let mut text = String::new();
        for (at, side, segment) in &self.trace {
            let _ = writeln!(
                text,
                "{:>12} {} {}:{} ack {} win {} {:?} sack {:?}",
                at.to_string(),
                side,
                segment.offset,
                segment.offset + u64::from(segment.payload),
                segment.ack,
                segment.window,
                segment.flags,
                &segment.sack[..segment.sack_count()],
            );
        }
        text
    }
}
