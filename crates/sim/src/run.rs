//! One run: from a scenario and a seed to results.

use std::sync::atomic::AtomicBool;

use fanin_network::{Connection, Network, NodeIndex, Roles, topology};
use fanin_recording::{Finished, LinkCapture, Recorder, captured_port, check_samples};
use fanin_report::{LevelRow, Records, ResultKind, RunPicture, ScenarioName, Span, Speed, Summary};
use fanin_scenario::{Scenario, WindowState};
use fanin_units::Instant;

use crate::Error;
use crate::boundary::PlayedNodes;
use crate::connect::connect;
use crate::engine::Engine;
use crate::partition::{Ending, Partition};
use crate::stack::stack;
use crate::techniques::{RunView, Setup, TechniqueSet};
use crate::turns::play;
use crate::workload::{MeasuredWorkload, ReadyWorkload, RecordedSizes, WithBackground};

/// Options to observe, stop and record a run.
pub struct RunControl<'a> {
    /// Stop flag. When the flag is set, the run ends soon after, and returns the results so far.
    pub stop: &'a AtomicBool,
    /// Called from time to time with the simulated time and the time at which the run ends.
    pub progress: &'a (dyn Fn(Instant, Instant) + Sync),
    /// True to keep the frames on the link that the scenario names in `record.capture`.
    pub capture: bool,
}

/// The stop flag of a run that nothing stops.
static NOT_STOPPED: AtomicBool = AtomicBool::new(false);

impl Default for RunControl<'_> {
    /// Runs to the end in silence.
    fn default() -> Self {
        Self { stop: &NOT_STOPPED, progress: &|_, _| {}, capture: false }
    }
}

/// The end of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunEnd {
    /// The run is complete.
    Complete,
    /// The stop flag was set.
    Stopped,
    /// Nothing moved any more, though work was left.
    Stalled {
        /// Simulated time of the check that found no progress.
        at: Instant,
        /// The waiting hosts, each with the object of its wait.
        diagnosis: String,
    },
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The end of the run.
    pub end: RunEnd,
    /// The figures. The caller fills in the scenario's name and hash, and the figures of speed, which need a clock.
    pub summary: Summary,
    /// Bytes that were put on links.
    pub wire_bytes: u64,
    /// The tables of events, flows, losses and samples.
    pub records: Records,
    /// Levels of the roles at the ends of the picture's bins.
    pub levels: Vec<LevelRow>,
    /// Queues over time, one late event, and the network's hot links.
    pub picture: Option<RunPicture>,
    /// The recorded frames of the captured link, if [`RunControl::capture`] is set.
    pub capture: Option<LinkCapture>,
}

/// Simulates a scenario without a file of fragment sizes. The same scenario and seed give the same outcome to the bit.
///
/// # Errors
/// If the scenario has unsupported settings, or names a file of fragment sizes.
///
/// # Panics
/// If the scenario combines settings that the check of [`fanin_scenario::load`] refuses. If the simulator's accounts do not
/// balance at the end: a mistake in this crate.
pub fn run(scenario: &Scenario, seed: u64, control: &RunControl<'_>) -> Result<RunOutcome, Error> {
    let (network, roles) = topology::build(scenario)?;
    run_on(scenario, &RecordedSizes::None, seed, control, &network, &roles)
}

/// Simulates a scenario on its network, with nodes and links in any order. `roles` names the nodes by their indices; `sizes`
/// is the content of the scenario's file, if any.
///
/// # Errors
/// If the scenario has unsupported settings, or names a file with other content than `sizes`.
///
/// # Panics
/// As [`run`].
pub fn run_on(
    scenario: &Scenario,
    sizes: &RecordedSizes,
    seed: u64,
    control: &RunControl<'_>,
    network: &Network,
    roles: &Roles,
) -> Result<RunOutcome, Error> {
    check_samples(scenario, network)?;
    let setup = RunSetup { scenario, seed, control, network, roles };
    match crate::workload::plan(scenario, network, roles, sizes, seed)? {
        ReadyWorkload::Barrier(barrier) => with_background(&setup, *barrier),
        ReadyWorkload::Building(building) => with_background(&setup, *building),
    }
}

