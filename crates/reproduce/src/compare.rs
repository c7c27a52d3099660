//! All techniques against incast, compared: a table of their settings, which is simulated on any scenario.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fanin_report::{Summary, Times};
use fanin_runs::{RunControl, RunEnd, RunOutcome, SweepRun};
use fanin_scenario::{Buffering, CongestionControl, EcnMode, Errors, Loaded, Scenario, load};
use fanin_units::Bytes;

use crate::OnProgress;

/// A technique with the settings of the comparison.
#[derive(Debug, PartialEq, Eq)]
pub struct Technique {
    /// Name of the technique, for `--techniques`.
    pub name: &'static str,
    /// Description of the technique, in a few words.
    pub description: &'static str,
    /// Hand-made settings that the technique needs, and the place where they are made.
    pub tuning: &'static str,
    /// `KEY=VALUE`, as for `--set`.
    pub sets: &'static [&'static str],
}

/// The technique that is the reference for reverse traffic: it loses no frame and avoids nothing. All switches of the network
/// have buffers without a limit.
const REFERENCE: &str = "deep-buffers";

/// Every technique, in the order of the table.
#[rustfmt::skip]
pub const TECHNIQUES: &[Technique] = &[
    Technique { name: "none", description: "TCP as it is", tuning: "none", sets: &["shaping.method=none"] },
    Technique {
        name: REFERENCE, description: "TCP as it is, no switch with a limited buffer", tuning: "none; memory for all that can come",
        sets: &["shaping.method=none", "tor.buffering=unlimited"],
    },
    Technique {
        name: "credits", description: "application credits (thesis §4.3)", tuning: "credits, by buffer and event",
        sets: &["shaping.method=credits", "shaping.credits=480"],
    },
    Technique {
        name: "paced-credits", description: "paced credits: a window and a pace that collectors measure", tuning: "none",
        sets: &["shaping.method=paced-credits"],
    },
    Technique {
        name: "static", description: "static window of 2 packets (ICC'15 §IV.C)", tuning: "window, by senders and buffer",
        sets: &["shaping.method=none", "transport.congestion_control=static", "transport.static_window=2"],
    },
    Technique {
        name: "diatcp", description: "DIATCP, 160 packets a collector (ICC'15 §IV.D)", tuning: "global window, by buffer",
        sets: &["shaping.method=none", "transport.congestion_control=diatcp", "transport.diatcp.global_window=160"],
    },
    Technique {
        name: "dctcp", description: "DCTCP, K = 20 packets (RFC 8257)", tuning: "threshold in switches; quick acknowledgements",
        sets: &[
            "shaping.method=none", "transport.congestion_control=dctcp", "tor.ecn.mode=threshold",
            "tor.ecn.threshold=20", "transport.delayed_ack=false",
        ],
    },
    Technique {
        name: "ecn-red", description: "ECN with RED, 100 to 300 packets, queue as it is (RFC 3168)",
        tuning: "RED's thresholds in switches; quick acknowledgements",
        sets: &[
            "shaping.method=none", "transport.ecn=true", "tor.ecn.mode=red-mark", "tor.ecn.weight=1",
            "tor.ecn.min=100", "tor.ecn.max=300", "tor.ecn.hard_drop=false", "transport.delayed_ack=false",
        ],
    },
    Technique {
        name: "red-drop", description: "RED that drops, 100 to 300 packets", tuning: "RED's thresholds in switches",
        sets: &["shaping.method=none", "tor.ecn.mode=red-drop", "tor.ecn.min=100", "tor.ecn.max=300"],
    },
    Technique {
        name: "m21tcp", description: "M21TCP (§III)", tuning: "quick acknowledgements; switches that count flows",
        sets: &[
            "shaping.method=none", "transport.congestion_control=m21tcp", "tor.m21=true",
            "transport.delayed_ack=false",
        ],
    },
    Technique {
        name: "rto", description: "least RTO 5 ms, no delayed acknowledgements (thesis §6.3)", tuning: "RTO in all hosts",
        sets: &["shaping.method=none", "transport.rto_min=5 ms", "transport.delayed_ack=false"],
    },
    Technique {
        name: "ictcp", description: "ICTCP (to compare with)", tuning: "none",
        sets: &["shaping.method=none", "transport.congestion_control=ictcp"],
    },
    Technique {
        name: "swift", description: "Swift-like delay control (to compare with)", tuning: "target delay and scaling",
        sets: &[
            "shaping.method=none", "transport.congestion_control=swift", "transport.delayed_ack=false",
            "transport.swift.target=1 ms",
        ],
    },
    Technique {
        name: "sird", description: "SIRD: byte credit of receivers, no TCP (to compare with)", tuning: "none; another transport",
        sets: &["shaping.method=none", "transport.congestion_control=sird"],
    },
    Technique {
        name: "pause", description: "PAUSE by the rack's switch (802.3x)", tuning: "thresholds in switches",
        sets: &[
            "shaping.method=none", "tor.pause.mode=pause", "tor.pause.xoff=300 kB", "tor.pause.xon=150 kB",
        ],
    },
    Technique {
        name: "pfc", description: "priority flow control by the rack's switch (802.1Qbb)", tuning: "thresholds in switches",
        sets: &[
            "shaping.method=none", "tor.pause.mode=priority", "tor.pause.xoff=300 kB", "tor.pause.xon=150 kB",
        ],
    },
    Technique {
        name: "daqring", description: "a ring for each collector in the rack's switch (LCN'15)", tuning: "rate and frames of rings",
        sets: &["shaping.method=none", "tor.buffering=daqring", "tor.daqring.frames=40000"],
    },
    Technique {
        name: "fastpass", description: "central arbiter, advance 25 us (thesis §6.4)", tuning: "advance; clocks; an arbiter",
        sets: &["shaping.method=fastpass", "shaping.fastpass.advance=25 us"],
    },
    Technique {
        name: "barrel-shifter", description: "linear shift with barriers (LHCb, CMS)", tuning: "events a phase",
        sets: &["shaping.method=barrel-shifter"],
    },
];

