//! A simulation from Python. It runs without the interpreter's lock, and is stopped by Ctrl-C or by the progress function.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use fanin_runs::{RefusedSetting, RunControl, RunEnd, RunOutcome};
use fanin_scenario::Loaded;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::scenario::raise;

/// Interval between two checks for signals, and between two reports of progress.
const SLICE: Duration = Duration::from_millis(50);

/// Simulates on a separate thread. The calling thread waits for it, lets Python handle its signals, and calls `progress(now,
/// end)` with picoseconds of simulated time. In the last call of a complete run, both values are the end. An exception of a
/// signal handler or of `progress` ends the run and is raised again.
pub(crate) fn simulate(
    py: Python<'_>,
    loaded: &Loaded,
    progress: Option<&Py<PyAny>>,
) -> PyResult<RunOutcome> {
    let scenario = &loaded.scenario;
    let stop = AtomicBool::new(false);
    let end = scenario.run.warmup.get() + scenario.run.duration.get();
    let at = Mutex::new((0, end));
    let follow = |now: fanin_units::Instant, end: fanin_units::Instant| {
        // Events in progress are finished after the end. The end is reported only after that.
        let now = now.get().min(end.get().saturating_sub(1));
        *at.lock().expect("nothing panics while it holds this") = (now, end.get());
    };
    let control = RunControl { stop: &stop, progress: &follow, capture: false };
    let outcome = py.detach(|| {
        std::thread::scope(|scope| {
            let (done, wait) = channel::<()>();
            let control = &control;
            let worker = scope.spawn(move || {
                // Dropped at the end of the thread, even after a panic.
                let _done = done;
                fanin_runs::run(scenario, scenario.run.seed, control)
            });
            let mut raised = None;
            while wait.recv_timeout(SLICE) == Err(RecvTimeoutError::Timeout) {
                let (now, end) = *at.lock().expect("nothing panics while it holds this");
                let looked = Python::attach(|py| {
                    py.check_signals()?;
                    progress.map_or(Ok(()), |progress| progress.call1(py, (now, end)).map(drop))
                });
                if let Err(error) = looked {
                    stop.store(true, Ordering::Relaxed);
                    raised = Some(error);
                    break;
                }
            }
            let outcome = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            raised.map_or(Ok(outcome), Err)
        })
    })?;
    let outcome = outcome.map_err(|error| match error.setting(scenario) {
        Some(RefusedSetting { key, message, help }) => raise(&loaded.refusal(&key, message, help)),
        None => PyValueError::new_err(error.to_string()),
    })?;
    if let (RunEnd::Complete, Some(progress)) = (&outcome.end, progress) {
        progress.call1(py, (end, end))?;
    }
    Ok(outcome)
}
