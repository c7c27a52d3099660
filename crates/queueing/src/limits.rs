//! The most that a layout admits, for rooms that bound queues without playing them.

use fanin_units::Bytes;

use crate::layout::{Layout, Sharing};

impl Layout {
    /// The most bytes that an output may hold in one pool or module; `None` without a limit. As many outputs as `queues` are as
    /// full, itself included, and all others are empty.
    pub fn output_limit(&self, output: usize, queues: u64) -> Option<Bytes> {
        let shared = match &self.sharing {
            Sharing::Nothing => Bytes::MAX,
            Sharing::Pools(settings) => least(&settings.sizes),
            Sharing::DynamicThreshold(settings) => settings.share(queues),
            Sharing::Voqs(settings) => settings.module.min(settings.queue_limit),
        };
        let limit = shared.min(self.output_limits[output]);
        (limit != Bytes::MAX).then_some(limit)
    }

    /// The most bytes that an output may hold when frames of `frame` bytes arrive and all others are empty. `None` without a
    /// limit of its own: virtual output queues have those of input modules.
    pub fn occupancy_max(&self, output: usize, frame: Bytes) -> Option<Bytes> {
        match &self.sharing {
            // A frame is refused from alpha times the free memory on (Choudhury and Hahne): the last one passes that level.
            Sharing::DynamicThreshold(settings) => {
                let passed = settings.share(1).saturating_add(frame);
                Some(passed.min(self.output_limits[output]).min(settings.pool))
            }
            Sharing::Voqs(_) => None,
            Sharing::Nothing | Sharing::Pools(_) => self.output_limit(output, 1),
        }
    }

    /// The bytes that an output may hold for certain while at most `waiting` bytes are in the switch. If those are no more,
    /// no frame is refused. [`Bytes::MAX`] is no limit.
    pub fn room(&self, output: usize, waiting: Bytes) -> Bytes {
        let shared = match &self.sharing {
            Sharing::Nothing => Bytes::MAX,
            Sharing::Pools(settings) => least(&settings.sizes).min(least(&settings.input_limits)),
            Sharing::DynamicThreshold(settings) => {
                settings.threshold(settings.pool.saturating_sub(waiting)).min(settings.pool)
            }
            Sharing::Voqs(settings) => settings.module.min(settings.queue_limit),
        };
        shared.min(self.output_limits[output])
    }

    /// The bytes of all buffers, pools or modules together; `None` without a limit.
    pub fn size(&self) -> Option<Bytes> {
        let parts = if self.couples_outputs() { self.pool_sizes() } else { self.output_limits.clone() };
        let is_limited = parts.iter().all(|&part| part != Bytes::MAX);
        is_limited.then(|| parts.into_iter().fold(Bytes::ZERO, Bytes::saturating_add))
    }
}

fn least(sizes: &[Bytes]) -> Bytes {
    sizes.iter().copied().min().unwrap_or(Bytes::MAX)
}
