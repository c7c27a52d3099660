//! Scenarios, which are loaded and checked as by the command, and passed on as text.

use fanin_plan::{Catalogue, PlanOptions, PlannedScenario};
use fanin_scenario::import::{ImportOptions, import};
use fanin_scenario::{Errors, Loaded, Problem};
use fanin_units::{Bytes, Ratio};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::result::LoadedResult;
use crate::run;

pyo3::create_exception!(
    fanin,
    ScenarioError,
    PyValueError,
    "A scenario is wrong; printed, it shows each problem with its line and a caret."
);

/// One problem in Python's form: its text, its place (file, line, column), and advice.
type ProblemFields = (String, Option<(String, usize, usize)>, Vec<String>);

/// A scenario that has passed every check.
#[pyclass(frozen, module = "fanin._fanin")]
pub(crate) struct LoadedScenario {
    /// The fingerprint of its settings.
    #[pyo3(get)]
    hash: String,
    /// The name under which a simulation of it is stored.
    #[pyo3(get)]
    key: String,
    loaded: Loaded,
}

#[pymethods]
impl LoadedScenario {
    /// The name: a preset, or the file without its ending.
    #[getter]
    fn name(&self) -> &str {
        &self.loaded.name
    }

    /// The seed of its random streams.
    #[getter]
    fn seed(&self) -> u64 {
        self.loaded.scenario.run.seed
    }

    /// The scenario as TOML, every default written out, each line with its origin.
    #[getter]
    fn resolved(&self) -> String {
        self.loaded.to_toml_with_origins()
    }

    /// The same without origins.
    #[getter]
    fn toml(&self) -> String {
        self.loaded.to_toml()
    }

    /// Warnings: settings that are valid but probably not meant.
    #[getter]
    fn warnings(&self) -> Vec<ProblemFields> {
        self.loaded.warnings.problems().iter().map(fields).collect()
    }

    /// The planner's summary as JSON.
    #[pyo3(signature = (quantile, cost, fragment_mean))]
    fn plan(
        &self,
        py: Python<'_>,
        quantile: u64,
        cost: bool,
        fragment_mean: Option<u64>,
    ) -> PyResult<String> {
        let quantile = Ratio::new(quantile);
        if quantile.is_zero() || quantile >= Ratio::ONE {
            return Err(PyValueError::new_err(format!(
                "a quantile lies above 0 and below 1, unlike {quantile}"
            )));
        }
        let scenario = &self.loaded.scenario;
        let readout = &scenario.readout;
        let sizes = match fragment_mean {
            Some(mean) => {
                Ok(readout.fragment_size.sizes_with_mean(Bytes::new(mean), readout.fragments_per_host))
            }
            None => fanin_runs::fragment_sizes(scenario),
        };
        let sizes = sizes.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let options =
            PlanOptions { catalogue: Catalogue::shipped(), fragment_sizes: Some(sizes), quantile, cost };
        let name = PlannedScenario { name: self.loaded.name.clone(), hash: self.hash.clone() };
        py.detach(|| {
            let plan = fanin_plan::plan(scenario, &options).map_err(|error| error.to_string())?;
            let summary = plan.summary(name, env!("CARGO_PKG_VERSION"), None);
            serde_json::to_string(&summary).map_err(|error| error.to_string())
        })
        .map_err(PyValueError::new_err)
    }

    /// Plays the scenario; `progress(now, end)` is called from time to time with picoseconds of simulated time.
    #[pyo3(signature = (progress: "Callable[[int, int], object] | None" = None))]
    #[expect(clippy::needless_pass_by_value, reason = "an argument of Python is owned")]
    fn simulate(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<LoadedResult> {
        let outcome = run::simulate(py, &self.loaded, progress.as_ref())?;
        Ok(LoadedResult::simulated(outcome, &self.loaded.to_toml(), &self.loaded.name, &self.hash))
    }
}

/// Loads a file or preset with `KEY=VALUE` settings; raises `ScenarioError(text)` with the problems in its `fields`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "a list can only be converted to an owned vector")]
pub(crate) fn load_scenario(py: Python<'_>, source: &str, sets: Vec<String>) -> PyResult<LoadedScenario> {
    py.detach(|| fanin_scenario::load(source, &sets).map(hand_over).map_err(|errors| raise(&errors)))
}

/// Loads as `load_scenario` does, from text without a file; `extends` finds presets only.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "a list can only be converted to an owned vector")]
pub(crate) fn load_scenario_text(
    py: Python<'_>,
    name: &str,
    text: &str,
    sets: Vec<String>,
) -> PyResult<LoadedScenario> {
    py.detach(|| fanin_scenario::load_text(name, text, &sets).map(hand_over).map_err(|errors| raise(&errors)))
}

/// The scenario that a topology of another tool stands for, as TOML; `text` is its file.
#[pyfunction]
pub(crate) fn import_text(
    name: &str,
    text: &str,
    collectors: Vec<String>,
    extends: Option<String>,
) -> PyResult<String> {
    let options = ImportOptions { collectors, extends, ..ImportOptions::default() };
    let imported = import(name, text, &options).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(imported.to_toml())
}

fn hand_over(loaded: Loaded) -> LoadedScenario {
    LoadedScenario { hash: loaded.hash(), key: loaded.point_key(env!("CARGO_PKG_VERSION")), loaded }
}

/// Makes the exception for wrong settings, with the problems in its `fields`.
pub(crate) fn raise(errors: &Errors) -> PyErr {
    let problems: Vec<ProblemFields> = errors.problems().iter().map(fields).collect();
    // The exception has one argument, so that Python prints the same text as the command.
    let error = ScenarioError::new_err(errors.render(false));
    let noted = Python::attach(|py| error.value(py).setattr("fields", problems));
    noted.err().unwrap_or(error)
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
