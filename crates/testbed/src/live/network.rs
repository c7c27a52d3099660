//! The network of a scenario, mapped onto this machine: hosts and switches become namespaces, links become veth pairs.
//!
//! [`fanin_network`] defines hosts, switches, links and paths. This module adds addresses and devices, and leaves out nodes
//! that need no process.

use std::net::Ipv4Addr;

use fanin_dataflow::Peer;
use fanin_network::{
    Collection, Connection, DataPaths, FrameOverhead, Network, NodeIndex, Roles, SwitchRole, connections,
    topology,
};
use fanin_node::barrier::BarrierRole;
use fanin_node::config::Role;
use fanin_scenario::{
    Buffering, FlowDistribution, PauseMode, Scenario, StepPart, SwitchSettings, WorkloadKind,
};
use fanin_units::{Bytes, Duration, Rate, Ratio};

use super::calibrate::answer_payload;
use super::{LivePaths, LiveRefusal};

/// The task of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// A process of an event-building system; processors live with their collector.
    Role(Role, u16),
    /// A process of a barrier workload.
    Barrier(BarrierRole),
}

impl Part {
    /// Returns true if the host sends event data.
    pub const fn is_source(self) -> bool {
        matches!(self, Self::Barrier(BarrierRole::Sender(_)) | Self::Role(Role::Readout, _))
    }

    /// Returns true if the host receives event data.
    pub const fn is_collector(self) -> bool {
        matches!(self, Self::Barrier(BarrierRole::Aggregator) | Self::Role(Role::Collector, _))
    }
}

/// A host: a namespace with a device for each link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveHost {
    /// The host's name in the graph, such as `readout:3`.
    pub name: String,
    /// The role that runs on the host.
    pub part: Part,
    /// IP address of the host.
    pub address: Ipv4Addr,
    /// The host's links, as indices of the links of the [`LiveNetwork`]; the devices `eth0`, `eth1`, … are their ends.
    pub links: Vec<usize>,
}

impl LiveHost {
    /// Returns the link address of the host's device with this number; locally administered.
    pub const fn mac(&self, device: usize) -> [u8; 6] {
        let [_, _, high, low] = self.address.octets();
        [0x02, 0xfa, 0x01, device as u8, high, low]
    }
}

/// A switch: a namespace with a software switch.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveSwitch {
    /// The switch's name in the graph, such as `tor:0`.
    pub name: String,
    /// The section of the scenario that describes the switch.
    pub section: &'static str,
    /// The settings of that section.
    pub settings: SwitchSettings,
}

/// An end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkEnd {
    /// An index of [`LiveNetwork::hosts`].
    Host(usize),
    /// An index of [`LiveNetwork::switches`].
    Switch(usize),
}

/// A full-duplex link: a veth pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveLink {
    /// One end: a host, or a switch.
    pub a: LinkEnd,
    /// The other end: a switch.
    pub b: usize,
    /// Bits a second, each way.
    pub rate: Rate,
    /// Propagation delay, each way.
    pub delay: Duration,
    /// Share of the frames that are lost at random, each way.
    pub loss: Ratio,
}

/// The network of a scenario, mapped onto this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveNetwork {
    /// The graph of the mapped network. Its links have the indices of [`Self::links`].
    pub(crate) graph: Network,
    /// The nodes of the graph by role.
    pub(crate) roles: Roles,
    /// Hosts, in the order of their nodes.
    pub hosts: Vec<LiveHost>,
    /// Switches, in the order of their nodes.
    pub switches: Vec<LiveSwitch>,
    /// All links of the network.
    pub(crate) links: Vec<LiveLink>,
    /// The software switch of a hybrid, as an index of [`Self::switches`].
    pub(crate) software: Option<usize>,
    /// The core that has the software switch on its host ports.
    pub(crate) hardware: Option<usize>,
    /// The paths between hosts, and the forwarding tables of the switches.
    pub(crate) paths: LivePaths,
    /// Differences from the scenario, in sentences.
    pub notes: Vec<String>,
    /// The delay of a switch of this machine, by which the delays of ports are reduced.
    pub(crate) own: Duration,
}

