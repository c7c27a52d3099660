//! The paths of event data through a network: classes of links with their share of the data and the queues before them.
//!
//! The data of one collector flow through the graph as a fluid, from all its sources at once. Collectors at equivalent
//! places have equivalent paths, so that one of each kind is enough. The cost grows with the links, not with the pairs
//! of hosts.

use std::collections::{BTreeMap, BTreeSet};

use fanin_scenario::Scenario;
use fanin_units::{Duration, Rate, Ratio};

use crate::connections::collector_host;
use crate::equivalence::{colours, first_colours};
use crate::{
    Network, NetworkError, NodeIndex, NodeKind, Paths, PortIndex, Roles, Spread, SwitchKind, reverse,
};

/// Amount of the data from one source to a collector; a power of two, so that equal parts stay whole.
const SOURCE: u64 = 1 << 20;

/// All links between nodes of two kinds, in the direction of event data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkClass {
    /// Kinds of the nodes at both ends, such as `core->tor`.
    pub name: String,
    /// Number of links that can carry event data.
    pub count: u64,
    /// Rate of the slowest link.
    pub rate: Rate,
    /// Share of all event data on these links, if every readout sends the same amount to every collector.
    pub share: Ratio,
    /// The queue before each of these links; `None` at a host.
    pub queue: Option<DataQueue>,
}

/// The queue before a link of a class, for the data of a collector. Where queues of a class differ, each figure is the
/// worst one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataQueue {
    /// The index of the switch's settings in [`Network::switches`].
    pub switch: usize,
    /// True for a port that leads from a rack or a group of readouts up to another switch.
    pub is_uplink: bool,
    /// True if each collector has its own ring here.
    pub has_rings: bool,
    /// The part of one collector's data that passes one queue is `part / whole`.
    pub part: u64,
    /// See `part`; never zero.
    pub whole: u64,
    /// Mean number of collectors with data through one queue, rounded up.
    pub sharers: u64,
    /// Collectors with data in the memory of one switch.
    pub neighbours: u64,
    /// Highest inflow of one collector's data.
    pub inflow: Rate,
    /// Sum of the rates of all input links with data for this queue.
    pub inflow_max: Rate,
    /// The input links by kind.
    pub inputs: Vec<InputLinks>,
}

/// Links of one kind that lead to a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InputLinks {
    /// Number of the links.
    pub count: u64,
    /// Rate of each link.
    pub rate: Rate,
    /// Propagation delay of each link.
    pub delay: Duration,
}

/// The paths of event data through a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataPaths {
    /// Classes of links, from the readouts to the collectors.
    pub classes: Vec<LinkClass>,
    /// Sources of one collector: all readouts but one on its own host.
    pub sources: u64,
    /// Propagation delay of the links on the longest path, without a detour.
    pub link_delay: Duration,
    /// Latency of the switches on the longest path, without a detour.
    pub switch_latency: Duration,
    /// Delays and latencies of the detour on the longest path, through the software switch of a hybrid.
    pub detour_delay: Duration,
}

/// The time along a path: links, switches, detour.
#[derive(Clone, Copy, Default)]
struct PathTime([Duration; 3]);

impl PathTime {
    fn total(self) -> Duration {
        self.0.into_iter().sum()
    }

    fn raise(&mut self, other: Self) {
        if other.total() > self.total() {
            *self = other;
        }
    }
}

/// The data at a node, on the way to one collector.
#[derive(Clone, Default)]
struct Inflow {
    is_reached: bool,
    /// Amounts of data on the direct path and on the detour.
    amount: [u64; 2],
    rate: Rate,
    links_rate: Rate,
    inputs: Vec<InputLinks>,
    travel: PathTime,
    hop: usize,
    /// The choice of the further path. With ECMP the data divide among all ports.
    spread: Option<Spread>,
}

/// The sums of a class of links during the search.
struct ClassSum {
    /// Kinds of ports that can carry data: the colours of both ends.
    kinds: BTreeSet<[u64; 2]>,
    /// The latest hop of these ports on any path.
    hop: usize,
    /// Data over all collectors.
    amount: u128,
    /// Number of ports that one collector's data take, summed over all collectors.
    ports_taken: u64,
    queue: Option<DataQueue>,
}

