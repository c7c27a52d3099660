//! Claims of chapter 6.5: the memory that a switch needs without shaping.

use super::points::{A500, A1000, B1000, means, ordered, variable};
use crate::claim::Claim;
use crate::judge::ms;
use crate::{ClaimRun, Judged, PointResult};

pub(super) fn claims() -> Vec<Claim> {
    let dedicated = |id, says, expected, points, judge| Claim {
        id,
        place: "thesis §6.5, fig. 6.12",
        says,
        expected,
        points,
        judge,
        known: None,
    };
    vec![
        dedicated(
            "T086",
            "FCFS at 45 %: 4 MB a port prevent all drops",
            "drops at 3.2 MB, none at 4.8 MB (4 MB ± 20 %)",
            with_buffers(A500, "fcfs", "5 s", &["3.2 MB", "4.8 MB"]),
            judge_drops,
        ),
        dedicated(
            "T087",
            "FCFS at 90 %: 5 MB a port prevent all drops",
            "drops at 4 MB, none at 6 MB (5 MB ± 20 %)",
            // The largest of thousands of events decides. At 90 % load some 20 000 events are needed.
            with_buffers(A1000, "fcfs", "20 s", &["4 MB", "6 MB"]),
            judge_drops,
        ),
        dedicated(
            "T088",
            "round-robin at 45 %: the least collection time from 3 MB a port on",
            "within 5 % of 8 MB at 3.6 MB, above it at 2.4 MB (3 MB ± 20 %)",
            with_buffers(A500, "node-round-robin", "5 s", &["2.4 MB", "3.6 MB", "8 MB"]),
            judge_least,
        ),
        dedicated(
            "T089",
            "round-robin at 90 %: the least collection time from 3.5 MB a port on",
            "within 5 % of 8 MB at 4.2 MB, above it at 2.8 MB (3.5 MB ± 20 %)",
            with_buffers(A1000, "node-round-robin", "5 s", &["2.8 MB", "4.2 MB", "8 MB"]),
            judge_least,
        ),
        Claim {
            id: "T090",
            place: "thesis §6.5, fig. 6.12",
            says: "random at 90 %: 5 MB a port do not reach the least collection time",
            expected: "more than 5 % above round-robin with 8 MB",
            points: [("random", "5 MB"), ("node-round-robin", "8 MB")]
                .map(|(policy, size)| {
                    ordered(variable(ClaimRun::new(A1000)))
                        .set("supervisor.policy", policy)
                        .set("tor.buffer", size)
                })
                .to_vec(),
            judge: |results| {
                let m = means(results);
                Judged::new(m[0] > 1.05 * m[1], ms(&m))
            },
            known: None,
        },
        dedicated(
            "T091",
            "with enough memory the least collection time is slightly below 20 ms",
            "≤ 20 ms at 8 MB",
            with_buffers(A1000, "node-round-robin", "5 s", &["8 MB"]),
            |results| {
                let m = means(results);
                Judged::new(m[0] <= 20.0, ms(&m))
            },
        ),
        Claim {
            id: "T093",
            place: "thesis §6.5, fig. 6.13",
            says: "FCFS at 90 % needs 30 MB of shared memory; random never reaches the least collection time",
            expected: "within 5 % of 60 MB at 36 MB, above it at 24 MB (30 MB ± 20 %); random more than 5 % above it at 60 MB",
            points: [("fcfs", "24 MB"), ("fcfs", "36 MB"), ("fcfs", "60 MB"), ("random", "60 MB")]
                .map(|(policy, size)| shared(B1000, policy, size))
                .to_vec(),
            judge: |results| {
                let m = means(results);
                let Judged { holds, .. } = judge_least(&results[..3]);
                Judged::new(holds && m[3] > 1.05 * m[2], ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T095",
            place: "thesis §6.5, fig. 6.13",
            says: "with little shared memory at 90 % round-robin is better than load-balancing",
            expected: "lower mean at 16 MB",
            points: ["node-round-robin", "node-load-balancing"].map(|p| shared(B1000, p, "16 MB")).to_vec(),
            judge: |results| {
                let m = means(results);
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
                .map(|p| {
                    ordered(variable(ClaimRun::new(A1000)))
                        .set("supervisor.policy", p)
                        .set("tor.buffer", "5 MB")
                })
                .to_vec(),
            judge: |results| {
                let m = means(results);
                Judged::new(m[0] < m[1], ms(&m))
            },
            known: None,
        },
    ]
}

/// Sets switch A with these amounts of memory for each port, one run for each.
fn with_buffers(preset: &'static str, policy: &str, duration: &str, sizes: &[&str]) -> Vec<ClaimRun> {
    sizes
        .iter()
        .map(|size| {
            ordered(variable(ClaimRun::new(preset)))
                .set("supervisor.policy", policy)
                .set("tor.buffer", size)
                .set("run.duration", duration)
        })
        .collect()
}

/// Sets switch B with another amount of memory, without limits on ports.
fn shared(preset: &'static str, policy: &str, size: &str) -> ClaimRun {
    ordered(variable(ClaimRun::new(preset)))
        .set("supervisor.policy", policy)
        .set("tor.buffer", size)
        .set("tor.port_limit", "unlimited")
        .set("tor.input_limit", "unlimited")
}

fn judge_drops(results: &[&PointResult]) -> Judged {
    let drops: Vec<u64> = results.iter().map(|result| result.drops()).collect();
    Judged::new(drops[0] > 0 && drops[1] == 0, format!("{} / {} drops", drops[0], drops[1]))
}

fn judge_least(results: &[&PointResult]) -> Judged {
    let m = means(results);
    Judged::new(m[0] > 1.05 * m[2] && m[1] <= 1.05 * m[2], ms(&m))
}
