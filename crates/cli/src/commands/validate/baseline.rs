//! `baseline.toml`: the measurement of each case, and the reasons of known deviations.

use std::collections::BTreeMap;
use std::path::Path;

use fanin_report::{
    ComparedFigure, Goodput, NetworkFigures, RequestCounts, ResultKind, ScenarioName, Subject, Summary,
    TcpFigures, Times,
};
use serde::{Deserialize, Serialize};

use super::case::{JudgedCase, Measurement};
use crate::failure::Failure;

/// The baseline's file name, in the folder of the cases.
pub(super) const FILE: &str = "baseline.toml";
const HEAD: &str = "# Measurements of this project's machine, by `fanin validate --record`. `known` and `conditions` are written by\n\
                    # hand: a case named there may differ beyond the goals, with measured / simulated within the range.\n\n";

/// The measurement of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recorded {
    /// Day, as 2026-11-21.
    pub(super) date: String,
    /// Release of the kernel.
    pub(super) kernel: String,
    /// The program that measured: `release with bpf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) build: Option<String>,
    /// The headroom of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) headroom: Option<String>,
    /// Spread of the rounds around this middle one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rounds: Option<String>,
    /// Requests or events completed.
    completed: u64,
    /// Mean collection time, ms.
    mean_ms: f64,
    /// Ideal time, where the measurement has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ideal_ms: Option<f64>,
    /// Goodput of all collectors.
    goodput_bps: f64,
    /// Largest occupancy of a queue, bytes.
    queue_bytes_max: u64,
    /// Frames refused by full buffers.
    drops: u64,
    /// Retransmission timeouts, where they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeouts: Option<u64>,
}

impl Recorded {
    /// Takes the figures of a valid measurement; `None` for any other.
    pub(super) fn new(judged: &JudgedCase) -> Option<Self> {
        let run = match &judged.measured {
            Measurement::Live(run) if judged.measured.is_sound() => run,
            _ => return None,
        };
        let summary = &run.result.summary;
        let times = summary.times()?;
        let completed = summary.requests.as_ref().map(|requests| requests.completed);
        let network = summary.network.as_ref()?;
        Some(Self {
            date: super::case::today(),
            kernel: super::case::kernel(),
            build: Some(super::case::build()),
            headroom: super::case::headroom(summary),
            rounds: run.rounds.clone(),
            completed: completed.or(summary.events.as_ref().map(|events| events.collected))?,
            mean_ms: times.mean,
            ideal_ms: times.ideal,
            goodput_bps: summary.goodput_bps.as_ref()?.total,
            queue_bytes_max: network.queue_bytes_max?,
            drops: network.drops?,
            timeouts: summary.tcp.as_ref().and_then(|tcp| tcp.timeouts),
        })
    }

    /// Makes a summary with these figures.
    pub(super) fn summary(&self) -> Summary {
        let mut summary = Summary::new(ResultKind::Run, crate::build_info::VERSION, ScenarioName::default());
        let times = Times { ideal: self.ideal_ms, mean: self.mean_ms, ..Times::default() };
        summary.requests = Some(RequestCounts {
            completed: self.completed,
            time_ms: Some(times),
            ..RequestCounts::default()
        });
        summary.goodput_bps = Some(Goodput { total: self.goodput_bps, per_collector_mean: None });
        summary.network = Some(NetworkFigures {
            drops: Some(self.drops),
            queue_bytes_max: Some(self.queue_bytes_max),
            ..NetworkFigures::default()
        });
        summary.tcp = Some(TcpFigures { timeouts: self.timeouts, ..TcpFigures::default() });
        summary
    }
}

/// A difference that is understood: its reason, and its allowed range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownDifference {
    /// The reason, in a sentence or two.
    pub(super) why: String,
    /// Lowest and highest measured / simulated of each figure that may differ beyond its goal.
    pub(super) ratio: BTreeMap<Subject, [f64; 2]>,
}

impl KnownDifference {
    /// Returns true if a claim lies within its known range.
    pub(super) fn covers(&self, claim: &ComparedFigure) -> bool {
        // Infinite where only the measurement shows incast.
        let ratio = claim.predicted.zip(claim.measured).map(|(predicted, measured)| measured / predicted);
        let range = self.ratio.get(&claim.subject);
        ratio.zip(range).is_some_and(|(ratio, [low, high])| (*low..=*high).contains(&ratio))
    }
}

/// The content of the baseline.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Baseline {
    /// Under which conditions the machine measured, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) conditions: Option<String>,
    /// Reasons for which cases differ beyond the goals, by name.
    #[serde(default)]
    known: BTreeMap<String, KnownDifference>,
    /// Measurements by the case's name.
    #[serde(default)]
    case: BTreeMap<String, Recorded>,
}

impl Baseline {
    /// Reads a baseline; an empty one if the file is missing.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |reason: String| Failure::Baseline { path: path.to_owned(), reason };
        match std::fs::read_to_string(path) {
            Ok(text) => toml::from_str(&text).map_err(|error| wrong(error.to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = toml::to_string(self).expect("names, texts and finite numbers");
        std::fs::write(path, format!("{HEAD}{text}"))
            .map_err(|error| Failure::Write { path: path.to_owned(), error })
    }

    pub(super) fn case(&self, name: &str) -> Option<&Recorded> {
        self.case.get(name)
    }

    pub(super) fn known(&self, name: &str) -> Option<KnownDifference> {
        self.known.get(name).cloned()
    }

    /// Replaces the measurement of a case; `None` keeps the earlier one.
    pub(super) fn put(&mut self, name: &str, recorded: Option<Recorded>) {
        if let Some(recorded) = recorded {
            self.case.insert(name.to_owned(), recorded);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_comes_back_as_it_was() {
        let recorded = Recorded {
            date: "2026-11-21".into(),
            kernel: "6.18.0".into(),
            build: Some("release".into()),
            headroom: None,
            rounds: None,
            completed: 12,
            mean_ms: 28.25,
            ideal_ms: Some(27.0),
            goodput_bps: 93.5e6,
            queue_bytes_max: 63_756,
            drops: 7,
            timeouts: Some(1),
        };
        let mut baseline = Baseline::default();
        baseline.put("cubic-16", Some(recorded.clone()));
        baseline.put("cubic-16", None);
        let known = KnownDifference {
            why: "because".into(),
            ratio: BTreeMap::from([(Subject::GoodputBps, [0.5, 1.5])]),
        };
        baseline.known.insert("cubic-64".into(), known);
        let back: Baseline = toml::from_str(&toml::to_string(&baseline).unwrap()).unwrap();
        assert_eq!(back, baseline);
        assert_eq!(back.case("cubic-16"), Some(&recorded));
        assert_eq!(recorded.summary().times().map(|times| times.mean), Some(28.25));
        assert!(toml::from_str::<Baseline>("[case.x]\nmean = 1").is_err());
    }
}
