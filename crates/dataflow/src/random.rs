//! Random numbers that are the same on every machine and in every version.

use fanin_units::{Duration, MIX_STEP, Ratio, mix};

/// A xoshiro256++ generator (Blackman and Vigna), seeded through SplitMix64.
///
/// Recorded results depend on its exact values, so the generator is part of this crate.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Makes a generator from a seed. Each host and purpose has a seed of its own
    /// ([`stream_seed`](crate::stream_seed)).
    pub fn new(seed: u64) -> Self {
        let mut counter = seed;
        let state = core::array::from_fn(|_| {
            let mixed = mix(counter);
            counter = counter.wrapping_add(MIX_STEP);
            mixed
        });
        Self { state }
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Returns a uniform number from zero to `end` - 1; the bias is below 2^-32 for any `end` of 32 bits.
    ///
    /// # Panics
    /// If `end` is zero.
    #[inline]
    pub fn below(&mut self, end: u32) -> u32 {
        assert!(end > 0, "a number below zero was asked for");
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u32
    }

    /// Puts values into a random order; all orders are equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for end in (1..values.len()).rev() {
            values.swap(end, self.below(end as u32 + 1) as usize);
        }
    }

    /// Returns a uniform number above 0 and at most 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Returns true with this probability.
    #[inline]
    pub fn chance(&mut self, probability: Ratio) -> bool {
        if probability >= Ratio::ONE {
            return true;
        }
        !probability.is_zero() && u64::from(self.below(1_000_000)) < probability.get()
    }

    /// Returns a number of the standard normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let (first, second) = (self.unit(), self.unit());
        normal_of(first, second)
    }
}

/// Returns Box and Muller's transform of two uniform numbers.
fn normal_of(first: f64, second: f64) -> f64 {
    libm::sqrt(-2.0 * libm::log(first)) * libm::cos(core::f64::consts::TAU * second)
}

/// A bound far out in the normal distribution. Most draws are known to lie below it without the full transform.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NormalBound {
    /// Least uniform draw for which Box and Muller's radius is below the bound.
    first: f64,
}

impl NormalBound {
    /// Makes the bound of `most` standard deviations. If `most` is NaN or not above zero, [`Delay::draw_above`] skips
    /// no draw.
    pub fn new(most: f64) -> Self {
        // A margin far larger than all rounding, here and in the transform.
        let surely = if most.is_infinite() { most } else { most - 1e-6 * (1.0 + libm::fabs(most)) };
        Self { first: if surely > 0.0 { libm::exp(-0.5 * surely * surely) } else { f64::INFINITY } }
    }
}

/// A time that is constant or drawn from a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delay {
    /// Always the same.
    Constant(Duration),
    /// Normally distributed; negative draws count as zero.
    Normal {
        /// The mean of the distribution.
        mean: Duration,
        /// The standard deviation.
        sd: Duration,
    },
    /// Exponentially distributed, without an upper limit.
    Exponential {
        /// The mean of the distribution.
        mean: Duration,
    },
    /// Uniform within a range.
    Uniform {
        /// The shortest time.
        min: Duration,
        /// The longest time; if shorter than `min`, `min` applies.
        max: Duration,
    },
    /// Log-normally distributed about its median.
    LogNormal {
        /// The median of the distribution.
        median: Duration,
        /// The standard deviation of the logarithm.
        sigma: Ratio,
    },
}

impl Delay {
    /// A delay of zero.
    pub const ZERO: Self = Self::Constant(Duration::ZERO);

    /// Draws a time as [`Self::draw`] does, from the same random numbers. Returns `None` for a normal draw that certainly
    /// lies below `bound`, in standard deviations from the mean.
    #[inline]
    pub fn draw_above(&self, random: &mut Random, bound: &NormalBound) -> Option<Duration> {
        let Self::Normal { mean, sd } = *self else { return Some(self.draw(random)) };
        let (first, second) = (random.unit(), random.unit());
        let number = || mean.get() as f64 + sd.get() as f64 * normal_of(first, second);
        (first < bound.first).then(|| Duration::new(number() as u64))
    }

