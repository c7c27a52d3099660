//! Plans the restarts of processes that ended; `LiveSystem::start_again` starts them.

use std::time::{Duration, Instant};

/// An end sooner than this after the process's start is a quick end.
const QUICK: Duration = Duration::from_secs(10);
/// More quick ends in a row than this: the system continues without the process and restarts it after [`PAUSE_LONG`].
pub(super) const QUICK_ENDS_MAX: u32 = 20;
/// Pause before a restart after the first end; doubles with each quick end.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Maximum pause while the process is not given up.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Pause before each restart of a process that was given up.
pub(super) const PAUSE_LONG: Duration = Duration::from_secs(30);

/// Restart plan of one process: its last start, and its next one.
#[derive(Debug, Clone, Copy)]
pub struct RestartPlan {
    /// Time of the next start; `None` if none is planned.
    again: Option<Instant>,
    started: Instant,
    /// Quick ends in a row.
    quick_ends: u32,
}

impl RestartPlan {
    /// Returns the plan of a process that was just started.
    pub fn new(now: Instant) -> Self {
        Self { again: None, started: now, quick_ends: 0 }
    }

    /// Returns the time since the last start of the process.
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// Returns true if an end would not be a quick one.
    pub fn is_lasting(&self, now: Instant) -> bool {
        self.age(now) >= QUICK
    }

    /// Returns true if the system continues without the process, because it ended too often.
    pub fn is_given_up(&self) -> bool {
        self.quick_ends > QUICK_ENDS_MAX
    }

    /// Returns the number of quick ends in a row. An end after a longer incarnation counts as the first.
    pub fn quick_ends(&self) -> u32 {
        self.quick_ends
    }

    /// Plans the restart of a process that ended. The pause grows with each quick end.
    pub fn handle_ended(&mut self, now: Instant) {
        self.quick_ends = if self.is_lasting(now) { 1 } else { self.quick_ends + 1 };
        let pause = if self.is_given_up() {
            PAUSE_LONG
        } else {
            PAUSE_MIN.saturating_mul(1 << (self.quick_ends - 1).min(6)).min(PAUSE_MAX)
        };
        self.again = Some(now + pause);
    }

    /// Returns the time of the next start; `None` while the process runs, or if it is not restarted.
    pub fn next(&self) -> Option<Instant> {
        self.again
    }

    /// Notes that the process was restarted.
    pub fn handle_started(&mut self, now: Instant) {
        (self.again, self.started) = (None, now);
    }

    /// Cancels a planned restart.
    pub fn retire(&mut self) {
        self.again = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_again_and_again_is_tried_less_and_less_often() {
        let mut now = Instant::now();
        let mut plan = RestartPlan::new(now);
        for ends in 1..=QUICK_ENDS_MAX + 2 {
            plan.handle_ended(now);
            assert_eq!((plan.quick_ends(), plan.is_given_up()), (ends, ends > QUICK_ENDS_MAX));
            let pause = if ends > QUICK_ENDS_MAX { PAUSE_LONG } else { PAUSE_MAX };
            assert!(plan.next().is_some_and(|at| at > now && at <= now + pause));
            now += pause;
            plan.handle_started(now);
            assert_eq!(plan.next(), None);
        }
        // An end after a longer incarnation resets the count.
        plan.handle_ended(now + QUICK);
        assert!(!plan.is_given_up());
        plan.retire();
        assert_eq!(plan.next(), None);
    }
}
