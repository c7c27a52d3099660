//! Measurements compared with their predictions: agreement within the goals, first difference, likely reason.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};

use super::format::FigureForm;
use super::markup::{escape, figure};
use super::{plots, swept};
use crate::compare::{Agreement, ComparedFigure, Comparison, GOALS, Subject, compare};
use crate::{QueueRow, ResultKind, RunResult};

/// Two results that are compared.
pub(crate) struct ComparedPair {
    /// Index of the prediction, or of the first of two results.
    left: usize,
    /// Index of the measurement, or of the second of two results.
    right: usize,
    comparison: Comparison,
    /// True if the goals apply: a measurement compared with a simulation.
    is_judged: bool,
    /// Percentage of ranks whose times agree within the goal, and the first rank (in per cent) whose times do not.
    ranks: Option<(f64, Option<f64>)>,
    /// Settings that differ between the scenarios, with both values.
    settings: Vec<(String, [Option<String>; 2])>,
    /// Queues watched by both and not always empty, with both high-water marks in bytes; the deepest first.
    queues: Vec<(Arc<str>, [u64; 2])>,
}

/// Pairs each measurement with its scenario's simulation, or else with the simulation of the same name whose settings differ
/// least. Without such a pair, two results that are not plans are the pair.
pub(crate) fn pairs(results: &[RunResult]) -> Vec<ComparedPair> {
    let of =
        |kind: ResultKind| results.iter().enumerate().filter(move |(_, result)| result.summary.kind == kind);
    let judged: Vec<(usize, usize)> = of(ResultKind::Run)
        .filter_map(|(right, run)| {
            let scenario = &run.summary.scenario;
            let same = |sim: &RunResult| sim.summary.scenario.hash == scenario.hash;
            let apart = |sim: &RunResult| settings(sim, run).len();
            let named = of(ResultKind::Sim).filter(|(_, sim)| sim.summary.scenario.name == scenario.name);
            let left = of(ResultKind::Sim)
                .find(|(_, sim)| same(sim))
                .or_else(|| named.min_by_key(|(_, sim)| apart(sim)))?;
            Some((left.0, right))
        })
        .collect();
    let is_judged = !judged.is_empty();
    let plain = results.iter().all(|result| result.summary.kind != ResultKind::Plan);
    let pairs = match results.len() {
        2 if !is_judged && plain => vec![(0, 1)],
        _ => judged,
    };
    pairs
        .into_iter()
        .map(|(left, right)| ComparedPair {
            left,
            right,
            comparison: compare(&results[left].summary, &results[right].summary, GOALS),
            is_judged,
            ranks: ranks(&results[left], &results[right]),
            settings: settings(&results[left], &results[right]),
            queues: queues(&results[left].records.queues, &results[right].records.queues),
        })
        .collect()
}

/// Returns the settings that differ between two scenarios, with both values.
pub(crate) fn settings(left: &RunResult, right: &RunResult) -> Vec<(String, [Option<String>; 2])> {
    let bare = |result: &RunResult| RunResult {
        scenario_toml: result.scenario_toml.clone(),
        ..RunResult::new(result.summary.clone())
    };
    let differing = swept::differing(&[bare(left), bare(right)]).into_iter();
    differing.map(|(key, values)| (key, [values[0].clone(), values[1].clone()])).collect()
}

/// Queues shown at most.
const QUEUES_MAX: usize = 8;

/// Returns the high-water marks, in bytes, of the queues that both sides watched.
fn queues(left: &[QueueRow], right: &[QueueRow]) -> Vec<(Arc<str>, [u64; 2])> {
    let mut deepest: BTreeMap<&Arc<str>, [Option<u64>; 2]> = BTreeMap::new();
    for (side, rows) in [left, right].into_iter().enumerate() {
        for row in rows {
            let most = &mut deepest.entry(&row.queue).or_default()[side];
            *most = (*most).max(Some(row.queue_bytes));
        }
    }
    let mut both: Vec<(Arc<str>, [u64; 2])> = deepest
        .into_iter()
        .filter_map(|(name, [left, right])| Some((name.clone(), [left?, right?])))
        .filter(|(_, most)| *most != [0, 0])
        .collect();
    both.sort_by_key(|(_, most)| Reverse(most[0].max(most[1])));
    both.truncate(QUEUES_MAX);
    both
}

