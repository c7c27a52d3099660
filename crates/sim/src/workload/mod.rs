//! What the hosts do.

pub(crate) mod barrier;
pub(crate) mod building;
mod sizes;

use fanin_scenario::{Scenario, WorkloadKind};

use crate::Error;
use fanin_network::Network;
use fanin_network::Roles;

/// A scenario's workload, ready to run.
pub(crate) enum Plan {
    Barrier(Box<barrier::Barrier>),
    Building(Box<building::Building>),
}

/// Prepares the workload of a scenario.
pub(crate) fn plan(scenario: &Scenario, network: &Network, roles: &Roles, seed: u64) -> Result<Plan, Error> {
    match scenario.workload.kind {
        WorkloadKind::FixedFragment | WorkloadKind::FixedBlock => {
            Ok(Plan::Barrier(Box::new(barrier::Barrier::new(scenario, network, roles, seed)?)))
        }
        WorkloadKind::EventBuilding | WorkloadKind::Push | WorkloadKind::AllToAll => {
            Ok(Plan::Building(Box::new(building::Building::new(scenario, network, roles, seed)?)))
        }
    }
}
