//! One end of an established connection: its state, and how it is driven.

use alloc::boxed::Box;

use fanin_units::{Duration, Instant};

use crate::config::Config;
use crate::congestion::{Algorithm, CongestionWindow};
use crate::flight::Flight;
use crate::receiver::Receiver;
use crate::recovery::RecoveryState;
use crate::rto::RttEstimator;
use crate::segment::{Flags, Segment};
use crate::timers::Timer;

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
    /// Retransmission time-out in force.
    pub rto: Duration,
    /// State of congestion control.
    pub state: CongestionState,
}

/// The state of congestion control (`tcp_ca_state` of Linux).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub enum CongestionState {
    /// No sign of loss.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs arrive, too few to prove a loss.
    Disorder,
    /// The congestion window is being reduced (CWR) after an ECN echo.
    Cwr,
    /// Fast recovery after a loss.
    Recovery,
    /// Recovery after a retransmission time-out.
    Loss,
}

/// Counters that the fast path does not touch.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counters {
    pub(crate) retransmits: u32,
    pub(crate) timeouts: u32,
    pub(crate) fast_retransmits: u32,
    pub(crate) tail_loss_probes: u32,
    pub(crate) window_probes: u32,
    pub(crate) spurious: u32,
    pub(crate) ecn_reductions: u32,
}

/// A transmission that the congestion window does not govern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Forced {
    None,
    /// A tail loss probe (RFC 8985 §7.3).
    TailLossProbe,
    /// A probe of a closed window (RFC 9293 §3.8.6.1).
    WindowProbe,
    /// The first lost segment, when fast recovery begins or after a time-out.
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
/// The fields stand in the order of use: those of every call, those of a receiver of data, those of a sender.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Endpoint {
    // Every call.
    /// Lower bound of the time at which a timer expires, in ps.
    pub(crate) deadline_bound: u64,
    /// `None` while nothing is lost, SACKed or retransmitted.
    pub(crate) recovery: Option<Box<RecoveryState>>,
    /// Next offset to send (SND.NXT).
    pub(crate) snd_nxt: u64,
    pub(crate) timer: Timer,
    pub(crate) ca_state: CongestionState,
    pub(crate) forced: Forced,
    /// The rest of the window waits for the next ACK, to make a larger burst (`tcp_tso_should_defer`).
    pub(crate) tso_deferred: bool,
    /// New segments were sent since the use of the congestion window was last validated.
    pub(crate) cwnd_unvalidated: bool,
    /// Idleness was checked since the application last wrote or the offered window opened.
    pub(crate) idle_checked: bool,
    /// Segment size in force, at most the configured one.
    pub(crate) mss: u16,
    // Every segment received.
    /// Oldest unacknowledged offset (SND.UNA).
    pub(crate) snd_una: u64,
    /// End of the bytes that the application has written (`write_seq`).
    pub(crate) write_seq: u64,
    /// Right edge of the window offered by the peer (SND.UNA + SND.WND).
    pub(crate) snd_wnd_end: u64,
    /// Offset of the segment that last updated the window, plus one (SND.WL1); 0 before the first.
    pub(crate) snd_wl1: u64,
    /// Largest window that the peer has offered (`max_window`).
    pub(crate) max_window: u32,
    pub(crate) acks_sent: u32,
    pub(crate) receiver: Receiver,
    pub(crate) counters: Counters,
    /// Reordering degree in units of the window.
    pub(crate) reordering: u32,
    /// Seed of the random share of time-outs.
    pub(crate) salt: u64,
    // Sending data.
    pub(crate) flight: Flight,
    /// End of the flight over which the round-trip variation is measured (`rtt_seq`).
    pub(crate) rtt_seq: u64,
    /// When the retransmission timer was started, in ps, and its duration.
    pub(crate) timer_base: u64,
    pub(crate) timer_delay: u64,
    /// When a segment with payload was last sent, in ps; 0 before the first.
    pub(crate) last_sent_at: u64,
    pub(crate) segments_sent: u64,
    /// Largest flight of the present window (`max_packets_out`), and the offset that ends that window.
    pub(crate) max_packets_out: u32,
    /// Largest flight since `cwnd_stamp` (`snd_cwnd_used`).
    pub(crate) cwnd_used: u32,
    pub(crate) cwnd_usage_seq: u64,
    /// When the congestion window was last in full use (`snd_cwnd_stamp`).
    pub(crate) cwnd_stamp: u64,
    /// Segments sent of the present segmentation-offload burst, and its size.
    pub(crate) burst_segments: u8,
    pub(crate) burst_max: u8,
    /// The congestion window limited the last transmission (`is_cwnd_limited`).
    pub(crate) cwnd_limited: bool,
    /// The next new segment carries CWR.
    pub(crate) send_cwr: bool,
    pub(crate) reordering_seen: bool,
    /// How often the window probe's timer was doubled.
    pub(crate) probe_backoff: u8,
    pub(crate) rtt: RttEstimator,
    pub(crate) congestion: Algorithm,
    pub(crate) window: CongestionWindow,
}

