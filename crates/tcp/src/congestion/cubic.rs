//! CUBIC (RFC 9438) in Linux's integers (`net/ipv4/tcp_cubic.c`), HyStart included.
//!
//! Windows are in segments, times in milliseconds, and the time of the cubic function in 1/1024 s, as in
//! the kernel: `W(t) = C (t - K)³ + W_max` with `C = scale / 1024 · 10`, `K = ∛((W_max - cwnd) / C)`.

use fanin_units::Instant;

use super::window::{AckSample, CongestionWindow};
use crate::ca_state::CongestionState;
use crate::config::{Config, CongestionConfig, CubicParameters};

/// 1 s / 1024, the unit of K.
const TIME_SHIFT: u32 = 10;
const BETA_SHIFT: u32 = 10;
/// Least window for HyStart, in segments.
const HYSTART_WINDOW_MIN: u32 = 16;
/// Samples of a round before the delay signal counts.
const HYSTART_SAMPLES_MIN: u8 = 8;
/// Bounds of the delay increase that ends slow start, in microseconds.
const HYSTART_DELAY_MIN: u32 = 4_000;
const HYSTART_DELAY_MAX: u32 = 16_000;
/// Bound of the time that bursts may add to a train of ACKs, in microseconds (`hystart_ack_delay`).
const HYSTART_BURST_DELAY_MAX: u32 = 1_000;
/// The bytes of these bursts: four of the largest that segmentation offload makes.
const HYSTART_BURST_BYTES: u64 = 4 * 65_536;
/// ACKs closer than this form a train, in microseconds.
const HYSTART_ACK_DELTA: u32 = 2_000;
/// The ratio of segments to ACKs is estimated in sixteenths (before 3.18).
const ACK_RATIO_SHIFT: u32 = 4;

/// CUBIC's state of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cubic {
    /// Segments (ACKs, before 3.18) to acknowledge for one more segment of window (`cnt`).
    count: u32,
    /// W_max: the window before the last reduction.
    window_max: u32,
    /// The window at the last computation, and the time of it, in ms.
    window_last: u32,
    computed_at: u32,
    /// The plateau of the cubic function, and the time K from the start of the epoch to it, in 1/1024 s.
    origin: u32,
    k: u32,
    /// Least round-trip time seen, in microseconds; 0 before the first.
    delay_min: u32,
    /// Start of the epoch in ms plus one; 0 for none.
    epoch: u32,
    /// Segments (ACKs, before 3.18) acknowledged in the epoch.
    acks: u32,
    /// W_est: the window that NewReno would have in the same epoch.
    window_reno: u32,
    /// Segments covered by an ACK, in sixteenths.
    ack_ratio: u32,
    /// HyStart: the offset that ends the round.
    round_end: u64,
    /// HyStart: the start of the round, and the last ACK of a train, in microseconds.
    round_start: u32,
    last_ack: u32,
    /// HyStart: the least delay of the round, in microseconds, and its number of samples.
    round_delay: u32,
    samples: u8,
    /// HyStart: the end of slow start is found (`found`).
    has_found_exit: bool,
}

/// The parameters of a connection of this algorithm.
#[inline]
pub(super) fn parameters(config: &Config) -> CubicParameters {
    let CongestionConfig::Cubic(parameters) = config.congestion_control else {
        unreachable!("a connection keeps its algorithm")
    };
    parameters
}

fn millis(now: Instant) -> u32 {
    (now.get() / 1_000_000_000) as u32
}

fn micros(now: Instant) -> u32 {
    (now.get() / 1_000_000) as u32
}

/// A round-trip time in microseconds, at least one.
fn micros_of(rtt_ps: u64) -> u32 {
    ((rtt_ps / 1_000_000) as u32).max(1)
}

/// The time that four large bursts take at the pacing rate of slow start, in microseconds (`hystart_ack_delay`). This
/// rate is two windows a round trip. Bursts may lengthen a train of ACKs by this time.
fn burst_delay(config: &Config, cwnd: u32, srtt_ps: u64) -> u32 {
    let window = 2 * u64::from(cwnd) * u64::from(config.mss);
    (HYSTART_BURST_BYTES * (srtt_ps / 1_000_000) / window).min(HYSTART_BURST_DELAY_MAX.into()) as u32
}

