//! Parallel leaf-spine planes with pods.

use super::builder::NetworkBuilder;
use crate::{NodeIndex, SwitchRole};

/// Adds the planes (multi-host paper §II.B, figure 2). A pod's readouts and racks share a leaf switch in every plane,
/// and every leaf is joined to all spines of its plane. A host has one link into each plane.
pub(super) fn build(builder: &mut NetworkBuilder<'_>) {
    let scenario = builder.scenario;
    let settings = &scenario.network.leaf_spine;
    let (planes, pods, spines) = (settings.planes, settings.pods, settings.spines);
    let leaves: Vec<NodeIndex> =
        (0..planes * pods).map(|leaf| builder.switch(SwitchRole::Leaf, leaf)).collect();
    let leaf = |plane: u32, pod: u32| leaves[(plane * pods + pod) as usize];
    for plane in 0..planes {
        for spine in 0..spines {
            let spine = builder.switch(SwitchRole::Spine, plane * spines + spine);
            for pod in 0..pods {
                builder.join(leaf(plane, pod), spine, &scenario.uplink);
            }
        }
    }
    let racks_per_pod = scenario.collectors.racks.div_ceil(pods);
    for rack in 0..scenario.collectors.racks {
        let tor = builder.rack(rack);
        for plane in 0..planes {
            builder.join(leaf(plane, rack / racks_per_pod), tor, &scenario.uplink);
        }
    }
    let readouts = builder.readouts(scenario.senders());
    let readouts_per_pod = scenario.senders().div_ceil(pods);
    for (number, readout) in (0..).zip(readouts) {
        for plane in 0..planes {
            builder.join(readout, leaf(plane, number / readouts_per_pod), &scenario.readout.link);
        }
    }
    let first: Vec<NodeIndex> = (0..planes).map(|plane| leaf(plane, 0)).collect();
    builder.services(&first);
}