/// Input of a run.
#[derive(Clone, Copy)]
pub(crate) struct RunSetup<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) seed: u64,
    pub(crate) control: &'a RunControl<'a>,
    pub(crate) network: &'a Network,
    pub(crate) roles: &'a Roles,
}

/// Builds the partition for the nodes of `plays`, with open connections. Returns `None` if the stop flag is set meanwhile.
pub(crate) fn assemble<W: MeasuredWorkload>(
    setup: &RunSetup<'_>,
    workload: W,
    plays: impl Fn(NodeIndex) -> bool,
) -> Result<(Partition<W>, Option<Vec<Connection>>), Error> {
    let RunSetup { scenario, seed, control, network, roles } = *setup;
    let connections = workload.connections(roles);
    let config = stack(&scenario.transport)?;
    let is_warm = scenario.transport.window_state == WindowState::Warm;
    let warm_response = is_warm.then_some(scenario.readout.response_delay);
    let mut engine = Engine::new(network, config, warm_response, seed)?;
    let own = connections.len() as u32 - scenario.background_connections() as u32;
    engine.set_background(stack(&scenario.background_transport())?, 2 * own);
    let is_connected = connect(scenario, network, roles, &mut engine, &connections, control.stop)?;
    let techniques = if is_connected {
        assert_eq!(engine.ends().len() as u64, 2 * scenario.connections_total(), "connections are missing");
        TechniqueSet::new(Setup {
            scenario,
            network,
            roles,
            engine: &engine,
            bulk_connections: workload.bulk_connections(),
            technique: 0,
            seed,
            captures: control.capture,
        })?
    } else {
        TechniqueSet::default()
    };
    let played = PlayedNodes::new(network, &connections, workload.hosts(), plays);
    let recorder = Recorder::new(scenario, network, techniques.holding);
    let partition = Partition::new(engine, workload, played, techniques, recorder);
    Ok((partition, is_connected.then_some(connections)))
}

/// Plays a scenario with its workload, and with its background traffic if it has any.
fn with_background<W: MeasuredWorkload>(setup: &RunSetup<'_>, workload: W) -> Result<RunOutcome, Error> {
    match WithBackground::new(workload, setup.scenario, setup.roles, setup.seed) {
        Ok(both) => simulate(setup, both),
        Err(workload) => simulate(setup, workload),
    }
}

