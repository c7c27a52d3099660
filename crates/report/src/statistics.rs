//! Distributions: exact order statistics, the mean and spread of integer samples, and confidence intervals.
//!
//! The quantile is the inverse of the empirical distribution function (type 1 of Hyndman and Fan 1996,
//! `method="inverted_cdf"` in NumPy). The p-quantile of n samples is the ⌈p·n⌉-th smallest. It is always a value
//! that occurred, integer arithmetic finds it, and it lies on the drawn curve. With an even number of samples the
//! median is the lower of the middle two.

/// Returns a quantile in thousandths, from 0 to 1000: 500 is the median; one sample in 1000 exceeds quantile 999.
///
/// `sorted` must be ascending. Returns `None` if it is empty.
///
/// # Panics
/// If `permille` is larger than 1000.
pub fn quantile<T: Copy>(sorted: &[T], permille: u16) -> Option<T> {
    assert!(permille <= 1000, "a quantile of {permille} thousandths");
    // 128 bits: no length of a slice overflows the product.
    let rank = (sorted.len() as u128 * u128::from(permille)).div_ceil(1000) as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Mean and standard deviation of integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Arithmetic mean, in the samples' unit.
    pub mean: f64,
    /// Standard deviation of the samples themselves (divided by n, as NumPy does by default).
    pub deviation: f64,
}

/// Computes mean and standard deviation; `None` without samples.
///
/// The sum is exact. Deviations are computed from the whole part of the mean, in integers, which avoids cancellation. With
/// `sorted` in ascending order, the result does not depend on the order of the samples.
pub fn moments(sorted: &[u64]) -> Option<Moments> {
    let count = sorted.len() as u128;
    if count == 0 {
        return None;
    }
    // At most 2^64 samples below 2^64: the sum fits.
    let sum: u128 = sorted.iter().map(|&value| u128::from(value)).sum();
    let (whole, rest) = (sum / count, (sum % count) as f64 / count as f64);
    let squares: f64 =
        sorted.iter().map(|&value| (i128::from(value) - whole as i128) as f64).map(|off| off * off).sum();
    // The mean is whole + rest: Σ(x - mean)² = Σ(x - whole)² - n·rest².
    let variance = (squares / count as f64 - rest * rest).max(0.0);
    Some(Moments { mean: whole as f64 + rest, deviation: variance.sqrt() })
}

/// A mean and its confidence interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The arithmetic mean.
    pub mean: f64,
    /// Half the width of the interval; `None` for a single value.
    pub half: Option<f64>,
}

/// 97.5 % quantiles of Student's t distribution for 1, 2, … degrees of freedom; beyond the table, see
/// [`NORMAL_EXCESS`].
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const NORMAL: f64 = 1.96;
/// Excess of the quantile over that of the normal distribution, times the degrees of freedom.
const NORMAL_EXCESS: f64 = 2.4;

/// Computes the mean of independent values with its confidence interval of 95 %; `None` without values.
pub fn interval(values: &[f64]) -> Option<Interval> {
    let count = values.len();
    let mean = (count > 0).then(|| values.iter().sum::<f64>() / count as f64)?;
    let student =
        |freedom: usize| STUDENT.get(freedom - 1).copied().unwrap_or(NORMAL + NORMAL_EXCESS / freedom as f64);
    let half = (count > 1).then(|| student(count - 1) * deviation(values) / (count as f64).sqrt());
    Some(Interval { mean, half })
}

/// Computes the standard deviation of a sample (divided by n − 1); zero for a single value.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_quantiles() {
        let sorted = [10, 20, 30, 40];
        let cases = [(0, 10), (1, 10), (250, 10), (251, 20), (500, 20), (501, 30), (999, 40), (1000, 40)];
        for (permille, value) in cases {
            assert_eq!(quantile(&sorted, permille), Some(value), "at {permille}");
        }
        assert_eq!(quantile::<u64>(&[], 500), None);
        let thousand: Vec<u64> = (1..=1000).collect();
        assert_eq!(quantile(&thousand, 999), Some(999));
        assert_eq!(quantile(&thousand, 990), Some(990));
    }

    #[test]
    fn known_moments() {
        assert_eq!(moments(&[2, 4, 4, 4, 5, 5, 7, 9]), Some(Moments { mean: 5.0, deviation: 2.0 }));
        assert_eq!(moments(&[u64::MAX; 3]).unwrap().deviation, 0.0);
        assert_eq!(moments(&[]), None);
    }

    #[test]
    fn the_interval_is_students() {
        assert_eq!(interval(&[]), None);
        assert_eq!(interval(&[3.0]), Some(Interval { mean: 3.0, half: None }));
        // Deviation 1, three values: 4.303 / √3.
        let of_three = interval(&[1.0, 2.0, 3.0]).unwrap();
        assert!((of_three.half.unwrap() - 2.4843).abs() < 1e-3, "{of_three:?}");
        let many: Vec<f64> = (0..100).map(|number| f64::from(number % 2)).collect();
        assert!((interval(&many).unwrap().half.unwrap() - 1.984 * 0.050_25).abs() < 1e-4);
    }

    #[test]
    fn small_spread_on_a_large_value_is_not_lost() {
        let base = 1 << 60;
        let moments = moments(&[base, base + 2, base + 4, base + 6]).unwrap();
        assert!((moments.deviation - 5f64.sqrt()).abs() < 1e-12, "{moments:?}");
    }

    proptest! {
        #[test]
        fn at_least_p_of_the_samples_are_not_larger(
            mut samples in prop::collection::vec(0..1_000_000u64, 1..300),
            permille in 0..=1000u16,
        ) {
            samples.sort_unstable();
            let value = quantile(&samples, permille).unwrap();
            let count = samples.len() as u128;
            let not_larger = samples.iter().filter(|&&sample| sample <= value).count() as u128;
            let smaller = samples.iter().filter(|&&sample| sample < value).count() as u128;
            prop_assert!(samples.contains(&value));
            prop_assert!(not_larger * 1000 >= u128::from(permille) * count);
            // It is the smallest such value.
            prop_assert!(permille == 0 || smaller * 1000 < u128::from(permille) * count);
        }

        #[test]
        fn quantiles_do_not_decrease(
            mut samples in prop::collection::vec(any::<u64>(), 1..100),
            a in 0..=1000u16,
            b in 0..=1000u16,
        ) {
            samples.sort_unstable();
            prop_assert!(quantile(&samples, a.min(b)) <= quantile(&samples, a.max(b)));
            prop_assert_eq!(quantile(&samples, 0), samples.first().copied());
            prop_assert_eq!(quantile(&samples, 1000), samples.last().copied());
        }

        #[test]
        fn the_spread_is_that_of_exact_arithmetic(
            mut samples in prop::collection::vec(0..1u64 << 40, 1..200),
        ) {
            samples.sort_unstable();
            let count = samples.len() as u128;
            let sum: u128 = samples.iter().map(|&x| u128::from(x)).sum();
            let squares: u128 = samples.iter().map(|&x| u128::from(x) * u128::from(x)).sum();
            let exact = ((count * squares - sum * sum) as f64).sqrt() / count as f64;
            let computed = moments(&samples).unwrap();
            prop_assert!((computed.deviation - exact).abs() <= exact * 1e-9 + 1e-9);
            prop_assert!(computed.mean >= samples[0] as f64 && computed.mean <= samples[samples.len() - 1] as f64);
        }
    }
}
