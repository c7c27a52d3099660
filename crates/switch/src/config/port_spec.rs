//! The configuration of a port. The same types travel in [`crate::Command`].

use fanin_units::{Bytes, Duration, Packets, Rate, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::Vlan;

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
    /// Where frames that come in here leave: 0 by what the switch has learned, 1 to 15 by the configured routes of that table alone.
    /// With such a table nothing is learned here, no source is refused, and no frame to a single station is
    /// flooded: for networks with several paths between two hosts.
    #[serde(default)]
    pub table: u16,
    /// The most stations that are learned behind this port; half of the switch's `mac_entries` by default. Frames of further
    /// stations pass, and frames to them are flooded.
    #[serde(default)]
    pub mac_entries: Option<u32>,
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
