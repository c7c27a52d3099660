//! Loss detection: duplicate ACKs (RFC 5681), SACK (RFC 6675), FACK, RACK (RFC 8985).

use fanin_units::Instant;

use crate::ca_state::CongestionState;
use crate::config::{Config, LossDetection};
use crate::endpoint::Endpoint;
use crate::flight::{EVER_RETRANSMITTED, LOST, RETRANSMITTED, SACKED, SegmentRun};
use crate::recovery::{AckEvent, RecoveryState};

/// Recoveries for which DSACKs keep the reordering window wide (`TCP_RACK_RECOVERY_THRESH`).
const WIDE_RECOVERIES: u8 = 16;

/// The delivered segment that was sent last (RFC 8985 §6.1), and its timer.
#[derive(Clone, Debug)]
pub(crate) struct RackState {
    /// Send time of the segment, in ps, and its end (RACK.xmit_ts, RACK.end_seq).
    sent_at: u64,
    end: u64,
    /// Round-trip time of the segment in ps (RACK.rtt).
    rtt: u64,
    /// Time until the youngest candidate is declared lost, in ps; 0 without candidates.
    wait: u64,
    /// Transmission time of the latest delivered original, for FACK's test of lost retransmissions.
    original_sent_at: u64,
    /// Factor of the reordering window; DSACKs raise it (RACK.reo_wnd_mult).
    window_steps: u8,
    /// Recoveries after which the window is narrow again (RACK.reo_wnd_persist).
    wide_recoveries: u8,
    /// SND.NXT when it was raised last.
    widened_until: u64,
    /// True if an ACK has covered a transmission since the last search for losses.
    is_advanced: bool,
}

impl RackState {
    /// The state before any delivery.
    pub(crate) fn new() -> Self {
        Self {
            sent_at: 0,
            end: 0,
            rtt: 0,
            wait: 0,
            original_sent_at: 0,
            window_steps: 1,
            wide_recoveries: 0,
            widened_until: 0,
            is_advanced: false,
        }
    }

    /// Takes the newest transmission that an ACK covers (RFC 8985 §6.2 step 2; `tcp_rack_advance`). The round-trip
    /// time counts from `latest`, the transmission of the last covered run.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        latest: u64,
        (sent_at, end, is_retransmission): (u64, u64, bool),
    ) {
        assert!(latest <= now.get() && sent_at <= now.get(), "acknowledged before it was sent");
        if !is_retransmission {
            self.original_sent_at = self.original_sent_at.max(sent_at);
        }
        self.rtt = now.get() - latest;
        self.is_advanced = true;
        if (sent_at, end) > (self.sent_at, self.end) {
            (self.sent_at, self.end) = (sent_at, end);
        }
    }

    /// Round-trip time of the delivered segment that was sent last, in ps; 0 before any delivery.
    pub(crate) fn rtt(&self) -> u64 {
        self.rtt
    }

    /// Widens the reordering window after a DSACK (RFC 8985 §6.2 step 4), once a round trip (`tcp_rack_update_reo_wnd`).
    pub(crate) fn widen_window(&mut self, snd_una: u64, snd_nxt: u64) {
        if snd_una >= self.widened_until {
            self.window_steps = self.window_steps.saturating_add(1);
            self.wide_recoveries = WIDE_RECOVERIES;
            self.widened_until = snd_nxt;
        }
    }

    /// Notes a recovery that was needless: a wide window stays for one more (`tcp_try_undo_dsack`).
    pub(crate) fn note_needless_recovery(&mut self) {
        self.wide_recoveries = (self.wide_recoveries + 1).min(WIDE_RECOVERIES);
    }

    /// Notes the end of a recovery that was not undone (`tcp_try_undo_recovery`). After the last one the window is narrow.
    pub(crate) fn note_recovery(&mut self) {
        self.wide_recoveries = self.wide_recoveries.saturating_sub(1);
        if self.wide_recoveries == 0 {
            self.window_steps = 1;
        }
    }

    /// Returns true if DSACKs have widened the reordering window.
    pub(crate) fn is_window_wide(&self) -> bool {
        self.window_steps > 1
    }

    /// Returns true if [`advance`](Self::advance) was called since the last call of this function.
    fn take_advance(&mut self) -> bool {
        core::mem::replace(&mut self.is_advanced, false)
    }

    /// Takes the time until the youngest candidate is declared lost, in ps; 0 without candidates.
    pub(crate) fn take_wait(&mut self) -> u64 {
        core::mem::take(&mut self.wait)
    }

    /// RFC 8985 §6.2 step 5: returns true if `run` is lost. If it may be lost later, notes the remaining wait.
    fn is_lost(&mut self, run: &SegmentRun, now: Instant, window: u64) -> bool {
        if (run.sent_at, run.end()) >= (self.sent_at, self.end) {
            return false;
        }
        let left = (run.sent_at + self.rtt + window).saturating_sub(now.get());
        self.wait = self.wait.max(left);
        left == 0
    }
}

