//! A sweep as a result: one row a point, as JSON, CSV and Parquet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::files::{WriteError, write_text};
use crate::named::{NAMED_FIGURES, NamedFigure};
use crate::page::SWEEP_PAGE;
use crate::seeds::{seed_figures, seed_values};
use crate::{RunResult, Summary};

/// The schema of a sweep's JSON.
pub const SWEEP_SCHEMA: &str = "fanin.sweep/1";
/// File of the sweep's JSON in the folder of its points.
pub const SWEEP_FILE: &str = "sweep.json";
/// File of the sweep's table as CSV.
pub const SWEEP_CSV: &str = "sweep.csv";
/// CSV file with a row for each point over its seeds, if points have several.
pub const SEEDS_CSV: &str = "seeds.csv";
/// The rows of [`SWEEP_CSV`] as a table.
pub const SWEEP_TABLE: &str = "sweep.parquet";

/// One point of a sweep: the swept settings in the given order, and the result.
#[derive(Clone, Copy, Debug)]
pub struct SweepPoint<'a> {
    /// `KEY=VALUE`, as for `--set`.
    pub set: &'a [String],
    /// Summary of the run.
    pub summary: &'a Summary,
}

/// The points of a sweep that differ in their seeds alone.
struct SeedPoints<'a> {
    set: &'a [String],
    summaries: Vec<&'a Summary>,
}

/// Groups the points with equal settings, in their order. Returns no group if each point has one seed.
fn over_seeds<'a>(points: &[SweepPoint<'a>]) -> Vec<SeedPoints<'a>> {
    let mut groups: Vec<SeedPoints<'a>> = Vec::new();
    for point in points {
        match groups.iter_mut().find(|group| group.set == point.set) {
            Some(group) => group.summaries.push(point.summary),
            None => groups.push(SeedPoints { set: point.set, summaries: vec![point.summary] }),
        }
    }
    if groups.len() < points.len() { groups } else { Vec::new() }
}

