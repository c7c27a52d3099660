//! The retransmission timeout (RFC 6298 §5.4 to §5.7, RFC 5681 §3.1 equation 4).
//!
//! Follows `tcp_retransmit_timer` and `tcp_enter_loss` of Linux. The timeout's duration is computed in `rto.rs`.

use fanin_units::Instant;

use crate::ca_state::CongestionState;
use crate::config::{Config, LossDetection, TimeoutRules};
use crate::endpoint::{Endpoint, Forced};
use crate::flight::SACKED;

impl Endpoint {
    /// Handles an expired retransmission timer: declares the whole flight lost, reduces the window to one segment,
    /// doubles the RTO.
    pub(crate) fn handle_timeout(&mut self, config: &Config, now: Instant) {
        if self.flight.size == 0 {
            return;
        }
        self.counters.timeouts += 1;
        let (snd_una, snd_nxt) = (self.send.una(), self.send.nxt());
        let is_first = self.ca_state != CongestionState::Loss;
        let is_fresh = !matches!(self.ca_state, CongestionState::Recovery | CongestionState::Loss);
        // The timeout of a retransmission that nothing has followed (`icsk_retransmits`).
        let was_retried = self.recovery_mut().note_timeout();
        let is_repeated = was_retried && config.is_linux_6();
        // A second timeout of the same flight reduces no further, except in ns-3. In Linux it does after progress.
        let is_unreduced = if config.is_linux_6() {
            (is_fresh && self.ca_state != CongestionState::Cwr) || (!is_first && !was_retried)
        } else {
            is_fresh
        };
        let reduces = is_unreduced
            || snd_una >= self.recovery_mut().high_seq()
            || config.timeout_rules == TimeoutRules::Ns3;
        if reduces {
            let prior_ssthresh = self.current_ssthresh();
            let flight_size = self.flight_at_loss(config);
            let prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.congestion.ssthresh(config, &self.window, flight_size, false);
            self.congestion.react_to_loss(config, &mut self.window);
            self.recovery_mut().undo.remember(prior_ssthresh, prior_cwnd);
        }
        if reduces || is_first {
            self.recovery_mut().undo.begin(snd_una, 0, false);
        }
        let recovery = self.recovery_mut();
        recovery.begin_episode(snd_nxt);
        recovery.note_retransmissions(snd_nxt);
        recovery.probe.cancel();
        recovery.forget_duplicates();
        recovery.undo.watch_timeout(config.undo && (is_fresh || is_repeated));
        self.ca_state = CongestionState::Loss;
        if config.ecn && config.is_linux_6() {
            self.is_cwr_due = true;
        }
        self.mark_flight_lost(config, now);
        if reduces || is_first || self.congestion.models_path() {
            let path = self.path_state(config);
            self.congestion.on_timeout(now, &path, self.timer.salt());
        }
        self.window.forget_progress(config);
        self.usage.set_full_at(now);
        self.window.cwnd = self.flight.pipe() + config.segment_units();
        self.rtt.back_off();
        self.forced = Forced::LostHead;
        self.timer.start_rto(config, now, &self.rtt);
    }

    /// Declares all outstanding segments without a SACK lost (`tcp_timeout_mark_lost`). RACK leaves out those sent
    /// within the last round trip, but for the first.
    fn mark_flight_lost(&mut self, config: &Config, now: Instant) {
        if !config.sack {
            self.flight.forget_sacks();
        } else if self.flight.runs.front().is_some_and(|run| run.is(SACKED)) {
            // The head was SACKed but not acknowledged: the receiver reneged (RFC 2018 §8).
            self.flight.forget_sacks();
        }
        if config.detection() == LossDetection::Rack {
            let round_trip = match self.recovery_mut().rack.rtt() {
                0 => self.rtt.smoothed(config).get(),
                newest => newest,
            };
            let head = self.send.una();
            self.flight.mark_lost(config, |run| run.start == head || run.sent_at + round_trip <= now.get());
            return;
        }
        self.flight.mark_lost(config, |_| true);
        assert_eq!(self.flight.pipe(), 0, "after a timeout a segment is still in the network");
    }
}
