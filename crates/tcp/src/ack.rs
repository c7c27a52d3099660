//! Handling of an acknowledgement at the sender: window update, fast path, slow path.
//!
//! Follows `tcp_ack`, `tcp_sacktag_write_queue` and `tcp_clean_rtx_queue` of `net/ipv4/tcp_input.c`. The fast path takes
//! ACKs while nothing is lost, SACKed or retransmitted; the slow path takes all others.

use fanin_units::Instant;

use crate::ca_state::CongestionState;
use crate::config::{Config, RttSource};
use crate::congestion::AckSample;
use crate::endpoint::Endpoint;
use crate::flight::NewlyAcked;
use crate::recovery::AckEvent;
use crate::segment::{Flags, Segment};
use crate::timers::{TIMEOUT_MARGIN, Timer};

impl Endpoint {
    /// Handles the acknowledgement, the window and the path window's echo of a segment.
    #[inline(always)]
    pub(crate) fn handle_ack(&mut self, config: &Config, now: Instant, segment: &Segment) {
        let ack = segment.ack;
        if ack > self.send.nxt() || ack < self.send.una() {
            // An old ACK may still bring SACK blocks (tcp_ack's old_ack).
            if ack < self.send.una() && segment.sack_count() > 0 && self.flight.size > 0 {
                self.handle_ack_slow(config, now, segment, false);
            }
            return;
        }
        let updates_window = self.send.take_window(config, segment);
        if updates_window
            && (segment.window > self.send.window_max() || self.timer.pending() == Timer::WindowProbe)
        {
            self.handle_wider_window(config, segment.window);
        }
        if config.path_window && segment.flags.contains(Flags::PATH_WINDOW_ECHO) {
            self.limit_window(config, segment.path_window_echo);
        }
        let is_plain = self.recovery.is_none()
            && !segment.flags.intersects(Flags::ECE)
            && segment.sack[0].start == segment.sack[0].end;
        if is_plain {
            if ack > self.send.una() {
                self.handle_ack_fast(config, now, segment);
                return;
            }
            // Not a duplicate ACK (RFC 5681 §2): the segment has data or updates the window, or nothing is outstanding.
            // Plain data that acknowledge nothing do not reach tcp_ack, unless they change the window (tcp_rcv_established).
            if segment.payload > 0 {
                return;
            }
            if self.flight.size == 0 {
                self.sample_without_flight(config, now);
                return;
            }
            if updates_window {
                return;
            }
        }
        // With nothing outstanding Linux reads a report of a duplicate, and reduces for no mark (`no_queue` of `tcp_ack`).
        if self.flight.size > 0 || segment.flags.contains(Flags::DSACK) || !config.is_linux_6() {
            self.handle_ack_slow(config, now, segment, updates_window);
        } else {
            self.sample_without_flight(config, now);
        }
        self.release_recovery();
    }

    /// The fast path: an ACK of new data while nothing is lost, SACKed or retransmitted.
    #[inline]
    fn handle_ack_fast(&mut self, config: &Config, now: Instant, segment: &Segment) {
        let ack = segment.ack;
        let flight_size = self.flight.size;
        let bytes = ack - self.send.una();
        let (acked, first_sent_at, last_sent_at) = self.flight.acknowledge_fast(config, ack);
        self.send.acknowledge(ack);
        self.timer.forget_window_probes();
        let sample = AckSample { now, acked, snd_una: ack, snd_nxt: self.send.nxt(), has_ece: false };
        let rtt_ps = match config.rtt_source {
            RttSource::TimestampFirst if segment.ts_echo != 0 => config.since_timestamp(now, segment.ts_echo),
            _ => now.get() - first_sent_at,
        };
        self.sample_rtt(config, rtt_ps);
        debug_assert!(last_sent_at <= now.get(), "acknowledged before it was sent");
        debug_assert_eq!(
            self.ca_state,
            CongestionState::Open,
            "an ACK takes the fast path in another state than Open"
        );
        let delays = [now.get() - last_sent_at, self.rtt.smoothed(config).get()];
        self.congestion.on_sample(config, &mut self.window, sample, delays, CongestionState::Open);
        if self.congestion.models_path() {
            self.model_fast_ack(config, now, last_sent_at, [acked, flight_size], bytes);
        } else if self.is_cwnd_limited(config, flight_size) {
            self.congestion.on_ack(config, &mut self.window, sample);
        }
        self.restart_timer(config, now);
    }

