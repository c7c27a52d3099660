//! Random numbers: one independent stream for each host and purpose.

use fanin_units::Duration;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

use crate::network::mix;

/// What a stream of random numbers is for. Every host has one of each, so that neither another host nor another
/// use shifts the numbers of this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// When an application first does something.
    Start = 1,
    /// How long a request takes to be answered.
    Response = 2,
    /// How long an event is processed.
    Processing = 3,
    /// Sizes of events and fragments.
    Size = 4,
    /// Which unit an event is assigned to.
    Assignment = 5,
    /// Which events are accepted.
    Decision = 6,
    /// Decisions of a switch that marks or drops by chance.
    Marking = 7,
}

/// A stream of random numbers, given by the run's seed, a host and a purpose.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of one host and purpose. Hosts are numbered by role and place, so that more of one kind never
    /// renumber another's.
    pub fn new(seed: u64, host: u64, purpose: Purpose) -> Self {
        let low = mix(mix(mix(seed) ^ host) ^ purpose as u64);
        Self(Pcg64Mcg::new(u128::from(mix(low)) << 64 | u128::from(low)))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 to below `bound`, every one equally likely to within 2⁻⁶⁴ of its share (Lemire 2019,
    /// without the rejection).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from 0 to below 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A value of the standard normal distribution (Marsaglia's polar method, the second value unused, so that
    /// each draw depends on the stream's state alone).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// A time with a normal distribution, cut off at zero.
    pub fn normal_duration(&mut self, mean: Duration, deviation: Duration) -> Duration {
        if deviation.is_zero() {
            return mean;
        }
        let ps = mean.get() as f64 + deviation.get() as f64 * self.normal();
        Duration::new(ps.max(0.0) as u64)
    }

    /// A value of the log-normal distribution with median 1 and the given shape: its mean is `exp(shape² / 2)`.
    pub fn log_normal(&mut self, shape: f64) -> f64 {
        (shape * self.normal()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_independent_and_repeatable() {
        let first = |seed, host, purpose| Stream::new(seed, host, purpose).bits();
        assert_eq!(first(1, 2, Purpose::Size), first(1, 2, Purpose::Size));
        assert_ne!(first(1, 2, Purpose::Size), first(1, 2, Purpose::Start));
        assert_ne!(first(1, 2, Purpose::Size), first(1, 3, Purpose::Size));
        assert_ne!(first(1, 2, Purpose::Size), first(2, 2, Purpose::Size));
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut stream = Stream::new(7, 0, Purpose::Size);
        let draws = 100_000;
        let values: Vec<f64> = (0..draws).map(|_| stream.normal()).collect();
        let mean = values.iter().sum::<f64>() / f64::from(draws);
        let variance = values.iter().map(|value| value * value).sum::<f64>() / f64::from(draws);
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "mean {mean}, variance {variance}");
        let mean = (0..draws).map(|_| stream.log_normal(0.25)).sum::<f64>() / f64::from(draws);
        assert!((mean - (0.25_f64 * 0.25 / 2.0).exp()).abs() < 0.005, "mean {mean}");
        let cut = stream.normal_duration(Duration::new(0), Duration::from_micros(1));
        assert!(cut < Duration::from_micros(10));
        assert!((0..1000).all(|_| stream.below(3) < 3));
    }
}
