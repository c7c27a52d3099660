//! Loss detection: duplicate ACKs (RFC 5681), SACK (RFC 6675), FACK, RACK (RFC 8985).

use fanin_units::Instant;

use crate::config::{Config, LossDetection};
use crate::endpoint::{CongestionState, Endpoint};
use crate::flight::{EVER_RETRANSMITTED, LOST, NewlyAcked, RETRANSMITTED, SACKED};
use crate::recovery::AckEvent;

impl Endpoint {
    /// RFC 8985 §6.2 step 2 (`tcp_rack_advance`): the round trip is that of the last run covered.
    pub(crate) fn advance_rack(&mut self, now: Instant, latest: u64, sent_at: u64, end: u64, again: bool) {
        let recovery = self.recovery_mut();
        if !again {
            recovery.latest_delivery = recovery.latest_delivery.max(sent_at);
        }
        debug_assert!(latest <= now.get() && sent_at <= now.get(), "acknowledged before it was sent");
        recovery.rack_rtt = now.get() - latest;
        recovery.rack_advanced = true;
        if (sent_at, end) > (recovery.rack_sent_at, recovery.rack_end) {
            recovery.rack_sent_at = sent_at;
            recovery.rack_end = end;
        }
    }

    /// Learns the reordering degree from an original that arrived after one above it (`tcp_check_sack_reordering`).
    pub(crate) fn note_reordering(&mut self, config: &Config, prior_fack: u64, newly: &NewlyAcked) {
        let Some(lowest) = newly.lowest_original else { return };
        if !config.sack || lowest >= prior_fack {
            return;
        }
        self.reordering_seen = true;
        let segment = config.segment_units();
        let distance = config.units((prior_fack - lowest).min(u64::from(u32::MAX)) as u32, self.mss);
        let most = config.reordering_max.saturating_mul(segment);
        self.reordering = self.reordering.max(distance.min(most));
    }

    /// Returns whether duplicate ACKs or SACKs suffice to enter recovery (`tcp_time_to_recover`), proven losses aside.
    pub(crate) fn is_time_to_recover(&self, config: &Config) -> bool {
        let segment = config.segment_units();
        match config.detection() {
            LossDetection::DuplicateAcks => self.flight.sacked >= config.reordering * segment,
            LossDetection::Fack => {
                let fackets = self.fackets(config);
                if fackets > self.reordering {
                    return true;
                }
                // A small flight cannot yield three duplicates: half of it suffices when nothing new can be sent.
                let packets = self.flight.size;
                packets <= self.reordering
                    && self.flight.sacked >= (packets / 2).max(config.reordering * segment)
                    && (self.unsent() == 0 || self.flight.pipe() >= self.window.cwnd)
            }
            LossDetection::Rfc6675 | LossDetection::Rack => false,
        }
    }

    /// Units from SND.UNA to the highest SACK (`fackets_out`). Reordering turns FACK off: then SACKed units alone.
    fn fackets(&self, config: &Config) -> u32 {
        if self.reordering_seen {
            return self.flight.sacked + config.segment_units();
        }
        match self.flight.highest_sacked() {
            Some(highest) => self
                .flight
                .runs
                .iter()
                .take_while(|run| run.start < highest)
                .map(|run| config.units(run.len, run.mss))
                .sum(),
            None => 0,
        }
    }

    /// Declares lost what the rule in force finds lost.
    #[inline]
    pub(crate) fn detect_losses(
        &mut self,
        config: &Config,
        now: Instant,
        ack: &AckEvent,
        newly_sacked: bool,
    ) {
        if config.detection() != LossDetection::DuplicateAcks {
            self.detect_by_sacks(config, now, ack, newly_sacked);
        }
    }

    fn detect_by_sacks(&mut self, config: &Config, now: Instant, ack: &AckEvent, newly_sacked: bool) {
        match config.detection() {
            LossDetection::DuplicateAcks => {}
            LossDetection::Rfc6675 => {
                self.detect_rfc6675(config);
                self.detect_lost_retransmissions(config);
            }
            LossDetection::Fack => {
                if self.ca_state == CongestionState::Recovery
                    && (ack.is_duplicate || newly_sacked || ack.advances)
                {
                    self.detect_fack(config);
                    self.detect_lost_retransmissions(config);
                }
            }
            LossDetection::Rack => {
                if core::mem::replace(&mut self.recovery_mut().rack_advanced, false) || newly_sacked {
                    self.detect_rack(config, now);
                }
            }
        }
    }

