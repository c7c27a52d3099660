//! When ACKs tell of trouble: SACK, loss detection, fast recovery, time-outs, and the undo of all that.
//!
//! Follows `tcp_ack`, `tcp_sacktag_write_queue`, `tcp_fastretrans_alert` and their callees of
//! `net/ipv4/tcp_input.c`; RFC 5681 §3.2, RFC 6582, RFC 6675, RFC 6937, RFC 8985.

use alloc::boxed::Box;

use fanin_units::Instant;

use crate::TIMEOUT_MARGIN;
use crate::config::{
    Config, CongestionControl, LossDetection, Reduction, RttSource, TimeoutRules, WindowUnit,
};
use crate::congestion::{AckView, SSTHRESH_INFINITE};
use crate::endpoint::{Endpoint, Force, State, Timer};
use crate::flight::{Covered, LOST, SACKED};
use crate::segment::{Flags, Segment};

/// What an endpoint knows only while something is wrong; boxed, so that the others stay small.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    /// The trouble is over once this is acknowledged (`high_seq`).
    pub(super) point: u64,
    /// Everything that was ever sent again lies below this; the endpoint is clean beyond it.
    pub(super) clean_from: u64,
    /// Where the reduction that may be undone began (`undo_marker`); `None` when there is nothing to undo.
    pub(super) undo_from: Option<u64>,
    /// Retransmissions since then that no DSACK has reported (`undo_retrans`); `None` before the first.
    pub(super) undo_retransmissions: Option<u32>,
    /// Threshold before the reduction (`prior_ssthresh`); 0 for none.
    pub(super) threshold_before: u32,
    /// Window before the reduction (`prior_cwnd`).
    pub(super) cwnd_before: u32,
    /// When the first retransmission of the episode was sent: timestamp ticks (`retrans_stamp`).
    pub(super) first_retransmission: Option<u32>,
    /// Window when the reduction began, and what was delivered and sent since (RFC 6937).
    pub(super) window_before: u32,
    pub(super) delivered: u32,
    pub(super) sent_units: u32,
    /// Whether a second ACK is due for the next step of rate halving.
    pub(super) halving_odd: bool,
    /// RACK: transmission time and end of the segment sent last among those delivered, and its round trip.
    pub(super) rack_sent_at: u64,
    pub(super) rack_end: u64,
    pub(super) rack_rtt: u64,
    pub(super) rack_advanced: bool,
    /// How long until the youngest suspect is lost; 0 for no suspect.
    pub(super) rack_wait: u64,
    /// Steps of the reordering window (RFC 8985 §6.2 step 4), raised by DSACKs.
    pub(super) rack_steps: u8,
    /// A probe is out: what acknowledges more than this settles it (`tlp_high_seq`), and whether it was a
    /// retransmission.
    pub(super) probe: Option<(u64, bool)>,
    /// A time-out may prove spurious (F-RTO).
    pub(super) frto: bool,
    /// A partial ACK of this recovery has restarted the timer (RFC 6582 §3.2 step 5).
    pub(super) partial: bool,
    /// Duplicate ACKs counted in place of SACKs.
    pub(super) duplicates: u32,
    /// Transmission time of the latest SACKed original (lost-retransmission test of FACK).
    pub(super) latest_delivery: u64,
}

impl Trouble {
    fn new(point: u64) -> Self {
        Self {
            point,
            clean_from: 0,
            undo_from: None,
            undo_retransmissions: None,
            threshold_before: 0,
            cwnd_before: 0,
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
            partial: false,
            duplicates: 0,
            latest_delivery: 0,
        }
    }
}

/// What one ACK was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    pub(super) now: Instant,
    pub(super) advanced: bool,
    /// A pure ACK that moves nothing.
    pub(super) duplicate: bool,
    /// It reported a duplicate (RFC 2883).
    pub(super) dsack: bool,
    /// Units delivered in all, and newly held lost.
    pub(super) delivered: u32,
    /// Units cumulatively acknowledged.
    pub(super) acked: u32,
    pub(super) lost: u32,
    pub(super) echo: bool,
    pub(super) ts_echo: u32,
}

