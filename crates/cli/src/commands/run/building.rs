//! Event building, live: on the loopback, or on the hosts of a network.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fanin_node::audit::audit;
use fanin_node::config::Role;
use fanin_node::flows::Numbers;
use fanin_node::ideal::{self, LoopbackRate};
use fanin_node::launch::{LiveSystem, Loopback, Placement, SystemLaunch, ended_cpu_seconds, processes};
use fanin_node::result::{JournalTables, told};
use fanin_node::tcp::counted;
use fanin_node::trace::windows;
use fanin_node::transport::{self, Environment};
use fanin_report::{EventRow, Records, RunResult, Span, Speed, Summary};
use fanin_scenario::Loaded;
use fanin_testbed::live::{LiveNetwork, Part, Placed, Watch};
use fanin_units::{Bytes, Instant as Moment};

use super::measured::measured;
use super::{Job, end_capture, finish, network, prints, start_capture, summary_of, unrecorded};
use crate::failure::Failure;
use crate::{interrupt, output, summary};

/// Whether the roles can do what the scenario asks for; nothing is made, and nothing measured.
pub(super) fn check(loaded: &Loaded, scenario_folder: &Path) -> Result<(), Failure> {
    let launch = SystemLaunch {
        loaded,
        folder: Path::new(""),
        scenario_folder,
        data: None,
        program: Path::new(""),
        restart: false,
        metrics: false,
    };
    Ok(launch.check()?)
}

pub(super) fn run(job: &Job<'_>) -> Result<(), Failure> {
    let loaded = &job.loaded;
    let folder = job.folder.live();
    let program = std::env::current_exe()?;
    let slow = &job.slow;
    let launch = SystemLaunch {
        loaded: slow,
        folder: &folder,
        scenario_folder: &job.scenario_folder,
        data: None,
        program: &program,
        restart: true,
        metrics: job.arguments.metrics,
    };
    let stop = interrupt::flag();
    let loop_rate = if job.carried.is_some() { None } else { Some(ideal::measure_loopback()?) };
    let (began, cpu) = (Instant::now(), ended_cpu_seconds());
    let bench = network::build(job)?;
    let fitted = match &bench {
        Some(bench) => {
            let collector = bench.namespace(Part::Role(Role::Collector, 0));
            collector
                .run(|| transport::fit(&loaded.scenario, Environment::Hosts))
                .map_err(std::io::Error::other)?
        }
        None => transport::fit(&loaded.scenario, Environment::Loopback),
    };
    let fitted = fitted.map_err(std::io::Error::other)?;
    let tap = start_capture(job, bench.as_ref())?;
    let (ended, watch) = match &bench {
        Some(bench) => {
            let live = LiveSystem::start(&launch, Placed::new(bench))?;
            let mut watch = bench.watch(&slow.scenario)?;
            (work(job, live, Some(&mut watch), stop)?, Some(watch))
        }
        None => {
            let live = LiveSystem::start(&launch, Loopback::default())?;
            if let Some(tap) = &tap {
                let system = live.system();
                let listening =
                    [&system.supervisor].into_iter().chain(&system.readouts).chain(&system.loggers);
                tap.choose(listening.filter_map(|address| fanin_node::config::port(address)));
            }
            (work(job, live, None, stop)?, None)
        }
    };
    let captured = end_capture(job, tap)?;
    let counted = counted(&folder, &Numbers::of(&loaded.scenario))?;
    let speed = Speed {
        wall_s: Some(began.elapsed().as_secs_f64()),
        cpu_s: Some(ended_cpu_seconds() - cpu),
        ..Speed::default()
    };

    let hosts = loaded.scenario.collectors.hosts_per_rack;
    let racks: Vec<u32> = (0..loaded.scenario.collectors_total() as u32).map(|n| n / hosts).collect();
    let mut told = told(&folder, &racks)?;
    let mut observed = watch.map(|watch| watch.finish(told.start_unix_us)).transpose()?;
    let queues = observed.as_mut().map_or_else(Vec::new, |observed| std::mem::take(&mut observed.queues));
    let (events, flows) = (std::mem::take(&mut told.rows), counted.rows.clone());
    let windows = windows(&folder, told.start_unix_us)?;
    let mut records = Records { events, queues, flows, windows, ..Records::default() };
    if let Some(carried) = &job.carried {
        carried.rescale(&mut records);
    }
    let audited = audit(&folder, &folder.join("data"), loaded.scenario.logger.hosts > 0);
    let mut summary = summarise(loaded, &mut records.events, loop_rate)?;
    summary.speed = Some(speed);
    counted.fill(&mut summary, &fitted);
    if summary.tcp.as_ref().is_none_or(|tcp| tcp.timeouts.is_none()) {
        summary.forget_timeouts();
    }
    if let Some(observed) = &observed {
        network::fill(job, &mut summary, observed);
    }
    if let Some(bench) = &bench {
        network::fill_techniques(&mut summary, bench);
    }
    let mut text = summary::text(&summary) + &notes(&told, &audited, &ended, loaded);
    text += &(counted.notes(&fitted) + &unrecorded(job) + &captured);
    let mut ending = ending(stop, &summary, audited);
    if let (Some(bench), Some(observed)) = (&bench, &observed) {
        text += &network::notes(job, bench, observed);
        if let (Ok(()), Some(reason)) = (&ending, network::bottleneck(&job.slow.scenario, observed)) {
            ending = Err(Failure::Bottleneck { reason });
        }
    }
    write(job, summary, records, &text)?;
    if let Some(bench) = bench {
        bench.remove()?;
    }
    ending
}

