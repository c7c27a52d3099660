//! Reductions of the congestion window: at once, by rate halving, or by proportional rate reduction.
//!
//! Follows `tcp_init_cwnd_reduction`, `tcp_cwnd_reduction` and `tcp_end_cwnd_reduction` of `net/ipv4/tcp_input.c`; RFC 6937.

use fanin_units::Instant;

use crate::ca_state::CongestionState;
use crate::config::{Config, Reduction, TimeoutRules};
use crate::congestion::SSTHRESH_INFINITE;
use crate::endpoint::Endpoint;
use crate::recovery::AckEvent;

/// The course of a reduction (RFC 6937).
#[derive(Clone, Debug, Default)]
pub(crate) struct ReductionCourse {
    /// The window when the reduction began (RecoverFS); in ns-3 the pipe.
    prior_cwnd: u32,
    /// Units delivered and units sent since then (prr_delivered, prr_out).
    delivered: u32,
    sent: u32,
    /// True if rate halving lowers the window with the next ACK.
    is_halving_next: bool,
}

impl ReductionCourse {
    fn begin(prior_cwnd: u32) -> Self {
        Self { prior_cwnd, ..Self::default() }
    }

    /// Counts units that are sent.
    pub(crate) fn note_sent(&mut self, units: u32) {
        self.sent += units;
    }

    /// Counts an ACK for rate halving. Returns true for every second ACK, which lowers the window.
    fn halves(&mut self) -> bool {
        self.is_halving_next = !self.is_halving_next;
        !self.is_halving_next
    }

    /// Takes the units that an ACK delivered. Returns the units that may be sent (RFC 6937 §3). Below the threshold
    /// these are at most the delivered units plus `safe`.
    fn send_quota(&mut self, config: &Config, delivered: u32, safe: u32, pipe: u32, ssthresh: u32) -> u32 {
        self.delivered += delivered;
        let quota = if pipe > ssthresh {
            let share = u64::from(ssthresh) * u64::from(self.delivered);
            (share.div_ceil(u64::from(self.prior_cwnd.max(1))) as u32).saturating_sub(self.sent)
        } else {
            let limit = self.delivered.saturating_sub(self.sent).max(delivered) + safe;
            limit.min(ssthresh - pipe)
        };
        // The first retransmission is always sent.
        if self.sent == 0 { quota.max(config.segment_units()) } else { quota }
    }

    /// Takes the bytes that an ACK acknowledges, 0 by a duplicate. Returns the bytes that may be sent, or nothing if the window stays
    /// (`TcpPrrRecovery::DoRecovery`). Its sums have 32 bits: they wrap around.
    pub(crate) fn quota_of_ns3(
        &mut self,
        segment: u32,
        acked: u32,
        is_safe: bool,
        pipe: u32,
        ssthresh: u32,
    ) -> Option<u32> {
        let delivered = match acked {
            0 if self.delivered >= self.prior_cwnd => return None,
            0 => segment,
            _ => acked,
        };
        self.delivered = self.delivered.wrapping_add(delivered);
        let quota = if pipe > ssthresh {
            let share = self.delivered.wrapping_mul(ssthresh);
            if self.prior_cwnd == 0 {
                0
            } else {
                i64::from(share.div_ceil(self.prior_cwnd)) - i64::from(self.sent)
            }
        } else {
            let ahead = self.delivered.wrapping_sub(self.sent).max(delivered) as i32;
            let limit = i64::from(ahead) + if is_safe { i64::from(segment) } else { 0 };
            limit.min(i64::from(ssthresh - pipe))
        };
        Some(quota.max(if self.sent > 0 { 0 } else { i64::from(segment) }) as u32)
    }
}

impl Endpoint {
    /// Begins a reduction of the window, after a mark if `has_ece` is true, otherwise after a loss (`tcp_init_cwnd_reduction`).
    pub(crate) fn start_reduction(&mut self, config: &Config, has_ece: bool) {
        assert!(
            self.ca_state != CongestionState::Recovery
                && (self.ca_state != CongestionState::Loss || config.is_linux_6()),
            "a loss reduces the window twice"
        );
        let is_ns3 = config.recovers_as_ns3();
        // ns-3 has declared the head lost before, but counts it.
        let flight_size = self.flight_at_loss(config) + if is_ns3 { config.segment_units() } else { 0 };
        let prior_ssthresh = self.current_ssthresh();
        let prr_prior_cwnd = match config.reduction {
            Reduction::Ns3 => flight_size.saturating_sub(config.segment_units()),
            _ => self.window.cwnd,
        };
        let snd_nxt = self.send.nxt();
        let prior_cwnd = self.window.cwnd;
        let ssthresh = self.congestion.ssthresh(config, &self.window, flight_size, has_ece);
        self.window.ssthresh = ssthresh;
        self.window.forget_progress(config);
        let recovery = self.recovery_mut();
        recovery.undo.remember(if has_ece { 0 } else { prior_ssthresh }, prior_cwnd);
        recovery.reduction = ReductionCourse::begin(prr_prior_cwnd);
        recovery.begin_episode(snd_nxt);
        recovery.probe.cancel();
        if config.ecn {
            self.is_cwr_due = true;
        }
        if config.reduction == Reduction::AtOnce {
            self.window.cwnd = ssthresh;
        }
    }