impl DataPaths {
    /// Follows the data of one collector of each kind from all its readouts.
    ///
    /// # Errors
    /// [`NetworkError::NoPath`].
    pub fn new(scenario: &Scenario, network: &Network, roles: &Roles) -> Result<Self, NetworkError> {
        let asked = &roles.collectors[..scenario.receivers() as usize];
        let colours = colours(network, &first_colours(network, &roles.readouts, asked));
        let mut kinds: BTreeMap<u64, (u32, u64)> = BTreeMap::new();
        for (index, &collector) in (0..).zip(asked) {
            kinds.entry(colours[collector as usize]).or_insert((index, 0)).1 += 1;
        }
        let mut flow = Flow {
            scenario,
            network,
            roles,
            colours: &colours,
            paths: Paths::new(network)?,
            at: Vec::new(),
            classes: BTreeMap::new(),
        };
        let (mut travel, mut sources, mut total) = (PathTime::default(), 0, 0_u128);
        for &(index, members) in kinds.values() {
            let (count, longest) = flow.follow(index, members)?;
            travel.raise(longest);
            sources = sources.max(count);
            total += u128::from(members) * u128::from(count * SOURCE);
        }
        let [link_delay, switch_latency, detour_delay] = travel.0;
        let classes = flow.finish(asked, total.max(1));
        Ok(Self { classes, sources, link_delay, switch_latency, detour_delay })
    }
}

/// The data of one collector on its way through the graph.
struct Flow<'a> {
    scenario: &'a Scenario,
    network: &'a Network,
    roles: &'a Roles,
    colours: &'a [u64],
    paths: Paths<'a>,
    at: Vec<Inflow>,
    classes: BTreeMap<String, ClassSum>,
}

