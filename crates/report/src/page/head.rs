//! The first screen: the verdicts on the results. A single result also has its figures, ports and picture there.

use std::fmt::Write;

use serde_json::Value;

use super::compared::{self, ComparedPair};
use super::format::{self, FigureForm};
use super::markup::{escape, figure, ratio};
use super::pictured::Pictures;
use super::plots::swatch_of;
use super::verdict::{self, VERDICTS_MAX};
use super::words::PageWords;
use super::{claims, many, planned, seeded};
use crate::{RunResult, cautions_of, seeds};

/// Writes the head of the page: the verdicts, and for a single result its figures and picture.
pub(super) fn head(
    results: &[RunResult],
    data: &Value,
    title: &[String],
    pictures: &Pictures,
    pairs: &[ComparedPair],
    words: &PageWords<'_>,
    out: &mut String,
) {
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
    if let Some(title) = system_title(results).filter(|title| title != name) {
        let _ = writeln!(out, "<p class=\"kind\">{}</p>", escape(&title));
    }
    claims::head(words.claims, out);
    answer(words.answer, out);
    let several = results.len() > 1;
    let is_split = !pictures.first.is_empty();
    if is_split {
        out.push_str("<div class=\"first\">\n<div class=\"said\">\n");
    }
    let has_seeds = seeds::groups(results).len() == 1;
    if results.len() > VERDICTS_MAX || has_seeds {
        if words.claims.is_empty() && words.answer.is_empty() {
            many::together(results, data, out);
        }
        if has_seeds {
            seeded::tiles(data, out);
        } else {
            compared::head(pairs, results, data, out);
        }
        cautions(results, out);
        shown(is_split, pictures, out);
        return;
    }
    if several {
        let _ = writeln!(out, "<div class=\"verdicts of-{}\">", results.len());
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
        if let Some(text) = figure(data, &format!("{at}/overload/text"), FigureForm::Sentence) {
            let _ = writeln!(warnings, "<p class=\"warning\">{text}</p>");
        }
        // With several results, each caution has one line for all of them.
        for caution in result.cautions().iter().filter(|_| !several) {
            let _ = writeln!(warnings, "<p class=\"warning\">{}.</p>", escape(caution));
        }
        let _ = writeln!(
            out,
            "<div class=\"verdict {}\">\n{label}{}<p><strong>{}.</strong> {}</p>\n{warnings}</div>",
            verdict.standing.class(),
            verdict.badge.as_ref().map_or(String::new(), |badge| format!("<p class=\"badge\">{badge}</p>\n")),
            if several { verdict.short() } else { verdict.words },
            verdict.sentence
        );
    }
    if several {
        out.push_str("</div>\n");
        compared::head(pairs, results, data, out);
        cautions(results, out);
    }
    if let [result] = results {
        key_figures(result, data, out);
        ports(result, data, out);
    }
    shown(is_split, pictures, out);
}

/// Writes the answer of a command. Its second sentence is the finding, and is emphasised.
fn answer(sentences: &[String], out: &mut String) {
    if sentences.is_empty() {
        return;
    }
    out.push_str("<div class=\"verdict answer\">\n");
    for (place, sentence) in sentences.iter().enumerate() {
        let sentence = escape(&format::sentence(&format::typeset(sentence)));
        let sentence = if place == 1 { format!("<strong>{sentence}</strong>") } else { sentence };
        let _ = writeln!(out, "<p>{sentence}</p>");
    }
    out.push_str("</div>\n");
}

/// Writes the pictures next to the verdict, and ends the head.
fn shown(is_split: bool, pictures: &Pictures, out: &mut String) {
    if is_split {
        out.push_str("</div>\n<div class=\"shown\">\n");
        pictures.first.iter().for_each(|drawing| out.push_str(&drawing.html));
        out.push_str("</div>\n</div>\n");
    }
    out.push_str("</header>\n");
}

/// Returns the title of the scenario if all results have the same title.
fn system_title(results: &[RunResult]) -> Option<String> {
    let title = |result: &RunResult| {
        let tree = result.scenario_toml.as_ref()?.parse::<toml::Table>().ok()?;
        Some(tree.get("title")?.as_str()?.to_owned()).filter(|title| !title.is_empty())
    };
    let first = title(results.first()?)?;
    results.iter().all(|result| title(result).as_ref() == Some(&first)).then_some(first)
}

/// Writes the cautions about several results, a line each.
fn cautions(results: &[RunResult], out: &mut String) {
    for (caution, count) in cautions_of(results) {
        let _ = writeln!(
            out,
            "<p class=\"note\">{count} of {} results: {}.</p>",
            results.len(),
            escape(&caution)
        );
    }
}

