//! Warm-up and measured time of a system that is ready.

use std::time::Duration;

use fanin_node::clock::std_duration;
use fanin_testbed::live::SwitchWatch;

use super::job::Job;
use crate::failure::Failure;
use crate::output;

/// Runs `work` for the warm-up and then for the measured time, in which the network is observed. `work` is called with
/// the time to run and a function to report the elapsed time to.
pub(super) fn measured(
    job: &Job<'_>,
    mut watch: Option<&mut SwitchWatch>,
    mut work: impl FnMut(Duration, &dyn Fn(Duration)) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let run = &job.slow.scenario.run;
    let (warmup, duration) = (std_duration(run.warmup), std_duration(run.duration));
    let bar = output::bar(job.arguments.quiet, "{wide_bar} {percent} % of the time, {eta} left");
    bar.set_length((warmup + duration).as_millis() as u64);
    let tick = |before: Duration| {
        let bar = &bar;
        move |elapsed: Duration| bar.set_position((before + elapsed).as_millis() as u64)
    };
    work(warmup, &tick(Duration::ZERO))?;
    if let Some(watch) = &mut watch {
        watch.begin()?;
    }
    work(duration, &tick(warmup))?;
    if let Some(watch) = &mut watch {
        watch.end()?;
    }
    bar.finish_and_clear();
    Ok(())
}
