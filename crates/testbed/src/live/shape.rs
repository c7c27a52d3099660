//! A scenario's hosts, switches and links as they stand on one machine.
//!
//! The shapes and names are those of the simulator's networks (`fanin-sim`, `topology`), so that records of both worlds
//! speak of the same things.

use std::net::Ipv4Addr;

use fanin_node::config::Role;
use fanin_scenario::{Buffering, Link, PauseMode, Scenario, Switch, Topology, WorkloadKind};
use fanin_units::{Duration, Rate};

use super::Refusal;

/// What a host does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// A process of an event-building system; processors live with their collector.
    Role(Role, u16),
    /// Answers an aggregator.
    Sender(u16),
    /// Asks all senders at once.
    Aggregator,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// As the simulator calls it: `readout:3`.
    pub name: String,
    /// What it does.
    pub part: Part,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its link address.
    pub mac: [u8; 6],
}

/// A switch.
#[derive(Debug, Clone, PartialEq)]
pub struct Bridge {
    /// As the simulator calls it: `tor:0`.
    pub name: String,
    /// The scenario's section that describes it.
    pub section: &'static str,
    /// That section.
    pub settings: Switch,
    /// Whether links to other switches are uplinks, with memory of their own.
    pub has_uplinks: bool,
}

/// An end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A place in [`Shape::hosts`].
    Host(usize),
    /// A place in [`Shape::bridges`].
    Bridge(usize),
}

/// A full-duplex link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wire {
    /// The end that is nearer to the collectors, always a switch or a host on one.
    pub a: End,
    /// The other end, always a switch.
    pub b: usize,
    /// Each way.
    pub rate: Rate,
    /// Each way.
    pub delay: Duration,
}

/// Hosts, switches, links.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shape {
    /// Each has one link.
    pub hosts: Vec<Host>,
    /// Joined to a tree.
    pub bridges: Vec<Bridge>,
    /// Hosts' links come first, in the order of [`Self::hosts`].
    pub wires: Vec<Wire>,
    /// What is not as the scenario says, in sentences.
    pub notes: Vec<String>,
}

