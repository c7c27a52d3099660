//! Pages of many results: one verdict on all of them, and a table below the pictures.

use std::fmt::Write;

use serde_json::Value;

use super::contents::{Figure, POINT};
use super::format::typeset;
use super::markup::{escape, figure};
use super::plots::swatch_of;
use super::verdict::{self, Standing, VERDICTS_MAX};
use super::{points, seeded, swept};
use crate::RunResult;
use crate::seeds::{self, SeedGroup};

/// Names of results in the verdict. With more results, only the table has names.
const NAMES_MAX: usize = 6;

/// Results with the same verdict.
struct VerdictGroup {
    standing: Standing,
    words: &'static str,
    /// Indices of the results.
    places: Vec<usize>,
}

/// Writes the verdict on many results: the number of results of each outcome, the most frequent outcome first.
pub(super) fn together(results: &[RunResult], data: &Value, out: &mut String) {
    let mut groups: Vec<VerdictGroup> = Vec::new();
    let mut is_good: Vec<bool> = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let verdict = verdict::verdict(&result.summary, data, &format!("/results/{index}/summary"));
        let (standing, words) = (verdict.standing, verdict.short());
        is_good.push(standing == Standing::Good);
        match groups.iter_mut().find(|group| group.words == words) {
            Some(group) => group.places.push(index),
            None => groups.push(VerdictGroup { standing, words, places: vec![index] }),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.places.len()));
    let has = |standing: Standing| groups.iter().any(|group| group.standing == standing);
    let class = match (has(Standing::Bad), has(Standing::Open)) {
        (true, _) => "bad",
        (_, true) => "open",
        _ => "good",
    };
    let _ = writeln!(out, "<div class=\"verdict {class}\">");
    let edge = points::edge(results, &is_good).filter(|_| !has(Standing::Open));
    if let Some(edge) = &edge {
        let [below, above] = edge.values.each_ref().map(|value| escape(&typeset(value)));
        let mut bad = groups.iter().filter(|group| group.standing == Standing::Bad);
        let bad = match (bad.next(), bad.next()) {
            (Some(only), None) => only.words.to_lowercase(),
            _ => "not lossless".to_owned(),
        };
        let good = "lossless".to_owned();
        let words = if edge.is_good_below { [good, bad] } else { [bad, good] };
        let _ = writeln!(
            out,
            "<p><strong>{}: {} up to {below}, {} from {above} on.</strong></p>",
            escape(&swept::label(&edge.key)),
            escape(&words[0]),
            escape(&words[1])
        );
    }
    let are_points = !points::columns(results).is_empty();
    let systems = seeds::groups(results);
    let noun = if systems.len() == 1 { "seeds" } else { "results" };
    for group in &groups {
        let named = names(results, &systems, &group.places);
        let are_few = groups.len() > 1 && named.len() <= NAMES_MAX && !are_points;
        let names = if are_few { format!(": {}", named.join(", ")) } else { String::new() };
        let _ = writeln!(
            out,
            "<p class=\"{}\"><strong>{}:</strong> {} of {} {noun}{names}.</p>",
            group.standing.class(),
            escape(group.words),
            group.places.len(),
            results.len()
        );
    }
    seeded::leading(results, out);
    out.push_str("</div>\n");
}

/// Returns the names of results. A system with several seeds is named once, with the number of seeds if `places` has only some
/// of them.
fn names(results: &[RunResult], systems: &[SeedGroup], places: &[usize]) -> Vec<String> {
    // Seeds of one system have no other name.
    let systems = if systems.len() == 1 { &[] } else { systems };
    let is_meant = |place: &usize| places.contains(place);
    let of_system = |system: &SeedGroup| {
        let (meant, all) =
            (system.places.iter().filter(|place| is_meant(place)).count(), system.places.len());
        let name = escape(&system.name);
        match meant {
            0 => None,
            _ if meant == all => Some(format!("<bdi>{name}</bdi>")),
            _ => Some(format!("<bdi>{name}</bdi> ({meant} of {all} seeds)")),
        }
    };
    let alone = places.iter().filter(|place| systems.iter().all(|system| !system.places.contains(place)));
    let alone = alone.map(|&place| format!("<bdi>{}</bdi>", escape(&results[place].label)));
    systems.iter().filter_map(of_system).chain(alone).collect()
}

/// Writes the table of many results, and the notes below it.
pub(super) fn many(results: &[RunResult], notes: &[String], data: &Value, out: &mut String) {
    if results.len() > VERDICTS_MAX || !notes.is_empty() || !seeds::groups(results).is_empty() {
        out.push_str("<section>\n<h2>All results</h2>\n");
        table(results, data, out);
        for note in notes {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
        }
        out.push_str("</section>\n");
    }
}

/// Writes a value with non-breaking spaces, so that it stays on one line with its unit.
pub(super) fn unbroken(value: &str) -> String {
    typeset(value).replace(' ', "\u{a0}")
}

/// Writes the table of many results, a line for each.
fn table(results: &[RunResult], data: &Value, out: &mut String) {
    out.push_str(
        "<div class=\"scroll\" role=\"region\" aria-label=\"Results\" tabindex=\"0\">\n<table class=\"points",
    );
    // Short names stay on one line on phones, too.
    let are_short = results.iter().all(|result| result.label.chars().count() <= 20);
    out.push_str(if are_short { " short\">\n<thead><tr>" } else { "\">\n<thead><tr>" });
    let keys = points::columns(results);
    if keys.is_empty() {
        out.push_str("<th scope=\"col\">Result</th>");
    }
    for (number, key) in keys.iter().enumerate() {
        let class = if number > 0 { " class=\"n\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(&key.label));
    }
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
        let name = keys.first().map_or_else(|| result.label.clone(), |key| unbroken(&key.values[index]));
        let name = format!("<bdi>{}</bdi>", escape(&name));
        let name = match &result.page {
            Some(page) => format!("<a href=\"{}\">{name}</a>", escape(page)),
            None => name,
        };
        let _ = write!(
            out,
            "<tr class=\"{}\"><th scope=\"row\">{}{name}</th>",
            verdict.standing.class(),
            swatch_of(index, results)
        );
        for key in keys.iter().skip(1) {
            let _ = write!(out, "<td class=\"n\">{}</td>", escape(&unbroken(&key.values[index])));
        }
        for row in &columns {
            let cell = figure(data, &format!("{at}{}", row.pointer), row.form);
            let cell = cell.filter(|_| is_known(index, row)).unwrap_or_else(|| "–".into());
            let _ = write!(out, "<td class=\"n\">{cell}</td>");
        }
        let _ = writeln!(out, "<td><strong>{}</strong></td></tr>", verdict.short());
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}
