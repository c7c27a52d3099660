//! BBR, version 1, as Linux has it (`net/ipv4/tcp_bbr.c`; Cardwell et al., ACM Queue 14(5), 2016).
//!
//! BBR models the path by two figures: the largest delivery rate of ten round trips, and the least round-trip time of
//! ten seconds. It paces at a gain times that rate, and bounds the flight by a gain times their product. A cycle of
//! gains probes for more bandwidth, and then drains the queue from that probe. Every ten seconds the flight shrinks to
//! four segments, to measure the round-trip time without a queue. Loss matters only during recovery.

mod filters;
mod pacing;
mod rate;

use fanin_units::{Instant, mix};

use super::window::CongestionWindow;
use crate::ca_state::CongestionState;
use crate::delivery_rate::{Delivery, DeliveryRate, MICROSECOND, RateSample};
use filters::{LongTermRate, MaxFilter, PolicedSample};
pub(crate) use pacing::Pacing;
use rate::{RATE_SHIFT, UNIT, UNIT_SHIFT, bytes_per_second};

/// 2/ln 2: the least gain that doubles the rate each round (`bbr_high_gain`), and its inverse.
const STARTUP_GAIN: u64 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// The gain of the window while it cruises: two bandwidth-delay products, for delayed ACKs (`bbr_cwnd_gain`).
const WINDOW_GAIN: u64 = 2 * UNIT;
/// The pacing gains of a cycle; each lasts for a round-trip time (`bbr_pacing_gain`).
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Number of phases with which the cycle may begin: all but the phase of the low gain (`bbr_cycle_rand`).
const CYCLE_STARTS: u64 = 7;
/// The least window, in segments (`bbr_cwnd_min_target`).
const WINDOW_MIN: u32 = 4;
/// The initial window, before there is a model (`TCP_INIT_CWND`).
const WINDOW_INITIAL: u32 = 10;
/// Ten seconds after its last measurement, the round-trip time is measured again for 200 ms (`bbr_min_rtt_win_sec`,
/// `bbr_probe_rtt_mode_ms`).
const MIN_RTT_SPAN: u64 = 10_000_000 * MICROSECOND;
const PROBE_RTT_SPAN: u64 = 200_000 * MICROSECOND;
/// The pipe is full once three rounds bring less than a quarter more (`bbr_full_bw_thresh`, `bbr_full_bw_cnt`).
const FULL_ROUNDS: u32 = 3;
/// The aggregation of ACKs is the maximum over two spans of five rounds each (`bbr_extra_acked_win_rtts`). It is at most
/// the bandwidth times 100 ms (`bbr_extra_acked_max_us`).
const AGGREGATION_ROUNDS: u32 = 5;
const AGGREGATION_MAX_US: u64 = 100_000;

/// The state of a connection (`enum bbr_mode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Doubles the rate each round until the pipe is full.
    Startup,
    /// Drains the queue of start-up.
    Drain,
    /// Cycles through the gains.
    ProbeBandwidth,
    /// Keeps four segments outstanding.
    ProbeRtt,
}

/// The state of the endpoint when an ACK arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathState {
    /// Segments in the network.
    pub(crate) in_flight: u32,
    pub(crate) state: CongestionState,
    /// Smoothed and least round-trip time in ps, 0 before the first sample.
    pub(crate) srtt: u64,
    pub(crate) min_rtt: u64,
    pub(crate) mss: u16,
    /// Segments declared lost so far.
    pub(crate) lost: u64,
}

/// A segment that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentSegment {
    /// The bytes of its payload.
    pub(crate) bytes: u32,
    /// The number of segments sent before it.
    pub(crate) segments: u64,
    /// True for the first segment of a burst.
    pub(crate) is_first: bool,
    /// True if nothing is outstanding.
    pub(crate) is_idle: bool,
    /// True if nothing is in the network.
    pub(crate) is_empty: bool,
}

