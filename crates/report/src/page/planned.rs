//! The planner's part of the page: warnings, loads, bursts against buffers, cost, derivations.

use std::fmt::Write;

use serde_json::Value;

use super::format::{FigureForm, typeset, words};
use super::markup::{escape, figure, ratio};
use crate::{PlanComparison, PlanRow, PlanSummary, RunResult};

/// Bars above this multiple of the limit are cut off.
const BAR_MAX: f64 = 4.0;

/// Returns the name of a planner's outcome, and true if the outcome is good, false if it is bad, `None` if it is neither.
pub(super) fn outcome_words(outcome: &str) -> (&'static str, Option<bool>) {
    match outcome {
        "fits" => ("fits", Some(true)),
        "may-lose" => ("depends", None),
        "loses" => ("loses", Some(false)),
        "holds-back" => ("stops senders", None),
        "unlimited" => ("no limit", Some(true)),
        _ => ("unknown", None),
    }
}

/// Writes the verdict on a queue: never, in a share of the events, always, or an expectation. For plans of earlier versions it
/// is the outcome.
fn losses_words(plan: &PlanSummary, row: usize, data: &Value, at: &str) -> String {
    let queue = &plan.queues[row];
    let is_never = plan.verdict.as_ref().is_some_and(|verdict| verdict.losses.as_deref() == Some("never"));
    let share = |key: &str| figure(data, &format!("{at}/queues/{row}/{key}"), FigureForm::Share);
    match (queue.outcome.as_str(), queue.losses.as_deref()) {
        ("holds-back" | "unlimited", _) | (_, None) => outcome_words(&queue.outcome).0.to_owned(),
        _ if is_never => "never".to_owned(),
        (_, Some("always")) => "always".to_owned(),
        (_, Some("in-share")) => {
            share("overflow_share").map_or("in some".into(), |share| format!("in {share}"))
        }
        _ => match queue.bracket.as_ref().and_then(|bracket| bracket.losing_share_expected) {
            Some(0.0) => "expected never".to_owned(),
            Some(1.0) => "expected always".to_owned(),
            _ => share("bracket/losing_share_expected")
                .map_or("depends".into(), |share| format!("expected in {share}")),
        },
    }
}

pub(crate) fn sections(result: &RunResult, data: &Value, index: usize, several: bool, out: &mut String) {
    let Some(plan) = &result.summary.plan else { return };
    let at = format!("/results/{index}/summary/plan");
    let of = if several { format!(": <bdi>{}</bdi>", escape(&result.label)) } else { String::new() };
    loads(plan, data, &at, &of, out);
    queues(plan, data, &at, &of, out);
    costs(plan, data, &at, &of, out);
    derivations(plan, data, &at, &of, out);
}

/// Writes the planner's warnings, each as a sentence below the verdict.
pub(crate) fn warnings(plan: &PlanSummary, data: &Value, at: &str) -> String {
    (0..plan.warnings.len())
        .filter_map(|row| figure(data, &format!("{at}/plan/warnings/{row}"), FigureForm::Sentence))
        .fold(String::new(), |all, warning| all + "<p class=\"warning\">" + &warning + "</p>\n")
}

/// Writes a cell with its heading, which narrow pages show because they stack the cells.
fn cell(heading: &str, content: Option<String>) -> String {
    format!("<td class=\"n\" data-label=\"{heading}\">{}</td>", content.unwrap_or_else(|| "–".into()))
}

fn head(name: &str, columns: &[&str]) -> String {
    let columns: String =
        columns.iter().map(|column| format!("<th scope=\"col\" class=\"n\">{column}</th>")).collect();
    format!(
        "<table class=\"bars\">\n<thead><tr><th scope=\"col\">{name}</th>{columns}<td></td></tr></thead>\n<tbody>\n"
    )
}

