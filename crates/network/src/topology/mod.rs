//! Networks of scenarios, as builders of [`Network`] descriptions.
//!
//! A further topology is one more function here that adds nodes and links, and a line in [`build`].

use fanin_scenario::{
    Buffering, CongestionControl, Ecn, Framing as Wanted, Link, Scenario, Switch, Topology, WorkloadKind,
};

use crate::Framing;
use crate::graph::{M21, Network, NetworkError, NodeIndex, SwitchKind};

/// Which of the scenario's switches a node is: a place in `Network::switches`.
mod class {
    pub(super) const TOR: usize = 0;
    pub(super) const CORE: usize = 1;
    pub(super) const AGGREGATION: usize = 2;
    pub(super) const LEAF: usize = 3;
    pub(super) const SPINE: usize = 4;
    pub(super) const SOFTWARE: usize = 5;
}

/// The nodes of a network by role.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Roles {
    /// The supervisor's host; absent where the workload needs none.
    pub supervisor: Option<NodeIndex>,
    /// Readout hosts; the senders of a barrier-synchronised workload.
    pub readouts: Vec<NodeIndex>,
    /// Collector hosts, rack by rack.
    pub collectors: Vec<NodeIndex>,
    /// The rack of each collector.
    pub racks: Vec<u32>,
    /// Logger hosts.
    pub loggers: Vec<NodeIndex>,
    /// The software switch beside the core of a hybrid, through which redirected flows go.
    pub software: Option<NodeIndex>,
}

/// Builds the network of a scenario.
///
/// # Errors
/// A link that is too slow, as [`Network::check`] says.
pub fn build(scenario: &Scenario) -> Result<(Network, Roles), NetworkError> {
    let kind = |settings: &Switch, has_uplinks, section| SwitchKind {
        settings: settings.clone(),
        has_uplinks,
        section,
    };
    // What the hardware beside it marks has passed its rings as it came.
    let software = Switch { buffering: Buffering::Daqring, ecn: Ecn::default(), ..scenario.core.clone() };
    let switches = vec![
        kind(&scenario.tor, true, "tor"),
        kind(&scenario.core, false, "core"),
        kind(&scenario.aggregation, true, "aggregation"),
        kind(&scenario.leaf, true, "leaf"),
        kind(&scenario.spine, false, "spine"),
        kind(&software, false, "core"),
    ];
    let mut network = Network { switches, ..Network::default() };
    network.framing = match scenario.network.framing {
        Wanted::Ethernet => Framing::ETHERNET,
        Wanted::PointToPoint => Framing::PPP,
    };
    let full = (scenario.transport.mss.get() as u32).saturating_add(40);
    network.frame_bytes = network.framing.frame_bytes(full);
    let transport = &scenario.transport;
    if transport.congestion_control == CongestionControl::M21tcp {
        // No IP packet is longer than 16 bits say; who runs a stack refuses a longer segment.
        let mss = u16::try_from(transport.segment_payload().get()).unwrap_or(u16::MAX);
        network.m21 = Some(M21 { settings: transport.m21tcp.clone(), mss });
    }
    let roles = match scenario.network.topology {
        Topology::Star => star(scenario, &mut network),
        Topology::Racks => racks(scenario, &mut network),
        Topology::LeafSpine => leaf_spine(scenario, &mut network),
        Topology::Hybrid => hybrid(scenario, &mut network),
    };
    network.check()?;
    Ok((network, roles))
}

fn join(network: &mut Network, from: NodeIndex, to: NodeIndex, link: &Link) {
    network.join(from, to, link.rate, link.delay);
}

/// Adds hosts `name:0`, `name:1`, …
fn hosts(network: &mut Network, name: &str, count: u32) -> Vec<NodeIndex> {
    (0..count).map(|host| network.add_host(format!("{name}:{host}"))).collect()
}