/// Plays a scenario with its workload.
fn simulate<W: MeasuredWorkload>(setup: &RunSetup<'_>, workload: W) -> Result<RunOutcome, Error> {
    let (mut partition, connections) = assemble(setup, workload, |_| true)?;
    let RunSetup { scenario, seed, control, network, roles } = *setup;
    let Some(connections) = connections else { return Ok(unbuilt(seed, &partition.workload)) };
    for &flow in &scenario.record.windows {
        // The side that answers sends the data.
        partition.engine.end(2 * flow + 1).is_traced = true;
    }
    let captured = if control.capture { Some(captured_port(scenario, network)?) } else { None };
    if let Some(port) = captured {
        partition.engine.fabric.tap_link(port, true);
    }

    let warmup = Instant::START + scenario.run.warmup;
    let end = warmup + scenario.run.duration;
    let progress = |now: Instant| (control.progress)(now, end);
    let bulk_connections = partition.workload.bulk_connections();
    let unstarted = partition.engine.totals();
    partition.start(scenario.run.stall_limit, bulk_connections);
    let mut ending = play(std::slice::from_mut(&mut partition), warmup, control.stop, progress);
    // Without a warm-up, bytes sent at the start are measured.
    let before = if scenario.run.warmup.is_zero() { unstarted } else { partition.engine.totals() };
    let now = partition.engine.now();
    partition.engine.fabric.reset_high_water_marks(now);
    partition.recorder.start_measuring();
    if ending == Ending::Time {
        ending = play(std::slice::from_mut(&mut partition), end, control.stop, progress);
    }
    let until = partition.engine.time();
    let span = Span { from: warmup.min(until), until };
    let within = partition.engine.totals();
    // Work in progress is finished after the measured time, so that slow events count, too.
    if ending == Ending::Time {
        partition.workload.stop_assigning(until);
        ending = if partition.workload.is_done() {
            Ending::Done
        } else {
            // The drain has no time limit while the workload makes progress.
            play(std::slice::from_mut(&mut partition), Instant::FAR_FUTURE, control.stop, progress)
        };
    }
    partition.assert_conserved();
    let after = partition.engine.totals();

    let at = partition.engine.time();
    let end = match ending {
        Ending::Done => RunEnd::Complete,
        Ending::Stopped => RunEnd::Stopped,
        Ending::Deadlock => RunEnd::Stalled { at, diagnosis: deadlock(network, &partition) },
        Ending::Stuck | Ending::Stalled | Ending::Time => {
            let diagnosis = format!("nothing moves at {at}: {}", partition.workload.diagnose());
            RunEnd::Stalled { at, diagnosis }
        }
    };
    let rows = partition.workload.rows();
    let mut summary = Summary::new(ResultKind::Sim, env!("CARGO_PKG_VERSION"), ScenarioName::default());
    summary.seed = Some(seed);
    partition.workload.summarise(&mut summary, &rows, span);
    let view = RunView { scenario, network, engine: &partition.engine };
    let figures = partition.techniques.figures(&view).into_iter();
    summary.techniques.extend(figures.map(|(key, figures)| (key.to_owned(), figures)));
    let fabric = &partition.engine.fabric;
    summary.speed =
        Some(Speed { packet_hops: Some(fabric.hops(&partition.engine.schedule)), ..Speed::default() });
    let wire_bytes = fabric.wire_bytes_sent();
    let finished = Finished {
        scenario,
        network,
        roles,
        connections: &connections,
        recorder: &partition.recorder,
        before: &before,
        within: &within,
        after: &after,
        queue_bytes_max: network.ports().map(|port| fabric.port_bytes_max(port)).collect(),
        rows,
    };
    let pauses = fabric.pause_figures(partition.engine.now()).map(|figures| figures.pauses);
    finished.fill_network(&mut summary, partition.techniques.uses_tcp(), pauses);
    finished.fill_background(&mut summary, partition.workload.transfers(), span);
    finished.fill_bound(&mut summary, span, |row| partition.workload.work(row));
    let picture = finished.picture();
    summary.ports = finished.ports(picture.late.as_ref());
    let capture = captured.map(|port| finished.capture(port, partition.engine.config().window_scale));
    let (records, levels) = (finished.into_records(partition.end_stats()), partition.recorder.into_levels());
    Ok(RunOutcome { end, summary, wire_bytes, records, levels, picture: Some(picture), capture })
}

/// Describes a deadlock: its time, the ports that wait for one another, and the waiting hosts.
fn deadlock<W: MeasuredWorkload>(network: &Network, partition: &Partition<W>) -> String {
    let ports = partition.engine.fabric.deadlock();
    let names: Vec<String> = ports.iter().map(|&port| network.port_name(port)).collect();
    format!(
        "deadlock of PAUSE at {}: {} are paused. Each waits for the next, and the last for the first; {}",
        partition.engine.time(),
        names.join(", "),
        partition.workload.diagnose()
    )
}

/// Returns the outcome of a run that was stopped while its network was being built.
fn unbuilt<W: MeasuredWorkload>(seed: u64, workload: &W) -> RunOutcome {
    let span = Span { from: Instant::START, until: Instant::START };
    let mut summary = Summary::new(ResultKind::Sim, env!("CARGO_PKG_VERSION"), ScenarioName::default());
    summary.seed = Some(seed);
    workload.summarise(&mut summary, &[], span);
    summary.speed = Some(Speed { packet_hops: Some(0), ..Speed::default() });
    let (end, records, levels) = (RunEnd::Stopped, Records::default(), Vec::new());
    RunOutcome { end, summary, wire_bytes: 0, records, levels, picture: None, capture: None }
}
