//! Proofs that no switch can refuse a frame: all bytes that can be on their way at once fit every queue.
//!
//! The bounds use only rules that the roles and TCP keep: a unit works on one event at a time, credits and static windows
//! limit what is asked for and sent, and sizes that do not vary have a largest one. They hold whatever the order of frames,
//! the policy and the paths. They say nothing where sizes have no upper bound and no window limits them.

use fanin_network::SwitchKind;
use fanin_queueing::ThresholdSettings;
use fanin_scenario::{
    Buffering, CongestionControl, EcnMode, Scenario, ShapingMethod, SizeModel, Topology, WorkloadKind,
};
use fanin_units::Bytes;

use crate::derived::brief;
use crate::system::SystemFigures;

/// The largest frame of a bare acknowledgement, or of another message of TCP's own.
const ACK_FRAME: u64 = 100;
/// Header, identifiers and flags of a message, without the names of fragments.
const MESSAGE: u64 = 64;
/// Bytes of a message for each fragment that it names or carries, without the fragment.
const NAME: u64 = 8;

/// Messages of a unit's event to and from the supervisor and the logger that can be on their way at once.
const ROLE_MESSAGES: u128 = 8;

/// All that can be on its way at once, in frames as switches store them.
struct InFlight {
    /// Data and everything else towards one collector.
    to_collector: u128,
    /// Frames of that.
    to_collector_frames: u128,
    /// Requests of all collectors, and other messages of the roles that are not data.
    requests: u128,
    /// Acknowledgements of all data.
    acks: u128,
    /// Events on their way to loggers.
    stored: u128,
    /// Everything.
    total: u128,
    /// Frames of that.
    frames: u128,
}

/// Proves that no frame can be lost, in one sentence; or says why that cannot be proven.
pub(crate) fn never_loses(s: &Scenario, system: &SystemFigures) -> Result<String, String> {
    let limited: Vec<&SwitchKind> =
        system.switches.iter().filter(|kind| kind.settings.buffering != Buffering::Unlimited).collect();
    if let Some(kind) = system.switches.iter().find(|kind| kind.settings.ecn.mode != EcnMode::Off) {
        return Err(format!("{} signals congestion early, and may drop what it cannot mark", kind.section));
    }
    if limited.is_empty() {
        return Ok("no switch has a limit".to_owned());
    }
    let all = in_flight(s, system)?;
    let rings = system.classes.iter().filter_map(|class| {
        let queue = class.queue.as_ref().filter(|queue| queue.has_rings)?;
        Some(system.switches[queue.switch].settings.daqring.rate).filter(|rate| !rate.is_zero())
    });
    let rates = system.classes.iter().map(|class| class.rate).chain(rings);
    let slowest = rates.min().unwrap_or(system.last_hop);
    let last_hop = slowest.checked_time_to_send(bytes(all.total));
    let sent = last_hop.and_then(|time| time.checked_add(system.rtt.value));
    if sent.is_none_or(|sent| sent >= s.transport.rto_min) {
        return Err(format!(
            "{} may be on its way at once, longer than the least time-out of {}: copies add to it",
            brief(bytes(all.total)),
            s.transport.rto_min
        ));
    }
    for kind in limited {
        fits(s, system, kind, &all)?;
    }
    Ok(format!(
        "at most {} can be on its way to one collector, {} in all, and every queue has room for its part",
        brief(bytes(all.to_collector)),
        brief(bytes(all.total))
    ))
}

fn bytes(value: u128) -> Bytes {
    Bytes::new(u64::try_from(value).unwrap_or(u64::MAX))
}

