//! The configuration of the switch as a whole, its control and its packet memory.

use std::net::SocketAddr;

use fanin_queueing::{Buffering, Layout, MemorySettings, PoolCharge};
use fanin_scenario::FullPacket;
use fanin_units::{Bytes, Duration, Rate, Ratio, wire};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::limits::RATE_ASSUMED;
use super::port_spec::PortSpec;
use super::ring_spec::{RingSpec, RuleSpec, StationSpec, WaySpec};

/// A whole configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The switch as a whole.
    pub switch: SwitchSpec,
    /// Control interfaces of the running switch.
    pub control: ControlSpec,
    /// DPDK, for ports that are DPDK devices.
    pub dpdk: DpdkSpec,
    /// The ports, in the order of their numbers.
    pub port: Vec<PortSpec>,
    /// The rings of all ports.
    pub ring: Vec<RingSpec>,
    /// The rules that send frames to rings.
    pub rule: Vec<RuleSpec>,
    /// Stations with a configured port.
    pub station: Vec<StationSpec>,
    /// Output ports of frames from ports with a `table`.
    pub way: Vec<WaySpec>,
}

/// The switch as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchSpec {
    /// Name of the switch in logs, metrics and snapshots.
    pub name: String,
    /// The most bytes of an Ethernet payload, 68 B to 9000 B; frames with more are dropped and counted.
    pub mtu: Bytes,
    /// Bytes of a full frame with its check sequence, for RED and for `ecn.unit = "bytes"`; by default a frame of `mtu`.
    pub full_frame: Option<Bytes>,
    /// Packet memory: all frames that are queued or held by drivers, 1 MiB to 64 GiB.
    pub memory: Bytes,
    /// Use of huge pages for packet memory.
    pub hugepages: Hugepages,
    /// The division of packet memory among the frames that no rule sends to a ring.
    pub buffering: Buffering,
    /// `dedicated`: the memory of each output, which a port's `buffer` overrides. Otherwise: the size of each pool or module.
    pub buffer: Bytes,
    /// `shared`, `dynamic-threshold`, `voq`: the largest share of a pool or module for one output.
    pub port_limit: Option<Bytes>,
    /// `shared`: the largest share of a pool for one input.
    pub input_limit: Option<Bytes>,
    /// `shared`: number of ports, counted from the first, that have a separate pool; 0: one pool for all ports.
    pub pool_split: u32,
    /// The port that decides a frame's pool, for `shared`.
    pub pool_charge: PoolCharge,
    /// `voq`: input ports of each module.
    pub module_ports: u32,
    /// `dynamic-threshold`: the limit of one output, as a multiple of the pool's free memory.
    pub alpha: Ratio,
    /// Memory that each frame takes in addition to its bytes.
    pub frame_overhead: Bytes,
    /// The size of a memory cell; each frame takes whole cells.
    pub cell: Bytes,
    /// Cores to pin the data path to, one worker each; empty: one worker, not pinned.
    pub cores: Vec<u16>,
    /// Behaviour of an idle worker.
    pub idle: Idle,
    /// Seed of the random numbers of impairments and early marking.
    pub seed: u64,
    /// The longest time that a stop waits for the queues to drain.
    pub drain: Duration,
    /// Ageing time of learned stations.
    pub mac_age: Duration,
    /// Size of the station table; frames to unknown stations are flooded.
    pub mac_entries: u32,
    /// Time after a station's last frame during which frames with its address from another port are dropped and counted as a
    /// loop. With 0 stations move at once, and loops are not detected.
    pub mac_hold: Duration,
}

impl Default for SwitchSpec {
    fn default() -> Self {
        Self {
            name: "fanin".to_owned(),
            mtu: Bytes::new(1500),
            full_frame: None,
            memory: Bytes::new(64 << 20),
            hugepages: Hugepages::Try,
            buffering: Buffering::Dedicated,
            buffer: Bytes::new(1 << 20),
            port_limit: None,
            input_limit: None,
            pool_split: 0,
            pool_charge: PoolCharge::Output,
            module_ports: 8,
            alpha: Ratio::ONE,
            frame_overhead: Bytes::ZERO,
            cell: Bytes::new(1),
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
    /// Arguments of its environment abstraction layer, such as `["--no-huge", "-m", "512", "--vdev=net_null0"]`.
    pub arguments: Vec<String>,
}

/// Control of the running switch: off unless an address is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ControlSpec {
    /// The path of a local socket; only the user that runs the switch can open it.
    pub socket: Option<String>,
    /// Address and port of the HTTP interface, which includes metrics: `127.0.0.1:9414`. It needs a token, unless
    /// `authentication` is `none`.
    #[serde(deserialize_with = "address_to_listen_on")]
    pub http: Option<SocketAddr>,
    /// A file with the token of HTTP clients.
    pub token_file: Option<String>,
    /// Authentication of HTTP clients.
    pub authentication: HttpAuthentication,
}

/// Authentication of HTTP clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HttpAuthentication {
    /// Each request carries the token.
    #[default]
    Token,
    /// No token: every user of this machine may control the switch. Only a loopback address is served.
    None,
}

