//! One run: from a scenario and a seed to what was measured.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fanin_report::{
    EventRow, FlowRow, IoRow, Kind, QueueRow, Records, ScenarioName, Span, Summary, WindowRow,
};
use fanin_scenario::{CongestionControl, Scenario, ShapingMethod, WindowState};
use fanin_units::{Duration, Instant};

use crate::Error;
use crate::capture::Capture;
use crate::connect::connect;
use crate::diatcp::Diatcp;
use crate::ictcp::Ictcp;
use crate::index::peer;
use crate::pacer::Pacer;
use crate::speed::Meter;
use crate::stack::stack;
use crate::workload::Plan;
use crate::world::{Ending, Watch, Workload, World};
use fanin_network::{Connection, Network, NodeKind, PortIndex, Roles, topology};

/// What the caller has to say in a run.
pub struct Control<'a> {
    /// Ends the run soon after it is set; what was measured until then is returned.
    pub stop: &'a AtomicBool,
    /// Told from time to time how far the run is: simulated time, and the time at which it ends.
    pub progress: &'a (dyn Fn(Instant, Instant) + Sync),
    /// Whether the frames on the link that the scenario names in `record.capture` are kept.
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
    /// Because it was told to stop.
    Stopped,
    /// Because nothing moved any more, though there was something left to do.
    Stalled {
        /// Simulated time when that was noticed.
        at: Instant,
        /// Who waits for whom.
        diagnosis: String,
    },
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The figures. The scenario's name and hash are the caller's to fill in.
    pub summary: Summary,
    /// The tables.
    pub records: Records,
    /// The frames seen on the captured link, if they were to be kept.
    pub capture: Option<Capture>,
}

/// Simulates a scenario. The same scenario and seed give the same outcome to the bit, figures of speed aside.
///
/// # Errors
/// Where the scenario asks for what cannot be simulated.
///
/// # Panics
/// If the simulator's own books do not balance at the end: a mistake in this crate.
pub fn run(scenario: &Scenario, seed: u64, control: &Control<'_>) -> Result<Outcome, Error> {
    let (network, roles) = topology::build(scenario)?;
    match crate::workload::plan(scenario, &network, &roles, seed)? {
        Plan::Barrier(barrier) => simulate(scenario, seed, control, &network, &roles, *barrier),
        Plan::Building(building) => simulate(scenario, seed, control, &network, &roles, *building),
    }
}

/// What a workload tells of itself beside its behaviour.
pub(crate) trait Measured: Workload {
    /// The connections, in order: connection `k` has the ends `2 k` and `2 k + 1`.
    fn connections(&self, roles: &Roles) -> Vec<Connection>;
    /// How many of them, from the first, carry bulk data: answers from their second ends to their first.
    fn bulk_connections(&self) -> u32;
    /// How many hosts have deadlines.
    fn hosts(&self) -> usize;
    /// Rows of the events or requests.
    fn rows(&self) -> Vec<EventRow>;
    /// No new work from now on: what was begun is finished.
    fn stop_assigning(&mut self, now: Instant);
    /// Fills in its figures.
    fn summarise(&self, summary: &mut Summary, rows: &[EventRow], span: Span);
}

/// Sums over the whole network, to be compared at two times.
#[derive(Clone, Default)]
struct Totals {
    at: Instant,
    frames: u64,
    bytes: u64,
    drops: u64,
    marks: u64,
    segments: u64,
    retransmits: u64,
    timeouts: u64,
    fast_retransmits: u64,
    spurious_retransmits: u64,
    port_bytes: Vec<u64>,
}

