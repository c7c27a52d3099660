//! Live runs of event building: on the loopback, or on the hosts of a network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fanin_network::topology;
use fanin_node::audit::{Audit, AuditFailure, AuditScope};
use fanin_node::background::BackgroundResult;
use fanin_node::config::{PredictedBands, Role};
use fanin_node::flows::Numbers;
use fanin_node::ideal::{self, LoopbackRate};
use fanin_node::launch::{LiveSystem, Loopback, Placement, SystemLaunch, ended_cpu_seconds, processes};
use fanin_node::result::read_tables;
use fanin_node::tcp::counted;
use fanin_node::trace::windows;
use fanin_node::transport::{self, Environment, Fitted};
use fanin_report::{EventOutcome, EventRow, Records, RunResult, Span, Speed, Summary};
use fanin_scenario::{Loaded, Scenario};
use fanin_testbed::live::{Bench, LiveNetwork, Part, Placed, SwitchError, SwitchWatch};
use fanin_units::{Bytes, Instant as Moment};

use super::job::{AttemptEnd, Job, end_capture, finish, start_capture, summary_of, unrecorded};
use super::measured::{check_switches, in_turns, measured};
use super::{background, network};
use crate::commands::audit;
use crate::failure::Failure;
use crate::predicted::predict;
use crate::{interrupt, output, summary};

/// Checks that the roles support the scenario, without starting anything.
pub(super) fn check(loaded: &Loaded, scenario_folder: &Path) -> Result<(), Failure> {
    let launch = SystemLaunch {
        loaded,
        folder: Path::new(""),
        overwrite: false,
        scenario_folder,
        data: None,
        program: Path::new(""),
        restart: false,
        metrics: false,
        ideal_rate: None,
        predicted: PredictedBands::default(),
    };
    launch.check()?;
    // The tables need the racks of its collectors.
    topology::build(&loaded.scenario)?;
    Ok(())
}

pub(super) fn run(job: &Job<'_>) -> Result<AttemptEnd, Failure> {
    let loaded = &job.loaded;
    let folder = job.folder.live();
    let program = std::env::current_exe()?;
    let slow = &job.slow;
    let stop = interrupt::flag();
    let loop_rate = if job.carried.is_some() { None } else { Some(ideal::measure_loopback()?) };
    let ideal_rate = match loop_rate {
        Some(rate) => Some(rate.rate()),
        None => LiveNetwork::of(&slow.scenario)?.ideal_rate(&slow.scenario)?,
    };
    let predicted = match job.carried {
        Some(_) if job.arguments.metrics => predicted(&slow.scenario, job.arguments.quiet)?,
        _ => PredictedBands::default(),
    };
    let launch = SystemLaunch {
        loaded: slow,
        folder: &folder,
        // The events of a spoilt attempt are worth nothing.
        overwrite: job.arguments.overwrite || !job.spoilt.is_empty(),
        scenario_folder: &job.scenario_folder,
        data: None,
        program: &program,
        restart: true,
        metrics: job.arguments.metrics,
        ideal_rate,
        predicted,
    };
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
    let background = background::start(job, bench.as_ref())?;
    let (mut ended, watch) = match &bench {
        Some(bench) => {
            let live = LiveSystem::start(&launch, Placed::new(bench))?;
            match bench.watch(&slow.scenario) {
                Ok(mut watch) => (work(job, live, Ok(Some(&mut watch)), stop)?, Some(watch)),
                Err(error) => (work(job, live, Err(error), stop)?, None),
            }
        }
        None => {
            let live = LiveSystem::start(&launch, Loopback::default())?;
            if let Some(tap) = &tap {
                let system = live.system();
                let listening =
                    [&system.supervisor].into_iter().chain(&system.readouts).chain(&system.loggers);
                tap.choose(listening.filter_map(|address| fanin_node::config::port(address)));
            }
            (work(job, live, Ok(None), stop)?, None)
        }
    };
    // The audit comes first: its verdict stands whatever fails below.
    let scope = AuditScope {
        folders: &[&folder],
        data: &[&folder.join("data")],
        loggers: loaded.scenario.logger.hosts > 0,
        assigned_min: ended.assigned,
        deletes_journals: loaded.scenario.live.journal_parts > 0,
    };
    let audited = fanin_node::audit::audit(&scope);
    let verdict = ended.notes(loaded) + &audit::verdict(&audited);
    // A loss of events is a failure at any scale, with its audit and summary.
    if let Some(reason) = ended.spoilt.take()
        && audited.is_ok()
        && !stop.load(Ordering::Relaxed)
    {
        let captured = end_capture(job, tap);
        drop((watch, background));
        bench.map_or(Ok(()), Bench::remove)?;
        captured?;
        return Ok(AttemptEnd::Spoilt(reason));
    }
    if job.arguments.prints() {
        output::print(&verdict)?;
    }
    let background = background::finish(job, background);
    let captured = end_capture(job, tap);
    let speed = Speed {
        wall_s: Some(began.elapsed().as_secs_f64()),
        cpu_s: Some(ended_cpu_seconds() - cpu),
        ..Speed::default()
    };
    let is_cut_short = ended.early.is_some() || stop.load(Ordering::Relaxed);
    let fit = Fit { fitted: &fitted, loop_rate, speed, is_cut_short, background };
    let written = report(job, fit, watch, bench.as_ref(), &audited, captured);
    if let Some(bench) = bench {
        bench.remove()?;
    }
    // A loss of events is the more important failure than one to write tables, which is then a note.
    let judged = ended.judge(stop, audited);
    if let (Err(_), Err(failure)) = (&judged, &written) {
        output::note(&failure.to_string());
    }
    judged?;
    let reported = written?;
    ended.judge_fragments(&reported)?;
    reported.invalid.map_or(Ok(AttemptEnd::Done), |reason| Err(Failure::Bottleneck { reason }))
}

