//! One end of a connection: what it holds, and how it is driven.

use fanin_units::{Duration, Instant};

use crate::config::{Config, RttSource, WindowUnit};
use crate::congestion::{AckView, Window};
use crate::flight::Flight;
use crate::receive::Receiver;
use crate::recovery::Trouble;
use crate::rtt::Rtt;
use crate::segment::{Flags, Segment};
use alloc::boxed::Box;

/// Counters and state of an endpoint, for records and traces.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Segments sent with payload, retransmissions included.
    pub segments: u64,
    /// Segments sent without payload.
    pub acks: u64,
    /// Segments sent again, probes included.
    pub retransmits: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_retransmits: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Retransmissions found needless (DSACK, or timestamps on an undo).
    pub spurious_retransmits: u64,
    /// Window reductions on ECN echoes.
    pub ecn_reductions: u64,
    /// DCTCP's α in millionths; 0 for any other congestion control.
    pub alpha_ppm: u32,
    /// Congestion window in bytes; a segment counts as a full one.
    pub cwnd: u64,
    /// Slow-start threshold in bytes, `u64::MAX` for none.
    pub ssthresh: u64,
    /// Payload bytes held to be in the network, a segment counting as a full one where the profile counts
    /// segments.
    pub in_network: u64,
    /// Smoothed round-trip time, zero before the first sample.
    pub srtt: Duration,
    /// Retransmission time-out in force.
    pub rto: Duration,
    /// What the sender thinks of the path.
    pub state: State,
}

/// What the sender thinks of the path; the kernel's `tcp_ca_state`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Hash)]
pub enum State {
    /// All is well.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs arrive.
    Disorder,
    /// The window shrinks for another reason than loss.
    Reduced,
    /// Fast recovery.
    Recovery,
    /// Recovery after a time-out.
    Loss,
}

/// Where the connection is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Established,
    /// A SYN is to be sent or was.
    SynSent,
    /// Waits for a SYN.
    Listen,
    /// A SYN-ACK is to be sent or was.
    SynReceived,
}

/// What the retransmission timer is for; one timer, as in the kernel (`icsk_pending`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    None,
    Retransmission,
    TailLossProbe,
    Reordering,
    WindowProbe,
}

/// Counters that are not needed on the fast path.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counters {
    pub(crate) retransmits: u32,
    pub(crate) timeouts: u32,
    pub(crate) fast_retransmits: u32,
    pub(crate) probes: u32,
    pub(crate) spurious: u32,
    pub(crate) ecn_reductions: u32,
}

/// One end of one connection. Payload is lengths; see the [crate](crate) for how to drive it.
///
/// The order of its fields is that of use, for most connections of a large run lie outside the near caches: what every
/// call touches, what a receiver of data needs, what is seldom needed, and what a sender needs. A test says which cache lines
/// these are, behind the half of one that the world keeps before it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Endpoint {
    // Every call.
    /// The earliest time at which anything can be due.
    pub(super) wake: u64,
    pub(super) trouble: Option<Box<Trouble>>,
    pub(super) next: u64,
    pub(super) timer: Timer,
    pub(super) state: State,
    pub(super) phase: Phase,
    /// A lost probe or window probe is to be sent at the next call.
    pub(super) force: Force,
    /// What the window would let go waits for the next input, to make a larger burst.
    pub(super) deferred: bool,
    /// New segments went since the use of the window was last looked at.
    pub(super) unvalidated: bool,
    /// Segment size in force, at most the configuration's.
    pub(super) mss: u16,
    // Every segment received, by way of `receiver`'s first fields.
    pub(super) una: u64,
    pub(super) written: u64,
    /// Right edge of the window the peer offers.
    pub(super) window_edge: u64,
    /// Offset of the segment that last changed it, plus one (`snd_wl1`); 0 while only a SYN did.
    pub(super) window_from: u64,
    /// Greatest window ever offered.
    pub(super) offered_max: u32,
    /// Segments sent without payload.
    pub(super) acks: u32,
    pub(super) receiver: Receiver,
    // Seldom, from `receiver`'s last fields on.
    pub(super) counters: Counters,
    /// Reordering degree in units.
    pub(super) reordering: u32,
    /// As long as fills the cache line.
    pub(super) salt: u64,
    // Sending data.
    pub(super) flight: Flight,
    /// End of the flight whose round-trip variation is being taken.
    pub(super) rtt_point: u64,
    pub(super) timer_base: u64,
    pub(super) timer_delay: u64,
    pub(super) last_sent_at: u64,
    /// Segments sent with payload.
    pub(super) segments: u64,
    /// Greatest flight since it was last reset, and the point that resets it.
    pub(super) flight_max: u32,
    pub(super) flight_used: u32,
    pub(super) flight_point: u64,
    pub(super) flight_stamp: u64,
    pub(super) burst_segments: u8,
    pub(super) burst_max: u8,
    /// The window was fully used at the last transmission.
    pub(super) window_was_full: bool,
    /// CWR is to be sent on the next new segment.
    pub(super) send_cwr: bool,
    pub(super) reordering_seen: bool,
    pub(super) probe_backoff: u8,
    pub(super) rtt: Rtt,
    pub(super) window: Window,
}

