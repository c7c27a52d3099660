//! Periodic tasks of a worker.

use fanin_units::{Duration, Instant};

/// Interval at which some entries of the station table are checked for age.
const AGE_EVERY: Duration = Duration::from_millis(1);
/// Interval at which the lengths of queues are sampled.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);
/// Interval at which the driver's link states are read.
const LINKS_EVERY: Duration = Duration::from_millis(100);
/// The period of the high-water marks `*_max_period`.
const PERIOD: Duration = Duration::from_secs(10);

/// Next time of each periodic task.
#[derive(Debug)]
pub(super) struct WorkerTimers {
    age_at: Instant,
    sample_at: Instant,
    links_at: Instant,
    period_at: Instant,
}

/// The tasks that are due.
#[derive(Debug, Clone, Copy)]
pub(super) struct DueTasks {
    pub(super) sample: bool,
    pub(super) links: bool,
    pub(super) period: bool,
}

impl WorkerTimers {
    /// Starts all timers now. Links are checked later: a link that has just come up is not visible yet.
    pub(super) fn new() -> Self {
        Self {
            age_at: Instant::START,
            sample_at: Instant::START,
            links_at: Instant::START + LINKS_EVERY,
            period_at: Instant::START + PERIOD,
        }
    }

    /// Returns the tasks that are due; `None` before the next millisecond. Stations age whenever the result is not `None`.
    #[inline]
    pub(super) fn poll(&mut self, now: Instant) -> Option<DueTasks> {
        if now < self.age_at {
            return None;
        }
        self.age_at = now + AGE_EVERY;
        let due = |at: &mut Instant, every: Duration| {
            let is_due = now >= *at;
            if is_due {
                *at = now + every;
            }
            is_due
        };
        Some(DueTasks {
            sample: due(&mut self.sample_at, SAMPLE_EVERY),
            links: due(&mut self.links_at, LINKS_EVERY),
            period: due(&mut self.period_at, PERIOD),
        })
    }
}
