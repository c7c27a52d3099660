//! Transmission: new data within the windows and Nagle's rule, acknowledgements, and the fields of every segment.
//!
//! Follows `tcp_write_xmit` and its callees of `net/ipv4/tcp_output.c`.

use fanin_units::Instant;

use crate::ca_state::CongestionState;
use crate::config::{Config, WindowUnit};
use crate::endpoint::{Endpoint, Forced, Written};
use crate::segment::{Flags, Segment};
use crate::timers::Timer;

impl Endpoint {
    /// The next segment to put on the network now, or `None`. Call until `None` after every other call.
    #[inline]
    pub fn poll_transmit(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        let mut segment = Segment::default();
        (self.write_transmit(config, now, &mut segment) != Written::Nothing).then_some(segment)
    }

    /// Polls as [`poll_transmit`](Self::poll_transmit) does, but writes the segment in place.
    #[inline(always)]
    pub fn write_transmit(&mut self, config: &Config, now: Instant, segment: &mut Segment) -> Written {
        if (self.forced != Forced::None || (self.recovery.is_some() && !self.is_retransmission_paced(now)))
            && self.may_retransmit(config)
            && let Some(again) = self.poll_retransmission(config, now)
        {
            *segment = again;
            return Written::Segment;
        }
        if self.send.has_unsent()
            && !self.burst.is_deferred()
            && !self.is_paced(now)
            && let Some(len) = self.may_send(config, now)
        {
            self.send_new(config, now, len, segment);
            return Written::Segment;
        }
        if self.usage.is_unvalidated() {
            self.validate_cwnd(config, now);
        }
        if self.receiver.wants_ack() {
            self.send_ack(config, now, segment);
            return if self.receiver.wants_ack() { Written::Segment } else { Written::Last };
        }
        Written::Nothing
    }

    /// Payload of the next new segment, if the windows and Nagle's rule permit it.
    #[inline(always)]
    fn may_send(&mut self, config: &Config, now: Instant) -> Option<u32> {
        let len = self.send.next_payload();
        if self.send.is_idle() {
            self.restart_after_idle(config, now);
        }
        let pipe = self.flight.pipe();
        let cost = match config.unit {
            WindowUnit::Segments => 1,
            WindowUnit::Bytes => len,
        };
        let counted = if config.limited_transmit || self.ca_state != CongestionState::Disorder {
            pipe
        } else {
            // Without RFC 3042 duplicate ACKs release nothing before recovery.
            self.flight.size
        };
        if counted + cost > self.window.cwnd && !(self.flight.size == 0 && pipe == 0) {
            self.usage.note_limit();
            return None;
        }
        if !self.send.has_room(len) {
            let room = self.send.room();
            if config.fills_window && config.nodelay && room > 0 && !self.burst.is_new() {
                // tcp_mss_split_point: the end of a burst fills the window, even with a short segment.
                return Some(room as u32);
            }
            return self.wait_for_window(config, now);
        }
        if len < u32::from(self.send.mss()) && !config.nodelay && self.flight.size > 0 {
            return None;
        }
        if self.burst.is_new()
            && let Some(segmentation) = config.segmentation
            && segmentation.window_divisor > 0
            && self.flight.size > 0
            && (self.ca_state == CongestionState::Open
                || (segmentation.autosize
                    && matches!(self.ca_state, CongestionState::Disorder | CongestionState::Cwr)))
            && self.should_defer(config, now, segmentation, pipe)
        {
            self.burst.defer();
            return None;
        }
        Some(len)
    }

    /// Handles a segment that does not fit into the offered window: waits, and starts the persist timer if nothing is
    /// outstanding (`tcp_snd_wnd_test`, `tcp_check_probe_timer`).
    fn wait_for_window(&mut self, config: &Config, now: Instant) -> Option<u32> {
        if self.flight.size == 0 && self.timer.pending() == Timer::None && self.forced == Forced::None {
            self.timer.start_window_probe(config, now, &self.rtt);
        }
        None
    }

    /// Sends `len` new bytes.
    #[inline(always)]
    pub(crate) fn send_new(&mut self, config: &Config, now: Instant, len: u32, segment: &mut Segment) {
        let offset = self.send.send(len);
        let mss = self.send.mss();
        let is_first = self.flight.size == 0;
        if self.congestion.models_path() {
            self.note_paced(config, now, len, self.burst.is_new());
        }
        self.flight.push(config, offset, len, mss, now.get());
        self.counters.segments += 1;
        let mut flags = Flags::ACK;
        if config.ecn {
            flags.insert(Flags::ECT);
            if self.is_cwr_due {
                self.is_cwr_due = false;
                flags.insert(Flags::CWR);
            }
        }
        if !self.send.has_unsent() {
            flags.insert(Flags::PSH);
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.reduction.note_sent(config.units(len, mss));
        }
        self.note_transmission(config);
        match self.timer.pending() {
            // The probe timeout counts from the last transmission; its duration changes with the second segment.
            Timer::TailLossProbe if self.flight.size > 2 * config.segment_units() => {
                self.timer.postpone(now);
            }
            Timer::TailLossProbe | Timer::None => self.restart_timer(config, now),
            _ if is_first => self.restart_timer(config, now),
            _ => {}
        }
        if config.segmentation.is_some() {
            self.mark_burst(config, &mut flags);
        }
        self.last_sent_at = now.get();
        self.write_segment(config, now, offset, len, flags, segment);
    }

    #[inline]
    fn send_ack(&mut self, config: &Config, now: Instant, segment: &mut Segment) {
        self.counters.acks += 1;
        self.write_segment(config, now, self.send.nxt(), 0, Flags::ACK, segment);
    }

    /// Makes a new segment; see [`write_segment`](Self::write_segment).
    pub(crate) fn make_segment(
        &mut self,
        config: &Config,
        now: Instant,
        offset: u64,
        payload: u32,
        flags: Flags,
    ) -> Segment {
        let mut segment = Segment::default();
        self.write_segment(config, now, offset, payload, flags, &mut segment);
        segment
    }

    /// Writes the fields of every segment: acknowledgement, window, timestamps, SACK blocks, ECN echo, path window.
    #[inline(always)]
    fn write_segment(
        &mut self,
        config: &Config,
        now: Instant,
        offset: u64,
        payload: u32,
        flags: Flags,
        segment: &mut Segment,
    ) {
        assert!(payload <= u32::from(config.mss), "a payload has {payload} bytes, more than the MSS");
        *segment = Segment { offset, payload: payload as u16, flags, ..Segment::default() };
        if config.ecn_exact {
            segment.flags.insert(Flags::ECT);
        }
        if config.timestamps {
            segment.flags.insert(Flags::TIMESTAMP);
            segment.ts_value = config.timestamp(now);
        }
        self.receiver.fill(config, now, segment);
    }
}
