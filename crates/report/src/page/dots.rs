//! Results that are not a sweep in one picture: the mean time of each, with the range from the smallest to the largest.

use std::fmt::Write;

use serde_json::json;

use super::chart::Axis;
use super::format::{FigureForm, format_f64, shortened};
use super::heat;
use super::markup::escape;
use super::pictured::{Drawing, RIGHT, SHEETS, open, text_room};
use super::verdict::{Standing, VERDICTS_MAX, headline};
use super::{seeded, swept};
use crate::seeds::{self, SeedGroup};
use crate::{RunResult, Times};

/// Results that are drawn; the table has all of them.
const ROWS_MAX: usize = 60;
const ROW: f64 = 20.0;
const TOP: f64 = 22.0;
/// Ratio of largest to smallest above which the time axis is logarithmic.
const LOG_FROM: f64 = 20.0;

/// A row of the drawing: a result, or the results of one system over its seeds. Times are in milliseconds.
struct DotRow<'a> {
    label: &'a str,
    is_bad: bool,
    mean: f64,
    min: f64,
    max: f64,
    p99: Option<f64>,
    ideal: Option<f64>,
    /// The ends of the mean's interval over seeds.
    interval: Option<[f64; 2]>,
}

impl<'a> DotRow<'a> {
    fn of(result: &'a RunResult) -> Option<Self> {
        let Times { mean, min, max, p99, ideal, .. } = *result.summary.times()?;
        Some(Self {
            label: &result.label,
            is_bad: headline(&result.summary).0 == Standing::Bad,
            mean,
            min,
            max,
            p99: result.summary.has_p99().then_some(p99),
            ideal,
            interval: None,
        })
    }

    /// Makes the row of a system over its seeds. Its p99 is the mean of the seeds' p99.
    fn over_seeds(group: &'a SeedGroup, results: &'a [RunResult]) -> Option<Self> {
        let mean = seeded::mean_ms(group, results)?;
        let rows: Vec<DotRow<'a>> =
            group.places.iter().filter_map(|&place| DotRow::of(&results[place])).collect();
        let p99: Option<Vec<f64>> = rows.iter().map(|row| row.p99).collect();
        Some(Self {
            label: &group.name,
            is_bad: rows.iter().any(|row| row.is_bad),
            mean: mean.interval.mean,
            min: rows.iter().map(|row| row.min).fold(f64::INFINITY, f64::min),
            max: rows.iter().map(|row| row.max).fold(0.0, f64::max),
            p99: p99.map(|all| all.iter().sum::<f64>() / all.len() as f64),
            ideal: rows.first()?.ideal,
            interval: mean.ends(),
        })
    }
}

