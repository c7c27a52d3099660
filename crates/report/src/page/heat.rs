//! A heat map: the mean time at each pair of values of two swept settings.

use std::fmt::Write;

use serde_json::json;

use super::following::leading_and_following;
use super::format::{significant, typeset};
use super::many::unbroken;
use super::markup::escape;
use super::pictured::Drawing;
use super::swept::{self, quantity};
use super::verdict::{Standing, headline};
use crate::RunResult;

/// Columns that a sheet has room for.
const COLUMNS_MAX: usize = 16;

/// The mean time of results at each pair of values of the two settings in which they differ.
pub(super) struct Grid {
    /// The two settings: along the columns, along the rows.
    keys: [String; 2],
    /// Their values in ascending order, as words.
    values: [Vec<String>; 2],
    /// Row by row; `None` where no result has a time.
    cells: Vec<Vec<Option<f64>>>,
    /// Row by row, true where a result dropped frames, or worse.
    is_bad: Vec<Vec<bool>>,
}

impl Grid {
    /// The same with rows for columns, where it has more than `columns_max` columns and fewer rows.
    fn upright(self, columns_max: usize) -> Self {
        let columns = self.values[0].len();
        if columns <= columns_max || columns <= self.values[1].len() {
            return self;
        }
        let turned = |column: usize| self.cells.iter().map(|row| row[column]).collect();
        let cells = (0..columns).map(turned).collect();
        let turned = |column: usize| self.is_bad.iter().map(|row| row[column]).collect();
        let is_bad = (0..columns).map(turned).collect();
        let ([first, second], [across, down]) = (self.keys, self.values);
        Self { keys: [second, first], values: [down, across], cells, is_bad }
    }
}

/// The grid of results that differ in two settings, each with three values or more that are numbers.
pub(super) fn grid(results: &[RunResult]) -> Option<Grid> {
    let (differing, _) = leading_and_following(results);
    let [(first, first_values), (second, second_values)] = &differing[..] else { return None };
    let axis = |values: &[Option<String>]| -> Option<Vec<String>> {
        let mut known: Vec<(f64, String)> = Vec::new();
        for value in values {
            let text = value.as_deref()?;
            let number = quantity(text)?.number;
            if !known.iter().any(|(_, other)| other == text) {
                known.push((number, text.to_owned()));
            }
        }
        known.sort_by(|one, other| one.0.total_cmp(&other.0));
        (known.len() >= 3).then(|| known.into_iter().map(|(_, text)| text).collect())
    };
    let values = [axis(first_values)?, axis(second_values)?];
    let time_at = |column: &String, row: &String| {
        let here = |index: &usize| {
            first_values[*index].as_ref() == Some(column) && second_values[*index].as_ref() == Some(row)
        };
        let times = (0..results.len()).filter(here);
        let times: Vec<f64> =
            times.filter_map(|index| results[index].summary.times().map(|times| times.mean)).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    };
    let cells: Vec<Vec<Option<f64>>> =
        (values[1].iter()).map(|row| values[0].iter().map(|column| time_at(column, row)).collect()).collect();
    let is_bad_at = |column: &String, row: &String| {
        results.iter().zip(first_values.iter().zip(second_values)).any(|(result, (one, other))| {
            one.as_ref() == Some(column)
                && other.as_ref() == Some(row)
                && headline(&result.summary).0 == Standing::Bad
        })
    };
    let is_bad = (values[1].iter())
        .map(|row| values[0].iter().map(|column| is_bad_at(column, row)).collect())
        .collect();
    let is_known = cells.iter().flatten().any(Option::is_some);
    is_known.then(|| Grid { keys: [first.clone(), second.clone()], values, cells, is_bad })
}

/// The setting without any effect: 0 if all columns of a grid are equal, 1 if all rows are.
fn without_effect(cells: &[Vec<Option<f64>>]) -> Option<usize> {
    if cells.iter().all(|row| row.windows(2).all(|pair| pair[0] == pair[1])) {
        return Some(0);
    }
    cells.windows(2).all(|pair| pair[0] == pair[1]).then_some(1)
}

