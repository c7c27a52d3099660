//! Results that are no sweep, side by side: the mean time of each, with the range from the smallest to the largest.

use std::fmt::Write;

use serde_json::json;

use super::chart::{Axis, CHARACTER};
use super::format::{FigureForm, format_f64, shortened};
use super::heat;
use super::markup::escape;
use super::pictured::{Drawing, RIGHT, SHEETS, open};
use super::swept;
use super::verdict::{Standing, VERDICTS_MAX, headline};
use crate::{RunResult, Times};

/// Results that are drawn; the table has all of them.
const ROWS_MAX: usize = 60;
const ROW: f64 = 20.0;
const TOP: f64 = 22.0;
/// Ratio of largest to smallest above which the time axis is logarithmic.
const LOG_FROM: f64 = 20.0;

/// The drawing; none for few results, for a sweep, and where fewer than two have times.
pub(super) fn draw(results: &[RunResult]) -> Option<Drawing> {
    if results.len() <= VERDICTS_MAX || heat::grid(results).is_some() || !swept::charts(results).is_empty() {
        return None;
    }
    let known: Vec<(&RunResult, &Times)> =
        results.iter().filter_map(|result| Some((result, result.summary.times()?))).collect();
    let drawn = &known[..known.len().min(ROWS_MAX)];
    if drawn.len() < 2 {
        return None;
    }
    let ideals = || drawn.iter().filter_map(|(_, times)| times.ideal);
    let ideal = ideals().fold(f64::INFINITY, f64::min);
    // Results of several systems each have their own.
    let is_one_ideal = ideals().all(|other| other <= 1.01 * ideal);
    let low = drawn.iter().map(|(_, times)| times.min).fold(ideal, f64::min);
    let high = drawn.iter().map(|(_, times)| times.max).fold(0.0, f64::max);
    if !(low.is_finite() && low > 0.0 && high > low) {
        return None;
    }
    let log = high / low > LOG_FROM;
    let scale = if log { ", logarithmic" } else { "" };
    let axis = Axis {
        title: format!("time in ms{scale}"),
        log,
        min: if log { low / 1.1 } else { 0.0 },
        max: high * if log { 1.1 } else { 1.04 },
    };
    let title = "Times of all results";
    let text =
        "The dot is the mean, the bar reaches from the smallest time to the largest, the tick is the p99.";
    let mut html = format!(
        "<figure class=\"picture dots\">\n<h3>{title}</h3>\n<p class=\"note\">{text} Red: frames were lost, or worse.{}</p>\n",
        if is_one_ideal { "" } else { " Dotted: the ideal of its system." }
    );
    for sheet in &SHEETS {
        let room = if sheet.name == "wide" { 44 } else { 14 };
        let names: Vec<String> = drawn.iter().map(|(result, _)| shortened(&result.label, room)).collect();
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        // On narrow pages text is larger than the drawing's own.
        let left = 1.15 * CHARACTER * longest as f64 + 12.0;
        let right = sheet.width - RIGHT;
        let bottom = TOP + ROW * drawn.len() as f64;
        let px = |value: f64| left + axis.place(value) * (right - left);
        let plot = format!("data-plot=\"{left} {right} {TOP} {bottom}\"");
        html += &open(sheet, bottom + 42.0, "dots", [title, text], &plot);
        for tick in axis.ticks(sheet.ticks) {
            let _ = write!(
                html,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{}</text>",
                bottom + 16.0,
                super::format::significant(tick),
                x = px(tick)
            );
        }
        if ideal.is_finite() && is_one_ideal {
            let x = px(ideal);
            let _ = write!(
                html,
                "<path class=\"mark\" d=\"M{x:.1} {:.1}V{bottom}\"/><text class=\"mark\" x=\"{:.1}\" y=\"{:.1}\">ideal</text>",
                TOP - 6.0,
                x + 4.0,
                TOP - 6.0
            );
        }
        for (row, (result, times)) in drawn.iter().enumerate() {
            let y = TOP + ROW * (row as f64 + 0.5);
            let is_bad = headline(&result.summary).0 == Standing::Bad;
            let class = if is_bad { "bad" } else { "good" };
            let _ = write!(
                html,
                "<g class=\"{class}\"><title>{}: mean {}, largest {}</title><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text><path class=\"range\" d=\"M{:.1} {y:.1}H{:.1}\"/>",
                escape(&result.label),
                format_f64(times.mean, FigureForm::Millis),
                format_f64(times.max, FigureForm::Millis),
                left - 8.0,
                y + 4.0,
                escape(&names[row]),
                px(times.min),
                px(times.max)
            );
            if let Some(own) = times.ideal.filter(|_| !is_one_ideal) {
                let _ = write!(html, "<path class=\"own\" d=\"M{:.1} {:.1}v14\"/>", px(own), y - 7.0);
            }
            if result.summary.has_p99() {
                let _ = write!(html, "<path class=\"p99\" d=\"M{:.1} {:.1}v10\"/>", px(times.p99), y - 5.0);
            }
            let _ = writeln!(
                html,
                "<circle class=\"mean\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\"/></g>",
                px(times.mean)
            );
        }
        let _ = writeln!(
            html,
            "<path class=\"base\" d=\"M{left} {bottom}H{right}\"/><text class=\"axis\" x=\"{right}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text></svg>",
            bottom + 34.0,
            axis.title
        );
    }
    if drawn.len() < known.len() {
        let _ = writeln!(
            html,
            "<figcaption class=\"note\">The first {} of {} results with times.</figcaption>",
            drawn.len(),
            known.len()
        );
    }
    html += "</figure>\n";
    let rows: Vec<_> = drawn
        .iter()
        .map(|(result, times)| json!({ "label": result.label, "mean_ms": times.mean, "max_ms": times.max }))
        .collect();
    Some(Drawing { id: "dots".to_owned(), data: json!({ "title": title, "rows": rows }), html })
}
