//! A scenario's hosts, switches and links as they stand on one machine.
//!
//! The shapes and names are those of the simulator's networks (`fanin-sim`, `topology`), so that records of both worlds
//! speak of the same things.

use std::net::Ipv4Addr;

use fanin_node::config::Role;
use fanin_scenario::{
    Buffering, FlowDistribution, Link, PauseMode, Scenario, Switch, Topology, WorkloadKind,
};
use fanin_units::{Duration, Rate};

use super::{Refusal, Ways};

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

impl Part {
    /// Whether it sends event data.
    pub const fn is_source(self) -> bool {
        matches!(self, Self::Sender(_) | Self::Role(Role::Readout, _))
    }

    /// Whether event data are sent to it.
    pub const fn is_collector(self) -> bool {
        matches!(self, Self::Aggregator | Self::Role(Role::Collector, _))
    }
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
    /// Its links, as places in [`Shape::wires`]; its devices `eth0`, `eth1`, … are theirs.
    pub links: Vec<usize>,
}

impl Host {
    /// The link address of one of its devices; locally administered.
    pub const fn mac(&self, link: usize) -> [u8; 6] {
        let [_, _, high, low] = self.address.octets();
        [0x02, 0xfa, 0x01, link as u8, high, low]
    }
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
    /// With a link or more each.
    pub hosts: Vec<Host>,
    /// Switches.
    pub bridges: Vec<Bridge>,
    /// Links.
    pub wires: Vec<Wire>,
    /// The switch beside the core of a hybrid, a place in [`Self::bridges`], by links of which frames go there and back.
    pub software: Option<usize>,
    /// Which way frames take.
    pub ways: Ways,
    /// What is not as the scenario says, in sentences.
    pub notes: Vec<String>,
    /// What a way through a switch of this machine takes by itself: ports delay so much less.
    pub own: Duration,
}

impl Shape {
    /// The network of a scenario.
    ///
    /// # Errors
    /// What does not run here, and what would.
    pub fn of(scenario: &Scenario) -> Result<Self, Refusal> {
        let mut shape = match scenario.network.topology {
            Topology::Star => Self::star(scenario),
            Topology::Racks => Self::racks(scenario),
            Topology::LeafSpine => Self::leaf_spine(scenario),
            Topology::Hybrid => Self::hybrid(scenario),
        };
        let rules = &scenario.core.daqring;
        let named = |host: usize| {
            let (kind, number) =
                shape.hosts[host].name.split_once(':').unwrap_or((&shape.hosts[host].name, "0"));
            (kind, number.parse().unwrap_or(0))
        };
        let ways = Ways::of(&shape, |from, to| rules.names(named(from), named(to)));
        if let Some((from, to)) = ways.torn(&shape) {
            let (from, to) = (&shape.hosts[from].name, &shape.hosts[to].name);
            let needed =
                "flows that are redirected by the port that they come in by, all or none to each destination";
            return Err(Refusal::value(
                "core.daqring.flows",
                format!("such that {from} to {to} is not redirected, but others by its port"),
                needed,
            ));
        }
        if ways.has_choice && scenario.network.flow_distribution == FlowDistribution::Ecmp {
            let needed = "\"per-destination\" where there are several ways: no switch of ours hashes flows";
            return Err(Refusal::value("network.flow_distribution", "\"ecmp\"", needed));
        }
        shape.ways = ways;
        shape.note_pauses();
        Ok(shape)
    }

    /// PAUSE frames stop switches; the kernel's virtual links know none, so that hosts go on.
    fn note_pauses(&mut self) {
        let stops = |wire: &Wire| {
            let settings = &self.bridges[wire.b].settings;
            matches!(wire.a, End::Host(host) if self.hosts[host].part.is_source())
                && settings.pause.mode != PauseMode::Off
        };
        if let Some(wire) = self.wires.iter().find(|wire| stops(wire)) {
            let section = self.bridges[wire.b].section;
            self.notes.push(format!("`{section}.pause` stops other switches, and no hosts"));
        }
    }

    fn bridge(&mut self, name: String, section: &'static str, settings: &Switch, has_uplinks: bool) -> usize {
        self.bridges.push(Bridge { name, section, settings: settings.clone(), has_uplinks });
        self.bridges.len() - 1
    }

    fn host(&mut self, name: String, part: Part) -> usize {
        let number = self.hosts.len();
        let address = Ipv4Addr::new(10, 91, (number / 250) as u8, (number % 250 + 1) as u8);
        self.hosts.push(Host { name, part, address, links: Vec::new() });
        number
    }

