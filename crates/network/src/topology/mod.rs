//! The topologies of scenarios: each is one function here, which adds nodes and links to a `NetworkBuilder`.
//!
//! `docs/CONTRIBUTING.md` ("Add a topology") lists the steps to add one.

mod builder;

use fanin_scenario::{Scenario, Topology, WorkloadKind};

pub use builder::Roles;

use self::builder::NetworkBuilder;
use crate::{Network, NetworkError, NodeIndex, SwitchRole};

/// Adds the nodes and links of a topology.
type AddTopology = fn(&mut NetworkBuilder<'_>) -> Result<(), NetworkError>;

/// Builds the network of a scenario.
///
/// # Errors
/// More than [`LINKS_MAX`](crate::LINKS_MAX) links, a link that is too slow, as [`Network::check`] says, or a switch with too few ports.
pub fn build(scenario: &Scenario) -> Result<(Network, Roles), NetworkError> {
    // The function of each topology, and the key to lower if there are too many links.
    let (add, links_key): (AddTopology, _) = match scenario.network.topology {
        Topology::Star => (star, "readout.links_per_host"),
        Topology::Racks => (racks, "network.uplinks_per_core"),
        Topology::LeafSpine => (leaf_spine, "network.leaf_spine.planes"),
        Topology::Hybrid => (hybrid, "network.uplinks_per_core"),
    };
    let mut builder = NetworkBuilder::new(scenario, links_key);
    add(&mut builder)?;
    let NetworkBuilder { network, roles, .. } = builder;
    network.check()?;
    check_ports(scenario, &network)?;
    assert!(!roles.collectors.is_empty() && !roles.readouts.is_empty(), "a network has data to carry");
    assert_eq!(roles.collectors.len(), roles.racks.len(), "each collector is in a rack");
    Ok((network, roles))
}

/// Checks that each switch has a port for each of its links, where the scenario says how many ports it has.
fn check_ports(scenario: &Scenario, network: &Network) -> Result<(), NetworkError> {
    let mut links = vec![0; network.nodes.len()];
    network.links.iter().flat_map(|link| link.ends).for_each(|node| links[node as usize] += 1);
    for (node, &links) in (0..).zip(&links) {
        let Some(kind) = network.switch(node) else { continue };
        let section = kind.section();
        let (ports, key) = match kind.settings.ports {
            0 if matches!(kind.role, SwitchRole::Leaf | SwitchRole::Spine) => {
                (scenario.network.leaf_spine.ports, "network.leaf_spine.ports".to_owned())
            }
            ports => (ports, format!("{section}.ports")),
        };
        if ports > 0 && links > ports as usize {
            let switch = network.nodes[node as usize].name.clone();
            return Err(NetworkError::SwitchPorts { switch, links, key, ports });
        }
    }
    Ok(())
}

/// Adds one switch with all hosts. In all-to-all workloads (LCN'15, evaluation) the collectors are spread over the
/// readout hosts and share their links. Otherwise each has its own host.
fn star(builder: &mut NetworkBuilder<'_>) -> Result<(), NetworkError> {
    let scenario = builder.scenario;
    let tor = builder.switch(SwitchRole::Tor, 0);
    let collectors = scenario.collectors_total();
    if scenario.workload.kind == WorkloadKind::AllToAll {
        let readouts = builder.readouts(scenario.readout.hosts);
        builder.roles.collectors = readouts.into_iter().cycle().take(collectors as usize).collect();
        builder.roles.racks = vec![0; builder.roles.collectors.len()];
    } else {
        builder.collectors(0, tor, collectors)?;
        builder.readouts(scenario.senders());
    }
    for readout in builder.roles.readouts.clone() {
        builder.join_readout(readout, tor)?;
    }
    builder.services(&[tor])
}

/// Adds the network of the thesis (§4.2.1, figure 5.3), for any number of racks and cores.
///
/// The real routers spread traffic by a hash of the addresses. As in §5.1.4 each group of readouts is split evenly
/// among the cores, and each part is joined to one core alone. The part has an aggregation switch of its own, for its
/// share of the real one. Without groups the readouts are joined to the cores, and each readout's links are spread over
/// them.
fn racks(builder: &mut NetworkBuilder<'_>) -> Result<(), NetworkError> {
    let scenario = builder.scenario;
    let settings = &scenario.network;
    let cores: Vec<NodeIndex> =
        (0..settings.cores).map(|core| builder.switch(SwitchRole::Core, core)).collect();
    for rack in 0..scenario.collectors.racks {
        let tor = builder.rack(rack)?;
        for &core in &cores {
            for _ in 0..settings.uplinks_per_core {
                builder.join(core, tor, &scenario.uplink)?;
            }
        }
    }
    let readouts = builder.readouts(scenario.senders());
    if settings.readouts_per_group == 0 {
        for (index, &readout) in readouts.iter().enumerate() {
            for link in 0..scenario.readout.links_per_host as usize {
                builder.join(readout, cores[(index + link) % cores.len()], &scenario.readout.link)?;
            }
        }
    } else {
        for (group, members) in readouts.chunks(settings.readouts_per_group as usize).enumerate() {
            let part_size = members.len().div_ceil(cores.len());
            for (part, members) in members.chunks(part_size).enumerate() {
                let number = (group * cores.len() + part) as u32;
                let switch = builder.switch(SwitchRole::Aggregation, number);
                for &readout in members {
                    builder.join_readout(readout, switch)?;
                }
                builder.join(switch, cores[part], &scenario.uplink)?;
            }
        }
    }
    builder.services(&cores)
}

/// Adds the racks, and a software switch on the host ports of the core (multi-host paper §IV.A).
fn hybrid(builder: &mut NetworkBuilder<'_>) -> Result<(), NetworkError> {
    racks(builder)?;
    let settings = &builder.scenario.network.hybrid;
    if settings.host_ports == 0 {
        return Ok(());
    }
    let core = builder.network.node_named("core:0").expect("racks have a core");
    let software = builder.switch(SwitchRole::Software, 0);
    for _ in 0..settings.host_ports {
        builder.join(core, software, &settings.link)?;
    }
    builder.roles.software = Some(software);
    Ok(())
}

/// Adds the planes (multi-host paper §II.B, figure 2). A pod's readouts and racks share a leaf switch in every plane,
/// and every leaf is joined to all spines of its plane. A host has one link into each plane.
fn leaf_spine(builder: &mut NetworkBuilder<'_>) -> Result<(), NetworkError> {
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
                builder.join(leaf(plane, pod), spine, &scenario.uplink)?;
            }
        }
    }
    let racks_per_pod = scenario.collectors.racks.div_ceil(pods);
    for rack in 0..scenario.collectors.racks {
        let tor = builder.rack(rack)?;
        for plane in 0..planes {
            builder.join(leaf(plane, rack / racks_per_pod), tor, &scenario.uplink)?;
        }
    }
    let readouts = builder.readouts(scenario.senders());
    let readouts_per_pod = scenario.senders().div_ceil(pods);
    for (number, readout) in (0..).zip(readouts) {
        for plane in 0..planes {
            builder.join(readout, leaf(plane, number / readouts_per_pod), &scenario.readout.link)?;
        }
    }
    let first: Vec<NodeIndex> = (0..planes).map(|plane| leaf(plane, 0)).collect();
    builder.services(&first)
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
            let path: Vec<_> = paths.find(readout, roles.collectors[7], Spread::Ecmp(0)).unwrap().collect();
            assert_eq!(path.len(), 4);
            through[network.source(path[2]) as usize] += 1;
        }
        assert_eq!(through, [80, 80]);
        for &readout in &roles.readouts {
            let path = paths.find(readout, roles.supervisor.unwrap(), Spread::Ecmp(1)).unwrap();
            assert_eq!(path.count(), 3);
        }
    }

    /// Every link counts, those of services too: the last number of ports that is too small is one less than needed.
    #[test]
    fn a_switch_has_a_port_for_each_link() {
        let star = [
            "network.topology=star",
            "collectors.racks=1",
            "readout.hosts=20",
            "collectors.hosts_per_rack=3",
        ];
        let pods =
            ["network.topology=leaf-spine", "network.leaf_spine.pods=2", "network.leaf_spine.planes=1"];
        // A star: 20 readouts, 3 collectors, supervisor and logger. Racks: 39 collectors and two uplinks. The core: half of
        // the ten groups' switches each, the rack, supervisor and logger. A spine: a link to each of two leaf switches.
        let cases: [(&[&str], &str, u32); 5] = [
            (&star, "tor.ports", 25),
            (&[], "tor.ports", 41),
            (&[], "core.ports", 13),
            (&[&pods[..], &["network.leaf_spine.ports=85"]].concat(), "spine.ports", 2),
            (&[&pods[..], &["network.leaf_spine.spines=3"]].concat(), "network.leaf_spine.ports", 86),
        ];
        for (sets, key, needed) in cases {
            let with = |ports: u32| {
                let mut sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
                sets.push(format!("{key}={ports}"));
                build(&fanin_scenario::load("thesis-a-1000hz", &sets).unwrap().scenario)
            };
            assert!(with(needed).is_ok(), "{key}: {:?}", with(needed).err());
            let error = with(needed - 1).unwrap_err();
            let wanted = format!("has {needed} links, and {key} = {}", needed - 1);
            assert!(error.to_string().contains(&wanted), "{error}, not: {wanted}");
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
            let spread = Spread::PerDestination(number as u64);
            let path: Vec<_> = paths.find(roles.readouts[0], collector, spread).unwrap().collect();
            if path.len() == 3 {
                within += 1;
                continue;
            }
            // Readout, leaf, spine, leaf, switch of the rack, collector.
            assert_eq!(path.len(), 5);
            *through.entry(network.destination(path[1])).or_insert(0) += 1;
        }
        // A third of the racks is in the readout's own pod; the others are spread evenly over all eight spines.
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
        for (spread, hashed) in [(Spread::Ecmp(0), true), (Spread::PerDestination(0), false)] {
            let mut used = std::collections::BTreeMap::new();
            for (number, &collector) in roles.collectors.iter().enumerate() {
                let spread = match spread {
                    Spread::Ecmp(_) => Spread::Ecmp(number as u64),
                    Spread::PerDestination(_) => Spread::PerDestination(number as u64),
                };
                let path: Vec<_> = paths.find(roles.readouts[3], collector, spread).unwrap().collect();
                assert_eq!(path.len(), 3);
                *used.entry(path[0]).or_insert(0) += 1;
            }
            assert_eq!(used.len(), 4);
            // By destination the spread is even; by a hash it is about even.
            let (least, most) = (used.values().min().unwrap(), used.values().max().unwrap());
            assert!(if hashed { *least > 10 } else { most - least <= 1 }, "{used:?}");
        }
    }
}
