//! An output's own buffer: the memory of one output port, shared with no other. First in, first out.
//!
//! Switch A of thesis §4.2.1 has only such buffers, which are *dedicated*. In a [`Memory`](crate::Memory) with pools, each
//! output has one, too, and a frame must meet the limits of both.
//!
//! The file admits frames and counts their bytes. In the simulator `drive/booked.rs` books each departure, and the frame is
//! at once on its link (`sim/src/fabric/link.rs`). In the live switch it waits in ring 0 of its port (`rings.rs`).

use alloc::boxed::Box;
use alloc::vec::Vec;

use fanin_units::{Bytes, Instant};

use crate::aqm::{Aqm, AqmDecision};
use crate::buffering::BufferingSettings;
use crate::frame::{AdmissionLimit, Counters, Frame, FrameCharge, FrameCount, Occupancy, Verdict};
use crate::layout::Layout;

/// The accounts of one output port's buffer, in byte counts only; the frames are elsewhere.
///
/// Every frame that [`Self::arrive`] accepts leaves by one [`Self::depart`] of the same size.
#[derive(Debug, Clone)]
pub struct OutputBuffer {
    occupancy: Occupancy,
    limit: u64,
    charge: FrameCharge,
    /// Time of the last departure. An empty queue has been empty since then.
    emptied_at: Instant,
    aqm: Option<Box<Aqm>>,
    counters: Counters,
}

impl Layout {
    /// A fixed amount of memory for each output port (thesis §5.1.3, figure 5.2a; switch A of §4.2.1).
    pub fn dedicated(output_limits: Vec<Bytes>) -> Self {
        Self::new(output_limits, BufferingSettings::Dedicated)
    }
}

impl OutputBuffer {
    /// Makes an empty buffer for `limit` bytes, bookkeeping included; [`Bytes::MAX`] is no limit. Each frame is stored
    /// with `overhead` bytes of bookkeeping, both together in whole cells of `cell` bytes.
    ///
    /// # Panics
    /// If `cell` is zero, or `overhead` or `cell` exceeds [`u32::MAX`].
    pub fn new(limit: Bytes, overhead: Bytes, cell: Bytes) -> Self {
        Self {
            occupancy: Occupancy::default(),
            limit: limit.get(),
            charge: FrameCharge::new(overhead, cell),
            emptied_at: Instant::START,
            aqm: None,
            counters: Counters::default(),
        }
    }

    /// Makes the empty buffer of one output of `layout`. The limits of shared memory are not part of it.
    pub fn of(layout: &Layout, output: usize) -> Self {
        Self::new(layout.output_limits()[output], layout.frame_overhead(), layout.cell())
    }

    /// Sets the active queue management, which marks or drops early from now on.
    pub fn set_aqm(&mut self, aqm: Aqm) {
        self.aqm = if matches!(aqm, Aqm::None) { None } else { Some(Box::new(aqm)) };
    }

    /// The memory that a frame of `bytes` bytes takes, with its bookkeeping and in whole cells.
    #[inline]
    pub const fn charge(&self, bytes: u32) -> u64 {
        self.charge.of(bytes)
    }

    /// Admits, marks or drops an arriving frame. `draw` returns 32 uniform random bits; only RED calls it.
    ///
    /// The limit is met while the occupancy, with this frame, does not exceed it. Markers see the queue without the
    /// frame.
    #[inline]
    pub fn arrive(&mut self, now: Instant, frame: Frame, draw: impl FnOnce() -> u32) -> Verdict {
        self.arrive_in_shared(now, frame, draw, |_, _| None)
    }

    /// Handles a frame as [`Self::arrive`] does, at an output that shares memory. `shared` checks the shared memory, and
    /// returns the limit that refuses the frame. It is called with the occupied bytes and the frame's charge, if this
    /// buffer has room.
    #[inline]
    pub(crate) fn arrive_in_shared(
        &mut self,
        now: Instant,
        frame: Frame,
        draw: impl FnOnce() -> u32,
        shared: impl FnOnce(u64, u64) -> Option<AdmissionLimit>,
    ) -> Verdict {
        let charge = self.charge(frame.bytes);
        let decision = self.decide(now, frame, draw);
        let refused_by = match decision {
            AqmDecision::Drop => Some(AdmissionLimit::Early),
            _ => self.refusal(charge).or_else(|| shared(self.occupancy.bytes, charge)),
        };
        if let Some(limit) = refused_by {
            self.drop_frame(limit, frame.bytes);
            return Verdict::Dropped(limit);
        }
        let marked = decision == AqmDecision::Mark;
        self.admit(charge, frame.bytes, marked);
        Verdict::Accepted { marked }
    }

    /// Frees the memory of an accepted frame that left at `at`.
    ///
    /// # Panics
    /// If the buffer holds less than this frame, or if an earlier departure has a later time.
    #[inline]
    pub fn depart(&mut self, at: Instant, bytes: u32) {
        let charge = self.charge(bytes);
        self.depart_many(at, charge, FrameCount { frames: 1, bytes: bytes.into() });
    }

    /// Frees the memory of the `departed` frames, `charges` bytes in all. The last frame left at `at`.
    #[inline]
    pub(crate) fn depart_many(&mut self, at: Instant, charges: u64, departed: FrameCount) {
        assert!(at >= self.emptied_at, "departures run backwards");
        debug_assert!(departed.frames > 0, "a departure of no frame");
        debug_assert!(charges >= departed.bytes, "a frame takes less memory than its bytes");
        self.occupancy.remove(charges, departed.frames);
        self.counters.departed += departed;
        debug_assert!(
            self.counters.departed.frames <= self.counters.enqueued.frames,
            "a frame departs that was not admitted"
        );
        self.emptied_at = at;
    }

