//! Random early detection.

use fanin_units::{Bytes, Duration, Instant, Ratio};

use super::decision::{AqmDecision, NotCapable, mark};
use super::depth::Depth;
use crate::frame::{Frame, Occupancy};

/// Settings of random early detection (Floyd and Jacobson 1993; "gentle" by Floyd 2000).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedSettings {
    /// The averaged queue below which RED neither marks nor drops. Its variant chooses byte or packet mode.
    pub depth_min: Depth,
    /// The averaged queue at which the probability is [`Self::probability_max`]: the same variant, and larger.
    pub depth_max: Depth,
    /// Weight of the newest sample in the average, at most 1; 0.002 in the paper.
    pub weight: Ratio,
    /// Probability at the upper threshold, at most 1; 0.02 in the paper.
    pub probability_max: Ratio,
    /// Raises the probability linearly to 1 at twice the upper threshold (Floyd's "gentle"). If false, it jumps to 1 at the
    /// upper threshold.
    pub gentle: bool,
    /// Marks ECN-capable frames instead of dropping them, as long as the probability is below 1.
    pub ecn: bool,
    /// Drops ECN-capable frames, too, once the probability is 1 (RFC 3168 §7; `UseHardDrop` of ns-3).
    pub hard_drop: bool,
    /// Size of a mean frame. In byte mode the probability of a frame is multiplied by the ratio of its size to this
    /// one.
    pub packet_mean: Bytes,
    /// Time to send a mean frame. In an idle queue, the average decays by one sample of zero in each such time.
    pub packet_time: Duration,
}

/// Errors of RED's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RedError {
    /// The thresholds differ in measure, are out of order, or exceed 2^36 bytes or frames.
    #[error(
        "the lower threshold must lie below the upper one, in the same measure, and neither exceeds 2^36 bytes or packets; \
         these are {min} and {max}"
    )]
    Thresholds {
        /// The lower threshold given.
        min: Depth,
        /// The upper threshold given.
        max: Depth,
    },
    /// A ratio above 1, or a weight of zero.
    #[error("the {parameter} must be above 0 and at most 1, not {actual}")]
    Ratio {
        /// The setting that is wrong.
        parameter: &'static str,
        /// The value given.
        actual: Ratio,
    },
    /// The mean frame has no size or no time.
    #[error("the mean packet needs a size and a time to send")]
    Packet,
}

/// Bits after the point of the average.
const AVERAGE_BITS: u32 = 24;
/// A probability or weight of 1.
const ONE: u64 = 1 << 32;

/// Random early detection of one queue. Integer arithmetic gives the same decisions on every machine.
#[derive(Debug, Clone)]
pub struct Red {
    settings: RedSettings,
    weight: u64,
    probability_max: u64,
    /// Averaged queue, with [`AVERAGE_BITS`] fraction bits.
    average: u64,
    /// Frames since the last mark or drop; `None` while the average is below the lower threshold.
    since_mark: Option<u64>,
}

impl Red {
    /// Makes the state of a queue that has been empty so far.
    ///
    /// # Errors
    /// If the settings are refused: [`RedError`] has a case for each reason.
    pub fn new(settings: RedSettings) -> Result<Self, RedError> {
        let (min, max) = (settings.depth_min, settings.depth_max);
        let alike =
            matches!((min, max), (Depth::Bytes(_), Depth::Bytes(_)) | (Depth::Packets(_), Depth::Packets(_)));
        if !alike || min.value() >= max.value() || max.value() > 1 << 36 {
            return Err(RedError::Thresholds { min, max });
        }
        for (actual, parameter) in [(settings.weight, "weight"), (settings.probability_max, "probability")] {
            if actual.is_zero() || actual > Ratio::ONE {
                return Err(RedError::Ratio { parameter, actual });
            }
        }
        if settings.packet_mean.is_zero() || settings.packet_time.is_zero() {
            return Err(RedError::Packet);
        }
        let fixed = |ratio: Ratio| ratio.get() * ONE / Ratio::ONE.get();
        Ok(Self {
            settings,
            weight: fixed(settings.weight),
            probability_max: fixed(settings.probability_max),
            average: 0,
            since_mark: None,
        })
    }

