//! DCTCP (RFC 8257 §3.3): reduces the window by the share of marked bytes.

use super::window::{AckSample, CongestionWindow};
use crate::config::{Config, CongestionConfig, DctcpParameters};

/// The fixed-point number that stands for an α or a share of 1.
const ONE: u64 = 1 << 30;

/// Bits below those of Linux' α, of which `DCTCP_MAX_ALPHA` (1024) is 1.
const BELOW_LINUX: u32 = 20;

/// The moving average α of the marked share, and the window of data under observation.
#[derive(Clone, Debug)]
pub(crate) struct Dctcp {
    /// Estimate of the marked share, with [`ONE`] for one (DCTCP.Alpha).
    alpha: u32,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked, in units of the window.
    acked: u32,
    marked: u32,
    /// The offset that ends the window under observation (DCTCP.WindowEnd).
    window_end: u64,
}

/// The parameters of a connection of this algorithm.
#[inline]
pub(super) fn parameters(config: &Config) -> DctcpParameters {
    let CongestionConfig::Dctcp(parameters) = config.congestion_control else {
        unreachable!("a connection keeps its algorithm")
    };
    parameters
}

impl Dctcp {
    pub(super) fn new(parameters: DctcpParameters) -> Self {
        let alpha = (u64::from(parameters.alpha_initial) * ONE / 1_000_000).min(ONE) as u32;
        Self { alpha, acked: 0, marked: 0, window_end: 0 }
    }

    pub(super) fn alpha_ppm(&self) -> u32 {
        (u64::from(self.alpha) * 1_000_000 / ONE) as u32
    }

    /// The slow-start threshold: by RFC 8257 §3.3 step 10 after a mark, half the window after a loss (§3.5). Linux lowers it by the
    /// share of marks first, also where a probe has repaired a loss, and by half in [`half`](Self::half).
    pub(super) fn ssthresh(
        &self,
        config: &Config,
        parameters: DctcpParameters,
        window: &CongestionWindow,
        has_ece: bool,
    ) -> u32 {
        let by_share = has_ece || config.is_linux_6();
        let reduced = if by_share { self.reduced(window.cwnd) } else { window.cwnd / 2 };
        reduced.max(parameters.window_min * config.segment_units())
    }

    /// Half the window (`dctcp_react_to_loss`).
    pub(super) fn half(config: &Config, parameters: DctcpParameters, window: &CongestionWindow) -> u32 {
        (window.cwnd / 2).max(parameters.window_min * config.segment_units())
    }

    /// Updates α at the end of a window (RFC 8257 §3.3, steps 1 to 9). In the RFC a window ends with an ACK beyond its
    /// end, in Linux with one that reaches it (`dctcp_update_alpha`). In Linux the last ACK before a pause therefore ends a
    /// window, and the next data begin a new one. An ACK while nothing is outstanding is a window without a mark there.
    #[inline]
    pub(super) fn on_sample(&mut self, parameters: DctcpParameters, ack: AckSample, is_linux: bool) {
        self.acked += ack.acked;
        if ack.has_ece {
            self.marked += ack.acked;
        }
        if ack.snd_una + u64::from(is_linux) <= self.window_end {
            return;
        }
        assert!(self.marked <= self.acked, "more was marked than acknowledged");
        if is_linux {
            self.alpha = self.alpha_as_linux(parameters) << BELOW_LINUX;
        } else if self.acked > 0 {
            // DCTCP.Alpha = DCTCP.Alpha * (1 - g) + g * M.
            let share = u64::from(self.marked) * ONE / u64::from(self.acked);
            let moved = (share as i64 - i64::from(self.alpha)) * i64::from(parameters.gain) / 1_000_000;
            self.alpha = (i64::from(self.alpha) + moved).clamp(0, ONE as i64) as u32;
        }
        assert!(u64::from(self.alpha) <= ONE, "a share above one");
        (self.acked, self.marked, self.window_end) = (0, 0, ack.snd_nxt);
    }

    /// The next α of 1024 parts. Both terms are rounded down. An α that the gain does not lower by a whole part falls to zero
    /// (`dctcp_update_alpha`).
    fn alpha_as_linux(&self, parameters: DctcpParameters) -> u32 {
        let gained = |parts: u64| parts * u64::from(parameters.gain) / 1_000_000;
        let alpha = u64::from(self.alpha >> BELOW_LINUX);
        let decrease = gained(alpha);
        let kept = if decrease == 0 && parameters.gain > 0 { 0 } else { alpha - decrease };
        let risen = gained(u64::from(self.marked) << 10) / u64::from(self.acked.max(1));
        (kept + risen).min(1 << 10) as u32
    }

