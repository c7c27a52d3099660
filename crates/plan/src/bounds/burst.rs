//! Buffers that absorb bursts without shaping: fixed and log-normal event sizes, memory of one port and shared memory.

use fanin_units::{Bytes, Duration, Frequency, Rate, Ratio};

use crate::derived::{Derived, brief};

/// Sizes of events, in bytes of switch memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventSize {
    /// The mean of the distribution.
    pub mean: Bytes,
    /// Scale parameter of a log-normal distribution with that mean; zero where every event has the mean size.
    pub sigma: f64,
}

impl EventSize {
    /// Makes a size without spread: every event has `size`.
    pub const fn fixed(size: Bytes) -> Self {
        Self { mean: size, sigma: 0.0 }
    }

    /// Returns the location parameter μ: a log-normal variable has the mean exp(μ + σ²/2).
    fn location(&self) -> f64 {
        libm::log(self.mean.get() as f64) - self.sigma * self.sigma / 2.0
    }

    /// Computes the size that a share `probability` of events does not exceed, rounded up to a byte.
    ///
    /// # Panics
    /// If the probability is not between 0 and 1, both excluded.
    pub fn quantile(&self, probability: f64) -> Derived<Bytes> {
        let z = normal_quantile(probability);
        let value = if self.sigma == 0.0 {
            self.mean
        } else {
            Bytes::new(libm::ceil(libm::exp(self.location() + self.sigma * z)) as u64)
        };
        Derived::new(
            "event_quantile",
            value,
            "mean × exp(σ z − σ²/2)",
            format!("{} × exp({} × {z:.3} − {}²/2)", brief(self.mean), self.sigma, self.sigma),
            "thesis §6.2",
        )
    }

    /// Returns the share of events larger than `size` bytes, 0 to 1.
    fn share_above(&self, size: f64) -> f64 {
        if self.sigma == 0.0 {
            return if self.mean.get() as f64 > size { 1.0 } else { 0.0 };
        }
        normal_cdf((self.location() - libm::log(size)) / self.sigma)
    }

    /// Computes the first three moments of `max(size × scale − drained, 0)`.
    fn moments_above(&self, scale: f64, drained: f64) -> [f64; 3] {
        let mean = self.mean.get() as f64 * scale;
        let power = |power: f64| {
            libm::pow(mean, power) * libm::exp(power * (power - 1.0) / 2.0 * self.sigma * self.sigma)
        };
        let raw = [power(1.0), power(2.0), power(3.0)];
        if drained <= 0.0 {
            return raw;
        }
        if self.sigma == 0.0 {
            let rest = (mean - drained).max(0.0);
            return [rest, rest * rest, rest * rest * rest];
        }
        // Moments of the part of a log-normal distribution above a threshold. Then the threshold is subtracted.
        let d = (libm::log(mean / drained) - self.sigma * self.sigma / 2.0) / self.sigma;
        let above = |power: f64| normal_cdf(d + power * self.sigma);
        let [e0, e1, e2, e3] = [above(0.0), raw[0] * above(1.0), raw[1] * above(2.0), raw[2] * above(3.0)];
        [
            (e1 - drained * e0).max(0.0),
            (e2 - 2.0 * drained * e1 + drained * drained * e0).max(0.0),
            (e3 - 3.0 * drained * e2 + 3.0 * drained * drained * e1 - drained.powi(3) * e0).max(0.0),
        ]
    }
}

/// Returns the share of the inflow that a queue keeps while it drains, 1 − outflow / inflow, as numerator and denominator. Zero
/// if the queue drains faster than it fills.
fn kept(inflow: Rate, outflow: Rate) -> (u128, u128) {
    (u128::from(inflow.saturating_sub(outflow).get()), u128::from(inflow.get()))
}

