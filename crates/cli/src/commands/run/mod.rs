//! `fanin run`: a scenario for real, on this machine.

mod barrier;
mod building;
mod folder;
mod measured;
mod network;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use fanin_report::{RunResult, Summary};
use fanin_scenario::Loaded;
use fanin_testbed::live::{Bench, Refusal};
use fanin_testbed::{Tap, Tapped, Verdict, check, clean};

use crate::commands::run::folder::Folder;
use crate::commands::run::network::Carried;
use crate::commands::source::Source;
use crate::failure::Failure;
use crate::output::{self, Json};

/// Where the files of the live system go, within the folder of the result.
const LIVE_FOLDER: &str = "live";
/// Where the files of the network's switches go.
const NETWORK_FOLDER: &str = "network";

#[derive(Debug, Args)]
#[command(
    after_help = "Every role is a process of its own. With root, each host is a network namespace, each link a pair of virtual
devices into a software switch that has the scenario's buffers and rates; without, all processes meet on 127.0.0.1. The
journals, logs and stored events lie in the folder `live` of --out.

Example: fanin run replay --loopback --set \"run.duration=1 s\" --out out/run

The exit code is 1 where events were lost, doubled or damaged, 3 where a privilege or a feature of the kernel is missing,
4 where this machine was the bottleneck, 130 after Ctrl-C; what was measured is written all the same."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: OptionalSource,
    /// Seed of all random streams, in place of the scenario's `run.seed`.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write summary, tables, resolved scenario and page into a folder, and keep what the live system wrote.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// Delete the stored events of an earlier run in the folder of --out, rather than moving them aside.
    #[arg(long, requires = "out")]
    overwrite: bool,
    /// Write the summary as JSON to a file; `-` is standard output, which then holds nothing else.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    json: Option<Json>,
    /// Where the processes run.
    #[arg(long, value_enum, default_value_t = Place::Auto)]
    place: Place,
    /// The same as `--place loopback`.
    #[arg(long, conflicts_with = "place")]
    loopback: bool,
    /// Capture segments, cut to headers, as pcapng: what arrives at the host of `record.capture`, or, on 127.0.0.1, what
    /// passes between the processes. Needs CAP_NET_RAW.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pcap: Option<PathBuf>,
    /// Serve the metrics of every process, each at a free port of its host that is printed.
    #[arg(long)]
    metrics: bool,
    /// Show no progress and no summary.
    #[arg(long, short)]
    quiet: bool,
    /// Only say what this machine's kernel can do for a live run, and what is missing for what.
    #[arg(long, conflicts_with_all = ["clean", "source", "out", "json"])]
    check: bool,
    /// Only remove what runs that were killed have left behind; runs that are alive are not touched.
    #[arg(long, conflicts_with_all = ["source", "out", "json"])]
    clean: bool,
}

/// As [`Source`], but absent with `--check` and `--clean`.
#[derive(Debug, Args)]
struct OptionalSource {
    /// A scenario file, or the name of a preset (`fanin scenario list`).
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath, required_unless_present_any = ["check", "clean"])]
    source: Option<String>,
    /// Override one setting, checked like the file itself; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Place {
    /// Namespaces where this user may make them, otherwise the loopback.
    Auto,
    /// All on 127.0.0.1: the applications for real, without a network to measure.
    Loopback,
    /// Each host a network namespace, joined by the software switch; needs root.
    Namespaces,
}

/// What a run works with.
struct Job<'a> {
    arguments: &'a Arguments,
    /// What was asked for, and what figures are about.
    loaded: Loaded,
    /// What runs: the same, slower by [`Self::carried`].
    slow: Loaded,
    /// What this machine carries, where the run has a network of its own.
    carried: Option<Carried>,
    folder: Folder,
    /// Where a relative file of the scenario is sought.
    scenario_folder: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.check {
        return tell_features();
    }
    if arguments.clean {
        return clean_up();
    }
    let seed = arguments.seed.map(|seed| format!("run.seed={seed}"));
    let sets = arguments.source.sets.iter().cloned().chain(seed).collect();
    // The parser wants it where neither --check nor --clean is given.
    let source = arguments.source.source.clone().unwrap_or_default();
    let loaded = Source { source: source.clone(), sets }.load()?;
    check_records(&loaded)?;
    let folder = match &arguments.out {
        Some(out) => Folder::kept(out)?,
        None => {
            folder::remove_left_behind();
            Folder::temporary()
        }
    };
    let source = Path::new(&source);
    let scenario_folder = source.parent().filter(|_| source.is_file()).unwrap_or(Path::new("")).to_owned();
    let is_barrier = loaded.scenario.is_barrier();
    if !is_barrier {
        building::check(&loaded, &scenario_folder)?;
    }
    let carried = if choose(arguments)? { Some(Carried::find(arguments, &loaded, &folder)?) } else { None };
    let mut slow = loaded.clone();
    if let Some(carried) = &carried {
        slow.scenario = loaded.scenario.slowed(carried.chosen.scale);
    }
    let job = Job { arguments, loaded, slow, carried, folder, scenario_folder };
    if is_barrier { barrier::run(&job) } else { building::run(&job) }
}

/// Refuses what a simulation records and no run does.
fn check_records(loaded: &Loaded) -> Result<(), Failure> {
    let events = &loaded.scenario.record.events;
    if events.is_empty() {
        return Ok(());
    }
    Err(Failure::Refused(Refusal::Value {
        key: "record.events".to_owned(),
        got: format!("{events:?}"),
        needed: "an empty list: no device counts an event's bytes; --pcap captures those of a collector"
            .to_owned(),
    }))
}