    /// The flight that is halved after a loss: RFC 5681's FlightSize; in ns-3 the pipe.
    pub(crate) fn flight_at_loss(&self, config: &Config) -> u32 {
        match config.timeout_rules {
            TimeoutRules::Rfc6298 => self.flight.size,
            TimeoutRules::Ns3 => self.flight.pipe(),
        }
    }

    /// Returns true while the window is being reduced.
    pub(crate) fn is_reducing(&self) -> bool {
        matches!(self.ca_state, CongestionState::Recovery | CongestionState::Cwr)
    }

    /// Takes one step of the reduction, for one ACK.
    pub(crate) fn reduce(&mut self, config: &Config, ack: &AckEvent) {
        assert!(self.is_reducing(), "a reduction that has not begun");
        match config.reduction {
            Reduction::AtOnce => {}
            // Its own handling of ACKs has set the window.
            Reduction::Ns3 if config.recovers_as_ns3() => {}
            Reduction::RateHalving => self.reduce_by_rate_halving(config, ack),
            Reduction::Ns3 if ack.advances || ack.is_duplicate => {
                let is_first = self.recovery_mut().reduction.sent == 0;
                let is_read_before = ack.is_duplicate && !is_first;
                let pipe = self.flight.pipe() + if is_read_before { config.segment_units() } else { 0 };
                let acked = if ack.advances { ack.acked } else { 0 };
                self.reduce_as_ns3(config, acked, ack.advances, pipe);
            }
            Reduction::Ns3 => {}
            Reduction::Proportional => self.reduce_proportionally(config, ack),
        }
    }

    /// Lowers the window by one segment at every second ACK (`tcp_cwnd_down` of Linux 2.6).
    fn reduce_by_rate_halving(&mut self, config: &Config, ack: &AckEvent) {
        if ack.delivered == 0 && !ack.has_dsack {
            return;
        }
        let segment = config.segment_units();
        if self.recovery_mut().reduction.halves() && self.window.cwnd > self.window.ssthresh {
            self.window.cwnd -= segment;
        }
        self.window.cwnd = self.window.cwnd.min(self.flight.pipe() + segment);
    }

    /// Reduces by RFC 6937 with the slow-start reduction bound (`tcp_cwnd_reduction`).
    fn reduce_proportionally(&mut self, config: &Config, ack: &AckEvent) {
        if ack.delivered == 0 {
            return;
        }
        let safe = if ack.advances && ack.lost == 0 { config.segment_units() } else { 0 };
        self.follow_course(config, ack.delivered, safe, self.flight.pipe());
    }

    /// Sets the window to the pipe plus the bytes that may be sent now.
    fn follow_course(&mut self, config: &Config, delivered: u32, safe: u32, pipe: u32) {
        let ssthresh = self.window.ssthresh;
        let quota = self.recovery_mut().reduction.send_quota(config, delivered, safe, pipe, ssthresh);
        self.window.cwnd = (pipe + quota).max(config.segment_units());
    }

    /// Ends the reduction: the window is the slow-start threshold (`tcp_end_cwnd_reduction`, `tcp_complete_cwr`).
    pub(crate) fn end_reduction(&mut self, config: &Config, now: Instant) {
        assert!(self.is_reducing(), "a reduction ends that has not begun");
        if self.window.ssthresh < SSTHRESH_INFINITE && !self.congestion.models_path() {
            self.window.cwnd = match config.reduction {
                Reduction::RateHalving => self.window.cwnd.min(self.window.ssthresh),
                _ => self.window.ssthresh,
            };
        }
        assert!(self.window.cwnd > 0, "the congestion window is closed and never opens again");
        self.usage.restart(now);
        self.recovery_mut().undo.clear();
        self.ca_state = CongestionState::Open;
    }
}
