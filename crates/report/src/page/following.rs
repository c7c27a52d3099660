//! Settings that follow others: one increases or decreases strictly with the other, so that charts over one setting show the
//! effect of both.

use super::chart::Chart;
use super::swept::{label, lower, quantity, swept};
use crate::RunResult;

/// A setting with every result's value.
type LeadingSetting = (String, Vec<Option<String>>);

/// Returns the settings that span a page's charts, and the ones following one of them. A setting follows another if one is
/// a monotonic function of the other. The pairs of their values are then a line, not a plane.
pub(super) fn leading_and_following(results: &[RunResult]) -> (Vec<LeadingSetting>, Vec<(String, String)>) {
    let mut leading: Vec<LeadingSetting> = Vec::new();
    let mut following = Vec::new();
    for (key, values) in swept(results) {
        match leading.iter().find(|(_, others)| moves_with(&values, others)) {
            Some((other, _)) => following.push((key, other.clone())),
            None => leading.push((key, values)),
        }
    }
    (leading, following)
}

/// Returns true if two settings have at least three pairs of numbers, and one increases or decreases strictly with the other.
fn moves_with(one: &[Option<String>], other: &[Option<String>]) -> bool {
    let number = |value: &Option<String>| value.as_deref().and_then(quantity).map(|quantity| quantity.number);
    let pairs: Option<Vec<(f64, f64)>> =
        one.iter().zip(other).map(|(one, other)| number(one).zip(number(other))).collect();
    let Some(mut pairs) = pairs else { return false };
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    pairs.dedup();
    let steps = || pairs.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1));
    pairs.len() >= 3
        && (steps().all(|(one, other)| one > 0.0 && other > 0.0)
            || steps().all(|(one, other)| one > 0.0 && other < 0.0))
}

/// Returns the charts with a note on the settings that follow others.
pub(super) fn with_note(charts: impl Iterator<Item = Chart>, following: &[(String, String)]) -> Vec<Chart> {
    let mut charts: Vec<Chart> = charts.collect();
    let notes = following.iter().map(|(key, other)| {
        format!("{} follows {}, so that its own effect is unknown.", label(key), lower(&label(other)))
    });
    let notes: Vec<String> = notes.collect();
    for chart in &mut charts {
        let caption = std::mem::take(&mut chart.caption);
        let parts = notes.iter().cloned().chain((!caption.is_empty()).then_some(caption));
        chart.caption = parts.collect::<Vec<_>>().join(" ");
    }
    charts
}

#[cfg(test)]
mod tests {
    use super::super::swept::charts;
    use super::*;
    use crate::{RequestCounts, ResultKind, ScenarioName, Summary, Times};

    #[test]
    fn settings_that_move_together_make_a_line() {
        let at = |credits: u64, buffer: u64| {
            let mut summary = Summary::new(ResultKind::Sim, "1", ScenarioName::default());
            let times = Times { mean: credits as f64, ..Times::default() };
            summary.requests = Some(RequestCounts { time_ms: Some(times), ..RequestCounts::default() });
            let mut one = RunResult::new(summary);
            one.scenario_toml =
                Some(format!("[shaping]\ncredits = {credits}\n[tor]\nbuffer = \"{buffer} kB\"\n"));
            one.label = format!("shaping.credits={credits}, tor.buffer={buffer} kB");
            one
        };
        let together =
            [(48, 64), (96, 128), (192, 256), (384, 512)].map(|(credits, buffer)| at(credits, buffer));
        let found = charts(&together);
        assert_eq!(found[0].series.len(), 1, "one line of means");
        assert_eq!(found[0].series[0].points.len(), 4);
        assert!(found[0].caption.contains("follows credits"), "{}", found[0].caption);
        // A third value of one of them for the same other one makes a plane.
        let apart =
            [(48, 64), (48, 128), (192, 256), (384, 512)].map(|(credits, buffer)| at(credits, buffer));
        assert!(leading_and_following(&apart).1.is_empty());
    }
}
