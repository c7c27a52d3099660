//! A frame without its time.

use fanin_queueing::EcnCodepoint;

#[cfg(test)]
use crate::index::NIL;

/// The most segments that can be on their way at once; the bits above are the frame's ECN bits.
pub(super) const SEGMENTS_MAX: u32 = ECN_CAPABLE;
/// The frame's IP header says that it may be marked.
const ECN_CAPABLE: u32 = 1 << 30;
/// It is marked.
const ECN_MARKED: u32 = 1 << 31;

/// A frame that waits in a queue or travels over a link. It is copied from port to port; its segment stays where it is.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Parcel {
    /// The number of its next step, or [`NIL`](crate::index::NIL) where the present link leads to its destination.
    next: u32,
    /// The end of a connection that it is for.
    end: u32,
    /// The place of its segment, and its ECN bits.
    segment: u32,
    /// Everything on the wire counted.
    wire_bytes: u16,
}

impl Parcel {
    /// A frame of less than 65536 bytes on the wire.
    #[inline]
    pub(super) const fn new(next: u32, end: u32, wire_bytes: u32, segment: u32, is_capable: bool) -> Self {
        debug_assert!(wire_bytes < 1 << 16 && segment < SEGMENTS_MAX);
        let ecn = if is_capable { ECN_CAPABLE } else { 0 };
        Self { next, end, segment: segment | ecn, wire_bytes: wire_bytes as u16 }
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
        (self.segment & (SEGMENTS_MAX - 1)) as usize
    }

    pub(super) const fn marked(self) -> Self {
        Self { segment: self.segment | ECN_MARKED, ..self }
    }

    #[inline]
    pub(super) const fn ecn(self) -> EcnCodepoint {
        const BY_BITS: [EcnCodepoint; 4] = [
            EcnCodepoint::NotCapable,
            EcnCodepoint::Capable,
            EcnCodepoint::Congestion,
            EcnCodepoint::Congestion,
        ];
        BY_BITS[(self.segment >> 30) as usize]
    }

    /// For tests: a frame of `wire_bytes` bytes for an end.
    #[cfg(test)]
    pub(crate) const fn of(wire_bytes: u32, end: u32) -> Self {
        Self::new(NIL, end, wire_bytes, 0, false)
    }
}
