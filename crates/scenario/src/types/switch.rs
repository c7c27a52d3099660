use core::fmt;

use fanin_units::{Bytes, Duration, Packets, Rate, Ratio};
use schemars::JsonSchema;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How a switch shares its packet memory out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Buffering {
    /// Each output port has `buffer` of its own (`uplink_buffer` on uplinks).
    Dedicated,
    /// All ports of a pool share `buffer`, each up to `port_limit`.
    Shared,
    /// Ports share `buffer`; each may hold up to `alpha` times what is free (Choudhury and Hahne).
    DynamicThreshold,
    /// Modules of `module_ports` input ports, each with `buffer` and a queue for every output (VOQ).
    Voq,
    /// A deep queue in DRAM for each collector, with a rate limit of its own (LCN'15).
    Daqring,
    /// Memory without end.
    Unlimited,
}

/// Which port's queue a frame is charged to in a shared pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PoolCharge {
    /// The port that it leaves by.
    Output,
    /// The port that it came in by (switch B of the thesis, §4.2.1).
    Input,
}

/// A limit in bytes, or none.
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
        struct Text;
        impl Visitor<'_> for Text {
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
        input.deserialize_any(Text)
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

/// Which signal a queue gives before it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnMode {
    /// None.
    Off,
    /// Marks above `threshold` of the instantaneous queue, as DCTCP wants it (RFC 8257 §3.1).
    Threshold,
    /// Marks by RED on the averaged queue.
    RedMark,
    /// Drops by RED on the averaged queue.
    RedDrop,
}

/// What becomes of a packet that should be marked and must not be, because its sender does not know ECN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotCapable {
    /// It is dropped (RFC 3168 §5).
    Drop,
    /// It passes as it is.
    Pass,
}

/// What thresholds of a queue count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueUnit {
    /// Packets, whatever their size.
    Packets,
    /// Bytes, in steps of a full packet.
    Bytes,
}

/// Early congestion signals of a switch's output queues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ecn {
    /// Which signal.
    pub mode: EcnMode,
    /// What the thresholds count.
    pub unit: QueueUnit,
    /// K: `threshold` marks above it.
    pub threshold: Packets,
    /// RED: below this averaged queue, nothing is marked.
    pub min: Packets,
    /// RED: above this averaged queue, everything is marked.
    pub max: Packets,
    /// RED: weight of a new sample in the average; 1 for the instantaneous queue.
    pub weight: Ratio,
    /// RED: share that is marked just below `max`.
    pub probability_max: Ratio,
    /// RED: whether the share rises on from `max` to all at twice `max`, instead of jumping there (Floyd 2000).
    pub gentle: bool,
    /// RED that marks: whether packets are dropped all the same where every one is hit (RFC 3168 §7).
    pub hard_drop: bool,
    /// `threshold`: what becomes of packets whose sender does not know ECN.
    pub not_capable: NotCapable,
}

impl Default for Ecn {
    fn default() -> Self {
        Self {
            mode: EcnMode::Off,
            unit: QueueUnit::Packets,
            threshold: Packets::new(20),
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

/// Whether a switch stops its neighbours before it overflows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PauseMode {
    /// It does not.
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
    /// Whether, and what stops.
    pub mode: PauseMode,
    /// Bytes that came in by a port and still wait, above which the neighbour there is stopped.
    pub xoff: Bytes,
    /// Bytes below which it may send again.
    pub xon: Bytes,
    /// Time from a pause frame's arrival until the neighbour has stopped.
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

/// Which daqring of a port is served next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DaqringService {
    /// Each in turn.
    RoundRobin,
    /// The longest.
    LongestFirst,
}

/// The deep queues of a software switch (LCN'15, multi-host paper §II.B).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Daqrings {
    /// Frames that each collector's ring holds.
    #[schemars(range(min = 1))]
    pub frames: u32,
    /// Memory that each frame takes, whatever its length.
    pub slot: Bytes,
    /// Rate at which each ring is emptied; zero means as fast as the port goes.
    pub rate: Rate,
    /// Bytes that a ring may send at once after it was idle.
    pub burst: Bytes,
    /// Which ring of a port is served next.
    pub service: DaqringService,
    /// The flows that are sensitive to incast and have rings, one for each destination: rules such as
    /// `"readout->collector"` or `"readout:3->collector:*"`. All others go before the rings, without a rate.
    pub flows: Vec<String>,
}

impl Daqrings {
    /// Whether a rule of `flows` names the connection of these two ends, such as `readout` 3 and `collector` 0.
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
            service: DaqringService::RoundRobin,
            flows: vec!["readout->collector".to_owned()],
        }
    }
}

/// A switch or router: its ports and its packet memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Switch {
    /// Ports that it has, uplinks included; zero means as many as the network needs.
    pub ports: u32,
    /// How it shares its packet memory out.
    pub buffering: Buffering,
    /// Packet memory: of each port (`dedicated`), pool (`shared`, `dynamic-threshold`) or module (`voq`).
    pub buffer: Bytes,
    /// Packet memory of each uplink port (`dedicated`); by default as `buffer`.
    pub uplink_buffer: Bytes,
    /// Most that one output port may hold of a pool or module.
    pub port_limit: Limit,
    /// Most that one input port may hold of a pool.
    pub input_limit: Limit,
    /// `shared`: the first so many ports have a pool of their own; zero means one pool for all.
    pub pool_split: u32,
    /// `shared`: which port's pool a frame is charged to.
    pub pool_charge: PoolCharge,
    /// `dynamic-threshold`: the share of the free memory that one port may hold.
    pub alpha: Ratio,
    /// `voq`: input ports of a module.
    #[schemars(range(min = 1))]
    pub module_ports: u32,
    /// Memory that each frame takes beside its own bytes.
    pub frame_overhead: Bytes,
    /// Whether a frame counts while it is being sent.
    pub count_in_service: bool,
    /// Time from a frame's last bit to its being queued at the output.
    pub latency: Duration,
    /// Whether it writes the M21TCP option.
    pub m21: bool,
    /// Early congestion signals.
    pub ecn: Ecn,
    /// Link-level flow control.
    pub pause: Pause,
    /// The deep queues of `buffering = "daqring"`.
    pub daqring: Daqrings,
}

impl Switch {
    /// Packet memory of a core router's module (Brocade MLXe-32; thesis §4.2.1).
    pub const MODULE: Bytes = Bytes::new(1_500_000_000);

    /// A switch that never drops in the scenarios it is the default of.
    pub(crate) fn deep() -> Self {
        Self { buffering: Buffering::Unlimited, ..Self::default() }
    }
}

impl Default for Switch {
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