    fn join_host(&mut self, host: usize, bridge: usize, link: &Link) {
        self.hosts[host].links.push(self.wires.len());
        self.wires.push(Wire { a: End::Host(host), b: bridge, rate: link.rate, delay: link.delay });
    }

    /// `near` is the end that is nearer to the collectors.
    fn join(&mut self, near: usize, far: usize, link: &Link) {
        self.wires.push(Wire { a: End::Bridge(near), b: far, rate: link.rate, delay: link.delay });
    }

    fn star(scenario: &Scenario) -> Self {
        let mut shape = Self::default();
        let tor = shape.bridge("tor:0".to_owned(), "tor", &scenario.tor, true);
        let count = if scenario.is_barrier() { 1 } else { scenario.collectors_total() as usize };
        shape.collectors(scenario, count, tor);
        for readout in shape.readouts(scenario) {
            for _ in 0..scenario.readout.links_per_host {
                shape.join_host(readout, tor, &scenario.readout.link);
            }
        }
        shape.services(scenario, &[tor]);
        shape
    }

    /// The network of the thesis (§4.2.1, figure 5.3): each group of readouts is split evenly among the cores (§5.1.4).
    fn racks(scenario: &Scenario) -> Self {
        let (mut shape, network) = (Self::default(), &scenario.network);
        let cores: Vec<usize> = (0..network.cores)
            .map(|core| shape.bridge(format!("core:{core}"), "core", &scenario.core, false))
            .collect();
        for rack in 0..scenario.collectors.racks {
            let tor = shape.rack(scenario, rack);
            for &core in &cores {
                (0..network.uplinks_per_core).for_each(|_| shape.join(tor, core, &scenario.uplink));
            }
        }
        let (readouts, links) = (shape.readouts(scenario), scenario.readout.links_per_host as usize);
        let link = &scenario.readout.link;
        if network.readouts_per_group == 0 {
            // Straight to the cores, each host's links dealt out among them.
            for (index, &readout) in readouts.iter().enumerate() {
                for link_number in 0..links {
                    shape.join_host(readout, cores[(index + link_number) % cores.len()], link);
                }
            }
        }
        for (group, members) in readouts.chunks(network.readouts_per_group.max(1) as usize).enumerate() {
            if network.readouts_per_group == 0 {
                break;
            }
            for (part, members) in members.chunks(members.len().div_ceil(cores.len())).enumerate() {
                let number = group * cores.len() + part;
                shape.group(scenario, cores[part], number, members);
            }
        }
        shape.services(scenario, &cores);
        shape
    }

    /// The part of a group of readouts that is behind one core: an aggregation switch, unless it cannot drop or hold
    /// anybody up. Then it is no process, and its core has its hosts.
    fn group(&mut self, scenario: &Scenario, core: usize, number: usize, members: &[usize]) {
        let (aggregation, uplink) = (&scenario.aggregation, &scenario.uplink);
        let (mut link, links) = (scenario.readout.link.clone(), scenario.readout.links_per_host as usize);
        let most = link.rate.get().saturating_mul((members.len() * links) as u64);
        let is_ample = matches!(aggregation.buffering, Buffering::Unlimited)
            && aggregation.pause.mode == PauseMode::Off
            && most <= uplink.rate.get();
        let switch = if is_ample {
            link.delay += uplink.delay + aggregation.latency;
            let note = "aggregation switches, which neither drop nor hold anything up, are part of their core; only their \
                        delay is kept";
            if self.notes.is_empty() {
                self.notes.push(note.to_owned());
            }
            core
        } else {
            let switch = self.bridge(format!("aggregation:{number}"), "aggregation", aggregation, true);
            self.join(core, switch, uplink);
            switch
        };
        for &member in members {
            (0..links).for_each(|_| self.join_host(member, switch, &link));
        }
    }

    /// Racks behind one shallow switch, and a software switch beside it on its host ports (multi-host paper §IV.A).
    fn hybrid(scenario: &Scenario) -> Self {
        let mut shape = Self::racks(scenario);
        let settings = &scenario.network.hybrid;
        if settings.host_ports > 0
            && let Some(hardware) = shape.hardware_of("core:0")
        {
            let rings = Switch { buffering: Buffering::Daqring, ..scenario.core.clone() };
            let software = shape.bridge("software:0".to_owned(), "core", &rings, false);
            (0..settings.host_ports).for_each(|_| shape.join(hardware, software, &settings.link));
            shape.software = Some(software);
        }
        shape
    }