/// Predicts the bands of the metrics; without bands if the scenario takes too long to simulate.
fn predicted(scenario: &Scenario, is_quiet: bool) -> Result<PredictedBands, Failure> {
    let bands = predict(scenario, is_quiet)?;
    if bands.is_none() && !is_quiet {
        output::note("the metrics have no predicted band: the scenario takes too long to simulate");
    }
    Ok(bands.unwrap_or_default())
}

/// The socket options in force, the cost of the run, and whether it ended before its time.
struct Fit<'a> {
    fitted: &'a Fitted,
    loop_rate: Option<LoopbackRate>,
    speed: Speed,
    is_cut_short: bool,
    background: Result<Option<BackgroundResult>, Failure>,
}

/// The findings of a run's report other than figures.
struct Reported {
    /// Fragments that never arrived.
    missing: u64,
    /// Reason for which the machine, not the network, made the result.
    invalid: Option<String>,
}

/// Reads the files of the processes, and writes summary, tables and page.
fn report(
    job: &Job<'_>,
    fit: Fit<'_>,
    watch: Option<SwitchWatch>,
    bench: Option<&Bench>,
    audited: &Result<Audit, AuditFailure>,
    captured: Result<String, Failure>,
) -> Result<Reported, Failure> {
    let Fit { fitted, loop_rate, speed, is_cut_short, background } = fit;
    let loaded = &job.loaded;
    let folder = job.folder.live();
    let (captured, background) = (captured?, background?);
    let counted = counted(&folder, &Numbers::of(&loaded.scenario))?;
    let failure = audit::parts(audited).1;
    let lost: BTreeSet<u64> =
        failure.into_iter().flat_map(AuditFailure::lost_events).map(|id| id.0).collect();
    let (_, roles) = topology::build(&loaded.scenario)?;
    let mut tables = read_tables(&[&folder], &roles.racks)?;
    // The journals alone have an outcome for an event whose file is gone.
    for row in tables.rows.iter_mut().filter(|row| lost.contains(&row.id)) {
        row.outcome = EventOutcome::Lost;
    }
    // Without its switches the network has no figures; the events have theirs.
    let (mut observed, switch_failure) = match watch.map(|watch| watch.finish(tables.start_unix_us)) {
        Some(Ok(observed)) => (Some(observed), None),
        Some(Err(error)) => (None, Some(error)),
        None => (None, None),
    };
    let queues = observed.as_mut().map_or_else(Vec::new, |observed| std::mem::take(&mut observed.queues));
    let (events, flows) = (std::mem::take(&mut tables.rows), counted.rows.clone());
    let windows = windows(&folder, tables.start_unix_us)?;
    let mut records = Records { events, queues, flows, windows, ..Records::default() };
    if let Some(carried) = &job.carried {
        carried.rescale(&mut records);
    }
    let mut summary = summarise(loaded, &mut records.events, loop_rate, is_cut_short)?;
    summary.speed = Some(speed);
    let start_unix_us = tables.start_unix_us;
    let skipped = background::fill(job, &mut summary, &mut records, background.as_ref(), start_unix_us);
    network::fill_ports(&mut summary, &records);
    if let Some(events) = &mut summary.events {
        events.duplicated = audit::parts(audited).0.totals.duplicates;
    }
    counted.fill(&mut summary, fitted);
    if summary.tcp.as_ref().is_none_or(|tcp| tcp.timeouts.is_none()) {
        summary.forget_timeouts(&mut records.events);
    }
    if let Some(observed) = &observed {
        network::fill(job, &mut summary, observed);
    }
    if let Some(bench) = bench {
        network::fill_techniques(&mut summary, bench);
    }
    fanin_runs::fill_overload(&mut summary, &loaded.scenario);
    let mut text = summary::text(&summary);
    if tables.missing > 0 || tables.reassigned > 0 {
        let (missing, reassigned) = (tables.missing, tables.reassigned);
        text += &format!("{:<18}{missing} fragments missing, {reassigned} events assigned again\n", "faults");
    }
    text += &skipped;
    text += &(counted.notes(fitted) + &unrecorded(job) + &captured);
    let mut invalid = None;
    if let (Some(bench), Some(observed)) = (bench, &observed) {
        text += &network::notes(job, bench, observed);
        invalid = network::bottleneck(network::late_max(&job.slow.scenario), observed);
    }
    write(job, summary, records, &text)?;
    if let Some(error) = switch_failure {
        return Err(error.into());
    }
    Ok(Reported { missing: tables.missing, invalid })
}

