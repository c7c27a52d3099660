//! Simulates each run once, in parallel, and passes the results to the claims.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fanin_report::{EventRow, IoRow, Summary};
use fanin_runs::{RunControl, RunEnd, RunOutcome};
use fanin_scenario::{Errors, Loaded, load};

use crate::Judged;
use crate::claim::Claim;

/// Measured time of a run without its own duration.
pub const DURATION: &str = "3 s";

/// One run that a claim needs: a preset, and its changed settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimRun {
    /// Name of the preset.
    pub preset: &'static str,
    /// `KEY=VALUE`, as for `--set`.
    pub sets: Vec<String>,
}

impl ClaimRun {
    pub(crate) fn new(preset: &'static str) -> Self {
        Self { preset, sets: Vec::new() }
    }

    pub(crate) fn set(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.sets.push(format!("{key}={value}"));
        self
    }

    /// Loads the scenario. Its measured time is `duration` if given, else the run's own, else [`DURATION`].
    ///
    /// # Errors
    /// The problems that the scenario's checks find.
    pub fn scenario(&self, duration: Option<&str>) -> Result<Loaded, Errors> {
        let is_duration = |set: &&String| set.starts_with("run.duration=");
        let mut sets: Vec<String> = self.sets.iter().filter(|set| !is_duration(set)).cloned().collect();
        let own = self.sets.iter().find(is_duration).cloned();
        sets.push(match (duration, own) {
            (Some(duration), _) => format!("run.duration={duration}"),
            (None, Some(own)) => own,
            (None, None) => format!("run.duration={DURATION}"),
        });
        load(self.preset, &sets)
    }
}

/// The figures of a run that claims need.
#[derive(Debug, Clone)]
pub struct PointResult {
    /// Summary of the run.
    pub summary: Summary,
    /// Collection times of the measured events in milliseconds, ascending.
    pub times_ms: Vec<f64>,
    /// Retransmission timeouts that delayed each measured event.
    pub timeouts: Vec<u64>,
    /// The most bytes that a watched queue held at a sample.
    pub watched_bytes_max: u64,
    /// Bytes of each watched queue at each sample.
    pub watched: BTreeMap<String, Vec<u64>>,
    /// Bytes on the collector's link over time, of the recorded events.
    pub io: Vec<IoRow>,
    /// The way in which the run ended.
    pub end: RunEnd,
}

impl PointResult {
    /// Returns the mean collection time in milliseconds; infinite if no event was collected.
    pub fn mean_ms(&self) -> f64 {
        if self.times_ms.is_empty() {
            return f64::INFINITY;
        }
        self.times_ms.iter().sum::<f64>() / self.times_ms.len() as f64
    }

    /// Returns the mean of the events' ideal collection times in milliseconds; NaN if unknown.
    pub fn ideal_ms(&self) -> f64 {
        self.summary.collection_time_ms.as_ref().and_then(|times| times.ideal).unwrap_or(f64::NAN)
    }

    /// Returns the share of events whose collection time in milliseconds satisfies a condition; NaN without events.
    pub fn share(&self, is: impl Fn(f64) -> bool) -> f64 {
        share(&self.times_ms, |&time| is(time))
    }

    /// Returns the share of events that suffered `at_least` timeouts or more; NaN without events.
    pub fn share_with_timeouts(&self, at_least: u64) -> f64 {
        share(&self.timeouts, |&timeouts| timeouts >= at_least)
    }

    /// Returns the `permille` quantile of the events' times in milliseconds; infinite without events.
    pub fn quantile_ms(&self, permille: u16) -> f64 {
        fanin_report::quantile(&self.times_ms, permille).unwrap_or(f64::INFINITY)
    }

    /// Returns the number of frames that switches dropped.
    pub fn drops(&self) -> u64 {
        self.summary.network.as_ref().and_then(|network| network.drops).unwrap_or(0)
    }

    /// Returns the most bytes that waited in one queue.
    pub fn queue_bytes_max(&self) -> u64 {
        self.summary.network.as_ref().and_then(|network| network.queue_bytes_max).unwrap_or(0)
    }

    /// Returns the number of retransmission timeouts of all connections.
    pub fn timeouts_total(&self) -> u64 {
        self.summary.tcp.as_ref().and_then(|tcp| tcp.timeouts).unwrap_or(0)
    }
}