    /// Takes an ACK that comes while nothing is outstanding: only Linux' DCTCP reads it (`no_queue` of `tcp_ack`).
    fn sample_without_flight(&mut self, config: &Config, now: Instant) {
        if self.congestion.counts_deliveries(config) {
            let (snd_una, snd_nxt) = (self.send.una(), self.send.nxt());
            let sample = AckSample { now, acked: 0, snd_una, snd_nxt, has_ece: false };
            let delays = [0, self.rtt.smoothed(config).get()];
            self.congestion.on_sample(config, &mut self.window, sample, delays, self.ca_state);
        }
    }

    /// Passes a round-trip sample of `rtt_ps` picoseconds to the estimator, in whole ticks.
    #[inline]
    pub(crate) fn sample_rtt(&mut self, config: &Config, rtt_ps: u64) {
        let ticks = (rtt_ps / config.rtt_tick.get()).min(u64::from(u32::MAX >> 4)) as u32;
        self.rtt.sample(config, ticks, self.send.una(), self.send.nxt());
    }

    /// Handles a window that is the largest so far, or opens a closed one.
    fn handle_wider_window(&mut self, config: &Config, window: u32) {
        self.usage.check_idleness_again();
        self.send.note_window(config, window);
        if self.timer.pending() == Timer::WindowProbe && self.send.room() > 0 {
            self.timer.stop();
            self.timer.forget_window_probes();
        }
    }

    /// The slow path: SACK blocks, duplicate ACKs, ECN echoes, and all ACKs of a recovery.
    fn handle_ack_slow(&mut self, config: &Config, now: Instant, segment: &Segment, updates_window: bool) {
        let prior_pipe = self.flight.pipe();
        let prior_fack = self.fack(config);
        let (prior_una, snd_nxt) = (self.send.una(), self.send.nxt());
        let advances = segment.ack > prior_una;
        let high_seq = self.recovery_mut().high_seq();
        let mut newly = NewlyAcked::default();
        // tcp_rack_advance: a copy that is acknowledged sooner than the least round trip did not cause the ACK.
        if let Some(min) = self.rtt.min_ps(config) {
            newly.spurious_from = (now.get() + 1).saturating_sub(min);
        }
        let (has_dsack, duplicate_units) = self.handle_sack_blocks(config, segment, high_seq, &mut newly);
        let newly_sacked = newly.delivered;
        if advances {
            // The same holds for a copy sent after the echoed timestamp (tcp_skb_spurious_retrans). The echo belongs to
            // the last segment in order, and says nothing about a SACK.
            if segment.ts_echo != 0 {
                let echoed = u64::from(segment.ts_echo) * config.timestamp_tick.get();
                newly.spurious_from = newly.spurious_from.min(echoed);
            }
            self.flight.acknowledge(config, segment.ack, high_seq, &mut newly);
            self.send.acknowledge(segment.ack);
            self.recovery_mut().forget_timeouts();
        }
        if let Some(newest) = newly.newest {
            self.recovery_mut().rack.advance(now, newly.latest, newest);
        }
        self.measure_rtt(config, now, segment, &newly, advances);
        if self.congestion.counts_deliveries(config) {
            let has_ece = segment.flags.contains(Flags::ECE);
            let sample =
                AckSample { now, acked: newly.delivered, snd_una: self.send.una(), snd_nxt, has_ece };
            let delays = [0, self.rtt.smoothed(config).get()];
            self.congestion.on_sample(config, &mut self.window, sample, delays, self.ca_state);
        }
        if let Some(lowest) = newly.lowest_original.filter(|_| config.sack) {
            self.note_reordering(config, lowest, prior_fack);
        }

        if !config.sack && newly.has_retransmitted && config.is_linux_6() {
            // Without SACK it is unknown which transmission has arrived (`tcp_clean_rtx_queue`).
            newly.has_original = false;
        }
        let is_duplicate = !advances && segment.payload == 0 && !updates_window;
        let has_ece = segment.flags.contains(Flags::ECE);
        let mut ack = AckEvent {
            now,
            advances,
            prior_una,
            is_duplicate,
            has_dsack,
            delivered: newly.delivered + duplicate_units,
            acked: newly.acked,
            lost: 0,
            has_ece,
            ts_echo: if segment.flags.contains(Flags::TIMESTAMP) { segment.ts_echo } else { 0 },
        };
        if !config.sack && !config.recovers_as_ns3() {
            ack.delivered = self.count_duplicates(config, is_duplicate, newly.acked);
        }
        self.judge_probe(config, &ack, segment.ack, newly_sacked > 0);
        let is_dubious =
            is_duplicate || newly_sacked > 0 || has_ece || self.ca_state != CongestionState::Open;
        if config.recovers_as_ns3() {
            self.handle_dubious_ack_as_ns3(config, now, &mut ack);
        } else if is_dubious {
            self.handle_dubious_ack(config, now, &mut ack, newly.has_original, newly_sacked > 0);
        }
        // Growth or reduction of the window (tcp_cong_control).
        let sample = AckSample { now, acked: ack.delivered, snd_una: segment.ack, snd_nxt, has_ece };
        if self.congestion.models_path() {
            let counts = [ack.delivered, ack.lost, prior_pipe];
            let bytes = self.send.una() - prior_una;
            let delivery = self.delivery_of(config, now, segment, &newly, counts, bytes);
            self.model_ack(config, &delivery);
        } else if self.congestion.governs_recovery(config) {
            self.congestion.on_ack(config, &mut self.window, sample);
        } else if self.is_reducing() {
            self.reduce(config, &ack);
        } else if (advances || newly_sacked > 0)
            // tcp_may_raise_cwnd reads no mark since 3.12: a sender that may reduce its window does so above.
            && (!has_ece || config.is_linux_6() || self.window.in_slow_start())
            // tcp_may_raise_cwnd: SACKs alone raise the window only on a path that has reordered segments.
            && (advances || self.reordering.is_raised(config))
            && self.is_cwnd_limited(config, prior_pipe)
        {
            let counts_delivered = config.is_linux_6() || config.recovers_as_ns3();
            let acked = if counts_delivered { ack.delivered } else { newly.acked };
            if acked > 0 {
                self.congestion.on_ack(config, &mut self.window, AckSample { acked, ..sample });
            }
        }
        self.restart_timer_slow(config, now, advances, newly.first_sent_at);
    }

