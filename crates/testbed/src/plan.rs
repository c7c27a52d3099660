//! The plan of a network to build.

use std::net::Ipv4Addr;

use crate::NodeName;

/// A network: nodes, and the links between them.
#[derive(Clone, Debug, Default)]
pub struct LabPlan {
    /// Hosts and switches; each becomes a network namespace.
    pub nodes: Vec<LabNode>,
    /// The links; each becomes a veth pair.
    pub links: Vec<VethPair>,
}

/// One namespace of a plan.
#[derive(Clone, Debug)]
pub struct LabNode {
    /// The node's name, unique within the plan.
    pub name: NodeName,
    /// Kernel settings inside, in order.
    pub settings: Vec<Setting>,
    /// Routes inside, in order; they are set after all links are up.
    pub routes: Vec<NamespaceRoute>,
    /// Stations with link addresses set in advance, so that no ARP request is sent.
    pub neighbours: Vec<Neighbour>,
}

impl LabNode {
    /// Makes a node without settings or routes.
    #[must_use]
    pub const fn new(name: NodeName) -> Self {
        Self { name, settings: Vec::new(), routes: Vec::new(), neighbours: Vec::new() }
    }
}

/// One file below `/proc/sys` of a namespace, such as `net.ipv4.tcp_rto_min_us`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key with dots, as `sysctl` writes it.
    pub key: String,
    /// The value to write.
    pub value: String,
}

/// A route of a node, with the options that `ip route` takes (`quickack`, `congctl`, `rto_min`, `features`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceRoute {
    /// `default` or a network.
    pub to: String,
    /// The device inside the node.
    pub device: String,
    /// Further words of `ip route` after the device, such as `["quickack", "1"]`.
    pub options: Vec<String>,
}

/// A station on a device's network, and its link address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// IP address of the neighbour.
    pub address: Ipv4Addr,
    /// The neighbour's link address.
    pub mac: [u8; 6],
    /// Device inside the node.
    pub device: String,
}

/// A veth pair between two nodes.
#[derive(Clone, Debug)]
pub struct VethPair {
    /// One end of the pair.
    pub a: VethPort,
    /// The other end.
    pub b: VethPort,
    /// The largest IP packet, bytes (68 to 9000).
    pub mtu: u32,
}

/// One end of a link.
#[derive(Clone, Debug)]
pub struct VethPort {
    /// The node's index in [`LabPlan::nodes`].
    pub node: usize,
    /// The name of the device inside (1 to 15 bytes).
    pub device: String,
    /// The address; absent on a switch's port.
    pub address: Option<InterfaceAddress>,
    /// The link address; the kernel chooses one by default.
    pub mac: Option<[u8; 6]>,
    /// The rate at which the port sends, in bit/s, with every byte on an Ethernet wire counted (`tc-tbf`, two full frames of
    /// burst). Without a rate, the port sends as fast as the other end receives.
    pub rate: Option<u64>,
}

impl VethPort {
    /// Makes a port without an address, a link address and a rate.
    #[must_use]
    pub fn new(node: usize, device: &str) -> Self {
        Self { node, device: device.into(), address: None, mac: None, rate: None }
    }
}

/// An address, and the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The host's address.
    pub address: Ipv4Addr,
    /// Length of the prefix in bits, 0 to 32.
    pub prefix: u8,
}
