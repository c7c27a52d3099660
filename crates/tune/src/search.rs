//! The search: bracketing for one setting, coordinates with a shrinking step for several.
//!
//! **One setting.** Starts with five values at equal factors, ends included; three for bisection. Then it repeatedly
//! tries the values halfway between the best one and its two neighbours, until the neighbours are closer than the
//! precision. This finds the minimum of a function that falls and then rises. One wrong comparison costs little:
//! neighbours are measured values, not discarded parts of the range. If the objective is the setting itself ([`End`]),
//! only the side towards the objective is halved, which is bisection.
//!
//! **Several settings.** A pattern search (Hooke and Jeeves 1961). From the best point it makes a step up and down on each
//! scale and, after a success, the same move again. A round without a success halves the steps.
//!
//! **Noise.** All points have the same seeds in the same order (common random numbers), and two points are compared on
//! the seeds that both have. The point that seems best gets all its seeds first. A point that is clearly worse on its
//! first seed gets no others.

use std::cmp::{Ordering, Reverse};

use fanin_report::deviation;

use crate::axis::SearchAxis;
use crate::found::{SearchOutcome, TriedPoint};

/// One simulation that a search requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// A value for each axis.
    pub values: Vec<u64>,
    /// Number of the seed, from 0.
    pub seed: u32,
}

/// Quality of a trial's result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Zero if all constraints are met; otherwise the distance of the result from meeting them.
    pub violation: f64,
    /// The value to minimise.
    pub objective: f64,
}

/// The end of the range with the best objective, if the objective is the single setting itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The smallest value that meets the constraints is best.
    Low,
    /// The largest value that meets the constraints is best.
    High,
}

/// The limits of a search's cost and precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchLimits {
    /// Seeds of each point, at least 1.
    pub seeds: u32,
    /// The most trials.
    pub simulations: usize,
    /// The search ends if neighbours differ by less than this share of their value.
    pub precision: f64,
}

/// A point is clearly worse on one seed if its objective exceeds the best by more than this share.
const CLEARLY_WORSE: f64 = 0.05;
/// The excess must also be more than this number of standard deviations of the best point's seeds.
const DEVIATIONS: f64 = 3.0;
/// Number of values of one setting in the first batch.
const FIRST_VALUES: usize = 5;
/// The first step of a search of several settings, as a share of each range.
const FIRST_STEP: f64 = 0.25;

/// A function that simulates trials and returns their scores in order; fewer scores than trials end the search.
type Evaluate<'a> = dyn FnMut(&[Trial]) -> Vec<Score> + 'a;

/// Searches the axes for the point with the least objective among those that meet the constraints.
///
/// `end` is given if the objective is the value of the only axis.
pub fn search(
    axes: &[SearchAxis],
    end: Option<End>,
    limits: SearchLimits,
    evaluate: &mut Evaluate<'_>,
) -> SearchOutcome {
    let mut race = Race { limits, evaluate, tried: Vec::new(), simulations: 0, is_stopped: false };
    match axes {
        [] => race.measure(&[Vec::new()]),
        [axis] => bracket(*axis, end, &mut race),
        _ => pattern(axes, &mut race),
    }
    let best = race.best();
    SearchOutcome { tried: race.tried, best, simulations: race.simulations, is_stopped: race.is_stopped }
}

/// Orders two points. The point nearer to the constraints, on the mean of all its seeds, comes first. For equal distances, the
/// mean objective decides, over the seeds of both.
fn order(one: &TriedPoint, other: &TriedPoint) -> Ordering {
    let common = one.scores.len().min(other.scores.len());
    let mean = |point: &TriedPoint, seeds: usize, of: fn(&Score) -> f64| {
        point.scores[..seeds].iter().map(of).sum::<f64>() / seeds.max(1) as f64
    };
    let violation = |point: &TriedPoint| mean(point, point.scores.len(), |score| score.violation);
    let objective = |point: &TriedPoint| mean(point, common, |score| score.objective);
    let by = |of: &dyn Fn(&TriedPoint) -> f64| of(one).total_cmp(&of(other));
    by(&violation).then_with(|| by(&objective))
}

/// The points tried so far, and the remaining simulations.
struct Race<'a, 'b> {
    limits: SearchLimits,
    evaluate: &'a mut Evaluate<'b>,
    tried: Vec<TriedPoint>,
    simulations: usize,
    is_stopped: bool,
}

impl Race<'_, '_> {
    fn is_over(&self) -> bool {
        self.is_stopped || self.simulations >= self.limits.simulations
    }

    /// Returns the best of the points that meet the constraints, or of all if none does. Of these, points with more seeds come
    /// first; among equal ones, the first.
    fn best(&self) -> Option<usize> {
        let rank = |index: usize| {
            let point = &self.tried[index];
            (Reverse(point.is_feasible()), Reverse(point.scores.len()))
        };
        (0..self.tried.len()).min_by(|&one, &other| {
            rank(one).cmp(&rank(other)).then_with(|| order(&self.tried[one], &self.tried[other]))
        })
    }

    /// Simulates new points: one seed of each, then the other seeds of those that are not clearly worse.
    fn measure(&mut self, points: &[Vec<u64>]) {
        let mut new: Vec<usize> = Vec::new();
        for values in points {
            if self.tried.iter().all(|point| point.values != *values) {
                new.push(self.tried.len());
                self.tried.push(TriedPoint { values: values.clone(), scores: Vec::new() });
            }
        }
        self.seeds(&new, 0..1);
        // A point without scores was not simulated, nor were later ones. The search is then over.
        self.tried.retain(|point| !point.scores.is_empty());
        new.retain(|index| *index < self.tried.len());
        let Some(best) = self.complete_best() else { return };
        new.retain(|index| self.tried[*index].scores.len() == 1 && !self.is_clearly_worse(*index, best));
        self.seeds(&new, 1..self.limits.seeds);
    }

