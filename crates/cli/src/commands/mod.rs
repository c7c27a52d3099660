//! The commands of `fanin`, one file each.

mod advise;
mod audit;
mod compare;
mod completions;
mod events;
mod explain;
mod import;
mod init;
mod kept;
mod live;
mod man;
mod node;
mod plan;
mod points;
mod report;
mod reproduce;
mod run;
mod scenario;
mod sim;
mod source;
mod sweep;
mod switch;
mod temporary;
mod top;
mod tune;
mod validate;

use clap::{CommandFactory, Parser, Subcommand};

use crate::build_info;
use crate::failure::Failure;

/// Predict, measure and avoid incast: many sources that answer one collector at once.
#[derive(Debug, Parser)]
#[command(name = "fanin", version = build_info::TEXT, subcommand_required = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done; 1 it ran, and data were lost or a check failed; 2 wrong usage or input.
Also 3 missing privilege or kernel feature; 4 the machine could not carry the run; 130 Ctrl-C."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: FaninCommand,
}

/// The subcommands of `fanin`.
#[derive(Debug, Subcommand)]
pub(crate) enum FaninCommand {
    /// Write a commented scenario to begin with, after three questions or like another one.
    Init(init::Arguments),
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
    /// Simulate all techniques against incast, and compare them in a table.
    Compare(compare::Arguments),
    /// Advise buffers, settings, techniques and switches for a scenario, by simulation.
    Advise(advise::Arguments),
    /// Find the best values of settings by simulation, under constraints.
    Tune(tune::Arguments),
    /// Compare the papers' checkable results with the simulator's.
    Reproduce(reproduce::Arguments),
    /// Compare simulations of small scenarios with runs on this machine's kernel.
    Validate(validate::Arguments),
    /// Show one or several results on one page.
    Report(report::Arguments),
    /// Show a running system or switch live, from its metrics.
    Top(top::Arguments),
    /// Explain why one event of a run was late, lost or left undecided.
    Explain(explain::Arguments),
    /// Prove from journals and stored files that no event of a system was lost.
    Audit(audit::Arguments),
    /// List, show and check scenarios, and document their format.
    Scenario(scenario::Arguments),
    /// Describe, check and convert raw-data files.
    Events(events::Arguments),
    /// Print a completion script for a shell.
    Completions(completions::Arguments),
    /// Write the man pages into a folder.
    Man(man::Arguments),
}

/// Runs a subcommand.
pub(crate) fn run(command: FaninCommand) -> Result<(), Failure> {
    match command {
        FaninCommand::Init(arguments) => init::run(&arguments),
        FaninCommand::Plan(arguments) => plan::run(&arguments),
        FaninCommand::Sim(arguments) => sim::run(&arguments),
        FaninCommand::Run(arguments) => run::run(&arguments),
        FaninCommand::Node(arguments) => node::run(&arguments),
        FaninCommand::Switch(arguments) => switch::run(&arguments),
        FaninCommand::Compare(arguments) => compare::run(&arguments),
        FaninCommand::Advise(arguments) => advise::run(&arguments),
        FaninCommand::Tune(arguments) => tune::run(&arguments),
        FaninCommand::Reproduce(arguments) => reproduce::run(&arguments),
        FaninCommand::Validate(arguments) => validate::run(&arguments),
        FaninCommand::Report(arguments) => report::run(&arguments),
        FaninCommand::Top(arguments) => top::run(&arguments),
        FaninCommand::Explain(arguments) => explain::run(&arguments),
        FaninCommand::Audit(arguments) => audit::run(&arguments),
        FaninCommand::Scenario(arguments) => scenario::run(&arguments),
        FaninCommand::Events(arguments) => events::run(&arguments),
        FaninCommand::Completions(arguments) => completions::run(&arguments, Cli::command()),
        FaninCommand::Man(arguments) => man::run(&arguments, Cli::command()),
    }
}
