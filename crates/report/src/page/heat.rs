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
use crate::{RunResult, Summary};

/// Columns that a sheet has room for.
const COLUMNS_MAX: usize = 16;

/// The mean time of results at each pair of values of the two settings in which they differ.
pub(super) struct Grid {
    /// The two settings: along the columns, along the rows.
    keys: [String; 2],
    /// The values of both settings in ascending order, as words.
    values: [Vec<String>; 2],
    /// Mean times in milliseconds, row by row; `None` if no result has a time.
    cells: Vec<Vec<Option<f64>>>,
    /// Row by row: true if a result has the standing `bad`.
    is_bad: Vec<Vec<bool>>,
    /// Row by row: the figures of each result by which an effect is judged.
    effects: Vec<Vec<Vec<Effect>>>,
}

/// Times, losses and timers of a result. A setting has an effect if one of them differs between its values.
#[derive(Clone, Debug, Default, PartialEq)]
struct Effect {
    /// Mean, 99th percentile and maximum.
    times: Option<[f64; 3]>,
    /// Dropped frames, retransmission timeouts, tail loss probes and lost events.
    counts: [Option<u64>; 4],
}

impl Effect {
    fn of(summary: &Summary) -> Self {
        let tcp = summary.tcp.as_ref();
        Self {
            times: summary.times().map(|times| [times.mean, times.p99, times.max]),
            counts: [
                summary.network.as_ref().and_then(|network| network.drops),
                tcp.and_then(|tcp| tcp.timeouts),
                tcp.and_then(|tcp| tcp.tail_loss_probes),
                summary.events.as_ref().map(|events| events.lost),
            ],
        }
    }
}

impl Grid {
    /// Exchanges rows and columns if there are more than `columns_max` columns, and fewer rows than columns.
    fn upright(self, columns_max: usize) -> Self {
        let columns = self.values[0].len();
        if columns <= columns_max || columns <= self.values[1].len() {
            return self;
        }
        let turned = |column: usize| self.cells.iter().map(|row| row[column]).collect();
        let cells = (0..columns).map(turned).collect();
        let turned = |column: usize| self.is_bad.iter().map(|row| row[column]).collect();
        let is_bad = (0..columns).map(turned).collect();
        let turned = |column: usize| self.effects.iter().map(|row| row[column].clone()).collect();
        let effects = (0..columns).map(turned).collect();
        let ([first, second], [across, down]) = (self.keys, self.values);
        Self { keys: [second, first], values: [down, across], cells, is_bad, effects }
    }
}

/// Makes the grid of results that differ in two numeric settings, each with at least three values. Returns `None` otherwise.
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
    let at = |column: &String, row: &String| {
        let here = |index: &usize| {
            first_values[*index].as_ref() == Some(column) && second_values[*index].as_ref() == Some(row)
        };
        let results: Vec<&Summary> =
            (0..results.len()).filter(here).map(|index| &results[index].summary).collect();
        results
    };
    fn cells_of<T>(values: &[Vec<String>; 2], cell: impl Fn(&String, &String) -> T) -> Vec<Vec<T>> {
        values[1].iter().map(|row| values[0].iter().map(|column| cell(column, row)).collect()).collect()
    }
    let cells = cells_of(&values, |column, row| {
        let results = at(column, row);
        let times: Vec<f64> =
            results.iter().filter_map(|summary| summary.times().map(|times| times.mean)).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    });
    let is_bad = cells_of(&values, |column, row| {
        at(column, row).into_iter().any(|summary| headline(summary).0 == Standing::Bad)
    });
    let effects = cells_of(&values, |column, row| at(column, row).into_iter().map(Effect::of).collect());
    let is_known = cells.iter().flatten().any(Option::is_some);
    is_known.then(|| Grid { keys: [first.clone(), second.clone()], values, cells, is_bad, effects })
}

/// Returns the setting without any effect: 0 if all columns of a grid are equal, 1 if all rows are.
fn without_effect<T: PartialEq>(cells: &[Vec<T>]) -> Option<usize> {
    if cells.iter().all(|row| row.windows(2).all(|pair| pair[0] == pair[1])) {
        return Some(0);
    }
    cells.windows(2).all(|pair| pair[0] == pair[1]).then_some(1)
}

/// Draws the heat map. Returns `None` if results do not differ in two settings with at least three values each.
pub(super) fn draw(results: &[RunResult]) -> Option<Drawing> {
    let Grid { keys, values, cells, is_bad, effects } = grid(results)?.upright(COLUMNS_MAX);
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
    let idle = without_effect(&effects).map(|along| [&columns, &rows][along]);
    let idle = idle.map_or_else(String::new, |key| {
        format!(
            "{} has no effect here: all its values give the same times, drops and timeouts. ",
            escape(key)
        )
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
    use crate::{NetworkFigures, RequestCounts, ResultKind, ScenarioName, TcpFigures, Times};

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
        assert_eq!(without_effect(&found.effects), None);
        assert_eq!(without_effect(&[[1; 2].to_vec(), [2; 2].to_vec()]), Some(0));
        assert_eq!(without_effect(&[[1, 2].to_vec(), [1, 2].to_vec()]), Some(1));
        let same: Vec<_> = [48, 96, 480]
            .iter()
            .flat_map(|&credits| {
                [4, 8, 10]
                    .map(|senders| RunResult { summary: at(1, senders).summary, ..at(credits, senders) })
            })
            .collect();
        assert!(draw(&same).unwrap().html.contains("Credits has no effect here"));
        // Equal means may hide a worse tail, or losses that cost no time on average.
        let differing = |change: fn(&mut Summary)| {
            let mut results = same.clone();
            change(&mut results[0].summary);
            draw(&results).unwrap().html
        };
        let p99 = |summary: &mut Summary| {
            let requests = summary.requests.as_mut().unwrap();
            requests.time_ms.as_mut().unwrap().p99 = 200.0;
        };
        let drops = |summary: &mut Summary| {
            summary.network = Some(NetworkFigures { drops: Some(3), ..NetworkFigures::default() });
        };
        let timeouts = |summary: &mut Summary| {
            summary.tcp = Some(TcpFigures { timeouts: Some(1), ..TcpFigures::default() });
        };
        for change in [p99, drops, timeouts] {
            assert!(!differing(change).contains("no effect"));
        }
        assert_eq!(turned.cells[3], [1920.0, 3840.0, 4800.0].map(Some));
    }
}
