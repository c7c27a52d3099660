//! Joins the hosts of a workload: the path of each connection, and the detours of flows that rules redirect.

use std::sync::atomic::{AtomicBool, Ordering};

use fanin_scenario::{FlowDistribution, Scenario, Topology};

use crate::Error;
use crate::network::{Network, NodeIndex, NodeKind, Paths, PortIndex, Spread};
use crate::run::Wanted;
use crate::topology::Roles;
use crate::world::{Workload, World};

/// Opens all connections, in order. Returns whether it did: it is given up soon after `stop` is set, and the network is not
/// to be used then.
pub(crate) fn connect<W: Workload>(
    scenario: &Scenario,
    network: &Network,
    roles: &Roles,
    world: &mut World<W>,
    connections: &[Wanted],
    stop: &AtomicBool,
) -> Result<bool, Error> {
    let rules = match scenario.network.topology {
        Topology::Hybrid => &scenario.core.daqring,
        _ => &scenario.tor.daqring,
    };
    let any_rings = world.fabric.has_rings() || roles.software.is_some();
    let has_ring = |wanted: &Wanted, side: usize| {
        let (from, to) = (wanted.roles[side], wanted.roles[1 - side]);
        let has_one = any_rings && rules.names((from.0, from.1), (to.0, to.1));
        has_one.then_some(wanted.hosts[1 - side])
    };
    let mut paths = Paths::new(network)?;
    let mut routes = vec![[None; 2]; connections.len()];
    let mut detoured = Vec::new();
    for (number, side) in by_destination(connections, network.nodes.len()) {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let wanted = &connections[number];
        let to = wanted.nodes[1 - side];
        let spread = match scenario.network.flow_distribution {
            FlowDistribution::Ecmp => Spread::Flow(2 * number as u64 + side as u64),
            FlowDistribution::PerDestination => Spread::Destination(u64::from(wanted.hosts[1 - side])),
        };
        let from = wanted.nodes[side];
        let ring = has_ring(wanted, side);
        if from == to {
            // A host that is both asks nothing of itself: this connection carries nothing.
            routes[number][side] = Some(world.fabric.add_route(std::iter::empty(), None)?);
            continue;
        }
        match (roles.software, ring) {
            (Some(software), Some(_)) => detoured.push((software, to, number, side, spread)),
            _ => {
                let path = paths.find(from, to, spread)?;
                routes[number][side] = Some(world.fabric.add_route(path, ring)?);
            }
        }
    }
    let mut detours = Detours::new(network)?;
    for (software, to, number, side, spread) in detoured {
        let wanted = &connections[number];
        let path = detours.find(wanted.nodes[side], software, to, spread)?;
        routes[number][side] = Some(world.fabric.add_route(path.into_iter(), has_ring(wanted, side))?);
    }
    world.reserve(connections.len());
    for (wanted, routes) in connections.iter().zip(routes) {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        world.connect(routes.map(|route| route.expect("both sides are found")), wanted.hosts, [0, 0]);
    }
    Ok(true)
}

/// Both directions of all connections, by their number and the side that sends: those to one node in a row, in which paths
/// are looked for.
fn by_destination(connections: &[Wanted], nodes: usize) -> Vec<(usize, usize)> {
    let mut starts = vec![0; nodes + 1];
    for wanted in connections {
        wanted.nodes.iter().for_each(|&node| starts[node as usize + 1] += 1);
    }
    for node in 0..nodes {
        starts[node + 1] += starts[node];
    }
    let mut order = vec![(0, 0); 2 * connections.len()];
    for (number, wanted) in connections.iter().enumerate() {
        for side in 0..2 {
            let place = &mut starts[wanted.nodes[1 - side] as usize];
            order[*place] = (number, side);
            *place += 1;
        }
    }
    order
}

/// Paths that lead through a software switch beside the way.
struct Detours<'a> {
    network: &'a Network,
    there: Paths<'a>,
    on: Paths<'a>,
}

impl<'a> Detours<'a> {
    fn new(network: &'a Network) -> Result<Self, Error> {
        Ok(Self { network, there: Paths::new(network)?, on: Paths::new(network)? })
    }

    /// To the software switch, back over the same host port, and on.
    ///
    /// The host port is the destination's, whatever spreads the flows elsewhere: all frames of a ring pass one port.
    fn find(
        &mut self,
        from: NodeIndex,
        software: NodeIndex,
        to: NodeIndex,
        spread: Spread,
    ) -> Result<Vec<PortIndex>, Error> {
        let mut path: Vec<PortIndex> = self.there.find(from, software, spread)?.collect();
        let last = path.pop().expect("a path has a link");
        let hardware = self.network.source(last);
        let host_ports: Vec<PortIndex> = (0..2 * self.network.links.len() as PortIndex)
            .filter(|&port| {
                self.network.source(port) == hardware && self.network.destination(port) == software
            })
            .collect();
        let ring = match spread {
            Spread::Destination(number) => number,
            Spread::Flow(_) => u64::from(to),
        };
        let host_port = host_ports[(ring % host_ports.len() as u64) as usize];
        path.extend([host_port, host_port ^ 1]);
        path.extend(self.on.find(hardware, to, spread)?);
        debug_assert!(path.windows(2).all(|pair| {
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
                .find(roles.readouts[2], software, collector, Spread::Destination(number as u64))
                .unwrap();
            let nodes: Vec<&str> =
                path.iter().map(|&port| &*network.nodes[network.destination(port) as usize].name).collect();
            let last = format!("collector:{number}");
            assert_eq!(nodes, ["core:0", "software:0", "core:0", "tor:0", last.as_str()]);
            assert_eq!(path[1] ^ 1, path[2], "back over the same host port");
            *used.entry(path[1]).or_insert(0) += 1;
        }
        assert_eq!(used.into_values().collect::<Vec<_>>(), [10, 10, 10]);
    }
}
