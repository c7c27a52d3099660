//! Compares a measurement with its prediction, and finds the first difference.

use serde::{Deserialize, Serialize};

use crate::Summary;

/// Greatest deviations of a measurement from its prediction, and the least agreement of a set of cases, as shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goals {
    /// Mean time, where neither side has incast.
    pub mean: f64,
    /// Goodput, where both sides have incast. For event building the mean time, since its goodput follows from the rate of
    /// events.
    pub incast_figure: f64,
    /// Largest occupancy of a queue.
    pub queue: f64,
    /// Least share of a set's cases in which both sides show incast or neither does.
    pub incast: f64,
}

/// The goals that the validation set must meet.
pub const GOALS: Goals = Goals { mean: 0.10, incast_figure: 0.25, queue: 0.15, incast: 0.97 };

/// Mean time over ideal above which drops count as incast. Below it, recovery costs a few round trips at most.
pub const INCAST_SLOWDOWN: f64 = 1.05;

/// The verdict on two figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Agreement {
    /// Within the goal.
    Agrees,
    /// The deviation exceeds the goal.
    Differs,
    /// The figure has no goal here, or one side lacks it.
    Open,
}

/// The subject of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// 1 if drops slow requests down, else 0.
    Incast,
    /// Mean collection or request time, in milliseconds.
    MeanMs,
    /// Goodput of all collectors, in bit/s.
    GoodputBps,
    /// Deepest queue, in bytes.
    QueueBytes,
}

/// One figure of both sides, and whether they agree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// Subject of the figure.
    pub subject: Subject,
    /// The prediction's figure, in the subject's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<f64>,
    /// The measurement's figure, in the subject's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// The most that measured / predicted may be away from one; absent where no goal applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// Verdict on both figures.
    pub verdict: Agreement,
}

impl ComparedFigure {
    /// Returns measured over predicted; `None` if one is missing or the prediction is zero.
    pub fn ratio(&self) -> Option<f64> {
        let ratio = self.measured? / self.predicted?;
        ratio.is_finite().then_some(ratio)
    }

    fn judged(subject: Subject, predicted: Option<f64>, measured: Option<f64>, within: Option<f64>) -> Self {
        let mut claim = Self { subject, predicted, measured, within, verdict: Agreement::Open };
        let same = predicted.is_some() && predicted == measured;
        let ratio = if same { Some(1.0) } else { claim.ratio() };
        claim.verdict = match (within, predicted.zip(measured), ratio) {
            (None, ..) | (_, None, _) => Agreement::Open,
            (Some(within), _, Some(ratio)) if (ratio - 1.0).abs() <= within => Agreement::Agrees,
            _ => Agreement::Differs,
        };
        claim
    }
}

/// A count such as drops or timeouts that differs, for each request, with the figures of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// JSON pointer of the figure in a summary.
    pub pointer: &'static str,
    /// The prediction's figure, for each request or event.
    pub predicted: f64,
    /// Figure of the measurement.
    pub measured: f64,
}

/// A measurement compared with its prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The claims with their verdicts: incast first.
    pub claims: Vec<ComparedFigure>,
    /// The differences on the way from cause to effect, the first cause first.
    pub facts: Vec<Fact>,
    /// The reason why the measurement does not describe the network; absent if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

impl Comparison {
    /// Returns true if the measurement is valid and nothing differs beyond the goals.
    pub fn agrees(&self) -> bool {
        self.invalid.is_none() && self.claims.iter().all(|claim| claim.verdict != Agreement::Differs)
    }

    /// Returns the claim about a subject.
    pub fn claim(&self, subject: Subject) -> Option<&ComparedFigure> {
        self.claims.iter().find(|claim| claim.subject == subject)
    }
}

/// Requests completed or events collected.
fn completed(summary: &Summary) -> Option<u64> {
    let requests = summary.requests.as_ref().map(|requests| requests.completed);
    requests.or(summary.events.as_ref().map(|events| events.collected)).filter(|count| *count > 0)
}

