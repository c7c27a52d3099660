//! Shares and factors.

use crate::quantity::quantity;
use crate::{Bytes, Duration, Unit};

quantity!(
    /// A share or factor in millionths: `"25 %"`, `"0.25"`, `"250000 ppm"`.
    Ratio,
    "parts per million",
    "a ratio",
    &[
        Unit::new("", 1_000_000),
        Unit::alias("%", 10_000),
        Unit::alias("ppm", 1),
    ]
);

impl Ratio {
    /// The whole: a share of 1.
    pub const ONE: Self = Self::new(1_000_000);

    /// This share of a plain number, rounded down; `None` if it does not fit.
    pub const fn checked_of(self, whole: u64) -> Option<u64> {
        let share = whole as u128 * self.get() as u128 / 1_000_000;
        if share > u64::MAX as u128 { None } else { Some(share as u64) }
    }

    /// This share of a plain number, rounded up, at most [`u64::MAX`].
    pub const fn ceil_of(self, whole: u64) -> u64 {
        let share = (whole as u128 * self.get() as u128).div_ceil(1_000_000);
        if share > u64::MAX as u128 { u64::MAX } else { share as u64 }
    }

    /// This share of an amount of data, rounded down, at most [`Bytes::MAX`].
    pub const fn of_bytes(self, whole: Bytes) -> Bytes {
        match self.checked_of(whole.get()) {
            Some(share) => Bytes::new(share),
            None => Bytes::MAX,
        }
    }

    /// This share of a time, rounded down, at most [`Duration::MAX`].
    pub const fn of_duration(self, whole: Duration) -> Duration {
        match self.checked_of(whole.get()) {
            Some(share) => Duration::new(share),
            None => Duration::MAX,
        }
    }

    /// The probability that at least one of two independent events with these probabilities happens.
    pub const fn either(self, other: Self) -> Self {
        let both = self.get() as u128 * other.get() as u128 / 1_000_000;
        Self::new((self.get() as u128 + other.get() as u128).saturating_sub(both) as u64)
    }

    /// The value as a float, for a plot, a table or the parameter of a distribution.
    pub fn as_f64(self) -> f64 {
        self.get() as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn reads_shares() {
        assert_eq!("0.25".parse(), Ok(Ratio::new(250_000)));
        assert_eq!("25 %".parse(), Ok(Ratio::new(250_000)));
        assert_eq!(Ratio::new(62_500).to_string(), "0.0625");
        assert_eq!("1".parse(), Ok(Ratio::ONE));
        assert!("0.0000001".parse::<Ratio>().is_err());
        assert_eq!(Ratio::new(500_000).checked_of(9), Some(4));
        assert_eq!(Ratio::new(500_000).either(Ratio::new(100_000)), Ratio::new(550_000));
        assert_eq!(Ratio::new(100).either(Ratio::ZERO), Ratio::new(100));
        assert_eq!([9, 8, 0].map(|whole| Ratio::new(500_000).ceil_of(whole)), [5, 4, 0]);
    }
}
