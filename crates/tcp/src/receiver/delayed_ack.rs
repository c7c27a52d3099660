//! Delayed acknowledgements: at once, every second segment (RFC 1122 §4.2.3.2), or adaptive as in Linux.

use fanin_units::{Duration, Instant};

use super::out_of_order::ReportChange;
use super::{
    ACK_NOW, ACK_TIMER, ATO_MIN, INTERACTIVE, PUSHED, PUSHED_AGAIN, QUICK_ACKS_MAX, READS_AT_ONCE, Receiver,
};
use crate::config::{Config, DelayedAck};
use crate::rto::RttEstimator;
use crate::segment::{Flags, Segment};

/// The state of delayed acknowledgements that the arrival of data changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckState {
    flags: u8,
    quick_acks: u8,
    ato: u64,
    last_data_at: u64,
}

/// HZ / 2, the bound of `tcp_send_delayed_ack` outside of interactive phases, in picoseconds.
const ATO_MAX: u64 = Duration::from_millis(500).get();

impl Receiver {
    /// Acknowledges in-order data now or later (`__tcp_ack_snd_check`). Returns a lower bound of the time of a delayed
    /// ACK.
    #[inline]
    pub(super) fn schedule_ack(&mut self, config: &Config, now: Instant, rtt: &RttEstimator) -> Instant {
        let unacknowledged = self.rcv_nxt - self.rcv_wup;
        match config.delayed_ack {
            DelayedAck::Off => {}
            DelayedAck::Rfc1122 { timeout } => {
                if unacknowledged < 2 * u64::from(self.rcv_mss) {
                    return self.delay_ack(now, timeout.get());
                }
            }
            DelayedAck::Linux { max } => {
                // A quick-ACK phase, or more than one full segment while the window does not shrink.
                let is_read = self.flags & READS_AT_ONCE != 0 && self.is_pushed();
                if !(self.is_ack_urgent(config) || is_read) {
                    return self.delay_ack_as_linux(config, now, max.get(), rtt);
                }
            }
        }
        self.ack_now();
        Instant::FAR_FUTURE
    }

    /// Returns true if an ACK goes at once in Linux. That holds in a quick-ACK phase, and for more than one full segment while the
    /// window does not shrink.
    #[inline(always)]
    fn is_ack_urgent(&self, config: &Config) -> bool {
        let is_quick = self.quick_acks > 0 && self.flags & INTERACTIVE == 0;
        let is_enough = self.rcv_nxt - self.rcv_wup > u64::from(self.rcv_mss)
            && self.window_to_offer(config) >= self.rcv_wnd_end.min(self.rcv_nxt + u64::from(self.window));
        is_enough || is_quick
    }

    /// Acknowledges data while there is a hole: at once, or with later data (`__tcp_ack_snd_check`). Returns the time of a delayed ACK.
    pub(super) fn acknowledge_out_of_order(
        &mut self,
        config: &Config,
        now: Instant,
        change: ReportChange,
        rtt: &RttEstimator,
    ) -> Instant {
        let compresses = config.compressed_sacks && config.sack && config.delayed_ack != DelayedAck::Off;
        let rtt = self.least_rtt(config, rtt);
        if compresses
            && !self.wants_ack()
            && !self.is_ack_urgent(config)
            && let Some(store) = &mut self.out_of_order
            && let Some(due) = store.compress(self.rcv_nxt, change, now, rtt)
        {
            return due;
        }
        self.ack_now();
        Instant::FAR_FUTURE
    }

    /// Expects an answer of the application to a FIN whose segment begins at `offset`, so that the ACK may ride on it
    /// (`inet_csk_enter_pingpong_mode`). Returns false if the FIN is not in order.
    pub(crate) fn expect_answer(&mut self, offset: u64) -> bool {
        let is_in_order = offset == self.rcv_nxt && self.out_of_order.is_none();
        self.flags |= if is_in_order { INTERACTIVE } else { 0 };
        is_in_order
    }

    pub(crate) fn ack_state(&self) -> AckState {
        let Self { flags, quick_acks, ato, last_data_at, .. } = *self;
        AckState { flags, quick_acks, ato, last_data_at }
    }

    /// Acknowledges a FIN without data, now or later. A FIN is no data, so `before` stays as it is, but for the ACK that is due.
    /// Returns a lower bound of the time of a delayed ACK.
    pub(crate) fn acknowledge_fin(
        &mut self,
        config: &Config,
        now: Instant,
        before: AckState,
        rtt: &RttEstimator,
    ) -> Instant {
        let AckState { flags, quick_acks, ato, last_data_at } = before;
        (self.flags, self.quick_acks) = (flags, quick_acks);
        (self.ato, self.last_data_at) = (ato, last_data_at);
        self.schedule_ack(config, now, rtt)
    }

    /// Returns true if a short segment ended the peer's data. Reading all of it then sends an ACK (`tcp_cleanup_rbuf`).
    #[inline]
    pub(super) fn is_pushed(&self) -> bool {
        self.flags & PUSHED_AGAIN != 0 || (self.flags & PUSHED != 0 && self.flags & INTERACTIVE == 0)
    }

    /// Delays the ACK by the adapted timeout (`tcp_send_delayed_ack`).
    fn delay_ack_as_linux(&mut self, config: &Config, now: Instant, max: u64, rtt: &RttEstimator) -> Instant {
        let mut timeout = self.ato;
        if timeout > ATO_MIN {
            let mut bound = ATO_MAX;
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
            // The timer is about to expire anyway.
            self.ack_now();
            return Instant::FAR_FUTURE;
        }
        self.delay_ack(now, timeout)
    }

