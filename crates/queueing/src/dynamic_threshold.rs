//! The dynamic threshold: the free part of a shared pool limits every queue that is charged to it.
//!
//! A. K. Choudhury and E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM
//! Transactions on Networking 6(2), 1998.

use fanin_units::{Bytes, Ratio};

use crate::layout::Layout;

/// A queue may grow while it is shorter than alpha times the free memory of its pool. The arriving frame is not counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DynamicThreshold {
    /// Alpha in millionths.
    alpha: u64,
}

impl DynamicThreshold {
    pub(crate) const fn new(alpha: Ratio) -> Self {
        Self { alpha: alpha.get() }
    }

    /// Returns true if a queue of `queued` bytes may not grow while `free` bytes of its pool are free.
    #[inline]
    pub(crate) const fn refuses(self, queued: u64, free: u64) -> bool {
        queued as u128 * 1_000_000 >= free as u128 * self.alpha as u128
    }
}

impl Layout {
    /// One pool; a queue may grow while it is shorter than `alpha` times the pool's free memory.
    pub fn dynamic_threshold(ports: usize, pool: Bytes, alpha: Ratio) -> Self {
        Self { alpha: Some(alpha), ..Self::shared(ports, pool) }
    }
}
