//! The page: one HTML file that opens offline, shows one result or lays several over each other.
//!
//! All charts are drawn here, as inline SVG. The page's script only reads out values under the pointer or the arrow keys. Every
//! figure shown is also in the page's data (`<script id="fanin-data">`). The element that shows a figure names its place there.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use self::chart::{Chart, LOOKS};
use self::compared::ComparedPair;
use self::contents::{COST, Figure, SECTIONS};
use self::format::FigureForm;
use self::markup::{escape, figure, json_for_script, ratio};
use self::pictured::Pictures;
use self::plots::swatch_of;
use crate::{ResultKind, RunResult, seeds};

mod advised;
mod alike;
mod chart;
mod claims;
mod compared;
mod contents;
mod dots;
mod following;
mod format;
mod head;
mod heat;
mod many;
mod markup;
mod network;
mod pictured;
mod planned;
mod plots;
mod points;
mod ranked;
mod seeded;
mod swept;
mod systems;
#[cfg(test)]
mod tests;
mod verdict;
mod waterfall;
mod words;

pub(crate) use self::format::significant;

/// Writes a number of bytes for people.
pub(crate) fn bytes_text(bytes: u64) -> String {
    format::format_f64(bytes as f64, FigureForm::Bytes)
}

pub use self::advised::{ADVICE_PARTS, advice_page};
pub use self::claims::JudgedClaim;
pub use self::words::PageWords;

/// The page of several results, in the folder that holds them.
pub const SWEEP_PAGE: &str = "index.html";

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// Makes the page of one result, or of several to be compared, as a complete HTML document.
///
/// The document is well-formed XML too. Results without rows have tables but no charts.
pub fn page(results: &[RunResult]) -> String {
    page_of(results, &PageWords::default())
}

/// Makes the page of results, with words of the command that made them.
pub fn page_of(results: &[RunResult], words: &PageWords<'_>) -> String {
    let charts = plots::charts(results);
    let pairs = compared::pairs(results);
    let pictures = pictured::pictures(results);
    let data = data(results, &charts, &pictures, &pairs);
    let mut title = title(results);
    if let (Some(name), Some(own)) = (words.name, title.first_mut()) {
        name.clone_into(own);
    }
    let mut out = String::with_capacity(1 << 18);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main class=\"{}\">\n",
        escape(&title.join(" · ")),
        if results.len() == 1 { "one" } else { "several" }
    );
    head::head(results, &data, &title, &pictures, &pairs, words, &mut out);
    if !charts.is_empty() || !pictures.others.is_empty() {
        out.push_str("<section class=\"charts\">\n<h2>What happened</h2>\n");
        pictures.others.iter().for_each(|drawing| out.push_str(&drawing.html));
        charts.iter().for_each(|chart| out.push_str(&chart.html(&data)));
        out.push_str("</section>\n");
    }
    compared::section(&pairs, results, &data, &mut out);
    claims::section(words.claims, &mut out);
    seeded::section(results, &data, &mut out);
    many::many(results, words.notes, &data, &mut out);
    for (index, result) in results.iter().enumerate() {
        if result.summary.plan.is_some() {
            planned::sections(result, &data, index, results.len() > 1, &mut out);
        }
    }
    summaries(results, &data, &mut out);
    systems::systems(results, &data, &mut out);
    foot(results, &mut out);
    let _ = write!(
        out,
        "</main>\n<script type=\"application/json\" id=\"fanin-data\">{}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        json_for_script(&data)
    );
    out
}

/// The verdict on one result, as at the head of its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// `good`, `bad` or `open`.
    pub standing: &'static str,
    /// The verdict in a few words.
    pub words: &'static str,
    /// The figures of the verdict as HTML; may be empty.
    pub html: String,
}

/// Judges one result.
pub fn headline(result: &RunResult) -> Headline {
    let data = data(std::slice::from_ref(result), &[], &Pictures::default(), &[]);
    let verdict = verdict::verdict(&result.summary, &data, "/results/0/summary");
    Headline { standing: verdict.standing.class(), words: verdict.words, html: verdict.sentence }
}

