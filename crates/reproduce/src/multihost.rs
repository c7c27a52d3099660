//! Claims of the multi-host paper, §IV: software queues and a shallow switch.
//!
//! The paper loads its system by requesting events at some rate. Here, "full load" is a new event whenever a unit is free.

use crate::claim::Claim;
use crate::judge::{Known, ms, percent};
use crate::pause::pause;
use crate::{ClaimRun, Judged, PointResult};

const MULTIHOST: &str = "multihost";

fn multihost() -> ClaimRun {
    ClaimRun::new(MULTIHOST)
}

/// Sets a closed loop of 360 units. With PAUSE it takes 5 s to settle. Goodput counts whole events at their end. 104 MB of
/// events are open, which take the uplink 88 ms. They shift into or out of the measured time, and 3 s keep their share below 3
/// %.
fn closed(point: ClaimRun) -> ClaimRun {
    point.set("run.warmup", "5 s").set("run.duration", "3 s")
}

/// Sets the hardware switch alone, without software switches.
fn hardware() -> ClaimRun {
    multihost().set("network.hybrid.host_ports", 0)
}

/// Sets rings of `mbps` Mb/s each.
fn rings(mbps: u32) -> ClaimRun {
    multihost().set("core.daqring.rate", format_args!("{mbps} Mb/s"))
}

fn credits() -> ClaimRun {
    hardware().set("shaping.credits", 96)
}

fn window(point: ClaimRun) -> ClaimRun {
    point.set("transport.static_window", 2)
}

fn periodic(point: ClaimRun, hz: u32) -> ClaimRun {
    point
        .set("run.warmup", "300 ms")
        .set("run.duration", "500 ms")
        .set("supervisor.arrivals", "periodic")
        .set("supervisor.rate", format_args!("{hz} Hz"))
        .set("supervisor.policy", "node-round-robin")
}

/// Sets PAUSE at its best: the rack's switch has memory for all data that its collectors may have requested. So it need not
/// stop its one uplink because of one collector.
fn deep_pause() -> ClaimRun {
    pause(hardware())
        .set("tor.buffering", "shared")
        .set("tor.buffer", "9 MB")
        .set("tor.pause.xoff", "8 MB")
        .set("tor.pause.xon", "7 MB")
}

/// The most fragment bits that a 10 Gb/s uplink carries, in Gb/s: 24 kB in 17 full segments and a short one.
const FULL_GBPS: f64 = 9.4;

fn gbps(result: &PointResult) -> f64 {
    result.summary.goodput_bps.as_ref().map_or(0.0, |goodput| goodput.total / 1e9)
}

fn each_gbps(results: &[&PointResult]) -> Vec<f64> {
    results.iter().map(|result| gbps(result)).collect()
}

fn text(values: &[f64]) -> String {
    let texts: Vec<_> = values.iter().map(|value| format!("{value:.2}")).collect();
    format!("{} Gb/s", texts.join(" / "))
}

/// Returns the standard deviation of the collection times over their mean.
fn jitter(result: &PointResult) -> f64 {
    result.summary.collection_time_ms.as_ref().map_or(f64::INFINITY, |times| times.std / times.mean)
}

