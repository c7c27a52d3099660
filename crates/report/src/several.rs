//! The JSON of commands that make several results: of sweeps, comparisons, claims, advice and searches.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::files::{self, CLAIMS_FILE, CLAIMS_SCHEMA, ReadError};
use crate::page::{ADVICE_PARTS, advice_page};
use crate::sweep::{self, SWEEP_SCHEMA};
use crate::{RunResult, Summary};

/// The schema of a comparison of techniques.
pub const COMPARED_SCHEMA: &str = "fanin.compared/1";
/// The file of a comparison in the folder of its results.
pub const COMPARED_FILE: &str = "compared.json";
/// The schema of an advice.
pub const ADVICE_SCHEMA: &str = "fanin.advice/1";
/// The file of an advice in the folder of its simulations.
const ADVICE_FILE: &str = "advice.json";
/// The schema of a search.
const TUNE_SCHEMA: &str = "fanin.tune/1";
/// The file of a search in the folder of its simulations.
const TUNE_FILE: &str = "tune.json";

/// Schemas of the files that stand next to the folders of their results.
const SCHEMAS: [&str; 5] = [SWEEP_SCHEMA, CLAIMS_SCHEMA, COMPARED_SCHEMA, ADVICE_SCHEMA, TUNE_SCHEMA];

/// The results that a file stands for.
pub(crate) enum Several {
    /// The results in the folder of the file.
    Folder(PathBuf),
    /// The results that the file holds.
    Points(Vec<RunResult>),
    /// The path is no such file.
    None,
}

/// Finds the results that a path stands for, if it is the JSON of a command with several results.
pub(crate) fn of(path: &Path) -> Result<Several, ReadError> {
    let Some((schema, text)) = json_of(path)? else { return Ok(Several::None) };
    if !SCHEMAS.contains(&&*schema) {
        return Ok(Several::None);
    }
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // A file of another name may stand next to the results of another command.
    let is_own = path.file_name().is_some_and(|name| OWN_NAMES.iter().any(|own| name == *own));
    if is_own && !files::results_in(folder)?.is_empty() {
        return Ok(Several::Folder(folder.to_owned()));
    }
    if schema == ADVICE_SCHEMA {
        return Err(ReadError::OwnPage { path: path.into() });
    }
    let damaged = |error| ReadError::Json { path: path.into(), error };
    let value: Value = serde_json::from_str(&text).map_err(damaged)?;
    let points: Vec<&Value> = match &*schema {
        SWEEP_SCHEMA => list(&value["points"]).iter().collect(),
        CLAIMS_SCHEMA => list(&value["runs"]).iter().collect(),
        COMPARED_SCHEMA => {
            rows(&value).map(|(_, row)| row).filter(|row| !row["refused"].is_string()).collect()
        }
        _ => Vec::new(),
    };
    if schema != SWEEP_SCHEMA && (points.is_empty() || points.iter().any(|point| point["summary"].is_null()))
    {
        let command = match &*schema {
            CLAIMS_SCHEMA => "reproduce",
            COMPARED_SCHEMA => "compare",
            _ => "tune",
        };
        return Err(ReadError::NoRuns { path: path.into(), command });
    }
    let results = points.iter().map(|point| result(&value, point)).collect::<Result<_, _>>();
    Ok(Several::Points(results.map_err(damaged)?))
}

/// Reads the schema and the text of a JSON file that names a schema. Returns `None` for other and for damaged files: the reader
/// of summaries reports these.
pub(crate) fn json_of(path: &Path) -> Result<Option<(String, String)>, ReadError> {
    #[derive(Deserialize)]
    struct SchemaOnly {
        schema: String,
    }
    let is_json = path.is_file() && path.extension().is_some_and(|extension| extension == "json");
    if !is_json {
        return Ok(None);
    }
    let text = files::read_text(path)?;
    Ok(serde_json::from_str(&text).ok().map(|SchemaOnly { schema }| (schema, text)))
}

