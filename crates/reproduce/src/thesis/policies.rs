//! Claims of chapters 6.1 and 6.2: assignment policies, and events of different sizes.

use super::points::{A500, A1000, B500, BEST, credits, fcfs, means, policy, variable};
use crate::claim::Claim;
use crate::judge::{ms, near};
use crate::{Judged, PointResult};

pub(super) fn claims() -> Vec<Claim> {
    let best = |id, preset: &'static str, says, expected, judge| Claim {
        id,
        place: "thesis §6.1, figs 6.1, 6.2",
        says,
        expected,
        points: [240, 480, 600].map(|n| fcfs(preset, n)).to_vec(),
        judge,
        known: None,
    };
    vec![
        best("T049", A500, "FCFS at 45 % never falls below 40 ms", "best of the scan ≥ 35 ms", |results| {
            let means = means(results);
            Judged::new(means.iter().all(|&mean| mean >= 35.0), ms(&means))
        }),
        best("T050", A1000, "FCFS at 90 % never falls below 60 ms", "best of the scan ≥ 50 ms", |results| {
            let means = means(results);
            Judged::new(means.iter().all(|&mean| mean >= 50.0), ms(&means))
        }),
        Claim {
            id: "T051",
            place: "thesis §6.1",
            says: "random at 45 % reaches about 20 ms",
            expected: "20 ms ± 10 %",
            points: vec![policy(A500, "random")],
            judge: |results| {
                let means = means(results);
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
            judge: |results| {
                let means = means(results);
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
            judge: |results| {
                let means = means(results);
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
            judge: |results| {
                let means = means(results);
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
            judge: |results| {
                let means = means(results);
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
            judge: |results| {
                let means = means(results);
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
                    let others = ["random", "node-load-balancing", "node-round-robin"];
                    [fcfs(preset, BEST)].into_iter().chain(others.map(|p| policy(preset, p)))
                })
                .collect(),
            judge: |results| {
                let spread = |results: &[&PointResult]| {
                    let means = means(results);
                    means.iter().copied().fold(0.0, f64::max) - means.iter().copied().fold(f64::MAX, f64::min)
                };
                let (low, high) = (spread(&results[..4]), spread(&results[4..]));
                Judged::new(high > low, ms(&[low, high]))
            },
            known: None,
        },
        Claim {
            id: "T058",
            place: "thesis §6.1",
            says: "the policies' order",
            expected: "unit round-robin ≫ FCFS > random > load-balancing ≥ round-robin (within 2 %)",
            points: {
                let [first, others @ ..] =
                    ["unit-round-robin", "random", "node-load-balancing", "node-round-robin"]
                        .map(|p| policy(A1000, p));
                [first, fcfs(A1000, BEST)].into_iter().chain(others).collect()
            },
            judge: |results| {
                let m = means(results);
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
            judge: |results| {
                let drops: Vec<u64> = results.iter().map(|result| result.drops()).collect();
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
            judge: |results| {
                let m = means(results);
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
            judge: |results| {
                let m = means(results);
                Judged::new(near(m[0], m[1], 0.05), ms(&m))
            },
            known: None,
        },
    ]
}
