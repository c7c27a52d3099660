//! The link behind an output port.

use fanin_units::{Bytes, Duration, Instant, Rate};

use crate::frame::AdmissionLimit;

/// The link behind an output port: its rate and the overhead on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLink {
    rate: Rate,
    /// [`Rate::byte_ps`] of the rate.
    byte_ps: u32,
    overhead: u32,
}

impl OutputLink {
    /// Makes a link of this rate that carries `overhead` bytes more than each frame. For Ethernet these are 20 bytes,
    /// preamble and gap, if frame lengths include the check sequence.
    ///
    /// # Panics
    /// If the rate is zero, or the overhead 4 GiB or more.
    pub const fn new(rate: Rate, overhead: Bytes) -> Self {
        assert!(!rate.is_zero(), "a link has a rate of zero");
        assert!(overhead.get() <= u32::MAX as u64, "an overhead of 4 GiB or more");
        Self { rate, byte_ps: rate.byte_ps(), overhead: overhead.get() as u32 }
    }

    /// The rate of the link.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Time for which a frame of `bytes` bytes occupies the link, rounded up to a picosecond, as [`Rate::time_to_send`].
    #[inline]
    pub const fn time_to_send(&self, bytes: u32) -> Duration {
        self.rate.time_by_byte(self.byte_ps, bytes + self.overhead)
    }
}

/// The time for which the frame in service occupies memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InService {
    /// A frame takes memory until its last bit has left, as in a store-and-forward switch.
    #[default]
    Counted,
    /// A frame takes memory only until its first bit leaves, as in ns-3, where the device holds it during transmission. A frame
    /// at an idle port must still fit the queue, and counts for the high-water marks.
    Free,
}

/// The result of an arrival at a first-in first-out port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// The frame is queued; its departure is known.
    Queued {
        /// Departure of its first bit.
        start: Instant,
        /// Departure of its last bit.
        end: Instant,
        /// True if the caller must set its ECN bits to CE.
        marked: bool,
    },
    /// This limit refused the frame.
    Dropped(AdmissionLimit),
}