/// Compares the times at a thousand ranks: percentage of ranks that agree, and the first other one.
fn ranks(left: &RunResult, right: &RunResult) -> Option<(f64, Option<f64>)> {
    const RANKS: usize = 1000;
    let (left, right) = (plots::times_ms(left), plots::times_ms(right));
    if left.is_empty() || right.is_empty() {
        return None;
    }
    let at = |times: &[f64], rank: usize| times[(times.len() * rank).div_ceil(RANKS).max(1) - 1];
    let agrees = |rank: usize| {
        let (left, right) = (at(&left, rank), at(&right, rank));
        left == right || (left > 0.0 && (right / left - 1.0).abs() <= GOALS.mean)
    };
    let count = (1..=RANKS).filter(|&rank| agrees(rank)).count();
    let first = (1..=RANKS).find(|&rank| !agrees(rank)).map(|rank| rank as f64 * 100.0 / RANKS as f64);
    Some((count as f64 * 100.0 / RANKS as f64, first))
}

/// Returns the pairs' entries in the page's data.
pub(crate) fn data(pairs: &[ComparedPair]) -> Value {
    let data = |pair: &ComparedPair| {
        let comparison = &pair.comparison;
        let ratios: Vec<Option<f64>> = comparison.claims.iter().map(ComparedFigure::ratio).collect();
        let facts: Vec<Option<f64>> = comparison
            .facts
            .iter()
            .map(|fact| Some(fact.measured / fact.predicted).filter(|ratio| ratio.is_finite()))
            .collect();
        let queues: Vec<Value> = pair
            .queues
            .iter()
            .map(|(queue, [left, right])| {
                let ratio = Some(*right as f64 / *left as f64).filter(|ratio| ratio.is_finite());
                json!({ "queue": **queue, "predicted": left, "measured": right, "ratio": ratio })
            })
            .collect();
        json!({
            "queues": queues,
            "left": pair.left,
            "right": pair.right,
            "comparison": comparison,
            "ratios": ratios,
            "fact_ratios": facts,
            "goal": GOALS.mean,
            "agree_percent": pair.ranks.map(|ranks| ranks.0),
            "part_at_percent": pair.ranks.and_then(|ranks| ranks.1),
        })
    };
    Value::Array(pairs.iter().map(data).collect())
}

/// Writes the verdict on each measurement that is compared with its simulation, for the head of the page.
pub(crate) fn head(pairs: &[ComparedPair], results: &[RunResult], data: &Value, out: &mut String) {
    let judged = || pairs.iter().enumerate().filter(|(_, pair)| pair.is_judged);
    let count = judged().count();
    if count == 0 {
        return;
    }
    let _ = writeln!(out, "<div class=\"verdicts of-{count}\">");
    for (number, pair) in judged() {
        let of = (pairs.len() > 1).then(|| labels(pair, results)[1].clone());
        verdict(pair, data, &format!("/pairs/{number}"), of.as_deref(), out);
    }
    out.push_str("</div>\n");
}

/// Writes the section of comparisons; nothing without pairs.
pub(crate) fn section(pairs: &[ComparedPair], results: &[RunResult], data: &Value, out: &mut String) {
    if pairs.is_empty() {
        return;
    }
    let title = if pairs[0].is_judged { "Is it as predicted?" } else { "Where they differ, and why" };
    let _ = writeln!(out, "<section>\n<h2>{title}</h2>");
    for (number, pair) in pairs.iter().enumerate() {
        let at = format!("/pairs/{number}");
        out.push_str("<div class=\"pair\">\n");
        if pairs.len() > 1 {
            let [left, right] = labels(pair, results);
            let _ = writeln!(out, "<h3>{left} and {right}</h3>");
        }
        if pair.is_judged {
            claims(pair, results, data, &at, out);
        }
        reasons(pair, results, data, &at, out);
        deepest(pair, results, data, &at, out);
        out.push_str("</div>\n");
    }
    if pairs[0].is_judged {
        let _ = writeln!(
            out,
            "<p class=\"note\">The goals are those of the validation set. Incast means that full buffers \
             dropped frames, with a mean more than 5 % above the ideal. The mean is judged where neither side \
             has it, goodput where both have.</p>"
        );
    }
    out.push_str("</section>\n");
}

fn labels(pair: &ComparedPair, results: &[RunResult]) -> [String; 2] {
    [pair.left, pair.right].map(|index| {
        let swatch = plots::swatch_of(index, results);
        format!("{swatch}<bdi>{}</bdi>", escape(&results[index].label))
    })
}

fn subject(subject: Subject) -> (&'static str, FigureForm) {
    match subject {
        Subject::Incast => ("Incast", FigureForm::Number),
        Subject::MeanMs => ("Mean time", FigureForm::Millis),
        Subject::GoodputBps => ("Goodput", FigureForm::Bits),
        Subject::QueueBytes => ("Deepest queue", FigureForm::Bytes),
    }
}

