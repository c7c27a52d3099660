//! Which segments are lost: duplicate ACKs, RFC 6675, FACK, RACK.

use fanin_units::Instant;

use crate::config::{Config, LossDetection};
use crate::endpoint::{Endpoint, State};
use crate::flight::{Covered, EVER_RETRANSMITTED, LOST, RETRANSMITTED, SACKED};
use crate::recovery::Ack;

impl Endpoint {
    // RFC 8985 §6.2 step 2; tcp_rack_advance, which takes the round trip of the last one covered.
    pub(super) fn advance_rack(&mut self, now: Instant, latest: u64, sent_at: u64, end: u64, again: bool) {
        let trouble = self.trouble();
        if !again {
            trouble.latest_delivery = trouble.latest_delivery.max(sent_at);
        }
        trouble.rack_rtt = now.get() - latest;
        trouble.rack_advanced = true;
        if (sent_at, end) > (trouble.rack_sent_at, trouble.rack_end) {
            trouble.rack_sent_at = sent_at;
            trouble.rack_end = end;
        }
    }

    // tcp_check_sack_reordering: an original arrived that lies below one that arrived before it.
    pub(super) fn note_reordering(&mut self, config: &Config, prior_fack: u64, covered: &Covered) {
        if covered.lowest_original == 0 || !config.sack {
            return;
        }
        let lowest = covered.lowest_original - 1;
        if lowest >= prior_fack {
            return;
        }
        self.reordering_seen = true;
        let segment = config.segment_units();
        let distance =
            config.units((prior_fack - lowest).min(u64::from(u32::MAX)) as u32, self.segment_size());
        let most = config.reordering_max.saturating_mul(segment);
        self.reordering = self.reordering.max(distance.min(most));
    }

    // tcp_time_to_recover, besides proven losses.
    pub(super) fn is_time_to_recover(&self, config: &Config) -> bool {
        let segment = config.segment_units();
        match config.detection() {
            LossDetection::DuplicateAcks => self.flight.sacked >= config.reordering * segment,
            LossDetection::Fack => {
                let fackets = self.fackets(config);
                if fackets > self.reordering {
                    return true;
                }
                // A small flight cannot yield three: half of it will do when nothing new can be sent.
                let packets = self.flight.out;
                packets <= self.reordering
                    && self.flight.sacked >= (packets / 2).max(config.reordering * segment)
                    && (self.written_beyond_next() == 0 || self.flight.in_network() >= self.window.cwnd)
            }
            LossDetection::Rfc6675 | LossDetection::Rack => false,
        }
    }

    /// Units from the cumulative point to the highest SACK (`fackets_out`); SACKed units alone once
    /// reordering was seen, which turns FACK off.
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

    /// Marks what the rule in force holds lost.
    #[inline]
    pub(super) fn detect_losses(&mut self, config: &Config, now: Instant, ack: &Ack, newly_sacked: bool) {
        if config.detection() != LossDetection::DuplicateAcks {
            self.detect_by_sacks(config, now, ack, newly_sacked);
        }
    }

    fn detect_by_sacks(&mut self, config: &Config, now: Instant, ack: &Ack, newly_sacked: bool) {
        match config.detection() {
            LossDetection::DuplicateAcks => {}
            LossDetection::Rfc6675 => {
                self.detect_rfc6675(config);
                self.detect_lost_retransmissions(config);
            }
            LossDetection::Fack => {
                if self.state == State::Recovery && (ack.duplicate || newly_sacked || ack.advanced) {
                    self.detect_fack(config);
                    self.detect_lost_retransmissions(config);
                }
            }
            LossDetection::Rack => {
                if core::mem::replace(&mut self.trouble().rack_advanced, false) || newly_sacked {
                    self.detect_rack(config, now);
                }
            }
        }
    }

    // RFC 6675 §4, IsLost: more than two segments' worth SACKed above, or three separate SACKed ranges.
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

    // tcp_update_scoreboard and tcp_mark_head_lost.
    fn detect_fack(&mut self, config: &Config) {
        let segment = config.segment_units();
        let Some(highest) = self.flight.highest_sacked() else { return };
        let (mut budget, counts_all) = if self.reordering_seen {
            (self.flight.sacked.saturating_sub(self.reordering).max(segment), false)
        } else {
            (self.fackets(config).saturating_sub(self.reordering).max(segment), true)
        };
        let mut limit = self.una;
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

    // tcp_mark_lost_retrans: something first sent after the retransmission has arrived.
    fn detect_lost_retransmissions(&mut self, config: &Config) {
        if self.flight.retransmitted == 0 || self.reordering_seen {
            return;
        }
        let latest = self.trouble().latest_delivery;
        self.flight.mark_lost(config, |run| run.is(RETRANSMITTED) && run.sent_at < latest);
    }

    // RFC 8985 §6.2 step 4; tcp_rack_reo_wnd. In picoseconds.
    fn reordering_window(&self, config: &Config) -> u64 {
        if !self.reordering_seen
            && (matches!(self.state, State::Recovery | State::Loss)
                || self.flight.sacked >= config.reordering * config.segment_units())
        {
            return 0;
        }
        let steps = u64::from(self.trouble.as_ref().map_or(1, |trouble| trouble.rack_steps));
        let srtt = self.rtt.smoothed(config).get();
        (self.rtt.min_ps(config).unwrap_or(0) / 4 * steps).min(srtt)
    }

    // RFC 8985 §6.2 step 5; tcp_rack_detect_loss.
    pub(super) fn detect_rack(&mut self, config: &Config, now: Instant) {
        let window = self.reordering_window(config);
        let trouble = self.trouble();
        let (sent_at, end, rtt) = (trouble.rack_sent_at, trouble.rack_end, trouble.rack_rtt);
        let mut wait = 0;
        self.flight.mark_lost(config, |run| {
            if (run.sent_at, run.end()) >= (sent_at, end) {
                return false;
            }
            let left = (run.sent_at + rtt + window).saturating_sub(now.get());
            wait = wait.max(left);
            left == 0
        });
        self.trouble().rack_wait = wait;
    }
}
