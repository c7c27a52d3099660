//! The picture of a run: the queues over time, one late event, the network and its hot links, all of bounded size.
//!
//! A simulation always records it. It is stored as `picture.json`, so that a page can be drawn again.

use serde::{Deserialize, Serialize};

/// The schema of a picture that this crate writes and reads.
pub const PICTURE_SCHEMA: &str = "fanin.picture/1";

/// The parts of a result that the page draws and no table holds. Times are picoseconds since the run began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunPicture {
    /// Schema name, always [`PICTURE_SCHEMA`].
    pub schema: String,
    /// Queues, losses, timeouts and goodput in bins of equal width.
    pub timeline: RunTimeline,
    /// The slowest event, or nearly the slowest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<LateEvent>,
    /// Hosts and switches in groups of similar nodes.
    pub topology: NetworkGroups,
}

/// The run in bins: bin `k` begins at `k` times the width.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunTimeline {
    /// Width of a bin.
    pub bin_ps: u64,
    /// Payload bytes that arrived at hosts, by bin.
    pub delivered_bytes: Vec<u64>,
    /// Retransmission timeouts, by bin.
    pub timeouts: Vec<u64>,
    /// Tail loss probes, by bin; empty without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<u64>,
    /// The outputs that lost frames or held most, worst first.
    pub ports: Vec<PortTimeline>,
}

/// The queue of one output over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortTimeline {
    /// Name of the port, such as `tor:0->collector:3`.
    pub name: String,
    /// The most bytes it may hold; absent where no limit is its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// The largest occupancy seen in each bin: at the bin's end, at each loss, and at each new maximum.
    pub queue_bytes: Vec<u64>,
    /// Frames refused, by bin.
    pub drops: Vec<u64>,
    /// Payload bytes that arrived at the host behind it, by bin; absent where a switch is behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_bytes: Option<Vec<u64>>,
    /// The rings of the port, the deepest first; none where it has no rings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rings: Vec<RingTimeline>,
}

/// A ring of one output over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RingTimeline {
    /// The host that its frames are for, such as `collector:3`.
    pub destination: String,
    /// The largest occupancy seen in each bin: at the bin's end, and at each new maximum.
    pub queue_bytes: Vec<u64>,
}

/// One event that was late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LateEvent {
    /// Identifier of the event.
    pub id: u64,
    /// The host that collected it.
    pub collector: String,
    /// Time of its assignment.
    pub assigned_ps: u64,
    /// Time of its completion.
    pub collected_ps: u64,
    /// Collection time of the event.
    pub time_ps: u64,
    /// The least time that it could take, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ideal_ps: Option<u64>,
    /// The event's sources, those that finished last first. Of very many sources, only the slowest ones.
    pub sources: Vec<LateSource>,
    /// Sources in all.
    pub sources_total: u64,
    /// The causes of its lateness, in the order of time.
    pub chain: Vec<LateCause>,
    /// Share of its time that its own data and the causes explain, 0 to 1; absent for an event in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained: Option<f64>,
    /// The causes as text.
    pub text: String,
}

/// One source's part in a late event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LateSource {
    /// Name of the host.
    pub name: String,
    /// Time of the request for its data; absent where sources push.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_ps: Option<u64>,
    /// Time at which the first byte of its answer could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ps: Option<u64>,
    /// Time at which its answer was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_byte_ps: Option<u64>,
    /// Times at which its frames were refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses_ps: Vec<u64>,
    /// Times at which its retransmission timer expired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeouts_ps: Vec<u64>,
    /// Times at which it sent a tail loss probe.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probes_ps: Vec<u64>,
    /// Losses of other events on its connection that delayed its answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<LateStall>,
}

/// A loss of another event that blocked a connection until a timer repaired it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LateStall {
    /// The other event.
    pub event: u64,
    /// The loss, the last data before the timer, or the assignment of the late event.
    pub from_ps: u64,
    /// Time at which the timer expired.
    pub until_ps: u64,
    /// True for a tail loss probe, false for a retransmission timer.
    pub is_probe: bool,
}

/// One link in the chain of causes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LateCause {
    /// Kind of the cause. Waits are `credit-wait`, `request-wait` (in steps, without credits) and `other-answer`. At an output it is
    /// `queue`, `ring` or `link` (shared for longer than its queue takes to drain). Repairs are `loss`, `link-loss`,
    /// `tail-loss-probe` and `rto`. Other time has the kind of the technique that holds data back at hosts, and `awaited`. These
    /// are `timeslot-wait` (Fastpass), `phase-wait` (the barrel shifter), `grant-wait` (SIRD) and `pause-wait`.
    /// `response-delay` is the time that the source of the last answer took before its first byte.
    #[serde(rename = "what")]
    pub kind: String,
    /// Begin of the cause, in milliseconds since the first request of the event was due.
    pub from_ms: f64,
    /// End of the cause, in milliseconds since the first request of the event was due.
    pub until_ms: f64,
    /// The time that it added to the event, in milliseconds. It is counted on the critical path, which
    /// leads back from the last byte to its request, and to the answer that freed its credits. No time is counted twice: the time
    /// of the event's own data on an idle network belongs to no cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<f64>,
    /// The other event to which it happened; absent if it happened to this event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// Requests that waited, answers of other events, frames refused, probes sent, or expired timers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Number of sources affected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<u64>,
    /// The output where it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// The largest occupancy of that output during the cause, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// The rate of the ring, in bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// The source that was delayed longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The thing that data at hosts waited for, in words: `timeslots of the arbiter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub awaited: Option<String>,
}

/// Hosts and switches in groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkGroups {
    /// Nodes that are alike.
    pub groups: Vec<NodeGroup>,
    /// The links between two groups, one entry a direction.
    pub links: Vec<LinkGroup>,
}

/// Nodes of one kind with the same neighbours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeGroup {
    /// Name of the node, or name of the kind for several nodes.
    pub name: String,
    /// Number of nodes.
    pub count: u64,
    /// True for switches.
    pub is_switch: bool,
    /// Number of the group's column: sending hosts are in the first, collecting ones in the last.
    pub column: u64,
}

/// The links from the nodes of one group to those of another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkGroup {
    /// Index of the group that sends.
    pub from: usize,
    /// Index of the group that receives.
    pub to: usize,
    /// Number of links.
    pub count: u64,
    /// Rate of one link, in bit/s.
    pub rate_bps: f64,
    /// Share of the rate that the busiest link carried in the measured time, 0 to 1.
    pub utilisation: f64,
    /// Frames refused in the queues of all these links.
    pub drops: u64,
    /// Name of the busiest link.
    pub hottest: String,
}
