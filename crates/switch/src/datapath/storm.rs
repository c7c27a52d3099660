//! Storm control: limits on the flooded frames of one port.

use fanin_queueing::TokenBucket;
use fanin_units::{Instant, Rate};

use crate::address::Mac;
use crate::config::StormSpec;

/// Token buckets of one port; an absent bucket means no limit.
#[derive(Debug, Default)]
pub(super) struct StormControl {
    broadcast: Option<TokenBucket>,
    multicast: Option<TokenBucket>,
    unknown: Option<TokenBucket>,
}

impl StormControl {
    /// Makes full buckets. An invalid rate means no limit.
    pub(super) fn new(spec: &StormSpec) -> Self {
        // Without a configured burst, a full bucket still passes one frame. Further frames are dropped until the tokens of that
        // frame have accrued.
        let burst = spec.burst.unwrap_or_default();
        let bucket = |rate: Option<Rate>| rate.and_then(|rate| TokenBucket::new(rate, burst).ok());
        Self {
            broadcast: bucket(spec.broadcast),
            multicast: bucket(spec.multicast),
            unknown: bucket(spec.unknown),
        }
    }

    /// Returns true if a frame may be flooded; if so, takes its tokens.
    pub(super) fn admit(&mut self, now: Instant, destination: u64, bytes: u32) -> bool {
        let bucket = match Mac::from_u64(destination) {
            Mac::BROADCAST => &mut self.broadcast,
            group if group.is_group() => &mut self.multicast,
            _ => &mut self.unknown,
        };
        let Some(bucket) = bucket else { return true };
        let passes = bucket.ready_at(bytes) <= now;
        if passes {
            bucket.take(now, bytes);
        }
        passes
    }
}
