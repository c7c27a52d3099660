//! Processor time of processes, from `/proc`.

/// Processor time of a process, in user and system mode, in seconds.
pub(super) fn cpu_seconds(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat_seconds(&stat, 11)
}

/// Processor time in seconds of ended child processes that were waited for.
pub fn ended_cpu_seconds() -> f64 {
    stat_seconds(&std::fs::read_to_string("/proc/self/stat").unwrap_or_default(), 13)
}

/// The sum of two neighbouring fields of proc_pid_stat(5), in seconds. Linux counts them in hundredths of a
/// second on all machines that we build for. `behind` fields stand between the program's name and them.
fn stat_seconds(stat: &str, behind: usize) -> f64 {
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(behind).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
