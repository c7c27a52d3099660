//! The graph of a network: hosts, switches and the links between them, as plain data.

use std::collections::{BTreeSet, HashMap};

use fanin_scenario::PauseMode;
use fanin_units::wire::{self, FrameOverhead};
use fanin_units::{Bytes, Duration, Rate, Ratio, mix};

#[cfg(doc)]
use crate::Paths;
use crate::switches::{SwitchKind, SwitchRole};

/// The most links of a scenario's network.
pub const LINKS_MAX: usize = 2_000_000;

/// The index of a host or switch in [`Network::nodes`].
pub type NodeIndex = u32;

/// The number of an output port: one direction of a link, with the queue before it. Link `k` has the ports `2 k` (from
/// its first end) and `2 k + 1` (from its second end).
pub type PortIndex = u32;

/// Returns the port of the other direction of a port's link.
#[inline]
pub const fn reverse(port: PortIndex) -> PortIndex {
    port ^ 1
}

/// The kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// A host: sends and receives, never forwards. Its network card queues without limit.
    Host,
    /// A switch: stores and forwards frames.
    Switch {
        /// The index of the switch's settings in [`Network::switches`]. Switches share settings, never memory.
        settings: usize,
    },
}

/// A host or a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// A name for records and messages, unique in the network.
    pub name: String,
    /// Host or switch.
    pub kind: NodeKind,
}

impl Node {
    /// Returns a hash of the node's name.
    pub fn hash(&self) -> u64 {
        self.name.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)))
    }
}

/// A full-duplex point-to-point link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The nodes that it joins.
    pub ends: [NodeIndex; 2],
    /// Bits a second, each way.
    pub rate: Rate,
    /// Propagation delay, each way.
    pub delay: Duration,
    /// Share of the frames that are lost at random, each way.
    pub loss: Ratio,
}

/// A network as plain data: nodes with their names, links with their ends, rates and delays. [`Paths`] finds the paths
/// through any such graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// Hosts and switches.
    pub nodes: Vec<Node>,
    /// The links between them.
    pub links: Vec<Link>,
    /// The settings of switches, by role.
    pub switches: Vec<SwitchKind>,
    /// The bytes that the links add to an IP packet.
    pub framing: FrameOverhead,
    /// Bytes that a switch stores of a full frame. They convert a threshold in packets to bytes.
    pub frame_bytes: u32,
}

impl Default for Network {
    /// A network without nodes, on Ethernet.
    fn default() -> Self {
        let (nodes, links, switches) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            nodes,
            links,
            switches,
            framing: FrameOverhead::ETHERNET,
            frame_bytes: FrameOverhead::ETHERNET.frame_bytes(wire::ETHERNET_MTU),
        }
    }
}

/// Errors of a network.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A link names a missing node, or joins a node to itself.
    #[error("link {link} does not join two of the {nodes} nodes")]
    LinkEnds {
        /// The link's index in [`Network::links`].
        link: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// The scenario asks for more links than a network may have.
    #[error(
        "{key}: the network has more than {LINKS_MAX} links: give fewer racks, readouts, or links of each"
    )]
    Links {
        /// The scenario's key to lower.
        key: &'static str,
    },
    /// A link's rate is below 1 kb/s, at which a frame of 1500 bytes takes 12 s.
    #[error("link {link} between {from} and {to} is too slow: {rate}")]
    LinkRate {
        /// The link's index in [`Network::links`].
        link: usize,
        /// One end's name.
        from: String,
        /// The other end's name.
        to: String,
        /// The link's rate.
        rate: Rate,
    },
    /// A switch has more links than the scenario gives it ports.
    #[error(
        "{switch} has {links} links, and {key} = {ports}: give at least {links}, or 0 for the number needed"
    )]
    SwitchPorts {
        /// The switch's name.
        switch: String,
        /// Number of the switch's links to hosts and other switches.
        links: usize,
        /// The scenario's key.
        key: String,
        /// The number of ports given.
        ports: u32,
    },
    /// No path joins the two hosts of a connection.
    #[error("no path leads from {from} to {to}")]
    NoPath {
        /// The source's name.
        from: String,
        /// The destination's name.
        to: String,
    },
}

impl Network {
    /// Adds a host.
    pub fn add_host(&mut self, name: String) -> NodeIndex {
        self.add(Node { name, kind: NodeKind::Host })
    }

