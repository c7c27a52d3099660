//! Bands of a live system's metrics: simulates its scenario, and compares means of some seconds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration as Time, Instant as Clock};

use fanin_node::config::{PredictedBand, PredictedBands};
use fanin_report::EventRow;
use fanin_runs::{RunControl, run};
use fanin_scenario::Scenario;
use fanin_units::{Duration, Instant};

use crate::failure::Failure;
use crate::{interrupt, output};

/// Number of simulations, each with its own seed.
const SEEDS: u64 = 3;
/// Figures are means over this time, as `fanin top` shows them.
const WINDOW: Duration = Duration::from_secs(5);
/// Windows of a simulation.
const WINDOWS: u64 = 3;
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
    scenario.run.duration = WINDOW * WINDOWS;
    let bar = output::bar(is_quiet, "{spinner} simulating what the metrics should show");
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
    let mut windows = Vec::new();
    let mut timeouts_max = 0.0_f64;
    for seed in scenario.run.seed..scenario.run.seed.saturating_add(SEEDS) {
        let outcome = run(&scenario, seed, &control)?;
        let Some(period) = &outcome.summary.measured_ps else { continue };
        let (from, until) = (Instant::new(period.from), Instant::new(period.until));
        let whole = windows_of(&outcome.records.events, from, until);
        let seconds = whole.len() as f64 * WINDOW.as_secs_f64();
        windows.extend(whole);
        if seconds > 0.0 {
            let timeouts = outcome.summary.tcp.as_ref().and_then(|tcp| tcp.timeouts).unwrap_or_default();
            timeouts_max = timeouts_max.max(timeouts as f64 / seconds);
        }
        if enough.load(Ordering::Relaxed) {
            break;
        }
    }
    bar.finish_and_clear();
    if interrupted.load(Ordering::Relaxed) || windows.is_empty() {
        return Ok(None);
    }
    Ok(Some(bands(&windows, timeouts_max, scenario.workload.steps.len() < 2)))
}

/// The collections that end in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CollectionWindow {
    collections: u64,
    bytes: u64,
    time_s: f64,
}

/// Returns the windows of a measured time, without a last window that was cut short.
fn windows_of(rows: &[EventRow], from: Instant, until: Instant) -> Vec<CollectionWindow> {
    let count = until.saturating_since(from).get() / WINDOW.get();
    let mut windows = vec![CollectionWindow::default(); count as usize];
    for row in rows {
        let (Some(last), Some(time)) = (row.last_byte_ps, row.collection_time_ps) else { continue };
        let Some(after) = last.checked_sub(from.get()) else { continue };
        let Some(window) = windows.get_mut((after / WINDOW.get()) as usize) else { continue };
        window.collections += 1;
        window.bytes += row.size_bytes;
        window.time_s += Duration::new(time).as_secs_f64();
    }
    windows
}

/// Returns the ranges of the windows' figures, widened by the simulator's error. Without `is_one_step`, times and rates of
/// collections have no band: metrics count a collection for each step.
fn bands(windows: &[CollectionWindow], timeouts_max: f64, is_one_step: bool) -> PredictedBands {
    let seconds = WINDOW.as_secs_f64();
    let error = if timeouts_max > 0.0 { COLLAPSE_ERROR } else { ERROR };
    let band = |figures: &mut dyn Iterator<Item = f64>| {
        let (low, high) = figures.fold((f64::INFINITY, 0.0), |(low, high), x| (x.min(low), x.max(high)));
        low.is_finite().then_some(PredictedBand { low: low * (1.0 - error), high: high * (1.0 + error) })
    };
    let with_events = windows.iter().filter(|window| window.collections > 0);
    PredictedBands {
        collection_time: band(
            &mut with_events.map(|window| window.time_s / window.collections as f64).filter(|_| is_one_step),
        ),
        collection_rate: band(
            &mut windows.iter().map(|window| window.collections as f64 / seconds).filter(|_| is_one_step),
        ),
        data_rate: band(&mut windows.iter().map(|window| window.bytes as f64 / seconds)),
        // A single timeout in a window has no meaning.
        timeout_rate: Some(PredictedBand { low: 0.0, high: timeouts_max * (1.0 + error) + 1.0 / seconds }),
    }
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
        let counts: Vec<u64> = windows.iter().map(|window| window.collections).collect();
        assert_eq!(counts, [2, 2], "the third window is not whole");
        assert_eq!(windows[0].bytes, 2000);
        assert!((windows[0].time_s - 0.004).abs() < 1e-12 && (windows[1].time_s - 0.018).abs() < 1e-12);
    }

    #[test]
    fn bands_hold_all_windows_with_the_error() {
        let window = |collections, time_s| CollectionWindow { collections, bytes: 100 * collections, time_s };
        let windows = [window(10, 0.1), window(20, 0.4), CollectionWindow::default()];
        let found = bands(&windows, 0.0, true);
        let near = |band: Option<PredictedBand>, low: f64, high: f64| {
            let band = band.unwrap();
            assert!((band.low - low).abs() < 1e-9 && (band.high - high).abs() < 1e-9, "{band:?}");
        };
        near(found.collection_time, 0.009, 0.022);
        near(found.collection_rate, 0.0, 4.4);
        near(found.data_rate, 0.0, 440.0);
        near(found.timeout_rate, 0.0, 0.2);
        near(bands(&windows, 4.0, true).timeout_rate, 0.0, 5.2);
        let steps = bands(&windows, 0.0, false);
        assert_eq!((steps.collection_time, steps.collection_rate), (None, None));
    }
}
