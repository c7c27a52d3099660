//! The measure of a queue's length and the decision about a frame, for every kind of active queue management.

use fanin_units::{Bytes, Packets};

use crate::frame::{EcnCodepoint, Occupancy};

/// A queue length, in bytes or in frames. The variant chooses the measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Occupied bytes: with bookkeeping in a switch's memory, without in a ring.
    Bytes(Bytes),
    /// The number of queued frames.
    Packets(Packets),
}

impl Depth {
    pub(super) const fn value(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.get(),
            Self::Packets(packets) => packets.get(),
        }
    }

    /// The length of `queue` in the measure of this depth.
    #[inline]
    pub(super) const fn measure(self, queue: &Occupancy) -> u64 {
        match self {
            Self::Bytes(_) => queue.bytes,
            Self::Packets(_) => queue.frames,
        }
    }
}

/// The treatment of a frame that is due for a mark but is not ECN-capable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum NotCapable {
    /// Drops it (RFC 3168 §5).
    #[default]
    Drop,
    /// Admits it unmarked.
    Pass,
}

/// The decision of active queue management about one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AqmDecision {
    /// The frame passes unchanged. A limit of the memory may still refuse it.
    Pass,
    /// The frame is marked CE.
    Mark,
    /// The frame is dropped.
    Drop,
}

/// The decision about a frame that is due for a mark.
pub(super) const fn mark(ecn: EcnCodepoint, not_capable: NotCapable) -> AqmDecision {
    match (ecn, not_capable) {
        (EcnCodepoint::Capable | EcnCodepoint::Congestion, _) => AqmDecision::Mark,
        (EcnCodepoint::NotCapable, NotCapable::Drop) => AqmDecision::Drop,
        (EcnCodepoint::NotCapable, NotCapable::Pass) => AqmDecision::Pass,
    }
}