    /// Handles the SACK blocks of a segment. Returns true if the first block reports a duplicate (RFC 2883), and the
    /// units of this duplicate that count as delivered.
    fn handle_sack_blocks(
        &mut self,
        config: &Config,
        segment: &Segment,
        high_seq: u64,
        newly: &mut NewlyAcked,
    ) -> (bool, u32) {
        let (mut has_dsack, mut duplicate_units) = (false, 0);
        let count = if config.sack { segment.sack_count() } else { 0 };
        for (index, block) in segment.sack[..count].iter().enumerate() {
            let start = segment.ack.wrapping_add_signed(i64::from(block.start));
            let end = segment.ack.wrapping_add_signed(i64::from(block.end));
            if index == 0 && segment.flags.contains(Flags::DSACK) {
                has_dsack = true;
                let span = end.saturating_sub(start).min(u64::from(u32::MAX)) as u32;
                // The needless copy was delivered, too (tcp_dsack_seen).
                if config.is_linux_6() && self.counters.retransmits > 0 {
                    duplicate_units = config.units(span, self.send.mss());
                }
                self.handle_dsack(end);
                continue;
            }
            // A block outside of the flight is stale.
            if end > self.send.nxt() || start < self.send.una().min(segment.ack) {
                continue;
            }
            self.flight.sack(config, start.max(self.send.una()), end, high_seq, newly);
        }
        (has_dsack, duplicate_units)
    }

    /// Restarts the timer after an ACK of the slow path (`tcp_set_xmit_timer`). It is RACK's timer while a segment
    /// waits to be declared lost. Otherwise it is the RTO or the probe timeout, if data was acknowledged. A SACK
    /// restarts it only while the head of the flight is younger than the SACKed segments; otherwise the timeout would
    /// recede for ever.
    fn restart_timer_slow(
        &mut self,
        config: &Config,
        now: Instant,
        advances: bool,
        sacked_sent_at: Option<u64>,
    ) {
        let wait = self.recovery_mut().rack.take_wait();
        if wait > 0 && self.flight.size > 0 {
            // tcp_rack_mark_lost adds TCP_TIMEOUT_MIN_US.
            self.timer.start(config, Timer::Reordering, now, wait + TIMEOUT_MARGIN);
            return;
        }
        if advances
            && config.is_impatient_variant
            && !config.sack
            && self.ca_state == CongestionState::Recovery
            && self.recovery_mut().note_partial_ack()
        {
            return;
        }
        if advances && config.timeout_rules == crate::TimeoutRules::Ns3 {
            self.rtt.end_back_off();
        }
        let head_sent_at = self.flight.runs.front().map_or(0, |run| run.sent_at);
        let is_young = config.is_linux_6() && sacked_sent_at.is_some_and(|at| at < head_sent_at);
        if advances || is_young {
            self.restart_timer(config, now);
        }
    }

