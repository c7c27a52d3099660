//! The applications on the hosts.

mod background;
mod barrier;
mod building;
mod interface;
mod sizes;

use fanin_network::{Network, Roles};
use fanin_scenario::{Scenario, WorkloadKind};

use crate::Error;

pub(crate) use background::WithBackground;
pub(crate) use barrier::BarrierWorkload;
pub(crate) use building::Building;
pub(crate) use interface::{HostOutbox, HostWorkload, MeasuredWorkload};
pub use sizes::RecordedSizes;

/// A scenario's workload, ready to run.
pub(crate) enum ReadyWorkload {
    Barrier(Box<BarrierWorkload>),
    Building(Box<Building>),
}

/// Prepares the workload of a scenario.
pub(crate) fn plan(
    scenario: &Scenario,
    network: &Network,
    roles: &Roles,
    sizes: &RecordedSizes,
    seed: u64,
) -> Result<ReadyWorkload, Error> {
    match scenario.workload.kind {
        WorkloadKind::FixedFragment | WorkloadKind::FixedBlock => {
            Ok(ReadyWorkload::Barrier(Box::new(BarrierWorkload::new(scenario, network, roles, seed)?)))
        }
        WorkloadKind::EventBuilding | WorkloadKind::Push | WorkloadKind::AllToAll => {
            Ok(ReadyWorkload::Building(Box::new(Building::new(scenario, network, roles, sizes, seed)?)))
        }
    }
}
