//! The receiving half of an endpoint: the received data, and their acknowledgement in outgoing segments.
//!
//! Follows `tcp_data_queue` and its callees of `net/ipv4/tcp_input.c`.

mod delayed_ack;
mod marks;
mod out_of_order;
mod window;

use alloc::boxed::Box;

use fanin_units::Instant;
use fanin_units::tcp::DELAYED_ACK_MIN_LINUX;

use crate::config::{Config, RECEIVE_WINDOW_MAX};
use crate::rto::RttEstimator;
use crate::segment::{Flags, PATH_WINDOW_BYTES, Segment};
pub(crate) use delayed_ack::AckState;
use out_of_order::OutOfOrder;

/// `TCP_ATO_MIN`, `TCP_DELACK_MIN`, in picoseconds.
const ATO_MIN: u64 = DELAYED_ACK_MIN_LINUX.get();
/// Most quick acknowledgements in a row (`TCP_MAX_QUICKACKS`).
const QUICK_ACKS_MAX: u32 = 16;

// Bits of `Receiver::flags`. One byte, because each segment touches the receiver: eight booleans would make it a word longer.
/// An ACK has to be sent now.
const ACK_NOW: u8 = 1;
/// A path window has arrived.
const PATH_WINDOW_SEEN: u8 = 2;
/// The delayed-ACK timer runs (`ICSK_ACK_TIMER`).
const ACK_TIMER: u8 = 4;
/// A short segment has arrived, or since 6.7 one with PSH (`ICSK_ACK_PUSHED`), and another short one (`ICSK_ACK_PUSHED2`).
const PUSHED: u8 = 8;
const PUSHED_AGAIN: u8 = 16;
/// True if the application answers received data, so that ACKs ride on data (`pingpong`).
const INTERACTIVE: u8 = 32;
/// ACKs echo marks until CWR arrives (`TCP_ECN_DEMAND_CWR`).
const ECHO_MARKS: u8 = 64;
/// The application reads at once.
const READS_AT_ONCE: u8 = 128;

