//! What will be needed soon is fetched before: segments and the ends of connections lie idle for so long that they have
//! left the near caches.

use super::{Workload, World};
use crate::index::{EndIndex, peer};
use crate::prefetch::prefetch;
use fanin_network::PortIndex;

/// Ends of connections that take fewer bytes stay in the second cache.
const NEAR_BYTES: usize = 1 << 20;

impl<W: Workload> World<W> {
    /// Whether the ends of connections are so many that they leave the near caches.
    pub(super) fn needs_foresight(&self) -> bool {
        size_of_val(&self.ends[..]) > NEAR_BYTES
    }

    /// Fetches what arrivals need that were far and have come near: a link's last one is so long ago that the port, what is
    /// in it and where that goes have left the near caches.
    #[inline(never)]
    pub(super) fn foresee_arrivals(&mut self, ports: Vec<PortIndex>) {
        for &port in &ports {
            self.foresee(port);
        }
        self.schedule.take_back(ports);
    }

    /// Fetches what the next delivery over a link will need, if it is near.
    #[inline(always)]
    pub(super) fn foresee(&self, port: PortIndex) {
        if self.needs_foresight
            && let Some(next) = self.fabric.next_delivery(port)
            && self.schedule.is_near(next.arrival)
        {
            let next = next.parcel;
            prefetch(&self.fabric.segments[next.segment()]);
            let end = &self.ends[next.end() as usize];
            prefetch(&end.timer_at);
            if let Some(sird) = &self.sird {
                sird.prefetch(next.end());
            }
            if let Some(pacer) = &self.pacer {
                pacer.prefetch(next.end());
            }
        }
    }

    /// Fetches what the messages after the present one will need: a collector asks many readouts in a row, over
    /// connections that have lain idle.
    #[inline]
    pub(super) fn foresee_messages(&self, waiting: &[(EndIndex, u64, W::Message)]) {
        if let Some(&(index, ..)) = waiting.get(3) {
            let end = &self.ends[index as usize];
            prefetch(&end.timer_at);
            if let Some(pacer) = &self.pacer {
                pacer.prefetch(index);
            }
        }
        if let Some(&(index, ..)) = waiting.get(1) {
            prefetch(&self.ends[peer(index) as usize].inbox_head);
        }
    }
}