impl Flow<'_> {
    /// Follows the data of the collector with this index, which represents `members` equivalent ones. Returns the
    /// number of its sources, and the longest path.
    fn follow(&mut self, index: u32, members: u64) -> Result<(u64, PathTime), NetworkError> {
        let to = self.roles.collectors[index as usize];
        let host = match self.scenario.is_barrier() {
            true => 0,
            false => collector_host(self.roles.readouts.len() as u32, index),
        };
        // With ECMP the data divide among all ports, whatever the flow.
        let spread = Spread::of(self.scenario.network.flow_distribution, 0, host);
        self.at.clear();
        self.at.resize(self.network.nodes.len(), Inflow::default());
        let mut by_distance: Vec<Vec<NodeIndex>> = Vec::new();
        let mut sources = 0;
        for (readout, &host) in (0..).zip(&self.roles.readouts) {
            // A host with both roles sends nothing to itself.
            if host == to {
                continue;
            }
            sources += 1;
            let distance = self.paths.distance(host, to)? as usize;
            if by_distance.len() <= distance {
                by_distance.resize(distance + 1, Vec::new());
            }
            let ends = [("readout", readout), ("collector", index)];
            let is_redirected = self.roles.software.is_some_and(|node| self.network.names(node, ends));
            let at = &mut self.at[host as usize];
            at.amount[usize::from(is_redirected)] = SOURCE;
            (at.is_reached, at.spread, at.rate) = (true, Some(spread), Rate::MAX);
            by_distance[distance].push(host);
        }
        let whole = sources * SOURCE;
        for distance in (1..by_distance.len()).rev() {
            for node in std::mem::take(&mut by_distance[distance]) {
                self.detour(node, to, spread, members, whole);
                self.pass(node, to, members, whole, &mut by_distance[distance - 1])?;
            }
        }
        Ok((sources, self.at[to as usize].travel))
    }

    /// Sends the data at a node on towards the collector.
    fn pass(
        &mut self,
        node: NodeIndex,
        to: NodeIndex,
        members: u64,
        whole: u64,
        next: &mut Vec<NodeIndex>,
    ) -> Result<(), NetworkError> {
        let from = self.at[node as usize].clone();
        let ports = self.paths.closer_to(node, to)?.to_vec();
        let choices = ports.len() as u64;
        let mut spread = from.spread;
        let chosen = match &mut spread {
            Some(one @ Spread::PerDestination(_)) => Some(one.choose(node, ports.len())),
            Some(Spread::Ecmp(_)) | None => None,
        };
        for (place, &port) in ports.iter().enumerate() {
            let part = |amount: u64| match chosen {
                Some(chosen) if chosen == place => amount,
                Some(_) => 0,
                None => amount / choices + u64::from((place as u64) < amount % choices),
            };
            let amount = from.amount.map(part);
            let name = self.class_name(port, to);
            let rate = self.enter(&name, port, &from, amount[0] + amount[1], members, whole);
            let link = self.network.link(port);
            let destination = self.network.destination(port);
            let at = &mut self.at[destination as usize];
            if !at.is_reached {
                at.is_reached = true;
                next.push(destination);
            }
            at.hop = at.hop.max(from.hop + 1);
            if amount[0] + amount[1] == 0 {
                continue;
            }
            let mut travel = from.travel;
            travel.0[0] += link.delay;
            travel.0[1] += self.network.latency(port);
            at.receive(amount, rate, *link, travel);
            at.spread = spread;
        }
        Ok(())
    }

    /// Sends redirected data through the software switch and back to its core.
    fn detour(&mut self, node: NodeIndex, to: NodeIndex, spread: Spread, members: u64, whole: u64) {
        let redirected = self.at[node as usize].amount[1];
        let Some(software) = self.roles.software.filter(|_| redirected > 0) else { return };
        let host_ports = self.paths.host_ports(software);
        if host_ports.is_empty() {
            return;
        }
        let there = spread.host_port(to, &host_ports);
        if self.network.source(there) != node {
            return;
        }
        let from = self.at[node as usize].clone();
        let rate = self.enter("core->software", there, &from, redirected, members, whole);
        let link = *self.network.link(there);
        let mut inside = Inflow { hop: from.hop + 1, ..Inflow::default() };
        inside.receive([redirected, 0], rate, link, from.travel);
        let rate = self.enter("software->core", reverse(there), &inside, redirected, members, whole);
        let at = &mut self.at[node as usize];
        let straight = at.amount[0] > 0;
        at.amount = [at.amount[0] + redirected, 0];
        at.hop = from.hop + 2;
        at.travel.0[2] += link.delay * 2 + self.network.latency(there) + self.network.latency(reverse(there));
        // Redirected data come from the software switch alone; other data keep their rate.
        if !straight {
            (at.rate, at.links_rate) = (Rate::ZERO, Rate::ZERO);
        }
        at.rate = at.rate.saturating_add(rate);
        at.links_rate = at.links_rate.saturating_add(link.rate);
        at.inputs.push(InputLinks { count: 1, rate: link.rate, delay: link.delay });
    }

    /// Counts a port in its class. Returns the rate at which the collector's data leave by it.
    fn enter(
        &mut self,
        name: &str,
        port: PortIndex,
        from: &Inflow,
        amount: u64,
        members: u64,
        whole: u64,
    ) -> Rate {
        let network = self.network;
        let source = network.source(port);
        let rings = network.switch(source).and_then(SwitchKind::rings);
        let has_rings = rings.is_some_and(|rings| !rings.flows.is_empty());
        if !self.classes.contains_key(name) {
            let fresh = ClassSum { kinds: BTreeSet::new(), hop: 0, amount: 0, ports_taken: 0, queue: None };
            self.classes.insert(name.to_owned(), fresh);
        }
        let class = self.classes.get_mut(name).expect("was inserted");
        class.kinds.insert(kind(self.colours, network, port));
        class.hop = class.hop.max(from.hop);
        if amount == 0 {
            return Rate::ZERO;
        }
        class.amount += u128::from(amount) * u128::from(members);
        class.ports_taken += members;
        let mut leaves = network.link(port).rate.min(from.rate);
        if let NodeKind::Switch { settings } = network.nodes[source as usize].kind {
            let queue = class.queue.get_or_insert_with(|| DataQueue {
                switch: settings,
                is_uplink: network.is_uplink(port),
                has_rings,
                part: 0,
                whole,
                sharers: 0,
                neighbours: 0,
                inflow: Rate::ZERO,
                inflow_max: Rate::ZERO,
                inputs: Vec::new(),
            });
            if u128::from(amount) * u128::from(queue.whole) > u128::from(queue.part) * u128::from(whole) {
                (queue.part, queue.whole) = (amount, whole);
            }
            queue.inflow = queue.inflow.max(from.rate);
            queue.inflow_max = queue.inflow_max.max(from.links_rate);
            let links = |inputs: &[InputLinks]| inputs.iter().map(|links| links.count).sum::<u64>();
            if links(&from.inputs) > links(&queue.inputs) {
                queue.inputs.clone_from(&from.inputs);
            }
            if let Some(ring) = network.ring_rate(port).filter(|_| has_rings) {
                leaves = leaves.min(ring);
            }
        }
        leaves
    }

    /// The name of a port's class. Hosts have the name of their role for this collector.
    fn class_name(&self, port: PortIndex, to: NodeIndex) -> String {
        let (source, destination) = (self.network.source(port), self.network.destination(port));
        let from = if self.network.is_host(source) { "readout" } else { self.network.kind_name(source) };
        let onto = if destination == to { "collector" } else { self.network.kind_name(destination) };
        format!("{from}->{onto}")
    }

    /// The classes in the order of their hops.
    fn finish(self, asked: &[NodeIndex], total: u128) -> Vec<LinkClass> {
        let network = self.network;
        let mut class_of: BTreeMap<[u64; 2], Vec<&str>> = BTreeMap::new();
        for (name, class) in &self.classes {
            for &kind in &class.kinds {
                class_of.entry(kind).or_default().push(name);
            }
        }
        let is_asked: BTreeSet<NodeIndex> = asked.iter().copied().collect();
        let mut counts: BTreeMap<&str, (u64, Rate)> = BTreeMap::new();
        let mut switches: BTreeMap<&str, BTreeSet<NodeIndex>> = BTreeMap::new();
        for port in network.ports() {
            let Some(names) = class_of.get(&kind(self.colours, network, port)) else { continue };
            let destination = network.destination(port);
            if network.is_host(destination) && !is_asked.contains(&destination) {
                continue;
            }
            for &name in names {
                let (count, rate) = counts.entry(name).or_insert((0, Rate::MAX));
                *count += 1;
                *rate = (*rate).min(network.link(port).rate);
                if !network.is_host(network.source(port)) {
                    switches.entry(name).or_default().insert(network.source(port));
                }
            }
        }
        let mut classes: Vec<(usize, LinkClass)> = Vec::new();
        for (name, class) in &self.classes {
            let (count, rate) = counts.get(&**name).copied().unwrap_or((0, Rate::MAX));
            let mut queue = class.queue.clone();
            if let Some(queue) = &mut queue {
                let memories = switches.get(&**name).map_or(1, |set| set.len() as u64);
                queue.sharers = class.ports_taken.div_ceil(count.max(1)).max(1);
                queue.neighbours = (asked.len() as u64).min(class.ports_taken).div_ceil(memories).max(1);
            }
            let share = Ratio::new((1_000_000 * class.amount / total) as u64);
            classes.push((class.hop, LinkClass { name: name.clone(), count, rate, share, queue }));
        }
        classes.sort_by_key(|(hop, _)| *hop);
        classes.into_iter().map(|(_, class)| class).collect()
    }
}