    /// Parallel leaf-spine planes with pods (multi-host paper §II.B, figure 2).
    fn leaf_spine(scenario: &Scenario) -> Self {
        let (mut shape, settings) = (Self::default(), &scenario.network.leaf_spine);
        let (planes, pods, spines) = (settings.planes, settings.pods.max(1), settings.spines);
        let leaves: Vec<usize> = (0..planes * pods)
            .map(|leaf| shape.bridge(format!("leaf:{leaf}"), "leaf", &scenario.leaf, true))
            .collect();
        for plane in 0..planes {
            for spine in 0..spines {
                let name = format!("spine:{}", plane * spines + spine);
                let spine = shape.bridge(name, "spine", &scenario.spine, false);
                for pod in 0..pods {
                    shape.join(leaves[(plane * pods + pod) as usize], spine, &scenario.uplink);
                }
            }
        }
        let leaves_of =
            |pod: u32| (0..planes).map(|plane| leaves[(plane * pods + pod) as usize]).collect::<Vec<_>>();
        for rack in 0..scenario.collectors.racks {
            let tor = shape.rack(scenario, rack);
            let pod = rack / scenario.collectors.racks.div_ceil(pods);
            leaves_of(pod).into_iter().for_each(|leaf| shape.join(tor, leaf, &scenario.uplink));
        }
        let per_pod = scenario.readout.hosts.div_ceil(pods);
        for (number, readout) in (0..).zip(shape.readouts(scenario)) {
            for leaf in leaves_of(number / per_pod) {
                shape.join_host(readout, leaf, &scenario.readout.link);
            }
        }
        shape.services(scenario, &leaves_of(0));
        shape
    }

    /// A rack's switch with its collectors.
    fn rack(&mut self, scenario: &Scenario, rack: u32) -> usize {
        let tor = self.bridge(format!("tor:{rack}"), "tor", &scenario.tor, true);
        let count =
            if scenario.is_barrier() { u32::from(rack == 0) } else { scenario.collectors.hosts_per_rack };
        self.collectors(scenario, count as usize, tor);
        tor
    }

    fn collectors(&mut self, scenario: &Scenario, count: usize, bridge: usize) {
        for _ in 0..count {
            let index = self.hosts.len();
            let part = if scenario.is_barrier() {
                Part::Aggregator
            } else {
                Part::Role(Role::Collector, index as u16)
            };
            let host = self.host(format!("collector:{index}"), part);
            self.join_host(host, bridge, &scenario.link);
        }
    }

    /// They are not joined to anything yet.
    fn readouts(&mut self, scenario: &Scenario) -> Vec<usize> {
        let is_barrier = scenario.is_barrier();
        let part = |index| if is_barrier { Part::Sender(index) } else { Part::Role(Role::Readout, index) };
        (0..scenario.senders() as u16)
            .map(|index| self.host(format!("readout:{index}"), part(index)))
            .collect()
    }

    /// The supervisor and the loggers have a link to every one of `bridges`.
    fn services(&mut self, scenario: &Scenario, bridges: &[usize]) {
        if scenario.is_barrier() {
            return;
        }
        let supervisor = self.host("supervisor".to_owned(), Part::Role(Role::Supervisor, 0));
        bridges.iter().for_each(|&bridge| self.join_host(supervisor, bridge, &scenario.supervisor.link));
        for index in 0..scenario.logger.hosts as u16 {
            let logger = self.host(format!("logger:{index}"), Part::Role(Role::Logger, index));
            bridges.iter().for_each(|&bridge| self.join_host(logger, bridge, &scenario.logger.link));
        }
    }

    fn hardware_of(&self, name: &str) -> Option<usize> {
        self.bridges.iter().position(|bridge| bridge.name == name)
    }

    /// The switch that a hybrid's software switch stands beside.
    pub fn hardware(&self) -> Option<usize> {
        self.software.and_then(|_| self.hardware_of("core:0"))
    }

    /// Whether a link leads to the software switch of a hybrid.
    pub fn is_host_port(&self, wire: usize) -> bool {
        self.software == Some(self.wires[wire].b)
    }

    /// The host port for frames to a host, whatever spreads the flows elsewhere: all frames of a ring pass one port.
    ///
    /// # Panics
    /// If the network is no hybrid.
    pub fn host_port_of(&self, to: usize) -> usize {
        let host_ports: Vec<usize> = (0..self.wires.len()).filter(|&wire| self.is_host_port(wire)).collect();
        host_ports[self.number_of(to) % host_ports.len()]
    }

