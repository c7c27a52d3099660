//! Pacing without a queueing discipline: a burst leaves when a link of BBR's rate would have sent the burst before it.

use fanin_units::Instant;

/// Bursts of one segment below 1.2 Mb/s (`bbr_min_tso_rate`, in bytes a second).
const BURST_RATE_MIN: u64 = 1_200_000 / 8;
/// Largest burst that pacing sizes, in bytes (`GSO_LEGACY_MAX_SIZE` less headers).
const BURST_BYTES_MAX: u64 = 65_536 - 1 - 320;
/// A burst that ends before the tenth segment is not paced (`tcp_update_skb_after_send`).
const UNPACED_SEGMENTS: u64 = 9;

/// The pacing of one connection (`sk_pacing_rate`, `tcp_wstamp_ns`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacing {
    /// Bytes a second; 0 before the first segment.
    rate: u64,
    /// The earliest time of the next burst, and the lateness of the present burst, in ps.
    next_send_at: u64,
    lateness: u64,
    /// Bytes of the present burst that count only if the burst is paced.
    unpaced_bytes: u32,
}

impl Pacing {
    /// The earliest time of the next burst, in ps (`tcp_pacing_check`).
    #[inline]
    pub(crate) fn next_send_at(&self) -> u64 {
        self.next_send_at
    }

    /// The time until the next burst may leave, in ps.
    pub(super) fn wait(&self, now: Instant) -> u64 {
        self.next_send_at.saturating_sub(now.get())
    }

    /// The rate in bytes a second.
    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    pub(super) fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    /// The least number of segments in a burst (`bbr_min_tso_segs`).
    pub(crate) fn segments_min(&self) -> u32 {
        if self.rate < BURST_RATE_MIN { 1 } else { 2 }
    }

    /// The segments of a burst: about a millisecond at the rate (`bbr_tso_segs_goal`).
    pub(super) fn burst_segments(&self, mss: u16) -> u64 {
        let bytes = (self.rate >> 10).min(BURST_BYTES_MAX);
        (bytes / u64::from(mss)).max(self.segments_min().into()).min(0x7f)
    }

    /// Notes that a segment of `bytes` payload bytes leaves, after `segments` earlier ones (`tcp_update_skb_after_send`).
    /// `is_first` is true for the first of a burst.
    pub(super) fn on_sent(&mut self, now: Instant, is_first: bool, segments: u64, bytes: u32) {
        if is_first {
            self.lateness = now.get().saturating_sub(self.next_send_at);
            self.next_send_at = self.next_send_at.max(now.get());
            self.unpaced_bytes = 0;
        }
        self.unpaced_bytes += bytes;
        if segments < UNPACED_SEGMENTS || self.rate == 0 {
            return;
        }
        let bytes = core::mem::take(&mut self.unpaced_bytes);
        let time = (u128::from(bytes) * 1_000_000_000_000 / u128::from(self.rate)) as u64;
        // A late burst brings the next one forward by its lateness, by at most half of its own time.
        let made_up = (time / 2).min(self.lateness);
        assert!(made_up <= time, "a burst delays the next one by less than nothing");
        self.lateness -= made_up;
        self.next_send_at += time - made_up;
    }
}
