use core::fmt;

use fanin_queueing::{Aqm, Layout, MemorySettings, Red, RedError, RedSettings, RingSettings, Threshold};
pub use fanin_queueing::{Buffering, Depth, NotCapable, PoolCharge, RingService};
use fanin_units::{Bytes, Duration, Packets, Rate, Ratio};
use schemars::JsonSchema;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A limit in bytes; `None` stands for unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limit(pub Option<Bytes>);

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(bytes) => bytes.serialize(out),
            None => out.serialize_str("unlimited"),
        }
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct LimitText;
        impl Visitor<'_> for LimitText {
            type Value = Limit;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a number of bytes with its unit, or \"unlimited\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Limit, E> {
                if text == "unlimited" {
                    return Ok(Limit(None));
                }
                text.parse()
                    .map(|bytes| Limit(Some(bytes)))
                    .map_err(|error| E::custom(format_args!("{error}, or \"unlimited\"")))
            }
        }
        input.deserialize_any(LimitText)
    }
}

impl JsonSchema for Limit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let bytes = Bytes::json_schema(generator);
        schemars::json_schema!({ "anyOf": [bytes, { "const": "unlimited" }] })
    }
}

/// The congestion signal of a queue before it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnMode {
    /// No signal of congestion.
    Off,
    /// Marks if the instantaneous queue is above `threshold`, for DCTCP (RFC 8257 §3.1).
    Threshold,
    /// Marks by RED on the averaged queue.
    RedMark,
    /// Drops by RED on the averaged queue.
    RedDrop,
}

impl EcnMode {
    /// Returns true if a queue marks frames before it drops them.
    pub const fn marks(self) -> bool {
        matches!(self, Self::Threshold | Self::RedMark)
    }

    /// Returns true if the averaged queue decides, by RED.
    pub const fn is_red(self) -> bool {
        matches!(self, Self::RedMark | Self::RedDrop)
    }
}

/// The unit of a queue's thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueUnit {
    /// Packets of any size.
    Packets,
    /// Bytes: one packet of a threshold stands for the bytes of a full packet.
    Bytes,
}

/// The full packet of a queue: thresholds and the averages of RED count in such packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullPacket {
    /// Bytes of a full packet, with its check sequence.
    pub frame: Bytes,
    /// Bytes that such a packet adds to the queue.
    pub queued: Bytes,
    /// Time to send such a packet.
    pub time: Duration,
}

/// Congestion signals of a switch's output queues, in scenarios and on a live switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ecn {
    /// The kind of signal.
    pub mode: EcnMode,
    /// The unit of thresholds that are numbers of packets.
    pub unit: QueueUnit,
    /// `threshold`: K, the queue above which packets are marked.
    pub threshold: Depth,
    /// RED: average queue below which no packet is marked.
    pub min: Packets,
    /// RED: average queue above which every packet is marked.
    pub max: Packets,
    /// RED: weight of a new sample in the average, above 0; 1 stands for the instantaneous queue.
    pub weight: Ratio,
    /// RED: probability of a mark just below `max`, 0 to 1.
    pub probability_max: Ratio,
    /// RED: the probability rises from `max` to 1 at twice `max` (Floyd 2000). If false, it jumps to 1 at `max`.
    pub gentle: bool,
    /// `red-mark`: packets are dropped, not marked, if the probability is 1 (RFC 3168 §7).
    pub hard_drop: bool,
    /// Treatment of packets from senders without ECN, for `threshold`.
    pub not_capable: NotCapable,
}

impl Default for Ecn {
    fn default() -> Self {
        Self {
            mode: EcnMode::Off,
            unit: QueueUnit::Packets,
            threshold: Depth::Packets(Packets::new(20)),
            min: Packets::new(15),
            max: Packets::new(25),
            weight: Ratio::new(2_000),
            probability_max: Ratio::new(100_000),
            gentle: false,
            hard_drop: true,
            not_capable: NotCapable::Drop,
        }
    }
}