/// Returns true if a result shows incast: full buffers dropped frames, and the mean time is at least [`INCAST_SLOWDOWN`] times
/// the ideal. The ideal is that of the result itself or, if it has none, `ideal` (in milliseconds). Timeouts are no criterion:
/// a kernel with tail loss probes collapses without them. `None` if drops or times are not known.
pub fn is_incast(summary: &Summary, ideal: Option<f64>) -> Option<bool> {
    let drops = summary.network.as_ref()?.drops?;
    if drops == 0 {
        return Some(false);
    }
    if completed(summary).is_none() {
        // Frames were dropped and nothing was completed: the worst incast.
        return Some(true);
    }
    let times = summary.times()?;
    let ideal = times.ideal.or(ideal).filter(|ideal| *ideal > 0.0)?;
    Some(times.mean >= INCAST_SLOWDOWN * ideal)
}

/// Compares a measurement with its prediction.
pub fn compare(predicted: &Summary, measured: &Summary, goals: Goals) -> Comparison {
    let ideal = predicted.times().and_then(|times| times.ideal);
    let incast = [is_incast(predicted, ideal), is_incast(measured, ideal)];
    let flag = |incast: Option<bool>| incast.map(|incast| f64::from(u8::from(incast)));
    let (no_incast, collapsed) = (incast == [Some(false); 2], incast == [Some(true); 2]);
    let both = |of: &dyn Fn(&Summary) -> Option<f64>| (of(predicted), of(measured));
    let mean = both(&|summary| summary.times().map(|times| times.mean));
    let goodput = both(&|summary| summary.goodput_bps.as_ref().map(|goodput| goodput.total));
    let queue = both(&|summary| {
        summary.network.as_ref().and_then(|network| network.queue_bytes_max).map(|bytes| bytes as f64)
    });
    let building = predicted.requests.is_none();
    let goal = |applies: bool, goal: f64| applies.then_some(goal);
    let mean_goal = goal(no_incast, goals.mean).or(goal(collapsed && building, goals.incast_figure));
    let goodput_goal = goal(collapsed && !building, goals.incast_figure);
    let claims = vec![
        ComparedFigure::judged(Subject::Incast, flag(incast[0]), flag(incast[1]), Some(0.0)),
        ComparedFigure::judged(Subject::MeanMs, mean.0, mean.1, mean_goal),
        ComparedFigure::judged(Subject::GoodputBps, goodput.0, goodput.1, goodput_goal),
        ComparedFigure::judged(Subject::QueueBytes, queue.0, queue.1, Some(goals.queue)),
    ];
    Comparison { claims, facts: facts(predicted, measured), invalid: measured.invalid().map(str::to_owned) }
}

/// The figures that may differ, each the cause of the next.
const CAUSES: &[&str] = &[
    "/network/drops",
    "/network/link_losses",
    "/network/ecn_marks",
    "/network/pauses",
    "/tcp/retransmits",
    "/tcp/fast_retransmits",
    "/tcp/spurious_retransmits",
    "/tcp/timeouts",
];

