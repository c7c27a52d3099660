//! A frame without its time.

use fanin_queueing::EcnCodepoint;

#[cfg(test)]
use crate::index::NIL;

/// The most segments that can be on their way at once.
pub(super) const SEGMENTS_MAX: u32 = 1 << 30;

/// A frame that waits in a queue or travels over a link. It is copied from port to port; its segment stays where it is.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Parcel {
    /// The number of its next step, or [`NIL`](crate::index::NIL) where the present link leads to its destination.
    next: u32,
    /// The end of a connection that it is for.
    end: u32,
    /// The place of its segment.
    segment: u32,
    /// Everything on the wire counted.
    wire_bytes: u16,
    /// The ECN bits of its IP header.
    ecn: EcnCodepoint,
}

impl Parcel {
    /// A frame of less than 65536 bytes on the wire.
    #[inline]
    pub(super) const fn new(next: u32, end: u32, wire_bytes: u32, segment: u32, ecn: EcnCodepoint) -> Self {
        debug_assert!(wire_bytes < 1 << 16 && segment < SEGMENTS_MAX);
        Self { next, end, segment, wire_bytes: wire_bytes as u16, ecn }
    }

    /// The same behind its next step.
    #[inline]
    pub(super) const fn moved(self, next: u32) -> Self {
        Self { next, ..self }
    }

    /// The number of its next step.
    #[inline]
    pub(super) const fn next(self) -> u32 {
        self.next
    }

    /// The end of a connection that it is for.
    #[inline]
    pub(crate) const fn end(self) -> u32 {
        self.end
    }

    /// Bytes on the wire, everything counted.
    #[inline]
    pub(crate) const fn wire_bytes(self) -> u32 {
        self.wire_bytes as u32
    }

    /// The place of its segment.
    #[inline]
    pub(crate) const fn segment(self) -> usize {
        self.segment as usize
    }

    /// The same, marked CE.
    pub(super) const fn marked(self) -> Self {
        Self { ecn: EcnCodepoint::Congestion, ..self }
    }

    /// The ECN bits of its IP header.
    #[inline]
    pub(super) const fn ecn(self) -> EcnCodepoint {
        self.ecn
    }

    /// For tests: a frame of `wire_bytes` bytes for an end.
    #[cfg(test)]
    pub(crate) const fn of(wire_bytes: u32, end: u32) -> Self {
        Self::new(NIL, end, wire_bytes, 0, EcnCodepoint::NotCapable)
    }
}
