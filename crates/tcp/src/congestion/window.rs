//! The congestion window and its growth, which the algorithms share.

use fanin_units::Instant;

use crate::config::{Config, CongestionConfig, Growth};

/// An ACK, with the inputs of the algorithms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSample {
    pub(crate) now: Instant,
    /// Units newly delivered.
    pub(crate) acked: u32,
    /// Cumulative acknowledgement (SND.UNA).
    pub(crate) snd_una: u64,
    /// Next offset to send (SND.NXT).
    pub(crate) snd_nxt: u64,
    /// True if the ACK echoes an ECN mark.
    pub(crate) has_ece: bool,
}

/// Slow-start threshold of a connection without one (`TCP_INFINITE_SSTHRESH`).
pub(crate) const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;

/// Congestion window and slow-start threshold, in units of the window.
#[derive(Clone, Debug)]
pub(crate) struct CongestionWindow {
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// Units counted towards the next increase (`snd_cwnd_cnt`); for NewReno of ns-3 the acknowledged part of a segment.
    pub(crate) cwnd_cnt: u32,
    /// Upper bound of growth (`snd_cwnd_clamp`), at most [`SSTHRESH_INFINITE`].
    pub(crate) cwnd_clamp: u32,
}

impl CongestionWindow {
    pub(crate) fn new(config: &Config) -> Self {
        let ssthresh = config.initial_ssthresh.saturating_mul(config.segment_units()).min(SSTHRESH_INFINITE);
        let cwnd = config.initial_cwnd().min(SSTHRESH_INFINITE);
        Self { cwnd, ssthresh, cwnd_cnt: 0, cwnd_clamp: SSTHRESH_INFINITE }
    }

    /// Bounds the window, in segments, from now on.
    pub(crate) fn set_clamp(&mut self, config: &Config, segments: u32) {
        self.cwnd_clamp = segments.max(1).saturating_mul(config.segment_units()).min(SSTHRESH_INFINITE);
        self.cwnd = self.cwnd.min(self.cwnd_clamp);
    }

    /// Returns true in slow start.
    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows the window in slow start. Returns the number of `acked` units left for congestion avoidance.
    #[inline]
    pub(super) fn slow_start(&mut self, config: &Config, acked: u32) -> u32 {
        debug_assert!(self.cwnd <= self.ssthresh, "slow start above its threshold");
        let segment = config.segment_units();
        match config.growth {
            Growth::PerAck => {
                // tcp_slow_start of 2.6.32 without byte counting: each ACK adds a segment, however many it covers.
                self.cwnd = (self.cwnd + segment).min(self.cwnd_clamp);
                0
            }
            Growth::PerSegment => {
                let grown = (self.cwnd + acked).min(self.ssthresh);
                let left = acked - (grown - self.cwnd);
                self.cwnd = grown.min(self.cwnd_clamp);
                left
            }
            // RFC 5681 equation 2.
            Growth::PerByte => {
                self.cwnd = (self.cwnd + acked.min(segment)).min(self.cwnd_clamp);
                0
            }
            Growth::Ns3 => {
                self.cwnd = (self.cwnd + segment).min(self.cwnd_clamp);
                if self.cwnd < self.ssthresh { 0 } else { acked.saturating_sub(segment) }
            }
        }
    }

    /// Forgets what was counted towards the next increase. NewReno of ns-3 keeps the part of a segment.
    pub(crate) fn forget_progress(&mut self, config: &Config) {
        if !keeps_part(config) {
            self.cwnd_cnt = 0;
        }
    }

    /// Returns true if `acked` bytes are a whole segment with the part that NewReno of ns-3 counted before, and counts them.
    pub(crate) fn has_whole_segment(&mut self, config: &Config, acked: u32) -> bool {
        if keeps_part(config) {
            self.whole_segments(config, acked) > 0
        } else {
            acked >= config.segment_units()
        }
    }

    /// Returns the units by which the window may grow after the last ACK of a recovery or timeout. It delivers `acked` units,
    /// and `beyond` may raise the window. NewReno of ns-3 counts the whole segments of `beyond` alone. The part of a segment in
    /// `acked` counts with the next ACK.
    pub(crate) fn last_whole_segments(&mut self, config: &Config, acked: u32, beyond: u32) -> u32 {
        if keeps_part(config) {
            self.whole_segments(config, acked);
            beyond - beyond % config.segment_units()
        } else {
            beyond
        }
    }

    /// Whole segments in `acked` bytes; the part of one counts with the next ACK (`TcpSocketBase::ProcessAck` of ns-3).
    pub(super) fn whole_segments(&mut self, config: &Config, acked: u32) -> u32 {
        let segment = config.segment_units();
        let (whole, left) = (acked / segment, self.cwnd_cnt + acked % segment);
        self.cwnd_cnt = left % segment;
        (whole + left / segment) * segment
    }

    /// Congestion avoidance: one segment for each `step` units acknowledged (`tcp_cong_avoid_ai`; before 3.18 for each
    /// `step` ACKs).
    #[inline]
    pub(super) fn additive_increase(&mut self, config: &Config, step: u32, acked: u32) {
        debug_assert!(
            self.cwnd > 0 && self.cwnd_clamp > 0,
            "the congestion window is closed and never opens again"
        );
        let step = step.max(1);
        let segment = config.segment_units();
        if config.growth == Growth::PerAck {
            if self.cwnd_cnt >= step {
                if self.cwnd < self.cwnd_clamp {
                    self.cwnd += segment;
                }
                self.cwnd_cnt = 0;
            } else {
                self.cwnd_cnt = self.cwnd_cnt.saturating_add(segment);
            }
            return;
        }
        if self.cwnd_cnt >= step {
            self.cwnd_cnt = 0;
            self.cwnd += segment;
        }
        // CUBIC's step may be 100 windows, which in bytes is more than 32 bits hold.
        self.cwnd_cnt = self.cwnd_cnt.saturating_add(acked);
        if self.cwnd_cnt >= step {
            let times = self.cwnd_cnt / step;
            self.cwnd_cnt -= times * step;
            self.cwnd += times * segment;
        }
        self.cwnd = self.cwnd.min(self.cwnd_clamp);
    }
}

/// Returns true if the part of a segment that an ACK covers counts with the next ACK.
fn keeps_part(config: &Config) -> bool {
    config.growth == Growth::Ns3
        && matches!(config.congestion_control, CongestionConfig::NewReno | CongestionConfig::Dctcp(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_more_bytes_than_32_bits_hold_ends() {
        let config = Config::ns3_newreno();
        let mut window = CongestionWindow::new(&config);
        let before = window.cwnd;
        for _ in 0..5 {
            window.additive_increase(&config, u32::MAX, 1 << 30);
        }
        assert_eq!(window.cwnd, before + config.segment_units());
    }
}