/// Writes the few most important figures.
fn key_figures(result: &RunResult, data: &Value, out: &mut String) {
    let times =
        if result.summary.collection_time_ms.is_some() { "collection_time_ms" } else { "requests/time_ms" };
    let at = |key: &str| format!("/results/0/summary/{key}");
    let (mean, p99, ideal) =
        (at(&format!("{times}/mean")), at(&format!("{times}/p99")), at(&format!("{times}/ideal")));
    let goodput = at("goodput_bps/per_collector_mean");
    let (slow_mean, slow_p99) = (at("slowdown/mean"), at("slowdown/p99"));
    let has_events = result.summary.events.is_some();
    // Events of different sizes have different ideals. The slowdown accounts for that.
    let over = |time: &str| ratio(data, time, &ideal, FigureForm::Factor).filter(|_| !has_events);
    let slow_p99 = figure(data, &slow_p99, FigureForm::Factor).filter(|_| result.summary.has_p99());
    let tiles = [
        ("Mean time", figure(data, &mean, FigureForm::Millis), over(&mean), " ideal"),
        (
            "p99",
            figure(data, &p99, FigureForm::Millis).filter(|_| result.summary.has_p99()),
            over(&p99),
            " ideal",
        ),
        (
            "Slowdown",
            figure(data, &slow_mean, FigureForm::Factor).filter(|_| has_events),
            slow_p99,
            " at <bdi>p99</bdi>",
        ),
        if has_events {
            // Such systems carry what is offered, which is less than the ideal.
            let load = figure(data, &at("load/last_hop"), FigureForm::Share);
            ("Goodput each", figure(data, &goodput, FigureForm::Bits), load, " of the link used")
        } else {
            let share = ratio(data, &goodput, &at("ideal/goodput_bps"), FigureForm::Share);
            ("Goodput each", figure(data, &goodput, FigureForm::Bits), share, " of ideal")
        },
        ("Frames dropped", figure(data, &at("network/drops"), FigureForm::Number), None, ""),
        ("Timeouts", figure(data, &at("tcp/timeouts"), FigureForm::Number), None, ""),
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

/// Writes the outputs that dropped frames or filled up.
fn ports(result: &RunResult, data: &Value, out: &mut String) {
    if result.summary.ports.is_empty() {
        return;
    }
    out.push_str(
        "<h2>Where</h2>\n<table class=\"ports where\">\n<thead><tr><th scope=\"col\">Port</th><th scope=\"col\" class=\"n\">Dropped</th>\
         <th scope=\"col\" class=\"n\">Deepest</th><th scope=\"col\" class=\"n\">Limit</th><th scope=\"col\" class=\"n\">Used</th></tr></thead>\n<tbody>\n",
    );
    for (row, port) in result.summary.ports.iter().enumerate() {
        let cell = |key: &str, label: &str, form| {
            let cell = figure(data, &format!("/results/0/summary/ports/{row}/{key}"), form);
            format!("<td class=\"n\" data-label=\"{label}\">{}</td>", cell.unwrap_or_else(|| "–".into()))
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><bdi>{}</bdi>{}</th>{}{}{}{}</tr>",
            escape(&format::typeset(&port.name)),
            losses(row, data),
            cell("drops", "Dropped", FigureForm::Number),
            cell("queue_bytes_max", "Deepest", FigureForm::Bytes),
            cell("limit_bytes", "Limit", FigureForm::Bytes),
            cell("utilisation", "Used", FigureForm::Share)
        );
    }
    out.push_str("</tbody>\n</table>\n");
    connections(result, data, out);
}

/// Returns the bytes that an output dropped and the time of the drops, for the line below its name.
fn losses(row: usize, data: &Value) -> String {
    let at = |key: &str| format!("/results/0/summary/ports/{row}/{key}");
    let bytes = figure(data, &at("dropped_bytes"), FigureForm::Bytes).filter(|_| {
        data.pointer(&at("dropped_bytes")).and_then(Value::as_u64).is_some_and(|bytes| bytes > 0)
    });
    let first = figure(data, &at("first_drop_ms"), FigureForm::Millis);
    let last = figure(data, &at("last_drop_ms"), FigureForm::Millis);
    match (bytes, first.zip(last)) {
        (Some(bytes), Some((first, last))) => {
            let limit = figure(data, &at("first_drop_limit_bytes"), FigureForm::Bytes);
            let limit = limit.map_or(String::new(), |limit| format!("; limit {limit} at the first drop"));
            format!(" <small>{bytes} dropped, from {first} to {last}{limit}</small>")
        }
        (Some(bytes), None) => format!(" <small>{bytes} dropped</small>"),
        _ => String::new(),
    }
}

/// Writes the connections that timed out most.
fn connections(result: &RunResult, data: &Value, out: &mut String) {
    if result.summary.connections.is_empty() {
        return;
    }
    out.push_str(
        "<details>\n<summary>Connections that timed out most, in the whole run</summary>\n<table class=\"ports\">\n<thead><tr><th scope=\"col\">Connection</th>\
         <th scope=\"col\" class=\"n\">Timeouts</th><th scope=\"col\" class=\"n\">Sent again</th></tr></thead>\n<tbody>\n",
    );
    for (row, connection) in result.summary.connections.iter().enumerate() {
        let cell = |key: &str| {
            let cell =
                figure(data, &format!("/results/0/summary/connections/{row}/{key}"), FigureForm::Number);
            format!("<td class=\"n\">{}</td>", cell.unwrap_or_else(|| "–".into()))
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><bdi>{}</bdi></th>{}{}</tr>",
            escape(&format::typeset(&connection.name)),
            cell("timeouts"),
            cell("retransmits")
        );
    }
    out.push_str("</tbody>\n</table>\n</details>\n");
}