fn verdict(pair: &ComparedPair, data: &Value, at: &str, of: Option<&str>, out: &mut String) {
    let of = of.map_or_else(String::new, |of| format!("<p class=\"label\">{of}</p>"));
    let comparison = &pair.comparison;
    if let Some(why) = figure(data, &format!("{at}/comparison/invalid"), FigureForm::Sentence) {
        let _ = writeln!(out, "<div class=\"verdict bad\">{of}<p><strong>Invalid.</strong> {why}</p></div>");
        return;
    }
    let differs: Vec<String> = comparison
        .claims
        .iter()
        .filter(|claim| claim.verdict == Agreement::Differs)
        .map(|claim| subject(claim.subject).0.to_lowercase())
        .collect();
    let judged = comparison.claims.iter().any(|claim| claim.verdict == Agreement::Agrees);
    let (class, words) = match (differs.is_empty(), judged) {
        (true, true) => ("good", "The measurement is as predicted.".to_owned()),
        (true, false) => ("open", "There is nothing to judge: figures are missing on one side.".to_owned()),
        (false, _) => ("bad", format!("The measurement is not as predicted: {}.", differs.join(", "))),
    };
    let _ = writeln!(out, "<div class=\"verdict {class}\">{of}<p><strong>{words}</strong></p></div>");
}

