//! The thesis' set-ups, and figures that several of its claims share. 480 credits of 1.1 kB each permit a burst of 528 kB.

use crate::lab::{ClaimRun, PointResult};

pub(super) const A500: &str = "thesis-a-500hz";
pub(super) const A1000: &str = "thesis-a-1000hz";
pub(super) const B500: &str = "thesis-b-500hz";
pub(super) const B1000: &str = "thesis-b-1000hz";

/// Credits of the burst that the thesis finds best for switch A, 528 kB.
pub(super) const BEST: u32 = 480;
/// Credits of the smallest burst in the thesis, 52.8 kB.
pub(super) const FEW: u32 = 48;

/// Sets collection of each event from `groups` sixteenths of the readouts, without any avoidance. The rate is raised so that
/// the throughput stays the same (thesis §4.2.1). The readouts are drawn for each event. Fixed ones would load the two uplinks
/// unevenly, 60 to 40 % at 528 kB, and fill one of them at 90 %.
pub(super) fn partial(preset: &'static str, groups: u32) -> ClaimRun {
    let full_mhz: u64 = if preset.ends_with("-500hz") { 500_000 } else { 1_000_000 };
    let rate = full_mhz * 16 / u64::from(groups);
    ClaimRun::new(preset)
        .set("workload.fraction", format_args!("0.{:04}", groups * 10_000 / 16))
        .set("supervisor.rate", format_args!("{rate} mHz"))
        .set("shaping.request_order", "random")
}

pub(super) fn credits(preset: &'static str, credits: u32) -> ClaimRun {
    ClaimRun::new(preset).set("shaping.credits", credits)
}

/// Sets the memory that the switch leaves for frames. With these values the thesis' own simulation agrees with its
/// measurements: 9.4 MB for B (§5.2.2, figs 5.8 and 5.9), 500 kB for A (§6.2).
pub(super) fn usable(point: ClaimRun) -> ClaimRun {
    let buffer = if point.preset.starts_with("thesis-b") { "9.4 MB" } else { "500 kB" };
    point.set("tor.buffer", buffer)
}

/// Sets the TCP stack of the thesis' own simulation, Linux 2.6.26 (§5.1.1), and the memory with which it agreed with
/// measurements. Its windows must have outlasted idle times, though the thesis does not say so. With a minimum RTO of 5 ms
/// every request ends an idle time. With slow start after it switch A would be better than B at 90 %, against figs 6.5b and 6.6b.
pub(super) fn simulated(point: ClaimRun) -> ClaimRun {
    usable(point).set("transport.profile", "linux-2.6.26").set("transport.slow_start_after_idle", false)
}

/// Sets an interleaved start order, the natural order under first come, first served. The units of a host move apart within
/// seconds, from any order of announcements (thesis §6.5).
pub(super) fn ordered(point: ClaimRun) -> ClaimRun {
    point.set("supervisor.start_order", "interleaved")
}

/// Sets units that share their credits evenly, with a request each in turn. The thesis does not say in which order blocked
/// requests are served. If they were served event by event, the units of a host would move apart within three seconds. Every
/// collection would then be nearly ideal, which contradicts the thesis' measurements. With even sharing, units that collide
/// finish together, announce themselves together and collide again.
pub(super) fn fcfs(preset: &'static str, number: u32) -> ClaimRun {
    credits(preset, number)
        .set("shaping.discipline", "round-robin")
        .set("run.warmup", "5 s")
        .set("run.duration", "5 s")
}

pub(super) fn policy(preset: &'static str, policy: &str) -> ClaimRun {
    credits(preset, BEST).set("supervisor.policy", policy)
}

/// Sets log-normal events with normal fragments (thesis §6.2).
pub(super) fn variable(point: ClaimRun) -> ClaimRun {
    point.set(
        "readout.fragment_size",
        "{ distribution = \"log-normal\", mean = \"1.1 kB\", sigma = 0.25, fragment_sd = \"200 B\" }",
    )
}

/// Sets a minimum RTO of 5 ms without delayed acknowledgements (thesis §6.3).
pub(super) fn rto_5ms(point: ClaimRun) -> ClaimRun {
    point.set("transport.rto_min", "5 ms").set("transport.delayed_ack", false)
}

/// Sets the thesis' own simulation: variable sizes, no shaping, a policy that spreads the load.
pub(super) fn unshaped(preset: &'static str) -> ClaimRun {
    variable(ClaimRun::new(preset).set("supervisor.policy", "node-round-robin"))
}

pub(super) fn means(results: &[&PointResult]) -> Vec<f64> {
    results.iter().map(|result| result.mean_ms()).collect()
}

/// Returns the index of the first size whose mean is above three times the ideal, where incast begins.
pub(super) fn onset(results: &[&PointResult]) -> usize {
    results.iter().position(|result| result.mean_ms() > 3.0 * result.ideal_ms()).unwrap_or(results.len())
}

/// Sixteenths of the readouts in the scans over the collection size.
pub(super) const SIZES: [u32; 7] = [4, 5, 6, 7, 8, 10, 12];

pub(super) fn scan(low: &'static str, high: &'static str) -> Vec<ClaimRun> {
    [low, high].iter().flat_map(|&preset| SIZES.map(|groups| ordered(partial(preset, groups)))).collect()
}
