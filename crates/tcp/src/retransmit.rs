//! What is sent again or out of turn: segments taken for lost, and probes of a tail or of a closed window.
//!
//! Follows `tcp_xmit_retransmit_queue` and `tcp_send_loss_probe` of `net/ipv4/tcp_output.c`; RFC 8985 §7.

use fanin_units::Instant;

use crate::config::{Config, LossDetection};
use crate::endpoint::{Endpoint, Force, State, Timer};
use crate::flight::{EVER_RETRANSMITTED, SACKED};
use crate::segment::{Flags, Segment};

impl Endpoint {
    /// Whether [`poll_retransmission`](Self::poll_retransmission) has to be asked: mostly the window is full.
    #[inline]
    pub(crate) fn may_retransmit(&self, config: &Config) -> bool {
        let is_repairing = matches!(self.state, State::Recovery | State::Loss);
        let has_room = self.flight.in_network() + config.segment_units() <= self.window.cwnd;
        self.force != Force::None || (is_repairing & has_room)
    }

    /// What is to be sent again, or sent out of turn, now.
    pub(crate) fn poll_retransmission(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        match core::mem::replace(&mut self.force, Force::None) {
            Force::TailLossProbe => return self.send_probe(config, now),
            Force::WindowProbe => return self.window_probe(config, now),
            Force::Head => {
                if let Some(index) = self.flight.next_lost() {
                    return Some(self.retransmit(config, now, index));
                }
            }
            Force::None | Force::Syn => {}
        }
        if !matches!(self.state, State::Recovery | State::Loss) {
            return None;
        }
        if self.flight.in_network() + config.segment_units() > self.window.cwnd {
            return None;
        }
        if let Some(index) = self.flight.next_lost() {
            return Some(self.retransmit(config, now, index));
        }
        // RFC 6675 §4 NextSeg rule 3: nothing lost, nothing new to send: what lies below the highest SACK.
        if config.detection() == LossDetection::Rfc6675
            && self.state == State::Recovery
            && self.written_beyond_next() == 0
            && let Some(highest) = self.flight.highest_sacked()
            && let Some(index) = self
                .flight
                .runs
                .position(|run| run.start < highest && run.state & (SACKED | EVER_RETRANSMITTED) == 0)
        {
            return Some(self.retransmit(config, now, index));
        }
        None
    }

    fn retransmit(&mut self, config: &Config, now: Instant, index: usize) -> Segment {
        let (offset, len) = self.flight.retransmit(config, index, now.get());
        let units = config.units(len, self.segment_size());
        let stamp = config.timestamp(now);
        let next = self.next;
        let trouble = self.trouble();
        trouble.sent_units += units;
        trouble.clean_from = trouble.clean_from.max(next);
        trouble.first_retransmission.get_or_insert(stamp);
        if trouble.undo_from.is_some() {
            *trouble.undo_retransmissions.get_or_insert(0) += 1;
        }
        self.segments += 1;
        self.counters.retransmits += 1;
        self.last_sent_at = now.get();
        // RFC 6298 §5.1 leaves a timer alone that runs; Linux starts it anew with the head (tcp_xmit_retransmit_queue).
        let restarts = match self.timer {
            Timer::None => true,
            Timer::Reordering => false,
            Timer::Retransmission => offset == self.una && !config.impatient,
            Timer::TailLossProbe | Timer::WindowProbe => offset == self.una,
        };
        if restarts {
            let rto = self.jittered(config, now, self.rtt.rto(config).get());
            self.start_timer(config, Timer::Retransmission, now.get(), rto);
        }
        let mut flags = Flags::ACK | Flags::RETRANSMISSION;
        if offset + u64::from(len) == self.next && self.written_beyond_next() == 0 {
            flags.insert(Flags::PSH);
        }
        self.finish(config, now, offset, len, flags)
    }

    // tcp_send_loss_probe; RFC 8985 §7.3.
    fn send_probe(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        if self.flight.out == 0 {
            return None;
        }
        self.counters.probes += 1;
        let segment = match self.forced_new(config, now) {
            Some(segment) => {
                let next = self.next;
                self.trouble().probe = Some((next, false));
                segment
            }
            None => {
                let last = *self.flight.runs.back()?;
                // The last segment of the last run.
                let tail = match last.len % u32::from(last.mss) {
                    0 => u32::from(last.mss).min(last.len),
                    rest => rest,
                };
                self.flight.split_at(config, last.end() - u64::from(tail));
                let index = self.flight.runs.len() - 1;
                let segment = self.retransmit(config, now, index);
                let next = self.next;
                self.trouble().probe = Some((next, true));
                segment
            }
        };
        // The RTO counts from the probe.
        let rto = self.rtt.rto(config).get();
        self.start_timer(config, Timer::Retransmission, now.get(), rto);
        Some(segment)
    }

    pub(crate) fn forced_new(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        let len = self.written_beyond_next().min(u64::from(self.mss)) as u32;
        if len == 0 || self.next + u64::from(len) > self.window_edge {
            return None;
        }
        let mut segment = Segment::default();
        self.send_new(config, now, len, &mut segment);
        Some(segment)
    }

    /// A probe of a closed window: what fits of the next segment, or a byte that the peer has already
    /// (`tcp_write_wakeup`).
    pub(crate) fn window_probe(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        let room = self.window_edge.saturating_sub(self.next).min(self.written_beyond_next());
        let len = room.min(u64::from(self.mss)) as u32;
        if self.flight.out == 0 && self.written_beyond_next() > 0 {
            let delay = (self.rtt.rto(config).get() << self.probe_backoff.min(16)).min(config.rto.max.get());
            self.start_timer(config, Timer::WindowProbe, now.get(), delay);
        }
        if len > 0 {
            let mut segment = Segment::default();
            self.send_new(config, now, len, &mut segment);
            return Some(segment);
        }
        if self.written_beyond_next() == 0 {
            return None;
        }
        self.counters.probes += 1;
        self.acks += 1;
        Some(self.finish(config, now, self.una.saturating_sub(1), 0, Flags::ACK))
    }
}
