//! The plan of a scenario: what it offers to every link, what would be ideal, what every queue has to hold, and what
//! each technique would have to be set to.

use std::borrow::Cow;

use fanin_scenario::{Buffering, CongestionControl, Policy, Scenario, ShapingMethod, Topology, WorkloadKind};
use fanin_units::{Bytes, Duration, Frequency, Packets, Rate, Ratio};

use crate::bounds::*;
use crate::catalogue::Catalogue;
use crate::cost::{Comparison, compare, sweep};
use crate::derived::{Count, Derivation, Derived, Factor, brief, ratio_of};
use crate::queues::{Burst, Outcome, Queue, burst, queues};
use crate::system::{PlanError, System, slow_start_rounds};
use crate::wire::{goodput_ideal, load};

/// What the planner is told beside the scenario.
#[derive(Clone, Debug)]
pub struct Options {
    /// Prices and dimensions.
    pub catalogue: Catalogue,
    /// The mean fragment size, where the scenario leaves it to a file. It overrides the scenario's own.
    pub fragment_mean: Option<Bytes>,
    /// Share of the events, or of the time, that a buffer has to be large enough for; above 0 and below 1.
    pub quantile: Ratio,
    /// Whether cost and space are wanted for networks that are not leaf-spine too, with a sweep over port counts.
    pub cost: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            catalogue: Catalogue::shipped(),
            fragment_mean: None,
            quantile: Ratio::new(999_000),
            cost: false,
        }
    }
}

/// Port counts and spines of the sweep that comes with cost and space (multi-host figs 3 and 4).
const SWEEP_PORTS: [u64; 8] = [100, 200, 300, 400, 500, 600, 700, 800];
const SWEEP_SPINES: [u64; 4] = [2, 6, 10, 20];

/// The best that the network allows, with nobody else using it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ideal {
    /// Data-collection time of a whole event, or of a request of a barrier-synchronised workload.
    pub collection_time: Derived<Duration>,
    /// Payload over that time.
    pub goodput: Derived<Rate>,
}

/// All links of one kind and what is offered to them.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkLoad {
    /// From where to where the data goes: `tor->collector`.
    pub name: &'static str,
    /// How many links there are.
    pub count: u64,
    /// Rate of one.
    pub rate: Rate,
    /// What all of them are offered together, on the wire.
    pub offered: Derived<Rate>,
    /// Their mean load.
    pub load: Derived<Ratio>,
    /// Mean load by requests and acknowledgements in the other direction.
    pub load_reverse: Option<Derived<Ratio>>,
}

/// Results that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// What they are about.
    pub title: &'static str,
    /// The results.
    pub rows: Vec<Derivation>,
}

/// Cost and space of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Ports for hosts that the scenario's network has.
    pub ports: u64,
    /// The scenario's network; `None` where the catalogue's server has too few ports for its spines.
    pub network: Option<Comparison>,
    /// A sweep over port counts and spines, where it was asked for.
    pub sweep: Vec<Comparison>,
}

/// What arithmetic says about a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The scenario's title.
    pub title: String,
    /// Whether the workload is barrier-synchronised: requests, not events.
    pub is_barrier: bool,
    /// Whether the next request waits for the one before, so that loads are the highest possible ones.
    pub is_closed_loop: bool,
    /// The best that the network allows.
    pub ideal: Ideal,
    /// What is offered to the links, from the readouts to the collectors.
    pub links: Vec<LinkLoad>,
    /// The queues, the last hop first.
    pub queues: Vec<Queue>,
    /// Everything else, in the order in which it is read.
    pub sections: Vec<Section>,
    /// What is likely to go wrong, in sentences.
    pub warnings: Vec<String>,
    /// Cost and space, for a leaf-spine network or on request.
    pub cost: Option<Cost>,
}