/// The end of the processes, and their earlier restarts.
#[derive(Default)]
struct EndedProcesses {
    assigned: u64,
    restarts: u64,
    /// Processes that ended while the system worked, each with the number of times.
    ended: BTreeMap<String, u64>,
    killed: Vec<String>,
    hung: BTreeMap<String, u64>,
    /// Processes that waited for a disk for as long as one that hangs, each with the number of times.
    blocked: BTreeMap<String, u64>,
    without: BTreeMap<String, u32>,
    /// Roles of which no process was left at the end.
    absent: Vec<Role>,
    /// The terms of two supervisors in words, if the run has a standby.
    standby: Option<String>,
    /// The reason of an early end.
    early: Option<Failure>,
    /// Reason for which the machine spoilt the run, which begins again.
    spoilt: Option<String>,
}

impl EndedProcesses {
    /// Returns lines about the processes.
    fn notes(&self, loaded: &Loaded) -> String {
        let mut text = format!("{:<18}{} on this machine", "processes", processes(&loaded.scenario));
        if self.restarts > 0 {
            text += &format!(", {} started again", self.restarts);
        }
        if !self.killed.is_empty() {
            text += &format!("; ended by force: {}", self.killed.join(", "));
        }
        text.push('\n');
        if let Some(standby) = &self.standby {
            text += &format!("{:<18}{standby}\n", "standby");
        }
        if let Some(failure) = &self.early {
            text += &format!("{:<18}{failure}\n", "ended early");
        }
        for (process, ends) in self.ended.iter().filter(|(process, _)| !self.without.contains_key(*process)) {
            text += &format!("{:<18}{process} ended without an order: {ends} ×\n", "");
        }
        for (process, times) in &self.hung {
            text += &format!("{:<18}{process} hung, and was killed: {times} ×\n", "");
        }
        for (process, times) in &self.blocked {
            text += &format!("{:<18}{process} waited for the disk, and did nothing else: {times} ×\n", "");
        }
        for (process, ends) in &self.without {
            text += &format!("{:<18}{process} ended {ends} times in a row; the run went on without it\n", "");
        }
        text
    }

    /// Returns the run's failure, if the audit failed, no event was assigned, the run ended early, or it ended
    /// without a supervisor or a collector.
    fn judge(&mut self, stop: &AtomicBool, audited: Result<Audit, AuditFailure>) -> Result<(), Failure> {
        let stopped = stop.load(Ordering::Relaxed);
        // Nothing can be lost before the first event.
        if self.assigned == 0
            && let Some(failure) = self.early.take()
        {
            return Err(failure);
        }
        match audited {
            // Ctrl-C before the first event.
            Ok(audit) if audit.totals.assigned == 0 && !stopped => {
                return Err(Failure::NothingAssigned);
            }
            Ok(_) => {}
            Err(failure) => return Err(failure.into()),
        }
        match self.early.take() {
            Some(failure) => Err(failure),
            None if !self.absent.is_empty() => {
                let roles: Vec<&str> = self.absent.iter().map(|role| role.name()).collect();
                Err(Failure::NoneLeft { roles: roles.join(" and no ") })
            }
            None if stopped => Err(Failure::Stopped),
            None => Ok(()),
        }
    }

