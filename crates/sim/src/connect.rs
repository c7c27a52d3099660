//! Opens the connections of a workload on their routes.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use fanin_network::{Connection, ConnectionRoute, Network, Roles, find_routes};
use fanin_scenario::Scenario;

use crate::Error;
use crate::engine::Engine;

/// Opens all connections, in order. Returns false if `stop` was set meanwhile: the engine is then incomplete, not to be run.
pub(crate) fn connect(
    scenario: &Scenario,
    network: &Network,
    roles: &Roles,
    engine: &mut Engine,
    connections: &[Connection],
    stop: &AtomicBool,
) -> Result<bool, Error> {
    let mut routes = vec![[None; 2]; connections.len()];
    let add =
        |ConnectionRoute { connection, side, path }: ConnectionRoute<'_>| -> Result<ControlFlow<()>, Error> {
            if stop.load(Ordering::Relaxed) {
                return Ok(ControlFlow::Break(()));
            }
            let ring = |port| network.ring(port, &connections[connection], side);
            routes[connection][side] = Some(engine.fabric.add_route(path, ring)?);
            Ok(ControlFlow::Continue(()))
        };
    if find_routes(scenario, network, roles, connections, add)?.is_break() {
        return Ok(false);
    }
    engine.reserve_ends(2 * connections.len());
    for (connection, routes) in connections.iter().zip(routes) {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let routes = routes.map(|route| route.expect("both directions have a route"));
        engine.connect(routes, connection.hosts, connection.parallel);
        if engine.fabric.uses_pause() {
            engine.fabric.pause().add_connection(connection.carries_bulk());
        }
    }
    Ok(true)
}