/// Cube root, rounded down.
fn cube_root(value: u64) -> u32 {
    let (mut low, mut high) = (0_u64, 1 << 21);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if middle * middle * middle <= value {
            low = middle;
        } else {
            high = middle;
        }
    }
    low as u32
}

/// Time from the start of an epoch to the plateau, in 1/1024 s (RFC 9438 §4.2, figure 2).
fn plateau_after(scale: u32, below_maximum: u32) -> u32 {
    // (segments below the maximum) · 2^40 / (scale · 10)
    let factor = (1_u64 << (10 + 3 * TIME_SHIFT)) / (u64::from(scale) * 10);
    cube_root(factor * u64::from(below_maximum))
}

impl Cubic {
    /// Forgets the whole state (`bictcp_reset`), the least round-trip time included.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// W_max in segments.
    pub(super) fn window_max(&self) -> u32 {
        self.window_max
    }

    /// The slow-start threshold after a loss.
    pub(super) fn ssthresh(
        &mut self,
        config: &Config,
        parameters: CubicParameters,
        window: &CongestionWindow,
    ) -> u32 {
        let segment = config.segment_units();
        self.reduced(parameters, window.cwnd / segment) * segment
    }

    /// Slow start with HyStart's rounds, then growth along the cubic function (`cubictcp_cong_avoid`).
    #[inline]
    pub(super) fn on_ack(
        &mut self,
        config: &Config,
        parameters: CubicParameters,
        window: &mut CongestionWindow,
        ack: AckSample,
    ) {
        let segment = config.segment_units();
        let is_slow_start = if parameters.counts_segments {
            window.cwnd < window.ssthresh
        } else {
            window.cwnd <= window.ssthresh
        };
        let mut acked = ack.acked;
        if is_slow_start {
            if !parameters.counts_segments {
                self.start_round_if_over(parameters, ack);
            }
            acked = window.slow_start(config, acked);
            if acked == 0 {
                return;
            }
        }
        let step =
            self.acks_per_increase(parameters, window.cwnd / segment, acked.div_ceil(segment), ack.now);
        window.additive_increase(config, step.saturating_mul(segment), acked);
    }

    /// Takes the least delay and the ratio of segments to ACKs; HyStart may end slow start (`bictcp_acked`). `srtt_ps`
    /// is the smoothed round-trip time.
    pub(super) fn on_sample(
        &mut self,
        config: &Config,
        parameters: CubicParameters,
        window: &mut CongestionWindow,
        ack: AckSample,
        [rtt_ps, srtt_ps]: [u64; 2],
        ca_state: CongestionState,
    ) {
        if !self.note_delay(parameters, ack, rtt_ps, ca_state) || !parameters.hystart || self.has_found_exit {
            return;
        }
        let cwnd = window.cwnd / config.segment_units();
        let delay = micros_of(rtt_ps);
        let ends = if parameters.counts_segments {
            if !window.in_slow_start() {
                return;
            }
            // Since 5.16 the round starts here, before the sample that ends it counts.
            self.start_round_if_over(parameters, ack);
            cwnd >= HYSTART_WINDOW_MIN && self.hystart(ack, delay, burst_delay(config, cwnd, srtt_ps))
        } else {
            window.cwnd <= window.ssthresh && cwnd >= HYSTART_WINDOW_MIN && self.hystart(ack, delay, 0)
        };
        if ends {
            window.ssthresh = window.cwnd;
        }
    }

    /// The window after a loss, with fast convergence (RFC 9438 §4.7; `bictcp_recalc_ssthresh`).
    fn reduced(&mut self, parameters: CubicParameters, cwnd: u32) -> u32 {
        self.epoch = 0;
        let beta = u64::from(parameters.beta);
        self.window_max = if cwnd < self.window_max {
            ((u64::from(cwnd) * ((1 << BETA_SHIFT) + beta)) >> (BETA_SHIFT + 1)) as u32
        } else {
            cwnd
        };
        assert!(beta <= 1 << BETA_SHIFT, "a loss raises the window");
        assert!(self.window_max <= cwnd, "the plateau lies above the window that was lost");
        (((u64::from(cwnd) * beta) >> BETA_SHIFT) as u32).max(2)
    }

