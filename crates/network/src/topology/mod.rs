//! The topologies of scenarios: each is one function in one file, which adds nodes and links to a [`Builder`].
//!
//! `docs/CONTRIBUTING.md` ("Add a topology") lists the steps to add one.

mod hybrid;
mod leaf_spine;
mod racks;
mod star;

use fanin_scenario::{CongestionControl, Framing as FramingName, Link as LinkSettings, Scenario, Topology};

use crate::{Framing, M21, Network, NetworkError, NodeIndex, SwitchRole};

/// The nodes of a network by role.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Roles {
    /// The supervisor's host; absent where the workload needs none.
    pub supervisor: Option<NodeIndex>,
    /// Readout hosts; the senders of a barrier workload.
    pub readouts: Vec<NodeIndex>,
    /// Collector hosts, rack by rack. A barrier workload uses the first one only.
    pub collectors: Vec<NodeIndex>,
    /// The rack of each collector.
    pub racks: Vec<u32>,
    /// Logger hosts.
    pub loggers: Vec<NodeIndex>,
    /// The software switch beside the core of a hybrid, which redirected flows pass.
    pub software: Option<NodeIndex>,
}

/// Builds the network of a scenario.
///
/// # Errors
/// A link that is too slow, as [`Network::check`] says.
pub fn build(scenario: &Scenario) -> Result<(Network, Roles), NetworkError> {
    let mut builder = Builder::new(scenario);
    match scenario.network.topology {
        Topology::Star => star::build(&mut builder),
        Topology::Racks => racks::build(&mut builder),
        Topology::LeafSpine => leaf_spine::build(&mut builder),
        Topology::Hybrid => hybrid::build(&mut builder),
    }
    let Builder { network, roles, .. } = builder;
    network.check()?;
    assert!(!roles.collectors.is_empty() && !roles.readouts.is_empty(), "a network has data to carry");
    assert_eq!(roles.collectors.len(), roles.racks.len(), "each collector is in a rack");
    Ok((network, roles))
}

/// A network under construction: what topologies have in common.
struct Builder<'a> {
    scenario: &'a Scenario,
    network: Network,
    roles: Roles,
}

impl<'a> Builder<'a> {
    /// A network without nodes, with the settings of the scenario.
    fn new(scenario: &'a Scenario) -> Self {
        let transport = &scenario.transport;
        let framing = match scenario.network.framing {
            FramingName::Ethernet => Framing::ETHERNET,
            FramingName::PointToPoint => Framing::PPP,
        };
        // `mss` counts the options of a segment as payload.
        let packet_bytes = (transport.mss.get() as u32).saturating_add(Framing::HEADER_BYTES);
        let m21 = (transport.congestion_control == CongestionControl::M21tcp).then(|| M21 {
            settings: transport.m21tcp.clone(),
            // The TCP stack refuses a segment that does not fit 16 bits.
            mss: u16::try_from(transport.segment_payload().get()).unwrap_or(u16::MAX),
        });
        let network = Network {
            switches: SwitchRole::ALL.map(|role| role.resolve(scenario)).to_vec(),
            framing,
            frame_bytes: framing.frame_bytes(packet_bytes),
            m21,
            ..Network::default()
        };
        Self { scenario, network, roles: Roles::default() }
    }

    /// Adds a switch, such as `tor:3`.
    fn switch(&mut self, role: SwitchRole, number: u32) -> NodeIndex {
        self.network.add_switch(format!("{}:{number}", role.name()), role.index())
    }

    /// Joins two nodes.
    fn join(&mut self, from: NodeIndex, to: NodeIndex, link: &LinkSettings) {
        self.network.join(from, to, link.rate, link.delay);
    }

    /// Adds `count` collectors and joins them to the switch of their rack.
    fn collectors(&mut self, rack: u32, tor: NodeIndex, count: u64) {
        let link = &self.scenario.link;
        for _ in 0..count {
            let host = self.network.add_host(format!("collector:{}", self.roles.collectors.len()));
            self.join(tor, host, link);
            self.roles.collectors.push(host);
            self.roles.racks.push(rack);
        }
    }

    /// Adds the top-of-rack switch of a rack with its collectors.
    fn rack(&mut self, rack: u32) -> NodeIndex {
        let tor = self.switch(SwitchRole::Tor, rack);
        self.collectors(rack, tor, self.scenario.collectors.hosts_per_rack.into());
        tor
    }

    /// Adds `count` readouts, which have no link yet.
    fn readouts(&mut self, count: u32) -> Vec<NodeIndex> {
        self.roles.readouts = self.hosts("readout", count);
        self.roles.readouts.clone()
    }

    /// Joins a readout to a switch by all its links.
    fn join_readout(&mut self, readout: NodeIndex, switch: NodeIndex) {
        let settings = &self.scenario.readout;
        for _ in 0..settings.links_per_host {
            self.join(readout, switch, &settings.link);
        }
    }

    /// Adds the supervisor and the loggers, and joins them to each of `switches`, so that their frames pass no rack but
    /// that of the collector they go to. Barrier workloads have neither.
    fn services(&mut self, switches: &[NodeIndex]) {
        let scenario = self.scenario;
        if scenario.is_barrier() {
            return;
        }
        let supervisor = self.network.add_host("supervisor".into());
        self.roles.supervisor = Some(supervisor);
        self.roles.loggers = self.hosts("logger", scenario.logger.hosts);
        for &switch in switches {
            self.join(supervisor, switch, &scenario.supervisor.link);
            for logger in self.roles.loggers.clone() {
                self.join(logger, switch, &scenario.logger.link);
            }
        }
    }

    /// Adds hosts `name:0`, `name:1`, …
    fn hosts(&mut self, name: &str, count: u32) -> Vec<NodeIndex> {
        (0..count).map(|host| self.network.add_host(format!("{name}:{host}"))).collect()
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
