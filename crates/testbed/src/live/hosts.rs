//! Time for which the hosts' processes waited for a core while ready to run; on separate hosts they would not wait.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use super::effort::{Work, work};
use crate::Namespace;

/// Fewest turns of a process that count; fewer turns show nothing about waiting.
const TURNS_MIN: u64 = 10;

/// The waits of the hosts' processes in a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HostWait {
    /// The mean wait of a turn over all hosts' processes, in seconds.
    pub mean_s: f64,
    /// The mean wait of a turn of the process with the longest mean wait, in seconds.
    pub worst_s: f64,
}

/// The processes of a network's hosts, with their times of running and waiting.
#[derive(Debug, Clone, Default)]
pub(super) struct HostWork(BTreeMap<u32, Work>);

/// Returns the inode number of each namespace, which `/proc/PID/ns/net` of a process inside has, too.
pub(super) fn numbers(namespaces: &[Namespace]) -> Vec<u64> {
    let number = |namespace: &Namespace| rustix::fs::fstat(namespace.as_fd()).ok().map(|stat| stat.st_ino);
    namespaces.iter().filter_map(number).collect()
}

impl HostWork {
    /// Reads the work of the processes that run inside these namespaces now. The namespaces are inode numbers.
    pub(super) fn of(namespaces: &[u64]) -> Self {
        let Ok(entries) = fs::read_dir("/proc") else { return Self::default() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let inside = pids.filter(|pid| {
            fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|found| namespaces.contains(&found.ino()))
        });
        Self(inside.map(|pid| (pid, work(pid))).collect())
    }

    /// Takes over the newer times of each process; processes that have ended keep their last times.
    pub(super) fn update(&mut self, newer: Self) {
        self.0.extend(newer.0);
    }

    /// Returns the waits since an earlier state. Processes that are not in both states do not count. `None` if no process ran.
    pub(super) fn since(&self, before: &Self) -> Option<HostWait> {
        let (mut sum, mut worst) = (Work::default(), 0.0_f64);
        for (pid, now) in &self.0 {
            let Some(then) = before.0.get(pid) else { continue };
            let (waited, turns) =
                (now.waited.saturating_sub(then.waited), now.turns.saturating_sub(then.turns));
            if turns >= TURNS_MIN {
                worst = worst.max(mean_s(waited, turns));
            }
            sum.waited += waited;
            sum.turns += turns;
        }
        (sum.turns > 0).then(|| HostWait { mean_s: mean_s(sum.waited, sum.turns), worst_s: worst })
    }
}

fn mean_s(waited: u64, turns: u64) -> f64 {
    waited as f64 / 1e9 / turns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_those_of_whoever_was_there_all_the_time() {
        let one = |ran, waited, turns| Work { ran, waited, turns };
        let before = HostWork([(7, one(5, 1_000_000, 100)), (8, one(0, 0, 0)), (9, one(0, 0, 5))].into());
        let after = HostWork(
            [(7, one(9, 5_000_000, 120)), (8, one(1, 2_000_000, 80)), (10, one(0, 9_000_000, 1))].into(),
        );
        // 4 ms in 20 turns, and 2 ms in 80.
        assert_eq!(after.since(&before), Some(HostWait { mean_s: 60e-6, worst_s: 200e-6 }));
        assert_eq!(before.since(&before), None);
        // A process that has ended keeps its last times.
        let mut seen = after.clone();
        seen.update(HostWork([(8, one(1, 2_000_000, 80))].into()));
        assert_eq!(seen.since(&before), after.since(&before));
    }

    #[test]
    fn this_process_is_found_by_its_namespace() {
        let own = fs::metadata("/proc/self/ns/net").unwrap().ino();
        assert!(HostWork::of(&[own]).0.contains_key(&std::process::id()));
        assert!(HostWork::of(&[]).0.is_empty());
    }
}
