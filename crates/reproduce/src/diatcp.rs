//! Claims of ICC'15 about DIATCP (§IV.D), and of LCN'15 about where DCTCP cannot help.

use crate::judge::{ms, near, percent};
use crate::{Claim, Got, Judged, Point};

const N147: &str = "icc15-147";
const ROUTER: &str = "icc15-router";

fn window(preset: &'static str, packets: u32) -> Point {
    Point::new(preset).set("transport.congestion_control", "static").set("transport.static_window", packets)
}

fn diatcp(global_window: u32) -> Point {
    Point::new(ROUTER)
        .set("transport.congestion_control", "diatcp")
        .set("transport.diatcp.global_window", global_window)
}

fn credits(preset: &'static str, credits: u32) -> Point {
    Point::new(preset).set("shaping.method", "credits").set("shaping.credits", credits)
}

fn drops(got: &[&Got]) -> Vec<u64> {
    got.iter().map(|got| got.drops()).collect()
}

/// Bytes on the wire of an event, both ways.
fn bytes_per_event(got: &Got) -> f64 {
    let bytes = got.summary.network.as_ref().and_then(|network| network.bytes).unwrap_or(0);
    bytes as f64 / got.times_ms.len().max(1) as f64
}

pub(crate) fn claims() -> Vec<Claim> {
    vec![
        Claim {
            id: "I023",
            place: "ICC'15 §IV.D.1, eqs (8)-(10)",
            says: "DIATCP: a global window from BDP to BDP + B fills the link and loses nothing, a larger one loses",
            expected: "42, 160 and 640 packets: no drop, within 1 % of the ideal; 1200 packets (B = 1000): drops",
            points: [42, 160, 640, 1200].map(diatcp).to_vec(),
            judge: |got| {
                let d = drops(got);
                let ideal = got[..3].iter().all(|got| near(got.mean_ms(), got.ideal_ms(), 0.01));
                let m: Vec<f64> = got.iter().map(|got| got.mean_ms()).collect();
                Judged::new(ideal && d[..3] == [0; 3] && d[3] > 0, format!("{}, {d:?} drops", ms(&m)))
            },
            known: None,
        },
        Claim {
            id: "I028",
            place: "ICC'15 §IV.D.3, fig. 10b",
            says: "the traffic towards the readouts is highest under DIATCP, whose windows are updated all the time",
            expected: "no time-out, and more bytes for each event than with a static window and with credits",
            points: vec![diatcp(160), window(ROUTER, 2), credits(ROUTER, 421)],
            judge: |got| {
                let bytes: Vec<f64> = got.iter().map(|got| bytes_per_event(got) / 1e3).collect();
                let quiet = got.iter().all(|got| got.timeouts_total() == 0);
                let texts: Vec<_> = bytes.iter().map(|bytes| format!("{bytes:.0}")).collect();
                let holds = quiet && bytes[0] > bytes[1] && bytes[0] > bytes[2];
                Judged::new(holds, format!("{} kB both ways", texts.join(" / ")))
            },
            known: None,
        },
        Claim {
            id: "L009",
            place: "LCN'15, DCTCP",
            says: "DCTCP fails where the first round trip's packets are more than the buffer holds",
            expected: "147 windows at their floor of 2 packets: in 500 kB no time-out, in 300 kB one in more than half of the events",
            points: ["500 kB", "300 kB"]
                .map(|buffer| {
                    Point::new(N147)
                        .set("transport.congestion_control", "dctcp")
                        .set("tor.ecn.mode", "threshold")
                        .set("tor.buffer", buffer)
                })
                .to_vec(),
            judge: |got| {
                let shares: Vec<f64> = got.iter().map(|got| got.share_with_timeouts(1)).collect();
                Judged::new(shares[0] == 0.0 && shares[1] > 0.5, percent(&shares))
            },
            known: None,
        },
    ]
}
