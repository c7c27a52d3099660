//! Decides how a system stops: the order of the roles, and what each process needs next.

use std::time::{Duration, Instant};

use crate::config::Role;

/// Time beyond `live.drain` after which a process that was asked to stop is killed.
const END_MARGIN: Duration = Duration::from_secs(5);
/// The roles in the order in which they stop. Supervisors finish all events first.
pub const STOP_ORDER: [Role; 4] = [Role::Supervisor, Role::Collector, Role::Logger, Role::Readout];

/// A process of the role that stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoppingProcess {
    /// Role of the process.
    pub role: Role,
    /// True if it has ended in order since it was asked, or was killed.
    pub has_ended: bool,
    /// True if it runs.
    pub is_running: bool,
    /// True if it may be asked to stop: a supervisor that has not opened its journal would end at once.
    pub is_settled: bool,
    /// True if it is started again after a failure.
    pub is_restarted: bool,
}

/// The next step for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopAction {
    /// The process needs nothing more.
    Done,
    /// Ask the process to stop. A second time has no effect.
    Ask,
    /// Look again later; start it if its restart is due.
    Wait,
    /// Kill the process, and start it again.
    Replace,
    /// Kill the process.
    Kill,
}

/// Returns the time for stopping of one process.
pub fn stop_limit(drain: Duration) -> Duration {
    drain + END_MARGIN
}

/// The stop of one process: its time for stopping, and whether that was prolonged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStop {
    until: Instant,
    is_prolonged: bool,
}

impl ProcessStop {
    /// Returns the stop of a process that must have ended `limit` from now.
    pub fn new(now: Instant, limit: Duration) -> Self {
        Self { until: now + limit, is_prolonged: false }
    }

    /// Returns the next step for the process.
    ///
    /// A supervisor that failed is started again: its journal names the unfinished events. If it has not finished in time, it gets
    /// `limit` once more, and one that runs is replaced, because it may hang. Processes of other roles are not started again.
    pub fn next(&mut self, now: Instant, process: StoppingProcess, limit: Duration) -> StopAction {
        let StoppingProcess { role, has_ended, is_running, is_settled, is_restarted } = process;
        let needs_restart = role == Role::Supervisor && is_restarted;
        if has_ended || !is_running && !needs_restart {
            return StopAction::Done;
        }
        if now < self.until {
            return if is_running && is_settled { StopAction::Ask } else { StopAction::Wait };
        }
        if needs_restart && !self.is_prolonged {
            *self = Self { until: now + limit, is_prolonged: true };
            return if is_running { StopAction::Replace } else { StopAction::Wait };
        }
        if is_running { StopAction::Kill } else { StopAction::Done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn process(role: Role) -> StoppingProcess {
        StoppingProcess { role, has_ended: false, is_running: false, is_settled: false, is_restarted: true }
    }

    /// Returns the steps of a process that stays as it is: at first, at its limit, and at twice its limit.
    fn steps(process: StoppingProcess) -> [StopAction; 3] {
        let now = Instant::now();
        let mut stop = ProcessStop::new(now, LIMIT);
        [now, now + LIMIT, now + 2 * LIMIT].map(|now| stop.next(now, process, LIMIT))
    }

    #[test]
    fn a_supervisor_that_failed_is_awaited_and_another_process_is_not() {
        use StopAction::{Ask, Done, Kill, Replace, Wait};
        let supervisor = process(Role::Supervisor);
        assert_eq!(steps(supervisor), [Wait, Wait, Done]);
        assert_eq!(steps(StoppingProcess { is_restarted: false, ..supervisor }), [Done; 3]);
        assert_eq!(steps(process(Role::Collector)), [Done; 3]);
        // A supervisor that hangs is replaced, once.
        let running = StoppingProcess { is_running: true, ..supervisor };
        assert_eq!(steps(running), [Wait, Replace, Kill]);
        let settled = StoppingProcess { is_settled: true, ..running };
        assert_eq!(steps(settled), [Ask, Replace, Kill]);
        assert_eq!(steps(StoppingProcess { is_restarted: false, ..settled }), [Ask, Kill, Kill]);
        assert_eq!(steps(StoppingProcess { role: Role::Logger, ..settled }), [Ask, Kill, Kill]);
        assert_eq!(steps(StoppingProcess { has_ended: true, ..running }), [Done; 3]);
    }

    #[test]
    fn a_supervisor_that_fails_just_before_its_limit_gets_as_long_again() {
        let mut now = Instant::now();
        let mut stop = ProcessStop::new(now, LIMIT);
        let running = StoppingProcess { is_running: true, is_settled: true, ..process(Role::Supervisor) };
        now += LIMIT - Duration::from_millis(1);
        assert_eq!(stop.next(now, running, LIMIT), StopAction::Ask);
        // It fails. Its restart is due later than its limit.
        now += Duration::from_millis(1);
        assert_eq!(stop.next(now, process(Role::Supervisor), LIMIT), StopAction::Wait);
        now += Duration::from_millis(100);
        assert_eq!(stop.next(now, running, LIMIT), StopAction::Ask);
        now += LIMIT;
        assert_eq!(stop.next(now, running, LIMIT), StopAction::Kill);
    }
}