/// Computes the peak occupancy of a queue while `burst` enters at `inflow` and leaves at `outflow`, rounded up.
///
/// # Panics
/// If the inflow is zero.
pub fn peak_occupancy(burst: Bytes, inflow: Rate, outflow: Rate) -> Derived<Bytes> {
    let (share, whole) = kept(inflow, outflow);
    let peak = (u128::from(burst.get()) * share).div_ceil(whole);
    Derived::new(
        "peak_occupancy",
        Bytes::new(u64::try_from(peak).expect("never more than the burst")),
        "burst × (1 − outflow / inflow)",
        format!("{} × (1 − {} / {})", brief(burst), brief(outflow), brief(inflow)),
        "thesis §4.2.2, fluid model",
    )
}

/// Computes the largest burst that a queue of `buffer` bytes absorbs; `Bytes::MAX` if it drains as fast as it fills.
///
/// # Panics
/// If the inflow is zero.
pub fn burst_max(buffer: Bytes, inflow: Rate, outflow: Rate) -> Derived<Bytes> {
    let (share, whole) = kept(inflow, outflow);
    let burst = (u128::from(buffer.get()) * whole).checked_div(share).unwrap_or(u128::MAX);
    Derived::new(
        "burst_max",
        Bytes::new(u64::try_from(burst).unwrap_or(u64::MAX)),
        "buffer / (1 − outflow / inflow)",
        format!("{} / (1 − {} / {})", brief(buffer), brief(outflow), brief(inflow)),
        "thesis §4.2.2, fluid model",
    )
}

/// Computes the share of events whose burst overflows a queue of `buffer` bytes without other traffic. Events of up to `least`
/// bytes fit in any case.
///
/// # Panics
/// If the inflow is zero.
pub fn overflow_share(
    buffer: Bytes,
    size: EventSize,
    inflow: Rate,
    outflow: Rate,
    least: Bytes,
) -> Derived<Ratio> {
    let burst = burst_max(buffer, inflow, outflow).value.max(least);
    let share = if burst == Bytes::MAX { 0.0 } else { size.share_above(burst.get() as f64) };
    Derived::new(
        "overflow_share",
        Ratio::new(libm::round(share * 1e6) as u64),
        "share of events larger than buffer / (1 − outflow / inflow)",
        format!("P(log-normal of mean {}, σ {} > {})", brief(size.mean), size.sigma, brief(burst)),
        "thesis §6.5, fluid model",
    )
}

/// Computes the time that a byte waits behind `queue` bytes.
///
/// # Panics
/// If the rate is zero.
pub fn queueing_delay(queue: Bytes, rate: Rate) -> Derived<Duration> {
    Derived::new(
        "queueing_delay",
        rate.time_to_send(queue),
        "queue / rate",
        format!("{} / {}", brief(queue), brief(rate)),
        "thesis §2.4",
    )
}

/// The port that the next event goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    /// The ports in turn, so that an event never meets another at its port.
    InTurn,
    /// Any port. Events that meet at one port queue up there.
    AtRandom,
}

/// Concurrent collections through one shared memory, each through its own port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedLoad {
    /// Bytes of an event in switch memory.
    pub size: EventSize,
    /// Events a second through this memory, evenly spaced if they take the ports in turn.
    pub rate: Frequency,
    /// Rate at which one event arrives.
    pub inflow: Rate,
    /// Rate of the port by which an event leaves.
    pub outflow: Rate,
    /// Number of ports by which events leave.
    pub ports: u64,
    /// The port that the next event goes to.
    pub assignment: PortChoice,
}

/// Most terms of the sum over events still in memory. With more events, each term stands for several of them.
const TERMS_MAX: f64 = 4_096.0;

