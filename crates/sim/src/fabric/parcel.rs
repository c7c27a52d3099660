//! A frame without its time.

use fanin_queueing::Ecn;

#[cfg(test)]
use super::NIL;

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
    /// [`super::Frame::next`], and [`super::Frame::end`] above.
    way: u64,
    /// [`super::Frame::wire_bytes`], and [`super::Frame::segment`] above.
    load: u64,
}

impl Parcel {
    #[inline(always)]
    pub(super) const fn new(next: u32, end: u32, wire_bytes: u32, segment: u32) -> Self {
        Self { way: next as u64 | (end as u64) << 32, load: wire_bytes as u64 | (segment as u64) << 32 }
    }

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
        self.load as u32
    }

    /// As [`super::Frame::segment`], with what its header says.
    #[inline(always)]
    pub(super) const fn tagged(self) -> u32 {
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
