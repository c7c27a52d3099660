//! Settings of a TCP stack. One value serves any number of endpoints.

use fanin_units::{Duration, Instant};

use crate::segment::{PATH_WINDOW_BYTES, TIMESTAMP_BYTES};

/// Largest receive window, in bytes (RFC 7323 §2.3).
pub const RECEIVE_WINDOW_MAX: u32 = 1 << 30;

/// The implementation whose rules hold where no other setting of [`Config`] names one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stack {
    /// Linux 6 (`net/ipv4` of 6.18). It has rules of its own for recovery, undo and F-RTO, quick ACKs, the receive window, ECN's
    /// marks, and DCTCP.
    Linux6,
    /// Linux 2.6, with the rules that it shares with the others.
    Linux2_6,
    /// The simulator ns-3 3.44, with the rules that it shares with the others.
    Ns3,
    /// The RFCs without deviations.
    Textbook,
}

/// The unit of windows and flights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowUnit {
    /// Segments of any length (Linux).
    Segments,
    /// Bytes (RFC 5681, ns-3).
    Bytes,
}

/// A congestion control and its parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CongestionConfig {
    /// Growth of RFC 5681, half the window after a loss.
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic(CubicParameters),
    /// DCTCP (RFC 8257): reduces the window by the share of marked bytes. Needs [`Config::ecn`].
    Dctcp(DctcpParameters),
    /// Swift: the window follows the round-trip time.
    Swift(SwiftParameters),
    /// A window of constant size (thesis §6.4, ICC'15 §IV).
    Static {
        /// The window in segments, at least 1.
        static_window: u32,
    },
    /// BBR version 1, with pacing, as in Linux since 4.13. Needs [`WindowUnit::Segments`] and SACK.
    Bbr,
}

/// Variants of CUBIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CubicParameters {
    /// Multiplicative decrease in 1/1024: 717 is 0.7.
    pub beta: u32,
    /// The constant C in 10/1024 segments per second cubed: 41 is 0.4.
    pub scale: u32,
    /// True if HyStart's delay and ACK-train signals end slow start.
    pub hystart: bool,
    /// True for `tcp_cubic.c` since 5.16. Its window estimate counts acknowledged segments (3.18), bursts lengthen HyStart's
    /// permitted train of ACKs (5.6), and its rounds begin with a sample. False for 2.6, which estimates the ratio of segments
    /// to ACKs.
    pub counts_segments: bool,
    /// True if a spurious loss restores the last maximum that CUBIC remembers (before 4.13) instead of the window
    /// before the loss.
    pub undoes_to_maximum: bool,
}

/// Parameters of DCTCP's moving average and window (RFC 8257 §3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DctcpParameters {
    /// Weight g of a new share in the moving average α, in millionths; 62 500 is the 1/16 of RFC 8257 §4.2.
    pub gain: u32,
    /// α of a new connection, in millionths.
    pub alpha_initial: u32,
    /// Least window after a reduction, in segments, at least 1; RFC 8257 has 2, by RFC 5681.
    pub window_min: u32,
}

/// Swift's parameters (Kumar et al. 2020, §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwiftParameters {
    /// Target of the round-trip time with a large window.
    pub target: Duration,
    /// Largest addition to the target, for a window far below a segment (`fs_range`).
    pub scaling: Duration,
    /// β, in millionths: decrease of the window as a share of the excess delay.
    pub beta: u32,
    /// Largest decrease at once, in millionths of the window (`max_mdf`).
    pub decrease_max: u32,
}

/// Unit of growth in slow start and congestion avoidance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// One segment an ACK of any length (Linux before 3.18 with `tcp_abc` 0; RFC 5681 without byte counting).
    PerAck,
    /// One segment for each segment that the ACK covers (Linux since 3.18).
    PerSegment,
    /// Bytes acknowledged, at most one segment an ACK in slow start (RFC 5681 equations 2 and 3).
    PerByte,
    /// One segment an ACK in slow start; `mss² / cwnd` bytes an ACK in congestion avoidance. An ACK counts if it covers a whole
    /// segment, with what former ones left over (ns-3).
    Ns3,
}

