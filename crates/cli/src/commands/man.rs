//! `fanin man`: the man pages, one a command, made from the same text as `--help`.

use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin man ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// The folder, made if it does not exist.
    dir: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, command: Command) -> Result<(), Failure> {
    let failed = |error| Failure::Write { path: arguments.dir.clone(), error };
    std::fs::create_dir_all(&arguments.dir).map_err(failed)?;
    clap_mangen::generate_to(command, &arguments.dir).map_err(failed)
}