pub(crate) fn claims() -> Vec<Claim> {
    vec![
        Claim {
            id: "H007",
            place: "multi-host §III.A",
            says: "25 readouts, 7 racks and 6 spines a pod: oversubscription of 5.3 : 1 costs nothing",
            expected: "no drop, the same goodput within 3 % as with 25 spines",
            points: [6, 25]
                .map(|spines| {
                    ClaimRun::new("leaf-spine")
                        .set("readout.hosts", 50)
                        .set("collectors.racks", 14)
                        // An event takes 38 ms.
                        .set("run.warmup", "60 ms")
                        .set("run.duration", "100 ms")
                        .set("network.leaf_spine.spines", spines)
                        .set("network.leaf_spine.ports", 64)
                })
                .to_vec(),
            judge: |results| {
                let g = each_gbps(results);
                let drops = results[0].drops();
                Judged::new(drops == 0 && g[0] > 0.97 * g[1], format!("{}, {drops} drops", text(&g)))
            },
            known: None,
        },
        Claim {
            id: "H012",
            place: "multi-host §IV.C, fig. 6a",
            says: "credits, a tuned static window, rings and PAUSE sustain full load alike",
            expected: "goodput within 3 % of each other, no timeout",
            points: [credits(), window(hardware()), rings(344), deep_pause()].map(closed).to_vec(),
            judge: |results| {
                let g = each_gbps(results);
                let timeouts: u64 = results.iter().map(|result| result.timeouts_total()).sum();
                let most = g.iter().copied().fold(0.0, f64::max);
                let holds = g.iter().all(|&one| one > 0.97 * most) && timeouts == 0;
                Judged::new(holds, format!("{}, {timeouts} timeouts", text(&g))).figures(&g)
            },
            known: Some(Known {
                why: "goodput is alike, but 30 rings of 344 Mb/s are 103 % of the uplink, whose queue fills the 8 MB and loses frames",
                ranges: &[(9.3, 9.45), (9.3, 9.45), (9.2, 9.45), (9.3, 9.45)],
            }),
        },
        Claim {
            id: "H013",
            place: "multi-host §IV.C, fig. 6a",
            says: "data simply pushed: no operation above 10 % of the bandwidth",
            expected: "goodput ≤ 15 % of the uplink's at full load",
            points: vec![closed(hardware())],
            judge: |results| {
                let share = gbps(results[0]) / FULL_GBPS;
                Judged::new(share <= 0.15, format!("{}, {} drops", percent(&[share]), results[0].drops()))
                    .figures(&[share])
            },
            known: Some(Known {
                why: "the chip's memory decides, which the paper leaves open: 80 % with 8 MB, 55 % with 4, 11 % with 2, 1 % with 1",
                ranges: &[(0.75, 0.87)],
            }),
        },
        Claim {
            id: "H015",
            place: "multi-host §IV.C",
            says: "rings of 1.38 Gb/s do not reach the highest loads: bursts overlap, and frames are dropped",
            expected: "lower goodput than with 344 Mb/s, drops and retransmissions",
            points: vec![closed(rings(1380)), closed(rings(344))],
            judge: |results| {
                let g = each_gbps(results);
                let drops = results[0].drops();
                Judged::new(g[0] < g[1] && drops > 0, format!("{}, {drops} drops", text(&g)))
            },
            known: None,
        },
        Claim {
            id: "H017",
            place: "multi-host §IV.C, fig. 6b",
            says: "at full load rings of 344 Mb/s have a higher latency than credits and a static window, with low jitter",
            expected: "higher mean at 95 % of the rate that fills the uplink; sd over mean below 25 %",
            points: [rings(344), credits(), window(hardware())].map(|point| periodic(point, 3_860)).to_vec(),
            judge: |results| {
                let m: Vec<f64> = results.iter().map(|result| result.mean_ms()).collect();
                let jitters: Vec<f64> = results.iter().map(|result| jitter(result)).collect();
                let holds = m[0] > m[1] && m[0] > m[2] && jitters[0] < 0.25;
                Judged::new(holds, format!("{}, sd {}", ms(&m), percent(&jitters)))
            },
            known: None,
        },
        Claim {
            id: "H019",
            place: "multi-host §IV.C, citing TNS 2017",
            says: "software switches give 15 % more goodput than regular ones under heavy incast",
            expected: "10 to 20 % more than a static window on the switch alone",
            points: vec![closed(rings(344)), closed(window(hardware()))],
            judge: |results| {
                let g = each_gbps(results);
                let more = g[0] / g[1] - 1.0;
                Judged::new((0.1..=0.2).contains(&more), format!("{}, {}", text(&g), percent(&[more])))
                    .figures(&[more])
            },
            known: Some(Known {
                why: "this set-up has no heavy incast, as the paper says of it; the figure is another's",
                ranges: &[(-0.04, 0.02)],
            }),
        },
    ]
}