impl SharedLoad {
    /// Computes mean, standard deviation and skewness of the occupancy at its peaks, when the newest event has just arrived.
    ///
    /// An event that began k periods earlier has sent `k × period × outflow` bytes more. The remaining bytes of different
    /// events are independent, so that means, variances and third central moments add.
    fn moments_in_turn(&self) -> (f64, f64, f64) {
        let out = self.outflow.get() as f64 / 8.0;
        let fill = self.size.mean.get() as f64 * 8.0 / self.inflow.get() as f64;
        let period = 1e3 / self.rate.get() as f64;
        let kept = (1.0 - self.outflow.get() as f64 / self.inflow.get() as f64).max(0.0);
        let (mut mean, mut variance, mut third) = (0.0, 0.0, 0.0);
        let mut add = |[m1, m2, m3]: [f64; 3], events: f64| {
            mean += events * m1;
            variance += events * (m2 - m1 * m1);
            third += events * (m3 - 3.0 * m1 * m2 + 2.0 * m1 * m1 * m1);
        };
        add(self.size.moments_above(kept, 0.0), 1.0);
        // After this many periods, even an event eight deviations above the mean has left.
        let largest = self.size.mean.get() as f64 * libm::exp(8.0 * self.size.sigma);
        let events = libm::ceil(largest / (out * period));
        let stride = libm::ceil(events / TERMS_MAX).max(1.0);
        let mut event = 1.0;
        while event <= events {
            let middle = event + (stride - 1.0) / 2.0;
            let rest = self.size.moments_above(1.0, (middle * period + fill) * out);
            if rest[0] * stride < 1.0 {
                break;
            }
            add(rest, stride);
            event += stride;
        }
        let deviation = libm::sqrt(variance.max(0.0));
        let skewness = if deviation < 1.0 { 0.0 } else { third / (deviation * deviation * deviation) };
        (mean, deviation, skewness)
    }

    /// Computes the moments of [`Self::moments_in_turn`] for events that go to any port. Each port is a queue with Poisson
    /// arrivals and general service (Pollaczek and Khinchine, with Takács' second moment). The ports are assumed independent.
    fn moments_at_random(&self) -> (f64, f64, f64) {
        let out = self.outflow.get() as f64 / 8.0;
        let kept = (1.0 - self.outflow.get() as f64 / self.inflow.get() as f64).max(0.0);
        let [s1, s2, s3] = self.size.moments_above(1.0, 0.0);
        // Arrivals at one port for each byte that it sends.
        let arrivals = self.rate.get() as f64 / 1e3 / self.ports as f64 / out;
        let idle = 1.0 - arrivals * s1;
        let mean = arrivals * s2 / (2.0 * idle);
        let variance = mean * mean + arrivals * s3 / (3.0 * idle);
        let ports = self.ports as f64;
        // At a peak, the newest event has just arrived in addition.
        let [n1, n2, _] = self.size.moments_above(kept, 0.0);
        (ports * mean + n1, libm::sqrt(ports * variance + n2 - n1 * n1), 0.0)
    }

    /// Computes mean, standard deviation and skewness of the occupancy at its peaks.
    fn moments(&self) -> (f64, f64, f64) {
        assert!(!self.rate.is_zero() && !self.outflow.is_zero() && !self.inflow.is_zero(), "a rate is zero");
        assert!(self.port_load() < Ratio::ONE, "ports are offered more than they carry");
        match self.assignment {
            PortChoice::InTurn => self.moments_in_turn(),
            PortChoice::AtRandom => self.moments_at_random(),
        }
    }

    /// Computes the shared memory that a share `probability` of the peaks does not exceed.
    ///
    /// The sum is assumed normal, corrected for its skewness by the first term of Cornish and Fisher.
    ///
    /// # Panics
    /// If a rate is zero, ports are offered more than they carry ([`Self::port_load`]), or the probability is not
    /// between 0 and 1, both excluded.
    pub fn memory(&self, probability: f64) -> Derived<Bytes> {
        let (mean, deviation, skewness) = self.moments();
        let z = normal_quantile(probability);
        let z = z + (z * z - 1.0) * skewness / 6.0;
        Derived::new(
            "shared_memory",
            Bytes::new(libm::ceil((mean + z * deviation).max(0.0)) as u64),
            "mean + z × deviation of the rests of all events under way",
            format!(
                "{} + {z:.3} × {}",
                brief(Bytes::new(libm::round(mean) as u64)),
                brief(Bytes::new(libm::round(deviation) as u64))
            ),
            "thesis §6.5, fluid model",
        )
    }

