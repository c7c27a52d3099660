//! NewReno: slow start, additive increase, multiplicative decrease (RFC 5681 §3.1).

use super::window::{AckSample, CongestionWindow};
use crate::config::{Config, Growth};

/// The threshold after a loss: half the flight in RFC 5681 equation 4, half the window in Linux.
pub(super) fn ssthresh(config: &Config, window: &CongestionWindow, flight_size: u32) -> u32 {
    let half = match config.growth {
        Growth::PerByte | Growth::Ns3 => flight_size / 2,
        Growth::PerAck | Growth::PerSegment => window.cwnd / 2,
    };
    half.max(2 * config.segment_units())
}

/// Slow start below the threshold, one segment a round trip above.
#[inline]
pub(super) fn on_ack(config: &Config, window: &mut CongestionWindow, ack: AckSample) {
    let mut acked = ack.acked;
    if config.growth == Growth::Ns3 {
        acked = window.whole_segments(config, acked);
        if acked == 0 {
            return;
        }
    }
    let is_slow_start = match config.growth {
        Growth::PerAck => window.cwnd <= window.ssthresh,
        _ => window.in_slow_start(),
    };
    if is_slow_start {
        acked = window.slow_start(config, acked);
        if acked == 0 {
            return;
        }
    }
    if config.growth == Growth::Ns3 {
        // TcpNewReno::CongestionAvoidance of ns-3.
        let segment = u64::from(config.segment_units());
        window.cwnd += (segment * segment / u64::from(window.cwnd)).max(1) as u32;
    } else {
        window.additive_increase(config, window.cwnd, acked);
    }
}

#[cfg(test)]
mod tests {
    use fanin_units::Instant;

    use super::*;

    fn ack(acked: u32) -> AckSample {
        AckSample { now: Instant::START, acked, snd_una: 0, snd_nxt: 0, has_ece: false }
    }

    // RFC 5681 §3.1 with byte counting: doubles in slow start, adds a segment a round trip afterwards.
    #[test]
    fn doubles_then_adds_a_segment_a_round_trip() {
        let config = Config { mss: 1000, initial_window: 4, ..Config::textbook() };
        let mut window = CongestionWindow::new(&config);
        window.ssthresh = 16_000;
        for expected in [8_000, 16_000, 17_000, 18_000] {
            for _ in 0..window.cwnd / 1000 {
                on_ack(&config, &mut window, ack(1000));
            }
            assert_eq!(window.cwnd, expected);
        }
        assert_eq!(ssthresh(&config, &window, 12_000), 6_000, "half the flight");
        assert_eq!(ssthresh(&config, &window, 1_000), 2_000, "two segments at least");
        assert_eq!(
            ssthresh(&Config::linux_6(), &CongestionWindow::new(&Config::linux_6()), 4),
            5,
            "half the window"
        );
    }

    // TcpSocketBase::ProcessAck of ns-3: the last ACK of a recovery adds its part of a segment, and grows by whole segments alone.
    #[test]
    fn the_last_ack_of_a_recovery_counts_whole_segments_alone() {
        let config = Config { mss: 1000, ..Config::ns3_newreno() };
        let mut window = CongestionWindow::new(&config);
        assert_eq!(window.whole_segments(&config, 700), 0);
        // 700 and 600 are more than a segment, which does not count; 300 are left.
        assert_eq!(window.last_whole_segments(&config, 2_600, 1_900), 1_000);
        assert_eq!(window.whole_segments(&config, 600), 0);
        assert_eq!(window.whole_segments(&config, 100), 1_000, "300, 600 and 100");
        let textbook = Config::textbook();
        assert_eq!(window.last_whole_segments(&textbook, 2_600, 1_900), 1_900);
    }
}
