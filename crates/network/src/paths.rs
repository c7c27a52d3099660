//! The paths that frames take through a network.

use fanin_scenario::FlowDistribution;
use fanin_units::mix;

use crate::graph::{Network, NetworkError, NodeIndex, NodeKind, PortIndex, reverse};

/// Choice among equally short paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// By a hash of the flow's number, separately at each node (equal-cost multi-path).
    Ecmp(u64),
    /// By the destination's number: all flows to one destination take one path, and destinations are spread evenly.
    PerDestination(u64),
}

impl Spread {
    /// Returns the choice of the flow with this number to the host with number `host`.
    pub(crate) fn of(distribution: FlowDistribution, flow: u64, host: u32) -> Self {
        match distribution {
            FlowDistribution::Ecmp => Self::Ecmp(flow),
            FlowDistribution::PerDestination => Self::PerDestination(host.into()),
        }
    }

    /// Chooses one of `choices` equally short ways that leave a node.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn choose(&mut self, node: NodeIndex, choices: usize) -> usize {
        let choices = choices as u64;
        let chosen = match self {
            _ if choices == 1 => 0,
            Self::Ecmp(flow) => mix(*flow ^ u64::from(node).rotate_left(32)) % choices,
            // Each choice takes one digit of the number, so that the next one does not repeat it.
            Self::PerDestination(number) => std::mem::replace(number, *number / choices) % choices,
        };
        chosen as usize
    }

    /// Chooses the host port of a software switch for redirected flows to `to`. All flows to one destination take the
    /// same host port, with ECMP, too: they wait in one ring, which is at one port.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn host_port(self, to: NodeIndex, host_ports: &[PortIndex]) -> PortIndex {
        let number = match self {
            Self::PerDestination(number) => number,
            Self::Ecmp(_) => u64::from(to),
        };
        host_ports[(number % host_ports.len() as u64) as usize]
    }
}

/// Finds the paths of a network: those with the fewest links, and one of these by [`Spread`].
pub struct Paths<'a> {
    network: &'a Network,
    /// Ports that leave each node, in the order of the links.
    leaving: Adjacency,
    /// Ports of each node that lead to switches.
    to_switches: Adjacency,
    /// Hops from each switch, and from `destination` itself, to `destination`; `u32::MAX` where no path leads there.
    distance: Vec<u32>,
    destination: Option<NodeIndex>,
    /// The switches that `destination` is joined to, in ascending order, if it is a host among switches.
    attached: Vec<NodeIndex>,
    /// The ports that lead closer to `destination`, for all nodes queried so far, and the range of each node. They are
    /// kept since a core router has hundreds of ports, and is queried for every connection.
    closer: Vec<PortIndex>,
    closer_of: Vec<Option<(u32, u32)>>,
}

impl<'a> Paths<'a> {
    /// Prepares path finding.
    ///
    /// # Errors
    /// As [`Network::check`].
    pub fn new(network: &'a Network) -> Result<Self, NetworkError> {
        network.check()?;
        let leaving = Adjacency::new(network, |_| true);
        let to_switches = Adjacency::new(network, |port| !network.is_host(network.destination(port)));
        Ok(Self {
            network,
            leaving,
            to_switches,
            distance: Vec::new(),
            destination: None,
            attached: Vec::new(),
            closer: Vec::new(),
            closer_of: Vec::new(),
        })
    }

    /// Finds the ports on the path from one host to another. Query all paths to one destination in a row, and
    /// destinations on the same switches together. Each change of these switches costs a search of the network.
    ///
    /// # Errors
    /// [`NetworkError::NoPath`].
    pub fn find(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        spread: Spread,
    ) -> Result<impl Iterator<Item = PortIndex> + use<'_, 'a>, NetworkError> {
        self.distance(from, to)?;
        let (mut node, mut spread) = (from, spread);
        Ok(std::iter::from_fn(move || {
            if node == to {
                return None;
            }
            // A host with one link has no choice.
            let closer = match self.leaving.of(node) {
                only @ [_] => only,
                _ => self.closer(node),
            };
            let port = closer[spread.choose(node, closer.len())];
            node = self.network.destination(port);
            Some(port)
        }))
    }

    /// The number of links between two nodes. Fails with [`NetworkError::NoPath`] also if both are the same node.
    pub(crate) fn distance(&mut self, from: NodeIndex, to: NodeIndex) -> Result<u32, NetworkError> {
        self.turn_to(to);
        let distance = self.distance_of(from);
        if from == to || distance == u32::MAX {
            let name = |node: NodeIndex| self.network.nodes[node as usize].name.clone();
            return Err(NetworkError::NoPath { from: name(from), to: name(to) });
        }
        Ok(distance)
    }

