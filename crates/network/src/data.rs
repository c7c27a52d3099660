//! The paths of event data through a network: classes of links with their share of the data, and the longest path.

use std::collections::{BTreeMap, BTreeSet};

use fanin_scenario::Scenario;
use fanin_units::{Duration, Rate, Ratio};

use crate::routes::is_redirected;
use crate::{Network, NetworkError, NodeIndex, Paths, PortIndex, Roles, Spread};

/// All links between nodes of two kinds, in the direction of event data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkClass {
    /// The kinds of nodes that they lead from and to: `core->tor`.
    pub name: String,
    /// How many links there are.
    pub count: u64,
    /// Rate of each; of the slowest, where they differ.
    pub rate: Rate,
    /// Share of all event data that crosses these links, where every readout sends as much to every collector.
    pub share: Ratio,
}

/// The paths of event data through a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataPaths {
    /// Classes of links, from the readouts to the collectors. Both directions of a detour are one class.
    pub classes: Vec<LinkClass>,
    /// Propagation delay of the links of the longest path, a detour left out.
    pub link_delay: Duration,
    /// Latency of the switches of the longest path, a detour left out.
    pub switch_latency: Duration,
    /// Propagation delay of the links of its detour.
    pub detour_delay: Duration,
}

/// The links of one class while they are collected.
#[derive(Default)]
struct LinkSet {
    /// LinkSet by their port, each with the number of links that it stands for.
    ports: BTreeMap<PortIndex, u64>,
    /// Pairs of hosts whose data cross them.
    pairs: u64,
    /// The latest hop that they are.
    hop: usize,
}

impl DataPaths {
    /// Follows all shortest paths from every readout to every collector.
    ///
    /// # Errors
    /// [`NetworkError::NoPath`].
    pub fn new(scenario: &Scenario, network: &Network, roles: &Roles) -> Result<Self, NetworkError> {
        let asked = if scenario.is_barrier() { &roles.collectors[..1] } else { &roles.collectors[..] };
        let (sources, collectors) = (groups(network, &roles.readouts), groups(network, asked));
        let mut paths = Paths::new(network)?;
        let mut classes: BTreeMap<String, LinkSet> = BTreeMap::new();
        let mut pairs_total = 0;
        let mut longest = Self {
            classes: Vec::new(),
            link_delay: Duration::ZERO,
            switch_latency: Duration::ZERO,
            detour_delay: Duration::ZERO,
        };
        for (collector, askers) in &collectors {
            for (source, members) in &sources {
                // Where a host is both, it sends nothing to itself.
                let Some(&from) = members.iter().find(|&&member| member != *collector) else { continue };
                let both = members.iter().filter(|member| askers.contains(member)).count() as u64;
                let pairs = members.len() as u64 * askers.len() as u64 - both;
                pairs_total += pairs;
                let ends = [index(&roles.readouts, *source), index(&roles.collectors, *collector)];
                let software = roles.software.filter(|_| is_redirected(scenario, roles, ends));
                let detour = software.map(|software| network.host_ports(software));
                let levels = paths.levels(from, *collector)?;
                let (hops, mut hop) = (levels.len(), 0);
                for (number, level) in levels.iter().enumerate() {
                    let mut named: BTreeSet<String> = BTreeSet::new();
                    for &port in level {
                        let stands_for = match number {
                            0 => members.len() as u64,
                            _ if number + 1 == hops => askers.len() as u64,
                            _ => 1,
                        };
                        let name = format!(
                            "{}->{}",
                            if number == 0 { "readout" } else { network.kind_name(network.source(port)) },
                            if number + 1 == hops {
                                "collector"
                            } else {
                                network.kind_name(network.destination(port))
                            },
                        );
                        let class = classes.entry(name.clone()).or_default();
                        class.ports.insert(port, stands_for);
                        class.hop = class.hop.max(hop);
                        if named.insert(name) {
                            class.pairs += pairs;
                        }
                    }
                    hop += 1;
                    // The detour begins at the core that has the software switch on its host ports.
                    if let Some(ports) = &detour
                        && let Some(hardware) = ports.first().map(|&port| network.source(port))
                        && level.iter().any(|&port| network.destination(port) == hardware)
                    {
                        let class = classes.entry("core->software".to_owned()).or_default();
                        class.ports.extend(ports.iter().map(|&port| (port, 1)));
                        class.hop = class.hop.max(hop);
                        class.pairs += pairs;
                        hop += 1;
                    }
                }
                let path: Vec<PortIndex> = paths.find(from, *collector, Spread::Destination(0))?.collect();
                let link_delay = path.iter().map(|&port| network.link(port).delay).sum();
                let switch_latency = path.iter().map(|&port| network.latency(port)).sum();
                let detour_delay = detour
                    .as_ref()
                    .and_then(|ports| ports.first())
                    .map_or(Duration::ZERO, |&port| network.link(port).delay * 2);
                if link_delay + switch_latency + detour_delay
                    >= longest.link_delay + longest.switch_latency + longest.detour_delay
                {
                    longest = Self { link_delay, switch_latency, detour_delay, ..longest };
                }
            }
        }
        let mut classes: Vec<(String, LinkSet)> = classes.into_iter().collect();
        classes.sort_by_key(|(_, links)| links.hop);
        let class = |(name, links): (String, LinkSet)| LinkClass {
            name,
            count: links.ports.values().sum(),
            rate: links.ports.keys().map(|&port| network.link(port).rate).min().unwrap_or(Rate::MAX),
            share: Ratio::new(1_000_000 * links.pairs / pairs_total.max(1)),
        };
        Ok(Self { classes: classes.into_iter().map(class).collect(), ..longest })
    }
}