impl LiveNetwork {
    /// Maps the network of a scenario.
    ///
    /// # Errors
    /// An unsupported setting, with a supported value.
    pub fn of(scenario: &Scenario) -> Result<Self, LiveRefusal> {
        Self::check_work(scenario)?;
        let (whole, whole_roles) = topology::build(scenario)?;
        let reduced = Reduced::of(scenario, &whole, &whole_roles);
        let Reduced { graph, roles, has_absorbed } = reduced;
        let connections = connections(scenario, &roles);
        let mut live = Self::map(scenario, graph, roles);
        if has_absorbed {
            live.notes.push(
                "aggregation switches, which neither drop nor hold anything up, are part of their core; only their \
                 delay is kept"
                    .to_owned(),
            );
        }
        live.find_paths(scenario, &connections)?;
        live.note_pauses();
        Ok(live)
    }

    /// Assigns a host or switch to each node of the graph, and ends to each link.
    fn map(scenario: &Scenario, graph: Network, roles: Roles) -> Self {
        let (mut hosts, mut switches, ends) = (Vec::new(), Vec::new(), link_ends(&graph));
        for (node, name) in (0..).zip(graph.nodes.iter().map(|node| node.name.clone())) {
            if let Some(kind) = graph.switch(node) {
                switches.push(LiveSwitch { name, section: kind.section(), settings: kind.settings.clone() });
            } else {
                let number = hosts.len();
                let part = part(scenario, &roles, node);
                let address = Ipv4Addr::new(10, 91, (number / 250) as u8, (number % 250 + 1) as u8);
                hosts.push(LiveHost { name, part, address, links: Vec::new() });
            }
        }
        let mut links = Vec::with_capacity(graph.links.len());
        for (index, link) in graph.links.iter().enumerate() {
            let (a, b) = match link.ends.map(|node| ends[node as usize]) {
                [a, LinkEnd::Switch(b)] => (a, b),
                [LinkEnd::Switch(b), a] => (a, b),
                [LinkEnd::Host(_), LinkEnd::Host(_)] => unreachable!("no topology joins two hosts"),
            };
            if let LinkEnd::Host(host) = a {
                hosts[host].links.push(index);
            }
            links.push(LiveLink { a, b, rate: link.rate, delay: link.delay, loss: link.loss });
        }
        let switch_of = |node: NodeIndex| match ends[node as usize] {
            LinkEnd::Switch(switch) => Some(switch),
            LinkEnd::Host(_) => None,
        };
        let software = roles.software.and_then(switch_of);
        let hardware = software
            .and_then(|software| {
                links.iter().find(|link| link.b == software || link.a == LinkEnd::Switch(software))
            })
            .map(|link| if Some(link.b) == software { link.a } else { LinkEnd::Switch(link.b) });
        let hardware = hardware.and_then(|end| match end {
            LinkEnd::Switch(switch) => Some(switch),
            LinkEnd::Host(_) => None,
        });
        assert_eq!(software.is_some(), hardware.is_some(), "a software switch is on host ports of a core");
        let (paths, notes, own) = (LivePaths::default(), Vec::new(), Duration::ZERO);
        Self { graph, roles, hosts, switches, links, software, hardware, paths, notes, own }
    }

    /// Finds the paths of all connections; refuses paths that the switches of this machine do not support.
    fn find_paths(&mut self, scenario: &Scenario, connections: &[Connection]) -> Result<(), LiveRefusal> {
        let paths = LivePaths::of(scenario, self, connections)?;
        if let Some((from, to)) = paths.wrongly_redirected(self) {
            let (from, to) = (&self.hosts[from].name, &self.hosts[to].name);
            let needed = "flows that are redirected by their input port, all or none to each destination";
            return Err(LiveRefusal::value(
                "core.daqring.flows",
                format!("such that {from} to {to} is not redirected, but others by its port"),
                needed,
            ));
        }
        if paths.has_choice && scenario.network.flow_distribution == FlowDistribution::Ecmp {
            let needed =
                "\"per-destination\" where there are several paths: the software switch does not hash flows";
            return Err(LiveRefusal::value("network.flow_distribution", "\"ecmp\"", needed));
        }
        self.paths = paths;
        Ok(())
    }