/// BBR's state of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    rate: DeliveryRate,
    mode: Mode,
    bandwidth: MaxFilter,
    long_term: LongTermRate,
    /// Least round-trip time in microseconds, 0 for none, and the time of its measurement, in ps.
    min_rtt_us: u64,
    min_rtt_at: u64,
    has_srtt: bool,
    /// End of the probe of the round-trip time, in ps; 0 while the flight shrinks to four segments.
    probe_rtt_end: u64,
    had_probe_rtt_round: bool,
    /// Rounds so far, and the number of delivered segments at which the present round ends.
    rounds: u64,
    round_end: u64,
    is_round_start: bool,
    is_full: bool,
    full_bandwidth: u64,
    full_rounds: u32,
    cycle_phase: usize,
    cycle_at: u64,
    pacing_gain: u64,
    window_gain: u64,
    /// The window before recovery, or before the probe of the round-trip time.
    prior_cwnd: u32,
    prior_state: CongestionState,
    is_conserving: bool,
    is_restarting: bool,
    /// Segments acknowledged beyond the bandwidth: the largest number in two spans of rounds.
    extra_acked: [u32; 2],
    extra_rounds: u32,
    extra_span: usize,
    epoch_at: u64,
    epoch_acked: u64,
    pacing: Pacing,
}

impl Bbr {
    pub(super) fn new() -> Self {
        Self {
            rate: DeliveryRate::new(),
            mode: Mode::Startup,
            bandwidth: MaxFilter::default(),
            long_term: LongTermRate::default(),
            min_rtt_us: 0,
            min_rtt_at: 0,
            has_srtt: false,
            probe_rtt_end: 0,
            had_probe_rtt_round: false,
            rounds: 0,
            round_end: 0,
            is_round_start: false,
            is_full: false,
            full_bandwidth: 0,
            full_rounds: 0,
            cycle_phase: 0,
            cycle_at: 0,
            pacing_gain: STARTUP_GAIN,
            window_gain: STARTUP_GAIN,
            prior_cwnd: 0,
            prior_state: CongestionState::Open,
            is_conserving: false,
            is_restarting: false,
            extra_acked: [0; 2],
            extra_rounds: 0,
            extra_span: 0,
            epoch_at: 0,
            epoch_acked: 0,
            pacing: Pacing::default(),
        }
    }

    /// The bandwidth of the model (`bbr_bw`).
    fn bandwidth(&self) -> u64 {
        self.long_term.get().unwrap_or_else(|| self.bandwidth.get())
    }

    /// The times and sizes of bursts.
    #[inline]
    pub(super) fn pacing(&self) -> &Pacing {
        &self.pacing
    }

    /// Sets the pacing rate before there is a model: one window a round trip, or a millisecond without a sample
    /// (`bbr_init_pacing_rate_from_rtt`).
    fn start_pacing(&mut self, window: &CongestionWindow, path: &PathState) {
        let rtt_us = if path.srtt > 0 {
            self.has_srtt = true;
            (path.srtt / MICROSECOND).max(1)
        } else {
            1000
        };
        let rate = (u64::from(window.cwnd) << RATE_SHIFT) / rtt_us;
        self.pacing.set_rate(bytes_per_second(rate, STARTUP_GAIN, path.mss.into()));
    }

    fn set_pacing_rate(&mut self, window: &CongestionWindow, path: &PathState, rate: u64, gain: u64) {
        if !self.has_srtt && path.srtt > 0 {
            self.start_pacing(window, path);
        }
        let rate = bytes_per_second(rate, gain, path.mss.into());
        if self.is_full || rate > self.pacing.rate() {
            self.pacing.set_rate(rate);
        }
        assert!(gain > 0, "a gain of zero stops the connection");
    }

