//! The token bucket.

use fanin_units::{Bytes, Instant, PS_BITS, Rate};

/// Picoseconds of a second.
const PS_A_SECOND: u64 = PS_BITS / 8;

/// A token bucket: passes `rate` on average, and at most `burst` at once.
///
/// Its state is the time at which the bucket will be full again (virtual scheduling algorithm, ITU-T I.371). So no timer
/// refills it. The rate is exact to one part in 10^10, after any number of frames. A frame larger than the burst
/// passes when the bucket is full, and leaves a debt, so that it does not wait for ever. A burst of zero spaces frames like
/// a link of this rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    /// Time at which the bucket is full, in ps.
    full_at: u64,
    /// The fraction of a picosecond beyond `full_at`, in 2^-32.
    full_at_fraction: u32,
    /// Picoseconds a byte, with 32 bits after the point.
    byte_time: u64,
    /// Time in which the whole burst accrues, in ps.
    burst_time: u64,
}

/// Errors of a token bucket's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BucketError {
    /// The rate is below or above the supported range.
    #[error("a token bucket's rate lies between {min} and {max}, not {actual}")]
    Rate {
        /// The rate given.
        actual: Rate,
        /// The least rate that is supported.
        min: Rate,
        /// The largest rate that is supported.
        max: Rate,
    },
    /// The burst takes longer than a day to accrue.
    #[error("a burst of {burst} at {rate} takes more than {max_s} s to accrue")]
    Burst {
        /// The burst given.
        burst: Bytes,
        /// The rate given.
        rate: Rate,
        /// The longest time to accrue the burst, in seconds.
        max_s: u64,
    },
}

impl TokenBucket {
    /// The least rate.
    pub const RATE_MIN: Rate = Rate::new(10_000);
    /// The largest rate.
    pub const RATE_MAX: Rate = Rate::new(4_000_000_000_000);
    /// The longest time in which a burst accrues, in seconds.
    pub const BURST_SECONDS_MAX: u64 = 86_400;

    /// Makes a full bucket.
    ///
    /// # Errors
    /// If the rate lies outside [`Self::RATE_MIN`] to [`Self::RATE_MAX`], or the burst takes longer than
    /// [`Self::BURST_SECONDS_MAX`] to accrue.
    pub const fn new(rate: Rate, burst: Bytes) -> Result<Self, BucketError> {
        let (min, max) = (Self::RATE_MIN, Self::RATE_MAX);
        if rate.get() < min.get() || rate.get() > max.get() {
            return Err(BucketError::Rate { actual: rate, min, max });
        }
        let longest = Self::BURST_SECONDS_MAX;
        let burst_time = match rate.checked_time_to_send(burst) {
            Some(time) if time.get() <= longest * PS_A_SECOND => time.get(),
            _ => return Err(BucketError::Burst { burst, rate, max_s: longest }),
        };
        let byte_time = (((PS_BITS as u128) << 32) + rate.get() as u128 / 2) / rate.get() as u128;
        Ok(Self { full_at: 0, full_at_fraction: 0, byte_time: byte_time as u64, burst_time })
    }

    #[inline]
    const fn cost(&self, bytes: u32) -> u128 {
        self.byte_time as u128 * bytes as u128
    }

    /// The earliest time at which a frame of `bytes` bytes may depart.
    #[inline]
    pub const fn ready_at(&self, bytes: u32) -> Instant {
        let cost = (self.cost(bytes) >> 32) as u64;
        let needed = if cost < self.burst_time { cost } else { self.burst_time };
        Instant::new((self.full_at + needed).saturating_sub(self.burst_time))
    }

    /// Charges a frame of `bytes` bytes that departs at `now`. Call [`Self::ready_at`] first: a frame that departs too
    /// early is charged, too.
    #[inline]
    pub const fn take(&mut self, now: Instant, bytes: u32) {
        if self.full_at < now.get() {
            self.full_at = now.get();
            self.full_at_fraction = 0;
        }
        let cost = self.cost(bytes) + self.full_at_fraction as u128;
        self.full_at += (cost >> 32) as u64;
        self.full_at_fraction = cost as u32;
        assert!(self.full_at >= now.get(), "a bucket was full before it was charged");
    }

    /// The time from which the bucket has no debt: the lower bound of [`Self::ready_at`] for frames of any size.
    #[inline]
    pub(crate) const fn open_at(&self) -> Instant {
        Instant::new(self.full_at.saturating_sub(self.burst_time))
    }

