//! A frame's descriptor, the verdict on it, and counters.

use core::ops::AddAssign;

use fanin_units::Bytes;

/// The two ECN bits of an IP header (RFC 3168 §5), reduced to the cases that a queue distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EcnCodepoint {
    /// Not-ECT, or not an IP packet: must not be marked.
    #[default]
    NotCapable,
    /// ECT(0) or ECT(1): may be marked.
    Capable,
    /// CE: already marked by an earlier queue.
    Congestion,
}

/// A frame's descriptor. The frame itself, or a handle to it, stays with the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frame {
    /// Length in bytes in the switch's memory: Ethernet header, payload and, where the switch keeps it, the check
    /// sequence.
    pub bytes: u32,
    /// ECN bits of the frame.
    pub ecn: EcnCodepoint,
}

impl Frame {
    /// A frame of `bytes` bytes that must not be marked.
    #[inline]
    pub const fn new(bytes: u32) -> Self {
        Self { bytes, ecn: EcnCodepoint::NotCapable }
    }
}

/// The rule for the memory that a switch takes for a frame: its bytes with the bookkeeping, in whole cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameCharge {
    overhead: u32,
    cell: u32,
}

impl FrameCharge {
    /// Charges each frame `overhead` bytes of bookkeeping, both together in whole cells of `cell` bytes.
    ///
    /// # Panics
    /// If `cell` is zero, or `overhead` or `cell` exceeds [`u32::MAX`].
    pub fn new(overhead: Bytes, cell: Bytes) -> Self {
        let small = |bytes: Bytes| u32::try_from(bytes.get()).expect("bookkeeping and cells are small");
        assert!(!cell.is_zero(), "a memory cell has no bytes");
        Self { overhead: small(overhead), cell: small(cell) }
    }

    /// The memory that a frame of `bytes` bytes takes.
    #[inline]
    pub const fn of(self, bytes: u32) -> u64 {
        let bytes = bytes as u64 + self.overhead as u64;
        if self.cell == 1 { bytes } else { bytes.next_multiple_of(self.cell as u64) }
    }

    /// The longest frame, in bytes, that `free` bytes of memory can store; 0 if none.
    #[inline]
    pub(crate) fn frame_in(self, free: u64) -> u32 {
        let in_cells = if self.cell == 1 { free } else { free - free % u64::from(self.cell) };
        u32::try_from(in_cells).unwrap_or(u32::MAX).saturating_sub(self.overhead)
    }
}

/// The limit that refused a frame. Limits are checked in this order, but [`Self::Frames`] before all others. The first one that
/// refuses is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum AdmissionLimit {
    /// Active queue management dropped the frame: RED, or [`Threshold`](crate::Threshold) if the frame is not ECN-capable.
    Early,
    /// The output port's own limit.
    Output,
    /// The input port's own limit.
    Input,
    /// The virtual output queue's limit: one input module towards one output.
    Voq,
    /// The dynamic threshold: alpha times the free pool.
    Dynamic,
    /// The shared pool is full.
    Pool,
    /// The input module's packet memory is full.
    Module,
    /// The ring's capacity.
    Ring,
    /// The limit on booked departures of a port ([`FIFO_FRAMES_MAX`](crate::FIFO_FRAMES_MAX)), checked before the port's own.
    Frames,
}

impl AdmissionLimit {
    /// Every limit, in the order of counting.
    pub const ALL: [Self; 9] = [
        Self::Early,
        Self::Output,
        Self::Input,
        Self::Voq,
        Self::Dynamic,
        Self::Pool,
        Self::Module,
        Self::Ring,
        Self::Frames,
    ];

    /// A short name for a record or a metric's label.
    pub const fn name(self) -> &'static str {
        ["early", "output", "input", "voq", "dynamic", "pool", "module", "ring", "frames"][self as usize]
    }
}

/// The verdict on an arriving frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The frame is queued.
    Accepted {
        /// True if the caller must set its ECN bits to CE.
        marked: bool,
    },
    /// The frame is dropped: the caller frees it.
    Dropped(AdmissionLimit),
}

impl Verdict {
    /// Returns true if the frame is queued.
    #[inline]
    pub const fn is_accepted(self) -> bool {
        matches!(self, Self::Accepted { .. })
    }
}

