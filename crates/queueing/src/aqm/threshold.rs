//! Marking above a threshold of the instantaneous queue.

use super::decision::{AqmDecision, NotCapable, mark};
use super::depth::Depth;
use crate::frame::{EcnCodepoint, Occupancy};

/// Marks a frame if more than `depth` is queued before it: K of DCTCP (Alizadeh et al. 2010, §3.1; RFC 8257 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threshold {
    /// The threshold, DCTCP's K.
    pub depth: Depth,
    /// The treatment of frames that are not ECN-capable.
    pub not_capable: NotCapable,
}

impl Threshold {
    /// Decides about one arriving frame; `queue` does not include it.
    #[inline]
    pub const fn decide(&self, queue: &Occupancy, ecn: EcnCodepoint) -> AqmDecision {
        if self.depth.measure(queue) > self.depth.value() {
            mark(ecn, self.not_capable)
        } else {
            AqmDecision::Pass
        }
    }
}

#[cfg(test)]
mod tests {
    use fanin_units::{Bytes, Packets};

    use super::*;

    #[test]
    fn marks_a_frame_that_finds_more_than_k() {
        for (depth, over) in [(Depth::Packets(Packets::new(20)), 21), (Depth::Bytes(Bytes::new(30_000)), 21)]
        {
            let threshold = Threshold { depth, not_capable: NotCapable::Drop };
            let ask = |frames, ecn| {
                threshold.decide(&Occupancy { bytes: frames * 1500, frames, ..Occupancy::default() }, ecn)
            };
            assert_eq!(ask(over - 1, EcnCodepoint::Capable), AqmDecision::Pass);
            assert_eq!(ask(over, EcnCodepoint::Capable), AqmDecision::Mark);
            assert_eq!(ask(over, EcnCodepoint::NotCapable), AqmDecision::Drop);
        }
    }
}
