//! `fanin tune`: the best values of settings, found by simulations or live runs.

pub(super) mod table;
pub(super) mod trials;

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use fanin_tune::{
    Constraint, Goal, KeyRange, Objective, SearchLimits, SearchOutcome, Sense, Target, TunedKey,
    TunedKeyError,
};
use fanin_units::Ratio;

use crate::commands::sim;
use crate::commands::source::Source;
use crate::failure::Failure;
use crate::output::{self, Json};
use table::Tuned;
use trials::{TrialPlace, Trials};

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("objective").required(true))]
#[command(
    after_help = "Example: fanin tune incast --minimise mean --over tor.buffer=64..1024kB --set \"run.duration=1 s\"

An objective or constraint names a figure: collected, completed, mean, p50, p99, max (collection or
request times), slowdown, slowdown_p99, slowdown_bound, slowdown_bound_p99, goodput, drops, queue,
timeouts. An objective may also be a setting. docs/howto/tune.md says how the search works. The exit
code is 1 if no tried value meets the constraints, and 130 after Ctrl-C. The results are written in
each case."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Make a figure or a setting as small as possible.
    #[arg(long, value_name = "FIGURE or KEY", group = "objective")]
    minimise: Option<String>,
    /// Make a figure or a setting as large as possible.
    #[arg(long, value_name = "FIGURE or KEY", group = "objective")]
    maximise: Option<String>,
    /// A constraint that each seed of a point must meet, such as drops=0 or "p99<20 ms"; may be given several times.
    #[arg(long, value_name = "CONSTRAINT")]
    subject: Vec<Constraint>,
    /// Settings to try, with their ranges. A key without a range is tried from a 16th of the scenario's value to 16 times it. If
    /// a setting is the objective and is not named here, its range is a 64th to 64 times.
    #[arg(long, value_name = "KEY[=LOW..HIGH],...", value_delimiter = ',')]
    over: Vec<KeyRange>,
    /// Simulate the scenario, or run it for real in network namespaces, as `fanin run` does.
    #[arg(long = "in", value_name = "PLACE", value_enum, default_value_t = SearchPlace::Sim)]
    place: SearchPlace,
    /// Seeds of each point: `run.seed` and those that follow. A point that is clearly worse with the first gets no others.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// The most simulations, or runs.
    #[arg(long, value_name = "MAX", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    simulations: u32,
    /// The search ends when neighbouring values are this close to one another.
    #[arg(long, value_name = "SHARE", default_value = "5 %", value_parser = precision)]
    precision: Ratio,
    /// The first seed, in place of the scenario's `run.seed`.
    #[arg(long, value_name = "N", value_parser = sim::seed)]
    seed: Option<u64>,
    /// Simulations at a time; results never depend on it. By default one for each core. Runs go one after the other.
    #[arg(long, value_name = "N", value_parser = crate::commands::sim::threads)]
    threads: Option<u16>,
    /// Write tune.json, tune.csv, the files and page of a sweep, and a folder for each simulation or run into a folder.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// Write the content of tune.json to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
    /// Show no progress and no table.
    #[arg(long, short)]
    quiet: bool,
}

/// The place where a search plays a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SearchPlace {
    /// In the simulator.
    Sim,
    /// On this machine: processes, the kernel's TCP, and the software switch; needs root.
    Run,
}

