//! `fanin sim`: a scenario, packet by packet.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueHint};
use fanin_report::{PAGE_FILE, Records, RunResult, ScenarioName, Summary, SweepPoint};
use fanin_runs::{MemoryEstimate, RunControl, RunEnd, RunOutcome};
use fanin_scenario::Loaded;
use indicatif::ProgressBar;

use crate::commands::points::{PlannedPoint, PlannedPoints};
use crate::commands::source::Source;
use crate::commands::sweep::Sweep;
use crate::failure::Failure;
use crate::output::{self, Json};
use crate::predicted::predict;
use crate::threads::threads_or_cores;
use crate::{build_info, interrupt, summary};

/// Bytes of memory from which a run's need is printed before it starts, also without a terminal.
const MEMORY_NOTED: u64 = 1_000_000_000;

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin sim incast --sweep workload.senders=4,8,16 --set \"run.duration=1 s\"

The exit code is 1 if events were lost or nothing moved any more, and 130 after Ctrl-C. The results
are written in each case.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) source: Source,
    /// Seed of all random streams, in place of the scenario's `run.seed`.
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = seed)]
    seed: Option<u64>,
    /// Runs of a sweep at a time; results never depend on it. By default one for each core.
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<u16>,
    /// Try several values of a setting; given more than once, all combinations. FROM..TO:STEP stands for equal steps,
    /// log:FROM..TO:COUNT for equal factors.
    #[arg(long, value_name = "KEY=V1,V2,...")]
    pub(super) sweep: Vec<Sweep>,
    /// Run the scenario, or each point of a sweep, with N seeds: `run.seed` and those that follow. Figures get means with
    /// intervals of 95 %, curves get bands.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    repeat: Option<u16>,
    /// Run only every Nth point of a sweep from the Ith on, so that N machines share it; folders are those of
    /// `--resume`.
    #[arg(long, value_name = "I/N", requires_all = ["sweep", "out"])]
    pub(super) shard: Option<Shard>,
    /// Write each point of a sweep as soon as it is done, into a folder named by the hash of its scenario, seed and version.
    /// Points that have such a folder already are read from it, not simulated again. Points that were stopped or stalled are not
    /// kept.
    #[arg(long, requires_all = ["sweep", "out"])]
    resume: bool,
    /// Write summary, tables, resolved scenario and page into a folder (a folder for each run of a sweep).
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// Write the summary as JSON to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
    /// Capture the link that the scenario's `record.capture` names, headers only, as pcapng.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["sweep", "repeat"])]
    pcap: Option<PathBuf>,
    /// Write events, the worst ports, goodput, timeouts and the slowest event as a trace that Perfetto opens
    /// (<https://ui.perfetto.dev>).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["sweep", "repeat"])]
    trace: Option<PathBuf>,
    /// Also simulate the bands of the live system's metrics. They are written as lines for the section `[metrics]` of a
    /// system's file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["sweep", "repeat"])]
    predicted: Option<PathBuf>,
    /// Show no progress and no summary.
    #[arg(long, short)]
    quiet: bool,
}

/// A part of a sweep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shard {
    /// Index of the part, from 0.
    pub(super) index: usize,
    pub(super) of: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts =
            text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Self { index: index - 1, of }),
            _ => Err("write I/N with I from 1 to N, for example 2/8".to_owned()),
        }
    }
}

pub(super) fn seed(text: &str) -> Result<u64, String> {
    // Scenarios hold signed numbers, as TOML does.
    let seed = text.parse().ok().filter(|&seed| seed <= i64::MAX as u64);
    seed.ok_or_else(|| format!("a seed is a whole number from 0 to {}", i64::MAX))
}

/// Parses a number of simulations at a time, at least 1.
pub(super) fn threads(text: &str) -> Result<u16, String> {
    let threads = text.parse().ok().filter(|&threads| threads > 0);
    threads.ok_or_else(|| format!("the number of threads is a whole number from 1 to {}", u16::MAX))
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(folder) = &arguments.out {
        output::prove_folder(folder)?;
    }
    arguments.json.as_ref().map_or(Ok(()), Json::prove)?;
    for file in arguments.pcap.iter().chain(&arguments.trace).chain(&arguments.predicted) {
        output::prove_file(file)?;
    }
    let is_one = arguments.sweep.is_empty() && arguments.repeat.is_none_or(|repeat| repeat == 1);
    if is_one { one(arguments) } else { many(arguments) }
}

