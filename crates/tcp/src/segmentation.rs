//! Segmentation offload (TSO): how large bursts are, and when a burst waits to grow.

use fanin_units::{Duration, Instant};

use crate::config::{Config, Segmentation, WindowUnit};
use crate::endpoint::Endpoint;
use crate::segment::Flags;

/// A burst waits for ACKs only this long after a transmission, in picoseconds (`tcp_tso_should_defer`).
const DEFER_SPAN: u64 = Duration::from_millis(1).get();

impl Endpoint {
    /// Returns whether a small burst waits for the next ACK (`tcp_tso_should_defer`): not if it is all there is to send, is as
    /// large as a burst may be, or the ACK is half a round trip away.
    pub(crate) fn should_defer(
        &self,
        config: &Config,
        now: Instant,
        offload: Segmentation,
        pipe: u32,
        unsent: u64,
    ) -> bool {
        let room = self.window.cwnd - pipe;
        let all = config.units(unsent.min(u64::from(u32::MAX)) as u32, self.mss);
        if all <= room || room >= self.window.cwnd / offload.window_divisor {
            return false;
        }
        // Only right after a transmission: later no ACK would release the burst.
        if now.get() > self.last_sent_at + DEFER_SPAN {
            return false;
        }
        let age = now.get() - self.flight.runs.front().map_or(now.get(), |run| run.sent_at);
        let near = 2 * age >= self.rtt.smoothed(config).get();
        near && room < u32::from(self.burst_segments_max(config, offload)) * config.segment_units()
    }

    /// Segments of a burst (`tcp_tso_autosize`, `tcp_update_pacing_rate`): what the path carries in a millisecond, more
    /// for a near peer, at least [`Config::burst_segments_min`].
    fn burst_segments_max(&self, config: &Config, offload: Segmentation) -> u8 {
        let mss = u64::from(self.mss);
        let most = (u64::from(offload.offload_burst) / mss).clamp(1, 255);
        let srtt = self.rtt.smoothed(config).get();
        if !offload.autosize || srtt == 0 {
            return most as u8;
        }
        let segments = u64::from(self.window.cwnd.max(self.flight.size) / config.segment_units());
        let percent = if self.window.cwnd < self.window.ssthresh / 2 { 200 } else { 120 };
        let paced =
            u128::from(segments * mss * percent / 100) * 1_000_000_000 / u128::from(srtt) * 1000 / 1024;
        let nearness = (self.rtt.min_ps(config).unwrap_or(0) / 1_000_000) >> 9;
        let near = if nearness < 32 { u64::from(offload.offload_burst) >> nearness } else { 0 };
        ((paced as u64 + near) / mss).max(config.burst_segments_min.into()).min(most) as u8
    }

    /// Sets [`Flags::BURST_CONTINUES`] if the next segment belongs to the burst of the one just sent.
    pub(crate) fn mark_burst(&mut self, config: &Config, flags: &mut Flags) {
        let Some(segmentation) = config.segmentation else { return };
        if self.snd_nxt == self.write_seq {
            self.burst_segments = 0;
            return;
        }
        let waiting = (self.write_seq - self.snd_nxt).min(u64::from(self.mss)) as u32;
        if self.burst_segments == 0 {
            self.burst_max = self.burst_segments_max(config, segmentation);
            if segmentation.autosize {
                // tcp_cwnd_test: two bursts at least fill a window (since 3.18).
                let half = (self.window.cwnd / config.segment_units() / 2).max(1);
                self.burst_max = self.burst_max.min(half.min(255) as u8);
            }
        }
        let cost = match config.unit {
            WindowUnit::Segments => 1,
            WindowUnit::Bytes => waiting,
        };
        let more = self.flight.pipe() + cost <= self.window.cwnd
            && (self.snd_nxt + u64::from(waiting) <= self.snd_wnd_end
                || (config.fills_window && self.snd_nxt < self.snd_wnd_end))
            && (config.nodelay || waiting >= u32::from(self.mss));
        self.burst_segments += 1;
        if more && self.burst_segments < self.burst_max {
            flags.insert(Flags::BURST_CONTINUES);
        } else {
            self.burst_segments = 0;
        }
    }
}
