//! Claims of the M21TCP paper (§II to §IV), with the point-to-point framing of two bytes that the paper's ns-3 used.
//!
//! The paper calls its queues by the following names. RED has thresholds of 15 and 25 packets and ns-3's other defaults (a
//! weight of 0.002, 1 of 50 at the upper threshold, gentle). DCTCP has a K of 20. M001 and M007 list these settings and claim
//! nothing else.

use crate::claim::Claim;
use crate::judge::{Known, near};
use crate::{ClaimRun, Judged, PointResult};

const FFW: &str = "m21tcp-ffw";
const FBW: &str = "m21tcp-fbw";

fn senders(preset: &'static str, senders: u32) -> ClaimRun {
    ClaimRun::new(preset).set("network.framing", "point-to-point").set("workload.senders", senders)
}

fn red(point: ClaimRun, mode: &str) -> ClaimRun {
    point
        .set("tor.ecn.mode", mode)
        .set("tor.ecn.min", 15)
        .set("tor.ecn.max", 25)
        .set("tor.ecn.gentle", true)
        .set("tor.ecn.probability_max", "2 %")
}

fn ecn(preset: &'static str, number: u32) -> ClaimRun {
    red(senders(preset, number), "red-mark").set("transport.ecn", true)
}

fn dctcp(preset: &'static str, number: u32) -> ClaimRun {
    senders(preset, number)
        .set("transport.congestion_control", "dctcp")
        .set("tor.ecn.mode", "threshold")
        .set("tor.ecn.threshold", 20)
}

fn m21tcp(preset: &'static str, number: u32) -> ClaimRun {
    senders(preset, number).set("transport.congestion_control", "m21tcp").set("tor.m21", true)
}

/// Returns the goodput in Mb/s.
fn mbps(result: &PointResult) -> f64 {
    result.summary.goodput_bps.as_ref().map_or(0.0, |goodput| goodput.total / 1e6)
}

fn all(results: &[&PointResult]) -> Vec<f64> {
    results.iter().map(|result| mbps(result)).collect()
}

fn text(values: &[f64], unit: &str) -> String {
    let values: Vec<_> = values.iter().map(|value| format!("{value:.0}")).collect();
    format!("{} {unit}", values.join(" / "))
}

/// Returns the first of `numbers` whose goodput is less than half of the first one's.
fn onset(numbers: &[u32], goodput: &[f64]) -> Option<u32> {
    numbers.iter().zip(goodput).find(|&(_, &value)| value < goodput[0] / 2.0).map(|(&number, _)| number)
}

const ONSET_FFW: [u32; 6] = [8, 16, 24, 32, 40, 48];
const ONSET_FBW: [u32; 6] = [8, 16, 32, 48, 64, 80];
const NUMBERS: [u32; 5] = [8, 16, 32, 48, 64];