/// Writes a CSV row for each point over its seeds: mean of each figure, half width of the mean's 95 % interval, and number of
/// seeds.
fn seeds_csv(keys: &[String], groups: &[SeedPoints<'_>]) -> String {
    let rows: Vec<_> = groups.iter().map(|group| seed_figures(&group.summaries)).collect();
    let is_known = |figure: &&NamedFigure| rows.iter().flatten().any(|(other, _)| other == figure);
    let known: Vec<&NamedFigure> = NAMED_FIGURES.iter().filter(is_known).collect();
    let head = keys.iter().map(|key| quoted(key)).chain(["seeds".to_owned()]);
    let columns =
        known.iter().flat_map(|figure| ["", "_half", "_seeds"].map(|end| format!("{}{end}", figure.column)));
    let mut text = head.chain(columns).collect::<Vec<_>>().join(",") + "\n";
    for (group, row) in groups.iter().zip(&rows) {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let cells = known.iter().flat_map(|figure| {
            let over = row.iter().find(|(other, _)| other == figure).map(|(_, over)| over);
            let interval = over.map(|over| over.interval);
            [
                number(interval.map(|interval| interval.mean)),
                number(interval.and_then(|interval| interval.half)),
                over.map_or(0, |over| over.known).to_string(),
            ]
        });
        let values = group.set.iter().map(|set| quoted(&split(set).1));
        let cells = values.chain([group.summaries.len().to_string()]).chain(cells);
        text += &(cells.collect::<Vec<_>>().join(",") + "\n");
    }
    text
}

/// Splits a setting into key and value.
fn split(set: &str) -> (String, String) {
    let (key, value) = set.split_once('=').unwrap_or((set, ""));
    (key.trim().to_owned(), value.trim().to_owned())
}

/// The table of a sweep: each cell is a text or a number, or absent.
struct SweepTable {
    /// The swept keys, then the seed, then the figures that some point has.
    keys: Vec<String>,
    figures: Vec<&'static str>,
    rows: Vec<SweepRow>,
}

struct SweepRow {
    values: Vec<String>,
    seed: Option<u64>,
    figures: Vec<Option<f64>>,
}

impl SweepTable {
    fn of(points: &[SweepPoint<'_>]) -> Self {
        let keys: Vec<String> =
            points.first().map_or(&[][..], |point| point.set).iter().map(|set| split(set).0).collect();
        let trees: Vec<Value> =
            points.iter().map(|point| serde_json::to_value(point.summary).unwrap_or_default()).collect();
        let known = |figure: &&NamedFigure| {
            points.iter().zip(&trees).any(|(point, tree)| figure.of_tree(point.summary, tree).is_some())
        };
        let figures: Vec<&'static NamedFigure> = NAMED_FIGURES.iter().filter(known).collect();
        let row = |(point, tree): (&SweepPoint<'_>, &Value)| SweepRow {
            values: point.set.iter().map(|set| split(set).1).collect(),
            seed: point.summary.seed,
            figures: figures.iter().map(|figure| figure.of_tree(point.summary, tree)).collect(),
        };
        let rows = points.iter().zip(&trees).map(row).collect();
        Self { keys, figures: figures.iter().map(|figure| figure.column).collect(), rows }
    }

    fn csv(&self) -> String {
        let head = self.keys.iter().map(|key| quoted(key)).chain(["seed".into()]);
        let head: Vec<String> = head.chain(self.figures.iter().map(|name| (*name).to_owned())).collect();
        let mut text = head.join(",") + "\n";
        for row in &self.rows {
            let seed = row.seed.map_or_else(String::new, |seed| seed.to_string());
            let figures =
                row.figures.iter().map(|figure| figure.map_or_else(String::new, |figure| figure.to_string()));
            let cells: Vec<String> =
                row.values.iter().map(|value| quoted(value)).chain([seed]).chain(figures).collect();
            text += &(cells.join(",") + "\n");
        }
        text
    }
}

/// Quotes a cell of a CSV file where necessary (RFC 4180 §2).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Returns the sweep as JSON: the swept keys, and each point's settings and summary. If points have several seeds, adds the
/// means of their figures with intervals.
pub fn sweep_value(points: &[SweepPoint<'_>]) -> Value {
    let table = SweepTable::of(points);
    let groups = over_seeds(points);
    let points: Vec<Value> =
        points.iter().map(|point| json!({ "set": point.set, "summary": point.summary })).collect();
    let mut value = json!({ "schema": SWEEP_SCHEMA, "keys": table.keys, "points": points });
    if !groups.is_empty() {
        let of = |group: &SeedPoints<'_>| {
            let seeds: Vec<Option<u64>> = group.summaries.iter().map(|summary| summary.seed).collect();
            json!({ "set": group.set, "seeds": seeds, "figures": seed_values(&group.summaries) })
        };
        value["over_seeds"] = groups.iter().map(of).collect();
    }
    value
}

/// Writes a sweep's JSON, tables and page into the folder of its points; returns the written files.
///
/// # Errors
/// If a file cannot be written.
pub fn write_sweep(
    directory: &Path,
    points: &[SweepPoint<'_>],
    results: &[RunResult],
) -> Result<Vec<PathBuf>, WriteError> {
    std::fs::create_dir_all(directory).map_err(|error| WriteError::Io { path: directory.into(), error })?;
    let mut written = Vec::new();
    let table = SweepTable::of(points);
    write_text(directory, SWEEP_CSV, &table.csv(), &mut written)?;
    let groups = over_seeds(points);
    if !groups.is_empty() {
        write_text(directory, SEEDS_CSV, &seeds_csv(&table.keys, &groups), &mut written)?;
    }
    #[cfg(feature = "parquet")]
    {
        let path = directory.join(SWEEP_TABLE);
        let columns = columns(&table);
        crate::files::replace(&path, |file| crate::tables::write_columns("fanin.sweep/1", &columns, file))
            .map_err(|error| WriteError::Table { path: path.clone(), error })?;
        written.push(path);
    }
    write_text(directory, SWEEP_PAGE, &crate::page(results), &mut written)?;
    let mut text = serde_json::to_string_pretty(&sweep_value(points)).unwrap_or_default();
    text.push('\n');
    write_text(directory, SWEEP_FILE, &text, &mut written)?;
    Ok(written)
}

/// Returns the columns of the Parquet table.
#[cfg(feature = "parquet")]
fn columns(table: &SweepTable) -> Vec<(String, crate::tables::AnyColumn)> {
    use crate::tables::AnyColumn::{Ids, Numbers, Texts};
    let mut columns = Vec::new();
    for (place, key) in table.keys.iter().enumerate() {
        let values = table.rows.iter().map(|row| row.values.get(place).cloned().unwrap_or_default());
        columns.push((key.clone(), Texts(values.collect())));
    }
    columns.push(("seed".into(), Ids(table.rows.iter().map(|row| row.seed).collect())));
    for (place, name) in table.figures.iter().enumerate() {
        columns
            .push(((*name).to_owned(), Numbers(table.rows.iter().map(|row| row.figures[place]).collect())));
    }
    columns
}

/// Labels points of sweeps with the swept settings, as the page of the sweep does. `paths` are the folders of the results; the
/// file of a sweep stands in their parent folder. If a folder also holds points of another sweep, no label is set: the settings
/// would not distinguish the sweeps.
pub(crate) fn label_points(paths: &[PathBuf], results: &mut [RunResult]) {
    let mut sweeps: BTreeMap<PathBuf, Option<Value>> = BTreeMap::new();
    let mut labels: Vec<(usize, PathBuf, Option<String>)> = Vec::new();
    for (index, (path, result)) in paths.iter().zip(&*results).enumerate() {
        let Some(folder) = path.canonicalize().ok().and_then(|path| Some(path.parent()?.to_owned())) else {
            continue;
        };
        let sweep = sweeps.entry(folder.clone()).or_insert_with_key(|folder| sweep_in(folder));
        if let Some(sweep) = sweep {
            labels.push((index, folder, point_label(sweep, &result.summary)));
        }
    }
    let is_mixed = |folder: &Path| labels.iter().any(|(_, other, label)| other == folder && label.is_none());
    for (index, folder, label) in &labels {
        if let Some(label) = label
            && !is_mixed(folder)
        {
            results[*index].label.clone_from(label);
        }
    }
    if sweeps.len() < 2 {
        return;
    }
    // The names of the folders keep points of several sweeps apart. Labels with a seed alone would be ambiguous next to other
    // results.
    let labels: Vec<String> = results.iter().map(|result| result.label.clone()).collect();
    for (path, result) in paths.iter().zip(results) {
        let above = path.canonicalize().ok().and_then(|path| Some(path.parent()?.file_name()?.to_owned()));
        if let Some(above) = above.filter(|_| {
            is_seed(&result.label) || labels.iter().filter(|label| **label == result.label).count() > 1
        }) {
            result.label = format!("{}: {}", above.to_string_lossy(), result.label);
        }
    }
}

/// Returns true if a label has no setting but the seed.
fn is_seed(label: &str) -> bool {
    label.starts_with("run.seed=") && !label.contains(", ")
}

/// Reads the JSON of the sweep in a folder.
fn sweep_in(folder: &Path) -> Option<Value> {
    let text = crate::files::read_text(&folder.join(SWEEP_FILE)).ok()?;
    let sweep: Value = serde_json::from_str(&text).ok()?;
    (sweep["schema"] == SWEEP_SCHEMA).then_some(sweep)
}

/// Returns the label of the sweep's point that has this summary: its settings, and the seed if the sweep has several. `None` if
/// the sweep has no such point.
pub(crate) fn point_label(sweep: &Value, summary: &Summary) -> Option<String> {
    let points = sweep["points"].as_array()?;
    let seed = |point: &Value| point["summary"]["seed"].as_u64();
    let is_own = |point: &&Value| {
        point["summary"]["scenario"]["hash"] == summary.scenario.hash && seed(point) == summary.seed
    };
    let own = points.iter().find(is_own)?;
    let mut set: Vec<String> =
        own["set"].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let has_seeds = points.windows(2).any(|pair| seed(&pair[0]) != seed(&pair[1]));
    let names_seed = set.iter().any(|setting| setting.starts_with("run.seed="));
    set.extend(seed(own).filter(|_| has_seeds && !names_seed).map(|seed| format!("run.seed={seed}")));
    (!set.is_empty()).then(|| set.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RequestCounts, ResultKind, ScenarioName, Times};

    fn summary(completed: u64, mean: f64) -> Summary {
        let mut summary = Summary::new(ResultKind::Sim, "1", ScenarioName::default());
        let time_ms = (completed > 0).then(|| Times { mean, p99: mean, ..Times::default() });
        summary.requests = Some(RequestCounts { completed, time_ms, ..RequestCounts::default() });
        summary.seed = Some(7);
        summary
    }

    #[test]
    fn one_row_a_point_and_no_figure_without_events() {
        let summaries = [summary(200, 1.5), summary(50, 2.5), summary(0, 0.0)];
        let sets: Vec<Vec<String>> = ["4", "8", "a,b"]
            .map(|value| vec![format!("workload.senders={value}"), "x.y=1 ms".into()])
            .into();
        let points: Vec<SweepPoint<'_>> =
            sets.iter().zip(&summaries).map(|(set, summary)| SweepPoint { set, summary }).collect();
        let table = SweepTable::of(&points);
        assert_eq!(table.keys, ["workload.senders", "x.y"]);
        let csv = table.csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[0].starts_with("workload.senders,x.y,seed,requests_completed,"), "{csv}");
        let at = |line: usize, name: &str| {
            let place = lines[0].split(',').position(|column| column == name).unwrap();
            lines[line].split(',').nth(place).unwrap().to_owned()
        };
        assert_eq!(
            (at(1, "time_ms_p99"), at(2, "time_ms_p99")),
            ("1.5".into(), String::new()),
            "50 are too few"
        );
        assert_eq!(at(2, "time_ms_mean"), "2.5");
        assert!(lines[3].starts_with("\"a,b\",1 ms,7,0,"), "{csv}");
        assert_eq!(sweep_value(&points)["keys"], json!(["workload.senders", "x.y"]));
    }

    #[test]
    fn points_with_seeds_have_intervals() {
        let of = |seed, completed, mean| Summary { seed: Some(seed), ..summary(completed, mean) };
        let summaries = [of(1, 200, 1.0), of(2, 200, 2.0), of(3, 0, 0.0), of(1, 200, 7.0)];
        let sets: Vec<Vec<String>> = [4, 4, 4, 8].map(|value| vec![format!("a.b={value}")]).into();
        let points: Vec<SweepPoint<'_>> =
            sets.iter().zip(&summaries).map(|(set, summary)| SweepPoint { set, summary }).collect();
        let value = sweep_value(&points);
        let over = &value["over_seeds"];
        assert_eq!((&over[0]["set"], &over[0]["seeds"]), (&json!(["a.b=4"]), &json!([1, 2, 3])));
        let mean = &over[0]["figures"]["time_ms_mean"];
        assert_eq!((&mean["mean"], &mean["seeds"]), (&json!(1.5), &json!(2)), "the third seed has none");
        assert!(mean["low"].as_f64() < Some(1.5) && mean["high"].as_f64() > Some(1.5), "{mean}");
        let alone = &over[1]["figures"]["time_ms_mean"];
        assert!(alone["mean"] == 7.0 && alone.get("low").is_none(), "one seed has no interval: {alone}");
        let csv = seeds_csv(&["a.b".to_owned()], &over_seeds(&points));
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 3, "{csv}");
        assert!(lines[0].starts_with("a.b,seeds,requests_completed,requests_completed_half,"), "{csv}");
        let place = lines[0].split(',').position(|name| name == "time_ms_mean").unwrap();
        let cells = |line: usize| lines[line].split(',').skip(place).take(3).collect::<Vec<_>>();
        assert_eq!((cells(1)[0], cells(1)[2]), ("1.5", "2"), "{csv}");
        assert_eq!(cells(2), ["7", "", "1"], "{csv}");
        assert!(sweep_value(&points[2..]).get("over_seeds").is_none(), "one seed a point");
    }

    #[test]
    fn a_folder_holds_every_form() {
        let directory = std::env::temp_dir().join(format!("fanin-sweep-{}", std::process::id()));
        let summary = summary(200, 1.5);
        let set = ["workload.senders=4".to_owned()];
        let results = [RunResult::new(summary.clone())];
        let written =
            write_sweep(&directory, &[SweepPoint { set: &set, summary: &summary }], &results).unwrap();
        assert!(written.iter().all(|path| path.metadata().unwrap().len() > 20));
        #[cfg(feature = "parquet")]
        {
            use parquet::file::reader::{FileReader, SerializedFileReader};
            let file = std::fs::File::open(directory.join(SWEEP_TABLE)).unwrap();
            let reader = SerializedFileReader::new(file).unwrap();
            let metadata = reader.metadata().file_metadata();
            assert_eq!(metadata.num_rows(), 1);
            let names: Vec<&str> =
                metadata.schema_descr().columns().iter().map(|column| column.name()).collect();
            assert_eq!(names[..3], ["workload.senders", "seed", "requests_completed"]);
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn points_are_called_by_what_was_swept_alone() {
        let directory = std::env::temp_dir().join(format!("fanin-points-{}", std::process::id()));
        let points: Vec<(Vec<String>, RunResult)> = ["1500", "9000"]
            .into_iter()
            .flat_map(|mtu| (1..=3).map(move |seed| (mtu, seed)))
            .map(|(mtu, seed)| {
                let mut result = RunResult::new(summary(200, 1.5));
                result.summary.seed = Some(seed);
                result.summary.scenario.hash = format!("{mtu} {seed}");
                // The segment size follows the MTU, and was not swept.
                result.scenario_toml = Some(format!(
                    "[transport]\nmtu = \"{mtu} B\"\nmss = \"{mtu}9 B\"\n[run]\nseed = {seed}\n"
                ));
                (vec![format!("transport.mtu={mtu} B")], result)
            })
            .collect();
        for (number, (_, result)) in points.iter().enumerate() {
            crate::write(&directory.join(format!("{number:03}")), result, "").unwrap();
        }
        let sets: Vec<SweepPoint<'_>> =
            points.iter().map(|(set, result)| SweepPoint { set, summary: &result.summary }).collect();
        write_sweep(&directory, &sets, &[]).unwrap();
        let read = |paths: &[&str]| -> Vec<String> {
            let paths: Vec<PathBuf> = paths.iter().map(|path| directory.join(path)).collect();
            crate::read_all(&paths).unwrap().into_iter().map(|result| result.label).collect()
        };
        let labels: Vec<String> = ["1500", "9000"]
            .into_iter()
            .flat_map(|mtu| (1..=3).map(move |seed| format!("transport.mtu={mtu} B, run.seed={seed}")))
            .collect();
        assert_eq!(read(&[""]), labels);
        assert_eq!(read(&["003", "000"]), [&*labels[3], &*labels[0]], "single points of it, too");
        assert_eq!(read(&["sweep.json"]), labels, "the file stands for its folder");
        std::fs::rename(directory.join(SWEEP_FILE), directory.join("alone.json")).unwrap();
        assert_eq!(read(&["alone.json"]), labels, "elsewhere it has the points itself");
        std::fs::rename(directory.join("alone.json"), directory.join(SWEEP_FILE)).unwrap();
        let page = crate::page(&crate::read_all(std::slice::from_ref(&directory)).unwrap());
        let table = &page[page.find("<table class=\"points").unwrap()..];
        let columns = table[..table.find("</thead>").unwrap()].to_lowercase();
        assert!(columns.contains("mtu") && columns.contains("seed") && !columns.contains("mss"), "{columns}");
        assert!(!columns.contains("segment"), "{columns}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
