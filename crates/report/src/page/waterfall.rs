//! One late event, source by source: request, answer, lost frames, probes and timeouts of each.

use std::fmt::Write;

use serde_json::json;

use super::chart::Axis;
use super::format::typeset;
use super::markup::escape;
use super::pictured::{Drawing, LEFT, OUTPUT, RIGHT, SHEETS, Sheet, open, time_axis};
use super::plots::time_unit;
use crate::{LateEvent, LateSource};

/// Number of sources that are drawn. They are the ones that finished last.
const ROWS_MAX: usize = 32;
const ROW: f64 = 14.0;
const TOP: f64 = 8.0;
/// The whole width of a wide page, for a single result.
const WHOLE: Sheet = Sheet { name: "wide", width: 1000.0, ticks: 10 };
/// Half the width of a wide page.
const HALF: Sheet = Sheet { name: "wide", width: 640.0, ticks: 7 };

/// Draws the event. Returns `None` if its sources are unknown.
pub(super) fn draw(late: &LateEvent, index: usize, of: &str) -> Option<Drawing> {
    let since = |at: u64| at.saturating_sub(late.assigned_ps);
    let end = since(late.collected_ps).max(1);
    let unit = time_unit(end);
    let rows: Vec<&LateSource> = late.sources.iter().take(ROWS_MAX).collect();
    if rows.is_empty() {
        return None;
    }
    let id = format!("late-{index}");
    let title = format!("The slowest event, source by source{of}");
    let steps = rows.iter().flat_map(|source| steps(source, late));
    let axis = time_axis_of(steps.map(since).collect(), end, unit);
    let height = TOP + ROW * rows.len() as f64 + 44.0;
    let bottom = TOP + ROW * rows.len() as f64;
    let is_alone = of.is_empty();
    // Requests are usually sent at once, and then have no wait to draw.
    let wait = late.chain.iter().find_map(|cause| match cause.kind.as_str() {
        "credit-wait" => Some("waits for credits, not yet asked"),
        "request-wait" => Some("not yet asked"),
        _ => None,
    });
    let mut html = format!(
        "<figure class=\"picture waterfall{}\" data-late=\"{id}\">\n<h3>{}</h3>\n<p class=\"note\">{}</p>\n\
         <ul class=\"legend\">{}<li><span class=\"key-wait\"></span>asked, no byte yet</li><li><span class=\"key-data\"></span>data \
         arrive</li>{}<li><span class=\"key-drop\"></span>frame dropped</li><li><span class=\"key-rto\"></span>retransmission timer \
         expires</li>{}{}</ul>\n",
        if is_alone { " alone" } else { "" },
        escape(&title),
        escape(&typeset(&late.text)),
        wait.map_or_else(String::new, |words| format!("<li><span class=\"key-credit\"></span>{words}</li>")),
        if rows.iter().any(|source| !stalls(source).is_empty()) {
            "<li><span class=\"key-stall\"></span>loss not yet repaired</li>"
        } else {
            ""
        },
        if rows.iter().any(|source| !source.probes_ps.is_empty()) {
            "<li><span class=\"key-probe\"></span>tail loss probe sent</li>"
        } else {
            ""
        },
        if rows.iter().any(|source| !source.held_by.is_empty()) {
            "<li><span class=\"key-other\"></span>loss of another event on the connection, until its timer</li>"
        } else {
            ""
        }
    );
    for sheet in [if is_alone { &WHOLE } else { &HALF }, &SHEETS[1]] {
        let right = sheet.width - RIGHT;
        let more = format!(
            "tabindex=\"0\" data-plot=\"{LEFT} {right} {TOP} {bottom}\" data-x=\"{} {} {}\"",
            if axis.log { "log" } else { "lin" },
            axis.min,
            axis.max
        );
        html += &open(sheet, height, &id, [&title, &late.text], &more);
        let px = |at: u64| LEFT + axis.place(since(at) as f64 / unit.1) * (right - LEFT);
        for tick in axis.ticks(sheet.ticks) {
            let x = LEFT + axis.place(tick) * (right - LEFT);
            let _ = write!(html, "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/>");
        }
        let mut labels = String::new();
        html += "<g class=\"zoom\">";
        for (row, source) in rows.iter().enumerate() {
            let y = TOP + ROW * row as f64 + ROW / 2.0;
            let name = source.name.replace("readout:", "");
            let _ = write!(
                labels,
                "<text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 7.0,
                y + 4.0,
                escape(&name)
            );
            let begin = source.request_ps.unwrap_or(late.assigned_ps);
            let first = source.first_byte_ps.or(source.last_byte_ps).unwrap_or(late.collected_ps);
            let last = source.last_byte_ps.unwrap_or(late.collected_ps);
            let bar = |from: u64, to: u64, class: &str, thick: f64| {
                format!(
                    "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{thick}\"/>",
                    px(from),
                    y - thick / 2.0,
                    (px(to) - px(from)).max(1.0)
                )
            };
            if wait.is_some() && begin > late.assigned_ps {
                html += &bar(late.assigned_ps, begin, "credit", 3.0);
            }
            html += &bar(begin, first, "wait", 3.0);
            for other in &source.held_by {
                html += &bar(other.from_ps.min(last), other.until_ps.min(last), "other", 7.0);
            }
            let mut from = first;
            for (lost, repaired) in stalls(source) {
                let (lost, repaired) = (lost.clamp(from, last), repaired.clamp(from, last));
                html += &bar(from, lost, "data", 7.0);
                html += &bar(lost, repaired, "stall", 3.0);
                from = repaired;
            }
            html += &bar(from, last, "data", 7.0);
            let marks = |times: &[u64], class: &str, half: f64| {
                let path: String = times
                    .iter()
                    .map(|&at| format!("M{:.1} {:.1}v{}", px(at), y - half, 2.0 * half))
                    .collect();
                if path.is_empty() { path } else { format!("<path class=\"{class}\" d=\"{path}\"/>") }
            };
            html += &marks(&source.losses_ps, "drop", 4.0);
            html += &marks(&source.probes_ps, "probe", 5.5);
            html += &marks(&source.timeouts_ps, "rto", 5.5);
            let timers = |is_probe: bool| -> Vec<u64> {
                let own = source
                    .held_by
                    .iter()
                    .filter(|other| other.is_probe == is_probe && other.until_ps <= last);
                own.map(|other| other.until_ps).collect()
            };
            html += &marks(&timers(true), "probe other", 5.5);
            html += &marks(&timers(false), "rto other", 5.5);
        }
        html += "</g>\n";
        html += &labels;
        time_axis(&mut html, &axis, sheet, bottom);
        html += "</svg>\n";
    }
    html += OUTPUT;
    if (rows.len() as u64) < late.sources_total {
        let _ = writeln!(
            html,
            "<figcaption class=\"note\">The {} of {} sources that finished last.</figcaption>",
            rows.len(),
            late.sources_total
        );
    }
    html += "</figure>\n";
    let data = json!({
        "title": title, "text": late.text, "chain": late.chain, "x": axis.title, "y": "", "nearest": false, "series": [],
    });
    Some(Drawing { id, data, html })
}

