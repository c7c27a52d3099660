//! The scenario that a command works on: a file or a preset, with overrides.

use clap::{Args, ValueHint};
use fanin_scenario::Loaded;

use crate::failure::Failure;
use crate::output;

/// The arguments of a command that works on a scenario.
#[derive(Debug, Args)]
pub(super) struct Source {
    /// A scenario file, or the name of a preset (`fanin scenario list`).
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath)]
    pub(super) source: String,
    /// Override one setting, checked like the file itself; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) sets: Vec<String>,
}

impl Source {
    /// Loads and checks the scenario; prints warnings on standard error.
    pub(super) fn load(&self) -> Result<Loaded, Failure> {
        let loaded = fanin_scenario::load(&self.source, &self.sets)?;
        output::warn(&loaded.warnings);
        Ok(loaded)
    }
}
