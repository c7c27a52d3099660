//! Claims of ICC'15, §III and §IV. Those about windows are in `windows`.

use fanin_report::IoRow;

use crate::claim::Claim;
use crate::judge::{Known, ms, near, percent};
use crate::{ClaimRun, Judged, PointResult};

const ONE: &str = "icc15-1dcm";
const N147: &str = "icc15-147";
const RACK: &str = "icc15-39dcm";
const ROUTER: &str = "icc15-router";
/// Number of an event in the measured time of set-ups with one collector, which collect about sixty events a second.
const EVENT: u64 = 100;

fn credits(preset: &'static str, credits: u32) -> ClaimRun {
    ClaimRun::new(preset).set("shaping.credits", credits)
}

fn fixed_window(preset: &'static str) -> ClaimRun {
    ClaimRun::new(preset).set("transport.congestion_control", "static").set("transport.static_window", 2)
}

fn means(results: &[&PointResult]) -> Vec<f64> {
    results.iter().map(|result| result.mean_ms()).collect()
}

/// Returns the run with the traffic of one event recorded.
fn with_io(point: ClaimRun) -> ClaimRun {
    point.set("record.events", format_args!("[{EVENT}]")).set("run.duration", "2 s")
}

/// Returns the milliseconds from the last data to the collector's last acknowledgement.
fn tail_ms(result: &PointResult) -> f64 {
    let last =
        |bytes: fn(&IoRow) -> u64| result.io.windows(2).rev().find(|pair| bytes(&pair[1]) > bytes(&pair[0]));
    let at = |pair: &[IoRow]| pair[1].since_request_ps as f64 / 1e9;
    match (last(|row| row.to_collector_bytes), last(|row| row.from_collector_bytes)) {
        (Some(data), Some(reverse)) => at(reverse) - at(data),
        _ => f64::NAN,
    }
}