/// Rule of loss detection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossDetection {
    /// Three duplicate ACKs (RFC 5681), partial ACKs in recovery (RFC 6582). Used by every profile when SACK
    /// is off.
    DuplicateAcks,
    /// SACK with the `IsLost` rule of RFC 6675.
    Rfc6675,
    /// Forward acknowledgement: a segment is lost that lies further below the highest SACK than the reordering degree
    /// (Linux before 4.15).
    Fack,
    /// RACK (RFC 8985), as in Linux.
    Rack,
}

/// Rule of the window's reduction in fast recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// Reduction at once to the slow-start threshold (RFC 5681, RFC 6675).
    AtOnce,
    /// Reduction by one segment at every second ACK (`tcp_cwnd_down`, Linux before 3.7).
    RateHalving,
    /// Proportional rate reduction (RFC 6937 with the slow-start reduction bound, Linux since 3.2).
    Proportional,
    /// Recovery of ns-3 without SACK: `TcpSocketBase` and `TcpTxBuffer` of 3.44 with `TcpPrrRecovery`. With SACK or ECN it
    /// reduces the window alike, and otherwise recovers as other profiles do.
    Ns3,
}

/// Rules of a retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutRules {
    /// RFC 5681 equation 4 (half the flight, once for each loss) and Karn's algorithm. The back-off lasts until
    /// the acknowledgement of a segment that was not retransmitted.
    Rfc6298,
    /// `TcpSocketBase::ReTxTimeout` and `NewAck` of ns-3. Each timeout takes half of the pipe, and any new
    /// acknowledgement ends the back-off. Duplicate ACKs count again once all data sent before the timeout is
    /// acknowledged.
    Ns3,
}

/// Congestion window validation: growth of a window that the application does not use (RFC 2861, RFC 7661).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Validation {
    /// The window grows whether it is used or not (ns-3).
    None,
    /// `tcp_is_cwnd_limited` of Linux before 3.16: the window grows when at most three segments of it are unused.
    Burst,
    /// `tcp_is_cwnd_limited` of Linux since 3.16: in slow start the window grows while it is less than twice the largest
    /// flight.
    MaximumFlight,
}

/// Source of round-trip samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RttSource {
    /// The timestamp option if it is on, as Linux did before 4.13.
    TimestampFirst,
    /// The transmission time of the oldest segment acknowledged that was sent once.
    Transmissions,
}

/// The retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtoConfig {
    /// RTO before the first sample (RFC 6298 §2.1).
    pub initial: Duration,
    /// Least RTO. [`RtoEstimator::Linux`] applies it to the variation term, so that the least RTO is
    /// `srtt + min`.
    pub min: Duration,
    /// Largest RTO, back-off included.
    pub max: Duration,
    /// The estimator of the round-trip time.
    pub estimator: RtoEstimator,
    /// Largest random addition to each timeout, in 1/1024 of the RTO (Vasudevan et al. 2009 §4); the endpoint's salt
    /// seeds it. 0 for none.
    pub spread: u32,
}

/// The estimator of the retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtoEstimator {
    /// RFC 6298: `max(srtt + max(granularity, 4 rttvar), min)`.
    Rfc6298 {
        /// The clock granularity G.
        granularity: Duration,
    },
    /// `tcp_rtt_estimator` and `tcp_set_rto`: the variation is the largest of a flight, decays by a quarter a
    /// flight, and is at least the minimum RTO.
    Linux,
}

/// Delayed acknowledgements of in-order data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelayedAck {
    /// At once, every segment (`quickack 1` on the route).
    Off,
    /// Every second full segment, or after the timeout (RFC 1122, RFC 5681).
    Rfc1122 {
        /// Longest delay of an acknowledgement.
        timeout: Duration,
    },
    /// Linux: quick-ACK phases, interactive mode, and an adaptive timeout between 40 ms and `max`.
    Linux {
        /// Largest timeout: `TCP_DELACK_MAX`, 200 ms.
        max: Duration,
    },
}

/// A burst waits for more ACKs while it is smaller than this part of the window (`tcp_tso_win_divisor`).
const BURST_WINDOW_DIVISOR: u32 = 3;

