//! How a system is started, and whether it can be.

use std::path::Path;

use fanin_scenario::{Loaded, Processors, Scenario};
use fanin_units::Rate;

use super::error::{LaunchError, PROCESSES_MAX};
use crate::config::PredictedBands;

/// How a system is started.
#[derive(Debug)]
pub struct SystemLaunch<'a> {
    /// The checked scenario.
    pub loaded: &'a Loaded,
    /// A folder for its files. The folder of an earlier run is moved aside to `FOLDER.1`, `FOLDER.2`, … if it holds stored
    /// events, and emptied otherwise. The folder of a running system is refused.
    pub folder: &'a Path,
    /// Delete the stored events of an earlier run in the folder, rather than moving them aside.
    pub overwrite: bool,
    /// Where a relative file of the scenario is sought.
    pub scenario_folder: &'a Path,
    /// Where stored events go, if not into the folder `data` of the folder.
    pub data: Option<&'a Path>,
    /// The `fanin` program.
    pub program: &'a Path,
    /// True if processes that die are started again.
    pub restart: bool,
    /// Serve the metrics of every process, each at a free port of its host. The file `metrics.toml` in the folder names
    /// the addresses.
    pub metrics: bool,
    /// The rate of payload at which a collection would be ideal, for the metrics; that of a collector's link if absent.
    pub ideal_rate: Option<Rate>,
    /// The bands in which the system's metrics should lie.
    pub predicted: PredictedBands,
}

impl SystemLaunch<'_> {
    /// True if this system can run at all; nothing is made.
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
        // What is wrong with the data is said once, and before anything runs.
        let supplied = crate::source::supply(scenario, self.scenario_folder);
        supplied.map(|_| ()).map_err(|error| unsupported(error.to_string()))
    }
}

/// How many processes a scenario has.
pub fn processes(scenario: &Scenario) -> u64 {
    let collectors = scenario.collectors_total();
    let units = match scenario.live.processors {
        Processors::Processes => collectors * u64::from(scenario.collectors.units_per_host),
        Processors::Timers => 0,
    };
    1 + u64::from(scenario.readout.hosts) + collectors + units + u64::from(scenario.logger.hosts)
}