    /// RFC 6675 §4, IsLost: more than two segments' worth SACKed above, or three separate SACKed ranges.
    fn detect_rfc6675(&mut self, config: &Config) {
        if self.flight.sacked == 0 {
            return;
        }
        let threshold = u64::from(config.reordering);
        let limit = (threshold - 1) * u64::from(config.mss);
        let (mut bytes, mut ranges, mut above) = (0_u64, 0_u64, u64::MAX);
        let mut lost_below = 0;
        for run in self.flight.runs.iter().rev() {
            if run.is(SACKED) {
                bytes += u64::from(run.len);
                if run.end() != above {
                    ranges += 1;
                }
                above = run.start;
                if bytes > limit || ranges >= threshold {
                    lost_below = run.start;
                    break;
                }
            }
        }
        self.flight.mark_lost(config, |run| run.start < lost_below && !run.is(LOST | EVER_RETRANSMITTED));
    }

    /// `tcp_update_scoreboard` and `tcp_mark_head_lost`: what lies further below the highest SACK than the reordering degree.
    fn detect_fack(&mut self, config: &Config) {
        let segment = config.segment_units();
        let Some(highest) = self.flight.highest_sacked() else { return };
        let (mut budget, counts_all) = if self.reordering_seen {
            (self.flight.sacked.saturating_sub(self.reordering).max(segment), false)
        } else {
            (self.fackets(config).saturating_sub(self.reordering).max(segment), true)
        };
        let mut limit = self.snd_una;
        for run in self.flight.runs.iter() {
            if run.start >= highest || budget == 0 {
                break;
            }
            let units = config.units(run.len, run.mss);
            if counts_all || run.is(SACKED) {
                if units > budget {
                    limit = run.start + u64::from(budget.div_ceil(segment)) * u64::from(run.mss);
                    break;
                }
                budget -= units;
            }
            limit = run.end();
        }
        self.flight.split_at(config, limit.min(highest));
        self.flight.mark_lost(config, |run| run.start < limit && !run.is(LOST | EVER_RETRANSMITTED));
    }

    /// A retransmission is lost if a segment arrived that was first sent after it (`tcp_mark_lost_retrans`).
    fn detect_lost_retransmissions(&mut self, config: &Config) {
        if self.flight.retransmitted == 0 || self.reordering_seen {
            return;
        }
        let latest = self.recovery_mut().latest_delivery;
        self.flight.mark_lost(config, |run| run.is(RETRANSMITTED) && run.sent_at < latest);
    }

    /// RACK.reo_wnd in picoseconds (RFC 8985 §6.2 step 4; `tcp_rack_reo_wnd`).
    fn reordering_window(&self, config: &Config) -> u64 {
        if !self.reordering_seen
            && (matches!(self.ca_state, CongestionState::Recovery | CongestionState::Loss)
                || self.flight.sacked >= config.reordering * config.segment_units())
        {
            return 0;
        }
        let steps = u64::from(self.recovery.as_ref().map_or(1, |recovery| recovery.rack_steps));
        let srtt = self.rtt.smoothed(config).get();
        (self.rtt.min_ps(config).unwrap_or(0) / 4 * steps).min(srtt)
    }

    /// RFC 8985 §6.2 step 5; `tcp_rack_detect_loss`.
    pub(crate) fn detect_rack(&mut self, config: &Config, now: Instant) {
        let window = self.reordering_window(config);
        let recovery = self.recovery_mut();
        let (sent_at, end, rtt) = (recovery.rack_sent_at, recovery.rack_end, recovery.rack_rtt);
        let mut wait = 0;
        self.flight.mark_lost(config, |run| {
            if (run.sent_at, run.end()) >= (sent_at, end) {
                return false;
            }
            let left = (run.sent_at + rtt + window).saturating_sub(now.get());
            wait = wait.max(left);
            left == 0
        });
        self.recovery_mut().rack_wait = wait;
    }
}