    /// The averaged queue in bytes or frames, rounded down.
    pub const fn average(&self) -> u64 {
        self.average >> AVERAGE_BITS
    }

    /// Decides about one arriving frame. `queue` does not include it; `emptied_at` is the time at which the queue last
    /// became empty. `draw` returns 32 uniform random bits.
    pub(super) fn decide(
        &mut self,
        now: Instant,
        queue: &Occupancy,
        emptied_at: Instant,
        frame: Frame,
        draw: impl FnOnce() -> u32,
    ) -> AqmDecision {
        let length = self.settings.depth_min.measure(queue).min(1 << 37) << AVERAGE_BITS;
        if queue.frames == 0 {
            // While idle, the average decays as if small queues of zero had been sampled (Floyd and Jacobson, §4).
            let samples = now.saturating_since(emptied_at).get() / self.settings.packet_time.get();
            self.average = scale(self.average, power(ONE - self.weight, samples));
        }
        let difference = i128::from(length) - i128::from(self.average);
        let moved = (difference * i128::from(self.weight)) >> 32;
        self.average = (i128::from(self.average) + moved) as u64;

        let (min, max) = (
            self.settings.depth_min.value() << AVERAGE_BITS,
            self.settings.depth_max.value() << AVERAGE_BITS,
        );
        if self.average < min {
            self.since_mark = None;
            return AqmDecision::Pass;
        }
        let certain_from = if self.settings.gentle { max.saturating_mul(2) } else { max };
        if self.average >= certain_from {
            self.since_mark = Some(0);
            return if self.settings.ecn && !self.settings.hard_drop {
                mark(frame.ecn, NotCapable::Drop)
            } else {
                AqmDecision::Drop
            };
        }
        let base = if self.average < max {
            share(self.probability_max, self.average - min, max - min)
        } else {
            self.probability_max + share(ONE - self.probability_max, self.average - max, max)
        };
        let base = match self.settings.depth_min {
            Depth::Bytes(_) => share(base, u64::from(frame.bytes), self.settings.packet_mean.get()).min(ONE),
            Depth::Packets(_) => base,
        };
        assert!(base <= ONE, "a probability above 1");
        // The count spreads marks evenly: p_a = p_b / (1 - count p_b) (ibid., §4). It starts at 0 when the average
        // reaches the lower threshold.
        let count = self.since_mark.map_or(0, |count| count + 1);
        self.since_mark = Some(count);
        let left = u128::from(ONE).saturating_sub(u128::from(count) * u128::from(base));
        let hit = left <= u128::from(base) || {
            let probability = (u128::from(base) << 32) / left;
            u128::from(draw()) < probability
        };
        if !hit {
            return AqmDecision::Pass;
        }
        self.since_mark = Some(0);
        if self.settings.ecn { mark(frame.ecn, NotCapable::Drop) } else { AqmDecision::Drop }
    }
}

/// `value` times a fraction of [`ONE`].
const fn scale(value: u64, fraction: u64) -> u64 {
    debug_assert!(fraction <= ONE, "a fraction above 1");
    ((value as u128 * fraction as u128) >> 32) as u64
}

/// `whole` times `part / parts`.
const fn share(whole: u64, part: u64, parts: u64) -> u64 {
    debug_assert!(parts > 0, "a share of nothing");
    (whole as u128 * part as u128 / parts as u128) as u64
}