    /// Starts the delayed-ACK timer, or brings a running one forward. Returns its expiry.
    #[inline]
    pub(super) fn delay_ack(&mut self, now: Instant, timeout: u64) -> Instant {
        let due = (now + Duration::new(timeout)).get();
        if self.flags & ACK_TIMER == 0 || due < self.delayed_until {
            self.delayed_until = due;
        }
        debug_assert!(
            self.delayed_until >= now.get() || self.flags & ACK_TIMER != 0,
            "an ACK is delayed into the past"
        );
        self.flags |= ACK_TIMER;
        Instant::new(self.delayed_until)
    }

    /// Runs the timers of delayed and of compressed ACKs if they have expired (`tcp_delack_timer_handler`, `tcp_compressed_ack_kick`).
    pub(crate) fn handle_deadline(&mut self, config: &Config, now: Instant, rto: Duration) {
        if self.out_of_order.as_ref().is_some_and(|store| store.compressed_until() <= now.get()) {
            self.ack_now();
        }
        if self.flags & ACK_TIMER == 0 || self.due(config) > now.get() {
            return;
        }
        if self.flags & INTERACTIVE == 0 {
            self.ato = (self.ato << 1).min(rto.get());
        } else {
            // The application did not answer: this is no interactive session.
            self.flags &= !INTERACTIVE;
            self.ato = ATO_MIN;
        }
        self.flags = self.flags & !ACK_TIMER | ACK_NOW;
    }

    /// Expiry of the delayed-ACK timer, at a tick of the timer clock.
    fn due(&self, config: &Config) -> u64 {
        let tick = config.timer_granularity.get();
        if tick <= 1 { self.delayed_until } else { self.delayed_until.div_ceil(tick).saturating_mul(tick) }
    }

    /// Time at which [`handle_deadline`](Self::handle_deadline) is due, in ps; `u64::MAX` for never.
    pub(crate) fn deadline(&self, config: &Config) -> u64 {
        let delayed = if self.flags & ACK_TIMER == 0 { u64::MAX } else { self.due(config) };
        // An ACK that is due now is sent with the next call.
        let waits = self.out_of_order.as_ref().filter(|_| !self.wants_ack());
        waits.map_or(delayed, |store| delayed.min(store.compressed_until()))
    }

    /// Learns from a segment in order: the size of full segments, and the pace of arrivals, which sets the timeout
    /// (`tcp_measure_rcv_mss`, `tcp_event_data_recv`).
    #[inline]
    pub(super) fn measure(&mut self, config: &Config, segment: &Segment, now: Instant, rtt: &RttEstimator) {
        let payload = segment.payload;
        if payload >= self.rcv_mss {
            self.rcv_mss = payload;
            if segment.ts_echo != self.rtt_echo {
                self.measure_rtt(config, now, segment);
            }
            // Since 6.7 a full segment that ends a write counts as well.
            if config.pushes_full && segment.flags.contains(Flags::PSH) {
                self.flags |= PUSHED;
            }
        } else {
            self.flags |= if self.flags & PUSHED != 0 { PUSHED_AGAIN } else { PUSHED };
        }
        if self.ato == 0 {
            self.start_quick_acks(QUICK_ACKS_MAX);
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

    /// Measures the round-trip time by the echoed timestamp of a full segment, in whole ticks. Less than a tick is no sample. A
    /// shorter time counts at once, longer ones by an eighth (`tcp_rcv_rtt_measure_ts`, `tcp_rcv_rtt_update` since 6.16).
    #[inline(never)]
    pub(super) fn measure_rtt(&mut self, config: &Config, now: Instant, segment: &Segment) {
        if !segment.flags.contains(Flags::TIMESTAMP) || segment.ts_echo == self.rtt_echo {
            return;
        }
        self.rtt_echo = segment.ts_echo;
        let ticks = config.timestamp(now).wrapping_sub(segment.ts_echo);
        let sample = u64::from(ticks) * (config.timestamp_tick.get() / Duration::from_micros(1).get());
        let Some(scaled) = u32::try_from(sample * 8).ok().filter(|&scaled| scaled > 0) else { return };
        let is_less = self.rtt_us == 0 || scaled < self.rtt_us;
        self.rtt_us = if is_less { scaled } else { self.rtt_us - self.rtt_us / 8 + scaled / 8 };
    }

    /// The round-trip time that the receiver has measured, but not above that of the sender's half; zero before the first sample.
    fn least_rtt(&self, config: &Config, rtt: &RttEstimator) -> Duration {
        let smoothed = rtt.smoothed(config);
        let measured = Duration::from_micros(u64::from(self.rtt_us) / 8);
        if smoothed.is_zero() || (config.timestamps && measured < smoothed) { measured } else { smoothed }
    }

    #[cold]
    fn measure_pause(&mut self, config: &Config, gap: u64, rtt: &RttEstimator) {
        if gap < self.ato {
            self.ato = ((self.ato >> 1) + gap).min(rtt.rto(config).get());
        } else if gap > rtt.rto(config).get() {
            // After a pause this long the sender's window has shrunk; quick ACKs help it to grow.
            self.start_quick_acks(QUICK_ACKS_MAX);
        }
    }

    /// Sends the next ACKs at once: one for every two segments of the window, 2 to `most` (`tcp_incr_quickack`).
    fn start_quick_acks(&mut self, most: u32) {
        let count = (self.window / (2 * u32::from(self.rcv_mss).max(1))).max(2).min(most);
        self.quick_acks = self.quick_acks.max(count as u8);
    }

    /// Starts a quick-ACK phase, which ends an interactive one (`tcp_enter_quickack_mode`).
    pub(super) fn enter_quick_acks(&mut self, most: u32) {
        self.start_quick_acks(most);
        self.flags &= !INTERACTIVE;
        self.ato = ATO_MIN;
    }
}
