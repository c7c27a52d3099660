//! Claims of the thesis, chapters 4 to 6. Burst sizes are given as credits: 1.1 kB a fragment, so 480 are 528 kB.

use crate::judge::{ms, near, percent};
use crate::{Claim, Got, Judged, Point};

const A500: &str = "thesis-a-500hz";
const A1000: &str = "thesis-a-1000hz";
const B500: &str = "thesis-b-500hz";
const B1000: &str = "thesis-b-1000hz";

/// Credits of the burst that the thesis finds best for switch A, 528 kB.
const BEST: u32 = 480;
/// Credits of the smallest burst that it shows, 52.8 kB.
const FEW: u32 = 48;

/// A set-up without any avoidance, in which each event is collected from `groups` of the 16 groups of readouts; the
/// rate is raised so that the throughput stays (thesis §4.2.1).
fn partial(preset: &'static str, groups: u32) -> Point {
    let full_mhz: u64 = if preset.ends_with("-500hz") { 500_000 } else { 1_000_000 };
    let rate = full_mhz * 16 / u64::from(groups);
    Point::new(preset)
        .set("workload.fraction", format_args!("0.{:04}", groups * 10_000 / 16))
        .set("supervisor.rate", format_args!("{rate} mHz"))
}

fn credits(preset: &'static str, credits: u32) -> Point {
    Point::new(preset).set("shaping.credits", credits)
}

fn policy(preset: &'static str, policy: &str) -> Point {
    credits(preset, BEST).set("supervisor.policy", policy)
}

/// Log-normal events with normal fragments (thesis §6.2).
fn variable(point: Point) -> Point {
    point.set(
        "readout.fragment_size",
        "{ distribution = \"log-normal\", mean = \"1.1 kB\", sigma = 0.25, fragment_sd = \"200 B\" }",
    )
}

/// A minimum RTO of 5 ms without delayed acknowledgements (thesis §6.3).
fn rto_5ms(point: Point) -> Point {
    point.set("transport.rto_min", "5 ms").set("transport.delayed_ack", false)
}

/// As the thesis' own simulation: variable sizes, no shaping, a policy that spreads the load.
fn unshaped(preset: &'static str) -> Point {
    variable(Point::new(preset).set("supervisor.policy", "node-round-robin"))
}

fn means(got: &[&Got]) -> Vec<f64> {
    got.iter().map(|got| got.mean_ms()).collect()
}

/// The first size from which the mean exceeds three times the ideal: where incast sets in.
fn onset(got: &[&Got]) -> usize {
    got.iter().position(|got| got.mean_ms() > 3.0 * got.ideal_ms()).unwrap_or(got.len())
}

/// Sixteenths of the event that the scans over the collection size use.
const SIZES: [u32; 7] = [4, 5, 6, 7, 8, 10, 12];

fn scan(low: &'static str, high: &'static str) -> Vec<Point> {
    [low, high].iter().flat_map(|&preset| SIZES.map(|groups| partial(preset, groups))).collect()
}

pub(crate) fn claims() -> Vec<Claim> {
    let mut all = measurements();
    all.extend(shaping());
    all.extend(policies());
    all.extend(retransmission());
    all.extend(buffers());
    all
}