fn share<T>(values: &[T], is: impl Fn(&T) -> bool) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    values.iter().filter(|value| is(value)).count() as f64 / values.len() as f64
}

/// Errors of judging claims.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The scenario of a run is wrong.
    #[error("{0}")]
    Scenario(#[from] Errors),
    /// A run cannot be simulated.
    #[error("{point}: {error}")]
    Sim {
        /// The run: its preset and settings, as in a command.
        point: String,
        /// The simulator's error.
        error: fanin_runs::Error,
    },
    /// A stop was requested.
    #[error("stopped")]
    Stopped,
}

/// A function that is called after each run, with the number of finished runs and of all runs.
pub type OnProgress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Simulates the runs of the claims on `threads` threads, and judges each claim. `duration` replaces the measured time of every
/// run. When all runs are done, `each` is called with every outcome.
///
/// # Errors
/// If the scenario of a run is wrong, a run cannot be simulated, or `stop` was set.
pub fn reproduce(
    claims: &[Claim],
    duration: Option<&str>,
    threads: usize,
    stop: &AtomicBool,
    progress: OnProgress<'_>,
    each: &mut dyn FnMut(&ClaimRun, &Loaded, &RunOutcome),
) -> Result<Vec<Judged>, LabError> {
    let mut points: BTreeMap<&ClaimRun, usize> = BTreeMap::new();
    for point in claims.iter().flat_map(|claim| &claim.points) {
        let number = points.len();
        points.entry(point).or_insert(number);
    }
    let mut order = vec![None; points.len()];
    for (point, &number) in &points {
        order[number] = Some(*point);
    }
    let order: Vec<&ClaimRun> = order.into_iter().flatten().collect();
    let loaded: Vec<Loaded> = order.iter().map(|point| point.scenario(duration)).collect::<Result<_, _>>()?;
    let runs: Vec<fanin_runs::SweepRun> = loaded
        .iter()
        .map(|loaded| fanin_runs::SweepRun {
            scenario: loaded.scenario.clone(),
            seed: loaded.scenario.run.seed,
        })
        .collect();
    let done = AtomicUsize::new(0);
    let control = RunControl { stop, ..RunControl::default() };
    let outcomes = fanin_runs::sweep(&runs, threads, &control, &|_| {
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, runs.len());
    });
    if outcomes.len() < runs.len() {
        return Err(LabError::Stopped);
    }
    let mut results = Vec::with_capacity(runs.len());
    for ((&run, loaded), outcome) in order.iter().zip(&loaded).zip(outcomes) {
        let point = || format!("{} {}", run.preset, run.sets.join(" "));
        let outcome = outcome.map_err(|error| LabError::Sim { point: point(), error })?;
        if outcome.end == RunEnd::Stopped {
            return Err(LabError::Stopped);
        }
        each(run, loaded, &outcome);
        results.push(measured(loaded, outcome));
    }
    Ok(claims
        .iter()
        .map(|claim| {
            let results: Vec<&PointResult> =
                claim.points.iter().map(|point| &results[points[point]]).collect();
            (claim.judge)(&results)
        })
        .collect())
}

/// Takes from an outcome the figures that claims need, of events assigned in the measured time.
fn measured(loaded: &Loaded, outcome: RunOutcome) -> PointResult {
    let from = loaded.scenario.run.warmup.get();
    let is_measured = |row: &&EventRow| row.assigned_ps >= from && row.collection_time_ps.is_some();
    let rows: Vec<&EventRow> = outcome.records.events.iter().filter(is_measured).collect();
    let mut times_ms: Vec<f64> =
        rows.iter().filter_map(|row| row.collection_time_ps).map(|ps| ps as f64 / 1e9).collect();
    times_ms.sort_by(f64::total_cmp);
    let timeouts = rows.iter().filter_map(|row| row.timeouts).collect();
    let mut watched: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for row in outcome.records.queues.iter().filter(|row| row.time_ps >= from) {
        watched.entry(row.queue.to_string()).or_default().push(row.queue_bytes);
    }
    let watched_bytes_max = watched.values().flatten().copied().max().unwrap_or(0);
    let io = outcome.records.io;
    PointResult {
        summary: outcome.summary,
        times_ms,
        timeouts,
        watched_bytes_max,
        watched,
        io,
        end: outcome.end,
    }
}
