//! The smallest program that runs a process of a live system, in place of `fanin node`. It serves tests, and as a
//! start for programs that bring a role along. With `--versions`, it speaks those of another release. With
//! `FANIN_INSECURE` in its environment, its peers do not authenticate, so that a benchmark can show what that costs.

use std::process::ExitCode;

use fanin_message::Versions;
use fanin_node::config::{Role, System};
use fanin_node::node::ProcessError;
use fanin_node::process::{self, Signals};
use fanin_node::roles::processor;

/// Runs the process that the arguments name.
pub(crate) fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [node, role, config, options @ ..] = arguments.as_slice() else {
        return Err(
            "write: node ROLE CONFIG --index N [--unit N] [--metrics ADDRESS] [--versions LOWEST-HIGHEST]"
                .into(),
        );
    };
    if node != "node" {
        return Err(format!("{node:?} in the place of \"node\"").into());
    }
    let option = |name: &str| {
        let place = options.iter().position(|option| option == name);
        place.and_then(|place| options.get(place + 1))
    };
    fanin_node::panic::abort_on_panic();
    processor::end_with_parent()?;
    let mut system = System::load(config.as_ref())?;
    system.metrics_option = option("--metrics").map(|address| address.parse()).transpose()?;
    if let Some((lowest, highest)) = option("--versions").and_then(|range| range.split_once('-')) {
        system.versions = Versions { lowest: lowest.parse()?, highest: highest.parse()? };
    }
    if std::env::var_os("FANIN_INSECURE").is_some() {
        system.key = None;
    }
    fanin_node::log::install(system.log_format, system.log_level);
    let index = option("--index").map_or(Ok(0), |index| index.parse())?;
    let unit = option("--unit").map(|unit| unit.parse()).transpose()?;
    let ended: Result<(), ProcessError> = match role.parse()? {
        Role::Processor => processor::run(&system, index, unit),
        role => process::run(&system, role, index, &Signals::install()?),
    };
    Ok(ended?)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let again = error.downcast_ref::<ProcessError>().is_some_and(|error| !error.is_permanent());
            ExitCode::from(if again { 1 } else { 2 })
        }
    }
}
