//! The applications on the hosts.

mod barrier;
mod building;
mod interface;
mod sizes;

use fanin_network::{Network, Roles};
use fanin_scenario::{Scenario, WorkloadKind};

use crate::Error;

pub(crate) use barrier::Barrier;
pub(crate) use building::Building;
pub(crate) use interface::{Measured, Outbox, Workload};

/// A scenario's workload, ready to run.
pub(crate) enum Plan {
    Barrier(Box<Barrier>),
    Building(Box<Building>),
}

/// Prepares the workload of a scenario.
pub(crate) fn plan(scenario: &Scenario, network: &Network, roles: &Roles, seed: u64) -> Result<Plan, Error> {
    match scenario.workload.kind {
        WorkloadKind::FixedFragment | WorkloadKind::FixedBlock => {
            Ok(Plan::Barrier(Box::new(Barrier::new(scenario, network, roles, seed)?)))
        }
        WorkloadKind::EventBuilding | WorkloadKind::Push | WorkloadKind::AllToAll => {
            Ok(Plan::Building(Box::new(Building::new(scenario, network, roles, seed)?)))
        }
    }
}
