//! The cost of a run.

use fanin_report::Speed;

/// Measures one run, on the thread that it runs on.
pub(crate) struct Meter {
    start: std::time::Instant,
    cpu_ns: Option<u64>,
}

impl Meter {
    /// Starts to measure.
    pub(crate) fn start() -> Self {
        Self { start: std::time::Instant::now(), cpu_ns: thread_cpu_ns() }
    }

    /// Adds the cost until now to the speed of a run that put `bytes` bytes on links.
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

/// Nanoseconds that this thread has spent on a processor; `None` where the kernel does not say.
fn thread_cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// The most memory that the process held.
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