impl Endpoint {
    /// An established connection that has never sent: initial window, no round-trip sample.
    pub fn new(config: &Config) -> Self {
        let initial = config.receive_window_initial.min(config.receive_window);
        Self {
            snd_una: 0,
            snd_nxt: 0,
            write_seq: 0,
            snd_wnd_end: u64::from(initial),
            snd_wl1: 0,
            last_sent_at: 0,
            flight: Flight::default(),
            congestion: Algorithm::new(config),
            window: CongestionWindow::new(config),
            rtt: RttEstimator::new(config),
            rtt_seq: 0,
            deadline_bound: u64::MAX,
            timer_base: 0,
            timer_delay: 0,
            timer: Timer::None,
            ca_state: CongestionState::Open,
            mss: config.mss,
            burst_segments: 0,
            burst_max: 0,
            tso_deferred: false,
            idle_checked: false,
            reordering_seen: false,
            cwnd_limited: false,
            cwnd_unvalidated: false,
            send_cwr: false,
            forced: Forced::None,
            reordering: config.reordering * config.segment_units(),
            max_packets_out: 0,
            cwnd_used: 0,
            cwnd_usage_seq: 0,
            cwnd_stamp: 0,
            max_window: initial,
            probe_backoff: 0,
            salt: 0,
            acks_sent: 0,
            segments_sent: 0,
            recovery: None,
            receiver: Receiver::new(config),
            counters: Counters::default(),
        }
    }

    /// A connection whose handshake has just ended. The handshake gives the first round-trip sample; without one the
    /// first time-out would be the initial RTO of RFC 6298 §2.1, a second or more.
    pub fn established(config: &Config, rtt: Duration) -> Self {
        let mut endpoint = Self::new(config);
        endpoint.rtt.sample(config, (rtt.get() / config.rtt_tick.get()) as u32, true);
        endpoint
    }

    /// An established connection with a history: a window of `cwnd` segments in congestion avoidance, a settled
    /// round-trip estimate, and a fully open receive window.
    pub fn warm(config: &Config, cwnd: u32, rtt: Duration) -> Self {
        let mut endpoint = Self::new(config);
        endpoint.window.cwnd = cwnd.max(1) * config.segment_units();
        endpoint.window.ssthresh = endpoint.window.cwnd;
        let ticks = (rtt.get() / config.rtt_tick.get()) as u32;
        // Samples until the variation has settled, as on a connection that has run for long.
        for _ in 0..32 {
            endpoint.rtt.sample(config, ticks, true);
        }
        endpoint.receiver.open_fully(config);
        endpoint.snd_wnd_end = u64::from(config.receive_window);
        endpoint.max_window = config.receive_window;
        endpoint
    }

    /// Starts the sending half with the window that the peer offered in the handshake, which ended now.
    pub(crate) fn start(&mut self, config: &Config, now: Instant, peer_window: u32) {
        assert_eq!((self.snd_una, self.snd_nxt), (0, 0), "data was sent before the handshake ended");
        self.snd_wnd_end = 0;
        self.max_window = 0;
        self.update_window(config, u64::from(peer_window), peer_window);
        self.note_cwnd_used(now);
    }

