//! Bands of a live system's metrics: simulates its scenario, and takes the range of its figures over some seconds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration as Time, Instant as Clock};

use fanin_node::config::{PredictedBand, PredictedBands, collection_quantile};
use fanin_report::{EventOutcome, EventRow, LevelRow, SystemLevels};
use fanin_runs::{RunControl, run};
use fanin_scenario::Scenario;
use fanin_units::{Duration, Instant};

use crate::failure::Failure;
use crate::{interrupt, output};

/// Number of simulations, each with its own seed.
const SEEDS: u64 = 3;
/// Figures are those of this time, as `fanin top` shows them.
const WINDOW: Duration = Duration::from_secs(5);
/// Windows of a simulation.
const WINDOWS: u64 = 3;
/// Time beyond the windows. Levels are recorded at equal intervals. Without this time, many triggers' periods divide them.
const OFFSET: Duration = Duration::from_micros(618_034);
/// Time for which a stored event may wait for its logger's disk. The simulation has no such time.
const DISK_WAIT_MAX: Duration = Duration::from_millis(100);
/// The time that all simulations may take together.
const EFFORT_MAX: Time = Time::from_secs(30);
/// The simulator's error where nothing times out, as docs/validation.md has it.
const ERROR: f64 = 0.10;
/// The simulator's error in a collapse, where timeouts occur.
const COLLAPSE_ERROR: f64 = 0.25;

/// Simulates a scenario and returns the bands of its metrics. Returns `None` if the allowed effort gave no window, or Ctrl-C
/// ended the simulations.
///
/// # Errors
/// If the scenario cannot be simulated.
pub(crate) fn predict(scenario: &Scenario, is_quiet: bool) -> Result<Option<PredictedBands>, Failure> {
    let mut scenario = scenario.clone();
    scenario.run.duration = WINDOW * WINDOWS + OFFSET;
    let bar = output::bar(is_quiet, "{spinner} simulating the predicted band of the metrics");
    let began = Clock::now();
    let (interrupted, enough) = (interrupt::flag(), AtomicBool::new(false));
    let control = RunControl {
        stop: &enough,
        progress: &|_, _| {
            bar.tick();
            if interrupted.load(Ordering::Relaxed) || began.elapsed() >= EFFORT_MAX {
                enough.store(true, Ordering::Relaxed);
            }
        },
        capture: false,
    };
    let (mut windows, mut levels) = (Vec::new(), Vec::new());
    let (mut timeouts, mut retransmissions) = (Vec::new(), Vec::new());
    for seed in scenario.run.seed..scenario.run.seed.saturating_add(SEEDS) {
        let outcome = run(&scenario, seed, &control)?;
        let Some(period) = &outcome.summary.measured_ps else { continue };
        let (from, until) = (Instant::new(period.from), Instant::new(period.until));
        let whole = windows_of(&outcome.records.events, from, until);
        windows.extend(whole);
        levels.extend(levels_within(&outcome.levels, from, until));
        // TCP's counts are those of the whole measured time, also where its last window was cut short.
        let seconds = until.saturating_since(from).as_secs_f64();
        if seconds > 0.0
            && let Some(tcp) = &outcome.summary.tcp
        {
            timeouts.push(tcp.timeouts.unwrap_or_default() as f64 / seconds);
            retransmissions.push(tcp.retransmits.unwrap_or_default() as f64 / seconds);
        }
        if enough.load(Ordering::Relaxed) {
            break;
        }
    }
    bar.finish_and_clear();
    if interrupted.load(Ordering::Relaxed) || windows.is_empty() {
        return Ok(None);
    }
    let is_one_step = scenario.workload.steps.len() < 2;
    Ok(Some(bands(&windows, &levels, &timeouts, &retransmissions, is_one_step)))
}

/// The events assigned in a window, and the collections that end in it.
#[derive(Clone, Debug, Default, PartialEq)]
struct CollectionWindow {
    assigned: u64,
    /// The rejected and the stored events, of the collected ones.
    rejected: u64,
    stored: u64,
    bytes: u64,
    /// Time of each collection, in seconds.
    times_s: Vec<f64>,
}

/// Returns the windows of a measured time, without a last window that was cut short.
fn windows_of(rows: &[EventRow], from: Instant, until: Instant) -> Vec<CollectionWindow> {
    let count = until.saturating_since(from).get() / WINDOW.get();
    let mut windows = vec![CollectionWindow::default(); count as usize];
    let place = |at: u64| at.checked_sub(from.get()).map(|after| (after / WINDOW.get()) as usize);
    for row in rows {
        if let Some(window) = place(row.assigned_ps).and_then(|place| windows.get_mut(place)) {
            window.assigned += 1;
        }
        let (Some(last), Some(time)) = (row.last_byte_ps, row.collection_time_ps) else { continue };
        let Some(window) = place(last).and_then(|place| windows.get_mut(place)) else { continue };
        window.bytes += row.size_bytes;
        window.times_s.push(Duration::new(time).as_secs_f64());
        window.rejected += u64::from(row.outcome == EventOutcome::Rejected);
        window.stored += u64::from(row.outcome == EventOutcome::Stored);
    }
    windows
}

