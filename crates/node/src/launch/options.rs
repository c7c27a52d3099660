//! Options of a system's start, and their check.

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
    /// A folder for its files. The folder of an earlier run is moved aside to `FOLDER.1`, `FOLDER.2`, … if it holds stored
    /// events, and emptied otherwise. The folder of a running system is refused.
    pub folder: &'a Path,
    /// Delete the stored events of an earlier run in the folder, rather than moving them aside.
    pub overwrite: bool,
    /// Folder in which relative files of the scenario lie.
    pub scenario_folder: &'a Path,
    /// Folder of stored events, if not `data` in the run's folder.
    pub data: Option<&'a Path>,
    /// The `fanin` program.
    pub program: &'a Path,
    /// True if processes that die are started again.
    pub restart: bool,
    /// Serve the metrics of every process, each at a free port of its host. The file `metrics.toml` in the folder names
    /// the addresses.
    pub metrics: bool,
    /// Rate of payload of an ideal collection, for the metrics; absent, that of a collector's link.
    pub ideal_rate: Option<Rate>,
    /// Bands predicted for the system's metrics.
    pub predicted: PredictedBands,
}

impl SystemLaunch<'_> {
    /// Checks that this system can run, without making anything.
    ///
    /// # Errors
    /// If the scenario, its data or the number of its processes do not allow it.
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
        // Faults of the data are reported once, before anything runs.
        let supplied = crate::source::supply(scenario, self.scenario_folder);
        supplied.map(|_| ()).map_err(|error| unsupported(error.to_string()))
    }
}

/// Number of processes of a scenario.
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