/// The heat map; none where results do not differ in two settings with three values or more each.
pub(super) fn draw(results: &[RunResult]) -> Option<Drawing> {
    let Grid { keys, values, cells, is_bad } = grid(results)?.upright(COLUMNS_MAX);
    let [columns, rows] = [&keys[0], &keys[1]].map(|key| swept::label(key));
    let known = || cells.iter().flatten().flatten().copied();
    let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    // Times differ by orders of magnitude where a network collapses.
    let share = |time: f64| {
        if high > low && low > 0.0 { (time / low).ln() / (high / low).ln() } else { 0.0 }
    };
    let mut html = format!(
        "<figure class=\"heat\">\n<h3>Mean time in ms against {} and {}</h3>\n<div class=\"scroll\" role=\"region\" \
         aria-label=\"Heat map\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">{} ↓<br/>{} →</th>",
        escape(&columns.to_lowercase()),
        escape(&rows.to_lowercase()),
        escape(&rows),
        escape(&columns)
    );
    for value in &values[0] {
        let _ = write!(html, "<th scope=\"col\" class=\"n\">{}</th>", escape(&typeset(value)));
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
                    significant(*time)
                ),
                None => write!(html, "<td class=\"{class}\">–</td>"),
            };
        }
        html += "</tr>\n";
    }
    let idle = without_effect(&cells).map(|along| [&columns, &rows][along]);
    let idle = idle.map_or_else(String::new, |key| {
        format!("{} has no effect here: all its values give the same times. ", escape(key))
    });
    let _ = write!(
        html,
        "</tbody></table></div>\n<figcaption class=\"note\">{idle}The darker a cell, the longer the time, on a logarithmic \
         scale{}. ✕: frames were lost, or worse.</figcaption>\n</figure>\n",
        if swept::has_seeds(results) { "; means over seeds" } else { "" }
    );
    let data = json!({ "title": "Heat map", "keys": keys, "values": values, "time_ms": cells });
    Some(Drawing { id: "heat".to_owned(), data, html })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestCounts, ResultKind, ScenarioName, Summary, Times};

    #[test]
    fn two_settings_with_three_values_each_make_a_grid() {
        let at = |credits: u64, senders: u64| {
            let mut summary = Summary::new(ResultKind::Sim, "1", ScenarioName::default());
            let times = Times { mean: (credits * senders) as f64, ..Times::default() };
            summary.requests = Some(RequestCounts { time_ms: Some(times), ..RequestCounts::default() });
            let toml = format!("[shaping]\ncredits = {credits}\n[workload]\nsenders = {senders}\n");
            RunResult { scenario_toml: Some(toml), ..RunResult::new(summary) }
        };
        let results: Vec<_> = [48, 96, 480]
            .iter()
            .flat_map(|&credits| [10, 4, 8].map(|senders| at(credits, senders)))
            .collect();
        let found = grid(&results).unwrap();
        assert_eq!(found.keys, ["shaping.credits", "workload.senders"]);
        assert_eq!(found.values[1], ["4", "8", "10"]);
        assert_eq!(found.cells[2], [480.0, 960.0, 4800.0].map(Some));
        assert!(grid(&results[..6]).is_none(), "two values are no axis");
        let wide: Vec<_> = [48, 96, 192, 480]
            .iter()
            .flat_map(|&credits| [4, 8, 10].map(|senders| at(credits, senders)))
            .collect();
        assert_eq!(grid(&wide).unwrap().upright(4).values[0].len(), 4);
        let turned = grid(&wide).unwrap().upright(3);
        assert_eq!((turned.keys[0].as_str(), turned.values[0].len()), ("workload.senders", 3));
        assert_eq!(without_effect(&found.cells), None);
        assert_eq!(without_effect(&[vec![Some(1.0); 2], vec![Some(2.0); 2]]), Some(0));
        assert_eq!(without_effect(&[vec![Some(1.0), Some(2.0)], vec![Some(1.0), Some(2.0)]]), Some(1));
        let same: Vec<_> = [48, 96, 480]
            .iter()
            .flat_map(|&credits| {
                [4, 8, 10]
                    .map(|senders| RunResult { summary: at(1, senders).summary, ..at(credits, senders) })
            })
            .collect();
        assert!(draw(&same).unwrap().html.contains("Credits has no effect here"));
        assert_eq!(turned.cells[3], [1920.0, 3840.0, 4800.0].map(Some));
    }
}