/// Labels a sweep's numbered points with the settings that differ. Adds seeds if several points have the same settings.
pub(crate) fn label_by_settings(results: &mut [RunResult]) {
    // Sweeps that can be resumed name their points by 128-bit hashes.
    let is_number = |label: &str| {
        !label.is_empty() && label.chars().all(|digit| digit.is_ascii_digit())
            || label.len() == 32 && label.chars().all(|digit| digit.is_ascii_hexdigit())
    };
    if results.len() < 2
        || !results.iter().all(|result| is_number(result.label.rsplit('/').next().unwrap_or("")))
    {
        return;
    }
    // Settings whose values only repeat those of another setting are not named.
    let differing = swept::swept(results);
    let has_seeds = swept::has_seeds(results);
    if differing.len() > 3 || differing.is_empty() && !has_seeds {
        return;
    }
    let mut labels: Vec<String> = (0..results.len())
        .map(|index| {
            let setting = |(key, values): &(String, Vec<Option<String>>)| {
                Some(format!("{} {}", swept::label(key), values[index].as_deref()?))
            };
            differing.iter().filter_map(setting).collect::<Vec<_>>().join(", ")
        })
        .collect();
    let are_unique = labels.iter().collect::<BTreeSet<_>>().len() == labels.len();
    if has_seeds && !are_unique {
        for (label, result) in labels.iter_mut().zip(&*results) {
            let seed = result.summary.seed.map_or_else(String::new, |seed| seed.to_string());
            *label = if label.is_empty() { format!("Seed {seed}") } else { format!("{label}, seed {seed}") };
        }
    }
    for (result, label) in results.iter_mut().zip(labels) {
        result.label = label;
    }
}

/// Makes the page's data: summaries, chosen settings, comparisons, and the charts' points.
fn data(results: &[RunResult], charts: &[Chart], pictures: &Pictures, pairs: &[ComparedPair]) -> Value {
    let values: Vec<Value> = results
        .iter()
        .map(|result| {
            // A summary with a figure that JSON cannot hold is left out.
            let summary = serde_json::to_value(&result.summary).unwrap_or_default();
            json!({ "label": result.label, "summary": summary, "settings": systems::settings(result) })
        })
        .collect();
    let drawn = pictures.first.iter().chain(&pictures.others);
    let drawn = drawn.map(|drawing| (drawing.id.clone(), drawing.data.clone()));
    let charts: Map<String, Value> =
        charts.iter().map(|chart| (chart.id.clone(), chart.data())).chain(drawn).collect();
    json!({ "results": values, "seeds": seeded::data(results), "pairs": compared::data(pairs), "charts": charts })
}

fn title(results: &[RunResult]) -> Vec<String> {
    match results {
        [] => vec!["No result".into()],
        [one] => vec![one.summary.scenario.name.clone(), one.summary.kind.name().into()],
        several => {
            let first = &several[0].summary.scenario.name;
            let same = several.iter().all(|result| result.summary.scenario.name == *first);
            let name = if same { first.clone() } else { "Comparison".into() };
            let noun = if seeds::groups(several).len() == 1 { "seeds" } else { "results" };
            vec![name, format!("{} {noun}", several.len())]
        }
    }
}