/// Returns the parsed JSON of this schema, from a file of any name or from the file `own` in a folder. `None` for other files.
pub(crate) fn value_of(path: &Path, schema: &str, own: &str) -> Result<Option<Value>, ReadError> {
    let path = if path.is_dir() { Cow::Owned(path.join(own)) } else { Cow::Borrowed(path) };
    let Some((_, text)) = json_of(&path)?.filter(|(found, _)| found == schema) else { return Ok(None) };
    let damaged = |error| ReadError::Json { path: path.into(), error };
    serde_json::from_str(&text).map(Some).map_err(damaged)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the rows of a comparison, each with the name of its scenario.
fn rows(compared: &Value) -> impl Iterator<Item = (&str, &Value)> {
    list(&compared["scenarios"]).iter().flat_map(|scenario| {
        let name = scenario["scenario"].as_str().unwrap_or_default();
        list(&scenario["techniques"]).iter().map(move |row| (name, row))
    })
}

/// Returns the title of a comparison's page, and the notes below its table: techniques that are not possible, or without
/// effect.
pub fn compared_words(compared: &Value) -> (String, Vec<String>) {
    let scenarios = list(&compared["scenarios"]);
    let names: Vec<&str> = scenarios.iter().filter_map(|scenario| scenario["scenario"].as_str()).collect();
    let mut named: Vec<(&str, &str)> = Vec::new();
    let notes = rows(compared).filter_map(|(scenario, row)| {
        // Rows of several seeds share a note.
        let this = (scenario, row["name"].as_str()?);
        if named.contains(&this) {
            return None;
        }
        named.push(this);
        let of = if names.len() > 1 { format!(" on {scenario}") } else { String::new() };
        let name = row["name"].as_str()?;
        match (row["refused"].as_str(), row["remark"].as_str()) {
            (Some(why), _) => Some(format!("{name}{of} is not possible: {why}.")),
            (None, Some(remark)) => Some(format!("{name}{of} has {remark}.")),
            _ => None,
        }
    });
    let notes = notes.collect();
    (format!("Techniques on {}", names.join(", ")), notes)
}

/// Reads the title and the notes of the first comparison among files and folders.
///
/// # Errors
/// If a file is damaged.
pub fn read_compared(paths: &[PathBuf]) -> Result<Option<(String, Vec<String>)>, ReadError> {
    for path in paths {
        if let Some(compared) = value_of(path, COMPARED_SCHEMA, COMPARED_FILE)? {
            return Ok(Some(compared_words(&compared)));
        }
    }
    Ok(None)
}

/// Returns the title of a search's page, and the sentences of its answer.
pub fn tuned_words(tuned: &Value) -> (String, Vec<String>) {
    let name = tuned["scenario"]["name"].as_str().unwrap_or_default();
    let sentences = list(&tuned["answer"]).iter().filter_map(Value::as_str).map(str::to_owned);
    (format!("Tuned {name}"), sentences.collect())
}

/// Reads the title and the answer of the first search among files and folders.
///
/// # Errors
/// If a file is damaged.
pub fn read_tuned(paths: &[PathBuf]) -> Result<Option<(String, Vec<String>)>, ReadError> {
    for path in paths {
        if let Some(tuned) = value_of(path, TUNE_SCHEMA, TUNE_FILE)? {
            return Ok(Some(tuned_words(&tuned)));
        }
    }
    Ok(None)
}

/// Makes the page of the advice in a JSON file or a folder; `None` for other files. The page has no links to simulations,
/// because it may be stored anywhere.
///
/// # Errors
/// If the file is damaged.
pub fn read_advice_page(path: &Path) -> Result<Option<String>, ReadError> {
    let Some(mut advice) = value_of(path, ADVICE_SCHEMA, ADVICE_FILE)? else { return Ok(None) };
    for (part, _) in ADVICE_PARTS {
        for line in advice.get_mut(part).and_then(Value::as_array_mut).into_iter().flatten() {
            line.as_object_mut().and_then(|line| line.remove("folder"));
        }
    }
    advice_page(&advice).map(Some).map_err(|error| ReadError::Json { path: path.into(), error })
}

/// Names that commands give such files within the folder of `--out`.
const OWN_NAMES: [&str; 5] = [sweep::SWEEP_FILE, CLAIMS_FILE, COMPARED_FILE, ADVICE_FILE, TUNE_FILE];

/// Reads one point of a sweep, or one run. Only the settings that were set for it are known of its scenario.
fn result(sweep: &Value, point: &Value) -> Result<RunResult, serde_json::Error> {
    let summary: Summary = serde_json::from_value(point["summary"].clone())?;
    let mut scenario = toml::Table::new();
    for (key, value) in
        point["set"].as_array().into_iter().flatten().filter_map(Value::as_str).filter_map(split)
    {
        set(&mut scenario, key, value);
    }
    let label = sweep::point_label(sweep, &summary).or_else(|| summary.label.clone());
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