/// Segmentation offload on the sending side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segmentation {
    /// Largest burst in bytes: 65 536 in Linux. One segment or less turns bursts off.
    pub offload_burst: u32,
    /// A burst waits for more ACKs while it is smaller than 1/n of the window (`tcp_tso_win_divisor`); 0 for never.
    pub window_divisor: u32,
    /// True if bursts are sized to a millisecond of the path's rate (`tcp_tso_autosize`, since 3.12).
    pub autosize: bool,
}

/// Settings of a TCP stack. One value serves many endpoints and is passed to every call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The implementation, for all rules without a setting of their own. A profile sets it together with the other settings, which
    /// may then be changed one by one.
    pub stack: Stack,
    /// Payload of a full segment in bytes: the MSS less the options that every segment carries.
    pub mss: u16,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Tick of the timestamp clock.
    pub timestamp_tick: Duration,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Duplicate SACK reports (RFC 2883).
    pub dsack: bool,
    /// ECN (RFC 3168): data is sent as ECN-capable, marks are echoed.
    pub ecn: bool,
    /// DCTCP's marks (RFC 8257 §3.2): each acknowledgement echoes the mark of the segments that it covers, and
    /// every segment is ECN-capable, as in Linux (`INET_ECN_xmit`). Needs [`Self::ecn`].
    pub ecn_exact: bool,
    /// The path-window option on every segment with data, and its echo on acknowledgements. Switches on the path lower the
    /// window in it, which bounds the sender's congestion window.
    pub path_window: bool,
    /// Bytes that a sender deducts from the path window, for its options. Zero if the switch deducts them (M21TCP
    /// §III.C.1).
    pub path_window_deduction: u32,
    /// Unit of windows and flights.
    pub unit: WindowUnit,
    /// Initial window in segments.
    pub initial_window: u32,
    /// Initial slow-start threshold in segments; `u32::MAX` for none.
    pub initial_ssthresh: u32,
    /// The congestion control with its parameters.
    pub congestion_control: CongestionConfig,
    /// Unit of growth in slow start and congestion avoidance.
    pub growth: Growth,
    /// Congestion window validation.
    pub validation: Validation,
    /// True if slow start begins again after an idle time of one RTO (`tcp_slow_start_after_idle`, RFC 2861, RFC 5681 §4.1).
    pub slow_start_after_idle: bool,
    /// Loss detection where SACK is on. Without SACK, duplicate ACKs and [`stack`](Self::stack) decide.
    pub loss_detection: LossDetection,
    /// Duplicate-ACK threshold, or the initial reordering degree, in segments.
    pub reordering: u32,
    /// Largest reordering degree learnt, in segments (`tcp_max_reordering`); equal to `reordering` for none.
    pub reordering_max: u32,
    /// Window reduction in recovery.
    pub reduction: Reduction,
    /// Rules of a retransmission timeout.
    pub timeout_rules: TimeoutRules,
    /// True for the Impatient variant of NewReno, as RFC 3782 §4 names it (rule: RFC 6582 §3.2 step 3). Without SACK, only the
    /// first partial ACK of a recovery restarts the retransmission timer. Recovery from many losses may then end in a timeout. A
    /// retransmission leaves a running timer alone, too.
    pub is_impatient_variant: bool,
    /// Limited transmit (RFC 3042): the first duplicate ACKs release new segments.
    pub limited_transmit: bool,
    /// Tail loss probes (RFC 8985 §7).
    pub tail_loss_probe: bool,
    /// Undo of needless reductions (RFC 3522 Eifel, RFC 3708 DSACK) and detection of spurious timeouts
    /// (RFC 5682).
    pub undo: bool,
    /// Bounds and rules of the retransmission timeout.
    pub rto: RtoConfig,
    /// Source of round-trip samples.
    pub rtt_source: RttSource,
    /// Tick of the round-trip time's clock: a jiffy, or 1 µs.
    pub rtt_tick: Duration,
    /// Tick of the timers, 1/HZ; one picosecond for exact timers.
    pub timer_granularity: Duration,
    /// True if timers are rounded up to the levels of Linux's timer wheel (since 4.8).
    pub timer_wheel: bool,
    /// Rule of delayed acknowledgements.
    pub delayed_ack: DelayedAck,
    /// True if a full segment with PSH is acknowledged as soon as it is read, like a short one
    /// (`tcp_measure_rcv_mss` since 6.7).
    pub pushes_full: bool,
    /// Segments out of order widen the receive window as well, with SACK (`tcp_data_queue_ofo` since 3.12).
    pub grows_out_of_order: bool,
    /// True if ACKs of data out of order are compressed, after the first three, with SACK
    /// (`tcp_comp_sack_delay_ns` and `tcp_comp_sack_nr`, since 4.18).
    pub compressed_sacks: bool,
    /// True if short segments do not wait for outstanding data (`TCP_NODELAY`). If false, Nagle's algorithm delays them.
    pub nodelay: bool,
    /// True if a burst fills the end of the offered window with a short segment
    /// (`tcp_mss_split_point` without Nagle, since 3.13).
    pub fills_window: bool,
    /// Segmentation offload; `None` sends each segment by itself.
    pub segmentation: Option<Segmentation>,
    /// Least segments of a burst that is sized to the path (`tcp_min_tso_segs`).
    pub burst_segments_min: u32,
    /// Generic receive offload: one acknowledgement decision for each burst that arrives whole.
    pub receive_offload: bool,
    /// Largest receive window in bytes, at most [`RECEIVE_WINDOW_MAX`].
    pub receive_window: u32,
    /// Receive window at the start, in bytes. It grows by two segments for each full one received (`tcp_grow_window`).
    pub receive_window_initial: u32,
    /// Window scale: the window offered is rounded up to a multiple of 2 to this power (RFC 7323 §2).
    pub window_scale: u8,
    /// True if a smaller window withdraws offered bytes (`tcp_shrink_window`).
    pub shrink_window: bool,
    /// True if segments are at most half the largest window offered (`tcp_bound_to_half_wnd`).
    pub half_window_mss: bool,
    /// Addition to the probe timeout of a flight of one segment: the minimum RTO (`tcp_rto_min_us`).
    pub probe_delayed_ack: Duration,
}