/// Writes the summary table, with a column for each result. For a single result a further column compares with the ideal.
fn summaries(results: &[RunResult], data: &Value, out: &mut String) {
    let mut body = String::new();
    let single = results.len() == 1;
    let two = results.len() == 2;
    // With many results, only those that have lines in the charts.
    let shown = plots::drawn(results.len());
    for (title, figures) in SECTIONS {
        rows(results, &shown, data, title, figures, &mut body);
    }
    let alone = technique_rows(results, &shown, data, &mut body);
    rows(results, &shown, data, "Cost of this result", COST, &mut body);
    if body.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2>All figures</h2>\n");
    // For many results the pictures and the table above are clearer.
    let is_folded = shown.len() < results.len();
    if is_folded {
        let _ = writeln!(
            out,
            "<details>\n<summary>{} of {} results, evenly chosen</summary>",
            shown.len(),
            results.len()
        );
    }
    out.push_str("<div class=\"scroll\" role=\"region\" aria-label=\"All figures\" tabindex=\"0\">\n<table class=\"all\">\n<thead><tr><td></td>");
    for &index in &shown {
        let result = &results[index];
        if single {
            out.push_str(
                "<th scope=\"col\" class=\"n\">Value</th><th scope=\"col\" class=\"n\">Over ideal</th>",
            );
        } else {
            let _ = write!(
                out,
                "<th scope=\"col\" class=\"n\">{}<bdi>{}</bdi></th>",
                swatch_of(index, results),
                escape(&format::shortened(&result.label, 32))
            );
        }
    }
    if two {
        out.push_str("<th scope=\"col\" class=\"n\">Difference</th>");
    }
    let _ = write!(out, "</tr></thead>\n{body}</table>\n</div>\n");
    if results.len() > 2 {
        let first = escape(&results[0].label);
        let _ = writeln!(out, "<p class=\"note\">Small: the difference from <bdi>{first}</bdi>.</p>");
    }
    if is_folded {
        out.push_str("</details>\n");
    }
    out.push_str(&alone);
    for (index, _) in results.iter().enumerate() {
        if let Some(how) = figure(data, &format!("/results/{index}/summary/ideal/how"), FigureForm::Text) {
            let _ = writeln!(out, "<p class=\"note\">Ideal: {how}</p>");
            break;
        }
    }
    if results.iter().any(|result| result.summary.times().is_some()) {
        out.push_str(
            "<p class=\"note\">p99: 99 % of the events took no longer. The ideal is the time on the wire alone, every header counted.</p>\n",
        );
    }
    out.push_str("</section>\n");
}

fn rows(
    results: &[RunResult],
    shown: &[usize],
    data: &Value,
    title: &str,
    figures: &[Figure],
    body: &mut String,
) {
    let mut lines = String::new();
    // With fewer samples, the quantile would equal the minimum or the maximum.
    let is_known = |index: usize, pointer: &str| {
        let least = match pointer.rsplit('/').next() {
            Some("p99" | "p01") => 100,
            Some("p999") => 1000,
            _ => return true,
        };
        results[index].summary.samples().is_none_or(|samples| samples >= least)
    };
    for row in figures {
        let cells: Vec<Option<String>> = shown
            .iter()
            .map(|&index| {
                let cell = figure(data, &format!("/results/{index}/summary{}", row.pointer), row.form);
                cell.filter(|_| is_known(index, row.pointer))
            })
            .collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(lines, "<tr><th scope=\"row\">{}</th>", escape(row.label));
        cells_with_changes(&cells, shown, row.pointer, row.form, data, &mut lines);
        if shown.len() == 1 {
            let form = if row.form == FigureForm::Bits { FigureForm::Share } else { FigureForm::Factor };
            let share = row.over.and_then(|over| {
                ratio(
                    data,
                    &format!("/results/0/summary{}", row.pointer),
                    &format!("/results/0/summary{over}"),
                    form,
                )
            });
            let _ = write!(lines, "<td class=\"n\">{}</td>", share.unwrap_or_default());
        }
        lines.push_str("</tr>\n");
    }
    section_of_rows(title, &lines, columns(shown), body);
}

/// Returns the number of columns of the summary table: names of rows, results, and ratios or differences.
fn columns(shown: &[usize]) -> usize {
    shown.len() + 1 + usize::from(shown.len() <= 2)
}

/// Writes a row's cells. With two results the difference has its own cell; with more it stands below each figure.
fn cells_with_changes(
    cells: &[Option<String>],
    shown: &[usize],
    pointer: &str,
    form: FigureForm,
    data: &Value,
    lines: &mut String,
) {
    let change = |index: usize| {
        let at = |index: usize| format!("/results/{}/summary{pointer}", shown[index]);
        let is_same = data.pointer(&at(index)) == data.pointer(&at(0));
        let has_both = cells[index].is_some() && cells[0].is_some();
        (index > 0 && has_both && form != FigureForm::Text && !is_same)
            .then(|| ratio(data, &at(index), &at(0), FigureForm::Change))
            .flatten()
    };
    for (index, cell) in cells.iter().enumerate() {
        let below = change(index)
            .filter(|_| cells.len() > 2)
            .filter(|change| !change.contains('±'))
            .map_or(String::new(), |change| format!("<small>{change}</small>"));
        let _ = write!(lines, "<td class=\"n\">{}{below}</td>", cell.as_deref().unwrap_or("–"));
    }
    if cells.len() == 2 {
        let _ = write!(lines, "<td class=\"n\">{}</td>", change(1).unwrap_or_default());
    }
}