impl Ecn {
    /// Returns the settings of marking above a threshold; packets from senders without ECN pass or are dropped.
    pub fn marking_above(threshold: Depth, not_capable: NotCapable) -> Self {
        Self { mode: EcnMode::Threshold, threshold, not_capable, ..Self::default() }
    }

    /// Returns each changed key that nothing reads, with the reason.
    pub fn unread(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (mode, default) = (self.mode, Self::default());
        let (no_threshold, no_red) = (mode != EcnMode::Threshold, !mode.is_red());
        let has_bytes = !no_threshold && matches!(self.threshold, Depth::Bytes(_));
        let why_no_threshold = "ecn.mode is not \"threshold\"";
        let why_no_red = "ecn.mode is neither \"red-mark\" nor \"red-drop\"";
        [
            ("unit", has_bytes, self.unit != default.unit, "ecn.threshold is in bytes"),
            ("unit", mode == EcnMode::Off, self.unit != default.unit, "ecn.mode is \"off\""),
            ("threshold", no_threshold, self.threshold != default.threshold, why_no_threshold),
            ("not_capable", no_threshold, self.not_capable != default.not_capable, why_no_threshold),
            ("min", no_red, self.min != default.min, why_no_red),
            ("max", no_red, self.max != default.max, why_no_red),
            ("weight", no_red, self.weight != default.weight, why_no_red),
            ("probability_max", no_red, self.probability_max != default.probability_max, why_no_red),
            ("gentle", no_red, self.gentle != default.gentle, why_no_red),
            (
                "hard_drop",
                mode != EcnMode::RedMark,
                self.hard_drop != default.hard_drop,
                "ecn.mode is not \"red-mark\"",
            ),
        ]
        .into_iter()
        .filter_map(|(key, is_unread, is_changed, why)| (is_unread && is_changed).then_some((key, why)))
    }

    /// Makes the marker of a queue.
    ///
    /// # Errors
    /// If the thresholds or shares of RED are wrong.
    pub fn aqm(&self, packet: FullPacket) -> Result<Aqm, RedError> {
        let depth = |threshold| match (threshold, self.unit) {
            (Depth::Packets(packets), QueueUnit::Bytes) => {
                Depth::Bytes(packets.checked_times(packet.frame).unwrap_or(Bytes::MAX))
            }
            (Depth::Packets(_), QueueUnit::Packets) | (Depth::Bytes(_), _) => threshold,
        };
        Ok(match self.mode {
            EcnMode::Off => Aqm::None,
            EcnMode::Threshold => {
                Aqm::Threshold(Threshold { depth: depth(self.threshold), not_capable: self.not_capable })
            }
            EcnMode::RedMark | EcnMode::RedDrop => Aqm::Red(Red::new(RedSettings {
                depth_min: depth(Depth::Packets(self.min)),
                depth_max: depth(Depth::Packets(self.max)),
                weight: self.weight,
                probability_max: self.probability_max,
                gentle: self.gentle,
                ecn: self.mode == EcnMode::RedMark,
                hard_drop: self.hard_drop,
                packet_mean: packet.queued,
                packet_time: packet.time,
            })?),
        })
    }
}

/// Link-level flow control of a switch's inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PauseMode {
    /// No flow control.
    Off,
    /// IEEE 802.3x: the whole link stops.
    Pause,
    /// IEEE 802.1Qbb: one priority of the link stops.
    Priority,
}

/// Link-level flow control.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pause {
    /// The kind of flow control.
    pub mode: PauseMode,
    /// Ingress occupancy of a port at which its neighbour is sent PAUSE.
    pub xoff: Bytes,
    /// Ingress occupancy at or below which it is sent RESUME.
    pub xon: Bytes,
    /// Time from the arrival of a PAUSE frame until the neighbour stops sending.
    pub reaction: Duration,
}

impl Default for Pause {
    fn default() -> Self {
        Self {
            mode: PauseMode::Off,
            xoff: Bytes::new(64_000),
            xon: Bytes::new(48_000),
            reaction: Duration::from_micros(1),
        }
    }
}