impl Inflow {
    /// Adds data that enter by a link.
    fn receive(&mut self, amount: [u64; 2], rate: Rate, link: crate::Link, travel: PathTime) {
        self.amount = [self.amount[0] + amount[0], self.amount[1] + amount[1]];
        self.rate = self.rate.saturating_add(rate);
        self.links_rate = self.links_rate.saturating_add(link.rate);
        self.travel.raise(travel);
        match self.inputs.iter_mut().find(|links| (links.rate, links.delay) == (link.rate, link.delay)) {
            Some(links) => links.count += 1,
            None => self.inputs.push(InputLinks { count: 1, rate: link.rate, delay: link.delay }),
        }
    }
}

/// The kind of a port: the colours of its ends.
fn kind(colours: &[u64], network: &Network, port: PortIndex) -> [u64; 2] {
    [network.source(port), network.destination(port)].map(|node| colours[node as usize])
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    fn data(preset: &str, sets: &[&str]) -> DataPaths {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let scenario = fanin_scenario::load(preset, &sets).unwrap().scenario;
        let (network, roles) = topology::build(&scenario).unwrap();
        DataPaths::new(&scenario, &network, &roles).unwrap()
    }

    fn counts(data: &DataPaths) -> Vec<(&str, u64, u64)> {
        data.classes.iter().map(|class| (&*class.name, class.count, class.share.get())).collect()
    }

    #[test]
    fn racks_have_a_class_for_every_hop() {
        let whole = 1_000_000;
        // Ten groups of 16, each in two parts, one behind each core.
        assert_eq!(
            counts(&data("thesis-a-1000hz", &[])),
            [
                ("readout->aggregation", 160, whole),
                ("aggregation->core", 20, whole),
                ("core->tor", 2, whole),
                ("tor->collector", 39, whole)
            ]
        );
    }

    #[test]
    fn data_that_stay_in_their_pod_cross_no_spine() {
        let sets = ["collectors.racks=4", "readout.hosts=12", "network.leaf_spine.planes=2"];
        let data = data("leaf-spine", &sets);
        let [leaf, spine] = ["leaf->spine", "spine->leaf"]
            .map(|name| data.classes.iter().find(|class| class.name == name).unwrap());
        assert_eq!((leaf.share, spine.share), (Ratio::new(500_000), Ratio::new(500_000)));
        assert_eq!(data.classes.first().unwrap().name, "readout->leaf");
        assert_eq!(data.classes.last().unwrap().name, "tor->collector");
    }

    #[test]
    fn hosts_that_are_both_count_once() {
        let data = data("lcn15-all-to-all", &[]);
        assert_eq!(counts(&data), [("readout->tor", 12, 1_000_000), ("tor->collector", 12, 1_000_000)]);
    }
}
