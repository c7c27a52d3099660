//! The configuration of rings, rules, stations and ways. [`crate::Command`] uses the same types.

use fanin_scenario::Ecn;
use fanin_units::{Bytes, Packets, Rate, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::address::{IpPrefix, Mac, MacPrefix, Vlan};

/// A deep queue ("daqring") of one output, with a token bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RingSpec {
    /// Unique name of the ring.
    pub name: String,
    /// Output port of the ring.
    pub port: String,
    /// Most frames that it holds; unlimited by default.
    #[serde(default)]
    pub frames: Option<Packets>,
    /// The most bytes it holds.
    #[serde(default)]
    pub bytes: Option<Bytes>,
    /// Rate of its token bucket, 10 kb/s to 4 Tb/s; by default only the port's rate limits it.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Depth of its token bucket; 0 by default, which spaces frames evenly.
    #[serde(default)]
    pub burst: Option<Bytes>,
    /// Priority under `service = "strict-priority"`; the highest is served first.
    #[serde(default)]
    pub priority: u8,
    /// Congestion signals of this ring.
    #[serde(default)]
    pub ecn: Ecn,
    /// The share of its capacity at which an alarm is raised.
    #[serde(default)]
    pub alarm: Option<Ratio>,
}

impl RingSpec {
    /// Makes a ring without limits.
    pub fn new(name: &str, port: &str) -> Self {
        Self {
            name: name.to_owned(),
            port: port.to_owned(),
            frames: None,
            bytes: None,
            rate: None,
            burst: None,
            priority: 0,
            ecn: Ecn::default(),
            alarm: None,
        }
    }
}

/// A rule that sends frames to a ring. An absent field matches anything. Among matching rules the highest priority wins, and
/// among equals the first. A rule chooses a queue of the frame's output port; it does not change the output port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RuleSpec {
    /// Unique name of the rule.
    pub name: String,
    /// The ring; absent if `drop` is set.
    pub ring: Option<String>,
    /// Drops the frames, for every output port.
    pub drop: bool,
    /// Priority; the highest matching rule wins.
    pub priority: u16,
    /// Name of the input port.
    pub input: Option<String>,
    /// MAC address of the sender, or a prefix of it.
    pub source_mac: Option<MacPrefix>,
    /// MAC address of the receiver, or a prefix of it.
    pub destination_mac: Option<MacPrefix>,
    /// VLAN; for untagged frames the port's.
    pub vlan: Option<Vlan>,
    /// IP address of the sender, or a prefix of it.
    pub source_ip: Option<IpPrefix>,
    /// IP address of the receiver, or a prefix of it.
    pub destination_ip: Option<IpPrefix>,
    /// The IP protocol.
    pub protocol: Option<Protocol>,
    /// Source port or ports of TCP or UDP.
    pub source_port: Option<PortRange>,
    /// Destination port or ports of TCP or UDP.
    pub destination_port: Option<PortRange>,
}

/// An IP protocol: `"tcp"`, `"udp"`, `"icmp"`, or a number of IANA's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    const NAMES: [(&'static str, u8); 4] = [("tcp", 6), ("udp", 17), ("icmp", 1), ("icmpv6", 58)];
    /// The number of TCP.
    pub const TCP: Self = Self(6);
    /// The number of UDP.
    pub const UDP: Self = Self(17);
}

impl Serialize for Protocol {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match Self::NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => out.serialize_str(name),
            None => out.serialize_u8(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct ProtocolVisitor;
        impl serde::de::Visitor<'_> for ProtocolVisitor {
            type Value = Protocol;
            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("\"tcp\", \"udp\", \"icmp\", \"icmpv6\" or a number from 0 to 255")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Protocol, E> {
                let found = Protocol::NAMES.iter().find(|(name, _)| *name == text);
                found
                    .map(|(_, number)| Protocol(*number))
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Protocol, E> {
                u8::try_from(number)
                    .map(Protocol)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Protocol, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }
        }
        input.deserialize_any(ProtocolVisitor)
    }
}

/// A port of TCP or UDP, or a range of them: `5000` or `"5000-5063"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// The first port of the range.
    pub first: u16,
    /// The last, not before the first.
    pub last: u16,
}

impl Serialize for PortRange {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        if self.first == self.last {
            out.serialize_u16(self.first)
        } else {
            out.collect_str(&format_args!("{}-{}", self.first, self.last))
        }
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct PortRangeVisitor;
        impl serde::de::Visitor<'_> for PortRangeVisitor {
            type Value = PortRange;
            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a port from 0 to 65535, or a range such as \"5000-5063\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PortRange, E> {
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                match (first.trim().parse(), last.trim().parse()) {
                    (Ok(first), Ok(last)) if first <= last => Ok(PortRange { first, last }),
                    _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
                }
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<PortRange, E> {
                u16::try_from(number)
                    .map(|port| PortRange { first: port, last: port })
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<PortRange, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }
        }
        input.deserialize_any(PortRangeVisitor)
    }
}

/// A station with a configured port: it is neither learned nor forgotten, and its frames are dropped on other ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StationSpec {
    /// MAC address of the station.
    pub mac: Mac,
    /// Name of the port that it is attached to.
    pub port: String,
    /// The station's VLAN, if the switch separates VLANs.
    #[serde(default)]
    pub vlan: Option<Vlan>,
}

/// A static forwarding entry: the output port of frames to one station, for input ports with this `table`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaySpec {
    /// 1 to 15.
    pub table: u16,
    /// MAC address of the station.
    pub mac: Mac,
    /// The output port.
    pub port: String,
}
