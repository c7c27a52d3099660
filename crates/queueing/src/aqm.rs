//! Active queue management: marking and dropping before a queue is full.

mod decision;
mod depth;
mod red;
mod threshold;

use fanin_units::Instant;

pub use decision::{AqmDecision, NotCapable};
pub use depth::{Depth, DepthError};
pub use red::{Red, RedError, RedSettings};
pub use threshold::Threshold;

use crate::frame::{Frame, Occupancy};

/// Active queue management at one output.
#[derive(Debug, Clone, Default)]
pub enum Aqm {
    /// None: only the limits of the memory count.
    #[default]
    None,
    /// Marking by the instantaneous occupancy: see [`Threshold`].
    Threshold(Threshold),
    /// Random early detection: see [`Red`].
    Red(Red),
}

impl Aqm {
    /// Decides about one arriving frame. `queue` does not include it; `emptied_at` is the time at which the queue last
    /// became empty. `draw` returns 32 uniform random bits; only RED calls it.
    #[inline]
    pub fn decide(
        &mut self,
        now: Instant,
        queue: &Occupancy,
        emptied_at: Instant,
        frame: Frame,
        draw: impl FnOnce() -> u32,
    ) -> AqmDecision {
        match self {
            Self::None => AqmDecision::Pass,
            Self::Threshold(threshold) => threshold.decide(queue, frame.ecn),
            Self::Red(red) => red.decide(now, queue, emptied_at, frame, draw),
        }
    }
}