/// Returns the levels of a measured time.
fn levels_within(rows: &[LevelRow], from: Instant, until: Instant) -> impl Iterator<Item = SystemLevels> {
    let within = rows.iter().filter(move |row| (from.get()..=until.get()).contains(&row.time_ps));
    within.map(|row| row.levels)
}

/// Returns the ranges of the windows' figures and of the levels, widened by the simulator's error. `timeouts` and `retransmissions` are rates,
/// one of each simulation. Without `is_one_step`, times and rates of collections have no band: metrics count a collection for
/// each step.
fn bands(
    windows: &[CollectionWindow],
    levels: &[SystemLevels],
    timeouts: &[f64],
    retransmissions: &[f64],
    is_one_step: bool,
) -> PredictedBands {
    let seconds = WINDOW.as_secs_f64();
    let timeouts_max = timeouts.iter().copied().fold(0.0, f64::max);
    let error = if timeouts_max > 0.0 { COLLAPSE_ERROR } else { ERROR };
    let rate = |count: fn(&CollectionWindow) -> u64| {
        let rates = windows.iter().map(|window| count(window) as f64 / seconds);
        band(rates.map(|rate| (rate * (1.0 - error), rate * (1.0 + error))))
    };
    // The metrics know a quantile by its bucket alone. The error applies to the times, which may change the bucket, and to the
    // quantile: within a bucket, longer times do not change it.
    let quantile = |quantile: f64, collections_min: usize| {
        let with = windows.iter().filter(|window| is_one_step && window.times_s.len() >= collections_min);
        let scaled = |window: &CollectionWindow, factor: f64| {
            collection_quantile(window.times_s.iter().map(|time| time * factor), quantile)
        };
        band(with.filter_map(|window| {
            let found = scaled(window, 1.0)?;
            let low = scaled(window, 1.0 - error)?.min(found * (1.0 - error));
            let high = scaled(window, 1.0 + error)?.max(found * (1.0 + error));
            Some((low, high))
        }))
    };
    let means = windows.iter().filter(|window| is_one_step && !window.times_s.is_empty()).map(|window| {
        let mean = window.times_s.iter().sum::<f64>() / window.times_s.len() as f64;
        (mean * (1.0 - error), mean * (1.0 + error))
    });
    // A single one in a window has no meaning.
    let one = 1.0 / seconds;
    let rare = |rate: &f64| ((rate * (1.0 - error) - one).max(0.0), rate * (1.0 + error) + one);
    let storage_rate = rate(|window| window.stored);
    let at_disks = storage_rate.map_or(0.0, |band| band.high * DISK_WAIT_MAX.as_secs_f64());
    // One more or less at a moment has no meaning.
    let level = |of: fn(&SystemLevels) -> u64, more: f64| {
        let present = levels.iter().map(|levels| of(levels) as f64);
        band(present.map(|of| ((of * (1.0 - error) - 1.0).max(0.0), of * (1.0 + error) + 1.0 + more)))
    };
    PredictedBands {
        collection_time: band(means),
        collection_time_median: quantile(0.5, 1),
        collection_time_p99: quantile(0.99, 100),
        collection_time_p999: quantile(0.999, 1000),
        collection_rate: rate(|window| window.times_s.len() as u64).filter(|_| is_one_step),
        data_rate: rate(|window| window.bytes),
        assignment_rate: rate(|window| window.assigned),
        // Without a band where the outcome does not occur.
        rejection_rate: rate(|window| window.rejected).filter(|band| band.high > 0.0),
        storage_rate: storage_rate.filter(|band| band.high > 0.0),
        timeout_rate: band(timeouts.iter().map(rare)),
        retransmission_rate: band(retransmissions.iter().map(rare)),
        events_outstanding: level(|levels| levels.events_outstanding, at_disks),
        units_free: level(|levels| levels.units_free, 0.0),
        credits_used: level(|levels| levels.credits_used, 0.0),
        requests_waiting: level(|levels| levels.requests_waiting, 0.0),
    }
}

