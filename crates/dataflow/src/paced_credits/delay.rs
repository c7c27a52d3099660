//! The delay of answers on idle links.

/// Weight of the newest sample.
const GAIN: f64 = 1.0 / 16.0;
/// Samples before the mean may count as a minimum.
const SAMPLES_MIN: u32 = 16;
/// Samples after which the older half of the minima is forgotten, as the network may have changed.
const PERIOD: u32 = 256;

/// The least mean delay of recent probes.
///
/// The mean follows the probes, but queues of other traffic raise it. So the minimum of its recent values counts, as
/// BBR uses the minimum round-trip time. The least single sample would be too small: readouts answer after random
/// times.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct DelayEstimate {
    /// Mean of recent samples, in picoseconds.
    mean: f64,
    samples: u32,
    /// The least mean of the last period and of this one.
    least: [f64; 2],
}

impl DelayEstimate {
    pub(super) fn new(sample: f64) -> Self {
        Self { mean: sample, samples: 1, least: [f64::INFINITY; 2] }
    }

    pub(super) fn add(&mut self, sample: f64) {
        self.samples += 1;
        // The first samples count equally.
        let gain = GAIN.max(1.0 / f64::from(self.samples));
        self.mean += (sample - self.mean) * gain;
        if self.samples < SAMPLES_MIN {
            return;
        }
        self.least[1] = self.least[1].min(self.mean);
        if self.samples >= PERIOD {
            self.samples = SAMPLES_MIN;
            self.least = [self.least[1], self.mean];
        }
    }

    /// Returns the delay without queues of other traffic, in picoseconds.
    pub(super) fn base(&self) -> f64 {
        let [last, present] = self.least;
        last.min(present).min(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_others_does_not_raise_the_delay_until_it_has_lasted() {
        let mut delay = DelayEstimate::new(400.0);
        (0..100).for_each(|n| delay.add(if n % 2 == 0 { 300.0 } else { 500.0 }));
        assert!((380.0..=410.0).contains(&delay.base()), "{delay:?}");
        let before = delay.base();
        (0..PERIOD).for_each(|_| delay.add(2_000.0));
        assert_eq!(delay.base(), before);
        // A lasting delay is learned in two periods.
        (0..3 * PERIOD).for_each(|_| delay.add(2_000.0));
        assert!((1_990.0..=2_000.0).contains(&delay.base()), "{delay:?}");
    }

    #[test]
    fn a_first_sample_that_is_too_small_is_corrected_soon() {
        let mut delay = DelayEstimate::new(10.0);
        (0..SAMPLES_MIN).for_each(|_| delay.add(400.0));
        assert!(delay.base() > 370.0, "{delay:?}");
    }
}
