//! A network under construction, and its roles: the common parts of all topologies.

use fanin_scenario::{LinkSettings, Scenario};
use fanin_units::wire::FrameOverhead;

use crate::{LINKS_MAX, Network, NetworkError, NodeIndex, SwitchRole};

/// The nodes of a network by role.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Roles {
    /// The supervisor's host; `None` if the workload needs none.
    pub supervisor: Option<NodeIndex>,
    /// Readout hosts. In a barrier workload they are the senders.
    pub readouts: Vec<NodeIndex>,
    /// Collector hosts, rack by rack. A barrier workload uses the first one only.
    pub collectors: Vec<NodeIndex>,
    /// The rack of each collector.
    pub racks: Vec<u32>,
    /// The hosts of the loggers.
    pub loggers: Vec<NodeIndex>,
    /// The software switch of a hybrid, which redirected flows pass.
    pub software: Option<NodeIndex>,
}

impl Roles {
    /// Returns true if a collector and a readout are on different hosts. In an all-to-all workload hosts have both roles.
    ///
    /// # Panics
    /// If there is no such collector or readout.
    pub fn is_remote(&self, collector: usize, readout: usize) -> bool {
        self.collectors[collector] != self.readouts[readout]
    }
}

/// A network under construction, with the common parts of topologies as methods.
pub(super) struct NetworkBuilder<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) network: Network,
    pub(super) roles: Roles,
    /// The scenario's key to lower if there are too many links.
    links_key: &'static str,
}

impl<'a> NetworkBuilder<'a> {
    /// A network without nodes, with the settings of the scenario.
    pub(super) fn new(scenario: &'a Scenario, links_key: &'static str) -> Self {
        let transport = &scenario.transport;
        let framing = scenario.network.framing.frame_overhead();
        // `mss` counts the options of a segment as payload.
        let packet_bytes = (transport.mss.get() as u32).saturating_add(FrameOverhead::HEADER_BYTES);
        let network = Network {
            switches: SwitchRole::ALL.map(|role| role.resolve(scenario)).to_vec(),
            framing,
            frame_bytes: framing.frame_bytes(packet_bytes),
            ..Network::default()
        };
        Self { scenario, network, roles: Roles::default(), links_key }
    }

    /// Adds a switch, such as `tor:3`.
    pub(super) fn switch(&mut self, role: SwitchRole, number: u32) -> NodeIndex {
        self.network.add_switch(format!("{}:{number}", role.name()), role.index())
    }

    /// Joins two nodes. Refuses the link after the last of [`LINKS_MAX`], so that a mistake takes neither time nor memory.
    pub(super) fn join(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        link: &LinkSettings,
    ) -> Result<(), NetworkError> {
        if self.network.links.len() == LINKS_MAX {
            return Err(NetworkError::Links { key: self.links_key });
        }
        let index = self.network.join(from, to, link.rate, link.delay);
        self.network.links[index].loss = link.loss;
        Ok(())
    }

    /// Adds `count` collectors and joins them to the switch of their rack.
    pub(super) fn collectors(&mut self, rack: u32, tor: NodeIndex, count: u64) -> Result<(), NetworkError> {
        let link = &self.scenario.link;
        for _ in 0..count {
            let host = self.network.add_host(format!("collector:{}", self.roles.collectors.len()));
            self.join(tor, host, link)?;
            self.roles.collectors.push(host);
            self.roles.racks.push(rack);
        }
        Ok(())
    }

    /// Adds the top-of-rack switch of a rack with its collectors.
    pub(super) fn rack(&mut self, rack: u32) -> Result<NodeIndex, NetworkError> {
        let tor = self.switch(SwitchRole::Tor, rack);
        self.collectors(rack, tor, self.scenario.collectors.hosts_per_rack.into())?;
        Ok(tor)
    }

    /// Adds `count` readouts, which have no link yet.
    pub(super) fn readouts(&mut self, count: u32) -> Vec<NodeIndex> {
        self.roles.readouts = self.hosts("readout", count);
        self.roles.readouts.clone()
    }

    /// Joins a readout to a switch by all its links.
    pub(super) fn join_readout(&mut self, readout: NodeIndex, switch: NodeIndex) -> Result<(), NetworkError> {
        let settings = &self.scenario.readout;
        for _ in 0..settings.links_per_host {
            self.join(readout, switch, &settings.link)?;
        }
        Ok(())
    }

    /// Adds the supervisor and the loggers, and joins them to each of `switches`. Their frames then cross no rack but the
    /// one of their collector. Barrier workloads have neither.
    pub(super) fn services(&mut self, switches: &[NodeIndex]) -> Result<(), NetworkError> {
        let scenario = self.scenario;
        if scenario.is_barrier() {
            return Ok(());
        }
        let supervisor = self.network.add_host("supervisor".into());
        self.roles.supervisor = Some(supervisor);
        self.roles.loggers = self.hosts("logger", scenario.logger.hosts);
        for &switch in switches {
            self.join(supervisor, switch, &scenario.supervisor.link)?;
            for logger in self.roles.loggers.clone() {
                self.join(logger, switch, &scenario.logger.link)?;
            }
        }
        Ok(())
    }

    /// Adds hosts `name:0`, `name:1`, …
    pub(super) fn hosts(&mut self, name: &str, count: u32) -> Vec<NodeIndex> {
        (0..count).map(|host| self.network.add_host(format!("{name}:{host}"))).collect()
    }
}