/// Chapter 4.2: no avoidance.
fn measurements() -> Vec<Claim> {
    vec![
        Claim {
            id: "T018",
            place: "thesis ch. 7",
            says: "without mitigation, a collection takes up to 35 times the ideal",
            expected: "637 ms ± 30 %, the worst mean of both switches at 1000 Hz",
            points: vec![Point::new(A1000), Point::new(B1000)],
            judge: |got| {
                let means = means(got);
                Judged::new(near(means[0].max(means[1]), 637.0, 0.3), ms(&means))
            },
            known: None,
        },
        Claim {
            id: "T019",
            place: "thesis §4.2.2, fig. 4.3",
            says: "switch A: incast sets in at the same size at 45 % and 90 %",
            expected: "equal within a step of the scan",
            points: scan(A500, A1000),
            judge: |got| {
                let (low, high) = (onset(&got[..SIZES.len()]), onset(&got[SIZES.len()..]));
                Judged::new(low.abs_diff(high) <= 1, onsets(low, high))
            },
            known: None,
        },
        Claim {
            id: "T020",
            place: "thesis §4.2.2, fig. 4.4",
            says: "switch B: incast sets in at a smaller size at 90 % than at 45 %",
            expected: "smaller",
            points: scan(B500, B1000),
            judge: |got| {
                let (low, high) = (onset(&got[..SIZES.len()]), onset(&got[SIZES.len()..]));
                Judged::new(high < low, onsets(low, high))
            },
            known: None,
        },
        Claim {
            id: "T021",
            place: "thesis §4.2.2",
            says: "below the threshold, a collection takes its ideal time",
            expected: "within 5 % of the ideal at 396 kB, 45 %, events spread over the nodes",
            points: vec![partial(A500, 3).set("supervisor.policy", "node-round-robin")],
            judge: |got| {
                let (mean, ideal) = (got[0].mean_ms(), got[0].ideal_ms());
                Judged::new(near(mean, ideal, 0.05), format!("{mean:.2} ms, ideal {ideal:.2} ms"))
            },
            known: None,
        },
        Claim {
            id: "T022",
            place: "thesis §4.2.2",
            says: "above the threshold, a collection takes more than ten times its ideal",
            expected: "> 10 × ideal for the full event",
            points: vec![Point::new(A500), Point::new(A1000)],
            judge: |got| {
                let ratios: Vec<f64> = got.iter().map(|got| got.mean_ms() / got.ideal_ms()).collect();
                Judged::new(
                    ratios.iter().all(|&ratio| ratio > 10.0),
                    format!("{:.1} / {:.1} ×", ratios[0], ratios[1]),
                )
            },
            known: None,
        },
        Claim {
            id: "T023",
            place: "thesis §4.2.2, fig. 4.5",
            says: "switch A, 792 kB: most collections suffer a time-out, in peaks near multiples of 200 ms",
            expected: "> 50 % with a time-out; the most frequent 10 ms above 150 ms lie within 15 ms of n × 200 ms",
            points: vec![partial(A500, 6), partial(A1000, 6)],
            judge: |got| {
                let shares: Vec<f64> = got.iter().map(|got| got.share_with_timeouts(1)).collect();
                let peaks: Vec<f64> = got.iter().map(|got| peak_above(got, 150.0)).collect();
                let at_multiple = |peak: f64| (peak / 200.0 - (peak / 200.0).round()).abs() * 200.0 <= 25.0;
                Judged::new(
                    shares.iter().all(|&share| share > 0.5) && peaks.iter().all(|&peak| at_multiple(peak)),
                    format!("{}, peaks at {}", percent(&shares), ms(&peaks)),
                )
            },
            known: Some(
                "the nominal 786 kB hold most bursts of 792 kB; with the usable 500 kB four in five suffer",
            ),
        },
        Claim {
            id: "T024",
            place: "thesis §4.2.2, fig. 4.6",
            says: "switch A, 1320 kB: a share suffers several time-outs in a row",
            expected: "> 5 % take more than 350 ms",
            points: vec![partial(A500, 10), partial(A1000, 10)],
            judge: |got| {
                let shares: Vec<f64> = got.iter().map(|got| got.share(|time| time > 350.0)).collect();
                Judged::new(shares.iter().all(|&share| share > 0.05), percent(&shares))
            },
            known: None,
        },
        Claim {
            id: "T025",
            place: "thesis §4.2.2, fig. 4.7a",
            says: "switch B, 792 kB at 45 %: no collection suffers a time-out",
            expected: "0",
            points: vec![partial(B500, 6)],
            judge: |got| {
                let share = got[0].share_with_timeouts(1);
                Judged::new(share == 0.0, percent(&[share]))
            },
            known: None,
        },
        Claim {
            id: "T026",
            place: "thesis §4.2.2, figs 4.7b-4.8",
            says: "switch B: time-outs appear when throughput or size grow",
            expected: "> 0 at 1320 kB and 90 %",
            points: vec![partial(B1000, 10)],
            judge: |got| {
                let share = got[0].share_with_timeouts(1);
                Judged::new(share > 0.0, percent(&[share]))
            },
            known: None,
        },
        Claim {
            id: "T027",
            place: "thesis §5.2.2, figs 5.6c, 5.7c",
            says: "switch A without shaping: no full event in less than 200 ms",
            expected: "≤ 1 %",
            points: vec![Point::new(A500), Point::new(A1000)],
            judge: |got| {
                let shares: Vec<f64> = got.iter().map(|got| got.share(|time| time < 200.0)).collect();
                Judged::new(shares.iter().all(|&share| share <= 0.01), percent(&shares))
            },
            known: None,
        },
        Claim {
            id: "T028",
            place: "thesis §5.2.2, figs 5.6c, 5.7c",
            says: "switch A without shaping: most events between 200 and 700 ms, more beyond at 90 %",
            expected: "> 50 %; a larger share above 700 ms at 1000 Hz",
            points: vec![Point::new(A500), Point::new(A1000)],
            judge: |got| {
                let bulk: Vec<f64> =
                    got.iter().map(|got| got.share(|time| (200.0..700.0).contains(&time))).collect();
                let tail: Vec<f64> = got.iter().map(|got| got.share(|time| time >= 700.0)).collect();
                Judged::new(
                    bulk.iter().all(|&share| share > 0.5) && tail[1] > tail[0],
                    format!("{}, beyond {}", percent(&bulk), percent(&tail)),
                )
            },
            known: None,
        },
        Claim {
            id: "T029",
            place: "thesis §5.2.2, fig. 5.8c",
            says: "switch B at 45 %: some full events without a time-out, the vast majority with",
            expected: "more than 0 and less than 30 % below 200 ms",
            points: vec![Point::new(B500)],
            judge: |got| {
                let share = got[0].share(|time| time < 200.0);
                Judged::new(share > 0.0 && share < 0.3, percent(&[share]))
            },
            known: None,
        },
        Claim {
            id: "T030",
            place: "thesis §5.2.2, fig. 5.9c",
            says: "switch B: the mean is noticeably higher at 90 % than at 45 %",
            expected: "higher",
            points: vec![Point::new(B500), Point::new(B1000)],
            judge: |got| {
                let means = means(got);
                Judged::new(means[1] > means[0], ms(&means))
            },
            known: None,
        },
    ]
}

