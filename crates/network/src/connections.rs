//! The connections between hosts, and the numbers of hosts, connections and their ends.
//!
//! The ends of connection `k` are `2 k` and `2 k + 1`; the first end is the side that opens it.

use std::collections::HashMap;

use fanin_dataflow::Peer;
use fanin_scenario::Scenario;

use crate::{NodeIndex, Roles};

/// A TCP connection between two hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    /// The nodes of the first and the second end.
    pub nodes: [NodeIndex; 2],
    /// The numbers of the two hosts; see [`Numbering`] and [`barrier_connections`].
    pub hosts: [u32; 2],
    /// The role at each end and its index within the role, as rules for flows name them.
    pub roles: [(&'static str, u32); 2],
    /// The number among the background connections of the same two hosts, from 1 on; 0 for the system's own.
    pub parallel: u32,
}

impl Connection {
    /// Returns true if the second end sends bulk data to the first one: answers of a readout, or background traffic.
    pub fn carries_bulk(&self) -> bool {
        self.roles.map(|(role, _)| role) == ["collector", "readout"]
    }
}

/// All connections of a scenario, in order: those of its barrier workload, otherwise those of [`Numbering`]. Background
/// connections follow.
///
/// # Panics
/// If `roles` are not those of the scenario's network.
pub fn connections(scenario: &Scenario, roles: &Roles) -> Vec<Connection> {
    let mut all = match scenario.is_barrier() {
        true => barrier_connections(roles),
        false => Numbering::new(roles).connections(roles),
    };
    all.extend(background_connections(scenario, roles));
    all
}

/// The background connections, collector by collector. The first end is the collector's, and the second end sends.
///
/// # Panics
/// If `roles` are not those of the scenario's network.
pub fn background_connections(scenario: &Scenario, roles: &Roles) -> Vec<Connection> {
    let is_barrier = scenario.is_barrier();
    let numbering = (!is_barrier).then(|| Numbering::new(roles));
    let mut numbers: HashMap<[NodeIndex; 2], u32> = HashMap::new();
    let connect = |BackgroundPair { collector, readout, .. }: BackgroundPair| {
        let nodes = [roles.collectors[collector as usize], roles.readouts[readout as usize]];
        // In an all-to-all workload several collectors are on one host, and data goes both ways.
        let parallel = numbers.entry([nodes[0].min(nodes[1]), nodes[0].max(nodes[1])]).or_default();
        *parallel += 1;
        let hosts = match numbering {
            None => [0, readout + 1],
            Some(all) => {
                [Peer::Collector(collector as u16), Peer::Readout(readout as u16)].map(|peer| all.host(peer))
            }
        };
        Connection {
            nodes,
            hosts,
            roles: [("collector", collector), ("readout", readout)],
            parallel: *parallel,
        }
    };
    background_pairs(scenario, roles).map(connect).collect()
}

/// The roles at the ends of a background connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackgroundPair {
    /// The collector, whose host receives.
    pub collector: u32,
    /// The number of the connection among those to this collector.
    pub number: u32,
    /// The readout whose host sends.
    pub readout: u32,
}

/// The background connections in order.
///
/// # Panics
/// If `roles` are not those of the scenario's network.
pub fn background_pairs(scenario: &Scenario, roles: &Roles) -> impl Iterator<Item = BackgroundPair> {
    let each = scenario.background.connections;
    let all = scenario.background_connections() as u32;
    (0..all).map(move |connection| {
        let (collector, number) = (connection / each, connection % each);
        BackgroundPair { collector, number, readout: background_source(roles, each, collector, number) }
    })
}

/// The readout that is the source of background connection `number` of `connections` to a collector. Sources are spread over
/// the readouts on other hosts.
fn background_source(roles: &Roles, connections: u32, collector: u32, number: u32) -> u32 {
    let readouts = roles.readouts.len() as u64;
    let own = (0..roles.readouts.len()).find(|&readout| !roles.is_remote(collector as usize, readout));
    let (first, others) = match own {
        Some(own) => (own as u64 + 1, (readouts - 1).max(1)),
        None => (u64::from(collector), readouts),
    };
    let offset = u64::from(number) * others / u64::from(connections);
    ((first + offset) % readouts) as u32
}

