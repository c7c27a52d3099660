//! Congestion window validation: reduces a window that the sender does not use (RFC 7661, RFC 2861).

use fanin_units::Instant;

use crate::ca_state::CongestionState;
use crate::config::{Config, Validation};
use crate::endpoint::Endpoint;

/// The use of the congestion window: the largest flights, and the last time at which the window was full.
#[derive(Clone, Default, Debug)]
pub(crate) struct CwndUsage {
    /// The offset that ends the present window (`cwnd_usage_seq`), and the largest flight in it (`max_packets_out`).
    window_seq: u64,
    flight_max: u32,
    /// Largest flight since `full_at` (`snd_cwnd_used`).
    used: u32,
    /// Last time of the window's full use, in ps (`snd_cwnd_stamp`).
    full_at: u64,
    /// True if the window limited the last transmission (`is_cwnd_limited`).
    is_limited: bool,
    /// True if new segments were sent since the last validation.
    is_unvalidated: bool,
    /// True if idleness was checked since the last write of the application or opening of the offered window.
    is_idle_checked: bool,
}

impl CwndUsage {
    /// Notes that the window limits the transmission.
    #[inline]
    pub(crate) fn note_limit(&mut self) {
        self.is_limited = true;
    }

    /// Notes that the window is full at `now`, and forgets the largest flight so far.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.set_full_at(now);
        self.used = 0;
    }

    /// Sets the last time of full use to `now`, and keeps the largest flight so far.
    pub(crate) fn set_full_at(&mut self, now: Instant) {
        self.full_at = now.get();
    }

    /// Notes a write of the application or an opening of the offered window: the next transmission may end an idle
    /// period.
    #[inline]
    pub(crate) fn check_idleness_again(&mut self) {
        self.is_idle_checked = false;
    }

    /// Returns true if segments were sent since the last validation.
    #[inline]
    pub(crate) fn is_unvalidated(&self) -> bool {
        self.is_unvalidated
    }
}

impl Endpoint {
    /// Returns true if the congestion window limits the sender, so that it may grow (`tcp_is_cwnd_limited`).
    #[inline]
    pub(crate) fn is_cwnd_limited(&self, config: &Config, in_flight: u32) -> bool {
        match config.validation {
            Validation::None => true,
            Validation::Burst => {
                let left = self.window.cwnd.saturating_sub(in_flight);
                left <= 3 * config.segment_units()
                    // The part that a deferred burst leaves unused counts as used.
                    || config.segmentation.is_some_and(|offload| {
                        left.saturating_mul(offload.window_divisor) < self.window.cwnd
                            && config.bytes(left) < u64::from(offload.offload_burst)
                    })
            }
            Validation::MaximumFlight => {
                self.usage.is_limited
                    || (self.window.in_slow_start() && self.window.cwnd < 2 * self.usage.flight_max)
            }
        }
    }

    /// Notes a segment just sent: updates the largest flight, and whether the window was filled.
    #[inline]
    pub(crate) fn note_transmission(&mut self, config: &Config) {
        debug_assert!(self.flight.size > 0, "a segment was sent, and none is outstanding");
        let full = self.flight.pipe() + config.segment_units() > self.window.cwnd;
        let usage = &mut self.usage;
        match config.validation {
            Validation::MaximumFlight => {
                if self.send.una() >= usage.window_seq
                    || full
                    || (!usage.is_limited && self.flight.size > usage.flight_max)
                {
                    usage.is_limited = full;
                    usage.flight_max = self.flight.size;
                    usage.window_seq = self.send.nxt();
                }
            }
            Validation::Burst | Validation::None => usage.is_limited = full,
        }
        debug_assert!(usage.window_seq <= self.send.nxt(), "the window ends beyond the last byte sent");
        usage.is_unvalidated = true;
    }

    /// Validates the window when nothing more can be sent. A window that was not full for an RTO shrinks towards its
    /// use (RFC 2861; `tcp_cwnd_validate`, `tcp_cwnd_application_limited`).
    pub(crate) fn validate_cwnd(&mut self, config: &Config, now: Instant) {
        self.usage.is_unvalidated = false;
        let full = match config.validation {
            Validation::None => return,
            Validation::Burst => self.flight.size >= self.window.cwnd,
            Validation::MaximumFlight => self.is_cwnd_limited(config, self.flight.pipe()),
        };
        if full {
            self.usage.restart(now);
            return;
        }
        self.usage.used = self.usage.used.max(self.flight.size);
        if !config.slow_start_after_idle
            || self.congestion.models_path()
            || now.get().saturating_sub(self.usage.full_at) < self.rtt.rto(config).get()
        {
            return;
        }
        if self.ca_state == CongestionState::Open {
            let used = self.usage.used.max(config.initial_cwnd());
            if used < self.window.cwnd {
                self.window.ssthresh = self.current_ssthresh();
                self.window.cwnd = (self.window.cwnd + used) >> 1;
                assert!(self.window.cwnd >= used && used > 0, "a window shrinks below its use");
            }
        }
        self.usage.restart(now);
    }

    /// Handles data sent with none outstanding: halves the window for each RTO of idleness (RFC 2861, RFC 5681 §4.1;
    /// `tcp_slow_start_after_idle_check`, `tcp_cwnd_restart`). Linux checks when the application writes and when a
    /// closed window opens (since 4.3), not while it is closed.
    pub(crate) fn restart_after_idle(&mut self, config: &Config, now: Instant) {
        let rto = self.rtt.rto(config).get();
        let idle = now.get().saturating_sub(self.last_sent_at);
        if self.last_sent_at == 0 {
            return;
        }
        self.congestion.on_restart(config, now, Instant::new(self.last_sent_at));
        let was_checked = core::mem::replace(&mut self.usage.is_idle_checked, true);
        if was_checked && config.validation == Validation::MaximumFlight {
            return;
        }
        if !config.slow_start_after_idle || idle <= rto || self.congestion.models_path() {
            return;
        }
        assert!(rto > 0, "an RTO of zero halves the window for ever");
        let threshold = self.current_ssthresh();
        let floor = config.initial_cwnd().min(self.window.cwnd);
        assert!(floor > 0, "the congestion window is closed and never opens again");
        let mut left = idle;
        while left > rto && self.window.cwnd > floor {
            left -= rto;
            self.window.cwnd >>= 1;
        }
        self.window.cwnd = self.window.cwnd.max(floor);
        self.window.ssthresh = threshold;
        self.usage.restart(now);
    }

    /// The slow-start threshold, or three quarters of the window if that is more (`tcp_current_ssthresh`). During a reduction
    /// the threshold alone counts.
    pub(crate) fn current_ssthresh(&self) -> u32 {
        match self.ca_state {
            CongestionState::Cwr | CongestionState::Recovery => self.window.ssthresh,
            _ => self.window.ssthresh.max((self.window.cwnd >> 1) + (self.window.cwnd >> 2)),
        }
    }
}
