//! Settings of a port's rings.

use fanin_units::{Bytes, Rate};

use crate::aqm::Aqm;
use crate::bucket::{BucketError, TokenBucket};
#[cfg(doc)]
use crate::frame::Frame;

/// The most rings of one port.
pub const RINGS_MAX: usize = 1 << 16;
/// The largest capacity of one ring, in frames.
pub const RING_FRAMES_MAX: u32 = 1 << 24;

/// Order of service of a port's rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum RingService {
    /// Round-robin, a frame each.
    #[default]
    RoundRobin,
    /// The ring with the most frames; round-robin among equals. Lengths from 262 143 frames on count as equal.
    LongestFirst,
    /// The ring with the highest priority; round-robin among equals. In a scenario all rings are equal.
    StrictPriority,
}

/// Settings of one ring.
#[derive(Debug, Clone)]
pub struct RingSettings {
    /// The most frames that the ring holds: 1 to [`RING_FRAMES_MAX`].
    pub frames_max: u32,
    /// The most bytes that the ring holds, each frame as [`Frame::bytes`].
    pub bytes_max: Bytes,
    /// Number of frames to allocate at once; beyond that the memory doubles when needed, up to `frames_max`.
    pub frames_reserved: u32,
    /// Rate and burst of its token bucket; `None` if only the port's rate limits it.
    pub shaping: Option<(Rate, Bytes)>,
    /// Priority under [`RingService::StrictPriority`]; the highest goes first.
    pub priority: u8,
    /// Marking and early dropping.
    pub aqm: Aqm,
}

impl RingSettings {
    /// A ring for `frames_max` frames, not shaped.
    pub const fn new(frames_max: u32) -> Self {
        Self {
            frames_max,
            bytes_max: Bytes::MAX,
            frames_reserved: 0,
            shaping: None,
            priority: 0,
            aqm: Aqm::None,
        }
    }

    /// Makes the bucket of the ring's rate limit; without one, a bucket that never delays a frame.
    pub(super) const fn bucket(&self) -> Result<TokenBucket, BucketError> {
        match self.shaping {
            Some((rate, burst)) => TokenBucket::new(rate, burst),
            None => TokenBucket::new(TokenBucket::RATE_MAX, Bytes::ZERO),
        }
    }
}

/// Errors of adding or changing a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// The port has the largest number of rings already.
    #[error("a port has at most {max} rings")]
    TooMany {
        /// The largest number of rings.
        max: usize,
    },
    /// The capacity is zero or too large, or more frames are reserved than the ring may hold.
    #[error("a ring holds 1 to {max} frames, not {actual}, of which {reserved} reserved")]
    Frames {
        /// The requested depth.
        actual: u32,
        /// The number of frames to allocate at once.
        reserved: u32,
        /// The largest capacity.
        max: u32,
    },
    /// The token bucket is invalid.
    #[error(transparent)]
    Shaping(#[from] BucketError),
}
