//! One run: reads the file of sizes before it, and measures its cost.

use std::sync::atomic::{AtomicBool, Ordering};

use fanin_network::topology;
use fanin_scenario::Scenario;
use fanin_scenario::role_configs::{COLLECTORS, check_fragments, small};
use fanin_sim::{RunControl, RunOutcome, run_on};

use crate::causes;
use crate::error::Error;
use crate::memory;
use crate::meter::Meter;
use crate::sizes;

/// Checks that a scenario can be simulated: builds all of it, and stops the run as soon as it has begun. With `captures`, the
/// link of `record.capture` must exist.
///
/// # Errors
/// As for [`run`].
pub fn check(scenario: &Scenario, captures: bool) -> Result<(), Error> {
    let stop = AtomicBool::new(false);
    let control =
        RunControl { stop: &stop, progress: &|_, _| stop.store(true, Ordering::Relaxed), capture: captures };
    let outcome = run(scenario, scenario.run.seed, &control).map(|_| ());
    if let Err(Error::Memory { .. }) = outcome {
        // The network is not built yet. More memory does not help one with too many links.
        topology::build(scenario).map_err(fanin_sim::Error::from)?;
    }
    outcome
}

/// Simulates a scenario. The same scenario and seed give the same outcome to the bit, except for figures of speed.
///
/// # Errors
/// If it needs more memory than this process may have, or its file of sizes cannot be read or has changed since.
/// If it asks for something that is not simulated.
///
/// # Panics
/// If the simulator's accounts do not balance at the end, which is a bug in `fanin-sim`.
pub fn run(scenario: &Scenario, seed: u64, control: &RunControl<'_>) -> Result<RunOutcome, Error> {
    small(COLLECTORS, scenario.collectors_total()).map_err(fanin_sim::Error::from)?;
    check_fragments(scenario).map_err(fanin_sim::Error::from)?;
    memory::check(scenario)?;
    let sizes = sizes::read(scenario)?;
    let (network, roles) = topology::build(scenario).map_err(fanin_sim::Error::from)?;
    let meter = Meter::start();
    let mut outcome = run_on(scenario, &sizes, seed, control, &network, &roles)?;
    causes::fill(&mut outcome, scenario);
    meter.stop(outcome.summary.speed.get_or_insert_default(), outcome.wire_bytes);
    Ok(outcome)
}