    /// Simulates all seeds of the best point, and repeats this until the best point has all of them. Another seed may show that
    /// a point does not meet the constraints.
    fn complete_best(&mut self) -> Option<usize> {
        loop {
            let best =
                (0..self.tried.len()).min_by(|one, other| order(&self.tried[*one], &self.tried[*other]))?;
            let known = self.tried[best].scores.len() as u32;
            if known >= self.limits.seeds || self.is_over() {
                return Some(best);
            }
            self.seeds(&[best], known..self.limits.seeds);
        }
    }

    /// Simulates seeds of points in one batch, within the budget.
    fn seeds(&mut self, points: &[usize], seeds: std::ops::Range<u32>) {
        let all = points.iter().flat_map(|point| seeds.clone().map(move |seed| (*point, seed)));
        let left = self.limits.simulations.saturating_sub(self.simulations);
        let asked: Vec<(usize, u32)> = all
            .filter(|(point, _)| *point < self.tried.len())
            .take(if self.is_stopped { 0 } else { left })
            .collect();
        if asked.is_empty() {
            return;
        }
        let trials: Vec<Trial> = asked
            .iter()
            .map(|(point, seed)| Trial { values: self.tried[*point].values.clone(), seed: *seed })
            .collect();
        let scores = (self.evaluate)(&trials);
        self.is_stopped |= scores.len() < trials.len();
        self.simulations += scores.len().min(trials.len());
        for ((point, _), score) in asked.into_iter().zip(scores) {
            self.tried[point].scores.push(score);
        }
    }

    /// Returns true if the first seed of a point suffices to exclude it in favour of the best point.
    fn is_clearly_worse(&self, point: usize, best: usize) -> bool {
        let (Some(first), best) = (self.tried[point].scores.first(), &self.tried[best]) else { return true };
        let same = best.scores[0];
        if same.violation == 0.0 && first.violation > 0.0 {
            return true;
        }
        if first.violation > 0.0 {
            return first.violation.is_infinite() || exceeds(first.violation, same.violation, same.violation);
        }
        let objectives: Vec<f64> = best.scores.iter().map(|score| score.objective).collect();
        is_clearly_worse(first.objective, same.objective, &objectives)
    }
}

/// Returns true if an objective is clearly worse than that of the best point on the same seed. It must be worse by 5 %,
/// and by three standard deviations of the best point's seeds.
pub fn is_clearly_worse(objective: f64, of_best: f64, seeds_of_best: &[f64]) -> bool {
    exceeds(objective, of_best, DEVIATIONS * deviation(seeds_of_best))
}

fn exceeds(one: f64, other: f64, noise: f64) -> bool {
    one - other > noise.max(CLEARLY_WORSE * other.abs())
}

/// Searches one axis between the best value and its neighbours.
fn bracket(axis: SearchAxis, end: Option<End>, race: &mut Race<'_, '_>) {
    let count = if end.is_some() { 3 } else { FIRST_VALUES };
    let step = axis.width() / (count - 1) as f64;
    let low = axis.place(axis.low);
    let mut first: Vec<Vec<u64>> =
        (0..count).map(|number| vec![axis.value(low + number as f64 * step)]).collect();
    (first[0], first[count - 1]) = (vec![axis.low], vec![axis.high]);
    race.measure(&first);
    while !race.is_over() {
        let Some(best) = race.best() else { return };
        let is_met = race.tried[best].is_feasible();
        let best = race.tried[best].values[0];
        let below = race.tried.iter().map(|point| point.values[0]).filter(|value| *value < best).max();
        let above = race.tried.iter().map(|point| point.values[0]).filter(|value| *value > best).min();
        let sides = [
            below.filter(|_| !(is_met && end == Some(End::High))),
            above.filter(|_| !(is_met && end == Some(End::Low))),
        ];
        let next: Vec<Vec<u64>> = sides
            .into_iter()
            .flatten()
            .filter(|side| (axis.place(*side) - axis.place(best)).abs() > race.limits.precision.ln_1p())
            .filter_map(|side| Some(vec![axis.between(side, best)?]))
            .collect();
        if next.is_empty() {
            return;
        }
        race.measure(&next);
    }
}

/// Searches several axes by steps from the best point.
fn pattern(axes: &[SearchAxis], race: &mut Race<'_, '_>) {
    let mut centre: Vec<u64> = axes.iter().map(|axis| axis.start.clamp(axis.low, axis.high)).collect();
    let mut share = FIRST_STEP;
    race.measure(std::slice::from_ref(&centre));
    let mut last: Option<Vec<u64>> = None;
    while !race.is_over() {
        let mut next: Vec<Vec<u64>> = Vec::new();
        for (number, axis) in axes.iter().enumerate() {
            for step in [-share, share] {
                let mut point = centre.clone();
                point[number] = axis.value(axis.place(centre[number]) + step * axis.width());
                next.push(point);
            }
        }
        if let Some(last) = last.take() {
            // Repeats the last successful move, which follows a valley that is not parallel to an axis.
            let again = axes.iter().zip(centre.iter().zip(&last));
            next.push(
                again
                    .map(|(axis, (now, before))| axis.value(2.0 * axis.place(*now) - axis.place(*before)))
                    .collect(),
            );
        }
        race.measure(&next);
        let Some(best) = race.best() else { return };
        let best = race.tried[best].values.clone();
        if best == centre {
            share /= 2.0;
            let is_fine = |axis: &SearchAxis| share * axis.width() < race.limits.precision.ln_1p();
            if axes.iter().all(is_fine) {
                return;
            }
        } else {
            last = Some(std::mem::replace(&mut centre, best));
        }
    }
}
