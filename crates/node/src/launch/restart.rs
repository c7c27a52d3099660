//! Times at which ended processes are started again; `LiveSystem::start_again` starts them.

use std::time::{Duration, Instant};

/// A process that ends sooner after its start than this has ended quickly.
const QUICK: Duration = Duration::from_secs(10);
/// Quick ends in a row after which the system continues without the process, and starts it only every [`PAUSE_LONG`].
pub(super) const QUICK_ENDS_MAX: u32 = 20;
/// Pauses before the next start: the first, the longest at first, and the one after [`QUICK_ENDS_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(100);
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(2);
pub(super) const PAUSE_LONG: Duration = Duration::from_secs(30);

/// The starts of one process: the last, and the next.
#[derive(Debug, Clone, Copy)]
pub struct RestartPlan {
    /// Time of the next start.
    again: Option<Instant>,
    started: Instant,
    /// Quick ends in a row.
    quick_ends: u32,
}

impl RestartPlan {
    /// The plan of a process that was just started.
    pub fn new(now: Instant) -> Self {
        Self { again: None, started: now, quick_ends: 0 }
    }

    /// Time since the last start of the process.
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// True if the system continues without the process, because it ended too often.
    pub fn is_given_up(&self) -> bool {
        self.quick_ends > QUICK_ENDS_MAX
    }

    /// Quick ends in a row.
    pub fn quick_ends(&self) -> u32 {
        self.quick_ends
    }

    /// Plans the next start of a process that ended, later after each quick end.
    pub fn handle_ended(&mut self, now: Instant) {
        self.quick_ends = if self.age(now) >= QUICK { 1 } else { self.quick_ends + 1 };
        let pause = if self.is_given_up() {
            PAUSE_LONG
        } else {
            PAUSE_MIN.saturating_mul(1 << (self.quick_ends - 1).min(6)).min(PAUSE_MAX)
        };
        self.again = Some(now + pause);
    }

    /// Time of the process's next start; `None` while it runs, or if it is not restarted.
    pub fn next(&self) -> Option<Instant> {
        self.again
    }

    /// The process was started again.
    pub fn handle_started(&mut self, now: Instant) {
        (self.again, self.started) = (None, now);
    }

    /// The process is not to be started again.
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
        // One that worked for a while begins anew.
        plan.handle_ended(now + QUICK);
        assert!(!plan.is_given_up());
        plan.retire();
        assert_eq!(plan.next(), None);
    }
}