    /// Number of acknowledged segments (ACKs, before 3.18) for one more segment of window (`bictcp_update`).
    fn acks_per_increase(&mut self, parameters: CubicParameters, cwnd: u32, acked: u32, now: Instant) -> u32 {
        let now_ms = millis(now);
        self.acks += if parameters.counts_segments { acked } else { 1 };
        // At most 32 computations a second at one window.
        if self.window_last == cwnd && now_ms.wrapping_sub(self.computed_at) <= 1000 / 32 {
            return self.step(parameters);
        }
        if !(parameters.counts_segments && self.epoch != 0 && now_ms == self.computed_at) {
            self.compute(parameters, cwnd, acked, now_ms);
        }
        self.friendly(parameters, cwnd);
        self.step(parameters)
    }

    /// Segments (ACKs, before 3.18) to acknowledge for one more segment of window.
    fn step(&self, parameters: CubicParameters) -> u32 {
        if parameters.counts_segments {
            // Growth of at most half a window a round trip (3.18).
            self.count.max(2)
        } else {
            ((self.count << ACK_RATIO_SHIFT) / self.ack_ratio.max(1)).max(1)
        }
    }

    /// Evaluates the cubic function (RFC 9438 §4.2).
    fn compute(&mut self, parameters: CubicParameters, cwnd: u32, acked: u32, now_ms: u32) {
        self.window_last = cwnd;
        self.computed_at = now_ms;
        if self.ack_ratio == 0 {
            self.ack_ratio = 2 << ACK_RATIO_SHIFT;
        }
        if self.epoch == 0 {
            self.epoch = now_ms + 1;
            self.acks = if parameters.counts_segments { acked } else { 1 };
            self.window_reno = cwnd;
            if self.window_max <= cwnd {
                self.k = 0;
                self.origin = cwnd;
            } else {
                self.k = plateau_after(parameters.scale, self.window_max - cwnd);
                self.origin = self.window_max;
            }
        }
        debug_assert!(self.epoch <= now_ms + 1, "an epoch begins in the future");
        debug_assert!(
            self.origin >= self.window_max,
            "the plateau lies below the window before the last loss"
        );
        let elapsed_ms = u64::from(now_ms + 1 - self.epoch) + u64::from(self.delay_min / 1000);
        let time = (elapsed_ms << TIME_SHIFT) / 1000;
        let offset = time.abs_diff(u64::from(self.k)).min(1 << 17);
        let scale = u128::from(parameters.scale) * 10;
        let delta = ((scale * u128::from(offset).pow(3)) >> (10 + 3 * TIME_SHIFT)).min(1 << 30) as u32;
        let target =
            if time < u64::from(self.k) { self.origin.saturating_sub(delta) } else { self.origin + delta };
        self.count = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        // Before the first loss the plateau is unknown: at least one segment in 20 ACKs (5 % a round trip).
        if self.window_max == 0 && self.count > 20 {
            self.count = 20;
        }
    }

    /// Grows at least as fast as NewReno would (the Reno-friendly region of RFC 9438 §4.3).
    fn friendly(&mut self, parameters: CubicParameters, cwnd: u32) {
        let beta = parameters.beta;
        let scale = 8 * ((1 << BETA_SHIFT) + beta) / 3 / ((1 << BETA_SHIFT) - beta);
        let delta = (cwnd * scale) >> 3;
        assert!(self.epoch > 0, "the window of NewReno is asked for outside of an epoch");
        while self.acks > delta && delta > 0 {
            self.acks -= delta;
            self.window_reno += 1;
        }
        if self.window_reno > cwnd {
            self.count = self.count.min(cwnd / (self.window_reno - cwnd));
        }
    }

    /// Takes a round-trip sample. Returns true if it counts for HyStart.
    #[inline]
    fn note_delay(
        &mut self,
        parameters: CubicParameters,
        ack: AckSample,
        rtt_ps: u64,
        ca_state: CongestionState,
    ) -> bool {
        if !parameters.counts_segments && ca_state == CongestionState::Open {
            if self.ack_ratio == 0 {
                self.ack_ratio = 2 << ACK_RATIO_SHIFT;
            }
            self.ack_ratio = (self.ack_ratio + ack.acked).saturating_sub(self.ack_ratio >> ACK_RATIO_SHIFT);
        }
        // Samples of an epoch's first second, right after fast recovery, are discarded.
        if self.epoch != 0 && millis(ack.now) + 1 - self.epoch < 1000 {
            return false;
        }
        let delay = micros_of(rtt_ps);
        if self.delay_min == 0 || self.delay_min > delay {
            self.delay_min = delay;
        }
        true
    }

