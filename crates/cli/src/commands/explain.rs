//! `fanin explain`: why one event of a run was late, lost or left undecided.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use fanin_node::explain::{ExplainedTables, Explanation, explain};
use fanin_node::flows::Numbers;
use fanin_node::result::read_tables;
use fanin_node::tcp::counted_in;
use fanin_node::trace::windows;
use fanin_report::{Records, SUMMARY_FILE, read};

use crate::failure::Failure;
use crate::output::{self, Json};

#[derive(Debug, Args)]
#[command(
    after_help = "Reads the journals of a live run, its tables and its traces; of a simulation, its tables.
For a system on several hosts, name the folder of each, copied or mounted: --in DIR --in DIR.

Example: fanin sim incast --out out/incast && fanin explain 3 --in out/incast"
)]
pub(crate) struct Arguments {
    /// The L1 ID of the event.
    #[arg(value_name = "EVENT", value_parser = read_event)]
    event: u64,
    /// The folder that --out of the run named, or one with journals; several times for the folders of several hosts.
    #[arg(long = "in", value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    folders: Vec<PathBuf>,
    /// Write the explanation as JSON to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
}

fn read_event(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "an event's L1 ID is a whole number, such as 3; the folder follows as --in DIR")
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut journals: Vec<PathBuf> = Vec::new();
    for folder in &arguments.folders {
        let live = folder.join("live");
        let folder = if live.is_dir() { live } else { folder.clone() };
        // A folder that was named twice, also as --out of the run and as the one below it, is read once.
        if !journals.iter().any(|other| is_same(other, &folder)) {
            journals.push(folder);
        }
    }
    let journals: Vec<&Path> = journals.iter().map(PathBuf::as_path).collect();
    let records = match &arguments.folders[..] {
        [folder] if folder.join(SUMMARY_FILE).is_file() => read(folder)?.records,
        _ => from_journals(&journals)?,
    };
    let tables =
        ExplainedTables { events: &records.events, flows: &records.flows, windows: &records.windows };
    let found = explain(&journals, tables, arguments.event)?;
    let explanation = found
        .ok_or_else(|| Failure::NoEvent { event: arguments.event, folders: arguments.folders.clone() })?;
    if let Some(json) = &arguments.json {
        json.write(&explanation)?;
    }
    if !output::is_for_text(&arguments.json) {
        return Ok(());
    }
    output::print(&text(&explanation))
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Returns the tables of a run from its journals, counters and traces. A run that was killed has no other tables, and
/// neither has a system on several hosts.
fn from_journals(folders: &[&Path]) -> Result<Records, Failure> {
    let tables = read_tables(folders, &[])?;
    let mut records = Records { events: tables.rows, ..Records::default() };
    for folder in folders {
        records.windows.extend(windows(folder, tables.start_unix_us)?);
    }
    records.windows.sort_by_key(|row| (row.flow, row.time_ps));
    // The folders of a system on several hosts have no scenario: the counters themselves name its processes.
    let scenario = folders.iter().map(|folder| folder.join("scenario.toml")).find(|path| path.exists());
    let loaded = scenario.map(|path| fanin_scenario::load(&path.to_string_lossy(), &[])).transpose()?;
    let numbers = loaded.map(|loaded| Numbers::of(&loaded.scenario));
    records.flows = counted_in(folders, numbers.as_ref())?.rows;
    Ok(records)
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
