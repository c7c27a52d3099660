//! The retransmission timer, which also times tail loss probes, reordering and window probes.

use fanin_units::{Duration, Instant, MIX_STEP, mix};

use crate::ca_state::CongestionState;
use crate::config::Config;
use crate::endpoint::{Endpoint, Forced};
use crate::rto::RttEstimator;

/// Time that Linux adds to probe and reordering timers, in picoseconds (`TCP_TIMEOUT_MIN_US`).
pub(crate) const TIMEOUT_MARGIN: u64 = Duration::from_millis(2).get();
/// Most doublings of the persist timer.
const PROBE_BACKOFF_MAX: u8 = 16;

/// The purpose of the timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    None,
    /// The retransmission timeout (RFC 6298).
    Retransmission,
    /// The probe timeout (RFC 8985 §7.2).
    TailLossProbe,
    /// RACK's reordering timer (RFC 8985 §6.3).
    Reordering,
    /// The persist timer of a closed window (RFC 9293 §3.8.6.1).
    WindowProbe,
}

/// The single timer of a sender, as in the kernel (`icsk_pending`), and a lower bound of all deadlines of its endpoint.
#[derive(Clone, Debug)]
pub(crate) struct SenderTimer {
    /// Lower bound of the time at which a timer of sender or receiver expires, in ps.
    deadline_bound: u64,
    /// Start of the timer, in ps, and its duration.
    base: u64,
    delay: u64,
    /// Seed of the random share of timeouts.
    salt: u32,
    pending: Timer,
    /// Number of doublings of the window probe's timer: probes without an answer.
    probe_backoff: u8,
}

impl SenderTimer {
    /// Makes the state of an endpoint without a running timer.
    pub(crate) fn new() -> Self {
        Self { deadline_bound: u64::MAX, base: 0, delay: 0, salt: 0, pending: Timer::None, probe_backoff: 0 }
    }

    /// Seed of the random share of timeouts.
    pub(crate) fn salt(&self) -> u32 {
        self.salt
    }

    /// The running timer.
    #[inline]
    pub(crate) fn pending(&self) -> Timer {
        self.pending
    }

    /// Lower bound of the endpoint's next deadline, in ps.
    #[inline]
    pub(crate) fn deadline_bound(&self) -> u64 {
        self.deadline_bound
    }

    /// Notes a deadline of the receiver or of pacing: lowers the bound to it.
    #[inline]
    pub(crate) fn note_deadline(&mut self, deadline: Instant) {
        self.deadline_bound = self.deadline_bound.min(deadline.get());
    }

    /// Makes the bound exact, after the expired timers have run.
    pub(crate) fn update_deadline(&mut self, config: &Config, now: Instant, receiver_deadline: u64) {
        self.deadline_bound = self.expiry(config).min(receiver_deadline);
        assert!(self.deadline_bound > now.get(), "a timer that has expired is due again");
    }

    /// Starts the timer. An exact expiry costs divisions, so only a lower bound is noted here.
    #[inline]
    pub(crate) fn start(&mut self, config: &Config, timer: Timer, now: Instant, delay: u64) {
        debug_assert_ne!(timer, Timer::None, "a timer is started as none; `stop` stops it");
        self.pending = timer;
        self.base = now.get();
        self.delay = delay;
        let bound = (self.base + delay).saturating_sub(config.timer_granularity.get());
        self.deadline_bound = self.deadline_bound.min(bound.max(self.base + 1));
    }

    /// Restarts the timer from now for its whole duration.
    #[inline]
    pub(crate) fn postpone(&mut self, now: Instant) {
        debug_assert!(
            self.pending != Timer::None && now.get() >= self.base,
            "a timer is postponed that does not run"
        );
        self.base = now.get();
    }

    /// Stops the timer.
    #[inline]
    pub(crate) fn stop(&mut self) {
        self.pending = Timer::None;
    }

    /// Takes the timer if it has expired.
    pub(crate) fn take_expired(&mut self, config: &Config, now: Instant) -> Option<Timer> {
        (self.expiry(config) <= now.get()).then(|| core::mem::replace(&mut self.pending, Timer::None))
    }

    /// Expiry of the timer, in ps; `u64::MAX` for never.
    fn expiry(&self, config: &Config) -> u64 {
        match self.pending {
            Timer::None => u64::MAX,
            _ => config.timer_expiry(Instant::new(self.base), Duration::new(self.delay)).get(),
        }
    }

