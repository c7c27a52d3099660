//! `fanin run`: a scenario for real, on this machine.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use fanin_node::audit::audit;
use fanin_node::clock::std_duration;
use fanin_node::ideal::{self, Loop};
use fanin_node::launch::{Launch, Live, Loopback, ended_cpu_seconds, processes};
use fanin_node::result::{Told, told};
use fanin_node::tcp::{Counted, counted};
use fanin_node::transport::{self, World};
use fanin_report::{Kind, Records, RunResult, ScenarioName, Span, Speed, Summary};
use fanin_scenario::Loaded;
use fanin_testbed::{Tap, Tapped};
use fanin_units::Instant as Moment;

use crate::commands::{Source, sim};
use crate::failure::Failure;
use crate::output::{self, Json};
use crate::{build_info, interrupt, summary};

/// Where the files of the live system go, within the folder of the result.
const LIVE_FOLDER: &str = "live";

#[derive(Debug, Args)]
#[command(
    after_help = "Every role is a process of its own, on 127.0.0.1; no privilege is needed. The journals, logs and stored events
lie in the folder `live` of --out.

Example: fanin run replay --set \"run.duration=1 s\" --out out/run

The exit code is 1 where events were lost, doubled or damaged, 130 after Ctrl-C; what was measured is written all the
same."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Seed of all random streams, in place of the scenario's `run.seed`.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write summary, tables, resolved scenario and page into a folder, and keep what the live system wrote.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// Write the summary as JSON to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
    /// Capture the segments between the processes, headers only, as pcapng; needs CAP_NET_RAW.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pcap: Option<PathBuf>,
    /// Serve the metrics of every process, each at a free port of 127.0.0.1 that is printed.
    #[arg(long)]
    metrics: bool,
    /// Show no progress and no summary.
    #[arg(long, short)]
    quiet: bool,
}

/// A folder that is removed at the end, unless it was asked for.
struct Folder {
    path: PathBuf,
    is_kept: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            // What is left in the folder for temporary files harms nobody.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let seed = arguments.seed.map(|seed| format!("run.seed={seed}"));
    let sets = arguments.source.sets.iter().cloned().chain(seed).collect();
    let loaded = Source { source: arguments.source.source.clone(), sets }.load()?;
    let folder = match &arguments.out {
        Some(out) => Folder { path: out.join(LIVE_FOLDER), is_kept: true },
        None => {
            let path = std::env::temp_dir().join(format!("fanin-run-{}", std::process::id()));
            Folder { path, is_kept: false }
        }
    };
    let source = Path::new(&arguments.source.source);
    let scenario_folder = source.parent().filter(|_| source.is_file()).unwrap_or(Path::new(""));
    let launch = Launch {
        loaded: &loaded,
        folder: &folder.path,
        scenario_folder,
        data: None,
        program: &std::env::current_exe()?,
        restart: true,
        metrics: arguments.metrics,
    };
    let stop = interrupt::flag();
    let fitted = transport::fit(&loaded.scenario, World::Loopback).map_err(io::Error::other)?;
    let loop_rate = ideal::measure_loopback()?;
    let tap = arguments.pcap.as_deref().map(|file| Tap::start("lo", file)).transpose()?;
    let (began, cpu) = (Instant::now(), ended_cpu_seconds());
    let mut live = Live::start(&launch, Loopback::default())?;
    if let Some(tap) = &tap {
        let system = live.system();
        let listening = [&system.supervisor].into_iter().chain(&system.readouts).chain(&system.loggers);
        tap.choose(listening.filter_map(|address| fanin_node::config::port(address)));
    }
    tell_metrics(arguments, &live)?;
    work(arguments, &loaded, &mut live, stop)?;
    let (restarts, killed) = (live.restarts(), live.killed().to_vec());
    drop(live);
    let tapped = tap.map(Tap::stop).transpose()?;
    let speed = Speed {
        wall_s: Some(began.elapsed().as_secs_f64()),
        cpu_s: Some(ended_cpu_seconds() - cpu),
        ..Speed::default()
    };

    let hosts = loaded.scenario.collectors.hosts_per_rack;
    let racks: Vec<u32> = (0..loaded.scenario.collectors_total() as u32).map(|n| n / hosts).collect();
    let mut told = told(&folder.path, &racks)?;
    ideal::fill(&mut told.rows, &loaded.scenario, loop_rate);
    let audited = audit(&folder.path, &folder.path.join("data"), loaded.scenario.logger.hosts > 0);
    let counted = counted(&folder.path)?;
    let mut summary = summarise(&loaded, &told, loop_rate, speed);
    counted.fill(&mut summary, &fitted);
    let notes = notes(&told, &audited, restarts, &killed, &loaded)
        + &counted.notes(&fitted)
        + &captured(arguments, tapped);
    let text = summary::text(&summary) + &notes;
    let ending = ending(stop, &summary, audited);
    finish(arguments, &loaded, summary, told, counted, &text)?;
    ending
}

