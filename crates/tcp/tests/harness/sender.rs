//! One sender and hand-made ACKs, for the tests of Linux's rules.

use fanin_tcp::{Config, CongestionState, Endpoint, Flags, SackBlock, Segment};
use fanin_units::{Duration, Instant};

/// Bytes of a segment with timestamps.
pub const MSS: u64 = 1448;

/// A sender and its time in microseconds.
pub struct Sender {
    pub config: Config,
    pub end: Endpoint,
    pub now: u64,
    /// True if a segment has announced a reduction (CWR).
    pub has_announced: bool,
    /// Segments sent, retransmissions apart.
    pub highest: u64,
}

impl Sender {
    pub fn new(config: Config) -> Self {
        let end = Endpoint::new(&config);
        Self { config, end, now: 0, has_announced: false, highest: 0 }
    }

    pub fn time(&self) -> Instant {
        Instant::START + Duration::from_micros(self.now)
    }

    /// The timestamp that a segment sent now carries.
    pub fn stamp(&self) -> u32 {
        (self.now / 1000) as u32 + 1
    }

    /// The segments that can go now, by their numbers from 0.
    pub fn sent(&mut self) -> Vec<u64> {
        let now = self.time();
        let mut sent = Vec::new();
        while let Some(segment) = self.end.poll_transmit(&self.config, now) {
            self.has_announced |= segment.flags.contains(Flags::CWR);
            self.highest = self.highest.max(segment.offset / MSS + 1);
            sent.push(segment.offset / MSS);
        }
        sent
    }

    pub fn write(&mut self, segments: u64) -> Vec<u64> {
        self.end.write(segments * MSS);
        self.sent()
    }

    /// Takes an ACK of `ack` segments that echoes `echo`, with SACK blocks in segments. The first reports a duplicate if it ends
    /// at or below `ack`.
    pub fn ack(&mut self, ack: u64, echo: u32, blocks: &[(u64, u64)]) -> Vec<u64> {
        self.ack_with(ack, echo, blocks, Flags::default())
    }

    /// As [`ack`](Self::ack), with further flags.
    pub fn ack_with(&mut self, ack: u64, echo: u32, blocks: &[(u64, u64)], flags: Flags) -> Vec<u64> {
        let mut segment =
            Segment { ack: ack * MSS, window: 1 << 20, flags: Flags::ACK | flags, ..Segment::default() };
        if self.config.timestamps {
            segment.flags.insert(Flags::TIMESTAMP);
            segment.ts_echo = echo;
        }
        for (slot, &(start, end)) in segment.sack.iter_mut().zip(blocks) {
            let relative = |number: u64| ((number as i64 - ack as i64) * MSS as i64) as i32;
            *slot = SackBlock { start: relative(start), end: relative(end) };
            if end <= ack {
                segment.flags.insert(Flags::DSACK);
            }
        }
        let now = self.time();
        self.end.handle_segment(&self.config, now, &segment);
        self.sent()
    }

    /// Waits until a timer sends something.
    pub fn wait(&mut self) -> Vec<u64> {
        loop {
            let at = self.end.poll_deadline().get();
            assert_ne!(at, u64::MAX, "no timer runs");
            self.now = self.now.max(at.div_ceil(1_000_000));
            let now = self.time();
            self.end.handle_deadline(&self.config, now);
            let sent = self.sent();
            if !sent.is_empty() {
                return sent;
            }
        }
    }

    pub fn state(&self) -> CongestionState {
        self.end.stats(&self.config).state
    }

    pub fn window(&self) -> u64 {
        self.end.stats(&self.config).cwnd / MSS
    }
}

/// A sender whose first flight of ten segments of forty was acknowledged after `rtt` microseconds.
pub fn started(config: Config, rtt: u64) -> Sender {
    let mut sender = Sender::new(config);
    assert_eq!(sender.write(40).len(), 10);
    sender.now = rtt;
    for acked in 1..=10 {
        sender.ack(acked, 1, &[]);
    }
    sender
}

pub fn without_probe() -> Config {
    Config { tail_loss_probe: false, ..Config::linux_6() }
}
