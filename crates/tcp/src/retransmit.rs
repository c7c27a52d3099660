//! Retransmissions and probes of a closed window.
//!
//! Follows `tcp_xmit_retransmit_queue` and `tcp_write_wakeup` of `net/ipv4/tcp_output.c`.

use fanin_units::Instant;

use crate::ca_state::CongestionState;
use crate::config::{Config, LossDetection};
use crate::endpoint::{Endpoint, Forced};
use crate::flight::{EVER_RETRANSMITTED, SACKED};
use crate::segment::{Flags, Segment};
use crate::timers::Timer;

/// Retransmissions that leave together where pacing applies: lost neighbours sent in one burst (`tcp_xmit_retransmit_queue`
/// sends a segmentation-offload buffer at once).
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct RetransmissionBurst {
    /// Time of the burst, in ps.
    at: u64,
    /// Offset of the next segment, and the time at which it was sent before.
    next: u64,
    sent_at: u64,
    /// Number of segments that may follow.
    left: u8,
}

impl Endpoint {
    /// Returns true if pacing delays the next retransmission.
    #[inline]
    pub(crate) fn is_retransmission_paced(&mut self, now: Instant) -> bool {
        self.is_paced(now) && !self.continues_burst(now)
    }

    /// Returns true if the next lost segment belongs to the burst of the retransmission before it.
    #[cold]
    fn continues_burst(&mut self, now: Instant) -> bool {
        let Some(recovery) = &self.recovery else { return false };
        let burst = recovery.burst;
        burst.at == now.get()
            && burst.left > 0
            && self.flight.next_lost().is_some_and(|index| {
                let run = &self.flight.runs[index];
                run.start == burst.next && run.sent_at == burst.sent_at
            })
    }

    /// Informs the model of the retransmission of run `index`, and notes which segments may follow at once.
    #[cold]
    fn note_paced_retransmission(&mut self, config: &Config, now: Instant, index: usize) {
        let is_first = !self.continues_burst(now);
        let run = self.flight.runs[index];
        let len = run.len.min(run.mss.into());
        self.note_paced(config, now, len, is_first);
        let most = self.burst_segments_max(config);
        let burst = &mut self.recovery_mut().burst;
        let left = if is_first { most } else { burst.left };
        let next = run.start + u64::from(len);
        *burst =
            RetransmissionBurst { at: now.get(), next, sent_at: run.sent_at, left: left.saturating_sub(1) };
    }

    /// Returns true if [`poll_retransmission`](Self::poll_retransmission) may return a segment, by a cheap test.
    #[inline]
    pub(crate) fn may_retransmit(&self, config: &Config) -> bool {
        self.forced != Forced::None || self.may_repair(config)
    }

    /// Returns true if the window has room for a lost segment, in recovery and after a timeout. In ns-3 the state does not matter
    /// (`TcpTxBuffer::NextSeg`).
    #[inline]
    fn may_repair(&self, config: &Config) -> bool {
        let is_repairing = matches!(self.ca_state, CongestionState::Recovery | CongestionState::Loss)
            || config.recovers_as_ns3();
        let is_held = self.recovery.as_ref().is_some_and(|it| it.undo.holds_retransmissions());
        let has_room = self.flight.pipe() + config.segment_units() <= self.window.cwnd;
        (is_repairing && has_room && !is_held) || self.may_repair_tail(config)
    }

    /// Returns true if the window has room for all data from the lost segment on. Less than a full segment suffices for that
    /// (`TcpSocketBase::SendPendingData` of ns-3).
    fn may_repair_tail(&self, config: &Config) -> bool {
        let room = self.window.cwnd.saturating_sub(self.flight.pipe());
        config.recovers_as_ns3()
            && self.flight.next_lost().is_some_and(|index| {
                let tail = self.send.written() - self.flight.runs[index].start;
                tail <= u64::from(room)
            })
    }