/// The connections of a barrier workload: from the collector, which is host 0, to sender `s`, which is host `s + 1`.
///
/// # Panics
/// If the roles have no collector.
pub fn barrier_connections(roles: &Roles) -> Vec<Connection> {
    let collector = *roles.collectors.first().expect("a barrier workload has a collector");
    let connect = |(sender, &node): (u32, &NodeIndex)| Connection {
        nodes: [collector, node],
        hosts: [0, sender + 1],
        roles: [("collector", 0), ("readout", sender)],
        parallel: 0,
    };
    (0..).zip(&roles.readouts).map(connect).collect()
}

/// The number of a collector's host in an event-building system with `readouts` readouts.
pub(crate) const fn collector_host(readouts: u32, collector: u32) -> u32 {
    1 + readouts + collector
}

/// The numbers of hosts and connections in an event-building system.
///
/// Hosts are numbered supervisor, readouts, collectors, loggers. Connections are numbered collector by collector to all
/// readouts; then supervisor to collectors; supervisor to readouts; collectors to loggers. The first-named side has the
/// first end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbering {
    readouts: u32,
    collectors: u32,
    loggers: u32,
}

impl Numbering {
    /// Makes the numbering of a system with these hosts.
    ///
    /// # Panics
    /// If there are more than 65 535 hosts of a role, which a [`Peer`] cannot name.
    pub fn new(roles: &Roles) -> Self {
        let count = |hosts: &[NodeIndex]| {
            u32::from(u16::try_from(hosts.len()).expect("a role has at most 65 535 hosts"))
        };
        Self {
            readouts: count(&roles.readouts),
            collectors: count(&roles.collectors),
            loggers: count(&roles.loggers),
        }
    }

    /// Makes the numbering of a system with these numbers of hosts.
    pub const fn of_hosts(readouts: u32, collectors: u32, loggers: u32) -> Self {
        Self { readouts, collectors, loggers }
    }

    /// Makes the numbering of a scenario's event-building system, as [`Self::new`] does from its network.
    ///
    /// # Panics
    /// If there are more than 65 535 hosts of a role.
    pub fn of(scenario: &Scenario) -> Self {
        let count = |hosts: u64| u32::from(u16::try_from(hosts).expect("a role has at most 65 535 hosts"));
        Self {
            readouts: count(scenario.readout.hosts.into()),
            collectors: count(scenario.collectors_total()),
            loggers: count(scenario.logger.hosts.into()),
        }
    }

    /// Number of hosts.
    pub const fn hosts(self) -> u32 {
        1 + self.readouts + self.collectors + self.loggers
    }

    /// Number of connections.
    pub const fn connections_total(self) -> u32 {
        self.collectors * (self.readouts + 1 + self.loggers) + self.readouts
    }

    /// Number of connections that carry event data: answers from their second ends to their first. They have
    /// the lowest numbers.
    pub const fn bulk_connections(self) -> u32 {
        self.collectors * self.readouts
    }

    /// The number of a peer's host.
    #[inline]
    pub const fn host(self, peer: Peer) -> u32 {
        match peer {
            // The standby is not in a scenario's network.
            Peer::Supervisor | Peer::Standby => 0,
            Peer::Readout(index) => 1 + index as u32,
            Peer::Collector(index) => collector_host(self.readouts, index as u32),
            Peer::Logger(index) => 1 + self.readouts + self.collectors + index as u32,
        }
    }

    /// The peer on the host with this number.
    ///
    /// # Panics
    /// If there is no such host.
    #[inline]
    pub fn peer(self, host: u32) -> Peer {
        assert!(host < self.hosts(), "host {host} of {}", self.hosts());
        let collector_first = 1 + self.readouts;
        let logger_first = collector_first + self.collectors;
        if host == 0 {
            Peer::Supervisor
        } else if host < collector_first {
            Peer::Readout((host - 1) as u16)
        } else if host < logger_first {
            Peer::Collector((host - collector_first) as u16)
        } else {
            Peer::Logger((host - logger_first) as u16)
        }
    }

    const fn building(self, collector: u16, readout: u16) -> u32 {
        collector as u32 * self.readouts + readout as u32
    }

    const fn assigning(self, collector: u16) -> u32 {
        self.bulk_connections() + collector as u32
    }

    const fn clearing(self, readout: u16) -> u32 {
        self.assigning(0) + self.collectors + readout as u32
    }