    /// Returns true once HyStart ends slow start (`hystart_update`): by the delay of a round, or by a train of ACKs. The train
    /// lasts longer than half the sum of the least round trip and `burst_delay` (since 5.6), in microseconds.
    fn hystart(&mut self, ack: AckSample, delay: u32, burst_delay: u32) -> bool {
        let now = micros(ack.now);
        if now.wrapping_sub(self.last_ack) <= HYSTART_ACK_DELTA {
            self.last_ack = now;
            if now.wrapping_sub(self.round_start) > (self.delay_min + burst_delay) / 2 {
                self.has_found_exit = true;
            }
        }
        self.round_delay = self.round_delay.min(delay);
        debug_assert!((1..=delay).contains(&self.delay_min), "the least delay is zero, or above a sample");
        if self.samples < HYSTART_SAMPLES_MIN {
            self.samples += 1;
        } else if self.round_delay
            > self.delay_min + (self.delay_min >> 3).clamp(HYSTART_DELAY_MIN, HYSTART_DELAY_MAX)
        {
            self.has_found_exit = true;
        }
        self.has_found_exit
    }

    /// Starts HyStart's next round if an ACK ends the present one (`bictcp_hystart_reset`).
    fn start_round_if_over(&mut self, parameters: CubicParameters, ack: AckSample) {
        if parameters.hystart && ack.snd_una > self.round_end {
            self.round_start = micros(ack.now);
            self.last_ack = self.round_start;
            self.round_end = ack.snd_nxt;
            self.round_delay = u32::MAX;
            self.samples = 0;
        }
    }

    /// Moves the epoch by the connection's idle time (since 4.2).
    pub(super) fn shift_epoch(&mut self, now: Instant, last_sent: Instant) {
        let idle = millis(now).wrapping_sub(millis(last_sent));
        if self.epoch != 0 && idle > 0 {
            self.epoch = (self.epoch + idle).min(millis(now) + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn cube_roots() {
        for value in [0_u64, 1, 7, 8, 26, 27, 1_000, 999_999_999, 1 << 40, 1 << 60] {
            let root = u64::from(cube_root(value));
            assert!(root.pow(3) <= value && (root + 1).pow(3) > value, "{value}");
        }
    }

    // RFC 9438 figure 2: K = cbrt((W_max - cwnd) / C) with C = 0.4.
    #[test]
    fn the_time_to_the_plateau() {
        for (below, seconds) in [(3_u32, 1.957_f64), (30, 4.217), (300, 9.086), (3_000, 19.574)] {
            let actual = f64::from(plateau_after(41, below)) / 1024.0;
            assert!((actual - seconds).abs() < 0.01 * seconds, "{below}: {actual}");
        }
    }

    // After a loss at 100 segments the window returns to 100 at K and exceeds it afterwards: concave, then
    // convex (RFC 9438 §4.4, §4.5). At a round trip of 400 ms the function of time, not the TCP-friendly
    // region, decides.
    #[test]
    fn concave_then_convex() {
        let parameters = CubicParameters {
            beta: 717,
            scale: 41,
            hystart: false,
            counts_segments: true,
            undoes_to_maximum: false,
        };
        let mut cubic = Cubic::default();
        let mut cwnd = cubic.reduced(parameters, 100);
        assert_eq!((cwnd, cubic.window_max()), (70, 100));
        let mut counted = 0;
        let mut at = Vec::new();
        for round in 0..40_u64 {
            for ack in 0..u64::from(cwnd) {
                let now = Instant::new((1_000 + 400 * round + 400 * ack / 100) * 1_000_000_000);
                counted += 1;
                let step = cubic.acks_per_increase(parameters, cwnd, 1, now);
                if counted >= step {
                    cwnd += 1;
                    counted = 0;
                }
            }
            at.push(cwnd);
        }
        // K = cbrt(30 / 0.4) = 4.2 s, 10.5 rounds.
        assert!((98..=101).contains(&at[10]), "{at:?}");
        assert!(at[2] - 70 > at[10] - at[8], "steep first, flat at the plateau: {at:?}");
        assert!(at[20] - at[18] > at[12] - at[10], "then steeper and steeper: {at:?}");
        // Fast convergence: a loss below the last maximum lowers the next maximum.
        let mut cubic = Cubic::default();
        cubic.reduced(parameters, 100);
        cubic.reduced(parameters, 80);
        assert_eq!(cubic.window_max(), 80 * (1024 + 717) / 2048);
    }
}
