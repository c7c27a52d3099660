//! The routes of connections: the path of each direction, its rings, and the detours of redirected flows.

use std::ops::ControlFlow;

use fanin_scenario::Scenario;

use crate::topology::Roles;
use crate::{
    Connection, Network, NetworkError, NodeIndex, NodeKind, Paths, PortIndex, Spread, SwitchKind, reverse,
};

/// The route of one direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionRoute<'a> {
    /// Index of the connection.
    pub connection: usize,
    /// The sending side: 0 for the first end, 1 for the second.
    pub side: usize,
    /// The ports in order; empty if both ends are on one host.
    pub path: &'a [PortIndex],
}

/// Finds the routes of all connections, and passes each to `found`, in no particular order. Ends early when `found`
/// returns `Break`.
///
/// # Errors
/// Those of `found`, and [`NetworkError::NoPath`].
pub fn find_routes<E: From<NetworkError>>(
    scenario: &Scenario,
    network: &Network,
    roles: &Roles,
    connections: &[Connection],
    found: impl FnMut(ConnectionRoute<'_>) -> Result<ControlFlow<()>, E>,
) -> Result<ControlFlow<()>, E> {
    find(scenario, network, roles, connections, |_| true, found)
}

/// Finds the route of one direction of one connection. `side` holds the index of the connection and the sending side, 0
/// or 1. The route is empty if there is no such side.
///
/// # Errors
/// [`NetworkError::NoPath`].
pub fn find_route(
    scenario: &Scenario,
    network: &Network,
    roles: &Roles,
    connections: &[Connection],
    side: (usize, usize),
) -> Result<Vec<PortIndex>, NetworkError> {
    let mut found = Vec::new();
    let _ = find(
        scenario,
        network,
        roles,
        connections,
        |one| one == side,
        |route| {
            found = route.path.to_vec();
            Ok::<_, NetworkError>(ControlFlow::Break(()))
        },
    )?;
    Ok(found)
}

/// Finds the routes of the sides that `is_wanted` accepts. A side is given by the connection's index and 0 or 1.
fn find<E: From<NetworkError>>(
    scenario: &Scenario,
    network: &Network,
    roles: &Roles,
    connections: &[Connection],
    is_wanted: impl Fn((usize, usize)) -> bool,
    mut found: impl FnMut(ConnectionRoute<'_>) -> Result<ControlFlow<()>, E>,
) -> Result<ControlFlow<()>, E> {
    let mut paths = Paths::new(network)?;
    let mut path = Vec::new();
    let mut detoured = Vec::new();
    for (number, side) in by_destination(connections, network.nodes.len()) {
        if !is_wanted((number, side)) {
            continue;
        }
        let connection = &connections[number];
        let [from, to] = [connection.nodes[side], connection.nodes[1 - side]];
        let flow = 2 * number as u64 + side as u64;
        let spread = Spread::of(scenario.network.flow_distribution, flow, connection.hosts[1 - side]);
        path.clear();
        // With both roles on one host the connection carries no frames.
        if from != to {
            let ends = [connection.roles[side], connection.roles[1 - side]];
            if let Some(software) = roles.software.filter(|&software| network.names(software, ends)) {
                detoured.push((software, number, side, spread));
                continue;
            }
            path.extend(paths.find(from, to, spread)?);
        }
        if found(ConnectionRoute { connection: number, side, path: &path })?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    let mut detours = Detours::new(network)?;
    for (software, number, side, spread) in detoured {
        let connection = &connections[number];
        let [from, to] = [connection.nodes[side], connection.nodes[1 - side]];
        let path = detours.find(from, software, to, spread)?;
        if found(ConnectionRoute { connection: number, side, path: &path })?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

impl Network {
    /// The ring for the frames of a connection's side at a port: the number of the receiving host. `None` where the port
    /// has no rings, or its switch has no rule for the flow.
    pub fn ring(&self, port: PortIndex, connection: &Connection, side: usize) -> Option<u32> {
        let ends = [connection.roles[side], connection.roles[1 - side]];
        self.names(self.source(port), ends).then_some(connection.hosts[1 - side])
    }

    /// Returns true if a node has rings, and one of its rules names the flow of these two ends.
    pub(crate) fn names(&self, node: NodeIndex, [from, to]: [(&str, u32); 2]) -> bool {
        self.switch(node).and_then(SwitchKind::rings).is_some_and(|rings| rings.names(from, to))
    }
}

/// Both directions of all connections, by their number and the sending side. They are sorted by the receiving node, the
/// order in which [`Paths`] is fast.
fn by_destination(connections: &[Connection], nodes: usize) -> Vec<(usize, usize)> {
    let mut starts = vec![0; nodes + 1];
    for connection in connections {
        connection.nodes.iter().for_each(|&node| starts[node as usize + 1] += 1);
    }
    for node in 0..nodes {
        starts[node + 1] += starts[node];
    }
    let mut order = vec![(0, 0); 2 * connections.len()];
    for (number, connection) in connections.iter().enumerate() {
        for side in 0..2 {
            let place = &mut starts[connection.nodes[1 - side] as usize];
            order[*place] = (number, side);
            *place += 1;
        }
    }
    order
}

/// Finds the paths that pass the software switch of a hybrid.
struct Detours<'a> {
    network: &'a Network,
    there: Paths<'a>,
    on: Paths<'a>,
}

impl<'a> Detours<'a> {
    fn new(network: &'a Network) -> Result<Self, NetworkError> {
        Ok(Self { network, there: Paths::new(network)?, on: Paths::new(network)? })
    }

    /// The path to the software switch, back over the same host port, and on to the destination.
    fn find(
        &mut self,
        from: NodeIndex,
        software: NodeIndex,
        to: NodeIndex,
        spread: Spread,
    ) -> Result<Vec<PortIndex>, NetworkError> {
        let mut path: Vec<PortIndex> = self.there.find(from, software, spread)?.collect();
        let last = path.pop().expect("a path has a link");
        let hardware = self.network.source(last);
        let host_ports = self.on.host_ports(software);
        assert!(host_ports.iter().all(|&port| self.network.source(port) == hardware));
        let host_port = spread.host_port(to, &host_ports);
        path.extend([host_port, reverse(host_port)]);
        path.extend(self.on.find(hardware, to, spread)?);
        assert!(path.windows(2).all(|pair| {
            let node = self.network.destination(pair[0]);
            node == self.network.source(pair[1]) && self.network.nodes[node as usize].kind != NodeKind::Host
        }));
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_scenario::load;

    #[test]
    fn redirected_flows_share_the_host_ports_evenly() {
        let scenario = load("multihost", &[]).unwrap().scenario;
        let (network, roles) = crate::topology::build(&scenario).unwrap();
        let software = roles.software.unwrap();
        let mut detours = Detours::new(&network).unwrap();
        let mut used = std::collections::BTreeMap::new();
        for (number, &collector) in roles.collectors.iter().enumerate() {
            let path = detours
                .find(roles.readouts[2], software, collector, Spread::PerDestination(number as u64))
                .unwrap();
            let nodes: Vec<&str> =
                path.iter().map(|&port| &*network.nodes[network.destination(port) as usize].name).collect();
            let last = format!("collector:{number}");
            assert_eq!(nodes, ["core:0", "software:0", "core:0", "tor:0", last.as_str()]);
            assert_eq!(reverse(path[1]), path[2], "back over the same host port");
            *used.entry(path[1]).or_insert(0) += 1;
        }
        assert_eq!(used.into_values().collect::<Vec<_>>(), [10, 10, 10]);
    }
}
