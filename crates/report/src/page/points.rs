//! The points of a sweep: the columns of their table, and the value at which the verdict changes.

use std::collections::BTreeMap;

use super::swept::{differing, has_seeds, label, quantity, swept};
use crate::RunResult;

/// A column of the table of points: a swept setting, or the seed.
pub(super) struct PointColumn {
    /// Heading of the column.
    pub(super) label: String,
    /// The value of each result.
    pub(super) values: Vec<String>,
}

/// Returns columns that say as much as the results' labels; empty if the labels say more.
pub(super) fn columns(results: &[RunResult]) -> Vec<PointColumn> {
    let differing = differing(results);
    let is_setting = |index: usize, part: &str| {
        let names = |key: &str, value: &str| {
            part == format!("{key}={value}") || part == format!("{} {value}", label(key))
        };
        differing.iter().any(|(key, values)| values[index].as_deref().is_some_and(|value| names(key, value)))
            || part.starts_with("run.seed=")
            || part.to_lowercase().starts_with("seed ")
            // A setting that has the same value in all results.
            || part.split_once('=').is_some_and(|(key, _)| key.contains('.'))
    };
    let are_settings = results
        .iter()
        .enumerate()
        .all(|(index, result)| result.label.split(", ").all(|part| is_setting(index, part)));
    if !are_settings {
        return Vec::new();
    }
    let mut columns: Vec<PointColumn> = Vec::new();
    let mut settings = swept(results);
    // Columns are in the order of the sweep, as in the labels.
    let first = results.first().map_or("", |result| &result.label);
    settings.sort_by_key(|(key, _)| first.find(&format!("{key}=")).or_else(|| first.find(&label(key))));
    for (key, values) in settings {
        let Some(values) = values.into_iter().collect::<Option<Vec<String>>>() else { return Vec::new() };
        columns.push(PointColumn { label: label(&key), values });
    }
    if has_seeds(results) {
        let seed = |result: &RunResult| result.summary.seed.map_or_else(String::new, |seed| seed.to_string());
        columns.push(PointColumn { label: "Seed".to_owned(), values: results.iter().map(seed).collect() });
    }
    columns
}

/// The values between which the verdict of a one-number sweep changes.
pub(super) struct SweepEdge {
    /// Name of the setting.
    pub(super) key: String,
    /// The last value below the edge, and the first above it.
    pub(super) values: [String; 2],
    /// True if results are good below the edge, false if they are good above it.
    pub(super) is_good_below: bool,
}

/// Finds the edge of a one-number sweep whose verdict changes once. `is_good` holds each result's standing. A value with
/// several seeds is good if all of them are.
pub(super) fn edge(results: &[RunResult], is_good: &[bool]) -> Option<SweepEdge> {
    let differing = swept(results);
    let [(key, values)] = &differing[..] else { return None };
    let mut places: BTreeMap<u64, (String, bool)> = BTreeMap::new();
    for (value, &is_good) in values.iter().zip(is_good) {
        let text = value.as_deref()?;
        // The bits of non-negative floats sort in the same order as the numbers.
        let number = quantity(text).map(|quantity| quantity.number).filter(|number| *number >= 0.0)?;
        places.entry(number.to_bits()).or_insert_with(|| (text.to_owned(), true)).1 &= is_good;
    }
    let places: Vec<(String, bool)> = places.into_values().collect();
    let mut changes = places.windows(2).filter(|pair| pair[0].1 != pair[1].1);
    let (change, None) = (changes.next()?, changes.next()) else { return None };
    Some(SweepEdge {
        key: key.clone(),
        values: [change[0].0.clone(), change[1].0.clone()],
        is_good_below: change[0].1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ResultKind, ScenarioName, Summary};

    fn result() -> RunResult {
        RunResult::new(Summary::new(ResultKind::Sim, "1", ScenarioName::default()))
    }

    #[test]
    fn an_edge_stands_where_the_verdict_changes_once() {
        let results: Vec<_> = [8, 9, 10, 4]
            .iter()
            .map(|&senders| {
                let mut one = result();
                one.scenario_toml = Some(format!("[workload]\nsenders = {senders}\n"));
                one
            })
            .collect();
        let found = edge(&results, &[true, false, false, true]).unwrap();
        assert_eq!((found.key.as_str(), found.is_good_below), ("workload.senders", true));
        assert_eq!(found.values, ["8", "9"]);
        assert!(!edge(&results, &[false, true, true, false]).unwrap().is_good_below);
        assert!(edge(&results, &[true, false, true, true]).is_none(), "good, bad and good again");
        assert!(edge(&results, &[true; 4]).is_none());
    }

    #[test]
    fn labels_of_settings_become_columns() {
        let at = |senders: u64, seed: u64, label: String| {
            let mut one = result();
            one.scenario_toml = Some(format!("[workload]\nsenders = {senders}\n"));
            one.summary.seed = Some(seed);
            one.label = label;
            one
        };
        let mut results: Vec<_> = [(4, 1), (4, 2), (8, 1)]
            .iter()
            .map(|&(senders, seed)| at(senders, seed, format!("workload.senders={senders}, run.seed={seed}")))
            .collect();
        let found = columns(&results);
        let labels: Vec<_> = found.iter().map(|column| column.label.as_str()).collect();
        assert_eq!(labels, ["Senders", "Seed"]);
        assert_eq!(found[0].values, ["4", "4", "8"]);
        assert_eq!(found[1].values, ["1", "2", "1"]);
        results[1].label = "shallow".into();
        assert!(columns(&results).is_empty(), "a name of its own is worth its column");
    }
}