    /// Takes a round-trip sample from an ACK of the slow path.
    fn measure_rtt(
        &mut self,
        config: &Config,
        now: Instant,
        segment: &Segment,
        newly: &NewlyAcked,
        advances: bool,
    ) {
        let by_timestamp =
            (segment.ts_echo != 0 && advances).then(|| config.since_timestamp(now, segment.ts_echo));
        // Karn's algorithm (RFC 6298 §3): a retransmitted segment gives no sample, unless a timestamp identifies the
        // acknowledged copy.
        let by_transmission = match newly.first_sent_at {
            Some(sent_at) if !newly.has_retransmitted => Some(now.get() - sent_at),
            _ => None,
        };
        let sample = match config.rtt_source {
            RttSource::TimestampFirst => by_timestamp.or(by_transmission),
            RttSource::Transmissions => by_transmission.or(by_timestamp),
        };
        if let Some(rtt_ps) = sample {
            self.sample_rtt(config, rtt_ps);
        }
        if let Some(last_sent_at) = newly.last_sent_at
            && advances
            && !self.congestion.counts_deliveries(config)
        {
            let has_ece = segment.flags.contains(Flags::ECE);
            let sample = AckSample {
                now,
                acked: newly.acked,
                snd_una: segment.ack,
                snd_nxt: self.send.nxt(),
                has_ece,
            };
            let delays = [now.get() - last_sent_at, self.rtt.smoothed(config).get()];
            self.congestion.on_sample(config, &mut self.window, sample, delays, self.ca_state);
        }
    }

    /// Counts duplicate ACKs without SACK: each stands for a segment that left the network (`tcp_add_reno_sack`,
    /// `tcp_remove_reno_sacks`). Returns the units that the ACK delivers.
    fn count_duplicates(&mut self, config: &Config, is_duplicate: bool, acked: u32) -> u32 {
        assert!(!config.sack, "duplicate ACKs are counted with SACK");
        let segment = config.segment_units();
        if is_duplicate
            && self.ca_state == CongestionState::Loss
            && config.timeout_rules == crate::TimeoutRules::Ns3
        {
            return 0;
        }
        if is_duplicate && config.is_linux_6() && !self.counts_duplicates() {
            return 0;
        }
        if is_duplicate {
            let before = self.flight.sacked;
            self.flight.sacked += segment;
            self.limit_duplicates(config, 0);
            return self.flight.sacked.saturating_sub(before);
        }
        if acked == 0 {
            return 0;
        }
        // One of the covered segments filled the hole; the others were counted before.
        let gone = acked.saturating_sub(segment).min(self.flight.sacked);
        self.flight.sacked -= gone;
        self.limit_duplicates(config, acked);
        assert!(gone <= acked, "more counted as delivered before than the ACK covers");
        acked - gone
    }

    /// Returns true if a duplicate ACK stands for an arrived segment (`tcp_fastretrans_alert`, `tcp_process_loss`). It does not once
    /// all data is repaired. After a timeout it does only if new data was sent.
    fn counts_duplicates(&mut self) -> bool {
        let (snd_una, snd_nxt) = (self.send.una(), self.send.nxt());
        let high_seq = self.recovery_mut().high_seq();
        match self.ca_state {
            CongestionState::Recovery => snd_una < high_seq,
            CongestionState::Loss => snd_una < high_seq && snd_nxt > high_seq,
            CongestionState::Open | CongestionState::Disorder | CongestionState::Cwr => true,
        }
    }

    /// Limits the duplicate ACKs to the segments that can have caused them. In Linux at least one segment is missing, and more
    /// duplicate ACKs show reordering (`tcp_check_reno_reordering`). `acked` units were just acknowledged.
    fn limit_duplicates(&mut self, config: &Config, acked: u32) {
        let is_linux_6 = config.is_linux_6();
        let missing =
            if is_linux_6 { self.flight.lost.max(config.segment_units()) } else { self.flight.lost };
        let most = self.flight.size.saturating_sub(missing);
        if self.flight.sacked > most {
            self.flight.sacked = most;
            if is_linux_6 {
                self.reordering.note(config, self.flight.size + acked);
            }
        }
    }
}