    /// Adds a switch; `settings` is the place of its settings in [`Self::switches`].
    pub fn add_switch(&mut self, name: String, settings: usize) -> NodeIndex {
        self.add(Node { name, kind: NodeKind::Switch { settings } })
    }

    fn add(&mut self, node: Node) -> NodeIndex {
        let index = NodeIndex::try_from(self.nodes.len()).expect("more than 2^32 nodes");
        self.nodes.push(node);
        index
    }

    /// The settings of the roles that at least one switch has.
    pub fn switches_used(&self) -> impl Iterator<Item = &SwitchKind> {
        let is_used =
            |settings: usize| self.nodes.iter().any(|node| node.kind == NodeKind::Switch { settings });
        self.switches.iter().enumerate().filter(move |(settings, _)| is_used(*settings)).map(|(_, kind)| kind)
    }

    /// Returns true if a switch of the network sends PAUSE.
    pub fn has_pause(&self) -> bool {
        self.switches_used().any(|kind| kind.settings.pause.mode != PauseMode::Off)
    }

    /// Joins two nodes by a link that loses no frame. Returns the link's index in [`Self::links`].
    pub fn join(&mut self, from: NodeIndex, to: NodeIndex, rate: Rate, delay: Duration) -> usize {
        self.links.push(Link { ends: [from, to], rate, delay, loss: Ratio::ZERO });
        self.links.len() - 1
    }

    /// The sending node of a port.
    pub fn source(&self, port: PortIndex) -> NodeIndex {
        self.links[port as usize / 2].ends[port as usize % 2]
    }

    /// The receiving node of a port.
    pub fn destination(&self, port: PortIndex) -> NodeIndex {
        self.links[port as usize / 2].ends[1 - port as usize % 2]
    }

    /// The settings of a node that is a switch; `None` for a host.
    pub fn switch(&self, node: NodeIndex) -> Option<&SwitchKind> {
        match self.nodes[node as usize].kind {
            NodeKind::Host => None,
            NodeKind::Switch { settings } => Some(&self.switches[settings]),
        }
    }

    /// Returns true if the node is a host, false if it is a switch.
    pub fn is_host(&self, node: NodeIndex) -> bool {
        self.nodes[node as usize].kind == NodeKind::Host
    }

    /// The node with this name, if any.
    pub fn node_named(&self, name: &str) -> Option<NodeIndex> {
        self.nodes.iter().position(|node| node.name == name).map(|node| node as NodeIndex)
    }

    /// The ports that lead to a software switch, all from one core: its host ports.
    pub fn host_ports(&self, software: NodeIndex) -> Vec<PortIndex> {
        self.ports().filter(|&port| self.destination(port) == software).collect()
    }

    /// The kind of a node by its name: `tor` for `tor:3`.
    pub fn kind_name(&self, node: NodeIndex) -> &str {
        let name = &self.nodes[node as usize].name;
        name.split_once(':').map_or(&**name, |(kind, _)| kind)
    }

    /// The kinds of all ports, such as `tor->collector`, each once.
    pub fn port_kinds(&self) -> Vec<String> {
        let name =
            |port| [self.source(port), self.destination(port)].map(|node| self.kind_name(node)).join("->");
        let kinds: BTreeSet<String> = self.ports().map(name).collect();
        kinds.into_iter().collect()
    }

    /// The link of a port.
    pub fn link(&self, port: PortIndex) -> &Link {
        &self.links[port as usize / 2]
    }

    /// The rate limit of each ring at a port; `None` if the port has no rings, or no limit below the link's rate.
    pub fn ring_rate(&self, port: PortIndex) -> Option<Rate> {
        self.switch(self.source(port))?.rings()?.rate_below(self.link(port).rate)
    }

    /// Hashes of the ports' names, which do not depend on the order of nodes and links. Links between the same two nodes
    /// differ by their number among these links.
    pub fn port_hashes(&self) -> Vec<u64> {
        let names: Vec<u64> = self.nodes.iter().map(Node::hash).collect();
        let mut alike = HashMap::new();
        let port = |port| {
            let nodes = [self.source(port), self.destination(port)];
            let place = alike.entry(nodes).and_modify(|place| *place += 1).or_insert(0_u64);
            let [from, to] = nodes.map(|node| names[node as usize]);
            mix(mix(from ^ *place) ^ to)
        };
        self.ports().map(port).collect()
    }

    /// All ports: two a link, one for each direction.
    pub fn ports(&self) -> std::ops::Range<PortIndex> {
        0..2 * self.links.len() as PortIndex
    }

