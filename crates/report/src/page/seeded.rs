//! Results with several seeds: means of their figures with intervals, and the systems that these intervals separate.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::format::FigureForm;
use super::many::unbroken;
use super::markup::{escape, figure};
use super::points::{self, PointColumn};
use crate::seeds::{SeedFigure, SeedGroup, groups, least, seed_figures};
use crate::{FigureUnit, RunResult, Summary};

/// The shown figures: the column of a sweep, and the label.
const SHOWN: [(&str, &str); 8] = [
    ("time_ms_mean", "Mean time"),
    ("time_ms_p99", "p99"),
    ("time_ms_max", "Largest"),
    ("slowdown_mean", "Slowdown"),
    ("goodput_bps", "Goodput"),
    ("drops", "Frames dropped"),
    ("timeouts", "Timeouts"),
    ("queue_bytes_max", "Deepest queue"),
];

fn form(unit: FigureUnit) -> FigureForm {
    match unit {
        FigureUnit::Millis => FigureForm::Millis,
        FigureUnit::Bytes => FigureForm::Bytes,
        FigureUnit::BitsPerSecond => FigureForm::Bits,
        FigureUnit::Count => FigureForm::Number,
        FigureUnit::Factor => FigureForm::Factor,
    }
}

fn summaries<'a>(group: &SeedGroup, results: &'a [RunResult]) -> Vec<&'a Summary> {
    group.places.iter().map(|&place| &results[place].summary).collect()
}

/// Returns the entries in the page's data, one for each group.
pub(super) fn data(results: &[RunResult]) -> Value {
    let of = |group: &SeedGroup| {
        let figures = seed_figures(&summaries(group, results)).into_iter().map(|(figure, over)| {
            let mut value = over.value();
            value["half"] = json!(over.interval.half);
            (figure.column.to_owned(), value)
        });
        json!({ "name": group.name, "seeds": group.places.len(), "figures": figures.collect::<Map<_, _>>() })
    };
    groups(results).iter().map(of).collect()
}

/// Writes a figure of a group as markup: its mean, and the interval below it. `None` if no seed has the figure.
fn cell(data: &Value, group: usize, column: &str) -> Option<String> {
    let at = format!("/seeds/{group}/figures/{column}");
    let form = form(crate::named_figure(column)?.unit);
    let mean = figure(data, &format!("{at}/mean"), form)?;
    let known = data.pointer(&format!("{at}/seeds"))?.as_u64()?;
    let of = data.pointer(&format!("/seeds/{group}/seeds"))?.as_u64()?;
    let half = data.pointer(&format!("{at}/half")).and_then(Value::as_f64);
    let mut below = match (half, figure(data, &format!("{at}/half"), form)) {
        (Some(0.0), _) => "each the same".to_owned(),
        (_, Some(half)) => format!("± {half}"),
        (_, None) => "one seed".to_owned(),
    };
    if 1 < known && known < of {
        let _ = write!(below, ", {known} of {of} seeds");
    }
    Some(format!("{mean}<small>{below}</small>"))
}

/// Writes the figures of one system over its seeds, for the first screen.
pub(super) fn tiles(data: &Value, out: &mut String) {
    let cells: Vec<(&str, String)> =
        SHOWN.iter().filter_map(|&(column, label)| Some((label, cell(data, 0, column)?))).collect();
    if cells.is_empty() {
        return;
    }
    out.push_str("<dl class=\"key\">\n");
    for (label, cell) in cells {
        let _ = writeln!(out, "<div><dt>{label}</dt><dd>{cell}</dd></div>");
    }
    out.push_str("</dl>\n");
    note(out);
}

fn note(out: &mut String) {
    out.push_str("<p class=\"note\">Means over the seeds with their intervals of 95 % (Student’s t).</p>\n");
}

