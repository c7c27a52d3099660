use fanin_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A full-duplex link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// Bits a second, each way.
    pub rate: Rate,
    /// Propagation delay, each way.
    pub delay: Duration,
}

impl Default for Link {
    fn default() -> Self {
        Self { rate: Rate::new(1_000_000_000), delay: Duration::from_micros(1) }
    }
}

/// How hosts and switches are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Every host hangs on one switch, `tor`.
    Star,
    /// Racks of collectors behind `tor` switches, core routers, and groups of readouts behind `aggregation`
    /// switches, each group split among the cores (thesis §4.2.1, §5.1.4).
    Racks,
    /// Parallel leaf-spine planes with pods (multi-host paper §II.B, fig. 2).
    LeafSpine,
    /// As `racks`, with one shallow switch as the core that sends incast-sensitive flows through software queues
    /// beside it (multi-host paper §IV).
    Hybrid,
}

/// How flows are spread over parallel paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowDistribution {
    /// All flows to one collector take one path; collectors are dealt out evenly.
    PerDestination,
    /// Each flow takes the path that a hash of its addresses and ports gives (ECMP).
    Ecmp,
}

/// What links add to an IP packet, on the wire and in a switch's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Ethernet: 38 bytes on the wire, 18 of them stored, and padding of short packets.
    Ethernet,
    /// The two-byte header of ns-3's point-to-point links, for comparison with studies made there.
    PointToPoint,
}

/// Parallel leaf-spine planes with pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LeafSpine {
    /// Planes, each a leaf-spine network of its own; a host has one link into each.
    #[schemars(range(min = 1, max = 64))]
    pub planes: u32,
    /// Pods: readouts and racks that share a leaf switch in every plane.
    #[schemars(range(min = 1, max = 1024))]
    pub pods: u32,
    /// Spine switches of each plane.
    #[schemars(range(min = 1, max = 1024))]
    pub spines: u32,
    /// Ports of each switch.
    #[schemars(range(min = 2, max = 1024))]
    pub ports: u32,
}

impl Default for LeafSpine {
    fn default() -> Self {
        Self { planes: 1, pods: 2, spines: 2, ports: 40 }
    }
}

/// Software queues beside a hardware switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hybrid {
    /// Host ports that redirected flows take to the software switch and back (PEPs); zero: hardware only.
    #[schemars(range(min = 0, max = 4))]
    pub host_ports: u32,
    /// A host port's link.
    pub link: Link,
}

impl Default for Hybrid {
    fn default() -> Self {
        Self {
            host_ports: 0,
            link: Link { rate: Rate::new(50_000_000_000), delay: Duration::from_micros(1) },
        }
    }
}

/// How hosts and switches are joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// The shape.
    pub topology: Topology,
    /// Core routers (`racks`).
    #[schemars(range(min = 1, max = 64))]
    pub cores: u32,
    /// Links from each rack to each core router.
    #[schemars(range(min = 1, max = 64))]
    pub uplinks_per_core: u32,
    /// Readouts behind one aggregation switch; zero joins every readout straight to the cores.
    pub readouts_per_group: u32,
    /// How flows are spread over parallel paths.
    pub flow_distribution: FlowDistribution,
    /// What links add to an IP packet.
    pub framing: Framing,
    /// Parallel leaf-spine planes.
    pub leaf_spine: LeafSpine,
    /// Software queues beside a hardware switch.
    pub hybrid: Hybrid,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            topology: Topology::Racks,
            cores: 2,
            uplinks_per_core: 1,
            readouts_per_group: 16,
            flow_distribution: FlowDistribution::PerDestination,
            framing: Framing::Ethernet,
            leaf_spine: LeafSpine::default(),
            hybrid: Hybrid::default(),
        }
    }
}
