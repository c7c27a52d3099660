//! The dynamic threshold: the free memory of a shared pool limits each queue.
//!
//! A. K. Choudhury and E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM
//! Transactions on Networking 6(2), 1998.
//!
//! The file admits frames and counts their bytes. In the simulator `drive/booked.rs` books each departure, and the frame is
//! at once on its link (`sim/src/fabric/link.rs`). In the live switch it waits in ring 0 of its port (`rings.rs`).

use alloc::vec;

use fanin_units::{Bytes, Ratio};

use crate::account::{Account, assert_holds};
use crate::buffering::BufferingSettings;
use crate::frame::AdmissionLimit;
use crate::layout::Layout;

/// An alpha of 1, in millionths.
const ONE: u128 = 1_000_000;

/// Settings of a pool with a dynamic threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DynamicThresholdSettings {
    /// The size of the pool.
    pub pool: Bytes,
    /// The factor alpha: a queue may grow while it is shorter than alpha times the pool's free memory.
    pub alpha: Ratio,
}

impl DynamicThresholdSettings {
    /// The length in bytes at which a queue stops growing while `free` bytes of the pool are free, rounded down.
    pub fn threshold(self, free: Bytes) -> Bytes {
        let threshold = u128::from(free.get()) * u128::from(self.alpha.get()) / ONE;
        u64::try_from(threshold).map_or(Bytes::MAX, Bytes::new)
    }

    /// The length at which `queues` queues meet the threshold together, with all others empty: α B / (1 + n α), rounded
    /// down.
    pub fn share(self, queues: u64) -> Bytes {
        let alpha = u128::from(self.alpha.get());
        let share = u128::from(self.pool.get()) * alpha / (ONE + alpha * u128::from(queues));
        Bytes::new(share as u64)
    }

    /// The most bytes of one queue when frames of `frame` bytes arrive and all others are empty. The
    /// threshold is compared with the queue without the arriving frame, so that the last admitted frame may exceed it.
    pub(crate) fn occupancy_max(self, frame: Bytes) -> Bytes {
        self.share(1).saturating_add(frame).min(self.pool)
    }

    /// The bytes that one queue may hold without a refusal while the pool holds at most `waiting` bytes.
    pub(crate) fn room(self, waiting: Bytes) -> Bytes {
        self.threshold(self.pool.saturating_sub(waiting)).min(self.pool)
    }
}

/// The accounts of a pool with a dynamic threshold. The queue, without the arriving frame, must be below the threshold,
/// and the frame must fit the pool.
#[derive(Debug, Clone)]
pub(crate) struct DynamicThresholdAccounts {
    pool: Account,
    /// Alpha in millionths.
    alpha: u64,
}

impl DynamicThresholdAccounts {
    pub(crate) const fn new(settings: DynamicThresholdSettings) -> Self {
        Self { pool: Account::new(settings.pool), alpha: settings.alpha.get() }
    }

    /// Returns true if a queue of `queued` bytes may not grow. Compares with [`DynamicThresholdSettings::threshold`]
    /// before rounding.
    #[inline]
    const fn is_reached(&self, queued: u64) -> bool {
        queued as u128 * ONE >= self.pool.free() as u128 * self.alpha as u128
    }

    /// The limit that refuses a frame with a charge of `charge` bytes for a queue of `queued` bytes, if any.
    #[inline]
    pub(crate) fn refusal(&self, queued: u64, charge: u64) -> Option<AdmissionLimit> {
        if self.is_reached(queued) {
            return Some(AdmissionLimit::Dynamic);
        }
        self.pool.refuses(charge).then_some(AdmissionLimit::Pool)
    }

    /// Free memory for a frame, in bytes, by the rules of [`Self::refusal`].
    #[inline]
    pub(crate) const fn free(&self, queued: u64) -> u64 {
        if self.is_reached(queued) { 0 } else { self.pool.free() }
    }

    /// Returns true if earlier departures could change the verdict on a frame, or a high-water mark.
    #[inline]
    pub(crate) fn depends_on_departures(&self, queued: u64, charge: u64) -> bool {
        self.pool.depends_on_departures(charge) || self.is_reached(queued)
    }

    /// Charges a frame and returns true. Returns false without charging it if departures that are not settled yet could
    /// change the verdict or the high-water mark.
    #[inline]
    pub(crate) fn admit_below_high_water(&mut self, queued: u64, charge: u64) -> bool {
        let is_below = !self.depends_on_departures(queued, charge);
        if is_below {
            self.admit(charge);
        }
        is_below
    }

    /// Charges a frame that no limit refuses.
    #[inline]
    pub(crate) fn admit(&mut self, charge: u64) {
        self.pool.admit(charge);
    }

    /// Frees the memory of a frame.
    #[inline]
    pub(crate) fn depart(&mut self, charge: u64) {
        self.pool.depart(charge);
    }

    pub(crate) const fn pool(&self) -> &Account {
        &self.pool
    }

    pub(crate) const fn set_pool_size(&mut self, size: Bytes) {
        self.pool.set_limit(size);
    }

    pub(crate) fn reset_high_water_marks(&mut self) {
        self.pool.reset_high_water_marks();
    }

    /// Asserts that the pool holds the bytes of all frames.
    ///
    /// # Panics
    /// If the pool holds more or fewer bytes.
    pub(crate) fn assert_holds(&self, frames: &[(usize, usize, u64)]) {
        assert_holds([&self.pool], "pool", frames, |_, _| 0);
    }
}

impl Layout {
    /// One pool; a queue may grow while it is shorter than `alpha` times the pool's free memory.
    pub fn dynamic_threshold(ports: usize, pool: Bytes, alpha: Ratio) -> Self {
        let settings = DynamicThresholdSettings { pool, alpha };
        Self::new(vec![Bytes::MAX; ports], BufferingSettings::DynamicThreshold(settings))
    }
}
