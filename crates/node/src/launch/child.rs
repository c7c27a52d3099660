//! Supervises one process of a system: detects that it ended or hangs, and plans its restarts.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::activity::{ActivitySample, ActivityWatch, ProcessActivity};
use super::restart::RestartPlan;
use crate::config::Role;

/// A process of the system, running or ended.
#[derive(Debug)]
pub(super) struct ChildProcess {
    pub(super) role: Role,
    pub(super) index: u16,
    pub(super) name: String,
    child: Option<Child>,
    plan: RestartPlan,
    activity: ActivityWatch,
    /// True from a kill until the process has ended.
    is_killed: bool,
}

/// Time within which a killed process must end. One that waits for a disk ends only when the disk answers.
const KILL_MAX: Duration = Duration::from_secs(2);
/// Time between two looks at a killed process.
const KILL_TURN: Duration = Duration::from_millis(1);

/// A process that can be killed.
trait KillableProcess {
    fn kill(&mut self);
    fn has_ended(&mut self) -> bool;
}

impl KillableProcess for Child {
    fn kill(&mut self) {
        // The process may have ended.
        let _ = Child::kill(self);
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.try_wait(), Ok(None))
    }
}

/// Kills a process, and waits for its end, for `limit` at most. Returns true if it has ended.
fn kill_within(process: &mut impl KillableProcess, limit: Duration) -> bool {
    process.kill();
    let until = Instant::now() + limit;
    while !process.has_ended() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(KILL_TURN);
    }
    true
}

impl ChildProcess {
    /// Returns a process that was just started.
    pub(super) fn new(role: Role, index: u16, name: String, child: Child, now: Instant) -> Self {
        let activity = ActivityWatch::new(now);
        Self {
            role,
            index,
            name,
            child: Some(child),
            plan: RestartPlan::new(now),
            activity,
            is_killed: false,
        }
    }

    /// Returns the PID; `None` while the process does not run.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    pub(super) fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// Returns the time since the last start of the process.
    pub(super) fn age(&self, now: Instant) -> Duration {
        self.plan.age(now)
    }

    /// Returns true if the system continues without the process, because it ended too often.
    pub(super) fn is_given_up(&self) -> bool {
        self.plan.is_given_up()
    }

    /// Returns true if the system continues without the process, which does not run or may end again at any moment.
    pub(super) fn is_absent(&self, now: Instant) -> bool {
        self.plan.is_given_up() && !(self.is_running() && self.plan.is_lasting(now))
    }

    /// Returns the number of quick ends in a row.
    pub(super) fn quick_ends(&self) -> u32 {
        self.plan.quick_ends()
    }

    /// Returns the exit status if the process has ended since the last call, once; `None` otherwise.
    pub(super) fn reap(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        self.child = None;
        Some(status)
    }

    /// Plans the restart of a process that ended. The pause grows with each quick end.
    pub(super) fn plan_restart(&mut self, now: Instant) {
        assert!(self.child.is_none(), "{} runs", self.name);
        self.plan.handle_ended(now);
    }

    /// Returns true if the process must be restarted now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.child.is_none() && self.plan.next().is_some_and(|at| at <= now)
    }

    /// Takes the child of a process that was restarted.
    pub(super) fn handle_started(&mut self, child: Child, now: Instant) {
        assert!(self.child.is_none(), "{} runs", self.name);
        self.child = Some(child);
        self.is_killed = false;
        self.plan.handle_started(now);
        self.forget_activity(now);
    }

    /// Returns true if the process that ended was killed before, once.
    pub(super) fn take_killed(&mut self) -> bool {
        std::mem::take(&mut self.is_killed)
    }

    /// Cancels a planned restart.
    pub(super) fn retire(&mut self) {
        self.plan.retire();
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw) {
            // The process may have ended. It has not been waited for, so the kernel has not reused its PID.
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills the process. Returns true if it has ended. If not, it waits for a disk, and ends when the disk answers;
    /// [`Self::reap`] then returns its status.
    pub(super) fn kill(&mut self) -> bool {
        let has_ended = self.child.as_mut().is_none_or(|child| kill_within(child, KILL_MAX));
        if has_ended {
            self.child = None;
        }
        self.is_killed = !has_ended;
        has_ended
    }

    /// Returns the state of the process.
    pub(super) fn activity(&mut self, now: Instant, limit: Duration) -> ProcessActivity {
        let status = self.pid().and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")).ok());
        let sample = status.map(|status| ActivitySample::parse(&status));
        sample.map_or(ProcessActivity::Works, |sample| self.activity.handle_sample(now, sample, limit))
    }

    /// Watches the process anew from now on.
    pub(super) fn forget_activity(&mut self, now: Instant) {
        self.activity = ActivityWatch::new(now);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A process that ends after this number of looks, or never.
    struct SlowToEnd(Option<u32>);

    impl KillableProcess for SlowToEnd {
        fn kill(&mut self) {}

        fn has_ended(&mut self) -> bool {
            self.0 = self.0.map(|looks| looks.saturating_sub(1));
            self.0 == Some(0)
        }
    }

    #[test]
    fn a_process_that_waits_for_the_disk_does_not_block_its_killer() {
        assert!(!kill_within(&mut SlowToEnd(None), Duration::from_millis(50)));
        assert!(kill_within(&mut SlowToEnd(Some(3)), Duration::from_secs(600)));
    }

    #[test]
    fn a_stopped_process_hangs_and_a_running_one_does_not() {
        let child = Command::new("sh").args(["-c", "while :; do sleep 0.01; done"]).spawn().unwrap();
        let mut now = Instant::now();
        let mut child = ChildProcess::new(Role::Readout, 0, "readout-0".to_owned(), child, now);
        let limit = Duration::from_secs(3);
        // `now` advances faster than the clock of the machine, by which the process runs.
        for _ in 0..20 {
            now += Duration::from_secs(1);
            std::thread::sleep(Duration::from_millis(60));
            assert_eq!(child.activity(now, limit), ProcessActivity::Works);
        }
        child.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(60));
        let mut found = false;
        for _ in 0..10 {
            now += Duration::from_secs(1);
            found |= child.activity(now, limit) == ProcessActivity::Hangs;
        }
        child.kill();
        assert!(found);
    }

    #[test]
    fn a_process_without_which_the_system_goes_on_is_absent_until_it_lasts() {
        let start = || Command::new("sleep").arg("600").spawn().unwrap();
        let mut now = Instant::now();
        let mut child = ChildProcess::new(Role::Supervisor, 0, "supervisor".to_owned(), start(), now);
        while !child.is_given_up() {
            assert!(!child.is_absent(now));
            child.kill();
            child.plan_restart(now);
            assert_eq!(child.is_absent(now), child.is_given_up());
            now += Duration::from_secs(60);
            child.handle_started(start(), now);
        }
        assert!(child.is_absent(now + Duration::from_secs(9)));
        assert!(!child.is_absent(now + Duration::from_secs(10)));
        child.kill();
    }
}