    /// Returns a failure if fragments are missing and a readout did not work all the time. A busy machine makes processes hang,
    /// but none of them end.
    fn judge_fragments(&self, reported: &Reported) -> Result<(), Failure> {
        fn readouts<'a>(named: impl Iterator<Item = &'a String>) -> Option<String> {
            let readouts: BTreeSet<&str> =
                named.map(String::as_str).filter(|name| name.starts_with("readout-")).collect();
            (!readouts.is_empty()).then(|| readouts.into_iter().collect::<Vec<_>>().join(", "))
        }
        let missing = reported.missing;
        if missing == 0 {
            return Ok(());
        }
        if let Some(readouts) = readouts(self.ended.keys().chain(self.without.keys())) {
            return Err(Failure::EndedReadouts { missing, readouts });
        }
        readouts(self.killed.iter().chain(self.hung.keys()).chain(self.blocked.keys()))
            .map_or(Ok(()), |readouts| Err(Failure::HungReadouts { missing, readouts }))
    }
}

fn print_metrics<P: Placement>(job: &Job<'_>, live: &LiveSystem<P>) -> Result<(), Failure> {
    if job.arguments.metrics && job.arguments.prints() {
        for (process, address) in live.all_metrics() {
            output::print(&format!("{process:<18}http://{address}/metrics\n"))?;
        }
    }
    Ok(())
}

/// Runs the warm-up and the measured time, then ends the system in good order. It ends at once if the switches cannot be
/// watched, or if one of them fails.
fn work<P: Placement>(
    job: &Job<'_>,
    mut live: LiveSystem<P>,
    watch: Result<Option<&mut SwitchWatch>, SwitchError>,
    stop: &AtomicBool,
) -> Result<EndedProcesses, Failure> {
    print_metrics(job, &live)?;
    // Events that were assigned are finished and accounted for even after a failure.
    let (early, spoilt) =
        match watch.map_err(Failure::from).and_then(|watch| observe(job, &mut live, watch, stop)) {
            Ok(spoilt) => (None, spoilt),
            // Before the first event, most failures leave nothing to account for.
            Err(failure) if live.assigned() > 0 || matches!(failure, Failure::LiveSwitch(_)) => {
                let spoilt = job.spoilt_by(&failure);
                (Some(failure), spoilt)
            }
            Err(failure) => return Err(failure),
        };
    let absent = live.absent();
    live.stop();
    Ok(EndedProcesses {
        assigned: live.assigned(),
        restarts: live.restarts(),
        ended: live.ended().clone(),
        killed: live.killed().to_vec(),
        hung: live.hung().clone(),
        blocked: live.blocked().clone(),
        without: live.without().clone(),
        absent,
        standby: live
            .standby()
            .map(|terms| terms.map_or_else(|error| format!("unknown: {error}"), |terms| terms.to_string())),
        early,
        spoilt,
    })
}

/// Waits for the first event, and runs the warm-up and the measured time. Returns the reason if the machine spoils the run.
fn observe<P: Placement>(
    job: &Job<'_>,
    live: &mut LiveSystem<P>,
    watch: Option<&mut SwitchWatch>,
    stop: &AtomicBool,
) -> Result<Option<String>, Failure> {
    let health = watch.as_ref().map(|watch| watch.health());
    let health = health.as_ref();
    if !live.wait_ready_with(stop, || check_switches(health))? {
        return Ok(None);
    }
    measured(job, watch, stop, |time, tick| {
        in_turns(time, health, stop, tick, |turn, tick| {
            live.work(turn, stop, tick)?;
            Ok(true)
        })
    })
}

/// Makes the summary. `loop_rate` is the loopback's rate in a run on the loopback, where no wire gives an ideal. A run that
/// was cut short ends with its last event.
fn summarise(
    loaded: &Loaded,
    rows: &mut [EventRow],
    loop_rate: Option<LoopbackRate>,
    is_cut_short: bool,
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
    let whole = from + scenario.run.duration;
    let until = if is_cut_short { whole.min(Moment::new(last.max(from.get()))) } else { whole };
    let span = Span { from, until };
    summary.fill_events(rows, span, scenario.collectors_total() as u32, true);
    Ok(summary)
}