    /// Returns the share of the peaks that exceed `memory`, the inverse of [`Self::memory`].
    ///
    /// # Panics
    /// As for [`Self::memory`].
    pub fn share_above(&self, memory: Bytes) -> Ratio {
        let (mean, deviation, skewness) = self.moments();
        let above = memory.get() as f64 - mean;
        if deviation < 1.0 {
            return if above < 0.0 { Ratio::ONE } else { Ratio::ZERO };
        }
        // The corrected quantile increases with z above this value.
        let lowest = if skewness > 0.0 { (-3.0 / skewness).max(-39.0) } else { -39.0 };
        let (mut low, mut high) = (lowest, 39.0);
        while high - low > 1e-9 {
            let z = 0.5 * (low + high);
            if (z + (z * z - 1.0) * skewness / 6.0) * deviation < above {
                low = z;
            } else {
                high = z;
            }
        }
        Ratio::new(libm::round(normal_cdf(-0.5 * (low + high)) * 1e6) as u64)
    }

    /// Returns the share of time that a port is busy.
    ///
    /// # Panics
    /// If the number of ports or their rate is zero.
    pub fn port_load(&self) -> Ratio {
        let bits = u128::from(self.rate.get()) * u128::from(self.size.mean.get()) * 8 / 1_000;
        let offered = Rate::new(u64::try_from(bits).unwrap_or(u64::MAX));
        crate::wire::load(offered, self.outflow, self.ports).value
    }
}

/// Computes the distribution function of the standard normal distribution.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / core::f64::consts::SQRT_2)
}