/// A line for what the scenario wants written down and a loopback does not have.
fn unrecorded(job: &Job<'_>) -> String {
    let queues = &job.loaded.scenario.record.queues;
    if job.carried.is_some() || queues.is_empty() {
        return String::new();
    }
    format!("{:<18}`record.queues` is not written: a loopback has no switch\n", "record")
}

/// Whether the run gets namespaces; says once why not.
fn choose(arguments: &Arguments) -> Result<bool, Failure> {
    let wanted = if arguments.loopback { Place::Loopback } else { arguments.place };
    let missing = missing();
    match wanted {
        Place::Loopback => Ok(false),
        Place::Namespaces => missing.map_or(Ok(true), |missing| Err(Failure::NoNamespaces { missing })),
        Place::Auto => {
            if let Some(missing) = &missing
                && !arguments.quiet
            {
                eprintln!(
                    "note: without {missing} all processes meet on 127.0.0.1, where no network is measured; \
                     `fanin run --check` says more"
                );
            }
            Ok(missing.is_none())
        }
    }
}

/// What namespaces and the switch need and this process lacks.
fn missing() -> Option<String> {
    const NEEDED: [&str; 6] =
        ["CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_BPF", "ip", "network namespaces", "AF_XDP"];
    let found = check();
    let lacking =
        found.iter().filter(|(feature, verdict)| NEEDED.contains(&feature.name) && !verdict.is_there());
    let names: Vec<&str> = lacking.map(|(feature, _)| feature.name).collect();
    if names.iter().any(|name| name.starts_with("CAP_")) {
        return Some(format!("root ({})", names.join(", ")));
    }
    (!names.is_empty()).then(|| names.join(", "))
}

fn tell_features() -> Result<(), Failure> {
    let mut is_complete = true;
    let mut text = String::new();
    for (feature, verdict) in check() {
        let (word, more) = match &verdict {
            Verdict::There(more) => ("yes", more.clone()),
            Verdict::Missing(brought_by) => {
                is_complete = false;
                ("NO", format!("for {}; needs: {brought_by}", feature.needed_for))
            }
        };
        text += &format!("{:<20}{word:<5}{more}\n", feature.name);
    }
    let bpf = if cfg!(feature = "bpf") { "yes" } else { "NO" };
    let more = if cfg!(feature = "bpf") {
        "built in"
    } else {
        "for static windows, DCTCP and M21TCP; needs: cargo feature `bpf`"
    };
    is_complete &= cfg!(feature = "bpf");
    text += &format!("{:<20}{bpf:<5}{more}\n", "BPF programs");
    output::print(&text)?;
    if is_complete { Ok(()) } else { Err(Failure::Incomplete) }
}

fn clean_up() -> Result<(), Failure> {
    let cleaned = clean()?;
    let folders = folder::remove_left_behind();
    output::print(&match (cleaned.runs, folders) {
        (0, 0) => "nothing was left behind\n".to_owned(),
        _ => format!(
            "removed what dead runs had left: {} namespaces, {} processes inside, {folders} folders of temporary files\n",
            cleaned.namespaces, cleaned.processes
        ),
    })
}

/// Prints what a person reads, and writes the result where it was asked for.
fn finish(job: &Job<'_>, result: &RunResult, text: &str) -> Result<(), Failure> {
    let arguments = job.arguments;
    // A disk that takes no tables has room on the terminal.
    if prints(arguments) {
        output::print(text)?;
    }
    if let Some(out) = &arguments.out {
        fanin_report::write(out, result, &fanin_report::page(std::slice::from_ref(result)))?;
    }
    if let Some(json) = &arguments.json {
        json.write(&result.summary)?;
    }
    if prints(arguments)
        && let Some(out) = &arguments.out
    {
        let page = out.join(fanin_report::PAGE_FILE);
        let data = out.join(LIVE_FOLDER).join("data");
        let stored =
            if data.is_dir() { format!("; stored events: {}", data.display()) } else { String::new() };
        output::print(&format!("\nThe page: {}{stored}\n", page.display()))?;
    }
    Ok(())
}

/// Starts the capture that was asked for; whose frames it keeps on the loopback is said later.
fn start_capture(job: &Job<'_>, bench: Option<&Bench>) -> Result<Option<Tap>, Failure> {
    let Some(file) = &job.arguments.pcap else { return Ok(None) };
    Ok(Some(match bench {
        Some(bench) => bench.capture(&job.loaded.scenario.record.capture, file)?,
        None => Tap::start("lo", file)?,
    }))
}

/// Ends the capture, and says what is in it.
fn end_capture(job: &Job<'_>, tap: Option<Tap>) -> Result<String, Failure> {
    let (Some(file), Some(tap)) = (&job.arguments.pcap, tap) else { return Ok(String::new()) };
    let Tapped { frames, dropped } = tap.stop()?;
    let lacks =
        if dropped > 0 { format!("; {dropped} came too fast and are lacking") } else { String::new() };
    Ok(format!("{:<18}{frames} frames in {}{lacks}\n", "capture", file.display()))
}

/// Whether anybody reads what is printed for people.
fn prints(arguments: &Arguments) -> bool {
    !arguments.quiet && !arguments.json.as_ref().is_some_and(Json::is_stdout)
}

/// A summary that knows whose it is.
fn summary_of(loaded: &Loaded) -> Summary {
    let name = fanin_report::ScenarioName { name: loaded.name.clone(), hash: loaded.hash() };
    let mut summary = Summary::new(fanin_report::Kind::Run, crate::build_info::VERSION, name);
    summary.commit = crate::build_info::COMMIT.map(str::to_owned);
    summary.seed = Some(loaded.scenario.run.seed);
    summary
}