pub(super) fn precision(text: &str) -> Result<Ratio, String> {
    let ratio = text.parse::<Ratio>().map_err(|error| error.to_string())?;
    let is_sound = (1_000..=1_000_000).contains(&ratio.get());
    if is_sound { Ok(ratio) } else { Err("a precision is a share from 0.1 % to 100 %".to_owned()) }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(folder) = &arguments.out {
        output::prove_folder(folder)?;
    }
    arguments.json.as_ref().map_or(Ok(()), Json::prove)?;
    let objective = match (&arguments.minimise, &arguments.maximise) {
        (Some(text), _) => Objective::new(Sense::Minimise, text)?,
        (None, text) => Objective::new(Sense::Maximise, text.as_deref().unwrap_or_default())?,
    };
    let goal = Goal::new(objective, arguments.subject.clone())?;
    let seed = arguments.seed.map(|seed| format!("run.seed={seed}"));
    let sets = arguments.source.sets.iter().cloned().chain(seed).collect();
    let source = Source { source: arguments.source.source.clone(), sets };
    let keys = keys(&source, &goal, &arguments.over)?;
    let place = match arguments.place {
        SearchPlace::Sim => TrialPlace::simulator(arguments.threads),
        SearchPlace::Run => TrialPlace::Live,
    };
    let mut trials = Trials::new(&source, &keys, &goal, place, arguments.out.as_deref(), arguments.quiet)?;
    let limits = SearchLimits {
        seeds: arguments.seeds,
        simulations: arguments.simulations as usize,
        precision: arguments.precision.as_f64(),
    };
    let found = trials.search(limits);
    let failure = trials.failure();
    if found.tried.is_empty()
        && let Some(failure) = failure
    {
        return Err(failure);
    }
    let tuned = Tuned { place, goal: &goal, keys: &keys, limits, found: &found, played: trials.played() };
    let value = tuned.value(&trials.scenario());
    if let Some(folder) = &arguments.out {
        tuned.write(folder, &value)?;
    }
    if let Some(json) = &arguments.json {
        json.write(&value)?;
    }
    if !arguments.quiet && output::is_for_text(&arguments.json) {
        output::print(&tuned.text())?;
        sim::caution(&trials.played().iter().map(|played| played.result.clone()).collect::<Vec<_>>());
        if let Some(folder) = &arguments.out {
            output::print(&format!("\nThe page: {}\n", folder.join(fanin_report::SWEEP_PAGE).display()))?;
        }
    }
    match failure {
        Some(failure) => Err(failure),
        None => ending(&tuned, &found),
    }
}

/// Returns the end of the command: success, a stop, or no point that meets the constraints.
fn ending(tuned: &Tuned<'_>, found: &SearchOutcome) -> Result<(), Failure> {
    match found.best() {
        _ if found.is_stopped => Err(Failure::Stopped),
        Some(best) if !best.is_feasible() => Err(Failure::Infeasible { finding: tuned.nearest(best) }),
        _ => Ok(()),
    }
}

/// Returns the settings to tune, checked against the scenario: the settings of `--over`, and the objective if it is a setting.
fn keys(source: &Source, goal: &Goal, over: &[KeyRange]) -> Result<Vec<TunedKey>, Failure> {
    let loaded = source.load()?;
    let mut ranges = over.to_vec();
    if let Target::Key(key) = &goal.objective.target
        && !ranges.iter().any(|range| range.key == *key)
    {
        ranges.push(KeyRange::objective(key));
    }
    if ranges.is_empty() {
        return Err(Failure::NothingToTune);
    }
    let load = |sets: Vec<String>| {
        fanin_scenario::load(&source.source, &source.sets.iter().cloned().chain(sets).collect::<Vec<_>>())
    };
    let mut keys: Vec<TunedKey> = Vec::new();
    for range in &ranges {
        if keys.iter().any(|key| key.key == range.key) {
            return Err(TunedKeyError::Twice { key: range.key.clone() }.into());
        }
        let key = TunedKey::new(range, &loaded.scenario);
        if matches!(key, Err(TunedKeyError::Unknown { .. })) {
            // The scenario's own message knows the names that are alike.
            load(vec![format!("{}=1", range.key)])?;
        }
        let key = key?;
        // Both ends of each range are checked before anything runs; an end that was not given moves to what the scenario takes.
        keys.push(if range.is_given() {
            load(vec![key.set(key.axis.low)])?;
            load(vec![key.set(key.axis.high)])?;
            key
        } else {
            let probe = key.clone();
            key.narrowed(&mut |value| load(vec![probe.set(value)]).is_ok())
        });
    }
    Ok(keys)
}
