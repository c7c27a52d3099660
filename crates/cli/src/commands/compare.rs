//! `fanin compare`: all techniques against incast, side by side.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use fanin_report::{COMPARED_FILE, COMPARED_SCHEMA, RunResult, SAMPLES_OF_P99, SeedFigure, Summary};
use fanin_reproduce::{Compared, ComparedSettings, Figures, Row, TECHNIQUES, Technique};
use fanin_units::Bytes;
use serde::Serialize;

use super::kept::{KeptResults, labelled};
use super::sim;
use crate::columns::aligned;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, Json};
use crate::threads::threads_or_cores;

/// The system of the thesis, behind both switches at both rates.
const SCENARIOS: [&str; 4] = ["thesis-a-500hz", "thesis-a-1000hz", "thesis-b-500hz", "thesis-b-1000hz"];

/// Bytes of memory for a run until all have ended, more than measured (incast: 180 kB): its outcome with the tables.
const OUTCOME: Bytes = Bytes::new(200_000);

#[derive(Debug, Args)]
#[command(after_help = "Example: fanin compare incast --techniques none,static,sird --duration \"2 s\"

A technique that a scenario rules out has a row with the reason. docs/compared.md is what
  fanin compare --set supervisor.policy=node-round-robin --markdown
prints; it takes minutes. The exit code is 1 where nothing moved any more in a run, 130 after Ctrl-C; what is finished is
printed all the same.")]
pub(crate) struct Arguments {
    /// Scenario files or names of presets. By default the thesis' rack: both switches, 500 and 1000 events a second.
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath)]
    scenarios: Vec<String>,
    /// Override one setting, the techniques' own too; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Only these, by name (`--list`).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = technique)]
    techniques: Vec<&'static Technique>,
    /// List the techniques and their settings, and simulate nothing.
    #[arg(long)]
    list: bool,
    /// Measured time of every run.
    #[arg(long, value_name = "TIME", default_value = "2 s")]
    duration: String,
    /// Simulated time before that.
    #[arg(long, value_name = "TIME", default_value = "500 ms")]
    warmup: String,
    /// Seed of all random streams, in place of the scenarios' `run.seed`.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run each technique with N seeds: `run.seed` and those that follow. Figures get means with intervals of 95 %.
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Runs at a time; results never depend on it. By default one for each core.
    #[arg(long, value_name = "N", value_parser = crate::commands::sim::threads)]
    threads: Option<u16>,
    /// Write each run's result, compared.json, and index.html with all of them.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// Write the table as JSON to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
    /// Print a page of Markdown.
    #[arg(long)]
    markdown: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

