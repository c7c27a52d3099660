//! The topologies of scenarios: each is one function in one file, which adds nodes and links to a `NetworkBuilder`.
//!
//! `docs/CONTRIBUTING.md` ("Add a topology") lists the steps to add one.

mod builder;
mod hybrid;
mod leaf_spine;
mod racks;
mod star;

use fanin_scenario::{Scenario, Topology};

pub use builder::Roles;

use self::builder::NetworkBuilder;
use crate::{Network, NetworkError};

/// Builds the network of a scenario.
///
/// # Errors
/// A link that is too slow, as [`Network::check`] says.
pub fn build(scenario: &Scenario) -> Result<(Network, Roles), NetworkError> {
    let mut builder = NetworkBuilder::new(scenario);
    match scenario.network.topology {
        Topology::Star => star::build(&mut builder),
        Topology::Racks => racks::build(&mut builder),
        Topology::LeafSpine => leaf_spine::build(&mut builder),
        Topology::Hybrid => hybrid::build(&mut builder),
    }
    let NetworkBuilder { network, roles, .. } = builder;
    network.check()?;
    assert!(!roles.collectors.is_empty() && !roles.readouts.is_empty(), "a network has data to carry");
    assert_eq!(roles.collectors.len(), roles.racks.len(), "each collector is in a rack");
    Ok((network, roles))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeIndex;
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
            // Dealt out evenly by destination; about evenly by a hash.
            let (least, most) = (used.values().min().unwrap(), used.values().max().unwrap());
            assert!(if hashed { *least > 10 } else { most - least <= 1 }, "{used:?}");
        }
    }
}