/// Returns the settings of `--set` and `--seed`, with the swept ones between them.
pub(super) fn settings(arguments: &Arguments, swept: &[String]) -> Vec<String> {
    let seed = arguments.seed.map(|seed| format!("run.seed={seed}"));
    arguments.source.sets.iter().chain(swept).cloned().chain(seed).collect()
}

fn one(arguments: &Arguments) -> Result<(), Failure> {
    let source = arguments.source.source.clone();
    let loaded = Source { source, sets: settings(arguments, &[]) }.load()?;
    if arguments.predicted.is_some() && loaded.scenario.is_barrier() {
        return Err(Failure::NoBands);
    }
    let bar = output::bar(arguments.quiet, "{msg} {wide_bar} {percent} % of the simulated time, {eta} left");
    show_memory(arguments, &bar, MemoryEstimate::new(&loaded.scenario).total().get());
    let control = RunControl {
        stop: interrupt::flag(),
        progress: &|now, end| {
            bar.set_length(end.get());
            bar.set_position(now.get());
        },
        capture: arguments.pcap.is_some(),
    };
    let outcome = fanin_runs::run(&loaded.scenario, loaded.scenario.run.seed, &control);
    bar.finish_and_clear();
    let outcome = outcome.map_err(|error| Failure::simulation(error, &loaded))?;
    let (result, ending) = finish(&loaded, outcome, arguments.pcap.as_deref())?;
    if let Some(folder) = &arguments.out {
        write(folder, &result)?;
    }
    if let Some(path) = &arguments.trace {
        write_trace(path, &result)?;
    }
    if let Some(path) = &arguments.predicted {
        let bands = predict(&loaded.scenario, arguments.quiet)?.unwrap_or_default();
        std::fs::write(path, bands.to_toml())
            .map_err(|error| Failure::Write { path: path.clone(), error })?;
    }
    if let Some(json) = &arguments.json {
        json.write(&result.summary)?;
    }
    if !arguments.quiet && output::is_for_text(&arguments.json) {
        output::print(&summary::text(&result.summary))?;
        result.cautions().iter().for_each(|caution| output::note(caution));
        if let Some(folder) = &arguments.out {
            output::print(&format!("\nThe page: {}\n", folder.join(PAGE_FILE).display()))?;
        }
    }
    ending
}

/// Simulates the points of a sweep, each with all seeds, and shows them together.
fn many(arguments: &Arguments) -> Result<(), Failure> {
    check_sweeps(arguments)?;
    let has_hashes = arguments.resume || arguments.shard.is_some();
    if let Some(root) = &arguments.out {
        require_layout(root, has_hashes)?;
    }
    let mut planned = PlannedPoints::load(arguments, has_hashes)?;
    let points = match &arguments.out {
        Some(root) if has_hashes => resume(arguments, root, &planned)?,
        _ => play_into(arguments, &planned)?,
    };
    let Points { places, mut results, refused: at_start, ending } = points;
    let mut refused = std::mem::take(&mut planned.refused);
    refused.extend(at_start.into_iter().map(|(place, reason)| (planned.points[place].sets.clone(), reason)));
    let unplayable = note_refused(&refused);
    // Without any result the reason is the error.
    if let (true, Ok(()), Some((_, reason))) = (results.is_empty(), &ending, refused.into_iter().next()) {
        return Err(reason);
    }
    let ending = match ending {
        Err(Failure::Stopped) => Err(Failure::Stopped),
        _ if !unplayable.is_empty() => Err(Failure::Unplayable { points: unplayable.join("; ") }),
        ending => ending,
    };
    let sets: Vec<Vec<String>> =
        places.into_iter().map(|place| std::mem::take(&mut planned.points[place].sets)).collect();
    for (result, set) in results.iter_mut().zip(&sets) {
        result.label = named(set, result, ", ", repeats(arguments));
    }
    write_together(arguments, &results, &sets)?;
    if !arguments.quiet && output::is_for_text(&arguments.json) {
        match arguments.shard.filter(|_| planned.points.is_empty()) {
            Some(shard) => print_empty(shard, planned.total)?,
            None => print_together(arguments, &results, &sets)?,
        }
    }
    ending
}

