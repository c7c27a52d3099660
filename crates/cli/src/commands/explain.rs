//! `fanin explain`: why one event of a run was late, lost or left undecided.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use fanin_node::explain::{ExplainedTables, Explanation, explain};
use fanin_node::flows::Numbers;
use fanin_node::result::read_tables;
use fanin_node::tcp::counted;
use fanin_node::trace::windows;
use fanin_report::{Records, SUMMARY_FILE, read};

use crate::failure::Failure;
use crate::output::{self, Json};

#[derive(Debug, Args)]
#[command(
    after_help = "Reads the journals of a live run, its tables and its traces; of a simulation, its tables.

Example: fanin sim incast --out out/incast && fanin explain 3 --in out/incast"
)]
pub(crate) struct Arguments {
    /// The L1 ID of the event.
    #[arg(value_name = "EVENT", value_parser = read_event)]
    event: u64,
    /// The folder that --out of the run named, or the one with its journals.
    #[arg(long = "in", value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Write the explanation as JSON to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
}

fn read_event(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "an event's L1 ID is a whole number, such as 3; the folder follows as --in DIR")
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let live = folder.join("live");
    let journals = if live.is_dir() { &live } else { folder };
    let records = if folder.join(SUMMARY_FILE).is_file() {
        read(folder)?.records
    } else {
        // A run that was killed has journals, counters and traces, and no tables.
        let tables = read_tables(journals, &[])?;
        let windows = windows(journals, tables.start_unix_us)?;
        let scenario = journals.join("scenario.toml");
        let flows = match fanin_scenario::load(&scenario.to_string_lossy(), &[]) {
            Ok(loaded) => counted(journals, &Numbers::of(&loaded.scenario))?.rows,
            // Journals alone are enough for an explanation.
            Err(_) => Vec::new(),
        };
        Records { events: tables.rows, flows, windows, ..Records::default() }
    };
    let tables =
        ExplainedTables { events: &records.events, flows: &records.flows, windows: &records.windows };
    let found = explain(journals, tables, arguments.event)?;
    let explanation =
        found.ok_or_else(|| Failure::NoEvent { event: arguments.event, folder: folder.clone() })?;
    if let Some(json) = &arguments.json {
        json.write(&explanation)?;
    }
    if arguments.json.as_ref().is_some_and(Json::is_stdout) {
        return Ok(());
    }
    output::print(&text(&explanation))
}

fn text(explanation: &Explanation) -> String {
    let Explanation { event, outcome, is_late, reasons, steps, .. } = explanation;
    let late = if *is_late { ", late" } else { "" };
    let mut text = format!("event {event}: {outcome}{late}\n\n{}\n", reasons.join("\n"));
    if !steps.is_empty() {
        text.push('\n');
    }
    for step in steps {
        text += &format!("{:>12.3} ms  {:<14}{}\n", step.at_ms, step.process, step.text);
    }
    text
}
