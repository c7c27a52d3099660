//! The graph of a network: hosts, switches and the links between them, as plain data.

use fanin_scenario::{Buffering, M21tcp};
use fanin_units::{Bytes, Duration, Rate};

use crate::Framing;
#[cfg(doc)]
use crate::Paths;
use crate::switches::{SwitchKind, output_buffer};

/// A host or switch, by its place in [`Network::nodes`].
pub type NodeIndex = u32;

/// One direction of a link with the output queue before it: link `k` has the ports `2 k` (from its first end)
/// and `2 k + 1` (from its second end).
pub type PortIndex = u32;

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// Sends and receives; never forwards. Its network card queues without limit.
    Host,
    /// Stores and forwards.
    Switch {
        /// Which of [`Network::switches`] it is like. Switches that are alike share settings, never memory.
        like: usize,
    },
}

/// A host or a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// A name for records and messages, unique in the network.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
}

/// A full-duplex point-to-point link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The nodes it joins.
    pub ends: [NodeIndex; 2],
    /// Bits a second, each way.
    pub rate: Rate,
    /// Propagation, one way.
    pub delay: Duration,
}

/// Nodes and links. Any graph will do: add nodes and links, and [`Paths`] finds the ways through it.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// Hosts and switches.
    pub nodes: Vec<Node>,
    /// Links between them.
    pub links: Vec<Link>,
    /// The kinds of switches.
    pub switches: Vec<SwitchKind>,
    /// What the links add to an IP packet.
    pub framing: Framing,
    /// Bytes that a switch stores of a full frame: what thresholds in packets stand for where they count bytes.
    pub frame_bytes: u32,
    /// M21TCP, where the connections use it.
    pub m21: Option<M21>,
}

/// M21TCP as a network's switches need to know it.
#[derive(Clone, PartialEq, Debug)]
pub struct M21 {
    /// Its settings.
    pub settings: M21tcp,
    /// Payload of a full segment.
    pub mss: u16,
}

impl Default for Network {
    /// Nothing at all, on Ethernet.
    fn default() -> Self {
        let (nodes, links, switches) = (Vec::new(), Vec::new(), Vec::new());
        Self { nodes, links, switches, framing: Framing::ETHERNET, frame_bytes: 1518, m21: None }
    }
}

