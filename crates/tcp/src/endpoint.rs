//! One end of an established connection: its state and the calls that drive it.

use alloc::boxed::Box;

use fanin_units::{Duration, Instant};

use crate::ca_state::CongestionState;
use crate::config::Config;
use crate::congestion::{Algorithm, CongestionWindow};
use crate::cwnd_validation::CwndUsage;
use crate::flight::Flight;
use crate::loss_detection::ReorderingDegree;
use crate::receiver::{AckState, Receiver};
use crate::recovery::RecoveryState;
use crate::rto::RttEstimator;
use crate::segment::{Flags, Segment};
use crate::segmentation::OffloadBurst;
use crate::send_sequence::SendSequence;
use crate::timers::SenderTimer;

/// Counters and state of an endpoint, for records and traces.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Segments sent with payload, retransmissions included.
    pub segments: u64,
    /// Segments sent without payload.
    pub acks: u64,
    /// Retransmitted segments, tail loss probes included.
    pub retransmits: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_retransmits: u64,
    /// Tail loss probes (RFC 8985 §7).
    pub tail_loss_probes: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Retransmissions that proved needless (by DSACK, or by timestamps when a reduction was undone).
    pub spurious_retransmits: u64,
    /// Window reductions after an ECN echo.
    pub ecn_reductions: u64,
    /// DCTCP's α in millionths; 0 under any other congestion control.
    pub alpha_ppm: u32,
    /// Congestion window in bytes; a segment counts as a full one.
    pub cwnd: u64,
    /// Slow-start threshold in bytes, `u64::MAX` for none.
    pub ssthresh: u64,
    /// Bytes estimated to be in the network (the pipe of RFC 6675). A segment counts as a full one where the profile
    /// counts segments.
    pub pipe: u64,
    /// Smoothed round-trip time, zero before the first sample.
    pub srtt: Duration,
    /// Retransmission timeout in force.
    pub rto: Duration,
    /// State of congestion control.
    pub state: CongestionState,
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counters {
    /// Segments with payload, retransmissions included.
    pub(crate) segments: u64,
    pub(crate) acks: u32,
    pub(crate) retransmits: u32,
    pub(crate) timeouts: u32,
    pub(crate) fast_retransmits: u32,
    pub(crate) tail_loss_probes: u32,
    pub(crate) window_probes: u32,
    pub(crate) spurious: u32,
    pub(crate) ecn_reductions: u32,
}

/// A transmission outside the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Forced {
    None,
    /// A tail loss probe (RFC 8985 §7.3).
    TailLossProbe,
    /// A probe of a closed window (RFC 9293 §3.8.6.1).
    WindowProbe,
    /// The first lost segment: when fast recovery begins, after a timeout, and at a partial ACK without SACK.
    LostHead,
}

/// The result of [`Endpoint::write_transmit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// Nothing; the segment is unchanged.
    Nothing,
    /// A segment; another may follow.
    Segment,
    /// A segment; none follows.
    Last,
}

/// One end of one established connection, without set-up and tear-down: [`TcpConnection`](crate::TcpConnection) adds these.
///
/// Drive it with [`handle_segment`](Self::handle_segment), [`handle_deadline`](Self::handle_deadline) and
/// [`write`](Self::write); after each call drain [`poll_transmit`](Self::poll_transmit). One [`Config`] serves any number
/// of endpoints and is passed to every call.
///
/// The fields are in the order of use: first those that every call touches, then those of a receiver, then of a sender.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Endpoint {
    // Every call.
    pub(crate) timer: SenderTimer,
    /// `None` while nothing is lost, SACKed or retransmitted.
    pub(crate) recovery: Option<Box<RecoveryState>>,
    pub(crate) send: SendSequence,
    pub(crate) ca_state: CongestionState,
    pub(crate) forced: Forced,
    pub(crate) burst: OffloadBurst,
    /// True if the next new segment carries CWR.
    pub(crate) is_cwr_due: bool,
    // Every segment received.
    pub(crate) receiver: Receiver,
    pub(crate) counters: Counters,
    pub(crate) reordering: ReorderingDegree,
    // Sending data.
    pub(crate) flight: Flight,
    /// Time of the last segment with payload, in ps; 0 before the first.
    pub(crate) last_sent_at: u64,
    pub(crate) usage: CwndUsage,
    pub(crate) rtt: RttEstimator,
    pub(crate) congestion: Algorithm,
    pub(crate) window: CongestionWindow,
}

impl Endpoint {
    /// Makes an established connection that has never sent: initial window, no round-trip sample.
    pub fn new(config: &Config) -> Self {
        let peer_window = config.receive_window_initial.min(config.receive_window);
        Self {
            timer: SenderTimer::new(),
            recovery: None,
            send: SendSequence::new(config, peer_window),
            ca_state: CongestionState::Open,
            forced: Forced::None,
            burst: OffloadBurst::default(),
            is_cwr_due: false,
            receiver: Receiver::new(config),
            counters: Counters::default(),
            reordering: ReorderingDegree::new(config),
            flight: Flight::default(),
            last_sent_at: 0,
            usage: CwndUsage::default(),
            rtt: RttEstimator::new(config),
            congestion: Algorithm::new(config),
            window: CongestionWindow::new(config),
        }
    }

    /// Makes an endpoint after the handshake, which gives the first round-trip sample. Without a sample, the first
    /// timeout would be the initial RTO of RFC 6298 §2.1, a second or more.
    pub fn established(config: &Config, rtt: Duration) -> Self {
        let mut endpoint = Self::new(config);
        endpoint.rtt.sample(config, (rtt.get() / config.rtt_tick.get()) as u32, 0, 0);
        endpoint
    }

