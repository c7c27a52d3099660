//! The techniques of an advice in one picture: the time of each, and the techniques that lose frames.

use std::fmt::Write;

use serde_json::Value;

use super::chart::Axis;
use super::format::{FigureForm, format_f64, shortened, significant};
use super::markup::escape;
use super::pictured::{RIGHT, SHEETS, open, text_room};

const ROW: f64 = 22.0;
const TOP: f64 = 22.0;
/// Ratio of largest to smallest above which the axis is logarithmic.
const LOG_FROM: f64 = 20.0;

/// A technique with the figures of its simulations.
struct RankedRow<'a> {
    name: &'a str,
    slowdown: f64,
    /// The ends of the slowdown's interval over seeds.
    interval: Option<[f64; 2]>,
    drops: f64,
}

/// Draws the techniques, the fastest first. Each has its search, which holds the figures. Returns `None` if fewer than two have
/// a slowdown.
pub(super) fn draw<'a>(lines: impl Iterator<Item = (&'a str, &'a Value)>) -> Option<String> {
    let figures = lines.filter_map(|(name, search)| {
        let found = ["best", "nearest"].iter().find_map(|key| search.get(key))?;
        Some((name, found.get("figures")?))
    });
    let all: Vec<(&str, &Value)> = figures.collect();
    let has = |column: &str| all.iter().all(|(_, figures)| figures.get(column).is_some());
    let (column, base) = if has("slowdown_bound_mean") {
        ("slowdown_bound_mean", "the least possible mean")
    } else {
        ("slowdown_mean", "the ideal")
    };
    let mut rows: Vec<RankedRow<'_>> = all
        .iter()
        .filter_map(|(name, figures)| {
            let number = |column: &str, key: &str| figures.get(column)?.get(key)?.as_f64();
            Some(RankedRow {
                name,
                slowdown: number(column, "mean").filter(|factor| *factor > 0.0)?,
                interval: number(column, "low").zip(number(column, "high")).map(|(low, high)| [low, high]),
                drops: number("drops", "mean").unwrap_or(0.0),
            })
        })
        .collect();
    if rows.len() < 2 {
        return None;
    }
    rows.sort_by(|one, other| one.slowdown.total_cmp(&other.slowdown));
    let highest = |row: &RankedRow<'_>| row.interval.map_or(row.slowdown, |ends| ends[1].max(row.slowdown));
    let high = rows.iter().map(highest).fold(1.0, f64::max);
    let low = rows.iter().map(|row| row.slowdown).fold(1.0, f64::min);
    let log = high / low > LOG_FROM;
    let scale = if log { ", logarithmic" } else { "" };
    let axis = Axis {
        title: format!("mean time over {base}{scale}"),
        log,
        min: if log { low / 1.1 } else { 0.0 },
        max: high * if log { 1.2 } else { 1.08 },
    };
    let title = "How long each technique takes";
    let text = format!(
        "The dot is the mean time over {base}, the frame its interval of 95 % over the seeds. Red: frames were dropped, with their number."
    );
    let mut html =
        format!("<figure class=\"picture dots\">\n<h3>{title}</h3>\n<p class=\"note\">{text}</p>\n");
    for sheet in &SHEETS {
        let room = if sheet.name == "wide" { 36 } else { 16 };
        let drops_of = |row: &RankedRow<'_>| match row.drops {
            0.0 => String::new(),
            drops => format!("{} dropped", format_f64(drops.round(), FigureForm::Number)),
        };
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let longest = widest(&mut rows.iter().map(|row| shortened(row.name, room)));
        let drops = widest(&mut rows.iter().map(drops_of));
        let left = text_room(sheet, longest) + 12.0;
        let right = sheet.width - RIGHT - text_room(sheet, drops);
        let bottom = TOP + ROW * rows.len() as f64;
        let px = |value: f64| left + axis.place(value) * (right - left);
        html += &open(sheet, bottom + 42.0, "techniques", [title, &text], "");
        for tick in axis.ticks(if sheet.name == "wide" { sheet.ticks } else { sheet.ticks - 1 }) {
            let _ = write!(
                html,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" \
                 text-anchor=\"middle\">{} ×</text>",
                bottom + 16.0,
                significant(tick),
                x = px(tick)
            );
        }
        let _ = write!(html, "<path class=\"mark\" d=\"M{x:.1} {TOP}V{bottom}\"/>", x = px(1.0));
        for (place, row) in rows.iter().enumerate() {
            let y = TOP + ROW * (place as f64 + 0.5);
            let class = if row.drops > 0.0 { "bad" } else { "good" };
            let factor = format_f64(row.slowdown, FigureForm::Factor);
            let _ = write!(
                html,
                "<g class=\"{class}\"><title>{name}: {factor}</title><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text><path class=\"range\" d=\"M{left:.1} {y:.1}H{:.1}\"/>",
                left - 8.0,
                y + 4.0,
                escape(&shortened(row.name, room)),
                px(row.slowdown),
                name = escape(row.name),
            );
            if let Some(ends) = row.interval {
                let [from, to] = ends.map(&px);
                let _ = write!(
                    html,
                    "<rect class=\"interval\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\"/>",
                    y - 7.0,
                    (to - from).max(1.0)
                );
            }
            let _ = writeln!(
                html,
                "<circle class=\"mean\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\"/><text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
                px(row.slowdown),
                right + 8.0,
                y + 4.0,
                escape(&drops_of(row))
            );
        }
        let _ = writeln!(
            html,
            "<path class=\"base\" d=\"M{left} {bottom}H{right}\"/><text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text></svg>",
            sheet.width - 4.0,
            bottom + 34.0,
            axis.title
        );
    }
    html += "</figure>\n";
    Some(html)
}
