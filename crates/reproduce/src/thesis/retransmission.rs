//! Claims of chapter 6.3: the minimum retransmission timeout.

use super::points::{
    A500, A1000, B500, B1000, credits, means, policy, rto_5ms, simulated, unshaped, variable,
};
use crate::Judged;
use crate::claim::Claim;
use crate::judge::{ms, near};
use crate::lab::ClaimRun;

/// A minimum RTO of 5 ms alone in the thesis' own simulation, with delayed acknowledgements off and on.
fn low_rto(preset: &'static str) -> Vec<ClaimRun> {
    let on = simulated(unshaped(preset)).set("transport.rto_min", "5 ms");
    vec![on.clone().set("transport.delayed_ack", false), on]
}

pub(super) fn claims() -> Vec<Claim> {
    vec![
        Claim {
            id: "T063",
            place: "thesis §6.3, figs 6.5, 6.6",
            says: "without shaping the mean falls with the minimum RTO",
            expected: "falling from 200 over 50 and 20 to 5 ms",
            points: ["200 ms", "50 ms", "20 ms", "5 ms"]
                .map(|rto| unshaped(A500).set("transport.rto_min", rto).set("transport.delayed_ack", false))
                .to_vec(),
            judge: |results| {
                let m = means(results);
                Judged::new(m.windows(2).all(|pair| pair[1] < pair[0]), ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T065",
            place: "thesis §6.3, fig. 6.6a",
            says: "switch B at 45 %, minimum RTO 5 ms alone: about 38 ms",
            expected: "38 ms ± 20 %, the better of delayed acknowledgements off and on",
            points: low_rto(B500),
            judge: |results| {
                let m = means(results);
                Judged::new(near(m[0].min(m[1]), 38.0, 0.2), ms(&m)).figures(&m)
            },
            known: None,
        },
        Claim {
            id: "T066",
            place: "thesis §6.3, fig. 6.5b",
            says: "switch A at 90 %, minimum RTO 5 ms alone: not below 95 ms, where B reaches 55 ms",
            expected: "≥ 76 ms, and above B; delayed acknowledgements off and on of A, then of B",
            points: [A1000, B1000].map(low_rto).concat(),
            judge: |results| {
                let m = means(results);
                let (a, b) = (m[0].min(m[1]), m[2].min(m[3]));
                Judged::new(a >= 76.0 && a > b, ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T067",
            place: "thesis §6.3, fig. 6.6b",
            says: "switch B at 90 %, minimum RTO 5 ms alone: not below 55 ms",
            expected: "≥ 44 ms",
            points: vec![rto_5ms(simulated(unshaped(B1000)))],
            judge: |results| {
                let m = means(results);
                Judged::new(m[0] >= 44.0, ms(&m))
            },
            known: None,
        },
        Claim {
            id: "T069",
            place: "thesis §6.3",
            says: "delayed acknowledgements: better off for switch A, better on for B",
            expected: "both orderings at 90 % (the thesis calls it unexpected)",
            points: [A1000, B1000].map(low_rto).concat(),
            judge: |results| {
                let m = means(results);
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
            judge: |results| {
                let m = means(results);
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
            judge: |results| {
                let m = means(results);
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
            judge: |results| {
                let m = means(results);
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
            judge: |results| {
                let m = means(results);
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
            judge: |results| {
                let m = means(results);
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
            judge: |results| {
                let ratio = results[0].mean_ms() / results[0].ideal_ms();
                Judged::new(ratio <= 1.10, format!("{ratio:.3} × ideal"))
            },
            known: None,
        },
    ]
}
