//! The retransmission timer, which also times tail loss probes, reordering and window probes.

use fanin_units::{Duration, Instant, MIX_STEP, mix};

use crate::config::Config;
use crate::endpoint::{CongestionState, Endpoint, Forced};

/// `TCP_TIMEOUT_MIN_US`: what Linux adds to probe and reordering timers, in picoseconds.
pub(crate) const TIMEOUT_MARGIN: u64 = Duration::from_millis(2).get();

/// The purpose of the timer. There is one timer, as in the kernel (`icsk_pending`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    None,
    /// The retransmission time-out (RFC 6298).
    Retransmission,
    /// The probe time-out (RFC 8985 §7.2).
    TailLossProbe,
    /// RACK's reordering timer (RFC 8985 §6.3).
    Reordering,
    /// The persist timer of a closed window (RFC 9293 §3.8.6.1).
    WindowProbe,
}

impl Endpoint {
    /// (Re)starts the timer after an ACK or a transmission: for a tail loss probe where one may be sent, else for the
    /// RTO (RFC 6298 §5.1 to §5.3).
    #[inline]
    pub(crate) fn restart_timer(&mut self, config: &Config, now: Instant) {
        if self.flight.size == 0 {
            self.timer = Timer::None;
            return;
        }
        let rto = self.rtt.rto(config).get();
        // tcp_schedule_loss_probe: also while the window falls after a mark (TCP_CA_CWR).
        let may_probe = matches!(self.ca_state, CongestionState::Open | CongestionState::Cwr);
        if config.tail_loss_probe && config.sack && may_probe && !self.has_tail_loss_probe() {
            let delay = self.probe_timeout(config).min(rto);
            self.start_timer(config, Timer::TailLossProbe, now.get(), delay);
        } else {
            let delay = self.with_spread(config, now, rto);
            self.start_timer(config, Timer::Retransmission, now.get(), delay);
        }
    }

    /// The time-out plus the random share that [`RtoConfig::spread`](crate::RtoConfig) asks for.
    #[inline]
    pub(crate) fn with_spread(&self, config: &Config, now: Instant, rto: u64) -> u64 {
        if config.rto.spread == 0 {
            return rto;
        }
        // Of the time and the endpoint's salt: no state, and the same in every run.
        let steps = self.salt.wrapping_sub(1).wrapping_mul(MIX_STEP);
        let share = u64::from(config.rto.spread) * (mix(now.get().wrapping_add(steps)) & 1023);
        rto + rto / (1024 * 1024) * share
    }

    /// Seeds this endpoint's random delays (see [`RtoConfig::spread`](crate::RtoConfig)).
    pub fn set_salt(&mut self, salt: u32) {
        self.salt = salt.into();
    }

    /// PTO of RFC 8985 §7.2 (`tcp_schedule_loss_probe`): two round trips, and time for a delayed ACK when one segment
    /// is outstanding.
    fn probe_timeout(&self, config: &Config) -> u64 {
        if self.rtt.srtt == 0 {
            return config.rto.initial.get();
        }
        let twice = (u64::from(self.rtt.srtt) >> 2) * config.rtt_tick.get();
        if self.flight.size <= config.segment_units() {
            twice + config.probe_delayed_ack.get()
        } else {
            twice + TIMEOUT_MARGIN
        }
    }

    /// Starts the timer. The exact expiry costs divisions, so that only a lower bound of it is noted here.
    #[inline]
    pub(crate) fn start_timer(&mut self, config: &Config, timer: Timer, base: u64, delay: u64) {
        self.timer = timer;
        self.timer_base = base;
        self.timer_delay = delay;
        let bound = (base + delay).saturating_sub(config.timer_granularity.get());
        self.deadline_bound = self.deadline_bound.min(bound.max(base + 1));
    }

    /// Starts the persist timer: the RTO, doubled for each probe that did not open the window.
    pub(crate) fn start_window_probe_timer(&mut self, config: &Config, now: Instant) {
        let rto = self.rtt.rto(config).get();
        let delay = rto.saturating_mul(1 << self.probe_backoff.min(16)).min(config.rto.max.get());
        self.start_timer(config, Timer::WindowProbe, now.get(), delay);
    }

    /// When the timer expires, in ps; `u64::MAX` for never.
    pub(crate) fn timer_expiry(&self, config: &Config) -> u64 {
        match self.timer {
            Timer::None => u64::MAX,
            _ => config.timer_expiry(Instant::new(self.timer_base), Duration::new(self.timer_delay)).get(),
        }
    }

    /// The timer has expired.
    pub(crate) fn handle_timer(&mut self, config: &Config, now: Instant) {
        self.tso_deferred = false;
        match core::mem::replace(&mut self.timer, Timer::None) {
            Timer::None => {}
            Timer::Retransmission => self.handle_timeout(config, now),
            Timer::TailLossProbe => self.forced = Forced::TailLossProbe,
            Timer::Reordering => self.handle_reordering_timeout(config, now),
            Timer::WindowProbe => {
                self.forced = Forced::WindowProbe;
                self.probe_backoff = (self.probe_backoff + 1).min(16);
            }
        }
    }
}
