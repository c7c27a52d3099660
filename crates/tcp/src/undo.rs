//! Undo of a needless reduction: Eifel (RFC 3522), DSACK (RFC 3708), F-RTO (RFC 5682).

use fanin_units::Instant;

use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::recovery::AckEvent;

/// A reduction that may be undone, and the evidence against its need.
#[derive(Clone, Debug, Default)]
pub(crate) struct UndoState {
    /// SND.UNA when the reduction began (`undo_marker`); `None` without a reduction to undo.
    marker: Option<u64>,
    /// Retransmissions since then that no DSACK has reported (`undo_retrans`); `None` before the first.
    unreported: Option<u32>,
    /// Slow-start threshold before the reduction; 0 for none.
    prior_ssthresh: u32,
    /// Congestion window before the reduction.
    prior_cwnd: u32,
    /// Timestamp of the first retransmission of the episode (`retrans_stamp`).
    first_stamp: Option<u32>,
    /// True while F-RTO checks the timeout (RFC 5682).
    watches_timeout: bool,
    /// True from F-RTO's step 2b to the next ACK or timeout: new data goes instead of retransmissions.
    holds_retransmissions: bool,
}

impl UndoState {
    /// Remembers threshold and window before a reduction.
    pub(crate) fn remember(&mut self, ssthresh: u32, cwnd: u32) {
        self.prior_ssthresh = ssthresh;
        self.prior_cwnd = cwnd;
    }

    /// Forgets the threshold, which is not restored after a mark.
    pub(crate) fn forget_ssthresh(&mut self) {
        self.prior_ssthresh = 0;
    }

    /// Begins an episode at `snd_una`, with `retransmitted` units in the network. If those count as the episode's own, no later
    /// timestamp proves it needless.
    pub(crate) fn begin(&mut self, snd_una: u64, retransmitted: u32, counts: bool) {
        self.marker = Some(snd_una);
        self.unreported = (retransmitted > 0).then_some(retransmitted);
        self.first_stamp = (retransmitted > 0 && counts).then(|| self.first_stamp.unwrap_or(0));
    }

    /// Starts F-RTO's check of a timeout if `watches` is true, otherwise ends it.
    pub(crate) fn watch_timeout(&mut self, watches: bool) {
        self.watches_timeout = watches;
        self.holds_retransmissions = false;
    }

    /// Returns true while new data goes instead of retransmissions.
    #[inline]
    pub(crate) fn holds_retransmissions(&self) -> bool {
        self.holds_retransmissions
    }

    /// Returns true while F-RTO checks the last timeout.
    pub(crate) fn watches_timeout(&self) -> bool {
        self.watches_timeout
    }

    /// Notes a retransmission with the timestamp `stamp`.
    pub(crate) fn note_retransmission(&mut self, stamp: u32) {
        self.first_stamp.get_or_insert(stamp);
        if self.marker.is_some() {
            *self.unreported.get_or_insert(0) += 1;
        }
    }

    /// Takes a DSACK block that ends at `end`. Returns true if it reports a retransmission of the episode.
    fn note_duplicate(&mut self, end: u64) -> bool {
        match (self.marker, self.unreported) {
            (Some(marker), Some(left)) if end > marker && left > 0 => {
                self.unreported = Some(left - 1);
                true
            }
            _ => false,
        }
    }

    /// Returns true if DSACKs have reported all retransmissions.
    fn is_all_reported(&self) -> bool {
        self.marker.is_some() && self.unreported == Some(0)
    }

    /// Returns true if the ACK echoes a timestamp from before the first retransmission (RFC 3522).
    fn predates_retransmissions(&self, ack: &AckEvent) -> bool {
        self.marker.is_some() && self.first_stamp.is_some_and(|stamp| ack.ts_echo != 0 && ack.ts_echo < stamp)
    }

    /// Returns true if the reduction was needless (`tcp_may_undo`): all retransmissions were reported as duplicates,
    /// nothing was retransmitted, or a timestamp proves it.
    fn is_needless(&self, ack: &AckEvent) -> bool {
        let is_unused = self.marker.is_some() && self.first_stamp.is_none();
        self.is_all_reported() || is_unused || (ack.advances && self.predates_retransmissions(ack))
    }

    /// Forgets the reduction, which can no longer be undone.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Endpoint {
    /// Takes a DSACK block that ends at `end` (RFC 2883, RFC 3708; `tcp_check_dsack`).
    pub(crate) fn handle_dsack(&mut self, end: u64) {
        let (snd_una, snd_nxt) = (self.send.una(), self.send.nxt());
        let has_reordered = self.reordering.is_seen();
        let recovery = self.recovery_mut();
        // RACK is not to blame for the copy that a probe sent, nor where nothing has been reordered (`tcp_dsack_seen`).
        if has_reordered && !recovery.probe.ends_at(end) {
            recovery.rack.widen_window(snd_una, snd_nxt);
        }
        let is_spurious = recovery.undo.note_duplicate(end);
        self.counters.spurious += u32::from(is_spurious);
    }

    /// Undoes the reduction if it was needless (`tcp_may_undo`), and then returns true.
    pub(crate) fn try_undo(&mut self, config: &Config, ack: &AckEvent) -> bool {
        let is_needless = config.undo && self.recovery.as_ref().is_some_and(|it| it.undo.is_needless(ack));
        if is_needless {
            self.undo(config, ack.now, true);
        }
        is_needless
    }

