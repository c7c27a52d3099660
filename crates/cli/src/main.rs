//! The `fanin` command. Each command is one file under `commands`; this file only picks one.

mod build_info;
mod colour;
mod commands;
mod failure;
mod output;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Commands that measure something replace this by a flag, so that what was measured is still written.
    if let Err(error) = ctrlc::set_handler(|| std::process::exit(failure::INTERRUPTED)) {
        eprintln!("warning: Ctrl-C will not be reported by exit code {}: {error}", failure::INTERRUPTED);
    }
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