impl Endpoint {
    pub(super) fn trouble(&mut self) -> &mut Trouble {
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
        let prior_fack = if config.sack { self.flight.highest_sacked() } else { None }.unwrap_or(self.una);
        let next = self.next;
        let advanced = segment.ack > self.una;
        self.trouble();
        let point = self.trouble().point;
        let mut covered = Covered::default();
        // tcp_rack_advance: a copy that is acknowledged faster than any round trip did not cause it.
        if let Some(min) = self.rtt.min_ps(config) {
            covered.spurious_from = (now.get() + 1).saturating_sub(min);
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
            // Nor did one sent after what is echoed (tcp_skb_spurious_retrans). That says nothing of a SACK, whose echo
            // is that of the last segment in order.
            if segment.ts_echo != 0 {
                let echoed = u64::from(segment.ts_echo) * config.timestamp_tick.get();
                covered.spurious_from = covered.spurious_from.min(echoed);
            }
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
            now,
            advanced,
            duplicate: !advanced && segment.payload == 0 && !updates_window,
            dsack,
            delivered: covered.delivered + duplicates,
            acked: covered.acked,
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
        if controls_recovery(config) {
            let view = AckView { now, acked: ack.delivered, ack: segment.ack, next, echo: ack.echo };
            self.window.grow(config, view);
        } else if self.is_reducing() {
            self.reduce(config, &ack);
        } else if (advanced || newly_sacked > 0)
            && (!ack.echo || self.window.in_slow_start())
            // tcp_may_raise_cwnd: SACKs alone make it grow only on a path known to reorder.
            && (advanced || self.reordering > config.reordering * config.segment_units())
            && self.is_window_limited(config, prior_in_network)
        {
            let acked =
                if config.reduction == Reduction::Proportional { ack.delivered } else { covered.acked };
            let view = AckView { now, acked, ack: segment.ack, next, echo: ack.echo };
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
            let wait = wait + TIMEOUT_MARGIN;
            self.start_timer(config, Timer::Reordering, now.get(), wait);
            return;
        }
        if advanced
            && config.impatient
            && !config.sack
            && self.state == State::Recovery
            && core::mem::replace(&mut self.trouble().partial, true)
        {
            return;
        }
        if advanced && config.timeout_rules == TimeoutRules::Ns3 {
            self.rtt.backoff = 0;
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
            let echo = segment.flags.contains(Flags::ECE);
            let view = AckView { now, acked: covered.acked, ack: segment.ack, next: self.next, echo };
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
        if duplicate && self.state == State::Loss && config.timeout_rules == TimeoutRules::Ns3 {
            return 0;
        }
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

    // tcp_try_keep_open.
    pub(super) fn keep_open(&mut self) {
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
            if matches!(self.state, State::Open | State::Disorder | State::Reduced) {
                self.start_reduction(config, false);
                self.window.cwnd = self.window.ssthresh;
                self.flight_stamp = ack.now.get();
                self.keep_open();
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
        let in_flight = self.flight_at_loss(config);
        let threshold = self.current_threshold();
        let cwnd = match config.reduction {
            // What is in the network once the head is held lost.
            Reduction::Ns3 => in_flight.saturating_sub(config.segment_units()),
            _ => self.window.cwnd,
        };
        let next = self.next;
        let cwnd_before = self.window.cwnd;
        let ssthresh = self.window.threshold_after_loss(config, in_flight, echo);
        self.window.ssthresh = ssthresh;
        self.window.counted = 0;
        let trouble = self.trouble();
        trouble.threshold_before = if echo { 0 } else { threshold };
        trouble.cwnd_before = cwnd_before;
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

    /// The flight of which a loss leaves half: RFC 5681's FlightSize; ns-3 takes what it holds to be in the network.
    fn flight_at_loss(&self, config: &Config) -> u32 {
        match config.timeout_rules {
            TimeoutRules::Rfc6298 => self.flight.out,
            TimeoutRules::Ns3 => self.flight.in_network(),
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
                State::Reduced if self.una > point || self.flight.out == 0 => self.end_reduction(config, now),
                State::Recovery => {
                    self.flight.sacked = if config.sack { self.flight.sacked } else { 0 };
                    if !self.try_undo(config, ack) {
                        self.end_reduction(config, now);
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
                        // RFC 6582 §3.2 step 5: a partial ACK names the next hole. It is filled at once, but for Linux,
                        // where the window decides.
                        self.mark_head_lost(config);
                        if config.unit == WindowUnit::Bytes {
                            self.force = Force::Head;
                        }
                    }
                } else if ack.dsack && self.try_undo_dsack(config, now) {
                    self.keep_open();
                }
                self.detect_losses(config, now, ack, newly_sacked);
            }
            State::Loss => {
                let frto = self.trouble().frto;
                if frto && original && config.undo && (ack.advanced || newly_sacked) {
                    // RFC 5682: something arrived that was sent before the time-out.
                    if self.undo_time_out(config, now) {
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
                    self.try_undo_dsack(config, now);
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
        trouble.partial = false;
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
        self.flight.mark_first_lost(config);
        if !config.sack {
            self.flight.sacked = self.flight.sacked.min(self.flight.out - self.flight.lost);
        }
    }

    // tcp_rack_reo_timeout.
    pub(crate) fn handle_reordering_timeout(&mut self, config: &Config, now: Instant) {
        let before = self.flight.in_network();
        self.trouble();
        self.detect_rack(config, now);
        if before != self.flight.in_network() && !matches!(self.state, State::Recovery | State::Loss) {
            let ack = Ack {
                now,
                advanced: false,
                duplicate: false,
                dsack: false,
                delivered: config.segment_units(),
                acked: 0,
                lost: before - self.flight.in_network(),
                echo: false,
                ts_echo: 0,
            };
            self.enter_recovery(config, &ack);
            if !controls_recovery(config) {
                self.reduce(config, &ack);
            }
        }
        let wait = core::mem::take(&mut self.trouble().rack_wait);
        if wait > 0 {
            let wait = wait + TIMEOUT_MARGIN;
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
            // TcpPrrRecovery::DoRecovery of ns-3.48. Duplicates count as delivered, and so do the bytes of the ACK that
            // follows them.
            Reduction::Ns3 => {
                if !ack.advanced && !ack.duplicate {
                    return;
                }
                let first = self.trouble().sent_units == 0;
                let in_network = if ack.duplicate && !first { in_network + segment } else { in_network };
                let trouble = self.trouble();
                let counts = ack.advanced || trouble.delivered < trouble.window_before;
                let delivered = match (ack.advanced, counts) {
                    (true, _) => ack.acked,
                    (false, true) => segment,
                    // Nothing delivered leaves the window as it is.
                    (false, false) => return,
                };
                trouble.delivered += delivered;
                let send = if in_network > threshold {
                    let share = u64::from(threshold) * u64::from(trouble.delivered);
                    (share.div_ceil(u64::from(trouble.window_before.max(1))) as u32)
                        .saturating_sub(trouble.sent_units)
                } else {
                    let behind = trouble.delivered.saturating_sub(trouble.sent_units).max(delivered);
                    let safe = if ack.advanced { segment } else { 0 };
                    (behind + safe).min(threshold - in_network)
                };
                // The first retransmission always goes.
                let send = if first { send.max(segment) } else { send };
                self.window.cwnd = (in_network + send).max(segment);
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
    fn end_reduction(&mut self, config: &Config, now: Instant) {
        if self.window.ssthresh < SSTHRESH_INFINITE {
            self.window.cwnd = match config.reduction {
                Reduction::RateHalving => self.window.cwnd.min(self.window.ssthresh),
                _ => self.window.ssthresh,
            };
        }
        self.window_was_used(now);
        self.clear_undo();
        self.state = State::Open;
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
        if fresh || una >= point || first || config.timeout_rules == TimeoutRules::Ns3 {
            let threshold = self.current_threshold();
            let in_flight = self.flight_at_loss(config);
            if fresh || una >= point || config.timeout_rules == TimeoutRules::Ns3 {
                let cwnd_before = self.window.cwnd;
                let ssthresh = self.window.threshold_after_loss(config, in_flight, false);
                self.window.ssthresh = ssthresh;
                let trouble = self.trouble();
                (trouble.threshold_before, trouble.cwnd_before) = (threshold, cwnd_before);
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
        self.flight_stamp = now.get();
        self.window.cwnd = match config.reduction {
            Reduction::Proportional => self.flight.in_network() + segment,
            _ => segment,
        };
        self.rtt.backoff = (self.rtt.backoff + 1).min(30);
        self.force = Force::Head;
        let delay = self.jittered(config, now, self.rtt.rto(config).get());
        self.start_timer(config, Timer::Retransmission, now.get(), delay);
    }
}

/// Whether the congestion control has the window in its own hands in recovery, too (`cong_control`), as the static window
/// in `bpf` has it on kernels with proportional rate reduction.
fn controls_recovery(config: &Config) -> bool {
    matches!(
        (config.congestion_control, config.reduction),
        (CongestionControl::Static { .. }, Reduction::Proportional)
    )
}