impl Config {
    /// Bytes of the options that every data segment carries.
    pub(crate) fn option_bytes(&self) -> u16 {
        let timestamps = if self.timestamps { TIMESTAMP_BYTES } else { 0 };
        let path_window = if self.path_window { PATH_WINDOW_BYTES } else { 0 };
        (timestamps + path_window) as u16
    }

    /// A full segment in units of the window.
    #[inline]
    pub(crate) fn segment_units(&self) -> u32 {
        match self.unit {
            WindowUnit::Segments => 1,
            WindowUnit::Bytes => u32::from(self.mss),
        }
    }

    /// Window units of `bytes` bytes in segments of `mss` bytes, of which the last may be short.
    #[inline]
    pub(crate) fn units(&self, bytes: u32, mss: u16) -> u32 {
        match self.unit {
            WindowUnit::Bytes => bytes,
            WindowUnit::Segments => {
                let mss = u32::from(mss);
                if bytes <= mss { u32::from(bytes > 0) } else { bytes.div_ceil(mss) }
            }
        }
    }

    /// Converts window units to bytes. A segment counts as a full one.
    #[inline]
    pub(crate) fn bytes(&self, units: u32) -> u64 {
        match self.unit {
            WindowUnit::Segments => u64::from(units) * u64::from(self.mss),
            WindowUnit::Bytes => u64::from(units),
        }
    }

    /// The rule of loss detection in force: duplicate ACKs if SACK is off.
    #[inline]
    pub(crate) fn detection(&self) -> LossDetection {
        if self.sack { self.loss_detection } else { LossDetection::DuplicateAcks }
    }

    /// The MSS that the own SYN announces: a full segment's payload and options (`advmss`).
    #[inline]
    pub(crate) fn advertised_mss(&self) -> u32 {
        u32::from(self.mss) + if self.timestamps { TIMESTAMP_BYTES } else { 0 }
    }

    /// Sets the largest burst of segmentation offload in bytes; `None` turns bursts off. BBR then keeps the profile's: it paces bursts
    /// of the stack (`tcp_tso_autosize`), whatever the network card does.
    pub fn set_offload_burst(&mut self, largest: Option<u32>) {
        let autosize = self.segmentation.is_some_and(|segmentation| segmentation.autosize);
        if largest.is_some() || self.congestion_control != CongestionConfig::Bbr {
            self.segmentation = largest.map(|offload_burst| Segmentation {
                offload_burst,
                window_divisor: BURST_WINDOW_DIVISOR,
                autosize,
            });
        }
    }