    /// Notes that PAUSE frames stop only switches: the kernel's virtual links ignore them, so that hosts keep sending.
    fn note_pauses(&mut self) {
        let stops = |link: &LiveLink| {
            let settings = &self.switches[link.b].settings;
            matches!(link.a, LinkEnd::Host(host) if self.hosts[host].part.is_source())
                && settings.pause.mode != PauseMode::Off
        };
        if let Some(link) = self.links.iter().find(|link| stops(link)) {
            let section = self.switches[link.b].section;
            self.notes.push(format!("`{section}.pause` stops other switches, and no hosts"));
        }
    }

    /// Returns the collection of an event of `payload` bytes in this network, with its ideal time. Each host has an equal part.
    ///
    /// # Errors
    /// Those of [`Collection::event`], which do not occur for a network that was mapped.
    pub fn event(&self, scenario: &Scenario, payload: Bytes) -> Result<Collection, LiveRefusal> {
        let hosts = Collection::hosts(scenario, &self.roles).max(1);
        Ok(Collection::event(scenario, &self.graph, &self.roles, Bytes::new(payload.get() / hosts))?)
    }

    /// Returns the payload rate of an ideal collection of a mean event, without the answers' delay. `None` if the scenario has
    /// no mean size.
    ///
    /// # Errors
    /// As [`Self::event`].
    pub fn ideal_rate(&self, scenario: &Scenario) -> Result<Option<Rate>, LiveRefusal> {
        let Some(payload) = answer_payload(scenario) else { return Ok(None) };
        let event = Collection::event(scenario, &self.graph, &self.roles, payload)?;
        let time = event.time().saturating_sub(scenario.readout.response_delay);
        Ok(Rate::checked_from(event.payload, time))
    }

    /// Returns the parts of the steps of a collection from the readouts that a collector may ask.
    pub(super) fn step_parts(&self, scenario: &Scenario) -> Vec<StepPart> {
        let readouts = Collection::asked(scenario.workload.kind, self.roles.readouts.len() as u64);
        scenario.workload.step_parts(readouts)
    }

    /// Returns the links of event data, and their shares of these data.
    fn data_paths(&self, scenario: &Scenario) -> DataPaths {
        DataPaths::new(scenario, &self.graph, &self.roles).expect("a mapped network has paths")
    }

    /// Returns the highest rate of event data in bit/s: the links that it fills first are full.
    pub(super) fn data_rate_max(&self, scenario: &Scenario) -> f64 {
        let classes = self.data_paths(scenario).classes;
        let rates = classes
            .iter()
            .filter(|class| !class.share.is_zero())
            .map(|class| class.rate.get() as f64 * class.count as f64 / class.share.as_f64());
        rates.fold(f64::INFINITY, f64::min)
    }

    /// Returns the rate of the last links to the collectors.
    pub(super) fn last_rate(&self, scenario: &Scenario) -> Rate {
        self.data_paths(scenario).classes.last().expect("a path has a link").rate
    }

    /// Returns the collection of one round of a barrier workload in this network, with its ideal time.
    ///
    /// # Errors
    /// Those of [`Collection::round`], which do not occur for a network that was mapped.
    pub fn round(&self, scenario: &Scenario) -> Result<Collection, LiveRefusal> {
        Ok(Collection::round(scenario, &self.graph, &self.roles)?)
    }

    /// Returns true if a link leads to the software switch of a hybrid.
    pub fn is_host_port(&self, link: usize) -> bool {
        let LiveLink { a, b, .. } = self.links[link];
        self.software.is_some_and(|software| b == software || a == LinkEnd::Switch(software))
    }

    /// Returns the host with this part; `None` if the network has none.
    pub fn host_of(&self, part: Part) -> Option<&LiveHost> {
        self.hosts.iter().find(|host| host.part == part)
    }

    /// Returns the name of a link's end.
    pub fn name_of(&self, end: LinkEnd) -> &str {
        match end {
            LinkEnd::Host(host) => &self.hosts[host].name,
            LinkEnd::Switch(switch) => &self.switches[switch].name,
        }
    }