/// Observed reordering degree of this path, in segments (`tcp_sock::reordering`).
#[derive(Clone, Debug)]
pub(crate) struct ReorderingDegree {
    /// In units of the window.
    units: u32,
    /// Number of segments that were seen to arrive late.
    seen: u32,
}

impl ReorderingDegree {
    /// The configured degree: no reordering was seen.
    pub(crate) fn new(config: &Config) -> Self {
        Self { units: config.reordering * config.segment_units(), seen: 0 }
    }

    /// The degree in units of the window.
    pub(crate) fn units(&self) -> u32 {
        self.units
    }

    /// Returns true if reordering has been seen.
    pub(crate) fn is_seen(&self) -> bool {
        self.seen != 0
    }

    /// Number of times that reordering has been seen.
    pub(crate) fn seen(&self) -> u32 {
        self.seen
    }

    /// Returns true if the degree has grown since the connection began.
    pub(crate) fn is_raised(&self, config: &Config) -> bool {
        self.units > config.reordering * config.segment_units()
    }

    /// Raises the degree after an original arrived later than a segment `distance` units above it.
    pub(crate) fn note(&mut self, config: &Config, distance: u32) {
        self.seen = self.seen.saturating_add(1);
        let most = config.reordering_max.saturating_mul(config.segment_units());
        self.units = self.units.max(distance.min(most));
    }
}

impl Endpoint {
    /// The number after the highest SACKed byte; SND.UNA where nothing is SACKed.
    pub(crate) fn fack(&self, config: &Config) -> u64 {
        let highest = if config.sack { self.flight.highest_sacked() } else { None };
        highest.unwrap_or(self.send.una())
    }

    /// Learns the reordering degree from an original at `start` that arrived after a later one, below `fack`
    /// (`tcp_check_sack_reordering`).
    pub(crate) fn note_reordering(&mut self, config: &Config, start: u64, fack: u64) {
        if start < fack {
            let distance = (fack - start).min(u64::from(u32::MAX)) as u32;
            self.reordering.note(config, config.units(distance, self.send.mss()));
        }
    }

    /// Returns true if duplicate ACKs or SACKs suffice to enter recovery (`tcp_time_to_recover`). Proven losses do not
    /// count here.
    pub(crate) fn is_time_to_recover(&self, config: &Config) -> bool {
        let segment = config.segment_units();
        match config.detection() {
            LossDetection::DuplicateAcks if config.is_linux_6() => {
                self.flight.sacked >= self.reordering.units()
            }
            LossDetection::DuplicateAcks => self.flight.sacked >= config.reordering * segment,
            LossDetection::Fack => {
                let fackets = self.fackets(config);
                if fackets > self.reordering.units() {
                    return true;
                }
                // A flight of at most the degree cannot exceed it. Half of the flight, and at least the configured degree, then
                // suffices when nothing new can be sent.
                let packets = self.flight.size;
                packets <= self.reordering.units()
                    && self.flight.sacked >= (packets / 2).max(config.reordering * segment)
                    && (!self.send.has_unsent() || self.flight.pipe() >= self.window.cwnd)
            }
            LossDetection::Rfc6675 | LossDetection::Rack => false,
        }
    }

