//! Racks of collectors behind core routers, and groups of readouts behind aggregation switches.

use super::builder::NetworkBuilder;
use crate::{NodeIndex, SwitchRole};

/// Adds the network of the thesis (§4.2.1, figure 5.3), for any number of racks and cores.
///
/// The real routers spread traffic by a hash of the addresses. As in §5.1.4 each group of readouts is split evenly
/// among the cores, and each part is joined to one core alone. An aggregation switch of its own stands for the part's
/// share of the real one. Without groups the readouts are joined to the cores, and each one's links are dealt out among
/// them.
pub(super) fn build(builder: &mut NetworkBuilder<'_>) {
    let scenario = builder.scenario;
    let settings = &scenario.network;
    let cores: Vec<NodeIndex> =
        (0..settings.cores).map(|core| builder.switch(SwitchRole::Core, core)).collect();
    for rack in 0..scenario.collectors.racks {
        let tor = builder.rack(rack);
        for &core in &cores {
            for _ in 0..settings.uplinks_per_core {
                builder.join(core, tor, &scenario.uplink);
            }
        }
    }
    let readouts = builder.readouts(scenario.senders());
    if settings.readouts_per_group == 0 {
        for (index, &readout) in readouts.iter().enumerate() {
            for link in 0..scenario.readout.links_per_host as usize {
                builder.join(readout, cores[(index + link) % cores.len()], &scenario.readout.link);
            }
        }
    } else {
        for (group, members) in readouts.chunks(settings.readouts_per_group as usize).enumerate() {
            let part_size = members.len().div_ceil(cores.len());
            for (part, members) in members.chunks(part_size).enumerate() {
                let number = (group * cores.len() + part) as u32;
                let switch = builder.switch(SwitchRole::Aggregation, number);
                for &readout in members {
                    builder.join_readout(readout, switch);
                }
                builder.join(switch, cores[part], &scenario.uplink);
            }
        }
    }
    builder.services(&cores);
}
