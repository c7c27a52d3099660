//! Scenario settings in the form that the roles need.

use fanin_scenario::{Arrivals, Scenario};
use fanin_units::Bytes;

/// Returns true if a collector and a readout are on different hosts. Only all-to-all `shares_hosts`.
pub(super) const fn is_remote(shares_hosts: bool, readouts: u64, collector: u64, readout: u64) -> bool {
    !shares_hosts || collector % readouts != readout
}

/// Returns true if a readout could run out of memory in this run. Otherwise fragments need not be stored, with the same
/// results.
pub(super) fn memory_matters(scenario: &Scenario, mean: Bytes) -> bool {
    /// Largest assumed size of a fragment, as a multiple of its mean.
    const LARGEST: f64 = 16.0;
    let readout = &scenario.readout;
    let seconds = (scenario.run.warmup + scenario.run.duration).as_secs_f64();
    // On demand, the event rate is at most the capacity of the links.
    let carried = readout.link.rate.get() as f64 / 8.0 * f64::from(readout.links_per_host) * seconds;
    let event = mean.get() as f64 * f64::from(readout.fragments_per_host) * LARGEST;
    let accepted = match scenario.supervisor.arrivals {
        Arrivals::OnDemand => carried * LARGEST,
        // A Poisson process hardly ever gives more than twice its mean and a hundred.
        _ => event * (2.0 * scenario.supervisor.rate.as_hertz_f64() * seconds + 100.0),
    };
    accepted >= readout.memory.get() as f64
}
