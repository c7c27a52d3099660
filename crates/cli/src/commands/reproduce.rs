//! `fanin reproduce`: the papers' checkable results, compared with the simulator's.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use fanin_report::{CLAIMS_FILE, CLAIMS_SCHEMA, JudgedClaim, Summary};
use fanin_reproduce::{Claim, Judged, LabError, Status};
use serde::Serialize;

use super::kept::{KeptResults, labelled};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Json};
use crate::threads::threads_or_cores;

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin reproduce I0 --duration \"1 s\"

A claim that does not hold for an understood reason is `explained` (docs/papers.md gives the
reasons). The exit code is 1 if a claim fails without such a reason, holds against it, or has a
figure outside its known range. Ranges are those of the claims' own times, so they are not checked
with --duration. A claim for which --duration is too short is not judged, and does not fail.")]
pub(crate) struct Arguments {
    /// Only claims with numbers that begin so; all claims by default.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Measured time of every run, for a quick look. By default each claim has its own.
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    /// Number of simulations at a time. By default one per core.
    #[arg(long, value_name = "N", value_parser = crate::commands::sim::threads)]
    threads: Option<u16>,
    /// Write each run's result, claims.json, and index.html with the claims and all runs.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// Write the table as JSON to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
    /// Print the table as Markdown.
    #[arg(long)]
    markdown: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Serialize)]
struct ClaimRow<'a> {
    id: &'a str,
    place: &'a str,
    says: &'a str,
    expected: &'a str,
    measured: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

impl ClaimRow<'_> {
    fn on_page(&self) -> JudgedClaim {
        JudgedClaim {
            id: self.id.to_owned(),
            place: self.place.to_owned(),
            says: self.says.to_owned(),
            expected: self.expected.to_owned(),
            outcome: self.measured.to_owned(),
            status: self.status.to_owned(),
            why: self.why.map(str::to_owned),
        }
    }
}

/// The title of a page with claims.
pub(super) const CLAIMS_TITLE: &str = "Claims of the papers";

#[derive(Serialize)]
struct ClaimTable<'a> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<&'a str>,
    claims: &'a [ClaimRow<'a>],
    runs: &'a [JudgedRun],
}

/// A run that claims were judged by, from which `fanin report` makes the page.
#[derive(Serialize)]
struct JudgedRun {
    set: Vec<String>,
    summary: Summary,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let is_wanted = |claim: &Claim| {
        arguments.ids.is_empty() || arguments.ids.iter().any(|id| claim.id.starts_with(id.as_str()))
    };
    let claims: Vec<Claim> = fanin_reproduce::claims().into_iter().filter(is_wanted).collect();
    if claims.is_empty() {
        return Err(Failure::NoClaim { ids: arguments.ids.join(" ") });
    }
    if let Some(folder) = &arguments.out {
        output::prove_folder(folder)?;
    }
    arguments.json.as_ref().map_or(Ok(()), Json::prove)?;
    let mut kept = arguments.out.as_deref().map(KeptResults::new);
    let mut runs: Vec<JudgedRun> = Vec::new();
    let bar = output::bar(arguments.quiet, "{wide_bar} {pos} of {len} runs, {eta} left");
    let judged = fanin_reproduce::reproduce(
        &claims,
        arguments.duration.as_deref(),
        threads_or_cores(arguments.threads),
        interrupt::flag(),
        &|done, of| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        },
        &mut |run, loaded, outcome| {
            let label = [&[run.preset.to_owned()], &run.sets[..]].concat().join(", ");
            runs.push(JudgedRun { set: run.sets.clone(), summary: labelled(&label, loaded, outcome) });
            if let Some(kept) = &mut kept {
                kept.keep(label, loaded, outcome);
            }
        },
    );
    bar.finish_and_clear();
    let judged = judged.map_err(|error| match error {
        LabError::Stopped => Failure::Stopped,
        LabError::Scenario(errors) => Failure::Scenario(errors),
        LabError::Sim { error, .. } => Failure::Sim(error),
    })?;
    let rows: Vec<ClaimRow> = claims
        .iter()
        .zip(&judged)
        .map(|(claim, judged)| row(claim, judged, arguments.duration.is_none()))
        .collect();
    let table = ClaimTable {
        schema: CLAIMS_SCHEMA,
        duration: arguments.duration.as_deref(),
        claims: &rows,
        runs: &runs,
    };
    if let Some(json) = &arguments.json {
        json.write(&table)?;
    }
    if let (Some(folder), Some(kept)) = (&arguments.out, kept) {
        let claims: Vec<JudgedClaim> = rows.iter().map(ClaimRow::on_page).collect();
        kept.finish(CLAIMS_TITLE, &claims, &[])?;
        Json::File(folder.join(CLAIMS_FILE)).write(&table)?;
    }
    if output::is_for_text(&arguments.json) {
        output::print(&if arguments.markdown { markdown(&rows) } else { text(&rows) })?;
    }
    let unsound: Vec<&str> = claims
        .iter()
        .zip(&judged)
        .filter(|(claim, judged)| {
            let status = judged.status(claim.known.as_ref(), arguments.duration.is_none());
            // A run that the user shortened says nothing against a claim.
            !status.is_sound() && (status != Status::Unmeasured || arguments.duration.is_none())
        })
        .map(|(claim, _)| claim.id)
        .collect();
    if unsound.is_empty() { Ok(()) } else { Err(Failure::Claims { ids: unsound.join(" ") }) }
}

fn row<'a>(claim: &'a Claim, judged: &'a Judged, has_own_duration: bool) -> ClaimRow<'a> {
    ClaimRow {
        id: claim.id,
        place: claim.place,
        says: claim.says,
        expected: claim.expected,
        measured: &judged.outcome,
        status: judged.status(claim.known.as_ref(), has_own_duration).name(),
        why: claim.known.as_ref().map(|known| known.why),
    }
}

fn text(rows: &[ClaimRow<'_>]) -> String {
    let mut out = String::new();
    for row in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}  {:<9}  {} ({})", row.id, row.status, row.says, row.place);
        let _ = writeln!(out, "{:17}expected {}\n{:17}measured {}", "", row.expected, "", row.measured);
        if let Some(why) = row.why {
            let _ = writeln!(out, "{:17}because  {why}", "");
        }
    }
    let count = |status: Status| rows.iter().filter(|row| row.status == status.name()).count();
    let [holds, explained, open] = [Status::Holds, Status::Explained, Status::Unmeasured].map(count);
    let not_judged = if open > 0 { format!(", {open} were not judged") } else { String::new() };
    let _ = writeln!(
        out,
        "\n{} claims: {holds} hold, {explained} do not for a known reason, {} fail{not_judged}",
        rows.len(),
        rows.len() - holds - explained - open
    );
    out
}

fn markdown(rows: &[ClaimRow<'_>]) -> String {
    let mut out = String::from("| claim | says | expected | measured | status |\n|---|---|---|---|---|\n");
    for row in rows {
        let why = row.why.map_or_else(String::new, |why| format!(": {why}"));
        let _ = writeln!(
            out,
            "| {} ({}) | {} | {} | {} | {}{why} |",
            row.id, row.place, row.says, row.expected, row.measured, row.status
        );
    }
    out
}
