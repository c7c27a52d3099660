//! Networks of the papers, as builders of [`Network`] descriptions.

use fanin_units::{Duration, Rate};

use crate::network::{Network, NodeIndex};

/// The rate and propagation delay of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// Bits a second, each way.
    pub rate: Rate,
    /// Propagation, one way.
    pub delay: Duration,
}

/// Hosts around one switch; the first is the collector or client.
pub fn star(hosts: u32, line: Line) -> (Network, Vec<NodeIndex>) {
    let mut network = Network::default();
    let nodes: Vec<_> = (0..hosts).map(|host| network.add_host(format!("host{host}"))).collect();
    let switch = network.add_switch("switch".into(), 0);
    for &node in &nodes {
        network.join(node, switch, line.rate, line.delay);
    }
    (network, nodes)
}

/// The two-core network of the thesis, §5.1.4 and figure 5.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TwoCores {
    /// Readout hosts.
    pub readouts: u32,
    /// Readout hosts behind one aggregation switch. Half of them talk through either core.
    pub readouts_per_group: u32,
    /// Top-of-rack switches.
    pub racks: u32,
    /// Collector hosts in a rack.
    pub collectors_per_rack: u32,
    /// From a readout to its aggregation switch.
    pub readout_line: Line,
    /// From an aggregation switch to each core.
    pub aggregation_line: Line,
    /// From a core to each top-of-rack switch.
    pub uplink: Line,
    /// From a top-of-rack switch to a collector.
    pub collector_line: Line,
    /// From each core to the supervisor and the loggers.
    pub service_line: Line,
    /// Hosts that store accepted events.
    pub loggers: u32,
}

/// Buffering schemes by their place in the run's list, for the switches of [`TwoCores`].
pub mod two_cores_buffering {
    /// Aggregation switches.
    pub const AGGREGATION: usize = 0;
    /// Core routers.
    pub const CORE: usize = 1;
    /// Top-of-rack switches.
    pub const RACK: usize = 2;
}

/// The nodes of a [`TwoCores`] network by role.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Roles {
    /// The supervisor's host.
    pub supervisor: NodeIndex,
    /// Readout hosts.
    pub readouts: Vec<NodeIndex>,
    /// Collector hosts, rack by rack.
    pub collectors: Vec<NodeIndex>,
    /// The rack of each collector.
    pub racks: Vec<u32>,
    /// Logger hosts.
    pub loggers: Vec<NodeIndex>,
    /// The links from the cores to the top-of-rack switches.
    pub uplinks: Vec<usize>,
    /// The link of each collector.
    pub collector_links: Vec<usize>,
}

impl TwoCores {
    /// Builds the network.
    ///
    /// The real routers spread traffic by a hash of the addresses. As in the thesis, each readout group is split
    /// into halves, and each half is joined to one core: an aggregation switch of its own stands for its share of
    /// the real one. Services are joined to both cores, so that nothing of theirs passes through a rack.
    pub fn build(&self) -> (Network, Roles) {
        let mut network = Network::default();
        let mut roles = Roles::default();
        let cores = [0, 1].map(|core| network.add_switch(format!("core{core}"), two_cores_buffering::CORE));

        roles.supervisor = network.add_host("supervisor".into());
        roles.loggers = (0..self.loggers).map(|logger| network.add_host(format!("logger{logger}"))).collect();
        for &service in std::iter::once(&roles.supervisor).chain(&roles.loggers) {
            for core in cores {
                network.join(service, core, self.service_line.rate, self.service_line.delay);
            }
        }

        let half = self.readouts_per_group.div_ceil(2).max(1);
        let mut aggregation = cores[0];
        for readout in 0..self.readouts {
            let within = readout % self.readouts_per_group.max(1);
            if within % half == 0 {
                let (group, core) = (readout / self.readouts_per_group.max(1), within / half);
                aggregation =
                    network.add_switch(format!("aggregation{group}-{core}"), two_cores_buffering::AGGREGATION);
                let line = self.aggregation_line;
                network.join(cores[core as usize % 2], aggregation, line.rate, line.delay);
            }
            let node = network.add_host(format!("readout{readout}"));
            network.join(node, aggregation, self.readout_line.rate, self.readout_line.delay);
            roles.readouts.push(node);
        }

        for rack in 0..self.racks {
            let switch = network.add_switch(format!("tor{rack}"), two_cores_buffering::RACK);
            for core in cores {
                roles.uplinks.push(network.join(core, switch, self.uplink.rate, self.uplink.delay));
            }
            for place in 0..self.collectors_per_rack {
                let node = network.add_host(format!("collector{rack}-{place}"));
                let line = self.collector_line;
                roles.collector_links.push(network.join(switch, node, line.rate, line.delay));
                roles.collectors.push(node);
                roles.racks.push(rack);
            }
        }
        (network, roles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Paths;

    const GIGABIT: Line = Line { rate: Rate::new(1_000_000_000), delay: Duration::from_micros(1) };
    const TEN: Line = Line { rate: Rate::new(10_000_000_000), delay: Duration::from_micros(1) };

    #[test]
    fn the_thesis_network_balances_its_cores() {
        let (network, roles) = TwoCores {
            readouts: 160,
            readouts_per_group: 16,
            racks: 1,
            collectors_per_rack: 39,
            readout_line: GIGABIT,
            aggregation_line: TEN,
            uplink: TEN,
            collector_line: GIGABIT,
            service_line: TEN,
            loggers: 1,
        }
        .build();
        assert_eq!((roles.readouts.len(), roles.collectors.len(), roles.uplinks.len()), (160, 39, 2));
        let mut paths = Paths::new(&network).unwrap();
        let mut through = [0, 0];
        for &readout in &roles.readouts {
            let path: Vec<_> = paths.find(readout, roles.collectors[7], 0).unwrap().collect();
            assert_eq!(path.len(), 4);
            through[network.source(path[2]) as usize] += 1;
        }
        assert_eq!(through, [80, 80]);
        for &readout in &roles.readouts {
            assert_eq!(paths.find(readout, roles.supervisor, 0).unwrap().count(), 3);
        }
    }
}
