//! Settings that may change while an endpoint lives, and its counters.

use fanin_units::Duration;

use crate::ca_state::CongestionState;
use crate::config::Config;
use crate::congestion::SSTHRESH_INFINITE;
use crate::endpoint::{Counters, Endpoint, Stats};

/// The state of the retransmission queue and of the timers, in the terms of Linux's `tcp_info`. Counts are in segments.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Scoreboard {
    /// Segments sent and not acknowledged (`tcpi_unacked`).
    pub outstanding: u32,
    /// Outstanding segments SACKed, or counted from duplicate ACKs (`tcpi_sacked`).
    pub sacked: u32,
    /// Outstanding segments declared lost (`tcpi_lost`).
    pub lost: u32,
    /// Outstanding segments with a retransmitted copy in the network (`tcpi_retrans`).
    pub retransmitted: u32,
    /// Reordering degree in force (`tcpi_reordering`).
    pub reordering: u32,
    /// Number of times that reordering has been seen (`tcpi_reord_seen`).
    pub reordering_seen: u32,
    /// Number of doublings of the RTO or the window probe's timer (`tcpi_backoff`).
    pub backoff: u32,
    /// Window probes without an answer (`tcpi_probes`).
    pub window_probes: u32,
    /// Payload of a full segment in bytes (`tcpi_snd_mss`).
    pub mss: u32,
    /// Estimated payload of the peer's full segments in bytes (`tcpi_rcv_mss`).
    pub mss_received: u32,
    /// Mean deviation of the round-trip time (`tcpi_rttvar`).
    pub rtt_variation: Duration,
    /// Least round-trip time, zero before the first sample (`tcpi_min_rtt`).
    pub rtt_min: Duration,
}

impl Endpoint {
    /// The state of the retransmission queue and of the timers.
    pub fn scoreboard(&self, config: &Config) -> Scoreboard {
        let segments = |units: u32| units.div_ceil(config.segment_units());
        Scoreboard {
            outstanding: segments(self.flight.size),
            sacked: segments(self.flight.sacked),
            lost: segments(self.flight.lost),
            retransmitted: segments(self.flight.retransmitted),
            reordering: self.reordering.units() / config.segment_units(),
            reordering_seen: self.reordering.seen(),
            backoff: u32::from(self.rtt.backoff().max(self.timer.window_probes())),
            window_probes: u32::from(self.timer.window_probes()),
            mss: self.send.mss().into(),
            mss_received: self.receiver.mss().into(),
            rtt_variation: self.rtt.variation(config),
            rtt_min: Duration::new(self.rtt.min_ps(config).unwrap_or(0)),
        }
    }

    /// Bounds the congestion window by a path window of `bytes` bytes, as an acknowledgement echoes it (M21TCP §III.C).
    pub fn limit_window(&mut self, config: &Config, bytes: u32) {
        self.window.limit_to_path(config, bytes);
    }

    /// Bounds the window offered to the peer, in bytes, from now on (`TCP_WINDOW_CLAMP`). Offered bytes are not withdrawn
    /// unless [`Config::shrink_window`] is true.
    pub fn set_window_clamp(&mut self, bytes: u32) {
        self.receiver.set_window_clamp(bytes);
    }

    /// The bound of the receive window, in bytes.
    pub fn window_clamp(&self) -> u32 {
        self.receiver.window_clamp()
    }

    /// Bytes that the peer may still send by the window offered last.
    pub fn offered(&self) -> u64 {
        self.receiver.offered()
    }

    /// Sets whether received bytes count as read at once, or only after [`read`](Self::read).
    pub fn set_reading(&mut self, at_once: bool) {
        self.receiver.set_reading(at_once);
    }

    /// Marks received bytes as read by the application; a window update may follow.
    pub fn read(&mut self, config: &Config, bytes: u64) {
        self.receiver.read(config, bytes);
    }

    /// Sends a window update at the next [`poll_transmit`](Self::poll_transmit). DIATCP calls this after it has divided
    /// its window anew.
    pub fn update_peer_window(&mut self) {
        self.receiver.ack_now();
    }

    /// Segments with payload, retransmissions, timeouts, entries into fast recovery, needless retransmissions and tail loss
    /// probes: six of the counters of [`stats`](Self::stats).
    #[inline]
    pub fn counts(&self) -> [u64; 6] {
        let Counters {
            segments, retransmits, timeouts, fast_retransmits, spurious, tail_loss_probes, ..
        } = self.counters;
        let [retransmits, timeouts, fast_retransmits, spurious, probes] =
            [retransmits, timeouts, fast_retransmits, spurious, tail_loss_probes].map(u64::from);
        [segments, retransmits, timeouts, fast_retransmits, spurious, probes]
    }

    /// The counters and the state of the endpoint; windows in bytes.
    pub fn stats(&self, config: &Config) -> Stats {
        let in_bytes = |units| config.bytes(units);
        Stats {
            segments: self.counters.segments,
            acks: u64::from(self.counters.acks),
            retransmits: u64::from(self.counters.retransmits),
            timeouts: u64::from(self.counters.timeouts),
            fast_retransmits: u64::from(self.counters.fast_retransmits),
            tail_loss_probes: u64::from(self.counters.tail_loss_probes),
            window_probes: u64::from(self.counters.window_probes),
            spurious_retransmits: u64::from(self.counters.spurious),
            ecn_reductions: u64::from(self.counters.ecn_reductions),
            alpha_ppm: self.congestion.alpha_ppm(),
            cwnd: in_bytes(self.window.cwnd),
            ssthresh: if self.window.ssthresh >= SSTHRESH_INFINITE {
                u64::MAX
            } else {
                in_bytes(self.window.ssthresh)
            },
            pipe: in_bytes(self.flight.pipe()),
            srtt: self.rtt.smoothed(config),
            rto: self.rtt.rto(config),
            state: self.ca_state,
        }
    }

    /// Panics if an invariant does not hold, at the end of a run. An end without outstanding data costs little.
    #[inline]
    pub fn assert_conserved(&self, config: &Config) {
        if self.send.una() == self.send.nxt() && self.recovery.is_none() {
            assert!(self.flight.size == 0 && self.flight.pipe() == 0, "an empty flight has data");
        } else {
            self.check(config);
        }
    }

    /// Panics if an invariant does not hold. For tests; it walks the whole flight.
    pub fn check(&self, config: &Config) {
        self.send.assert_order();
        self.assert_order();
        self.flight.check(config, self.send.una(), self.send.nxt());
        assert!(
            self.recovery.is_some() || (self.ca_state == CongestionState::Open && self.flight.sacked == 0)
        );
        self.receiver.check();
    }
}