/// The deep queues of a software switch (LCN'15, multi-host paper §II.B).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Daqrings {
    /// Frames that each collector's ring holds.
    #[schemars(range(min = 1))]
    pub frames: u32,
    /// Memory of each frame, independent of its length.
    pub slot: Bytes,
    /// Rate limit of each ring; zero: the port's rate.
    pub rate: Rate,
    /// Burst of the rate limit: bytes that a ring may send at once after it was idle.
    pub burst: Bytes,
    /// Order of service of a port's rings.
    pub service: RingService,
    /// Flows that are sensitive to incast and get a ring for each destination: rules such as `"readout->collector"` or
    /// `"readout:3->collector:*"`. All other flows have priority over the rings and no rate limit.
    pub flows: Vec<String>,
}

impl Daqrings {
    /// Returns the rate and the burst of each ring's token bucket; `None` without a rate limit.
    pub fn shaping(&self) -> Option<(Rate, Bytes)> {
        (!self.rate.is_zero()).then_some((self.rate, self.burst))
    }

    /// Returns the rate limit of each ring at a port of this rate; `None` if there is none below it.
    pub fn rate_below(&self, port: Rate) -> Option<Rate> {
        self.shaping().map(|(rate, _)| rate).filter(|&rate| rate < port)
    }

    /// Returns the settings of a destination's ring.
    pub fn ring(&self) -> RingSettings {
        RingSettings { shaping: self.shaping(), ..self.plain_queue() }
    }

    /// Returns the settings of a port's plain queue: a ring without a rate limit, which is served before all others.
    pub fn plain_queue(&self) -> RingSettings {
        RingSettings::new(self.frames)
    }

    /// Returns true if a rule of `flows` names the connection of these two ends, such as `readout` 3 and `collector` 0.
    pub fn names(&self, from: (&str, u32), to: (&str, u32)) -> bool {
        let fits = |pattern: &str, (kind, number): (&str, u32)| match pattern.trim().split_once(':') {
            None => pattern.trim() == kind,
            Some((wanted, which)) => wanted == kind && (which == "*" || which.parse() == Ok(number)),
        };
        self.flows.iter().any(|rule| rule.split_once("->").is_some_and(|(a, b)| fits(a, from) && fits(b, to)))
    }
}

impl Default for Daqrings {
    fn default() -> Self {
        Self {
            frames: 4096,
            slot: Bytes::new(2048),
            rate: Rate::ZERO,
            burst: Bytes::new(3036),
            service: RingService::RoundRobin,
            flows: vec!["readout->collector".to_owned()],
        }
    }
}

/// A switch or router: its ports and its packet memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchSettings {
    /// Number of ports, uplinks included; zero: the number that the network needs.
    pub ports: u32,
    /// The division of the packet memory among the ports.
    pub buffering: Buffering,
    /// Packet memory: of each port (`dedicated`), pool (`shared`, `dynamic-threshold`) or module (`voq`).
    pub buffer: Bytes,
    /// Packet memory of each uplink port (`dedicated`); default: `buffer`.
    pub uplink_buffer: Bytes,
    /// Largest share of a pool or module for one output port.
    pub port_limit: Limit,
    /// Largest share of a pool for one input port.
    pub input_limit: Limit,
    /// `shared`: number of ports, counted from the first, that have a separate pool; zero: one pool for all ports.
    pub pool_split: u32,
    /// Port that a frame's memory is charged to, for `shared`.
    pub pool_charge: PoolCharge,
    /// `dynamic-threshold`: limit of one port, as a multiple of the free memory.
    pub alpha: Ratio,
    /// `voq`: input ports of each module.
    #[schemars(range(min = 1))]
    pub module_ports: u32,
    /// Memory that each frame takes in addition to its bytes.
    pub frame_overhead: Bytes,
    /// A frame occupies memory until its last bit has left. If false, until its first bit leaves.
    pub count_in_service: bool,
    /// Time from a frame's last bit until it is queued at the output.
    pub latency: Duration,
    /// The switch writes the M21TCP option.
    pub m21: bool,
    /// Congestion signals of the output queues.
    pub ecn: Ecn,
    /// Link-level flow control.
    pub pause: Pause,
    /// The deep queues of `buffering = "daqring"`.
    pub daqring: Daqrings,
}

