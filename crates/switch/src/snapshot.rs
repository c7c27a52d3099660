//! Snapshots: state and counters of the switch as plain values.

use fanin_queueing::{AdmissionLimit, Counters, FrameCount, Occupancy};
use schemars::JsonSchema;
use serde::Serialize;

use crate::address::Mac;

/// A known station.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Station {
    /// MAC address of the station.
    pub mac: Mac,
    /// The station's VLAN; 0 if the switch does not separate VLANs.
    pub vlan: u16,
    /// The number of its port.
    pub port: u16,
    /// True if it was configured, not learned.
    pub is_static: bool,
    /// Whole seconds since its last frame.
    pub silent_s: u32,
}

/// Frames and the bytes in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Tally {
    /// Number of frames.
    pub frames: u64,
    /// Bytes of the frames, without check sequences.
    pub bytes: u64,
}

impl Tally {
    #[inline]
    pub(crate) const fn add(&mut self, bytes: u32) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }

    #[inline]
    pub(crate) fn add_all(&mut self, frames: impl ExactSizeIterator<Item = u32>) {
        self.frames += frames.len() as u64;
        self.bytes += frames.map(u64::from).sum::<u64>();
    }
}

impl From<FrameCount> for Tally {
    fn from(count: FrameCount) -> Self {
        Self { frames: count.frames, bytes: count.bytes }
    }
}

/// Reason of a drop outside of queues; those of queues are in [`AdmissionLimit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cause {
    /// Too short for its headers, or a group address as its source.
    Malformed,
    /// More bytes than the MTU allows.
    TooLong,
    /// The port does not carry its VLAN.
    Vlan,
    /// The frame's source was heard on another port within the hold time: a loop.
    Loop,
    /// The frame's destination is on its input port, or is reserved for bridges.
    Filtered,
    /// Refused by storm control.
    Storm,
    /// A rule dropped it.
    Rule,
    /// The packet memory was full.
    Memory,
    /// Another worker's queue was full.
    Handover,
    /// No port may send the frame.
    NoPort,
    /// Lost by an impairment.
    Impairment,
    /// The impairment's queue was full.
    ImpairmentLimit,
    /// Still queued when the time to drain was over.
    Stopped,
}

impl Cause {
    /// Every cause, in the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::Malformed,
        Self::TooLong,
        Self::Vlan,
        Self::Loop,
        Self::Filtered,
        Self::Storm,
        Self::Rule,
        Self::Memory,
        Self::Handover,
        Self::NoPort,
        Self::Impairment,
        Self::ImpairmentLimit,
        Self::Stopped,
    ];

    /// Returns the name in records and labels of metrics.
    pub const fn name(self) -> &'static str {
        [
            "malformed",
            "too-long",
            "vlan",
            "loop",
            "filtered",
            "storm",
            "rule",
            "memory",
            "handover",
            "no-port",
            "impairment",
            "impairment-limit",
            "stopped",
        ][self as usize]
    }
}

/// Frames dropped, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Drops([Tally; Cause::ALL.len()]);

impl Drops {
    #[cold]
    pub(crate) fn add(&mut self, cause: Cause, bytes: u32) {
        self.0[cause as usize].add(bytes);
    }

    pub(crate) fn list(&self) -> Vec<Dropped> {
        let causes = Cause::ALL.into_iter().zip(self.0);
        causes
            .filter(|(_, tally)| tally.frames > 0)
            .map(|(cause, tally)| Dropped::new(cause.name(), tally))
            .collect()
    }
}

/// Frames dropped for one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Dropped {
    /// Name of the cause, or of the limit that refused the frames.
    pub cause: &'static str,
    /// Frames and bytes.
    #[serde(flatten)]
    pub tally: Tally,
}

impl Dropped {
    const fn new(cause: &'static str, tally: Tally) -> Self {
        Self { cause, tally }
    }
}

/// Number of buckets of an occupancy histogram; bucket n counts samples below 4^n frames.
pub const HISTOGRAM_BUCKETS: usize = 14;

/// Samples of a queue's length, taken every 10 ms. Bucket 0 counts those of an empty queue, bucket n > 0
/// those of at least 4^(n-1) and less than 4^n frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Histogram {
    /// Samples by bucket.
    pub buckets: [u64; HISTOGRAM_BUCKETS],
    /// The sum of all samples, in frames.
    pub sum: u64,
}

impl Histogram {
    pub(crate) fn add(&mut self, frames: u64) {
        let bucket = if frames == 0 { 0 } else { frames.ilog2() as usize / 2 + 1 };
        self.buckets[bucket.min(HISTOGRAM_BUCKETS - 1)] += 1;
        self.sum += frames;
    }

    /// Returns the exclusive upper bound of a bucket in frames; `None` for the last bucket, which has none.
    pub fn bound(bucket: usize) -> Option<u64> {
        (bucket + 1 < HISTOGRAM_BUCKETS).then(|| 1 << (2 * bucket))
    }
}

/// A queue: occupancy, high-water marks and counters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct QueueSnapshot {
    /// Frames held now.
    pub frames: u64,
    /// Bytes held now.
    pub bytes: u64,
    /// The most frames since the marks were reset.
    pub frames_max: u64,
    /// The most bytes since the marks were reset.
    pub bytes_max: u64,
    /// The most frames in the last whole period of 10 s.
    pub frames_max_period: u64,
    /// The most bytes in the last whole period of 10 s.
    pub bytes_max_period: u64,
    /// Frames that the queue accepted.
    pub enqueued: Tally,
    /// Frames that left.
    pub departed: Tally,
    /// Accepted frames that were marked.
    pub marked: Tally,
    /// Frames refused, by limit.
    pub dropped: Vec<Dropped>,
    /// Histogram of its length.
    pub histogram: Histogram,
}