/// Names the techniques with the least mean time, for the verdict on several. Writes nothing for a sweep, whose points are not
/// alternatives.
pub(super) fn leading(results: &[RunResult], out: &mut String) {
    let groups = groups(results);
    if groups.len() < 2 || !points::columns(results).is_empty() {
        return;
    }
    let scenario = |group: &SeedGroup| &results[group.places[0]].summary.scenario.name;
    let mut scenarios: Vec<&String> = groups.iter().map(scenario).collect();
    scenarios.dedup();
    for name in &scenarios {
        let rivals: Vec<&SeedGroup> = groups.iter().filter(|group| scenario(group) == *name).collect();
        let means: Vec<Option<SeedFigure>> = rivals.iter().map(|group| mean_ms(group, results)).collect();
        // A technique with one seed has no interval, so that no comparison is possible.
        let is_single = |mean: &Option<SeedFigure>| mean.is_some_and(|mean| mean.ends().is_none());
        // Times of different workloads cannot be compared.
        let ideals = rivals.iter().filter_map(|group| results[group.places[0]].summary.times()?.ideal);
        let [low, high] = ideals.fold([f64::INFINITY, 0.0], |[low, high], of| [of.min(low), of.max(high)]);
        if means.iter().any(is_single) || high > 1.01 * low {
            continue;
        }
        let of = if scenarios.len() > 1 { format!(" of <bdi>{}</bdi>", escape(name)) } else { String::new() };
        let named: Vec<String> = least(&means)
            .iter()
            .map(|&place| format!("<bdi>{}</bdi>", escape(&rivals[place].name)))
            .collect();
        let _ = match named.as_slice() {
            [] => Ok(()),
            [first] => writeln!(out, "<p class=\"open\"><strong>Least mean time{of}:</strong> {first}.</p>"),
            [first, others @ ..] => writeln!(
                out,
                "<p class=\"open\"><strong>Least mean time{of}:</strong> {first}, and by these seeds also {}: the intervals \
                 overlap.</p>",
                others.join(", ")
            ),
        };
    }
}

/// Returns the mean time of a group over its seeds, in milliseconds.
pub(super) fn mean_ms(group: &SeedGroup, results: &[RunResult]) -> Option<SeedFigure> {
    let mean = |summary: &Summary| summary.times().map(|times| times.mean);
    SeedFigure::new(&summaries(group, results).into_iter().map(mean).collect::<Vec<_>>())
}

/// Returns the columns of settings, without the seed.
fn own_columns(results: &[RunResult], groups: &[SeedGroup]) -> Vec<PointColumn> {
    let mut columns = points::columns(results);
    let is_own = |column: &PointColumn, group: &SeedGroup| {
        group.places.iter().all(|&place| column.values[place] == column.values[group.places[0]])
    };
    columns.retain(|column| groups.iter().all(|group| is_own(column, group)));
    columns
}

/// Writes a line for each system over its seeds, if there are several systems.
pub(super) fn section(results: &[RunResult], data: &Value, out: &mut String) {
    let groups = groups(results);
    if groups.len() < 2 {
        return;
    }
    let rows: Vec<Vec<Option<String>>> = (0..groups.len())
        .map(|group| SHOWN.iter().map(|(column, _)| cell(data, group, column)).collect())
        .collect();
    let shown: Vec<usize> =
        (0..SHOWN.len()).filter(|&column| rows.iter().any(|row| row[column].is_some())).collect();
    out.push_str(
        "<section>\n<h2>Over the seeds</h2>\n<div class=\"scroll\" role=\"region\" aria-label=\"Over the seeds\" \
         tabindex=\"0\">\n<table class=\"seeds points\">\n<thead><tr>",
    );
    let keys = own_columns(results, &groups);
    if keys.is_empty() {
        out.push_str("<th scope=\"col\">Result</th>");
    }
    for (number, key) in keys.iter().enumerate() {
        let class = if number > 0 { " class=\"n\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(&key.label));
    }
    out.push_str("<th scope=\"col\" class=\"n\">Seeds</th>");
    for &column in &shown {
        let _ = write!(out, "<th scope=\"col\" class=\"n\">{}</th>", SHOWN[column].1);
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (group, row) in groups.iter().zip(&rows) {
        let value = |key: &PointColumn| unbroken(&key.values[group.places[0]]);
        let name = keys.first().map_or_else(|| group.name.clone(), value);
        let _ = write!(out, "<tr><th scope=\"row\"><bdi>{}</bdi></th>", escape(&name));
        for key in keys.iter().skip(1) {
            let _ = write!(out, "<td class=\"n\">{}</td>", escape(&value(key)));
        }
        let _ = write!(out, "<td class=\"n\">{}</td>", group.places.len());
        for &column in &shown {
            let _ = write!(out, "<td class=\"n\">{}</td>", row[column].as_deref().unwrap_or("–"));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    note(out);
    out.push_str("</section>\n");
}
