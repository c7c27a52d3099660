//! BBR's estimates of a path: the largest bandwidth of ten round trips, and the rate of a policer.

use super::rate::{RATE_SHIFT, UNIT, bytes_per_second};
use crate::delivery_rate::MICROSECOND;

/// Rounds that the bandwidth filter spans: a cycle of gains and two more (`bbr_bw_rtts`).
const BANDWIDTH_ROUNDS: u64 = 10;
/// Least number of rounds in an interval of the long-term sampler (`bbr_lt_intvl_min_rtts`).
const POLICED_ROUNDS_MIN: u32 = 4;
/// Loss of a policed interval: 50 of 256 segments, about a fifth (`bbr_lt_loss_thresh`).
const POLICED_LOSS: u64 = 50;
/// Two intervals agree within an eighth (`bbr_lt_bw_ratio`), or within 4 kb/s (`bbr_lt_bw_diff`, in bytes a second).
const POLICED_DIFFERENCE: u64 = 8;
const POLICED_DIFFERENCE_BYTES: u64 = 4000 / 8;
/// Rounds after which a policed rate is tried again (`bbr_lt_bw_max_rtts`).
const POLICED_ROUNDS_MAX: u32 = 48;

/// Largest bandwidth of the last ten rounds: the three best samples (Kathleen Nichols' filter, `lib/win_minmax.c`).
#[derive(Clone, Debug, Default)]
pub(super) struct MaxFilter {
    /// Round and value, the largest first.
    best: [(u64, u64); 3],
}

impl MaxFilter {
    pub(super) fn get(&self) -> u64 {
        self.best[0].1
    }

    /// Adds the sample `value` of round number `round`.
    pub(super) fn update(&mut self, round: u64, value: u64) {
        assert!(round >= self.best[2].0, "rounds run backwards");
        self.add((round, value));
        let [first, second, third] = self.best;
        assert!(first.1 >= second.1 && second.1 >= third.1, "the samples are not ordered by their value");
        assert!(first.0 <= second.0 && second.0 <= third.0, "the samples are not ordered by their round");
    }

    fn add(&mut self, sample: (u64, u64)) {
        let (round, value) = sample;
        if value >= self.best[0].1 || round - self.best[2].0 > BANDWIDTH_ROUNDS {
            self.best = [sample; 3];
            return;
        }
        if value >= self.best[1].1 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value >= self.best[2].1 {
            self.best[2] = sample;
        }
        let age = round - self.best[0].0;
        if age > BANDWIDTH_ROUNDS {
            // The best is too old: the others move up, twice if the second is as old.
            for _ in 0..2 {
                self.best = [self.best[1], self.best[2], sample];
                if round - self.best[0].0 <= BANDWIDTH_ROUNDS {
                    break;
                }
            }
        } else if self.best[1].0 == self.best[0].0 && age > BANDWIDTH_ROUNDS / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > BANDWIDTH_ROUNDS / 2 {
            self.best[2] = sample;
        }
    }
}

/// An ACK, with the inputs of the long-term sampler.
#[derive(Clone, Copy, Debug)]
pub(super) struct PolicedSample {
    /// Segments delivered and lost so far; time of the last delivery, in ps.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) delivered_at: u64,
    /// Segments that this ACK declares lost.
    pub(super) losses: u32,
    pub(super) is_app_limited: bool,
    pub(super) is_round_start: bool,
}

/// Finds the rate of a token-bucket policer: two intervals of equal rate with much loss (`bbr_lt_bw_sampling`).
#[derive(Clone, Debug, Default)]
pub(super) struct LongTermRate {
    is_sampling: bool,
    /// True if the rate is in use, false if it is only sampled.
    is_used: bool,
    rate: u64,
    rounds: u32,
    begin_ms: u64,
    begin_delivered: u64,
    begin_lost: u64,
}

impl LongTermRate {
    /// The policer's rate, if there is one.
    pub(super) fn get(&self) -> Option<u64> {
        self.is_used.then_some(self.rate)
    }

    /// Forgets the rate and begins a new interval (`bbr_reset_lt_bw_sampling`).
    pub(super) fn reset(&mut self, sample: &PolicedSample) {
        *self = Self::default();
        self.begin(sample);
    }

    fn begin(&mut self, sample: &PolicedSample) {
        self.begin_ms = sample.delivered_at / (1000 * MICROSECOND);
        self.begin_delivered = sample.delivered;
        self.begin_lost = sample.lost;
        self.rounds = 0;
    }

    /// Handles an ACK of a connection with segments of `mss` bytes. Returns true if the rate was in use for so long that the
    /// network has to be probed again. `may_end` is true while the connection cruises.
    pub(super) fn update(&mut self, sample: &PolicedSample, mss: u16, may_end: bool) -> bool {
        if self.is_used {
            if may_end && sample.is_round_start {
                self.rounds += 1;
                if self.rounds >= POLICED_ROUNDS_MAX {
                    self.reset(sample);
                    return true;
                }
            }
            return false;
        }
        if !self.is_sampling {
            if sample.losses == 0 {
                return false;
            }
            self.begin(sample);
            self.is_sampling = true;
        }
        if sample.is_app_limited {
            self.reset(sample);
            return false;
        }
        self.rounds += u32::from(sample.is_round_start);
        if self.rounds < POLICED_ROUNDS_MIN {
            return false;
        }
        if self.rounds > 4 * POLICED_ROUNDS_MIN {
            self.reset(sample);
            return false;
        }
        assert!(sample.lost >= self.begin_lost && sample.delivered >= self.begin_delivered, "counts fall");
        // An interval ends with a loss: the tokens are then used up.
        let lost = sample.lost - self.begin_lost;
        let delivered = sample.delivered - self.begin_delivered;
        if sample.losses == 0 || delivered == 0 || lost * 256 < POLICED_LOSS * delivered {
            return false;
        }
        let elapsed_ms = (sample.delivered_at / (1000 * MICROSECOND)).saturating_sub(self.begin_ms);
        if elapsed_ms >= 1 {
            self.end_interval((delivered << RATE_SHIFT) / (elapsed_ms * 1000), sample, mss);
        }
        false
    }

    /// Handles the end of an interval (`bbr_lt_bw_interval_done`).
    fn end_interval(&mut self, rate: u64, sample: &PolicedSample, mss: u16) {
        let difference = rate.abs_diff(self.rate);
        let is_same = self.rate > 0
            && (difference * POLICED_DIFFERENCE <= self.rate
                || bytes_per_second(difference, UNIT, mss.into()) <= POLICED_DIFFERENCE_BYTES);
        if is_same {
            self.rate = u64::midpoint(rate, self.rate);
            self.is_used = true;
            self.rounds = 0;
        } else {
            self.rate = rate;
            self.begin(sample);
        }
    }
}
