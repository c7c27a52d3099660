//! One end of a connection.

use fanin_units::{Duration, Instant};

use super::{Config, Flags, Segment};

/// Counters and state of an endpoint, for records and traces.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Segments sent with payload, retransmissions included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_retransmits: u64,
    /// Retransmissions found needless (DSACK or timestamps).
    pub spurious_retransmits: u64,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes.
    pub ssthresh: u64,
    /// Smoothed round-trip time, zero before the first sample.
    pub srtt: Duration,
}

/// One end of one connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    sent: u64,
    acked: u64,
    written: u64,
    delivered: u64,
    acked_peer: u64,
    segments: u64,
    window: u32,
}

impl Endpoint {
    /// An established connection with a cold window.
    pub fn new(config: &Config) -> Self {
        Self {
            sent: 0,
            acked: 0,
            written: 0,
            delivered: 0,
            acked_peer: 0,
            segments: 0,
            window: config.receive_window,
        }
    }

    /// The application appends bytes to its stream.
    pub fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Bytes received in order so far.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes of the own stream that the peer has acknowledged.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Takes a segment from the network.
    pub fn handle_segment(&mut self, _config: &Config, _now: Instant, segment: &Segment) {
        if segment.offset == self.delivered {
            self.delivered += u64::from(segment.payload);
        }
        self.acked = self.acked.max(segment.ack);
        self.window = segment.window;
    }

    /// The next segment to put on the network now, or `None`. Call until `None` after every other call.
    pub fn poll_transmit(&mut self, config: &Config, _now: Instant) -> Option<Segment> {
        let room =
            (self.acked + u64::from(self.window.min(config.initial_window * config.mss))).min(self.written);
        if room <= self.sent && self.acked_peer == self.delivered {
            return None;
        }
        let payload = room.saturating_sub(self.sent).min(u64::from(config.mss)) as u16;
        let offset = self.sent;
        self.sent += u64::from(payload);
        self.acked_peer = self.delivered;
        self.segments += u64::from(payload > 0);
        Some(Segment {
            offset,
            ack: self.delivered,
            window: config.receive_window,
            payload,
            flags: Flags::ACK,
            ..Segment::default()
        })
    }

    /// When [`handle_deadline`](Self::handle_deadline) is due; it may name an earlier time than necessary.
    #[inline]
    pub fn poll_deadline(&self) -> Instant {
        Instant::FAR_FUTURE
    }

    /// Lets timers run out; then drain [`poll_transmit`](Self::poll_transmit).
    pub fn handle_deadline(&mut self, _config: &Config, _now: Instant) {}

    /// Counters and state.
    pub fn stats(&self) -> Stats {
        Stats { segments: self.segments, ..Stats::default() }
    }
}