    /// Sets the least retransmission timeout. A tail loss probe adds the same time for a delayed ACK (`tcp_schedule_loss_probe`).
    /// Linux 6 rounds it up to ticks (`tcp_rto_min_us`), and delays no ACK longer than it less a tick (`tcp_delack_max`, since 6.11).
    /// [`stack`](Self::stack), [`timer_granularity`](Self::timer_granularity), [`delayed_ack`](Self::delayed_ack) and the largest timeout are set before;
    /// a largest one below the least is raised to it.
    pub fn set_rto_min(&mut self, least: Duration) {
        let tick = self.timer_granularity.get().max(1);
        let is_linux_6 = self.is_linux_6();
        let least = if is_linux_6 { Duration::new(least.get().next_multiple_of(tick)) } else { least };
        (self.rto.min, self.probe_delayed_ack) = (least, least);
        self.rto.max = self.rto.max.max(least);
        if let DelayedAck::Linux { max } = &mut self.delayed_ack
            && is_linux_6
        {
            *max = (*max).min(Duration::new(least.get().max(2 * tick) - tick));
        }
    }

    /// Returns true if the whole recovery follows ns-3 without SACK, not only the reduction of the window.
    #[inline]
    pub(crate) fn recovers_as_ns3(&self) -> bool {
        self.reduction == Reduction::Ns3 && !self.sack && !self.ecn
    }

    /// Returns true if the rules without a setting of their own are those of Linux 6. By `tcp_fastretrans_alert` since 5.14, an undone
    /// recovery begins again where the same ACK shows a loss. A hole that an original fills late counts as reordering. F-RTO sends
    /// new data.
    #[inline]
    pub(crate) fn is_linux_6(&self) -> bool {
        self.stack == Stack::Linux6
    }

    /// The initial window in units.
    #[inline]
    pub(crate) fn initial_cwnd(&self) -> u32 {
        match self.congestion_control {
            CongestionConfig::Static { static_window } => static_window.saturating_mul(self.segment_units()),
            CongestionConfig::NewReno
            | CongestionConfig::Cubic(_)
            | CongestionConfig::Dctcp(_)
            | CongestionConfig::Swift(_)
            | CongestionConfig::Bbr => self.initial_window.saturating_mul(self.segment_units()),
        }
    }

    /// Expiry of a timer of `delay` that starts now: `jiffies + delay`, rounded up to the tick, then to the granularity of
    /// the timer wheel's level. By `calc_wheel_index` the first 64 ticks have granularity 1, and each further factor of 8
    /// is 8 times coarser.
    pub(crate) fn timer_expiry(&self, now: Instant, delay: Duration) -> Instant {
        let tick = self.timer_granularity.get();
        if tick <= 1 {
            return now.checked_add(delay).unwrap_or(Instant::FAR_FUTURE);
        }
        let start = now.get() / tick;
        let mut ticks = start + delay.get().div_ceil(tick);
        if self.timer_wheel {
            let mut span = ticks - start;
            let mut shift = 0;
            while span >= 64 && shift < 24 {
                span >>= 3;
                shift += 3;
            }
            // A timer never expires early: it is put one granule later (since 4.16).
            ticks = ((ticks >> shift) + 1) << shift;
        } else {
            // Without the wheel a timer expires at the first tick after its time.
            ticks += u64::from(ticks == start);
        }
        Instant::new(ticks.saturating_mul(tick))
    }

    /// Time from the transmission of the timestamp `ts_echo` to `now`, in picoseconds.
    #[inline]
    pub(crate) fn since_timestamp(&self, now: Instant, ts_echo: u32) -> u64 {
        u64::from(self.timestamp(now).wrapping_sub(ts_echo)) * self.timestamp_tick.get()
    }

    /// The timestamp clock at `now`, in ticks of [`Self::timestamp_tick`], plus one.
    #[inline]
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        // 0 is left for "no timestamp".
        (now.get() / self.timestamp_tick.get()) as u32 + 1
    }
}
