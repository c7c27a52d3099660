//! Congestion window validation: whether the sender uses the window, and what an unused one becomes (RFC 7661, RFC 2861).

use fanin_units::Instant;

use crate::config::{Config, Validation};
use crate::endpoint::{CongestionState, Endpoint};

impl Endpoint {
    /// Returns whether the congestion window limits the sender, so that it may grow (`tcp_is_cwnd_limited`).
    #[inline]
    pub(crate) fn is_cwnd_limited(&self, config: &Config, in_flight: u32) -> bool {
        match config.validation {
            Validation::None => true,
            Validation::Burst => {
                let left = self.window.cwnd.saturating_sub(in_flight);
                left <= 3 * config.segment_units()
                    // What a deferred burst leaves unused counts as used.
                    || config.segmentation.is_some_and(|offload| {
                        left.saturating_mul(offload.window_divisor) < self.window.cwnd
                            && config.bytes(left) < u64::from(offload.offload_burst)
                    })
            }
            Validation::MaximumFlight => {
                self.cwnd_limited
                    || (self.window.in_slow_start() && self.window.cwnd < 2 * self.max_packets_out)
            }
        }
    }

    /// Notes a segment just sent: the largest flight of a window, and whether the window was filled.
    #[inline]
    pub(crate) fn note_transmission(&mut self, config: &Config) {
        let full = self.flight.pipe() + config.segment_units() > self.window.cwnd;
        match config.validation {
            Validation::MaximumFlight => {
                if self.snd_una >= self.cwnd_usage_seq
                    || full
                    || (!self.cwnd_limited && self.flight.size > self.max_packets_out)
                {
                    self.cwnd_limited = full;
                    self.max_packets_out = self.flight.size;
                    self.cwnd_usage_seq = self.snd_nxt;
                }
            }
            Validation::Burst | Validation::None => self.cwnd_limited = full,
        }
        self.cwnd_unvalidated = true;
    }

    /// Validates the window once nothing more can be sent: one that was not full for an RTO shrinks towards its use
    /// (RFC 2861; `tcp_cwnd_validate`, `tcp_cwnd_application_limited`).
    pub(crate) fn validate_cwnd(&mut self, config: &Config, now: Instant) {
        self.cwnd_unvalidated = false;
        let full = match config.validation {
            Validation::None => return,
            Validation::Burst => self.flight.size >= self.window.cwnd,
            Validation::MaximumFlight => self.is_cwnd_limited(config, self.flight.pipe()),
        };
        if full {
            self.note_cwnd_used(now);
            return;
        }
        self.cwnd_used = self.cwnd_used.max(self.flight.size);
        if !config.slow_start_after_idle
            || now.get().saturating_sub(self.cwnd_stamp) < self.rtt.rto(config).get()
        {
            return;
        }
        if self.ca_state == CongestionState::Open {
            let used = self.cwnd_used.max(config.initial_cwnd());
            if used < self.window.cwnd {
                self.window.ssthresh = self.current_ssthresh();
                self.window.cwnd = (self.window.cwnd + used) >> 1;
            }
        }
        self.note_cwnd_used(now);
    }

    /// The window was in full use now: restarts the clock of disuse (`snd_cwnd_stamp`, `snd_cwnd_used`).
    pub(crate) fn note_cwnd_used(&mut self, now: Instant) {
        self.cwnd_stamp = now.get();
        self.cwnd_used = 0;
    }

    /// Data is sent and none is outstanding: halves the window for each RTO of idleness (RFC 2861, RFC 5681 §4.1;
    /// `tcp_slow_start_after_idle_check`, `tcp_cwnd_restart`). Linux checks when the application writes and when a closed
    /// window opens (since 4.3), not while it is closed.
    pub(crate) fn restart_after_idle(&mut self, config: &Config, now: Instant) {
        let rto = self.rtt.rto(config).get();
        let idle = now.get().saturating_sub(self.last_sent_at);
        if self.last_sent_at == 0 {
            return;
        }
        self.congestion.on_restart(config, now, Instant::new(self.last_sent_at));
        let was_checked = core::mem::replace(&mut self.idle_checked, true);
        if was_checked && config.validation == Validation::MaximumFlight {
            return;
        }
        if !config.slow_start_after_idle || idle <= rto {
            return;
        }
        let threshold = self.current_ssthresh();
        let floor = config.initial_cwnd().min(self.window.cwnd);
        let mut left = idle;
        while left > rto && self.window.cwnd > floor {
            left -= rto;
            self.window.cwnd >>= 1;
        }
        self.window.cwnd = self.window.cwnd.max(floor);
        self.window.ssthresh = threshold;
        self.note_cwnd_used(now);
    }

    /// The slow-start threshold, or three quarters of the window if that is more (`tcp_current_ssthresh`).
    pub(crate) fn current_ssthresh(&self) -> u32 {
        match self.ca_state {
            CongestionState::Cwr | CongestionState::Recovery => self.window.ssthresh,
            _ => self.window.ssthresh.max((self.window.cwnd >> 1) + (self.window.cwnd >> 2)),
        }
    }
}
