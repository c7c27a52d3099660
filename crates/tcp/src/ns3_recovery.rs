//! Fast recovery of ns-3 without SACK, with its proportional rate reduction.
//!
//! ns-3 keeps each duplicate ACK as a mark on the next segment above the head. The marks stay when recovery ends. If an ACK makes a
//! marked segment the head, the mark was wrong. That segment is declared lost, in any state, and is sent again as soon as the window
//! permits. Follows `TcpSocketBase::DupAck`, `ProcessAck` and `EnterRecovery`, `TcpTxBuffer::DiscardUpTo` and `AddRenoSack`, and
//! `TcpPrrRecovery::DoRecovery` of ns-3.44.

use fanin_units::Instant;

use crate::ca_state::CongestionState;
use crate::config::Config;
use crate::endpoint::{Endpoint, Forced};
use crate::flight::LOST;
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
        let snd_una = self.send.una();
        let recovery = self.recovery_mut();
        recovery.forget_duplicates();
        let high_seq = recovery.high_seq();
        ack.delivered = ack.acked;
        match self.ca_state {
            CongestionState::Recovery if snd_una < high_seq => {
                self.flight.declare_head_lost(config);
                if self.window.has_whole_segment(config, ack.acked) {
                    self.reduce_as_ns3(config, ack.acked, true, pipe);
                }
                self.forced = Forced::LostHead;
            }
            CongestionState::Recovery => self.end_reduction(config, now),
            CongestionState::Loss if snd_una >= high_seq => {
                ack.delivered = (snd_una - high_seq) as u32;
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
        }
    }

    /// Sets the window for one ACK of a recovery. `acked` units are newly acknowledged, 0 by a duplicate. In recovery `pipe` is
    /// read before a duplicate leaves it and before a partial ACK declares the head lost. So each duplicate releases a segment.
    pub(crate) fn reduce_as_ns3(&mut self, config: &Config, acked: u32, is_safe: bool, pipe: u32) {
        let segment = config.segment_units();
        let ssthresh = self.window.ssthresh;
        let course = &mut self.recovery_mut().reduction;
        if let Some(quota) = course.quota_of_ns3(segment, acked, is_safe, pipe, ssthresh) {
            // The window of ns-3 may close until the next ACK. A single byte has the same effect.
            self.window.cwnd = (pipe + quota).max(1);
        }
    }
}