/// Plans a scenario that has passed its checks.
///
/// # Errors
/// If fragment sizes are known only from a file, or numbers multiply beyond what can be computed with.
pub fn plan(scenario: &Scenario, options: &Options) -> Result<Plan, PlanError> {
    assert!(
        !options.quantile.is_zero() && options.quantile < Ratio::ONE,
        "a quantile is above 0 and below 1, not {}",
        options.quantile
    );
    let system = System::new(scenario, options.fragment_mean)?;
    let burst = burst(scenario, &system);
    let queues = queues(scenario, &system, &burst, options.quantile);
    let ideal = Ideal {
        collection_time: system.ideal.clone(),
        goodput: goodput_ideal(system.payload(), system.ideal.value),
    };
    let links: Vec<LinkLoad> = link_loads(scenario, &system);
    let mut sections = vec![
        workload(scenario, &system),
        rates(&system),
        windows(scenario, &system, &queues[0]),
        buffers(&system, &burst, &queues, options.quantile),
    ];
    if scenario.workload.kind != WorkloadKind::Push && !scenario.is_barrier() {
        sections.push(credits(scenario, &system, &queues[0]));
    }
    sections.push(techniques(scenario, &system, &burst));
    let cost =
        (options.cost || scenario.network.topology == Topology::LeafSpine).then(|| cost(scenario, options));
    let mut plan = Plan {
        title: scenario.title.clone(),
        is_barrier: scenario.is_barrier(),
        is_closed_loop: system.closed_loop,
        ideal,
        links,
        queues,
        sections,
        warnings: Vec::new(),
        cost,
    };
    plan.warnings = warnings(scenario, &system, &plan);
    Ok(plan)
}

impl Plan {
    /// Whether frames are lost, and where, in one sentence.
    pub fn verdict(&self) -> (Outcome, String) {
        let first = |outcome| self.queues.iter().find(|queue| queue.outcome == outcome);
        if let Some(link) = self.links.iter().find(|link| link.load.value > Ratio::ONE) {
            let load = brief(link.load.value);
            return (Outcome::Loses, format!("cannot keep up: {} is offered {load} of its rate", link.name));
        }
        if let Some(queue) = first(Outcome::Loses) {
            return (Outcome::Loses, format!("loses frames: {}", queue.reason));
        }
        if let Some(queue) = first(Outcome::MayLose) {
            return (Outcome::MayLose, format!("may lose frames: {}", queue.reason));
        }
        if let Some(queue) = first(Outcome::HoldsBack) {
            return (Outcome::HoldsBack, format!("loses no frames but stops senders: {}", queue.reason));
        }
        (Outcome::Fits, format!("loses no frames: {}", self.queues[0].reason))
    }

    /// A result by its name.
    pub fn find(&self, name: &str) -> Option<&Derivation> {
        self.sections.iter().flat_map(|section| &section.rows).find(|row| row.name == name)
    }

    /// The mean load of the collectors' own links.
    pub fn last_hop_load(&self) -> Ratio {
        self.link_load("tor->collector").unwrap_or_default()
    }

    /// The mean load of the links into the racks; `None` in a star, which has none.
    pub fn uplink_load(&self) -> Option<Ratio> {
        self.link_load("core->tor").or_else(|| self.link_load("leaf->tor"))
    }

    fn link_load(&self, name: &str) -> Option<Ratio> {
        self.links.iter().find(|link| link.name == name).map(|link| link.load.value)
    }
}

/// Segments an acknowledgement: two where receivers may wait for the second.
fn segments_per_ack(s: &Scenario) -> u64 {
    if s.transport.delayed_ack { 2 } else { 1 }
}

fn link_loads(s: &Scenario, system: &System) -> Vec<LinkLoad> {
    let forward = system.offered(system.answer.wire);
    let backward = system.offered(system.reverse(segments_per_ack(s)));
    let classes = system.links.iter();
    classes
        .map(|class| {
            let offered = Derived::new(
                "offered",
                Rate::new(class.share.checked_of(forward.get()).unwrap_or(u64::MAX)),
                "event rate × mean answers an event × answer on the wire × share of the traffic",
                format!(
                    "{} × {} × {} × {}",
                    brief(system.rate.value),
                    brief(Factor(system.answers_mean)),
                    brief(system.answer.wire),
                    brief(class.share)
                ),
                "thesis §4.2.1",
            );
            let reverse = Rate::new(class.share.checked_of(backward.get()).unwrap_or(u64::MAX));
            LinkLoad {
                name: class.name,
                count: class.count,
                rate: class.rate,
                load: load(offered.value, class.rate, class.count).named(format!("load.{}", class.name)),
                load_reverse: class.carries_answers.then(|| {
                    load(reverse, class.rate, class.count).named(format!("load_reverse.{}", class.name))
                }),
                offered: offered.named(format!("offered.{}", class.name)),
            }
        })
        .collect()
}

