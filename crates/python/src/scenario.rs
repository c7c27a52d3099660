//! Scenarios: loaded and checked as by the command, and handed over as text.

use fanin_scenario::{Errors, Loaded, Problem};
use pyo3::prelude::*;

pyo3::create_exception!(fanin, ScenarioError, pyo3::exceptions::PyValueError, "A scenario is wrong.");

/// One problem as Python takes it: what is wrong, where (file, line, column), and what would help.
type ProblemFields = (String, Option<(String, usize, usize)>, Vec<String>);

/// A scenario that has passed every check.
#[pyclass(frozen, module = "fanin._fanin")]
pub(crate) struct LoadedScenario {
    /// What it is called.
    #[pyo3(get)]
    name: String,
    /// The fingerprint of its settings.
    #[pyo3(get)]
    hash: String,
    /// The scenario as TOML, every default written out, each line with its origin.
    #[pyo3(get)]
    resolved: String,
    /// The same without origins.
    #[pyo3(get)]
    toml: String,
    /// What is not wrong but most likely not meant.
    #[pyo3(get)]
    warnings: Vec<ProblemFields>,
}

/// Loads a file or preset with `KEY=VALUE` settings; raises `ScenarioError(text, problems)`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "a list can only be converted to an owned vector")]
pub(crate) fn load_scenario(py: Python<'_>, source: &str, sets: Vec<String>) -> PyResult<LoadedScenario> {
    py.detach(|| {
        fanin_scenario::load(source, &sets).map(|loaded| hand_over(&loaded)).map_err(|errors| raise(&errors))
    })
}

fn hand_over(loaded: &Loaded) -> LoadedScenario {
    LoadedScenario {
        name: loaded.name.clone(),
        hash: loaded.hash(),
        resolved: loaded.to_toml_with_origins(),
        toml: loaded.to_toml(),
        warnings: loaded.warnings.problems().iter().map(fields).collect(),
    }
}

fn raise(errors: &Errors) -> PyErr {
    let problems: Vec<ProblemFields> = errors.problems().iter().map(fields).collect();
    ScenarioError::new_err((errors.render(false), problems))
}

fn fields(problem: &Problem) -> ProblemFields {
    let place = problem.location().map(|(file, line, column)| (file.to_owned(), line, column));
    (problem.message().to_owned(), place, problem.help().to_vec())
}

/// The names of the scenarios that ship with the package.
#[pyfunction]
pub(crate) fn presets() -> Vec<&'static str> {
    fanin_scenario::presets().iter().map(|preset| preset.name).collect()
}