    /// Makes an established connection in the state after a long transfer. The window has `cwnd` segments, in congestion
    /// avoidance. The estimate of the round-trip time has settled at `rtt`, and the receive window is fully open.
    pub fn warm(config: &Config, cwnd: u32, rtt: Duration) -> Self {
        let mut endpoint = Self::new(config);
        endpoint.window.cwnd = cwnd.max(1) * config.segment_units();
        endpoint.window.ssthresh = endpoint.window.cwnd;
        let ticks = (rtt.get() / config.rtt_tick.get()) as u32;
        // Samples until the variation has settled, as on a long-lived connection; each sample ends a flight.
        for _ in 0..32 {
            endpoint.rtt.sample(config, ticks, 1, 0);
        }
        endpoint.receiver.open_fully(config);
        endpoint.send.open_window(config.receive_window);
        endpoint
    }

    /// Starts the sending half at the handshake's end, with the peer's offered window.
    pub(crate) fn start(&mut self, config: &Config, now: Instant, peer_window: u32) {
        self.send.start(config, peer_window);
        self.usage.check_idleness_again();
        self.usage.restart(now);
    }

    /// Appends `bytes` of the application to the stream.
    #[inline]
    pub fn write(&mut self, bytes: u64) {
        if self.congestion.models_path() {
            self.note_write();
        }
        self.send.write(bytes);
        self.burst.resume();
        self.usage.check_idleness_again();
    }

    /// Bytes that the application has written so far.
    #[inline]
    pub fn written(&self) -> u64 {
        self.send.written()
    }

    /// Bytes received in order so far.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.receiver.rcv_nxt
    }

    /// Bytes of the own stream that the peer has acknowledged (SND.UNA).
    #[inline]
    pub fn acked(&self) -> u64 {
        self.send.una()
    }

    /// Next offset to be sent for the first time (SND.NXT).
    #[inline]
    pub fn sent(&self) -> u64 {
        self.send.nxt()
    }

    /// Payload bytes sent and not yet acknowledged.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.send.outstanding()
    }

    /// Right edge of the window offered by the peer: only probes are sent beyond it. For drivers that check or record segments, as
    /// the tests do.
    pub fn window_edge(&self) -> u64 {
        self.send.window_end()
    }

    /// Retransmission timeouts so far.
    #[inline]
    pub fn timeouts(&self) -> u64 {
        u64::from(self.counters.timeouts)
    }

    /// Window reductions after an ECN echo so far.
    pub fn ecn_reductions(&self) -> u64 {
        u64::from(self.counters.ecn_reductions)
    }

    /// Returns true if the probe timeout has expired (RFC 8985 §7.3): the next segment is a tail loss probe.
    #[inline]
    pub fn owes_probe(&self) -> bool {
        self.forced == Forced::TailLossProbe
    }

    /// Handles a segment from the network. Drain [`poll_transmit`](Self::poll_transmit) afterwards.
    ///
    /// # Panics
    /// If the segment has SYN, FIN or RST, which a [`TcpConnection`](crate::TcpConnection) handles.
    #[inline(always)]
    pub fn handle_segment(&mut self, config: &Config, now: Instant, segment: &Segment) {
        assert!(
            !segment.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST),
            "an endpoint gets a SYN, FIN or RST, which a `TcpConnection` handles"
        );
        self.burst.resume();
        self.receiver.note_timestamp(segment);
        self.handle_ack(config, now, segment);
        if segment.payload > 0 {
            let deadline = self.receiver.handle_data(config, now, segment, &self.rtt);
            self.timer.note_deadline(deadline);
        } else if segment.offset < self.receiver.rcv_nxt {
            // A window probe or keep-alive is acknowledged at once.
            self.receiver.ack_now();
        }
        self.assert_order();
    }

    /// Acknowledges a FIN without data, whose arrival found the receiver in the state `before`.
    pub(crate) fn acknowledge_fin(&mut self, config: &Config, now: Instant, before: AckState) {
        let deadline = self.receiver.acknowledge_fin(config, now, before, &self.rtt);
        self.timer.note_deadline(deadline);
    }

    /// Asserts the order of the flight's sums. Every method of [`SendSequence`] asserts the order of the positions. They
    /// stay out of release builds, where they would exceed the permitted cost of a packet-hop.
    #[inline]
    pub(crate) fn assert_order(&self) {
        if cfg!(debug_assertions) {
            self.send.assert_order();
        }
        debug_assert_eq!(
            self.send.is_idle(),
            self.flight.size == 0,
            "a flight without data, or data without a flight"
        );
        debug_assert!(self.flight.sacked <= self.flight.size, "more SACKed than outstanding");
        debug_assert!(self.flight.lost <= self.flight.size, "more lost than outstanding");
        debug_assert!(self.window.cwnd > 0, "the congestion window is closed and never opens again");
    }

    /// Time at which [`handle_deadline`](Self::handle_deadline) is due, [`Instant::FAR_FUTURE`] for never. It may be
    /// earlier than a timer's expiry: the call then only updates it. So restarting a timer costs nothing while data
    /// flows.
    #[inline]
    pub fn poll_deadline(&self) -> Instant {
        Instant::new(self.timer.deadline_bound())
    }

    /// Runs the timers that have expired. Drain [`poll_transmit`](Self::poll_transmit) afterwards.
    pub fn handle_deadline(&mut self, config: &Config, now: Instant) {
        if now.get() < self.timer.deadline_bound() {
            return;
        }
        self.receiver.handle_deadline(config, now, self.rtt.rto(config));
        if let Some(expired) = self.timer.take_expired(config, now) {
            self.handle_timer(config, now, expired);
            self.release_recovery();
        }
        self.timer.update_deadline(config, now, self.receiver.deadline(config));
        self.assert_order();
    }
}
