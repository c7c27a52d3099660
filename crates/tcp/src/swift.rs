//! Swift's memory (Kumar et al., SIGCOMM 2020, §3 and algorithm 1), as far as windows of whole segments go.

use crate::config::SwiftParameters;

/// Below and above these windows, in segments, the target is not scaled by flows any further (§3.5: `fs_min_cwnd`, `fs_max_cwnd`).
const SCALING_WINDOWS: (f64, f64) = (0.1, 100.0);

/// When the window last fell, and whether the last delay allows growth.
#[derive(Clone, Debug, Default)]
pub(crate) struct Swift {
    decreased_at: u64,
    may_grow: bool,
}

impl Swift {
    /// The delay that is aimed at with a window of so many segments: smaller windows tolerate more, so that many flows
    /// converge (§3.5).
    pub(crate) fn target_ps(parameters: SwiftParameters, segments: u32) -> u64 {
        let (least, most) = SCALING_WINDOWS;
        let scale = |window: f64| 1.0 / libm::sqrt(window);
        let (low, high) = (scale(most), scale(least));
        let share = ((scale(f64::from(segments.max(1))) - low) / (high - low)).clamp(0.0, 1.0);
        parameters.target.get() + (parameters.scaling.get() as f64 * share) as u64
    }

    /// A segment took `delay_ps` there and back. Returns the window to fall to, if it is to fall: once a round trip, in
    /// proportion to the excess, at most by the greatest factor (algorithm 1, lines 12 to 15).
    pub(crate) fn measured(
        &mut self,
        parameters: SwiftParameters,
        now: u64,
        delay_ps: u64,
        cwnd: u32,
        segments: u32,
    ) -> Option<u32> {
        let target = Self::target_ps(parameters, segments);
        self.may_grow = delay_ps < target;
        if self.may_grow || now < self.decreased_at.saturating_add(delay_ps) {
            return None;
        }
        self.decreased_at = now;
        let excess = u128::from(delay_ps - target) * u128::from(parameters.beta) / u128::from(delay_ps);
        let by = (excess as u64).min(u64::from(parameters.decrease_max));
        Some(cwnd - (u64::from(cwnd) * by / 1_000_000) as u32)
    }

    /// Whether the last delay was below the target.
    pub(crate) fn may_grow(&self) -> bool {
        self.may_grow
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
        assert_eq!(swift.measured(parameters, 1_000 * US, 90 * US, 1000, 10), None);
        assert!(swift.may_grow());
        // A quarter above the target: 0.8 × 0.2 of the window goes.
        assert_eq!(swift.measured(parameters, 1_100 * US, 125 * US, 1000, 10), Some(840));
        assert!(!swift.may_grow());
        assert_eq!(swift.measured(parameters, 1_200 * US, 125 * US, 1000, 10), None, "once a round trip");
        // Ten times the target: not more than the half.
        assert_eq!(swift.measured(parameters, 3_000 * US, 1_000 * US, 1000, 10), Some(500));
    }

    #[test]
    fn small_windows_tolerate_more() {
        let parameters = SwiftParameters {
            target: Duration::from_micros(50),
            scaling: Duration::from_micros(300),
            beta: 800_000,
            decrease_max: 500_000,
        };
        let target = |segments| Swift::target_ps(parameters, segments) / US;
        assert_eq!((target(100), target(1_000)), (50, 50));
        assert!(target(1) > 2 * target(100) && target(1) < 350, "{}", target(1));
        assert!((2..100).all(|segments| target(segments) <= target(segments - 1)));
    }
}