/// The result of a technique on a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Collection times of the measured events, or times of the requests of a barrier workload.
    pub times_ms: Times,
    /// Number of completed events or requests.
    pub completed: u64,
    /// Frames that switches dropped.
    pub drops: u64,
    /// Retransmission timeouts of all senders. For receivers that wait for data, their timeouts.
    pub timeouts: u64,
    /// The most bytes in one queue of a switch.
    pub queue_bytes_max: u64,
    /// Bytes on the wire that collectors sent, for each event.
    pub reverse_bytes_each: f64,
    /// Processor time in seconds.
    pub cpu_s: f64,
    /// Diagnosis of a stalled run.
    pub stalled: Option<String>,
}

/// A technique's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The technique that was compared.
    pub technique: &'static Technique,
    /// Seed of the run.
    pub seed: u64,
    /// Figures of the technique, or the reason why it is impossible here.
    pub figures: Result<Figures, String>,
    /// The reason why it had no effect, although it is possible here.
    pub remark: Option<String>,
}

/// The rows of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The scenario's name.
    pub name: String,
    /// Title of the scenario.
    pub title: String,
    /// Measured time of each run, in the scenario's notation.
    pub duration: String,
    /// Rows in the order of the requested techniques; the rows of a technique are in the order of the seeds. An impossible
    /// technique has one row. A stop leaves out later rows.
    pub rows: Vec<Row>,
    /// True if a stop left out rows.
    pub is_stopped: bool,
}

/// The technique that changes nothing.
const PLAIN: &str = "none";

impl Compared {
    /// Returns the figures of a technique with a seed, if that row has figures.
    fn of(&self, technique: &str, seed: u64) -> Option<&Figures> {
        let is_own = |row: &&Row| row.technique.name == technique && row.seed == seed;
        self.rows.iter().find(is_own)?.figures.as_ref().ok()
    }

