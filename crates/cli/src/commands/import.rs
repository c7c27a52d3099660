//! `fanin scenario import`: a topology or a switch of another tool as a scenario to begin with.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use fanin_scenario::import::{ImportOptions, import};

use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin scenario import FILE --collector 'dcm*' > mine.toml

Reads topologies of containerlab (YAML) and of MiniEdit (.mn), and buffers, PFC and ECN of a SONiC
switch (config_db.json). Values come from the file alone; keys without a counterpart stand as
comments at the end of the scenario, each with the reason. The Python package reads scripts of
Mininet: python -m fanin.mininet FILE.py.")]
pub(crate) struct Arguments {
    /// The file; its format follows from its keys.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Hosts of a topology that collect; a name may end in `*`. All other hosts are readouts.
    #[arg(long, value_name = "HOST,...", value_delimiter = ',')]
    collector: Vec<String>,
    /// Nodes of a containerlab topology that are switches, although their kind is a host's.
    #[arg(long, value_name = "NODE,...", value_delimiter = ',')]
    switch: Vec<String>,
    /// The switches that settings of SONiC are for: tor, core, aggregation, leaf or spine.
    #[arg(long, value_name = "SECTION", default_value = "tor")]
    section: String,
    /// The queue of the SONiC switch that carries the traffic, where its queues differ.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    queue: Option<u8>,
    /// The scenario that the result extends.
    #[arg(long, value_name = "SCENARIO")]
    extends: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let path = &arguments.file;
    let unreadable = |reason: String| Failure::Import { path: path.clone(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    let options = ImportOptions {
        collectors: arguments.collector.clone(),
        switches: arguments.switch.clone(),
        section: Some(arguments.section.clone()),
        queue: arguments.queue,
        extends: arguments.extends.clone(),
    };
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let imported = import(&name, &text, &options).map_err(|error| unreadable(error.to_string()))?;
    let toml = imported.to_toml();
    // It must load; a path that it extends is seen from the folder where it will lie.
    let loaded = fanin_scenario::load_text("the imported scenario", &toml, &[])?;
    output::print(&toml)?;
    let count = imported.refused.len();
    if count > 0 {
        eprintln!(
            "note: {count} keys of {} were not taken; the end of the scenario names them",
            path.display()
        );
    }
    if !loaded.warnings.problems().is_empty() {
        eprintln!("{}", loaded.warnings.render(output::is_coloured(&std::io::stderr())));
    }
    Ok(())
}
