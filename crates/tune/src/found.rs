//! The outcome of a search: the tried points and the best of them. The best point has a confidence interval, and a range in
//! which the objective is flat.

use fanin_report::{Interval, interval};

use crate::search::Score;

/// A point that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct TriedPoint {
    /// A value for each axis.
    pub values: Vec<u64>,
    /// Scores of its seeds, the first seed first; fewer than all seeds if the first was clearly worse.
    pub scores: Vec<Score>,
}

impl TriedPoint {
    /// Returns true if each seed met the constraints.
    pub fn is_feasible(&self) -> bool {
        self.scores.iter().all(|score| score.violation == 0.0)
    }

    /// Computes the mean of the objective over seeds, with its confidence interval; `None` without scores.
    pub fn objective(&self) -> Option<Interval> {
        interval(&self.scores.iter().map(|score| score.objective).collect::<Vec<_>>())
    }
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOutcome {
    /// All points in the order of their trials.
    pub tried: Vec<TriedPoint>,
    /// Index of the best point. If no point meets the constraints, the nearest one; `None` if nothing was simulated.
    pub best: Option<usize>,
    /// Number of simulations.
    pub simulations: usize,
    /// True if the evaluating function returned fewer scores than requested.
    pub is_stopped: bool,
}

impl SearchOutcome {
    /// Returns the best point. If no point meets the constraints, the nearest one.
    pub fn best(&self) -> Option<&TriedPoint> {
        self.best.map(|best| &self.tried[best])
    }

    /// Finds the range of an axis in which the objective is within `share` of the best, with the other axes at their best
    /// values. Returns the least and the largest tried value. The range ends before the first point that is worse or does not
    /// meet the constraints.
    pub fn flat(&self, axis: usize, share: f64) -> Option<(u64, u64)> {
        let best = self.best()?;
        let is_on_line = |point: &&TriedPoint| {
            let pairs = point.values.iter().zip(&best.values);
            pairs.enumerate().all(|(number, (value, best))| number == axis || value == best)
        };
        let mut line: Vec<&TriedPoint> = self.tried.iter().filter(is_on_line).collect();
        line.sort_unstable_by_key(|point| point.values[axis]);
        let at = line.iter().position(|point| point.values == best.values)?;
        let is_near = |point: &&&TriedPoint| {
            // Compares on the seeds of both points.
            let seeds = point.scores.len().min(best.scores.len());
            let sum = |of: &TriedPoint| of.scores[..seeds].iter().map(|score| score.objective).sum::<f64>();
            point.is_feasible() && sum(point) - sum(best) <= share * sum(best).abs()
        };
        let last = |point: &&TriedPoint| point.values[axis];
        let low = line[..=at].iter().rev().take_while(is_near).last().map(last)?;
        let high = line[at..].iter().take_while(is_near).last().map(last)?;
        Some((low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flat_range_ends_at_the_first_worse_point() {
        let point = |value, objective, violation| TriedPoint {
            values: vec![value],
            scores: vec![Score { violation, objective }],
        };
        let tried = vec![
            point(10, 1.0, 0.0),
            point(20, 1.2, 0.0),
            point(30, 1.04, 0.0),
            point(40, 1.0, 0.0),
            point(50, 1.045, 0.0),
            point(60, 1.0, 7.0),
        ];
        let found = SearchOutcome { tried, best: Some(3), simulations: 6, is_stopped: false };
        assert_eq!(found.flat(0, 0.05), Some((30, 50)));
        assert_eq!(found.flat(0, 0.0), Some((40, 40)));
    }
}