/// Deserializes a socket address, with an example in the error.
fn address_to_listen_on<'de, D: Deserializer<'de>>(input: D) -> Result<Option<SocketAddr>, D::Error> {
    struct ListenAddress(SocketAddr);
    impl<'de> Deserialize<'de> for ListenAddress {
        fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
            struct ListenVisitor;
            impl serde::de::Visitor<'_> for ListenVisitor {
                type Value = ListenAddress;
                fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    out.write_str("an address to listen on such as \"127.0.0.1:9414\" or \"[::1]:9414\"")
                }
                fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ListenAddress, E> {
                    text.parse()
                        .map(ListenAddress)
                        .map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
                }
            }
            input.deserialize_str(ListenVisitor)
        }
    }
    Ok(Option::<ListenAddress>::deserialize(input)?.map(|address| address.0))
}

/// Use of huge pages for packet memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hugepages {
    /// No huge pages.
    Off,
    /// Huge pages if enough are free.
    Try,
    /// Huge pages; without them the switch does not start.
    Require,
}

/// Behaviour of an idle worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Idle {
    /// Polls for a moment, then sleeps until a frame arrives or may leave.
    Adaptive,
    /// Polls: the lowest latency, and uses all of the core.
    Poll,
}

impl SwitchSpec {
    /// Returns the full packet of a queue with this rate. Without a rate, the average of an idle queue decays at
    /// [`RATE_ASSUMED`].
    pub(crate) fn full_packet(&self, rate: Option<Rate>) -> FullPacket {
        let of_mtu = self.mtu.saturating_add(Bytes::new(wire::ETHERNET_STORED.into()));
        let frame = self.full_frame.unwrap_or(of_mtu);
        // Frames of the switch lack the check sequence.
        let queued = frame.saturating_sub(Bytes::new(wire::ETHERNET_CHECK.into()));
        let on_the_wire = queued.saturating_add(Bytes::new(wire::ETHERNET_UNCOUNTED.into()));
        FullPacket { frame, queued, time: rate.unwrap_or(RATE_ASSUMED).time_to_send(on_the_wire) }
    }

    /// Makes the default switch with these settings of its packet memory. A port's `buffer` belongs to the port's
    /// configuration. Keys of pools are set for `shared` only, because the switch refuses them with other schemes.
    pub fn with_memory(memory: &MemorySettings) -> Self {
        let spec = Self {
            buffering: memory.buffering,
            buffer: memory.buffer,
            port_limit: memory.port_limit,
            module_ports: memory.module_ports,
            alpha: memory.alpha,
            frame_overhead: memory.frame_overhead,
            cell: memory.cell,
            ..Self::default()
        };
        if memory.buffering != Buffering::Shared {
            return spec;
        }
        Self {
            input_limit: memory.input_limit,
            pool_split: memory.pool_split,
            pool_charge: memory.pool_charge,
            ..spec
        }
    }
}

impl Config {
    /// Returns the division of packet memory among the plain queues.
    pub fn layout(&self) -> Layout {
        let switch = &self.switch;
        let buffers = self.port.iter().map(|port| port.buffer.unwrap_or(switch.buffer));
        let settings = MemorySettings {
            buffering: switch.buffering,
            output_buffers: buffers.collect(),
            buffer: switch.buffer,
            port_limit: switch.port_limit,
            input_limit: switch.input_limit,
            pool_split: switch.pool_split,
            pool_charge: switch.pool_charge,
            module_ports: switch.module_ports,
            alpha: switch.alpha,
            frame_overhead: switch.frame_overhead,
            cell: switch.cell,
        };
        settings.layout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_is_that_of_the_mtu_unless_it_is_given() {
        let rate = Rate::new(1_000_000_000);
        for (full_frame, bytes) in [(None, 1518), (Some(Bytes::new(594)), 594)] {
            let packet = SwitchSpec { full_frame, ..SwitchSpec::default() }.full_packet(Some(rate));
            let time = rate.time_to_send(Bytes::new(bytes + 20));
            let expected = FullPacket { frame: Bytes::new(bytes), queued: Bytes::new(bytes - 4), time };
            assert_eq!(packet, expected);
        }
    }
}
