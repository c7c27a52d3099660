//! Many runs at once: one in each thread, with results in the order of the points.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fanin_scenario::Scenario;
use fanin_sim::{RunControl, RunOutcome};

use crate::error::Error;
use crate::run::run;

/// A run of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct SweepRun {
    /// The scenario to simulate.
    pub scenario: Scenario,
    /// Seed of its random streams.
    pub seed: u64,
}

/// Simulates all points on `threads` threads (at least one). Returns the results in the order of the points. Each result equals
/// that of [`run`], with any number of threads. `done` is called with the number of each finished point.
///
/// Points that had not begun when the stop flag was set are left out: the results are then fewer than the points.
///
/// # Panics
/// If a run panics.
pub fn sweep(
    points: &[SweepRun],
    threads: usize,
    control: &RunControl<'_>,
    done: &(dyn Fn(usize) + Sync),
) -> Vec<Result<RunOutcome, Error>> {
    sweep_each(points, threads, control, &|number, outcome| {
        done(number);
        outcome
    })
}

/// Simulates as [`sweep`] does. Calls `finish` with the number and the outcome of each point, on the thread of the run. Returns
/// the values of `finish`, so that the outcomes need not be in memory at once.
///
/// # Panics
/// If a run or `finish` panics.
pub fn sweep_each<T: Send>(
    points: &[SweepRun],
    threads: usize,
    control: &RunControl<'_>,
    finish: &(dyn Fn(usize, Result<RunOutcome, Error>) -> T + Sync),
) -> Vec<T> {
    on_threads(points.len(), threads, control.stop, &|number| {
        let point = &points[number];
        finish(number, run(&point.scenario, point.seed, control))
    })
}

/// Calls `work` with the numbers from 0 to `count`, on `threads` threads (at least one). Returns its values in the order of the
/// numbers. Numbers that had not begun when the stop flag was set are left out.
///
/// # Panics
/// If `work` panics.
pub fn on_threads<T: Send>(
    count: usize,
    threads: usize,
    stop: &AtomicBool,
    work: &(dyn Fn(usize) -> T + Sync),
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let result = work(number);
                    *results[number].lock().expect("no other thread has this number") = Some(result);
                }
            });
        }
    });
    let taken = results.into_iter().map(|result| result.into_inner().expect("its thread has ended"));
    taken.map_while(|result| result).collect()
}
