//! The claim of the multi-host paper about PAUSE (§IV.C).

use crate::claim::Claim;
use crate::judge::ms;
use crate::{ClaimRun, Judged, PointResult};

/// Sets the hardware switch alone, at 95 % of the rate that fills its uplink.
fn full_load() -> ClaimRun {
    ClaimRun::new("multihost")
        .set("network.hybrid.host_ports", 0)
        .set("supervisor.arrivals", "periodic")
        .set("supervisor.rate", "3860 Hz")
        .set("supervisor.policy", "node-round-robin")
}

/// Sets PAUSE in both switches, which then stop their neighbours.
pub(crate) fn pause(point: ClaimRun) -> ClaimRun {
    point
        .set("tor.pause.mode", "pause")
        .set("tor.pause.xoff", "200 kB")
        .set("tor.pause.xon", "100 kB")
        .set("core.pause.mode", "pause")
        .set("core.pause.xoff", "400 kB")
        .set("core.pause.xon", "200 kB")
}

/// Returns the standard deviation of the collection times in milliseconds.
fn deviation(result: &PointResult) -> f64 {
    result.summary.collection_time_ms.as_ref().map_or(f64::NAN, |times| times.std)
}

pub(crate) fn claims() -> Vec<Claim> {
    vec![Claim {
        id: "H018",
        place: "multi-host §IV.C, fig. 6b",
        says: "PAUSE sustains full load, with much higher latency and jitter: head-of-line blocking",
        expected: "no drop; more than twice the mean and the deviation of credits and of a static window",
        points: vec![
            pause(full_load()),
            full_load().set("shaping.credits", 96),
            full_load().set("transport.static_window", 2),
        ],
        judge: |results| {
            let m: Vec<f64> = results.iter().map(|result| result.mean_ms()).collect();
            let sd: Vec<f64> = results.iter().map(|result| deviation(result)).collect();
            let worse = |values: &[f64]| values[1..].iter().all(|&other| values[0] > 2.0 * other);
            let holds = results[0].drops() == 0 && worse(&m) && worse(&sd);
            Judged::new(holds, format!("{}, sd {}, {} drops", ms(&m), ms(&sd), results[0].drops()))
        },
        known: None,
    }]
}
