//! What a configuration says. The same types travel in [`crate::Command`], so that what can be written can be changed.

use std::net::SocketAddr;

use fanin_units::{Bytes, Duration, Packets, Rate, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::address::{IpPrefix, Mac, MacPrefix, Vlan};

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

/// A port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortSpec {
    /// Its name, unique.
    pub name: String,
    /// A network interface of the kernel, for an AF_XDP port.
    #[serde(default)]
    pub interface: Option<String>,
    /// A device of DPDK's by its name, such as `0000:03:00.0` or `net_null0`.
    #[serde(default)]
    pub dpdk: Option<String>,
    /// AF_XDP: how many of the interface's receive queues to serve, from queue 0 on; all of them by default.
    #[serde(default)]
    pub queues: Option<u16>,
    /// AF_XDP: where the kernel runs the redirect.
    #[serde(default)]
    pub attach: Attach,
    /// AF_XDP: whether the driver copies frames.
    #[serde(default)]
    pub copy: Copying,
    /// Which of the switch's cores serves it, counted from 0; in turn by default.
    #[serde(default)]
    pub worker: Option<u16>,
    /// The rate at which it sends, everything on the wire counted; as fast as the driver takes frames by default.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// The memory of this output under the `dedicated` scheme.
    #[serde(default)]
    pub buffer: Option<Bytes>,
    /// Which of its queues goes first.
    #[serde(default)]
    pub discipline: DisciplineSpec,
    /// Marking in its queue of frames that no rule sends to a ring.
    #[serde(default)]
    pub mark: Option<MarkSpec>,
    /// The VLAN of untagged frames; with this or `tagged` on any port, all VLANs of the switch are kept apart.
    #[serde(default)]
    pub untagged: Option<Vlan>,
    /// VLANs whose frames carry a tag here.
    #[serde(default)]
    pub tagged: Vec<Vlan>,
    /// Whether frames to unknown stations are flooded out of this port too.
    #[serde(default = "yes")]
    pub flood: bool,
    /// Whether every frame that comes in goes out again by this port, through its rings: for the hybrid with an OpenFlow
    /// switch, which decides where frames go.
    #[serde(default)]
    pub reflect: bool,
    /// Where frames that come in here leave: 0 by what the switch has learned, 1 to 15 by the ways of that table alone
    /// ([`WaySpec`]). With such a table nothing is learned here, no source is refused, and no frame to a single station is
    /// flooded: for networks with several ways between two hosts.
    #[serde(default)]
    pub table: u16,
    /// Limits on what this port may have flooded.
    #[serde(default)]
    pub storm: StormSpec,
    /// PAUSE frames.
    #[serde(default)]
    pub pause: PauseSpec,
    /// M21TCP: the stage that tells the senders towards this output their window.
    #[serde(default)]
    pub m21: Option<M21Spec>,
    /// What happens to frames on the way out, to make a test network.
    #[serde(default)]
    pub impair: ImpairSpec,
}

const fn yes() -> bool {
    true
}

/// Where the kernel runs the redirect program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Attach {
    /// In the driver, or where it has no such place, in the kernel's general one.
    #[default]
    Auto,
    /// In the driver.
    Native,
    /// In the kernel's general place, which every interface has.
    Generic,
}

/// Whether the driver of an interface copies frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Copying {
    /// Only where it must.
    #[default]
    Auto,
    /// Always.
    Copy,
    /// Never; the port does not start where the driver must.
    ZeroCopy,
}

/// Which of a port's queues goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DisciplineSpec {
    /// In turn, a frame each.
    #[default]
    RoundRobin,
    /// The one with the most frames.
    LongestFirst,
    /// The one with the highest priority; the queue of frames that no rule sends to a ring has priority 0.
    StrictPriority,
}