/// Draws the results. Returns `None` for a sweep, for a few results without several seeds, and if fewer than two rows have
/// times.
pub(super) fn draw(results: &[RunResult]) -> Option<Drawing> {
    let seeds = seeds::groups(results);
    if results.len() <= VERDICTS_MAX && seeds.is_empty()
        || heat::grid(results).is_some()
        || !swept::charts(results).is_empty()
    {
        return None;
    }
    let known: Vec<DotRow<'_>> = match seeds.as_slice() {
        [] | [_] => results.iter().filter_map(DotRow::of).collect(),
        several => several.iter().filter_map(|group| DotRow::over_seeds(group, results)).collect(),
    };
    let of_all = match seeds.as_slice() {
        [only] => DotRow::over_seeds(only, results).and_then(|row| Some((row.mean, row.interval?))),
        _ => None,
    };
    let drawn = &known[..known.len().min(ROWS_MAX)];
    if drawn.len() < 2 {
        return None;
    }
    let ideals = || drawn.iter().filter_map(|row| row.ideal);
    let ideal = ideals().fold(f64::INFINITY, f64::min);
    // Results of several systems have different ideals.
    let is_one_ideal = ideals().all(|other| other <= 1.01 * ideal);
    let low = drawn.iter().map(|row| row.min).fold(ideal, f64::min);
    let high = drawn.iter().map(|row| row.max).fold(0.0, f64::max);
    if !(low.is_finite() && low > 0.0 && high > low) {
        return None;
    }
    let high = drawn.iter().filter_map(|row| row.interval).map(|ends| ends[1]).fold(high, f64::max);
    let log = high / low > LOG_FROM;
    let scale = if log { ", logarithmic" } else { "" };
    let axis = Axis {
        title: format!("time in ms{scale}"),
        log,
        min: if log { low / 1.1 } else { 0.0 },
        max: high * if log { 1.1 } else { 1.04 },
    };
    let title = if of_all.is_some() { "Times of all seeds" } else { "Times of all results" };
    let text = match (of_all, drawn.iter().any(|row| row.interval.is_some())) {
        (Some(_), _) => {
            "The dot is the mean of a seed, the bar reaches from the smallest time to the largest, the tick is the p99. The band is \
             the interval of 95 % of the mean over the seeds."
        }
        (None, true) => {
            "The dot is the mean over the seeds, the frame around it its interval of 95 %. The bar reaches from the smallest time of \
             all seeds to the largest, the tick is the mean p99."
        }
        (None, false) => {
            "The dot is the mean, the bar reaches from the smallest time to the largest, the tick is the p99."
        }
    };
    let mut html = format!(
        "<figure class=\"picture dots\">\n<h3>{title}</h3>\n<p class=\"note\">{text} Red: frames were lost, or worse.{}</p>\n",
        if is_one_ideal { "" } else { " Dotted: the ideal of its system." }
    );
    for sheet in &SHEETS {
        let room = if sheet.name == "wide" { 36 } else { 14 };
        let names: Vec<String> = drawn.iter().map(|row| shortened(row.label, room)).collect();
        let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let left = text_room(sheet, longest) + 12.0;
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
        if let Some((mean, ends)) = of_all {
            let [from, to] = ends.map(|end| px(end.clamp(axis.min, axis.max)));
            let _ = write!(
                html,
                "<rect class=\"of-seeds\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>\
                 <path class=\"of-seeds\" d=\"M{:.1} {TOP}V{bottom}\"/>",
                (to - from).max(1.0),
                bottom - TOP,
                px(mean)
            );
        }
        for (place, row) in drawn.iter().enumerate() {
            let y = TOP + ROW * (place as f64 + 0.5);
            let class = if row.is_bad { "bad" } else { "good" };
            let _ = write!(
                html,
                "<g class=\"{class}\"><title>{}: mean {}, largest {}</title><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text><path class=\"range\" d=\"M{:.1} {y:.1}H{:.1}\"/>",
                escape(row.label),
                format_f64(row.mean, FigureForm::Millis),
                format_f64(row.max, FigureForm::Millis),
                left - 8.0,
                y + 4.0,
                escape(&names[place]),
                px(row.min),
                px(row.max)
            );
            if let Some(ends) = row.interval {
                let [from, to] = ends.map(|end| px(end.clamp(axis.min, axis.max)));
                let _ = write!(
                    html,
                    "<rect class=\"interval\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\"/>",
                    y - 7.0,
                    (to - from).max(1.0)
                );
            }
            if let Some(own) = row.ideal.filter(|_| !is_one_ideal) {
                let _ = write!(html, "<path class=\"own\" d=\"M{:.1} {:.1}v14\"/>", px(own), y - 7.0);
            }
            if let Some(p99) = row.p99 {
                let _ = write!(html, "<path class=\"p99\" d=\"M{:.1} {:.1}v10\"/>", px(p99), y - 5.0);
            }
            let _ = writeln!(
                html,
                "<circle class=\"mean\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\"/></g>",
                px(row.mean)
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
        .map(|row| json!({ "label": row.label, "mean_ms": row.mean, "max_ms": row.max }))
        .collect();
    Some(Drawing { id: "dots".to_owned(), data: json!({ "title": title, "rows": rows }), html })
}
