//! Cut-through for an empty ring: a frame that finds no other before it is counted, and never stored.

use fanin_units::Instant;

use super::{RingState, Rings};
use crate::frame::{Count, Frame, Verdict};

impl<H: Copy + Default> Rings<H> {
    /// Whether no ring waits for its turn at `now` and the port as a whole may send, so that a frame that may [`Self::pass`] its
    /// ring overtakes no other. Rings that lack tokens or are paused do not count. Never for a port with a rate of its own.
    ///
    /// The answer holds until a frame arrives, if [`Self::serve`] was called at `now`.
    #[inline]
    pub fn is_clear(&self, now: Instant) -> bool {
        self.ready.is_empty()
            && self.shaper.is_none()
            && self.held_until <= now
            && self.wheel.earliest().is_none_or(|earliest| earliest > now)
    }

    /// Whether a ring is empty, is not paused, does not mark, and its bucket is not in debt at `now`. If not, no frame may
    /// [`Self::pass`] it.
    ///
    /// # Panics
    /// If there is no such ring.
    #[inline(always)]
    pub fn may_pass(&self, now: Instant, ring: usize) -> bool {
        self.rings[ring].may_pass(now)
    }

    /// As [`Self::arrive`] for a frame that may not be marked; `None`, and nothing done, where [`Self::may_pass`] holds.
    ///
    /// # Panics
    /// If there is no such ring.
    #[inline(always)]
    pub fn arrive_unless_passing(
        &mut self,
        now: Instant,
        ring: usize,
        bytes: u32,
        handle: H,
    ) -> Option<Verdict> {
        self.arrive_or_pass::<true>(now, ring, Frame::new(bytes), handle, || 0)
    }

    /// A frame passes a ring without being stored, where the port [`Self::is_clear`]: it counts as enqueued and departed, takes
    /// its tokens, and shows in no high-water mark. `false`, and nothing done, where the ring holds frames, lacks tokens, is paused,
    /// marks, or would refuse the frame.
    ///
    /// # Panics
    /// If there is no such ring.
    #[inline]
    pub fn pass(&mut self, now: Instant, ring: usize, bytes: u32) -> bool {
        let state = &mut self.rings[ring];
        if !state.is_open() || u64::from(bytes) > state.bytes_limit {
            return false;
        }
        if state.shaped {
            let on_the_wire = bytes + self.overhead;
            if state.bucket.ready_at(on_the_wire) > now {
                return false;
            }
            state.bucket.take(now, on_the_wire);
        }
        state.enqueued.add(bytes);
        true
    }

    /// The longest frame that may [`Self::pass`] a ring now, and any number of which may; 0 where none may. A ring with a token bucket
    /// says 0: how many may pass it depends on their lengths.
    ///
    /// # Panics
    /// If there is no such ring.
    #[inline]
    pub fn passable(&self, ring: usize) -> u32 {
        let state = &self.rings[ring];
        let passes = state.is_open() && !state.shaped;
        if passes { u32::try_from(state.bytes_limit).unwrap_or(u32::MAX) } else { 0 }
    }

    /// Frames passed a ring, none longer than [`Self::passable`].
    ///
    /// # Panics
    /// If there is no such ring.
    #[inline]
    pub fn passed(&mut self, ring: usize, passed: Count) {
        let enqueued = &mut self.rings[ring].enqueued;
        enqueued.frames += passed.frames;
        enqueued.bytes += passed.bytes;
    }
}

impl<H: Copy + Default> RingState<H> {
    /// Whether a frame may pass, its length aside, and its tokens unless there are none at all.
    #[inline(always)]
    pub(super) fn may_pass(&self, now: Instant) -> bool {
        self.is_open() && (!self.shaped || self.bucket.open_at() <= now)
    }

    /// Whether a frame may pass, tokens and its length aside.
    #[inline(always)]
    fn is_open(&self) -> bool {
        !self.holds && self.bars == 0
    }
}
