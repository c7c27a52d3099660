//! The load on the machine, by the kernel's counters.

use std::fs;

use super::hosts::HostWait;

/// The load of the switches' processes on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Effort {
    /// Processor time of the busiest switch, as a share of one core. A switch polls for a moment after each frame, and so takes
    /// most of a core even at a low load.
    pub switch_cpu: f64,
    /// The share of rounds that moved frames, of the switch with the largest share. A switch with many ports finds a frame in
    /// most rounds long before it is at its limit.
    pub switch_busy: f64,
    /// Processor time of the rounds that moved frames, as a share of one core, of the busiest switch. Near 1 no capacity is
    /// left.
    pub switch_working: f64,
    /// Time for which a switch was ready to run and waited for a core, as a share of all time.
    pub switch_wait: f64,
    /// The largest mean wait of a switch in one interval of the watch, in seconds: the lateness of its shaper.
    pub switch_late_s: f64,
    /// Mean wait for a core when a switch was ready to run, in seconds, of the switch with the longest wait.
    pub switch_late_mean_s: f64,
    /// Share of all cores that was busy.
    pub machine_cpu: f64,
    /// Share of all cores' time that a hypervisor gave to others (`steal` of proc_stat(5)).
    pub steal: f64,
    /// The waits of the hosts' processes for a core; `None` if no process ran.
    pub hosts: Option<HostWait>,
}

/// Ticks of all cores (proc_stat(5)).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Machine {
    pub(super) all: u64,
    pub(super) idle: u64,
    pub(super) stolen: u64,
}

/// `/proc/PID/schedstat` summed over a process' threads: nanoseconds on a core, nanoseconds ready and waiting, turns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    pub(super) ran: u64,
    pub(super) waited: u64,
    pub(super) turns: u64,
}

/// Adds up the work of a process's threads; zero if the process does not exist.
pub(super) fn work(pid: u32) -> Work {
    let mut sum = Work::default();
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return sum };
    for thread in threads.flatten() {
        let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        let mut words = text.split_whitespace().map(|word| word.parse::<u64>().unwrap_or_default());
        sum.ran += words.next().unwrap_or_default();
        sum.waited += words.next().unwrap_or_default();
        sum.turns += words.next().unwrap_or_default();
    }
    sum
}

pub(super) fn machine() -> Machine {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let words = text.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Vec<u64> = words.take(8).map(|word| word.parse().unwrap_or_default()).collect();
    let all: u64 = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    Machine { all, idle, stolen: ticks.get(7).copied().unwrap_or_default() }
}