/// Signals of congestion before a queue is full: on its length as a frame finds it, or by random early detection (RED) on
/// its average. Names and defaults of RED are those of the scenario file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MarkSpec {
    /// Which of them.
    #[serde(default)]
    pub mode: MarkMode,
    /// `threshold`: frames that find more bytes than this are marked.
    #[serde(default)]
    pub bytes: Option<Bytes>,
    /// `threshold`: frames that find more frames than this are marked.
    #[serde(default)]
    pub frames: Option<Packets>,
    /// `threshold`: what becomes of frames whose sender does not know ECN.
    #[serde(default)]
    pub others: Unmarkable,
    /// RED: what `min` and `max` count; packets, unless it says bytes, in steps of a full frame.
    #[serde(default)]
    pub unit: Option<MarkUnit>,
    /// RED: below this averaged queue nothing is marked; 15 packets.
    #[serde(default)]
    pub min: Option<Packets>,
    /// RED: above this averaged queue everything is marked; 25 packets.
    #[serde(default)]
    pub max: Option<Packets>,
    /// RED: weight of a new sample in the average, 1 for the queue as it is; 0.2 %.
    #[serde(default)]
    pub weight: Option<Ratio>,
    /// RED: share that is marked just below `max`; 10 %.
    #[serde(default)]
    pub probability_max: Option<Ratio>,
    /// RED: whether the share rises on from `max` to all at twice `max`, instead of jumping there (Floyd 2000); false.
    #[serde(default)]
    pub gentle: Option<bool>,
    /// RED that marks: whether frames are dropped all the same where every one is hit (RFC 3168 §7); true.
    #[serde(default)]
    pub hard_drop: Option<bool>,
}

/// Which signal a queue gives before it is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkMode {
    /// Marks above a threshold of the instantaneous queue, as DCTCP wants it (RFC 8257 §3.1).
    #[default]
    Threshold,
    /// Marks by RED on the averaged queue; frames that cannot be marked are dropped.
    RedMark,
    /// Drops by RED on the averaged queue.
    RedDrop,
}

/// What RED's thresholds count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkUnit {
    /// Packets, whatever their size.
    #[default]
    Packets,
    /// Bytes, in steps of a full frame.
    Bytes,
}

impl MarkSpec {
    /// Marks frames that find more than so many frames in a queue.
    pub fn frames(frames: Packets) -> Self {
        Self { frames: Some(frames), ..Self::default() }
    }
}

/// What becomes of frames that should be marked and cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unmarkable {
    /// They pass.
    #[default]
    Pass,
    /// They are dropped (RFC 3168 §5).
    Drop,
}

/// Storm control: what a port may send to many at once. None is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StormSpec {
    /// Frames to all stations.
    pub broadcast: Option<Rate>,
    /// Frames to groups.
    pub multicast: Option<Rate>,
    /// Frames to stations that are not known.
    pub unknown: Option<Rate>,
    /// How much of each may come at once.
    pub burst: Option<Bytes>,
}

/// PAUSE frames of IEEE 802.3x on one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PauseSpec {
    /// Whether PAUSE frames that come in hold back what goes out.
    pub react: bool,
    /// Tell the other end to stop once so much of what it sent is queued.
    pub xoff: Option<Bytes>,
    /// Let it go on once so little is; half of `xoff` by default.
    pub xon: Option<Bytes>,
}

/// The M21TCP stage of one output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct M21Spec {
    /// The buffer that the flows share; the output's own under the `dedicated` scheme.
    pub buffer: Option<Bytes>,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// What a full segment's frame takes beside its payload.
    pub overhead: Bytes,
    /// After so long without a segment a flow is counted no more.
    pub age: Duration,
    /// The most flows that are counted.
    pub flows: u32,
}

impl Default for M21Spec {
    fn default() -> Self {
        Self {
            buffer: None,
            mss: Bytes::new(1448),
            overhead: Bytes::new(74),
            age: Duration::from_secs(1),
            flows: 65_536,
        }
    }
}

/// What happens to frames on the way out of a port, in this order: loss, duplication, then delay with jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImpairSpec {
    /// Every frame comes so much later.
    pub delay: Duration,
    /// And by up to so much more, uniformly; order is kept.
    pub jitter: Duration,
    /// Share of frames that are lost.
    pub loss: Ratio,
    /// Share of frames that come twice.
    pub duplicate: Ratio,
    /// Share of frames that skip the delay, and so overtake others.
    pub reorder: Ratio,
    /// The most frames on the way at a time; more are lost, and counted as `impairment-limit`.
    pub frames: u32,
}

