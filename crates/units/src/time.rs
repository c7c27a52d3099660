//! Times: durations, and instants counted from the start of a run.

use crate::Unit;
use crate::quantity::quantity;

quantity!(
    /// A span of time in picoseconds, up to 213 days: `"200 ms"`, `"12.5 ns"`, `"1 us"` or `"1 µs"`.
    ///
    /// At 400 Gb/s a byte lasts 20 ps, so link times stay exact integers.
    Duration,
    "picoseconds",
    "a time",
    &[
        Unit::new("ps", 1),
        Unit::new("ns", 1_000),
        Unit::new("us", 1_000_000),
        Unit::new("ms", 1_000_000_000),
        Unit::new("s", 1_000_000_000_000),
        Unit::alias("min", 60_000_000_000_000),
        Unit::alias("h", 3_600_000_000_000_000),
    ]
);

impl Duration {
    /// A duration in nanoseconds.
    ///
    /// # Panics
    /// If the result does not fit, as for the other constructors.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self::scaled(nanos, 1_000)
    }

    /// A duration in microseconds.
    #[inline]
    pub const fn from_micros(micros: u64) -> Self {
        Self::scaled(micros, 1_000_000)
    }

    /// A duration in milliseconds.
    #[inline]
    pub const fn from_millis(millis: u64) -> Self {
        Self::scaled(millis, 1_000_000_000)
    }

    /// A duration in seconds.
    #[inline]
    pub const fn from_secs(secs: u64) -> Self {
        Self::scaled(secs, 1_000_000_000_000)
    }

    const fn scaled(value: u64, factor: u64) -> Self {
        match value.checked_mul(factor) {
            Some(ps) => Self::new(ps),
            None => panic!("a time overflows: the largest is 213 days"),
        }
    }

    /// Whole nanoseconds, rounded down.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.get() / 1_000
    }

    /// The time multiplied by `numerator / denominator`, rounded down; `None` if it does not fit.
    pub const fn checked_mul_ratio(self, numerator: u64, denominator: u64) -> Option<Self> {
        if denominator == 0 {
            return None;
        }
        let product = self.get() as u128 * numerator as u128 / denominator as u128;
        if product > u64::MAX as u128 { None } else { Some(Self::new(product as u64)) }
    }

    /// The value in milliseconds as a float, for a plot or a table; never for arithmetic.
    pub fn as_millis_f64(self) -> f64 {
        self.get() as f64 / 1e9
    }

    /// The value in seconds as a float, for a plot or a table; never for arithmetic.
    pub fn as_secs_f64(self) -> f64 {
        self.get() as f64 / 1e12
    }
}

/// A point in time: picoseconds since the run began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The start of the run.
    pub const START: Self = Self(0);
    /// The latest instant.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `ps` picoseconds after the start.
    #[inline]
    pub const fn new(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the start.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The time since `earlier`, or `None` if `earlier` is the later one.
    #[inline]
    pub const fn checked_since(self, earlier: Self) -> Option<Duration> {
        match self.0.checked_sub(earlier.0) {
            Some(ps) => Some(Duration::new(ps)),
            None => None,
        }
    }

    /// The time since `earlier`, or zero if `earlier` is the later one.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::new(self.0.saturating_sub(earlier.0))
    }

    /// The instant `duration` later, or `None` if it lies beyond [`Self::FAR_FUTURE`].
    #[inline]
    pub const fn checked_add(self, duration: Duration) -> Option<Self> {
        match self.0.checked_add(duration.get()) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }
}

impl core::ops::Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, duration: Duration) -> Self {
        self.checked_add(duration).expect("an instant lies past the end of time, 213 days")
    }
}

impl core::ops::Sub<Self> for Instant {
    type Output = Duration;
    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.checked_since(earlier).expect("a time since a later instant")
    }
}

impl core::fmt::Display for Instant {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(&Duration::new(self.0), out)
    }
}

impl core::fmt::Debug for Instant {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn reads_and_prints() {
        let cases = [
            ("200 ms", Duration::from_millis(200)),
            ("12.5 ns", Duration::new(12_500)),
            ("400 us", Duration::from_micros(400)),
            ("1.5 s", Duration::from_millis(1_500)),
            ("0 ps", Duration::ZERO),
        ];
        for (text, value) in cases {
            assert_eq!(text.parse(), Ok(value));
            assert_eq!(value.to_string(), text);
        }
        assert_eq!("400 µs".parse(), Ok(Duration::from_micros(400)));
        assert_eq!("400 μs".parse(), Ok(Duration::from_micros(400)));
        assert_eq!("2 min".parse(), Ok(Duration::from_secs(120)));
        assert_eq!("0".parse(), Ok(Duration::ZERO));
    }

    #[test]
    fn the_padding_of_a_table_is_honoured() {
        assert_eq!(std::format!("{:>8}|", Duration::from_millis(1)), "    1 ms|");
    }

    #[test]
    #[should_panic(expected = "overflows")]
    fn overflow_is_seen() {
        let _ = Duration::MAX + Duration::new(1);
    }
}
