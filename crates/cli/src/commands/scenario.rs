//! `fanin scenario`: the ready scenarios, resolved scenarios, and the format itself.

use std::fmt::Write;

use clap::{Args, Subcommand};

use crate::commands::import;
use crate::commands::source::Source;
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin scenario show thesis-a-1000hz --set shaping.credits=480")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: ScenarioCommand,
}

#[derive(Debug, Subcommand)]
enum ScenarioCommand {
    /// List the presets, each with its meaning.
    #[command(after_help = "Example: fanin scenario list")]
    List,
    /// Print a scenario with every default written out, and the source of each setting.
    #[command(after_help = "Example: fanin scenario show incast --set workload.senders=32 > mine.toml")]
    Show(Source),
    /// Check a scenario; everything that is wrong is shown with its line.
    #[command(after_help = "Example: fanin scenario check mine.toml")]
    Check(Source),
    /// Make a scenario from a topology of containerlab or Mininet, or from the buffers of a SONiC switch.
    Import(import::Arguments),
    /// Print the JSON Schema of the format, for completion in editors.
    #[command(after_help = "Example: fanin scenario schema > scenario.schema.json")]
    Schema,
    /// Print the reference of the format as Markdown.
    #[command(after_help = "Example: fanin scenario reference > scenario.md")]
    Reference,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        ScenarioCommand::List => output::print(&list()?),
        ScenarioCommand::Show(source) => output::print(&source.load()?.to_toml_with_origins()),
        ScenarioCommand::Check(source) => {
            let loaded = source.load()?;
            match fanin_runs::check(&loaded.scenario, loaded.is_given("record.capture")) {
                Ok(()) => {}
                // Another machine may have the memory.
                Err(error @ fanin_runs::Error::Memory { .. }) => output::note(&error.to_string()),
                Err(error) => return Err(Failure::simulation(error, &loaded)),
            }
            output::print(&format!(
                "{} is sound: {} ({})\n",
                source.source,
                loaded.scenario.title,
                loaded.hash()
            ))
        }
        ScenarioCommand::Import(arguments) => import::run(arguments),
        ScenarioCommand::Schema => output::print(&format!("{:#}\n", fanin_scenario::json_schema())),
        ScenarioCommand::Reference => output::print(&fanin_scenario::reference_markdown()),
    }
}

fn list() -> Result<String, Failure> {
    let presets = fanin_scenario::presets();
    let width = presets.iter().map(|preset| preset.name.len()).max().unwrap_or_default();
    let mut out = String::new();
    for preset in presets {
        let scenario = fanin_scenario::load(preset.name, &[])?.scenario;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:<width$}  {} ({})", preset.name, scenario.title, scenario.source);
    }
    Ok(out)
}