    /// Adds a remark to techniques whose figures equal those of an earlier row's technique with every seed.
    fn remark_equals(&mut self) {
        let equals = |row: &Row, technique: &'static Technique| {
            let (Some(other), Ok(figures)) = (self.of(technique.name, row.seed), &row.figures) else {
                return false;
            };
            figures.completed > 0 && Figures { cpu_s: other.cpu_s, ..figures.clone() } == *other
        };
        let found: Vec<Option<&'static Technique>> = self
            .rows
            .iter()
            .map(|row| {
                let own = |other: &&Row| other.technique == row.technique;
                let plain = self.rows.iter().map(|it| it.technique).filter(|it| it.name == PLAIN);
                let earlier = self.rows.iter().map(|it| it.technique).take_while(|it| *it != row.technique);
                let earlier =
                    plain.chain(earlier).filter(|it| *it != row.technique && row.technique.name != PLAIN);
                let mut equal = earlier.filter(|it| self.rows.iter().filter(own).all(|row| equals(row, it)));
                equal.next()
            })
            .collect();
        for (row, found) in self.rows.iter_mut().zip(found) {
            let Some(other) = found.filter(|_| row.remark.is_none()) else { continue };
            let effect = if other.name == PLAIN { "no effect here: " } else { "" };
            row.remark = Some(format!("{effect}all figures are those of {}", other.name));
        }
    }

    /// Returns the additional bytes that collectors send with this row, as a share of those of `deep-buffers` with the same
    /// seed. `None` without these figures.
    pub fn extra_reverse(&self, row: &Row) -> Option<f64> {
        let reference = self.of(REFERENCE, row.seed)?;
        let figures = row.figures.as_ref().ok()?;
        (reference.reverse_bytes_each > 0.0)
            .then(|| figures.reverse_bytes_each / reference.reverse_bytes_each - 1.0)
    }
}

/// Settings of all runs of a comparison, each as `KEY=VALUE`, as for `--set`.
#[derive(Clone, Copy, Debug)]
pub struct ComparedSettings<'a> {
    /// Settings that the techniques may change.
    pub first: &'a [String],
    /// Settings that override those of the techniques.
    pub last: &'a [String],
    /// Number of seeds of each technique: the scenario's seed and the numbers that follow.
    pub seeds: u16,
}