/// A number of frames, and the sum of their bytes without bookkeeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameCount {
    /// The number of frames.
    pub frames: u64,
    /// Bytes of these frames, each as [`Frame::bytes`].
    pub bytes: u64,
}

impl FrameCount {
    /// Adds a frame.
    #[inline]
    pub const fn add(&mut self, bytes: u32) {
        self.frames += 1;
        self.bytes += bytes as u64;
    }

    /// Removes a frame.
    #[inline]
    pub(crate) const fn remove(&mut self, bytes: u32) {
        assert!(
            self.frames > 0 && self.bytes >= bytes as u64,
            "a frame is taken back that was never counted"
        );
        self.frames -= 1;
        self.bytes -= bytes as u64;
    }
}

impl AddAssign for FrameCount {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}

/// The counters of one port or ring since its creation.
///
/// Always offered = enqueued + dropped, and enqueued = departed + queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Frames that were admitted.
    pub enqueued: FrameCount,
    /// Frames that have departed.
    pub departed: FrameCount,
    /// Frames that were marked CE here; also counted in `enqueued`.
    pub marked: FrameCount,
    /// Frames refused, indexed by [`AdmissionLimit`]; see [`Self::dropped_by`].
    pub dropped: [FrameCount; AdmissionLimit::ALL.len()],
}

impl Counters {
    /// Frames refused by one limit.
    pub const fn dropped_by(&self, limit: AdmissionLimit) -> FrameCount {
        self.dropped[limit as usize]
    }

    /// Frames refused by any limit.
    pub fn dropped_total(&self) -> FrameCount {
        let mut total = FrameCount::default();
        self.dropped.iter().for_each(|&count| total += count);
        total
    }

    #[cold]
    pub(crate) fn count_drop(&mut self, limit: AdmissionLimit, bytes: u32) {
        self.dropped[limit as usize].add(bytes);
    }
}

/// The occupancy of a queue, and its high-water marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Occupancy {
    /// Bytes of memory in use, bookkeeping and cell rounding included.
    pub bytes: u64,
    /// Frames in the queue.
    pub frames: u64,
    /// The largest [`Self::bytes`]; a frame counts from its admission.
    pub bytes_max: u64,
    /// The largest [`Self::frames`].
    pub frames_max: u64,
}

impl Occupancy {
    /// The bytes in use, and their high-water mark.
    #[inline]
    pub const fn level(&self) -> MemoryOccupancy {
        MemoryOccupancy { bytes: self.bytes, bytes_max: self.bytes_max }
    }

    #[inline]
    pub(crate) fn add(&mut self, charge: u64) {
        self.bytes += charge;
        self.frames += 1;
        self.bytes_max = self.bytes_max.max(self.bytes);
        self.frames_max = self.frames_max.max(self.frames);
    }

    #[inline]
    pub(crate) fn remove(&mut self, charges: u64, frames: u64) {
        assert!(charges <= self.bytes && frames <= self.frames, "memory released that was never taken");
        self.bytes -= charges;
        self.frames -= frames;
        assert!(self.frames > 0 || self.bytes == 0, "an empty queue holds memory");
    }

    pub(crate) fn reset_high_water_marks(&mut self) {
        assert!(
            self.bytes <= self.bytes_max && self.frames <= self.frames_max,
            "a high-water mark below the level"
        );
        self.bytes_max = self.bytes;
        self.frames_max = self.frames;
    }
}

/// The occupancy of a pool or an input, and its high-water mark, in bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryOccupancy {
    /// Bytes in use, bookkeeping and cell rounding included.
    pub bytes: u64,
    /// The largest [`Self::bytes`]; a frame counts from its admission.
    pub bytes_max: u64,
}

impl MemoryOccupancy {
    #[inline]
    pub(crate) fn remove(&mut self, charges: u64) {
        assert!(charges <= self.bytes, "memory released that was never taken");
        self.bytes -= charges;
    }

    pub(crate) fn reset_high_water_marks(&mut self) {
        assert!(self.bytes <= self.bytes_max, "a high-water mark below the level");
        self.bytes_max = self.bytes;
    }
}