fn workload(s: &Scenario, system: &System) -> Section {
    let (answer, answers) = (system.answer, system.answers);
    let mut rows = vec![
        Derived::new(
            "event_payload",
            system.payload(),
            "answers × payload of an answer",
            format!("{answers} × {}", brief(answer.payload)),
            "thesis §4.2.1",
        )
        .erase(),
        Derived::new(
            "answer_segments",
            answer.segments,
            "⌈payload / segment⌉",
            format!("⌈{} / {} B⌉", brief(answer.payload), system.framing.mss()),
            "thesis §2.2.2",
        )
        .erase(),
        system.framing.wire_bytes(answer.payload, answers).named("event_wire").erase(),
        system.framing.overhead_share(answer.payload).erase(),
        system.framing.payload_share_max().erase(),
        system.rtt.erase(),
    ];
    if !system.request.payload.is_zero() {
        rows.push(
            system.framing.wire_bytes(system.request.payload, answers).named("event_requests_wire").erase(),
        );
    }
    let segments = Packets::new(answer.segments.get() * answers);
    rows.push(system.framing.ack_bytes(segments, segments_per_ack(s)).named("event_acks_wire").erase());
    if system.steps.len() > 1 {
        for step in &system.steps {
            rows.push(
                Derived::new(
                    "step_rate",
                    Frequency::new(step.reach.checked_of(system.rate.value.get()).unwrap_or(u64::MAX)),
                    "event rate × share that gets to this step",
                    format!(
                        "{} × {}, {} answers each",
                        brief(system.rate.value),
                        brief(step.reach),
                        step.answers
                    ),
                    "ICC'15 §IV.C.4",
                )
                .named(format!("step_rate.{}", step.name))
                .erase(),
            );
        }
    }
    Section { title: "Workload", rows }
}

fn rates(system: &System) -> Section {
    let throughput = system.offered(system.answer.payload);
    let busy = system.ideal.value.saturating_add(system.processing);
    // Millihertz times picoseconds are 1e-15 of a unit.
    let occupied = u128::from(system.rate.value.get()) * u128::from(busy.get()) / 1_000_000_000;
    let occupied = u64::try_from(occupied / u128::from(system.units)).unwrap_or(u64::MAX);
    let rows = vec![
        system.rate.erase(),
        Derived::new(
            "throughput",
            throughput,
            "event rate × mean payload of an event",
            format!(
                "{} × {} × {}",
                brief(system.rate.value),
                brief(Factor(system.answers_mean)),
                brief(system.answer.payload)
            ),
            "thesis §4.2.1",
        )
        .erase(),
        Derived::new(
            "unit_occupancy",
            Ratio::new(occupied),
            "event rate × (ideal time + processing) / units",
            format!(
                "{} × ({} + {}) / {}",
                brief(system.rate.value),
                brief(system.ideal.value),
                brief(system.processing),
                system.units
            ),
            "Little's law",
        )
        .erase(),
        Derived::new(
            "collection_time_saturating",
            saturating_time(system),
            "units / event rate − processing",
            format!("{} / {} − {}", system.units, brief(system.rate.value), brief(system.processing)),
            "Little's law",
        )
        .erase(),
    ];
    Section { title: "Rates", rows }
}

/// The mean collection time at which all units are busy and events begin to wait.
fn saturating_time(system: &System) -> Duration {
    let time = u128::from(system.units) * 1_000_000_000_000_000 / u128::from(system.rate.value.get().max(1));
    Duration::new(u64::try_from(time).unwrap_or(u64::MAX)).saturating_sub(system.processing)
}