/// Why a network cannot be simulated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A link names a node that does not exist, or joins a node to itself.
    #[error("link {link} does not join two of the {nodes} nodes")]
    LinkEnds {
        /// Which link.
        link: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A link's rate is zero or so low that a frame takes for ever.
    #[error("link {link} between {from} and {to} is too slow: {rate}")]
    LinkRate {
        /// Which link.
        link: usize,
        /// One end's name.
        from: String,
        /// The other end's name.
        to: String,
        /// The rate it has.
        rate: Rate,
    },
    /// Two hosts that have to talk are not joined.
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

    /// Adds a switch like number `like` of [`Self::switches`].
    pub fn add_switch(&mut self, name: String, like: usize) -> NodeIndex {
        self.add(Node { name, kind: NodeKind::Switch { like } })
    }

    fn add(&mut self, node: Node) -> NodeIndex {
        let index = NodeIndex::try_from(self.nodes.len()).expect("more than 2^32 nodes");
        self.nodes.push(node);
        index
    }

    /// The kinds of switches that there is one of.
    pub fn switches_used(&self) -> impl Iterator<Item = &SwitchKind> {
        let is_used = |like: usize| self.nodes.iter().any(|node| node.kind == NodeKind::Switch { like });
        self.switches.iter().enumerate().filter(move |(like, _)| is_used(*like)).map(|(_, kind)| kind)
    }

    /// Joins two nodes; returns the link's index.
    pub fn join(&mut self, from: NodeIndex, to: NodeIndex, rate: Rate, delay: Duration) -> usize {
        self.links.push(Link { ends: [from, to], rate, delay });
        self.links.len() - 1
    }

    /// The node a port sends from.
    pub fn source(&self, port: PortIndex) -> NodeIndex {
        self.links[port as usize / 2].ends[port as usize % 2]
    }

    /// The node a port sends to.
    pub fn destination(&self, port: PortIndex) -> NodeIndex {
        self.links[port as usize / 2].ends[1 - port as usize % 2]
    }

    /// The switch that a node is; `None` for a host.
    pub fn switch(&self, node: NodeIndex) -> Option<&SwitchKind> {
        match self.nodes[node as usize].kind {
            NodeKind::Host => None,
            NodeKind::Switch { like } => Some(&self.switches[like]),
        }
    }

    /// Whether a node is a host.
    pub fn is_host(&self, node: NodeIndex) -> bool {
        self.nodes[node as usize].kind == NodeKind::Host
    }

    /// The node with a name.
    pub fn node_named(&self, name: &str) -> Option<NodeIndex> {
        self.nodes.iter().position(|node| node.name == name).map(|node| node as NodeIndex)
    }

    /// The ports that lead to a software switch, which stands beside one other switch.
    pub fn host_ports(&self, software: NodeIndex) -> Vec<PortIndex> {
        self.ports().filter(|&port| self.destination(port) == software).collect()
    }

    /// The kind in a node's name: `tor` of `tor:3`.
    pub fn kind_name(&self, node: NodeIndex) -> &str {
        let name = &self.nodes[node as usize].name;
        name.split_once(':').map_or(&**name, |(kind, _)| kind)
    }

    /// The link that a port belongs to.
    pub fn link(&self, port: PortIndex) -> &Link {
        &self.links[port as usize / 2]
    }

    /// All ports.
    pub fn ports(&self) -> std::ops::Range<PortIndex> {
        0..2 * self.links.len() as PortIndex
    }

    /// Whether a port leads up from a switch that has uplinks: from a rack or a group of readouts to another switch.
    pub fn is_uplink(&self, port: PortIndex) -> bool {
        let has_uplinks = self.switch(self.source(port)).is_some_and(|kind| kind.has_uplinks);
        has_uplinks && !self.is_host(self.destination(port))
    }

    /// The buffer of an output port that has one of its own.
    pub fn output_buffer(&self, port: PortIndex) -> Option<Bytes> {
        let settings = &self.switch(self.source(port))?.settings;
        let has_own = settings.buffering == Buffering::Dedicated;
        has_own.then(|| output_buffer(settings, self.is_uplink(port)))
    }

    /// The latency of the switch that a port leads to; none at a host.
    pub fn latency(&self, port: PortIndex) -> Duration {
        self.switch(self.destination(port)).map_or(Duration::ZERO, |kind| kind.settings.latency)
    }

    /// The port that leads directly from one node to another, if there is one.
    pub fn port_between(&self, from: NodeIndex, to: NodeIndex) -> Option<PortIndex> {
        self.ports().find(|&port| self.source(port) == from && self.destination(port) == to)
    }

    /// A port's name in records: `tor:0->collector:3`.
    pub fn port_name(&self, port: PortIndex) -> String {
        let name = |node: NodeIndex| &self.nodes[node as usize].name;
        format!("{}->{}", name(self.source(port)), name(self.destination(port)))
    }

    /// The ports that a pattern names: two node names joined by `->`, in which `*` stands for any number and a name
    /// without a number for all of that kind.
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

    /// Checks what [`Paths`] and the engine rely on.
    ///
    /// # Errors
    /// The first link that joins nothing or carries nothing.
    pub fn check(&self) -> Result<(), NetworkError> {
        let nodes = self.nodes.len();
        for (index, link) in self.links.iter().enumerate() {
            let [from, to] = link.ends.map(|node| node as usize);
            if from >= nodes || to >= nodes || from == to {
                return Err(NetworkError::LinkEnds { link: index, nodes });
            }
            // A bit lasts at most a millisecond: the slowest frame then takes minutes, not the run's whole time.
            if link.rate < Rate::new(1_000) {
                let name = |node: usize| self.nodes[node].name.clone();
                let (from, to) = (name(from), name(to));
                return Err(NetworkError::LinkRate { link: index, from, to, rate: link.rate });
            }
        }
        Ok(())
    }
}