    /// Returns the far end of a switch's link.
    pub fn other_end(&self, switch: usize, link: usize) -> LinkEnd {
        let LiveLink { a, b, .. } = self.links[link];
        assert!(b == switch || a == LinkEnd::Switch(switch), "link {link} is not one of switch {switch}");
        if b == switch { a } else { LinkEnd::Switch(b) }
    }

    /// Returns the links of a switch, in order, each with its other end.
    pub fn ports_of(&self, switch: usize) -> Vec<(usize, LinkEnd)> {
        let touches = |link: &LiveLink| link.b == switch || link.a == LinkEnd::Switch(switch);
        let own = self.links.iter().enumerate().filter(|(_, link)| touches(link));
        own.map(|(index, _)| (index, self.other_end(switch, index))).collect()
    }

    /// Returns true for each port of a switch that is an uplink, in the order of [`Self::ports_of`].
    pub fn uplinks_of(&self, switch: usize) -> Vec<bool> {
        let ports = self.ports_of(switch).into_iter();
        ports.map(|(link, _)| self.graph.is_uplink(self.graph_port(switch, link))).collect()
    }

    /// Returns the graph's port at which a switch sends over a link.
    pub fn graph_port(&self, switch: usize, link: usize) -> fanin_network::PortIndex {
        let first = 2 * link as u32;
        let sends =
            |port: u32| self.graph.nodes[self.graph.source(port) as usize].name == self.switches[switch].name;
        if sends(first) { first } else { first + 1 }
    }

    /// Returns the names of a switch's ports, in order: each is the name of the node at the far end. From the second of several
    /// parallel links on, a number follows.
    pub fn port_names(&self, switch: usize) -> Vec<String> {
        let ports = self.ports_of(switch);
        let same = |place: usize| ports[..place].iter().filter(|port| port.1 == ports[place].1).count();
        (0..ports.len())
            .map(|place| match (self.name_of(ports[place].1), same(place)) {
                (name, 0) => name.to_owned(),
                (name, earlier) => format!("{name}.{earlier}"),
            })
            .collect()
    }

    /// Returns the number of switches on the path of the first source's answer to the first collector. A switch that the path
    /// crosses twice counts twice.
    pub fn switches_passed(&self) -> usize {
        let first =
            |is: fn(Part) -> bool| self.hosts.iter().position(|host| is(host.part)).unwrap_or_default();
        let pair = (first(Part::is_source), first(Part::is_collector));
        self.paths.paths.get(&pair).map_or(1, |path| path.links.len() - 1)
    }

    /// Returns the hosts that a host exchanges frames with, in order.
    pub fn peers_of(&self, host: usize) -> Vec<usize> {
        self.paths.paths.keys().filter(|(from, _)| *from == host).map(|(_, to)| *to).collect()
    }

    /// Checks that a program for the scenario's workload exists.
    ///
    /// # Errors
    /// If the workload has none.
    pub fn check_work(scenario: &Scenario) -> Result<(), LiveRefusal> {
        match scenario.workload.kind {
            WorkloadKind::EventBuilding | WorkloadKind::FixedFragment | WorkloadKind::FixedBlock => Ok(()),
            kind @ (WorkloadKind::Push | WorkloadKind::AllToAll) => Err(LiveRefusal::named(
                "workload.kind",
                &kind,
                "one that has a live program: \"event-building\", \"fixed-fragment\" or \"fixed-block\"",
            )),
        }
    }
}

/// Returns the task of a host of the graph.
fn part(scenario: &Scenario, roles: &Roles, node: NodeIndex) -> Part {
    let index = |hosts: &[NodeIndex]| hosts.iter().position(|&host| host == node).map(|index| index as u16);
    let peer = (index(&roles.collectors).map(Peer::Collector))
        .or_else(|| index(&roles.readouts).map(Peer::Readout))
        .or_else(|| index(&roles.loggers).map(Peer::Logger))
        .unwrap_or(Peer::Supervisor);
    match peer {
        Peer::Collector(_) if scenario.is_barrier() => Part::Barrier(BarrierRole::Aggregator),
        Peer::Readout(index) if scenario.is_barrier() => Part::Barrier(BarrierRole::Sender(index)),
        Peer::Collector(index) => Part::Role(Role::Collector, index),
        Peer::Readout(index) => Part::Role(Role::Readout, index),
        Peer::Logger(index) => Part::Role(Role::Logger, index),
        Peer::Supervisor | Peer::Standby => Part::Role(Role::Supervisor, 0),
    }
}

