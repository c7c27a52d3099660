//! Claims of ICC'15, §III and §IV. What needs DIATCP or buffer tuning in the kernel waits for its technique.

use crate::judge::{ms, near, percent};
use crate::{Claim, Got, Judged, Point};

const ONE: &str = "icc15-1dcm";
const N147: &str = "icc15-147";
const RACK: &str = "icc15-39dcm";

fn credits(preset: &'static str, credits: u32) -> Point {
    Point::new(preset).set("shaping.credits", credits)
}

fn fixed_window(preset: &'static str) -> Point {
    Point::new(preset).set("transport.congestion_control", "static").set("transport.static_window", 2)
}

fn means(got: &[&Got]) -> Vec<f64> {
    got.iter().map(|got| got.mean_ms()).collect()
}

pub(crate) fn claims() -> Vec<Claim> {
    vec![
        Claim {
            id: "I008",
            place: "ICC'15 §III.B, fig. 3",
            says: "below 100 credits the network is not fully used",
            expected: "mean at 24 and 48 credits above the one at 300, in falling order",
            points: [24, 48, 300].map(|n| credits(ONE, n)).to_vec(),
            judge: |got| {
                let m = means(got);
                Judged::new(m[0] > m[1] && m[1] > m[2], ms(&m))
            },
            known: None,
        },
        Claim {
            id: "I009",
            place: "ICC'15 §III.B, fig. 3",
            says: "above 550 credits drops begin and the latency jumps",
            expected: "no drop at 468 (550 − 15 %), drops at 636 (550 + 15 %)",
            points: [468, 636].map(|n| credits(ONE, n)).to_vec(),
            judge: |got| {
                let drops: Vec<u64> = got.iter().map(|got| got.drops()).collect();
                Judged::new(drops[0] == 0 && drops[1] > 0, format!("{} / {} drops", drops[0], drops[1]))
            },
            known: None,
        },
        Claim {
            id: "I010",
            place: "ICC'15 §IV.A, fig. 4",
            says: "more than 64 kB of VOQ remove all losses",
            expected: "no drop at 128 kB a queue, no shaping",
            points: vec![Point::new(ONE).set("core.port_limit", "128 kB")],
            judge: |got| {
                let drops = got[0].drops();
                Judged::new(drops == 0, format!("{drops} drops"))
            },
            known: Some("a burst of 2.4 MB overruns the rack switch's port, whatever the core holds"),
        },
        Claim {
            id: "I011",
            place: "ICC'15 §IV.B, fig. 5",
            says: "after a time-out the link is idle for at least 200 ms",
            expected: "every event with a time-out takes 200 ms or more",
            points: vec![Point::new(N147)],
            judge: |got| {
                let least = got[0].times_ms.first().copied().unwrap_or(f64::NAN);
                let hit = got[0].share_with_timeouts(1);
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
            judge: |got| {
                let (most, drops) = (got[0].queue_bytes_max(), got[0].drops());
                Judged::new(most <= 416_000 && drops == 0, format!("{most} B, {drops} drops"))
            },
            known: Some(
                "443 kB: frames take 1518 B in a switch, and next to nothing is on the wire meanwhile",
            ),
        },
        Claim {
            id: "I016",
            place: "ICC'15 §IV.C.2, fig. 6a",
            says: "one event with 396 credits: the last answer after 16.84 ms",
            expected: "16.84 ms ± 2 %",
            points: vec![credits(N147, 396)],
            judge: |got| {
                let m = means(got);
                Judged::new(near(m[0], 16.84, 0.02), format!("{:.2} ms", m[0]))
            },
            known: None,
        },
        Claim {
            id: "I020",
            place: "ICC'15 §IV.C.3, fig. 8",
            says: "no event with a time-out under a static window or credits, all of them under CUBIC",
            expected: "≤ 0.1 %, ≤ 0.1 %, ≥ 95 %",
            points: vec![fixed_window(N147), credits(N147, 396), Point::new(N147)],
            judge: |got| {
                let shares: Vec<f64> = got.iter().map(|got| got.share_with_timeouts(1)).collect();
                Judged::new(shares[0] <= 0.001 && shares[1] <= 0.001 && shares[2] >= 0.95, percent(&shares))
            },
            known: None,
        },
        Claim {
            id: "I022",
            place: "ICC'15 §IV.C.4, fig. 9",
            says: "39 collectors in two phases at 2 kHz: no time-out with credits nor with a static window",
            expected: "none",
            points: vec![credits(RACK, 396), fixed_window(RACK)],
            judge: |got| {
                let timeouts: Vec<u64> = got.iter().map(|got| got.timeouts_total()).collect();
                let m = means(got);
                Judged::new(
                    timeouts.iter().all(|&timeouts| timeouts == 0),
                    format!("{} / {} time-outs, {}", timeouts[0], timeouts[1], ms(&m)),
                )
            },
            known: None,
        },
        Claim {
            id: "I025",
            place: "ICC'15 §IV.D.3, fig. 10",
            says: "behind a software router, 421 credits: the last answer after 18.48 ms",
            expected: "18.48 ms ± 3 %",
            points: vec![credits("icc15-router", 421)],
            judge: |got| {
                let m = means(got);
                Judged::new(near(m[0], 18.48, 0.03), format!("{:.2} ms", m[0]))
            },
            known: None,
        },
    ]
}
