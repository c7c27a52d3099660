//! The page: one HTML file that opens offline, shows one result or lays several over each other.
//!
//! All is drawn here, as inline SVG; the script in the page only reads out values under the pointer or
//! the arrow keys. Every figure shown stands in the page's data too (`<script id="fanin-data">`), and the
//! element that shows it names the place there.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use self::chart::{Chart, LOOKS, swatch};
use self::compared::ComparedPair;
use self::contents::{COST, Figure, POINT, SECTIONS, SETTINGS};
use self::format::FigureForm;
use self::markup::{escape, figure, json_for_script, ratio};
use self::pictured::Pictures;
use crate::{ResultKind, RunResult};

mod chart;
mod compared;
mod contents;
mod format;
mod heat;
mod markup;
mod network;
mod pictured;
mod planned;
mod plots;
mod swept;
#[cfg(test)]
mod tests;
mod verdict;
mod waterfall;

pub(crate) use self::format::significant;

/// Bytes for people.
pub(crate) fn bytes_text(bytes: u64) -> String {
    format::format_f64(bytes as f64, FigureForm::Bytes)
}

/// Verdicts of more results stand in a table.
const VERDICTS_MAX: usize = 4;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of one result, or of several that are to be compared, as a whole HTML document.
///
/// The document is well-formed XML too. Results without rows have tables but no charts.
pub fn page(results: &[RunResult]) -> String {
    let charts = plots::charts(results);
    let pairs = compared::pairs(results);
    let pictures = pictured::pictures(results);
    let data = data(results, &charts, &pictures, &pairs);
    let title = title(results);
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
    head(results, &data, &title, &pictures, &mut out);
    compared::section(&pairs, results, &data, &mut out);
    if !charts.is_empty() || !pictures.others.is_empty() {
        out.push_str("<section class=\"charts\">\n<h2>What happened</h2>\n");
        pictures.others.iter().for_each(|drawing| out.push_str(&drawing.html));
        charts.iter().for_each(|chart| out.push_str(&chart.html(&data)));
        out.push_str("</section>\n");
    }
    for (index, result) in results.iter().enumerate() {
        if result.summary.plan.is_some() {
            planned::sections(result, &data, index, results.len() > 1, &mut out);
        }
    }
    summaries(results, &data, &mut out);
    systems(results, &data, &mut out);
    foot(results, &mut out);
    let _ = write!(
        out,
        "</main>\n<script type=\"application/json\" id=\"fanin-data\">{}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        json_for_script(&data)
    );
    out
}

/// How one result came out: the verdict at the head of its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// `good`, `bad` or `open`.
    pub standing: &'static str,
    /// The verdict in a few words.
    pub words: &'static str,
    /// The figures behind it as HTML, which may be empty.
    pub html: String,
}

/// The verdict on one result.
pub fn headline(result: &RunResult) -> Headline {
    let data = data(std::slice::from_ref(result), &[], &Pictures::default(), &[]);
    let verdict = verdict::verdict(&result.summary, &data, "/results/0/summary");
    Headline { standing: verdict.standing.class(), words: verdict.words, html: verdict.sentence }
}

/// Names the points of a sweep, which are called by numbers, after the settings in which they differ.
pub(crate) fn label_by_settings(results: &mut [RunResult]) {
    // Sweeps that can be resumed call them by 128-bit hashes.
    let is_number = |label: &str| {
        !label.is_empty() && label.chars().all(|digit| digit.is_ascii_digit())
            || label.len() == 32 && label.chars().all(|digit| digit.is_ascii_hexdigit())
    };
    if results.len() < 2
        || !results.iter().all(|result| is_number(result.label.rsplit('/').next().unwrap_or("")))
    {
        return;
    }
    let differing = swept::differing(results);
    if differing.is_empty() || differing.len() > 3 {
        return;
    }
    for (index, result) in results.iter_mut().enumerate() {
        let parts: Vec<String> = differing
            .iter()
            .filter_map(|(key, values)| {
                let value = values[index].as_deref()?;
                Some(format!("{} {value}", swept::label(key)))
            })
            .collect();
        result.label = parts.join(", ");
    }
}

/// The page's data: summaries, chosen settings, comparisons, and the charts' points.
fn data(results: &[RunResult], charts: &[Chart], pictures: &Pictures, pairs: &[ComparedPair]) -> Value {
    let results: Vec<Value> = results
        .iter()
        .map(|result| {
            // A summary that holds a figure JSON has no word for shows nothing of it.
            let summary = serde_json::to_value(&result.summary).unwrap_or_default();
            json!({ "label": result.label, "summary": summary, "settings": settings(result) })
        })
        .collect();
    let drawn = pictures.first.iter().chain(&pictures.others);
    let drawn = drawn.map(|drawing| (drawing.id.clone(), drawing.data.clone()));
    let charts: Map<String, Value> =
        charts.iter().map(|chart| (chart.id.clone(), chart.data())).chain(drawn).collect();
    json!({ "results": results, "pairs": compared::data(pairs), "charts": charts })
}

