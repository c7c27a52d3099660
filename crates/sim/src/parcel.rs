//! A frame that waits or travels, without its times.

/// A frame that waits in a queue or travels over a link. A parcel is copied from port to port; its segment stays in its place.
///
/// The parts share two words, so that functions take a parcel in registers. A struct of many parts is passed in memory, which
/// delays each hop (docs/engineering/simulator-speed.md).
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Parcel {
    /// The number of the frame's next step; from bit 32 on, the connection end that receives the frame.
    step_and_end: u64,
    /// The place of the frame's segment; from bit 32 on, the frame's bytes on the wire.
    load: u64,
}

impl Parcel {
    /// Makes a frame of less than 65536 bytes on the wire. `next` is [`NIL`](crate::index::NIL) if the present link leads to
    /// the frame's destination.
    #[inline]
    pub(crate) const fn new(next: u32, end: u32, wire_bytes: u32, segment: u32) -> Self {
        assert!(wire_bytes < 1 << 16, "a frame of 64 KiB or more");
        Self {
            step_and_end: next as u64 | (end as u64) << 32,
            load: segment as u64 | (wire_bytes as u64) << 32,
        }
    }

    /// Returns the same frame with another next step.
    #[inline]
    pub(crate) const fn moved(self, next: u32) -> Self {
        Self { step_and_end: self.step_and_end >> 32 << 32 | next as u64, ..self }
    }

    /// Returns the number of the frame's next step.
    #[inline]
    pub(crate) const fn next(self) -> u32 {
        self.step_and_end as u32
    }

    /// Returns the connection end that receives the frame.
    #[inline]
    pub(crate) const fn end(self) -> u32 {
        (self.step_and_end >> 32) as u32
    }

    /// Returns the frame's bytes on the wire, everything counted.
    #[inline]
    pub(crate) const fn wire_bytes(self) -> u32 {
        (self.load >> 32) as u32
    }

    /// Returns the place of the frame's segment.
    #[inline]
    pub(crate) const fn segment(self) -> usize {
        self.load as u32 as usize
    }
}