    /// Handles a segment before it is sent: the first one starts the model, and one after an idle time resumes it.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        window: &mut CongestionWindow,
        path: &PathState,
        sent: SentSegment,
    ) {
        if self.pacing.rate() == 0 {
            self.start_pacing(window, path);
            self.min_rtt_us = path.min_rtt / MICROSECOND;
            self.min_rtt_at = now.get();
            self.epoch_at = now.get();
        }
        if sent.is_empty && self.rate.is_app_limited() {
            self.restart(now, window, path);
        }
        self.rate.on_sent(now, sent.is_idle);
        self.pacing.on_sent(now, sent.is_first, sent.segments, sent.bytes);
    }

    /// Resumes after an idle time (`bbr_cwnd_event`), at the bandwidth, as the queue is empty.
    fn restart(&mut self, now: Instant, window: &mut CongestionWindow, path: &PathState) {
        self.is_restarting = true;
        self.epoch_at = now.get();
        self.epoch_acked = 0;
        match self.mode {
            Mode::ProbeBandwidth => self.set_pacing_rate(window, path, self.bandwidth(), UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_end(now, window),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Notes that the application limited the rate, with `in_flight` segments outstanding (`tcp_rate_check_app_limited`).
    pub(super) fn limit_by_app(&mut self, in_flight: u32) {
        self.rate.limit_by_app(in_flight);
    }

    // Loss.

    /// Handles a loss: saves the window, to restore it after recovery, and returns the threshold unchanged (`bbr_ssthresh`).
    pub(super) fn ssthresh(&mut self, window: &CongestionWindow) -> u32 {
        self.save_cwnd(window);
        window.ssthresh
    }

    fn save_cwnd(&mut self, window: &CongestionWindow) {
        let is_recovering = matches!(self.prior_state, CongestionState::Recovery | CongestionState::Loss);
        self.prior_cwnd = if is_recovering || self.mode == Mode::ProbeRtt {
            self.prior_cwnd.max(window.cwnd)
        } else {
            window.cwnd
        };
    }

    /// Handles an expired retransmission timer (`bbr_set_state`): the bandwidth may have changed.
    pub(super) fn on_timeout(&mut self, now: Instant, path: &PathState, salt: u32) {
        self.prior_state = CongestionState::Loss;
        self.full_bandwidth = 0;
        self.is_round_start = true;
        let sample = self.policed(1, path.lost, false);
        self.sample_policer(now, &sample, path.mss, salt);
    }

    /// Handles a needless recovery (`bbr_undo_cwnd`): measures the full pipe and the rate of a policer anew. The window stays.
    pub(super) fn on_undo(&mut self, lost: u64) {
        self.full_bandwidth = 0;
        self.full_rounds = 0;
        let sample = self.policed(0, lost, false);
        self.long_term.reset(&sample);
    }

    fn policed(&self, losses: u32, lost: u64, is_app_limited: bool) -> PolicedSample {
        PolicedSample {
            delivered: self.rate.delivered(),
            lost,
            delivered_at: self.rate.delivered_at(),
            losses,
            is_app_limited,
            is_round_start: self.is_round_start,
        }
    }

    /// Samples the rate of a policer (`bbr_lt_bw_sampling`). Its end begins the cycle of gains again.
    fn sample_policer(&mut self, now: Instant, sample: &PolicedSample, mss: u16, salt: u32) {
        let was_policed = self.long_term.get().is_some();
        if self.long_term.update(sample, mss, self.mode == Mode::ProbeBandwidth) {
            self.probe_bandwidth(now, salt);
        } else if !was_policed && self.long_term.get().is_some() {
            self.pacing_gain = UNIT;
        }
    }

    // The model.

    /// Handles an ACK (`bbr_main`). All outstanding segments were sent at `oldest_sent_at` ps or later.
    pub(super) fn on_delivery(
        &mut self,
        window: &mut CongestionWindow,
        delivery: &Delivery,
        path: &PathState,
        oldest_sent_at: u64,
        salt: u32,
    ) {
        let sample = self.rate.on_ack(delivery, path.min_rtt);
        self.rate.forget_before(oldest_sent_at);
        self.update_bandwidth(delivery, &sample, path, salt);
        self.update_aggregation(window, delivery, &sample);
        if self.mode == Mode::ProbeBandwidth && self.is_phase_over(delivery, path) {
            self.advance_cycle();
        }
        self.check_full(&sample);
        self.check_drain(window, delivery.now, path, salt);
        self.update_min_rtt(window, delivery, &sample, path, salt);
        self.update_gains();
        let bandwidth = self.bandwidth();
        self.set_pacing_rate(window, path, bandwidth, self.pacing_gain);
        self.set_cwnd(window, delivery, path, bandwidth);
        assert!(self.mode != Mode::Drain || self.is_full, "a queue is drained before the pipe is full");
        assert!(window.cwnd > 0 && window.cwnd <= window.cwnd_clamp, "a window of {}", window.cwnd);
    }

    fn update_bandwidth(&mut self, delivery: &Delivery, sample: &RateSample, path: &PathState, salt: u32) {
        self.is_round_start = false;
        let Some((delivered, interval_us)) = sample.rate else { return };
        assert!(interval_us > 0, "a rate over no time");
        assert!(sample.prior_delivered <= self.rate.delivered(), "a segment was delivered before all others");
        if sample.prior_delivered >= self.round_end {
            self.round_end = self.rate.delivered();
            self.rounds += 1;
            self.is_round_start = true;
            self.is_conserving = false;
        }
        let policed = self.policed(delivery.lost, path.lost, sample.is_app_limited);
        self.sample_policer(delivery.now, &policed, path.mss, salt);
        let rate = (delivered << RATE_SHIFT) / interval_us;
        // A sample that the application limits counts only if it is higher.
        if !sample.is_app_limited || rate >= self.bandwidth.get() {
            self.bandwidth.update(self.rounds, rate);
        }
    }

    /// Counts the segments that consecutive ACKs deliver beyond the bandwidth (`bbr_update_ack_aggregation`).
    fn update_aggregation(&mut self, window: &CongestionWindow, delivery: &Delivery, sample: &RateSample) {
        if delivery.delivered == 0 || sample.rate.is_none() {
            return;
        }
        if self.is_round_start {
            self.extra_rounds += 1;
            if self.extra_rounds >= AGGREGATION_ROUNDS {
                self.extra_rounds = 0;
                self.extra_span = 1 - self.extra_span;
                self.extra_acked[self.extra_span] = 0;
            }
        }
        let epoch_us = self.rate.delivered_at().saturating_sub(self.epoch_at) / MICROSECOND;
        let mut expected = self.segments_in(epoch_us);
        if self.epoch_acked <= expected {
            self.epoch_acked = 0;
            self.epoch_at = self.rate.delivered_at();
            expected = 0;
        }
        self.epoch_acked += u64::from(delivery.delivered);
        assert!(self.epoch_acked >= expected, "an epoch goes on that has delivered less than the bandwidth");
        let extra = (self.epoch_acked - expected).min(window.cwnd.into()) as u32;
        let largest = &mut self.extra_acked[self.extra_span];
        *largest = (*largest).max(extra);
    }

    /// Segments that the bandwidth carries in `us` microseconds.
    fn segments_in(&self, us: u64) -> u64 {
        ((u128::from(self.bandwidth()) * u128::from(us)) >> RATE_SHIFT) as u64
    }

    /// Returns true if the present phase is over (`bbr_is_next_cycle_phase`). A phase lasts for a round-trip time. The
    /// high gain also lasts until the flight reaches its target or a loss occurs. The low gain ends early once the queue is
    /// empty.
    fn is_phase_over(&self, delivery: &Delivery, path: &PathState) -> bool {
        let elapsed = self.rate.delivered_at().saturating_sub(self.cycle_at);
        let is_long = elapsed / MICROSECOND > self.min_rtt_us;
        if self.pacing_gain == UNIT {
            return is_long;
        }
        let in_flight = self.in_network(delivery.now, delivery.prior_in_flight, path);
        let bandwidth = self.bandwidth.get();
        if self.pacing_gain > UNIT {
            let target = self.inflight(bandwidth, self.pacing_gain, path);
            return is_long && (delivery.lost > 0 || in_flight >= target);
        }
        is_long || in_flight <= self.inflight(bandwidth, UNIT, path)
    }

    fn advance_cycle(&mut self) {
        assert_eq!(self.mode, Mode::ProbeBandwidth, "a cycle of gains begins in another mode");
        self.cycle_phase = (self.cycle_phase + 1) % CYCLE.len();
        self.cycle_at = self.rate.delivered_at();
    }

    /// Begins the cycle with any phase but the low gain (`bbr_reset_probe_bw_mode`).
    fn probe_bandwidth(&mut self, now: Instant, salt: u32) {
        self.mode = Mode::ProbeBandwidth;
        let drawn = mix(now.get() ^ (u64::from(salt) << 32)) % CYCLE_STARTS;
        self.cycle_phase = CYCLE.len() - 1 - drawn as usize;
        self.advance_cycle();
        assert!(CYCLE[self.cycle_phase] >= UNIT, "a cycle begins with the low gain");
    }

    /// Notes a full pipe after three rounds without a quarter more bandwidth (`bbr_check_full_bw_reached`).
    fn check_full(&mut self, sample: &RateSample) {
        if self.is_full || !self.is_round_start || sample.is_app_limited {
            return;
        }
        assert!(self.full_rounds < FULL_ROUNDS, "a full pipe is noted twice");
        let threshold = self.full_bandwidth + (self.full_bandwidth >> 2);
        if self.bandwidth.get() >= threshold {
            self.full_bandwidth = self.bandwidth.get();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, window: &mut CongestionWindow, now: Instant, path: &PathState, salt: u32) {
        let target = self.inflight(self.bandwidth.get(), UNIT, path);
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            window.ssthresh = target;
        }
        if self.mode == Mode::Drain && self.in_network(now, path.in_flight, path) <= target {
            self.probe_bandwidth(now, salt);
        }
    }

    fn update_min_rtt(
        &mut self,
        window: &mut CongestionWindow,
        delivery: &Delivery,
        sample: &RateSample,
        path: &PathState,
        salt: u32,
    ) {
        let now = delivery.now.get();
        let has_expired = now > self.min_rtt_at + MIN_RTT_SPAN;
        if let Some(rtt_ps) = delivery.rtt_ps {
            let rtt_us = (rtt_ps / MICROSECOND).max(1);
            let is_least = self.min_rtt_us == 0 || rtt_us < self.min_rtt_us;
            if is_least || (has_expired && !delivery.may_be_delayed) {
                self.min_rtt_us = rtt_us;
                self.min_rtt_at = now;
            }
        }
        if has_expired && !self.is_restarting && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(window);
            self.probe_rtt_end = 0;
        }
        if self.mode == Mode::ProbeRtt {
            // A flight this small does not show the network's rate.
            self.rate.limit_by_app(path.in_flight);
            if self.probe_rtt_end == 0 && path.in_flight <= WINDOW_MIN {
                self.probe_rtt_end = now + PROBE_RTT_SPAN;
                self.had_probe_rtt_round = false;
                self.round_end = self.rate.delivered();
            } else if self.probe_rtt_end > 0 {
                self.had_probe_rtt_round |= self.is_round_start;
                if self.had_probe_rtt_round && now > self.probe_rtt_end {
                    self.end_probe_rtt(delivery.now, window, salt);
                }
            }
        }
        if sample.rate.is_some_and(|(delivered, _)| delivered > 0) {
            self.is_restarting = false;
        }
    }

    fn check_probe_rtt_end(&mut self, now: Instant, window: &mut CongestionWindow) {
        if self.probe_rtt_end > 0 && now.get() > self.probe_rtt_end {
            self.end_probe_rtt(now, window, 0);
        }
    }

    /// Ends the probe of the round-trip time: the flight grows back (`bbr_check_probe_rtt_done`, `bbr_reset_mode`).
    fn end_probe_rtt(&mut self, now: Instant, window: &mut CongestionWindow, salt: u32) {
        assert_eq!(self.mode, Mode::ProbeRtt, "a probe ends that was not begun");
        assert!((1..now.get()).contains(&self.probe_rtt_end), "a probe ends before its time");
        self.min_rtt_at = now.get();
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        if self.is_full {
            self.probe_bandwidth(now, salt);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (STARTUP_GAIN, STARTUP_GAIN),
            Mode::Drain => (DRAIN_GAIN, STARTUP_GAIN),
            Mode::ProbeBandwidth if self.long_term.get().is_some() => (UNIT, WINDOW_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.cycle_phase], WINDOW_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    // The window.

    /// The bandwidth-delay product times a gain, in segments (`bbr_bdp`).
    fn bdp(&self, bandwidth: u64, gain: u64) -> u64 {
        if self.min_rtt_us == 0 {
            return WINDOW_INITIAL.into();
        }
        let product = u128::from(bandwidth) * u128::from(self.min_rtt_us);
        let scaled = (product * u128::from(gain)) >> UNIT_SHIFT;
        scaled.div_ceil(1 << RATE_SHIFT) as u64
    }

    /// Adds three bursts, for offload on both hosts, makes the number even, and adds two in the phase of the high gain
    /// (`bbr_quantization_budget`).
    fn with_bursts(&self, segments: u64, path: &PathState) -> u32 {
        let even = (segments + 3 * self.pacing.burst_segments(path.mss) + 1) & !1;
        let probes = self.mode == Mode::ProbeBandwidth && self.cycle_phase == 0;
        (even + if probes { 2 } else { 0 }).min(u32::MAX.into()) as u32
    }

    fn inflight(&self, bandwidth: u64, gain: u64, path: &PathState) -> u32 {
        self.with_bursts(self.bdp(bandwidth, gain), path)
    }

    /// Segments in the network when the next burst leaves (`bbr_packets_in_net_at_edt`).
    fn in_network(&self, now: Instant, in_flight: u32, path: &PathState) -> u32 {
        let wait_us = self.pacing.wait(now) / MICROSECOND;
        let burst = if self.pacing_gain > UNIT { self.pacing.burst_segments(path.mss) } else { 0 };
        (u64::from(in_flight) + burst).saturating_sub(self.segments_in(wait_us)) as u32
    }

    /// Segments added to the window for ACKs that arrive together (`bbr_ack_aggregation_cwnd`).
    fn aggregation(&self) -> u64 {
        if !self.is_full {
            return 0;
        }
        u64::from(self.extra_acked[0].max(self.extra_acked[1])).min(self.segments_in(AGGREGATION_MAX_US))
    }

    fn set_cwnd(
        &mut self,
        window: &mut CongestionWindow,
        delivery: &Delivery,
        path: &PathState,
        bandwidth: u64,
    ) {
        let acked = delivery.delivered;
        if acked > 0 {
            let (mut cwnd, is_conserved) = self.recover_or_restore(window, delivery, path);
            if !is_conserved {
                let target =
                    self.with_bursts(self.bdp(bandwidth, self.window_gain) + self.aggregation(), path);
                if self.is_full {
                    cwnd = (cwnd + acked).min(target);
                } else if cwnd < target || self.rate.delivered() < WINDOW_INITIAL.into() {
                    cwnd += acked;
                }
                cwnd = cwnd.max(WINDOW_MIN);
            }
            window.cwnd = cwnd;
        }
        window.cwnd = window.cwnd.min(window.cwnd_clamp);
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(WINDOW_MIN);
        }
    }

    /// In the first round of a recovery each delivered segment releases one; after the recovery the old window returns.
    /// Returns the window, and true if it is conserved (`bbr_set_cwnd_to_recover_or_restore`).
    fn recover_or_restore(
        &mut self,
        window: &CongestionWindow,
        delivery: &Delivery,
        path: &PathState,
    ) -> (u32, bool) {
        let is_late = |state| matches!(state, CongestionState::Recovery | CongestionState::Loss);
        let conserved = path.in_flight + delivery.delivered;
        let mut cwnd = window.cwnd;
        if delivery.lost > 0 {
            cwnd = cwnd.saturating_sub(delivery.lost).max(1);
        }
        if path.state == CongestionState::Recovery && self.prior_state != CongestionState::Recovery {
            self.is_conserving = true;
            self.round_end = self.rate.delivered();
            cwnd = conserved;
        } else if is_late(self.prior_state) && !is_late(path.state) {
            cwnd = cwnd.max(self.prior_cwnd);
            self.is_conserving = false;
        }
        self.prior_state = path.state;
        if self.is_conserving { (cwnd.max(conserved), true) } else { (cwnd, false) }
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/bbr.rs"]
mod tests;
