//! The queues on the way to a collector, as a topology has them: rates in and out, and how many share them.

use fanin_scenario::{Buffering, FlowDistribution, Link, Scenario, Switch, Topology};
use fanin_units::Rate;

use crate::system::System;

/// A queue on the way to a collector, before it is judged.
#[derive(Clone, Copy)]
pub(crate) struct QueuePlace<'a> {
    pub(crate) name: &'static str,
    pub(crate) switch: &'a Switch,
    pub(crate) inflow: Rate,
    pub(crate) outflow: Rate,
    /// The burst is split over so many queues like this one.
    pub(crate) split: u64,
    /// Collectors whose bursts pass this very queue.
    pub(crate) sharers: u64,
    /// Collectors with a queue of their own in the same memory.
    pub(crate) neighbours: u64,
    /// Share of the system's events that pass this memory, as one in so many.
    pub(crate) events_one_in: u64,
    pub(crate) is_uplink: bool,
    /// The ports that lead here, so many of each kind of link.
    pub(crate) inputs: [(u64, &'a Link); 2],
}

/// The queues that event data pass on the way to a collector, the last one first.
pub(crate) fn places<'a>(s: &'a Scenario, system: &System) -> Vec<QueuePlace<'a>> {
    let n = &s.network;
    let readouts = system.senders;
    let sources = total(s.readout.link.rate, readouts * u64::from(s.readout.links_per_host));
    let uplink = s.uplink.rate;
    let per_rack = if s.is_barrier() { 1 } else { u64::from(s.collectors.hosts_per_rack) };
    let racks = u64::from(s.collectors.racks);
    let one_path = n.flow_distribution == FlowDistribution::PerDestination;
    let from_readouts = |readouts: u64| (readouts * u64::from(s.readout.links_per_host), &s.readout.link);
    let none = (0, &s.uplink);
    let last = |inflow: Rate, inputs: (u64, &'a Link)| QueuePlace {
        name: "tor->collector",
        switch: &s.tor,
        inflow: inflow.min(sources),
        outflow: s.link.rate,
        split: 1,
        sharers: 1,
        neighbours: per_rack,
        events_one_in: racks,
        is_uplink: false,
        inputs: [inputs, none],
    };
    match n.topology {
        Topology::Star => vec![last(sources, from_readouts(readouts))],
        Topology::Racks | Topology::Hybrid => {
            let cores = u64::from(n.cores);
            let uplinks = u64::from(n.uplinks_per_core);
            // Either a collector's flows take all links to its rack, or its share of the collectors takes each.
            let (paths, links_each) = if one_path { (1, uplinks) } else { (uplinks, 1) };
            let (inputs, input) = match n.readouts_per_group {
                0 => (readouts, s.readout.link.rate),
                group => (readouts.div_ceil(u64::from(group)), uplink),
            };
            let into_core = total(input, inputs).min(sources);
            let core = QueuePlace {
                name: "core->tor",
                switch: &s.core,
                inflow: into_core,
                outflow: total(uplink, paths),
                split: cores,
                sharers: per_rack.div_ceil(links_each),
                neighbours: 1,
                events_one_in: racks * links_each,
                is_uplink: false,
                inputs: match n.readouts_per_group {
                    0 => [from_readouts(readouts.div_ceil(cores)), none],
                    _ => [(inputs, &s.uplink), none],
                },
            };
            let mut limit = total(uplink, cores * paths);
            let mut places = Vec::new();
            let ring = &s.core.daqring;
            let redirects = n.topology == Topology::Hybrid && n.hybrid.host_ports > 0;
            let rings = redirects || s.core.buffering == Buffering::Daqring;
            if rings && !ring.rate.is_zero() {
                limit = limit.min(ring.rate);
            }
            places.push(last(limit, (cores * uplinks, &s.uplink)));
            if redirects {
                // The hardware queue towards the rack sees what the rings of the whole rack let out together.
                let shaped = if ring.rate.is_zero() { core.inflow } else { total(ring.rate, per_rack) };
                let software = total(n.hybrid.link.rate, u64::from(n.hybrid.host_ports));
                places.push(QueuePlace { inflow: shaped.min(software), ..core });
                places.push(QueuePlace {
                    name: "software->core",
                    switch: &s.core,
                    inflow: into_core.min(software),
                    outflow: if ring.rate.is_zero() { software } else { ring.rate },
                    split: 1,
                    sharers: 1,
                    neighbours: per_rack * racks,
                    events_one_in: 1,
                    is_uplink: false,
                    inputs: [none; 2],
                });
            } else {
                places.push(core);
            }
            if n.readouts_per_group > 0 {
                places.push(QueuePlace {
                    name: "aggregation->core",
                    switch: &s.aggregation,
                    inflow: total(s.readout.link.rate, u64::from(n.readouts_per_group).min(readouts)),
                    outflow: total(uplink, cores),
                    split: inputs,
                    sharers: per_rack * racks,
                    neighbours: 1,
                    events_one_in: 1,
                    is_uplink: true,
                    inputs: [
                        from_readouts(u64::from(n.readouts_per_group).min(readouts).div_ceil(cores)),
                        none,
                    ],
                });
            }
            places
        }
        Topology::LeafSpine => {
            let l = &n.leaf_spine;
            let (planes, pods, spines) = (u64::from(l.planes), u64::from(l.pods), u64::from(l.spines));
            // Either a burst is spread over all planes and spines, or each of them has its share of the collectors.
            let (burst_planes, burst_spines) = if one_path { (1, 1) } else { (planes, spines) };
            let (event_planes, event_spines) = if one_path { (planes, spines) } else { (1, 1) };
            let in_one_pod = per_rack * racks.div_ceil(pods);
            let in_pod = total(s.readout.link.rate, readouts.div_ceil(pods));
            let from_spines = if pods > 1 { total(uplink, burst_spines) } else { Rate::ZERO };
            let leaf = QueuePlace {
                name: "leaf->tor",
                switch: &s.leaf,
                inflow: in_pod.saturating_add(from_spines).min(sources),
                outflow: uplink,
                split: burst_planes,
                sharers: per_rack.div_ceil(event_planes),
                neighbours: 1,
                events_one_in: racks * event_planes,
                is_uplink: false,
                inputs: [from_readouts(readouts.div_ceil(pods)), (spines, &s.uplink)],
            };
            let mut places = vec![last(total(uplink, burst_planes), (planes, &s.uplink)), leaf];
            if pods > 1 {
                let links_each = event_planes * event_spines;
                let spine = QueuePlace {
                    name: "spine->leaf",
                    switch: &s.spine,
                    inflow: total(uplink, pods - 1).min(sources),
                    outflow: uplink,
                    split: burst_planes * burst_spines,
                    sharers: in_one_pod.div_ceil(links_each),
                    neighbours: 1,
                    events_one_in: pods * links_each,
                    is_uplink: false,
                    inputs: [(pods - 1, &s.uplink), none],
                };
                places.push(QueuePlace {
                    name: "leaf->spine",
                    switch: &s.leaf,
                    inflow: in_pod,
                    split: spine.split * pods,
                    sharers: (per_rack * racks).div_ceil(links_each),
                    events_one_in: links_each,
                    is_uplink: true,
                    inputs: [from_readouts(readouts.div_ceil(pods)), none],
                    ..spine
                });
                places.insert(2, spine);
            }
            places
        }
    }
}

/// The rate of so many links together.
fn total(rate: Rate, links: u64) -> Rate {
    rate.checked_mul(links).unwrap_or(Rate::MAX)
}