    /// Sets another rate and burst at `now`. The bucket lacks as many bytes as before to be full, or as many as come in
    /// [`Self::BURST_SECONDS_MAX`].
    ///
    /// # Errors
    /// As [`Self::new`]; the bucket is then unchanged.
    pub const fn set(&mut self, now: Instant, rate: Rate, burst: Bytes) -> Result<(), BucketError> {
        match Self::new(rate, burst) {
            Ok(mut bucket) => {
                let debt = self.full_at.saturating_sub(now.get()) as u128 * bucket.byte_time as u128
                    / self.byte_time as u128;
                let longest = Self::BURST_SECONDS_MAX * PS_A_SECOND;
                bucket.full_at = now.get() + if debt > longest as u128 { longest } else { debt as u64 };
                *self = bucket;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::Duration;

    #[test]
    fn a_far_lower_rate_keeps_at_most_the_debt_of_a_day() {
        let mut bucket = TokenBucket::new(TokenBucket::RATE_MAX, Bytes::new(40_000_000_000)).unwrap();
        for _ in 0..40 {
            bucket.take(Instant::START, 1_000_000_000);
        }
        bucket.set(Instant::START, TokenBucket::RATE_MIN, Bytes::new(1500)).unwrap();
        let day = Duration::from_secs(TokenBucket::BURST_SECONDS_MAX);
        assert!(bucket.ready_at(1500) <= Instant::START + day);
        bucket.take(Instant::START + day, 1500);
    }

    /// Bytes that a backlogged queue sends in one second, after the burst is used up.
    fn sent_in(rate: Rate, burst: Bytes, bytes: u32, time: Duration) -> u64 {
        let mut bucket = TokenBucket::new(rate, burst).unwrap();
        let (mut now, mut sent) = (Instant::START, 0);
        loop {
            now = bucket.ready_at(bytes).max(now);
            if now.get() >= time.get() {
                return sent;
            }
            bucket.take(now, bytes);
            sent += u64::from(bytes);
        }
    }

    #[test]
    fn the_rate_is_exact() {
        for (rate, millis) in [
            (10_000_000, 1_000),
            (780_000_000, 1_000),
            (10_000_000_000, 200),
            (98_765_432_101, 50),
            (400_000_000_000, 20),
        ] {
            for bytes in [64, 1500, 9018] {
                let (rate, time) = (Rate::new(rate), Duration::from_millis(millis));
                let ideal = rate.bytes_in(time).get();
                for burst in [0, 20_000] {
                    let sent = sent_in(rate, Bytes::new(burst), bytes, time);
                    let slack = burst + 2 * u64::from(bytes);
                    assert!(sent.abs_diff(ideal) <= slack, "{rate} {bytes} {burst}: {sent} of {ideal}");
                }
            }
        }
    }

    #[test]
    fn a_burst_goes_at_once_and_is_not_exceeded() {
        let mut bucket = TokenBucket::new(Rate::new(1_000_000_000), Bytes::new(3_000)).unwrap();
        let now = Instant::START + Duration::from_millis(5);
        for _ in 0..3 {
            assert!(bucket.ready_at(1_000) <= now);
            bucket.take(now, 1_000);
        }
        assert_eq!(bucket.ready_at(1_000), now + Duration::from_micros(8));
        assert_eq!(bucket.ready_at(500), now + Duration::from_micros(4));
        // Larger than the burst: waits for a full bucket, then leaves a debt.
        assert_eq!(bucket.ready_at(9_000), now + Duration::from_micros(24));
    }

    #[test]
    fn without_a_burst_it_is_a_link() {
        let mut bucket = TokenBucket::new(Rate::new(1_000_000_000), Bytes::ZERO).unwrap();
        bucket.take(Instant::START, 1_500);
        assert_eq!(bucket.ready_at(64), Instant::START + Duration::from_micros(12));
        bucket.take(Instant::START + Duration::from_micros(20), 125);
        assert_eq!(bucket.ready_at(64), Instant::START + Duration::from_micros(21));
    }

    #[test]
    fn a_new_rate_keeps_the_debt_in_bytes() {
        let mut bucket = TokenBucket::new(Rate::new(1_000_000_000), Bytes::ZERO).unwrap();
        bucket.take(Instant::START, 1_500);
        bucket.set(Instant::START, Rate::new(100_000_000), Bytes::ZERO).unwrap();
        assert_eq!(bucket.ready_at(64), Instant::START + Duration::from_micros(120));
        assert!(matches!(TokenBucket::new(Rate::new(1), Bytes::ZERO), Err(BucketError::Rate { .. })));
        assert!(matches!(TokenBucket::new(Rate::new(10_000), Bytes::MAX), Err(BucketError::Burst { .. })));
    }
}
