//! Goals and ranges of `fanin.tune` and `fanin.sensitivity`, in the notation of `fanin tune`.

use fanin_report::{FigureUnit, named_figure};
use fanin_tune::{Constraint, Goal, KeyRange, NumberKind, Objective, Sense, Target, TunedKey, TunedKeyError};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

use crate::result::LoadedResult;

/// An objective with its constraints.
#[pyclass(frozen, module = "fanin._fanin")]
pub(crate) struct TuningGoal {
    goal: Goal,
}

#[pymethods]
impl TuningGoal {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "a list can only be converted to an owned vector")]
    fn new(objective: &str, is_maximised: bool, subject: Vec<String>) -> PyResult<Self> {
        let sense = if is_maximised { Sense::Maximise } else { Sense::Minimise };
        let constraints: Result<Vec<Constraint>, _> = subject.iter().map(|text| text.parse()).collect();
        let goal = Objective::new(sense, objective).and_then(|objective| Goal::new(objective, constraints?));
        Ok(Self { goal: goal.map_err(|error| PyValueError::new_err(error.to_string()))? })
    }

    /// The objective's name.
    #[getter]
    fn name(&self) -> &str {
        self.goal.objective.name()
    }

    /// The tuned setting that is the objective, if one is.
    #[getter]
    fn key(&self) -> Option<&str> {
        match &self.goal.objective.target {
            Target::Key(key) => Some(key),
            Target::Figure(_) => None,
        }
    }

    /// The constraints as they were written.
    #[getter]
    fn constraints(&self) -> Vec<&str> {
        self.goal.constraints.iter().map(|constraint| constraint.text.as_str()).collect()
    }

    /// The objective's figure of a result, and the logarithm of how far it is from each constraint; absent figures
    /// are None.
    fn judge(&self, result: &LoadedResult) -> (Option<f64>, Vec<Option<f64>>) {
        let summary = result.head_summary();
        let objective = match &self.goal.objective.target {
            Target::Figure(figure) => figure.of(summary),
            Target::Key(_) => None,
        };
        let far = self
            .goal
            .constraints
            .iter()
            .map(|constraint| Some(constraint.violation(constraint.figure.of(summary)?).ln_1p()));
        (objective, far.collect())
    }
}

/// A numeric setting and its range, in base units.
#[pyclass(frozen, module = "fanin._fanin")]
pub(crate) struct TunedRange {
    key: TunedKey,
}

#[pymethods]
impl TunedRange {
    /// Reads `KEY` or `KEY=LOW..HIGH` against a scenario's TOML; a key that it lacks raises `KeyError`.
    #[new]
    fn new(text: &str, is_objective: bool, toml: &str) -> PyResult<Self> {
        let loaded = fanin_scenario::load_text("scenario", toml, &[]);
        let loaded = loaded.map_err(|errors| PyValueError::new_err(errors.render(false)))?;
        let range = if is_objective { Ok(KeyRange::objective(text)) } else { text.parse() };
        let range: KeyRange = range.map_err(PyValueError::new_err)?;
        let key = TunedKey::new(&range, &loaded.scenario).map_err(|error| match error {
            TunedKeyError::Unknown { .. } => PyKeyError::new_err(error.to_string()),
            _ => PyValueError::new_err(error.to_string()),
        })?;
        Ok(Self { key })
    }

    /// The lower end.
    #[getter]
    fn low(&self) -> u64 {
        self.key.axis.low
    }

    /// The upper end.
    #[getter]
    fn high(&self) -> u64 {
        self.key.axis.high
    }

    /// The scenario's own value, held within the ends.
    #[getter]
    fn start(&self) -> u64 {
        self.key.axis.start.clamp(self.key.axis.low, self.key.axis.high)
    }

    /// The text of a value, as a scenario has it.
    fn text(&self, value: u64) -> String {
        self.key.kind.text(value)
    }

    /// The base unit, or None for counts.
    #[getter]
    fn unit(&self) -> Option<&'static str> {
        match self.key.kind {
            NumberKind::Count => None,
            NumberKind::Bytes => Some("bytes"),
            NumberKind::Duration => Some("ps"),
            NumberKind::Rate => Some("bit/s"),
            NumberKind::Packets => Some("packets"),
            NumberKind::Frequency => Some("mHz"),
            NumberKind::Ratio => Some("ppm"),
        }
    }

    /// The value with three digits that is nearest to another one.
    fn rounded(&self, value: u64) -> u64 {
        self.key.axis.rounded(value)
    }

    /// The value at a share of the range, on the scale of the search.
    fn at(&self, share: f64) -> u64 {
        self.key.axis.at(share)
    }

    /// The same with the ends moved inwards until `takes` returns True for them.
    #[pyo3(signature = (takes: "Callable[[int], bool]"))]
    fn narrowed(&self, takes: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut raised = None;
        let key = self.key.clone().narrowed(&mut |value| {
            let taken = takes.call1((value,)).and_then(|taken| taken.extract::<bool>());
            taken.unwrap_or_else(|error| {
                raised.get_or_insert(error);
                true
            })
        });
        raised.map_or(Ok(Self { key }), Err)
    }
}

/// A figure of a result by its short name, or None where it does not apply; an unknown name raises `ValueError`.
#[pyfunction]
pub(crate) fn figure_of(name: &str, result: &LoadedResult) -> PyResult<Option<f64>> {
    Ok(named(name)?.of(result.head_summary()))
}

/// The unit of the figure with this short name, or None for counts and factors; an unknown name raises `ValueError`.
#[pyfunction]
pub(crate) fn figure_unit(name: &str) -> PyResult<Option<&'static str>> {
    Ok(match named(name)?.unit {
        FigureUnit::Millis => Some("ms"),
        FigureUnit::Bytes => Some("bytes"),
        FigureUnit::BitsPerSecond => Some("bit/s"),
        FigureUnit::Count | FigureUnit::Factor => None,
    })
}

fn named(name: &str) -> PyResult<&'static fanin_report::NamedFigure> {
    named_figure(name).ok_or_else(|| {
        let unknown = fanin_tune::GoalError::UnknownFigure { name: name.to_owned() };
        PyValueError::new_err(unknown.to_string())
    })
}

/// The mean of values, and half the width of its interval of 95 % confidence (Student's t); None for a single value.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "a list can only be converted to an owned vector")]
pub(crate) fn mean_interval(values: Vec<f64>) -> Option<(f64, Option<f64>)> {
    fanin_report::interval(&values).map(|interval| (interval.mean, interval.half))
}

/// True if a value is clearly worse than the best point's on the same seed, by the rule of `fanin tune`.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "a list can only be converted to an owned vector")]
pub(crate) fn is_clearly_worse(value: f64, of_best: f64, seeds_of_best: Vec<f64>) -> bool {
    fanin_tune::is_clearly_worse(value, of_best, &seeds_of_best)
}
