//! The page: one HTML file that opens offline, shows one result or lays several over each other.
//!
//! All is drawn here, as inline SVG; the script in the page only reads out values under the pointer or
//! the arrow keys. Every figure shown stands in the page's data too (`<script id="fanin-data">`), and the
//! element that shows it names the place there.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use self::chart::{Chart, swatch};
use self::contents::{COST, Figure, SECTIONS, SETTINGS};
use self::format::Form;
use self::markup::{escape, figure, json_for_script, ratio};
use crate::{Kind, RunResult};

mod chart;
mod contents;
mod format;
mod markup;
mod planned;
mod plots;
#[cfg(test)]
mod tests;
mod verdict;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of one result, or of several that are to be compared, as a whole HTML document.
///
/// The document is well-formed XML too. Results without rows have tables but no charts.
pub fn page(results: &[RunResult]) -> String {
    let charts = plots::charts(results);
    let data = data(results, &charts);
    let title = title(results);
    let mut out = String::with_capacity(1 << 18);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        escape(&title.join(" · "))
    );
    head(results, &data, &title, &mut out);
    if !charts.is_empty() {
        out.push_str("<section class=\"charts\">\n<h2>What happened</h2>\n");
        for chart in &charts {
            out.push_str(&chart.html(&data));
        }
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

/// The page's data: summaries, chosen settings, and the charts' points.
fn data(results: &[RunResult], charts: &[Chart]) -> Value {
    let results: Vec<Value> = results
        .iter()
        .map(|result| {
            // A summary that holds a figure JSON has no word for shows nothing of it.
            let summary = serde_json::to_value(&result.summary).unwrap_or_default();
            json!({ "label": result.label, "summary": summary, "settings": settings(result) })
        })
        .collect();
    let charts: Map<String, Value> = charts.iter().map(|chart| (chart.id.clone(), chart.data())).collect();
    json!({ "results": results, "charts": charts })
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

fn head(results: &[RunResult], data: &Value, title: &[String], out: &mut String) {
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
    for (index, result) in results.iter().enumerate() {
        let at = format!("/results/{index}/summary");
        let verdict = verdict::verdict(&result.summary, data, &at);
        let label = if several {
            format!("<p class=\"label\">{}<bdi>{}</bdi></p>\n", swatch(index), escape(&result.label))
        } else {
            String::new()
        };
        let warnings =
            result.summary.plan.as_ref().map_or(String::new(), |plan| planned::warnings(plan, data, &at));
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
    }
    out.push_str("</header>\n");
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
        ("Mean time", figure(data, &mean, Form::Millis), ratio(data, &mean, &ideal, Form::Factor), " ideal"),
        ("99 % within", figure(data, &p99, Form::Millis), ratio(data, &p99, &ideal, Form::Factor), " ideal"),
        (
            "Goodput a collector",
            figure(data, &goodput, Form::Bits),
            ratio(data, &goodput, &at("ideal/goodput_bps"), Form::Share),
            " of ideal",
        ),
        ("Frames dropped", figure(data, &at("network/drops"), Form::Number), None, ""),
        ("Time-outs", figure(data, &at("tcp/timeouts"), Form::Number), None, ""),
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

/// The summary table: a column a result; a single result's figures stand beside their ideal.
fn summaries(results: &[RunResult], data: &Value, out: &mut String) {
    let mut body = String::new();
    let single = results.len() == 1;
    for (title, figures) in SECTIONS {
        rows(results, data, title, figures, single, &mut body);
    }
    technique_rows(results, data, single, &mut body);
    rows(results, data, "What this result cost", COST, single, &mut body);
    if body.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2>All figures</h2>\n");
    out.push_str("<div class=\"scroll\" role=\"region\" aria-label=\"All figures\" tabindex=\"0\">\n<table class=\"all\">\n<thead><tr><td></td>");
    for (index, result) in results.iter().enumerate() {
        if single {
            out.push_str(
                "<th scope=\"col\" class=\"n\">Value</th><th scope=\"col\" class=\"n\">Over ideal</th>",
            );
        } else {
            let _ = write!(
                out,
                "<th scope=\"col\" class=\"n\">{}<bdi>{}</bdi></th>",
                swatch(index),
                escape(&result.label)
            );
        }
    }
    let _ = write!(out, "</tr></thead>\n{body}</table>\n</div>\n");
    for (index, _) in results.iter().enumerate() {
        if let Some(how) = figure(data, &format!("/results/{index}/summary/ideal/how"), Form::Text) {
            let _ = writeln!(out, "<p class=\"note\">Ideal: {how}</p>");
            break;
        }
    }
    if results.iter().any(|result| result.summary.times().is_some()) {
        out.push_str(
            "<p class=\"note\">“99 % within” is the smallest time that occurred and that at least 99 % of the \
             events did not exceed. The ideal is the time on the wire alone, every header counted.</p>\n",
        );
    }
    out.push_str("</section>\n");
}

fn rows(
    results: &[RunResult],
    data: &Value,
    title: &str,
    figures: &[Figure],
    single: bool,
    body: &mut String,
) {
    let mut lines = String::new();
    for row in figures {
        let cells: Vec<Option<String>> = (0..results.len())
            .map(|index| figure(data, &format!("/results/{index}/summary{}", row.pointer), row.form))
            .collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(lines, "<tr><th scope=\"row\">{}</th>", escape(row.label));
        for cell in cells {
            let _ = write!(lines, "<td class=\"n\">{}</td>", cell.unwrap_or_else(|| "–".into()));
        }
        if single {
            let form = if row.form == Form::Bits { Form::Share } else { Form::Factor };
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
    section_of_rows(title, &lines, results.len() + 1 + usize::from(single), body);
}

fn technique_rows(results: &[RunResult], data: &Value, single: bool, body: &mut String) {
    let mut shown: Vec<String> = Vec::new();
    for result in results {
        for verdict::Technique { title, rows } in verdict::techniques(&result.summary) {
            if shown.contains(&title) {
                continue;
            }
            let mut lines = String::new();
            for (label, pointer, form) in rows {
                let cells: Vec<Option<String>> = (0..results.len())
                    .map(|index| figure(data, &format!("/results/{index}/summary{pointer}"), form))
                    .collect();
                if cells.iter().all(Option::is_none) {
                    continue;
                }
                let _ = write!(lines, "<tr><th scope=\"row\">{label}</th>");
                for cell in cells {
                    let _ = write!(lines, "<td class=\"n\">{}</td>", cell.unwrap_or_else(|| "–".into()));
                }
                lines.push_str(if single { "<td></td></tr>\n" } else { "</tr>\n" });
            }
            section_of_rows(&title, &lines, results.len() + 1 + usize::from(single), body);
            shown.push(title);
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

/// What system each result belongs to; results of one scenario share one description.
fn systems(results: &[RunResult], data: &Value, out: &mut String) {
    let mut seen: Vec<&Option<String>> = Vec::new();
    let mut parts = String::new();
    for (index, result) in results.iter().enumerate() {
        let Some(scenario) = &result.scenario_toml else { continue };
        if seen.contains(&&result.scenario_toml) {
            continue;
        }
        seen.push(&result.scenario_toml);
        if results.len() > 1 {
            let _ = writeln!(parts, "<h3>{}<bdi>{}</bdi></h3>", swatch(index), escape(&result.label));
        }
        let settings: Vec<(String, &str)> = SETTINGS
            .iter()
            .filter_map(|(name, label)| {
                let pointer = format!("/results/{index}/settings/{}", markup::pointer_part(name));
                Some((figure(data, &pointer, Form::Text)?, *label))
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
            ("seed", summary.seed.filter(|_| summary.kind != Kind::Plan).map(|seed| seed.to_string())),
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