fn simulate<W: Measured>(
    scenario: &Scenario,
    seed: u64,
    control: &Control<'_>,
    network: &Network,
    roles: &Roles,
    workload: W,
) -> Result<Outcome, Error> {
    let meter = Meter::start();
    let hosts = workload.hosts();
    let connections = workload.connections(roles);
    let config = stack(&scenario.transport)?;
    let mut world = World::new(network, vec![config.clone()], hosts, workload, seed)?;
    if scenario.transport.window_state == WindowState::Warm {
        world.warm_rtt = Some(warm_rtt(scenario));
    }
    let transport = &scenario.transport;
    if transport.congestion_control == CongestionControl::Diatcp {
        let global = u32::try_from(transport.diatcp.global_window.get()).unwrap_or(u32::MAX);
        let (deadline, aware) = (scenario.workload.deadline, transport.diatcp.deadline_aware);
        world.share_receive_windows(Diatcp::new(global, config.mss, deadline, aware));
    }
    if let Some(flow_control) = &mut world.fabric.flow_control {
        flow_control.set_bulk_connections(world.workload.bulk_connections());
    }
    let is_built = connect(scenario, network, roles, &mut world, &connections, control.stop)?;
    if !is_built {
        return Ok(unbuilt(seed, &meter, &world));
    }
    if transport.congestion_control == CongestionControl::Ictcp {
        let bulk = world.workload.bulk_connections();
        let rate = |port: PortIndex| network.links[port as usize / 2].rate;
        world.adjust_windows(Box::new(Ictcp::new(config.mss)), bulk, rate);
    }
    if transport.congestion_control == CongestionControl::Sird {
        if control.capture {
            return Err(Error::unsupported(
                "record.capture",
                "a capture of SIRD's packets, which are no TCP,",
            ));
        }
        world.use_sird(&transport.sird, &config, network);
    }
    if scenario.shaping.method == ShapingMethod::Fastpass {
        let bulk = 2 * world.workload.bulk_connections() as usize;
        let pacer = Pacer::new(scenario, network, roles, &world.fabric, (&world.routes(), bulk), seed);
        world.pacer = Some(Box::new(pacer));
    }
    watch(scenario, network, &mut world);
    let captured = if control.capture { Some(captured_port(scenario, network)?) } else { None };
    if let Some(port) = captured {
        world.fabric.tap_link(port, true);
    }

    let warmup = Instant::START + scenario.run.warmup;
    let end = warmup + scenario.run.duration;
    let progress = |now: Instant| (control.progress)(now, end);
    world.start(scenario.run.stall_limit);
    let mut ending = world.run(warmup, control.stop, progress);
    let before = totals(&world);
    world.fabric.reset_marks(world.now);
    if ending == Ending::Time {
        ending = world.run(end, control.stop, progress);
    }
    let span = Span { from: warmup.min(Instant::new(world.now)), until: Instant::new(world.now) };
    let within = totals(&world);
    // What was begun in the measured time is finished, so that the slow ones count too.
    if ending == Ending::Time {
        world.workload.stop_assigning(Instant::new(world.now));
        ending = if world.workload.is_done() {
            Ending::Done
        } else {
            world.run(end + scenario.run.stall_limit, control.stop, progress)
        };
    }
    world.assert_conserved();
    let after = totals(&world);

    let stalled = |world: &World<W>| End::Stalled {
        at: Instant::new(world.now),
        diagnosis: format!("nothing moves at {}: {}", Instant::new(world.now), world.workload.diagnose()),
    };
    let end = match ending {
        Ending::Done => End::Complete,
        Ending::Stopped => End::Stopped,
        // Time after the drain: something is still on its way after all that waiting.
        Ending::Stuck | Ending::Stalled | Ending::Time => stalled(&world),
        Ending::Deadlock => {
            End::Stalled { at: Instant::new(world.now), diagnosis: deadlock(network, &world) }
        }
    };
    let rows = world.workload.rows();
    let mut summary = Summary::new(Kind::Sim, env!("CARGO_PKG_VERSION"), ScenarioName::default());
    summary.seed = Some(seed);
    world.workload.summarise(&mut summary, &rows, span);
    fill_network(&mut summary, network, roles, &world, [&before, &within, &after]);
    crate::techniques::fill(&mut summary, scenario, network, &world);
    summary.speed = Some(meter.stop(&world));
    let names: Vec<Arc<str>> = network.nodes.iter().map(|node| node.name.as_str().into()).collect();
    let records = Records {
        queues: queue_rows(network, &world),
        flows: flow_rows(&world, &connections, &names),
        io: io_rows(scenario, network, &world, roles, &rows),
        windows: window_rows(&world),
        events: rows,
    };
    let capture = captured.map(|port| Capture {
        link: network.port_name(port),
        rate: network.links[port as usize / 2].rate,
        framing: network.framing,
        window_scale: config.window_scale,
        ends: connections
            .iter()
            .flat_map(|wanted| [wanted.nodes, [wanted.nodes[1], wanted.nodes[0]]])
            .collect(),
        nodes: network.nodes.iter().map(|node| node.name.clone()).collect(),
        frames: world.tapped.iter().filter(|seen| seen.port / 2 == port / 2).copied().collect(),
    });
    Ok(Outcome { end, summary, records, capture })
}