/// Refuses keys that are swept twice or have a value in other options, too. Notes values of `--set` without effect.
fn check_sweeps(arguments: &Arguments) -> Result<(), Failure> {
    for (place, sweep) in arguments.sweep.iter().enumerate() {
        if arguments.sweep[..place].iter().any(|other| other.key == sweep.key) {
            return Err(Failure::SweptTwice { key: sweep.key.clone() });
        }
        if sweep.key == "run.seed" {
            let others = [("--seed", arguments.seed.is_some()), ("--repeat", arguments.repeat.is_some())];
            if let Some((option, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
                return Err(Failure::SeedTwice { option });
            }
        }
        let is_set = |set: &String| set.split_once('=').is_some_and(|(key, _)| key.trim() == sweep.key);
        if arguments.source.sets.iter().any(is_set) {
            output::note(&format!("{} is swept: its value of --set has no effect", sweep.key));
        }
    }
    Ok(())
}

/// Returns the number of seeds of each point.
pub(super) fn repeats(arguments: &Arguments) -> usize {
    arguments.repeat.map_or(1, usize::from)
}

/// Notes the points without a result, with the reason. Returns their settings.
fn note_refused(refused: &[(Vec<String>, Failure)]) -> Vec<String> {
    let note = |(sets, reason): &(Vec<String>, Failure)| {
        let set = sets.join(" ");
        let why = match reason {
            Failure::Scenario(errors) => {
                errors.problems().first().map(|problem| problem.message().to_owned())
            }
            _ => None,
        };
        output::note(&format!("{set} has no result: {}", why.unwrap_or_else(|| reason.to_string())));
        set
    };
    refused.iter().map(note).collect()
}

/// Returns the folder of the tables and the page of all points. A part of a sweep leaves them to the command that has all of
/// it.
fn folder_together(arguments: &Arguments) -> Option<&PathBuf> {
    arguments.out.as_ref().filter(|_| arguments.shard.is_none())
}

/// Writes the tables and the page of all points, and the JSON.
fn write_together(arguments: &Arguments, results: &[RunResult], sets: &[Vec<String>]) -> Result<(), Failure> {
    let points: Vec<SweepPoint<'_>> =
        results.iter().zip(sets).map(|(result, set)| SweepPoint { set, summary: &result.summary }).collect();
    if let Some(folder) = folder_together(arguments) {
        fanin_report::write_sweep(folder, &points, results)?;
    }
    if let Some(json) = &arguments.json {
        json.write(&fanin_report::sweep_value(&points))?;
    }
    Ok(())
}

/// Says that a shard has no point of a sweep of `total` runs.
fn print_empty(Shard { index, of }: Shard, total: u64) -> Result<(), Failure> {
    let text = format!("shard {}/{of} has no point: the sweep has {total} runs in all\n", index + 1);
    output::print(&text)
}

/// Prints the tables of all points, cautions, and the place of the page.
fn print_together(arguments: &Arguments, results: &[RunResult], sets: &[Vec<String>]) -> Result<(), Failure> {
    let repeats = repeats(arguments);
    let rows = results.iter().zip(sets);
    output::print(&summary::table(
        rows.map(|(result, sets)| (named(sets, result, " ", repeats), &result.summary)),
    ))?;
    if repeats > 1 {
        let summaries = results.iter().map(|result| &result.summary);
        let names = sets.iter().map(|sets| sets.join(" "));
        output::print(&summary::over_seeds(names.zip(summaries)))?;
    }
    caution(results);
    if let Some(folder) = folder_together(arguments) {
        output::print(&format!("\nThe page: {}\n", folder.join(fanin_report::SWEEP_PAGE).display()))?;
    }
    Ok(())
}

/// The points of a sweep that were played.
struct Points {
    /// Places of `results` among the planned points.
    places: Vec<usize>,
    results: Vec<RunResult>,
    /// Points that cannot be simulated, with the reason.
    refused: Vec<(usize, Failure)>,
    /// The end of the command, as far as the other points decide.
    ending: Result<(), Failure>,
}

/// Simulates all points, and writes each into a folder named by its number.
fn play_into(arguments: &Arguments, planned: &PlannedPoints) -> Result<Points, Failure> {
    let points: Vec<&PlannedPoint> = planned.points.iter().collect();
    let finished = play(arguments, planned, &points, &|point, loaded, outcome| {
        let (mut result, end) = finish(loaded, outcome, None)?;
        if let Some(folder) = &arguments.out {
            let name = format!("{:03}", point.number);
            write(&folder.join(&name), &result)?;
            result.page = Some(format!("{name}/{PAGE_FILE}"));
        } else {
            // Only a page draws it.
            result.picture = None;
        }
        // The tables of all points together may need more memory than their runs.
        result.records = Records::default();
        Ok((result, end))
    })?;
    let ending = if finished.len() < points.len() { Err(Failure::Stopped) } else { Ok(()) };
    let mut points = Points { places: Vec::new(), results: Vec::new(), refused: Vec::new(), ending };
    for (place, finished) in finished.into_iter().enumerate() {
        let (result, end) = match finished {
            Err(reason) if reason.is_refusal() => {
                points.refused.push((place, reason));
                continue;
            }
            finished => finished?,
        };
        points.ending = points.ending.and(end);
        points.places.push(place);
        points.results.push(result);
    }
    Ok(points)
}

/// Returns the bytes of memory that the largest runs on `threads` threads need together.
fn memory_needed(mut each: Vec<u64>, threads: usize) -> u64 {
    each.sort_unstable();
    each.into_iter().rev().take(threads).fold(0, u64::saturating_add)
}

/// Says in the line of progress how much memory is needed. A large amount is also a note, which needs no terminal.
fn show_memory(arguments: &Arguments, bar: &ProgressBar, bytes: u64) {
    let words = format!("needs at least {} MB", bytes.div_ceil(1_000_000));
    if bytes >= MEMORY_NOTED && !arguments.quiet {
        output::note(&format!("the simulation {words} of memory"));
    }
    bar.set_message(words);
}

/// Refuses a folder with points in the other layout, because a page would list each point twice.
fn require_layout(root: &Path, has_hashes: bool) -> Result<(), Failure> {
    let names = std::fs::read_dir(root).into_iter().flatten().flatten();
    let points = names.filter(|entry| entry.path().join(fanin_report::SUMMARY_FILE).is_file());
    for name in points.map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        let is_hash = name.len() == 32 && name.bytes().all(|letter| letter.is_ascii_hexdigit());
        let is_number = name.len() < 32 && name.bytes().all(|letter| letter.is_ascii_digit());
        if is_hash && !has_hashes {
            return Err(Failure::OtherLayout { folder: root.to_owned(), how: "with" });
        }
        if is_number && has_hashes {
            return Err(Failure::OtherLayout { folder: root.to_owned(), how: "without" });
        }
    }
    Ok(())
}

