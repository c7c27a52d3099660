//! The receiving half: what has arrived, when it is acknowledged, and what window is offered.

use alloc::boxed::Box;
use alloc::vec::Vec;

use fanin_units::{Duration, Instant};

use crate::config::{Config, DelayedAck};
use crate::rto::RttEstimator;
use crate::segment::{Flags, M21_BYTES, SackBlock, Segment};

/// `TCP_ATO_MIN`, `TCP_DELACK_MIN`.
const ATO_MIN: u64 = Duration::from_millis(40).get();
/// HZ / 2, the bound of `tcp_send_delayed_ack` outside of interactive phases.
const DELACK_FAR: u64 = Duration::from_millis(500).get();
/// `TCP_MAX_QUICKACKS`.
const QUICKACKS_MAX: u32 = 16;

/// Acknowledge at the next opportunity.
const ACK_NOW: u8 = 1;
/// A window of M21TCP's came.
const M21_SEEN: u8 = 2;
/// The delayed-ACK timer runs (`ICSK_ACK_TIMER`).
const ACK_TIMER: u8 = 4;
/// A segment shorter than the others came (`ICSK_ACK_PUSHED`), and another (`ICSK_ACK_PUSHED2`).
const PUSHED: u8 = 8;
const PUSHED_AGAIN: u8 = 16;
/// The other side answers what we send (`pingpong`).
const INTERACTIVE: u8 = 32;
/// Marks are echoed until CWR arrives (`TCP_ECN_DEMAND_CWR`).
const ECHO_MARKS: u8 = 64;
/// The application reads at once.
const READS_AT_ONCE: u8 = 128;

/// Ranges received above the cumulative point, and the order in which they are reported.
#[derive(Clone, Debug, Default)]
struct OutOfOrder {
    /// Disjoint, in stream order, none empty.
    ranges: Vec<(u64, u64)>,
    /// Starts of the ranges touched last, newest first (RFC 2018 §4).
    recent: Vec<u64>,
    /// What arrived a second time, until it is reported.
    duplicate: Option<(u64, u64)>,
}

/// Most ranges that are remembered as recent; a segment carries at most 3, the kernel keeps 4.
const RECENT_MAX: usize = 4;

