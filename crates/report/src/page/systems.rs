//! The system of each result: the settings that matter, and the whole scenario.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::chart::LOOKS;
use super::compared;
use super::contents::{SETTINGS, matters};
use super::format::FigureForm;
use super::markup::{self, escape, figure};
use super::plots::swatch_of;
use crate::RunResult;

/// Returns the settings of [`SETTINGS`] with an effect in the scenario, by their dotted names.
pub(super) fn settings(result: &RunResult) -> Map<String, Value> {
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
        .filter(|(name, _)| matters(name, &tree))
        .collect()
}

/// Writes the systems of the results. Settings that all share are written once, the others in a table.
pub(super) fn systems(results: &[RunResult], data: &Value, out: &mut String) {
    let are_many = results.len() > LOOKS;
    let mut seen: Vec<usize> = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let is_known = |&other: &usize| compared::settings(&results[other], result).is_empty();
        if result.scenario_toml.is_some() && !seen.iter().any(is_known) {
            seen.push(index);
        }
        if are_many && !seen.is_empty() {
            break;
        }
    }
    let Some(&first) = seen.first() else { return };
    out.push_str("<section>\n<h2>The system</h2>\n");
    let pointer =
        |index: usize, name: &str| format!("/results/{index}/settings/{}", markup::pointer_part(name));
    let is_shared = |name: &&(&str, &str)| {
        seen.iter()
            .all(|&index| data.pointer(&pointer(index, name.0)) == data.pointer(&pointer(first, name.0)))
    };
    let (shared, own): (Vec<_>, Vec<_>) = SETTINGS.iter().partition(is_shared);
    let cell = |index: usize, name: &str| figure(data, &pointer(index, name), FigureForm::Text);
    let common: Vec<(String, &str)> =
        shared.into_iter().filter_map(|(name, label)| Some((cell(first, name)?, label))).collect();
    if !common.is_empty() {
        out.push_str("<dl class=\"settings\">\n");
        for (value, label) in common {
            let _ = writeln!(out, "<div><dt>{label}</dt><dd>{value}</dd></div>");
        }
        out.push_str("</dl>\n");
    }
    if are_many {
        out.push_str("<p class=\"note\">Settings of the first result. The others differ from it as their names say.</p>\n");
    }
    if !own.is_empty() {
        out.push_str(
            "<div class=\"scroll\" role=\"region\" aria-label=\"Settings that differ\" tabindex=\"0\">\n\
             <table class=\"own\">\n<thead><tr>",
        );
        let name = |index: usize| {
            format!("{}<bdi>{}</bdi>", swatch_of(index, results), escape(&results[index].label))
        };
        let value = |index: usize, key: &str| cell(index, key).unwrap_or_else(|| "–".into());
        // The shorter list is horizontal, so that the table fits on a page.
        let (corner, across, down): (_, Vec<String>, Vec<(String, Vec<String>)>) = if seen.len() <= own.len()
        {
            let row = |(key, label): &(&str, &str)| {
                ((*label).to_owned(), seen.iter().map(|&index| value(index, key)).collect())
            };
            ("Setting", seen.iter().map(|&index| name(index)).collect(), own.iter().map(row).collect())
        } else {
            let row = |&index: &usize| (name(index), own.iter().map(|(key, _)| value(index, key)).collect());
            let labels = own.iter().map(|(_, label)| (*label).to_owned());
            ("Result", labels.collect(), seen.iter().map(row).collect())
        };
        let _ = write!(out, "<th scope=\"col\">{corner}</th>");
        across.iter().for_each(|head| _ = write!(out, "<th scope=\"col\">{head}</th>"));
        out.push_str("</tr></thead>\n<tbody>\n");
        for (head, cells) in down {
            let _ = write!(out, "<tr><th scope=\"row\">{head}</th>");
            cells.iter().for_each(|cell| _ = write!(out, "<td>{cell}</td>"));
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
    }
    for &index in &seen {
        let of = if seen.len() > 1 {
            format!(": <bdi>{}</bdi>", escape(&results[index].label))
        } else {
            String::new()
        };
        let scenario = results[index].scenario_toml.as_deref().unwrap_or_default();
        let _ = writeln!(
            out,
            "<details><summary>The whole scenario{of}</summary>\n<pre>{}</pre></details>",
            escape(scenario)
        );
    }
    out.push_str("</section>\n");
}
