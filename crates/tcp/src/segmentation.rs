//! Segmentation offload (TSO): the size of bursts, and bursts that wait to grow.

use fanin_units::{Duration, Instant};

use crate::config::{Config, Segmentation, WindowUnit};
use crate::congestion::Pacing;
use crate::endpoint::Endpoint;
use crate::segment::Flags;

/// Longest time after a transmission for which a burst waits for ACKs, in picoseconds (`tcp_tso_should_defer`).
const DEFER_SPAN: u64 = Duration::from_millis(1).get();

/// Longest time to the next ACK for which a burst waits, in picoseconds (`tcp_tso_should_defer`).
const ACK_SPAN: u64 = Duration::from_millis(1).get();

/// The segmentation-offload burst that is being sent.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct OffloadBurst {
    /// Sent segments of the burst, and its size.
    segments: u8,
    segments_max: u8,
    /// True if the rest of the window waits for the next ACK, to make a larger burst (`tcp_tso_should_defer`).
    is_deferred: bool,
}

impl OffloadBurst {
    /// Returns true if the next segment begins a burst.
    #[inline]
    pub(crate) fn is_new(self) -> bool {
        self.segments == 0
    }

    /// Returns true if new data waits for the next ACK.
    #[inline]
    pub(crate) fn is_deferred(self) -> bool {
        self.is_deferred
    }

    /// Makes new data wait for the next ACK.
    pub(crate) fn defer(&mut self) {
        self.is_deferred = true;
    }

    /// Ends the wait, after an ACK, new data or a timer.
    #[inline]
    pub(crate) fn resume(&mut self) {
        self.is_deferred = false;
    }

    /// Counts a sent segment; `has_more` is true if another could follow now. Returns true if the next segment belongs to the
    /// same burst.
    fn count(&mut self, has_more: bool) -> bool {
        self.segments += 1;
        let continues = has_more && self.segments < self.segments_max;
        if !continues {
            self.segments = 0;
        }
        continues
    }
}

impl Endpoint {
    /// Returns true if a small burst waits for the next ACK (`tcp_tso_should_defer`). A burst does not wait
    /// if it is one segment, 1/n of the window ([`Segmentation::window_divisor`]) or the largest size. Nor does it wait
    /// if the next ACK is more than half a round trip away. Where bursts are sized to the rate, 1 ms suffices (since 6.18). The
    /// congestion window limits the sender only if it is what the burst waits for.
    pub(crate) fn should_defer(
        &mut self,
        config: &Config,
        now: Instant,
        offload: Segmentation,
        pipe: u32,
    ) -> bool {
        assert!(pipe <= self.window.cwnd, "a burst waits without room for it");
        let mss = u64::from(self.send.mss());
        let unit = match config.unit {
            WindowUnit::Segments => mss,
            WindowUnit::Bytes => 1,
        };
        // The window of the congestion control and the peer's, and what is left of both, in bytes.
        let window = (u64::from(self.window.cwnd) * unit).min(self.send.window_end() - self.send.una());
        let room_of_cwnd = u64::from(self.window.cwnd - pipe) * unit;
        let room = room_of_cwnd.min(self.send.room());
        if self.send.unsent() <= mss || room >= window / u64::from(offload.window_divisor) {
            return false;
        }
        // A burst waits only right after a transmission, or right after the paced time of one (`tcp_wstamp_ns`): later, no ACK
        // would release it.
        let paced_until = self.congestion.pacing().map_or(0, Pacing::next_send_at);
        if now.get() > self.last_sent_at.max(paced_until) + DEFER_SPAN {
            return false;
        }
        let age = now.get() - self.flight.runs.front().map_or(now.get(), |run| run.sent_at);
        let srtt = self.rtt.smoothed(config).get();
        let patience = if offload.autosize { (srtt / 2).min(ACK_SPAN) } else { srtt / 2 };
        let near = age + patience >= srtt;
        let waits = near && room < u64::from(self.burst_segments_max(config)) * mss;
        if waits && room_of_cwnd < self.send.room() && room_of_cwnd <= self.send.unsent() {
            self.usage.note_limit();
        }
        waits
    }

    /// Segments of a burst (`tcp_tso_autosize`, `tcp_update_pacing_rate`): a millisecond of the path's rate, more for a near
    /// peer, at least [`Config::burst_segments_min`]. One without segmentation offload.
    pub(crate) fn burst_segments_max(&self, config: &Config) -> u8 {
        let Some(offload) = config.segmentation else { return 1 };
        let mss = u64::from(self.send.mss());
        let most = (u64::from(offload.offload_burst) / mss).clamp(1, 255);
        let srtt = self.rtt.smoothed(config).get();
        if !offload.autosize || srtt == 0 {
            return most as u8;
        }
        let segments = u64::from(self.window.cwnd.max(self.flight.size) / config.segment_units());
        let percent = if self.window.cwnd < self.window.ssthresh / 2 { 200 } else { 120 };
        let (paced, least) = match self.congestion.pacing() {
            Some(pacing) => (pacing.rate() >> 10, pacing.segments_min()),
            None => {
                let window = u128::from(segments * mss * percent / 100);
                ((window * 1_000_000_000 / u128::from(srtt) * 1000 / 1024) as u64, config.burst_segments_min)
            }
        };
        let nearness = (self.rtt.min_ps(config).unwrap_or(0) / 1_000_000) >> 9;
        let near = if nearness < 32 { u64::from(offload.offload_burst) >> nearness } else { 0 };
        ((paced + near) / mss).max(least.into()).min(most) as u8
    }

    /// Sets [`Flags::BURST_CONTINUES`] if the next segment belongs to the burst of the segment just sent.
    pub(crate) fn mark_burst(&mut self, config: &Config, flags: &mut Flags) {
        let Some(segmentation) = config.segmentation else { return };
        if !self.send.has_unsent() {
            self.burst.segments = 0;
            return;
        }
        let waiting = self.send.next_payload();
        if self.burst.is_new() {
            self.burst.segments_max = self.burst_segments_max(config);
            if segmentation.autosize {
                // tcp_cwnd_test: two bursts at least fill a window (since 3.18).
                let half = (self.window.cwnd / config.segment_units() / 2).max(1);
                self.burst.segments_max = self.burst.segments_max.min(half.min(255) as u8);
            }
        }
        let cost = match config.unit {
            WindowUnit::Segments => 1,
            WindowUnit::Bytes => waiting,
        };
        let has_more = self.flight.pipe() + cost <= self.window.cwnd
            && (self.send.has_room(waiting) || (config.fills_window && self.send.room() > 0))
            && (config.nodelay || waiting >= u32::from(self.send.mss()));
        if self.burst.count(has_more) {
            flags.insert(Flags::BURST_CONTINUES);
        }
    }
}
