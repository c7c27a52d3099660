//! Taking a reduction back that proves needless: Eifel (RFC 3522), DSACK (RFC 3708), F-RTO (RFC 5682).

use fanin_units::Instant;

use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::recovery::{Ack, Trouble};

impl Endpoint {
    pub(super) fn clear_undo(&mut self) {
        let trouble = self.trouble();
        trouble.undo_from = None;
        trouble.undo_retransmissions = None;
        trouble.threshold_before = 0;
        trouble.first_retransmission = None;
        trouble.frto = false;
    }

    // tcp_may_undo and tcp_packet_delayed: all retransmissions were reported as duplicates, or the ACK was
    // caused by something sent before the first of them (RFC 3522).
    fn may_undo(&self, config: &Config, ack: &Ack) -> bool {
        let Some(trouble) = &self.trouble else { return false };
        if !config.undo || trouble.undo_from.is_none() {
            return false;
        }
        let by_timestamp = trouble
            .first_retransmission
            .is_some_and(|stamp| ack.ts_echo != 0 && ack.ts_echo < stamp && ack.advanced);
        trouble.undo_retransmissions == Some(0) || by_timestamp || trouble.first_retransmission.is_none()
    }

    /// Takes the reduction back. Returns whether it did.
    pub(super) fn try_undo(&mut self, config: &Config, ack: &Ack) -> bool {
        if !self.may_undo(config, ack) {
            return false;
        }
        self.undo(config, ack.now, true);
        true
    }

    pub(super) fn try_undo_dsack(&mut self, config: &Config, now: Instant) -> bool {
        let all = self
            .trouble
            .as_ref()
            .is_some_and(|trouble| trouble.undo_from.is_some() && trouble.undo_retransmissions == Some(0));
        if all && config.undo {
            self.undo(config, now, false);
        }
        all && config.undo
    }

    pub(super) fn try_undo_partial(&mut self, config: &Config, ack: &Ack, original: bool) -> bool {
        // Only timestamps tell it early (tcp_try_undo_partial).
        let stamped = self.trouble.as_ref().is_some_and(|trouble| {
            trouble.undo_from.is_some()
                && trouble.first_retransmission.is_some_and(|stamp| ack.ts_echo != 0 && ack.ts_echo < stamp)
        });
        if !(config.undo && stamped && original) || self.flight.retransmitted > 0 {
            return false;
        }
        self.undo(config, ack.now, true);
        self.keep_open();
        true
    }

    /// `tcp_undo_cwnd_reduction`.
    fn undo(&mut self, config: &Config, now: Instant, unmark: bool) {
        let needless = self.trouble().undo_retransmissions.unwrap_or(0);
        self.counters.spurious += needless;
        if unmark {
            self.flight.unmark_lost();
        }
        let &mut Trouble { threshold_before, cwnd_before, .. } = self.trouble();
        if threshold_before > 0 {
            self.window.cwnd = self.window.undone(config, cwnd_before);
            self.window.ssthresh = self.window.ssthresh.max(threshold_before);
        }
        self.flight_stamp = now.get();
        self.clear_undo();
    }

    /// The time-out was spurious (F-RTO): as before it.
    pub(super) fn undo_time_out(&mut self, config: &Config, now: Instant) -> bool {
        if self.trouble().undo_from.is_none() {
            return false;
        }
        self.undo(config, now, true);
        self.rtt.backoff = 0;
        self.keep_open();
        true
    }
}