pub(crate) fn claims() -> Vec<Claim> {
    vec![
        Claim {
            id: "M002",
            place: "M21TCP §II.B, fig. 4",
            says: "drop-tail, 1 MB in all: near the line rate with few senders, well below 400 Mb/s with 16",
            expected: "above 850 Mb/s with one sender, below 400 Mb/s with 16",
            points: [1, 16].map(|n| senders(FBW, n)).to_vec(),
            judge: |results| {
                let m = all(results);
                Judged::new(m[0] > 850.0 && m[1] < 400.0, text(&m, "Mb/s"))
            },
            known: None,
        },
        Claim {
            id: "M004",
            place: "M21TCP §II.B",
            says: "the collapse takes one or two orders of magnitude off the capacity",
            expected: "less than 100 Mb/s with 32 and 64 senders",
            points: [32, 64].map(|n| senders(FBW, n)).to_vec(),
            judge: |results| {
                let m = all(results);
                Judged::new(m.iter().all(|&m| m < 100.0), text(&m, "Mb/s"))
            },
            known: None,
        },
        Claim {
            id: "M005",
            place: "M21TCP §II.B",
            says: "a larger buffer puts the collapse off",
            expected: "of 4, 16 and 64 senders, fewer fall below half of the line rate with 256 KiB than with 64, none with 1 MiB",
            points: ["64 KiB", "256 KiB", "1 MiB"]
                .into_iter()
                .flat_map(|buffer| [4, 16, 64].map(|n| senders(FBW, n).set("tor.buffer", buffer)))
                .collect(),
            judge: |results| {
                let m = all(results);
                let collapsed: Vec<usize> =
                    m.chunks(3).map(|three| three.iter().filter(|&&m| m < 466.0).count()).collect();
                Judged::new(
                    collapsed[0] > collapsed[1] && collapsed[1] > collapsed[2] && collapsed[2] == 0,
                    text(&m, "Mb/s"),
                )
            },
            known: None,
        },
        Claim {
            id: "M008",
            place: "M21TCP §IV.A, fig. 6",
            says: "ECN with RED and DCTCP reach about 940 Mb/s before the collapse",
            expected: "940 Mb/s ± 1 % with 8 senders",
            points: vec![ecn(FFW, 8), dctcp(FFW, 8)],
            judge: |results| {
                let m = all(results);
                Judged::new(m.iter().all(|&m| near(m, 940.0, 0.01)), text(&m, "Mb/s")).figures(&m)
            },
            known: Some(Known {
                why: "576 B of every 618 B are data, so 932 Mb/s are the most; RED's average lags and its buffer overflows at each start",
                ranges: &[(745.0, 825.0), (890.0, 932.0)],
            }),
        },
        Claim {
            id: "M009",
            place: "M21TCP §IV.A, fig. 6",
            says: "RED that drops is worse than drop-tail",
            expected: "less goodput with 8, 16 and 32 senders",
            points: [8, 16, 32]
                .into_iter()
                .flat_map(|n| [red(senders(FFW, n), "red-drop"), senders(FFW, n)])
                .collect(),
            judge: |results| {
                let m = all(results);
                Judged::new(
                    m.chunks(2).all(|pair| pair[0] < pair[1]),
                    text(&m, "Mb/s, RED and drop-tail in turn"),
                )
            },
            known: None,
        },
        Claim {
            id: "M010",
            place: "M21TCP §IV.A, fig. 6",
            says: "ECN with RED collapses at 32 senders",
            expected: "below half of its goodput with 8 senders first at 24 to 40",
            points: ONSET_FFW.map(|n| ecn(FFW, n)).to_vec(),
            judge: |results| {
                let m = all(results);
                let at = onset(&ONSET_FFW, &m);
                Judged::new(at.is_some_and(|at| (24..=40).contains(&at)), text(&m, "Mb/s"))
            },
            known: None,
        },
        Claim {
            id: "M012",
            place: "M21TCP §IV.A, fig. 6",
            says: "M21TCP is near the most possible up to 64 senders, and no other is better",
            expected: "≥ 90 % of 918 Mb/s (568 of 618 B with the option); no other more than 2 % better",
            points: NUMBERS
                .into_iter()
                .flat_map(|n| [m21tcp(FFW, n), senders(FFW, n), ecn(FFW, n), dctcp(FFW, n)])
                .collect(),
            judge: |results| {
                let m = all(results);
                let best = |four: &[f64]| four[1..].iter().all(|&other| other < 1.02 * four[0]);
                let holds = m.chunks(4).all(|four| four[0] >= 0.9 * 918.0 && best(four));
                let ours: Vec<f64> = m.chunks(4).map(|four| four[0]).collect();
                Judged::new(holds, text(&ours, "Mb/s"))
            },
            known: None,
        },
        Claim {
            id: "M013",
            place: "M21TCP §IV.A, fig. 7",
            says: "M21TCP: request times grow with the block",
            expected: "in proportion to the senders within 5 %, from 8 to 64",
            points: NUMBERS.map(|n| m21tcp(FFW, n)).to_vec(),
            judge: |results| {
                let times: Vec<f64> = results.iter().map(|result| result.mean_ms()).collect();
                let each = times.iter().zip(NUMBERS).map(|(time, n)| time / f64::from(n));
                let holds = each.clone().all(|each| near(each, times[0] / 8.0, 0.05));
                Judged::new(holds, text(&times, "ms"))
            },
            known: None,
        },
        Claim {
            id: "M015",
            place: "M21TCP §IV.B, fig. 8",
            says: "1 MB in all: ECN with RED collapses at 64 senders, later than DCTCP",
            expected: "below half of its goodput with 8 senders first at 48 to 80, and DCTCP before it",
            points: ONSET_FBW.into_iter().flat_map(|n| [ecn(FBW, n), dctcp(FBW, n)]).collect(),
            judge: |results| {
                let (ecn, dctcp): (Vec<f64>, Vec<f64>) =
                    all(results).chunks(2).map(|pair| (pair[0], pair[1])).unzip();
                let at = [&ecn, &dctcp].map(|m| onset(&ONSET_FBW, m).unwrap_or(u32::MAX));
                let holds = (48..=80).contains(&at[0]) && at[1] < at[0];
                Judged::new(holds, format!("ECN at {}, DCTCP at {} senders", at[0], at[1]))
                    .figures(&at.map(f64::from))
            },
            known: Some(Known {
                why: "RED's average (weight 0.002) follows a burst too late, so that ECN collapses at 48; DCTCP's two segments fill the buffer only at 57",
                ranges: &[(48.0, 48.0), (64.0, 64.0)],
            }),
        },
        Claim {
            id: "M016",
            place: "M21TCP §IV.B, fig. 9",
            says: "1 MB in all: with more than 32 senders DCTCP misses deadlines of 10 ms",
            expected: "mean above 10 ms with 48 and 64 senders",
            points: [48, 64].map(|n| dctcp(FBW, n)).to_vec(),
            judge: |results| {
                let times: Vec<f64> = results.iter().map(|result| result.mean_ms()).collect();
                Judged::new(times.iter().all(|&time| time > 10.0), text(&times, "ms")).figures(&times)
            },
            known: Some(Known {
                why: "64 KiB hold two segments of 56 senders: 48 senders meet timeouts in the first of 320 rounds, the deadline in all others",
                ranges: &[(8.8, 10.2), (195.0, 240.0)],
            }),
        },
        Claim {
            id: "M018",
            place: "M21TCP §IV.B, figs 8, 9",
            says: "1 MB in all: M21TCP meets deadlines of 10 ms, with more than 64 senders too",
            expected: "mean and 99th percentile ≤ 10 ms, no drop, with 32, 64, 80 and 96 senders",
            points: [32, 64, 80, 96].map(|n| m21tcp(FBW, n)).to_vec(),
            judge: |results| {
                let times: Vec<f64> = results.iter().map(|result| result.quantile_ms(990)).collect();
                let holds = times.iter().all(|&time| time <= 10.0)
                    && results.iter().all(|result| result.drops() == 0);
                let texts: Vec<_> = times.iter().map(|time| format!("{time:.1}")).collect();
                Judged::new(holds, format!("{} ms", texts.join(" / ")))
            },
            known: None,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_units::{Packets, Ratio};

    /// M007: the settings of §IV, with g = 1/16 in place of 0.16, a slip.
    #[test]
    fn queues_and_dctcp_are_the_papers() {
        let of = |point: ClaimRun| point.scenario(None).unwrap().scenario;
        let (ecn, dctcp) = (of(ecn(FFW, 8)), of(dctcp(FFW, 8)));
        let packets = |ecn: &fanin_scenario::Ecn| (ecn.unit, ecn.min, ecn.max, ecn.threshold);
        let (unit, low, high, _) = packets(&ecn.tor.ecn);
        assert_eq!(
            (unit, low, high),
            (fanin_scenario::QueueUnit::Packets, Packets::new(15), Packets::new(25))
        );
        assert_eq!((ecn.tor.ecn.weight, ecn.tor.ecn.gentle), (Ratio::new(2_000), true));
        assert_eq!(
            (packets(&dctcp.tor.ecn).3, dctcp.transport.dctcp.gain),
            (fanin_scenario::Depth::Packets(Packets::new(20)), Ratio::new(62_500))
        );
    }
}