    /// Units from SND.UNA to the highest SACK (`fackets_out`). After reordering FACK is off: the SACKed units and one segment
    /// count.
    fn fackets(&self, config: &Config) -> u32 {
        if self.reordering.is_seen() {
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

    /// Declares segments lost by the rule in force.
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
                if self.recovery_mut().rack.take_advance() || newly_sacked {
                    self.detect_rack(config, now);
                }
            }
        }
    }

    /// Declares losses by IsLost of RFC 6675 §4. With a degree of three, more than two segments' bytes or three separate
    /// ranges are SACKed above a lost segment.
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

    /// Declares lost the segments further below the highest SACK than the reordering degree (`tcp_update_scoreboard`,
    /// `tcp_mark_head_lost`).
    fn detect_fack(&mut self, config: &Config) {
        let segment = config.segment_units();
        let Some(highest) = self.flight.highest_sacked() else { return };
        let (mut budget, counts_all) = if self.reordering.is_seen() {
            (self.flight.sacked.saturating_sub(self.reordering.units()).max(segment), false)
        } else {
            (self.fackets(config).saturating_sub(self.reordering.units()).max(segment), true)
        };
        let mut limit = self.send.una();
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

    /// Declares a retransmission lost if a segment arrived that was first sent after it (`tcp_mark_lost_retrans`).
    fn detect_lost_retransmissions(&mut self, config: &Config) {
        if self.flight.retransmitted == 0 || self.reordering.is_seen() {
            return;
        }
        let latest = self.recovery_mut().rack.original_sent_at;
        self.flight.mark_lost(config, |run| run.is(RETRANSMITTED) && run.sent_at < latest);
    }

    /// RACK.reo_wnd in picoseconds (RFC 8985 §6.2 step 4; `tcp_rack_reo_wnd`).
    fn reordering_window(&self, config: &Config) -> u64 {
        if !self.reordering.is_seen()
            && (matches!(self.ca_state, CongestionState::Recovery | CongestionState::Loss)
                || self.flight.sacked >= config.reordering * config.segment_units())
        {
            return 0;
        }
        let steps = u64::from(self.recovery.as_ref().map_or(1, |recovery| recovery.rack.window_steps));
        let srtt = self.rtt.smoothed(config).get();
        (self.rtt.min_ps(config).unwrap_or(0) / 4 * steps).min(srtt)
    }

    /// Declares losses by RACK (RFC 8985 §6.2 step 5; `tcp_rack_detect_loss`), and notes the time until the
    /// youngest candidate is lost.
    pub(crate) fn detect_rack(&mut self, config: &Config, now: Instant) {
        let window = self.reordering_window(config);
        let snd_nxt = self.send.nxt();
        let rack = &mut RecoveryState::in_place(&mut self.recovery, snd_nxt).rack;
        rack.wait = 0;
        self.flight.mark_lost(config, |run| rack.is_lost(run, now, window));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 8985 section 6.2 step 4: RACK.reo_wnd_persist is 16 recoveries.
    #[test]
    fn sixteen_recoveries_narrow_the_window() {
        let mut rack = RackState::new();
        for round in 0..3 {
            rack.widen_window(10 * round, 10 * (round + 1));
        }
        rack.widen_window(29, 40);
        assert_eq!(rack.window_steps, 4, "once a round trip");
        for _ in 0..15 {
            rack.note_recovery();
        }
        rack.note_needless_recovery();
        rack.note_recovery();
        assert_eq!(rack.window_steps, 4);
        rack.note_recovery();
        assert!(!rack.is_window_wide());
    }
}
