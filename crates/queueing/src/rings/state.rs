//! The frames of one ring, and the earliest departure of its first one.

use fanin_units::Instant;

use super::{RingSlot, RingState, RingWait, Rings};
use crate::frame::Frame;

impl<H: Copy + Default> RingState<H> {
    /// Number of frames in the ring.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.others.len() + u32::from(self.has_first)
    }

    #[inline]
    pub(super) fn push(&mut self, slot: RingSlot<H>) {
        assert!(self.has_first || self.others.is_empty(), "frames behind no first one");
        if self.has_first {
            self.others.push(slot);
        } else {
            (self.first, self.has_first) = (slot, true);
        }
    }

    /// Removes the first frame and counts it as departed. Returns it, and the new first frame.
    #[inline]
    pub(super) fn pop(&mut self) -> (RingSlot<H>, Option<Frame>) {
        assert!(self.has_first, "a frame departs from a ring that holds none");
        let departing = self.first;
        self.bytes -= u64::from(departing.frame.bytes);
        self.departed.add(departing.frame.bytes);
        let next = self.others.pop();
        match next {
            Some(slot) => self.first = slot,
            None => self.has_first = false,
        }
        assert!(self.has_first || self.bytes == 0, "bytes without a frame");
        (departing, next.map(|slot| slot.frame))
    }

    /// All frames, in order.
    pub(super) fn slots(&self) -> impl Iterator<Item = RingSlot<H>> {
        let first = self.has_first.then_some(self.first);
        first.into_iter().chain(self.others.iter())
    }

    /// Chooses the list of a ring whose first frame, of `bytes` bytes on the wire, became the first at `since`. Returns the time
    /// at which the ring has tokens for it; `None` if it has them at `now`.
    #[inline]
    pub(super) fn choose_list(&mut self, now: Instant, since: Instant, bytes: u32) -> Option<Instant> {
        assert!(self.has_first && !self.is_paused, "a ring without a frame to send joins a list");
        let tokens_at = self.update_due(since, bytes);
        let is_parked = tokens_at > now;
        self.wait = if is_parked { RingWait::Parked } else { RingWait::Ready };
        is_parked.then_some(tokens_at)
    }

    /// Sets the due time of the first frame. Returns the time at which the ring's bucket has tokens for it.
    #[inline]
    fn update_due(&mut self, since: Instant, bytes: u32) -> Instant {
        let tokens_at = if self.is_shaped { self.bucket.ready_at(bytes) } else { Instant::START };
        self.due = since.max(tokens_at);
        tokens_at
    }
}

impl<H: Copy + Default> Rings<H> {
    /// The frames in a ring with their handles, in order.
    pub fn queued(&self, ring: usize) -> impl Iterator<Item = (Frame, H)> {
        self.rings[ring].slots().map(|slot| (slot.frame, slot.handle))
    }

    /// The handles of the frames in a ring, in order.
    pub fn waiting(&self, ring: usize) -> impl Iterator<Item = H> {
        self.queued(ring).map(|(_, handle)| handle)
    }
}