    /// The ports of a node that lead closer to a destination.
    pub(crate) fn closer_to(&mut self, node: NodeIndex, to: NodeIndex) -> Result<&[PortIndex], NetworkError> {
        self.distance(node, to)?;
        Ok(self.closer(node))
    }

    /// The ports that lead to a software switch: its host ports.
    pub(crate) fn host_ports(&self, software: NodeIndex) -> Vec<PortIndex> {
        self.leaving.of(software).iter().map(|&port| reverse(port)).collect()
    }

    /// Returns true if one host has just one shortest path to another.
    ///
    /// # Errors
    /// [`NetworkError::NoPath`].
    pub fn is_unique(&mut self, from: NodeIndex, to: NodeIndex) -> Result<bool, NetworkError> {
        // All shortest paths share the node at which they first branch, so that any one of them shows it.
        let path: Vec<PortIndex> = self.find(from, to, Spread::PerDestination(0))?.collect();
        Ok(path.iter().all(|&port| self.closer(self.network.source(port)).len() == 1))
    }

    /// The ports of a node that lead closer to the destination.
    fn closer(&mut self, node: NodeIndex) -> &[PortIndex] {
        let (start, end) = match self.closer_of[node as usize] {
            Some(span) => span,
            None => {
                let left = self.distance_of(node);
                let start = self.closer.len() as u32;
                let is_closer =
                    |&&port: &&PortIndex| self.distance[self.network.destination(port) as usize] == left - 1;
                self.closer.extend(self.leaving.of(node).iter().filter(is_closer));
                let span = (start, self.closer.len() as u32);
                self.closer_of[node as usize] = Some(span);
                span
            }
        };
        &self.closer[start as usize..end as usize]
    }

    /// Hops from a node to the destination; `u32::MAX` where no path leads there.
    fn distance_of(&self, node: NodeIndex) -> u32 {
        let known = self.distance[node as usize];
        if known != u32::MAX || self.network.nodes[node as usize].kind != NodeKind::Host {
            return known;
        }
        let neighbours = self.leaving.of(node).iter().map(|&port| self.network.destination(port) as usize);
        neighbours.map(|neighbour| self.distance[neighbour]).min().unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Makes a node the destination. For another host on the same switches only the last hop changes.
    fn turn_to(&mut self, to: NodeIndex) {
        let Some(before) = self.destination.filter(|&before| before != to) else {
            if self.destination.is_none() {
                self.measure(to);
            }
            return;
        };
        if !self.network.is_host(to) || self.attached.is_empty() || self.switches_of(to) != self.attached {
            return self.measure(to);
        }
        self.distance[before as usize] = u32::MAX;
        self.distance[to as usize] = 0;
        for host in [before, to] {
            self.closer_of[host as usize] = None;
        }
        for &switch in &self.attached {
            self.closer_of[switch as usize] =
                Some((self.closer.len() as u32, self.closer.len() as u32 + self.last_hop(switch, to)));
            let ports = self.leaving.of(to).iter().map(|&port| reverse(port));
            self.closer.extend(ports.filter(|&port| self.network.source(port) == switch));
        }
        self.destination = Some(to);
    }

    /// Number of parallel links from a switch to a host.
    fn last_hop(&self, switch: NodeIndex, host: NodeIndex) -> u32 {
        let ports = self.leaving.of(host).iter();
        ports.filter(|&&port| self.network.destination(port) == switch).count() as u32
    }

    /// The switches that a host is joined to, in ascending order; none if it is joined to another host, too.
    fn switches_of(&self, host: NodeIndex) -> Vec<NodeIndex> {
        let ports = self.leaving.of(host).iter();
        let mut switches: Vec<NodeIndex> = ports.map(|&port| self.network.destination(port)).collect();
        if switches.iter().any(|&node| self.network.is_host(node)) {
            return Vec::new();
        }
        switches.sort_unstable();
        switches.dedup();
        switches
    }

    /// Searches breadth-first backwards from `to`. Hosts do not forward, so that only switches are searched: most
    /// nodes are hosts.
    fn measure(&mut self, to: NodeIndex) {
        self.closer.clear();
        self.closer_of.clear();
        self.closer_of.resize(self.network.nodes.len(), None);
        self.distance.clear();
        self.distance.resize(self.network.nodes.len(), u32::MAX);
        self.distance[to as usize] = 0;
        let mut reached = std::collections::VecDeque::from([to]);
        while let Some(node) = reached.pop_front() {
            for &port in self.to_switches.of(node) {
                let neighbour = self.network.destination(port) as usize;
                if self.distance[neighbour] == u32::MAX {
                    self.distance[neighbour] = self.distance[node as usize] + 1;
                    reached.push_back(neighbour as NodeIndex);
                }
            }
        }
        self.attached = if self.network.is_host(to) { self.switches_of(to) } else { Vec::new() };
        self.destination = Some(to);
    }
}

/// The ports of each node, in the order of the links.
struct Adjacency {
    /// Index of each node's first port, and the end of the last node's.
    starts: Vec<u32>,
    ports: Vec<PortIndex>,
}

impl Adjacency {
    /// Lists the `wanted` ports that leave each node.
    fn new(network: &Network, wanted: impl Fn(PortIndex) -> bool) -> Self {
        let mut starts = vec![0; network.nodes.len() + 1];
        for port in network.ports().filter(|&port| wanted(port)) {
            starts[network.source(port) as usize + 1] += 1;
        }
        for node in 1..starts.len() {
            starts[node] += starts[node - 1];
        }
        let mut next = starts.clone();
        let mut ports = vec![0; starts.last().copied().unwrap_or(0) as usize];
        for port in network.ports().filter(|&port| wanted(port)) {
            let place = &mut next[network.source(port) as usize];
            ports[*place as usize] = port;
            *place += 1;
        }
        Self { starts, ports }
    }