/// Sets the ideal of each complete event, with its bytes shared out evenly among the readouts. Returns the ideal of a mean
/// event; `None` without a complete event.
fn wire_ideal(loaded: &Loaded, rows: &mut [EventRow]) -> Result<Option<fanin_report::IdealFigures>, Failure> {
    let scenario = &loaded.scenario;
    let is_whole = |row: &EventRow| row.last_byte_ps.is_some();
    let (events, sum) = rows
        .iter()
        .filter(|row| is_whole(row))
        .fold((0_u64, 0_u64), |(events, sum), row| (events + 1, sum + row.size_bytes));
    let Some(mean) = sum.checked_div(events) else { return Ok(None) };
    let event = LiveNetwork::of(scenario)?.event(scenario, Bytes::new(mean))?;
    for row in rows.iter_mut().filter(|row| is_whole(row)) {
        row.ideal_ps = Some(event.time_of(Bytes::new(row.size_bytes)).get());
    }
    Ok(Some(fanin_report::IdealFigures {
        collection_time_ms: Some(event.time().as_millis_f64()),
        goodput_bps: Some(event.goodput_bps()),
        how: Some(event.how()),
    }))
}

fn write(job: &Job<'_>, summary: Summary, records: Records, text: &str) -> Result<(), Failure> {
    let mut result = RunResult::new(summary);
    result.scenario_toml = Some(job.loaded.to_toml());
    result.records = records;
    finish(job, &result, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(process: &str) -> EndedProcesses {
        EndedProcesses { ended: [(process.to_owned(), 1)].into(), ..EndedProcesses::default() }
    }

    fn judge(ended: &EndedProcesses, missing: u64) -> Result<(), Failure> {
        ended.judge_fragments(&Reported { missing, invalid: None })
    }

    #[test]
    fn missing_fragments_of_a_readout_that_ended_are_a_failure() {
        let failure = judge(&ended("readout-3"), 2).unwrap_err();
        assert!(
            matches!(failure, Failure::EndedReadouts { missing: 2, ref readouts } if readouts == "readout-3")
        );
        // A readout that came back in time cost nothing, and a collector has no fragments.
        judge(&ended("readout-3"), 0).unwrap();
        judge(&ended("collector-0"), 2).unwrap();
    }

    #[test]
    fn a_run_that_ends_without_a_supervisor_or_a_collector_is_a_failure() {
        let judge = |absent: &[Role]| {
            let mut audit = Audit::default();
            (audit.totals.assigned, audit.totals.rejected) = (3, 3);
            let mut ended =
                EndedProcesses { assigned: 3, absent: absent.to_vec(), ..EndedProcesses::default() };
            ended.judge(&AtomicBool::new(false), Ok(audit))
        };
        judge(&[]).unwrap();
        let failure = judge(&[Role::Supervisor]).unwrap_err();
        assert!(failure.to_string().starts_with("no supervisor was left when the run ended"), "{failure}");
        judge(&[Role::Collector]).unwrap_err();
    }

    #[test]
    fn a_readout_that_hung_does_not_excuse_one_that_ended() {
        let hung = EndedProcesses {
            killed: vec!["readout-1".to_owned()],
            hung: [("readout-2".to_owned(), 3)].into(),
            ..EndedProcesses::default()
        };
        let failure = judge(&hung, 2).unwrap_err();
        assert!(
            matches!(failure, Failure::HungReadouts { ref readouts, .. } if readouts == "readout-1, readout-2")
        );
        let blocked =
            EndedProcesses { blocked: [("readout-4".to_owned(), 1)].into(), ..EndedProcesses::default() };
        let failure = judge(&blocked, 2).unwrap_err();
        assert!(matches!(failure, Failure::HungReadouts { ref readouts, .. } if readouts == "readout-4"));
        // The end of one is not excused by another that hung.
        let both = EndedProcesses { ended: ended("readout-3").ended, ..hung };
        let failure = judge(&both, 2).unwrap_err();
        assert!(matches!(failure, Failure::EndedReadouts { ref readouts, .. } if readouts == "readout-3"));
    }
}
