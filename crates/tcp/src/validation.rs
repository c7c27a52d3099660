//! Whether the window is used, and what becomes of it when it is not (RFC 7661, RFC 2861).

use fanin_units::Instant;

use crate::config::{Config, Validation};
use crate::endpoint::{Endpoint, State};

impl Endpoint {
    /// Whether the window was the limit, so that it may grow (`tcp_is_cwnd_limited`).
    #[inline]
    pub(crate) fn is_window_limited(&self, config: &Config, in_flight: u32) -> bool {
        match config.validation {
            Validation::None => true,
            Validation::Burst => {
                let left = self.window.cwnd.saturating_sub(in_flight);
                left <= 3 * config.segment_units()
                    // What a burst that waits leaves unused counts as used.
                    || config.segmentation.is_some_and(|offload| {
                        left.saturating_mul(offload.window_divisor) < self.window.cwnd
                            && config.bytes(left) < u64::from(offload.burst_bytes_max)
                    })
            }
            Validation::MaximumFlight => {
                self.window_was_full
                    || (self.window.in_slow_start() && self.window.cwnd < 2 * self.flight_max)
            }
        }
    }

    /// Notes a segment just sent: the greatest flight of a window, and whether the window was filled.
    #[inline]
    pub(super) fn note_use(&mut self, config: &Config) {
        let full = self.flight.in_network() + config.segment_units() > self.window.cwnd;
        match config.validation {
            Validation::MaximumFlight => {
                if self.una >= self.flight_point
                    || full
                    || (!self.window_was_full && self.flight.out > self.flight_max)
                {
                    self.window_was_full = full;
                    self.flight_max = self.flight.out;
                    self.flight_point = self.next;
                }
            }
            Validation::Burst | Validation::None => self.window_was_full = full,
        }
        self.unvalidated = true;
    }

    /// Looks at the use of the window once nothing more can go: a window that went unused for a time-out shrinks
    /// towards its use (RFC 2861; `tcp_cwnd_validate`, `tcp_cwnd_application_limited`).
    pub(super) fn validate_window(&mut self, config: &Config, now: Instant) {
        self.unvalidated = false;
        let full = match config.validation {
            Validation::None => return,
            Validation::Burst => self.flight.out >= self.window.cwnd,
            Validation::MaximumFlight => self.is_window_limited(config, self.flight.in_network()),
        };
        if full {
            self.window_was_used(now);
            return;
        }
        self.flight_used = self.flight_used.max(self.flight.out);
        if !config.slow_start_after_idle
            || now.get().saturating_sub(self.flight_stamp) < self.rtt.rto(config).get()
        {
            return;
        }
        if self.state == State::Open {
            let used = self.flight_used.max(config.initial_cwnd());
            if used < self.window.cwnd {
                self.window.ssthresh = self.current_threshold();
                self.window.cwnd = (self.window.cwnd + used) >> 1;
            }
        }
        self.window_was_used(now);
    }

    /// Starts the clock of disuse anew (`snd_cwnd_stamp`, `snd_cwnd_used`).
    pub(super) fn window_was_used(&mut self, now: Instant) {
        self.flight_stamp = now.get();
        self.flight_used = 0;
    }

    /// Nothing is out and something is to be sent: a window that rested for longer than a time-out starts again
    /// (RFC 5681 §4.1; `tcp_slow_start_after_idle_check`, `tcp_cwnd_restart`).
    pub(super) fn restart_after_idle(&mut self, config: &Config, now: Instant) {
        let rto = self.rtt.rto(config).get();
        let idle = now.get().saturating_sub(self.last_sent_at);
        if self.last_sent_at == 0 {
            return;
        }
        self.window.restarted(config, now, Instant::new(self.last_sent_at));
        if !config.slow_start_after_idle || idle <= rto {
            return;
        }
        let threshold = self.current_threshold();
        let floor = config.initial_cwnd().min(self.window.cwnd);
        let mut left = idle;
        while left > rto && self.window.cwnd > floor {
            left -= rto;
            self.window.cwnd >>= 1;
        }
        self.window.cwnd = self.window.cwnd.max(floor);
        self.window.ssthresh = threshold;
        self.window_was_used(now);
    }

    /// Three quarters of the window, where that is more than the threshold (`tcp_current_ssthresh`).
    pub(crate) fn current_threshold(&self) -> u32 {
        match self.state {
            State::Reduced | State::Recovery => self.window.ssthresh,
            _ => self.window.ssthresh.max((self.window.cwnd >> 1) + (self.window.cwnd >> 2)),
        }
    }
}
