//! The description of a hybrid: the OpenFlow switch, its collectors and the host ports.

use fanin_units::{Bytes, Rate};
use serde::{Deserialize, Serialize};

use fanin_switch::config::{PortRange, Protocol};
use fanin_switch::{IpPrefix, Mac, MacPrefix, Vlan};

/// A whole description.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HybridSpec {
    /// The OpenFlow switch.
    pub openflow: OpenflowSpec,
    /// Defaults of the collectors' rings.
    pub ring: RingDefaults,
    /// Ports of the OpenFlow switch for hosts and other switches.
    pub port: Vec<OpenflowPort>,
    /// Ports of the OpenFlow switch that lead to the software switch; with none, nothing is redirected.
    pub host_port: Vec<HostPortSpec>,
    /// Stations with a configured port, which takes precedence over learning.
    pub host: Vec<HostSpec>,
    /// Stations that receive many answers at once.
    pub collector: Vec<CollectorSpec>,
    /// The flows to collectors that are redirected. Without any flow, all frames to collectors are.
    pub flow: Vec<FlowSpec>,
}

/// The OpenFlow switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenflowSpec {
    /// The switch as `ovs-ofctl` addresses it: a bridge, or an address such as `tcp:192.0.2.1:6653`.
    pub bridge: String,
    /// The version of the protocol.
    pub version: OpenflowVersion,
    /// The table of the rules, 0 to 253.
    pub table: u8,
    /// The cookie of our rules, not 0. It lets us replace and remove our rules without touching others.
    pub cookie: u64,
    /// Our rules take the five priorities above this one, at least 1; the rule for all other frames has priority 1.
    pub priority: u16,
    /// The action on frames that match none of our other rules.
    pub others: Others,
    /// True if the switch supports masks on TCP and UDP ports, as Open vSwitch does. If false, a range of ports becomes
    /// one rule a port.
    pub port_masks: bool,
    /// The datapath's number, for controllers that take rules as JSON.
    pub datapath: u64,
    /// True if frames to a collector go straight to it while their host port has no link. The switch must support
    /// fast-failover groups. Rules as JSON have none.
    pub failover: bool,
    /// True if the kernel of the software switch's machine sends frames back while the switch does not run. It changes no rule:
    /// the configuration of `--as switch` has `bypass` for each port. Before the first start of the switch, the script of
    /// `--as bypass` installs the same filters.
    pub bypass: bool,
    /// Number of the first of these groups; each redirected collector has one.
    pub group: u32,
}

impl Default for OpenflowSpec {
    fn default() -> Self {
        Self {
            bridge: "br0".to_owned(),
            version: OpenflowVersion::V13,
            table: 0,
            cookie: 0xfa41,
            priority: 1000,
            others: Others::Normal,
            port_masks: true,
            datapath: 1,
            failover: false,
            bypass: true,
            group: 0xfa41,
        }
    }
}

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenflowVersion {
    /// OpenFlow version 1.3.
    #[serde(rename = "1.3")]
    V13,
    /// OpenFlow version 1.4, the first with bundles.
    #[serde(rename = "1.4")]
    V14,
    /// OpenFlow version 1.5.
    #[serde(rename = "1.5")]
    V15,
}

impl OpenflowVersion {
    /// The name that `ovs-ofctl -O` takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V13 => "OpenFlow13",
            Self::V14 => "OpenFlow14",
            Self::V15 => "OpenFlow15",
        }
    }
}

/// The action on frames that match none of our other rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Others {
    /// The switch's own learning and flooding (reserved port NORMAL of OpenFlow-hybrid switches).
    Normal,
    /// Floods them out of all ports but host ports, for OpenFlow-only switches. Every station must then be named as a
    /// host.
    Flood,
    /// Adds no rule: the rules of another controller apply.
    Nothing,
}

/// Defaults of the collectors' rings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RingDefaults {
    /// Capacity of a ring.
    pub bytes: Bytes,
    /// Rate of a ring's token bucket; by default only the host port limits the ring.
    pub rate: Option<Rate>,
    /// Depth of a ring's token bucket.
    pub burst: Option<Bytes>,
}

impl Default for RingDefaults {
    fn default() -> Self {
        Self { bytes: Bytes::new(64 << 20), rate: None, burst: None }
    }
}

/// A port of the OpenFlow switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenflowPort {
    /// The port's name on the switch.
    pub name: String,
    /// The port's number in OpenFlow.
    pub number: u32,
}

/// A port of the OpenFlow switch that leads to the software switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPortSpec {
    /// The port's name on the OpenFlow switch.
    pub name: String,
    /// The port's number in OpenFlow.
    pub number: u32,
    /// The interface of the software switch at the other end; by default it has the port's name.
    #[serde(default)]
    pub interface: Option<String>,
    /// The port's rate in one direction, by which collectors are spread and overload is reported.
    #[serde(default)]
    pub rate: Option<Rate>,
}

/// A station with a configured port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Name of the station.
    pub name: String,
    /// The port that leads to the station, possibly through other switches.
    pub port: String,
    /// MAC address of the station.
    pub mac: Mac,
}

/// A station that receives many answers at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectorSpec {
    /// Name of the collector, of its ring and of its rule in the software switch.
    pub name: String,
    /// The port that leads to the collector, possibly through other switches.
    pub port: String,
    /// The collector's Ethernet address, or a prefix of it. `mac`, `ip` or both are required.
    #[serde(default)]
    pub mac: Option<MacPrefix>,
    /// The collector's IP address or prefix, for collectors that share a router's Ethernet address.
    #[serde(default)]
    pub ip: Option<IpPrefix>,
    /// The host port for the collector's frames; by default the one with the least load.
    #[serde(default)]
    pub host_port: Option<String>,
    /// Capacity of the collector's ring.
    #[serde(default)]
    pub bytes: Option<Bytes>,
    /// Rate of the token bucket of the collector's ring.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Depth of the token bucket of the collector's ring.
    #[serde(default)]
    pub burst: Option<Bytes>,
}

/// Frames to redirect. An absent field matches anything.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowSpec {
    /// The collectors of the flow; all by default.
    pub collectors: Vec<String>,
    /// Source MAC address, or a prefix of it.
    pub source_mac: Option<MacPrefix>,
    /// VLAN, on switches that see the tag.
    pub vlan: Option<Vlan>,
    /// Source IP address or prefix.
    pub source_ip: Option<IpPrefix>,
    /// Destination IP address or prefix.
    pub destination_ip: Option<IpPrefix>,
    /// The IP protocol.
    pub protocol: Option<Protocol>,
    /// Source port or ports of TCP or UDP; of both if `protocol` is absent.
    pub source_port: Option<PortRange>,
    /// Destination port or ports of TCP or UDP.
    pub destination_port: Option<PortRange>,
}
