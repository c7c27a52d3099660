//! The receive window: its growth, and the effect of the application's reading.

use fanin_units::Instant;

use super::{ACK_TIMER, READS_AT_ONCE, Receiver};
use crate::config::{Config, DelayedAck};
use crate::rto::RttEstimator;

impl Receiver {
    /// Opens the window to its bound, as on a long-lived connection.
    pub(crate) fn open_fully(&mut self, config: &Config) {
        self.window = config.receive_window;
        self.window_max = self.window;
        self.rcv_wnd_end = self.rcv_nxt + u64::from(self.window);
        self.rcv_mss = config.mss;
    }

    /// Grows the window by two segments for each full segment received, up to the bound of the buffer
    /// (`tcp_grow_window`, simplified). A larger window is offered at once.
    #[inline]
    pub(super) fn grow_window(&mut self, config: &Config, now: Instant, payload: u16, rtt: &RttEstimator) {
        self.widen_window(config, payload);
        if self.window_max < config.receive_window && now.get() >= self.growth_measured_until {
            self.tune_buffer(config, now, rtt);
        }
    }

    /// Grows the window within the present bound of the buffer.
    #[inline]
    pub(super) fn widen_window(&mut self, config: &Config, payload: u16) {
        // In Linux the segment that has just arrived takes space, and the growth counts the options.
        let (limit, growth) = if config.is_linux_6() {
            let growth = 2 * config.advertised_mss().max(payload.into());
            (self.window_max.saturating_sub(payload.into()), growth)
        } else {
            (self.window_max, 2 * u32::from(payload))
        };
        if self.window < limit {
            self.window = (self.window + growth).min(limit);
            self.quick_acks |= 1;
        }
    }

    /// Sizes the buffer for twice the data of a round trip, and 16 segments (`tcp_rcv_space_adjust`).
    fn tune_buffer(&mut self, config: &Config, now: Instant, rtt: &RttEstimator) {
        if self.growth_measured_until > 0 {
            let arrived = self.rcv_nxt - self.growth_measured_from;
            let wanted =
                (2 * arrived + 16 * u64::from(config.mss)).min(u64::from(config.receive_window)) as u32;
            self.window_max = self.window_max.max(wanted);
        }
        self.growth_measured_from = self.rcv_nxt;
        let span = rtt.smoothed(config).get().max(config.rtt_tick.get());
        self.growth_measured_until = now.get() + span;
    }

    /// The right edge to offer now, rounded up to the window scale.
    #[inline]
    pub(super) fn window_to_offer(&self, config: &Config) -> u64 {
        let unread = if self.flags & READS_AT_ONCE != 0 { 0 } else { self.rcv_nxt - self.read };
        let free = if config.is_linux_6() {
            // __tcp_select_window: unread data takes space from the buffer, and only that.
            u64::from(self.window_max).saturating_sub(unread).min(self.window.min(self.clamp).into())
        } else {
            u64::from(self.window.min(self.clamp)).saturating_sub(unread)
        };
        let rest = (1_u64 << config.window_scale) - 1;
        let edge = self.rcv_nxt + ((free + rest) & !rest);
        // RFC 9293 §3.8.6: an offered window is not withdrawn.
        if config.shrink_window { edge } else { edge.max(self.rcv_wnd_end) }
    }

    /// Right edge of the window offered last (RCV.NXT + RCV.WND).
    pub(crate) fn window_end(&self) -> u64 {
        self.rcv_wnd_end
    }

    /// Bytes that the peer may still send by the window offered last.
    pub(crate) fn offered(&self) -> u64 {
        self.rcv_wnd_end.saturating_sub(self.rcv_nxt)
    }

    /// Bounds the window from now on.
    pub(crate) fn set_window_clamp(&mut self, bytes: u32) {
        self.clamp = bytes;
    }

    /// The bound of the window, in bytes.
    pub(crate) fn window_clamp(&self) -> u32 {
        self.clamp
    }

    /// Sets whether received bytes count as read at once, or only after [`read`](Self::read).
    pub(crate) fn set_reading(&mut self, at_once: bool) {
        if self.flags & READS_AT_ONCE != 0 {
            self.read = self.rcv_nxt;
        }
        self.flags = if at_once { self.flags | READS_AT_ONCE } else { self.flags & !READS_AT_ONCE };
    }

    /// Handles a read of `bytes` by the application (`tcp_cleanup_rbuf`). Sends an ACK if that doubles the window, or
    /// if everything is read and the data ended with a short segment.
    pub(crate) fn read(&mut self, config: &Config, bytes: u64) {
        assert!(self.read <= self.rcv_nxt, "read before it arrived");
        let before = self.offered();
        self.read = (self.read + bytes).min(self.rcv_nxt);
        let after = self.window_to_offer(config).saturating_sub(self.rcv_nxt);
        let is_update = after >= 2 * before && after > before;
        let is_all_read = self.read == self.rcv_nxt
            && self.flags & ACK_TIMER != 0
            && self.is_pushed()
            && matches!(config.delayed_ack, DelayedAck::Linux { .. });
        if is_update || is_all_read {
            self.ack_now();
        }
    }
}