    /// Draws a time.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> Duration {
        // Casts of floats saturate, so that an extreme draw becomes zero or the longest time.
        match *self {
            Self::Constant(time) => time,
            Self::Normal { mean, sd } => {
                Duration::new((mean.get() as f64 + sd.get() as f64 * random.normal()) as u64)
            }
            Self::Exponential { mean } => {
                Duration::new((mean.get() as f64 * -libm::log(random.unit())) as u64)
            }
            Self::Uniform { min, max } => {
                let range = u128::from(max.saturating_sub(min).get()) + 1;
                Duration::new(min.get() + ((u128::from(random.bits()) * range) >> 64) as u64)
            }
            Self::LogNormal { median, sigma } => {
                Duration::new((median.get() as f64 * libm::exp(sigma.as_f64() * random.normal())) as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(delay: Delay) -> (f64, f64) {
        let mut random = Random::new(7);
        let draws = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..draws {
            let time = delay.draw(&mut random).as_millis_f64();
            sum += time;
            squares += time * time;
        }
        let mean = sum / f64::from(draws);
        (mean, libm::sqrt(squares / f64::from(draws) - mean * mean))
    }

    #[test]
    fn skipped_draws_lie_below_the_bound() {
        let delay = Delay::Normal { mean: Duration::from_micros(100), sd: Duration::from_micros(50) };
        for most in [-1.0, 0.0, 0.5, 1.0, 2.5, 8.0, f64::INFINITY, f64::NAN] {
            let bound = NormalBound::new(most);
            let (mut random, mut same) = (Random::new(3), Random::new(3));
            let mut left_out = 0;
            for _ in 0..20_000 {
                let (drawn, expected) = (delay.draw_above(&mut random, &bound), delay.draw(&mut same));
                match drawn {
                    Some(drawn) => assert_eq!(drawn, expected),
                    None => {
                        assert!(expected.get() as f64 <= 1e8 + 5e7 * most, "{expected} {most}");
                        left_out += 1;
                    }
                }
            }
            assert_eq!(left_out > 0, most > 0.0, "{most}");
            assert!(most.is_nan() || most < 2.5 || left_out > 18_000, "{most} {left_out}");
        }
    }

    #[test]
    fn the_stream_is_fixed() {
        // The published first outputs of xoshiro256++ for the state 1, 2, 3, 4.
        let mut random = Random { state: [1, 2, 3, 4] };
        assert_eq!(
            [random.bits(), random.bits(), random.bits()],
            [41_943_041, 58_720_359, 3_588_806_011_781_223]
        );
    }

    #[test]
    fn distributions_have_their_moments() {
        let ms = Duration::from_millis;
        let close =
            |actual: f64, want: f64| assert!((actual - want).abs() < 0.02 * want.max(1.0), "{actual} {want}");
        let (mean, sd) = moments(Delay::Normal { mean: ms(10), sd: ms(2) });
        close(mean, 10.0);
        close(sd, 2.0);
        let (mean, sd) = moments(Delay::Exponential { mean: ms(10) });
        close(mean, 10.0);
        close(sd, 10.0);
        let (mean, _) = moments(Delay::Uniform { min: ms(4), max: ms(8) });
        close(mean, 6.0);
        let (mean, _) = moments(Delay::LogNormal { median: ms(10), sigma: Ratio::new(250_000) });
        close(mean, 10.0 * libm::exp(0.25 * 0.25 / 2.0));
        assert_eq!(moments(Delay::Constant(ms(3))).0, 3.0);
    }

    #[test]
    fn chances_are_kept() {
        let mut random = Random::new(1);
        let hits = (0..100_000).filter(|_| random.chance(Ratio::new(50_000))).count();
        assert!((4_700..5_300).contains(&hits), "{hits}");
        assert!(!random.chance(Ratio::ZERO) && random.chance(Ratio::ONE));
    }
}
