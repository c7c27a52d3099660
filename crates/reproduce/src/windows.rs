//! Claims about windows: static ones (ICC'15 §IV.C), DIATCP's (ICC'15 §IV.D), and the limits of DCTCP (LCN'15).

use crate::claim::Claim;
use crate::judge::{Known, ms, near, percent};
use crate::{ClaimRun, Judged, PointResult};

const N147: &str = "icc15-147";
const RACK: &str = "icc15-39dcm";
const ROUTER: &str = "icc15-router";

fn window(preset: &'static str, packets: u32) -> ClaimRun {
    ClaimRun::new(preset)
        .set("transport.congestion_control", "static")
        .set("transport.static_window", packets)
}

fn diatcp(global_window: u32) -> ClaimRun {
    ClaimRun::new(ROUTER)
        .set("transport.congestion_control", "diatcp")
        .set("transport.diatcp.global_window", global_window)
}

fn credits(preset: &'static str, credits: u32) -> ClaimRun {
    ClaimRun::new(preset).set("shaping.method", "credits").set("shaping.credits", credits)
}

fn drops(results: &[&PointResult]) -> Vec<u64> {
    results.iter().map(|result| result.drops()).collect()
}

/// Returns the bytes on the wire for each event, in both directions.
fn bytes_per_event(result: &PointResult) -> f64 {
    let bytes = result.summary.network.as_ref().and_then(|network| network.bytes).unwrap_or(0);
    bytes as f64 / result.times_ms.len().max(1) as f64
}

pub(crate) fn claims() -> Vec<Claim> {
    vec![
        Claim {
            id: "I012",
            place: "ICC'15 §IV.C.1, eqs (3), (4), (6)",
            says: "windows that add up to less than BDP + B lose nothing, larger ones do",
            expected: "no drop with 1 and 2 packets (221 and 441 kB of 525 kB), drops with 4 (882 kB)",
            points: [1, 2, 4].map(|packets| window(N147, packets)).to_vec(),
            judge: |results| {
                let d = drops(results);
                Judged::new(d[0] == 0 && d[1] == 0 && d[2] > 0, format!("{d:?} drops"))
            },
            known: None,
        },
        Claim {
            id: "I014",
            place: "ICC'15 §IV.C.1, eq. (7)",
            says: "39 collectors with windows of two packets need no more than about 17 MB",
            expected: "largest queue ≤ 17.2 MB × 1518 / 1500, all collectors busy, no drop before the rack",
            points: vec![
                window(RACK, 2)
                    .set("supervisor.arrivals", "on-demand")
                    .set("tor.buffer", "20 MB")
                    .set("tor.uplink_buffer", "20 MB"),
            ],
            judge: |results| {
                let (most, drops) = (results[0].queue_bytes_max(), results[0].drops());
                Judged::new(most <= 17_406_000 && drops == 0, format!("{most} B, {drops} drops"))
            },
            known: None,
        },
        Claim {
            id: "I017",
            place: "ICC'15 §IV.C.2, fig. 6b",
            says: "a static window costs 20 kB more from the collector to the readouts for each event than credits",
            expected: "+20 kB ± 30 % on the wire",
            points: [false, true]
                .into_iter()
                .flat_map(|offload| {
                    [window(N147, 2), credits(N147, 396)].map(|point| {
                        point
                            .set("transport.offload_burst", "64 kB")
                            .set("transport.receive_offload", offload)
                    })
                })
                .collect(),
            judge: |results| {
                let more =
                    |from: usize| (bytes_per_event(results[from]) - bytes_per_event(results[from + 1])) / 1e3;
                let (without, with) = (more(0), more(2));
                let holds = near(without, 20.0, 0.3) || near(with, 20.0, 0.3);
                Judged::new(holds, format!("{without:+.1} kB, with the receiver's offload {with:+.1} kB"))
                    .figures(&[without, with])
            },
            known: Some(Known {
                why: "without the receiver's offload both acknowledge every second packet, with it credits each answer once; the paper's lies between",
                ranges: &[(-3.0, 3.0), (45.0, 60.0)],
            }),
        },
        Claim {
            id: "I023",
            place: "ICC'15 §IV.D.1, eqs (8)-(10)",
            says: "DIATCP: a global window from BDP to BDP + B fills the link and loses nothing, a larger one loses",
            expected: "42, 160 and 640 packets: no drop, within 1 % of the ideal; 1200 packets (B = 1000): drops",
            points: [42, 160, 640, 1200].map(diatcp).to_vec(),
            judge: |results| {
                let d = drops(results);
                let ideal = results[..3].iter().all(|result| near(result.mean_ms(), result.ideal_ms(), 0.01));
                let m: Vec<f64> = results.iter().map(|result| result.mean_ms()).collect();
                Judged::new(ideal && d[..3] == [0; 3] && d[3] > 0, format!("{}, {d:?} drops", ms(&m)))
            },
            known: None,
        },
        Claim {
            id: "I027",
            place: "ICC'15 §IV.D.4, fig. 11",
            says: "no timeout under DIATCP, a static window or credits, some under plain CUBIC",
            expected: "0, 0, 0 and more than 0",
            points: vec![diatcp(160), window(ROUTER, 2), credits(ROUTER, 421), ClaimRun::new(ROUTER)],
            judge: |results| {
                let t: Vec<u64> = results.iter().map(|result| result.timeouts_total()).collect();
                Judged::new(t[..3] == [0; 3] && t[3] > 0, format!("{t:?} timeouts"))
            },
            known: None,
        },
        Claim {
            id: "I028",
            place: "ICC'15 §IV.D.3, fig. 10b",
            says: "the traffic towards the readouts is highest under DIATCP, whose windows are updated all the time",
            expected: "no timeout, and more bytes for each event than with a static window and with credits",
            points: vec![diatcp(160), window(ROUTER, 2), credits(ROUTER, 421)],
            judge: |results| {
                let bytes: Vec<f64> = results.iter().map(|result| bytes_per_event(result) / 1e3).collect();
                let quiet = results.iter().all(|result| result.timeouts_total() == 0);
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
            expected: "147 windows at their floor of 2 packets: in 500 kB no timeout, in 300 kB one in more than half of the events",
            points: ["500 kB", "300 kB"]
                .map(|buffer| {
                    ClaimRun::new(N147)
                        .set("transport.congestion_control", "dctcp")
                        .set("tor.ecn.mode", "threshold")
                        .set("tor.buffer", buffer)
                })
                .to_vec(),
            judge: |results| {
                let shares: Vec<f64> = results.iter().map(|result| result.share_with_timeouts(1)).collect();
                Judged::new(shares[0] == 0.0 && shares[1] > 0.5, percent(&shares))
            },
            known: None,
        },
    ]
}