/// In the order of use, as the endpoint around it.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    /// Next offset expected (`rcv_nxt`).
    pub(crate) rcv_nxt: u64,
    /// What was acknowledged last (`rcv_wup`).
    rcv_wup: u64,
    /// Right edge of the window offered.
    rcv_wnd_end: u64,
    /// When data last came, in ps.
    last_data_at: u64,
    /// Delayed-ACK time-out in force, in ps; 0 before the first data (`icsk_ack.ato`).
    pub(crate) ato: u64,
    /// When the delayed ACK is due.
    delayed_until: u64,
    out_of_order: Option<Box<OutOfOrder>>,
    /// End of the round trip in which growth is being measured.
    growth_measured_until: u64,
    /// CongestionWindow in force, and its bound.
    window: u32,
    clamp: u32,
    /// How far the window may grow for now.
    window_max: u32,
    ts_recent: u32,
    m21_window: u32,
    /// Size of full segments, as seen (`rcv_mss`).
    rcv_mss: u16,
    quick_acks: u8,
    flags: u8,
    // Seldom.
    /// Where the round trip began in which growth is being measured.
    growth_measured_from: u64,
    /// Up to where an acknowledgement with the previous mark is still due; 0 for none (DCTCP).
    before_change: u64,
    /// Unread bytes begin here, unless the application reads at once.
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
            clamp: config.receive_window,
            // A quarter of the buffer is left for growth before the first measurement.
            window_max: (window + window / 4).min(config.receive_window),
            growth_measured_from: 0,
            growth_measured_until: 0,
            ts_recent: 0,
            m21_window: 0,
            before_change: 0,
            // tcp_initialize_rcv_mss: 536 until segments have been seen.
            rcv_mss: config.mss.min(536),
            quick_acks: 0,
            flags: READS_AT_ONCE,
            out_of_order: None,
        }
    }

    /// The window has grown to its bound, as on a connection that has run for long.
    pub(crate) fn open_fully(&mut self, config: &Config) {
        self.window = config.receive_window;
        self.window_max = self.window;
        self.rcv_wnd_end = self.rcv_nxt + u64::from(self.window);
        self.rcv_mss = config.mss;
    }

    #[inline]
    pub(crate) fn wants_ack(&self) -> bool {
        self.flags & ACK_NOW != 0
    }

    #[inline]
    pub(crate) fn ack_now(&mut self) {
        self.flags |= ACK_NOW;
    }

    // RFC 7323 §4.3: the timestamp echoed is that of the oldest segment not acknowledged.
    #[inline]
    pub(crate) fn note_timestamp(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::TIMESTAMP) && segment.offset <= self.rcv_wup {
            self.ts_recent = self.ts_recent.max(segment.ts_value);
        }
        if segment.flags.contains(Flags::M21) {
            self.m21_window = segment.m21_window;
            self.flags |= M21_SEEN;
        }
    }

    /// Takes payload; returns when a delayed ACK is due, at the earliest.
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
            self.handle_out_of_order(config, segment, end);
            return Instant::FAR_FUTURE;
        }
        // In order, perhaps with a part that was here already.
        if segment.offset < self.rcv_nxt && config.dsack {
            self.out_of_order.get_or_insert_default().duplicate = Some((segment.offset, self.rcv_nxt));
        }
        self.rcv_nxt = end;
        let filled = self.out_of_order.is_some() && self.join_out_of_order();
        let full = segment.payload >= self.rcv_mss;
        self.measure(config, segment, now, rtt);
        if full {
            self.grow(config, now, segment.payload, rtt);
        }
        if filled {
            // RFC 5681 §4.2: a segment that fills a gap is acknowledged at once.
            self.flags |= ACK_NOW;
            return Instant::FAR_FUTURE;
        }
        if config.receive_offload && segment.flags.contains(Flags::BURST_CONTINUES) {
            return self.delay(now, ATO_MIN);
        }
        self.decide(config, now, rtt)
    }

    /// Whether in-order data is acknowledged now or later.
    #[inline]
    fn decide(&mut self, config: &Config, now: Instant, rtt: &RttEstimator) -> Instant {
        let waiting = self.rcv_nxt - self.rcv_wup;
        match config.delayed_ack {
            DelayedAck::Off => self.flags |= ACK_NOW,
            DelayedAck::Rfc1122 { timeout } => {
                if waiting >= 2 * u64::from(self.rcv_mss) {
                    self.flags |= ACK_NOW;
                } else {
                    return self.delay(now, timeout.get());
                }
            }
            DelayedAck::Linux { max } => {
                // __tcp_ack_snd_check: more than one full segment, and the window does not shrink; or a
                // quick-ACK phase.
                let quick = self.quick_acks > 0 && self.flags & INTERACTIVE == 0;
                let enough = waiting > u64::from(self.rcv_mss)
                    && self.offer(config) >= self.rcv_wnd_end.min(self.rcv_nxt + u64::from(self.window));
                if enough || quick {
                    self.flags |= ACK_NOW;
                    return Instant::FAR_FUTURE;
                }
                // tcp_cleanup_rbuf: the application has read everything, and a short segment ended it.
                let pushed = self.flags & PUSHED_AGAIN != 0
                    || (self.flags & PUSHED != 0 && self.flags & INTERACTIVE == 0);
                if self.flags & READS_AT_ONCE != 0 && pushed {
                    self.flags |= ACK_NOW;
                    return Instant::FAR_FUTURE;
                }
                return self.delay_as_linux(config, now, max.get(), rtt);
            }
        }
        Instant::FAR_FUTURE
    }

    // tcp_send_delayed_ack.
    fn delay_as_linux(&mut self, config: &Config, now: Instant, max: u64, rtt: &RttEstimator) -> Instant {
        let mut timeout = self.ato;
        if timeout > ATO_MIN {
            let mut bound = DELACK_FAR;
            if self.flags & (INTERACTIVE | PUSHED) != 0 {
                bound = max;
            }
            let srtt = rtt.smoothed(config).get();
            if srtt > 0 {
                bound = bound.min(srtt.max(ATO_MIN));
            }
            timeout = timeout.min(bound);
        }
        timeout = timeout.min(max);
        if self.flags & ACK_TIMER != 0 && self.delayed_until <= (now + Duration::new(timeout / 4)).get() {
            // It is about to run out: no use in waiting.
            self.flags |= ACK_NOW;
            return Instant::FAR_FUTURE;
        }
        self.delay(now, timeout)
    }

    #[inline]
    fn delay(&mut self, now: Instant, timeout: u64) -> Instant {
        let due = (now + Duration::new(timeout)).get();
        if self.flags & ACK_TIMER == 0 || due < self.delayed_until {
            self.delayed_until = due;
        }
        self.flags |= ACK_TIMER;
        Instant::new(self.delayed_until)
    }

    /// Whether the delayed-ACK timer has run out.
    #[inline]
    pub(crate) fn is_due(&self, config: &Config, now: Instant) -> bool {
        self.flags & ACK_TIMER != 0 && self.due(config) <= now.get()
    }

    /// The delayed-ACK timer (`tcp_delack_timer_handler`).
    pub(crate) fn handle_deadline(&mut self, config: &Config, now: Instant, rto: Duration) {
        if !self.is_due(config, now) {
            return;
        }
        if self.flags & INTERACTIVE == 0 {
            self.ato = (self.ato << 1).min(rto.get());
        } else {
            // It was no interactive session after all.
            self.flags &= !INTERACTIVE;
            self.ato = ATO_MIN;
        }
        self.flags = self.flags & !ACK_TIMER | ACK_NOW;
    }

    /// When the delayed ACK is due, the timer's tick included.
    fn due(&self, config: &Config) -> u64 {
        let tick = config.timer_tick.get();
        if tick <= 1 { self.delayed_until } else { self.delayed_until.div_ceil(tick).saturating_mul(tick) }
    }

    /// When [`handle_deadline`](Self::handle_deadline) has something to do.
    pub(crate) fn deadline(&self, config: &Config) -> u64 {
        if self.flags & ACK_TIMER == 0 { u64::MAX } else { self.due(config) }
    }

    // tcp_event_data_recv and tcp_measure_rcv_mss.
    #[inline]
    fn measure(&mut self, config: &Config, segment: &Segment, now: Instant, rtt: &RttEstimator) {
        let payload = segment.payload;
        if payload >= self.rcv_mss {
            self.rcv_mss = payload;
            // Since 6.7 a full segment that ends a write counts as well.
            if config.pushes_full && segment.flags.contains(Flags::PSH) {
                self.flags |= PUSHED;
            }
        } else {
            self.flags |= if self.flags & PUSHED != 0 { PUSHED_AGAIN } else { PUSHED };
        }
        if self.ato == 0 {
            self.start_quickacks(QUICKACKS_MAX);
            self.ato = ATO_MIN;
        } else {
            let gap = now.get() - self.last_data_at;
            if gap <= ATO_MIN / 2 {
                self.ato = (self.ato >> 1) + ATO_MIN / 2;
            } else {
                self.measure_pause(config, gap, rtt);
            }
        }
        self.last_data_at = now.get();
    }

    // Apart, so that the round-trip time is not looked at for every segment.
    #[cold]
    fn measure_pause(&mut self, config: &Config, gap: u64, rtt: &RttEstimator) {
        if gap < self.ato {
            self.ato = ((self.ato >> 1) + gap).min(rtt.rto(config).get());
        } else if gap > rtt.rto(config).get() {
            // Too long a pause: the sender's window has fallen back, so help it up.
            self.start_quickacks(QUICKACKS_MAX);
        }
    }

    // tcp_incr_quickack.
    fn start_quickacks(&mut self, most: u32) {
        let fit = (self.window / (2 * u32::from(self.rcv_mss).max(1))).max(2).min(most);
        self.quick_acks = self.quick_acks.max(fit as u8);
    }

    // tcp_enter_quickack_mode.
    fn enter_quickacks(&mut self, most: u32) {
        self.start_quickacks(most);
        self.flags &= !INTERACTIVE;
        self.ato = ATO_MIN;
    }

    // tcp_grow_window, simplified: two segments for each full one, up to the limit of the buffer. A window
    // that grows is told at once.
    #[inline]
    fn grow(&mut self, config: &Config, now: Instant, payload: u16, rtt: &RttEstimator) {
        if self.window < self.window_max {
            self.window = (self.window + 2 * u32::from(payload)).min(self.window_max);
            self.quick_acks |= 1;
        }
        if self.window_max < config.receive_window && now.get() >= self.growth_measured_until {
            self.tune(config, now, rtt);
        }
    }

    // tcp_rcv_space_adjust: room for twice what came in a round trip, and 16 segments.
    fn tune(&mut self, config: &Config, now: Instant, rtt: &RttEstimator) {
        if self.growth_measured_until > 0 {
            let came = self.rcv_nxt - self.growth_measured_from;
            let wanted = (2 * came + 16 * u64::from(config.mss)).min(u64::from(config.receive_window)) as u32;
            self.window_max = self.window_max.max(wanted);
        }
        self.growth_measured_from = self.rcv_nxt;
        let span = rtt.smoothed(config).get().max(config.rtt_tick.get());
        self.growth_measured_until = now.get() + span;
    }

    // RFC 3168 §6.1.3.
    fn note_marks(&mut self, config: &Config, segment: &Segment) {
        if config.ecn_exact {
            self.note_exact_mark(segment);
            return;
        }
        if segment.flags.contains(Flags::CWR) {
            self.flags &= !ECHO_MARKS;
        }
        if segment.flags.contains(Flags::CE) {
            if self.flags & ECHO_MARKS == 0 {
                self.enter_quickacks(2);
            }
            self.flags |= ECHO_MARKS;
        }
    }

    // RFC 8257 §3.2, figure 1; dctcp_ece_ack_update. What waits to be acknowledged is, with the mark that it had, before
    // the segment that changes it; the change itself at once.
    fn note_exact_mark(&mut self, segment: &Segment) {
        let marked = segment.flags.contains(Flags::CE);
        if marked == (self.flags & ECHO_MARKS != 0) {
            return;
        }
        self.flags ^= ECHO_MARKS;
        if self.rcv_nxt > self.rcv_wup {
            self.before_change = self.rcv_nxt;
        }
        self.flags |= ACK_NOW;
    }

    #[cold]
    fn handle_out_of_order(&mut self, config: &Config, segment: &Segment, end: u64) {
        self.flags |= ACK_NOW;
        if end <= self.rcv_nxt {
            // Received before: a needless retransmission, or our ACK was lost.
            if config.dsack {
                self.out_of_order.get_or_insert_default().duplicate = Some((segment.offset, end));
            }
            self.enter_quickacks(QUICKACKS_MAX);
            return;
        }
        if segment.offset == self.rcv_nxt + u64::from(self.window) && segment.payload == 0 {
            return;
        }
        let store = self.out_of_order.get_or_insert_default();
        let (mut start, mut stop) = (segment.offset, end);
        let from = store.ranges.partition_point(|range| range.1 < start);
        let mut to = from;
        while to < store.ranges.len() && store.ranges[to].0 <= stop {
            let (low, high) = store.ranges[to];
            if low <= segment.offset && end <= high && config.dsack {
                store.duplicate = Some((segment.offset, end));
            }
            start = start.min(low);
            stop = stop.max(high);
            if config.sack {
                store.recent.retain(|&recent| recent != low);
            }
            to += 1;
        }
        if from == to {
            store.ranges.insert(from, (start, stop));
        } else {
            store.ranges[from] = (start, stop);
            store.ranges.drain(from + 1..to);
        }
        if config.sack {
            store.recent.insert(0, start);
            store.recent.truncate(RECENT_MAX);
        }
    }

    /// The cumulative point has moved: what lies below it, or touches it, is in order now. Returns whether
    /// there was a gap.
    #[cold]
    fn join_out_of_order(&mut self) -> bool {
        let Some(store) = &mut self.out_of_order else { return false };
        let gap = !store.ranges.is_empty();
        let mut gone = 0;
        for range in &store.ranges {
            if range.0 > self.rcv_nxt {
                break;
            }
            self.rcv_nxt = self.rcv_nxt.max(range.1);
            store.recent.retain(|&recent| recent != range.0);
            gone += 1;
        }
        store.ranges.drain(..gone);
        if store.ranges.is_empty() && store.duplicate.is_none() {
            self.out_of_order = None;
        }
        gap
    }

    /// The right edge to offer now.
    #[inline]
    fn offer(&self, config: &Config) -> u64 {
        let unread = if self.flags & READS_AT_ONCE != 0 { 0 } else { self.rcv_nxt - self.read };
        let free = u64::from(self.window.min(self.clamp)).saturating_sub(unread);
        let rest = (1_u64 << config.window_scale) - 1;
        let edge = self.rcv_nxt + ((free + rest) & !rest);
        if config.shrink_window { edge } else { edge.max(self.rcv_wnd_end) }
    }

    /// Fills in acknowledgement, window, echoes and SACK blocks, and notes that an ACK was sent.
    #[inline]
    pub(crate) fn fill(&mut self, config: &Config, now: Instant, segment: &mut Segment) {
        self.rcv_wnd_end = self.offer(config);
        segment.ack = self.rcv_nxt;
        segment.window = (self.rcv_wnd_end - self.rcv_nxt).min(u64::from(u32::MAX)) as u32;
        if config.timestamps {
            segment.ts_echo = self.ts_recent;
        }
        if self.flags & ECHO_MARKS != 0 && config.ecn {
            segment.flags.insert(Flags::ECE);
        }
        if config.m21 {
            if segment.payload > 0 || segment.flags.contains(Flags::SYN) {
                segment.flags.insert(Flags::M21);
                segment.m21_window = u32::MAX;
            }
            // A full segment has room for one option; the next bare acknowledgement brings the echo.
            if self.flags & M21_SEEN != 0
                && (segment.payload == 0 || u32::from(segment.payload) + M21_BYTES <= u32::from(config.mss))
            {
                segment.flags.insert(Flags::M21_ECHO);
                segment.m21_echo = self.m21_window;
            }
        }
        if self.out_of_order.is_some() {
            self.fill_sack(config, segment);
        }
        if config.ecn_exact && self.before_change > 0 {
            // RFC 8257 §3.2: first what came before the mark changed; the rest follows at once.
            segment.window += (self.rcv_nxt - self.before_change) as u32;
            segment.ack = core::mem::take(&mut self.before_change);
            self.rcv_wup = segment.ack;
            if self.flags & ECHO_MARKS == 0 {
                segment.flags.insert(Flags::ECE);
            } else {
                segment.flags.remove(Flags::ECE);
            }
            return;
        }
        // tcp_event_ack_sent and tcp_event_data_sent.
        if self.quick_acks > 0 {
            self.quick_acks -= 1;
            if self.quick_acks == 0 {
                self.ato = ATO_MIN;
            }
        }
        // Without a branch: the time-out is zero before the first data.
        let answers = (segment.payload > 0) & (now.get() - self.last_data_at < self.ato);
        self.rcv_wup = self.rcv_nxt;
        self.flags &= !(ACK_NOW | ACK_TIMER | PUSHED | PUSHED_AGAIN);
        self.flags |= if answers { INTERACTIVE } else { 0 };
        self.delayed_until = u64::MAX;
    }

    #[cold]
    fn fill_sack(&mut self, config: &Config, segment: &mut Segment) {
        let Some(store) = &mut self.out_of_order else { return };
        let duplicate = store.duplicate.take();
        if !config.sack {
            return;
        }
        let most = Segment::sack_blocks_max(segment.flags);
        let ack = segment.ack;
        let relative = |start: u64, end: u64| SackBlock {
            start: (start as i64 - ack as i64) as i32,
            end: (end as i64 - ack as i64) as i32,
        };
        let mut count = 0;
        if let Some((start, end)) = duplicate {
            segment.sack[0] = relative(start, end);
            segment.flags.insert(Flags::DSACK);
            count = 1;
        }
        for &start in &store.recent {
            if count == most {
                break;
            }
            let index = store.ranges.partition_point(|range| range.0 < start);
            let range = store.ranges[index];
            segment.sack[count] = relative(range.0, range.1);
            count += 1;
        }
        if store.ranges.is_empty() {
            self.out_of_order = None;
        }
    }

    /// Right edge of the window offered last (RCV.NXT + RCV.WND).
    pub(crate) fn window_end(&self) -> u64 {
        self.rcv_wnd_end
    }

    pub(crate) fn offered(&self) -> u64 {
        self.rcv_wnd_end.saturating_sub(self.rcv_nxt)
    }

    pub(crate) fn set_window_clamp(&mut self, bytes: u32) {
        self.clamp = bytes;
    }

    pub(crate) fn set_reading(&mut self, at_once: bool) {
        if self.flags & READS_AT_ONCE != 0 {
            self.read = self.rcv_nxt;
        }
        self.flags = if at_once { self.flags | READS_AT_ONCE } else { self.flags & !READS_AT_ONCE };
    }

    // tcp_cleanup_rbuf: an update is worth an ACK when the window doubles.
    pub(crate) fn read(&mut self, config: &Config, bytes: u64) {
        let before = self.rcv_wnd_end.saturating_sub(self.rcv_nxt);
        self.read = (self.read + bytes).min(self.rcv_nxt);
        let after = self.offer(config) - self.rcv_nxt;
        if after >= 2 * before && after > before {
            self.flags |= ACK_NOW;
        }
    }

    pub(crate) fn check(&self) {
        if let Some(store) = &self.out_of_order {
            let mut last = self.rcv_nxt;
            for &(start, end) in &store.ranges {
                assert!(start > last && end > start, "ranges are disjoint and above the cumulative point");
                last = end;
            }
            for recent in &store.recent {
                assert!(store.ranges.iter().any(|range| range.0 == *recent));
            }
        }
    }
}