pub(crate) fn claims() -> Vec<Claim> {
    vec![
        Claim {
            id: "I008",
            place: "ICC'15 §III.B, fig. 3",
            says: "below 100 credits the network is not fully used",
            expected: "mean at 24 and 48 credits above the one at 300, in falling order",
            points: [24, 48, 300].map(|n| credits(ONE, n)).to_vec(),
            judge: |results| {
                let m = means(results);
                Judged::new(m[0] > m[1] && m[1] > m[2], ms(&m))
            },
            known: None,
        },
        Claim {
            id: "I009",
            place: "ICC'15 §III.B, fig. 3",
            says: "above 550 credits drops begin and the latency jumps",
            expected: "no drop at 468 (550 − 15 %), drops and more than twice the mean at 636 (550 + 15 %)",
            points: [468, 636].map(|n| credits(ONE, n)).to_vec(),
            judge: |results| {
                let drops: Vec<u64> = results.iter().map(|result| result.drops()).collect();
                let m = means(results);
                let holds = drops[0] == 0 && drops[1] > 0 && m[1] > 2.0 * m[0];
                Judged::new(holds, format!("{} / {} drops, {}", drops[0], drops[1], ms(&m)))
            },
            known: None,
        },
        Claim {
            id: "I010",
            place: "ICC'15 §IV.A, fig. 4",
            says: "more than 64 kB of VOQ remove all losses",
            expected: "no drop at 128 kB a queue, no shaping",
            points: vec![ClaimRun::new(ONE).set("core.port_limit", "128 kB")],
            judge: |results| {
                let drops = results[0].drops();
                Judged::new(drops == 0, format!("{drops} drops")).figures(&[drops as f64])
            },
            known: Some(Known {
                why: "a burst of 2.4 MB overruns the rack switch's port, whatever the core holds",
                ranges: &[(3_500.0, 5_200.0)],
            }),
        },
        Claim {
            id: "I011",
            place: "ICC'15 §IV.B, fig. 5",
            says: "after a timeout the link is idle for at least 200 ms",
            expected: "every event with a timeout takes 200 ms or more",
            points: vec![ClaimRun::new(N147)],
            judge: |results| {
                let least = results[0].times_ms.first().copied().unwrap_or(f64::NAN);
                let hit = results[0].share_with_timeouts(1);
                Judged::new(least >= 200.0 && hit > 0.95, format!("least {least:.0} ms, {}", percent(&[hit])))
            },
            known: None,
        },
        Claim {
            id: "I013",
            place: "ICC'15 §IV.C.1, eqs (6), (7)",
            says: "147 windows of two packets need at most 416 kB of buffer",
            expected: "largest queue ≤ 416 kB, no drop",
            points: vec![fixed_window(N147)],
            judge: |results| {
                let (most, drops) = (results[0].queue_bytes_max(), results[0].drops());
                Judged::new(most <= 416_000 && drops == 0, format!("{most} B, {drops} drops"))
                    .figures(&[most as f64, drops as f64])
            },
            known: Some(Known {
                why: "443 kB: frames take 1518 B in a switch, and next to nothing is on the wire meanwhile",
                ranges: &[(435_000.0, 452_000.0), (0.0, 0.0)],
            }),
        },
        Claim {
            id: "I016",
            place: "ICC'15 §IV.C.2, fig. 6a",
            says: "one event with 396 credits: the last answer after 16.84 ms",
            expected: "16.84 ms ± 2 %",
            points: vec![credits(N147, 396)],
            judge: |results| {
                let m = means(results);
                Judged::new(near(m[0], 16.84, 0.02), format!("{:.2} ms", m[0]))
            },
            known: None,
        },
        Claim {
            id: "I018",
            place: "ICC'15 §IV.C.2",
            says: "with a static window acknowledgements go on for 1.3 ms after the last data",
            expected: "1.3 ms ± 30 %, and less with credits",
            points: vec![with_io(fixed_window(N147)), with_io(credits(N147, 396))],
            judge: |results| {
                let (fixed, shaped) = (tail_ms(results[0]), tail_ms(results[1]));
                Judged::new(near(fixed, 1.3, 0.3) && shaped < fixed, ms(&[fixed, shaped]))
                    .figures(&[fixed, shaped])
            },
            known: Some(Known {
                why: "hosts take no time to process here: the last acknowledgement leaves with the last segment",
                ranges: &[(-0.1, 0.1), (-0.1, 0.1)],
            }),
        },
        Claim {
            id: "I019",
            place: "ICC'15 §IV.C.2, fig. 7",
            says: "the core's queues are lower and steadier with a static window than with credits",
            expected: "a lower maximum and a lower standard deviation of the queue towards the rack",
            points: [fixed_window(N147), credits(N147, 396)]
                .map(|point| {
                    point
                        .set("record.queues", "[\"core->tor:*\"]")
                        .set("record.queue_interval", "20 us")
                        .set("run.duration", "1 s")
                })
                .to_vec(),
            judge: |results| {
                let of = |result: &PointResult| {
                    let sizes: Vec<f64> =
                        result.watched.values().flatten().map(|&bytes| bytes as f64).collect();
                    let mean = sizes.iter().sum::<f64>() / sizes.len().max(1) as f64;
                    let square = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>();
                    (result.watched_bytes_max, (square / sizes.len().max(1) as f64).sqrt())
                };
                let (fixed, shaped) = (of(results[0]), of(results[1]));
                Judged::new(
                    fixed.0 < shaped.0 && fixed.1 < shaped.1,
                    format!(
                        "at most {} / {} B, deviation {:.0} / {:.0} B",
                        fixed.0, shaped.0, fixed.1, shaped.1
                    ),
                )
            },
            known: None,
        },
        Claim {
            id: "I020",
            place: "ICC'15 §IV.C.3, fig. 8",
            says: "no event with a timeout under a static window or credits, all of them under CUBIC",
            expected: "≤ 0.1 %, ≤ 0.1 %, ≥ 95 %",
            points: vec![fixed_window(N147), credits(N147, 396), ClaimRun::new(N147)],
            judge: |results| {
                let shares: Vec<f64> = results.iter().map(|result| result.share_with_timeouts(1)).collect();
                Judged::new(shares[0] <= 0.001 && shares[1] <= 0.001 && shares[2] >= 0.95, percent(&shares))
            },
            known: None,
        },
        Claim {
            id: "I021",
            place: "ICC'15 §IV.C.3, fig. 8",
            says: "the mean latency is slightly higher with a static window than with credits",
            expected: "higher by 0.5 to 10 %",
            points: vec![fixed_window(N147), credits(N147, 396)],
            judge: |results| {
                let m = means(results);
                Judged::new(m[0] > 1.005 * m[1] && m[0] < 1.1 * m[1], ms(&m)).figures(&m)
            },
            known: Some(Known {
                why: "equal here: the paper blames the host's work on all connections at once, and hosts take no time to process",
                ranges: &[(16.5, 17.2), (16.5, 17.2)],
            }),
        },
        Claim {
            id: "I022",
            place: "ICC'15 §IV.C.4, fig. 9",
            says: "39 collectors in two phases at 2 kHz: no timeout with credits or a static window, slightly lower mean of EB with credits",
            expected: "none; the mean of EB lower with credits, by less than 10 %",
            points: vec![credits(RACK, 396), fixed_window(RACK)],
            judge: |results| {
                let timeouts: Vec<u64> = results.iter().map(|result| result.timeouts_total()).collect();
                let eb = results
                    .iter()
                    .map(|result| result.summary.techniques["step_EB"]["time_ms_mean"].as_f64());
                let eb: Vec<f64> = eb.map(|mean| mean.unwrap_or(f64::NAN)).collect();
                Judged::new(
                    timeouts.iter().all(|&timeouts| timeouts == 0) && eb[0] < eb[1] && eb[1] < 1.1 * eb[0],
                    format!("{} / {} timeouts, EB {:.2} / {:.2} ms", timeouts[0], timeouts[1], eb[0], eb[1]),
                )
                .figures(&eb)
            },
            known: Some(Known {
                why: "no timeout; EB takes the same with both: hosts take no time to process here (I021)",
                ranges: &[(14.8, 15.6), (14.8, 15.6)],
            }),
        },
        Claim {
            id: "I025",
            place: "ICC'15 §IV.D.3, fig. 10",
            says: "behind a software router, 421 credits: the last answer after 18.48 ms",
            expected: "18.48 ms ± 3 %",
            points: vec![credits(ROUTER, 421)],
            judge: |results| {
                let m = means(results);
                Judged::new(near(m[0], 18.48, 0.03), format!("{:.2} ms", m[0]))
            },
            known: None,
        },
        Claim {
            id: "I026",
            place: "ICC'15 §IV.D.3, fig. 10",
            says: "behind a software router a static window takes 22.19 ms, 3 ms more than the others",
            expected: "above the one with 421 credits by more than 1 ms",
            points: vec![fixed_window(ROUTER), credits(ROUTER, 421)],
            judge: |results| {
                let m = means(results);
                Judged::new(m[0] > m[1] + 1.0, ms(&m)).figures(&m)
            },
            known: Some(Known {
                why: "equal here: the paper blames its server-based router, whose processing is not simulated",
                ranges: &[(18.2, 19.0), (18.2, 19.0)],
            }),
        },
    ]
}