/// Simulates every technique on every scenario, on `threads` threads. A refused technique has a row with the reason. After a
/// stop, the finished rows are returned. When all runs are done, `each` is called with every outcome.
///
/// # Errors
/// If a scenario is wrong without any technique.
pub fn compare(
    scenarios: &[String],
    techniques: &[&'static Technique],
    &ComparedSettings { first, last, seeds }: &ComparedSettings<'_>,
    threads: usize,
    stop: &AtomicBool,
    progress: OnProgress<'_>,
    each: &mut dyn FnMut(&'static Technique, &Loaded, &RunOutcome),
) -> Result<Vec<Compared>, Errors> {
    let with = |source: &str, sets: &[&str], seed: Option<u64>| -> Result<Loaded, Errors> {
        let sets = sets.iter().map(|&set| set.to_owned());
        let seed = seed.map(|seed| format!("run.seed={seed}"));
        let sets = first.iter().cloned().chain(sets).chain(last.iter().cloned()).chain(seed);
        load(source, &sets.collect::<Vec<_>>())
    };
    let mut compared = Vec::new();
    let mut loaded: Vec<PlannedRow> = Vec::new();
    for source in scenarios {
        let plain = with(source, &[], None)?;
        compared.push(Compared {
            name: plain.name.clone(),
            title: plain.scenario.title.clone(),
            duration: plain.scenario.run.duration.to_string(),
            rows: Vec::new(),
            is_stopped: false,
        });
        let scenario = compared.len() - 1;
        for &technique in techniques {
            // A star has no other switch than `tor`.
            let facts = plain.scenario.topology_facts();
            let others =
                facts.switches.iter().filter(|&&switch| technique.name == REFERENCE && switch != "tor");
            let unlimited: Vec<String> =
                others.map(|switch| format!("{switch}.buffering=unlimited")).collect();
            let sets: Vec<&str> =
                technique.sets.iter().copied().chain(unlimited.iter().map(String::as_str)).collect();
            for place in 0..seeds.max(1) {
                let seed = plain.scenario.run.seed.saturating_add(u64::from(place));
                let with = with(source, &sets, (place > 0).then_some(seed));
                let is_refused = with.is_err();
                loaded.push(PlannedRow { scenario, technique, seed, loaded: with });
                if is_refused {
                    break;
                }
            }
        }
    }
    let points: Vec<SweepRun> = loaded
        .iter()
        .filter_map(|row| row.loaded.as_ref().ok())
        .map(|loaded| SweepRun { scenario: loaded.scenario.clone(), seed: loaded.scenario.run.seed })
        .collect();
    let done = AtomicUsize::new(0);
    let control = RunControl { stop, ..RunControl::default() };
    progress(0, points.len());
    let outcomes = fanin_runs::sweep(&points, threads, &control, &|_| {
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, points.len());
    });
    let mut outcomes = outcomes.into_iter();
    for PlannedRow { scenario, technique, seed, loaded } in loaded {
        let compared = &mut compared[scenario];
        let (figures, remark) = match &loaded {
            Err(errors) => (Err(reason(errors)), None),
            Ok(with) => match outcomes.next() {
                None | Some(Ok(RunOutcome { end: RunEnd::Stopped, .. })) => {
                    compared.is_stopped = true;
                    continue;
                }
                Some(Err(error)) => (Err(error.to_string()), None),
                Some(Ok(outcome)) => {
                    each(technique, with, &outcome);
                    let figures = no_effect(&with.scenario).map_or_else(|| Ok(figures(&outcome)), Err);
                    let remark = figures.as_ref().ok().and_then(|figures| {
                        unreached(&with.scenario, figures)
                            .or_else(|| lossy_reference(technique, figures))
                            .or_else(|| slow_rings(&with.scenario))
                    });
                    (figures, remark)
                }
            },
        };
        let is_known = |row: &Row| row.technique == technique && row.figures.is_err();
        // A technique is impossible with every seed, or with none of them.
        if figures.is_ok() || !compared.rows.iter().any(is_known) {
            compared.rows.push(Row { technique, seed, figures, remark });
        }
    }
    for compared in &mut compared {
        compared.remark_equals();
    }
    Ok(compared)
}

/// A row to be simulated.
struct PlannedRow {
    /// Index of the scenario.
    scenario: usize,
    technique: &'static Technique,
    seed: u64,
    loaded: Result<Loaded, Errors>,
}

/// Returns the text of the first problem.
fn reason(errors: &Errors) -> String {
    errors.problems().first().map_or_else(|| "refused".to_owned(), |problem| problem.message().to_owned())
}

/// Returns the reason why RED that drops equals no technique: the buffer is full before the average can reach the lower
/// threshold.
fn no_effect(scenario: &Scenario) -> Option<String> {
    let red = &scenario.tor.ecn;
    let room = scenario.tor.layout(&[false])?.output_limit(0, 1)?;
    let least = Bytes::new(red.min.get() * scenario.transport.mtu.get());
    (red.mode == EcnMode::RedDrop && room < least).then(|| {
        format!("no effect: RED drops from {} packets on, which exceed the buffer of {room}", red.min.get())
    })
}

/// Returns the reason why RED did nothing in a run: no queue held as much as the lower threshold of the average.
fn unreached(scenario: &Scenario, figures: &Figures) -> Option<String> {
    let red = &scenario.tor.ecn;
    let least = red.min.get() * scenario.transport.mtu.get();
    let has_red = red.mode.is_red();
    let kilobytes = |bytes: u64| format!("{:.0} kB", bytes as f64 / 1e3);
    (has_red && figures.queue_bytes_max < least).then(|| {
        format!(
            "no effect here: RED acts from {} packets ({}) on, and at most {} waited",
            red.min.get(),
            kilobytes(least),
            kilobytes(figures.queue_bytes_max)
        )
    })
}

/// Returns a remark on a reference that lost frames, so that its reverse traffic holds retransmissions.
fn lossy_reference(technique: &Technique, figures: &Figures) -> Option<String> {
    (technique.name == REFERENCE && figures.drops > 0)
        .then(|| format!("a poor reference here: rings with a limit dropped {} frames", figures.drops))
}

/// Returns a remark on SIRD whose receivers grant at the rate of their links, behind rings that are slower.
fn slow_rings(scenario: &Scenario) -> Option<String> {
    let (ring, link) = (scenario.tor.daqring.rate, scenario.link.rate);
    let has_slow_rings = scenario.tor.buffering == Buffering::Daqring && !ring.is_zero() && ring < link;
    (scenario.transport.congestion_control == CongestionControl::Sird && has_slow_rings)
        .then(|| format!("receivers grant the {link} of their links, and tor.daqring.rate is {ring}"))
}

fn figures(outcome: &RunOutcome) -> Figures {
    let summary = &outcome.summary;
    let (times_ms, completed) = times(summary);
    let network = summary.network.clone().unwrap_or_default();
    let timeouts = match &summary.tcp {
        Some(tcp) => tcp.timeouts.unwrap_or(0),
        None => summary.techniques.values().filter_map(|figures| figures["timeouts"].as_u64()).sum(),
    };
    Figures {
        times_ms,
        completed,
        drops: network.drops.unwrap_or(0),
        timeouts,
        queue_bytes_max: network.queue_bytes_max.unwrap_or(0),
        reverse_bytes_each: network.reverse_bytes.unwrap_or(0) as f64 / completed.max(1) as f64,
        cpu_s: summary.speed.as_ref().and_then(|speed| speed.cpu_s).unwrap_or(0.0),
        stalled: match &outcome.end {
            RunEnd::Stalled { diagnosis, .. } => Some(diagnosis.clone()),
            RunEnd::Complete | RunEnd::Stopped => None,
        },
    }
}

fn times(summary: &Summary) -> (Times, u64) {
    match (&summary.requests, &summary.events) {
        (Some(requests), _) => (requests.time_ms.clone().unwrap_or_default(), requests.completed),
        (None, events) => (
            summary.collection_time_ms.clone().unwrap_or_default(),
            events.as_ref().map_or(0, |events| events.collected),
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn all(scenario: &str, last: &[&str]) -> Compared {
        let last: Vec<String> = last.iter().map(|&set| set.to_owned()).collect();
        let techniques: Vec<&Technique> = TECHNIQUES.iter().collect();
        let scenarios = [scenario.to_owned()];
        compare(
            &scenarios,
            &techniques,
            &ComparedSettings { first: &[], last: &last, seeds: 1 },
            2,
            &NEVER,
            &|_, _| (),
            &mut |_, _, _| (),
        )
        .unwrap()
        .pop()
        .unwrap()
    }

    #[test]
    fn every_technique_runs_on_the_thesis_scenario() {
        let names: BTreeSet<&str> = TECHNIQUES.iter().map(|technique| technique.name).collect();
        assert_eq!(names.len(), TECHNIQUES.len());
        for technique in TECHNIQUES {
            let sets: Vec<String> = technique.sets.iter().map(|&set| set.to_owned()).collect();
            let loaded = load("thesis-b-1000hz", &sets).unwrap();
            assert_eq!(loaded.warnings.render(false), "", "{} sets what nothing reads", technique.name);
        }
        // These are small enough for a debug build. The table itself is meant for large ones.
        let small = [
            "run.duration=40 ms",
            "run.warmup=20 ms",
            "collectors.hosts_per_rack=4",
            "supervisor.rate=100 Hz",
        ];
        for scenario in ["thesis-a-1000hz", "thesis-b-1000hz"] {
            let compared = all(scenario, &small);
            assert_eq!(compared.rows.len(), TECHNIQUES.len());
            for row in &compared.rows {
                let name = row.technique.name;
                let figures = row.figures.as_ref().unwrap_or_else(|why| panic!("{name}: {why}"));
                assert_eq!(figures.stalled, None, "{name}");
                assert!(figures.completed > 0 && figures.times_ms.mean > 15.0, "{name} {figures:?}");
                assert!(
                    figures.times_ms.mean >= figures.times_ms.min && figures.reverse_bytes_each > 10_000.0
                );
            }
            let reference = &compared.rows[1];
            let drops = reference.figures.as_ref().unwrap().drops;
            assert_eq!((compared.extra_reverse(reference), drops), (Some(0.0), 0));
        }
    }

    #[test]
    fn impossible_techniques_say_so_and_a_wrong_scenario_is_an_error() {
        let compared = all("incast", &["run.duration=5 ms", "workload.senders=2"]);
        let shifter = compared.rows.iter().find(|row| row.technique.name == "barrel-shifter").unwrap();
        assert!(
            shifter.figures.as_ref().unwrap_err().contains("a barrel shifter needs several collectors"),
            "{shifter:?}"
        );
        let figures =
            |name: &str| &compared.rows.iter().find(|row| row.technique.name == name).unwrap().figures;
        let red = figures("red-drop").as_ref().unwrap_err();
        assert_eq!(red, "no effect: RED drops from 100 packets on, which exceed the buffer of 64 kB");
        assert!(figures("none").is_ok() && figures("ecn-red").is_ok());
        let remark = |compared: &Compared, name: &str| {
            compared.rows.iter().find(|row| row.technique.name == name).unwrap().remark.clone()
        };
        // The thresholds lie within the buffer, but no queue reaches them.
        let sets =
            ["run.duration=5 ms", "workload.senders=2", "workload.request_size=40 kB", "tor.buffer=500 kB"];
        let few = all("incast", &sets);
        let why = remark(&few, "red-drop").expect("a remark");
        assert!(
            why.starts_with("no effect here: RED acts from 100 packets (150 kB) on, and at most"),
            "{why}"
        );
        assert_eq!(remark(&few, "none"), None);
        assert!(remark(&few, "daqring").is_some() || remark(&few, "pause").is_some(), "{few:?}");
        let wrong = compare(
            &["no-such".to_owned()],
            &[&TECHNIQUES[0]],
            &ComparedSettings { first: &[], last: &[], seeds: 1 },
            1,
            &NEVER,
            &|_, _| (),
            &mut |_, _, _| (),
        );
        assert!(wrong.is_err());
    }

    #[test]
    fn the_reference_loses_nothing_in_other_switches_and_slow_rings_are_remarked() {
        let compared = |scenario: &str, names: &[&str], last: &[&str]| {
            let last: Vec<String> = last.iter().map(|&set| set.to_owned()).collect();
            let techniques: Vec<&Technique> =
                TECHNIQUES.iter().filter(|technique| names.contains(&technique.name)).collect();
            let settings = ComparedSettings { first: &[], last: &last, seeds: 1 };
            let scenarios = [scenario.to_owned()];
            compare(&scenarios, &techniques, &settings, 2, &NEVER, &|_, _| (), &mut |_, _, _| ())
                .unwrap()
                .remove(0)
                .rows
        };
        // Without software queues the core alone is between readouts and rack. Its memory is small.
        let short = ["run.duration=20 ms", "run.warmup=10 ms", "collectors.units_per_host=2"];
        let sets = [&short[..], &["network.hybrid.host_ports=0", "core.buffer=100 kB"]].concat();
        let rows = compared("multihost", &[PLAIN, REFERENCE], &sets);
        let drops: Vec<u64> = rows.iter().map(|row| row.figures.as_ref().unwrap().drops).collect();
        assert!(drops[0] > 0 && drops[1] == 0, "{rows:?}");
        let twin = TECHNIQUES.iter().find(|it| it.name == "daqring").unwrap();
        let mut compared_again = Compared {
            name: String::new(),
            title: String::new(),
            duration: String::new(),
            rows: vec![rows[0].clone(), rows[1].clone(), Row { technique: twin, ..rows[1].clone() }],
            is_stopped: false,
        };
        compared_again.remark_equals();
        let remarks: Vec<_> = compared_again.rows.iter().map(|row| row.remark.as_deref()).collect();
        assert_eq!(remarks, [None, None, Some("all figures are those of deep-buffers")]);
        let rings = ["collectors.hosts_per_rack=6", "tor.buffering=daqring"];
        let rows = compared("lcn15-all-to-all", &["sird"], &[&short[..], &rings].concat());
        let remark = rows[0].remark.as_deref().unwrap_or_default();
        assert!(remark.contains("tor.daqring.rate is 780 Mb/s"), "{rows:?}");
    }

    #[test]
    fn the_page_has_a_row_for_each() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compared.md");
        let page = std::fs::read_to_string(page).expect("docs/compared.md");
        for technique in TECHNIQUES {
            let row = format!("\n| `{}` |", technique.name);
            assert!(
                page.contains(&row),
                "docs/compared.md lacks {}: `fanin compare` makes it anew",
                technique.name
            );
        }
    }
}
