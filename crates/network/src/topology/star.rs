//! Star: every host on one switch.

use fanin_scenario::WorkloadKind;

use super::builder::NetworkBuilder;
use crate::SwitchRole;

/// Adds one switch with all hosts. In all-to-all workloads (LCN'15, evaluation) the collectors are dealt out among the
/// readout hosts and share their links. Otherwise each has a host of its own.
pub(super) fn build(builder: &mut NetworkBuilder<'_>) {
    let scenario = builder.scenario;
    let tor = builder.switch(SwitchRole::Tor, 0);
    let collectors = scenario.collectors_total();
    if scenario.workload.kind == WorkloadKind::AllToAll {
        let readouts = builder.readouts(scenario.readout.hosts);
        builder.roles.collectors = readouts.into_iter().cycle().take(collectors as usize).collect();
        builder.roles.racks = vec![0; builder.roles.collectors.len()];
    } else {
        builder.collectors(0, tor, collectors);
        builder.readouts(scenario.senders());
    }
    for readout in builder.roles.readouts.clone() {
        builder.join_readout(readout, tor);
    }
    builder.services(&[tor]);
}
