//! The commands of `fanin`, one file each.

mod compare;
mod completions;
mod events;
mod man;
mod node;
mod plan;
mod report;
mod reproduce;
mod run;
mod scenario;
mod sim;
mod switch;
mod validate;

use clap::{Args, Parser, Subcommand, ValueHint};
use fanin_scenario::Loaded;

use crate::failure::Failure;
use crate::{build_info, output};

/// The scenario that a command works on.
#[derive(Debug, Args)]
struct Source {
    /// A scenario file, or the name of a preset (`fanin scenario list`).
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath)]
    source: String,
    /// Override one setting, checked like the file itself; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

impl Source {
    /// Loads and checks the scenario; what is not wrong but most likely not meant is said on standard error.
    fn load(&self) -> Result<Loaded, Failure> {
        let loaded = fanin_scenario::load(&self.source, &self.sets)?;
        output::warn(&loaded.warnings);
        Ok(loaded)
    }
}

/// Predict, measure and avoid incast: many sources that answer one collector at once.
#[derive(Debug, Parser)]
#[command(name = "fanin", version = build_info::TEXT, subcommand_required = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done; 1 it ran, and data were lost or a check failed; 2 wrong usage or input;
3 missing privilege or kernel feature; 130 stopped by Ctrl-C."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan a scenario: ideal times, loads, buffers, windows, credits, and whether frames are lost.
    Plan(plan::Arguments),
    /// Simulate a scenario packet by packet, or a sweep of it.
    Sim(sim::Arguments),
    /// Run a scenario for real: every role a process, on the kernel's own TCP.
    Run(run::Arguments),
    /// Run one process of a live system, on this host.
    Node(node::Arguments),
    /// Run the lossless software switch.
    Switch(switch::Arguments),
    /// Simulate all techniques against incast side by side.
    Compare(compare::Arguments),
    /// Lay the papers' checkable results beside what the simulator gives.
    Reproduce(reproduce::Arguments),
    /// Simulate a set of small scenarios, run them on this machine's kernel, and lay both beside each other.
    Validate(validate::Arguments),
    /// Show results on one page, several side by side.
    Report(report::Arguments),
    /// List, show and check scenarios, and document their format.
    Scenario(scenario::Arguments),
    /// Tell what raw-data files hold, check them and convert them.
    Events(events::Arguments),
    /// Print a completion script for a shell.
    Completions(completions::Arguments),
    /// Write the man pages into a folder.
    #[command(hide = true)]
    Man(man::Arguments),
}

/// Does what was asked.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Node(arguments) => node::run(&arguments),
        Command::Switch(arguments) => switch::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Scenario(arguments) => scenario::run(&arguments),
        Command::Events(arguments) => events::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}
