//! Changes a ring in use: pauses it, or changes its settings.

use fanin_units::{Bytes, Instant, Rate};

use super::{RING_FRAMES_MAX, RingError, RingSettings, RingWait, Rings};
use crate::aqm::Aqm;
use crate::bucket::{BucketError, TokenBucket};
use crate::frame::FrameCount;
use crate::rings::RingService;

impl<H: Copy + Default> Rings<H> {
    /// Stops a ring from sending. Other rings continue.
    ///
    /// # Panics
    /// If the ring is paused.
    pub fn pause(&mut self, ring: usize) {
        assert!(!self.is_paused(ring), "ring {ring} is paused twice");
        self.rings[ring].is_paused = true;
        self.deactivate(ring);
        assert_eq!(self.rings[ring].wait, RingWait::Idle, "a paused ring waits for a turn");
    }

    /// Lets a paused ring send again.
    ///
    /// # Panics
    /// If the ring is not paused.
    pub fn resume(&mut self, now: Instant, ring: usize) {
        assert!(self.is_paused(ring), "ring {ring} resumes, and was not paused");
        let state = &mut self.rings[ring];
        assert_eq!(state.wait, RingWait::Idle, "a paused ring waits for a turn");
        state.is_paused = false;
        if state.has_first {
            self.awaken(now, ring);
        }
    }

    /// Returns true if a ring is paused.
    pub fn is_paused(&self, ring: usize) -> bool {
        self.rings[ring].is_paused
    }

    /// Changes a ring's capacity. Queued frames stay, even above the new capacity.
    ///
    /// # Errors
    /// If `frames_max` is zero or above [`RING_FRAMES_MAX`]; the ring is then unchanged.
    pub fn set_capacity(&mut self, ring: usize, frames_max: u32, bytes_max: Bytes) -> Result<(), RingError> {
        if frames_max == 0 || frames_max > RING_FRAMES_MAX {
            return Err(RingError::Frames { actual: frames_max, reserved: 0, max: RING_FRAMES_MAX });
        }
        let state = &mut self.rings[ring];
        (state.frames_limit, state.bytes_limit) = (frames_max, bytes_max.get());
        if self.service == RingService::LongestFirst {
            self.ready.reserve_keys(frames_max);
        }
        Ok(())
    }

    /// Changes a ring's token bucket; frames already sent still count.
    ///
    /// # Errors
    /// If the rate or the burst is out of range ([`TokenBucket::new`]); the ring is then unchanged.
    pub fn set_shaping(
        &mut self,
        now: Instant,
        ring: usize,
        shaping: Option<(Rate, Bytes)>,
    ) -> Result<(), BucketError> {
        let state = &mut self.rings[ring];
        match shaping {
            Some((rate, burst)) if state.is_shaped => state.bucket.set(now, rate, burst)?,
            Some((rate, burst)) => state.bucket = TokenBucket::new(rate, burst)?,
            None => {}
        }
        state.is_shaped = shaping.is_some();
        if state.wait != RingWait::Idle {
            self.deactivate(ring);
            self.awaken(now, ring);
        }
        Ok(())
    }

    /// Changes the rate and burst of the port as a whole; frames already sent still count.
    ///
    /// # Errors
    /// If the rate or the burst is out of range ([`TokenBucket::new`]); the port is then unchanged.
    pub fn set_rate(&mut self, now: Instant, shaping: Option<(Rate, Bytes)>) -> Result<(), BucketError> {
        match (shaping, &mut self.shaper) {
            (Some((rate, burst)), Some(shaper)) => shaper.set(now, rate, burst)?,
            (Some((rate, burst)), None) => self.shaper = Some(TokenBucket::new(rate, burst)?),
            (None, shaper) => *shaper = None,
        }
        Ok(())
    }

    /// Changes a ring's priority under [`RingService::StrictPriority`]; the highest goes first.
    pub fn set_priority(&mut self, now: Instant, ring: usize, priority: u8) {
        self.cold[ring].priority = priority;
        if self.rings[ring].wait != RingWait::Idle {
            self.deactivate(ring);
            self.awaken(now, ring);
        }
    }

    /// Gives an empty ring new settings, and counters that start at zero. Indices are never freed: a caller that adds and
    /// removes rings for a long time reuses them by this call. `frames_reserved` has no effect.
    ///
    /// # Errors
    /// If the capacity is zero or above [`RING_FRAMES_MAX`], or the token bucket is out of range; the ring is then unchanged.
    ///
    /// # Panics
    /// If the ring holds a frame or is paused.
    pub fn renew_ring(
        &mut self,
        now: Instant,
        ring: usize,
        settings: &RingSettings,
    ) -> Result<(), RingError> {
        assert!(!self.rings[ring].has_first, "ring {ring} is renewed while it holds frames");
        assert!(!self.is_paused(ring), "ring {ring} is renewed while it is paused");
        assert_eq!(self.rings[ring].wait, RingWait::Idle, "an empty ring waits for a turn");
        let bucket = settings.bucket()?;
        self.set_capacity(ring, settings.frames_max, settings.bytes_max)?;
        self.set_aqm(ring, settings.aqm.clone());
        let state = &mut self.rings[ring];
        (state.bucket, state.is_shaped) = (bucket, settings.shaping.is_some());
        (state.enqueued, state.departed) = (FrameCount::default(), FrameCount::default());
        (state.bytes_max, state.frames_max) = (0, 0);
        let cold = &mut self.cold[ring];
        cold.priority = settings.priority;
        (cold.marked, cold.dropped, cold.emptied_at) = (FrameCount::default(), Default::default(), now);
        Ok(())
    }

    /// Changes a ring's marking; averages restart.
    pub fn set_aqm(&mut self, ring: usize, aqm: Aqm) {
        self.rings[ring].has_aqm = !matches!(aqm, Aqm::None);
        self.cold[ring].aqm = aqm;
    }
}
