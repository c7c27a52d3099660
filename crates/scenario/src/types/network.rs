use fanin_units::wire::FrameOverhead;
use fanin_units::{Duration, Rate, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A full-duplex link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinkSettings {
    /// Bits per second, each way; 1 kb/s to 10 Tb/s.
    pub rate: Rate,
    /// Propagation delay, each way; at most 1 s.
    pub delay: Duration,
    /// Share of the frames that are lost at random, each way, in steps of one millionth; below 1.
    pub loss: Ratio,
}

impl Default for LinkSettings {
    fn default() -> Self {
        Self { rate: Rate::new(1_000_000_000), delay: Duration::from_micros(1), loss: Ratio::ZERO }
    }
}

/// The hosts, switches and links between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// All hosts on one switch, `tor`.
    Star,
    /// Racks of collectors behind `tor` switches, core routers, and groups of readouts behind `aggregation`
    /// switches, each group split among the cores (thesis §4.2.1, §5.1.4).
    Racks,
    /// Parallel leaf-spine planes with pods (multi-host paper §II.B, fig. 2).
    LeafSpine,
    /// Like `racks`, with one shallow switch as the core. The core redirects incast-sensitive flows through the queues
    /// of a software switch (multi-host paper §IV).
    Hybrid,
}

/// The choice among parallel paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowDistribution {
    /// All flows to one collector take one path; collectors are distributed evenly over the paths.
    PerDestination,
    /// A hash of the flow's addresses and ports chooses the path (ECMP).
    Ecmp,
}

/// Bytes that a link adds to an IP packet, on the wire and in a switch's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Ethernet: 38 bytes on the wire, of which a switch stores 18, and padding of short packets.
    Ethernet,
    /// The two-byte header of ns-3's point-to-point links, for comparison with studies in ns-3.
    PointToPoint,
}

impl Framing {
    /// Returns the bytes that a link adds to an IP packet.
    #[must_use]
    pub const fn frame_overhead(self) -> FrameOverhead {
        match self {
            Self::Ethernet => FrameOverhead::ETHERNET,
            Self::PointToPoint => FrameOverhead::POINT_TO_POINT,
        }
    }
}

/// Parallel leaf-spine planes with pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LeafSpine {
    /// Planes, each a separate leaf-spine network; every host has one link into each.
    #[schemars(range(min = 1, max = 64))]
    pub planes: u32,
    /// Pods: groups of readouts and racks that share a leaf switch in every plane.
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

/// A hardware switch that is joined to a software switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hybrid {
    /// Ports between hardware and software switch, which redirected flows take there and back (PEPs); zero: hardware only.
    #[schemars(range(min = 0, max = 4))]
    pub host_ports: u32,
    /// The link of each of these ports.
    pub link: LinkSettings,
}

impl Default for Hybrid {
    fn default() -> Self {
        Self {
            host_ports: 0,
            link: LinkSettings { rate: Rate::new(50_000_000_000), ..LinkSettings::default() },
        }
    }
}

/// The hosts, switches and links between them: at most 1 000 000 readouts and collectors, and 2 000 000 links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkSettings {
    /// The shape of the network.
    pub topology: Topology,
    /// Core routers (`racks`).
    #[schemars(range(min = 1, max = 64))]
    pub cores: u32,
    /// Links from each rack to each core router.
    #[schemars(range(min = 1, max = 64))]
    pub uplinks_per_core: u32,
    /// Readouts behind one aggregation switch; zero: every readout is joined directly to the cores.
    pub readouts_per_group: u32,
    /// The choice among parallel paths.
    pub flow_distribution: FlowDistribution,
    /// Bytes that a link adds to an IP packet.
    pub framing: Framing,
    /// Parallel leaf-spine planes.
    pub leaf_spine: LeafSpine,
    /// A hardware switch that is joined to a software switch.
    pub hybrid: Hybrid,
}

impl Default for NetworkSettings {
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

/// The properties of a topology that checks and explanations need before a graph is built.
pub struct TopologyFacts {
    /// The sections of the topology's switches.
    pub switches: &'static [&'static str],
    /// The keys and sections that this topology reads and some other topology does not.
    keys: &'static [&'static str],
}

impl TopologyFacts {
    /// Returns true if the topology reads a key, or has the switches of a section.
    pub fn reads(&self, key: &str) -> bool {
        self.keys.contains(&key) || self.switches.contains(&key)
    }
}

impl NetworkSettings {
    /// Returns the facts of the topology: its switches, and the keys that only some topologies read.
    pub(crate) const fn facts(&self) -> TopologyFacts {
        let of_racks: &[&str] =
            if self.readouts_per_group > 0 { &["tor", "core", "aggregation"] } else { &["tor", "core"] };
        let (switches, keys): (&[&str], &[&str]) = match self.topology {
            Topology::Star => (&["tor"], &[]),
            Topology::Racks => (
                of_racks,
                &["uplink", "network.cores", "network.uplinks_per_core", "network.readouts_per_group"],
            ),
            Topology::LeafSpine => (&["tor", "leaf", "spine"], &["uplink", "network.leaf_spine"]),
            Topology::Hybrid => (
                of_racks,
                &[
                    "uplink",
                    "network.cores",
                    "network.uplinks_per_core",
                    "network.readouts_per_group",
                    "network.hybrid",
                ],
            ),
        };
        TopologyFacts { switches, keys }
    }
}