impl QueueSnapshot {
    pub(crate) fn new(held: Occupancy, counters: &Counters) -> Self {
        Self {
            frames: held.frames,
            bytes: held.bytes,
            frames_max: held.frames_max,
            bytes_max: held.bytes_max,
            enqueued: counters.enqueued.into(),
            departed: counters.departed.into(),
            marked: counters.marked.into(),
            dropped: AdmissionLimit::ALL
                .into_iter()
                .map(|limit| Dropped::new(limit.name(), counters.dropped_by(limit).into()))
                .filter(|dropped| dropped.tally.frames > 0)
                .collect(),
            ..Self::default()
        }
    }
}

/// State and counters of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PortSnapshot {
    /// Name of the port.
    pub name: String,
    /// Number of the port.
    pub number: u16,
    /// The worker that serves it.
    pub worker: u16,
    /// True if it has a link.
    pub is_up: bool,
    /// True while a PAUSE frame holds it.
    pub is_paused: bool,
    /// Frames that the driver received.
    pub received: Tally,
    /// Frames that the driver took to send.
    pub sent: Tally,
    /// Frames lost before the switch received them, if the driver counts them.
    pub missed: u64,
    /// Frames received here and dropped, or lost by the impairment, by cause. Queues count their own drops.
    pub dropped: Vec<Dropped>,
    /// Frames received here and flooded.
    pub flooded: Tally,
    /// Stations learned behind it.
    pub stations: u32,
    /// Frames received here with a source not learned, because the station table or the port's share of it was full.
    /// Frames to such a station are flooded.
    pub unlearned: u64,
    /// PAUSE frames received.
    pub pauses_received: u64,
    /// PAUSE and RESUME frames sent.
    pub pauses_sent: u64,
    /// Frames held by its impairment.
    pub delayed: u64,
    /// Flows that its M21TCP stage counts; absent without the stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub m21_flows: Option<u32>,
    /// The plain queue of the port: frames that no rule sends to a ring.
    pub queue: QueueSnapshot,
}

/// State and counters of a ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RingSnapshot {
    /// Name of the ring.
    pub name: String,
    /// The name of its port.
    pub port: String,
    /// True if it is above its alarm level.
    pub alarm: bool,
    /// Number of alarms raised.
    pub alarms: u64,
    /// State and counters of its queue.
    pub queue: QueueSnapshot,
}

/// Counters of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RuleSnapshot {
    /// Name of the rule.
    pub name: String,
    /// Frames that it matched.
    pub matched: Tally,
}

/// Counters of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct WorkerSnapshot {
    /// Number of the worker.
    pub worker: u16,
    /// Rounds over its ports.
    pub rounds: u64,
    /// Rounds in which a frame moved.
    pub busy_rounds: u64,
    /// Chunks in its share of packet memory.
    pub chunks: u64,
    /// Chunks of them that are free: neither queued, nor lent to a driver.
    pub chunks_free: u64,
}

/// State and counters of the switch at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Snapshot {
    /// The switch's name.
    pub name: String,
    /// Time since its start, in ns.
    pub uptime_ns: u64,
    /// Ports, in the order of their numbers.
    pub ports: Vec<PortSnapshot>,
    /// Rings in their written order.
    pub rings: Vec<RingSnapshot>,
    /// Rules in their written order.
    pub rules: Vec<RuleSnapshot>,
    /// Number of stations known.
    pub stations_len: u64,
    /// The stations, if requested.
    pub stations: Vec<Station>,
    /// Workers, in the order of their numbers.
    pub workers: Vec<WorkerSnapshot>,
}

impl Snapshot {
    /// Merges another worker's snapshot: each has its own ports and rings; rules are added up.
    pub(crate) fn merge(&mut self, other: Self) {
        self.ports.extend(other.ports);
        self.ports.sort_by_key(|port| port.number);
        self.rings.extend(other.rings);
        for (mine, theirs) in self.rules.iter_mut().zip(other.rules) {
            mine.matched.frames += theirs.matched.frames;
            mine.matched.bytes += theirs.matched.bytes;
        }
        self.stations_len = self.stations_len.max(other.stations_len);
        self.workers.extend(other.workers);
    }

    /// Counts the dropped frames of all causes, except filtered frames, frames without an output, and losses of an impairment.
    pub fn drops(&self) -> u64 {
        let unmissed = [Cause::Filtered, Cause::NoPort, Cause::Impairment].map(Cause::name);
        let wanted = |dropped: &&Dropped| !unmissed.contains(&dropped.cause);
        let ports = self.ports.iter().flat_map(|port| port.dropped.iter().chain(&port.queue.dropped));
        let rings = self.rings.iter().flat_map(|ring| &ring.queue.dropped);
        ports.chain(rings).filter(wanted).map(|dropped| dropped.tally.frames).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_have_the_bounds_they_name() {
        for frames in [0, 1, 3, 4, 15, 16, 63, 1_000_000, 1 << 40] {
            let mut histogram = Histogram::default();
            histogram.add(frames);
            let bucket = histogram.buckets.iter().position(|&count| count > 0).unwrap();
            assert!(Histogram::bound(bucket).is_none_or(|bound| frames < bound), "{frames}");
            assert!(
                bucket == 0 || Histogram::bound(bucket - 1).is_some_and(|bound| frames >= bound),
                "{frames}"
            );
        }
        assert_eq!(Cause::ALL.map(|cause| cause as usize), core::array::from_fn(|n| n));
    }
}