    fn of(&self, node: NodeIndex) -> &[PortIndex] {
        let [start, end] = [node, node + 1].map(|node| self.starts[node as usize] as usize);
        &self.ports[start..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::{Duration, Rate};

    const RATE: Rate = Rate::new(1_000_000_000);

    /// Two hosts on two leaves, joined by two spines.
    fn leaf_spine() -> Network {
        let mut network = Network::default();
        let hosts = [network.add_host("a".into()), network.add_host("b".into())];
        let leaves = [network.add_switch("l0".into(), 0), network.add_switch("l1".into(), 0)];
        let spines = [network.add_switch("s0".into(), 0), network.add_switch("s1".into(), 0)];
        for (host, leaf) in hosts.into_iter().zip(leaves) {
            network.join(host, leaf, RATE, Duration::ZERO);
            for spine in spines {
                network.join(leaf, spine, RATE, Duration::ZERO);
            }
        }
        network
    }

    #[test]
    fn finds_the_shortest_paths_and_spreads_flows() {
        let network = leaf_spine();
        let mut paths = Paths::new(&network).unwrap();
        let mut through = [0, 0];
        for flow in 0..1000 {
            let path: Vec<_> = paths.find(0, 1, Spread::Ecmp(flow)).unwrap().collect();
            assert_eq!(path.len(), 4);
            assert_eq!(network.source(path[0]), 0);
            for pair in path.windows(2) {
                assert_eq!(network.destination(pair[0]), network.source(pair[1]));
            }
            through[network.destination(path[1]) as usize - 4] += 1;
        }
        assert!(through.iter().all(|&flows| flows > 400), "{through:?}");
    }

    #[test]
    fn flows_to_one_destination_share_a_host_port() {
        let host_ports = [10, 12, 14];
        for to in 0..9 {
            let chosen = Spread::Ecmp(0).host_port(to, &host_ports);
            assert!((1..50).all(|flow| Spread::Ecmp(flow).host_port(to, &host_ports) == chosen), "{to}");
            assert_eq!(Spread::PerDestination(u64::from(to)).host_port(0, &host_ports), chosen);
        }
    }

    #[test]
    fn hosts_do_not_forward() {
        let mut network = Network::default();
        for name in ["a", "b", "c"] {
            network.add_host(name.into());
        }
        network.join(0, 1, RATE, Duration::ZERO);
        network.join(1, 2, RATE, Duration::ZERO);
        let mut paths = Paths::new(&network).unwrap();
        assert!(matches!(paths.find(0, 2, Spread::Ecmp(0)).map(|_| ()), Err(NetworkError::NoPath { .. })));
        assert!(paths.find(0, 1, Spread::Ecmp(0)).is_ok());
        network.links[1].rate = Rate::ZERO;
        assert!(matches!(network.check(), Err(NetworkError::LinkRate { link: 1, .. })));
    }
}