impl Shape {
    /// The network of a scenario.
    ///
    /// # Errors
    /// What does not run here, and what would.
    pub fn of(scenario: &Scenario) -> Result<Self, Refusal> {
        let one = |key: &'static str, got: u32| {
            if got == 1 {
                return Ok(());
            }
            Err(Refusal::value(key, got, "1, the live system's networks are trees"))
        };
        if scenario.readout.links_per_host != 1 {
            one("readout.links_per_host", scenario.readout.links_per_host)?;
        }
        match scenario.network.topology {
            Topology::Star => Ok(Self::star(scenario)),
            Topology::Racks => {
                one("network.cores", scenario.network.cores)?;
                one("network.uplinks_per_core", scenario.network.uplinks_per_core)?;
                Self::racks(scenario)
            }
            Topology::LeafSpine | Topology::Hybrid => {
                Err(Refusal::value("network.topology", "this", "\"star\" or \"racks\" on one machine"))
            }
        }
    }

    fn bridge(&mut self, name: String, section: &'static str, settings: &Switch, has_uplinks: bool) -> usize {
        self.bridges.push(Bridge { name, section, settings: settings.clone(), has_uplinks });
        self.bridges.len() - 1
    }

    fn host(&mut self, name: String, part: Part, bridge: usize, link: &Link) {
        let number = self.hosts.len() as u16;
        let [high, low] = (number / 250, number % 250 + 1).into();
        let (address, [above, below]) = (Ipv4Addr::new(10, 91, high as u8, low as u8), number.to_be_bytes());
        // Locally administered.
        let mac = [0x02, 0xfa, 0x01, 0x01, above, below];
        let wire = Wire { a: End::Host(self.hosts.len()), b: bridge, rate: link.rate, delay: link.delay };
        self.hosts.push(Host { name, part, address, mac });
        self.wires.push(wire);
    }

    fn star(scenario: &Scenario) -> Self {
        let mut shape = Self::default();
        let tor = shape.bridge("tor:0".to_owned(), "tor", &scenario.tor, true);
        shape.collectors(scenario, |_| tor);
        shape.readouts(scenario, tor, &scenario.readout.link);
        shape.services(scenario, tor);
        shape
    }

    fn racks(scenario: &Scenario) -> Result<Self, Refusal> {
        let mut shape = Self::default();
        let racks = scenario.collectors.racks as usize;
        for rack in 0..racks {
            shape.bridge(format!("tor:{rack}"), "tor", &scenario.tor, true);
        }
        let core = shape.bridge("core:0".to_owned(), "core", &scenario.core, false);
        let hosts = scenario.collectors.hosts_per_rack as usize;
        shape.collectors(scenario, |collector| collector / hosts);
        let mut link = scenario.readout.link.clone();
        if scenario.network.readouts_per_group > 0 {
            let aggregation = &scenario.aggregation;
            if aggregation.buffering != Buffering::Unlimited || aggregation.pause.mode != PauseMode::Off {
                return Err(Refusal::value(
                    "network.readouts_per_group",
                    scenario.network.readouts_per_group,
                    "0, unless `aggregation.buffering` is \"unlimited\": aggregation switches are no processes of \
                     their own here",
                ));
            }
            link.delay += scenario.uplink.delay + aggregation.latency;
            shape.notes.push(
                "the aggregation switches, which never drop, are part of the core; only their delay is kept"
                    .to_owned(),
            );
        }
        shape.readouts(scenario, core, &link);
        shape.services(scenario, core);
        for rack in 0..racks {
            let Link { rate, delay } = scenario.uplink;
            shape.wires.push(Wire { a: End::Bridge(rack), b: core, rate, delay });
        }
        Ok(shape)
    }

    fn collectors(&mut self, scenario: &Scenario, bridge: impl Fn(usize) -> usize) {
        let count = if scenario.is_barrier() { 1 } else { scenario.collectors_total() as usize };
        for index in 0..count {
            let part = if scenario.is_barrier() {
                Part::Aggregator
            } else {
                Part::Role(Role::Collector, index as u16)
            };
            self.host(format!("collector:{index}"), part, bridge(index), &scenario.link);
        }
    }

    fn readouts(&mut self, scenario: &Scenario, bridge: usize, link: &Link) {
        for index in 0..scenario.senders() as u16 {
            let part =
                if scenario.is_barrier() { Part::Sender(index) } else { Part::Role(Role::Readout, index) };
            self.host(format!("readout:{index}"), part, bridge, link);
        }
    }

    fn services(&mut self, scenario: &Scenario, bridge: usize) {
        if scenario.is_barrier() {
            return;
        }
        let supervisor = Part::Role(Role::Supervisor, 0);
        self.host("supervisor".to_owned(), supervisor, bridge, &scenario.supervisor.link);
        for index in 0..scenario.logger.hosts as u16 {
            let part = Part::Role(Role::Logger, index);
            self.host(format!("logger:{index}"), part, bridge, &scenario.logger.link);
        }
    }

    /// The host with a part.
    pub fn host_of(&self, part: Part) -> Option<&Host> {
        self.hosts.iter().find(|host| host.part == part)
    }

    /// The name of a link's end.
    pub fn name_of(&self, end: End) -> &str {
        match end {
            End::Host(host) => &self.hosts[host].name,
            End::Bridge(bridge) => &self.bridges[bridge].name,
        }
    }

    /// The links of a switch, in order, each with what is at its other end.
    pub fn ports_of(&self, bridge: usize) -> Vec<(&Wire, End)> {
        let other = |wire: &Wire| {
            if wire.b == bridge {
                Some(wire.a)
            } else {
                (wire.a == End::Bridge(bridge)).then_some(End::Bridge(wire.b))
            }
        };
        self.wires.iter().filter_map(|wire| other(wire).map(|end| (wire, end))).collect()
    }

    /// The hosts behind an end, as a switch sees them: in a tree, all that are not on its own side.
    pub fn behind(&self, bridge: usize, end: End) -> Vec<usize> {
        let mut found = Vec::new();
        let mut open = vec![(bridge, end)];
        while let Some((from, end)) = open.pop() {
            match end {
                End::Host(host) => found.push(host),
                End::Bridge(next) => {
                    let others = self.ports_of(next).into_iter().map(|(_, other)| other);
                    open.extend(
                        others.filter(|&other| other != End::Bridge(from)).map(|other| (next, other)),
                    );
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// The hosts that a host exchanges frames with.
    pub fn peers_of(&self, host: usize) -> Vec<usize> {
        let talks = |one: Part, other: Part| match (one, other) {
            (Part::Aggregator, Part::Sender(_)) => true,
            (Part::Role(Role::Collector, _), Part::Role(other, _)) => other != Role::Collector,
            (Part::Role(Role::Supervisor, _), Part::Role(other, _)) => other == Role::Readout,
            _ => false,
        };
        let own = self.hosts[host].part;
        let peers = self.hosts.iter().enumerate();
        peers
            .filter(|(_, other)| talks(own, other.part) || talks(other.part, own))
            .map(|(place, _)| place)
            .collect()
    }

    /// The scenario's kinds of work that have processes.
    ///
    /// # Errors
    /// For the others.
    pub fn check_work(scenario: &Scenario) -> Result<(), Refusal> {
        match scenario.workload.kind {
            WorkloadKind::EventBuilding | WorkloadKind::FixedFragment | WorkloadKind::FixedBlock => Ok(()),
            WorkloadKind::Push | WorkloadKind::AllToAll => Err(Refusal::value(
                "workload.kind",
                "this",
                "\"event-building\", \"fixed-fragment\" or \"fixed-block\" for the live system",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(preset: &str, sets: &[&str]) -> Result<Shape, Refusal> {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        Shape::of(&fanin_scenario::load(preset, &sets).unwrap().scenario)
    }

    #[test]
    fn a_star_has_a_port_for_every_host() {
        let shape = shape("replay", &[]).unwrap();
        assert_eq!((shape.hosts.len(), shape.bridges.len()), (4 + 24 + 1 + 2, 1));
        assert_eq!(shape.ports_of(0).len(), shape.hosts.len());
        let collector = shape.host_of(Part::Role(Role::Collector, 3)).unwrap();
        assert_eq!(
            (collector.name.as_str(), collector.address),
            ("collector:3", Ipv4Addr::new(10, 91, 0, 4))
        );
        // Collectors talk to everybody but each other; loggers to collectors only.
        assert_eq!(shape.peers_of(0).len(), 27);
        assert_eq!(shape.peers_of(shape.hosts.len() - 1), [0, 1, 2, 3]);
    }

    #[test]
    fn switches_behind_switches_know_who_is_behind_them() {
        let sets =
            ["network.cores=1", "collectors.racks=2", "collectors.hosts_per_rack=3", "readout.hosts=5"];
        let shape = shape("thesis-a-1000hz", &sets).unwrap();
        assert_eq!(
            shape.bridges.iter().map(|bridge| bridge.name.as_str()).collect::<Vec<_>>(),
            ["tor:0", "tor:1", "core:0"]
        );
        let uplink = shape.ports_of(1).pop().unwrap().1;
        assert_eq!(uplink, End::Bridge(2));
        // All but the rack's own three.
        assert_eq!(shape.behind(1, uplink), [0, 1, 2, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(shape.behind(2, End::Bridge(0)), [0, 1, 2]);
        assert_eq!(shape.notes.len(), 1);
    }

    #[test]
    fn what_cannot_be_built_is_refused_by_its_key() {
        let refused = |preset, sets: &[&str]| shape(preset, sets).unwrap_err().to_string();
        assert!(refused("thesis-a-1000hz", &[]).contains("`network.cores` is 2"));
        assert!(refused("leaf-spine", &[]).contains("network.topology"));
        assert!(refused("replay", &["readout.links_per_host=2"]).contains("readout.links_per_host"));
    }
}
