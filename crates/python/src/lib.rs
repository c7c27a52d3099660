//! `fanin._fanin`: the functions behind the Python package. They only convert values; the crates below implement all rules.

use pyo3::prelude::*;

mod result;
mod run;
mod scenario;
mod table;
mod tune;
mod units;

/// The compiled half of the Python package.
#[pymodule]
mod _fanin {
    #[pymodule_export]
    use super::result::{LoadedResult, is_stored, load_result};
    #[pymodule_export]
    use super::scenario::{
        LoadedScenario, ScenarioError, import_text, load_scenario, load_scenario_text, presets,
    };
    #[pymodule_export]
    use super::table::{RecordTable, RowIterator};
    #[pymodule_export]
    use super::tune::{TunedRange, TuningGoal, figure_of, figure_unit, is_clearly_worse, mean_interval};
    #[pymodule_export]
    use super::units::{format_quantity, parse_quantity};

    /// The version of the package and of the crates in it.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