/// Every host around one switch.
fn star(scenario: &Scenario, network: &mut Network) -> Roles {
    let tor = network.add_switch("tor:0".into(), class::TOR);
    let collectors = u32::try_from(scenario.collectors_total()).unwrap_or(u32::MAX);
    if scenario.workload.kind == WorkloadKind::AllToAll {
        return all_to_all(scenario, network, tor, collectors);
    }
    let mut roles = Roles {
        collectors: hosts(network, "collector", collectors),
        readouts: hosts(network, "readout", scenario.senders()),
        ..Roles::default()
    };
    roles.racks = roles.collectors.iter().map(|_| 0).collect();
    for &node in &roles.collectors {
        join(network, tor, node, &scenario.link);
    }
    for &node in &roles.readouts {
        for _ in 0..scenario.readout.links_per_host {
            join(network, node, tor, &scenario.readout.link);
        }
    }
    services(scenario, network, &mut roles, &[tor]);
    roles
}

/// The network of the thesis (§4.2.1, figure 5.3), for any number of racks and cores.
///
/// The real routers spread traffic by a hash of the addresses. As in §5.1.4 each group of readouts is split evenly
/// among the cores, and each part is joined to one core alone: an aggregation switch of its own stands for its share
/// of the real one.
fn racks(scenario: &Scenario, network: &mut Network) -> Roles {
    let settings = &scenario.network;
    let cores: Vec<_> =
        (0..settings.cores).map(|core| network.add_switch(format!("core:{core}"), class::CORE)).collect();
    let mut roles = Roles::default();

    for rack in 0..scenario.collectors.racks {
        let tor = network.add_switch(format!("tor:{rack}"), class::TOR);
        for _ in 0..scenario.collectors.hosts_per_rack {
            let node = network.add_host(format!("collector:{}", roles.collectors.len()));
            join(network, tor, node, &scenario.link);
            roles.collectors.push(node);
            roles.racks.push(rack);
        }
        for &core in &cores {
            for _ in 0..settings.uplinks_per_core {
                join(network, core, tor, &scenario.uplink);
            }
        }
    }

    roles.readouts = hosts(network, "readout", scenario.readout.hosts);
    if settings.readouts_per_group == 0 {
        // Straight to the cores, each host's links dealt out among them.
        for (index, &node) in roles.readouts.iter().enumerate() {
            for link in 0..scenario.readout.links_per_host as usize {
                join(network, node, cores[(index + link) % cores.len()], &scenario.readout.link);
            }
        }
    } else {
        for (group, members) in roles.readouts.chunks(settings.readouts_per_group as usize).enumerate() {
            let part_size = members.len().div_ceil(cores.len());
            for (part, members) in members.chunks(part_size).enumerate() {
                let name = format!("aggregation:{}", group * cores.len() + part);
                let switch = network.add_switch(name, class::AGGREGATION);
                for &node in members {
                    for _ in 0..scenario.readout.links_per_host {
                        join(network, node, switch, &scenario.readout.link);
                    }
                }
                join(network, switch, cores[part], &scenario.uplink);
            }
        }
    }
    services(scenario, network, &mut roles, &cores);
    roles
}

/// LCN'15, evaluation: every readout host is a collector too, or several, which are dealt out among them and share its
/// links.
fn all_to_all(scenario: &Scenario, network: &mut Network, tor: NodeIndex, collectors: u32) -> Roles {
    let mut roles = Roles { readouts: hosts(network, "readout", scenario.readout.hosts), ..Roles::default() };
    for &node in &roles.readouts {
        for _ in 0..scenario.readout.links_per_host {
            join(network, node, tor, &scenario.readout.link);
        }
    }
    roles.collectors = roles.readouts.iter().cycle().take(collectors as usize).copied().collect();
    roles.racks = roles.collectors.iter().map(|_| 0).collect();
    services(scenario, network, &mut roles, &[tor]);
    roles
}