    /// Undoes the reduction if DSACKs reported all retransmissions (`tcp_try_undo_dsack`), and then returns true.
    pub(crate) fn try_undo_dsack(&mut self, config: &Config, now: Instant) -> bool {
        let is_needless = config.undo && self.recovery.as_ref().is_some_and(|it| it.undo.is_all_reported());
        if is_needless {
            self.recovery_mut().rack.note_needless_recovery();
            self.undo(config, now, false);
        }
        is_needless
    }

    /// Undoes the reduction on a partial ACK, if a timestamp proves it needless (`tcp_try_undo_partial`). Returns true if the
    /// ACK shows no loss. That is so until the last retransmission is acknowledged, too.
    pub(crate) fn try_undo_partial(&mut self, config: &Config, ack: &AckEvent, original: bool) -> bool {
        let is_early = self.recovery.as_ref().is_some_and(|it| it.undo.predates_retransmissions(ack));
        if !(config.undo && is_early && (original || config.is_linux_6())) {
            return false;
        }
        if config.is_linux_6() {
            // An original has filled the hole late.
            self.note_reordering(config, ack.prior_una, self.fack(config));
        }
        if self.flight.retransmitted > 0 {
            return config.is_linux_6();
        }
        self.undo(config, ack.now, true);
        self.keep_open();
        !config.is_linux_6()
    }

    /// Undoes the reduction of a timeout, if F-RTO or a timestamp proves it needless (`tcp_process_loss`), and then returns true.
    pub(crate) fn try_undo_timeout(
        &mut self,
        config: &Config,
        ack: &AckEvent,
        original: bool,
        newly_sacked: bool,
    ) -> bool {
        // RFC 5682 step 3b: a segment sent before the timeout has arrived.
        if self.recovery_mut().undo.watches_timeout()
            && original
            && config.undo
            && (ack.advances || newly_sacked)
            && self.undo_timeout(config, ack.now)
        {
            return true;
        }
        if ack.advances {
            if !config.is_linux_6() {
                self.recovery_mut().undo.watch_timeout(false);
            }
            if self.try_undo(config, ack) {
                self.keep_open();
                return true;
            }
        }
        false
    }

    /// F-RTO with SACK (RFC 5682 §3.1; `tcp_process_loss`). Returns true if new data goes next, to find out whether the timeout
    /// was needless.
    pub(crate) fn test_timeout(&mut self, ack: &AckEvent, newly_sacked: bool) -> bool {
        let (snd_una, snd_nxt) = (self.send.una(), self.send.nxt());
        let can_send = self.send.has_unsent() && self.send.has_room(self.send.next_payload());
        let recovery = self.recovery_mut();
        recovery.undo.holds_retransmissions = false;
        if !recovery.undo.watches_timeout() {
            return false;
        }
        if snd_nxt > recovery.high_seq() {
            if newly_sacked || ack.is_duplicate {
                // Step 3a: the loss was real.
                recovery.undo.watch_timeout(false);
            }
            return false;
        }
        if !ack.advances || snd_una >= recovery.high_seq() {
            return false;
        }
        // Step 2b.
        recovery.begin_episode(snd_nxt);
        recovery.undo.watch_timeout(can_send);
        recovery.undo.holds_retransmissions = can_send;
        can_send
    }

    /// Restores window and threshold (`tcp_undo_cwnd_reduction`).
    fn undo(&mut self, config: &Config, now: Instant, unmark_lost: bool) {
        if unmark_lost {
            self.flight.unmark_lost();
        }
        let UndoState { unreported, prior_ssthresh, prior_cwnd, .. } = self.recovery_mut().undo;
        self.counters.spurious += unreported.unwrap_or(0);
        if prior_ssthresh > 0 {
            self.window.cwnd =
                self.congestion.undo_cwnd(config, &self.window, prior_cwnd, self.flight.declared_lost);
            if prior_ssthresh > self.window.ssthresh {
                self.window.ssthresh = prior_ssthresh;
                // tcp_ecn_withdraw_cwr.
                self.is_cwr_due &= !config.is_linux_6();
            }
        }
        assert!(self.window.cwnd > 0, "the congestion window is closed and never opens again");
        self.usage.set_full_at(now);
        self.recovery_mut().undo.clear();
    }

    /// Undoes the reduction of a timeout that F-RTO found spurious. Returns false without a reduction to undo.
    pub(crate) fn undo_timeout(&mut self, config: &Config, now: Instant) -> bool {
        if self.recovery_mut().undo.marker.is_none() {
            return false;
        }
        self.undo(config, now, true);
        self.rtt.end_back_off();
        self.keep_open();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // retrans_stamp outlives the recovery that set it while its retransmissions are outstanding.
    #[test]
    fn an_episode_with_older_retransmissions_is_not_unused() {
        let ack = AckEvent {
            now: Instant::START,
            advances: true,
            is_duplicate: false,
            prior_una: 0,
            has_dsack: false,
            delivered: 1,
            acked: 1,
            lost: 0,
            has_ece: false,
            ts_echo: 0,
        };
        let mut undo = UndoState::default();
        undo.begin(1, 1, true);
        assert!(!undo.is_needless(&ack));
        undo.begin(1, 0, true);
        assert!(undo.is_needless(&ack), "nothing was retransmitted");
    }
}
