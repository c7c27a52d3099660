//! Proofs that no switch can refuse a frame: every queue fits all bytes outstanding at once.
//!
//! The bounds use only rules that the roles and TCP keep. A unit works on one event at a time. Credits and static windows limit
//! requests and data. Fixed sizes, and sizes of a histogram or a file, have a maximum. The bounds hold for any order of frames,
//! policy and paths. There is no bound if sizes have no maximum and no window limits them.

use fanin_dataflow::{
    BARRIER_REQUEST_BYTES, CONTROL_BYTES_MAX, answer_bytes, clear_bytes, event_bytes, request_bytes,
};
use fanin_network::SwitchKind;
use fanin_scenario::{EcnMode, Scenario, WorkloadKind};
use fanin_units::Bytes;

use crate::derived::brief;
use crate::system::SystemFigures;
use crate::techniques::TECHNIQUES;

/// Messages between a unit, the supervisor and the logger about one event that can be in flight at once.
const ROLE_MESSAGES: u128 = 8;

/// Upper bounds of the bytes that can be in flight at once, in frames as switches store them.
struct InFlight {
    /// Bytes of data and all other messages towards one collector.
    to_collector: u128,
    /// Number of frames of `to_collector`.
    to_collector_frames: u128,
    /// Bytes of all collectors' requests, and of other messages of the roles without data.
    requests: u128,
    /// Bytes of the acknowledgements of all data.
    acks: u128,
    /// Bytes of events in flight to loggers.
    stored: u128,
    /// Bytes in the whole network.
    total: u128,
    /// Number of frames of `total`.
    frames: u128,
}

/// Most bytes that can wait without losses, for any order of frames and any overlap of events.
#[derive(Clone, Copy)]
pub(crate) struct WaitingMax {
    /// Bytes towards one collector.
    pub(crate) to_collector: Bytes,
    /// Bytes in the whole network.
    pub(crate) total: Bytes,
}

/// Computes the most bytes that can wait anywhere. An error is the reason why no bound exists. `overhead` is added to each
/// frame.
pub(crate) fn waiting_max(
    s: &Scenario,
    system: &SystemFigures,
    overhead: Bytes,
) -> Result<WaitingMax, String> {
    let all = in_flight(s, system)?;
    no_copies(s, system, &all)?;
    let with = |data: u128, frames: u128| bytes(data + frames * u128::from(overhead.get()));
    Ok(WaitingMax {
        to_collector: with(all.to_collector, all.to_collector_frames),
        total: with(all.total, all.frames),
    })
}

/// Proves that no frame can be lost. Returns the proof, or else the obstacle, in one sentence.
pub(crate) fn never_loses(s: &Scenario, system: &SystemFigures) -> Result<String, String> {
    // Settings of a switch that the network does not have are ignored.
    let present = || system.switches.iter().filter(|kind| is_present(system, kind));
    // Rings have a limit, and no layout.
    let has_limit = |kind: &&SwitchKind| {
        kind.settings.layout(&[false, kind.has_uplinks]).is_none_or(|layout| layout.size().is_some())
    };
    let limited: Vec<&SwitchKind> = present().filter(has_limit).collect();
    if let Some(kind) = present().find(|kind| kind.settings.ecn.mode != EcnMode::Off) {
        return Err(format!(
            "{} signals congestion early, and may drop frames that it cannot mark",
            kind.section()
        ));
    }
    if limited.is_empty() {
        return Ok("no switch has a limit".to_owned());
    }
    let all = in_flight(s, system)?;
    no_copies(s, system, &all)?;
    for kind in limited {
        fits(s, system, kind, &all)?;
    }
    Ok(format!(
        "at most {} can be on its way to one collector, {} in all, and every queue has room for its part",
        brief(bytes(all.to_collector)),
        brief(bytes(all.total))
    ))
}

/// Returns true if the network has a switch of this kind.
fn is_present(system: &SystemFigures, kind: &SwitchKind) -> bool {
    let is_used = system.classes.iter().any(|class| {
        class.queue.as_ref().is_some_and(|queue| std::ptr::eq(&system.switches[queue.switch], kind))
    });
    // Switches without data may carry the frames of the supervisor and the loggers.
    is_used || system.switches_used.iter().any(|&index| std::ptr::eq(&system.switches[index], kind))
}