    /// The application appends `bytes` to its stream.
    #[inline]
    pub fn write(&mut self, bytes: u64) {
        self.write_seq += bytes;
        self.tso_deferred = false;
        self.idle_checked = false;
    }

    /// Bytes that the application has written so far.
    #[inline]
    pub fn written(&self) -> u64 {
        self.write_seq
    }

    /// Bytes received in order so far.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.receiver.rcv_nxt
    }

    /// Bytes of the own stream that the peer has acknowledged (SND.UNA).
    #[inline]
    pub fn acked(&self) -> u64 {
        self.snd_una
    }

    /// Next offset to be sent for the first time (SND.NXT).
    #[inline]
    pub fn sent(&self) -> u64 {
        self.snd_nxt
    }

    /// Payload bytes sent and not yet acknowledged.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.snd_nxt - self.snd_una
    }

    /// Bytes written and not yet sent.
    #[inline]
    pub(crate) fn unsent(&self) -> u64 {
        self.write_seq - self.snd_nxt
    }

    /// Right edge of the window offered by the peer: only probes are sent beyond it.
    pub fn window_edge(&self) -> u64 {
        self.snd_wnd_end
    }

    /// Retransmission time-outs so far.
    #[inline]
    pub fn timeouts(&self) -> u64 {
        u64::from(self.counters.timeouts)
    }

    /// Takes a segment from the network. Drain [`poll_transmit`](Self::poll_transmit) afterwards.
    #[inline(always)]
    pub fn handle_segment(&mut self, config: &Config, now: Instant, segment: &Segment) {
        debug_assert!(
            !segment.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST),
            "a `TcpConnection` handles these"
        );
        self.tso_deferred = false;
        self.receiver.note_timestamp(segment);
        self.handle_ack(config, now, segment);
        if segment.payload > 0 {
            let deadline = self.receiver.handle_data(config, now, segment, &self.rtt);
            self.deadline_bound = self.deadline_bound.min(deadline.get());
        } else if segment.offset < self.receiver.rcv_nxt {
            // A window probe or keep-alive is acknowledged at once.
            self.receiver.ack_now();
        }
        self.assert_order();
    }

    /// SND.UNA, SND.NXT and the end of the written bytes stand in order, and so do the sums of the flight.
    #[inline]
    pub(crate) fn assert_order(&self) {
        debug_assert!(self.snd_una <= self.snd_nxt, "acknowledged before it was sent");
        debug_assert!(self.snd_nxt <= self.write_seq, "sent before it was written");
        debug_assert!(self.flight.sacked <= self.flight.size, "more SACKed than outstanding");
        debug_assert!(self.flight.lost <= self.flight.size, "more lost than outstanding");
        debug_assert!(self.window.cwnd > 0, "a closed congestion window never opens again");
    }

    /// When [`handle_deadline`](Self::handle_deadline) is due, [`Instant::FAR_FUTURE`] for never. It may be earlier than
    /// a timer's expiry: the call then only moves it, so that restarting a timer costs nothing while data flows.
    #[inline]
    pub fn poll_deadline(&self) -> Instant {
        Instant::new(self.deadline_bound)
    }

    /// Runs the timers that have expired. Drain [`poll_transmit`](Self::poll_transmit) afterwards.
    pub fn handle_deadline(&mut self, config: &Config, now: Instant) {
        if now.get() < self.deadline_bound {
            return;
        }
        if self.receiver.is_due(config, now) {
            self.receiver.handle_deadline(config, now, self.rtt.rto(config));
        }
        if self.timer_expiry(config) <= now.get() {
            self.handle_timer(config, now);
            self.release_recovery();
        }
        self.deadline_bound = self.timer_expiry(config).min(self.receiver.deadline(config));
        debug_assert!(self.deadline_bound > now.get(), "a timer that has expired is due again");
        self.assert_order();
    }
}
