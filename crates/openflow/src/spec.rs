//! The file that says what the switch, its collectors and the host ports are.

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
    /// What each collector's ring gets that says nothing itself.
    pub ring: RingDefaults,
    /// Ports of the OpenFlow switch to which hosts and other switches are attached.
    pub port: Vec<PortSpec>,
    /// Ports of the OpenFlow switch behind which the software switch waits; none: nothing is redirected.
    pub host_port: Vec<HostPortSpec>,
    /// Stations whose port is known. Frames to them go there, whatever the switch has learned.
    pub host: Vec<HostSpec>,
    /// Stations to which many answer at once.
    pub collector: Vec<CollectorSpec>,
    /// Which frames to collectors are redirected; all of them where no flow is named.
    pub flow: Vec<FlowSpec>,
}

/// The OpenFlow switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenflowSpec {
    /// What `ovs-ofctl` calls the switch: a bridge, or an address such as `tcp:192.0.2.1:6653`.
    pub bridge: String,
    /// The version of the protocol.
    pub version: Version,
    /// The table that the rules go to, 0 to 253.
    pub table: u8,
    /// Marks our rules, so that they can be replaced and removed without touching others.
    pub cookie: u64,
    /// Our rules take the five priorities above this one, at least 1; the rule for all other frames has priority 1.
    pub priority: u16,
    /// What becomes of frames that no rule of ours names.
    pub others: Others,
    /// Whether the switch knows masks on TCP and UDP ports, as Open vSwitch does. Without, a range of ports becomes
    /// one rule a port.
    pub port_masks: bool,
    /// The datapath's number, for controllers that take rules as JSON.
    pub datapath: u64,
}

impl Default for OpenflowSpec {
    fn default() -> Self {
        Self {
            bridge: "br0".to_owned(),
            version: Version::V13,
            table: 0,
            cookie: 0xfa41,
            priority: 1000,
            others: Others::Normal,
            port_masks: true,
            datapath: 1,
        }
    }
}

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// 1.3.
    #[serde(rename = "1.3")]
    V13,
    /// 1.4, the first with bundles.
    #[serde(rename = "1.4")]
    V14,
    /// 1.5.
    #[serde(rename = "1.5")]
    V15,
}

impl Version {
    /// What `ovs-ofctl -O` calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V13 => "OpenFlow13",
            Self::V14 => "OpenFlow14",
            Self::V15 => "OpenFlow15",
        }
    }
}

/// What becomes of frames that no rule of ours names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Others {
    /// The switch's own learning and flooding (OpenFlow's reserved port NORMAL, which hybrid switches have).
    Normal,
    /// They are flooded out of all ports but host ports, for switches that know OpenFlow only. Every station that
    /// matters should then be named as a host.
    Flood,
    /// Nothing is said: rules of somebody else decide.
    Nothing,
}

/// What a ring gets where its collector says nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RingDefaults {
    /// Capacity.
    pub bytes: Bytes,
    /// Rate at which it is emptied; only the host port's by default.
    pub rate: Option<Rate>,
    /// How much may leave at once.
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
pub struct PortSpec {
    /// Its name, as the switch knows it.
    pub name: String,
    /// Its number in OpenFlow.
    pub number: u32,
}

/// A port of the OpenFlow switch behind which the software switch waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPortSpec {
    /// Its name, as the OpenFlow switch knows it.
    pub name: String,
    /// Its number in OpenFlow.
    pub number: u32,
    /// The interface at the other end, where the software switch runs; called as the port by default.
    #[serde(default)]
    pub interface: Option<String>,
    /// What it carries in one direction; used to spread collectors and to warn.
    #[serde(default)]
    pub rate: Option<Rate>,
}

/// A station whose port is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Its name.
    pub name: String,
    /// The port that it is attached to, possibly behind other switches.
    pub port: String,
    /// Its address.
    pub mac: Mac,
}

/// A station to which many answer at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectorSpec {
    /// Its name, and its ring's.
    pub name: String,
    /// The port that it is attached to, possibly behind other switches.
    pub port: String,
    /// Its Ethernet address or a prefix of it; this, `ip` or both.
    #[serde(default)]
    pub mac: Option<MacPrefix>,
    /// Its IP address or prefix, for collectors that share a router's Ethernet address.
    #[serde(default)]
    pub ip: Option<IpPrefix>,
    /// The host port that its frames are redirected through; by default the one with the least to do.
    #[serde(default)]
    pub host_port: Option<String>,
    /// Capacity of its ring.
    #[serde(default)]
    pub bytes: Option<Bytes>,
    /// Rate at which its ring is emptied.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// How much of its ring may leave at once.
    #[serde(default)]
    pub burst: Option<Bytes>,
}

/// Frames that are redirected. What is not said matches anything.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowSpec {
    /// The collectors that are meant; all by default.
    pub collectors: Vec<String>,
    /// Source station.
    pub source_mac: Option<MacPrefix>,
    /// VLAN, on switches that see its tag.
    pub vlan: Option<Vlan>,
    /// Source address.
    pub source_ip: Option<IpPrefix>,
    /// Destination address.
    pub destination_ip: Option<IpPrefix>,
    /// What IP carries.
    pub protocol: Option<Protocol>,
    /// Source port or ports of TCP or UDP; of both where `protocol` is not said.
    pub source_port: Option<PortRange>,
    /// Destination port or ports of TCP or UDP.
    pub destination_port: Option<PortRange>,
}
