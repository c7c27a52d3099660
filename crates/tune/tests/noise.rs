//! The search on functions with known optima, with noise like that of simulations.

use fanin_tune::{End, Score, SearchAxis, SearchLimits, SearchOutcome, Trial, search};
use proptest::prelude::*;

/// A number in -1..1 that depends on its arguments alone.
fn noise(numbers: &[u64]) -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for number in numbers {
        state = (state ^ number).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state ^= state >> 29;
    }
    (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// A function that falls up to its optimum and then rises, with different slopes.
#[derive(Clone, Copy, Debug)]
struct Valley {
    at: f64,
    steepness: [f64; 2],
    power: f64,
    least: f64,
}

impl Valley {
    fn value(self, x: u64) -> f64 {
        let far = (x as f64 / self.at).ln();
        let steepness = self.steepness[usize::from(far > 0.0)];
        self.least * (1.0 + steepness * far.abs().powf(self.power))
    }

    /// A simulation of it: seeds shift all points equally by up to 5 %, and each point separately by `own`.
    fn measured(self, trial: &Trial, salt: u64, own: f64) -> f64 {
        let seed = u64::from(trial.seed);
        let common = 0.05 * noise(&[salt, seed]);
        self.value(trial.values[0]) * (1.0 + common + own * noise(&[salt, seed, trial.values[0]]))
    }
}

fn valley(low: f64, high: f64) -> impl Strategy<Value = Valley> {
    let at = (low.ln()..high.ln()).prop_map(f64::exp);
    (at, 0.3..3.0, 0.3..3.0, 1.0..2.0, 0.1..1e3).prop_map(|(at, left, right, power, least)| Valley {
        at,
        steepness: [left, right],
        power,
        least,
    })
}

/// Searches, with checks that hold for any function: within the range and the budget, no point twice, no seed too many.
fn checked(
    axes: &[SearchAxis],
    end: Option<End>,
    limits: SearchLimits,
    score: &mut dyn FnMut(&Trial) -> Score,
) -> SearchOutcome {
    let mut count = 0;
    let found = search(axes, end, limits, &mut |trials| {
        count += trials.len();
        for trial in trials {
            assert!(trial.seed < limits.seeds);
            assert_eq!(trial.values.len(), axes.len());
            assert!(
                trial.values.iter().zip(axes).all(|(value, axis)| (axis.low..=axis.high).contains(value))
            );
        }
        trials.iter().map(&mut *score).collect()
    });
    assert!(count <= limits.simulations && count == found.simulations, "{count}");
    let mut points: Vec<_> = found.tried.iter().map(|point| point.values.clone()).collect();
    points.sort();
    points.dedup();
    assert_eq!(points.len(), found.tried.len(), "a point was tried twice");
    found
}

/// A point that meets the constraints on its one seed is better than one missing them on all.
#[test]
fn a_spent_budget_hides_no_point_that_meets_the_constraints() {
    let limits = SearchLimits { seeds: 3, simulations: 9, precision: 0.05 };
    let mut seen = 0;
    let found = checked(&[CREDITS], None, limits, &mut |trial| {
        seen += 1;
        // Five first values, of which the highest gets two more seeds; then its only neighbour and the end of the budget.
        let violation = if seen > 7 { 0.0 } else { 1300.0 - trial.values[0] as f64 };
        Score { violation, objective: trial.values[0] as f64 }
    });
    let best = found.best().unwrap();
    assert!(best.is_feasible() && best.scores.len() < 3, "{found:?}");
}

const CREDITS: SearchAxis = SearchAxis { low: 60, high: 1200, start: 480 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn one_setting_is_found_within_tolerance(valley in valley(70.0, 1000.0), salt: u64) {
        let limits = SearchLimits { seeds: 3, simulations: 48, precision: 0.05 };
        let found = checked(&[CREDITS], None, limits, &mut |trial| Score {
            violation: 0.0,
            objective: valley.measured(trial, salt, 0.003),
        });
        let best = found.best().unwrap();
        let lost = valley.value(best.values[0]) / valley.least - 1.0;
        let off = (best.values[0] as f64 / valley.at).ln().abs();
        // If a function is steep, the neighbour within the precision is the best possible result.
        prop_assert!(lost < 0.03 || off < 0.06, "{valley:?}: {best:?} is {lost} above the least, after {found:?}");
    }

    #[test]
    fn twelve_simulations_come_within_ten_per_cent(valley in valley(70.0, 1000.0)) {
        let limits = SearchLimits { seeds: 1, simulations: 12, precision: 0.05 };
        let found = checked(&[CREDITS], None, limits, &mut |trial| Score {
            violation: 0.0,
            objective: valley.value(trial.values[0]),
        });
        let off = (found.best().unwrap().values[0] as f64 / valley.at).ln().abs();
        prop_assert!(off < 0.1, "{valley:?}: {found:?}");
    }

    #[test]
    fn constraints_are_respected(valley in valley(70.0, 1000.0), limit in 70_u64..1100, salt: u64) {
        // Values above the limit lose frames, and more frames further away.
        let limits = SearchLimits { seeds: 3, simulations: 60, precision: 0.05 };
        let found = checked(&[CREDITS], None, limits, &mut |trial| Score {
            violation: trial.values[0].saturating_sub(limit) as f64,
            objective: valley.measured(trial, salt, 0.003),
        });
        let best = found.best().unwrap();
        prop_assert!(best.is_feasible() && best.values[0] <= limit, "{found:?}");
        let reachable = valley.value((valley.at as u64).min(limit));
        let lost = valley.value(best.values[0]) / reachable - 1.0;
        prop_assert!(lost < 0.20, "{valley:?} below {limit}: {lost}");
    }

    #[test]
    fn the_smallest_value_that_meets_the_constraints(limit in 65_000_u64..15_000_000, largest: bool) {
        let axis = SearchAxis { low: 64_000, high: 16_000_000, start: 786_000 };
        let limits = SearchLimits { seeds: 2, simulations: 40, precision: 0.02 };
        let end = if largest { End::High } else { End::Low };
        let found = checked(&[axis], Some(end), limits, &mut |trial| {
            let value = trial.values[0];
            let far = if largest { value.saturating_sub(limit) } else { limit.saturating_sub(value) };
            let objective = if largest { -(value as f64) } else { value as f64 };
            Score { violation: far as f64, objective }
        });
        let best = found.best().unwrap();
        prop_assert!(best.is_feasible());
        let off = (best.values[0] as f64 / limit as f64).ln().abs();
        prop_assert!(off < 0.03, "{limit}: {best:?}");
        prop_assert!(found.simulations <= 30, "{}", found.simulations);
    }

    #[test]
    fn several_settings_are_found(one in valley(70.0, 1000.0), two in valley(80e3, 3e6), salt: u64) {
        let axes = [CREDITS, SearchAxis { low: 64_000, high: 4_000_000, start: 786_000 }];
        let limits = SearchLimits { seeds: 2, simulations: 160, precision: 0.05 };
        let truth = |values: &[u64]| one.value(values[0]) / one.least + two.value(values[1]) / two.least;
        let found = checked(&axes, None, limits, &mut |trial| {
            let seed = [salt, u64::from(trial.seed)];
            let noise = 0.02 * noise(&seed) + 0.001 * noise(&[salt, trial.values[0], trial.values[1], seed[1]]);
            Score { violation: 0.0, objective: truth(&trial.values) * (1.0 + noise) }
        });
        let lost = truth(&found.best().unwrap().values) / 2.0 - 1.0;
        prop_assert!(lost < 0.05, "{one:?} {two:?}: {lost}");
    }

    #[test]
    fn any_scores_end_within_the_budget(salt: u64, seeds in 1_u32..5, simulations in 1_usize..40, axes in 0_usize..4) {
        let all = [CREDITS, SearchAxis { low: 0, high: 3, start: 1 }, SearchAxis { low: 1, high: u64::MAX, start: 7 }];
        let limits = SearchLimits { seeds, simulations, precision: 0.05 };
        let found = checked(&all[..axes], None, limits, &mut |trial| {
            let place: Vec<u64> = [salt, u64::from(trial.seed)].into_iter().chain(trial.values.clone()).collect();
            let value = noise(&place);
            Score { violation: if value > 0.5 { f64::INFINITY } else { value.max(0.0) }, objective: value }
        });
        prop_assert!(found.best.is_some());
    }
}

#[test]
fn a_function_that_nothing_meets_has_a_nearest_point() {
    let limits = SearchLimits { seeds: 3, simulations: 40, precision: 0.05 };
    let found = checked(&[CREDITS], None, limits, &mut |trial| Score {
        violation: 1.0 + (trial.values[0] as f64 / 200.0).ln().abs(),
        objective: 0.0,
    });
    let best = found.best().unwrap();
    assert!(!best.is_feasible());
    assert!((180..=220).contains(&best.values[0]), "{best:?}");
}

#[test]
fn a_point_clearly_worse_on_its_first_seed_gets_no_others() {
    let limits = SearchLimits { seeds: 5, simulations: 200, precision: 0.05 };
    let valley = Valley { at: 300.0, steepness: [2.0, 2.0], power: 1.0, least: 1.0 };
    let found = checked(&[CREDITS], None, limits, &mut |trial| Score {
        violation: 0.0,
        objective: valley.measured(trial, 1, 0.0),
    });
    let seeds = |value: u64| {
        found.tried.iter().find(|point| point.values[0] == value).map(|point| point.scores.len())
    };
    assert_eq!((seeds(60), seeds(1200)), (Some(1), Some(1)));
    assert_eq!(found.best().unwrap().scores.len(), 5);
}

#[test]
fn a_stopped_search_keeps_what_it_has() {
    let limits = SearchLimits { seeds: 1, simulations: 40, precision: 0.05 };
    let mut left = 7;
    let found = search(&[CREDITS], None, limits, &mut |trials| {
        let now = trials.len().min(left);
        left -= now;
        trials[..now]
            .iter()
            .map(|trial| Score { violation: 0.0, objective: (trial.values[0] as f64 - 300.0).abs() })
            .collect()
    });
    assert!(found.is_stopped);
    assert_eq!((found.tried.len(), found.simulations), (7, 7));
    assert_eq!(found.best().unwrap().values, [268]);
}

#[test]
fn a_value_that_fails_with_a_later_seed_gives_way_to_the_next() {
    // The least sufficient sizes, by seed: the first seed is the easiest.
    let least = [900_000, 1_300_000, 1_000_000];
    let axis = SearchAxis { low: 16_000, high: 64_000_000, start: 1_000_000 };
    let limits = SearchLimits { seeds: 3, simulations: 200, precision: 0.02 };
    let found = checked(&[axis], Some(End::Low), limits, &mut |trial| {
        let (size, least) = (trial.values[0], least[trial.seed as usize]);
        let violation = if size >= least { 0.0 } else { 1.0 - size as f64 / least as f64 };
        Score { violation, objective: size as f64 }
    });
    let best = found.best().unwrap();
    assert!(best.is_feasible() && best.scores.len() == 3, "{best:?}");
    assert!((1_300_000..=1_330_000).contains(&best.values[0]), "{best:?}");
}

#[test]
fn a_search_that_is_stopped_at_once_has_no_best_point() {
    let limits = SearchLimits { seeds: 2, simulations: 20, precision: 0.02 };
    let found = search(&[CREDITS], None, limits, &mut |_| Vec::new());
    assert!(found.is_stopped && found.best().is_none() && found.tried.is_empty(), "{found:?}");
}
