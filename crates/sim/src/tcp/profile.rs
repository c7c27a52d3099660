//! Stacks by name.

use fanin_units::Duration;

use super::config::*;

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
            mss: 1448,
            timestamps: true,
            timestamp_tick: Duration::from_millis(1),
            sack: true,
            dsack: true,
            ecn: false,
            m21: false,
            unit: WindowUnit::Segments,
            initial_window: 10,
            initial_ssthresh: u32::MAX,
            congestion_control: CongestionControl::Cubic(CubicParameters {
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
            limited_transmit: true,
            tail_loss_probe: true,
            undo: true,
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_millis(200),
                max: Duration::from_secs(120),
                estimator: RtoEstimator::Linux,
                jitter: 0,
            },
            rtt_source: RttSource::Transmissions,
            rtt_tick: Duration::from_micros(1),
            timer_tick: Duration::from_millis(4),
            timer_wheel: true,
            delayed_ack: DelayedAck::Linux { max: Duration::from_millis(200) },
            pushes_full: true,
            nagle: false,
            fills_window: true,
            segmentation: Some(Segmentation { burst_bytes_max: 65_536, window_divisor: 3, autosize: true }),
            receive_offload: false,
            receive_window: 6 << 20,
            receive_window_initial: 64_240,
            window_scale: 7,
            shrink_window: false,
            half_window_mss: true,
            probe_delayed_ack: Duration::from_millis(200),
        }
    }

    /// Linux 2.6.32 as Scientific Linux CERN 6 ran it, HZ 1000.
    pub fn linux_2_6_32() -> Self {
        Self {
            congestion_control: CongestionControl::Cubic(CubicParameters {
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
            fills_window: false,
            segmentation: Some(Segmentation { burst_bytes_max: 65_536, window_divisor: 3, autosize: false }),
            reduction: Reduction::RateHalving,
            tail_loss_probe: false,
            rto: RtoConfig { initial: Duration::from_secs(3), ..Self::linux_6().rto },
            rtt_source: RttSource::TimestampFirst,
            rtt_tick: Duration::from_millis(1),
            timer_tick: Duration::from_millis(1),
            timer_wheel: false,
            receive_window: 4 << 20,
            receive_window_initial: 14_480,
            ..Self::linux_6()
        }
    }

    /// Linux 2.6.26.
    pub fn linux_2_6_26() -> Self {
        Self {
            initial_window: 3,
            congestion_control: CongestionControl::Cubic(CubicParameters {
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

    /// ns-3's NewReno as the measurements used it.
    pub fn ns3_newreno() -> Self {
        Self {
            mss: 1460,
            timestamps: false,
            sack: false,
            dsack: false,
            unit: WindowUnit::Bytes,
            congestion_control: CongestionControl::NewReno,
            growth: Growth::Ns3,
            validation: Validation::None,
            slow_start_after_idle: false,
            loss_detection: LossDetection::DuplicateAcks,
            reordering_max: 3,
            reduction: Reduction::AtOnce,
            tail_loss_probe: false,
            undo: false,
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_millis(200),
                max: Duration::from_secs(120),
                estimator: RtoEstimator::Rfc6298 { granularity: Duration::from_millis(1) },
                jitter: 0,
            },
            rtt_tick: Duration::from_micros(1),
            timer_tick: Duration::new(1),
            timer_wheel: false,
            delayed_ack: DelayedAck::Off,
            segmentation: None,
            pushes_full: false,
            fills_window: false,
            receive_window: 6 << 20,
            receive_window_initial: 6 << 20,
            window_scale: 0,
            half_window_mss: false,
            ..Self::linux_6()
        }
    }

    /// The RFCs to the letter.
    pub fn textbook() -> Self {
        Self {
            mss: 1460,
            timestamps: false,
            unit: WindowUnit::Bytes,
            congestion_control: CongestionControl::NewReno,
            growth: Growth::PerByte,
            validation: Validation::Burst,
            loss_detection: LossDetection::Rfc6675,
            reordering_max: 3,
            reduction: Reduction::AtOnce,
            tail_loss_probe: false,
            undo: false,
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_secs(1),
                max: Duration::from_secs(60),
                estimator: RtoEstimator::Rfc6298 { granularity: Duration::from_millis(1) },
                jitter: 0,
            },
            timer_tick: Duration::new(1),
            timer_wheel: false,
            delayed_ack: DelayedAck::Rfc1122 { timeout: Duration::from_millis(200) },
            segmentation: None,
            pushes_full: false,
            fills_window: false,
            receive_window: 1 << 20,
            receive_window_initial: 1 << 20,
            window_scale: 0,
            half_window_mss: false,
            ..Self::linux_6()
        }
    }
}
