//! The causes of bad figures, in the summary of a run.

use fanin_report::{LateSummary, Summary, WantedEvents, worst_connections};
use fanin_scenario::{Arrivals, Scenario};
use fanin_sim::RunOutcome;

/// Fills `overload` of a summary if the system did not keep up with the events that its scenario asks for.
pub fn fill_overload(summary: &mut Summary, scenario: &Scenario) {
    let supervisor = &scenario.supervisor;
    if scenario.is_barrier() || supervisor.arrivals == Arrivals::OnDemand {
        return;
    }
    summary.fill_overload(&WantedEvents {
        rate_hz: supervisor.rate.as_hertz_f64(),
        is_random: supervisor.arrivals == Arrivals::Poisson,
        units: scenario.units_total(),
        processing_ms: scenario.collectors.processing_time.as_millis_f64(),
    });
}

/// Fills `overload`, `connections` and `late` of a simulation's summary.
pub(crate) fn fill(outcome: &mut RunOutcome, scenario: &Scenario) {
    fill_overload(&mut outcome.summary, scenario);
    outcome.summary.connections = worst_connections(&outcome.records.flows);
    let late = outcome.picture.as_ref().and_then(|picture| picture.late.as_ref());
    outcome.summary.late = late.map(LateSummary::of);
}
