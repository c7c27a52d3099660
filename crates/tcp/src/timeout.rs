//! The retransmission time-out (RFC 6298 §5.4 to §5.7, RFC 5681 §3.1 equation 4).
//!
//! Follows `tcp_retransmit_timer` and `tcp_enter_loss` of Linux. The time-out's duration is computed in `rto.rs`.

use fanin_units::Instant;

use crate::config::{Config, Reduction, TimeoutRules};
use crate::endpoint::{CongestionState, Endpoint, Forced};
use crate::flight::SACKED;
use crate::timers::Timer;

impl Endpoint {
    /// The retransmission timer expired: declares the whole flight lost, closes the window to one segment, doubles the RTO.
    pub(crate) fn handle_timeout(&mut self, config: &Config, now: Instant) {
        if self.flight.size == 0 {
            return;
        }
        self.counters.timeouts += 1;
        let (snd_una, snd_nxt) = (self.snd_una, self.snd_nxt);
        let is_first = self.ca_state != CongestionState::Loss;
        let is_fresh = !matches!(self.ca_state, CongestionState::Recovery | CongestionState::Loss);
        // A second time-out of the same flight reduces nothing further, except in ns-3.
        let reduces =
            is_fresh || snd_una >= self.recovery_mut().high_seq || config.timeout_rules == TimeoutRules::Ns3;
        if reduces {
            let prior_ssthresh = self.current_ssthresh();
            let flight_size = self.flight_at_loss(config);
            let prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.congestion.ssthresh(config, &self.window, flight_size, false);
            let recovery = self.recovery_mut();
            (recovery.prior_ssthresh, recovery.prior_cwnd) = (prior_ssthresh, prior_cwnd);
        }
        if reduces || is_first {
            self.congestion.on_timeout();
            let recovery = self.recovery_mut();
            recovery.undo_marker = Some(snd_una);
            recovery.undo_retrans = None;
            recovery.retrans_stamp = None;
        }
        let recovery = self.recovery_mut();
        recovery.high_seq = snd_nxt;
        recovery.retransmitted_below = snd_nxt;
        recovery.tlp_high_seq = None;
        recovery.frto = config.undo && is_fresh;
        self.ca_state = CongestionState::Loss;
        self.mark_flight_lost(config);
        self.window.cwnd_cnt = 0;
        self.cwnd_stamp = now.get();
        self.window.cwnd = match config.reduction {
            Reduction::Proportional => self.flight.pipe() + config.segment_units(),
            _ => config.segment_units(),
        };
        // RFC 6298 §5.5: back off the timer.
        self.rtt.backoff = (self.rtt.backoff + 1).min(30);
        self.forced = Forced::LostHead;
        let delay = self.with_spread(config, now, self.rtt.rto(config).get());
        self.start_timer(config, Timer::Retransmission, now.get(), delay);
    }

    /// Declares lost what is outstanding and not SACKed (`tcp_timeout_mark_lost`).
    fn mark_flight_lost(&mut self, config: &Config) {
        if !config.sack {
            self.flight.sacked = 0;
        } else if self.flight.runs.front().is_some_and(|run| run.is(SACKED)) {
            // The head was SACKed and yet not acknowledged: the receiver reneged (RFC 2018 §8).
            self.flight.forget_sacks();
        }
        self.flight.mark_lost(config, |_| true);
    }
}