/// Returns the times of a source's steps.
fn steps<'a>(source: &'a LateSource, late: &LateEvent) -> impl Iterator<Item = u64> + use<'a> {
    let ends = [source.request_ps, source.first_byte_ps, source.last_byte_ps.or(Some(late.collected_ps))];
    let marks = source.losses_ps.iter().chain(&source.timeouts_ps).chain(&source.probes_ps);
    let end = late.collected_ps;
    let others = source.held_by.iter().map(move |other| other.until_ps.min(end));
    ends.into_iter().flatten().chain(marks.copied()).chain(others)
}

/// Returns the intervals without data: from a loss until the timer or the probe that repairs it.
fn stalls(source: &LateSource) -> Vec<(u64, u64)> {
    let mut repairs: Vec<u64> = source.timeouts_ps.iter().chain(&source.probes_ps).copied().collect();
    repairs.sort_unstable();
    let mut stalls: Vec<(u64, u64)> = Vec::new();
    for repaired in repairs {
        let from = stalls.last().map_or(0, |stall| stall.1);
        // Data after the first lost frame still arrive. After the last lost frame, nothing arrives.
        if let Some(&lost) = source.losses_ps.iter().rfind(|&&lost| (from..repaired).contains(&lost)) {
            stalls.push((lost, repaired));
        }
    }
    stalls
}

