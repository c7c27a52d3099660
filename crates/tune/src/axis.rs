//! One dimension of a search: whole numbers between two ends, on a logarithmic scale.

/// The range of one setting in its base unit (bytes, picoseconds, bits a second, a count).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchAxis {
    /// The least value.
    pub low: u64,
    /// The largest value, at least `low`.
    pub high: u64,
    /// The scenario's own value, limited to the range. A search of several settings begins there.
    pub start: u64,
}

/// Significant digits of values inside the range, such as 480 or 786 kB.
const DIGITS: u32 = 3;
/// In a range from zero, values get an offset before their logarithm is taken: the upper end divided by this number.
const ZERO_SHARE: f64 = 64.0;

impl SearchAxis {
    fn offset(self) -> f64 {
        if self.low == 0 { (self.high as f64 / ZERO_SHARE).max(1.0) } else { 0.0 }
    }

    /// Returns the position of a value on the logarithmic scale.
    pub(crate) fn place(self, value: u64) -> f64 {
        (value as f64 + self.offset()).ln()
    }

    /// Returns the value at a position of the scale, within the range and with few digits.
    pub(crate) fn value(self, place: f64) -> u64 {
        let exact = (place.exp() - self.offset()).round().clamp(self.low as f64, self.high as f64);
        let exact = (exact as u64).clamp(self.low, self.high);
        let step = 10_u64.pow(exact.checked_ilog10().unwrap_or(0).saturating_sub(DIGITS - 1));
        let rounded = exact.saturating_add(step / 2) / step * step;
        if (self.low..=self.high).contains(&rounded) { rounded } else { exact }
    }

    /// Returns the nearest value within the range that has few digits.
    pub fn rounded(self, value: u64) -> u64 {
        self.value(self.place(value.clamp(self.low, self.high)))
    }

    /// Returns the value at a share of the range on the scale, from 0 at its lower to 1 at its upper end.
    pub fn at(self, share: f64) -> u64 {
        self.value(self.place(self.low) + share.clamp(0.0, 1.0) * self.width())
    }

    /// Returns the length of the range on the scale.
    pub(crate) fn width(self) -> f64 {
        self.place(self.high) - self.place(self.low)
    }

    /// Returns the value halfway between two others on the scale; `None` if no other value lies between them.
    pub(crate) fn between(self, one: u64, other: u64) -> Option<u64> {
        let value = self.value((self.place(one) + self.place(other)) / 2.0);
        (value > one.min(other) && value < one.max(other)).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_between_the_ends_have_few_digits() {
        let axis = SearchAxis { low: 60, high: 1200, start: 480 };
        assert_eq!(axis.between(60, 1200), Some(268));
        assert_eq!(axis.between(268, 270), Some(269));
        assert_eq!(axis.between(268, 269), None);
        let bytes = SearchAxis { low: 65_536, high: 16_777_216, start: 65_536 };
        assert_eq!(bytes.between(65_536, 16_777_216), Some(1_050_000));
        assert_eq!((bytes.value(0.0), bytes.value(90.0)), (65_536, 16_777_216), "the ends are exact");
    }

    #[test]
    fn shares_are_of_the_logarithm() {
        let axis = SearchAxis { low: 10, high: 1000, start: 10 };
        assert_eq!([0.0, 0.5, 1.0, 7.0].map(|share| axis.at(share)), [10, 100, 1000, 1000]);
        assert_eq!([3, 123, 5000].map(|value| axis.rounded(value)), [10, 123, 1000]);
        assert_eq!(SearchAxis { low: 0, high: 1_000_000, start: 0 }.rounded(123_456), 123_000);
    }

    #[test]
    fn a_range_may_begin_at_zero() {
        let axis = SearchAxis { low: 0, high: 640, start: 0 };
        assert_eq!(axis.value(axis.place(0)), 0);
        assert_eq!(axis.value(axis.place(640)), 640);
        assert!(axis.between(0, 640).is_some_and(|middle| (30..200).contains(&middle)));
        assert_eq!(SearchAxis { low: 0, high: 1, start: 0 }.between(0, 1), None);
    }
}
