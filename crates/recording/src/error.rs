//! Records that a scenario asks for and no run can make.

use fanin_network::{Network, PortIndex};
use fanin_scenario::Scenario;
use fanin_units::Duration;

use crate::samples::SAMPLES_MAX;

/// Reasons for which the records of a scenario are refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A link that is to be captured does not exist.
    #[error("record.capture: no link is called {name:?}; one is, for example, \"tor:0->collector:0\"")]
    NoSuchLink {
        /// The name given.
        name: String,
    },
    /// A queue that is to be sampled does not exist.
    #[error("record.queues: no queue is called {name:?}; this network has {}", kinds.join(", "))]
    NoSuchQueue {
        /// The name given.
        name: String,
        /// The queues of this network, one name for each kind.
        kinds: Vec<String>,
    },
    /// The queues would be sampled too often.
    #[error(
        "record.queue_interval: {queues} queues every {interval} are {samples} samples, more than {} million; make it longer",
        SAMPLES_MAX / 1_000_000
    )]
    TooManySamples {
        /// The time between samples.
        interval: Duration,
        /// The number of queues that `record.queues` names.
        queues: u64,
        /// All samples in the measured time.
        samples: u64,
    },
}

/// Refuses queues that the network lacks, and samples too many for the memory.
///
/// # Errors
/// [`RecordError::NoSuchQueue`] and [`RecordError::TooManySamples`].
pub fn check_samples(scenario: &Scenario, network: &Network) -> Result<(), RecordError> {
    let record = &scenario.record;
    if let Some(name) = record.queues.iter().find(|pattern| network.ports_named(pattern).is_empty()) {
        return Err(RecordError::NoSuchQueue { name: name.clone(), kinds: network.port_kinds() });
    }
    let queues = record.queues.iter().map(|pattern| network.ports_named(pattern).len() as u64).sum();
    let samples = (scenario.run.duration.get() / record.queue_interval.get().max(1)).saturating_mul(queues);
    if samples > SAMPLES_MAX {
        return Err(RecordError::TooManySamples { interval: record.queue_interval, queues, samples });
    }
    Ok(())
}

/// Returns the first port that `record.capture` names.
///
/// # Errors
/// [`RecordError::NoSuchLink`] if no link has that name.
pub fn captured_port(scenario: &Scenario, network: &Network) -> Result<PortIndex, RecordError> {
    let name = &scenario.record.capture;
    network.ports_named(name).first().copied().ok_or_else(|| RecordError::NoSuchLink { name: name.clone() })
}