fn technique(name: &str) -> Result<&'static Technique, String> {
    TECHNIQUES.iter().find(|technique| technique.name == name).ok_or_else(|| {
        let names: Vec<&str> = TECHNIQUES.iter().map(|technique| technique.name).collect();
        format!("no technique has this name; there are {}", names.join(", "))
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let techniques: Vec<&'static Technique> = match arguments.techniques.as_slice() {
        [] => TECHNIQUES.iter().collect(),
        some => some.to_vec(),
    };
    if arguments.list {
        return output::print(&list(&techniques));
    }
    let scenarios = match arguments.scenarios.as_slice() {
        [] => SCENARIOS.map(str::to_owned).to_vec(),
        some => some.to_vec(),
    };
    let runs = (scenarios.len() * techniques.len()) as u64 * u64::from(arguments.repeat);
    fanin_runs::check_results(runs, OUTCOME)?;
    if let Some(folder) = &arguments.out {
        output::prove_folder(folder)?;
    }
    arguments.json.as_ref().map_or(Ok(()), Json::prove)?;
    let mut kept = arguments.out.as_deref().map(KeptResults::new);
    let names = RunNames { has_scenarios: scenarios.len() > 1, has_seeds: arguments.repeat > 1 };
    let mut first =
        vec![format!("run.duration={}", arguments.duration), format!("run.warmup={}", arguments.warmup)];
    first.extend(arguments.seed.map(|seed| format!("run.seed={seed}")));
    let bar = output::bar(arguments.quiet, "{wide_bar} {pos} of {len} runs, {eta} left");
    let mut heads: Vec<RunResult> = Vec::new();
    let compared = fanin_reproduce::compare(
        &scenarios,
        &techniques,
        &ComparedSettings { first: &first, last: &arguments.sets, seeds: arguments.repeat },
        threads_or_cores(arguments.threads),
        interrupt::flag(),
        &|done, of| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        },
        &mut |technique, loaded, outcome| {
            let label = label(&loaded.name, technique, loaded.scenario.run.seed, names);
            let mut head = RunResult::new(labelled(&label, loaded, outcome));
            head.scenario_toml = Some(loaded.to_toml());
            heads.push(head);
            if let Some(kept) = &mut kept {
                kept.keep(label, loaded, outcome);
            }
        },
    );
    bar.finish_and_clear();
    let compared = compared?;
    let table = table(&compared, &heads, names);
    if let (Some(folder), Some(kept)) = (&arguments.out, kept) {
        // Values of JSON alone: no figure is missing or infinite.
        let value = serde_json::to_value(&table).expect("a comparison is JSON");
        let (title, refused) = fanin_report::compared_words(&value);
        kept.finish(&title, &[], &refused)?;
        Json::File(folder.join(COMPARED_FILE)).write(&table)?;
    }
    if let Some(json) = &arguments.json {
        json.write(&table)?;
    }
    if output::is_for_text(&arguments.json) {
        let page =
            if arguments.markdown { markdown(arguments, &techniques, &compared) } else { text(&compared) };
        output::print(&page)?;
        if !arguments.quiet {
            sim::caution(&heads);
        }
    }
    let rows = compared.iter().flat_map(|compared| &compared.rows);
    let stalled = rows.filter_map(|row| row.figures.as_ref().ok()?.stalled.clone()).next();
    if compared.iter().any(|compared| compared.is_stopped) {
        return Err(Failure::Stopped);
    }
    stalled.map_or(Ok(()), |diagnosis| Err(Failure::Stalled { diagnosis }))
}

/// The parts of a run's name in addition to its technique.
#[derive(Clone, Copy)]
struct RunNames {
    has_scenarios: bool,
    has_seeds: bool,
}

/// Returns the name of a run: its technique, and its scenario and seed where there are several.
fn label(scenario: &str, technique: &Technique, seed: u64, names: RunNames) -> String {
    let scenario = if names.has_scenarios { format!("{scenario}, ") } else { String::new() };
    let seed = if names.has_seeds { format!(", run.seed={seed}") } else { String::new() };
    scenario + technique.name + &seed
}

/// Returns the rows of each technique, one for each seed.
fn by_technique(compared: &Compared) -> impl Iterator<Item = &[Row]> {
    compared.rows.chunk_by(|one, other| one.technique == other.technique)
}

/// Returns the technique with the least mean time over the seeds, then the techniques with intervals that overlap its interval.
fn least<'a>(compared: &'a Compared) -> Vec<(&'static Technique, SeedFigure)> {
    let mean = |rows: &'a [Row]| {
        let of = |row: &Row| {
            row.figures.as_ref().ok().and_then(|figures| of_events(figures, figures.times_ms.mean))
        };
        SeedFigure::new(&rows.iter().map(of).collect::<Vec<_>>())
    };
    let rivals: Vec<(&'static Technique, Option<SeedFigure>)> =
        by_technique(compared).map(|rows| (rows[0].technique, mean(rows))).collect();
    let means: Vec<Option<SeedFigure>> = rivals.iter().map(|(_, mean)| *mean).collect();
    let places = fanin_report::least(&means).into_iter();
    places.filter_map(|place| Some((rivals[place].0, rivals[place].1?))).collect()
}

