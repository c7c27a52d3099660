//! The plan's results, section by section.

use fanin_scenario::{BackgroundKind, Scenario};
use fanin_units::{Bytes, Duration, Frequency, Packets, Rate, Ratio};

use crate::bounds::*;
use crate::derived::{Count, Derivation, Derived, Factor, brief, ratio_of};
use crate::event_burst::Burst;
use crate::plan::{LinkLoad, Section};
use crate::queues::Queue;
use crate::system::{SystemFigures, slow_start_rounds};
use crate::techniques::TECHNIQUES;
use crate::wire::{ack_bytes, load, overhead_share, payload_share_max, wire_bytes};

/// Returns the segments for each acknowledgement: two if receivers may delay acknowledgements.
fn segments_per_ack(s: &Scenario) -> u64 {
    if s.transport.delayed_ack { 2 } else { 1 }
}

/// Name of the class of links to the loggers. Stored events cross them after the collectors.
const TO_LOGGERS: &str = "collectors->logger";

pub(crate) fn link_loads(s: &Scenario, system: &SystemFigures) -> Vec<LinkLoad> {
    let forward = system.offered(system.answer.wire);
    let backward = system.offered(system.reverse(segments_per_ack(s)));
    let background = background_offered(s);
    let load_of = |name: &str, count: u64, rate: Rate, share: Ratio, carries_answers: bool| {
        let both = forward.saturating_add(background.filter(|_| name != TO_LOGGERS).unwrap_or_default());
        let events = format!(
            "{} × {} × {}",
            brief(system.rate.value),
            brief(Factor(system.answers_mean)),
            brief(system.answer.wire)
        );
        let offered = Derived::new(
            "offered",
            Rate::new(share.checked_of(both.get()).unwrap_or(u64::MAX)),
            match both == forward {
                true => "event rate × mean answers an event × answer on the wire × share of the traffic",
                false => {
                    "(event rate × mean answers an event × answer on the wire + background) × share of the traffic"
                }
            },
            match background.filter(|_| both != forward) {
                None => format!("{events} × {}", brief(share)),
                Some(background) => format!("({events} + {}) × {}", brief(background), brief(share)),
            },
            "thesis §4.2.1",
        );
        let reverse = Rate::new(share.checked_of(backward.get()).unwrap_or(u64::MAX));
        LinkLoad {
            name: name.to_owned(),
            count,
            rate,
            load: load(offered.value, rate, count).named(format!("load.{name}")),
            load_reverse: carries_answers
                .then(|| load(reverse, rate, count).named(format!("load_reverse.{name}"))),
            offered: offered.named(format!("offered.{name}")),
        }
    };
    let classes = system.classes.iter();
    let mut loads: Vec<LinkLoad> = classes
        .map(|class| {
            load_of(&class.name, class.count, class.rate, class.share, !class.name.contains("software"))
        })
        .collect();
    if !s.logger.accept.is_zero() && s.logger.hosts > 0 && !s.is_barrier() {
        loads.push(load_of(TO_LOGGERS, system.logger_links, s.logger.link.rate, s.logger.accept, false));
    }
    loads
}

/// Returns the rate of all background transfers on the wire; `None` without any, and for bulk data, which have no mean load.
fn background_offered(s: &Scenario) -> Option<Rate> {
    let has_load = s.background.connections > 0 && s.background.kind == BackgroundKind::Transfers;
    let each = s.background.load.checked_of(s.link.rate.get())?;
    has_load.then(|| Rate::new(each.saturating_mul(s.receivers())))
}

