//! Profiles: the settings of real stacks, and the source of each.
//!
//! | | `linux-6` | `linux-2.6.32` | `linux-2.6.26` | `ns3-newreno` | `textbook` | source |
//! |---|---|---|---|---|---|---|
//! | segment, timestamps | 1448, on | 1448, on | 1448, on | 1460, off | 1460, off | RFC 7323; `tcp_timestamps` |
//! | window counted in | segments | segments | segments | bytes | bytes | `snd_cwnd`; RFC 5681 |
//! | initial window | 10 | 10 | 3 | 10 | 10 | `TCP_INIT_CWND` (2.6.39; RHEL 6 has it); before, `tcp_init_cwnd` by RFC 3390, 3 segments of 1096 to 1460 bytes; RFC 6928 |
//! | congestion control | CUBIC | CUBIC | CUBIC | NewReno | NewReno | `tcp_cubic.c`; `TcpNewReno` |
//! | HyStart | on | on | none | none | none | `hystart_update`, since 2.6.29 |
//! | slow start adds | segments acknowledged | 1 an ACK | 1 an ACK | 1 an ACK | min(bytes, MSS) | `tcp_slow_start` (3.18); `tcp_abc` 0; RFC 5681 eq. 2 |
//! | threshold after loss | 0.7 cwnd | 0.7 cwnd | 0.7 cwnd | flight / 2 | flight / 2 | `cubictcp_recalc_ssthresh`; RFC 5681 eq. 4 |
//! | grows only if used | flight ×2 rule | ≤ 3 unused | ≤ 3 unused | always | ≤ 3 unused | `tcp_is_cwnd_limited` (3.16); RFC 7661 |
//! | slow start after idle | on | on | on | off | on | `tcp_slow_start_after_idle`; RFC 5681 §4.1 |
//! | SACK, DSACK | on | on | on | off | on | RFC 2018, RFC 2883 |
//! | loss detection | RACK | FACK | FACK | 3 duplicate ACKs, RFC 6675 with SACK | RFC 6675 | `tcp_recovery.c`; `tcp_update_scoreboard`; RFC 6582 |
//! | window in recovery | PRR | rate halving | rate halving | PRR of the pipe | at once | `tcp_cwnd_reduction` (3.7); `tcp_cwnd_down`; `TcpPrrRecovery` |
//! | partial ACK restarts the timer | each | each | each | the first | the first | `tcp_rearm_rto`; RFC 6582 §3.2 step 5 |
//! | back-off ends with | a sample | a sample | a sample | any new ACK | a sample | Karn's algorithm; `TcpSocketBase::NewAck` |
//! | tail loss probe | on | none | none | none | none | `tcp_send_loss_probe` (3.10) |
//! | undo, F-RTO | on | on | on | off | off | `tcp_undo_cwnd_reduction`, `tcp_process_loss` |
//! | RTO, least | srtt + 200 ms | srtt + 200 ms | srtt + 200 ms | 200 ms | 1 s | `tcp_rtt_estimator`: the floor is on the variation; RFC 6298 |
//! | RTO, first | 1 s | 3 s | 3 s | 1 s | 1 s | `TCP_TIMEOUT_INIT` (3.1) |
//! | round-trip clock | 1 µs | 1 ms | 1 ms | 1 µs | 1 µs | `tcp_clean_rtx_queue`: since 4.13 from transmission times first |
//! | timer tick | 4 ms and wheel levels | 1 ms | 1 ms | exact | exact | HZ 250; `calc_wheel_index` (4.8); HZ 1000 |
//! | delayed ACKs | 40–196 ms, quick ACKs | 40–200 ms, quick ACKs | same | off | 200 ms, every second | `__tcp_ack_snd_check`, `tcp_send_delayed_ack`; RFC 1122 |
//! | full segment with PSH | at once when read | delayed | delayed | | delayed | `tcp_measure_rcv_mss` (6.7) |
//! | segmentation offload | bursts sized to 1 ms | 64 kB bursts | 64 kB bursts | none | none | `tcp_tso_autosize`, `tcp_tso_should_defer` |
//! | receive window | 64 kB to 6 MB | 14 kB to 4 MB | 5.8 kB to 4 MB | 6 MB | 1 MB | `tcp_select_initial_window`, `tcp_grow_window`, simplified |
//!
//! `linux-6` is checked segment by segment against traces of Linux 6.18 (`tests/kernel.rs`); the older
//! kernels follow the source named.
//!
//! Only BBR paces; CUBIC is paced under the `fq` queueing discipline alone, which no profile has. No profile has urgent
//! data, SYN cookies, fast open, path MTU discovery or keep-alives. Compressed SACKs (`tcp_comp_sack_delay_ns`), hints
//! of the route cache and the limit of the socket's send buffer are also left out.

