//! `fanin switch`: the lossless software switch, and its operation.

mod capture;
mod change;
mod openflow;
mod run;
mod show;
mod target;

use clap::{Args, Subcommand};

use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
#[command(after_help = run::AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<SwitchCommand>,
    #[command(flatten)]
    run: Option<run::Arguments>,
}

#[derive(Debug, Subcommand)]
enum SwitchCommand {
    /// Show rings, ports, stations or rules of a running switch.
    Show(show::Arguments),
    /// Change a ring of a running switch.
    Set(change::SetArguments),
    /// Start the high-water marks of a running switch afresh.
    ResetMarks(change::ResetArguments),
    /// Capture frames of a port or a ring of a running switch as pcapng.
    Capture(capture::Arguments),
    /// Print the rules that let an OpenFlow switch redirect frames to collectors through this switch and back.
    Openflow(openflow::Arguments),
    /// Print the OpenAPI description of a running switch's interface.
    #[command(after_help = "Example: fanin switch api > switch-api.json")]
    Api,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match (&arguments.action, &arguments.run) {
        (Some(SwitchCommand::Show(arguments)), _) => show::run(arguments),
        (Some(SwitchCommand::Set(arguments)), _) => change::set(arguments),
        (Some(SwitchCommand::ResetMarks(arguments)), _) => change::reset_marks(arguments),
        (Some(SwitchCommand::Capture(arguments)), _) => capture::run(arguments),
        (Some(SwitchCommand::Openflow(arguments)), _) => openflow::run(arguments),
        (Some(SwitchCommand::Api), _) => change::api(),
        (None, Some(arguments)) => run::run(arguments),
        // The parser requires one of the two.
        (None, None) => Ok(()),
    }
}