    /// Empties the queue: its `frames` frames have left, the last of them at `at`.
    #[inline]
    pub(crate) fn depart_all(&mut self, at: Instant, frames: u32) {
        assert!(at >= self.emptied_at, "departures run backwards");
        assert_eq!(
            self.occupancy.frames,
            u64::from(frames),
            "frames are stored without a departure, or the reverse"
        );
        debug_assert_eq!(
            self.counters.enqueued.frames,
            self.counters.departed.frames + u64::from(frames),
            "a frame is admitted, and neither stored nor departed"
        );
        (self.occupancy.bytes, self.occupancy.frames) = (0, 0);
        self.counters.departed = self.counters.enqueued;
        self.emptied_at = at;
    }

    /// Decides whether to mark, drop early or pass an arriving frame.
    #[inline]
    fn decide(&mut self, now: Instant, frame: Frame, draw: impl FnOnce() -> u32) -> AqmDecision {
        match &mut self.aqm {
            None => AqmDecision::Pass,
            Some(aqm) => aqm.decide(now, &self.occupancy, self.emptied_at, frame, draw),
        }
    }

    /// Returns [`AdmissionLimit::Output`] if `charge` bytes more exceed this buffer's limit.
    #[inline]
    const fn refusal(&self, charge: u64) -> Option<AdmissionLimit> {
        if self.occupancy.bytes + charge > self.limit { Some(AdmissionLimit::Output) } else { None }
    }

    /// Admits a frame that meets all limits.
    #[inline]
    fn admit(&mut self, charge: u64, bytes: u32, marked: bool) {
        assert!(self.refusal(charge).is_none(), "a frame is admitted above the limit");
        self.occupancy.add(charge);
        self.counters.enqueued.add(bytes);
        if marked {
            self.counters.marked.add(bytes);
        }
    }

    /// The occupied bytes after a frame with a charge of `charge` bytes. `None` if departures that are not settled yet could
    /// change the verdict, a mark or a high-water mark.
    #[inline]
    pub(crate) fn below_high_water(&self, charge: u64) -> Option<u64> {
        let Occupancy { bytes, frames, bytes_max, frames_max } = self.occupancy;
        let level = bytes + charge;
        // The high-water mark is within the limit, as `admit` asserts, and the limit never changes.
        let is_below = level <= bytes_max && frames < frames_max && self.aqm.is_none();
        is_below.then_some(level)
    }

    /// Admits a frame of `bytes` bytes that raises the occupancy to `level`, [below all high-water marks](Self::below_high_water).
    #[inline]
    pub(crate) fn admit_below_high_water(&mut self, level: u64, bytes: u32) {
        debug_assert!(
            level <= self.occupancy.bytes_max,
            "an admission without a check sets a high-water mark"
        );
        assert!(self.aqm.is_none(), "a marker has not seen an admission");
        self.occupancy.bytes = level;
        self.occupancy.frames += 1;
        self.counters.enqueued.add(bytes);
    }

    /// Counts a frame as refused.
    #[cold]
    pub(crate) fn drop_frame(&mut self, limit: AdmissionLimit, bytes: u32) {
        self.counters.count_drop(limit, bytes);
    }

    /// Takes back an admission after a later stage refused the frame, and counts the frame as dropped by `limit`. A
    /// high-water mark of this admission stays.
    pub(crate) fn withdraw(&mut self, bytes: u32, limit: AdmissionLimit) {
        self.occupancy.remove(self.charge(bytes), 1);
        self.counters.enqueued.remove(bytes);
        self.counters.count_drop(limit, bytes);
    }

    /// Counts frames that left at `at` without being stored, as there was room for them. They count as enqueued and
    /// departed, and leave the high-water marks unchanged.
    #[inline]
    pub(crate) fn count_cut_through(&mut self, at: Instant, passed: FrameCount) {
        assert!(at >= self.emptied_at, "departures run backwards");
        self.counters.enqueued += passed;
        self.counters.departed += passed;
        self.emptied_at = at;
    }

    /// The bytes that are free.
    #[inline]
    pub(crate) const fn free(&self) -> u64 {
        self.limit.saturating_sub(self.occupancy.bytes)
    }

    /// The longest frame, in bytes, that `free` bytes of memory can store; 0 if none.
    #[inline]
    pub(crate) fn frame_in(&self, free: u64) -> u32 {
        self.charge.frame_in(free)
    }

    /// The occupancy of the queue.
    #[inline]
    pub const fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    /// The counters since the buffer was made.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns true if frames may be marked or dropped early.
    pub const fn has_aqm(&self) -> bool {
        self.aqm.is_some()
    }

    /// Starts the high-water marks afresh from the present occupancy.
    pub fn reset_high_water_marks(&mut self) {
        self.occupancy.reset_high_water_marks();
    }

    /// Asserts that every accepted frame has departed or is among `frames`, given by their lengths. Their charges must equal
    /// the occupancy.
    ///
    /// # Panics
    /// If a frame or byte is missing.
    pub fn assert_conserved(&self, frames: impl Iterator<Item = u32>) {
        let (mut known, mut charges, mut stored) = (self.counters.departed, 0, FrameCount::default());
        for bytes in frames {
            stored.add(bytes);
            charges += self.charge(bytes);
        }
        known += stored;
        assert_eq!(self.counters.enqueued, known, "frames of a buffer are unaccounted for");
        let Occupancy { bytes, frames, bytes_max, frames_max } = self.occupancy;
        assert_eq!(
            (frames, bytes),
            (stored.frames, charges),
            "the occupancy of a buffer differs from its frames"
        );
        assert!(frames <= frames_max && bytes <= bytes_max, "a buffer holds more than its high-water marks");
        assert!(bytes_max <= self.limit, "more is queued than the limit allows");
    }
}