    /// The number of a host as the simulator counts them: the supervisor, readouts, collectors, loggers; or the aggregator
    /// and its senders.
    pub fn number_of(&self, host: usize) -> usize {
        let readouts = self.hosts.iter().filter(|host| host.part.is_source()).count();
        let collectors = self.hosts.iter().filter(|host| host.part.is_collector()).count();
        match self.hosts[host].part {
            Part::Aggregator | Part::Role(Role::Supervisor, _) => 0,
            Part::Sender(index) | Part::Role(Role::Readout, index) => 1 + usize::from(index),
            Part::Role(Role::Collector | Role::Processor, index) => 1 + readouts + usize::from(index),
            Part::Role(Role::Logger, index) => 1 + readouts + collectors + usize::from(index),
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

    /// What is at the other end of a switch's link.
    pub fn other_end(&self, bridge: usize, wire: usize) -> End {
        let Wire { a, b, .. } = self.wires[wire];
        if b == bridge { a } else { End::Bridge(b) }
    }

    /// The links of a switch, in order, as places in [`Self::wires`], each with what is at its other end.
    pub fn ports_of(&self, bridge: usize) -> Vec<(usize, End)> {
        let touches = |wire: &Wire| wire.b == bridge || wire.a == End::Bridge(bridge);
        let own = self.wires.iter().enumerate().filter(|(_, wire)| touches(wire));
        own.map(|(place, _)| (place, self.other_end(bridge, place))).collect()
    }

    /// What the ports of a switch are called, in order: what they lead to, and where several lead there, a number from the
    /// second on.
    pub fn port_names(&self, bridge: usize) -> Vec<String> {
        let ports = self.ports_of(bridge);
        let same = |place: usize| ports[..place].iter().filter(|port| port.1 == ports[place].1).count();
        (0..ports.len())
            .map(|place| match (self.name_of(ports[place].1), same(place)) {
                (name, 0) => name.to_owned(),
                (name, earlier) => format!("{name}.{earlier}"),
            })
            .collect()
    }

    /// Switches that the answer of the first readout to the first collector passes, each as often as it does.
    pub fn switches_passed(&self) -> usize {
        let (from, to) = self.first_pair();
        self.ways.paths.get(&(from, to)).map_or(1, |path| path.wires.len() - 1)
    }

    /// The first readout and the first collector.
    pub fn first_pair(&self) -> (usize, usize) {
        let first =
            |is: fn(Part) -> bool| self.hosts.iter().position(|host| is(host.part)).unwrap_or_default();
        (first(Part::is_source), first(Part::is_collector))
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
    fn aggregation_switches_stand_where_they_matter() {
        let sets = ["collectors.racks=2", "collectors.hosts_per_rack=3", "readout.hosts=20"];
        let names = |shape: &Shape| -> Vec<String> {
            shape.bridges.iter().map(|bridge| bridge.name.clone()).collect()
        };
        let ample = shape("thesis-a-1000hz", &sets).unwrap();
        assert_eq!(names(&ample), ["core:0", "core:1", "tor:0", "tor:1"]);
        assert_eq!(ample.notes.len(), 1);
        assert_eq!(ample.port_names(0).iter().filter(|name| name.starts_with("readout")).count(), 10);
        let shallow = [&sets[..], &["aggregation.buffering=dedicated"]].concat();
        let shallow = shape("thesis-a-1000hz", &shallow).unwrap();
        // Two groups, of 16 and 4, each in two parts.
        assert_eq!(
            names(&shallow)[4..],
            ["aggregation:0", "aggregation:1", "aggregation:2", "aggregation:3"]
        );
        assert!(shallow.notes.is_empty());
        let two = shape("thesis-a-1000hz", &["network.uplinks_per_core=2", "readout.hosts=1"]).unwrap();
        assert_eq!(two.port_names(0)[..2], ["tor:0", "tor:0.1"]);
    }

    #[test]
    fn what_cannot_be_built_is_refused_by_its_key() {
        let refused = |preset, sets: &[&str]| shape(preset, sets).unwrap_err().to_string();
        assert!(
            refused("leaf-spine", &["network.flow_distribution=ecmp"]).contains("network.flow_distribution")
        );
        // Where every pair has one way, nothing is there to hash.
        assert!(shape("thesis-a-1000hz", &["network.flow_distribution=ecmp", "logger.hosts=0"]).is_ok());
    }
}