    /// Returns true if a port leads from a rack or a group of readouts up to another switch.
    pub fn is_uplink(&self, port: PortIndex) -> bool {
        let has_uplinks = self.switch(self.source(port)).is_some_and(|kind| kind.has_uplinks);
        has_uplinks && !self.is_host(self.destination(port))
    }

    /// The buffer of an output port; `None` if the port has no buffer of its own.
    pub fn output_buffer(&self, port: PortIndex) -> Option<Bytes> {
        let settings = &self.switch(self.source(port))?.settings;
        let layout = settings.layout(&[self.is_uplink(port)])?;
        if layout.couples_outputs() { None } else { layout.output_limit(0, 1) }
    }

    /// The most bytes that one output of a switch may hold while all others are empty; `None` without a limit.
    pub fn queue_limit(&self, port: PortIndex) -> Option<Bytes> {
        let settings = &self.switch(self.source(port))?.settings;
        let frame = Bytes::new(u64::from(self.frame_bytes));
        match settings.layout(&[self.is_uplink(port)]) {
            Some(layout) => layout.occupancy_max(0, frame),
            None => Some(frame * u64::from(settings.daqring.frames)),
        }
    }

    /// Number of links from hosts and racks to the middle switches, which all data pass. Their role is
    /// the first one of [`SwitchRole::MIDDLE`] that is present. Nodes for which `left_out` returns true do not count.
    pub fn outer_links(&self, left_out: impl Fn(NodeIndex) -> bool) -> u64 {
        let role = |node: NodeIndex| match self.nodes[node as usize].kind {
            NodeKind::Host => None,
            NodeKind::Switch { settings } => SwitchRole::ALL.get(settings).copied(),
        };
        let nodes = || 0..self.nodes.len() as NodeIndex;
        let middle =
            SwitchRole::MIDDLE.into_iter().find(|&wanted| nodes().any(|node| role(node) == Some(wanted)));
        let is_outside = |node: NodeIndex| !left_out(node) && role(node).is_none_or(SwitchRole::is_outer);
        let joins = |link: &&Link| {
            let [a, b] = link.ends;
            let is_middle = |node| role(node).is_some() && role(node) == middle;
            (is_middle(a) && is_outside(b)) || (is_middle(b) && is_outside(a))
        };
        self.links.iter().filter(joins).count() as u64
    }

    /// The latency of the switch at the far end of a port's link; zero at a host.
    pub fn latency(&self, port: PortIndex) -> Duration {
        self.switch(self.destination(port)).map_or(Duration::ZERO, |kind| kind.settings.latency)
    }

    /// A port's name in records: `tor:0->collector:3`.
    pub fn port_name(&self, port: PortIndex) -> String {
        let name = |node: NodeIndex| &self.nodes[node as usize].name;
        format!("{}->{}", name(self.source(port)), name(self.destination(port)))
    }

    /// The ports that match a pattern: two node names joined by `->`. `*` stands for any number, and a name without a
    /// number for all nodes of that kind.
    pub fn ports_named(&self, pattern: &str) -> Vec<PortIndex> {
        let Some((from, to)) = pattern.split_once("->") else { return Vec::new() };
        let fits = |pattern: &str, node: NodeIndex| {
            let name = &self.nodes[node as usize].name;
            let kind = self.kind_name(node);
            let wanted = pattern.trim();
            wanted == name || wanted == kind || wanted.strip_suffix(":*") == Some(kind)
        };
        self.ports()
            .filter(|&port| fits(from, self.source(port)) && fits(to, self.destination(port)))
            .collect()
    }

    /// Checks that every link joins two nodes and has a valid rate.
    ///
    /// # Errors
    /// The error of the first invalid link.
    pub fn check(&self) -> Result<(), NetworkError> {
        let nodes = self.nodes.len();
        for (index, link) in self.links.iter().enumerate() {
            let [from, to] = link.ends.map(|node| node as usize);
            if from >= nodes || to >= nodes || from == to {
                return Err(NetworkError::LinkEnds { link: index, nodes });
            }
            // A bit lasts at most a millisecond, and a frame of 1500 bytes 12 s.
            if link.rate < Rate::new(1_000) {
                let name = |node: usize| self.nodes[node].name.clone();
                let (from, to) = (name(from), name(to));
                return Err(NetworkError::LinkRate { link: index, from, to, rate: link.rate });
            }
        }
        Ok(())
    }
}