/// Prints cautions about results on standard error, each once.
pub(super) fn caution(results: &[RunResult]) {
    for (caution, count) in fanin_report::cautions_of(results) {
        output::note(&format!("{count} of {} results: {caution}", results.len()));
    }
}

/// Returns a point's settings as one text, with the seed where several seeds were run.
fn named(sets: &[String], result: &RunResult, between: &str, repeats: usize) -> String {
    let seed = result.summary.seed.filter(|_| repeats > 1).map(|seed| format!("run.seed={seed}"));
    sets.iter().cloned().chain(seed).collect::<Vec<_>>().join(between)
}

/// Simulates points on the arguments' number of threads, and passes each outcome to `finish` when complete.
fn play<T: Send>(
    arguments: &Arguments,
    planned: &PlannedPoints,
    points: &[&PlannedPoint],
    finish: &(dyn Fn(&PlannedPoint, &Loaded, RunOutcome) -> Result<T, Failure> + Sync),
) -> Result<Vec<Result<T, Failure>>, Failure> {
    let bar = output::bar(arguments.quiet, "{msg} {wide_bar} {pos} of {len} runs, {eta} left");
    bar.set_length(points.len() as u64);
    let control = RunControl { stop: interrupt::flag(), ..RunControl::default() };
    let threads = threads_or_cores(arguments.threads);
    let each = points.iter().map(|point| point.memory).collect();
    show_memory(arguments, &bar, memory_needed(each, threads));
    let finished = fanin_runs::on_threads(points.len(), threads, control.stop, &|place| {
        let loaded = planned.scenario(arguments, points[place])?;
        let outcome = fanin_runs::run(&loaded.scenario, loaded.scenario.run.seed, &control)
            .map_err(|error| Failure::simulation(error, &loaded))?;
        let finished = finish(points[place], &loaded, outcome);
        bar.inc(1);
        finished
    });
    bar.finish_and_clear();
    Ok(finished)
}

