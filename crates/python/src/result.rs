//! Results of a simulation in memory, or of a folder that the command wrote.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use fanin_report::{Records, ResultKind, RunResult, Summary, TableName};
use fanin_runs::{RunEnd, RunOutcome};
use pyo3::exceptions::{PyKeyError, PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::table::RecordTable;

/// A result; its tables are read when they are asked for.
#[pyclass(frozen, module = "fanin._fanin")]
pub(crate) struct LoadedResult {
    /// Summary and scenario; the records are in `tables`.
    head: RunResult,
    /// `complete`, `stopped` or `stalled`; empty if unknown.
    #[pyo3(get)]
    end: &'static str,
    /// The waiting hosts and their reasons, if the run stalled.
    #[pyo3(get)]
    diagnosis: Option<String>,
    source: Tables,
}

/// Place of the tables.
enum Tables {
    Memory(Arc<Records>),
    Folder(PathBuf, [OnceLock<Arc<Records>>; TableName::ALL.len()]),
    /// No tables: the result is a summary alone.
    Nowhere,
}

impl LoadedResult {
    /// Makes the result of a simulation, with its scenario's name as its label.
    pub(crate) fn simulated(outcome: RunOutcome, toml: &str, name: &str, hash: &str) -> Self {
        let RunOutcome { end, mut summary, records, picture, .. } = outcome;
        summary.scenario = fanin_report::ScenarioName { name: name.to_owned(), hash: hash.to_owned() };
        let mut head = RunResult::new(summary);
        head.scenario_toml = Some(toml.to_owned());
        head.picture = picture;
        let (end, diagnosis) = match end {
            RunEnd::Complete => ("complete", None),
            RunEnd::Stopped => ("stopped", None),
            RunEnd::Stalled { diagnosis, .. } => ("stalled", Some(diagnosis)),
        };
        Self { head, end, diagnosis, source: Tables::Memory(Arc::new(records)) }
    }

    /// Returns the summary, which every result has.
    pub(crate) fn head_summary(&self) -> &Summary {
        &self.head.summary
    }

    fn records(&self, table: TableName) -> PyResult<Arc<Records>> {
        match &self.source {
            Tables::Memory(records) => Ok(Arc::clone(records)),
            Tables::Nowhere => Ok(Arc::default()),
            // A plan has no rows.
            Tables::Folder(..) if self.head.summary.kind == ResultKind::Plan => Ok(Arc::default()),
            Tables::Folder(folder, read) => {
                let place = &read[table as usize];
                if let Some(records) = place.get() {
                    return Ok(Arc::clone(records));
                }
                let records = fanin_report::read_rows(folder, table).map_err(|error| unreadable(&error))?;
                Ok(Arc::clone(place.get_or_init(|| Arc::new(records))))
            }
        }
    }

    /// Reads the whole result, with all tables.
    fn whole(&self) -> PyResult<RunResult> {
        let rows = |table| self.records(table);
        let records = Records {
            events: rows(TableName::Events)?.events.clone(),
            queues: rows(TableName::Queues)?.queues.clone(),
            flows: rows(TableName::Flows)?.flows.clone(),
            io: rows(TableName::Io)?.io.clone(),
            windows: rows(TableName::Windows)?.windows.clone(),
        };
        Ok(RunResult { records, ..self.head.clone() })
    }
}

#[pymethods]
impl LoadedResult {
    /// The summary as JSON.
    #[getter]
    fn summary(&self) -> PyResult<String> {
        self.head.summary.to_json().map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The name of the result among several.
    #[getter]
    fn label(&self) -> &str {
        &self.head.label
    }

    /// The resolved scenario as TOML, if known.
    #[getter]
    fn scenario(&self) -> Option<&str> {
        self.head.scenario_toml.as_deref()
    }

    /// The verdict: `good`, `bad` or `open`, a few words, and the figures behind it as HTML.
    #[getter]
    fn headline(&self) -> (&'static str, &'static str, String) {
        let fanin_report::Headline { standing, words, html } = fanin_report::headline(&self.head);
        (standing, words, html)
    }

    /// One of the tables, by name.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<RecordTable> {
        let table = TableName::ALL.into_iter().find(|table| table.name() == name);
        let table = table.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        py.detach(|| Ok(RecordTable::of_rows(self.records(table)?, table)))
    }

    /// The page as one HTML document.
    fn page(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| Ok(fanin_report::page(&[self.whole()?])))
    }

    /// Writes the command's files of `--out`, and returns their paths.
    #[expect(clippy::needless_pass_by_value, reason = "a path can only be converted to an owned one")]
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
        py.detach(|| {
            let whole = self.whole()?;
            let page = fanin_report::page(std::slice::from_ref(&whole));
            fanin_report::write(&folder, &whole, &page).map_err(|error| PyOSError::new_err(error.to_string()))
        })
    }

    /// Writes events, ports, goodput and the latest event as a trace for Perfetto.
    #[expect(clippy::needless_pass_by_value, reason = "a path can only be converted to an owned one")]
    fn write_trace(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| {
            let whole = self.whole()?;
            let fail = |error: std::io::Error| {
                std::io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
            };
            let file = BufWriter::new(File::create(&path).map_err(fail)?);
            Ok(fanin_report::write_trace(&whole, file).map_err(fail)?)
        })
    }

    /// Writes the result into the folder `name` of `root`, whole or not at all; returns true if it is new.
    #[expect(clippy::needless_pass_by_value, reason = "a path can only be converted to an owned one")]
    fn write_once(&self, py: Python<'_>, root: PathBuf, name: &str) -> PyResult<bool> {
        py.detach(|| {
            let whole = self.whole()?;
            let page = fanin_report::page(std::slice::from_ref(&whole));
            fanin_report::write_once(&root, name, &whole, &page)
                .map_err(|error| PyOSError::new_err(error.to_string()))
        })
    }
}

/// True if `root` holds a whole result of this name.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "a path can only be converted to an owned one")]
pub(crate) fn is_stored(root: PathBuf, name: &str) -> bool {
    fanin_report::is_stored(&root, name)
}

/// Reads the result in a folder, or a summary alone; tables follow when they are asked for.
#[pyfunction]
pub(crate) fn load_result(py: Python<'_>, path: PathBuf) -> PyResult<LoadedResult> {
    py.detach(|| {
        let head = fanin_report::read_head(&path).map_err(|error| unreadable(&error))?;
        let source = if path.is_dir() { Tables::Folder(path, Default::default()) } else { Tables::Nowhere };
        Ok(LoadedResult { head, end: "", diagnosis: None, source })
    })
}

fn unreadable(error: &fanin_report::ReadError) -> PyErr {
    match error {
        fanin_report::ReadError::Io { error: cause, .. } => {
            // Rust's kind of a system error becomes Python's.
            std::io::Error::new(cause.kind(), error.to_string()).into()
        }
        _ => PyValueError::new_err(error.to_string()),
    }
}