/// A fraction of [`ONE`] to an integer power.
const fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = ONE;
    while exponent > 0 && result > 0 {
        if exponent & 1 == 1 {
            result = scale(result, base);
        }
        base = scale(base, base);
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use fanin_units::Packets;

    use super::*;
    use crate::frame::EcnCodepoint;

    const CAPABLE: Frame = Frame { bytes: 1500, ecn: EcnCodepoint::Capable };

    fn queue(frames: u64) -> Occupancy {
        Occupancy { bytes: frames * 1500, frames, ..Occupancy::default() }
    }

    fn settings() -> RedSettings {
        RedSettings {
            depth_min: Depth::Packets(Packets::new(15)),
            depth_max: Depth::Packets(Packets::new(25)),
            weight: Ratio::new(2_000),
            probability_max: Ratio::new(20_000),
            gentle: false,
            ecn: true,
            hard_drop: true,
            packet_mean: Bytes::new(1500),
            packet_time: Duration::from_micros(12),
        }
    }

    #[test]
    fn the_average_follows_the_exponential() {
        let mut red = Red::new(settings()).unwrap();
        let mut float = 0.0f64;
        for step in 0..2_000u64 {
            let frames = 5 + step % 7;
            red.decide(Instant::START, &queue(frames), Instant::START, Frame::new(1500), || u32::MAX);
            float += 0.002 * (frames as f64 - float);
            let exact = red.average as f64 / f64::from(1 << AVERAGE_BITS);
            assert!((exact - float).abs() < 0.01, "{exact} {float}");
        }
        // 1000 packet times of silence: 0.998^1000 = 0.135.
        let before = red.average;
        red.decide(
            Instant::START + Duration::from_millis(12),
            &queue(0),
            Instant::START,
            Frame::new(1500),
            || 0,
        );
        let kept = red.average as f64 / before as f64;
        assert!((kept - 0.998f64.powi(1001)).abs() < 1e-4, "{kept}");
    }

    #[test]
    fn marks_as_often_as_the_probability_says() {
        // With a weight of 1 the average is the queue. At 20 of 15..25 the base probability is 1 %. The count
        // makes the gap between marks uniform over 1..=100: one mark in 50.5 frames.
        let exact = RedSettings { weight: Ratio::ONE, ..settings() };
        let mut red = Red::new(exact).unwrap();
        let mut state = 1u64;
        let (mut marks, frames) = (0, 200_000);
        for _ in 0..frames {
            let draw = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 32) as u32
            };
            marks += u32::from(
                red.decide(Instant::START, &queue(20), Instant::START, CAPABLE, draw) == AqmDecision::Mark,
            );
        }
        let gap = f64::from(frames) / f64::from(marks);
        assert!((gap - 50.5).abs() < 1.5, "{gap}");
    }

    #[test]
    fn gentle_and_hard_drop_say_what_happens_past_the_upper_threshold() {
        let ask = |gentle, hard_drop, frames, draw: u32| {
            let all = RedSettings { weight: Ratio::ONE, gentle, hard_drop, ..settings() };
            let mut red = Red::new(all).unwrap();
            red.decide(Instant::START, &queue(frames), Instant::START, CAPABLE, || draw)
        };
        assert_eq!(ask(false, true, 25, 0), AqmDecision::Drop);
        assert_eq!(ask(false, false, 25, 0), AqmDecision::Mark);
        // Gentle, half way from 25 to 50: 2 % + 98 % / 2 = 51 %.
        let percent = |percent: u64| (percent * ONE / 100) as u32;
        assert_eq!(ask(true, true, 37, percent(46)), AqmDecision::Mark);
        assert_eq!(ask(true, true, 37, percent(52)), AqmDecision::Pass);
        assert_eq!(ask(true, true, 50, u32::MAX), AqmDecision::Drop);
    }

    #[test]
    fn refuses_settings_that_mean_nothing() {
        let bad = RedSettings { depth_max: Depth::Bytes(Bytes::new(9)), ..settings() };
        assert!(matches!(Red::new(bad), Err(RedError::Thresholds { .. })));
        let bad = RedSettings { weight: Ratio::ZERO, ..settings() };
        assert_eq!(Red::new(bad).unwrap_err(), RedError::Ratio { parameter: "weight", actual: Ratio::ZERO });
        let bad = RedSettings { packet_time: Duration::ZERO, ..settings() };
        assert_eq!(Red::new(bad).unwrap_err(), RedError::Packet);
    }
}
