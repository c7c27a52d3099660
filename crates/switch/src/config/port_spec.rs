//! The configuration of a port. [`crate::Command`] uses the same types.

use fanin_queueing::RingService;
use fanin_scenario::Ecn;
use fanin_units::{Bytes, Duration, Packets, Rate, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::address::Vlan;

/// The configuration of one port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortSpec {
    /// Unique name of the port.
    pub name: String,
    /// A network interface of the kernel, for an AF_XDP port.
    #[serde(default)]
    pub interface: Option<String>,
    /// A DPDK device by its name, such as `0000:03:00.0` or `net_null0`.
    #[serde(default)]
    pub dpdk: Option<String>,
    /// AF_XDP: number of receive queues to serve, from queue 0 on; all of the interface's by default.
    #[serde(default)]
    pub queues: Option<u16>,
    /// AF_XDP: the hook of the redirect program.
    #[serde(default)]
    pub attach: Attach,
    /// AF_XDP: copy mode or zero copy.
    #[serde(default)]
    pub copy: Copying,
    /// The worker that serves it, an index into `switch.cores`; in turn by default.
    #[serde(default)]
    pub worker: Option<u16>,
    /// Rate on the wire, with preamble, check sequence and gap; by default only the driver limits it.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// `buffering = "dedicated"`: the memory of this output.
    #[serde(default)]
    pub buffer: Option<Bytes>,
    /// The scheduler of its queues.
    #[serde(default)]
    pub service: RingService,
    /// True to serve its plain queue before its rings, whatever `service` says.
    #[serde(default)]
    pub plain_first: bool,
    /// The most frames of its plain queue, in addition to the limits of `switch.buffering`.
    #[serde(default)]
    pub plain_frames: Option<Packets>,
    /// Congestion signals of its plain queue: of frames that no rule sends to a ring.
    #[serde(default)]
    pub ecn: Ecn,
    /// The VLAN of untagged frames. If any port has `untagged` or `tagged`, the switch separates VLANs.
    #[serde(default)]
    pub untagged: Option<Vlan>,
    /// VLANs with tagged frames on this port.
    #[serde(default)]
    pub tagged: Vec<Vlan>,
    /// True to flood frames to unknown stations out of this port.
    #[serde(default = "yes")]
    pub flood: bool,
    /// True to send every frame back by the port that received it, through its rings: for the hybrid with an OpenFlow
    /// switch, which forwards.
    #[serde(default)]
    pub reflect: bool,
    /// AF_XDP, with `reflect`: true to have the kernel send frames back by this port while the switch does not run, past its
    /// rings. The switch installs a filter for it when it opens the port, which stays: `tc qdisc delete dev INTERFACE clsact`
    /// removes it.
    #[serde(default)]
    pub bypass: bool,
    /// Forwarding table of frames received here: 0 uses learned stations, 1 to 15 only the configured ways of that
    /// table. With such a table the port learns no station, drops no frame for its source, and floods no frame to a
    /// single station. It serves networks with several paths between two hosts.
    #[serde(default)]
    pub table: u16,
    /// The most stations that are learned behind this port; half of the switch's `mac_entries` by default. Frames of further
    /// stations pass, and frames to them are flooded.
    #[serde(default)]
    pub mac_entries: Option<u32>,
    /// Limits on frames of this port that are flooded.
    #[serde(default)]
    pub storm: StormSpec,
    /// PAUSE frames: obeyed, sent, or neither.
    #[serde(default)]
    pub pause: PauseSpec,
    /// M21TCP: the stage that sets the window of senders to this output.
    #[serde(default)]
    pub m21: Option<M21Spec>,
    /// Link impairment of frames that leave, for test networks.
    #[serde(default)]
    pub impair: ImpairSpec,
}

const fn yes() -> bool {
    true
}

/// The hook of the redirect program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Attach {
    /// Native in the driver if it supports XDP, else generic.
    #[default]
    Auto,
    /// Native in the driver only.
    Native,
    /// Generic XDP, which every interface supports.
    Generic,
}

/// Copy mode of an interface's driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Copying {
    /// Zero copy if the driver supports it, else copies.
    #[default]
    Auto,
    /// Copies every frame.
    Copy,
    /// Zero copy; the port does not start if the driver does not support it.
    ZeroCopy,
}

/// Storm control: rates of a port's flooded frames. Absent: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StormSpec {
    /// Frames to all stations.
    pub broadcast: Option<Rate>,
    /// Frames to groups.
    pub multicast: Option<Rate>,
    /// Frames to unknown stations.
    pub unknown: Option<Rate>,
    /// Depth of each token bucket.
    pub burst: Option<Bytes>,
}

/// PAUSE frames of IEEE 802.3x on one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PauseSpec {
    /// True to obey PAUSE frames.
    pub react: bool,
    /// XOFF: the ingress occupancy at which PAUSE is sent. Each frame counts with its `frame_overhead`, in whole cells.
    pub xoff: Option<Bytes>,
    /// XON: the ingress occupancy at which RESUME is sent; half of `xoff` by default.
    pub xon: Option<Bytes>,
}

/// The M21TCP stage of one output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct M21Spec {
    /// The buffer that the flows share; the output's own with `buffering = "dedicated"`.
    pub buffer: Option<Bytes>,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// Bytes of a full segment's frame without its payload.
    #[serde(alias = "overhead")]
    pub header: Bytes,
    /// Time without a frame after which a flow no longer counts.
    pub idle: Duration,
    /// The most flows that are counted.
    pub flows: u32,
    /// Also lowers the window in the echo on its way back.
    pub rewrite_echo: bool,
}

impl Default for M21Spec {
    fn default() -> Self {
        Self {
            buffer: None,
            mss: Bytes::new(1448),
            header: Bytes::new(74),
            idle: Duration::from_secs(1),
            flows: 65_536,
            rewrite_echo: true,
        }
    }
}

/// Link impairment of a port's outgoing frames, in this order: loss, duplication, delay with jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImpairSpec {
    /// Delay of every frame after its last bit; with a rate its time on the link is added.
    pub delay: Duration,
    /// Additional delay, uniform from 0 to this; order is kept.
    pub jitter: Duration,
    /// Share of frames that are lost.
    pub loss: Ratio,
    /// Share of frames that are duplicated.
    pub duplicate: Ratio,
    /// Share of frames that skip the delay and overtake others.
    pub reorder: Ratio,
    /// The most frames delayed at a time; more are lost, and counted as `impairment-limit`.
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
    /// Returns true if the settings change no frame.
    pub fn is_none(&self) -> bool {
        self.delay.is_zero() && self.jitter.is_zero() && self.loss.is_zero() && self.duplicate.is_zero()
    }
}
