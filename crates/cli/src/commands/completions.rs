//! `fanin completions`: a script that lets a shell complete commands, options, presets and keys.

use std::fmt::Write;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Args, Command};

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
#[command(after_help = "Example: fanin completions bash > ~/.local/share/bash-completion/completions/fanin

Where a scenario is expected, the script completes presets and files; after --set and --sweep, keys
of a scenario.")]
pub(crate) struct Arguments {
    /// The shell that will read it.
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, command: Command) -> Result<(), Failure> {
    let words = CompletedWords::new();
    // Only the script sees these values: the command itself takes files and any value as well.
    let mut command = words.offered_in(command);
    let shell = match arguments.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "fanin", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    match arguments.shell {
        // Bash completes file names where no preset fits.
        Shell::Bash => {}
        Shell::Zsh => script = words.with_files(&script),
        Shell::Fish => script.push_str(&words.positional(&command)),
    }
    output::print(&script)
}

/// The values that a script completes in addition to clap's.
struct CompletedWords {
    presets: Vec<&'static str>,
    keys: Vec<&'static str>,
}

impl CompletedWords {
    fn new() -> Self {
        Self {
            presets: fanin_scenario::presets().iter().map(|preset| preset.name).collect(),
            // Clap keeps values for as long as the process lives, which prints one script.
            keys: fanin_scenario::keys().into_iter().map(|key| &*format!("{key}=").leak()).collect(),
        }
    }

    /// Returns the values that are completed for an argument; `None` for an argument without such values.
    fn of(&self, argument: &Arg) -> Option<&Vec<&'static str>> {
        let name = argument.get_value_names()?.first()?.as_str();
        if name == "SCENARIO" || argument.get_id() == "like" {
            return Some(&self.presets);
        }
        (name.starts_with("KEY=") && matches!(argument.get_id().as_str(), "sets" | "sweep"))
            .then_some(&self.keys)
    }

    fn offered_in(&self, command: Command) -> Command {
        let command = command.mut_args(|argument| match self.of(&argument) {
            Some(words) => argument.value_parser(PossibleValuesParser::new(words.clone())),
            None => argument,
        });
        command.mut_subcommands(|inner| self.offered_in(inner))
    }

    /// Returns the script of zsh with a completion of files in addition to presets.
    fn with_files(&self, script: &str) -> String {
        let presets = self.presets.join(" ");
        let both = format!("{{_alternative \"presets:preset:({presets})\" \"files:file:_files\"}}");
        script.replace(&format!("({presets})"), &both)
    }

    /// Returns lines for fish, because clap's script leaves out arguments without an option.
    fn positional(&self, command: &Command) -> String {
        let mut out = String::new();
        let presets = self.presets.join(" ");
        let takes = |inner: &&Command| inner.get_positionals().any(|argument| self.of(argument).is_some());
        for name in command.get_subcommands().filter(takes).map(Command::get_name) {
            // Writing to a string cannot fail.
            let _ =
                writeln!(out, "complete -c fanin -n \"__fish_seen_subcommand_from {name}\" -a \"{presets}\"");
        }
        out
    }
}
