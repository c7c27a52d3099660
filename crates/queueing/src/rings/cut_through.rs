//! Cut-through for an empty ring: a frame that finds an empty ring and an idle port is counted and never stored.

use fanin_units::Instant;

use super::{RingState, Rings};
use crate::frame::FrameCount;

impl<H: Copy + Default> Rings<H> {
    /// Returns true if no ring waits for its turn at `now` and the port as a whole may send. A frame that may
    /// [`Self::cut_through`] its ring then overtakes no other. Rings without tokens and paused rings do not count. False for a
    /// port with a rate of its own.
    ///
    /// The answer holds until a frame arrives, if [`Self::depart_many`] was called at `now`.
    #[inline]
    pub fn is_clear(&self, now: Instant) -> bool {
        !self.has_ready()
            && self.shaper.is_none()
            && self.paused_until <= now
            && self.wheel.earliest().is_none_or(|earliest| earliest > now)
    }

    /// Returns true if a ring is empty, is not paused, does not mark, and its bucket is not in debt at `now`. If false, no
    /// frame may [`Self::cut_through`] it.
    ///
    /// # Panics
    /// If there is no such ring.
    #[inline]
    pub fn may_cut_through(&self, now: Instant, ring: usize) -> bool {
        self.rings[ring].may_cut_through(now)
    }

    /// Passes a frame through a ring without storing it, at a port where [`Self::is_clear`] is true. The frame counts as
    /// enqueued and departed, takes its tokens, and leaves the high-water marks unchanged. Returns false and does nothing
    /// if the ring holds frames, lacks tokens, is paused, marks, or would refuse the frame.
    ///
    /// # Panics
    /// If there is no such ring.
    #[inline]
    pub fn cut_through(&mut self, now: Instant, ring: usize, bytes: u32) -> bool {
        assert!(self.is_clear(now), "a frame overtakes others at its port");
        let state = &mut self.rings[ring];
        if !state.is_open() || u64::from(bytes) > state.bytes_limit {
            return false;
        }
        if state.is_shaped {
            let on_the_wire = bytes + self.overhead;
            if state.bucket.ready_at(on_the_wire) > now {
                return false;
            }
            state.bucket.take(now, on_the_wire);
        }
        state.enqueued.add(bytes);
        state.departed.add(bytes);
        true
    }

    /// The longest frame that may [`Self::cut_through`] a ring now, any number of times, in bytes; 0 if none may. It is 0 for
    /// a ring with a token bucket, as the number of passing frames depends on their lengths.
    ///
    /// # Panics
    /// If there is no such ring.
    #[inline]
    pub fn cut_through_max(&self, ring: usize) -> u32 {
        let state = &self.rings[ring];
        let is_unshaped = state.is_open() && !state.is_shaped;
        if is_unshaped { u32::try_from(state.bytes_limit).unwrap_or(u32::MAX) } else { 0 }
    }

    /// Counts frames that have passed a ring, none longer than [`Self::cut_through_max`].
    ///
    /// # Panics
    /// If there is no such ring.
    #[inline]
    pub fn count_cut_through(&mut self, ring: usize, passed: FrameCount) {
        let state = &mut self.rings[ring];
        assert!(passed.frames == 0 || !state.has_first, "a frame passed others in its ring");
        state.enqueued += passed;
        state.departed += passed;
    }
}

impl<H: Copy + Default> RingState<H> {
    /// Returns true if a frame may pass, regardless of its length. Returns false if the ring's bucket is in debt.
    #[inline]
    pub(super) fn may_cut_through(&self, now: Instant) -> bool {
        self.is_open() && (!self.is_shaped || self.bucket.open_at() <= now)
    }

    /// Returns true if a frame may pass, regardless of tokens and length.
    #[inline]
    fn is_open(&self) -> bool {
        !self.has_first && !self.is_paused && !self.has_aqm
    }
}