/// What a run gives that was stopped while its network was being built: that it was, and no figures but those of speed.
fn unbuilt<W: Measured>(seed: u64, meter: &Meter, world: &World<W>) -> Outcome {
    let span = Span { from: Instant::START, until: Instant::START };
    let mut summary = Summary::new(Kind::Sim, env!("CARGO_PKG_VERSION"), ScenarioName::default());
    summary.seed = Some(seed);
    world.workload.summarise(&mut summary, &[], span);
    summary.speed = Some(meter.stop(world));
    Outcome { end: End::Stopped, summary, records: Records::default(), capture: None }
}

/// The circle of ports that wait for one another.
fn deadlock<W: Workload>(network: &Network, world: &World<W>) -> String {
    let ports = world.fabric.flow_control.as_ref().map_or(&[][..], |control| &control.deadlock);
    let names: Vec<String> = ports.iter().map(|&port| network.port_name(port)).collect();
    format!(
        "PAUSE has come to a deadlock at {}: {} are stopped, and what came in by each waits behind the next, the last \
         behind the first; {}",
        Instant::new(world.now),
        names.join(", "),
        world.workload.diagnose()
    )
}

/// The round-trip time that old connections know: the links' and the readout's.
fn warm_rtt(scenario: &Scenario) -> Duration {
    scenario.link.delay * 8 + Duration::from_micros(100)
}

