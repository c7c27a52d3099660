//! One result: its summary, its tables, its scenario.

use crate::picture::RunPicture;
use crate::rows::Records;
use crate::summary::Summary;

/// One plan, simulation or run, with all that is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// Its name among several results, such as a directory's name.
    pub label: String,
    /// Its summary.
    pub summary: Summary,
    /// The resolved scenario, every default written out.
    pub scenario_toml: Option<String>,
    /// Its tables.
    pub records: Records,
    /// Queues over time, a late event and the links, where they were recorded.
    pub picture: Option<RunPicture>,
}

impl RunResult {
    /// A result without tables, called after its scenario and kind.
    pub fn new(summary: Summary) -> Self {
        let label = format!("{} ({})", summary.scenario.name, summary.kind.name());
        Self { label, summary, scenario_toml: None, records: Records::default(), picture: None }
    }
}