/// How the processes ended.
struct Ended {
    restarts: u64,
    killed: Vec<String>,
}

fn tell_metrics<P: Placement>(job: &Job<'_>, live: &LiveSystem<P>) -> Result<(), Failure> {
    if job.arguments.metrics && prints(job.arguments) {
        for (process, address) in live.all_metrics() {
            output::print(&format!("{process:<18}http://{address}/metrics\n"))?;
        }
    }
    Ok(())
}

/// Warm-up and measured time, then the end in good order.
fn work<P: Placement>(
    job: &Job<'_>,
    mut live: LiveSystem<P>,
    watch: Option<&mut Watch>,
    stop: &AtomicBool,
) -> Result<Ended, Failure> {
    tell_metrics(job, &live)?;
    if live.wait_ready(stop)? {
        measured(job, watch, |time, tick| Ok(live.work(time, stop, tick)?))?;
    }
    live.stop();
    Ok(Ended { restarts: live.restarts(), killed: live.killed().to_vec() })
}

/// `loop_rate` is what the loopback carries, where the run is on it: then there is no wire to reckon an ideal from.
fn summarise(
    loaded: &Loaded,
    rows: &mut [EventRow],
    loop_rate: Option<LoopbackRate>,
) -> Result<Summary, Failure> {
    let scenario = &loaded.scenario;
    let mut summary = summary_of(loaded);
    match loop_rate {
        Some(rate) => {
            ideal::fill(rows, scenario, rate);
            summary.ideal = ideal::state(scenario, rows, rate);
        }
        None => summary.ideal = wire_ideal(loaded, rows)?,
    }
    let from = Moment::START + scenario.run.warmup;
    let last = rows.last().map_or(0, |row| row.assigned_ps + 1);
    // What Ctrl-C cut short ends with the last event.
    let until = (from + scenario.run.duration).min(Moment::new(last.max(from.get())));
    let span = Span { from, until };
    summary.fill_events(rows, span, scenario.collectors_total() as u32, true);
    Ok(summary)
}

/// Bytes of a request for all fragments of a readout, on its connection.
const REQUEST_BYTES: u64 = 64;

/// Gives each event its own ideal, with its bytes shared out evenly among the readouts, and states that of a mean event.
fn wire_ideal(loaded: &Loaded, rows: &mut [EventRow]) -> Result<Option<fanin_report::Ideal>, Failure> {
    let scenario = &loaded.scenario;
    let readouts = u64::from(scenario.readout.hosts);
    let is_whole = |row: &EventRow| row.last_byte_ps.is_some();
    let (events, sum) = rows
        .iter()
        .filter(|row| is_whole(row))
        .fold((0_u64, 0_u64), |(events, sum), row| (events + 1, sum + row.size_bytes));
    let Some(mean) = sum.checked_div(events) else { return Ok(None) };
    let response = scenario.readout.response_delay;
    let ideal = LiveNetwork::of(scenario)?.ideal(scenario, response, REQUEST_BYTES, mean / readouts)?;
    let wire = |bytes: u64| readouts * ideal.wire_bytes(bytes / readouts);
    for row in rows.iter_mut().filter(|row| is_whole(row)) {
        row.ideal_ps = Some(ideal.time(wire(row.size_bytes)).get());
    }
    let time = ideal.time(wire(mean));
    Ok(Some(fanin_report::Ideal {
        collection_time_ms: Some(time.as_millis_f64()),
        goodput_bps: Some(mean as f64 * 8.0 / time.as_secs_f64()),
        how: Some(ideal.how(Bytes::new(mean), wire(mean))),
    }))
}

/// What the summary has no place for.
fn notes(
    told: &JournalTables,
    audited: &Result<fanin_node::audit::Audit, fanin_node::audit::Finding>,
    ended: &Ended,
    loaded: &Loaded,
) -> String {
    let Ended { restarts, killed } = ended;
    let restarts = *restarts;
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

fn write(job: &Job<'_>, summary: Summary, records: Records, text: &str) -> Result<(), Failure> {
    let mut result = RunResult::new(summary);
    result.scenario_toml = Some(job.loaded.to_toml());
    result.records = records;
    finish(job, &result, text)
}
