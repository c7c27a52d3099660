//! `fanin report`: one self-contained page of one result, or of several side by side.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use fanin_report::{PageWords, ResultKind};

use super::reproduce::CLAIMS_TITLE;
use crate::failure::Failure;
use crate::{output, summary};

#[derive(Debug, Args)]
#[command(
    after_help = "Example: fanin plan incast --json plan.json && fanin report plan.json --out page.html"
)]
pub(crate) struct Arguments {
    /// A result that `--out` or `--json` of another command wrote: a folder, or the JSON of a result, a sweep, `compare`,
    /// `reproduce` or `advise`.
    ///
    /// A measurement is judged by the simulation of the same scenario. Results that differ in one setting, or in two,
    /// are drawn against it.
    #[arg(value_name = "RESULT", required = true, value_hint = ValueHint::AnyPath)]
    results: Vec<PathBuf>,
    /// The page, one HTML file that opens offline.
    #[arg(long, value_name = "PAGE.html", value_hint = ValueHint::FilePath)]
    out: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let write = |page| {
        std::fs::write(&arguments.out, page)
            .map_err(|error| Failure::Write { path: arguments.out.clone(), error })
    };
    if let [advice] = arguments.results.as_slice()
        && let Some(page) = fanin_report::read_advice_page(advice)?
    {
        return write(page);
    }
    let results = fanin_report::read_all(&arguments.results)?;
    let claims = fanin_report::read_claims(&arguments.results)?;
    let compared = fanin_report::read_compared(&arguments.results)?;
    let (title, notes) = compared.map_or((None, Vec::new()), |(title, notes)| (Some(title), notes));
    let (tuned, answer) = fanin_report::read_tuned(&arguments.results)?.unzip();
    let name = if claims.is_empty() { title.or(tuned) } else { Some(CLAIMS_TITLE.to_owned()) };
    let words = PageWords {
        name: name.as_deref(),
        claims: &claims,
        notes: &notes,
        answer: answer.as_deref().unwrap_or_default(),
    };
    write(fanin_report::page_of(&results, &words))?;
    // A plan has none of the table's figures.
    let measured = results.iter().filter(|result| result.summary.kind != ResultKind::Plan);
    // Rows of one scenario are kept apart by the names of their folders.
    let names: BTreeSet<&str> = results.iter().map(|result| &*result.summary.scenario.name).collect();
    let are_named = names.len() == results.len();
    let rows: Vec<_> = measured
        .map(|result| {
            let summary = &result.summary;
            let invalid = summary.invalid().map_or("", |_| " (invalid)");
            let name = if are_named { &summary.scenario.name } else { &result.label };
            (format!("{name}, {}{invalid}", summary.kind.name()), summary)
        })
        .collect();
    if rows.len() > 1 { output::print(&summary::table(rows.into_iter())) } else { Ok(()) }
}
