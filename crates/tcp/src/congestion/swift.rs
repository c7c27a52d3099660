//! Swift (Kumar et al., SIGCOMM 2020, §3 and algorithm 1), for windows of whole segments.

use super::window::{AckSample, CongestionWindow, SSTHRESH_INFINITE};
use crate::config::{Config, CongestionConfig, SwiftParameters};

/// Windows, in segments, between which the target is scaled (§3.5: `fs_min_cwnd`, `fs_max_cwnd`).
const SCALING_WINDOWS: (f64, f64) = (0.1, 100.0);

/// Swift's state of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Swift {
    /// Time of the last decrease, in ps.
    decreased_at: u64,
    /// True if the last delay was below the target.
    may_grow: bool,
}

/// The parameters of a connection of this algorithm.
#[inline]
pub(super) fn parameters(config: &Config) -> SwiftParameters {
    let CongestionConfig::Swift(parameters) = config.congestion_control else {
        unreachable!("a connection keeps its algorithm")
    };
    parameters
}

/// The target delay in ps for a window of `segments`. A smaller window has a larger target, so that many flows converge
/// (§3.5).
fn target_ps(parameters: SwiftParameters, segments: u32) -> u64 {
    let (least, most) = SCALING_WINDOWS;
    let scale = |window: f64| 1.0 / libm::sqrt(window);
    let (low, high) = (scale(most), scale(least));
    let share = ((scale(f64::from(segments.max(1))) - low) / (high - low)).clamp(0.0, 1.0);
    parameters.target.get() + (parameters.scaling.get() as f64 * share) as u64
}

/// Algorithm 1, lines 16 to 24: a loss decreases the window as the largest delay does.
pub(super) fn ssthresh(config: &Config, parameters: SwiftParameters, window: &CongestionWindow) -> u32 {
    let by = u64::from(window.cwnd) * u64::from(parameters.decrease_max) / 1_000_000;
    (window.cwnd - by as u32).max(config.segment_units())
}

impl Swift {
    /// Algorithm 1, lines 9 to 11: adds a segment a round trip; slow start ends at the window that a loss left.
    #[inline]
    pub(super) fn on_ack(&mut self, config: &Config, window: &mut CongestionWindow, ack: AckSample) {
        if window.ssthresh < SSTHRESH_INFINITE && window.in_slow_start() {
            window.slow_start(config, ack.acked);
        } else if self.may_grow {
            window.additive_increase(config, window.cwnd, ack.acked);
        }
    }

    /// Reduces the window if the delay exceeds the target.
    pub(super) fn on_sample(
        &mut self,
        config: &Config,
        parameters: SwiftParameters,
        window: &mut CongestionWindow,
        ack: AckSample,
        rtt_ps: u64,
    ) {
        let segment = config.segment_units();
        let segments = window.cwnd / segment;
        if let Some(cwnd) = self.decreased(parameters, ack.now.get(), rtt_ps, window.cwnd, segments) {
            window.cwnd = cwnd.max(segment);
            window.ssthresh = window.ssthresh.min(window.cwnd);
            window.cwnd_cnt = 0;
        }
    }

    /// The reduced window after a delay of `delay_ps`, or `None`. The window falls once a round trip, in proportion to the
    /// excess, by at most the largest factor (algorithm 1, lines 12 to 15).
    fn decreased(
        &mut self,
        parameters: SwiftParameters,
        now: u64,
        delay_ps: u64,
        cwnd: u32,
        segments: u32,
    ) -> Option<u32> {
        let target = target_ps(parameters, segments);
        self.may_grow = delay_ps < target;
        if self.may_grow || now < self.decreased_at.saturating_add(delay_ps) {
            return None;
        }
        self.decreased_at = now;
        let excess = u128::from(delay_ps - target) * u128::from(parameters.beta) / u128::from(delay_ps);
        let by = (excess as u64).min(u64::from(parameters.decrease_max));
        Some(cwnd - (u64::from(cwnd) * by / 1_000_000) as u32)
    }
}

#[cfg(test)]
mod tests {
    use fanin_units::Duration;

    use super::*;

    const US: u64 = 1_000_000;

    #[test]
    fn falls_by_the_excess_once_a_round_trip() {
        let parameters = SwiftParameters {
            target: Duration::from_micros(100),
            scaling: Duration::ZERO,
            beta: 800_000,
            decrease_max: 500_000,
        };
        let mut swift = Swift::default();
        assert_eq!(swift.decreased(parameters, 1_000 * US, 90 * US, 1000, 10), None);
        assert!(swift.may_grow);
        // A quarter above the target: 0.8 × 0.2 of the window goes.
        assert_eq!(swift.decreased(parameters, 1_100 * US, 125 * US, 1000, 10), Some(840));
        assert!(!swift.may_grow);
        assert_eq!(swift.decreased(parameters, 1_200 * US, 125 * US, 1000, 10), None, "once a round trip");
        // Ten times the target: the window falls by no more than half.
        assert_eq!(swift.decreased(parameters, 3_000 * US, 1_000 * US, 1000, 10), Some(500));
    }

    #[test]
    fn small_windows_tolerate_more() {
        let parameters = SwiftParameters {
            target: Duration::from_micros(50),
            scaling: Duration::from_micros(300),
            beta: 800_000,
            decrease_max: 500_000,
        };
        let target = |segments| target_ps(parameters, segments) / US;
        assert_eq!((target(100), target(1_000)), (50, 50));
        assert!(target(1) > 2 * target(100) && target(1) < 350, "{}", target(1));
        assert!((2..100).all(|segments| target(segments) <= target(segments - 1)));
    }
}