/// A graph without the nodes that need no process on this machine.
struct Reduced {
    graph: Network,
    roles: Roles,
    /// True if aggregation switches were merged into their core.
    has_absorbed: bool,
}

impl Reduced {
    /// Leaves out hosts without a connection, and aggregation switches that can neither drop nor delay a frame. The core
    /// takes over their hosts, with links of the whole path's delay.
    fn of(scenario: &Scenario, whole: &Network, roles: &Roles) -> Self {
        let mut roles = roles.clone();
        if scenario.is_barrier() {
            // There is one aggregator.
            roles.collectors.truncate(1);
            roles.racks.truncate(1);
        }
        let is_used = |node: NodeIndex| {
            [&roles.collectors, &roles.readouts, &roles.loggers].iter().any(|hosts| hosts.contains(&node))
                || roles.supervisor == Some(node)
        };
        let uplink_of: Vec<Option<usize>> =
            (0..whole.nodes.len() as NodeIndex).map(|node| absorbing_uplink(whole, node)).collect();
        let mut graph = Network { nodes: Vec::new(), links: Vec::new(), ..whole.clone() };
        // Virtual links carry Ethernet, whatever the scenario's framing.
        graph.framing = FrameOverhead::ETHERNET;
        graph.frame_bytes =
            FrameOverhead::ETHERNET.frame_bytes(whole.frame_bytes - whole.framing.stored_bytes);
        let mut place = vec![None; whole.nodes.len()];
        for (node, described) in (0..).zip(&whole.nodes) {
            if uplink_of[node as usize].is_none() && (!whole.is_host(node) || is_used(node)) {
                place[node as usize] = Some(graph.nodes.len() as NodeIndex);
                graph.nodes.push(described.clone());
            }
        }
        for (index, link) in whole.links.iter().enumerate() {
            let mut link = *link;
            if uplink_of.contains(&Some(index)) {
                continue;
            }
            for end in 0..2 {
                let switch = link.ends[end];
                if let Some(uplink) = uplink_of[switch as usize] {
                    let uplink = &whole.links[uplink];
                    let latency = whole.switch(switch).map_or(Duration::ZERO, |kind| kind.settings.latency);
                    link.delay += uplink.delay + latency;
                    link.loss = link.loss.either(uplink.loss);
                    link.ends[end] = uplink.ends[usize::from(uplink.ends[0] == switch)];
                }
            }
            if let [Some(from), Some(to)] = link.ends.map(|node| place[node as usize]) {
                let joined = graph.join(from, to, link.rate, link.delay);
                graph.links[joined].loss = link.loss;
            }
        }
        let renumber = |node: &mut NodeIndex| *node = place[*node as usize].expect("its node is kept");
        for hosts in [&mut roles.collectors, &mut roles.readouts, &mut roles.loggers] {
            hosts.iter_mut().for_each(renumber);
        }
        roles.supervisor.iter_mut().chain(&mut roles.software).for_each(renumber);
        Self { graph, roles, has_absorbed: uplink_of.iter().any(Option::is_some) }
    }
}

/// Returns the only uplink of an aggregation switch that cannot affect frames, otherwise `None`. Such a switch has unlimited
/// buffers and sends no PAUSE, and its hosts cannot send more than the uplink carries.
fn absorbing_uplink(network: &Network, node: NodeIndex) -> Option<usize> {
    let kind = network.switch(node)?;
    if kind.role != SwitchRole::Aggregation
        || kind.settings.buffering != Buffering::Unlimited
        || kind.settings.pause.mode != PauseMode::Off
    {
        return None;
    }
    let (mut uplink, mut from_hosts) = (None, 0_u64);
    for (index, link) in network.links.iter().enumerate().filter(|(_, link)| link.ends.contains(&node)) {
        let other = link.ends[usize::from(link.ends[0] == node)];
        if network.is_host(other) {
            from_hosts = from_hosts.saturating_add(link.rate.get());
        } else if uplink.replace(index).is_some() {
            return None;
        }
    }
    uplink.filter(|&uplink| from_hosts <= network.links[uplink].rate.get())
}

