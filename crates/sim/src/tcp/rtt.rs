//! Round-trip time and retransmission time-out.

use fanin_units::Duration;

use super::config::{Config, RtoEstimator};

/// The estimator's memory, in ticks of [`Config::rtt_tick`] scaled as the kernel scales them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rtt {
    /// Smoothed round-trip time, times 8; 0 before the first sample.
    pub(crate) srtt: u32,
    /// Mean deviation, times 4.
    mdev: u32,
    /// Greatest mean deviation of this flight (Linux).
    mdev_max: u32,
    /// Variation, times 4.
    rttvar: u32,
    /// Least sample ever; 0 before the first.
    pub(crate) min: u32,
    /// The RTO without back-off, in picoseconds.
    rto_ps: u64,
    /// How often the RTO was doubled since.
    pub(crate) backoff: u8,
}

impl Rtt {
    pub(crate) fn new(config: &Config) -> Self {
        Self { rto_ps: config.rto.initial.get(), ..Self::default() }
    }

    /// The retransmission time-out in force.
    #[inline]
    pub(crate) fn rto(&self, config: &Config) -> Duration {
        let max = config.rto.max.get();
        Duration::new(self.rto_ps.saturating_mul(1 << self.backoff.min(30)).min(max))
    }

    /// The smoothed round-trip time, zero before the first sample.
    pub(crate) fn smoothed(&self, config: &Config) -> Duration {
        Duration::new(u64::from(self.srtt) * config.rtt_tick.get() / 8)
    }

    /// The least round-trip time in picoseconds, `None` before the first sample.
    pub(crate) fn min_ps(&self, config: &Config) -> Option<u64> {
        (self.min > 0).then(|| u64::from(self.min) * config.rtt_tick.get())
    }

    /// Takes a sample in ticks. `flight_over`: an ACK passed the point that was the end of the flight when
    /// this was last so; returned is whether a new flight begins.
    #[inline]
    pub(crate) fn sample(&mut self, config: &Config, ticks: u32, flight_over: bool) -> bool {
        // A clock that stood still counts one tick (`tcp_rtt_estimator`, `tcp_valid_rtt_meas`).
        let measured = ticks.max(1);
        if self.min == 0 || measured < self.min {
            self.min = measured;
        }
        self.backoff = 0;
        match config.rto.estimator {
            RtoEstimator::Linux => self.sample_linux(config, measured, flight_over),
            RtoEstimator::Rfc6298 { granularity } => {
                self.sample_rfc6298(config, measured, granularity);
                false
            }
        }
    }

    // tcp_rtt_estimator and tcp_set_rto of net/ipv4/tcp_input.c; Jacobson's integer arithmetic.
    #[inline]
    fn sample_linux(&mut self, config: &Config, measured: u32, flight_over: bool) -> bool {
        let tick = config.rtt_tick.get();
        let floor = (config.rto.min.get() / tick) as u32;
        let mut begins = false;
        if self.srtt == 0 {
            self.srtt = measured << 3;
            self.mdev = measured << 1;
            self.rttvar = self.mdev.max(floor);
            self.mdev_max = self.rttvar;
            begins = true;
        } else {
            let mut error = measured as i32 - (self.srtt >> 3) as i32;
            self.srtt = (self.srtt as i32 + error) as u32;
            if error < 0 {
                error = -error - (self.mdev >> 2) as i32;
                // A falling round-trip time must not blow up the variation (Eifel's finding).
                if error > 0 {
                    error >>= 3;
                }
            } else {
                error -= (self.mdev >> 2) as i32;
            }
            self.mdev = (self.mdev as i32 + error) as u32;
            if self.mdev > self.mdev_max {
                self.mdev_max = self.mdev;
                self.rttvar = self.rttvar.max(self.mdev_max);
            }
            if flight_over {
                if self.mdev_max < self.rttvar {
                    self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
                }
                self.mdev_max = floor;
                begins = true;
            }
        }
        self.rto_ps = u64::from((self.srtt >> 3) + self.rttvar) * tick;
        begins
    }

    // RFC 6298 §2.2 to §2.4.
    fn sample_rfc6298(&mut self, config: &Config, measured: u32, granularity: Duration) {
        let tick = config.rtt_tick.get();
        if self.srtt == 0 {
            self.srtt = measured << 3;
            self.rttvar = measured << 1;
        } else {
            let error = measured.abs_diff(self.srtt >> 3);
            self.rttvar = self.rttvar - (self.rttvar >> 2) + error;
            self.srtt = self.srtt - (self.srtt >> 3) + measured;
        }
        let variation = (u64::from(self.rttvar) * tick).max(granularity.get());
        self.rto_ps = (u64::from(self.srtt >> 3) * tick + variation).max(config.rto.min.get());
    }
}
