//! Fast recovery of ns-3 without SACK, with its proportional rate reduction.
//!
//! ns-3 keeps each duplicate ACK as a mark on the next segment above the head. The marks stay when recovery ends. If an ACK makes a
//! marked segment the head, the mark was wrong. That segment is declared lost, in any state, and is sent again as soon as the window
//! permits. Follows `TcpSocketBase::DupAck`, `ProcessAck` and `EnterRecovery`, `TcpTxBuffer::DiscardUpTo` and `AddRenoSack`, and
//! `TcpPrrRecovery::DoRecovery` of ns-3.44.
//!
//! A short segment that is sent again takes bytes of the next one.

use fanin_units::Instant;

use crate::ca_state::CongestionState;
use crate::config::Config;
use crate::endpoint::{Endpoint, Forced};
use crate::flight::{Flight, LOST, RETRANSMITTED, SACKED};
use crate::recovery::AckEvent;

impl Endpoint {
    /// Handles an ACK while a segment is marked, lost or retransmitted, and every duplicate ACK. Leaves in `ack.delivered` the
    /// units by which the window may grow.
    pub(crate) fn handle_dubious_ack_as_ns3(&mut self, config: &Config, now: Instant, ack: &mut AckEvent) {
        if ack.advances {
            self.handle_new_ack_as_ns3(config, now, ack);
        } else if ack.is_duplicate && self.flight.size > 0 && self.ca_state != CongestionState::Loss {
            self.handle_duplicate_ack_as_ns3(config);
        }
    }

    fn handle_new_ack_as_ns3(&mut self, config: &Config, now: Instant, ack: &mut AckEvent) {
        self.flight.declare_marked_head_lost(config);
        let pipe = self.flight.pipe();
        let (snd_una, snd_nxt) = (self.send.una(), self.send.nxt());
        let recovery = self.recovery_mut();
        recovery.forget_duplicates();
        let high_seq = recovery.high_seq();
        assert!(snd_una <= snd_nxt && high_seq <= snd_nxt, "a recovery of bytes that were not sent");
        let counted = ack.delivered;
        match self.ca_state {
            CongestionState::Recovery if snd_una < high_seq => {
                self.flight.declare_head_lost(config);
                if self.window.has_whole_segment(config, counted) {
                    self.reduce_as_ns3(config, counted, true, pipe);
                }
                self.forced = Forced::LostHead;
            }
            CongestionState::Recovery => {
                ack.delivered = self.window.last_whole_segments(config, counted, ack.acked);
                self.end_reduction(config, now);
            }
            CongestionState::Loss if snd_una >= high_seq => {
                let beyond = (snd_una - high_seq) as u32;
                ack.delivered = self.window.last_whole_segments(config, counted, beyond);
                self.ca_state = CongestionState::Open;
            }
            CongestionState::Disorder => self.ca_state = CongestionState::Open,
            CongestionState::Loss | CongestionState::Open | CongestionState::Cwr => {}
        }
    }

    fn handle_duplicate_ack_as_ns3(&mut self, config: &Config) {
        let pipe = self.flight.pipe();
        if self.ca_state == CongestionState::Recovery {
            self.flight.mark_next(config);
            self.reduce_as_ns3(config, 0, false, pipe);
            return;
        }
        let duplicates = self.recovery_mut().count_duplicate();
        self.ca_state = CongestionState::Disorder;
        let is_head_lost = self.flight.runs.front().is_some_and(|run| run.is(LOST)) && self.flight.sacked > 0;
        let enters = duplicates == config.reordering || is_head_lost;
        if enters || config.limited_transmit {
            self.flight.mark_next(config);
        }
        if enters {
            self.flight.declare_head_lost(config);
            self.enter_recovery(config, false);
            let pipe = self.flight.pipe();
            self.reduce_as_ns3(config, 0, false, pipe);
            assert_eq!(self.ca_state, CongestionState::Recovery, "a lost head has not started a recovery");
        }
    }

    /// Sets the window for one ACK of a recovery. `acked` units are newly acknowledged, 0 by a duplicate. In recovery `pipe` is
    /// read before a duplicate leaves it and before a partial ACK declares the head lost. So each duplicate releases a segment.
    pub(crate) fn reduce_as_ns3(&mut self, config: &Config, acked: u32, is_safe: bool, pipe: u32) {
        assert!(self.is_reducing(), "a reduction that has not begun");
        let segment = config.segment_units();
        let ssthresh = self.window.ssthresh;
        let course = &mut self.recovery_mut().reduction;
        if let Some(quota) = course.quota_of_ns3(segment, acked, is_safe, pipe, ssthresh) {
            // The window of ns-3 may close until the next ACK. A single byte has the same effect.
            self.window.cwnd = (pipe + quota).max(1);
        }
    }
}

impl Flight {
    /// Splits the segment that an ACK covers in part, behind it. Returns the covered bytes, which never count as delivered
    /// (`TcpTxBuffer::DiscardUpTo`). Such an ACK is for boundaries from before [`fill_as_ns3`](Self::fill_as_ns3).
    pub(crate) fn split_acked_as_ns3(&mut self, config: &Config, ack: u64) -> u32 {
        let index = self.runs.partition_point(|run| run.end() <= ack);
        if index == self.runs.len() || self.runs[index].start >= ack {
            return 0;
        }
        let run = self.runs[index];
        let covered = (ack - run.start) % u64::from(run.mss);
        if covered > 0 {
            self.split_at(config, run.end().min(ack - covered + u64::from(run.mss)));
        }
        covered as u32
    }

    /// Fills the short segment of run `index` before it is sent again, from the segment behind it. That one must be as lost as the
    /// short one, and not marked as received. The rest of it is a segment of its own (`TcpTxBuffer::GetTransmittedSegment`).
    #[cold]
    pub(crate) fn fill_as_ns3(&mut self, config: &Config, index: usize) {
        let short = self.runs[index];
        if short.len >= u32::from(short.mss) || index + 1 == self.runs.len() {
            return;
        }
        let next = self.runs[index + 1];
        assert_eq!(short.end(), next.start, "runs leave a gap in the flight");
        if next.is(SACKED) || short.is(LOST) != next.is(LOST) {
            return;
        }
        let next_len = next.len.min(u32::from(next.mss));
        let moved = next_len.min(u32::from(short.mss) - short.len);
        self.split_at(config, next.start + u64::from(next_len));
        // If one of the two has a copy in the network, this copy does not count any more (`TcpTxBuffer::MergeItems`).
        if short.is(RETRANSMITTED) != next.is(RETRANSMITTED) {
            self.forget_copy(config, if short.is(RETRANSMITTED) { index } else { index + 1 });
        }
        if moved < next_len {
            self.split_at(config, next.start + u64::from(moved));
        }
        assert_eq!(self.runs[index + 1].len, moved, "the moved bytes are no run of their own");
        self.runs.remove(index + 1);
        self.runs[index].len += moved;
        assert!(self.runs[index].len <= u32::from(short.mss), "a segment is longer than the MSS");
    }
}