/// Computes the quantile of the standard normal distribution, to the last bits of a double.
///
/// # Panics
/// If the probability is not between 0 and 1, both excluded.
pub fn normal_quantile(probability: f64) -> f64 {
    assert!(probability > 0.0 && probability < 1.0, "no quantile of {probability}");
    // The tail beyond 39 standard deviations is smaller than the smallest double.
    let (mut low, mut high) = (-39.0, 39.0);
    while high - low > 1e-12 {
        let middle = 0.5 * (low + high);
        if normal_cdf(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPLINKS: Rate = Rate::new(20_000_000_000);
    const HOST: Rate = Rate::new(1_000_000_000);

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, z) in
            [(0.5, 0.0), (0.975, 1.959_963_985), (0.999, 3.090_232_306), (1e-6, -4.753_424_309)]
        {
            assert!((normal_quantile(probability) - z).abs() < 1e-8, "{probability}");
        }
    }

    #[test]
    fn a_queue_drains_while_it_fills() {
        let peak = peak_occupancy(Bytes::new(2_000_000), UPLINKS, HOST);
        assert_eq!(peak.value, Bytes::new(1_900_000));
        assert_eq!(burst_max(peak.value, UPLINKS, HOST).value, Bytes::new(2_000_000));
        assert_eq!(peak_occupancy(Bytes::new(2_000_000), HOST, HOST).value, Bytes::ZERO);
        assert_eq!(burst_max(Bytes::new(1), HOST, UPLINKS).value, Bytes::MAX);
    }

    /// A small private generator keeps the comparison the same everywhere.
    struct Random(u64);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        fn size(&mut self, size: &EventSize) -> f64 {
            libm::exp(size.location() + size.sigma * normal_quantile(self.uniform()))
        }
    }

    #[test]
    fn moments_agree_with_a_sample() {
        let size = EventSize { mean: Bytes::new(2_000_000), sigma: 0.25 };
        let mut random = Random(1);
        let sizes: Vec<f64> = (0..100_000).map(|_| random.size(&size)).collect();
        for drained in [500_000.0, 2_000_000.0, 2_500_000.0] {
            for (index, computed) in size.moments_above(1.0, drained).into_iter().enumerate() {
                let powers = sizes.iter().map(|size| (size - drained).max(0.0).powi(index as i32 + 1));
                let sampled = powers.sum::<f64>() / sizes.len() as f64;
                assert!((computed / sampled - 1.0).abs() < 0.05, "{drained}: {computed} {sampled}");
            }
        }
    }

    #[test]
    fn shared_memory_agrees_with_a_sample_of_the_fluid_model() {
        let load = SharedLoad {
            size: EventSize { mean: Bytes::new(2_200_000), sigma: 0.25 },
            rate: Frequency::new(1_000_000),
            inflow: UPLINKS,
            outflow: HOST,
            ports: 39,
            assignment: PortChoice::InTurn,
        };
        let mut random = Random(2);
        let sizes: Vec<f64> = (0..100_000).map(|_| random.size(&load.size)).collect();
        let mut peaks: Vec<f64> = sizes
            .windows(60)
            .map(|events| {
                let newest = events[59];
                let fill = 2_200_000.0 * 8.0 / 20e9;
                let older = events[..59]
                    .iter()
                    .rev()
                    .enumerate()
                    .map(|(index, size)| (size - ((index + 1) as f64 * 1e-3 + fill) * 125e6).max(0.0));
                newest * 0.95 + older.sum::<f64>()
            })
            .collect();
        peaks.sort_by(f64::total_cmp);
        let sampled = peaks[peaks.len() * 999 / 1000];
        let computed = load.memory(0.999).value.get() as f64;
        assert!((computed / sampled - 1.0).abs() < 0.02, "computed {computed}, sampled {sampled}");
    }

    #[test]
    fn random_assignment_agrees_with_a_sample_of_queues() {
        let load = SharedLoad {
            size: EventSize::fixed(Bytes::new(2_200_000)),
            rate: Frequency::new(500_000),
            inflow: UPLINKS,
            outflow: HOST,
            ports: 39,
            assignment: PortChoice::AtRandom,
        };
        let mut random = Random(3);
        let mut queues = [0.0_f64; 39];
        let mut peaks: Vec<f64> = (0..50_000)
            .map(|_| {
                // Poisson arrivals, each at any port.
                let drained = -libm::log(random.uniform()) / 500.0 * 125e6;
                queues.iter_mut().for_each(|queue| *queue = (*queue - drained).max(0.0));
                queues[(random.uniform() * 39.0) as usize] += 2_200_000.0;
                queues.iter().sum::<f64>() - 110_000.0
            })
            .collect();
        peaks.sort_by(f64::total_cmp);
        let computed = load.memory(0.5).value.get() as f64;
        assert!(
            (computed / peaks[25_000] - 1.0).abs() < 0.05,
            "computed {computed}, sampled {}",
            peaks[25_000]
        );
        let (computed, sampled) = (load.memory(0.99).value.get() as f64, peaks[49_500]);
        assert!((computed / sampled - 1.0).abs() < 0.10, "computed {computed}, sampled {sampled}");
    }

    #[test]
    fn fixed_sizes_have_no_tail() {
        let size = EventSize::fixed(Bytes::new(1_000_000));
        assert_eq!(size.quantile(0.999).value, size.mean);
        let load = SharedLoad {
            size,
            rate: Frequency::new(1_000),
            inflow: UPLINKS,
            outflow: HOST,
            ports: 2,
            assignment: PortChoice::InTurn,
        };
        assert_eq!(load.memory(0.999).value, Bytes::new(950_000));
        assert_eq!(load.share_above(Bytes::new(949_999)), Ratio::ONE);
        assert_eq!(load.share_above(Bytes::new(950_001)), Ratio::ZERO);
        assert_eq!(overflow_share(Bytes::new(949_999), size, UPLINKS, HOST, Bytes::ZERO).value, Ratio::ONE);
        assert_eq!(overflow_share(Bytes::new(950_001), size, UPLINKS, HOST, Bytes::ZERO).value, Ratio::ZERO);
    }
}