/// Sets up what the scenario wants to see.
fn watch<W: Workload>(scenario: &Scenario, network: &Network, world: &mut World<W>) {
    let record = &scenario.record;
    let mut ports: Vec<PortIndex> =
        record.queues.iter().flat_map(|pattern| network.ports_named(pattern)).collect();
    ports.retain(|&port| network.nodes[network.source(port) as usize].kind != NodeKind::Host);
    ports.sort_unstable();
    ports.dedup();
    if !ports.is_empty() && !record.queue_interval.is_zero() {
        world.watch = Some(Watch {
            ports,
            interval: record.queue_interval.get(),
            next: scenario.run.warmup.get(),
            samples: Vec::new(),
        });
    }
    debug_assert_eq!(world.ends_len() as u64, 2 * scenario.connections_total(), "connections");
    for &flow in &record.windows {
        // Windows matter at the side that answers.
        world.trace_windows(2 * flow + 1);
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

/// The traffic of the events that the scenario wants to see, on the links of their collectors.
fn io_rows<W: Workload>(
    scenario: &Scenario,
    network: &Network,
    world: &World<W>,
    roles: &Roles,
    rows: &[EventRow],
) -> Vec<IoRow> {
    let mut io = Vec::new();
    for row in rows.iter().filter(|row| scenario.record.events.contains(&row.id)) {
        let (Some(first), Some(last)) = (row.first_request_ps, row.last_byte_ps) else { continue };
        let node = roles.collectors[row.collector as usize];
        let (mut to_collector_bytes, mut from_collector_bytes) = (0, 0);
        for seen in &world.tapped {
            if !(first..=last).contains(&seen.at.get()) {
                continue;
            }
            if network.destination(seen.port) == node {
                to_collector_bytes += u64::from(seen.wire_bytes);
            } else if network.source(seen.port) == node {
                from_collector_bytes += u64::from(seen.wire_bytes);
            } else {
                continue;
            }
            let since_request_ps = seen.at.get() - first;
            io.push(IoRow { event: row.id, since_request_ps, to_collector_bytes, from_collector_bytes });
        }
    }
    io
}

fn totals<W: Workload>(world: &World<W>) -> Totals {
    let mut totals = Totals {
        at: Instant::new(world.now),
        frames: world.frames_sent,
        bytes: world.wire_bytes_sent,
        port_bytes: world.fabric.ports.iter().map(|port| port.link.arrived_bytes()).collect(),
        ..Totals::default()
    };
    (totals.drops, totals.marks) = world.fabric.drops_and_marks();
    [
        totals.segments,
        totals.retransmits,
        totals.timeouts,
        totals.fast_retransmits,
        totals.spurious_retransmits,
    ] = world.counts();
    totals
}

/// Fills in the figures of network and transport: what was counted after the warm-up, the drain included; the loads
/// are those of the measured time.
fn fill_network<W: Workload>(
    summary: &mut Summary,
    network: &Network,
    roles: &Roles,
    world: &World<W>,
    [before, within, after]: [&Totals; 3],
) {
    let collectors: std::collections::BTreeSet<u32> = roles.collectors.iter().copied().collect();
    let reverse = (0..2 * network.links.len() as PortIndex)
        .filter(|&port| collectors.contains(&network.source(port)))
        .map(|port| after.port_bytes[port as usize] - before.port_bytes[port as usize])
        .sum();
    summary.network = Some(fanin_report::Network {
        packets: Some(after.frames - before.frames),
        bytes: Some(after.bytes - before.bytes),
        reverse_bytes: Some(reverse),
        drops: Some(after.drops - before.drops),
        ecn_marks: Some(after.marks - before.marks),
        pauses: world.fabric.pause_figures(world.now).map(|figures| figures.pauses),
        queue_bytes_max: world.fabric.queue_bytes_max(),
    });
    summary.tcp = world.sird.is_none().then(|| fanin_report::Tcp {
        segments: Some(after.segments - before.segments),
        retransmits: Some(after.retransmits - before.retransmits),
        timeouts: Some(after.timeouts - before.timeouts),
        fast_retransmits: Some(after.fast_retransmits - before.fast_retransmits),
        spurious_retransmits: Some(after.spurious_retransmits - before.spurious_retransmits),
    });
    let seconds = within.at.saturating_since(before.at).as_secs_f64();
    if seconds == 0.0 {
        return;
    }
    let share = |port: PortIndex| {
        let bytes = within.port_bytes[port as usize] - before.port_bytes[port as usize];
        bytes as f64 * 8.0 / seconds / network.links[port as usize / 2].rate.get() as f64
    };
    let busiest = |ports: &mut dyn Iterator<Item = PortIndex>| ports.map(share).max_by(f64::total_cmp);
    let is_host = |node: u32| network.nodes[node as usize].kind == NodeKind::Host;
    let ports = || 0..2 * network.links.len() as PortIndex;
    summary.load = Some(fanin_report::Load {
        last_hop: busiest(&mut ports().filter(|&port| collectors.contains(&network.destination(port)))),
        uplink: busiest(
            &mut ports()
                .filter(|&port| !is_host(network.source(port)) && !is_host(network.destination(port))),
        ),
    });
}

fn queue_rows<W: Workload>(network: &Network, world: &World<W>) -> Vec<QueueRow> {
    let Some(watch) = &world.watch else { return Vec::new() };
    let names: std::collections::BTreeMap<PortIndex, Arc<str>> =
        watch.ports.iter().map(|&port| (port, network.port_name(port).into())).collect();
    let mut rows: Vec<QueueRow> = watch
        .samples
        .iter()
        .map(|sample| QueueRow {
            queue: names[&sample.port].clone(),
            time_ps: sample.at.get(),
            queue_bytes: sample.queue.bytes,
            queue_frames: sample.queue.frames,
            drops: sample.queue.drops,
            ecn_marks: sample.queue.marks,
            limit_bytes: None,
        })
        .collect();
    rows.sort_by(|one, other| (&one.queue, one.time_ps).cmp(&(&other.queue, other.time_ps)));
    rows
}

/// One row for each direction that carried data.
fn flow_rows<W: Workload>(world: &World<W>, connections: &[Connection], names: &[Arc<str>]) -> Vec<FlowRow> {
    let name = |end: usize| &names[connections[end / 2].nodes[end % 2] as usize];
    (0..world.ends_len())
        .filter_map(|end| {
            if world.is_silent(end as u32) {
                return None;
            }
            let (stats, acked_bytes) = world.end_stats(end as u32);
            Some(FlowRow {
                flow: end as u64 / 2,
                source: name(end).clone(),
                destination: name(peer(end as u32) as usize).clone(),
                acked_bytes,
                segments: stats.segments,
                retransmits: stats.retransmits,
                timeouts: Some(stats.timeouts),
                fast_retransmits: Some(stats.fast_retransmits),
                spurious_retransmits: Some(stats.spurious_retransmits),
                cwnd_packets_max: None,
                rtt_min_ps: None,
                rtt_smoothed_ps: (!stats.srtt.is_zero()).then(|| stats.srtt.get()),
            })
        })
        .collect()
}

fn window_rows<W: Workload>(world: &World<W>) -> Vec<WindowRow> {
    world
        .windows
        .iter()
        .map(|sample| WindowRow {
            flow: u64::from(sample.end / 2),
            time_ps: sample.at.get(),
            cwnd_bytes: sample.cwnd,
            rwnd_bytes: None,
            in_flight_bytes: sample.in_flight,
        })
        .collect()
}
