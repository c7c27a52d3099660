//! Claims of chapters 4.3 and 5.2: credits, with first come, first served.

use super::points::{A500, A1000, B500, B1000, BEST, FEW, credits, fcfs, means, ordered};
use crate::claim::Claim;
use crate::judge::{Known, ms, near, percent};
use crate::{ClaimRun, Judged, PointResult};

/// Numbers of credits in the scan for switch B.
const SCAN_B: [u32; 6] = [480, 600, 720, 840, 960, 1200];

pub(super) fn claims() -> Vec<Claim> {
    let scan_a = || -> Vec<ClaimRun> { [24, 48, 480, 960, 1920].map(|n| fcfs(A1000, n)).to_vec() };
    vec![
        Claim {
            id: "T031",
            place: "thesis §4.3.1",
            says: "the burst towards a node is at most its credits times the fragment size",
            expected: "no queue towards a collector above 480 × 1.1 kB with headers, no drop",
            points: vec![
                credits(A1000, BEST)
                    .set("record.queues", "[\"tor->collector:*\"]")
                    .set("record.queue_interval", "100 us")
                    .set("run.duration", "1 s"),
            ],
            judge: |results| {
                // 13.2 kB in segments of 1448 B: ten frames with 70 B of headers in a switch's memory.
                let bound = 40 * (13_200 + 10 * 70);
                let (most, drops) = (results[0].watched_bytes_max, results[0].drops());
                Judged::new(
                    most > 0 && most <= bound && drops == 0,
                    format!("{most} B of {bound} B, {drops} drops"),
                )
            },
            known: None,
        },
        Claim {
            id: "T032",
            place: "thesis §4.3.2, fig. 4.9",
            says: "switch A: collection time against credits is U-shaped",
            expected: "lower at 480 than at 24 and at 1920",
            points: scan_a(),
            judge: |results| {
                let means = means(results);
                Judged::new(means[2] < means[0] && means[2] < means[4], ms(&means))
            },
            known: None,
        },
        Claim {
            id: "T034",
            place: "thesis §4.3.2, fig. 4.10",
            says: "switch B: the best burst shifts with the throughput",
            expected: "the largest burst without a loss is smaller at 90 % than at 45 %",
            points: [B500, B1000].iter().flat_map(|&p| SCAN_B.map(|n| ordered(credits(p, n)))).collect(),
            judge: |results| {
                let lossless = |results: &[&PointResult]| {
                    results.iter().take_while(|result| result.drops() == 0).count()
                };
                let (low, high) = (lossless(&results[..SCAN_B.len()]), lossless(&results[SCAN_B.len()..]));
                Judged::new(
                    high < low,
                    format!("{low} at 45 %, {high} at 90 % of {SCAN_B:?} credits lose nothing"),
                )
            },
            known: None,
        },
        Claim {
            id: "T036",
            place: "thesis §4.3.2",
            says: "with FCFS the best window is far above the one of the window equation",
            expected: "480 credits better than 60 (66 kB, the equation's 63.2 kB)",
            points: vec![fcfs(A1000, 60), fcfs(A1000, BEST)],
            judge: |results| {
                let means = means(results);
                Judged::new(means[1] < means[0], ms(&means))
            },
            known: None,
        },
        Claim {
            id: "T037",
            place: "thesis §4.3.2, figs 4.11, 4.12",
            says: "at 528 kB, collection time grows with throughput and is least near idle",
            expected: "100, 500, 1000 Hz in rising order",
            points: [100, 500, 1000]
                .map(|rate| {
                    // The units have run for a while. With few events, the order of the start would decide.
                    credits(A1000, BEST)
                        .set("shaping.discipline", "round-robin")
                        .set("supervisor.start_order", "random")
                        .set("supervisor.rate", format_args!("{rate} Hz"))
                        .set("run.duration", "2 s")
                })
                .to_vec(),
            judge: |results| {
                let means = means(results);
                Judged::new(means[0] < means[1] && means[1] < means[2], ms(&means))
            },
            known: None,
        },
        Claim {
            id: "T038",
            place: "thesis §5.2.2, figs 5.6a-5.9a",
            says: "at 52.8 kB almost no event takes less than 20 ms, a good part less than 40 ms",
            expected: "< 2 %; > 20 %",
            points: [A500, A1000].map(|preset| fcfs(preset, FEW)).to_vec(),
            judge: |results| {
                let fast: Vec<f64> = results.iter().map(|result| result.share(|time| time < 20.0)).collect();
                let fair: Vec<f64> = results.iter().map(|result| result.share(|time| time < 40.0)).collect();
                Judged::new(
                    fast.iter().all(|&share| share < 0.02) && fair.iter().all(|&share| share > 0.2),
                    format!("{}; {}", percent(&fast), percent(&fair)),
                )
            },
            known: None,
        },
        Claim {
            id: "T039",
            place: "thesis §5.2.2, figs 5.6a-5.9a",
            says: "at 52.8 kB tails reach 300 ms at 45 % and 500 ms at 90 %",
            expected: "the 99.9th percentile within 30 %",
            points: [A500, A1000].map(|preset| fcfs(preset, FEW)).to_vec(),
            judge: |results| {
                let tails: Vec<f64> = results.iter().map(|result| result.quantile_ms(999)).collect();
                Judged::new(near(tails[0], 300.0, 0.3) && near(tails[1], 500.0, 0.3), ms(&tails))
                    .figures(&tails)
            },
            known: Some(Known {
                why: "500 ms at 90 %, but 415 ms at 45 %: tails are what is left of the start, and shrink with the time simulated",
                ranges: &[(370.0, 450.0), (455.0, 555.0)],
            }),
        },
        Claim {
            id: "T040",
            place: "thesis §5.2.2, figs 5.6b-5.9b",
            says: "at 528 kB a sizeable part is collected within 20 ms, the rest waits for credits",
            expected: "> 20 % within 20 ms",
            points: [A500, A1000].map(|preset| fcfs(preset, BEST)).to_vec(),
            judge: |results| {
                let shares: Vec<f64> =
                    results.iter().map(|result| result.share(|time| time <= 20.0)).collect();
                Judged::new(shares.iter().all(|&share| share > 0.2), percent(&shares))
            },
            known: None,
        },
        Claim {
            id: "T043",
            place: "thesis §5.2.2",
            says: "a smaller usable buffer than the nominal one brings incast on earlier",
            expected: "at 640 credits losses with 500 kB, none with the nominal 786 kB",
            points: vec![
                credits(A1000, 640).set("tor.buffer", "500 kB"),
                credits(A1000, 640).set("supervisor.policy", "node-round-robin"),
            ],
            judge: |results| {
                let drops: Vec<u64> = results.iter().map(|result| result.drops()).collect();
                Judged::new(drops[0] > 0 && drops[1] == 0, format!("{} / {} drops", drops[0], drops[1]))
            },
            known: None,
        },
        Claim {
            id: "T045",
            place: "thesis §5.2.2",
            says: "the buffer hardly matters where shaping works, and much where it does not",
            expected: "change of the mean < 2 % at 52.8 kB, larger without shaping (B, 9.4 and 12.6 MB, 45 %)",
            points: vec![
                credits(B500, FEW),
                credits(B500, FEW).set("tor.buffer", "9.4 MB"),
                ClaimRun::new(B500),
                ClaimRun::new(B500).set("tor.buffer", "9.4 MB"),
            ],
            judge: |results| {
                let m = means(results);
                let change = |a: f64, b: f64| (b - a).abs() / a;
                let (shaped, unshaped) = (change(m[0], m[1]), change(m[2], m[3]));
                Judged::new(shaped < 0.02 && unshaped > shaped, percent(&[shaped, unshaped]))
            },
            known: None,
        },
    ]
}
