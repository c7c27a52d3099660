//! One run: from a scenario and a seed to results.

use std::sync::atomic::AtomicBool;

use fanin_network::{Network, NodeKind, PortIndex, Roles, topology};
use fanin_report::{Kind, Records, RunPicture, ScenarioName, Span, Summary};
use fanin_scenario::{Scenario, WindowState};
use fanin_units::{Duration, Instant};

use crate::Error;
use crate::capture::Capture;
use crate::connect::connect;
use crate::engine::Engine;
use crate::observer::Watch;
use crate::partition::{Ending, Partition};
use crate::picture::Finished;
use crate::results::{Totals, capture, deadlock, fill_network, records, utilisation};
use crate::speed::Meter;
use crate::stack::stack;
use crate::techniques::{RunView, Setup, TechniqueSet};
use crate::timeline::TimelineRecorder;
use crate::workload::{Measured, Plan, Workload};

/// How a caller follows, stops and records a run.
pub struct Control<'a> {
    /// Ends the run soon after it is set; what was measured until then is returned.
    pub stop: &'a AtomicBool,
    /// Called from time to time with the simulated time and the time at which the run ends.
    pub progress: &'a (dyn Fn(Instant, Instant) + Sync),
    /// Keeps the frames on the link that the scenario names in `record.capture`.
    pub capture: bool,
}

/// Never set.
static NEVER: AtomicBool = AtomicBool::new(false);

impl Default for Control<'_> {
    /// Runs to the end in silence.
    fn default() -> Self {
        Self { stop: &NEVER, progress: &|_, _| {}, capture: false }
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// As it should.
    Complete,
    /// Because of the stop flag.
    Stopped,
    /// Because nothing moved any more, though work was left.
    Stalled {
        /// Simulated time when that was noticed.
        at: Instant,
        /// The hosts that wait, and what they wait for.
        diagnosis: String,
    },
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The figures. The scenario's name and hash are the caller's to fill in.
    pub summary: Summary,
    /// The tables.
    pub records: Records,
    /// Queues over time, one late event, and the network's hot links.
    pub picture: Option<RunPicture>,
    /// The frames seen on the captured link, if they were to be kept.
    pub capture: Option<Capture>,
}

/// Simulates a scenario. The same scenario and seed give the same outcome to the bit, figures of speed aside.
///
/// # Errors
/// If the scenario asks for something that is not simulated.
///
/// # Panics
/// If the simulator's accounts do not balance at the end: a mistake in this crate.
pub fn run(scenario: &Scenario, seed: u64, control: &Control<'_>) -> Result<Outcome, Error> {
    let (network, roles) = topology::build(scenario)?;
    match crate::workload::plan(scenario, &network, &roles, seed)? {
        Plan::Barrier(barrier) => simulate(scenario, seed, control, &network, &roles, *barrier),
        Plan::Building(building) => simulate(scenario, seed, control, &network, &roles, *building),
    }
}