/// Hosts with links to the same switches, each group by its first host. A host that is named more than once counts once.
fn groups(network: &Network, hosts: &[NodeIndex]) -> Vec<(NodeIndex, BTreeSet<NodeIndex>)> {
    let wanted: BTreeSet<NodeIndex> = hosts.iter().copied().collect();
    let mut switches: BTreeMap<NodeIndex, Vec<NodeIndex>> = BTreeMap::new();
    for link in &network.links {
        for (host, switch) in [(link.ends[0], link.ends[1]), (link.ends[1], link.ends[0])] {
            if wanted.contains(&host) {
                switches.entry(host).or_default().push(switch);
            }
        }
    }
    let mut by_switches: BTreeMap<Vec<NodeIndex>, BTreeSet<NodeIndex>> = BTreeMap::new();
    for host in wanted {
        let mut own = switches.remove(&host).unwrap_or_default();
        own.sort_unstable();
        by_switches.entry(own).or_default().insert(host);
    }
    by_switches.into_values().filter_map(|members| Some((*members.first()?, members))).collect()
}

/// The index of a host within its role.
fn index(hosts: &[NodeIndex], host: NodeIndex) -> u32 {
    hosts.iter().position(|&other| other == host).expect("a host of the role") as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    fn data(preset: &str, sets: &[&str]) -> DataPaths {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let scenario = fanin_scenario::load(preset, &sets).unwrap().scenario;
        let (network, roles) = topology::build(&scenario).unwrap();
        DataPaths::new(&scenario, &network, &roles).unwrap()
    }

    fn counts(data: &DataPaths) -> Vec<(&str, u64, u64)> {
        data.classes.iter().map(|class| (&*class.name, class.count, class.share.get())).collect()
    }

    #[test]
    fn racks_have_a_class_for_every_hop() {
        let whole = 1_000_000;
        // Ten groups of 16, each in two parts, one behind each core.
        assert_eq!(
            counts(&data("thesis-a-1000hz", &[])),
            [
                ("readout->aggregation", 160, whole),
                ("aggregation->core", 20, whole),
                ("core->tor", 2, whole),
                ("tor->collector", 39, whole)
            ]
        );
    }

    #[test]
    fn data_that_stay_in_their_pod_cross_no_spine() {
        let sets = ["collectors.racks=4", "readout.hosts=12", "network.leaf_spine.planes=2"];
        let data = data("leaf-spine", &sets);
        let [leaf, spine] = ["leaf->spine", "spine->leaf"]
            .map(|name| data.classes.iter().find(|class| class.name == name).unwrap());
        assert_eq!((leaf.share, spine.share), (Ratio::new(500_000), Ratio::new(500_000)));
        assert_eq!(data.classes.first().unwrap().name, "readout->leaf");
        assert_eq!(data.classes.last().unwrap().name, "tor->collector");
    }

    #[test]
    fn hosts_that_are_both_count_once() {
        let data = data("lcn15-all-to-all", &[]);
        assert_eq!(counts(&data), [("readout->tor", 12, 1_000_000), ("tor->collector", 12, 1_000_000)]);
    }
}
