//! The `fanin` command. Each command is one file under `commands`; this file only selects the command.

mod build_info;
mod colour;
mod columns;
mod commands;
mod failure;
mod interrupt;
mod output;
mod predicted;
mod summary;
mod threads;
mod token;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // The processes of a live system have signals of their own.
    if !matches!(cli.command, commands::FaninCommand::Node(_)) {
        interrupt::install();
    }
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