/// Plays a scenario with its workload.
fn simulate<W: Measured>(
    scenario: &Scenario,
    seed: u64,
    control: &Control<'_>,
    network: &Network,
    roles: &Roles,
    workload: W,
) -> Result<Outcome, Error> {
    let meter = Meter::start();
    let connections = workload.connections(roles);
    let config = stack(&scenario.transport)?;
    let warm_rtt = (scenario.transport.window_state == WindowState::Warm).then(|| warm_rtt(scenario));
    let mut engine = Engine::new(network, config, warm_rtt, seed)?;
    if !connect(scenario, network, roles, &mut engine, &connections, control.stop)? {
        return Ok(unbuilt(seed, &meter, &engine, &workload));
    }
    debug_assert_eq!(engine.ends.len() as u64, 2 * scenario.connections_total(), "connections");
    let techniques = TechniqueSet::new(&Setup {
        scenario,
        network,
        roles,
        engine: &engine,
        bulk_connections: workload.bulk_connections(),
        seed,
        captures: control.capture,
    })?;
    let hosts = workload.hosts();
    let mut partition = Partition::new(engine, workload, hosts);
    partition.techniques = techniques;
    watch(scenario, network, &mut partition);
    observe(scenario, network, &mut partition);
    let captured = if control.capture { Some(captured_port(scenario, network)?) } else { None };
    if let Some(port) = captured {
        partition.engine.fabric.tap_link(port, true);
    }

    let warmup = Instant::START + scenario.run.warmup;
    let end = warmup + scenario.run.duration;
    let progress = |now: Instant| (control.progress)(now, end);
    partition.start(scenario.run.stall_limit);
    let mut ending = partition.run(warmup, control.stop, progress);
    let before = Totals::of(&partition);
    let now = partition.engine.now;
    partition.engine.fabric.reset_marks(now);
    partition.observer.timeline.start_measuring();
    if ending == Ending::Time {
        ending = partition.run(end, control.stop, progress);
    }
    let until = partition.engine.time();
    let span = Span { from: warmup.min(until), until };
    let within = Totals::of(&partition);
    // Work in progress is finished after the measured time, so that slow events count too.
    if ending == Ending::Time {
        partition.workload.stop_assigning(until);
        ending = if partition.workload.is_done() {
            Ending::Done
        } else {
            partition.run(end + scenario.run.stall_limit, control.stop, progress)
        };
    }
    partition.assert_conserved();
    let after = Totals::of(&partition);

    let at = partition.engine.time();
    let end = match ending {
        Ending::Done => End::Complete,
        Ending::Stopped => End::Stopped,
        Ending::Deadlock => End::Stalled { at, diagnosis: deadlock(network, &partition) },
        // Time after the drain: something is still on its way after all that waiting.
        Ending::Stuck | Ending::Stalled | Ending::Time => {
            let diagnosis = format!("nothing moves at {at}: {}", partition.workload.diagnose());
            End::Stalled { at, diagnosis }
        }
    };
    let rows = partition.workload.rows();
    let mut summary = Summary::new(Kind::Sim, env!("CARGO_PKG_VERSION"), ScenarioName::default());
    summary.seed = Some(seed);
    partition.workload.summarise(&mut summary, &rows, span);
    fill_network(&mut summary, network, roles, &partition, [&before, &within, &after]);
    for (key, figures) in
        partition.techniques.figures(&RunView { scenario, network, engine: &partition.engine })
    {
        summary.techniques.insert(key.to_owned(), figures);
    }
    summary.speed = Some(meter.stop(&partition.engine.fabric));
    let utilisation = utilisation(network, [&before, &within]);
    let finished = Finished {
        network,
        roles,
        partition: &partition,
        connections: &connections,
        rows: &rows,
        utilisation: &utilisation,
    };
    let picture = finished.picture();
    summary.ports = finished.ports(picture.late.as_ref());
    let capture = captured.map(|port| capture(network, &partition, &connections, port));
    let records = records(scenario, network, roles, &partition, &connections, rows);
    Ok(Outcome { end, summary, records, picture: Some(picture), capture })
}

/// The outcome of a run that was stopped while its network was being built.
fn unbuilt<W: Measured>(seed: u64, meter: &Meter, engine: &Engine, workload: &W) -> Outcome {
    let span = Span { from: Instant::START, until: Instant::START };
    let mut summary = Summary::new(Kind::Sim, env!("CARGO_PKG_VERSION"), ScenarioName::default());
    summary.seed = Some(seed);
    workload.summarise(&mut summary, &[], span);
    summary.speed = Some(meter.stop(&engine.fabric));
    Outcome { end: End::Stopped, summary, records: Records::default(), picture: None, capture: None }
}

/// The round-trip time that old connections have measured: of the links and of the readout.
fn warm_rtt(scenario: &Scenario) -> Duration {
    scenario.link.delay * 8 + Duration::from_micros(100)
}

/// Sets up the recordings that every run makes.
fn observe<W: Workload>(scenario: &Scenario, network: &Network, partition: &mut Partition<W>) {
    let run = scenario.run.warmup + scenario.run.duration;
    let outputs = network.ports().filter(|&port| !network.is_host(network.source(port))).collect();
    partition.observer.timeline = TimelineRecorder::new(run.get(), outputs, 2 * network.links.len());
    partition.observer.trace.from = scenario.run.warmup.get();
}

/// Sets up the recordings that the scenario asks for.
fn watch<W: Workload>(scenario: &Scenario, network: &Network, partition: &mut Partition<W>) {
    let record = &scenario.record;
    let mut ports: Vec<PortIndex> =
        record.queues.iter().flat_map(|pattern| network.ports_named(pattern)).collect();
    ports.retain(|&port| network.nodes[network.source(port) as usize].kind != NodeKind::Host);
    ports.sort_unstable();
    ports.dedup();
    if !ports.is_empty() && !record.queue_interval.is_zero() {
        partition.observer.watch = Some(Watch {
            ports,
            interval: record.queue_interval.get(),
            next: scenario.run.warmup.get(),
            samples: Vec::new(),
        });
    }
    for &flow in &record.windows {
        // The side that answers sends the data.
        partition.engine.trace_windows(2 * flow + 1);
    }
}

/// The first port that `record.capture` names.
fn captured_port(scenario: &Scenario, network: &Network) -> Result<PortIndex, Error> {
    let name = &scenario.record.capture;
    match network.ports_named(name).first() {
        Some(&port) => Ok(port),
        None => Err(Error::NoSuchLink { name: name.clone() }),
    }
}