    /// The timeout plus the random share of [`RtoConfig::spread`](crate::RtoConfig).
    #[inline]
    pub(crate) fn with_spread(&self, config: &Config, now: Instant, rto: u64) -> u64 {
        if config.rto.spread == 0 {
            return rto;
        }
        // The share depends only on the time and the endpoint's salt. So it needs no state, and repeats in every run.
        let steps = u64::from(self.salt).wrapping_sub(1).wrapping_mul(MIX_STEP);
        let share = u64::from(config.rto.spread) * (mix(now.get().wrapping_add(steps)) & 1023);
        rto + rto / (1024 * 1024) * share
    }

    /// Starts the timer for the RTO.
    pub(crate) fn start_rto(&mut self, config: &Config, now: Instant, rtt: &RttEstimator) {
        let delay = self.with_spread(config, now, rtt.rto(config).get());
        self.start(config, Timer::Retransmission, now, delay);
    }

    /// Starts the persist timer: the RTO, doubled for each probe without an answer, at most the largest RTO.
    pub(crate) fn start_window_probe(&mut self, config: &Config, now: Instant, rtt: &RttEstimator) {
        assert!(self.probe_backoff <= PROBE_BACKOFF_MAX, "window probes back off too far");
        let rto = rtt.rto(config).get();
        let delay = rto.saturating_mul(1 << self.probe_backoff).min(config.rto.max.get());
        self.start(config, Timer::WindowProbe, now, delay);
    }

    /// Number of window probes without an answer.
    #[inline]
    pub(crate) fn window_probes(&self) -> u8 {
        self.probe_backoff
    }

    /// Notes that a window probe is sent.
    fn note_window_probe(&mut self) {
        self.probe_backoff = (self.probe_backoff + 1).min(PROBE_BACKOFF_MAX);
    }

    /// Notes an answer of the peer: the next closed window begins with the RTO without doublings.
    #[inline]
    pub(crate) fn forget_window_probes(&mut self) {
        self.probe_backoff = 0;
    }
}

impl Endpoint {
    /// (Re)starts the timer after an ACK or a transmission, or stops it if nothing is outstanding. It runs for a tail loss
    /// probe if one may be sent, otherwise for the RTO (RFC 6298 §5.1 to §5.3).
    #[inline]
    pub(crate) fn restart_timer(&mut self, config: &Config, now: Instant) {
        if self.flight.size == 0 {
            self.timer.stop();
            return;
        }
        // tcp_schedule_loss_probe: also while the window falls after a mark (TCP_CA_CWR).
        let may_probe = matches!(self.ca_state, CongestionState::Open | CongestionState::Cwr);
        if config.tail_loss_probe && config.sack && may_probe && !self.has_tail_loss_probe() {
            let delay = self.probe_timeout(config).min(self.rtt.rto(config).get());
            self.timer.start(config, Timer::TailLossProbe, now, delay);
        } else {
            self.timer.start_rto(config, now, &self.rtt);
        }
    }

    /// Seeds this endpoint's random delays (see [`RtoConfig::spread`](crate::RtoConfig)) and BBR's phases. Endpoints that start timers
    /// at the same instant need different salts.
    pub fn set_salt(&mut self, salt: u32) {
        self.timer.salt = salt;
    }

    /// PTO of RFC 8985 §7.2 in ps (`tcp_schedule_loss_probe`): two round trips, plus time for a delayed ACK if one segment is
    /// outstanding, otherwise plus [`TIMEOUT_MARGIN`]. The initial RTO before the first sample.
    fn probe_timeout(&self, config: &Config) -> u64 {
        match self.rtt.twice_smoothed(config) {
            None => config.rto.initial.get(),
            Some(twice) if self.flight.size <= config.segment_units() => {
                twice + config.probe_delayed_ack.get()
            }
            Some(twice) => twice + TIMEOUT_MARGIN,
        }
    }

    /// Handles an expired timer.
    pub(crate) fn handle_timer(&mut self, config: &Config, now: Instant, expired: Timer) {
        self.burst.resume();
        match expired {
            Timer::None => {}
            Timer::Retransmission => self.handle_timeout(config, now),
            Timer::TailLossProbe => self.forced = Forced::TailLossProbe,
            Timer::Reordering => self.handle_reordering_timeout(config, now),
            Timer::WindowProbe => {
                self.forced = Forced::WindowProbe;
                self.timer.note_window_probe();
            }
        }
    }
}