/// Returns a sentence on the least mean time; empty without several seeds.
fn least_text(compared: &Compared) -> String {
    let least = least(compared);
    let Some(((first, mean), others)) = least.split_first() else { return String::new() };
    let also = if others.is_empty() {
        String::new()
    } else {
        let names: Vec<&str> = others.iter().map(|(technique, _)| technique.name).collect();
        format!("; the intervals of {} overlap it: these seeds name no best one", names.join(", "))
    };
    let mean = mean.text(|value| format!("{value:.1}"));
    format!("least mean: {} with {mean} ms (95 % confidence){also}", first.name)
}

#[derive(Serialize)]
struct ComparedTable<'a> {
    schema: &'static str,
    scenarios: Vec<ComparedScenario<'a>>,
}

#[derive(Serialize)]
struct ComparedScenario<'a> {
    scenario: &'a str,
    duration: &'a str,
    techniques: Vec<TechniqueRow<'a>>,
    /// Means over the seeds, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    over_seeds: Vec<TechniqueSeeds<'a>>,
    /// The technique with the least mean time over the seeds, then the techniques with intervals that overlap its interval.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    least_mean: Vec<&'a str>,
}

#[derive(Serialize)]
struct TechniqueSeeds<'a> {
    name: &'a str,
    seeds: Vec<u64>,
    figures: serde_json::Value,
}

#[derive(Serialize)]
struct TechniqueRow<'a> {
    name: &'a str,
    #[serde(rename = "what")]
    description: &'a str,
    tuning: &'a str,
    set: &'a [&'a str],
    /// Seed of the run, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(flatten)]
    outcome: RowOutcome<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RowOutcome<'a> {
    Refused {
        refused: &'a str,
    },
    Figures {
        completed: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        mean_ms: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        p99_ms: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        max_ms: Option<f64>,
        drops: u64,
        timeouts: u64,
        queue_bytes_max: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        reverse_bytes_each: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        extra_reverse: Option<f64>,
        cpu_s: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        stalled: Option<&'a str>,
        /// The reason why the technique had no effect.
        #[serde(skip_serializing_if = "Option::is_none")]
        remark: Option<&'a str>,
        /// All figures of the run, from which `fanin report` makes the page.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<&'a Summary>,
    },
}

fn table<'a>(compared: &'a [Compared], heads: &'a [RunResult], names: RunNames) -> ComparedTable<'a> {
    let summary_of = |label: &str| {
        heads.iter().map(|head| &head.summary).find(|summary| summary.label.as_deref() == Some(label))
    };
    let over_seeds = |compared: &'a Compared| {
        let of = |rows: &'a [Row]| {
            let run = |row: &Row| summary_of(&label(&compared.name, row.technique, row.seed, names));
            let summaries: Vec<&Summary> = rows.iter().filter_map(run).collect();
            rows[0].figures.is_ok().then(|| TechniqueSeeds {
                name: rows[0].technique.name,
                seeds: rows.iter().map(|row| row.seed).collect(),
                figures: fanin_report::seed_values(&summaries),
            })
        };
        if names.has_seeds { by_technique(compared).filter_map(of).collect() } else { Vec::new() }
    };
    let scenarios = compared
        .iter()
        .map(|compared| ComparedScenario {
            over_seeds: over_seeds(compared),
            least_mean: least(compared).into_iter().map(|(technique, _)| technique.name).collect(),
            scenario: &compared.name,
            duration: &compared.duration,
            techniques: compared
                .rows
                .iter()
                .map(|row| TechniqueRow {
                    name: row.technique.name,
                    description: row.technique.description,
                    tuning: row.technique.tuning,
                    set: row.technique.sets,
                    seed: names.has_seeds.then_some(row.seed).filter(|_| row.figures.is_ok()),
                    outcome: match &row.figures {
                        Err(why) => RowOutcome::Refused { refused: why },
                        Ok(figures) => RowOutcome::Figures {
                            completed: figures.completed,
                            mean_ms: of_events(figures, figures.times_ms.mean),
                            p99_ms: p99(figures),
                            max_ms: of_events(figures, figures.times_ms.max),
                            drops: figures.drops,
                            timeouts: figures.timeouts,
                            queue_bytes_max: figures.queue_bytes_max,
                            reverse_bytes_each: of_events(figures, figures.reverse_bytes_each),
                            extra_reverse: compared.extra_reverse(row),
                            cpu_s: figures.cpu_s,
                            stalled: figures.stalled.as_deref(),
                            remark: row.remark.as_deref(),
                            summary: summary_of(&label(&compared.name, row.technique, row.seed, names)),
                        },
                    },
                })
                .collect(),
        })
        .collect();
    ComparedTable { schema: COMPARED_SCHEMA, scenarios }
}

