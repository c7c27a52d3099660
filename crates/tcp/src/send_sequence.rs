//! The send sequence variables (RFC 9293 §3.3.1): offsets written, sent and acknowledged, and the peer's window.

use crate::config::Config;
use crate::segment::Segment;

/// Positions in this end's stream. SND.UNA ≤ SND.NXT ≤ the end of the written data.
#[derive(Clone, Debug)]
pub(crate) struct SendSequence {
    /// Oldest unacknowledged offset (SND.UNA).
    una: u64,
    /// Next offset to send (SND.NXT).
    nxt: u64,
    /// End of the bytes that the application has written (`write_seq`).
    written: u64,
    /// Right edge of the window offered by the peer (SND.UNA + SND.WND).
    window_end: u64,
    /// Offset of the segment that last updated the window, plus one (SND.WL1); 0 before the first.
    wl1: u64,
    /// Largest window that the peer has offered (`max_window`).
    window_max: u32,
    /// Segment size in force, at most the configured one.
    mss: u16,
}

impl SendSequence {
    /// Makes the state before any write; the peer offers `window` bytes.
    pub(crate) fn new(config: &Config, window: u32) -> Self {
        Self {
            una: 0,
            nxt: 0,
            written: 0,
            window_end: u64::from(window),
            wl1: 0,
            window_max: window,
            mss: config.mss,
        }
    }

    /// Begins with the window that the peer offered in the handshake.
    pub(crate) fn start(&mut self, config: &Config, window: u32) {
        assert_eq!((self.una, self.nxt), (0, 0), "data was sent before the handshake ended");
        self.window_end = u64::from(window);
        self.window_max = 0;
        self.note_window(config, window);
    }

    /// Oldest unacknowledged offset (SND.UNA).
    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// Next offset to send (SND.NXT).
    #[inline]
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// End of the bytes that the application has written.
    #[inline]
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Segment size in force.
    #[inline]
    pub(crate) fn mss(&self) -> u16 {
        self.mss
    }

    /// Largest window that the peer has offered.
    pub(crate) fn window_max(&self) -> u32 {
        self.window_max
    }

    /// Right edge of the window offered by the peer.
    pub(crate) fn window_end(&self) -> u64 {
        self.window_end
    }

    /// Bytes written and not yet sent.
    #[inline]
    pub(crate) fn unsent(&self) -> u64 {
        self.written - self.nxt
    }

    /// Returns true if bytes are written and not yet sent.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.nxt < self.written
    }

    /// Returns true if everything sent is acknowledged.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.nxt == self.una
    }

    /// Payload bytes sent and not yet acknowledged.
    #[inline]
    pub(crate) fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    /// Payload of the next new segment in bytes: a full segment, or all unsent bytes.
    #[inline]
    pub(crate) fn next_payload(&self) -> u32 {
        self.unsent().min(u64::from(self.mss)) as u32
    }

    /// Bytes that may still be sent within the offered window.
    #[inline]
    pub(crate) fn room(&self) -> u64 {
        self.window_end.saturating_sub(self.nxt)
    }

    /// Returns true if `payload` more bytes lie within the offered window.
    #[inline]
    pub(crate) fn has_room(&self, payload: u32) -> bool {
        self.nxt + u64::from(payload) <= self.window_end
    }

    /// Appends `bytes` of the application.
    #[inline]
    pub(crate) fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Notes that `payload` new bytes are sent. Returns their offset.
    #[inline]
    pub(crate) fn send(&mut self, payload: u32) -> u64 {
        let (offset, end) = (self.nxt, self.nxt + u64::from(payload));
        assert!(
            payload > 0 && end <= self.written,
            "a segment takes {payload} bytes of {} unsent ones",
            self.unsent()
        );
        assert!(end <= self.window_end, "a segment ends beyond the offered window");
        self.nxt = end;
        offset
    }

    /// Notes that the peer has acknowledged all bytes below `ack`.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: u64) {
        assert!(self.una <= ack && ack <= self.nxt, "an ACK of {ack} outside of the flight");
        self.una = ack;
    }

    /// Takes the window of a segment unless it is older than the last one (RFC 9293 §3.10.7.4: SND.WL1 and SND.WL2).
    /// Returns true if it was taken. In ns-3 an equal window is no update, so that an ACK behind a request may be a duplicate.
    #[inline]
    pub(crate) fn take_window(&mut self, config: &Config, segment: &Segment) -> bool {
        debug_assert!(
            self.una <= segment.ack && segment.ack <= self.nxt,
            "a window with an ACK outside of the flight"
        );
        let edge = segment.ack + u64::from(segment.window);
        let wl1 = segment.offset + 1;
        let is_newer = segment.ack > self.una
            || (wl1 > self.wl1 && (edge != self.window_end || !config.recovers_as_ns3()))
            || (wl1 == self.wl1 && edge > self.window_end);
        if is_newer {
            self.wl1 = wl1;
            self.window_end = edge;
        }
        is_newer
    }

    /// Updates the largest window seen.
    pub(crate) fn note_window(&mut self, config: &Config, window: u32) {
        if window <= self.window_max {
            return;
        }
        self.window_max = window;
        if config.half_window_mss {
            // tcp_bound_to_half_wnd: segments of at most half the largest window, so that two fit.
            let cut = if window > 536 { window >> 1 } else { window };
            self.mss = config.mss.min(cut.max(48).min(u32::from(u16::MAX)) as u16);
            assert!(self.mss > 0, "the MSS is zero");
        }
    }

    /// Opens the peer's window fully, as on a long-lived connection.
    pub(crate) fn open_window(&mut self, window: u32) {
        assert_eq!((self.una, self.nxt), (0, 0), "the window opens after data was sent");
        self.window_end = u64::from(window);
        self.window_max = window;
    }

    /// Panics unless the positions are in order. For tests.
    pub(crate) fn assert_order(&self) {
        assert!(self.una <= self.nxt, "acknowledged before it was sent");
        assert!(self.nxt <= self.written, "sent before it was written");
    }
}
