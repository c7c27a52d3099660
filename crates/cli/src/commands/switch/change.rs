//! `fanin switch set`, `reset-marks` and `api`: changes of a running switch, and the description of its interface.

use clap::Args;
use fanin_switch::control::{self, Client};
use serde_json::{Map, Value};

use crate::commands::switch::target::SwitchTarget;
use crate::failure::Failure;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin switch set RING rate=\"344 Mb/s\" bytes=\"256 MiB\" alarm=0.8

Keys are those of [[ring]]: frames, bytes, rate, burst, priority, ecn, alarm. Values are JSON or
plain text; null takes a limit away. Nothing that is queued is lost. Everything else that can be
changed: fanin switch api.")]
pub(super) struct SetArguments {
    /// Name of the ring.
    #[arg(value_name = "RING")]
    ring: String,
    /// The setting to change.
    #[arg(value_name = "KEY=VALUE", required = true)]
    changes: Vec<String>,
    #[command(flatten)]
    target: SwitchTarget,
}

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin switch reset-marks --at ADDRESS")]
pub(super) struct ResetArguments {
    #[command(flatten)]
    target: SwitchTarget,
}

pub(super) fn set(arguments: &SetArguments) -> Result<(), Failure> {
    let mut changes = Map::new();
    for change in &arguments.changes {
        let Some((key, value)) = change.split_once('=') else {
            return Err(Failure::NoChange { given: change.clone() });
        };
        // Values that are no JSON are text: rate=344 Mb/s needs no second pair of quotes.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        changes.insert(key.trim().to_owned(), value);
    }
    let path = format!("/v1/rings/{}", Client::escape(&arguments.ring));
    let item = arguments.target.client()?.change(&path, &Value::Object(changes))?;
    output::print(&format!("{:#}\n", item["spec"]))
}

pub(super) fn reset_marks(arguments: &ResetArguments) -> Result<(), Failure> {
    arguments.target.client()?.send("POST", "/v1/marks/reset", None)?;
    Ok(())
}

/// Prints the OpenAPI description.
pub(super) fn api() -> Result<(), Failure> {
    output::print(&format!("{:#}\n", control::description()))
}
