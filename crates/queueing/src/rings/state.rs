//! The frames of one ring, and when its first one may go.

use fanin_units::Instant;

use super::{Rare, RingSlot, RingState, RingWait, Rings};
use crate::frame::Frame;

impl<H: Copy + Default> RingState<H> {
    /// How many frames it holds.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.others.len() + u32::from(self.holds)
    }

    #[inline]
    pub(super) fn push(&mut self, slot: RingSlot<H>) {
        debug_assert!(self.holds || self.others.is_empty(), "frames behind no first one");
        if self.holds {
            self.others.push(slot);
        } else {
            (self.first, self.holds) = (slot, true);
        }
    }

    /// Removes the first frame and counts it as departed. Returns it, and the next one, which becomes the first.
    #[inline]
    pub(super) fn pop(&mut self) -> (RingSlot<H>, Option<Frame>) {
        assert!(self.holds, "a frame departs from a ring that holds none");
        let departing = self.first;
        self.bytes -= u64::from(departing.frame.bytes);
        self.departed.add(departing.frame.bytes);
        let next = self.others.pop();
        match next {
            Some(slot) => self.first = slot,
            None => self.holds = false,
        }
        debug_assert!(self.holds || self.bytes == 0, "bytes without a frame");
        (departing, next.map(|slot| slot.frame))
    }

    /// All frames, in order.
    pub(super) fn slots(&self) -> impl Iterator<Item = RingSlot<H>> {
        let first = self.holds.then_some(self.first);
        first.into_iter().chain(self.others.iter())
    }

    /// Decides an arrival that exceeds a high-water mark or a limit. Returns true if it may enter, and then sets the marks.
    #[inline(never)]
    pub(super) fn rises_to(&mut self, bytes: u64, rare: &mut Rare) -> bool {
        let frames = self.len() + 1;
        let fits = frames <= rare.frames_limit && bytes <= self.bytes_limit;
        if fits {
            rare.frames_max = rare.frames_max.max(frames);
            rare.bytes_max = rare.bytes_max.max(bytes);
            self.set_easy(rare);
        }
        fits
    }

    pub(super) fn set_easy(&mut self, rare: &Rare) {
        self.frames_easy = rare.frames_max.min(rare.frames_limit);
        self.bytes_easy = rare.bytes_max.min(self.bytes_limit);
    }

    /// Notes where the ring waits, and returns whether it lacks tokens now.
    #[inline]
    pub(super) fn wait_until(&mut self, now: Instant, opens_at: Instant) -> bool {
        let waits = opens_at > now;
        self.state = if waits { RingWait::Parked } else { RingWait::Ready };
        waits
    }

    /// The time at which there are tokens for the ring's first frame, of the given bytes. It has been the first since
    /// `since`.
    #[inline]
    pub(super) fn opens_at(&mut self, since: Instant, bytes: u32) -> Instant {
        let at = if self.shaped { self.bucket.ready_at(bytes) } else { Instant::START };
        self.due = since.max(at);
        at
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
