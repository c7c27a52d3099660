//! Decides how a system stops: the order of the roles, and what each process needs next.

use crate::config::Role;

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
    /// Kill the process.
    Kill,
}

/// Returns the next step for a process. `is_overdue` is true once the time for stopping is over. A supervisor that failed is
/// started again: its journal names the unfinished events. Processes of other roles are not.
pub fn stop_action(process: StoppingProcess, is_overdue: bool) -> StopAction {
    match process {
        StoppingProcess { has_ended: true, .. } => StopAction::Done,
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
        assert_eq!(stop_action(running, true), StopAction::Kill);
        assert_eq!(stop_action(StoppingProcess { has_ended: true, ..running }, true), StopAction::Done);
    }
}