/// The columns of a row, with units in the heading.
const COLUMNS: [&str; 9] = [
    "mean, ms",
    "p99, ms",
    "worst, ms",
    "drops",
    "timeouts",
    "largest queue, kB",
    "reverse, kB an event",
    "extra reverse",
    "events",
];

/// Returns a figure of completed events; `None` without completed events.
fn of_events(figures: &Figures, value: f64) -> Option<f64> {
    (figures.completed > 0).then_some(value)
}

/// Returns the 99th percentile of the times in ms; `None` below a hundred completed events.
fn p99(figures: &Figures) -> Option<f64> {
    (figures.completed >= SAMPLES_OF_P99).then_some(figures.times_ms.p99)
}

/// Returns the cells of a technique: its figures, or their means over the seeds with intervals.
fn cells(compared: &Compared, rows: &[Row]) -> [String; 9] {
    let of = |figure: &dyn Fn(&Row, &Figures) -> Option<f64>| {
        let values = rows.iter().map(|row| figure(row, row.figures.as_ref().ok()?));
        SeedFigure::new(&values.collect::<Vec<_>>())
    };
    let text = |over: Option<SeedFigure>, decimals: usize| {
        over.map_or_else(|| "–".to_owned(), |over| over.text(|value| format!("{value:.decimals$}")))
    };
    let count = usize::from(rows.len() > 1);
    let extra = of(&|row, _| Some(100.0 * compared.extra_reverse(row)?));
    let is_stalled = |row: &Row| row.figures.as_ref().is_ok_and(|figures| figures.stalled.is_some());
    let worst = text(of(&|_, figures| of_events(figures, figures.times_ms.max)), 1);
    [
        text(of(&|_, figures| of_events(figures, figures.times_ms.mean)), 1),
        text(of(&|_, figures| p99(figures)), 1),
        if rows.iter().any(is_stalled) { "stalled".to_owned() } else { worst },
        text(of(&|_, figures| Some(figures.drops as f64)), count),
        text(of(&|_, figures| Some(figures.timeouts as f64)), count),
        text(of(&|_, figures| Some(figures.queue_bytes_max as f64 / 1e3)), 0),
        text(of(&|_, figures| of_events(figures, figures.reverse_bytes_each / 1e3)), 1),
        extra.map_or_else(String::new, |extra| format!("{:+.0} %", extra.interval.mean)),
        text(of(&|_, figures| Some(figures.completed as f64)), count),
    ]
}