/// What was written to be sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// Nothing: the segment is as it was.
    Nothing,
    /// A segment; there may be another.
    Segment,
    /// A segment after which there is none.
    Last,
}

/// A transmission that the window does not govern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Force {
    None,
    /// A tail loss probe.
    TailLossProbe,
    /// A probe of a closed window.
    WindowProbe,
    /// The first lost segment, after fast recovery began or a time-out.
    Head,
    /// A SYN or SYN-ACK.
    Syn,
}

impl Endpoint {
    /// An established connection that has never sent: a cold window.
    pub fn new(config: &Config) -> Self {
        let initial = config.receive_window_initial.min(config.receive_window);
        Self {
            una: 0,
            next: 0,
            written: 0,
            window_edge: u64::from(initial),
            window_from: 0,
            last_sent_at: 0,
            flight: Flight::default(),
            window: Window::new(config),
            rtt: Rtt::new(config),
            rtt_point: 0,
            wake: u64::MAX,
            timer_base: 0,
            timer_delay: 0,
            timer: Timer::None,
            state: State::Open,
            phase: Phase::Established,
            mss: config.mss,
            burst_segments: 0,
            burst_max: 0,
            deferred: false,
            reordering_seen: false,
            window_was_full: false,
            unvalidated: false,
            send_cwr: false,
            force: Force::None,
            reordering: config.reordering * config.segment_units(),
            flight_max: 0,
            flight_used: 0,
            flight_point: 0,
            flight_stamp: 0,
            offered_max: initial,
            probe_backoff: 0,
            salt: 0,
            acks: 0,
            segments: 0,
            trouble: None,
            receiver: Receiver::new(config),
            counters: Counters::default(),
        }
    }

    /// A connection that opens with a SYN from this side, at once.
    pub fn connecting(config: &Config) -> Self {
        Self { phase: Phase::SynSent, force: Force::Syn, window_edge: 0, ..Self::new(config) }
    }

    /// The other side of [`connecting`](Self::connecting).
    pub fn listening(config: &Config) -> Self {
        Self { phase: Phase::Listen, window_edge: 0, ..Self::new(config) }
    }

    /// A connection whose handshake has just ended: the exchange gave a first sample of the round-trip time, without
    /// which the first time-out would be that of RFC 6298 §2.1, a second or more.
    pub fn established(config: &Config, rtt: Duration) -> Self {
        let mut endpoint = Self::new(config);
        endpoint.rtt.sample(config, (rtt.get() / config.rtt_tick.get()) as u32, true);
        endpoint
    }