/// The time axis is logarithmic if the end is more than this many times the median step.
const LOG_FROM: u64 = 12;

fn time_axis_of(mut steps: Vec<u64>, end: u64, unit: (&str, f64)) -> Axis {
    steps.retain(|&at| at > 0);
    steps.sort_unstable();
    let middle = steps.get(steps.len() / 2).copied().unwrap_or(end);
    let log = middle.saturating_mul(LOG_FROM) < end;
    let first = steps.first().copied().unwrap_or(end).max(end / 10_000);
    Axis {
        title: format!("time since it was assigned, {}{}", unit.0, if log { ", logarithmic" } else { "" }),
        log,
        min: if log { first as f64 / unit.1 / 1.2 } else { 0.0 },
        max: end as f64 / unit.1 * 1.01,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LateCause, LateStall};

    #[test]
    fn nothing_arrives_between_a_loss_and_its_timer() {
        let source = LateSource {
            losses_ps: vec![10, 12, 250],
            timeouts_ps: vec![200, 230],
            probes_ps: vec![300],
            ..LateSource::default()
        };
        assert_eq!(stalls(&source), [(12, 200), (250, 300)]);
    }

    #[test]
    fn a_wait_for_credits_is_drawn() {
        let source = LateSource {
            name: "readout:0".into(),
            request_ps: Some(900),
            first_byte_ps: Some(950),
            last_byte_ps: Some(1000),
            ..LateSource::default()
        };
        let cause = |kind: &str| LateCause { kind: kind.into(), ..LateCause::default() };
        let drawn = |kind: &str| {
            let late = LateEvent {
                collected_ps: 1000,
                time_ps: 1000,
                sources: vec![source.clone()],
                sources_total: 1,
                chain: vec![cause(kind)],
                ..LateEvent::default()
            };
            draw(&late, 0, "").unwrap().html
        };
        let html = drawn("credit-wait");
        assert!(html.contains("waits for credits, not yet asked"), "{html}");
        let bar = html.split("<rect class=\"credit\"").nth(1).expect("a bar of the wait");
        let width = bar.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert!(width.parse::<f64>().unwrap() > 800.0, "nine tenths of the axis: {width}");
        assert!(!drawn("queue").contains("class=\"credit\""));
    }

    #[test]
    fn a_timer_of_another_event_is_drawn_where_it_holds_one_up() {
        let stall = |is_probe| LateStall { event: 1, from_ps: 0, until_ps: 800, is_probe };
        let drawn = |held_by: Vec<LateStall>| {
            let source = LateSource {
                first_byte_ps: Some(900),
                last_byte_ps: Some(1000),
                held_by,
                ..LateSource::default()
            };
            let late = LateEvent {
                collected_ps: 1000,
                time_ps: 1000,
                sources: vec![source],
                sources_total: 1,
                ..LateEvent::default()
            };
            draw(&late, 0, "").unwrap().html
        };
        let html = drawn(vec![stall(false)]);
        assert!(html.contains("loss of another event on the connection"), "{html}");
        assert!(html.contains("<path class=\"rto other\"") && !html.contains("<path class=\"probe other\""));
        let bar = html.split("<rect class=\"other\"").nth(1).expect("a bar of the stall");
        let width = bar.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert!(width.parse::<f64>().unwrap() > 700.0, "four fifths of the axis: {width}");
        assert!(drawn(vec![stall(true)]).contains("<path class=\"probe other\""));
        assert!(!drawn(Vec::new()).contains("other"));
    }

    #[test]
    fn a_timer_that_outlasts_all_else_makes_the_axis_logarithmic() {
        let axis = |steps: &[u64]| time_axis_of(steps.to_vec(), 200_000, ("ms", 1.0)).log;
        assert!(axis(&[100, 300, 400, 500, 200_000]));
        assert!(!axis(&[100, 300, 90_000, 100_000, 200_000]));
    }
}