fn windows(s: &Scenario, system: &System, last: &Queue) -> Section {
    let mtu = Bytes::new(system.framing.mtu);
    let flows = system.answers_at_once();
    let bdp = bandwidth_delay_product(system.last_hop, system.rtt.value);
    let mut rows = vec![bdp.erase()];
    rows.push(packets_of(bdp.value, mtu).erase());
    if !bdp.value.is_zero() {
        rows.push(overload(flows, mtu, bdp.value).erase());
    }
    if let Some(buffer) = last.capacity {
        // The paths of one collector end in one queue; those of other collectors in others.
        let range = window_range(bdp.value, buffer, flows);
        rows.extend([range.min.erase(), range.max.erase()]);
        rows.push(window_packets_max(bdp.value, buffer, flows, mtu).erase());
        let gwnd = gwnd_range(bdp.value, buffer, 1);
        rows.extend([gwnd.min.erase(), gwnd.max.erase()]);
        let (mss, header) = (system.framing.mss(), system.framing.ip + system.framing.tcp);
        let (mss, header) = (Bytes::new(mss), Bytes::new(header));
        rows.push(m21tcp_window(buffer, flows, header).erase());
        rows.push(m21tcp_senders_max(buffer, mss, header).erase());
        let frame = Bytes::new(system.framing.buffered(mss.get())).saturating_sub(mss);
        rows.push(m21tcp_packets(buffer, flows, mss, frame).erase());
    }
    if s.transport.congestion_control == CongestionControl::Static {
        let window = s.transport.static_window;
        let in_flight = in_flight_max(flows, 1, window, mtu);
        rows.push(in_flight.erase());
        rows.push(buffer_needed(in_flight.value, bdp.value).erase());
        if system.collectors > 1 {
            let all = in_flight_max(flows, system.collectors, window, mtu).named("in_flight_max.all");
            rows.push(all.erase());
            rows.push(buffer_needed(all.value, bdp.value).named("buffer_needed.all").erase());
        }
        if !system.rtt.value.is_zero() {
            let bytes = window.checked_times(mtu).unwrap_or(Bytes::MAX);
            rows.push(throughput_bound(bytes, system.rtt.value).named("throughput_bound.flow").erase());
        }
    }
    Section { title: "Windows", rows }
}

fn buffers(system: &System, burst: &Burst, queues: &[Queue], quantile: Ratio) -> Section {
    let mut rows = Vec::new();
    for queue in queues {
        let at = |row: Derivation| {
            let name = format!("{}.{}", row.name, queue.name);
            row.named(name)
        };
        rows.push(at(queue.burst.erase()));
        rows.push(at(queue.peak.erase()));
        if let Some(share) = &queue.overflow_share {
            rows.push(at(share.erase()));
        }
    }
    // What unshaped events need, whatever shapes them now.
    let last = &queues[0];
    let frames = system.answer.buffered * system.answers_at_once() * system.overlap;
    let size = EventSize { mean: frames, sigma: system.sigma };
    let large = size.quantile(quantile.as_f64());
    if system.sigma > 0.0 {
        rows.push(large.erase());
    }
    let dedicated = peak_occupancy(large.value, last.inflow, last.outflow).named("dedicated_buffer_needed");
    rows.push(dedicated.erase());
    // A first-come-first-served farm is between the two: at random at first, and the more in turn the longer it runs.
    for (assignment, name) in [
        (Assignment::InTurn, "shared_buffer_needed.in_turn"),
        (Assignment::AtRandom, "shared_buffer_needed.at_random"),
    ] {
        let shared = SharedLoad {
            size: EventSize { mean: system.answer.buffered * system.answers_at_once(), sigma: system.sigma },
            rate: system.rate.value,
            inflow: last.inflow,
            outflow: last.outflow,
            ports: system.collectors,
            assignment,
        };
        let several = system.collectors > 1 && system.steps.len() == 1 && !system.closed_loop;
        if several && last.inflow > last.outflow && shared.port_load() < Ratio::ONE {
            rows.push(shared.memory(quantile.as_f64()).named(name).erase());
        }
    }
    if burst.is_unshaped && system.overlap > 1 {
        rows.push(
            Derived::new(
                "events_at_once",
                Count(system.overlap),
                "units of a collector",
                system.overlap.to_string(),
                "closed loop",
            )
            .erase(),
        );
    }
    Section { title: "Buffers", rows }
}

fn credits(s: &Scenario, system: &System, last: &Queue) -> Section {
    let requests = system.requests();
    let window = credit_window(system.last_hop, system.rtt.value, system.answer.payload);
    let mut rows = vec![window.erase()];
    if !system.answer.payload.is_zero() {
        rows.push(credits_for_window(window.value, &requests).erase());
    }
    if let Some(buffer) = last.capacity
        && last.inflow > last.outflow
    {
        rows.push(credits_max(buffer, last.inflow, last.outflow, &requests).erase());
    }
    if s.shaping.method == ShapingMethod::Credits {
        let credits = u64::from(s.shaping.credits);
        rows.push(credit_burst(credits, &requests).erase());
        rows.push(credit_utilisation(credits, &requests, system.last_hop, system.rtt.value).erase());
        let time = credit_collection_time(credits, &requests, system.last_hop, system.rtt.value);
        rows.extend(time.map(|time| time.erase()));
    }
    Section { title: "Credits", rows }
}

