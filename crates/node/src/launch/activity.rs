//! Detects that a process hangs, or waits for the disk for as long.

use std::time::{Duration, Instant};

/// A process hangs, and is killed, if its main thread does not run for `live.silence_max` times this factor.
const HANG_SILENCES: u32 = 3;
/// Minimum time after which a process counts as hanging, whatever `live.silence_max` is.
const HANG_MIN: Duration = Duration::from_secs(3);

/// Returns the time after which a process hangs whose main thread does not run.
pub fn hang_limit(silence_max: Duration) -> Duration {
    (silence_max * HANG_SILENCES).max(HANG_MIN)
}

/// Activity of a process's main thread since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivitySample {
    /// Number of its context switches.
    pub switches: u64,
    /// True if it is in uninterruptible sleep (state D): it waits for a disk, and no signal reaches it.
    pub is_uninterruptible: bool,
}

impl ActivitySample {
    /// Parses the text of `/proc/PID/status`.
    pub(super) fn parse(status: &str) -> Self {
        let mut switches = 0;
        for line in status.lines().filter(|line| line.contains("ctxt_switches:")) {
            switches +=
                line.rsplit('\t').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or_default();
        }
        let is_uninterruptible =
            status.lines().any(|line| line.starts_with("State:") && line.contains("D ("));
        Self { switches, is_uninterruptible }
    }
}

/// The state of a process as of its last sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessActivity {
    /// The main thread ran within the limit, or was already reported as blocked.
    Works,
    /// The main thread has not run for the limit, because it is stopped or waits for something that does not come. In
    /// normal operation, it waits 50 ms at most.
    Hangs,
    /// The main thread has waited for a disk for the limit. Reported once for each wait. A kill would not reach it.
    Blocked,
}

/// Judges the samples of one process.
#[derive(Debug, Clone, Copy)]
pub struct ActivityWatch {
    switches: u64,
    /// The last sample with a new context switch.
    ran_at: Instant,
    /// The last sample with a new context switch, or in uninterruptible sleep. A thread that wakes up from it may run for
    /// a while before it is switched.
    at: Instant,
    is_blocked: bool,
}

impl ActivityWatch {
    /// Returns the watch of a process that was just started.
    pub fn new(now: Instant) -> Self {
        Self { switches: 0, ran_at: now, at: now, is_blocked: false }
    }

    /// Takes a sample.
    pub fn handle_sample(
        &mut self,
        now: Instant,
        sample: ActivitySample,
        limit: Duration,
    ) -> ProcessActivity {
        if sample.switches != self.switches {
            *self = Self { switches: sample.switches, ..Self::new(now) };
        }
        if !sample.is_uninterruptible {
            let hangs = now.saturating_duration_since(self.at) >= limit;
            return if hangs { ProcessActivity::Hangs } else { ProcessActivity::Works };
        }
        self.at = now;
        if !self.is_blocked && now.saturating_duration_since(self.ran_at) >= limit {
            self.is_blocked = true;
            return ProcessActivity::Blocked;
        }
        ProcessActivity::Works
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(3);

    /// Returns the results for samples of one process, one a second.
    fn judged(samples: &[(&str, u64)]) -> Vec<ProcessActivity> {
        let begin = Instant::now();
        let mut watch = ActivityWatch::new(begin);
        let result = |(second, &(state, voluntary)): (u64, &(&str, u64))| {
            let status = format!(
                "Name:\tfanin\nUmask:\t0022\nState:\t{state}\nTgid:\t4711\nThreads:\t3\n\
                 voluntary_ctxt_switches:\t{voluntary}\nnonvoluntary_ctxt_switches:\t7\n"
            );
            watch.handle_sample(begin + Duration::from_secs(second), ActivitySample::parse(&status), LIMIT)
        };
        (0..).zip(samples).map(result).collect()
    }

    const D: &str = "D (disk sleep)";
    const R: &str = "R (running)";
    const S: &str = "S (sleeping)";
    const T: &str = "T (stopped)";

    #[test]
    fn a_process_that_waits_for_the_disk_is_reported_once_and_does_not_hang() {
        use ProcessActivity::{Blocked, Works};
        let samples = [(S, 9), (D, 10), (D, 10), (D, 10), (D, 10), (D, 10), (D, 10), (R, 10), (S, 11)];
        let expected = [Works, Works, Works, Works, Blocked, Works, Works, Works, Works];
        assert_eq!(judged(&samples), expected);
        // The next wait is reported again.
        let again = [(D, 1), (D, 1), (D, 1), (D, 1), (S, 2), (D, 3), (D, 3), (D, 3), (D, 3)];
        assert_eq!(judged(&again).iter().filter(|&&one| one == Blocked).count(), 2);
        // Short waits are none.
        let short = [(D, 1), (D, 2), (D, 3), (D, 4), (D, 5), (D, 6)];
        assert_eq!(judged(&short), [Works; 6]);
    }

    #[test]
    fn a_process_that_is_stopped_hangs_after_the_limit() {
        use ProcessActivity::{Hangs, Works};
        let samples = [(S, 9), (T, 10), (T, 10), (T, 10), (T, 10), (T, 10), (S, 11)];
        assert_eq!(judged(&samples), [Works, Works, Works, Works, Hangs, Hangs, Works]);
        // The time of a wait for the disk does not count.
        let woken = [(D, 1), (D, 1), (D, 1), (R, 1), (R, 1), (R, 1), (R, 1)];
        assert_eq!(judged(&woken), [Works, Works, Works, Works, Works, Hangs, Hangs]);
    }
}
