//! Results of many simulations, kept in a folder with one page of all results.

use std::path::{Path, PathBuf};

use fanin_report::{
    JudgedClaim, PAGE_FILE, PageWords, Records, RunResult, SWEEP_PAGE, ScenarioName, Summary,
};
use fanin_runs::RunOutcome;
use fanin_scenario::Loaded;

use super::sim;
use crate::build_info;
use crate::failure::Failure;

/// Returns the summary of a run under its label, with the name of its scenario.
pub(super) fn labelled(label: &str, loaded: &Loaded, outcome: &RunOutcome) -> Summary {
    let mut summary = outcome.summary.clone();
    summary.scenario = ScenarioName { name: loaded.name.clone(), hash: loaded.hash() };
    summary.commit = build_info::COMMIT.map(str::to_owned);
    summary.label = Some(label.to_owned());
    summary
}

/// A folder with a folder for each result, and their page.
pub(super) struct KeptResults {
    folder: PathBuf,
    results: Vec<RunResult>,
    failure: Option<Failure>,
}

impl KeptResults {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), results: Vec::new(), failure: None }
    }

    /// Writes a result into its folder, and keeps the parts for the page.
    pub(super) fn keep(&mut self, label: String, loaded: &Loaded, outcome: &RunOutcome) {
        let mut result = RunResult::new(labelled(&label, loaded, outcome));
        result.scenario_toml = Some(loaded.to_toml());
        result.records = outcome.records.clone();
        result.picture = outcome.picture.clone();
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let name: String = label.chars().map(plain).collect();
        result.label = label;
        result.page = Some(format!("{name}/{PAGE_FILE}"));
        if let Err(failure) = sim::write(&self.folder.join(name), &result) {
            self.failure.get_or_insert(failure);
        }
        // The page draws the times, and nothing else of the tables of many results.
        result.records = Records { events: std::mem::take(&mut result.records.events), ..Records::default() };
        self.results.push(result);
    }

    /// Writes the page of all results, with notes below the table of the results.
    pub(super) fn finish(self, name: &str, claims: &[JudgedClaim], notes: &[String]) -> Result<(), Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let path = self.folder.join(SWEEP_PAGE);
        let words = PageWords { name: Some(name), claims, notes, ..PageWords::default() };
        let page = fanin_report::page_of(&self.results, &words);
        std::fs::write(&path, page).map_err(|error| Failure::Write { path, error })
    }
}