/// The most that can be on its way.
fn in_flight(s: &Scenario, system: &SystemFigures) -> Result<InFlight, String> {
    if s.transport.congestion_control == CongestionControl::Sird {
        return Err("frames of SIRD are not counted".to_owned());
    }
    if matches!(s.shaping.method, ShapingMethod::Fastpass | ShapingMethod::BarrelShifter) {
        return Err("messages of a scheduler are not counted".to_owned());
    }
    let fixed = s.is_barrier() || matches!(s.readout.fragment_size, SizeModel::Fixed(_));
    let segments = &system.segments;
    let fragments = u128::from(system.fragments);
    let (frame, mss) = (u128::from(segments.buffered(segments.mss())), u128::from(segments.mss()));
    let (units, answers) = (u128::from(system.units / system.collectors), u128::from(system.answers));
    let collectors = u128::from(system.collectors);
    // Answers that one collector can be waiting for.
    let mut outstanding = units * answers;
    if s.shaping.method == ShapingMethod::Credits {
        // One more than the credits pay for, whatever the order in which they come back.
        outstanding = outstanding.min(u128::from(s.shaping.credits) / fragments + 1);
    }
    let flows = outstanding.min(u128::from(system.senders));
    let (mut data, mut frames) = if fixed {
        let payload = system.answer.payload.get().saturating_add(MESSAGE + NAME * system.fragments);
        let answer = segments.message(Bytes::new(payload));
        (
            Some(outstanding * u128::from(answer.buffered.get())),
            outstanding * u128::from(answer.segments.get()),
        )
    } else {
        (None, u128::MAX)
    };
    if s.transport.congestion_control == CongestionControl::Static {
        // Ends of answers make frames shorter than full ones, but a window has a frame of payload in two of them.
        let window = u128::from(s.transport.static_window.get());
        let least = system.answer.segments.get() > 1;
        if fixed && least {
            data = data.map(|data| data.min(flows * window * frame * 2));
            frames = frames.min(flows * window * 2);
        }
    }
    let Some(data) = data else {
        return Err("event sizes have no upper bound".to_owned());
    };
    // A probe of each flow that waits, sent again though nothing was lost.
    let (data, frames) = (data + flows * frame, frames + flows);
    let request = u128::from(segments.message(Bytes::new(MESSAGE + NAME * system.fragments)).buffered.get())
        + u128::from(ACK_FRAME);
    // Where sources push, the supervisor tells them of each event.
    let requests = outstanding * request;
    // Assignments, decisions, and the lists of events that readouts may delete.
    let roles = if s.is_barrier() {
        0
    } else {
        units * ROLE_MESSAGES * (u128::from(MESSAGE) + u128::from(ACK_FRAME))
    };
    let clears = if s.is_barrier() {
        0
    } else {
        let group = u128::from(s.supervisor.clear_group);
        let lists = (units * collectors).div_ceil(group) + 1;
        let list = u128::from(MESSAGE) + 8 * group;
        u128::from(system.senders) * lists * (list + list.div_ceil(mss) * u128::from(ACK_FRAME))
    };
    let stored = if s.is_barrier() || s.logger.accept.is_zero() || s.logger.hosts == 0 {
        0
    } else {
        let event = u128::from(system.answer.buffered.get()) * u128::from(system.answers) + frame;
        units * collectors * (event + event / frame * u128::from(ACK_FRAME))
    };
    let to_collector = data + outstanding * u128::from(ACK_FRAME) + roles + stored / collectors.max(1) / 10;
    let acks = collectors * frames * u128::from(ACK_FRAME);
    let requests = collectors * (requests + roles) + clears;
    Ok(InFlight {
        to_collector,
        to_collector_frames: frames + outstanding + ROLE_MESSAGES * units,
        requests,
        acks,
        stored,
        total: collectors * to_collector + requests + acks + stored,
        frames: collectors * (2 * frames + 3 * outstanding + 2 * ROLE_MESSAGES * units)
            + clears / u128::from(ACK_FRAME)
            + 2 * stored.div_ceil(u128::from(ACK_FRAME)),
    })
}