/// Racks behind one shallow switch, and a software switch beside it on its host ports (multi-host paper §IV.A).
fn hybrid(scenario: &Scenario, network: &mut Network) -> Roles {
    let mut roles = racks(scenario, network);
    let settings = &scenario.network.hybrid;
    if settings.host_ports > 0 {
        let hardware = network.nodes.iter().position(|node| node.name == "core:0").expect("there is a core");
        let software = network.add_switch("software:0".into(), class::SOFTWARE);
        for _ in 0..settings.host_ports {
            join(network, hardware as NodeIndex, software, &settings.link);
        }
        roles.software = Some(software);
    }
    roles
}

/// Parallel leaf-spine planes with pods (multi-host paper §II.B, figure 2): a pod's readouts and racks share a leaf
/// switch in every plane, and every leaf is joined to all spines of its plane. A host has one link into each plane.
fn leaf_spine(scenario: &Scenario, network: &mut Network) -> Roles {
    let settings = &scenario.network.leaf_spine;
    let (planes, pods, spines) = (settings.planes, settings.pods, settings.spines);
    let leaves: Vec<_> =
        (0..planes * pods).map(|leaf| network.add_switch(format!("leaf:{leaf}"), class::LEAF)).collect();
    for plane in 0..planes {
        for spine in 0..spines {
            let name = format!("spine:{}", plane * spines + spine);
            let spine = network.add_switch(name, class::SPINE);
            for pod in 0..pods {
                join(network, leaves[(plane * pods + pod) as usize], spine, &scenario.uplink);
            }
        }
    }
    let leaves_of = |pod: u32| (0..planes).map(move |plane| (plane * pods + pod) as usize);
    let mut roles = Roles::default();
    let racks_per_pod = scenario.collectors.racks.div_ceil(pods);
    for rack in 0..scenario.collectors.racks {
        let tor = network.add_switch(format!("tor:{rack}"), class::TOR);
        for _ in 0..scenario.collectors.hosts_per_rack {
            let node = network.add_host(format!("collector:{}", roles.collectors.len()));
            join(network, tor, node, &scenario.link);
            roles.collectors.push(node);
            roles.racks.push(rack);
        }
        for leaf in leaves_of(rack / racks_per_pod) {
            join(network, leaves[leaf], tor, &scenario.uplink);
        }
    }
    roles.readouts = hosts(network, "readout", scenario.readout.hosts);
    let readouts_per_pod = scenario.readout.hosts.div_ceil(pods);
    for (readout, &node) in (0..).zip(&roles.readouts) {
        for leaf in leaves_of(readout / readouts_per_pod) {
            join(network, node, leaves[leaf], &scenario.readout.link);
        }
    }
    let first: Vec<NodeIndex> = leaves_of(0).map(|leaf| leaves[leaf]).collect();
    services(scenario, network, &mut roles, &first);
    roles
}

