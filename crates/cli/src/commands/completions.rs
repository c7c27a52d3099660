//! `fanin completions`: a script that lets a shell complete commands and options.

use clap::{Args, Command};

use crate::failure::Failure;
use crate::output;

/// The shells of the contract.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin completions bash > ~/.local/share/bash-completion/completions/fanin")]
pub(crate) struct Arguments {
    /// The shell that will read it.
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut command: Command) -> Result<(), Failure> {
    let shell = match arguments.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "fanin", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
