//! What the scenario's settings are to the roles.

use fanin_dataflow::{Delay, Policy, Selection, Step, TieBreak};
use fanin_scenario as scenario;
use fanin_scenario::Scenario;
use fanin_units::{Bytes, Duration, Ratio};

use crate::Error;

/// A delay with so much deviation.
pub(super) fn distributed(mean: Duration, sd: Duration) -> Delay {
    if sd.is_zero() { Delay::Constant(mean) } else { Delay::Normal { mean, sd } }
}

/// A number of hosts or fragments as the roles count them.
pub(super) fn small(key: &'static str, number: u64) -> Result<u16, Error> {
    u16::try_from(number).map_err(|_| Error::unsupported(key, format!("a number of {number}")))
}

/// Who gets the next event.
pub(super) fn policy(supervisor: &scenario::Supervisor) -> Policy {
    match supervisor.policy {
        scenario::Policy::Fcfs => Policy::Fcfs,
        scenario::Policy::Random => Policy::Random,
        scenario::Policy::NodeRoundRobin => Policy::NodeRoundRobin,
        scenario::Policy::NodeLoadBalancing => Policy::NodeLoadBalancing(match supervisor.tie_break {
            scenario::TieBreak::LeastRecent => TieBreak::Rotating,
            scenario::TieBreak::Lowest => TieBreak::Lowest,
            scenario::TieBreak::Random => TieBreak::Random,
        }),
        scenario::Policy::UnitRoundRobin => Policy::UnitRoundRobin,
    }
}

/// What the units do: the scenario's steps, or one over its fraction.
pub(super) fn steps(scenario: &Scenario) -> Vec<Step> {
    let collect = |fraction: Ratio| {
        if fraction == Ratio::ONE { Selection::Rest } else { Selection::Readouts(fraction) }
    };
    if scenario.workload.steps.is_empty() {
        let collectors = &scenario.collectors;
        return vec![Step {
            collect: collect(scenario.workload.fraction),
            processing: distributed(collectors.processing_time, collectors.processing_time_sd),
            accept: scenario.logger.accept,
        }];
    }
    let step = |step: &scenario::Step| Step {
        collect: collect(step.fraction),
        processing: Delay::Constant(step.processing_time),
        accept: step.accept,
    };
    scenario.workload.steps.iter().map(step).collect()
}

/// Whether a readout could run out of memory in this run. Where all that the trigger can accept in it fits, nothing is
/// kept, which is quicker and the same.
pub(super) fn memory_matters(scenario: &Scenario, mean: Bytes) -> bool {
    /// How much larger than its mean a fragment is taken to be.
    const LARGEST: f64 = 16.0;
    let readout = &scenario.readout;
    let seconds = (scenario.run.warmup + scenario.run.duration).as_secs_f64();
    // On demand, no more than the links carry.
    let carried = readout.link.rate.get() as f64 / 8.0 * f64::from(readout.links_per_host) * seconds;
    let event = mean.get() as f64 * f64::from(readout.fragments_per_host) * LARGEST;
    let accepted = match scenario.supervisor.arrivals {
        scenario::Arrivals::OnDemand => carried * LARGEST,
        // A Poisson process hardly ever gives twice as many as it should, and a hundred more.
        _ => event * (2.0 * scenario.supervisor.rate.as_hertz_f64() * seconds + 100.0),
    };
    accepted >= readout.memory.get() as f64
}