/// The supervisor and the loggers, joined to every one of `switches`, so that nothing of theirs passes through a rack.
fn services(scenario: &Scenario, network: &mut Network, roles: &mut Roles, switches: &[NodeIndex]) {
    if scenario.is_barrier() {
        return;
    }
    let supervisor = network.add_host("supervisor".into());
    roles.supervisor = Some(supervisor);
    roles.loggers = hosts(network, "logger", scenario.logger.hosts);
    for &switch in switches {
        join(network, supervisor, switch, &scenario.supervisor.link);
        for &logger in &roles.loggers {
            join(network, logger, switch, &scenario.logger.link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeKind, Paths, Spread};
    use fanin_scenario::LeafSpine;

    // T048: each group of 16 readouts is two of 8, one behind each core (thesis §5.1.4).
    #[test]
    fn the_thesis_network_balances_its_cores() {
        let (network, roles) = build(&Scenario::default()).unwrap();
        assert_eq!((roles.readouts.len(), roles.collectors.len()), (160, 39));
        let mut paths = Paths::new(&network).unwrap();
        let mut through = [0, 0];
        for &readout in &roles.readouts {
            let path: Vec<_> = paths.find(readout, roles.collectors[7], Spread::Flow(0)).unwrap().collect();
            assert_eq!(path.len(), 4);
            through[network.source(path[2]) as usize] += 1;
        }
        assert_eq!(through, [80, 80]);
        for &readout in &roles.readouts {
            let path = paths.find(readout, roles.supervisor.unwrap(), Spread::Flow(1)).unwrap();
            assert_eq!(path.count(), 3);
        }
    }

    #[test]
    fn planes_and_spines_share_the_flows() {
        let mut scenario = Scenario::default();
        scenario.network.topology = Topology::LeafSpine;
        scenario.network.leaf_spine = LeafSpine { planes: 4, pods: 3, spines: 2, ports: 40 };
        scenario.readout.hosts = 18;
        scenario.collectors.racks = 9;
        scenario.collectors.hosts_per_rack = 8;
        let (network, roles) = build(&scenario).unwrap();
        let switches = network.nodes.iter().filter(|node| node.kind != NodeKind::Host).count();
        assert_eq!(switches, 4 * (3 + 2) + 9);
        let mut paths = Paths::new(&network).unwrap();
        let (mut through, mut within) = (std::collections::BTreeMap::new(), 0);
        for (number, &collector) in roles.collectors.iter().enumerate() {
            let spread = Spread::Destination(number as u64);
            let path: Vec<_> = paths.find(roles.readouts[0], collector, spread).unwrap().collect();
            if path.len() == 3 {
                within += 1;
                continue;
            }
            // Readout, leaf, spine, leaf, switch of the rack, collector.
            assert_eq!(path.len(), 5);
            *through.entry(network.destination(path[1])).or_insert(0) += 1;
        }
        // A third of the racks is in the readout's own pod; the others are shared out evenly among all eight spines.
        assert_eq!((within, through.len()), (24, 8));
        assert!(through.values().all(|&count| count == 6), "{through:?}");
    }

    #[test]
    fn in_all_to_all_every_host_is_both() {
        let scenario = fanin_scenario::load("lcn15-all-to-all", &[]).unwrap().scenario;
        let (network, roles) = build(&scenario).unwrap();
        assert_eq!((roles.readouts.len(), roles.collectors.len()), (12, 144));
        // Twelve hosts, the supervisor, the logger and the switch.
        assert_eq!(network.nodes.len(), 15);
        let on = |host: NodeIndex| roles.collectors.iter().filter(|&&node| node == host).count();
        assert!(roles.readouts.iter().all(|&host| on(host) == 12));
    }

    #[test]
    fn readouts_with_many_links_use_them_all() {
        let mut scenario = Scenario::default();
        scenario.network.readouts_per_group = 0;
        scenario.readout.links_per_host = 4;
        scenario.collectors.racks = 3;
        let (network, roles) = build(&scenario).unwrap();
        let mut paths = Paths::new(&network).unwrap();
        for (spread, hashed) in [(Spread::Flow(0), true), (Spread::Destination(0), false)] {
            let mut used = std::collections::BTreeMap::new();
            for (number, &collector) in roles.collectors.iter().enumerate() {
                let spread = match spread {
                    Spread::Flow(_) => Spread::Flow(number as u64),
                    Spread::Destination(_) => Spread::Destination(number as u64),
                };
                let path: Vec<_> = paths.find(roles.readouts[3], collector, spread).unwrap().collect();
                assert_eq!(path.len(), 3);
                *used.entry(path[0]).or_insert(0) += 1;
            }
            assert_eq!(used.len(), 4);
            // Dealt out evenly by destination; about evenly by a hash.
            let (least, most) = (used.values().min().unwrap(), used.values().max().unwrap());
            assert!(if hashed { *least > 10 } else { most - least <= 1 }, "{used:?}");
        }
    }
}
