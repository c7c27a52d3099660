//! The most bytes that a layout admits, for crates bounding queues without a simulation.

use fanin_units::Bytes;

use crate::layout::Layout;

impl Layout {
    /// The most bytes that an output may hold in one pool or module; `None` without a limit. `queues` outputs, itself
    /// included, are equally full, and all others are empty.
    pub fn output_limit(&self, output: usize, queues: u64) -> Option<Bytes> {
        let limit = self.buffering().output_limit(queues).min(self.output_limits()[output]);
        (limit != Bytes::MAX).then_some(limit)
    }

    /// The most bytes that an output may hold when frames of `frame` bytes arrive and all others are empty. `None` for
    /// virtual output queues: only input modules limit them.
    pub fn occupancy_max(&self, output: usize, frame: Bytes) -> Option<Bytes> {
        let limit = self.buffering().occupancy_max(frame)?.min(self.output_limits()[output]);
        (limit != Bytes::MAX).then_some(limit)
    }

    /// The bytes that an output may hold without a refusal while the switch holds at most `waiting` bytes. If `waiting`
    /// does not exceed the result, no frame is refused. [`Bytes::MAX`] is no limit.
    pub fn room(&self, output: usize, waiting: Bytes) -> Bytes {
        self.buffering().room(waiting).min(self.output_limits()[output])
    }

    /// Returns true if the free memory of a pool limits each output.
    pub const fn has_threshold(&self) -> bool {
        self.buffering().has_threshold()
    }

    /// The number of modules that `inputs` inputs fill, each with a memory of its own; one if inputs do not divide the memory.
    pub fn modules_of(&self, inputs: u64) -> u64 {
        self.buffering().modules_of(inputs)
    }

    /// The sum of the pools that the frames of one input share at all outputs. `None` if outputs share no pool, or have limits of
    /// their own in it: a threshold, or queues of modules.
    pub fn common_pools(&self) -> Option<Bytes> {
        self.buffering().common_pools()
    }

    /// The sum of all buffers, pools or modules; `None` without a limit.
    pub fn size(&self) -> Option<Bytes> {
        let parts = if self.couples_outputs() { self.pool_sizes() } else { self.output_limits().to_vec() };
        let is_limited = parts.iter().all(|&part| part != Bytes::MAX);
        is_limited.then(|| parts.into_iter().fold(Bytes::ZERO, Bytes::saturating_add))
    }
}
