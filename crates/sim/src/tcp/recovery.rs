//! When ACKs tell of trouble: SACK, loss detection, fast recovery, time-outs, and the undo of all that.
//!
//! Follows `tcp_ack`, `tcp_sacktag_write_queue`, `tcp_fastretrans_alert` and their callees of
//! `net/ipv4/tcp_input.c`; RFC 5681 §3.2, RFC 6582, RFC 6675, RFC 6937, RFC 8985.

use fanin_units::{Duration, Instant};

use super::config::{Config, LossDetection, Reduction, RttSource};
use super::congestion::{AckView, SSTHRESH_INFINITE};
use super::endpoint::{Endpoint, Force, State, Timer};
use super::flight::{Covered, EVER_RETRANSMITTED, LOST, RETRANSMITTED, SACKED};
use super::segment::{Flags, Segment};

/// What an endpoint knows only while something is wrong; boxed, so that the others stay small.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    /// The trouble is over once this is acknowledged (`high_seq`).
    point: u64,
    /// Everything that was ever sent again lies below this; the endpoint is clean beyond it.
    clean_from: u64,
    /// Where the reduction that may be undone began (`undo_marker`); `None` when there is nothing to undo.
    undo_from: Option<u64>,
    /// Retransmissions since then that no DSACK has reported (`undo_retrans`); `None` before the first.
    undo_retransmissions: Option<u32>,
    /// Threshold before the reduction (`prior_ssthresh`); 0 for none.
    threshold_before: u32,
    /// When the first retransmission of the episode was sent: timestamp ticks (`retrans_stamp`).
    first_retransmission: Option<u32>,
    /// Window when the reduction began, and what was delivered and sent since (RFC 6937).
    window_before: u32,
    delivered: u32,
    pub(crate) sent_units: u32,
    /// Whether a second ACK is due for the next step of rate halving.
    halving_odd: bool,
    /// RACK: transmission time and end of the segment sent last among those delivered, and its round trip.
    rack_sent_at: u64,
    rack_end: u64,
    rack_rtt: u64,
    rack_advanced: bool,
    /// How long until the youngest suspect is lost; 0 for no suspect.
    rack_wait: u64,
    /// Steps of the reordering window (RFC 8985 §6.2 step 4), raised by DSACKs.
    rack_steps: u8,
    /// A probe is out: what acknowledges more than this settles it (`tlp_high_seq`), and whether it was a
    /// retransmission.
    probe: Option<(u64, bool)>,
    /// A time-out may prove spurious (F-RTO).
    frto: bool,
    /// Duplicate ACKs counted in place of SACKs.
    duplicates: u32,
    /// Transmission time of the latest SACKed original (lost-retransmission test of FACK).
    latest_delivery: u64,
}

impl Trouble {
    fn new(point: u64) -> Self {
        Self {
            point,
            clean_from: 0,
            undo_from: None,
            undo_retransmissions: None,
            threshold_before: 0,
            first_retransmission: None,
            window_before: 0,
            delivered: 0,
            sent_units: 0,
            halving_odd: false,
            rack_sent_at: 0,
            rack_end: 0,
            rack_rtt: 0,
            rack_advanced: false,
            rack_wait: 0,
            rack_steps: 1,
            probe: None,
            frto: false,
            duplicates: 0,
            latest_delivery: 0,
        }
    }
}

/// What one ACK was.
#[derive(Clone, Copy, Debug)]
struct Ack {
    advanced: bool,
    /// A pure ACK that moves nothing.
    duplicate: bool,
    /// It reported a duplicate (RFC 2883).
    dsack: bool,
    /// Units delivered in all, and newly held lost.
    delivered: u32,
    lost: u32,
    echo: bool,
    ts_echo: u32,
}

impl Endpoint {
    fn trouble(&mut self) -> &mut Trouble {
        let point = self.next;
        self.trouble.get_or_insert_with(|| Box::new(Trouble::new(point)))
    }

    /// Drops the side data when nothing is wrong any more.
    pub(crate) fn release_trouble(&mut self) {
        if let Some(trouble) = &self.trouble
            && self.state == State::Open
            && self.flight.sacked + self.flight.lost + self.flight.retransmitted == 0
            && trouble.probe.is_none()
            && self.una >= trouble.clean_from
        {
            self.trouble = None;
        }
    }

