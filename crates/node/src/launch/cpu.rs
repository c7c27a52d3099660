//! CPU time of processes, from `/proc`.

/// Returns the CPU time of a process in user and system mode, in seconds; 0 if it does not exist.
pub(super) fn cpu_seconds(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat_seconds(&stat, 11)
}

/// Returns the CPU time of this process's ended children that were waited for, in seconds.
pub fn ended_cpu_seconds() -> f64 {
    stat_seconds(&std::fs::read_to_string("/proc/self/stat").unwrap_or_default(), 13)
}

/// Returns the sum of two neighbouring fields of proc_pid_stat(5), in seconds. `behind` is the number of fields between
/// the program's name and the first of the two. A clock tick is 10 ms (`USER_HZ` is 100).
fn stat_seconds(stat: &str, behind: usize) -> f64 {
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(behind).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
