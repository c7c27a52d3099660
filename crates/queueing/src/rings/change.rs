//! Changes a ring while it is used: pauses it, and gives it other settings.

use fanin_units::{Bytes, Instant, Rate};

use super::{HAS_AQM, PAUSED, RING_FRAMES_MAX, RingError, RingSettings, RingWait, Rings};
use crate::aqm::Aqm;
use crate::bucket::{BucketError, TokenBucket};
use crate::frame::FrameCount;
use crate::rings::Discipline;

impl<H: Copy + Default> Rings<H> {
    /// Keeps a ring from sending. Others are not touched.
    pub fn pause(&mut self, ring: usize) {
        if !self.is_paused(ring) {
            self.rings[ring].bars |= PAUSED;
            self.deactivate(ring);
            assert_eq!(self.rings[ring].state, RingWait::Idle, "a paused ring waits for no turn");
        }
    }

    /// Lets a ring send again.
    pub fn resume(&mut self, now: Instant, ring: usize) {
        if self.is_paused(ring) {
            let state = &mut self.rings[ring];
            assert_eq!(state.state, RingWait::Idle, "a paused ring waits for no turn");
            state.bars &= !PAUSED;
            if state.holds {
                self.awaken(now, ring);
            }
        }
    }

    /// Returns true if a ring is paused.
    pub fn is_paused(&self, ring: usize) -> bool {
        self.rings[ring].bars & PAUSED != 0
    }

    /// Changes a ring's capacity. Frames that are queued stay, even above the new one.
    pub fn set_capacity(&mut self, ring: usize, frames_max: u32, bytes_max: Bytes) -> Result<(), RingError> {
        if frames_max == 0 || frames_max > RING_FRAMES_MAX {
            return Err(RingError::Frames { got: frames_max, reserved: 0, max: RING_FRAMES_MAX });
        }
        let (state, rare) = (&mut self.rings[ring], &mut self.rare[ring]);
        (rare.frames_limit, state.bytes_limit) = (frames_max, bytes_max.get());
        state.set_easy(rare);
        if self.discipline == Discipline::LongestFirst {
            self.ready.reserve_keys(frames_max);
        }
        Ok(())
    }

    /// Changes a ring's token bucket; what it has sent already still counts.
    pub fn set_shaping(
        &mut self,
        now: Instant,
        ring: usize,
        shaping: Option<(Rate, Bytes)>,
    ) -> Result<(), BucketError> {
        let state = &mut self.rings[ring];
        match shaping {
            Some((rate, burst)) if state.shaped => state.bucket.set(now, rate, burst)?,
            Some((rate, burst)) => state.bucket = TokenBucket::new(rate, burst)?,
            None => {}
        }
        state.shaped = shaping.is_some();
        if state.state != RingWait::Idle {
            self.deactivate(ring);
            self.awaken(now, ring);
        }
        Ok(())
    }

    /// Changes the rate and burst of the port as a whole; what it has sent already still counts.
    pub fn set_rate(&mut self, now: Instant, shaping: Option<(Rate, Bytes)>) -> Result<(), BucketError> {
        match (shaping, &mut self.shaper) {
            (Some((rate, burst)), Some(shaper)) => shaper.set(now, rate, burst)?,
            (Some((rate, burst)), None) => self.shaper = Some(TokenBucket::new(rate, burst)?),
            (None, shaper) => *shaper = None,
        }
        Ok(())
    }

    /// Changes a ring's place under [`Discipline::StrictPriority`].
    pub fn set_priority(&mut self, now: Instant, ring: usize, priority: u8) {
        self.rare[ring].priority = priority;
        if self.rings[ring].state != RingWait::Idle {
            self.deactivate(ring);
            self.awaken(now, ring);
        }
    }

    /// Makes a new ring of an empty one, with counters that start at zero. Indices are never freed, so a caller that adds
    /// and removes rings for a long time uses them again.
    ///
    /// # Panics
    /// If the ring holds a frame.
    pub fn renew_ring(
        &mut self,
        now: Instant,
        ring: usize,
        settings: &RingSettings,
    ) -> Result<(), RingError> {
        assert!(!self.rings[ring].holds, "ring {ring} is renewed while it holds frames");
        let bucket = match settings.shaping {
            Some((rate, burst)) => TokenBucket::new(rate, burst)?,
            None => TokenBucket::new(TokenBucket::RATE_MAX, Bytes::ZERO)?,
        };
        self.set_capacity(ring, settings.frames_max, settings.bytes_max)?;
        self.set_aqm(ring, settings.aqm.clone());
        let state = &mut self.rings[ring];
        (state.bucket, state.shaped) = (bucket, settings.shaping.is_some());
        (state.enqueued, state.departed) = (FrameCount::default(), FrameCount::default());
        state.bars &= !PAUSED;
        let rare = &mut self.rare[ring];
        (rare.bytes_max, rare.frames_max) = (0, 0);
        state.set_easy(rare);
        rare.priority = settings.priority;
        (rare.marked, rare.dropped, rare.emptied_at) = (FrameCount::default(), Default::default(), now);
        Ok(())
    }

    /// Changes a ring's marking; averages start afresh.
    pub fn set_aqm(&mut self, ring: usize, aqm: Aqm) {
        let state = &mut self.rings[ring];
        state.bars = state.bars & PAUSED | if matches!(aqm, Aqm::None) { 0 } else { HAS_AQM };
        self.rare[ring].aqm = aqm;
    }
}