    const fn storing(self, collector: u16, logger: u16) -> u32 {
        self.clearing(0) + self.readouts + collector as u32 * self.loggers + logger as u32
    }

    /// The number of the end that `from` has of its connection to `to`; `None` if the two have no connection.
    #[inline]
    pub const fn end_if_any(self, from: Peer, to: Peer) -> Option<u32> {
        Some(match (from, to) {
            (Peer::Collector(collector), Peer::Readout(readout)) => 2 * self.building(collector, readout),
            (Peer::Readout(readout), Peer::Collector(collector)) => 2 * self.building(collector, readout) + 1,
            (Peer::Supervisor, Peer::Collector(collector)) => 2 * self.assigning(collector),
            (Peer::Collector(collector), Peer::Supervisor) => 2 * self.assigning(collector) + 1,
            (Peer::Supervisor, Peer::Readout(readout)) => 2 * self.clearing(readout),
            (Peer::Readout(readout), Peer::Supervisor) => 2 * self.clearing(readout) + 1,
            (Peer::Collector(collector), Peer::Logger(logger)) => 2 * self.storing(collector, logger),
            (Peer::Logger(logger), Peer::Collector(collector)) => 2 * self.storing(collector, logger) + 1,
            _ => return None,
        })
    }

    /// The number of the end that `from` has of its connection to `to`.
    ///
    /// # Panics
    /// If the two have no connection.
    #[inline]
    pub fn end(self, from: Peer, to: Peer) -> u32 {
        match self.end_if_any(from, to) {
            Some(end) => end,
            None => panic!("{from} and {to} have no connection"),
        }
    }

    /// The two peers of each connection, in order: first end, second end.
    pub fn pairs(self) -> impl Iterator<Item = [Peer; 2]> {
        let (readouts, collectors, loggers) =
            (self.readouts as u16, self.collectors as u16, self.loggers as u16);
        let building = (0..collectors).flat_map(move |collector| {
            (0..readouts).map(move |readout| [Peer::Collector(collector), Peer::Readout(readout)])
        });
        let assigning = (0..collectors).map(|collector| [Peer::Supervisor, Peer::Collector(collector)]);
        let clearing = (0..readouts).map(|readout| [Peer::Supervisor, Peer::Readout(readout)]);
        let storing = (0..collectors).flat_map(move |collector| {
            (0..loggers).map(move |logger| [Peer::Collector(collector), Peer::Logger(logger)])
        });
        building.chain(assigning).chain(clearing).chain(storing)
    }

    /// The host of each end and the peer at the other end, by the end's number.
    pub fn ends(self) -> Vec<(u32, Peer)> {
        let ends = self.pairs().flat_map(|[first, second]| [(first, second), (second, first)]);
        ends.map(|(own, peer)| (self.host(own), peer)).collect()
    }