/// Writes rows with the figures of each technique. If only one of more than two results has a technique's figures, they are
/// returned as text for below the table.
fn technique_rows(results: &[RunResult], shown: &[usize], data: &Value, body: &mut String) -> String {
    let mut done: Vec<String> = Vec::new();
    let mut alone = String::new();
    for &index in shown {
        for verdict::TechniqueFigures { title, rows } in verdict::techniques(&results[index].summary) {
            if done.contains(&title) {
                continue;
            }
            let cells_of = |pointer: &str, form| -> Vec<Option<String>> {
                let cell = |index| figure(data, &format!("/results/{index}/summary{pointer}"), form);
                shown.iter().map(|&index| cell(index)).collect()
            };
            let is_alone = |(_, pointer, form): &(String, String, FigureForm)| {
                cells_of(pointer, *form).iter().flatten().count() <= 1
            };
            if shown.len() > 2 && rows.iter().all(is_alone) {
                let label = &results[index].label;
                let of = if label.eq_ignore_ascii_case(&title) {
                    String::new()
                } else {
                    format!(" <bdi class=\"of\">{}</bdi>", escape(label))
                };
                let _ = writeln!(alone, "<h3>{title}{of}</h3>\n<dl class=\"settings\">");
                for (label, pointer, form) in rows {
                    let cell = figure(data, &format!("/results/{index}/summary{pointer}"), form);
                    let _ =
                        writeln!(alone, "<div><dt>{label}</dt><dd>{}</dd></div>", cell.unwrap_or_default());
                }
                alone.push_str("</dl>\n");
                done.push(title);
                continue;
            }
            let mut lines = String::new();
            for (label, pointer, form) in rows {
                let cells = cells_of(&pointer, form);
                if cells.iter().all(Option::is_none) {
                    continue;
                }
                let _ = write!(lines, "<tr><th scope=\"row\">{label}</th>");
                cells_with_changes(&cells, shown, &pointer, form, data, &mut lines);
                lines.push_str(if shown.len() == 1 { "<td></td></tr>\n" } else { "</tr>\n" });
            }
            section_of_rows(&title, &lines, columns(shown), body);
            done.push(title);
        }
    }
    alone
}

/// Writes a section of rows, if it has any. `title` is markup.
fn section_of_rows(title: &str, lines: &str, columns: usize, body: &mut String) {
    if !lines.is_empty() {
        let _ = write!(
            body,
            "<tbody>\n<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{columns}\">{title}</th></tr>\n\
             {lines}</tbody>\n"
        );
    }
}

fn foot(results: &[RunResult], out: &mut String) {
    out.push_str("<footer>\n");
    let is_folded = results.len() > LOOKS;
    if is_folded {
        out.push_str("<details>\n<summary>Versions, scenarios and seeds</summary>\n");
    }
    for result in results {
        let summary = &result.summary;
        let mut parts = vec![
            format!("<bdi>{}</bdi>: {}", escape(&result.label), summary.kind.name()),
            format!("Fanin {}", escape(&summary.version)),
        ];
        let optional = [
            ("commit", summary.commit.clone()),
            ("scenario", Some(summary.scenario.hash.clone())),
            ("seed", summary.seed.filter(|_| summary.kind != ResultKind::Plan).map(|seed| seed.to_string())),
        ];
        for (name, value) in optional {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                parts.push(format!("{name} <code>{}</code>", escape(&value)));
            }
        }
        let _ = writeln!(out, "<p>{}</p>", parts.join(", "));
    }
    if is_folded {
        out.push_str("</details>\n");
    }
    out.push_str("</footer>\n");
}