    /// The window after a reduction: cwnd * (1 - DCTCP.Alpha / 2) (RFC 8257 §3.3, step 10).
    fn reduced(&self, cwnd: u32) -> u32 {
        cwnd - ((u64::from(cwnd) * u64::from(self.alpha)) >> 31) as u32
    }
}

#[cfg(test)]
mod tests {
    use fanin_units::Instant;

    use super::*;

    const PARAMETERS: DctcpParameters =
        DctcpParameters { gain: 62_500, alpha_initial: 1_000_000, window_min: 2 };

    fn window(dctcp: &mut Dctcp, number: u64, marked: u32) {
        // A window of 16 segments; the last acknowledgement passes its end.
        for segment in 1..=16_u32 {
            let ack = number * 16 + u64::from(segment);
            let view = AckSample {
                now: Instant::START,
                acked: 1,
                snd_una: ack,
                snd_nxt: ack + 15,
                has_ece: segment <= marked,
            };
            dctcp.on_sample(PARAMETERS, view, false);
        }
    }

    #[test]
    fn alpha_is_a_moving_average_of_the_marked_share() {
        let mut dctcp = Dctcp::new(PARAMETERS);
        assert_eq!(u64::from(dctcp.alpha), ONE);
        // Nothing marked: 15/16 remain of each window.
        let mut expected = 1.0;
        for number in 0..40 {
            window(&mut dctcp, number, 0);
            expected *= 15.0 / 16.0;
        }
        let share = |dctcp: &Dctcp| f64::from(dctcp.alpha) / ONE as f64;
        assert!((share(&dctcp) / expected - 1.0).abs() < 0.08, "{} {expected}", share(&dctcp));
        // A quarter of every window marked: it settles there.
        for number in 40..200 {
            window(&mut dctcp, number, 4);
        }
        assert!((share(&dctcp) - 0.25).abs() < 0.02, "{}", share(&dctcp));
    }

    #[test]
    fn in_linux_a_window_ends_where_it_is_reached() {
        for (is_linux, windows) in [(true, 2), (false, 1)] {
            let mut dctcp = Dctcp::new(PARAMETERS);
            // All seven segments are outstanding when the first acknowledgement arrives; then silence.
            for ack in 1..=7 {
                let view =
                    AckSample { now: Instant::START, acked: 1, snd_una: ack, snd_nxt: 7, has_ece: false };
                dctcp.on_sample(PARAMETERS, view, is_linux);
            }
            let expected = (15.0_f64 / 16.0).powi(windows);
            assert!((f64::from(dctcp.alpha) / ONE as f64 / expected - 1.0).abs() < 1e-4, "{is_linux}");
        }
    }

    #[test]
    fn in_linux_alpha_has_ten_bits() {
        let mut dctcp = Dctcp::new(PARAMETERS);
        // Each acknowledgement ends a window of `acked` segments, all of them marked or none.
        let mut alpha = |acked: u32, has_ece: bool| {
            let view = AckSample { now: Instant::START, acked, snd_una: 1, snd_nxt: 0, has_ece };
            dctcp.on_sample(PARAMETERS, view, true);
            dctcp.alpha >> BELOW_LINUX
        };
        // 1024 less a sixteenth, both rounded down: 960, 900, 844, 792, 743.
        assert_eq!([(); 5].map(|()| alpha(3, false)), [960, 900, 844, 792, 743]);
        assert_eq!(alpha(3, true), 743 - 46 + 64);
        while alpha(1, false) > 15 {}
        assert_eq!(alpha(1, false), 0, "what has no sixteenth goes at once (min_not_zero)");
    }

    #[test]
    fn the_window_falls_by_half_of_alpha() {
        let mut dctcp = Dctcp::new(PARAMETERS);
        assert_eq!((dctcp.reduced(100), dctcp.reduced(3)), (50, 2));
        dctcp.alpha = (ONE / 4) as u32;
        assert_eq!(dctcp.reduced(80), 70);
        assert_eq!(dctcp.reduced(80_000), 70_000);
        dctcp.alpha = 0;
        assert_eq!(dctcp.reduced(80), 80);
    }
}