fn tell_metrics(arguments: &Arguments, live: &Live<Loopback>) -> Result<(), Failure> {
    if arguments.metrics && !arguments.quiet && !arguments.json.as_ref().is_some_and(Json::is_stdout) {
        for (process, address) in live.all_metrics() {
            output::print(&format!("{process:<18}http://{address}/metrics\n"))?;
        }
    }
    Ok(())
}

/// Warm-up and measured time, then the end in good order.
fn work(
    arguments: &Arguments,
    loaded: &Loaded,
    live: &mut Live<Loopback>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let run = &loaded.scenario.run;
    let time = std_duration(run.warmup + run.duration);
    if live.wait_ready(stop)? {
        let bar = sim::bar(arguments.quiet, "{wide_bar} {percent} % of the time, {eta} left");
        bar.set_length(time.as_millis() as u64);
        let tick = |elapsed: Duration| bar.set_position(elapsed.as_millis() as u64);
        let worked = live.work(time, stop, &tick);
        bar.finish_and_clear();
        worked?;
    }
    live.stop();
    Ok(())
}

fn summarise(loaded: &Loaded, told: &Told, loop_rate: Loop, speed: Speed) -> Summary {
    let scenario = &loaded.scenario;
    let name = ScenarioName { name: loaded.name.clone(), hash: loaded.hash() };
    let mut summary = Summary::new(Kind::Run, build_info::VERSION, name);
    summary.commit = build_info::COMMIT.map(str::to_owned);
    summary.seed = Some(scenario.run.seed);
    let from = Moment::START + scenario.run.warmup;
    let last = told.rows.last().map_or(0, |row| row.assigned_ps + 1);
    // What Ctrl-C cut short ends with the last event.
    let until = (from + scenario.run.duration).min(Moment::new(last.max(from.get())));
    let span = Span { from, until };
    summary.fill_events(&told.rows, span, scenario.collectors_total() as u32, true);
    summary.ideal = ideal::state(scenario, &told.rows, loop_rate);
    summary.speed = Some(speed);
    summary
}

/// What the summary has no place for.
fn notes(
    told: &Told,
    audited: &Result<fanin_node::audit::Audit, fanin_node::audit::Finding>,
    restarts: u64,
    killed: &[String],
    loaded: &Loaded,
) -> String {
    let mut text = format!("{:<18}{} on this machine", "processes", processes(&loaded.scenario));
    if restarts > 0 {
        text += &format!(", {restarts} started again");
    }
    if !killed.is_empty() {
        text += &format!("; ended by force: {}", killed.join(", "));
    }
    text.push('\n');
    if told.missing > 0 || told.reassigned > 0 {
        let (missing, reassigned) = (told.missing, told.reassigned);
        text += &format!("{:<18}{missing} fragments missing, {reassigned} events assigned again\n", "faults");
    }
    if let Ok(audit) = audited {
        let totals = audit.totals;
        text += &format!(
            "{:<18}{} events assigned, each once rejected ({}), stored ({}) or in the debug stream ({}); {} files with \
             {} events, {} checksums right\n",
            "audit",
            totals.assigned,
            totals.rejected + totals.accepted,
            totals.stored,
            totals.debug,
            audit.files,
            audit.events,
            audit.checksums
        );
    }
    text
}

fn captured(arguments: &Arguments, tapped: Option<Tapped>) -> String {
    let (Some(file), Some(Tapped { frames, dropped })) = (&arguments.pcap, tapped) else {
        return String::new();
    };
    let lacks =
        if dropped > 0 { format!("; {dropped} came too fast and are lacking") } else { String::new() };
    format!("{:<18}{frames} frames in {}{lacks}\n", "capture", file.display())
}

fn ending(
    stop: &AtomicBool,
    summary: &Summary,
    audited: Result<fanin_node::audit::Audit, fanin_node::audit::Finding>,
) -> Result<(), Failure> {
    let events = summary.events.as_ref();
    let (lost, duplicated) = events.map_or((0, 0), |events| (events.lost, events.duplicated));
    audited?;
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::Stopped);
    }
    if lost > 0 || duplicated > 0 {
        return Err(Failure::Lost { lost, duplicated });
    }
    Ok(())
}

fn finish(
    arguments: &Arguments,
    loaded: &Loaded,
    summary: Summary,
    told: Told,
    counted: Counted,
    text: &str,
) -> Result<(), Failure> {
    let mut result = RunResult::new(summary);
    result.scenario_toml = Some(loaded.to_toml());
    result.records = Records { events: told.rows, flows: counted.rows, ..Records::default() };
    if let Some(out) = &arguments.out {
        fanin_report::write(out, &result, &fanin_report::page(std::slice::from_ref(&result)))?;
    }
    if let Some(json) = &arguments.json {
        json.write(&result.summary)?;
    }
    if !arguments.quiet && !arguments.json.as_ref().is_some_and(Json::is_stdout) {
        output::print(text)?;
        if let Some(out) = &arguments.out {
            let page = out.join(fanin_report::PAGE_FILE);
            let data = out.join(LIVE_FOLDER).join("data");
            output::print(&format!("\nThe page: {}; stored events: {}\n", page.display(), data.display()))?;
        }
    }
    Ok(())
}
