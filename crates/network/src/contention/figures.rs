//! Figures of collection times.

/// Mean and p99 of a figure.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct MeanAndTail {
    /// The arithmetic mean.
    pub mean: f64,
    /// The 99th percentile (nearest rank).
    pub p99: f64,
}

/// Collection times of a schedule, or bounds of them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ScheduleFigures {
    /// Collection times, in picoseconds.
    pub time_ps: MeanAndTail,
    /// Collection times divided by their ideals.
    pub slowdown: MeanAndTail,
}

impl ScheduleFigures {
    /// The figures of a list of times with their ideals, in picoseconds.
    ///
    /// # Panics
    /// If the list is empty.
    pub fn of(times: &mut [(u64, u64)]) -> Self {
        let count = times.len() as f64;
        let slowdown = |&(time, ideal): &(u64, u64)| time as f64 / ideal as f64;
        let place = rank_p99(times.len()).saturating_sub(1);
        let mut slowdowns: Vec<f64> = times.iter().map(slowdown).collect();
        slowdowns.sort_unstable_by(f64::total_cmp);
        times.sort_unstable();
        let sum: u128 = times.iter().map(|one| u128::from(one.0)).sum();
        Self {
            time_ps: MeanAndTail { mean: sum as f64 / count, p99: times[place].0 as f64 },
            slowdown: MeanAndTail { mean: slowdowns.iter().sum::<f64>() / count, p99: slowdowns[place] },
        }
    }
}

/// The rank of the p99 among `count` values, from 1.
pub(super) const fn rank_p99(count: usize) -> usize {
    (count * 99).div_ceil(100)
}