/// The receiving half. Its fields are in the order of use, like those of the endpoint.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    /// Next offset expected (RCV.NXT).
    pub(crate) rcv_nxt: u64,
    /// RCV.NXT when the last ACK was sent (`rcv_wup`).
    rcv_wup: u64,
    /// Right edge of the window offered last (RCV.NXT + RCV.WND).
    rcv_wnd_end: u64,
    /// Time of the last data's arrival, in ps.
    last_data_at: u64,
    /// Delayed-ACK timeout in force, in ps; 0 before the first data (`icsk_ack.ato`).
    ato: u64,
    /// Time at which the delayed ACK is due, in ps.
    delayed_until: u64,
    /// Data received out of order; `None` while everything arrived in order.
    out_of_order: Option<Box<OutOfOrder>>,
    /// End of the measurement of the window's growth, in ps.
    growth_measured_until: u64,
    /// Window in force in bytes, and the bound that the application set.
    window: u32,
    clamp: u32,
    /// Bound of the window's growth for now (`window_clamp`).
    window_max: u32,
    /// Timestamp to echo (TS.Recent of RFC 7323).
    ts_recent: u32,
    /// Path window to echo.
    path_window: u32,
    /// Size of full segments, as seen so far (`rcv_mss`).
    rcv_mss: u16,
    /// ACKs left of the quick-ACK phase (`icsk_ack.quick`).
    quick_acks: u8,
    flags: u8,
    /// The echoed timestamp of the last sample of the round-trip time, and that time in microseconds, times 8 (`rcv_rtt_est`).
    rtt_echo: u32,
    rtt_us: u32,
    /// RCV.NXT when the measurement of the window's growth began.
    growth_measured_from: u64,
    /// If positive, the next ACK acknowledges up to this offset, with the mark from before its change (DCTCP).
    before_change: u64,
    /// Offset up to which the application has read, unless it reads at once.
    read: u64,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Self {
        let window = config.receive_window_initial.min(config.receive_window);
        Self {
            rcv_nxt: 0,
            rcv_wup: 0,
            rcv_wnd_end: u64::from(window),
            last_data_at: 0,
            delayed_until: u64::MAX,
            read: 0,
            ato: 0,
            window,
            clamp: config.receive_window.min(RECEIVE_WINDOW_MAX),
            // Before the first measurement the window may grow by a quarter.
            window_max: Self::window_max(config, window),
            growth_measured_from: 0,
            growth_measured_until: 0,
            ts_recent: 0,
            path_window: 0,
            before_change: 0,
            // tcp_initialize_rcv_mss: 536 until segments have arrived.
            rcv_mss: config.mss.min(536),
            quick_acks: 0,
            flags: READS_AT_ONCE,
            rtt_echo: 0,
            rtt_us: 0,
            out_of_order: None,
        }
    }

    /// The bound of the window before the first measurement: a quarter more than the first window. In Linux that was whole segments
    /// of a buffer of whole pages.
    fn window_max(config: &Config, window: u32) -> u32 {
        let buffer = if config.is_linux_6() { window.next_multiple_of(4096) } else { window };
        (buffer + buffer / 4).min(config.receive_window)
    }

    /// Size of the peer's full segments, as seen so far (`rcv_mss`).
    pub(crate) fn mss(&self) -> u16 {
        self.rcv_mss
    }

    /// Returns true if an ACK has to be sent now.
    #[inline]
    pub(crate) fn wants_ack(&self) -> bool {
        self.flags & ACK_NOW != 0
    }

    /// Makes an ACK due at the next opportunity.
    #[inline]
    pub(crate) fn ack_now(&mut self) {
        self.flags |= ACK_NOW;
    }

    /// Notes the timestamp and the path window of a segment. The echoed timestamp is the oldest unacknowledged segment's (RFC
    /// 7323 §4.3).
    #[inline]
    pub(crate) fn note_timestamp(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::TIMESTAMP) && segment.offset <= self.rcv_wup {
            self.ts_recent = self.ts_recent.max(segment.ts_value);
        }
        if segment.flags.contains(Flags::PATH_WINDOW) {
            self.path_window = segment.path_window;
            self.flags |= PATH_WINDOW_SEEN;
        }
    }

    /// Takes the payload of a segment. Returns a lower bound of the time of a delayed ACK; [`Instant::FAR_FUTURE`] without
    /// one.
    #[inline]
    pub(crate) fn handle_data(
        &mut self,
        config: &Config,
        now: Instant,
        segment: &Segment,
        rtt: &RttEstimator,
    ) -> Instant {
        if config.ecn {
            self.note_marks(config, segment);
        }
        let end = segment.offset + u64::from(segment.payload);
        if segment.offset > self.rcv_nxt || end <= self.rcv_nxt {
            return self.handle_out_of_order(config, now, segment, end, rtt);
        }
        // In order; some of its bytes may have arrived before.
        if segment.offset < self.rcv_nxt && config.dsack {
            self.out_of_order.get_or_insert_default().report_duplicate(segment.offset, self.rcv_nxt);
        }
        debug_assert!(
            segment.offset <= self.rcv_nxt && end > self.rcv_nxt,
            "a segment is taken that is out of order or not new"
        );
        self.rcv_nxt = end;
        let fills_gap = self.out_of_order.is_some() && self.join_out_of_order(config);
        let is_full = segment.payload >= self.rcv_mss;
        self.measure(config, segment, now, rtt);
        if is_full {
            self.grow_window(config, now, segment.payload, rtt);
        }
        if fills_gap {
            // RFC 5681 §4.2: a segment that fills a gap is acknowledged at once.
            self.ack_now();
            if let Some(store) = &mut self.out_of_order {
                store.note_at_once(self.rcv_nxt);
            }
            return Instant::FAR_FUTURE;
        }
        if config.receive_offload && segment.flags.contains(Flags::BURST_CONTINUES) {
            return self.delay_ack(now, ATO_MIN);
        }
        self.schedule_ack(config, now, rtt)
    }

    /// Takes bytes that do not start at RCV.NXT. RFC 5681 §4.2 has them acknowledged at once; Linux joins some of the ACKs. Returns a
    /// lower bound of the time of a delayed ACK.
    #[cold]
    fn handle_out_of_order(
        &mut self,
        config: &Config,
        now: Instant,
        segment: &Segment,
        end: u64,
        rtt: &RttEstimator,
    ) -> Instant {
        let start = segment.offset;
        let is_scheduled = self.flags & ACK_TIMER != 0;
        if end > self.rcv_nxt {
            let change = self.out_of_order.get_or_insert_default().insert(config, start, end);
            if segment.payload >= self.rcv_mss {
                self.measure_rtt(config, now, segment);
                if config.grows_out_of_order && config.sack {
                    self.widen_window(config, segment.payload);
                }
            }
            return self.acknowledge_out_of_order(config, now, change, rtt);
        }
        self.ack_now();
        // Received before: a needless retransmission, or the ACK was lost.
        if config.dsack {
            self.out_of_order.get_or_insert_default().report_duplicate(start, end);
        }
        self.enter_quick_acks(QUICK_ACKS_MAX);
        if config.is_linux_6() && end < self.rcv_wup && !is_scheduled {
            // Its own ACK is none of them (`tcp_send_dupack`).
            self.quick_acks += 1;
        }
        Instant::FAR_FUTURE
    }

    /// Moves RCV.NXT over the ranges that are in order now. Returns true if there was a gap.
    #[cold]
    fn join_out_of_order(&mut self, config: &Config) -> bool {
        let Some(store) = &mut self.out_of_order else { return false };
        let had_gap = store.has_gap();
        self.rcv_nxt = store.join(config, self.rcv_nxt);
        if store.is_empty() {
            self.out_of_order = None;
        }
        had_gap
    }

    /// Handles the peer's FIN in order: discards data above it, and a duplicate that came with it (`tcp_fin`).
    pub(crate) fn handle_fin(&mut self) {
        self.out_of_order = None;
    }

    /// Writes the SACK blocks of an outgoing segment.
    #[cold]
    fn fill_sack(&mut self, config: &Config, segment: &mut Segment) {
        let Some(store) = &mut self.out_of_order else { return };
        store.write_blocks(config, segment);
        if config.sack && store.is_empty() {
            self.out_of_order = None;
        }
    }

    /// Writes acknowledgement, window, echoes and SACK blocks into an outgoing segment, and notes that the ACK is sent.
    #[inline(always)]
    pub(crate) fn fill(&mut self, config: &Config, now: Instant, segment: &mut Segment) {
        self.rcv_wnd_end = self.window_to_offer(config);
        assert!(self.rcv_wup <= self.rcv_nxt, "acknowledged before it was received");
        assert!(self.rcv_nxt <= self.rcv_wnd_end, "received beyond the window");
        segment.ack = self.rcv_nxt;
        let window = self.rcv_wnd_end - self.rcv_nxt;
        debug_assert!(window <= u64::from(u32::MAX), "a window is above RECEIVE_WINDOW_MAX");
        segment.window = window as u32;
        if config.timestamps {
            segment.ts_echo = self.ts_recent;
        }
        if self.flags & ECHO_MARKS != 0 && config.ecn {
            segment.flags.insert(Flags::ECE);
        }
        if config.path_window {
            self.fill_path_window(config, segment);
        }
        if self.out_of_order.is_some() {
            self.fill_sack(config, segment);
        }
        if config.ecn_exact && self.before_change > 0 {
            self.fill_before_change(segment);
            return;
        }
        // tcp_event_ack_sent and tcp_event_data_sent.
        // Since Linux 6.6 a segment that acknowledges no new data uses no quick ACK (tcp_dec_quickack_mode).
        if self.quick_acks > 0 && (self.flags & (ACK_NOW | ACK_TIMER) != 0 || !config.is_linux_6()) {
            self.quick_acks -= 1;
            if self.quick_acks == 0 {
                self.ato = ATO_MIN;
            }
        }
        // Before the first data the timeout is zero, so that no segment counts as an answer.
        let is_answer = (segment.payload > 0) & (now.get() - self.last_data_at < self.ato);
        self.rcv_wup = self.rcv_nxt;
        self.flags &= !(ACK_NOW | ACK_TIMER | PUSHED | PUSHED_AGAIN);
        self.flags |= if is_answer { INTERACTIVE } else { 0 };
        self.delayed_until = u64::MAX;
    }

    /// Writes the path-window options: the forward window, which switches lower, and the echo of the received one.
    #[inline]
    fn fill_path_window(&self, config: &Config, segment: &mut Segment) {
        if segment.payload > 0 || segment.flags.contains(Flags::SYN) {
            segment.flags.insert(Flags::PATH_WINDOW);
            segment.path_window = u32::MAX;
        }
        // A full segment has room for one option; the next ACK without data carries the echo.
        let has_room =
            segment.payload == 0 || u32::from(segment.payload) + PATH_WINDOW_BYTES <= u32::from(config.mss);
        if self.flags & PATH_WINDOW_SEEN != 0 && has_room {
            segment.flags.insert(Flags::PATH_WINDOW_ECHO);
            segment.path_window_echo = self.path_window;
        }
    }

    /// Panics if an invariant does not hold. For tests.
    pub(crate) fn check(&self) {
        assert!(self.rcv_wup <= self.rcv_nxt, "acknowledged before it was received");
        if let Some(store) = &self.out_of_order {
            store.check(self.rcv_nxt);
        }
    }
}
