//! Exponential back-off with jitter: peers of one lost server reconnect at different times.

use std::time::Duration;

use fanin_units::{MIX_STEP, mix};

/// Pauses between attempts to connect after a lost or refused connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Upper bound of the pause before the first new attempt. Default: 100 ms.
    pub first: Duration,
    /// Upper bound of every pause. Default: 5 s.
    pub longest: Duration,
    /// Attempts in a row without a connection before the endpoint stops trying. Default: no limit.
    pub attempts_max: Option<u32>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_millis(100), longest: Duration::from_secs(5), attempts_max: None }
    }
}

impl Backoff {
    /// Returns the pause before attempt `attempt` (1 is the first after a loss); `None` if no attempt is left.
    /// `random` is any 64 bits. The pause is uniform between half of the bound and the bound, which doubles with each
    /// attempt.
    pub fn pause(&self, attempt: u32, random: u64) -> Option<Duration> {
        if self.attempts_max.is_some_and(|max| attempt > max) {
            return None;
        }
        let doubled =
            self.first.saturating_mul(1u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
        let bound = doubled.min(self.longest);
        let half = bound / 2;
        let jitter = (half.as_nanos() * u128::from(random)) >> 64;
        Some(half + Duration::from_nanos(jitter as u64))
    }
}

/// Random bits for jitter (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Jitter(pub(crate) u64);

impl Jitter {
    pub(crate) fn next(&mut self) -> u64 {
        let word = mix(self.0);
        self.0 = self.0.wrapping_add(MIX_STEP);
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_are_spread() {
        let backoff = Backoff { attempts_max: Some(40), ..Backoff::default() };
        let bounds =
            |attempt| (backoff.pause(attempt, 0).unwrap(), backoff.pause(attempt, u64::MAX).unwrap());
        let near = |a: Duration, ms: u64| a.abs_diff(Duration::from_millis(ms)) < Duration::from_micros(1);
        for (attempt, ms) in [(1, 100), (2, 200), (4, 800), (7, 5000), (33, 5000), (40, 5000)] {
            let (least, most) = bounds(attempt);
            assert!(near(least, ms / 2) && near(most, ms), "{attempt}: {least:?} to {most:?}");
        }
        assert_eq!(backoff.pause(41, 0), None);
        let mut random = Jitter(1);
        let pauses: Vec<_> = (0..100).map(|_| backoff.pause(1, random.next()).unwrap()).collect();
        let mean = pauses.iter().sum::<Duration>() / 100;
        assert!(mean.abs_diff(Duration::from_millis(75)) < Duration::from_millis(10), "{mean:?}");
    }
}