    pub(crate) fn is_probing(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.probe.is_some())
    }

    /// The general path of an ACK.
    pub(crate) fn handle_ack_in_trouble(
        &mut self,
        config: &Config,
        now: Instant,
        segment: &Segment,
        updates_window: bool,
    ) {
        let prior_in_network = self.flight.in_network();
        let prior_fack = self.flight.highest_sacked().unwrap_or(self.una);
        let next = self.next;
        let advanced = segment.ack > self.una;
        self.trouble();
        let point = self.trouble().point;
        let mut covered = Covered::default();
        // tcp_rack_advance: a copy that is acknowledged faster than any round trip did not cause it; nor did
        // one sent after what is echoed (tcp_skb_spurious_retrans).
        if let Some(min) = self.rtt.min_ps(config) {
            covered.spurious_from = (now.get() + 1).saturating_sub(min);
        }
        if segment.ts_echo != 0 {
            let echoed = u64::from(segment.ts_echo) * config.timestamp_tick.get();
            covered.spurious_from = covered.spurious_from.min(echoed);
        }
        let mut dsack = false;
        let mut duplicates = 0;

        let blocks = if config.sack { segment.sack_count() } else { 0 };
        for (index, block) in segment.sack[..blocks].iter().enumerate() {
            let start = segment.ack.wrapping_add_signed(i64::from(block.start));
            let end = segment.ack.wrapping_add_signed(i64::from(block.end));
            if index == 0 && segment.flags.contains(Flags::DSACK) {
                dsack = true;
                let span = end.saturating_sub(start).min(u64::from(u32::MAX)) as u32;
                // A needless copy was delivered, too (tcp_dsack_seen).
                if config.loss_detection == LossDetection::Rack && self.counters.retransmits > 0 {
                    duplicates = config.units(span, self.segment_size());
                }
                self.handle_duplicate_report(end);
                continue;
            }
            // A block outside of the flight is stale.
            if end > self.next || start < self.una.min(segment.ack) {
                continue;
            }
            self.flight.sack(config, start.max(self.una), end, point, &mut covered);
        }
        let newly_sacked = covered.delivered;
        if advanced {
            self.flight.acknowledge(config, segment.ack, point, &mut covered);
            self.una = segment.ack;
        }
        if let Some((sent_at, end, again)) = covered.newest {
            self.advance_rack(now, covered.latest, sent_at, end, again);
        }
        let tick = config.rtt_tick.get();
        self.measure_in_trouble(config, now, segment, &covered, advanced, tick);
        self.note_reordering(config, prior_fack, &covered);

        let duplicate =
            !advanced && segment.payload == 0 && !updates_window && (!config.sack || newly_sacked == 0);
        let mut ack = Ack {
            advanced,
            duplicate: !advanced && segment.payload == 0 && !updates_window,
            dsack,
            delivered: covered.delivered + duplicates,
            lost: 0,
            echo: segment.flags.contains(Flags::ECE),
            ts_echo: if segment.flags.contains(Flags::TIMESTAMP) { segment.ts_echo } else { 0 },
        };
        if !config.sack {
            ack.delivered = self.count_duplicates(config, duplicate, covered.acked);
        }
        if let Some((probe_point, again)) = self.trouble().probe {
            self.settle_probe(config, &ack, segment.ack, probe_point, again, newly_sacked > 0);
        }
        let dubious = ack.duplicate || newly_sacked > 0 || ack.echo || self.state != State::Open;
        if dubious {
            self.react(config, now, &mut ack, covered.original, newly_sacked > 0);
        }
        // Growth or reduction of the window (tcp_cong_control).
        if self.is_reducing() {
            self.reduce(config, &ack);
        } else if (advanced || newly_sacked > 0)
            && (!ack.echo || self.window.in_slow_start())
            // tcp_may_raise_cwnd: SACKs alone make it grow only on a path known to reorder.
            && (advanced || self.reordering > config.reordering * config.segment_units())
            && self.is_window_limited(config, prior_in_network)
        {
            let acked =
                if config.reduction == Reduction::Proportional { ack.delivered } else { covered.acked };
            let view = AckView { now, acked, ack: segment.ack, next };
            if acked > 0 {
                self.window.grow(config, view);
            }
        }
        self.set_timer(config, now, advanced, covered.first_sent_at);
    }

    // tcp_set_xmit_timer: RACK's timer where a suspect waits; else the RTO or probe, anew when data was
    // acknowledged. A SACK moves it only while the head of the flight is younger than what was SACKed, or
    // the time-out would recede for ever.
    fn set_timer(&mut self, config: &Config, now: Instant, advanced: bool, sacked_sent_at: Option<u64>) {
        let wait = core::mem::take(&mut self.trouble().rack_wait);
        if wait > 0 && self.flight.out > 0 {
            // tcp_rack_mark_lost adds TCP_TIMEOUT_MIN_US.
            let wait = wait + Duration::from_millis(2).get();
            self.start_timer(config, Timer::Reordering, now.get(), wait);
            return;
        }
        let head = self.flight.runs.front().map_or(0, |run| run.sent_at);
        let young = config.detection() == LossDetection::Rack && sacked_sent_at.is_some_and(|at| at < head);
        if advanced || young {
            self.restart_timer(config, now);
        }
    }

    fn measure_in_trouble(
        &mut self,
        config: &Config,
        now: Instant,
        segment: &Segment,
        covered: &Covered,
        advanced: bool,
        tick: u64,
    ) {
        let by_timestamp = (segment.ts_echo != 0 && advanced).then(|| {
            u64::from(config.timestamp(now).wrapping_sub(segment.ts_echo)) * config.timestamp_tick.get()
        });
        // Karn's rule: nothing that was sent again gives a sample, unless a timestamp tells which copy.
        let by_transmission = match covered.first_sent_at {
            Some(sent_at) if !covered.retransmitted => Some(now.get() - sent_at),
            _ => None,
        };
        let sample = match config.rtt_source {
            RttSource::TimestampFirst => by_timestamp.or(by_transmission),
            RttSource::Transmissions => by_transmission.or(by_timestamp),
        };
        if let Some(rtt_ps) = sample {
            self.sample_rtt(config, rtt_ps, tick);
        }
        if let Some(last) = covered.last_sent_at
            && advanced
        {
            let view = AckView { now, acked: covered.acked, ack: segment.ack, next: self.next };
            let open = self.state == State::Open;
            self.window.measured(config, view, now.get() - last, open);
        }
    }

    // RFC 2883, RFC 3708; tcp_check_dsack.
    fn handle_duplicate_report(&mut self, end: u64) {
        let mut spurious = false;
        let trouble = self.trouble();
        if let (Some(from), Some(left)) = (trouble.undo_from, trouble.undo_retransmissions)
            && end > from
            && left > 0
        {
            trouble.undo_retransmissions = Some(left - 1);
            spurious = true;
        }
        if trouble.rack_steps < 64 {
            trouble.rack_steps += 1;
        }
        self.counters.spurious += u32::from(spurious);
    }

    /// Without SACK, duplicate ACKs stand for segments that left the network (`tcp_add_reno_sack`,
    /// `tcp_remove_reno_sacks`). Returns the units delivered by this ACK.
    fn count_duplicates(&mut self, config: &Config, duplicate: bool, acked: u32) -> u32 {
        let segment = config.segment_units();
        if duplicate {
            let most = self.flight.out.saturating_sub(self.flight.lost);
            let before = self.flight.sacked;
            self.flight.sacked = (before + segment).min(most);
            self.trouble().duplicates += 1;
            return self.flight.sacked - before;
        }
        if acked == 0 {
            return 0;
        }
        // One of the segments covered filled the hole; the others had been counted already.
        let gone = acked.saturating_sub(segment).min(self.flight.sacked);
        self.flight.sacked -= gone;
        self.trouble().duplicates = 0;
        let most = self.flight.out.saturating_sub(self.flight.lost);
        self.flight.sacked = self.flight.sacked.min(most);
        acked - gone
    }

    // RFC 8985 §6.2 step 2; tcp_rack_advance, which takes the round trip of the last one covered.
    fn advance_rack(&mut self, now: Instant, latest: u64, sent_at: u64, end: u64, again: bool) {
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
    fn note_reordering(&mut self, config: &Config, prior_fack: u64, covered: &Covered) {
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

    // tcp_try_keep_open.
    fn keep_open(&mut self) {
        let left = self.flight.sacked + self.flight.lost + self.flight.retransmitted;
        self.state = if left > 0 { State::Disorder } else { State::Open };
    }

    fn is_reducing(&self) -> bool {
        matches!(self.state, State::Recovery | State::Reduced)
    }

    // tcp_process_tlp_ack.
    fn settle_probe(
        &mut self,
        config: &Config,
        ack: &Ack,
        offset: u64,
        point: u64,
        again: bool,
        sacked: bool,
    ) {
        if offset < point {
            return;
        }
        if !again || ack.dsack {
            self.trouble().probe = None;
        } else if offset > point {
            // The probe repaired a loss: the window pays for it as for any other.
            self.trouble().probe = None;
            if self.state == State::Open || self.state == State::Disorder {
                self.start_reduction(config, false);
                self.window.cwnd = self.window.ssthresh;
            }
        } else if !ack.advanced && !sacked && ack.duplicate {
            // Both the original and the probe arrived.
            self.trouble().probe = None;
        }
        if self.trouble().probe.is_none() && self.state == State::Open {
            let una = self.una;
            let trouble = self.trouble();
            trouble.clean_from = trouble.clean_from.min(una.max(point));
        }
    }

    /// Begins a reduction of the window (`tcp_init_cwnd_reduction`).
    fn start_reduction(&mut self, config: &Config, echo: bool) {
        let in_flight = self.flight.out;
        let threshold = self.current_threshold();
        let cwnd = self.window.cwnd;
        let next = self.next;
        let ssthresh = self.window.threshold_after_loss(config, in_flight);
        self.window.ssthresh = ssthresh;
        self.window.counted = 0;
        let trouble = self.trouble();
        trouble.threshold_before = if echo { 0 } else { threshold };
        trouble.window_before = cwnd;
        trouble.delivered = 0;
        trouble.sent_units = 0;
        trouble.halving_odd = false;
        trouble.point = next;
        trouble.probe = None;
        if config.ecn {
            self.announce_reduction();
        }
        if config.reduction == Reduction::AtOnce {
            self.window.cwnd = ssthresh;
        }
    }

    /// `tcp_fastretrans_alert`.
    fn react(&mut self, config: &Config, now: Instant, ack: &mut Ack, original: bool, newly_sacked: bool) {
        let before = self.flight.lost + self.flight.retransmitted;
        if ack.echo {
            self.trouble().threshold_before = 0;
        }
        let point = self.trouble().point;
        // Has the episode ended?
        if self.una >= point && self.state != State::Open {
            match self.state {
                State::Reduced if self.una > point || self.flight.out == 0 => self.end_reduction(config),
                State::Recovery => {
                    self.flight.sacked = if config.sack { self.flight.sacked } else { 0 };
                    if !self.try_undo(config, ack) {
                        self.end_reduction(config);
                    }
                    self.state = State::Open;
                }
                State::Loss => {
                    self.flight.sacked = if config.sack { self.flight.sacked } else { 0 };
                    if !self.try_undo(config, ack) {
                        self.clear_undo();
                    }
                    self.state = State::Open;
                }
                _ => {}
            }
        }
        match self.state {
            State::Recovery => {
                if ack.advanced {
                    if self.try_undo_partial(config, ack, original) {
                        return;
                    }
                    if !config.sack {
                        // RFC 6582 §3.2 step 4: a partial ACK names the next hole.
                        self.mark_head_lost(config);
                    }
                } else if ack.dsack && self.try_undo_dsack(config) {
                    self.keep_open();
                }
                self.detect_losses(config, now, ack, newly_sacked);
            }
            State::Loss => {
                let frto = self.trouble().frto;
                if frto && original && config.undo && (ack.advanced || newly_sacked) {
                    // RFC 5682: something arrived that was sent before the time-out.
                    if self.undo_time_out(config) {
                        return;
                    }
                }
                if ack.advanced {
                    self.trouble().frto = false;
                    if self.try_undo(config, ack) {
                        self.keep_open();
                        return;
                    }
                    if !config.sack {
                        self.mark_head_lost(config);
                    }
                }
                self.detect_losses(config, now, ack, newly_sacked);
            }
            State::Open | State::Disorder | State::Reduced => {
                if ack.advanced && !config.sack {
                    self.flight.sacked = 0;
                }
                if self.state == State::Disorder && ack.dsack {
                    self.try_undo_dsack(config);
                }
                self.detect_losses(config, now, ack, newly_sacked);
                if self.flight.lost > 0 || self.is_time_to_recover(config) {
                    self.enter_recovery(config, ack);
                    self.detect_losses(config, now, ack, newly_sacked);
                } else if ack.echo && self.state != State::Reduced {
                    self.start_reduction(config, true);
                    self.state = State::Reduced;
                    self.counters.ecn_reductions += 1;
                } else if self.state != State::Reduced {
                    self.keep_open();
                    let next = self.next;
                    self.trouble().point = next;
                }
            }
        }
        ack.lost = (self.flight.lost + self.flight.retransmitted).saturating_sub(before);
    }

    // tcp_time_to_recover, besides proven losses.
    fn is_time_to_recover(&self, config: &Config) -> bool {
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

    fn enter_recovery(&mut self, config: &Config, ack: &Ack) {
        self.counters.fast_retransmits += 1;
        if self.state != State::Reduced {
            self.start_reduction(config, ack.echo);
        }
        let una = self.una;
        let next = self.next;
        let retransmitted = self.flight.retransmitted;
        let trouble = self.trouble();
        trouble.undo_from = Some(una);
        trouble.undo_retransmissions = (retransmitted > 0).then_some(retransmitted);
        trouble.first_retransmission = None;
        trouble.point = next;
        self.state = State::Recovery;
        self.force = Force::Head;
        if config.detection() == LossDetection::DuplicateAcks {
            self.mark_head_lost(config);
        }
    }

    /// Holds the first segment lost (`tcp_mark_head_lost(sk, 1)`).
    fn mark_head_lost(&mut self, config: &Config) {
        let Some(run) = self.flight.runs.front() else { return };
        if run.is(LOST | SACKED) {
            return;
        }
        let end = run.start + u64::from(run.len.min(u32::from(run.mss)));
        self.flight.split_at(config, end);
        self.flight.mark_lost(config, |run| run.start < end);
        if !config.sack {
            self.flight.sacked = self.flight.sacked.min(self.flight.out - self.flight.lost);
        }
    }

    /// Marks what the rule in force holds lost.
    fn detect_losses(&mut self, config: &Config, now: Instant, ack: &Ack, newly_sacked: bool) {
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
        for run in &self.flight.runs {
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
    fn detect_rack(&mut self, config: &Config, now: Instant) {
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

    // tcp_rack_reo_timeout.
    pub(crate) fn handle_reordering_timeout(&mut self, config: &Config, now: Instant) {
        let before = self.flight.in_network();
        self.trouble();
        self.detect_rack(config, now);
        if before != self.flight.in_network() && !matches!(self.state, State::Recovery | State::Loss) {
            let ack = Ack {
                advanced: false,
                duplicate: false,
                dsack: false,
                delivered: config.segment_units(),
                lost: before - self.flight.in_network(),
                echo: false,
                ts_echo: 0,
            };
            self.enter_recovery(config, &ack);
            self.reduce(config, &ack);
        }
        let wait = core::mem::take(&mut self.trouble().rack_wait);
        if wait > 0 {
            let wait = wait + Duration::from_millis(2).get();
            self.start_timer(config, Timer::Reordering, now.get(), wait);
        } else {
            self.restart_timer(config, now);
        }
    }

    /// One step of the reduction in force.
    fn reduce(&mut self, config: &Config, ack: &Ack) {
        let segment = config.segment_units();
        let in_network = self.flight.in_network();
        let threshold = self.window.ssthresh;
        match config.reduction {
            Reduction::AtOnce => {}
            // tcp_cwnd_down of 2.6: the window falls by one segment every second ACK.
            Reduction::RateHalving => {
                if ack.delivered == 0 && !ack.dsack {
                    return;
                }
                let floor = threshold;
                let trouble = self.trouble();
                trouble.halving_odd = !trouble.halving_odd;
                if !trouble.halving_odd && self.window.cwnd > floor {
                    self.window.cwnd -= segment;
                }
                self.window.cwnd = self.window.cwnd.min(in_network + segment);
            }
            // RFC 6937 with the slow-start reduction bound; tcp_cwnd_reduction.
            Reduction::Proportional => {
                if ack.delivered == 0 && !ack.duplicate && ack.lost == 0 {
                    return;
                }
                let trouble = self.trouble();
                trouble.delivered += ack.delivered;
                let mut send = if in_network > threshold {
                    let share = u64::from(threshold) * u64::from(trouble.delivered);
                    (share.div_ceil(u64::from(trouble.window_before.max(1))) as u32)
                        .saturating_sub(trouble.sent_units)
                } else {
                    let mut send = trouble.delivered.saturating_sub(trouble.sent_units).max(ack.delivered);
                    if ack.advanced && ack.lost == 0 {
                        send += segment;
                    }
                    send.min(threshold - in_network)
                };
                // The first retransmission always goes.
                if trouble.sent_units == 0 {
                    send = send.max(segment);
                }
                self.window.cwnd = (in_network + send).max(segment);
            }
        }
    }

    // tcp_end_cwnd_reduction, tcp_complete_cwr.
    fn end_reduction(&mut self, config: &Config) {
        if self.window.ssthresh < SSTHRESH_INFINITE {
            self.window.cwnd = match config.reduction {
                Reduction::RateHalving => self.window.cwnd.min(self.window.ssthresh),
                _ => self.window.ssthresh,
            };
        }
        self.clear_undo();
        self.state = State::Open;
    }

    fn clear_undo(&mut self) {
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
    fn try_undo(&mut self, config: &Config, ack: &Ack) -> bool {
        if !self.may_undo(config, ack) {
            return false;
        }
        self.undo(config, true);
        true
    }

    fn try_undo_dsack(&mut self, config: &Config) -> bool {
        let all = self
            .trouble
            .as_ref()
            .is_some_and(|trouble| trouble.undo_from.is_some() && trouble.undo_retransmissions == Some(0));
        if all && config.undo {
            self.undo(config, false);
        }
        all && config.undo
    }

    fn try_undo_partial(&mut self, config: &Config, ack: &Ack, original: bool) -> bool {
        // Only timestamps tell it early (tcp_try_undo_partial).
        let stamped = self.trouble.as_ref().is_some_and(|trouble| {
            trouble.undo_from.is_some()
                && trouble.first_retransmission.is_some_and(|stamp| ack.ts_echo != 0 && ack.ts_echo < stamp)
        });
        if !(config.undo && stamped && original) || self.flight.retransmitted > 0 {
            return false;
        }
        self.undo(config, true);
        self.keep_open();
        true
    }

    /// `tcp_undo_cwnd_reduction`.
    fn undo(&mut self, config: &Config, unmark: bool) {
        let needless = self.trouble().undo_retransmissions.unwrap_or(0);
        self.counters.spurious += needless;
        if unmark {
            self.flight.unmark_lost();
        }
        let before = self.trouble().threshold_before;
        if before > 0 {
            self.window.cwnd = self.window.undone(config);
            self.window.ssthresh = self.window.ssthresh.max(before);
        }
        self.clear_undo();
    }

    /// The time-out was spurious (F-RTO): as before it.
    fn undo_time_out(&mut self, config: &Config) -> bool {
        if self.trouble().undo_from.is_none() {
            return false;
        }
        self.undo(config, true);
        self.rtt.backoff = 0;
        self.keep_open();
        true
    }

    // tcp_retransmit_timer and tcp_enter_loss; RFC 6298 §5.4 to §5.7, RFC 5681 §3.1 equation 4.
    pub(crate) fn handle_timeout(&mut self, config: &Config, now: Instant) {
        if self.flight.out == 0 {
            return;
        }
        self.counters.timeouts += 1;
        let segment = config.segment_units();
        let next = self.next;
        let una = self.una;
        let first = !matches!(self.state, State::Loss);
        let fresh = !matches!(self.state, State::Recovery | State::Loss);
        self.trouble();
        // A second time-out at the same point reduces nothing further.
        let point = self.trouble().point;
        if fresh || una >= point || first {
            let threshold = self.current_threshold();
            let in_flight = self.flight.out;
            if fresh || una >= point {
                let ssthresh = self.window.threshold_after_loss(config, in_flight);
                self.window.ssthresh = ssthresh;
                self.trouble().threshold_before = threshold;
            }
            self.window.timed_out();
            let trouble = self.trouble();
            trouble.undo_from = Some(una);
            trouble.undo_retransmissions = None;
            trouble.first_retransmission = None;
        }
        let trouble = self.trouble();
        trouble.point = next;
        trouble.clean_from = next;
        trouble.probe = None;
        trouble.duplicates = 0;
        trouble.frto = config.undo && fresh;
        self.state = State::Loss;
        if !config.sack {
            self.flight.sacked = 0;
        } else if self.flight.runs.front().is_some_and(|run| run.is(SACKED)) {
            // The head was SACKed and yet not acknowledged: the receiver reneged (RFC 2018 §8).
            self.flight.forget_sacks();
        }
        self.flight.mark_lost(config, |_| true);
        self.window.counted = 0;
        self.window.cwnd = match config.reduction {
            Reduction::Proportional => self.flight.in_network() + segment,
            _ => segment,
        };
        self.rtt.backoff = (self.rtt.backoff + 1).min(30);
        self.force = Force::Head;
        let delay = self.jittered(config, now, self.rtt.rto(config).get());
        self.start_timer(config, Timer::Retransmission, now.get(), delay);
    }

    /// What is to be sent again, or sent out of turn, now.
    pub(crate) fn poll_retransmission(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        match core::mem::replace(&mut self.force, Force::None) {
            Force::TailLossProbe => return self.send_probe(config, now),
            Force::WindowProbe => return self.window_probe(config, now),
            Force::Head => {
                if let Some(index) = self.flight.next_lost() {
                    return Some(self.retransmit(config, now, index));
                }
            }
            Force::None | Force::Syn => {}
        }
        if !matches!(self.state, State::Recovery | State::Loss) {
            return None;
        }
        if self.flight.in_network() >= self.window.cwnd {
            return None;
        }
        if let Some(index) = self.flight.next_lost() {
            return Some(self.retransmit(config, now, index));
        }
        // RFC 6675 §4 NextSeg rule 3: nothing lost, nothing new to send: what lies below the highest SACK.
        if config.detection() == LossDetection::Rfc6675
            && self.state == State::Recovery
            && self.written_beyond_next() == 0
            && let Some(highest) = self.flight.highest_sacked()
            && let Some(index) = self
                .flight
                .runs
                .iter()
                .position(|run| run.start < highest && run.state & (SACKED | EVER_RETRANSMITTED) == 0)
        {
            return Some(self.retransmit(config, now, index));
        }
        None
    }

    fn retransmit(&mut self, config: &Config, now: Instant, index: usize) -> Segment {
        let (offset, len) = self.flight.retransmit(config, index, now.get());
        let units = config.units(len, self.segment_size());
        let stamp = config.timestamp(now);
        let next = self.next;
        let trouble = self.trouble();
        trouble.sent_units += units;
        trouble.clean_from = trouble.clean_from.max(next);
        trouble.first_retransmission.get_or_insert(stamp);
        if trouble.undo_from.is_some() {
            *trouble.undo_retransmissions.get_or_insert(0) += 1;
        }
        self.counters.segments += 1;
        self.counters.retransmits += 1;
        self.last_sent_at = now.get();
        if self.timer == Timer::None
            || (offset == self.una && !matches!(self.timer, Timer::Retransmission | Timer::Reordering))
        {
            let rto = self.rtt.rto(config).get();
            self.start_timer(config, Timer::Retransmission, now.get(), rto);
        }
        let mut flags = Flags::ACK | Flags::RETRANSMISSION;
        if offset + u64::from(len) == self.next && self.written_beyond_next() == 0 {
            flags.insert(Flags::PSH);
        }
        self.finish(config, now, offset, len, flags)
    }

    // tcp_send_loss_probe; RFC 8985 §7.3.
    fn send_probe(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        if self.flight.out == 0 {
            return None;
        }
        self.counters.probes += 1;
        let segment = match self.forced_new(config, now) {
            Some(segment) => {
                let next = self.next;
                self.trouble().probe = Some((next, false));
                segment
            }
            None => {
                let last = *self.flight.runs.back()?;
                // The last segment of the last run.
                let tail = match last.len % u32::from(last.mss) {
                    0 => u32::from(last.mss).min(last.len),
                    rest => rest,
                };
                self.flight.split_at(config, last.end() - u64::from(tail));
                let index = self.flight.runs.len() - 1;
                let segment = self.retransmit(config, now, index);
                let next = self.next;
                self.trouble().probe = Some((next, true));
                segment
            }
        };
        // The RTO counts from the probe.
        let rto = self.rtt.rto(config).get();
        self.start_timer(config, Timer::Retransmission, now.get(), rto);
        Some(segment)
    }
}
