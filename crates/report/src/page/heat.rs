//! A heat map: the mean time at each pair of values of two swept settings.

use std::fmt::Write;

use serde_json::json;

use super::format::{FigureForm, format_f64};
use super::many::unbroken;
use super::markup::escape;
use super::pictured::Drawing;
use super::swept::{self, Grid};
use crate::RunResult;

/// The heat map; none where results do not differ in two settings with three values or more each.
pub(super) fn draw(results: &[RunResult]) -> Option<Drawing> {
    let Grid { keys, values, cells, is_bad } = swept::grid(results)?;
    let [columns, rows] = [&keys[0], &keys[1]].map(|key| swept::label(key));
    let known = || cells.iter().flatten().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    // Times differ by orders of magnitude where a network collapses.
    let share = |time: f64| {
        if high > low && low > 0.0 { (time / low).ln() / (high / low).ln() } else { 0.0 }
    };
    let mut html = format!(
        "<figure class=\"heat\">\n<h3>Mean time against {} and {}</h3>\n<div class=\"scroll\" role=\"region\" \
         aria-label=\"Heat map\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">{} ↓<br/>{} →</th>",
        escape(&columns.to_lowercase()),
        escape(&rows.to_lowercase()),
        escape(&rows),
        escape(&columns)
    );
    for value in &values[0] {
        let _ = write!(html, "<th scope=\"col\" class=\"n\">{}</th>", escape(&unbroken(value)));
    }
    html += "</tr></thead><tbody>\n";
    for ((value, row), is_bad) in values[1].iter().zip(&cells).zip(&is_bad) {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&unbroken(value)));
        for (cell, is_bad) in row.iter().zip(is_bad) {
            let class = if *is_bad { "n lossy" } else { "n" };
            let _ = match cell {
                Some(time) => write!(
                    html,
                    "<td class=\"{class}\" style=\"--heat: {:.0}%\">{}</td>",
                    share(*time) * 70.0,
                    format_f64(*time, FigureForm::Millis)
                ),
                None => write!(html, "<td class=\"{class}\">–</td>"),
            };
        }
        html += "</tr>\n";
    }
    let _ = write!(
        html,
        "</tbody></table></div>\n<figcaption class=\"note\">The darker a cell, the longer the time, on a logarithmic \
         scale{}. ✕: frames were lost, or worse.</figcaption>\n</figure>\n",
        if swept::has_seeds(results) { "; means over seeds" } else { "" }
    );
    let data = json!({ "title": "Heat map", "keys": keys, "values": values, "time_ms": cells });
    Some(Drawing { id: "heat".to_owned(), data, html })
}
