//! The link behind an output port.

use fanin_units::{Bytes, Duration, Instant, PS_BITS, Rate};

use crate::frame::AdmissionLimit;

/// The link behind an output port: its rate and the overhead on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLink {
    rate: Rate,
    /// Picoseconds a byte if that is a whole number, otherwise zero.
    byte_ps: u64,
    overhead: u64,
}

impl OutputLink {
    /// Makes a link of this rate that carries `overhead` bytes more than each frame. For Ethernet these are 20 bytes,
    /// preamble and gap, if frame lengths include the check sequence.
    ///
    /// # Panics
    /// If the rate is zero.
    pub const fn new(rate: Rate, overhead: Bytes) -> Self {
        assert!(!rate.is_zero(), "a link needs a rate");
        let byte_ps = if PS_BITS.is_multiple_of(rate.get()) { PS_BITS / rate.get() } else { 0 };
        Self { rate, byte_ps, overhead: overhead.get() }
    }

    /// The rate of the link.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Time for which a frame of `bytes` bytes occupies the link, rounded up to a picosecond, as [`Rate::time_to_send`].
    #[inline]
    pub const fn time_to_send(&self, bytes: u32) -> Duration {
        let bytes = bytes as u64 + self.overhead;
        if self.byte_ps != 0 {
            return Duration::new(bytes * self.byte_ps);
        }
        match bytes.checked_mul(PS_BITS) {
            Some(bits) => Duration::new(bits.div_ceil(self.rate.get())),
            None => self.rate.time_to_send(Bytes::new(bytes)),
        }
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