fn loads(plan: &PlanSummary, data: &Value, at: &str, of: &str, out: &mut String) {
    if plan.links.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<section>\n<h2>Link loads{of}</h2>\n<p class=\"note\">Offered load on the wire, with every header, \
         over the rate of the links.</p>\n{}",
        head("Link", &["Links", "Rate", "Offered", "Load"])
    );
    let longest = plan.links.iter().map(|link| link.load).fold(1.0, f64::max).min(BAR_MAX);
    for (row, link) in plan.links.iter().enumerate() {
        let place = |key: &str, form| figure(data, &format!("{at}/links/{row}/{key}"), form);
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><bdi>{}</bdi></th>{}{}{}{}<td class=\"bar\">{}</td></tr>",
            escape(&typeset(&link.name)),
            cell("Links", place("count", FigureForm::Number)),
            cell("Rate", place("rate_bps", FigureForm::Bits)),
            cell("Offered", place("offered_bps", FigureForm::Bits)),
            cell("Load", place("load", FigureForm::Share)),
            bar(link.load, longest, link.load > 1.0)
        );
    }
    out.push_str("</tbody>\n</table>\n</section>\n");
}

fn queues(plan: &PlanSummary, data: &Value, at: &str, of: &str, out: &mut String) {
    if plan.queues.is_empty() {
        return;
    }
    let fill = |peak: u64, capacity: Option<u64>| match capacity {
        Some(0) if peak > 0 => f64::INFINITY,
        Some(capacity) if capacity > 0 => peak as f64 / capacity as f64,
        _ => 0.0,
    };
    let fills = plan.queues.iter().map(|queue| fill(queue.peak_bytes, queue.capacity_bytes));
    let longest = fills.fold(1.0, f64::max).min(BAR_MAX);
    let _ = write!(
        out,
        "<section>\n<h2>Bursts against buffers{of}</h2>\n<p class=\"note\">Bytes of the largest burst that \
         wait at once, over the size of the buffer. Beyond the line, frames are lost.</p>\n{}",
        head("Queue", &["Burst", "Waits", "Holds", "Filled", "Verdict"])
    );
    for (row, queue) in plan.queues.iter().enumerate() {
        let place = |key: &str| format!("{at}/queues/{row}/{key}");
        let bytes = |key: &str| figure(data, &place(key), FigureForm::Bytes);
        let holds = bytes("capacity_bytes").or_else(|| Some("no limit".into()));
        let (_, good) = outcome_words(&queue.outcome);
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><bdi>{}</bdi></th>{}{}{}{}{}<td class=\"bar\">{}</td></tr>",
            escape(&typeset(&queue.name)),
            cell("Burst", bytes("burst_bytes")),
            cell("Waits", bytes("peak_bytes")),
            cell("Holds", holds),
            cell("Filled", ratio(data, &place("peak_bytes"), &place("capacity_bytes"), FigureForm::Share)),
            cell("Verdict", Some(losses_words(plan, row, data, at))),
            queue.capacity_bytes.map_or(String::new(), |_| {
                bar(fill(queue.peak_bytes, queue.capacity_bytes), longest, good == Some(false))
            })
        );
    }
    out.push_str("</tbody>\n</table>\n");
    let verdict = plan.verdict.as_ref().map_or("", |verdict| verdict.text.as_str());
    for (row, queue) in plan.queues.iter().enumerate() {
        let is_said = queue.text.is_empty() || verdict.contains(&queue.text);
        let (_, good) = outcome_words(&queue.outcome);
        let text = figure(data, &format!("{at}/queues/{row}/text"), FigureForm::Sentence);
        if let Some(text) = text.filter(|_| !is_said && good != Some(true)) {
            let _ = writeln!(out, "<p class=\"note\">{text}</p>");
        }
    }
    out.push_str("</section>\n");
}

/// Draws a bar for `share` and a line at the limit (1), on a scale from 0 to `longest`.
fn bar(share: f64, longest: f64, bad: bool) -> String {
    let share = if share.is_nan() { 0.0 } else { share.max(0.0) };
    let class = if bad { "over" } else { "under" };
    let width = 100.0 * share.min(longest) / longest;
    let limit = 100.0 / longest;
    let cut = if share > longest { "<path class=\"cut\" d=\"M91 11L94 -1M95 11L98 -1\"/>" } else { "" };
    format!(
        "<svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"track\" width=\"{limit:.2}\" height=\"10\"/>\
         <rect class=\"{class}\" width=\"{width:.2}\" height=\"10\"/>{cut}\
         <path class=\"limit\" d=\"M{limit:.2} 0V10\"/></svg>"
    )
}