fn techniques(s: &Scenario, system: &System, burst: &Burst) -> Section {
    let mut rows = Vec::new();
    let frame = system.framing.wire_max();
    // Rings wherever the network has them, else what a ring for each collector would take.
    let (switch, per_port) = match s.network.topology {
        Topology::Racks | Topology::Hybrid => (&s.core, u64::from(s.collectors.hosts_per_rack)),
        Topology::Star | Topology::LeafSpine => (&s.tor, 1),
    };
    let ring = &switch.daqring;
    let has_rings = switch.buffering == Buffering::Daqring
        || (s.network.topology == Topology::Hybrid && s.network.hybrid.host_ports > 0);
    if has_rings {
        let slots = Packets::new(u64::from(ring.frames));
        rows.push(ring_memory(system.collectors, slots, ring.slot).erase());
        rows.push(
            Derived::new(
                "ring_fill_max",
                ratio_of(burst.packets.get(), slots.get()),
                "packets of the burst / slots",
                format!("{} / {}", burst.packets.get(), slots.get()),
                "LCN'15, buffering",
            )
            .erase(),
        );
        if !ring.rate.is_zero() {
            let port = if s.network.topology == Topology::Star { s.link.rate } else { s.uplink.rate };
            let ports = if s.network.topology == Topology::Star {
                1
            } else {
                u64::from(s.network.cores * s.network.uplinks_per_core)
            };
            let (sum, share) = ring_rate_sum(per_port, ring.rate, port * ports);
            rows.extend([sum.erase(), share.erase()]);
            let packets = Packets::new(system.answer.segments.get() * system.answers);
            rows.push(ring_drain_time(packets, frame, ring.rate).erase());
        }
    } else {
        let packets = Packets::new(system.answer.segments.get() * system.answers_at_once() * system.overlap);
        rows.push(ring_memory(system.collectors, packets, ring.slot).named("ring_memory_needed").erase());
    }
    let edge = s.readout.link.rate.max(s.link.rate);
    let mtus = u64::from(s.shaping.fastpass.slot_mtus);
    rows.push(fastpass_slots(edge, frame, mtus).erase());
    if !s.shaping.fastpass.clock_error.is_zero() {
        rows.push(fastpass_queue_max(s.shaping.fastpass.clock_error, system.last_hop, frame).erase());
    }
    let t = &s.transport;
    rows.push(retransmission_timeout(system.rtt.value, s.readout.response_delay_sd, t.rto_min).erase());
    let undisturbed = system.ideal.value.saturating_add(system.processing);
    if !undisturbed.is_zero() {
        rows.push(timeout_slowdown(undisturbed, t.rto_min, 1).erase());
    }
    let rounds = slow_start_rounds(system.answer.segments, t.initial_window);
    rows.push(
        Derived::new(
            "slow_start_rounds",
            Count(rounds),
            "round trips until a window that doubles has sent an answer",
            format!("{} segments from a window of {}", system.answer.segments.get(), t.initial_window.get()),
            "RFC 5681 §3.1",
        )
        .erase(),
    );
    Section { title: "Techniques", rows }
}

fn cost(s: &Scenario, options: &Options) -> Cost {
    let n = &s.network;
    let racks = u64::from(s.collectors.racks);
    let (ports, spines) = match n.topology {
        // Every host has one link into each plane.
        Topology::LeafSpine => {
            let planes = u64::from(n.leaf_spine.planes);
            (planes * (system_hosts(s) + racks), u64::from(n.leaf_spine.spines))
        }
        Topology::Racks | Topology::Hybrid => {
            let cores = u64::from(n.cores);
            let sources = match n.readouts_per_group {
                0 => system_hosts(s) * u64::from(s.readout.links_per_host),
                group => system_hosts(s).div_ceil(u64::from(group)) * cores,
            };
            (sources + racks * cores * u64::from(n.uplinks_per_core), SWEEP_SPINES[1])
        }
        Topology::Star => (system_hosts(s) + s.collectors_total(), SWEEP_SPINES[1]),
    };
    Cost {
        ports,
        network: compare(ports, spines, &options.catalogue).ok(),
        sweep: if options.cost { sweep(&SWEEP_PORTS, &SWEEP_SPINES, &options.catalogue) } else { Vec::new() },
    }
}

fn system_hosts(s: &Scenario) -> u64 {
    u64::from(s.senders())
}