impl SwitchSettings {
    /// Packet memory of a core router's module (Brocade MLXe-32; thesis §4.2.1).
    pub const MODULE: Bytes = Bytes::new(1_500_000_000);

    /// Returns the division of the packet memory among the ports; `is_uplink` has an element for each port. `None` with rings,
    /// which have a capacity each.
    pub fn layout(&self, is_uplink: &[bool]) -> Option<Layout> {
        let buffer = |&up: &bool| if up { self.uplink_buffer } else { self.buffer };
        let settings = self.memory_settings(is_uplink.iter().map(buffer).collect());
        (!self.buffering.has_rings()).then(|| settings.layout())
    }

    /// Returns the settings of the packet memory with these buffers of outputs, which only `dedicated` reads.
    pub fn memory_settings(&self, output_buffers: Vec<Bytes>) -> MemorySettings {
        MemorySettings {
            buffering: self.buffering,
            output_buffers,
            buffer: self.buffer,
            port_limit: self.port_limit.0,
            input_limit: self.input_limit.0,
            pool_split: self.pool_split,
            pool_charge: self.pool_charge,
            module_ports: self.module_ports,
            alpha: self.alpha,
            frame_overhead: self.frame_overhead,
            cell: Bytes::new(1),
        }
    }

    /// Makes a switch with unlimited buffers, which never drops.
    pub(crate) fn unlimited() -> Self {
        Self { buffering: Buffering::Unlimited, ..Self::default() }
    }
}

impl Default for SwitchSettings {
    fn default() -> Self {
        Self {
            ports: 0,
            buffering: Buffering::Dedicated,
            buffer: Bytes::new(786_000),
            uplink_buffer: Bytes::new(786_000),
            port_limit: Limit(None),
            input_limit: Limit(None),
            pool_split: 0,
            pool_charge: PoolCharge::Output,
            alpha: Ratio::ONE,
            module_ports: 8,
            frame_overhead: Bytes::ZERO,
            count_in_service: true,
            latency: Duration::ZERO,
            m21: false,
            ecn: Ecn::default(),
            pause: Pause::default(),
            daqring: Daqrings::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_packets_become_the_unit_of_the_queue() {
        let packet = FullPacket {
            frame: Bytes::new(1518),
            queued: Bytes::new(1514),
            time: Duration::from_nanos(12_304),
        };
        let packets = |count| Depth::Packets(Packets::new(count));
        let bytes = |count| Depth::Bytes(Bytes::new(count));
        for (unit, threshold, counted) in [
            (QueueUnit::Packets, packets(20), packets(20)),
            (QueueUnit::Bytes, packets(20), bytes(30_360)),
            (QueueUnit::Bytes, bytes(3_000), bytes(3_000)),
            (QueueUnit::Packets, bytes(3_000), bytes(3_000)),
        ] {
            let ecn = Ecn { unit, ..Ecn::marking_above(threshold, NotCapable::Pass) };
            let marker = Aqm::Threshold(Threshold { depth: counted, not_capable: NotCapable::Pass });
            assert_eq!(format!("{:?}", ecn.aqm(packet)), format!("{:?}", Ok::<_, RedError>(marker)));
        }
        for (unit, depth_min, depth_max) in
            [(QueueUnit::Packets, packets(15), packets(25)), (QueueUnit::Bytes, bytes(22_770), bytes(37_950))]
        {
            let ecn = Ecn { mode: EcnMode::RedMark, unit, ..Ecn::default() };
            let red = Red::new(RedSettings {
                depth_min,
                depth_max,
                weight: Ratio::new(2_000),
                probability_max: Ratio::new(100_000),
                gentle: false,
                ecn: true,
                hard_drop: true,
                packet_mean: packet.queued,
                packet_time: packet.time,
            });
            assert_eq!(format!("{:?}", ecn.aqm(packet)), format!("{:?}", red.map(Aqm::Red)));
        }
    }
}
