//! The memory of plain queues: one worker's accounts, and the pool that all workers share.

use std::sync::Arc;

use fanin_queueing::{AdmissionLimit, Counters, Frame, FrameCount, LayoutError, Memory, Occupancy, Verdict};
use fanin_units::{Bytes, Instant};

use crate::config::Config;
use crate::workers::SharedCounts;

/// The one pool that outputs may share.
const POOL: usize = 0;

/// [`Memory`] of one worker. If the outputs of several workers share a pool, a worker reserves a frame's bytes in the pool before its own
/// accounts decide. These see the part of the pool that other workers do not hold. So the pool is never overdrawn.
#[derive(Debug)]
pub(super) struct Buffers {
    memory: Memory,
    /// The pool's size, where several workers share it.
    common: Option<(Arc<SharedCounts>, u64)>,
}

impl Buffers {
    pub(super) fn new(config: &Config, shared: &Arc<SharedCounts>) -> Result<Self, LayoutError> {
        let layout = config.layout();
        let pool = layout.pool_sizes().get(POOL).copied().filter(|_| config.workers() > 1);
        Ok(Self { memory: Memory::new(&layout)?, common: pool.map(|size| (Arc::clone(shared), size.get())) })
    }

    /// As [`Memory::arrive`].
    #[inline]
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        frame: Frame,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        if self.common.is_none() {
            return self.memory.arrive(now, input, output, frame, draw);
        }
        self.arrive_in_common(now, input, output, frame, draw)
    }

    #[inline(never)]
    fn arrive_in_common(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        frame: Frame,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        let Some((shared, size)) = &self.common else { unreachable!("only where there is a common pool") };
        let charge = self.memory.charge(frame.bytes);
        let others = shared.take_of_pool(charge) - self.memory.pool(POOL).bytes;
        self.memory.set_pool_size(POOL, Bytes::new(size.saturating_sub(others)));
        let verdict = self.memory.arrive(now, input, output, frame, draw);
        if let Verdict::Dropped(_) = verdict {
            shared.give_to_pool(charge);
        }
        verdict
    }

    /// As [`Memory::room`].
    #[inline]
    pub(super) fn room(&mut self, input: usize, output: usize) -> u32 {
        if let Some((shared, size)) = &self.common {
            let others = shared.pool() - self.memory.pool(POOL).bytes;
            self.memory.set_pool_size(POOL, Bytes::new(size.saturating_sub(others)));
        }
        self.memory.room(input, output)
    }

    /// As [`Memory::pass`].
    #[inline]
    pub(super) fn pass(&mut self, at: Instant, output: usize, passed: FrameCount) {
        self.memory.pass(at, output, passed);
    }

    /// As [`Memory::withdraw`].
    pub(super) fn withdraw(&mut self, input: usize, output: usize, bytes: u32, limit: AdmissionLimit) {
        self.memory.withdraw(input, output, bytes, limit);
        self.give(bytes);
    }

    /// As [`Memory::depart`].
    #[inline]
    pub(super) fn depart(&mut self, at: Instant, input: usize, output: usize, bytes: u32) {
        self.memory.depart(at, input, output, bytes);
        self.give(bytes);
    }

    #[inline]
    fn give(&self, bytes: u32) {
        if let Some((shared, _)) = &self.common {
            shared.give_to_pool(self.memory.charge(bytes));
        }
    }

    /// As [`Memory::output`].
    #[inline]
    pub(super) fn output(&self, output: usize) -> &Occupancy {
        self.memory.output(output)
    }

    /// As [`Memory::counters`].
    pub(super) fn counters(&self, output: usize) -> &Counters {
        self.memory.counters(output)
    }

    /// As [`Memory::reset_marks`].
    pub(super) fn reset_marks(&mut self) {
        self.memory.reset_marks();
    }
}