/// Returns the range of some ranges; `None` without one.
fn band(ranges: impl Iterator<Item = (f64, f64)>) -> Option<PredictedBand> {
    let wider = |(low, high): (f64, f64), range: (f64, f64)| (low.min(range.0), high.max(range.1));
    let (low, high) = ranges.fold((f64::INFINITY, 0.0), wider);
    low.is_finite().then_some(PredictedBand { low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(last_s: u64, time_ms: u64) -> EventRow {
        EventRow {
            size_bytes: 1000,
            last_byte_ps: Some(Duration::from_secs(last_s).get()),
            collection_time_ps: Some(Duration::from_millis(time_ms).get()),
            ..EventRow::default()
        }
    }

    #[test]
    fn windows_are_whole_and_begin_after_the_warm_up() {
        let rows = [row(1, 900), row(2, 1), row(6, 3), row(7, 9), row(11, 9), row(12, 500)];
        let second = |s| Instant::START + Duration::from_secs(s);
        let windows = windows_of(&rows, second(2), second(13));
        let counts: Vec<usize> = windows.iter().map(|window| window.times_s.len()).collect();
        assert_eq!(counts, [2, 2], "the third window is not whole");
        assert_eq!(windows[0].bytes, 2000);
        let sums: Vec<f64> = windows.iter().map(|window| window.times_s.iter().sum()).collect();
        assert!((sums[0] - 0.004).abs() < 1e-12 && (sums[1] - 0.018).abs() < 1e-12, "{sums:?}");
    }

    #[test]
    fn events_count_in_the_window_of_their_assignment_and_by_their_outcome() {
        let event = |assigned_s, last_s, outcome| EventRow {
            assigned_ps: Duration::from_secs(assigned_s).get(),
            outcome,
            ..row(last_s, 1)
        };
        let rows = [
            event(1, 3, EventOutcome::Rejected),
            event(6, 8, EventOutcome::Stored),
            event(6, 11, EventOutcome::Stored),
        ];
        let second = |s| Instant::START + Duration::from_secs(s);
        let windows = windows_of(&rows, second(2), second(12));
        let counts: Vec<_> =
            windows.iter().map(|window| (window.assigned, window.rejected, window.stored)).collect();
        assert_eq!(counts, [(2, 1, 0), (0, 0, 2)]);
    }

    #[test]
    fn bands_hold_all_windows_with_the_error() {
        let window = |collections: u64, time_s: f64| CollectionWindow {
            assigned: collections,
            rejected: collections / 2,
            bytes: 100 * collections,
            times_s: vec![time_s; collections as usize],
            ..CollectionWindow::default()
        };
        let windows = [window(10, 0.01), window(200, 0.02), CollectionWindow::default()];
        let found = bands(&windows, &[], &[0.0], &[0.0, 3.0], true);
        let near = |band: Option<PredictedBand>, low: f64, high: f64| {
            let band = band.unwrap();
            assert!((band.low - low).abs() < 1e-9 && (band.high - high).abs() < 1e-9, "{band:?}");
        };
        near(found.collection_time, 0.009, 0.022);
        near(found.collection_rate, 0.0, 44.0);
        near(found.data_rate, 0.0, 4400.0);
        near(found.assignment_rate, 0.0, 44.0);
        near(found.rejection_rate, 0.0, 22.0);
        near(found.timeout_rate, 0.0, 0.2);
        near(found.retransmission_rate, 0.0, 3.5);
        near(bands(&windows, &[], &[4.0, 6.0], &[4.0], true).timeout_rate, 2.8, 7.7);
        near(bands(&windows, &[], &[4.0], &[4.0], true).retransmission_rate, 2.8, 5.2);
        // As the buckets have it: 9 ms lie between 6.4 and 12.8 ms, 22 ms between 12.8 and 25.6 ms.
        near(found.collection_time_median, 0.00864, 0.02112);
        // Of the second window alone: the first has too few collections.
        near(found.collection_time_p99, 0.022_924_8, 0.028_019_2);
        assert_eq!((found.collection_time_p999, found.storage_rate), (None, None));
        assert_eq!(found.events_outstanding, None, "no levels were recorded");
        let steps = bands(&windows, &[], &[0.0], &[0.0], false);
        assert_eq!((steps.collection_time, steps.collection_rate), (None, None));
        assert_eq!((steps.collection_time_median, steps.collection_time_p99), (None, None));
    }
    #[test]
    fn bands_of_levels_hold_all_moments_of_the_measured_time() {
        let moment = |time_s, events_outstanding, units_free, credits_used, requests_waiting| LevelRow {
            time_ps: Duration::from_secs(time_s).get(),
            levels: SystemLevels { events_outstanding, units_free, credits_used, requests_waiting },
        };
        let rows = [
            moment(1, 90, 1, 900, 90),
            moment(2, 10, 50, 100, 0),
            moment(7, 20, 40, 300, 5),
            moment(8, 0, 99, 0, 0),
        ];
        let second = |s| Instant::START + Duration::from_secs(s);
        let levels: Vec<SystemLevels> = levels_within(&rows, second(2), second(7)).collect();
        let near = |band: Option<PredictedBand>, low: f64, high: f64| {
            let band = band.unwrap();
            assert!((band.low - low).abs() < 1e-9 && (band.high - high).abs() < 1e-9, "{band:?}");
        };
        let found = bands(&[CollectionWindow::default()], &levels, &[0.0], &[0.0], true);
        near(found.events_outstanding, 8.0, 23.0);
        near(found.units_free, 35.0, 56.0);
        near(found.credits_used, 89.0, 331.0);
        near(found.requests_waiting, 0.0, 6.5);
        // 40 stored events a second, with the error, each up to 100 ms at a disk.
        let window = CollectionWindow { stored: 200, ..CollectionWindow::default() };
        let stored = bands(&[window], &levels, &[0.0], &[0.0], true);
        near(stored.events_outstanding, 8.0, 27.4);
        near(stored.units_free, 35.0, 56.0);
    }
}