/// Checks that all outstanding bytes are delivered before the minimum RTO. Later, retransmitted copies would add to them.
fn no_copies(s: &Scenario, system: &SystemFigures, all: &InFlight) -> Result<(), String> {
    let rings = system.classes.iter().filter_map(|class| {
        let queue = class.queue.as_ref().filter(|queue| queue.has_rings)?;
        system.switches[queue.switch].settings.daqring.rate_below(system.slowest)
    });
    let slowest = rings.min().unwrap_or(system.slowest);
    let last_hop = slowest.checked_time_to_send(bytes(all.total));
    let sent = last_hop.and_then(|time| time.checked_add(system.rtt.value));
    let t = &s.transport;
    if sent.is_none_or(|sent| sent >= t.rto_min) {
        return Err(format!(
            "{} may be on its way at once, longer than the least timeout of {}: copies add to it",
            brief(bytes(all.total)),
            t.rto_min
        ));
    }
    // Kernels shorten the delay of acknowledgements on short round trips. The delay never exceeds the larger of the setting and
    // the round trip.
    let delayed = sent.and_then(|sent| sent.checked_add(t.delayed_ack_timeout.max(sent)));
    if t.delayed_ack && delayed.is_none_or(|delayed| delayed >= t.rto_min) {
        return Err(format!(
            "acknowledgements may be delayed by {}, so that the least timeout of {} sends copies",
            t.delayed_ack_timeout, t.rto_min
        ));
    }
    Ok(())
}

fn bytes(value: u128) -> Bytes {
    Bytes::new(u64::try_from(value).unwrap_or(u64::MAX))
}

/// Returns true if all answers of a host have the same size.
pub(crate) fn is_fixed(s: &Scenario, system: &SystemFigures) -> bool {
    s.is_barrier() || system.answer_max == Some(system.answer.payload)
}

/// Computes the upper bounds of the bytes in flight.
fn in_flight(s: &Scenario, system: &SystemFigures) -> Result<InFlight, String> {
    if s.background.connections > 0 {
        return Err("background traffic fills queues, too".to_owned());
    }
    if let Some(reason) = TECHNIQUES.iter().find_map(|technique| (technique.unproven)(s)) {
        return Err(reason.to_owned());
    }
    let ack = u128::from(system.segments.ack_buffered_max());
    let framed = |message: Bytes| u128::from(system.segments.message(message).buffered.get());
    let segments = &system.segments;
    let frame = u128::from(segments.buffered(segments.mss()));
    let (units, answers) = (u128::from(system.units / system.collectors), u128::from(system.answers));
    let collectors = u128::from(system.collectors);
    // Answers for which one collector can be waiting.
    let mut outstanding = units * answers;
    for most in TECHNIQUES.iter().filter_map(|technique| (technique.outstanding_max)(s, system)) {
        // One more answer than the technique permits, in any order in which it permits them.
        outstanding = outstanding.min(u128::from(most) + 1);
    }
    let flows = outstanding.min(u128::from(system.senders));
    let Some(answer_max) = system.answer_max else {
        return Err("event sizes have no upper bound".to_owned());
    };
    let answer = segments.message(if s.is_barrier() {
        answer_max
    } else {
        answer_bytes(system.fragments, answer_max + s.readout.fragment_header * system.fragments)
    });
    let mut data = outstanding * u128::from(answer.buffered.get());
    let mut frames = outstanding * u128::from(answer.segments.get());
    // The ends of answers make frames shorter than full ones. If answers have a fixed size of several frames, any two frames of
    // a window hold at least one full payload.
    let window = TECHNIQUES.iter().find_map(|technique| (technique.window_max)(s));
    if let Some(window) = window.filter(|_| is_fixed(s, system) && system.answer.segments.get() > 1) {
        let window = u128::from(window);
        data = data.min(flows * window * frame * 2);
        frames = frames.min(flows * window * 2);
    }
    // Each waiting flow may send a tail loss probe, although nothing was lost.
    let (data, frames) = (data + flows * frame, frames + flows);
    let request = match s.is_barrier() {
        true => Bytes::new(BARRIER_REQUEST_BYTES),
        false => request_bytes(system.fragments),
    };
    let request = framed(request) + ack;
    // If sources push, the supervisor announces each event to them. Waiting requests are probed as well.
    let requests = (outstanding + flows) * request;
    // Assignments, decisions, and lists of events for readouts to delete.
    let roles = if s.is_barrier() {
        0
    } else {
        units * ROLE_MESSAGES * (framed(Bytes::new(CONTROL_BYTES_MAX)) + ack)
    };
    let clears = if s.is_barrier() {
        0
    } else {
        let group = u128::from(s.supervisor.clear_group);
        let lists = (units * collectors).div_ceil(group) + 1;
        let list = segments.message(clear_bytes(u64::from(s.supervisor.clear_group)));
        let (bytes, frames) = (u128::from(list.buffered.get()), u128::from(list.segments.get()));
        u128::from(system.senders) * lists * (bytes + frames * ack)
    };
    // Events in flight from one collector to the loggers, and their frames.
    let (stored, stored_frames) = if s.is_barrier() || s.logger.accept.is_zero() || s.logger.hosts == 0 {
        (0, 0)
    } else {
        let event = segments.message(event_bytes(answer_max * system.answers));
        (units * u128::from(event.buffered.get()), units * u128::from(event.segments.get()))
    };
    let to_collector = data + (outstanding + flows + stored_frames) * ack + roles;
    let to_collector_frames = frames + outstanding + flows + stored_frames + ROLE_MESSAGES * units;
    let acks = collectors * frames * ack;
    let requests = collectors * (requests + roles) + clears;
    let stored = collectors * (stored + stored_frames * ack);
    Ok(InFlight {
        to_collector,
        to_collector_frames,
        requests,
        acks,
        stored,
        total: collectors * to_collector + requests + acks + stored,
        frames: collectors
            * (to_collector_frames
                + frames
                + 2 * (outstanding + flows)
                + ROLE_MESSAGES * units
                + 2 * stored_frames)
            + clears / ack,
    })
}