fn claims(pair: &ComparedPair, results: &[RunResult], data: &Value, at: &str, out: &mut String) {
    let [left, right] = labels(pair, results);
    let _ = writeln!(
        out,
        "<div class=\"scroll\" role=\"region\" aria-label=\"Claims\" tabindex=\"0\">\n<table class=\"claims\">\n<thead><tr>\
         <td></td><th scope=\"col\" class=\"n\">{left}</th><th scope=\"col\" class=\"n\">{right}</th>\
         <th scope=\"col\">Verdict</th></tr></thead>\n<tbody>"
    );
    for (number, claim) in pair.comparison.claims.iter().enumerate() {
        let (name, form) = subject(claim.subject);
        let cell = |key: &str, value: Option<f64>| match (claim.subject, value) {
            (_, None) => "–".to_owned(),
            (Subject::Incast, Some(value)) => if value > 0.0 { "yes" } else { "no" }.to_owned(),
            _ => figure(data, &format!("{at}/comparison/claims/{number}/{key}"), form).unwrap_or_default(),
        };
        let (predicted, measured) = (cell("predicted", claim.predicted), cell("measured", claim.measured));
        let is_flag = claim.subject == Subject::Incast;
        let difference = figure(data, &format!("{at}/ratios/{number}"), FigureForm::Change)
            .filter(|_| !is_flag)
            .map_or(String::new(), |change| format!("<small>{change}</small>"));
        let goal = figure(data, &format!("{at}/comparison/claims/{number}/within"), FigureForm::Share)
            .filter(|_| !is_flag)
            .map_or(String::new(), |goal| format!("<small>goal: ±{goal}</small>"));
        let (class, says) = match claim.verdict {
            Agreement::Agrees => ("good", "agrees"),
            Agreement::Differs => ("bad", "differs"),
            Agreement::Open => ("open", "not judged"),
        };
        let _ = writeln!(
            out,
            "<tr class=\"{class}\"><th scope=\"row\">{name}</th><td class=\"n\">{predicted}</td>\
             <td class=\"n\">{measured}{difference}</td><td><span class=\"says\">{says}</span>{goal}</td></tr>"
        );
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

/// A count that may differ: its JSON pointer, its name, and its effect on the counts after it.
const MEANINGS: &[(&str, &str, &str)] = &[
    (
        "/network/drops",
        "Frames dropped",
        "full buffers refuse others: bursts meet, or buffers hold, differently",
    ),
    ("/network/link_losses", "Frames lost on links", "links lose other frames at random"),
    ("/network/ecn_marks", "Frames marked", "senders slow down at other moments"),
    ("/network/pauses", "PAUSE frames", "senders are stopped at other moments"),
    ("/tcp/retransmits", "Retransmissions", "recovery sends more, or less, than was lost"),
    ("/tcp/fast_retransmits", "Fast recoveries", "losses are noticed by duplicates more, or less, often"),
    (
        "/tcp/spurious_retransmits",
        "Spurious retransmissions",
        "timers end before the acknowledgement is there",
    ),
    ("/tcp/timeouts", "Timeouts", "each waits at least the minimum RTO, which moves the mean and the tail"),
];

fn reasons(pair: &ComparedPair, results: &[RunResult], data: &Value, at: &str, out: &mut String) {
    let comparison = &pair.comparison;
    let within = figure(data, &format!("{at}/goal"), FigureForm::Share).unwrap_or_default();
    let has_times = pair.ranks.is_some();
    out.push_str("<ul class=\"why\">\n");
    let agree = figure(data, &format!("{at}/agree_percent"), FigureForm::Number);
    let part = figure(data, &format!("{at}/part_at_percent"), FigureForm::Number);
    match (agree, part) {
        (Some(agree), Some(part)) => {
            let _ = writeln!(
                out,
                "<li>Compared by rank, {agree} % of the requests take the same time within {within}; \
                 the first that does not stands at {part} %.</li>"
            );
        }
        (Some(_), None) => {
            let _ = writeln!(
                out,
                "<li>From the fastest request to the slowest, the times are the same within {within}.</li>"
            );
        }
        _ => {}
    }
    if let Some(first) = comparison.facts.first() {
        let (_, name, meaning) =
            MEANINGS.iter().find(|(pointer, ..)| *pointer == first.pointer).unwrap_or(&MEANINGS[0]);
        let _ = writeln!(
            out,
            "<li>The first difference on the way from cause to effect: {}; {meaning}.</li>",
            name.to_lowercase().replace("pause", "PAUSE")
        );
    } else if has_times {
        out.push_str("<li>Drops, marks, retransmissions and timeouts of a request are the same.</li>\n");
    }
    if pair.settings.is_empty() {
        out.push_str("<li>Both are of the same system, to the last setting.</li>\n");
    }
    out.push_str("</ul>\n");
    if !comparison.facts.is_empty() {
        facts(pair, results, data, at, out);
    }
    if !pair.settings.is_empty() {
        settings_table(pair, results, out);
    }
}

/// Writes a table with a figure of each side and their difference in each row. `about` labels it, `heading` names its
/// first column. Each row has its name in markup, the place of the two figures in the page's data, and that of their
/// ratio.
fn differences(
    [about, heading]: [&str; 2],
    labels: &[String; 2],
    form: FigureForm,
    rows: impl Iterator<Item = (String, String, String)>,
    data: &Value,
    out: &mut String,
) {
    let [left, right] = labels;
    let _ = writeln!(
        out,
        "<div class=\"scroll\" role=\"region\" aria-label=\"{about}\" tabindex=\"0\">\n<table>\n<thead><tr>\
         <th scope=\"col\">{heading}</th><th scope=\"col\" class=\"n\">{left}</th>\
         <th scope=\"col\" class=\"n\">{right}</th><th scope=\"col\" class=\"n\">Difference</th></tr></thead>\n<tbody>"
    );
    for (name, at, ratio) in rows {
        let cell = |key: &str| figure(data, &format!("{at}/{key}"), form).unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{name}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            cell("predicted"),
            cell("measured"),
            figure(data, &ratio, FigureForm::Change).unwrap_or_default()
        );
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

fn facts(pair: &ComparedPair, results: &[RunResult], data: &Value, at: &str, out: &mut String) {
    let rows = pair.comparison.facts.iter().enumerate().map(|(number, fact)| {
        let name = MEANINGS.iter().find(|(pointer, ..)| *pointer == fact.pointer).map_or("", |row| row.1);
        (name.to_owned(), format!("{at}/comparison/facts/{number}"), format!("{at}/fact_ratios/{number}"))
    });
    differences(
        ["Difference", "Of each request"],
        &labels(pair, results),
        FigureForm::Number,
        rows,
        data,
        out,
    );
}

/// Writes the deepest queues, which show the cause of a different `Deepest queue`.
fn deepest(pair: &ComparedPair, results: &[RunResult], data: &Value, at: &str, out: &mut String) {
    if pair.queues.is_empty() {
        return;
    }
    let rows = pair.queues.iter().enumerate().map(|(number, (queue, _))| {
        let at = format!("{at}/queues/{number}");
        (format!("<bdi>{}</bdi>", escape(queue)), at.clone(), format!("{at}/ratio"))
    });
    let words = ["Deepest of each queue", "Deepest of each watched queue"];
    differences(words, &labels(pair, results), FigureForm::Bytes, rows, data, out);
}

/// Settings shown at most. The page also has the whole scenarios.
const SETTINGS_MAX: usize = 12;

fn settings_table(pair: &ComparedPair, results: &[RunResult], out: &mut String) {
    let [left, right] = labels(pair, results);
    let _ = writeln!(
        out,
        "<p class=\"note\">Their scenarios differ:</p>\n<div class=\"scroll\" role=\"region\" \
         aria-label=\"Settings that differ\" tabindex=\"0\">\n<table>\n<thead><tr><td></td>\
         <th scope=\"col\" class=\"n\">{left}</th><th scope=\"col\" class=\"n\">{right}</th></tr></thead>\n<tbody>"
    );
    for (key, values) in pair.settings.iter().take(SETTINGS_MAX) {
        let [left, right] = values.each_ref().map(|value| match value {
            Some(value) => format!("<bdi>{}</bdi>", escape(value)),
            None => "–".into(),
        });
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><bdi>{}</bdi></th><td class=\"n\">{left}</td><td class=\"n\">{right}</td></tr>",
            escape(&swept::label(key))
        );
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    if pair.settings.len() > SETTINGS_MAX {
        out.push_str("<p class=\"note\">And more; the whole scenarios stand below.</p>\n");
    }
}
