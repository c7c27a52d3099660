//! The configuration of the switch as a whole, its control and its packet memory.

use std::net::SocketAddr;

use fanin_units::{Bytes, Duration, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::port_spec::PortSpec;
use super::ring_spec::{RingSpec, RuleSpec, StationSpec, WaySpec};

/// A whole configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The switch as a whole.
    pub switch: SwitchSpec,
    /// Who may look and change while it runs, and where.
    pub control: ControlSpec,
    /// How packet memory is divided among frames that no rule sends to a ring.
    pub buffering: BufferingSpec,
    /// DPDK, where ports are its devices.
    pub dpdk: DpdkSpec,
    /// The ports, in the order of their numbers.
    pub port: Vec<PortSpec>,
    /// The deep queues.
    pub ring: Vec<RingSpec>,
    /// Which frames go to which ring.
    pub rule: Vec<RuleSpec>,
    /// Stations whose port is known and never learned.
    pub station: Vec<StationSpec>,
    /// Where frames leave that came in by ports with a `table`.
    pub way: Vec<WaySpec>,
}

/// The switch as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchSpec {
    /// What it is called in its own output.
    pub name: String,
    /// The most bytes of an Ethernet payload, 68 B to 9000 B; frames with more are dropped and counted.
    pub mtu: Bytes,
    /// Memory for frames, everything queued and everything that drivers hold. The largest value is 64 GiB.
    pub memory: Bytes,
    /// Whether that memory consists of huge pages.
    pub hugepages: Hugepages,
    /// Cores to pin the data path to, one worker each; empty: one worker, not pinned.
    pub cores: Vec<u16>,
    /// What a worker does while there is nothing to do.
    pub idle: Idle,
    /// Seed of the random numbers of impairments and early marking.
    pub seed: u64,
    /// The longest time that a stop waits for the queues to drain.
    pub drain: Duration,
    /// After so long without a frame of its own a learned station is forgotten.
    pub mac_age: Duration,
    /// The most stations that are known at a time; frames to others are flooded.
    pub mac_entries: u32,
    /// A station that was heard on one port within this time cannot be heard on another, unless there is a loop: such
    /// frames are dropped and counted. Zero lets stations move at once, and loops be.
    pub mac_hold: Duration,
}

impl Default for SwitchSpec {
    fn default() -> Self {
        Self {
            name: "fanin".to_owned(),
            mtu: Bytes::new(1500),
            memory: Bytes::new(64 << 20),
            hugepages: Hugepages::Try,
            cores: Vec::new(),
            idle: Idle::Adaptive,
            seed: 1,
            drain: Duration::from_secs(2),
            mac_age: Duration::from_secs(300),
            mac_entries: 16_384,
            mac_hold: Duration::from_millis(100),
        }
    }
}

/// DPDK, for ports that are its devices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DpdkSpec {
    /// What its environment is started with, such as `["--no-huge", "-m", "512", "--vdev=net_null0"]`.
    pub arguments: Vec<String>,
}

/// Control of the running switch: off unless an address is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ControlSpec {
    /// The path of a local socket, which only the user that runs the switch can open.
    pub socket: Option<String>,
    /// Address and port of the HTTP interface, metrics among it: `127.0.0.1:9414`. Other than loopback addresses need a
    /// token.
    #[serde(deserialize_with = "address_to_listen_on")]
    pub http: Option<SocketAddr>,
    /// A file that holds the token which HTTP clients must show.
    pub token_file: Option<String>,
}

/// As serde reads it, but what is wrong is told at its place, and with what would be right.
fn address_to_listen_on<'de, D: Deserializer<'de>>(input: D) -> Result<Option<SocketAddr>, D::Error> {
    struct Read(SocketAddr);
    impl<'de> Deserialize<'de> for Read {
        fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
            struct Text;
            impl serde::de::Visitor<'_> for Text {
                type Value = Read;
                fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    out.write_str("an address to listen on such as \"127.0.0.1:9414\" or \"[::1]:9414\"")
                }
                fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Read, E> {
                    text.parse()
                        .map(Read)
                        .map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
                }
            }
            input.deserialize_str(Text)
        }
    }
    Ok(Option::<Read>::deserialize(input)?.map(|address| address.0))
}

/// Whether packet memory consists of huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hugepages {
    /// No.
    Off,
    /// Where the machine has enough of them free.
    Try,
    /// Or the switch does not start.
    Require,
}

/// What a worker does while there is nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// Polls on for a moment, then sleeps until a frame comes or a frame may leave.
    Adaptive,
    /// Polls on: the least latency, at the price of the core.
    Poll,
}

/// How packet memory is divided among the frames that no rule sends to a ring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BufferingSpec {
    /// The scheme.
    pub scheme: Scheme,
    /// `dedicated`: memory of each port; a port's `buffer` overrides it. Otherwise: the pool.
    pub size: Bytes,
    /// `shared` and `dynamic-threshold`: the most that one output may take of the pool.
    pub output_limit: Option<Bytes>,
    /// `dynamic-threshold`: how long a queue may grow, in units of the pool's free memory.
    pub alpha: Ratio,
    /// Bookkeeping that counts with each frame.
    pub overhead: Bytes,
    /// The size of a memory cell; each frame takes whole cells.
    pub cell: Bytes,
}

impl Default for BufferingSpec {
    fn default() -> Self {
        Self {
            scheme: Scheme::Dedicated,
            size: Bytes::new(1 << 20),
            output_limit: None,
            alpha: Ratio::ONE,
            overhead: Bytes::ZERO,
            cell: Bytes::new(1),
        }
    }
}

/// A buffering scheme of `fanin-queueing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Each output has memory of its own.
    Dedicated,
    /// One pool for all outputs.
    Shared,
    /// One pool; a queue may grow while it is shorter than alpha times what is free.
    DynamicThreshold,
    /// As long as there is packet memory.
    Unlimited,
}