/// Checks that all that can be on its way fits the queues of one kind of switch.
fn fits(s: &Scenario, system: &SystemFigures, kind: &SwitchKind, all: &InFlight) -> Result<(), String> {
    let switch = &kind.settings;
    let is_used = system.classes.iter().any(|class| {
        class.queue.as_ref().is_some_and(|queue| std::ptr::eq(&system.switches[queue.switch], kind))
    });
    // Switches with settings of their own that the network does not have.
    if !is_used && !has_other_traffic(s, kind) {
        return Ok(());
    }
    let overhead = |bytes: u128, frames: u128| bytes + frames * u128::from(switch.frame_overhead.get());
    let total = overhead(all.total, all.frames);
    let refuse = |needed: u128, room: u128| {
        Err(format!(
            "{} may be on its way at once at {}, where {} fit",
            brief(bytes(needed)),
            kind.section,
            brief(bytes(room))
        ))
    };
    let limit = |limit: Option<Bytes>| limit.map_or(u128::MAX, |limit| u128::from(limit.get()));
    let ports = limit(switch.port_limit.0).min(limit(switch.input_limit.0));
    match switch.buffering {
        Buffering::Unlimited => Ok(()),
        Buffering::Dedicated => {
            let (buffer, uplink) = (u128::from(switch.buffer.get()), u128::from(switch.uplink_buffer.get()));
            let own_ports = kind.section == "tor" && s.workload.kind != WorkloadKind::AllToAll;
            if !own_ports {
                let room = buffer.min(uplink);
                return if total <= room { Ok(()) } else { refuse(total, room) };
            }
            let collector = overhead(all.to_collector, all.to_collector_frames);
            if collector > buffer {
                return refuse(collector, buffer);
            }
            let back = overhead(back(s, system, all) + all.stored, all.frames - all.to_collector_frames);
            let room = if s.network.topology == Topology::Star { buffer } else { uplink };
            if back <= room { Ok(()) } else { refuse(back, room) }
        }
        Buffering::Shared | Buffering::Voq => {
            let room = u128::from(switch.buffer.get()).min(ports);
            if total <= room { Ok(()) } else { refuse(total, room) }
        }
        Buffering::DynamicThreshold => {
            // A port may hold α times the free memory, of which there is this much at least.
            let free = u128::from(switch.buffer.get()).saturating_sub(total);
            let threshold = ThresholdSettings { pool: switch.buffer, alpha: switch.alpha };
            let room = u128::from(threshold.threshold(bytes(free)).get()).min(ports);
            if total <= room { Ok(()) } else { refuse(total, room) }
        }
        Buffering::Daqring => {
            let slots = u128::from(switch.daqring.frames);
            let room = u128::from(switch.buffer.get());
            if all.frames <= slots && total <= room { Ok(()) } else { refuse(total, room) }
        }
    }
}

/// Core routers carry the supervisor's and the loggers' frames even where no data pass them; other kinds do not exist then.
fn has_other_traffic(s: &Scenario, kind: &SwitchKind) -> bool {
    // The software switch of a hybrid has the section of its core, but not its scheme.
    let is_core = kind.section == "core" && kind.settings.buffering == s.core.buffering;
    is_core && matches!(s.network.topology, Topology::Racks | Topology::Hybrid)
}

/// Requests and acknowledgements that can wait on the way back. Acknowledgements leave a collector no faster than its data
/// come in; where the uplink carries those of a whole rack, they do not wait for each other.
fn back(s: &Scenario, system: &SystemFigures, all: &InFlight) -> u128 {
    if s.network.topology == Topology::Star {
        return all.requests + all.acks;
    }
    let acks = u128::from(system.answer.segments.get()) * u128::from(ACK_FRAME + 38);
    let per_collector = u128::from(s.link.rate.get()) * acks / u128::from(system.answer.wire.get().max(1));
    let rack = per_collector.saturating_mul(u128::from(s.collectors.hosts_per_rack));
    if rack * 2 <= u128::from(s.uplink.rate.get()) {
        all.requests + u128::from(s.collectors.hosts_per_rack) * 2 * u128::from(ACK_FRAME)
    } else {
        all.requests + all.acks
    }
}
