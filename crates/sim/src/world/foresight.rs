//! What will be needed soon is fetched before: segments and the ends of connections lie idle for so long that they have
//! left the near caches.

use super::{EndIndex, Workload, World};
use crate::network::PortIndex;
use crate::prefetch::prefetch;

/// Bytes on the wire that most acknowledgements stay below, and most frames with payload exceed.
const FRAME_BYTES_ACK_MAX: u32 = 128;

impl<W: Workload> World<W> {
    /// Fetches what the next delivery over a link will need.
    #[inline]
    pub(super) fn foresee(&self, port: PortIndex) {
        if let Some(next) = self.fabric.first(port) {
            let end = &self.ends[next.end as usize];
            prefetch(&self.fabric.segments[next.segment()]);
            prefetch(&end.timer_at);
            match &self.sird {
                None => end.endpoint.prefetch(next.wire_bytes > FRAME_BYTES_ACK_MAX),
                Some(sird) => sird.prefetch(next.end),
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
            end.endpoint.prefetch(false);
        }
        if let Some(&(index, ..)) = waiting.get(1) {
            let end = &self.ends[index as usize];
            prefetch(&self.ends[end.peer as usize].inbox_head);
        }
    }
}
