//! `fanin validate`: the standing set of small scenarios, simulated and run on this machine's kernel.

mod baseline;
mod case;
mod table;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::{Args, ValueHint};
use indicatif::ProgressBar;

use self::baseline::{Baseline, Recorded};
use self::case::{Case, JudgedCase, Measurement};
use crate::commands::live::ResultFolder;
use crate::failure::Failure;
use crate::{interrupt, output};

/// Attempts at a measurement that marks itself invalid or fails. A mere deviation is not repeated.
const ATTEMPTS: u8 = 3;

#[derive(Debug, Args)]
#[command(
    after_help = "Each case is simulated with ten seeds, run, and judged by medians. Both or neither must show incast.
Without incast the mean must agree within 10 %, and with incast the goodput within 25 %. In event
building with incast the mean must agree within 25 %. The deepest queue must agree within 15 %.

Each file of the folder is a case, unless its name begins with `_`. The file `baseline.toml` in the
same folder has the measurements, and the reasons for known differences.

Example: fanin validate FOLDER --recorded --only cubic-16

The exit code is 1 if a case differs beyond the goals and the baseline has no reason for it. It is 3
if privileges for the runs are missing."
)]
pub(crate) struct Arguments {
    /// The folder with the cases.
    #[arg(value_name = "FOLDER", default_value = "scenarios/validation", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// These cases only, or those with names that begin so.
    #[arg(long, value_name = "CASE", num_args = 1..)]
    only: Vec<String>,
    /// Judge the simulation by the measurements in the baseline, and run nothing.
    #[arg(long, conflicts_with = "record")]
    recorded: bool,
    /// Put the measurements into the baseline.
    #[arg(long)]
    record: bool,
    /// Run each case so often; the run in the middle by goodput counts. In collapse, chance moves a run by a fifth.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=99), conflicts_with = "recorded")]
    rounds: u8,
    /// Keep both results of each case, and their page, in a folder.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// Write the table as a page of the documentation.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    markdown: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let cases = cases(&arguments.folder, &arguments.only)?;
    let path = arguments.folder.join(baseline::FILE);
    let mut baseline = Baseline::read(&path)?;
    let out = ResultFolder::new(arguments.out.as_deref(), "validate")?;
    let bar = output::bar(false, "{wide_bar} {pos} of {len} cases, {msg}, {eta} left");
    bar.set_length(cases.len() as u64);
    let mut judged = Vec::new();
    for case in &cases {
        bar.set_message(case.name.clone());
        let one = one(arguments, case, &baseline, &out.path, &bar)?;
        if arguments.record {
            // Written at once: a failure of a later measurement loses no earlier one.
            baseline.put(&case.name, Recorded::new(&one));
            baseline.write(&path)?;
        }
        judged.push(one);
        bar.inc(1);
        if interrupt::flag().load(Ordering::Relaxed) {
            break;
        }
    }
    bar.finish_and_clear();
    let stopped = judged.len() < cases.len();
    output::print(&table::terminal(&judged))?;
    output::print(&table::findings(&judged))?;
    if let Some(path) = &arguments.markdown {
        std::fs::write(path, table::page(&judged, &arguments.folder, baseline.conditions.as_deref()))
            .map_err(|error| Failure::Write { path: path.clone(), error })?;
    }
    if stopped {
        return Err(Failure::Stopped);
    }
    let failed: Vec<String> =
        judged.iter().filter(|case| !case.passes()).map(|case| case.name.clone()).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::Validation { cases: failed.join(", ") }) }
}

/// Simulates a case, gets its measurement, and compares.
fn one(
    arguments: &Arguments,
    case: &Case,
    baseline: &Baseline,
    out: &Path,
    bar: &ProgressBar,
) -> Result<JudgedCase, Failure> {
    let known = baseline.known(&case.name);
    let folder = out.join(&case.name);
    let predicted = case.simulate(&folder)?;
    let measured = if arguments.recorded {
        match baseline.case(&case.name) {
            Some(recorded) => Measurement::Recorded(recorded.clone()),
            None => Measurement::Missing("the baseline has no measurement of it".into()),
        }
    } else {
        measure(case, &folder, arguments.rounds, bar)?
    };
    if arguments.out.is_some() {
        case.page(&folder, &predicted, &measured)?;
    }
    Ok(JudgedCase::new(case, &predicted.summary, measured, known))
}

/// Measures `rounds` sound runs; returns the run with the median goodput (of an even number, the lower one) and the
/// spread. If a round has no sound run, returns the result of its last attempt.
fn measure(case: &Case, folder: &Path, rounds: u8, bar: &ProgressBar) -> Result<Measurement, Failure> {
    let mut results = Vec::new();
    for round in 1..=rounds {
        let folder = if rounds == 1 { folder.join("run") } else { folder.join(format!("run-{round}")) };
        let mut attempt = 1;
        let measured = loop {
            if rounds > 1 || attempt > 1 {
                bar.set_message(format!("{}, round {round}, attempt {attempt}", case.name));
            }
            let measured = case.measure(&folder)?;
            let is_stopped = interrupt::flag().load(Ordering::Relaxed);
            if measured.is_sound() || attempt == ATTEMPTS || is_stopped {
                break measured;
            }
            attempt += 1;
        };
        match measured {
            Measurement::Live(run) if measured.is_sound() => results.push(run.result),
            unsound => return Ok(unsound),
        }
    }
    Ok(Measurement::middle(results))
}

/// Reads the cases of a folder, in the order of their names.
fn cases(folder: &Path, only: &[String]) -> Result<Vec<Case>, Failure> {
    let no_cases = || Failure::NoCases { folder: folder.to_owned(), only: only.join(" ") };
    let entries = std::fs::read_dir(folder).map_err(|_| no_cases())?;
    let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    let named = paths.iter().filter_map(|path| {
        let name = path.file_stem()?.to_str()?;
        let is_case =
            path.extension()? == "toml" && !name.starts_with('_') && path.file_name()? != baseline::FILE;
        let wanted = only.is_empty() || only.iter().any(|only| name.starts_with(only.as_str()));
        (is_case && wanted).then(|| (name.to_owned(), path.clone()))
    });
    let cases: Vec<Case> = named.map(|(name, path)| Case::load(name, path)).collect::<Result<_, _>>()?;
    if cases.is_empty() { Err(no_cases()) } else { Ok(cases) }
}