    /// All connections in order.
    ///
    /// # Panics
    /// If `roles` are not those of [`Self::new`], or have no supervisor.
    pub fn connections(self, roles: &Roles) -> Vec<Connection> {
        assert_eq!(self, Self::new(roles), "connections of another system");
        let supervisor = roles.supervisor.expect("an event-building system has a supervisor");
        let node = |peer: Peer| match peer {
            Peer::Supervisor | Peer::Standby => supervisor,
            Peer::Readout(index) => roles.readouts[usize::from(index)],
            Peer::Collector(index) => roles.collectors[usize::from(index)],
            Peer::Logger(index) => roles.loggers[usize::from(index)],
        };
        let role = |peer: Peer| match peer {
            Peer::Supervisor | Peer::Standby => ("supervisor", 0),
            Peer::Readout(index) => ("readout", u32::from(index)),
            Peer::Collector(index) => ("collector", u32::from(index)),
            Peer::Logger(index) => ("logger", u32::from(index)),
        };
        let connect = |pair: [Peer; 2]| Connection {
            nodes: pair.map(node),
            hosts: pair.map(|peer| self.host(peer)),
            roles: pair.map(role),
            parallel: 0,
        };
        self.pairs().map(connect).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ends_and_hosts_have_the_numbers_of_their_order() {
        let numbering = Numbering { readouts: 3, collectors: 2, loggers: 2 };
        let ends = numbering.ends();
        assert_eq!(ends.len() as u32, 2 * numbering.connections_total());
        for (number, &(host, to)) in ends.iter().enumerate() {
            let from = numbering.peer(host);
            assert_eq!((numbering.end(from, to), numbering.host(from)), (number as u32, host));
        }
        assert_eq!(numbering.peer(numbering.hosts() - 1), Peer::Logger(1));
        assert_eq!(numbering.end_if_any(Peer::Readout(0), Peer::Readout(1)), None);
        assert_eq!((numbering.bulk_connections(), ends[0]), (6, (4, Peer::Readout(0))));
    }

    #[test]
    fn background_connections_follow_those_of_the_system() {
        for preset in ["thesis-a-1000hz", "incast", "lcn15-all-to-all"] {
            let sets = ["background.connections=3".to_owned()];
            let scenario = fanin_scenario::load(preset, &sets).unwrap().scenario;
            let (_, roles) = crate::topology::build(&scenario).unwrap();
            let all = connections(&scenario, &roles);
            assert_eq!(all.len() as u64, scenario.connections_total(), "{preset}");
            let own = all.len() - scenario.background_connections() as usize;
            let bulk =
                if scenario.is_barrier() { own } else { Numbering::new(&roles).bulk_connections() as usize };
            for (number, one) in all.iter().enumerate() {
                assert_eq!(one.carries_bulk(), number < bulk || number >= own, "{preset} {number}");
            }
            let background = &all[own..];
            assert_eq!(background.len(), 3 * roles.collectors.len(), "{preset}");
            for one in background {
                assert_ne!(one.nodes[0], one.nodes[1], "{preset}");
                // The system has a connection of the same two hosts.
                let of_hosts = |other: &&Connection| other.hosts == one.hosts;
                let own = all[..own].iter().find(of_hosts).unwrap();
                assert_eq!(Connection { parallel: one.parallel, ..*own }, *one, "{preset}");
            }
            let name = |one: &Connection| {
                let [first, second] = one.nodes;
                (first.min(second), first.max(second), one.parallel)
            };
            let names: BTreeSet<_> = background.iter().map(name).collect();
            assert_eq!(names.len(), background.len(), "{preset}: connections of the same hosts have numbers");
            assert!(background.iter().all(|one| one.parallel > 0));
        }
    }

    #[test]
    fn connections_of_the_same_hosts_have_numbers() {
        let sets = ["workload.senders=2".to_owned(), "background.connections=5".to_owned()];
        let scenario = fanin_scenario::load("incast", &sets).unwrap().scenario;
        let (_, roles) = crate::topology::build(&scenario).unwrap();
        let names: Vec<_> =
            connections(&scenario, &roles).iter().map(|it| (it.hosts[1], it.parallel)).collect();
        assert_eq!(names, [(1, 0), (2, 0), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]);
    }

    #[test]
    fn background_sources_are_spread_over_other_hosts() {
        let roles = |preset: &str| {
            crate::topology::build(&fanin_scenario::load(preset, &[]).unwrap().scenario).unwrap().1
        };
        let rack = roles("thesis-a-1000hz");
        let of = |collector| [0, 1, 2, 3].map(|number| background_source(&rack, 4, collector, number));
        assert_eq!((of(0), of(38)), ([0, 40, 80, 120], [38, 78, 118, 158]));
        // Collector 13 is on the host of readout 1, where the second round of collectors began.
        let all = roles("lcn15-all-to-all");
        assert_eq!([0, 1, 11].map(|number| background_source(&all, 12, 13, number)), [2, 2, 0]);
        for collector in 0..144 {
            let mut sources = (0..30).map(|number| background_source(&all, 30, collector, number));
            assert!(
                sources.all(|readout| all.is_remote(collector as usize, readout as usize)),
                "{collector}"
            );
        }
    }

    #[test]
    fn a_scenario_has_the_numbers_of_its_network() {
        for preset in ["thesis-a-1000hz", "lcn15-all-to-all", "replay", "leaf-spine"] {
            let scenario = fanin_scenario::load(preset, &[]).unwrap().scenario;
            let (_, roles) = crate::topology::build(&scenario).unwrap();
            assert_eq!(Numbering::of(&scenario), Numbering::new(&roles), "{preset}");
            let total = u64::from(Numbering::of(&scenario).connections_total());
            assert_eq!(total, scenario.connections_total(), "{preset}");
        }
    }
}