/// Checks that the queues of one kind of switch have room for all outstanding bytes.
fn fits(s: &Scenario, system: &SystemFigures, kind: &SwitchKind, all: &InFlight) -> Result<(), String> {
    let switch = &kind.settings;
    let overhead = |bytes: u128, frames: u128| bytes + frames * u128::from(switch.frame_overhead.get());
    let total = overhead(all.total, all.frames);
    let refuse = |needed: u128, room: u128| {
        Err(format!(
            "{} may be on its way at once at {}, where {} fit",
            brief(bytes(needed)),
            kind.section(),
            brief(bytes(room))
        ))
    };
    // Outputs towards collectors (0) and towards other switches (1).
    let Some(layout) = switch.layout(&[false, kind.has_uplinks]) else {
        let slots = u128::from(switch.daqring.frames);
        let room = u128::from(switch.buffer.get());
        return if all.frames <= slots && total <= room { Ok(()) } else { refuse(total, room) };
    };
    let room = |output: usize, waiting: u128| {
        let room = layout.room(output, bytes(waiting));
        if room == Bytes::MAX { u128::MAX } else { u128::from(room.get()) }
    };
    let joins_collectors = system
        .classes
        .last()
        .and_then(|class| class.queue.as_ref())
        .is_some_and(|queue| std::ptr::eq(&system.switches[queue.switch], kind));
    if layout.couples_outputs() || !joins_collectors || s.workload.kind == WorkloadKind::AllToAll {
        let room = room(0, total).min(room(1, total));
        return if total <= room { Ok(()) } else { refuse(total, room) };
    }
    let collector = overhead(all.to_collector, all.to_collector_frames);
    if collector > room(0, collector) {
        return refuse(collector, room(0, collector));
    }
    let back = overhead(back(s, system, all) + all.stored, all.frames - all.to_collector_frames);
    let room = room(usize::from(system.has_uplinks), back);
    if back <= room { Ok(()) } else { refuse(back, room) }
}

/// Computes the requests and acknowledgements that can wait in the reverse direction. Acknowledgements leave a collector no
/// faster than its data arrive. If the uplink is fast enough for the acknowledgements of a whole rack, they do not wait for
/// each other.
fn back(s: &Scenario, system: &SystemFigures, all: &InFlight) -> u128 {
    // Small answers have more acknowledgements in relation to their bytes than answers of mean size.
    if !system.has_uplinks || !is_fixed(s, system) {
        return all.requests + all.acks;
    }
    let ack = u128::from(system.segments.ack_buffered_max());
    let acks = u128::from(system.answer.segments.get()) * u128::from(system.segments.ack_wire_max());
    let per_collector = u128::from(s.link.rate.get()) * acks / u128::from(system.answer.wire.get().max(1));
    let rack = per_collector.saturating_mul(u128::from(s.collectors.hosts_per_rack));
    if rack * 2 <= u128::from(s.uplink.rate.get()) {
        all.requests + u128::from(s.collectors.hosts_per_rack) * 2 * ack
    } else {
        all.requests + all.acks
    }
}
