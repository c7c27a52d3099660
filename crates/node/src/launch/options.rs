//! Options of a system's start, and the checks of them.

use std::path::Path;

use fanin_scenario::{Loaded, Processors, Scenario};
use fanin_units::Rate;

use super::error::{LaunchError, PROCESSES_MAX};
use crate::config::PredictedBands;

/// Options of a system's start.
#[derive(Debug)]
pub struct SystemLaunch<'a> {
    /// The checked scenario.
    pub loaded: &'a Loaded,
    /// Folder for the run's files. The folder of an earlier run is renamed to `FOLDER.1`, `FOLDER.2`, … if it holds stored
    /// events, and emptied otherwise. The folder of a running system is refused.
    pub folder: &'a Path,
    /// True deletes the stored events of an earlier run in the folder instead of renaming the folder.
    pub overwrite: bool,
    /// Folder at which relative paths in the scenario start.
    pub scenario_folder: &'a Path,
    /// Folder of stored events; `None` is `data` in the run's folder.
    pub data: Option<&'a Path>,
    /// Path of the `fanin` program.
    pub program: &'a Path,
    /// True restarts processes that end or hang.
    pub restart: bool,
    /// True serves the metrics of every process, each at a free port of its host. The file `metrics.toml` in the folder
    /// names the addresses.
    pub metrics: bool,
    /// Payload rate of an ideal collection, for the metrics; `None` is the scenario's `link.rate`.
    pub ideal_rate: Option<Rate>,
    /// Bands predicted for the system's metrics.
    pub predicted: PredictedBands,
}

impl SystemLaunch<'_> {
    /// Checks that the system can run, without creating files or processes.
    ///
    /// # Errors
    /// [`LaunchError::Unsupported`] for a setting or its data, [`LaunchError::TooMany`] for too many processes.
    pub fn check(&self) -> Result<(), LaunchError> {
        let scenario = &self.loaded.scenario;
        let unsupported = |error: String| LaunchError::Unsupported(error);
        crate::roles::settings::check(scenario).map_err(|error| unsupported(error.to_string()))?;
        crate::roles::processor::check(scenario, self.scenario_folder)
            .map_err(|error| unsupported(error.to_string()))?;
        let count = processes(scenario);
        if count > PROCESSES_MAX {
            return Err(LaunchError::TooMany { count });
        }
        // Mistakes in the data are reported once, before a process runs.
        let supplied = crate::source::supply(scenario, self.scenario_folder);
        supplied.map(|_| ()).map_err(|error| unsupported(error.to_string()))
    }
}

/// Returns the number of processes that a scenario takes, processors included.
pub fn processes(scenario: &Scenario) -> u64 {
    let collectors = scenario.collectors_total();
    let units = match scenario.live.processors {
        Processors::Processes => collectors * u64::from(scenario.collectors.units_per_host),
        Processors::Timers => 0,
    };
    1 + u64::from(scenario.live.standby)
        + u64::from(scenario.readout.hosts)
        + collectors
        + units
        + u64::from(scenario.logger.hosts)
}
