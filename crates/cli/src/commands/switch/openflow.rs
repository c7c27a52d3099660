//! `fanin switch openflow`: the hybrid of the multi-host paper, an OpenFlow switch and the software switch.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use fanin_openflow::CheckedHybrid;

use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "Example: fanin switch openflow --example > hybrid.toml && fanin switch openflow hybrid.toml"
)]
pub(crate) struct Arguments {
    /// A description of the switch, its collectors and its host ports (`--example` prints one).
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "example")]
    file: Option<PathBuf>,
    /// The output to print.
    #[arg(long = "as", value_name = "FORM", value_enum, default_value_t = OpenflowForm::Commands)]
    form: OpenflowForm,
    /// Use only the first of the file's host ports; 0 redirects nothing.
    #[arg(long, value_name = "N")]
    host_ports: Option<usize>,
    /// Print the commands that take the rules back.
    #[arg(long, conflicts_with = "form")]
    remove: bool,
    /// Print a description to start from.
    #[arg(long, conflicts_with_all = ["file", "form", "host_ports", "remove"])]
    example: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OpenflowForm {
    /// A shell script of ovs-vsctl and ovs-ofctl calls.
    Commands,
    /// The rules alone, a file for `ovs-ofctl --bundle add-flows`.
    Flows,
    /// The rules as JSON with OXM names, for other controllers.
    Json,
    /// The OVSDB transaction that numbers the ports, for `ovsdb-client transact`.
    Ovsdb,
    /// The configuration of the software switch at the other end of the host ports, for `fanin switch CONFIG`.
    Switch,
    /// A shell script for the machine of the software switch: while that does not run, the kernel sends frames back instead.
    Bypass,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(file) = &arguments.file else {
        return output::print(fanin_openflow::EXAMPLE);
    };
    let (hybrid, warnings) = CheckedHybrid::load(file, arguments.host_ports)?;
    output::warn(&warnings);
    let text = match arguments.form {
        _ if arguments.remove => fanin_openflow::removal(&hybrid),
        OpenflowForm::Commands => fanin_openflow::commands(&hybrid),
        OpenflowForm::Flows => fanin_openflow::flows(&hybrid),
        OpenflowForm::Json => fanin_openflow::json(&hybrid),
        OpenflowForm::Ovsdb => fanin_openflow::ovsdb(&hybrid),
        OpenflowForm::Bypass => fanin_openflow::bypass(&hybrid),
        OpenflowForm::Switch => fanin_openflow::switch_config(&hybrid),
    };
    output::print(&text)
}