fn onsets(low: usize, high: usize) -> String {
    let size = |index: usize| {
        SIZES.get(index).map_or_else(|| "beyond the scan".to_owned(), |groups| format!("{} kB", groups * 132))
    };
    format!("{} at 45 %, {} at 90 %", size(low), size(high))
}

/// The middle of the 10 ms that hold most events, above a time.
fn peak_above(got: &Got, from_ms: f64) -> f64 {
    let mut counts = std::collections::BTreeMap::new();
    for time in got.times_ms.iter().filter(|&&time| time > from_ms) {
        *counts.entry((time / 10.0) as u64).or_insert(0_u64) += 1;
    }
    let most = counts.iter().max_by_key(|&(bin, count)| (*count, std::cmp::Reverse(*bin)));
    most.map_or(f64::NAN, |(bin, _)| *bin as f64 * 10.0 + 5.0)
}

/// Chapter 4.3 and 5.2: credits, first come first served.
fn shaping() -> Vec<Claim> {
    let scan_a = || -> Vec<Point> { [24, 48, 480, 960, 1920].map(|n| credits(A1000, n)).to_vec() };
    vec![
        Claim {
            id: "T031",
            place: "thesis §4.3.1",
            says: "the burst towards a node is at most its credits times the fragment size",
            expected: "no queue above 480 × 1.1 kB with headers, no drop",
            points: vec![credits(A1000, BEST)],
            judge: |got| {
                // 13.2 kB in segments of 1448 B: ten frames with 70 B of headers in a switch's memory.
                let bound = 40 * (13_200 + 10 * 70);
                let (most, drops) = (got[0].queue_bytes_max(), got[0].drops());
                Judged::new(most <= bound && drops == 0, format!("{most} B of {bound} B, {drops} drops"))
            },
            known: None,
        },
        Claim {
            id: "T032",
            place: "thesis §4.3.2, fig. 4.9",
            says: "switch A: collection time against credits is U-shaped",
            expected: "lower at 480 than at 24 and at 1920",
            points: scan_a(),
            judge: |got| {
                let means = means(got);
                Judged::new(means[2] < means[0] && means[2] < means[4], ms(&means))
            },
            known: None,
        },
        Claim {
            id: "T034",
            place: "thesis §4.3.2, fig. 4.10",
            says: "switch B: the best burst shifts with the throughput",
            expected: "the largest burst without a loss is smaller at 90 % than at 45 %",
            points: [B500, B1000]
                .iter()
                .flat_map(|&p| [480, 960, 1440, 1920].map(|n| credits(p, n)))
                .collect(),
            judge: |got| {
                let lossless = |got: &[&Got]| got.iter().take_while(|got| got.drops() == 0).count();
                let (low, high) = (lossless(&got[..4]), lossless(&got[4..]));
                Judged::new(
                    high < low,
                    format!("{low} and {high} of 480, 960, 1440, 1920 credits lose nothing"),
                )
            },
            known: None,
        },
        Claim {
            id: "T036",
            place: "thesis §4.3.2",
            says: "with FCFS the best window is far above the one of the window equation",
            expected: "480 credits better than 60 (66 kB, the equation's 63.2 kB)",
            points: vec![credits(A1000, 60), credits(A1000, BEST)],
            judge: |got| {
                let means = means(got);
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
                .map(|rate| credits(A1000, BEST).set("supervisor.rate", format_args!("{rate} Hz")))
                .to_vec(),
            judge: |got| {
                let means = means(got);
                Judged::new(means[0] < means[1] && means[1] < means[2], ms(&means))
            },
            known: Some(
                "with few events the order in which units announced themselves decides, not the rate",
            ),
        },
        Claim {
            id: "T038",
            place: "thesis §5.2.2, figs 5.6a-5.9a",
            says: "at 52.8 kB almost no event takes less than 20 ms, a good part less than 40 ms",
            expected: "< 2 %; > 20 %",
            points: [A500, A1000].map(|preset| credits(preset, FEW)).to_vec(),
            judge: |got| {
                let fast: Vec<f64> = got.iter().map(|got| got.share(|time| time < 20.0)).collect();
                let fair: Vec<f64> = got.iter().map(|got| got.share(|time| time < 40.0)).collect();
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
            points: [A500, A1000].map(|preset| credits(preset, FEW)).to_vec(),
            judge: |got| {
                let tails: Vec<f64> = got.iter().map(|got| got.quantile_ms(999)).collect();
                Judged::new(near(tails[0], 300.0, 0.3) && near(tails[1], 500.0, 0.3), ms(&tails))
            },
            known: None,
        },
        Claim {
            id: "T040",
            place: "thesis §5.2.2, figs 5.6b-5.9b",
            says: "at 528 kB a sizeable part is collected within 20 ms, the rest waits for credits",
            expected: "> 20 % within 20 ms",
            points: [A500, A1000].map(|preset| credits(preset, BEST)).to_vec(),
            judge: |got| {
                let shares: Vec<f64> = got.iter().map(|got| got.share(|time| time <= 20.0)).collect();
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
            judge: |got| {
                let drops: Vec<u64> = got.iter().map(|got| got.drops()).collect();
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
                Point::new(B500),
                Point::new(B500).set("tor.buffer", "9.4 MB"),
            ],
            judge: |got| {
                let m = means(got);
                let change = |a: f64, b: f64| (b - a).abs() / a;
                let (shaped, unshaped) = (change(m[0], m[1]), change(m[2], m[3]));
                Judged::new(shaped < 0.02 && unshaped > shaped, percent(&[shaped, unshaped]))
            },
            known: None,
        },
    ]
}

/// Chapters 6.1 and 6.2: who gets the next event, and events of different sizes.
fn policies() -> Vec<Claim> {
    let best = |id, preset: &'static str, says, expected, judge| Claim {
        id,
        place: "thesis §6.1, figs 6.1, 6.2",
        says,
        expected,
        points: [240, 480, 600].map(|n| credits(preset, n)).to_vec(),
        judge,
        known: None,
    };
    vec![
        best("T049", A500, "FCFS at 45 % never falls below 40 ms", "best of the scan ≥ 35 ms", |got| {
            let means = means(got);
            Judged::new(means.iter().all(|&mean| mean >= 35.0), ms(&means))
        }),
        best("T050", A1000, "FCFS at 90 % never falls below 60 ms", "best of the scan ≥ 50 ms", |got| {
            let means = means(got);
            Judged::new(means.iter().all(|&mean| mean >= 50.0), ms(&means))
        }),
        Claim {
            id: "T051",
            place: "thesis §6.1",
            says: "random at 45 % reaches about 20 ms",
            expected: "20 ms ± 10 %",
            points: vec![policy(A500, "random")],
            judge: |got| {
                let means = means(got);
                Judged::new(near(means[0], 20.0, 0.1), ms(&means))
            },
            known: None,
        },
        Claim {
            id: "T052",
            place: "thesis §6.1",
            says: "random at 90 % is clearly worse than round-robin",
            expected: "> 1.15 ×",
            points: vec![policy(A1000, "random"), policy(A1000, "node-round-robin")],
            judge: |got| {
                let means = means(got);
                Judged::new(means[0] > 1.15 * means[1], ms(&means))
            },
            known: None,
        },
        Claim {
            id: "T053",
            place: "thesis §6.1",
            says: "node round-robin reaches 20 ms at 45 % and at 90 %",
            expected: "20 ms ± 5 %, or better",
            points: [A500, A1000].map(|preset| policy(preset, "node-round-robin")).to_vec(),
            judge: |got| {
                let means = means(got);
                Judged::new(means.iter().all(|&mean| mean <= 21.0), ms(&means))
            },
            known: None,
        },
        Claim {
            id: "T054",
            place: "thesis §6.1",
            says: "node load-balancing is better than random and close to round-robin",
            expected: "< random; within 10 % of round-robin",
            points: ["node-load-balancing", "random", "node-round-robin"].map(|p| policy(A1000, p)).to_vec(),
            judge: |got| {
                let means = means(got);
                Judged::new(means[0] < means[1] && near(means[0], means[2], 0.1), ms(&means))
            },
            known: None,
        },
        Claim {
            id: "T055",
            place: "thesis §6.1",
            says: "with very few credits round-robin is the best policy",
            expected: "least mean at 36 credits, 90 %",
            points: ["node-round-robin", "node-load-balancing", "random", "fcfs"]
                .map(|p| credits(A1000, 36).set("supervisor.policy", p))
                .to_vec(),
            judge: |got| {
                let means = means(got);
                Judged::new(means[1..].iter().all(|&mean| means[0] <= mean), ms(&means))
            },
            known: None,
        },
        Claim {
            id: "T056",
            place: "thesis §6.1",
            says: "processing-unit round-robin is abysmal",
            expected: "> 150 ms",
            points: vec![policy(A1000, "unit-round-robin")],
            judge: |got| {
                let means = means(got);
                Judged::new(means[0] > 150.0, ms(&means))
            },
            known: None,
        },
        Claim {
            id: "T057",
            place: "thesis §6.1",
            says: "policies differ more at 90 % than at 45 %",
            expected: "larger spread of the means of FCFS, random, load-balancing and round-robin",
            points: [A500, A1000]
                .iter()
                .flat_map(|&preset| {
                    ["fcfs", "random", "node-load-balancing", "node-round-robin"].map(|p| policy(preset, p))
                })
                .collect(),
            judge: |got| {
                let spread = |got: &[&Got]| {
                    let means = means(got);
                    means.iter().copied().fold(0.0, f64::max) - means.iter().copied().fold(f64::MAX, f64::min)
                };
                let (low, high) = (spread(&got[..4]), spread(&got[4..]));
                Judged::new(high > low, ms(&[low, high]))
            },
            known: None,
        },
        Claim {
            id: "T058",
            place: "thesis §6.1",
            says: "the policies' order",
            expected: "unit round-robin ≫ FCFS > random > load-balancing ≥ round-robin (within 2 %)",
            points: ["unit-round-robin", "fcfs", "random", "node-load-balancing", "node-round-robin"]
                .map(|p| policy(A1000, p))
                .to_vec(),
            judge: |got| {
                let m = means(got);
                let ordered = m[0] > 2.0 * m[1] && m[1] > m[2] && m[2] > m[3] && m[3] >= 0.98 * m[4];
                Judged::new(ordered, ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T060",
            place: "thesis §6.2, fig. 6.3",
            says: "switch A: with variable sizes incast sets in at fewer credits",
            expected: "losses at 528 kB with variable sizes, none with fixed ones",
            points: vec![variable(policy(A1000, "node-round-robin")), policy(A1000, "node-round-robin")],
            judge: |got| {
                let drops: Vec<u64> = got.iter().map(|got| got.drops()).collect();
                Judged::new(drops[0] > 0 && drops[1] == 0, format!("{} / {} drops", drops[0], drops[1]))
            },
            known: None,
        },
        Claim {
            id: "T061",
            place: "thesis §6.2, fig. 6.3",
            says: "switch A: the least collection time is the same as with fixed sizes",
            expected: "within 5 %, 300 kB, round-robin and load-balancing",
            points: ["node-round-robin", "node-load-balancing"]
                .iter()
                .flat_map(|p| {
                    let fixed = credits(A500, 264).set("supervisor.policy", p);
                    [variable(fixed.clone()), fixed]
                })
                .collect(),
            judge: |got| {
                let m = means(got);
                Judged::new(near(m[0], m[1], 0.05) && near(m[2], m[3], 0.05), ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T062",
            place: "thesis §6.2, fig. 6.4",
            says: "switch B: variable sizes have little effect on shaping",
            expected: "< 5 %",
            points: {
                let fixed = policy(B500, "node-round-robin");
                vec![variable(fixed.clone()), fixed]
            },
            judge: |got| {
                let m = means(got);
                Judged::new(near(m[0], m[1], 0.05), ms(&m))
            },
            known: None,
        },
    ]
}

/// Chapter 6.3: the minimum retransmission time-out.
fn retransmission() -> Vec<Claim> {
    vec![
        Claim {
            id: "T063",
            place: "thesis §6.3, figs 6.5, 6.6",
            says: "without shaping the mean falls with the minimum RTO",
            expected: "falling from 200 over 50 and 20 to 5 ms",
            points: ["200 ms", "50 ms", "20 ms", "5 ms"]
                .map(|rto| unshaped(A500).set("transport.rto_min", rto).set("transport.delayed_ack", false))
                .to_vec(),
            judge: |got| {
                let m = means(got);
                Judged::new(m.windows(2).all(|pair| pair[1] < pair[0]), ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T065",
            place: "thesis §6.3, fig. 6.6a",
            says: "switch B at 45 %, minimum RTO 5 ms alone: about 38 ms",
            expected: "38 ms ± 20 %",
            points: vec![rto_5ms(unshaped(B500))],
            judge: |got| {
                let m = means(got);
                Judged::new(near(m[0], 38.0, 0.2), ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T067",
            place: "thesis §6.3, fig. 6.6b",
            says: "switch B at 90 %, minimum RTO 5 ms alone: not below 55 ms",
            expected: "≥ 44 ms",
            points: vec![rto_5ms(unshaped(B1000))],
            judge: |got| {
                let m = means(got);
                Judged::new(m[0] >= 44.0, ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T069",
            place: "thesis §6.3",
            says: "delayed acknowledgements: better off for switch A, better on for B",
            expected: "both orderings (the thesis calls it unexpected)",
            points: [A500, B500]
                .iter()
                .flat_map(|&preset| {
                    let on = unshaped(preset).set("transport.rto_min", "5 ms");
                    [on.clone().set("transport.delayed_ack", false), on]
                })
                .collect(),
            judge: |got| {
                let m = means(got);
                Judged::new(m[0] < m[1] && m[3] < m[2], ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T070",
            place: "thesis §6.3, fig. 6.7",
            says: "switch A up to 300 kB: a minimum RTO of 5 ms without delayed acknowledgements changes nothing",
            expected: "within 3 %",
            points: {
                let base = variable(credits(A500, 240).set("supervisor.policy", "node-round-robin"));
                vec![rto_5ms(base.clone()), base]
            },
            judge: |got| {
                let m = means(got);
                Judged::new(near(m[0], m[1], 0.03), ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T071",
            place: "thesis §6.3, fig. 6.8",
            says: "switch B up to 500 kB: the same",
            expected: "within 3 %",
            points: {
                let base = variable(policy(B500, "node-round-robin"));
                vec![rto_5ms(base.clone()), base]
            },
            judge: |got| {
                let m = means(got);
                Judged::new(near(m[0], m[1], 0.03), ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T072",
            place: "thesis §6.3, figs 6.7, 6.8",
            says: "below the onset, a minimum RTO of 5 ms with delayed acknowledgements is worse than 200 ms",
            expected: "higher mean",
            points: {
                let base = variable(credits(A500, 240).set("supervisor.policy", "node-round-robin"));
                vec![base.clone().set("transport.rto_min", "5 ms"), base]
            },
            judge: |got| {
                let m = means(got);
                Judged::new(m[0] > m[1], ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T073",
            place: "thesis §6.3, figs 6.7, 6.8",
            says: "above the onset, a minimum RTO of 5 ms is far better",
            expected: "less than half the mean at 960 credits",
            points: {
                let base = variable(credits(A1000, 960).set("supervisor.policy", "node-round-robin"));
                vec![rto_5ms(base.clone()), base]
            },
            judge: |got| {
                let m = means(got);
                Judged::new(m[0] < 0.5 * m[1], ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T074",
            place: "thesis §6.3",
            says: "shaping beats a low minimum RTO alone",
            expected: "lower mean on A and B at 45 %",
            points: [A500, B500]
                .iter()
                .flat_map(|&preset| {
                    let shaped = variable(credits(preset, 264).set("supervisor.policy", "node-round-robin"));
                    [shaped, rto_5ms(unshaped(preset))]
                })
                .collect(),
            judge: |got| {
                let m = means(got);
                Judged::new(m[0] < m[1] && m[2] < m[3], ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T075",
            place: "thesis §6.6, ch. 7",
            says: "credits, round-robin, 5 ms and no delayed acknowledgements: within 10 % of the ideal at 90 %",
            expected: "≤ 1.10 × ideal, fixed sizes",
            points: vec![rto_5ms(policy(A1000, "node-round-robin"))],
            judge: |got| {
                let ratio = got[0].mean_ms() / got[0].ideal_ms();
                Judged::new(ratio <= 1.10, format!("{ratio:.3} × ideal"))
            },
            known: None,
        },
    ]
}

/// Chapter 6.5: how much memory a switch needs without any shaping.
fn buffers() -> Vec<Claim> {
    let dedicated =
        |id, preset: &'static str, policy: &'static str, says, expected, sizes: &[&str], judge| Claim {
            id,
            place: "thesis §6.5, fig. 6.12",
            says,
            expected,
            points: sizes
                .iter()
                .map(|size| {
                    variable(Point::new(preset)).set("supervisor.policy", policy).set("tor.buffer", size)
                })
                .collect(),
            judge,
            known: None,
        };
    vec![
        dedicated(
            "T086",
            A500,
            "fcfs",
            "FCFS at 45 %: 4 MB a port prevent all drops",
            "drops at 3.2 MB, none at 4.8 MB (4 MB ± 20 %)",
            &["3.2 MB", "4.8 MB"],
            judge_drops,
        ),
        dedicated(
            "T087",
            A1000,
            "fcfs",
            "FCFS at 90 %: 5 MB a port prevent all drops",
            "drops at 4 MB, none at 6 MB (5 MB ± 20 %)",
            &["4 MB", "6 MB"],
            judge_drops,
        ),
        dedicated(
            "T088",
            A500,
            "node-round-robin",
            "round-robin at 45 %: the least collection time from 3 MB a port on",
            "within 5 % of 8 MB at 3.6 MB, above it at 2.4 MB (3 MB ± 20 %)",
            &["2.4 MB", "3.6 MB", "8 MB"],
            judge_least,
        ),
        dedicated(
            "T089",
            A1000,
            "node-round-robin",
            "round-robin at 90 %: the least collection time from 3.5 MB a port on",
            "within 5 % of 8 MB at 4.2 MB, above it at 2.8 MB (3.5 MB ± 20 %)",
            &["2.8 MB", "4.2 MB", "8 MB"],
            judge_least,
        ),
        dedicated(
            "T090",
            A1000,
            "random",
            "random at 90 %: 5 MB a port do not reach the least collection time",
            "more than 5 % above 12 MB",
            &["5 MB", "12 MB"],
            |got| {
                let m = means(got);
                Judged::new(m[0] > 1.05 * m[1], ms(&m))
            },
        ),
        dedicated(
            "T091",
            A1000,
            "node-round-robin",
            "with enough memory the least collection time is slightly below 20 ms",
            "≤ 20 ms at 8 MB",
            &["8 MB"],
            |got| {
                let m = means(got);
                Judged::new(m[0] <= 20.0, ms(&m))
            },
        ),
        Claim {
            id: "T093",
            place: "thesis §6.5, fig. 6.13",
            says: "FCFS at 90 % needs 30 MB of shared memory",
            expected: "within 5 % of 60 MB at 36 MB, above it at 24 MB (30 MB ± 20 %)",
            points: ["24 MB", "36 MB", "60 MB"].map(|size| shared(B1000, "fcfs", size)).to_vec(),
            judge: judge_least,
            known: None,
        },
        Claim {
            id: "T095",
            place: "thesis §6.5, fig. 6.13",
            says: "with little shared memory at 90 % round-robin is better than load-balancing",
            expected: "lower mean at 16 MB",
            points: ["node-round-robin", "node-load-balancing"].map(|p| shared(B1000, p, "16 MB")).to_vec(),
            judge: |got| {
                let m = means(got);
                Judged::new(m[0] < m[1], ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T096",
            place: "thesis §6.5",
            says: "with dedicated memory FCFS is better than random: it puts itself in order",
            expected: "lower mean at 5 MB, 90 %",
            points: ["fcfs", "random"]
                .map(|p| variable(Point::new(A1000)).set("supervisor.policy", p).set("tor.buffer", "5 MB"))
                .to_vec(),
            judge: |got| {
                let m = means(got);
                Judged::new(m[0] < m[1], ms(&m))
            },
            known: None,
        },
    ]
}

/// Switch B with another amount of memory, which its ports may use freely.
fn shared(preset: &'static str, policy: &str, size: &str) -> Point {
    variable(Point::new(preset))
        .set("supervisor.policy", policy)
        .set("tor.buffer", size)
        .set("tor.port_limit", "unlimited")
        .set("tor.input_limit", "unlimited")
}

fn judge_drops(got: &[&Got]) -> Judged {
    let drops: Vec<u64> = got.iter().map(|got| got.drops()).collect();
    Judged::new(drops[0] > 0 && drops[1] == 0, format!("{} / {} drops", drops[0], drops[1]))
}

fn judge_least(got: &[&Got]) -> Judged {
    let m = means(got);
    Judged::new(m[0] > 1.05 * m[2] && m[1] <= 1.05 * m[2], ms(&m))
}