impl Default for ImpairSpec {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: Ratio::ZERO,
            duplicate: Ratio::ZERO,
            reorder: Ratio::ZERO,
            frames: 16_384,
        }
    }
}

impl ImpairSpec {
    /// Whether anything happens at all.
    pub fn is_none(&self) -> bool {
        self.delay.is_zero() && self.jitter.is_zero() && self.loss.is_zero() && self.duplicate.is_zero()
    }
}

/// A deep queue ("daqring") of one output, with a rate of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RingSpec {
    /// Its name, unique.
    pub name: String,
    /// The port that it leaves through.
    pub port: String,
    /// The most frames it holds; no limit of its own by default.
    #[serde(default)]
    pub frames: Option<Packets>,
    /// The most bytes it holds.
    #[serde(default)]
    pub bytes: Option<Bytes>,
    /// Its token bucket: the rate at which it is emptied, 10 kb/s to 4 Tb/s; only the port's rate by default.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// How much may leave at once after a silence; none by default, which spaces frames evenly.
    #[serde(default)]
    pub burst: Option<Bytes>,
    /// For the `strict-priority` discipline; the highest goes first.
    #[serde(default)]
    pub priority: u8,
    /// Marking.
    #[serde(default)]
    pub mark: Option<MarkSpec>,
    /// The share of its capacity from which on an alarm is raised.
    #[serde(default)]
    pub alarm: Option<Ratio>,
}

impl RingSpec {
    /// A ring without limits.
    pub fn new(name: &str, port: &str) -> Self {
        Self {
            name: name.to_owned(),
            port: port.to_owned(),
            frames: None,
            bytes: None,
            rate: None,
            burst: None,
            priority: 0,
            mark: None,
            alarm: None,
        }
    }
}

/// Which frames go to a ring. What is not said matches anything; among rules that match, the highest priority wins, and
/// among equals the first. A rule only chooses among the queues of the port that a frame leaves through anyway.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RuleSpec {
    /// Its name, unique.
    pub name: String,
    /// The ring; or else `drop` is set.
    pub ring: Option<String>,
    /// Drops the frames, whatever port they would leave through.
    pub drop: bool,
    /// The highest that matches wins.
    pub priority: u16,
    /// The port that the frame came in by.
    pub input: Option<String>,
    /// Source station.
    pub source_mac: Option<MacPrefix>,
    /// Destination station.
    pub destination_mac: Option<MacPrefix>,
    /// VLAN; of untagged frames the port's.
    pub vlan: Option<Vlan>,
    /// Source address.
    pub source_ip: Option<IpPrefix>,
    /// Destination address.
    pub destination_ip: Option<IpPrefix>,
    /// What IP carries.
    pub protocol: Option<Protocol>,
    /// Source port or ports of TCP or UDP.
    pub source_port: Option<PortRange>,
    /// Destination port or ports of TCP or UDP.
    pub destination_port: Option<PortRange>,
}

/// What IP carries: `"tcp"`, `"udp"`, `"icmp"`, or a number of IANA's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    const NAMES: [(&'static str, u8); 4] = [("tcp", 6), ("udp", 17), ("icmp", 1), ("icmpv6", 58)];
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
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
        struct Read;
        impl serde::de::Visitor<'_> for Read {
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
        input.deserialize_any(Read)
    }
}

/// A port of TCP or UDP, or a range of them: `5000` or `"5000-5063"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// The first.
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
        struct Read;
        impl serde::de::Visitor<'_> for Read {
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
        input.deserialize_any(Read)
    }
}

/// A station whose port is known: never learned, never forgotten, and refused on any other port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StationSpec {
    /// Its address.
    pub mac: Mac,
    /// Its port.
    pub port: String,
    /// Its VLAN, where VLANs are kept apart.
    #[serde(default)]
    pub vlan: Option<Vlan>,
}

/// Where frames to a station leave that came in by a port of some table (`table` of [`PortSpec`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaySpec {
    /// 1 to 15.
    pub table: u16,
    /// The station.
    pub mac: Mac,
    /// The port that frames to it leave by.
    pub port: String,
}