fn text(compared: &[Compared]) -> String {
    let mut out = String::new();
    for compared in compared {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{} ({}), {} measured", compared.name, compared.title, compared.duration);
        let seeds = by_technique(compared).map(<[Row]>::len).max().unwrap_or(1);
        if seeds > 1 {
            let _ = writeln!(out, "means over {seeds} seeds ± half of their intervals of 95 %");
        }
        let rows: Vec<(&Row, Result<[String; 9], &String>)> = by_technique(compared)
            .map(|rows| (&rows[0], rows[0].figures.as_ref().map(|_| cells(compared, rows))))
            .collect();
        let heads = std::iter::once("technique").chain(COLUMNS).map(str::to_owned).collect();
        let named = |(row, cells): &(&Row, Result<[String; 9], &String>)| {
            let cells = cells.iter().flatten().cloned();
            std::iter::once(row.technique.name.to_owned()).chain(cells).collect()
        };
        let lines: Vec<Vec<String>> = std::iter::once(heads).chain(rows.iter().map(named)).collect();
        let mut lines = aligned(&lines, |column| column > 0).into_iter();
        let _ = writeln!(out, "{}", lines.next().unwrap_or_default());
        for (line, (row, cells)) in lines.zip(&rows) {
            let rest = match cells {
                Err(why) => format!("  not possible: {why}"),
                Ok(_) => row.remark.as_ref().map_or_else(String::new, |remark| format!("  {remark}")),
            };
            let _ = writeln!(out, "{line}{rest}");
        }
        let least = least_text(compared);
        if !least.is_empty() {
            let _ = writeln!(out, "{least}");
        }
        out.push('\n');
    }
    out
}

fn list(techniques: &[&'static Technique]) -> String {
    let mut out = String::new();
    for technique in techniques {
        let _ = writeln!(out, "{:<15} {}", technique.name, technique.description);
        let _ = writeln!(out, "{:<15} tuning: {}", "", technique.tuning);
        for set in technique.sets {
            let _ = writeln!(out, "{:<15} --set \"{set}\"", "");
        }
    }
    out
}

fn markdown(arguments: &Arguments, techniques: &[&'static Technique], compared: &[Compared]) -> String {
    let mut out = String::from(
        "# The techniques side by side\n\nMade by `fanin compare --markdown`; do not edit. Each run measures ",
    );
    let seed = arguments.seed.map_or_else(|| "the scenario's seed".to_owned(), |seed| format!("seed {seed}"));
    let seed = match arguments.repeat {
        1 => seed,
        repeat => format!("{repeat} seeds from {seed} on (means ± half of their intervals of 95 %)"),
    };
    let sets: Vec<String> = arguments.sets.iter().map(|set| format!("`{set}`")).collect();
    let _ = writeln!(
        out,
        "{} after {} of warm-up, with {seed}{}{}. Counts are those of all measured\nevents, until they end. The largest \
         queue is that of any switch. Reverse traffic is what collectors put on the wire:\nrequests, \
         acknowledgements, credit. Extra is its growth over `{}`. Settings of each technique stand at the end.\n",
        arguments.duration,
        arguments.warmup,
        if sets.is_empty() { "" } else { ", " },
        sets.join(", "),
        TECHNIQUES[1].name,
    );
    for compared in compared {
        let ideal = compared.rows.iter().find_map(|row| row.figures.as_ref().ok()?.times_ms.ideal);
        let ideal = ideal.map_or_else(String::new, |ideal| format!(" (ideal {ideal:.2} ms)"));
        let _ = writeln!(out, "## {}: {}{ideal}\n", compared.name, compared.title);
        let _ = writeln!(out, "| technique | {} | tuning |", COLUMNS.join(" | "));
        let _ = writeln!(out, "|---|{}---|", "---:|".repeat(COLUMNS.len()));
        for rows in by_technique(compared) {
            let row = &rows[0];
            let cells = match &row.figures {
                Err(why) => format!("not possible: {why}{}", " |".repeat(COLUMNS.len() - 1)),
                Ok(_) => cells(compared, rows).join(" | "),
            };
            let remark = row.remark.as_ref().map_or_else(String::new, |remark| format!("; {remark}"));
            let _ =
                writeln!(out, "| `{}` | {cells} | {}{remark} |", row.technique.name, row.technique.tuning);
        }
        out.push('\n');
    }
    let _ = writeln!(out, "## Settings\n\n| technique | what | set |\n|---|---|---|");
    for technique in techniques {
        let sets: Vec<String> = technique.sets.iter().map(|set| format!("`{set}`")).collect();
        let _ = writeln!(out, "| {} | {} | {} |", technique.name, technique.description, sets.join(", "));
    }
    out
}
