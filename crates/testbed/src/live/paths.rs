//! The paths of frames between hosts, and the forwarding tables of the switches that follow from them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use fanin_network::{Connection, NodeIndex, Paths, PortIndex, find_routes};
use fanin_scenario::Scenario;

use super::network::link_ends;
use super::{LinkEnd, LiveNetwork, LiveRefusal};

/// The path from one host to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePath {
    /// Indices of links in [`LiveNetwork`], in order; a link in both directions occurs twice.
    pub links: Vec<usize>,
    /// The sending host's device.
    pub out: usize,
    /// The receiving host's device.
    pub into: usize,
    /// True if the path passes the software switch of a hybrid.
    pub is_redirected: bool,
}

/// The paths of a whole network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LivePaths {
    /// Paths by sending and receiving host.
    pub paths: BTreeMap<(usize, usize), LivePath>,
    /// Output link by switch and receiving host.
    pub next: BTreeMap<(usize, usize), usize>,
    /// True if event data have several shortest paths, so that ECMP would choose by a hash.
    pub has_choice: bool,
}

impl LivePaths {
    /// Finds the paths of all connections, both ways.
    ///
    /// A switch has one entry for each destination, but routes of the graph may differ by source. Routes of event data
    /// define the entries; other routes follow existing entries.
    ///
    /// # Errors
    /// If two hosts of a connection are not joined.
    pub(super) fn of(
        scenario: &Scenario,
        network: &LiveNetwork,
        connections: &[Connection],
    ) -> Result<Self, LiveRefusal> {
        let ends = link_ends(&network.graph);
        let host = |node: NodeIndex| match ends[node as usize] {
            LinkEnd::Host(host) => host,
            LinkEnd::Switch(_) => unreachable!("connections have hosts at their ends"),
        };
        let mut routes: Vec<(usize, bool, usize, Vec<PortIndex>)> = Vec::new();
        let mut pairs = Vec::new();
        let found = |route: fanin_network::ConnectionRoute<'_>| -> Result<ControlFlow<()>, LiveRefusal> {
            let connection = &connections[route.connection];
            let [from, to] = [connection.nodes[route.side], connection.nodes[1 - route.side]];
            let is_data = network.hosts[host(from)].part.is_source();
            routes.push((host(to), !is_data, host(from), route.path.to_vec()));
            if is_data {
                pairs.push((to, from));
            }
            Ok(ControlFlow::Continue(()))
        };
        let _ = find_routes(scenario, &network.graph, &network.roles, connections, found)?;
        routes.sort();
        pairs.sort_unstable();
        let mut shortest = Paths::new(&network.graph)?;
        let mut paths = Self::default();
        for (to, from) in pairs {
            paths.has_choice |= !shortest.is_unique(from, to)?;
        }
        for (to, _, from, route) in routes {
            let path = paths.walk(network, &ends, to, &route);
            paths.paths.insert((from, to), path);
        }
        Ok(paths)
    }

    /// Walks a route of the graph along the tables, adds the missing entries, and returns the path.
    fn walk(&mut self, network: &LiveNetwork, ends: &[LinkEnd], to: usize, route: &[PortIndex]) -> LivePath {
        let graph = &network.graph;
        let link = |port: PortIndex| port as usize / 2;
        let mut links = vec![link(route[0])];
        let mut is_redirected = false;
        for &port in &route[1..] {
            let LinkEnd::Switch(switch) = ends[graph.source(port) as usize] else {
                unreachable!("hosts do not forward")
            };
            if network.is_host_port(link(port)) {
                is_redirected = true;
                links.push(link(port));
                continue;
            }
            let entry = *self.next.entry((switch, to)).or_insert(link(port));
            if entry != link(port) {
                self.follow(network, switch, to, &mut links);
                break;
            }
            links.push(entry);
        }
        let device = |host: usize, link: usize| {
            network.hosts[host].links.iter().position(|&own| own == link).expect("a link of the host")
        };
        let LinkEnd::Host(from) = ends[graph.source(route[0]) as usize] else { unreachable!("hosts send") };
        let last = *links.last().expect("a path has links");
        LivePath { out: device(from, links[0]), into: device(to, last), links, is_redirected }
    }

    /// Follows the tables from a switch to a host. If one switch has an entry, all later ones have one: entries are made
    /// for whole paths.
    fn follow(&self, network: &LiveNetwork, mut switch: usize, to: usize, links: &mut Vec<usize>) {
        for _ in 0..=network.switches.len() {
            let link = self.next[&(switch, to)];
            links.push(link);
            match network.other_end(switch, link) {
                LinkEnd::Switch(next) => switch = next,
                LinkEnd::Host(host) => {
                    assert_eq!(host, to, "tables lead to their destination");
                    return;
                }
            }
        }
        unreachable!("tables have no loop");
    }

    /// Returns the forwarding tables of a switch, each with the link to each host, and the number of each port's table. Ports
    /// with redirected flows have separate tables.
    pub fn tables(
        &self,
        network: &LiveNetwork,
        switch: usize,
    ) -> (Vec<BTreeMap<usize, usize>>, BTreeMap<usize, usize>) {
        let plain: BTreeMap<usize, usize> = self
            .next
            .iter()
            .filter(|((at, _), _)| *at == switch)
            .map(|((_, to), link)| (*to, *link))
            .collect();
        let mut tables = vec![plain.clone()];
        let mut table_of: BTreeMap<usize, usize> =
            network.ports_of(switch).into_iter().map(|(link, _)| (link, 0)).collect();
        if network.hardware != Some(switch) {
            return (tables, table_of);
        }
        // By input: the host port for each destination.
        let mut redirected: BTreeMap<usize, BTreeMap<usize, usize>> = BTreeMap::new();
        for ((_, to), path) in self.paths.iter().filter(|(_, path)| path.is_redirected) {
            let input = path.links.windows(2).find(|pair| network.is_host_port(pair[1]));
            let input = input.expect("a redirected path comes in by another port");
            redirected.entry(input[0]).or_default().insert(*to, input[1]);
        }
        for (input, to) in redirected {
            let mut table = plain.clone();
            table.extend(to);
            let place = tables.iter().position(|other| *other == table).unwrap_or_else(|| {
                tables.push(table);
                tables.len() - 1
            });
            table_of.insert(input, place);
        }
        (tables, table_of)
    }

    /// Finds a pair of hosts without redirection that shares port and destination with a redirected pair.
    pub(super) fn wrongly_redirected(&self, network: &LiveNetwork) -> Option<(usize, usize)> {
        let (_, table_of) = self.tables(network, network.hardware?);
        let passes = |path: &LivePath| {
            let at = |&link: &usize| table_of.get(&link).copied().unwrap_or_default() > 0;
            path.links.iter().any(at)
        };
        let redirected: BTreeSet<usize> =
            self.paths.iter().filter(|(_, path)| path.is_redirected).map(|((_, to), _)| *to).collect();
        let other = self
            .paths
            .iter()
            .find(|((_, to), path)| !path.is_redirected && redirected.contains(to) && passes(path));
        other.map(|(&pair, _)| pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Part;
    use fanin_node::config::Role;

    fn network(preset: &str, sets: &[&str]) -> LiveNetwork {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        LiveNetwork::of(&fanin_scenario::load(preset, &sets).unwrap().scenario).unwrap()
    }

    /// The switches on the path from a readout to a collector.
    fn through(network: &LiveNetwork, readout: u16, collector: u16) -> Vec<String> {
        let place =
            |role, index| network.hosts.iter().position(|host| host.part == Part::Role(role, index)).unwrap();
        let pair = (place(Role::Readout, readout), place(Role::Collector, collector));
        let mut switch = network.links[network.paths.paths[&pair].links[0]].b;
        let mut names = vec![network.switches[switch].name.clone()];
        for &link in &network.paths.paths[&pair].links[1..] {
            if let LinkEnd::Switch(next) = network.other_end(switch, link) {
                switch = next;
                names.push(network.switches[switch].name.clone());
            }
        }
        names
    }

    /// Follows every pair's frames along the switches' tables alone.
    fn arrives(network: &LiveNetwork) {
        for (&(from, to), path) in &network.paths.paths {
            let mut link = path.links[0];
            let mut switch = network.links[link].b;
            for step in 0.. {
                assert!(step < 12, "{} to {} goes round", network.hosts[from].name, network.hosts[to].name);
                if network.software == Some(switch) {
                    switch = network.hardware.unwrap();
                } else {
                    let (tables, table_of) = network.paths.tables(network, switch);
                    link = tables[table_of[&link]][&to];
                    match network.other_end(switch, link) {
                        LinkEnd::Switch(next) => switch = next,
                        LinkEnd::Host(host) => {
                            assert_eq!((host, link), (to, *path.links.last().unwrap()));
                            break;
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_thesis_network_has_two_cores_and_one_way() {
        let network = network("thesis-a-1000hz", &["readout.hosts=32", "collectors.hosts_per_rack=5"]);
        // Groups of 16, half of each behind each core; the supervisor has a link to both.
        assert_eq!(through(&network, 0, 2), ["core:0", "tor:0"]);
        assert_eq!(through(&network, 8, 2), ["core:1", "tor:0"]);
        assert_eq!(through(&network, 16, 4), ["core:0", "tor:0"]);
        let supervisor = network.host_of(Part::Role(Role::Supervisor, 0)).unwrap();
        assert_eq!(supervisor.links.len(), 2);
        arrives(&network);
    }

    #[test]
    fn uplinks_and_planes_are_dealt_out_as_the_simulator_does_it() {
        let two = network(
            "thesis-a-1000hz",
            &[
                "readout.hosts=4",
                "collectors.hosts_per_rack=6",
                "network.cores=1",
                "network.uplinks_per_core=2",
            ],
        );
        arrives(&two);
        assert!(two.paths.has_choice);
        let core = two.switches.iter().position(|switch| switch.name == "core:0").unwrap();
        let used: BTreeMap<usize, usize> = (0..6).fold(BTreeMap::new(), |mut used, collector| {
            *used.entry(two.paths.next[&(core, collector)]).or_default() += 1;
            used
        });
        assert_eq!(used.into_values().collect::<Vec<_>>(), [3, 3]);

        let planes = network("leaf-spine", &[]);
        arrives(&planes);
        assert_eq!((planes.switches.len(), planes.hosts[planes.hosts.len() - 3].links.len()), (8 + 4, 2));
        // The collector's number in the simulator is 1 + 12 + 31 = 44: plane 0, spine 0; its neighbour's is 43.
        assert_eq!(through(&planes, 0, 31), ["leaf:0", "spine:0", "leaf:1", "tor:3"]);
        assert_eq!(through(&planes, 0, 30), ["leaf:2", "spine:3", "leaf:3", "tor:3"]);
        assert_eq!(through(&planes, 6, 30), ["leaf:3", "tor:3"]);
    }

    #[test]
    fn a_hybrid_redirects_answers_alone() {
        let network = network("multihost", &["collectors.hosts_per_rack=6", "readout.hosts=3"]);
        assert_eq!(through(&network, 0, 2), ["core:0", "software:0", "core:0", "tor:0"]);
        arrives(&network);
        let direct = network.paths.paths.values().filter(|path| !path.is_redirected).count();
        assert!(direct > 0 && network.paths.wrongly_redirected(&network).is_none());
    }

    #[test]
    fn hosts_with_many_links_use_them_all() {
        let network = network("replay", &["readout.links_per_host=3", "collectors.hosts_per_rack=6"]);
        arrives(&network);
        let readout = network.hosts.iter().position(|host| host.name == "readout:5").unwrap();
        let used: BTreeSet<usize> =
            (0..6).map(|collector| network.paths.paths[&(readout, collector)].out).collect();
        assert_eq!(used.len(), 3);
    }
}
