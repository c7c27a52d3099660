//! Supervises one process of a system: detects that it ended or hangs, and plans its restarts.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

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
    activity: ChildActivity,
}

/// Last observed activity of a process's main thread: its context switches, and when they last changed.
#[derive(Debug, Clone, Copy)]
struct ChildActivity {
    switches: u64,
    at: Instant,
}

impl ChildProcess {
    /// Returns a process that was just started.
    pub(super) fn new(role: Role, index: u16, name: String, child: Child, now: Instant) -> Self {
        let activity = ChildActivity { switches: 0, at: now };
        Self { role, index, name, child: Some(child), plan: RestartPlan::new(now), activity }
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
        self.plan.handle_started(now);
        self.activity = ChildActivity { switches: 0, at: now };
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

    /// Kills the process, and waits for its end.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Returns true if the process's main thread has not run for `limit`, because it is stopped or blocked. In normal
    /// operation, this thread waits 50 ms at most. A thread that waits for the disk does not hang.
    pub(super) fn hangs(&mut self, now: Instant, limit: Duration) -> bool {
        let Some(pid) = self.pid() else { return false };
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
        let (switches, waits_for_disk) = switches(&status);
        if switches != self.activity.switches || waits_for_disk {
            self.activity = ChildActivity { switches, at: now };
        }
        now.saturating_duration_since(self.activity.at) >= limit
    }
}

/// Returns the context switches in `/proc/PID/status`, and true if the thread is in uninterruptible sleep (state D).
fn switches(status: &str) -> (u64, bool) {
    let mut sum = 0;
    for line in status.lines().filter(|line| line.contains("ctxt_switches:")) {
        sum += line.rsplit('\t').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or_default();
    }
    (sum, status.lines().any(|line| line.starts_with("State:") && line.contains("D (")))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

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
            assert!(!child.hangs(now, limit));
        }
        child.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(60));
        let mut found = false;
        for _ in 0..10 {
            now += Duration::from_secs(1);
            found |= child.hangs(now, limit);
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
