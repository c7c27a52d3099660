//! The cost of a run.

use fanin_report::Speed;

/// Measures the cost of one run, on the thread of the run.
pub(crate) struct Meter {
    start: std::time::Instant,
    cpu_ns: Option<u64>,
}

impl Meter {
    /// Starts to measure.
    pub(crate) fn start() -> Self {
        Self { start: std::time::Instant::now(), cpu_ns: thread_cpu_ns() }
    }

    /// Fills in the cost since the start. `bytes` are the bytes that the run put on links.
    pub(crate) fn stop(&self, speed: &mut Speed, bytes: u64) {
        let cpu_s =
            self.cpu_ns.zip(thread_cpu_ns()).map(|(start, end)| end.saturating_sub(start) as f64 / 1e9);
        let per_second = |amount: u64| cpu_s.filter(|&cpu_s| cpu_s > 0.0).map(|cpu_s| amount as f64 / cpu_s);
        *speed = Speed {
            wall_s: Some(self.start.elapsed().as_secs_f64()),
            cpu_s,
            packet_hops: speed.packet_hops,
            packet_hops_per_cpu_s: speed.packet_hops.and_then(per_second),
            simulated_bytes_per_cpu_s: per_second(bytes),
            peak_rss_bytes: peak_rss_bytes(),
        };
    }
}

/// Returns the nanoseconds that this thread has run on a processor; `None` if the kernel does not report them.
fn thread_cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns the largest resident memory of the process so far, in bytes (`VmHWM`).
fn peak_rss_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib: u64 = text
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()?;
    Some(kib * 1024)
}
