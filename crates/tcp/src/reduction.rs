//! How the congestion window falls: at once, by rate halving, or by proportional rate reduction.
//!
//! Follows `tcp_init_cwnd_reduction`, `tcp_cwnd_reduction` and `tcp_end_cwnd_reduction` of `net/ipv4/tcp_input.c`; RFC 6937.

use fanin_units::Instant;

use crate::config::{Config, Reduction, TimeoutRules};
use crate::congestion::SSTHRESH_INFINITE;
use crate::endpoint::{CongestionState, Endpoint};
use crate::recovery::AckEvent;

impl Endpoint {
    /// Begins a reduction of the window, after a mark where `has_ece` is set (`tcp_init_cwnd_reduction`).
    pub(crate) fn start_reduction(&mut self, config: &Config, has_ece: bool) {
        let flight_size = self.flight_at_loss(config);
        let prior_ssthresh = self.current_ssthresh();
        let prr_prior_cwnd = match config.reduction {
            // The flight without the segment that was just declared lost.
            Reduction::Ns3 => flight_size.saturating_sub(config.segment_units()),
            _ => self.window.cwnd,
        };
        let snd_nxt = self.snd_nxt;
        let prior_cwnd = self.window.cwnd;
        let ssthresh = self.congestion.ssthresh(config, &self.window, flight_size, has_ece);
        debug_assert!(ssthresh > 0, "a threshold of nothing");
        self.window.ssthresh = ssthresh;
        self.window.cwnd_cnt = 0;
        let recovery = self.recovery_mut();
        recovery.prior_ssthresh = if has_ece { 0 } else { prior_ssthresh };
        recovery.prior_cwnd = prior_cwnd;
        recovery.prr_prior_cwnd = prr_prior_cwnd;
        recovery.prr_delivered = 0;
        recovery.prr_out = 0;
        recovery.halving_odd = false;
        recovery.high_seq = snd_nxt;
        recovery.tlp_high_seq = None;
        if config.ecn {
            self.send_cwr = true;
        }
        if config.reduction == Reduction::AtOnce {
            self.window.cwnd = ssthresh;
        }
    }

    /// The flight of which a loss leaves half: RFC 5681's FlightSize; ns-3 takes the pipe.
    pub(crate) fn flight_at_loss(&self, config: &Config) -> u32 {
        match config.timeout_rules {
            TimeoutRules::Rfc6298 => self.flight.size,
            TimeoutRules::Ns3 => self.flight.pipe(),
        }
    }

    /// Returns whether the window is being reduced.
    pub(crate) fn is_reducing(&self) -> bool {
        matches!(self.ca_state, CongestionState::Recovery | CongestionState::Cwr)
    }

    /// One step of the reduction, for one ACK.
    pub(crate) fn reduce(&mut self, config: &Config, ack: &AckEvent) {
        match config.reduction {
            Reduction::AtOnce => {}
            Reduction::RateHalving => self.reduce_by_rate_halving(config, ack),
            Reduction::Proportional => self.reduce_proportionally(config, ack),
            Reduction::Ns3 => self.reduce_as_ns3(config, ack),
        }
    }

    /// `tcp_cwnd_down` of Linux 2.6: the window falls by one segment every second ACK.
    fn reduce_by_rate_halving(&mut self, config: &Config, ack: &AckEvent) {
        if ack.delivered == 0 && !ack.has_dsack {
            return;
        }
        let segment = config.segment_units();
        let recovery = self.recovery_mut();
        recovery.halving_odd = !recovery.halving_odd;
        let falls = !recovery.halving_odd;
        if falls && self.window.cwnd > self.window.ssthresh {
            self.window.cwnd -= segment;
        }
        self.window.cwnd = self.window.cwnd.min(self.flight.pipe() + segment);
    }

    /// RFC 6937 with the slow-start reduction bound (`tcp_cwnd_reduction`).
    fn reduce_proportionally(&mut self, config: &Config, ack: &AckEvent) {
        if ack.delivered == 0 && !ack.is_duplicate && ack.lost == 0 {
            return;
        }
        let segment = config.segment_units();
        let pipe = self.flight.pipe();
        let ssthresh = self.window.ssthresh;
        let recovery = self.recovery_mut();
        recovery.prr_delivered += ack.delivered;
        let mut send = if pipe > ssthresh {
            let share = u64::from(ssthresh) * u64::from(recovery.prr_delivered);
            (share.div_ceil(u64::from(recovery.prr_prior_cwnd.max(1))) as u32)
                .saturating_sub(recovery.prr_out)
        } else {
            let mut limit = recovery.prr_delivered.saturating_sub(recovery.prr_out).max(ack.delivered);
            if ack.advances && ack.lost == 0 {
                limit += segment;
            }
            limit.min(ssthresh - pipe)
        };
        // The first retransmission always goes.
        if recovery.prr_out == 0 {
            send = send.max(segment);
        }
        self.window.cwnd = (pipe + send).max(segment);
    }

    /// `TcpPrrRecovery::DoRecovery` of ns-3.48: duplicates count as delivered, and so do the bytes of the ACK that follows
    /// them.
    fn reduce_as_ns3(&mut self, config: &Config, ack: &AckEvent) {
        if !ack.advances && !ack.is_duplicate {
            return;
        }
        let segment = config.segment_units();
        let ssthresh = self.window.ssthresh;
        let is_first = self.recovery_mut().prr_out == 0;
        let pipe = self.flight.pipe() + if ack.is_duplicate && !is_first { segment } else { 0 };
        let recovery = self.recovery_mut();
        let counts = ack.advances || recovery.prr_delivered < recovery.prr_prior_cwnd;
        let delivered = match (ack.advances, counts) {
            (true, _) => ack.acked,
            (false, true) => segment,
            // Nothing delivered leaves the window as it is.
            (false, false) => return,
        };
        recovery.prr_delivered += delivered;
        let send = if pipe > ssthresh {
            let share = u64::from(ssthresh) * u64::from(recovery.prr_delivered);
            (share.div_ceil(u64::from(recovery.prr_prior_cwnd.max(1))) as u32)
                .saturating_sub(recovery.prr_out)
        } else {
            let limit = recovery.prr_delivered.saturating_sub(recovery.prr_out).max(delivered);
            let safe = if ack.advances { segment } else { 0 };
            (limit + safe).min(ssthresh - pipe)
        };
        // The first retransmission always goes.
        let send = if is_first { send.max(segment) } else { send };
        self.window.cwnd = (pipe + send).max(segment);
    }

    /// Ends the reduction: the window is the slow-start threshold (`tcp_end_cwnd_reduction`, `tcp_complete_cwr`).
    pub(crate) fn end_reduction(&mut self, config: &Config, now: Instant) {
        if self.window.ssthresh < SSTHRESH_INFINITE {
            self.window.cwnd = match config.reduction {
                Reduction::RateHalving => self.window.cwnd.min(self.window.ssthresh),
                _ => self.window.ssthresh,
            };
        }
        self.note_cwnd_used(now);
        self.clear_undo();
        self.ca_state = CongestionState::Open;
    }
}
