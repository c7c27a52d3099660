//! Decides how a system stops: the order of the roles, and what each process needs next.

use std::time::Duration;

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
    /// True if it was [replaced](StopAction::Replace) before.
    pub is_replaced: bool,
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
    /// Kill the process, and start it again; its time for stopping begins anew.
    Replace,
    /// Kill the process.
    Kill,
}

/// Returns the time for stopping of one process.
pub fn stop_limit(drain: Duration) -> Duration {
    drain + END_MARGIN
}

/// Returns the next step for a process. `is_overdue` is true once its time for stopping is over. A supervisor that failed is
/// started again, and one that hangs is replaced once: its journal names the unfinished events. Processes of other roles are not.
pub fn stop_action(process: StoppingProcess, is_overdue: bool) -> StopAction {
    match process {
        StoppingProcess { has_ended: true, .. } => StopAction::Done,
        StoppingProcess {
            role: Role::Supervisor,
            is_running: true,
            is_restarted: true,
            is_replaced: false,
            ..
        } if is_overdue => StopAction::Replace,
        StoppingProcess { is_running: true, .. } if is_overdue => StopAction::Kill,
        StoppingProcess { is_running: true, is_settled, .. } => {
            if is_settled {
                StopAction::Ask
            } else {
                StopAction::Wait
            }
        }
        StoppingProcess { role: Role::Supervisor, is_restarted: true, .. } if !is_overdue => StopAction::Wait,
        StoppingProcess { .. } => StopAction::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_that_failed_is_awaited_and_another_process_is_not() {
        let process = |role| StoppingProcess {
            role,
            has_ended: false,
            is_running: false,
            is_settled: false,
            is_restarted: true,
            is_replaced: false,
        };
        let supervisor = process(Role::Supervisor);
        assert_eq!(stop_action(supervisor, false), StopAction::Wait);
        assert_eq!(stop_action(supervisor, true), StopAction::Done);
        assert_eq!(
            stop_action(StoppingProcess { is_restarted: false, ..supervisor }, false),
            StopAction::Done
        );
        assert_eq!(stop_action(process(Role::Collector), false), StopAction::Done);
        let running = StoppingProcess { is_running: true, ..supervisor };
        assert_eq!(stop_action(running, false), StopAction::Wait);
        assert_eq!(stop_action(StoppingProcess { is_settled: true, ..running }, false), StopAction::Ask);
        assert_eq!(stop_action(StoppingProcess { role: Role::Logger, ..running }, true), StopAction::Kill);
        assert_eq!(stop_action(StoppingProcess { is_restarted: false, ..running }, true), StopAction::Kill);
        // A supervisor that hangs is replaced, once.
        assert_eq!(stop_action(running, true), StopAction::Replace);
        let replaced = StoppingProcess { is_replaced: true, ..running };
        assert_eq!(stop_action(replaced, false), StopAction::Wait);
        assert_eq!(stop_action(replaced, true), StopAction::Kill);
        assert_eq!(stop_action(StoppingProcess { has_ended: true, ..running }, true), StopAction::Done);
    }
}
