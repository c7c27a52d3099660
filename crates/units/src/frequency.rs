//! Event rates.

use crate::quantity::quantity;
use crate::{Instant, Unit};

/// Picoseconds in a second times millihertz in a hertz.
const PS_MILLI: u128 = 1_000_000_000_000_000;

quantity!(
    /// A frequency in millihertz: `"2 kHz"`, `"0.2 Hz"`, `"40.079 MHz"`.
    Frequency,
    "millihertz",
    "a frequency",
    &[
        Unit::new("mHz", 1),
        Unit::new("Hz", 1_000),
        Unit::new("kHz", 1_000_000),
        Unit::new("MHz", 1_000_000_000),
        Unit::new("GHz", 1_000_000_000_000),
    ]
);

impl Frequency {
    /// The instant of occurrence `index`, rounded down to a picosecond. Occurrence 0 is at [`Instant::START`].
    ///
    /// Counting from the start avoids drift if the period is not a whole number of picoseconds. `None` if the frequency
    /// is zero or the instant lies beyond [`Instant::FAR_FUTURE`].
    #[inline]
    pub const fn nth(self, index: u64) -> Option<Instant> {
        if self.get() == 0 {
            return None;
        }
        let ps = index as u128 * PS_MILLI / self.get() as u128;
        if ps > u64::MAX as u128 { None } else { Some(Instant::new(ps as u64)) }
    }

    /// The value in hertz as a float, for a plot or a table; never for arithmetic.
    pub fn as_hertz_f64(self) -> f64 {
        self.get() as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn reads_prints_and_does_not_drift() {
        assert_eq!("2 kHz".parse(), Ok(Frequency::new(2_000_000)));
        assert_eq!("0.2 Hz".parse(), Ok(Frequency::new(200)));
        assert_eq!(Frequency::new(200).to_string(), "200 mHz");
        assert_eq!(Frequency::new(500_000).to_string(), "500 Hz");
        let third = Frequency::new(3_000);
        assert_eq!(third.nth(3_000_000), Some(Instant::new(1_000_000_000_000_000_000)));
        assert_eq!(Frequency::ZERO.nth(1), None);
    }
}