/// Counts that differ by more than a tenth, and by more than one in a hundred requests.
fn facts(predicted: &Summary, measured: &Summary) -> Vec<Fact> {
    let Some((left, right)) = completed(predicted).zip(completed(measured)) else { return Vec::new() };
    let trees = [predicted, measured].map(|summary| serde_json::to_value(summary).unwrap_or_default());
    CAUSES
        .iter()
        .filter_map(|&pointer| {
            let predicted = trees[0].pointer(pointer)?.as_f64()? / left as f64;
            let measured = trees[1].pointer(pointer)?.as_f64()? / right as f64;
            let larger = predicted.max(measured);
            let apart = (predicted - measured).abs();
            (apart > 0.01 && apart > larger * 0.1).then_some(Fact { pointer, predicted, measured })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        EventCounts, Goodput, NetworkFigures, RequestCounts, ResultKind, ScenarioName, TcpFigures, Times,
    };

    fn summary(mean: f64, goodput: f64, drops: u64, timeouts: u64, queue: u64) -> Summary {
        let mut summary = Summary::new(ResultKind::Sim, "1", ScenarioName::default());
        let times = Times {
            mean,
            p50: mean,
            p99: mean * 2.0,
            max: mean * 3.0,
            ideal: Some(18.0),
            ..Times::default()
        };
        summary.requests =
            Some(RequestCounts { completed: 1000, time_ms: Some(times), ..RequestCounts::default() });
        summary.goodput_bps = Some(Goodput { total: goodput, per_collector_mean: None });
        summary.network = Some(NetworkFigures {
            drops: Some(drops),
            queue_bytes_max: Some(queue),
            ..NetworkFigures::default()
        });
        summary.tcp = Some(TcpFigures { timeouts: Some(timeouts), ..TcpFigures::default() });
        summary
    }

    fn verdicts(comparison: &Comparison) -> Vec<Agreement> {
        comparison.claims.iter().map(|claim| claim.verdict).collect()
    }

    #[test]
    fn results_without_incast_are_held_to_their_mean_and_collapsed_ones_to_their_goodput() {
        use Agreement::{Agrees, Differs, Open};
        let good = summary(20.0, 90e6, 0, 0, 60_000);
        let near = compare(&good, &summary(21.9, 50e6, 0, 0, 68_000), GOALS);
        assert_eq!(verdicts(&near), [Agrees, Agrees, Open, Agrees]);
        assert!(near.agrees());
        let far = compare(&good, &summary(22.1, 90e6, 0, 0, 70_000), GOALS);
        assert_eq!(verdicts(&far), [Agrees, Differs, Open, Differs]);
        let collapsed = summary(60.0, 20e6, 900, 500, 64_000);
        let other = compare(&collapsed, &summary(90.0, 16e6, 700, 400, 64_000), GOALS);
        assert_eq!(verdicts(&other), [Agrees, Open, Agrees, Agrees]);
        let one_side = compare(&good, &collapsed, GOALS);
        assert_eq!(verdicts(&one_side), [Differs, Open, Open, Agrees]);
        assert!(!one_side.agrees());
    }

    #[test]
    fn collapsed_event_building_is_held_to_its_mean() {
        use Agreement::{Agrees, Differs, Open};
        let building = |mean, goodput| {
            let mut summary = summary(mean, goodput, 900, 500, 64_000);
            summary.collection_time_ms = summary.requests.take().and_then(|requests| requests.time_ms);
            summary.events = Some(EventCounts { collected: 1000, ..EventCounts::default() });
            summary
        };
        let predicted = building(60.0, 30e6);
        assert_eq!(
            verdicts(&compare(&predicted, &building(74.0, 10e6), GOALS)),
            [Agrees, Agrees, Open, Agrees]
        );
        assert_eq!(
            verdicts(&compare(&predicted, &building(76.0, 30e6), GOALS)),
            [Agrees, Differs, Open, Agrees]
        );
    }

    #[test]
    fn drops_that_slow_nothing_down_are_no_incast() {
        assert_eq!(is_incast(&summary(18.8, 1.0, 9, 0, 0), None), Some(false));
        assert_eq!(is_incast(&summary(19.0, 1.0, 9, 0, 0), None), Some(true));
        assert_eq!(is_incast(&summary(90.0, 1.0, 0, 10, 0), None), Some(false), "nothing was dropped");
        let mut nothing = summary(20.0, 1.0, 9, 0, 0);
        nothing.requests = Some(RequestCounts::default());
        assert_eq!(is_incast(&nothing, None), Some(true));
        let mut unknown = summary(21.0, 1.0, 9, 0, 0);
        let times = unknown.requests.as_mut().unwrap().time_ms.as_mut().unwrap();
        times.ideal = None;
        assert_eq!(is_incast(&unknown, None), None);
        assert_eq!(is_incast(&unknown, Some(18.0)), Some(true), "the prediction's");
        unknown.network = None;
        let claim = compare(&unknown, &unknown, GOALS).claims.remove(0);
        assert_eq!(claim.verdict, Agreement::Open);
    }

    #[test]
    fn the_first_cause_comes_first() {
        let comparison = compare(&summary(1.0, 1.0, 0, 0, 1), &summary(9.0, 1.0, 50, 30, 1), GOALS);
        let pointers: Vec<_> = comparison.facts.iter().map(|fact| fact.pointer).collect();
        assert_eq!(pointers, ["/network/drops", "/tcp/timeouts"]);
    }

    #[test]
    fn an_invalid_measurement_agrees_with_nothing() {
        let mut measured = summary(20.0, 90e6, 0, 0, 60_000);
        measured.machine = Some(crate::MachineFigures {
            valid: Some(false),
            reason: Some("the switch's core was busy all the time".into()),
            ..crate::MachineFigures::default()
        });
        let comparison = compare(&summary(20.0, 90e6, 0, 0, 60_000), &measured, GOALS);
        assert!(comparison.invalid.as_deref().is_some_and(|why| why.contains("busy")));
        assert!(!comparison.agrees());
    }
}