fn costs(plan: &PlanSummary, data: &Value, at: &str, of: &str, out: &mut String) {
    let Some(cost) = &plan.cost else { return };
    let mut rows: Vec<(String, &PlanComparison)> = Vec::new();
    rows.extend(cost.network.iter().map(|network| (format!("{at}/cost/network"), network)));
    rows.extend(cost.sweep.iter().enumerate().map(|(row, point)| (format!("{at}/cost/sweep/{row}"), point)));
    let Some((_, first)) = rows.first() else { return };
    let currency = escape(&first.currency);
    let _ = write!(
        out,
        "<section>\n<h2>Cost and space{of}</h2>\n<p class=\"note\">A leaf-spine network of software switches \
         compared with chassis routers with as many ports; prices in {currency}. The first row is the scenario's own.</p>\n\
         <div class=\"scroll\" role=\"region\" aria-label=\"Cost and space\" tabindex=\"0\">\n<table>\n<thead><tr>"
    );
    let columns = [
        ("Ports", "ports", FigureForm::Number),
        ("Spines", "spines", FigureForm::Number),
        ("Over-subscription", "oversubscription", FigureForm::Factor),
        ("Switches", "switches", FigureForm::Number),
        ("Price", "software_price", FigureForm::Number),
        ("Routers", "router_price", FigureForm::Number),
        ("Routers over switches", "price_ratio", FigureForm::Factor),
        ("Floor of switches over routers", "area_ratio", FigureForm::Factor),
    ];
    for (title, ..) in columns {
        let _ = write!(out, "<th scope=\"col\" class=\"n\">{title}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (place, _) in &rows {
        out.push_str("<tr>");
        for (_, key, form) in columns {
            let value = figure(data, &format!("{place}/{key}"), form).unwrap_or_else(|| "–".into());
            let _ = write!(out, "<td class=\"n\">{value}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n</section>\n");
}

fn derivations(plan: &PlanSummary, data: &Value, at: &str, of: &str, out: &mut String) {
    if plan.derivations.is_empty() {
        return;
    }
    // Each link has the same three rows. They are separated, so that the other rows are easy to find.
    let of_links = |row: &PlanRow| row.name.starts_with("offered.") || row.name.starts_with("load");
    let list = |links: bool, out: &mut String| {
        out.push_str("<dl class=\"derived\">\n");
        for (index, row) in plan.derivations.iter().enumerate().filter(|(_, row)| of_links(row) == links) {
            derivation(row, data, &format!("{at}/derivations/{index}"), out);
        }
        out.push_str("</dl>\n");
    };
    let _ = writeln!(out, "<section>\n<h2>How it was derived{of}</h2>");
    list(false, out);
    if plan.derivations.iter().any(of_links) {
        out.push_str("<details><summary>Link loads, formula by formula</summary>\n");
        list(true, out);
        out.push_str("</details>\n");
    }
    out.push_str("</section>\n");
}

fn derivation(row: &PlanRow, data: &Value, at: &str, out: &mut String) {
    let text = |key: &str| figure(data, &format!("{at}/{key}"), FigureForm::Text);
    let some = |key: &str, value: &str| if value.is_empty() { None } else { text(key) };
    // `burst.tor.collector` is the burst of tor→collector: arrows in names became dots.
    let (first, rest) = row.name.split_once('.').unwrap_or((&row.name, ""));
    let rest = if rest.is_empty() {
        String::new()
    } else {
        format!(", {}", rest.replace('.', "→").replace('_', " "))
    };
    let _ = write!(
        out,
        "<div><dt title=\"{}\"><bdi>{}{}</bdi></dt><dd class=\"n\">{}</dd>",
        escape(&row.name),
        escape(&words(first)),
        escape(&rest),
        text("text").unwrap_or_default()
    );
    let how = [some("formula", &row.formula), some("numbers", &row.numbers)];
    let how = how.into_iter().flatten().collect::<Vec<_>>().join(" = ");
    let source = some("source", &row.source)
        .map_or(String::new(), |source| format!(" <span class=\"source\">{source}</span>"));
    if !how.is_empty() || !source.is_empty() {
        let _ = write!(out, "<dd class=\"how\">{how}{source}</dd>");
    }
    out.push_str("</div>\n");
}