    /// The next retransmission or probe to send now.
    pub(crate) fn poll_retransmission(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        match core::mem::replace(&mut self.forced, Forced::None) {
            Forced::TailLossProbe => return self.send_tail_loss_probe(config, now),
            Forced::WindowProbe => return self.send_window_probe(config, now),
            Forced::LostHead => {
                if let Some(index) = self.flight.next_lost() {
                    return Some(self.retransmit(config, now, index));
                }
            }
            Forced::None => {}
        }
        if !self.may_repair(config) {
            return None;
        }
        if let Some(index) = self.flight.next_lost() {
            return Some(self.retransmit(config, now, index));
        }
        // RFC 6675 §4 NextSeg rule 3: without losses and new data, data below the highest SACK is retransmitted.
        if config.detection() == LossDetection::Rfc6675
            && self.ca_state == CongestionState::Recovery
            && !self.send.has_unsent()
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

    /// Retransmits the first segment of run `index`, and counts it to the reduction (`prr_out`).
    fn retransmit(&mut self, config: &Config, now: Instant, index: usize) -> Segment {
        let segment = self.resend(config, now, index);
        let units = config.units(segment.payload.into(), self.send.mss());
        self.recovery_mut().reduction.note_sent(units);
        segment
    }

    /// Sends the first segment of run `index` again. A tail loss probe is no part of a reduction (`tcp_send_loss_probe`).
    pub(crate) fn resend(&mut self, config: &Config, now: Instant, index: usize) -> Segment {
        if self.congestion.models_path() {
            self.note_paced_retransmission(config, now, index);
        }
        if config.recovers_as_ns3() {
            self.flight.fill_as_ns3(config, index);
        }
        let (offset, len) = self.flight.retransmit(config, index, now.get());
        let (snd_una, snd_nxt) = (self.send.una(), self.send.nxt());
        assert!(offset >= snd_una && offset + u64::from(len) <= snd_nxt, "{offset} is not in the flight");
        assert!(len > 0, "a segment without data is sent again");
        let recovery = self.recovery_mut();
        recovery.note_retransmissions(snd_nxt);
        recovery.undo.note_retransmission(config.timestamp(now));
        self.counters.segments += 1;
        self.counters.retransmits += 1;
        self.last_sent_at = now.get();
        // RFC 6298 §5.1 leaves a running timer alone; Linux restarts it with the head (tcp_xmit_retransmit_queue).
        let restarts = match self.timer.pending() {
            Timer::None => true,
            Timer::Reordering => false,
            Timer::Retransmission => offset == snd_una && !config.is_impatient_variant,
            Timer::TailLossProbe | Timer::WindowProbe => offset == snd_una,
        };
        if restarts {
            self.timer.start_rto(config, now, &self.rtt);
        }
        let mut flags = Flags::ACK | Flags::RETRANSMISSION;
        if offset + u64::from(len) == snd_nxt && !self.send.has_unsent() {
            flags.insert(Flags::PSH);
        }
        self.make_segment(config, now, offset, len, flags)
    }

    /// Sends new data outside the congestion window, if the offered window has room.
    pub(crate) fn send_new_forced(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        let len = self.send.next_payload();
        if len == 0 || !self.send.has_room(len) {
            return None;
        }
        let mut segment = Segment::default();
        self.send_new(config, now, len, &mut segment);
        Some(segment)
    }

    /// Probes a closed window. Sends the part of the next segment that fits, or an old offset for the peer to acknowledge
    /// (`tcp_write_wakeup`).
    fn send_window_probe(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        if !self.send.has_unsent() {
            return None;
        }
        if self.flight.size == 0 {
            self.timer.start_window_probe(config, now, &self.rtt);
        }
        let len = self.send.room().min(u64::from(self.send.next_payload())) as u32;
        if len > 0 {
            let mut segment = Segment::default();
            self.send_new(config, now, len, &mut segment);
            return Some(segment);
        }
        self.counters.window_probes += 1;
        self.counters.acks += 1;
        Some(self.make_segment(config, now, self.send.una().saturating_sub(1), 0, Flags::ACK))
    }
}