fn warnings(s: &Scenario, system: &System, plan: &Plan) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |is_wrong: bool, text: String| {
        if is_wrong {
            warnings.push(text);
        }
    };
    for link in &plan.links {
        let (load, count) = (brief(link.load.value), link.count);
        warn(
            link.load.value > Ratio::ONE,
            format!(
                "{} is offered {load} of what its {count} links carry; events pile up without end",
                link.name
            ),
        );
    }
    let value = |name: &str| plan.find(name).map(|row| row.value.clone());
    let base = |name: &str| value(name).map_or(0, |value| value.base_value());
    warn(
        base("unit_occupancy") > 1_000_000 && !system.closed_loop,
        format!(
            "{} units are not enough: {} x ({} + {}) keeps {} of them busy",
            system.units,
            brief(system.rate.value),
            brief(system.ideal.value),
            brief(system.processing),
            value("unit_occupancy").map_or_else(String::new, |value| value.to_string())
        ),
    );
    if let Some(share) = value("credit_utilisation") {
        warn(
            share.base_value() < 1_000_000,
            format!(
                "{} credits keep only {share} of a collector's link busy; {} are needed",
                s.shaping.credits,
                value("credits_for_window").map_or_else(String::new, |value| value.to_string())
            ),
        );
    }
    let t = &s.transport;
    let flows = system.answers_at_once();
    if t.congestion_control == CongestionControl::Static {
        let window = base("in_flight_max");
        warn(
            window < base("bdp"),
            format!(
                "windows of {} leave the last hop idle: together they are below its BDP",
                t.static_window
            ),
        );
        warn(
            t.static_window == Packets::new(1) && t.delayed_ack,
            "a window of 1 packet waits for every delayed acknowledgement".to_owned(),
        );
    }
    if t.congestion_control == CongestionControl::M21tcp {
        let most = base("m21tcp_senders_max");
        warn(
            flows > most,
            format!("{flows} senders are more than the {most} for which the switch can grant a full segment"),
        );
    }
    if t.congestion_control == CongestionControl::Dctcp
        && let Some(capacity) = plan.queues[0].capacity
    {
        let frame = Bytes::new(system.framing.buffered(system.framing.mss()));
        let least = frame.checked_mul(flows.saturating_mul(t.dctcp.window_min.get())).unwrap_or(Bytes::MAX);
        let room = capacity.saturating_add(Bytes::new(base("bdp")));
        warn(
            least > room,
            format!(
                "DCTCP cannot help: {flows} flows at their least of {} each are {}, more than {} of buffer and path",
                t.dctcp.window_min,
                brief(least),
                brief(room)
            ),
        );
    }
    if let Some(share) = value("ring_rate_share") {
        warn(
            share.base_value() > 1_000_000,
            format!("the limits of the rings on one port add up to {share} of its rate"),
        );
    }
    if !system.closed_loop && base("ring_drain_time") > 0 {
        let each = u128::from(system.collectors) * 1_000_000_000_000_000
            / u128::from(system.rate.value.get().max(1));
        let drain = Duration::new(base("ring_drain_time"));
        warn(
            u128::from(drain.get()) > each,
            format!("a ring lets an event out in {}, but the next comes sooner", brief(drain)),
        );
    }
    warn(
        base("slow_start_rounds") > 1
            && t.congestion_control != CongestionControl::Static
            && (t.slow_start_after_idle || t.congestion_control == CongestionControl::Cubic),
        format!(
            "an answer needs {} round trips in slow start; the ideal time counts one",
            base("slow_start_rounds")
        ),
    );
    warn(
        s.supervisor.policy == Policy::UnitRoundRobin
            && s.collectors.units_per_host > 1
            && !s.is_barrier()
            && !system.closed_loop,
        format!(
            "unit-round-robin gives {} events in a row to the same collector, whose link they share",
            s.collectors.units_per_host
        ),
    );
    let (outcome, _) = plan.verdict();
    warn(
        matches!(outcome, Outcome::Loses | Outcome::MayLose) && base("timeout_slowdown") > 0,
        format!(
            "a lost tail costs a timeout of {}: {} times the time of an undisturbed event",
            t.rto_min,
            value("timeout_slowdown").map_or_else(String::new, |value| value.to_string())
        ),
    );
    warnings
}

/// The name that a link or queue has in keys: arrows become dots.
pub(crate) fn key(name: &str) -> Cow<'_, str> {
    if name.contains("->") { Cow::Owned(name.replace("->", ".")) } else { Cow::Borrowed(name) }
}
