//! A frame without its time.

use fanin_queueing::Ecn;

#[cfg(test)]
use crate::index::NIL;

/// The frame's IP header says that it may be marked.
pub(super) const ECN_CAPABLE: u32 = 1 << 30;
/// It is marked.
const ECN_MARKED: u32 = 1 << 31;

/// Where a frame's segment is, without what its header says.
#[inline]
pub(super) const fn place_of(segment: u32) -> usize {
    (segment & (ECN_CAPABLE - 1)) as usize
}

/// A frame that waits somewhere or is handed on, without a time. Two words, so that it travels in registers: what is put
/// together in memory and then copied as a whole has the processor wait until the parts have left its store buffer, behind
/// all that was stored before.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Parcel {
    /// Which of `Fabric::steps` comes next, and the end of a connection that it is for above.
    way: u64,
    /// Bytes on the wire, [`Self::input`] above 16 bits, where its segment is above 32: the lower 30 bits of that, then
    /// [`ECN_CAPABLE`] and whether it is marked.
    load: u64,
}

impl Parcel {
    /// `wire_bytes` below 65536.
    #[inline(always)]
    pub(super) const fn new(next: u32, end: u32, wire_bytes: u32, segment: u32) -> Self {
        debug_assert!(wire_bytes < 1 << 16);
        Self { way: next as u64 | (end as u64) << 32, load: wire_bytes as u64 | (segment as u64) << 32 }
    }

    /// The same behind its next step.
    #[inline(always)]
    pub(super) const fn moved(self, next: u32) -> Self {
        Self { way: self.way & !(u32::MAX as u64) | next as u64, load: self.load }
    }

    /// The same, come into a switch by the port of that number.
    #[inline(always)]
    pub(super) const fn come_by(self, input: u16) -> Self {
        Self { load: self.load & !(0xffff << 16) | (input as u64) << 16, ..self }
    }

    /// By which of its ports it came into the switch that it waits in or has left; only where switches stop their neighbours.
    #[inline(always)]
    pub(super) const fn input(self) -> u16 {
        (self.load >> 16) as u16
    }

    /// Which of `Fabric::steps` comes next; [`NIL`](crate::index::NIL) where the present link leads to its destination.
    #[inline(always)]
    pub(super) const fn next(self) -> u32 {
        self.way as u32
    }

    /// The end of a connection that it is for.
    #[inline(always)]
    pub(crate) const fn end(self) -> u32 {
        (self.way >> 32) as u32
    }

    /// Bytes on the wire, everything counted.
    #[inline(always)]
    pub(crate) const fn wire_bytes(self) -> u32 {
        self.load as u16 as u32
    }

    /// Where its segment is, with what its header says.
    #[inline(always)]
    const fn tagged(self) -> u32 {
        (self.load >> 32) as u32
    }

    /// Where its segment is.
    #[inline(always)]
    pub(crate) const fn segment(self) -> usize {
        place_of(self.tagged())
    }

    pub(super) const fn marked(self) -> Self {
        Self { load: self.load | (ECN_MARKED as u64) << 32, ..self }
    }

    pub(super) const fn ecn(self) -> Ecn {
        match self.tagged() >> 30 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable,
            _ => Ecn::Congestion,
        }
    }

    /// For tests: a frame of so many bytes for an end.
    #[cfg(test)]
    pub(crate) const fn of(wire_bytes: u32, end: u32) -> Self {
        Self::new(NIL, end, wire_bytes, 0)
    }
}
