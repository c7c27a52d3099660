//! Warm-up and measured time of a system that is ready.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fanin_node::clock::std_duration;
use fanin_testbed::live::{SwitchHealth, SwitchWatch};

use super::job::Job;
use super::network::{bottleneck, late_max};
use crate::failure::Failure;
use crate::output;

/// Time between two checks that the machine carries the run.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Time between two checks that the switches work.
const HEALTH_EVERY: Duration = Duration::from_millis(100);
/// Checks in a row that find a bottleneck before the attempt ends; lost frames end the attempt at once.
const CHECKS_FAILED_MAX: u32 = 2;

/// Runs `work` for the warm-up and then for the measured time, during which the network is observed. `work` receives
/// the time to run and a function that takes the elapsed time. It returns false if the workload has ended before.
///
/// Returns the reason if the machine spoils the run and the run may begin again; the measured time is then cut short.
pub(super) fn measured(
    job: &Job<'_>,
    watch: Option<&mut SwitchWatch>,
    stop: &AtomicBool,
    mut work: impl FnMut(Duration, &dyn Fn(Duration)) -> Result<bool, Failure>,
) -> Result<Option<String>, Failure> {
    let run = &job.slow.scenario.run;
    let (warmup, duration) = (std_duration(run.warmup), std_duration(run.duration));
    let bar = output::bar(job.arguments.quiet, "{wide_bar} {percent} % of the time, {eta} left");
    bar.set_length((warmup + duration).as_millis() as u64);
    let tick = |before: Duration| {
        let bar = &bar;
        move |elapsed: Duration| bar.set_position((before + elapsed).as_millis() as u64)
    };
    work(warmup, &tick(Duration::ZERO))?;
    let Some(watch) = watch else {
        work(duration, &tick(warmup))?;
        bar.finish_and_clear();
        return Ok(None);
    };
    let late_max = late_max(&job.slow.scenario);
    watch.begin()?;
    let begun = Instant::now();
    let mut failed = 0;
    while let Some(left) = duration.checked_sub(begun.elapsed())
        && !stop.load(Ordering::Relaxed)
    {
        if !work(CHECK_EVERY.min(left), &tick(warmup + duration - left))? {
            break;
        }
        if !job.may_begin_again() || begun.elapsed() >= duration {
            continue;
        }
        let seen = watch.so_far()?;
        let reason = bottleneck(late_max, &seen);
        failed = if reason.is_some() { failed + 1 } else { 0 };
        // Lost frames stay lost; any other bottleneck may pass.
        if let Some(reason) = reason.filter(|_| seen.missed > 0 || failed >= CHECKS_FAILED_MAX) {
            bar.finish_and_clear();
            return Ok(Some(reason));
        }
    }
    watch.end()?;
    bar.finish_and_clear();
    if !job.may_begin_again() || stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    Ok(bottleneck(late_max, &watch.so_far()?))
}

/// Checks the switches of a run; a run on the loopback has none.
pub(super) fn check_switches(health: Option<&SwitchHealth>) -> Result<(), Failure> {
    Ok(health.map_or(Ok(()), SwitchHealth::check)?)
}

/// Runs `work` for `time` in short turns, and checks the switches after each. `work` and the result are as in [`measured`].
/// Returns early if `stop` is set.
pub(super) fn in_turns(
    time: Duration,
    health: Option<&SwitchHealth>,
    stop: &AtomicBool,
    tick: &dyn Fn(Duration),
    mut work: impl FnMut(Duration, &dyn Fn(Duration)) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let start = Instant::now();
    while let Some(left) = time.checked_sub(start.elapsed()).filter(|left| !left.is_zero())
        && !stop.load(Ordering::Relaxed)
    {
        let begun = time - left;
        if !work(HEALTH_EVERY.min(left), &|elapsed| tick(begun + elapsed))? {
            return Ok(false);
        }
        check_switches(health)?;
    }
    Ok(true)
}