    /// An established connection with a history: a window of `cwnd` segments in congestion avoidance and a
    /// known round-trip time.
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
        endpoint.window_edge = u64::from(config.receive_window);
        endpoint.offered_max = config.receive_window;
        endpoint
    }

    /// Retransmission time-outs so far.
    #[inline]
    pub fn timeouts(&self) -> u64 {
        u64::from(self.counters.timeouts)
    }

    /// Whether data can flow.
    pub fn is_established(&self) -> bool {
        self.phase == Phase::Established
    }

    /// The application appends bytes to its stream.
    #[inline]
    pub fn write(&mut self, bytes: u64) {
        self.written += bytes;
        self.deferred = false;
    }

    /// Bytes written so far.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes received in order so far.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.receiver.next
    }

    /// Bytes of the own stream that the peer has acknowledged.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.una
    }

    /// Next offset to be sent for the first time.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.next
    }

    /// Payload bytes sent and not yet acknowledged.
    #[inline]
    pub fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// Right edge of the window the peer offers: nothing beyond it is sent, but for one-byte probes.
    pub fn window_edge(&self) -> u64 {
        self.window_edge
    }

    /// Takes a segment from the network. Drain [`poll_transmit`](Self::poll_transmit) afterwards.
    #[inline]
    pub fn handle_segment(&mut self, config: &Config, now: Instant, segment: &Segment) {
        if self.phase != Phase::Established || segment.flags.contains(Flags::SYN) {
            self.handle_opening(config, now, segment);
            if self.phase != Phase::Established || segment.flags.contains(Flags::SYN) {
                return;
            }
        }
        self.deferred = false;
        self.receiver.note_timestamp(segment);
        self.handle_ack(config, now, segment);
        if segment.payload > 0 {
            let deadline = self.receiver.handle_data(config, now, segment, &self.rtt);
            self.wake = self.wake.min(deadline.get());
        } else if segment.offset < self.receiver.next {
            // A window probe or keep-alive: answered at once.
            self.receiver.ack_now();
        }
    }

    fn handle_ack(&mut self, config: &Config, now: Instant, segment: &Segment) {
        let ack = segment.ack;
        if ack > self.next || ack < self.una {
            // An ACK of what was acknowledged may still bring SACK blocks (tcp_ack's old_ack).
            if ack < self.una && segment.sack_count() > 0 && self.flight.out > 0 {
                self.handle_ack_in_trouble(config, now, segment, false);
            }
            return;
        }
        let edge = ack + u64::from(segment.window);
        let from = segment.offset + 1;
        let updates = ack > self.una
            || from > self.window_from
            || (from == self.window_from && edge > self.window_edge);
        if updates {
            self.window_from = from;
            self.window_edge = edge;
            if segment.window > self.offered_max || self.timer == Timer::WindowProbe {
                self.update_window(config, edge, segment.window);
            }
        }
        let plain = self.trouble.is_none()
            && !segment.flags.intersects(Flags::ECE)
            && segment.sack[0].start == segment.sack[0].end;
        if config.m21 && segment.flags.contains(Flags::M21_ECHO) {
            self.limit_window(config, segment.m21_echo);
        }
        if plain {
            if ack > self.una {
                self.handle_ack_clean(config, now, segment);
                return;
            }
            // Not a duplicate: it carries data or moves the window, or nothing is in flight.
            if updates || segment.payload > 0 || self.flight.out == 0 {
                return;
            }
        }
        self.handle_ack_in_trouble(config, now, segment, updates);
        self.release_trouble();
    }

    /// The fast path: nothing was lost, SACKed or sent again.
    #[inline]
    fn handle_ack_clean(&mut self, config: &Config, now: Instant, segment: &Segment) {
        let ack = segment.ack;
        let in_flight = self.flight.out;
        let (acked, first, last) = self.flight.acknowledge_clean(config, ack);
        self.una = ack;
        self.probe_backoff = 0;
        let tick = config.rtt_tick.get();
        let view = AckView { now, acked, ack, next: self.next, echo: false };
        let rtt_ps = match config.rtt_source {
            RttSource::TimestampFirst if segment.ts_echo != 0 => {
                let stamp = config.timestamp(now);
                u64::from(stamp.wrapping_sub(segment.ts_echo)) * config.timestamp_tick.get()
            }
            _ => now.get() - first,
        };
        self.sample_rtt(config, rtt_ps, tick);
        self.window.measured(config, view, now.get() - last, true);
        if self.is_window_limited(config, in_flight) {
            self.window.grow(config, view);
        }
        self.restart_timer(config, now);
    }

    #[inline]
    pub(crate) fn sample_rtt(&mut self, config: &Config, rtt_ps: u64, tick: u64) {
        let ticks = (rtt_ps / tick).min(u64::from(u32::MAX >> 4)) as u32;
        if self.rtt.sample(config, ticks, self.una > self.rtt_point) {
            self.rtt_point = self.next;
        }
    }

    pub(super) fn update_window(&mut self, config: &Config, edge: u64, window: u32) {
        self.window_edge = edge;
        if window > self.offered_max {
            self.offered_max = window;
            if config.half_window_mss {
                // tcp_bound_to_half_wnd: segments of at most half the greatest window, so that two fit.
                let cut = if window > 536 { window >> 1 } else { window };
                self.mss = config.mss.min(cut.max(48).min(u32::from(u16::MAX)) as u16);
            }
        }
        if self.timer == Timer::WindowProbe && self.window_edge > self.next {
            self.timer = Timer::None;
            self.probe_backoff = 0;
        }
    }

    /// (Re)starts the timer after an ACK or a transmission: a probe where that is due first, else the RTO.
    #[inline]
    pub(crate) fn restart_timer(&mut self, config: &Config, now: Instant) {
        if self.flight.out == 0 {
            self.timer = Timer::None;
            return;
        }
        let rto = self.rtt.rto(config).get();
        // tcp_schedule_loss_probe: also while the window falls after a mark (TCP_CA_CWR).
        let may_probe = matches!(self.state, State::Open | State::Reduced);
        if config.tail_loss_probe && config.sack && may_probe && !self.is_probing() {
            let delay = self.probe_delay(config).min(rto);
            self.start_timer(config, Timer::TailLossProbe, now.get(), delay);
        } else {
            let delay = self.jittered(config, now, rto);
            self.start_timer(config, Timer::Retransmission, now.get(), delay);
        }
    }

    /// The time-out with the random share that [`RtoConfig::jitter`](crate::RtoConfig) asks for.
    #[inline]
    pub(crate) fn jittered(&self, config: &Config, now: Instant, rto: u64) -> u64 {
        if config.rto.jitter == 0 {
            return rto;
        }
        // SplitMix64 of the time and the endpoint's salt: no state, and the same in every run.
        let mut mixed = now.get().wrapping_add(self.salt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let share = u64::from(config.rto.jitter) * ((mixed ^ (mixed >> 31)) & 1023);
        rto + rto / (1024 * 1024) * share
    }

    /// Tells this endpoint's random delays from others' (see [`RtoConfig::jitter`](crate::RtoConfig)).
    pub fn set_salt(&mut self, salt: u32) {
        self.salt = salt.into();
    }

    // tcp_schedule_loss_probe: two round trips, and time for a delayed ACK when one segment is out.
    fn probe_delay(&self, config: &Config) -> u64 {
        if self.rtt.srtt == 0 {
            return config.rto.initial.get();
        }
        let twice = (u64::from(self.rtt.srtt) >> 2) * config.rtt_tick.get();
        if self.flight.out <= config.segment_units() {
            twice + config.probe_delayed_ack.get()
        } else {
            twice + crate::TIMEOUT_MARGIN
        }
    }

    /// Starts the timer; `wake` is a bound that is at or before its expiry, for the expiry itself costs
    /// divisions and is computed when the bound is reached.
    #[inline]
    pub(crate) fn start_timer(&mut self, config: &Config, timer: Timer, base: u64, delay: u64) {
        self.timer = timer;
        self.timer_base = base;
        self.timer_delay = delay;
        let bound = (base + delay).saturating_sub(config.timer_tick.get());
        self.wake = self.wake.min(bound.max(base + 1));
    }

    fn timer_expiry(&self, config: &Config) -> u64 {
        match self.timer {
            Timer::None => u64::MAX,
            _ => config.timer_expiry(Instant::new(self.timer_base), Duration::new(self.timer_delay)).get(),
        }
    }

    /// When [`handle_deadline`](Self::handle_deadline) is due, [`Instant::FAR_FUTURE`] for never. It may be
    /// earlier than necessary: the call then only moves it. So timers cost nothing while data flows.
    #[inline]
    pub fn poll_deadline(&self) -> Instant {
        Instant::new(self.wake)
    }

    /// Lets timers run out; then drain [`poll_transmit`](Self::poll_transmit).
    pub fn handle_deadline(&mut self, config: &Config, now: Instant) {
        if now.get() < self.wake {
            return;
        }
        if self.receiver.is_due(config, now) {
            self.receiver.handle_deadline(config, now, self.rtt.rto(config));
        }
        if self.timer_expiry(config) <= now.get() {
            self.handle_timer(config, now);
            self.release_trouble();
        }
        self.wake = self.timer_expiry(config).min(self.receiver.deadline(config));
    }

    fn handle_timer(&mut self, config: &Config, now: Instant) {
        self.deferred = false;
        match core::mem::replace(&mut self.timer, Timer::None) {
            Timer::None => {}
            Timer::Retransmission if self.phase != Phase::Established => {
                self.force = Force::Syn;
                self.rtt.backoff += 1;
                self.counters.timeouts += 1;
                self.start_timer(config, Timer::Retransmission, now.get(), self.rtt.rto(config).get());
            }
            Timer::Retransmission => self.handle_timeout(config, now),
            Timer::TailLossProbe => self.force = Force::TailLossProbe,
            Timer::Reordering => self.handle_reordering_timeout(config, now),
            Timer::WindowProbe => {
                self.force = Force::WindowProbe;
                self.probe_backoff = (self.probe_backoff + 1).min(16);
            }
        }
    }

    /// The next segment to put on the network now, or `None`. Call until `None` after every other call.
    #[inline]
    pub fn poll_transmit(&mut self, config: &Config, now: Instant) -> Option<Segment> {
        let mut segment = Segment::default();
        (self.write_transmit(config, now, &mut segment) != Written::Nothing).then_some(segment)
    }

    /// As [`poll_transmit`](Self::poll_transmit): writes the segment to where it is wanted, if there is one. Otherwise
    /// `segment` is left as it was.
    #[inline(always)]
    pub fn write_transmit(&mut self, config: &Config, now: Instant, segment: &mut Segment) -> Written {
        if self.phase != Phase::Established {
            return match self.poll_opening(config, now) {
                None => Written::Nothing,
                Some(opening) => {
                    *segment = opening;
                    Written::Segment
                }
            };
        }
        if (self.trouble.is_some() || self.force != Force::None)
            && self.may_retransmit(config)
            && let Some(again) = self.poll_retransmission(config, now)
        {
            *segment = again;
            return Written::Segment;
        }
        if self.next < self.written
            && !self.deferred
            && let Some(len) = self.may_send(config, now)
        {
            self.send_new(config, now, len, segment);
            return Written::Segment;
        }
        if self.unvalidated {
            self.validate_window(config, now);
        }
        if self.receiver.wants_ack() {
            self.send_ack(config, now, segment);
            return if self.receiver.wants_ack() { Written::Segment } else { Written::Last };
        }
        Written::Nothing
    }

    /// Length of the next new segment if the windows and Nagle's rule let it go.
    #[inline]
    fn may_send(&mut self, config: &Config, now: Instant) -> Option<u32> {
        let waiting = self.written - self.next;
        let len = waiting.min(u64::from(self.mss)) as u32;
        if self.next == self.una {
            self.restart_after_idle(config, now);
        }
        let in_network = self.flight.in_network();
        let cost = match config.unit {
            WindowUnit::Segments => 1,
            WindowUnit::Bytes => len,
        };
        let counted = if config.limited_transmit || self.state != State::Disorder {
            in_network
        } else {
            // Without RFC 3042 duplicates release nothing before recovery.
            self.flight.out
        };
        if counted + cost > self.window.cwnd && !(self.flight.out == 0 && in_network == 0) {
            self.window_was_full = true;
            return None;
        }
        if self.next + u64::from(len) > self.window_edge {
            let room = self.window_edge.saturating_sub(self.next);
            if config.fills_window && !config.nagle && room > 0 && self.burst_segments > 0 {
                // tcp_mss_split_point: the end of a burst fills the window, however short.
                return Some(room as u32);
            }
            return self.send_into_small_window(config, now);
        }
        if len < u32::from(self.mss) && config.nagle && self.flight.out > 0 {
            return None;
        }
        if self.burst_segments == 0
            && let Some(segmentation) = config.segmentation
            && segmentation.window_divisor > 0
            && self.flight.out > 0
            && (self.state == State::Open
                || (segmentation.autosize && matches!(self.state, State::Disorder | State::Reduced)))
            && self.defers(config, now, segmentation, in_network, waiting)
        {
            self.window_was_full = true;
            self.deferred = true;
            return None;
        }
        Some(len)
    }

    /// A whole segment does not fit into the offered window. The kernel waits, and probes when nothing is in
    /// flight (`tcp_snd_wnd_test`, `tcp_check_probe_timer`).
    fn send_into_small_window(&mut self, config: &Config, now: Instant) -> Option<u32> {
        if self.flight.out == 0 && self.timer == Timer::None && self.force == Force::None {
            let delay = (self.rtt.rto(config).get() << self.probe_backoff.min(16)).min(config.rto.max.get());
            self.start_timer(config, Timer::WindowProbe, now.get(), delay);
        }
        None
    }

    #[inline]
    pub(super) fn send_new(&mut self, config: &Config, now: Instant, len: u32, segment: &mut Segment) {
        let offset = self.next;
        let first = self.flight.out == 0;
        self.flight.push(config, offset, len, self.mss, now.get());
        self.next += u64::from(len);
        self.segments += 1;
        let mut flags = Flags::ACK;
        if config.ecn {
            flags.insert(Flags::ECT);
            if self.send_cwr {
                self.send_cwr = false;
                flags.insert(Flags::CWR);
            }
        }
        if self.next == self.written {
            flags.insert(Flags::PSH);
        }
        if let Some(trouble) = &mut self.trouble {
            trouble.sent_units += config.units(len, self.mss);
        }
        self.note_use(config);
        match self.timer {
            // The probe's timer counts from the last transmission; its span changes with the second segment.
            Timer::TailLossProbe if self.flight.out > 2 * config.segment_units() => {
                self.timer_base = now.get();
            }
            Timer::TailLossProbe | Timer::None => self.restart_timer(config, now),
            _ if first => self.restart_timer(config, now),
            _ => {}
        }
        if config.segmentation.is_some() {
            self.mark_burst(config, &mut flags);
        }
        self.last_sent_at = now.get();
        self.write_segment(config, now, offset, len, flags, segment);
    }

    #[inline(always)]
    fn send_ack(&mut self, config: &Config, now: Instant, segment: &mut Segment) {
        self.acks += 1;
        self.write_segment(config, now, self.next, 0, Flags::ACK, segment);
    }

    /// A segment that is sent out of turn; see [`write_segment`](Self::write_segment).
    pub(crate) fn finish(
        &mut self,
        config: &Config,
        now: Instant,
        offset: u64,
        payload: u32,
        flags: Flags,
    ) -> Segment {
        let mut segment = Segment::default();
        self.write_segment(config, now, offset, payload, flags, &mut segment);
        segment
    }

    /// Fills in what every segment carries: acknowledgement, window, timestamps, SACK, ECN echo, M21.
    #[inline(always)]
    fn write_segment(
        &mut self,
        config: &Config,
        now: Instant,
        offset: u64,
        payload: u32,
        flags: Flags,
        segment: &mut Segment,
    ) {
        *segment = Segment { offset, payload: payload as u16, flags, ..Segment::default() };
        if config.ecn_exact {
            segment.flags.insert(Flags::ECT);
        }
        if config.timestamps {
            segment.flags.insert(Flags::TIMESTAMP);
            segment.ts_value = config.timestamp(now);
        }
        self.receiver.fill(config, now, segment);
    }

    /// Marks a reduction on the next new segment.
    pub(crate) fn announce_reduction(&mut self) {
        self.send_cwr = true;
    }

    pub(crate) fn written_beyond_next(&self) -> u64 {
        self.written - self.next
    }

    pub(crate) fn segment_size(&self) -> u16 {
        self.mss
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    // The world puts half a line before it; see `End`.
    #[test]
    fn what_is_used_together_shares_cache_lines() {
        let line = |offset: usize| (offset + 32) as f64 / 64.0;
        assert_eq!(line(offset_of!(Endpoint, una)), 1.0, "every call");
        let receiver = offset_of!(Endpoint, receiver);
        assert_eq!(line(receiver + Receiver::SELDOM), 3.0, "segments with data");
        assert_eq!(line(offset_of!(Endpoint, flight)), 4.0, "what is seldom needed");
        assert_eq!(line(offset_of!(Endpoint, timer_base)), 5.0, "a sender's flight");
        assert_eq!(line(offset_of!(Endpoint, rtt)), 6.0, "its timers and counters");
        assert!(line(offset_of!(Endpoint, window) + offset_of!(Window, cwnd)) >= 7.0, "its window");
        assert_eq!(line(size_of::<Endpoint>()), 7.875, "eight bytes are the world's");
    }
}