use fanin_units::Duration;
use fanin_units::tcp::RTO_MIN_LINUX;

use crate::config::{
    Config, CongestionConfig, CubicParameters, DelayedAck, Growth, LossDetection, Reduction, RtoConfig,
    RtoEstimator, RttSource, Segmentation, Stack, TimeoutRules, Validation, WindowUnit,
};

/// Names of the profiles.
pub const PROFILES: [&str; 5] = ["linux-2.6.26", "linux-2.6.32", "linux-6", "ns3-newreno", "textbook"];

impl Config {
    /// The settings of a stack by its name, as a scenario's `transport.profile` gives it; `None` for an
    /// unknown name.
    pub fn profile(name: &str) -> Option<Self> {
        Some(match name {
            "linux-2.6.26" => Self::linux_2_6_26(),
            "linux-2.6.32" => Self::linux_2_6_32(),
            "linux-6" => Self::linux_6(),
            "ns3-newreno" => Self::ns3_newreno(),
            "textbook" => Self::textbook(),
            _ => return None,
        })
    }

    /// Linux 6.x with HZ 250.
    pub fn linux_6() -> Self {
        Self {
            stack: Stack::Linux6,
            mss: 1448,
            timestamps: true,
            timestamp_tick: Duration::from_millis(1),
            sack: true,
            dsack: true,
            ecn: false,
            ecn_exact: false,
            path_window: false,
            path_window_deduction: 0,
            unit: WindowUnit::Segments,
            initial_window: 10,
            initial_ssthresh: u32::MAX,
            congestion_control: CongestionConfig::Cubic(CubicParameters {
                beta: 717,
                scale: 41,
                hystart: true,
                counts_segments: true,
                undoes_to_maximum: false,
            }),
            growth: Growth::PerSegment,
            validation: Validation::MaximumFlight,
            slow_start_after_idle: true,
            loss_detection: LossDetection::Rack,
            reordering: 3,
            reordering_max: 300,
            reduction: Reduction::Proportional,
            timeout_rules: TimeoutRules::Rfc6298,
            is_impatient_variant: false,
            limited_transmit: true,
            tail_loss_probe: true,
            undo: true,
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: RTO_MIN_LINUX,
                max: Duration::from_secs(120),
                estimator: RtoEstimator::Linux,
                spread: 0,
            },
            rtt_source: RttSource::Transmissions,
            rtt_tick: Duration::from_micros(1),
            timer_granularity: Duration::from_millis(4),
            timer_wheel: true,
            delayed_ack: DelayedAck::Linux { max: Duration::from_millis(196) },
            pushes_full: true,
            grows_out_of_order: true,
            compressed_sacks: true,
            nodelay: true,
            fills_window: true,
            segmentation: Some(Segmentation { offload_burst: 65_536, window_divisor: 3, autosize: true }),
            burst_segments_min: 2,
            receive_offload: false,
            receive_window: 6 << 20,
            receive_window_initial: 64_240,
            window_scale: 7,
            shrink_window: false,
            half_window_mss: true,
            probe_delayed_ack: RTO_MIN_LINUX,
        }
    }

    /// Linux 2.6.32 as in Scientific Linux CERN 6, HZ 1000.
    pub fn linux_2_6_32() -> Self {
        Self {
            stack: Stack::Linux2_6,
            congestion_control: CongestionConfig::Cubic(CubicParameters {
                beta: 717,
                scale: 41,
                hystart: true,
                counts_segments: false,
                undoes_to_maximum: true,
            }),
            growth: Growth::PerAck,
            validation: Validation::Burst,
            loss_detection: LossDetection::Fack,
            reordering_max: 127,
            pushes_full: false,
            grows_out_of_order: false,
            compressed_sacks: false,
            fills_window: false,
            segmentation: Some(Segmentation { offload_burst: 65_536, window_divisor: 3, autosize: false }),
            reduction: Reduction::RateHalving,
            tail_loss_probe: false,
            rto: RtoConfig { initial: Duration::from_secs(3), ..Self::linux_6().rto },
            rtt_source: RttSource::TimestampFirst,
            rtt_tick: Duration::from_millis(1),
            timer_granularity: Duration::from_millis(1),
            delayed_ack: DelayedAck::Linux { max: Duration::from_millis(200) },
            timer_wheel: false,
            receive_window: 4 << 20,
            receive_window_initial: 14_480,
            ..Self::linux_6()
        }
    }

    /// Linux 2.6.26, the stack of the Network Simulation Cradle in the thesis' simulations; HZ 1000.
    pub fn linux_2_6_26() -> Self {
        Self {
            initial_window: 3,
            congestion_control: CongestionConfig::Cubic(CubicParameters {
                beta: 717,
                scale: 41,
                hystart: false,
                counts_segments: false,
                undoes_to_maximum: true,
            }),
            receive_window_initial: 5_840,
            ..Self::linux_2_6_32()
        }
    }

    /// ns-3's `TcpNewReno` with SACK, timestamps and delayed ACKs off, IW 10, limited transmit on.
    pub fn ns3_newreno() -> Self {
        Self {
            stack: Stack::Ns3,
            mss: 1460,
            timestamps: false,
            sack: false,
            dsack: false,
            unit: WindowUnit::Bytes,
            congestion_control: CongestionConfig::NewReno,
            growth: Growth::Ns3,
            validation: Validation::None,
            slow_start_after_idle: false,
            loss_detection: LossDetection::Rfc6675,
            reordering_max: 3,
            reduction: Reduction::Ns3,
            timeout_rules: TimeoutRules::Ns3,
            is_impatient_variant: true,
            tail_loss_probe: false,
            undo: false,
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_millis(200),
                max: Duration::from_secs(60),
                estimator: RtoEstimator::Rfc6298 { granularity: Duration::from_micros(1) },
                spread: 0,
            },
            rtt_tick: Duration::from_micros(1),
            timer_granularity: Duration::new(1),
            timer_wheel: false,
            delayed_ack: DelayedAck::Off,
            segmentation: None,
            pushes_full: false,
            grows_out_of_order: false,
            compressed_sacks: false,
            fills_window: false,
            receive_window: 6 << 20,
            receive_window_initial: 6 << 20,
            window_scale: 0,
            half_window_mss: false,
            ..Self::linux_6()
        }
    }

    /// The RFCs without deviations: 5681, 6298, 6582, 6675, 6928, 1122.
    pub fn textbook() -> Self {
        Self {
            stack: Stack::Textbook,
            mss: 1460,
            timestamps: false,
            unit: WindowUnit::Bytes,
            congestion_control: CongestionConfig::NewReno,
            growth: Growth::PerByte,
            validation: Validation::Burst,
            loss_detection: LossDetection::Rfc6675,
            reordering_max: 3,
            reduction: Reduction::AtOnce,
            is_impatient_variant: true,
            tail_loss_probe: false,
            undo: false,
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_secs(1),
                max: Duration::from_secs(60),
                estimator: RtoEstimator::Rfc6298 { granularity: Duration::from_millis(1) },
                spread: 0,
            },
            timer_granularity: Duration::new(1),
            timer_wheel: false,
            delayed_ack: DelayedAck::Rfc1122 { timeout: Duration::from_millis(200) },
            segmentation: None,
            pushes_full: false,
            grows_out_of_order: false,
            compressed_sacks: false,
            fills_window: false,
            receive_window: 1 << 20,
            receive_window_initial: 1 << 20,
            window_scale: 0,
            half_window_mss: false,
            ..Self::linux_6()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_have_names() {
        for name in PROFILES {
            assert!(Config::profile(name).is_some(), "{name}");
        }
        assert_eq!(Config::profile("linux-5"), None);
    }
}
