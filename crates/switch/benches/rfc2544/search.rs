//! The highest load without loss, by the method of MLRsearch (draft-ietf-bmwg-mlrsearch): short trials find the range, longer ones
//! measure its ends again. A load passes if at least half of its trials do (exceed ratio 0.5).

/// A goal of the search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// The largest share of lost frames.
    pub(crate) loss_max: f64,
    /// Durations of trials by phase, s; the last one is the goal's.
    pub(crate) phases_s: &'static [f64],
    /// Trials of a load in the last phase. Earlier phases have one each.
    pub(crate) trials: usize,
    /// The search ends where the upper bound exceeds the lower by less than this share.
    pub(crate) width: f64,
}

/// Searches between 0 and `most`, a load that is too high or just not. `loss` plays a trial of a load and a duration in s and
/// returns the share of lost frames. Returns the highest load that passed, 0 if none did.
pub(crate) fn search(goal: Goal, most: f64, mut loss: impl FnMut(f64, f64) -> f64) -> f64 {
    let (mut lower, mut upper) = (0.0, most);
    for (phase, &duration_s) in goal.phases_s.iter().enumerate() {
        let is_last = phase + 1 == goal.phases_s.len();
        let (trials, width) = if is_last { (goal.trials, goal.width) } else { (1, 4.0 * goal.width) };
        let mut passes = |load: f64| {
            let passed = (0..trials).filter(|_| loss(load, duration_s) <= goal.loss_max).count();
            2 * passed >= trials
        };
        // The bounds of a shorter phase need not hold: each is measured again, and moves out where it fails.
        let mut step = width;
        while lower > 0.0 && !passes(lower) {
            upper = lower;
            lower = if step < 0.5 { lower * (1.0 - step) } else { 0.0 };
            step *= 2.0;
        }
        let mut step = width;
        while upper < most && passes(upper) {
            lower = upper;
            upper = (upper * (1.0 + step)).min(most);
            step *= 2.0;
        }
        while upper - lower > width * upper && upper > most * 1e-4 {
            let middle = f64::midpoint(lower, upper);
            if passes(middle) { lower = middle } else { upper = middle }
        }
    }
    lower
}

/// Checks the search against a device whose limit is known.
pub(crate) fn check(goal: Goal) {
    for limit in [0.3, 3.7, 9.9] {
        let device = |load: f64, duration_s: f64| {
            // Short trials do not see the device's limit.
            let limit = if duration_s < goal.phases_s[1] { 1.3 * limit } else { limit };
            (1.0 - limit / load).max(0.0)
        };
        let found = search(goal, 10.0, device);
        let most = limit / (1.0 - goal.loss_max);
        assert!(found <= most && found > most * (1.0 - 2.0 * goal.width), "{found} at a limit of {most}");
    }
    assert_eq!(search(goal, 10.0, |_, _| 1.0), 0.0, "a device that forwards nothing");
}
