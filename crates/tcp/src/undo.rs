//! Undoing a reduction that proved needless: Eifel (RFC 3522), DSACK (RFC 3708), F-RTO (RFC 5682).

use fanin_units::Instant;

use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::recovery::{AckEvent, RecoveryState};

impl Endpoint {
    /// Takes a DSACK block that ends at `end` (RFC 2883, RFC 3708; `tcp_check_dsack`).
    pub(crate) fn handle_dsack(&mut self, end: u64) {
        let mut is_spurious = false;
        let recovery = self.recovery_mut();
        if let (Some(marker), Some(left)) = (recovery.undo_marker, recovery.undo_retrans)
            && end > marker
            && left > 0
        {
            recovery.undo_retrans = Some(left - 1);
            is_spurious = true;
        }
        if recovery.rack_steps < 64 {
            recovery.rack_steps += 1;
        }
        self.counters.spurious += u32::from(is_spurious);
    }

    /// Forgets the reduction, which can no longer be undone.
    pub(crate) fn clear_undo(&mut self) {
        let recovery = self.recovery_mut();
        recovery.undo_marker = None;
        recovery.undo_retrans = None;
        recovery.prior_ssthresh = 0;
        recovery.retrans_stamp = None;
        recovery.frto = false;
    }

    /// Returns whether the reduction was needless (`tcp_may_undo`): all retransmissions were reported as duplicates, nothing was
    /// retransmitted, or the ACK echoes a timestamp from before the first retransmission (RFC 3522).
    fn may_undo(&self, config: &Config, ack: &AckEvent) -> bool {
        let Some(recovery) = &self.recovery else { return false };
        if !config.undo || recovery.undo_marker.is_none() {
            return false;
        }
        let by_timestamp = recovery
            .retrans_stamp
            .is_some_and(|stamp| ack.ts_echo != 0 && ack.ts_echo < stamp && ack.advances);
        recovery.undo_retrans == Some(0) || by_timestamp || recovery.retrans_stamp.is_none()
    }

    /// Undoes the reduction if it was needless. Returns whether it did.
    pub(crate) fn try_undo(&mut self, config: &Config, ack: &AckEvent) -> bool {
        if !self.may_undo(config, ack) {
            return false;
        }
        self.undo(config, ack.now, true);
        true
    }

    /// Undoes the reduction if DSACKs reported all retransmissions (`tcp_try_undo_dsack`). Returns whether it did.
    pub(crate) fn try_undo_dsack(&mut self, config: &Config, now: Instant) -> bool {
        let all_reported = self
            .recovery
            .as_ref()
            .is_some_and(|recovery| recovery.undo_marker.is_some() && recovery.undo_retrans == Some(0));
        if all_reported && config.undo {
            self.undo(config, now, false);
        }
        all_reported && config.undo
    }

    /// Undoes the reduction on a partial ACK, where a timestamp proves it needless (`tcp_try_undo_partial`). Returns
    /// whether it did.
    pub(crate) fn try_undo_partial(&mut self, config: &Config, ack: &AckEvent, original: bool) -> bool {
        let by_timestamp = self.recovery.as_ref().is_some_and(|recovery| {
            recovery.undo_marker.is_some()
                && recovery.retrans_stamp.is_some_and(|stamp| ack.ts_echo != 0 && ack.ts_echo < stamp)
        });
        if !(config.undo && by_timestamp && original) || self.flight.retransmitted > 0 {
            return false;
        }
        self.undo(config, ack.now, true);
        self.keep_open();
        true
    }

    /// Restores window and threshold (`tcp_undo_cwnd_reduction`).
    fn undo(&mut self, config: &Config, now: Instant, unmark_lost: bool) {
        let needless = self.recovery_mut().undo_retrans.unwrap_or(0);
        self.counters.spurious += needless;
        if unmark_lost {
            self.flight.unmark_lost();
        }
        let &mut RecoveryState { prior_ssthresh, prior_cwnd, .. } = self.recovery_mut();
        if prior_ssthresh > 0 {
            self.window.cwnd = self.congestion.undo_cwnd(config, &self.window, prior_cwnd);
            self.window.ssthresh = self.window.ssthresh.max(prior_ssthresh);
        }
        self.cwnd_stamp = now.get();
        self.clear_undo();
    }

    /// Undoes a time-out that F-RTO found spurious. Returns whether it did.
    pub(crate) fn undo_timeout(&mut self, config: &Config, now: Instant) -> bool {
        if self.recovery_mut().undo_marker.is_none() {
            return false;
        }
        self.undo(config, now, true);
        self.rtt.backoff = 0;
        self.keep_open();
        true
    }
}
