//! The planner's part of the page: loads, bursts against buffers, derivations.

use std::fmt::Write;

use serde_json::Value;

use super::format::Form;
use super::markup::{escape, figure, ratio};
use crate::{Plan, RunResult};

/// Bars longer than this many times the limit are broken off.
const BAR_MAX: f64 = 4.0;

pub(crate) fn sections(result: &RunResult, data: &Value, index: usize, several: bool, out: &mut String) {
    let Some(plan) = &result.summary.plan else { return };
    let at = format!("/results/{index}/summary/plan");
    let of = if several { format!(": <bdi>{}</bdi>", escape(&result.label)) } else { String::new() };
    loads(plan, data, &at, &of, out);
    buffers(plan, data, &at, &of, out);
    derivations(plan, data, &at, &of, out);
}

fn loads(plan: &Plan, data: &Value, at: &str, of: &str, out: &mut String) {
    if plan.links.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<section>\n<h2>Link loads{of}</h2>\n<p class=\"note\">Offered over what the wire carries, every \
         header counted.</p>\n<table class=\"bars\">\n<thead><tr><th scope=\"col\">Link</th>\
         <th scope=\"col\" class=\"n\">Rate</th><th scope=\"col\" class=\"n\">Load</th><td></td></tr></thead>\n<tbody>\n"
    );
    let longest = plan.links.iter().map(|link| link.load).fold(1.0, f64::max).min(BAR_MAX);
    for (row, link) in plan.links.iter().enumerate() {
        let cell = |key, form| figure(data, &format!("{at}/links/{row}/{key}"), form).unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><bdi>{}</bdi></th><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"bar\">{}</td></tr>",
            escape(&link.name),
            cell("rate_bps", Form::Bits),
            cell("load", Form::Share),
            bar(link.load, longest)
        );
    }
    out.push_str("</tbody>\n</table>\n</section>\n");
}

fn buffers(plan: &Plan, data: &Value, at: &str, of: &str, out: &mut String) {
    if plan.buffers.is_empty() {
        return;
    }
    let share =
        |burst: u64, buffer: u64| if buffer == 0 { f64::INFINITY } else { burst as f64 / buffer as f64 };
    let longest = plan
        .buffers
        .iter()
        .map(|buffer| share(buffer.burst_bytes, buffer.buffer_bytes))
        .fold(1.0, f64::max)
        .min(BAR_MAX);
    let _ = write!(
        out,
        "<section>\n<h2>Bursts against buffers{of}</h2>\n<p class=\"note\">The most that can arrive at once \
         as a share of what the buffer holds; past the line frames are lost.</p>\n<table class=\"bars\">\n\
         <thead><tr><th scope=\"col\">Buffer</th><th scope=\"col\" class=\"n\">Burst</th>\
         <th scope=\"col\" class=\"n\">Buffer</th><th scope=\"col\" class=\"n\">Share</th><td></td></tr></thead>\n<tbody>\n"
    );
    for (row, buffer) in plan.buffers.iter().enumerate() {
        let place = |key| format!("{at}/buffers/{row}/{key}");
        let cell = |key| figure(data, &place(key), Form::Bytes).unwrap_or_default();
        let percent = ratio(data, &place("burst_bytes"), &place("buffer_bytes"), Form::Share)
            .unwrap_or_else(|| "–".into());
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><bdi>{}</bdi></th><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{percent}</td><td class=\"bar\">{}</td></tr>",
            escape(&buffer.name),
            cell("burst_bytes"),
            cell("buffer_bytes"),
            bar(share(buffer.burst_bytes, buffer.buffer_bytes), longest)
        );
    }
    out.push_str("</tbody>\n</table>\n</section>\n");
}

/// A bar for `share`, a line at the limit, on a scale from nothing to `longest`.
fn bar(share: f64, longest: f64) -> String {
    let share = if share.is_nan() { 0.0 } else { share.max(0.0) };
    let class = if share > 1.0 { "over" } else { "under" };
    let width = 100.0 * share.min(longest) / longest;
    let limit = 100.0 / longest;
    let cut = if share > longest { "<path class=\"cut\" d=\"M91 11L94 -1M95 11L98 -1\"/>" } else { "" };
    format!(
        "<svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"track\" width=\"{limit:.2}\" height=\"10\"/>\
         <rect class=\"{class}\" width=\"{width:.2}\" height=\"10\"/>{cut}\
         <path class=\"limit\" d=\"M{limit:.2} 0V10\"/></svg>"
    )
}

fn derivations(plan: &Plan, data: &Value, at: &str, of: &str, out: &mut String) {
    for (section_index, section) in plan.sections.iter().enumerate() {
        let _ = writeln!(out, "<section>\n<h2>{}{of}</h2>", escape(&section.title));
        if !section.text.is_empty() {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(&section.text));
        }
        out.push_str("<dl class=\"derived\">\n");
        for row in 0..section.rows.len() {
            let text = |key: &str| {
                figure(data, &format!("{at}/sections/{section_index}/rows/{row}/{key}"), Form::Text)
            };
            let name = &section.rows[row].name;
            let _ = write!(
                out,
                "<div><dt><bdi>{}</bdi></dt><dd class=\"n\">{}</dd>",
                escape(name),
                text("text").unwrap_or_default()
            );
            let how =
                [text("formula"), text("numbers")].into_iter().flatten().collect::<Vec<_>>().join(" = ");
            let source = text("source")
                .map_or(String::new(), |source| format!(" <span class=\"source\">{source}</span>"));
            if !how.is_empty() || !source.is_empty() {
                let _ = write!(out, "<dd class=\"how\">{how}{source}</dd>");
            }
            out.push_str("</div>\n");
        }
        out.push_str("</dl>\n</section>\n");
    }
}