pub(crate) fn workload(s: &Scenario, system: &SystemFigures) -> Section {
    let (answer, answers) = (system.answer, system.answers);
    let mut rows = vec![
        Derived::new(
            "event_payload",
            system.payload,
            "answers × payload of an answer",
            format!("{answers} × {}", brief(answer.payload)),
            "thesis §4.2.1",
        )
        .erase(),
        Derived::new(
            "answer_segments",
            answer.segments,
            "⌈answer with its header / segment⌉",
            format!("⌈{} / {} B⌉", brief(system.answer_bytes), system.segments.mss()),
            "thesis §2.2.2",
        )
        .erase(),
        wire_bytes(&system.segments, system.answer_bytes, answers).named("event_wire").erase(),
        overhead_share(&answer).erase(),
        payload_share_max(&system.segments).erase(),
        system.rtt.erase(),
    ];
    if !system.request.payload.is_zero() {
        rows.push(
            wire_bytes(&system.segments, system.request.payload, answers)
                .named("event_requests_wire")
                .erase(),
        );
    }
    let segments = Packets::new(answer.segments.get() * answers);
    rows.push(ack_bytes(&system.segments, segments, segments_per_ack(s)).named("event_acks_wire").erase());
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

pub(crate) fn rates(system: &SystemFigures) -> Section {
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

/// Computes the mean collection time at which all units are busy, so that events begin to wait.
fn saturating_time(system: &SystemFigures) -> Duration {
    let time = u128::from(system.units) * 1_000_000_000_000_000 / u128::from(system.rate.value.get().max(1));
    Duration::new(u64::try_from(time).unwrap_or(u64::MAX)).saturating_sub(system.processing)
}

pub(crate) fn windows(s: &Scenario, system: &SystemFigures, last: &Queue) -> Section {
    let mtu = Bytes::new(system.segments.mtu);
    let flows = system.answers_at_once();
    let bdp = bandwidth_delay_product(system.last_hop, system.rtt.value);
    let mut rows = vec![bdp.erase()];
    rows.push(packets_of(bdp.value, mtu).erase());
    if !bdp.value.is_zero() {
        rows.push(overload(flows, mtu, bdp.value).erase());
    }
    if let Some(buffer) = last.capacity {
        // All paths to one collector end in one queue, which no other collector shares.
        let range = window_range(bdp.value, buffer, flows);
        rows.extend([range.min.erase(), range.max.erase()]);
        rows.push(window_packets_max(bdp.value, buffer, flows, mtu).erase());
    }
    let of_techniques = TECHNIQUES.iter().map(|technique| (technique.window_rows)(s, system, last.capacity));
    rows.extend(of_techniques.flatten());
    Section { title: "Windows", rows }
}

pub(crate) fn buffers(system: &SystemFigures, burst: &Burst, queues: &[Queue], quantile: Ratio) -> Section {
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
    // The demand of unshaped events, even if a technique shapes them.
    let last = &queues[0];
    let frames = system.answer.buffered * system.answers_at_once() * system.overlap;
    let size = EventSize { mean: frames, sigma: system.sigma };
    let large = size.quantile(quantile.as_f64());
    if system.sigma > 0.0 {
        rows.push(large.erase());
    }
    let dedicated = peak_occupancy(large.value, last.inflow, last.outflow).named("dedicated_buffer_needed");
    rows.push(dedicated.erase());
    // First come, first served lies between the two: at random at first, and more and more in turn as the run goes on.
    for (assignment, name) in [
        (PortChoice::InTurn, "shared_buffer_needed.in_turn"),
        (PortChoice::AtRandom, "shared_buffer_needed.at_random"),
    ] {
        let shared = SharedLoad {
            size: EventSize { mean: system.answer.buffered * system.answers_at_once(), sigma: system.sigma },
            rate: Frequency::new((system.rate.value.get() / system.racks).max(1)),
            inflow: last.inflow,
            outflow: last.outflow,
            ports: system.collectors / system.racks,
            assignment,
        };
        let several = system.collectors > system.racks && system.steps.len() == 1 && !system.is_closed_loop;
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

pub(crate) fn credits(s: &Scenario, system: &SystemFigures, last: &Queue) -> Section {
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
    rows.extend(TECHNIQUES.iter().flat_map(|technique| (technique.credit_rows)(s, system)));
    Section { title: "Credits", rows }
}

pub(crate) fn techniques(s: &Scenario, system: &SystemFigures, burst: &Burst) -> Section {
    let mut rows = Vec::new();
    let frame = system.segments.wire_max();
    // The rings of the network, or else the rings that the network would need, one for each collector.
    let rings =
        system.classes.iter().position(|class| class.queue.as_ref().is_some_and(|queue| queue.has_rings));
    let ring_at = rings.and_then(|at| system.classes[at].queue.as_ref());
    let ring = ring_at.map_or(&s.tor.daqring, |queue| &system.switches[queue.switch].settings.daqring);
    if let Some(at) = rings {
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
            // The limits of rings add up on the ring's own port, and on the ports behind it.
            let behind = system.classes[at..].iter().filter_map(|class| Some((class, class.queue.as_ref()?)));
            let sums = behind.map(|(class, queue)| ring_rate_sum(queue.sharers, ring.rate, class.rate));
            let (sum, share) = sums.max_by_key(|(_, share)| share.value).expect("the ring's own port");
            rows.extend([sum.erase(), share.erase()]);
            let packets = Packets::new(system.answer.segments.get() * system.answers);
            if packets.checked_times(frame).and_then(|bytes| ring.rate.checked_time_to_send(bytes)).is_some()
            {
                rows.push(ring_drain_time(packets, frame, ring.rate).erase());
            }
        }
    } else {
        let packets = Packets::new(system.answer.segments.get() * system.answers_at_once() * system.overlap);
        rows.push(ring_memory(system.collectors, packets, ring.slot).named("ring_memory_needed").erase());
    }
    rows.extend(TECHNIQUES.iter().flat_map(|technique| (technique.rows)(s, system)));
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