/// Simulates the points of a sweep that are not stored in `root`, and stores each at once. Returns the stored results.
fn resume(arguments: &Arguments, root: &Path, planned: &PlannedPoints) -> Result<Points, Failure> {
    let keys: Vec<&str> = planned.points.iter().filter_map(|point| point.key.as_deref()).collect();
    let is_missing = |place: &usize| !fanin_report::is_stored(root, keys[*place]);
    let missing: Vec<usize> = (0..keys.len()).filter(is_missing).collect();
    let points: Vec<&PlannedPoint> = missing.iter().map(|&place| &planned.points[place]).collect();
    let endings = play(arguments, planned, &points, &|point, loaded, outcome| {
        let is_whole = outcome.end == RunEnd::Complete;
        let (result, ending) = finish(loaded, outcome, None)?;
        if let (true, Some(key)) = (is_whole, &point.key) {
            let page = fanin_report::page(std::slice::from_ref(&result));
            fanin_report::write_once(root, key, &result, &page)?;
        }
        Ok(ending)
    })?;
    let ending = if endings.len() < missing.len() { Err(Failure::Stopped) } else { Ok(()) };
    let mut points = Points { places: Vec::new(), results: Vec::new(), refused: Vec::new(), ending };
    for (&place, ended) in missing.iter().zip(endings) {
        match ended {
            Err(reason) if reason.is_refusal() => points.refused.push((place, reason)),
            ended => points.ending = points.ending.and(ended?),
        }
    }
    for (place, key) in keys.iter().enumerate().filter(|(place, _)| !is_missing(place)) {
        let mut result = fanin_report::read_head(&root.join(key))?;
        result.page = Some(format!("{key}/{PAGE_FILE}"));
        // A point that an earlier command stored may have lost events, too.
        if points.ending.is_ok() {
            points.ending = verdict(&result.summary);
        }
        points.places.push(place);
        points.results.push(result);
    }
    Ok(points)
}

/// Returns a run's result under its scenario's name, and the end of the command. Writes the capture to `pcap`, if given.
pub(super) fn finish(
    loaded: &Loaded,
    outcome: RunOutcome,
    pcap: Option<&Path>,
) -> Result<(RunResult, Result<(), Failure>), Failure> {
    let mut summary = outcome.summary;
    summary.scenario = ScenarioName { name: loaded.name.clone(), hash: loaded.hash() };
    summary.commit = build_info::COMMIT.map(str::to_owned);
    if let (Some(path), Some(capture)) = (pcap, &outcome.capture) {
        let fail = |error| Failure::Write { path: path.to_owned(), error };
        capture.write(BufWriter::new(File::create(path).map_err(fail)?)).map_err(fail)?;
    }
    let ending = match outcome.end {
        RunEnd::Stopped => Err(Failure::Stopped),
        RunEnd::Stalled { diagnosis, .. } => Err(Failure::Stalled { diagnosis }),
        RunEnd::Complete => verdict(&summary),
    };
    let mut result = RunResult::new(summary);
    result.scenario_toml = Some(loaded.to_toml());
    result.records = outcome.records;
    result.picture = outcome.picture;
    Ok((result, ending))
}

/// Writes a result as a trace that Perfetto opens.
pub(super) fn write_trace(path: &Path, result: &RunResult) -> Result<(), Failure> {
    let fail = |error| Failure::Write { path: path.to_owned(), error };
    let file = BufWriter::new(File::create(path).map_err(fail)?);
    fanin_report::write_trace(result, file).map_err(fail)
}

/// Returns a failure if a complete run lost events or collected events more than once.
fn verdict(summary: &Summary) -> Result<(), Failure> {
    let lost = summary.events.as_ref().map_or(0, |events| events.lost);
    let duplicated = summary.events.as_ref().map_or(0, |events| events.duplicated);
    if lost > 0 || duplicated > 0 { Err(Failure::Lost { lost, duplicated }) } else { Ok(()) }
}

pub(super) fn write(folder: &Path, result: &RunResult) -> Result<(), Failure> {
    let Records { events, queues, flows, io, windows } = &result.records;
    let rows = events.len() + queues.len() + flows.len() + io.len() + windows.len();
    interrupt::writing(rows, || {
        fanin_report::write(folder, result, &fanin_report::page(std::slice::from_ref(result)))
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_runs_of_a_sweep_decide_its_memory() {
        assert_eq!(memory_needed(vec![1, 9, 1], 1), 9);
        assert_eq!(memory_needed(vec![1, 9, 1], 2), 10);
    }
}