/// The scenario's chosen settings that it has, by their dotted names.
fn settings(result: &RunResult) -> Map<String, Value> {
    let Some(table) = result.scenario_toml.as_ref().and_then(|text| text.parse::<toml::Table>().ok()) else {
        return Map::new();
    };
    let tree = toml::Value::Table(table);
    SETTINGS
        .iter()
        .filter_map(|(name, _)| {
            let value = name.split('.').try_fold(&tree, |tree, key| tree.get(key))?;
            let text = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Table(_) | toml::Value::Array(_) => return None,
                plain => plain.to_string(),
            };
            Some(((*name).to_owned(), Value::String(text)))
        })
        .collect()
}

fn title(results: &[RunResult]) -> Vec<String> {
    match results {
        [] => vec!["No result".into()],
        [one] => vec![one.summary.scenario.name.clone(), one.summary.kind.name().into()],
        several => {
            let first = &several[0].summary.scenario.name;
            let same = several.iter().all(|result| result.summary.scenario.name == *first);
            let name = if same { first.clone() } else { "Comparison".into() };
            vec![name, format!("{} results", several.len())]
        }
    }
}

fn head(results: &[RunResult], data: &Value, title: &[String], pictures: &Pictures, out: &mut String) {
    let [name, kind] = title else {
        let _ = writeln!(out, "<header><h1>{}</h1></header>", escape(&title.join(" ")));
        return;
    };
    let _ = writeln!(
        out,
        "<header>\n<p class=\"kind\">Fanin {}</p>\n<h1><bdi>{}</bdi></h1>",
        escape(kind),
        escape(name)
    );
    let several = results.len() > 1;
    if results.len() > VERDICTS_MAX {
        points(results, data, out);
        let mut cautions: BTreeMap<String, usize> = BTreeMap::new();
        for caution in results.iter().flat_map(RunResult::cautions) {
            *cautions.entry(caution).or_default() += 1;
        }
        for (caution, count) in cautions {
            let _ = writeln!(
                out,
                "<p class=\"note\">{count} of {} results: {}.</p>",
                results.len(),
                escape(&caution)
            );
        }
        out.push_str("</header>\n");
        return;
    }
    let is_split = !pictures.first.is_empty();
    if is_split {
        out.push_str("<div class=\"first\">\n<div class=\"said\">\n");
    }
    for (index, result) in results.iter().enumerate() {
        let at = format!("/results/{index}/summary");
        let verdict = verdict::verdict(&result.summary, data, &at);
        let label = if several {
            format!(
                "<p class=\"label\">{}<bdi>{}</bdi></p>\n",
                swatch_of(index, results),
                escape(&result.label)
            )
        } else {
            String::new()
        };
        let mut warnings =
            result.summary.plan.as_ref().map_or(String::new(), |plan| planned::warnings(plan, data, &at));
        for caution in result.cautions() {
            let _ = writeln!(warnings, "<p class=\"warning\">{}.</p>", escape(&caution));
        }
        let _ = writeln!(
            out,
            "<div class=\"verdict {}\">\n{label}<p><strong>{}.</strong> {}</p>\n{warnings}</div>",
            verdict.standing.class(),
            verdict.words,
            verdict.sentence
        );
    }
    if let [result] = results {
        key_figures(result, data, out);
        ports(result, data, out);
    }
    if is_split {
        out.push_str("</div>\n<div class=\"shown\">\n");
        pictures.first.iter().for_each(|drawing| out.push_str(&drawing.html));
        out.push_str("</div>\n</div>\n");
    }
    out.push_str("</header>\n");
}

/// The swatch of a result, where it has lines of its own.
fn swatch_of(index: usize, results: &[RunResult]) -> String {
    plots::look(index, results.len()).map_or(String::new(), swatch)
}

