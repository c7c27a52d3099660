//! A frame without its time.

use fanin_queueing::EcnCodepoint;

#[cfg(test)]
use crate::index::NIL;

/// The most segments that can be on their way at once.
pub(super) const SEGMENTS_MAX: u32 = 1 << 30;

/// A frame that waits in a queue or travels over a link. It is copied from port to port; its segment stays where it is.
///
/// The parts share two words, so that functions take it in registers. A struct of many parts is passed in memory, and a hop waits
/// for that (docs/engineering/simulator-speed.md).
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Parcel {
    /// The number of its next step, and from bit 32 on the end of a connection that it is for.
    way: u64,
    /// The place of its segment. From bit 32 on the bytes on the wire, from bit 48 on the ECN bits of its IP header.
    load: u64,
}

/// The first bit of the ECN bits in [`Parcel::load`].
const ECN_SHIFT: u32 = 48;

impl Parcel {
    /// A frame of less than 65536 bytes on the wire. `next` is [`NIL`](crate::index::NIL) where the present link leads to its
    /// destination.
    #[inline]
    pub(super) const fn new(next: u32, end: u32, wire_bytes: u32, segment: u32, ecn: EcnCodepoint) -> Self {
        assert!(wire_bytes < 1 << 16, "a frame of 64 KiB or more");
        debug_assert!(segment < SEGMENTS_MAX);
        let load = segment as u64 | (wire_bytes as u64) << 32 | (ecn as u64) << ECN_SHIFT;
        Self { way: next as u64 | (end as u64) << 32, load }
    }

    /// The same behind its next step.
    #[inline]
    pub(super) const fn moved(self, next: u32) -> Self {
        Self { way: self.way >> 32 << 32 | next as u64, ..self }
    }

    /// The number of its next step.
    #[inline]
    pub(super) const fn next(self) -> u32 {
        self.way as u32
    }

    /// The end of a connection that it is for.
    #[inline]
    pub(crate) const fn end(self) -> u32 {
        (self.way >> 32) as u32
    }

    /// Bytes on the wire, everything counted.
    #[inline]
    pub(crate) const fn wire_bytes(self) -> u32 {
        (self.load >> 32) as u16 as u32
    }

    /// The place of its segment.
    #[inline]
    pub(crate) const fn segment(self) -> usize {
        self.load as u32 as usize
    }

    /// The same, marked CE.
    pub(super) const fn marked(self) -> Self {
        let others = self.load & ((1 << ECN_SHIFT) - 1);
        Self { load: others | (EcnCodepoint::Congestion as u64) << ECN_SHIFT, ..self }
    }

    /// The ECN bits of its IP header.
    #[inline]
    pub(super) const fn ecn(self) -> EcnCodepoint {
        const { assert!(EcnCodepoint::NotCapable as u8 == 0 && EcnCodepoint::Capable as u8 == 1) };
        match self.load >> ECN_SHIFT {
            0 => EcnCodepoint::NotCapable,
            1 => EcnCodepoint::Capable,
            _ => EcnCodepoint::Congestion,
        }
    }

    /// For tests: a frame of `wire_bytes` bytes for an end.
    #[cfg(test)]
    pub(crate) const fn of(wire_bytes: u32, end: u32) -> Self {
        Self::new(NIL, end, wire_bytes, 0, EcnCodepoint::NotCapable)
    }
}
