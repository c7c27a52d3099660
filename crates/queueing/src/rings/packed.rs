//! Frames' descriptors as rings hold them.

use crate::frame::{EcnCodepoint, Frame};

/// A frame's descriptor in one word, so that a slot with a handle of 12 bytes takes a quarter of a cache line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Packed(u32);

impl Packed {
    const ECN_SHIFT: u32 = 30;
    /// The longest frame.
    const BYTES_MAX: u32 = (1 << Self::ECN_SHIFT) - 1;

    #[inline]
    pub(super) fn new(frame: Frame) -> Self {
        assert!(frame.bytes <= Self::BYTES_MAX, "a frame of {} bytes", frame.bytes);
        Self(frame.bytes | (frame.ecn as u32) << Self::ECN_SHIFT)
    }

    #[inline]
    pub(super) const fn bytes(self) -> u32 {
        self.0 & Self::BYTES_MAX
    }

    #[inline]
    pub(super) const fn frame(self) -> Frame {
        let ecn = match self.0 >> Self::ECN_SHIFT {
            0 => EcnCodepoint::NotCapable,
            1 => EcnCodepoint::Capable,
            _ => EcnCodepoint::Congestion,
        };
        Frame { bytes: self.bytes(), ecn }
    }
}