/// Returns the host or switch of each node of the graph.
pub(super) fn link_ends(graph: &Network) -> Vec<LinkEnd> {
    let (mut hosts, mut switches) = (0.., 0..);
    let end = |node: NodeIndex| match graph.is_host(node) {
        true => LinkEnd::Host(hosts.next().expect("numbers do not end")),
        false => LinkEnd::Switch(switches.next().expect("numbers do not end")),
    };
    (0..graph.nodes.len() as NodeIndex).map(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(preset: &str, sets: &[&str]) -> Result<LiveNetwork, LiveRefusal> {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        LiveNetwork::of(&fanin_scenario::load(preset, &sets).unwrap().scenario)
    }

    #[test]
    fn a_star_has_a_port_for_every_host() {
        let network = network("replay", &[]).unwrap();
        assert_eq!((network.hosts.len(), network.switches.len()), (4 + 24 + 1 + 2, 1));
        assert_eq!(network.ports_of(0).len(), network.hosts.len());
        let collector = network.host_of(Part::Role(Role::Collector, 3)).unwrap();
        assert_eq!(
            (collector.name.as_str(), collector.address),
            ("collector:3", Ipv4Addr::new(10, 91, 0, 4))
        );
        // Collectors exchange frames with all hosts except each other; loggers with collectors only.
        assert_eq!(network.peers_of(0).len(), 27);
        assert_eq!(network.peers_of(network.hosts.len() - 1), [0, 1, 2, 3]);
    }

    #[test]
    fn aggregation_switches_stand_where_they_matter() {
        let sets = ["collectors.racks=2", "collectors.hosts_per_rack=3", "readout.hosts=20"];
        let names = |network: &LiveNetwork| -> Vec<String> {
            network.switches.iter().map(|switch| switch.name.clone()).collect()
        };
        let absorbed = network("thesis-a-1000hz", &sets).unwrap();
        assert_eq!(names(&absorbed), ["core:0", "core:1", "tor:0", "tor:1"]);
        assert_eq!(absorbed.notes.len(), 1);
        assert_eq!(absorbed.port_names(0).iter().filter(|name| name.starts_with("readout")).count(), 10);
        let shallow = [&sets[..], &["aggregation.buffering=dedicated"]].concat();
        let shallow = network("thesis-a-1000hz", &shallow).unwrap();
        // Two groups, of 16 and 4, each in two parts.
        assert_eq!(
            names(&shallow)[4..],
            ["aggregation:0", "aggregation:1", "aggregation:2", "aggregation:3"]
        );
        assert!(shallow.notes.is_empty());
        let two = network("thesis-a-1000hz", &["network.uplinks_per_core=2", "readout.hosts=1"]).unwrap();
        assert_eq!(two.port_names(0)[..2], ["tor:0", "tor:0.1"]);
    }

    #[test]
    fn an_impossible_network_is_refused_by_its_key() {
        let refused = |preset, sets: &[&str]| network(preset, sets).unwrap_err().to_string();
        assert!(
            refused("leaf-spine", &["network.flow_distribution=ecmp"]).contains("network.flow_distribution")
        );
        let all_to_all = refused("lcn15-all-to-all", &[]);
        assert!(all_to_all.starts_with("`workload.kind` is \"all-to-all\""), "{all_to_all}");
        // With one path for every pair, no hash is needed.
        assert!(network("thesis-a-1000hz", &["network.flow_distribution=ecmp", "logger.hosts=0"]).is_ok());
    }

    #[test]
    fn an_absorbed_switch_leaves_its_delay_to_the_links_of_its_hosts() {
        let sets = [
            "aggregation.latency=3 us",
            "uplink.delay=5 us",
            "readout.link.delay=1 us",
            "readout.hosts=16",
            "link.loss=0.1",
        ];
        let network = network("thesis-a-1000hz", &sets).unwrap();
        let readout = network.host_of(Part::Role(Role::Readout, 0)).unwrap();
        let link = network.links[readout.links[0]];
        assert_eq!((link.delay, link.loss), (Duration::from_micros(9), Ratio::new(190_000)));
    }
}
