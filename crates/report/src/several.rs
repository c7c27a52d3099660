//! The JSON of commands that make several results: of sweeps, comparisons, claims, advice and searches.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::files::{self, CLAIMS_SCHEMA, ReadError};
use crate::sweep::{self, SWEEP_SCHEMA};
use crate::{RunResult, Summary};

/// Schemas of files that stand above the folders of their results.
const SCHEMAS: [&str; 5] =
    [SWEEP_SCHEMA, CLAIMS_SCHEMA, "fanin.compared/1", "fanin.advice/1", "fanin.tune/1"];

/// The results that a file stands for.
pub(crate) enum Several {
    /// The results in the folder of the file.
    Folder(PathBuf),
    /// The points that a sweep's file holds.
    Points(Vec<RunResult>),
    /// The path is no such file.
    None,
}

/// Finds the results that a path stands for, if it is the JSON of several.
pub(crate) fn of(path: &Path) -> Result<Several, ReadError> {
    #[derive(Deserialize)]
    struct SchemaOnly {
        schema: String,
    }
    let is_json = path.is_file() && path.extension().is_some_and(|extension| extension == "json");
    let text = if is_json { files::read_text(path)? } else { return Ok(Several::None) };
    // Damaged files are reported by those who read a summary.
    let Ok(SchemaOnly { schema }) = serde_json::from_str(&text) else { return Ok(Several::None) };
    if !SCHEMAS.contains(&&*schema) {
        return Ok(Several::None);
    }
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // A file of another name may lie anywhere, next to results of others.
    let is_own = path.file_name().is_some_and(|name| OWN_NAMES.iter().any(|own| name == *own));
    if is_own && !files::results_in(folder)?.is_empty() {
        return Ok(Several::Folder(folder.to_owned()));
    }
    if schema != SWEEP_SCHEMA {
        return Err(ReadError::NoRuns { path: path.into() });
    }
    let damaged = |error| ReadError::Json { path: path.into(), error };
    let value: Value = serde_json::from_str(&text).map_err(damaged)?;
    let points = value["points"].as_array().map_or(&[][..], Vec::as_slice);
    let results = points.iter().map(|point| result(&value, point)).collect::<Result<_, _>>();
    Ok(Several::Points(results.map_err(damaged)?))
}

/// Names that commands give such files within the folder of `--out`.
const OWN_NAMES: [&str; 5] =
    [sweep::SWEEP_FILE, files::CLAIMS_FILE, "compared.json", "advice.json", "tune.json"];

/// One point of a sweep. Only the swept settings of its scenario are known.
fn result(sweep: &Value, point: &Value) -> Result<RunResult, serde_json::Error> {
    let summary: Summary = serde_json::from_value(point["summary"].clone())?;
    let mut scenario = toml::Table::new();
    for (key, value) in
        point["set"].as_array().into_iter().flatten().filter_map(Value::as_str).filter_map(split)
    {
        set(&mut scenario, key, value);
    }
    let label = sweep::point_label(sweep, &summary);
    let mut result = RunResult::new(summary);
    result.scenario_toml = Some(scenario.to_string());
    if let Some(label) = label {
        result.label = label;
    }
    Ok(result)
}

fn split(set: &str) -> Option<(&str, &str)> {
    let (key, value) = set.split_once('=')?;
    Some((key.trim(), value.trim()))
}

/// Sets a dotted key.
fn set(tree: &mut toml::Table, key: &str, value: &str) {
    match key.split_once('.') {
        None => _ = tree.insert(key.to_owned(), toml::Value::String(value.to_owned())),
        Some((section, rest)) => {
            let section = tree.entry(section).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let toml::Value::Table(section) = section {
                set(section, rest, value);
            }
        }
    }
}
