//! Claims of LCN'15: one software switch with a ring for each collector.

use crate::claim::Claim;
use crate::judge::{Known, ms, near, percent};
use crate::{ClaimRun, Judged};

/// Sets up some hundred similar events, with windows as after a long time. Each collector has two units, so that its next event
/// is already under way.
fn all_to_all() -> ClaimRun {
    ClaimRun::new(ALL)
        .set("run.warmup", "50 ms")
        .set("run.duration", "60 ms")
        .set("transport.window_state", "warm")
        .set("collectors.units_per_host", 2)
}

const ALL: &str = "lcn15-all-to-all";
const ONE: &str = "lcn15-all-to-one";

pub(crate) fn claims() -> Vec<Claim> {
    vec![
        Claim {
            id: "L001",
            place: "LCN'15, evaluation: bandwidth",
            says: "all-to-all traffic fills 97 % of 12 × 10 Gb/s in both directions",
            expected: "the busiest collectors' link ≥ 97 % full, no rate limit",
            points: vec![all_to_all().set("tor.daqring.rate", "0 b/s")],
            judge: |results| {
                let load = results[0].summary.load.as_ref().and_then(|load| load.last_hop).unwrap_or(0.0);
                let goodput = results[0].summary.goodput_bps.as_ref().map_or(0.0, |goodput| goodput.total);
                let text = format!("{}, {:.1} Gb/s of fragments", percent(&[load]), goodput / 1e9);
                Judged::new(load >= 0.97 && results[0].drops() == 0, text)
            },
            known: None,
        },
        Claim {
            id: "L004",
            place: "LCN'15, rate limitation",
            says: "rings of 0.78 Gb/s do better without a static congestion window than with one",
            expected: "lower mean without, no drop in either",
            points: vec![all_to_all(), all_to_all().set("transport.static_window", 2)],
            judge: |results| {
                let m = [results[0].mean_ms(), results[1].mean_ms()];
                let drops = results[0].drops() + results[1].drops();
                Judged::new(m[0] < m[1] && drops == 0, format!("{}, {drops} drops", ms(&m))).figures(&m)
            },
            known: Some(Known {
                why: "eleven windows of two packets keep a ring of 0.78 Gb/s busy at this round trip: both give the same",
                ranges: &[(29.0, 30.0), (29.0, 30.0)],
            }),
        },
        Claim {
            id: "L007",
            place: "LCN'15, evaluating buffering capabilities",
            says: "a ring of 9000 frames or more: the expected mean and no jitter; below, incast",
            expected: "154 ms ± 1 % and sd < 1 % with 9000 (± 15 %: 10350) and 14000; drops with 7650",
            points: [10_350, 14_000, 7_650]
                .map(|frames| ClaimRun::new(ONE).set("run.duration", "2 s").set("tor.daqring.frames", frames))
                .to_vec(),
            judge: |results| {
                let sd = |place: usize| {
                    results[place].summary.collection_time_ms.as_ref().map_or(1.0, |t| t.std / t.mean)
                };
                let is_lossless = (0..2).all(|place| {
                    near(results[place].mean_ms(), 154.4, 0.01)
                        && sd(place) < 0.01
                        && results[place].drops() == 0
                });
                let m = [results[0].mean_ms(), results[1].mean_ms(), results[2].mean_ms()];
                Judged::new(
                    is_lossless && results[2].drops() > 0,
                    format!("{}, {} drops", ms(&m), results[2].drops()),
                )
            },
            known: None,
        },
    ]
}