/// Many results, a line each.
fn points(results: &[RunResult], data: &Value, out: &mut String) {
    out.push_str(
        "<div class=\"scroll\" role=\"region\" aria-label=\"Results\" tabindex=\"0\">\n<table class=\"points\">\n<thead><tr>\
         <th scope=\"col\">Result</th>",
    );
    let is_known = |index: usize, row: &Figure| {
        data.pointer(&format!("/results/{index}/summary{}", row.pointer)).is_some()
            && (row.label != "p99" || results[index].summary.has_p99())
    };
    let has = |row: &&Figure| (0..results.len()).any(|index| is_known(index, row));
    let columns: Vec<&Figure> = POINT.iter().filter(has).collect();
    for row in &columns {
        let _ = write!(out, "<th scope=\"col\" class=\"n\">{}</th>", escape(row.label));
    }
    out.push_str("<th scope=\"col\">Verdict</th></tr></thead>\n<tbody>\n");
    for (index, result) in results.iter().enumerate() {
        let at = format!("/results/{index}/summary");
        let verdict = verdict::verdict(&result.summary, data, &at);
        let _ = write!(
            out,
            "<tr class=\"{}\"><th scope=\"row\">{}<bdi>{}</bdi></th>",
            verdict.standing.class(),
            swatch_of(index, results),
            escape(&result.label)
        );
        for row in &columns {
            let cell = figure(data, &format!("{at}{}", row.pointer), row.form);
            let cell = cell.filter(|_| is_known(index, row)).unwrap_or_else(|| "–".into());
            let _ = write!(out, "<td class=\"n\">{cell}</td>");
        }
        let _ = writeln!(out, "<td><strong>{}</strong></td></tr>", verdict.short());
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

/// The handful of figures that most people came for.
fn key_figures(result: &RunResult, data: &Value, out: &mut String) {
    let times =
        if result.summary.collection_time_ms.is_some() { "collection_time_ms" } else { "requests/time_ms" };
    let at = |key: &str| format!("/results/0/summary/{key}");
    let (mean, p99, ideal) =
        (at(&format!("{times}/mean")), at(&format!("{times}/p99")), at(&format!("{times}/ideal")));
    let goodput = at("goodput_bps/per_collector_mean");
    let tiles = [
        (
            "Mean time",
            figure(data, &mean, FigureForm::Millis),
            ratio(data, &mean, &ideal, FigureForm::Factor),
            " ideal",
        ),
        (
            "p99",
            figure(data, &p99, FigureForm::Millis).filter(|_| result.summary.has_p99()),
            ratio(data, &p99, &ideal, FigureForm::Factor),
            " ideal",
        ),
        (
            "Goodput a collector",
            figure(data, &goodput, FigureForm::Bits),
            ratio(data, &goodput, &at("ideal/goodput_bps"), FigureForm::Share),
            " of ideal",
        ),
        ("Frames dropped", figure(data, &at("network/drops"), FigureForm::Number), None, ""),
        ("Time-outs", figure(data, &at("tcp/timeouts"), FigureForm::Number), None, ""),
    ];
    let mut tiles =
        tiles.into_iter().filter_map(|(label, value, below, of)| Some((label, value?, below, of)));
    let Some(first) = tiles.next() else { return };
    out.push_str("<dl class=\"key\">\n");
    for (label, value, below, of) in std::iter::once(first).chain(tiles) {
        let below = below.map_or(String::new(), |below| format!("<small>{below}{of}</small>"));
        let _ = writeln!(out, "<div><dt>{label}</dt><dd>{value}{below}</dd></div>");
    }
    out.push_str("</dl>\n");
}

/// The outputs that dropped frames or filled up.
fn ports(result: &RunResult, data: &Value, out: &mut String) {
    if result.summary.ports.is_empty() {
        return;
    }
    out.push_str(
        "<h2>Where</h2>\n<table class=\"ports\">\n<thead><tr><th scope=\"col\">Port</th><th scope=\"col\" class=\"n\">Dropped</th>\
         <th scope=\"col\" class=\"n\">Deepest</th><th scope=\"col\" class=\"n\">Limit</th><th scope=\"col\" class=\"n\">Used</th></tr></thead>\n<tbody>\n",
    );
    for (row, port) in result.summary.ports.iter().enumerate() {
        let cell = |key: &str, form| {
            let cell = figure(data, &format!("/results/0/summary/ports/{row}/{key}"), form);
            format!("<td class=\"n\">{}</td>", cell.unwrap_or_else(|| "–".into()))
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><bdi>{}</bdi></th>{}{}{}{}</tr>",
            escape(&format::typeset(&port.name)),
            cell("drops", FigureForm::Number),
            cell("queue_bytes_max", FigureForm::Bytes),
            cell("limit_bytes", FigureForm::Bytes),
            cell("utilisation", FigureForm::Share)
        );
    }
    out.push_str("</tbody>\n</table>\n");
}

/// The summary table: a column for each result; a single result's figures with their ideal.
fn summaries(results: &[RunResult], data: &Value, out: &mut String) {
    let mut body = String::new();
    let single = results.len() == 1;
    let two = results.len() == 2;
    // Of many those that have lines in the charts.
    let shown = plots::drawn(results.len());
    for (title, figures) in SECTIONS {
        rows(&shown, data, title, figures, &mut body);
    }
    technique_rows(results, &shown, data, &mut body);
    rows(&shown, data, "Cost of this result", COST, &mut body);
    if body.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2>All figures</h2>\n");
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
                escape(&result.label)
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
        if shown.len() < results.len() {
            out.push_str(
                "<p class=\"note\">Of so many results those stand here that have lines in the charts.</p>\n",
            );
        }
    }
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

fn rows(shown: &[usize], data: &Value, title: &str, figures: &[Figure], body: &mut String) {
    let mut lines = String::new();
    for row in figures {
        let cells: Vec<Option<String>> = shown
            .iter()
            .map(|index| figure(data, &format!("/results/{index}/summary{}", row.pointer), row.form))
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

/// Columns of the summary table, the rows' names and the last one of ratios or differences counted.
fn columns(shown: &[usize]) -> usize {
    shown.len() + 1 + usize::from(shown.len() <= 2)
}

/// A row's cells; where there are two the difference has a cell of its own, where there are more it stands below.
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
        (index > 0 && form != FigureForm::Text && !is_same)
            .then(|| ratio(data, &at(index), &at(0), FigureForm::Change))
            .flatten()
    };
    for (index, cell) in cells.iter().enumerate() {
        let below = change(index)
            .filter(|_| cells.len() > 2)
            .map_or(String::new(), |change| format!("<small>{change}</small>"));
        let _ = write!(lines, "<td class=\"n\">{}{below}</td>", cell.as_deref().unwrap_or("–"));
    }
    if cells.len() == 2 {
        let _ = write!(lines, "<td class=\"n\">{}</td>", change(1).unwrap_or_default());
    }
}

fn technique_rows(results: &[RunResult], shown: &[usize], data: &Value, body: &mut String) {
    let mut done: Vec<String> = Vec::new();
    for &index in shown {
        for verdict::TechniqueFigures { title, rows } in verdict::techniques(&results[index].summary) {
            if done.contains(&title) {
                continue;
            }
            let mut lines = String::new();
            for (label, pointer, form) in rows {
                let cells: Vec<Option<String>> = shown
                    .iter()
                    .map(|index| figure(data, &format!("/results/{index}/summary{pointer}"), form))
                    .collect();
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
}

/// `title` is markup.
fn section_of_rows(title: &str, lines: &str, columns: usize, body: &mut String) {
    if !lines.is_empty() {
        let _ = write!(
            body,
            "<tbody>\n<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{columns}\">{title}</th></tr>\n\
             {lines}</tbody>\n"
        );
    }
}

/// The system of each result; results of one scenario share one description.
fn systems(results: &[RunResult], data: &Value, out: &mut String) {
    let mut seen: Vec<&RunResult> = Vec::new();
    let mut parts = String::new();
    for (index, result) in results.iter().enumerate() {
        let Some(scenario) = &result.scenario_toml else { continue };
        if seen.iter().any(|other| compared::settings(other, result).is_empty()) {
            continue;
        }
        if results.len() > LOOKS && !seen.is_empty() {
            parts.push_str("<p class=\"note\">The others differ from it as their names say.</p>\n");
            break;
        }
        seen.push(result);
        if results.len() > 1 {
            let _ =
                writeln!(parts, "<h3>{}<bdi>{}</bdi></h3>", swatch_of(index, results), escape(&result.label));
        }
        let settings: Vec<(String, &str)> = SETTINGS
            .iter()
            .filter_map(|(name, label)| {
                let pointer = format!("/results/{index}/settings/{}", markup::pointer_part(name));
                Some((figure(data, &pointer, FigureForm::Text)?, *label))
            })
            .collect();
        if !settings.is_empty() {
            parts.push_str("<dl class=\"settings\">\n");
            for (value, label) in settings {
                let _ = writeln!(parts, "<div><dt>{label}</dt><dd>{value}</dd></div>");
            }
            parts.push_str("</dl>\n");
        }
        let _ = writeln!(
            parts,
            "<details><summary>The whole scenario</summary>\n<pre>{}</pre></details>",
            escape(scenario)
        );
    }
    if !parts.is_empty() {
        let _ = write!(out, "<section>\n<h2>The system</h2>\n{parts}</section>\n");
    }
}

fn foot(results: &[RunResult], out: &mut String) {
    out.push_str("<footer>\n");
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
    out.push_str("</footer>\n");
}
