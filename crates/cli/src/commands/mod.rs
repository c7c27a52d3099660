//! The commands of `fanin`, one file each.

mod completions;
mod man;

use clap::{Parser, Subcommand};

use crate::failure::Failure;

/// The version and, where it is known, the commit: `build.rs` puts them together.
const VERSION: &str = env!("FANIN_VERSION");

/// Predict, measure and avoid incast: many sources that answer one collector at once.
#[derive(Debug, Parser)]
#[command(name = "fanin", version = VERSION, subcommand_required = true, arg_required_else_help = true)]
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
    /// Print a completion script for a shell.
    Completions(completions::Arguments),
    /// Write the man pages into a folder.
    #[command(hide = true)]
    Man(man::Arguments),
}

/// Does what was asked.
pub(crate) fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}
