//! Ports that can be stopped: PAUSE (IEEE 802.3 annex 31B) and priority flow control (IEEE 802.1Qbb).
//!
//! Departures are foreseen here too. Where frames wait, only the first few have their times, the port's line; the others are parked
//! behind them in the same ring. Whatever changes what was foreseen, a stop, a signal that passes before all that waits, a frame of
//! a higher priority, takes the times of those back that have not begun to leave: they stay where they are. An occurrence is spent
//! only where a line runs low and more waits, about one in two dozen frames of a long queue.
//!
//! A switch counts what came in by a port and still waits; where that passes the upper threshold, it tells the neighbour
//! to stop, and at the lower one to go on. Memory and counts are settled when somebody looks, so that both are exact where
//! they decide anything; when a neighbour that is stopped may go on is foreseen. What is due at the instant of an arrival or of a
//! signal comes before it, as in switches without PAUSE: where nobody is ever stopped, all comes out the same.
//!
//! The signal is a frame of its own on the way back: it waits for the frame that is being sent, takes its time on the wire,
//! and works after the neighbour's reaction time. What is behind a stopped port waits wherever it is going (head-of-line
//! blocking), fills the neighbour's memory, and stops that one's neighbours in turn.
//!
//! With priority flow control bulk data (answers) are one priority, everything else another that goes first and is never
//! stopped; a stop still holds the bulk data of all receivers. A stop lasts until it is taken back: the frames that would
//! renew it before its 65535 quanta are over are left out.

use std::collections::VecDeque;
use std::ops::Range;

use fanin_queueing::{Memory, PauseSignal, PauseThresholds, Verdict};
use fanin_scenario::PauseMode;
use fanin_units::Duration;

use super::{Descriptor, Fabric, Flags, Hold, Parcel, Port, PortIndex, Schedule, SwitchTotals};
use crate::Error;
use crate::index::NIL;
use crate::occurrence::Occurrence;
use fanin_network::{Network, NodeKind};

mod accounts;
mod deadlock;
mod figures;
mod levels;
mod line;

use accounts::{Classes, Input, Level, NO_INPUT};
use line::watched;

/// A MAC control frame on the wire: 64 bytes, preamble and gap.
const SIGNAL_BYTES: u32 = 84;
/// A port that is stopped for so long is looked at: it may be part of a deadlock.
const SUSPECT: u64 = Duration::from_millis(10).get();

/// Bulk data, and what goes before it under priority flow control.
const BULK: usize = 0;
const URGENT: usize = 1;

/// The most frames of one port that are booked while others wait: few enough to be taken back often, enough to be looked
/// after seldom.
const LINE_MAX: u32 = 32;

/// Nothing is due.
const NEVER: u64 = u64::MAX;

/// How a frame came to a port.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    FromHost,
    ByLink,
    /// By a link, and it has passed the port's own limit.
    Admitted,
}

/// What became of a frame at a port that can be stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Holding {
    /// It waits, or has its time.
    Queued,
    Dropped,
}

/// One direction of a link, seen by who sends on it.
#[derive(Default)]
#[repr(C, align(64))]
struct Held {
    /// Until then the link is taken by something that is no frame, a signal, and nothing is booked behind that.
    blocked_until: u64,
    /// When its line is looked at next: what is scheduled for later is of no account.
    look_at: u64,
    /// By class: whether the neighbour has told it to stop.
    stopped: [bool; 2],
    /// Nothing waits, nothing is stopped, and there is nothing to look after but its own limit.
    is_calm: bool,
    /// A stop is for bulk data only.
    class_only: bool,
    is_switch: bool,
    /// What waits before bulk data; that is parked in the port itself.
    urgent: VecDeque<Parcel>,
    /// Signals on their way to it.
    signals: VecDeque<PauseSignal>,
    stopped_since: u64,
    stops: u64,
    stopped_for: u64,
    longest: u64,
    reaction: u64,
    link_delay: u64,
}

impl Held {
    /// The class of the frame that may go next, if any may of those that wait.
    #[inline(always)]
    fn next_class(&self, port: &Port) -> Option<usize> {
        if !self.urgent.is_empty() && !self.stopped[URGENT] {
            Some(URGENT)
        } else if port.parked_len() > 0 && !self.stopped[BULK] {
            Some(BULK)
        } else {
            None
        }
    }
}

/// A switch.
struct Node {
    /// Its memory; none where an output's own limit is all there is, which ports look after by themselves.
    memory: Option<Memory>,
    /// Inputs whose neighbours it has stopped, by their places in [`HeldPorts::inputs`].
    stopping: Vec<u32>,
    /// Its outputs, in [`HeldPorts::outputs`], and its inputs, in [`HeldPorts::inputs`].
    outputs: Range<usize>,
}

/// The queues of all ports of a network in which some can be stopped.
pub(crate) struct HeldPorts {
    ports: Vec<Held>,
    /// By switch, then by number.
    inputs: Vec<Input>,
    /// Of each of them.
    levels: Vec<Level>,
    /// By switch number.
    nodes: Vec<Node>,
    /// The ports that leave switches, those of one together, and a time before which nothing leaves the queue of each that
    /// has not been seen to.
    outputs: Vec<PortIndex>,
    fronts: Vec<u64>,
    /// A bit for each of them that is ever due; a switch's outputs begin with a word.
    busy: Vec<u64>,
    /// How many frames a line has at most that is filled from what waits, and with how many it is filled up.
    line_max: u32,
    line_low: u32,
    /// How many it has at most where nothing waits.
    line_free: u32,
    /// What leaves of that which a stopped neighbour sent: when, and how much. Empty, kept for its memory.
    falls: Vec<(u64, u64)>,
    /// Not so where tests compare: then a switch that has stopped somebody looks at each release.
    foresees_levels: bool,
    /// The most bytes that ever waited behind one input whose neighbour can be stopped.
    level_max: u64,
    classes: Classes,
    pauses: u64,
    resumes: u64,
    checks: bool,
    /// The ports of a deadlock, once there is one: each waits for the next, the last for the first.
    pub(crate) deadlock: Vec<PortIndex>,
}

/// All links of the fabric at one moment.
struct Links<'a> {
    ports: &'a mut [Port],
    switches: &'a mut [SwitchTotals],
    now: u64,
    /// The part of a frame's bytes on the wire that a switch does not store.
    unstored: u32,
}

/// They, and what will happen.
struct Moment<'a> {
    links: Links<'a>,
    schedule: &'a mut Schedule,
}

impl HeldPorts {
    /// For a network of which a switch uses PAUSE; `memories` in the order of the switches, none where an output's own limit is
    /// all that there is.
    pub(crate) fn new(
        network: &Network,
        memories: Vec<Option<Memory>>,
        switch_of: &[u32],
    ) -> Result<Self, Error> {
        let mut ports = Vec::new();
        for port in 0..switch_of.len() {
            let link_delay = network.links[port / 2].delay.get();
            ports.push(Held { link_delay, look_at: NEVER, is_calm: true, ..Held::default() });
        }
        let (mut outputs, mut nodes, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
        for (number, memory) in (0..).zip(memories) {
            let first = outputs.len();
            for (port, _) in (0..).zip(switch_of).filter(|(_, switch)| **switch == number) {
                (ports[port as usize].is_calm, ports[port as usize].is_switch) = (memory.is_none(), true);
                outputs.push(port);
                // What leaves by a link comes back by its other direction.
                inputs.push(Input { port: port ^ 1, ..NO_INPUT });
            }
            nodes.push(Node { memory, stopping: Vec::new(), outputs: first..outputs.len() });
            // The next switch begins with a word of bits.
            outputs.resize(outputs.len().next_multiple_of(64), NIL);
            inputs.resize(outputs.len(), NO_INPUT);
        }
        for input in inputs.iter_mut().filter(|input| input.port != NIL) {
            if let NodeKind::Switch { like } = network.nodes[network.destination(input.port) as usize].kind {
                let pause = &network.switches[like].settings.pause;
                if pause.mode != PauseMode::Off {
                    input.thresholds = Some(PauseThresholds::new(pause.xoff, pause.xon)?);
                    let held = &mut ports[input.port as usize];
                    held.class_only = pause.mode == PauseMode::Priority;
                    held.reaction = pause.reaction.get();
                }
            }
        }
        let has_priorities =
            network.switches.iter().any(|kind| kind.settings.pause.mode == PauseMode::Priority);
        Ok(Self {
            ports,
            levels: inputs.iter().map(|input| Level { bytes: 0, matters_at: input.matters_at(0) }).collect(),
            inputs,
            nodes,
            fronts: vec![NEVER; outputs.len()],
            busy: vec![0; outputs.len() / 64],
            outputs,
            line_max: LINE_MAX,
            line_low: LINE_MAX / 4,
            line_free: u32::MAX,
            falls: Vec::new(),
            foresees_levels: true,
            level_max: 0,
            classes: Classes { has_priorities, bulk_ends: u32::MAX },
            pauses: 0,
            resumes: 0,
            checks: false,
            deadlock: Vec::new(),
        })
    }

    /// Connections below this number are those whose second ends answer with bulk data.
    pub(crate) fn set_bulk_connections(&mut self, connections: u32) {
        self.classes.bulk_ends = 2 * connections;
    }

    /// All frames that wait outside their ports.
    pub(crate) fn urgent(&self) -> impl Iterator<Item = Parcel> {
        self.ports.iter().flat_map(|held| &held.urgent).copied()
    }

    /// Whether the frames of a port have to wait here: not where it is a host's whose neighbour never stops it. Its order and
    /// its times are the same.
    pub(crate) fn holds(&self, network: &Network, port: PortIndex) -> bool {
        let stops = |kind| match kind {
            NodeKind::Switch { like } => network.switches[like].settings.pause.mode != PauseMode::Off,
            NodeKind::Host => false,
        };
        let is_at_host = network.nodes[network.source(port) as usize].kind == NodeKind::Host;
        let can_be_stopped = stops(network.nodes[network.destination(port) as usize].kind);
        can_be_stopped || self.classes.has_priorities || !is_at_host
    }

    /// The memory of a switch, if it has one.
    pub(crate) fn memory(&self, switch: u32) -> Option<&Memory> {
        self.nodes.get(switch as usize)?.memory.as_ref()
    }

    /// Where the inputs and the outputs of a switch begin; beyond all of them for hosts.
    pub(super) fn base(&self, switch: usize) -> u32 {
        self.nodes.get(switch).map_or(u32::MAX, |node| node.outputs.start as u32)
    }

    /// Whether a switch uses priority flow control.
    pub(super) fn counts_bulk_only(&self, switch: usize) -> bool {
        let outputs = self.nodes.get(switch).map_or(&[][..], |node| &self.outputs[node.outputs.clone()]);
        // What tells the neighbours to stop comes by the other directions of its links.
        outputs.iter().any(|&port| self.ports[port as usize ^ 1].class_only)
    }

    /// How many frames wait for a port outside it.
    pub(crate) fn urgent_len(&self, port: PortIndex) -> u64 {
        self.ports[port as usize].urgent.len() as u64
    }

    /// The memories of all switches, in which all marks are exact.
    pub(crate) fn memories(&self) -> impl Iterator<Item = &Memory> {
        self.nodes.iter().filter_map(|node| node.memory.as_ref())
    }

    /// Something that is no frame takes the link of a port until then, behind all that is booked.
    pub(super) fn block(&mut self, port: &mut Port, index: PortIndex, until: u64) {
        self.ports[index as usize].blocked_until = until;
        port.departure = until;
        port.hold = Hold::Watched;
    }

    /// Tells the neighbour at the other end of a link, by whose direction `from` frames came in, to stop or to go on.
    #[cold]
    fn signal(&mut self, moment: &mut Moment<'_>, from: PortIndex, signal: PauseSignal) {
        let index = from ^ 1;
        // It goes after the frame that is being sent, and before all that waits.
        self.catch_up(moment, index);
        self.take_back(moment, index, false);
        let back = &mut moment.links.ports[index as usize];
        let sent = moment.links.now.max(back.departure) + back.time_to_send(SIGNAL_BYTES);
        back.wire_bytes += u64::from(SIGNAL_BYTES);
        self.block(back, index, sent);
        self.book_waiting(moment, index);
        let state = &mut self.ports[from as usize];
        state.signals.push_back(signal);
        moment.schedule.insert(sent + state.link_delay + state.reaction, Occurrence::PauseSignal(from));
        match signal {
            PauseSignal::Pause => self.pauses += 1,
            PauseSignal::Resume => self.resumes += 1,
        }
        if signal == PauseSignal::Pause && !self.checks {
            self.checks = true;
            moment.schedule.insert(moment.links.now + SUSPECT, Occurrence::DeadlockCheck);
        }
    }

    /// A signal works at a port.
    fn handle_signal(&mut self, moment: &mut Moment<'_>, index: PortIndex) {
        self.catch_up(moment, index);
        let state = &mut self.ports[index as usize];
        let signal = state.signals.pop_front().expect("a signal for each of its occurrences");
        let (now, stop) = (moment.links.now, signal == PauseSignal::Pause);
        state.stopped = [stop, stop && !state.class_only];
        if stop {
            state.stops += 1;
            state.stopped_since = now;
            let class_only = state.class_only;
            self.take_back(moment, index, class_only);
        } else {
            state.stopped_for += now - state.stopped_since;
            state.longest = state.longest.max(now - state.stopped_since);
        }
        let is_line_empty = moment.links.ports[index as usize].queued() == 0;
        self.book_waiting(moment, index);
        if !stop && !is_line_empty {
            // One class, behind the other.
            self.handle_begin(moment, index);
        }
    }
}

impl Fabric {
    /// From now on the frames of all hosts wait like those of switches, for somebody who looks at how busy their links are
    /// with what is being sent.
    pub(crate) fn hold_hosts(&mut self) {
        if self.held.is_some() {
            self.ports.iter_mut().for_each(|port| port.hold = Hold::Watched);
        }
    }

    /// Gives back the memory of what has left a port by `now`, where ports can be stopped.
    pub(super) fn settle_held(&mut self, now: u64, index: PortIndex) {
        let Self { held: Some(held), ports, totals: switches, unstored_bytes, .. } = self else { return };
        held.settle(&mut Links { ports, switches, now, unstored: *unstored_bytes }, index);
    }

    /// Where ports can be stopped, starts the high-water marks of shared memories afresh.
    pub(super) fn reset_held_marks(&mut self, now: u64) {
        let Self { held: Some(held), ports, totals: switches, unstored_bytes, .. } = self else { return };
        for switch in 0..held.nodes.len() {
            held.settle_switch(&mut Links { ports, switches, now, unstored: *unstored_bytes }, switch);
            held.nodes[switch].memory.iter_mut().for_each(Memory::reset_marks);
        }
    }

    /// Queues a frame at a switch's port that may be stopped, in short where nothing is amiss there.
    #[inline(always)]
    pub(super) fn hold(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        index: PortIndex,
        parcel: Parcel,
    ) -> Holding {
        let Self { held: Some(held), ports, totals: switches, unstored_bytes, .. } = self else {
            return Holding::Dropped;
        };
        let unstored = *unstored_bytes;
        let port = &mut ports[index as usize];
        let switch = &mut switches[port.switch as usize];
        let parks = port.hold == Hold::Parks && held.parks(index, now, parcel);
        let is_calm = parks
            || port.hold == Hold::Calm && !held.passes(port, parcel)
            || held.calms_down(port, index, now, parcel);
        if !is_calm || switch.look_at <= now {
            return self.hold_carefully(schedule, now, index, parcel, Came::ByLink);
        }
        let (charge, as_it_was) = (port.charge(parcel.wire_bytes(), unstored), *switch);
        let settle = |port: &mut Port| held.release(port, as_it_was, now, unstored);
        if !port.admit(charge, switch, &mut self.is_doubtful, settle) {
            return Holding::Dropped;
        }
        let level = &mut held.levels[switch.input(parcel)];
        let counted = held.classes.count(switch, parcel, charge);
        if level.bytes + counted >= level.matters_at {
            return self.hold_carefully(schedule, now, index, parcel, Came::Admitted);
        }
        level.bytes += counted;
        if parks {
            port.park(parcel);
            return Holding::Queued;
        }
        let departure = held.plan(port, switch, now, parcel);
        port.accept(schedule, departure, index, parcel);
        Holding::Queued
    }

    /// Queues a frame at its own host's port that is watched, or where it passes others.
    #[inline(never)]
    pub(super) fn hold_at_host(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        index: PortIndex,
        parcel: Parcel,
    ) {
        let Self { held: Some(held), ports, totals: switches, .. } = self else { return };
        let port = &mut ports[index as usize];
        if held.calms_down(port, index, now, parcel) {
            let departure = held.plan(port, &switches[port.switch as usize], now, parcel);
            return port.accept(schedule, departure, index, parcel);
        }
        let sent = self.hold_carefully(schedule, now, index, parcel, Came::FromHost);
        debug_assert!(sent != Holding::Dropped, "hosts queue without limit");
    }

    /// Queues a frame at any port that may be stopped, as [`Self::hold`].
    #[inline(never)]
    pub(super) fn hold_carefully(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        index: PortIndex,
        mut parcel: Parcel,
        came: Came,
    ) -> Holding {
        let Self { held: Some(held), ports, totals: switches, unstored_bytes, .. } = self else {
            return Holding::Dropped;
        };
        let unstored = *unstored_bytes;
        let mut moment = Moment { links: Links { ports, switches, now, unstored }, schedule };
        let class = held.classes.of(parcel);
        let mut stops = false;
        let switch = moment.links.ports[index as usize].switch as usize;
        if held.classes.has_priorities || held.ports[index as usize].look_at <= now {
            held.catch_up(&mut moment, index);
        }
        if came != Came::FromHost {
            if moment.links.switches[switch].look_at <= now {
                held.look_at_levels(&mut moment, switch);
            }
            let charge = moment.links.ports[index as usize].charge(parcel.wire_bytes(), unstored);
            if came == Came::Admitted {
                // By the port itself, above.
            } else if held.nodes[switch].memory.is_none() {
                let port = &mut moment.links.ports[index as usize];
                let whole = &mut moment.links.switches[switch];
                let as_it_was = *whole;
                let settle = |port: &mut Port| held.release(port, as_it_was, now, unstored);
                if !port.admit(charge, whole, &mut self.is_doubtful, settle) {
                    return Holding::Dropped;
                }
            } else {
                held.catch_up(&mut moment, index);
                let chance = &mut self.chances[switch];
                match held.admit(&mut moment, switch, index, parcel, || (chance.bits() >> 32) as u32) {
                    Verdict::Dropped(_) => return Holding::Dropped,
                    Verdict::Accepted { marked: true } => {
                        parcel = parcel.marked();
                        self.segments[parcel.segment()].flags.insert(Flags::CE);
                    }
                    Verdict::Accepted { marked: false } => {}
                }
            }
            let whole = &moment.links.switches[switch];
            let (place, counted) = (whole.input(parcel), held.classes.count(whole, parcel, charge));
            let level = &mut held.levels[place];
            level.bytes += counted;
            if counted > 0 && level.bytes >= level.matters_at {
                stops = held.handle_rise(&mut moment, switch, place);
            }
        }
        let (state, port) = (&held.ports[index as usize], &moment.links.ports[index as usize]);
        let overtakes = held.passes(port, parcel);
        let is_first = state.urgent.is_empty() && (class == URGENT || port.parked_len() == 0);
        let has_room = port.queued() < held.line_free;
        let is_open = state.blocked_until <= now;
        if is_first && !overtakes && !state.stopped[class] && has_room && is_open {
            held.book(&mut moment, index, parcel);
            if stops {
                // Its own release may be the one that the switch has to look after.
                held.watch_levels(&mut moment, switch);
            }
            return Holding::Queued;
        }
        let state = &mut held.ports[index as usize];
        let port = &mut moment.links.ports[index as usize];
        match class {
            BULK => port.park(parcel),
            _ => state.urgent.push_back(parcel),
        }
        let has_memory = held.nodes.get(switch).is_some_and(|node| node.memory.is_some());
        (state.is_calm, port.hold) = (false, watched(port, has_memory));
        if overtakes {
            held.take_back(&mut moment, index, true);
        }
        let state = &held.ports[index as usize];
        if !state.stopped[class] && (overtakes || state.look_at == NEVER) {
            held.book_waiting(&mut moment, index);
        }
        if stops {
            held.watch_levels(&mut moment, switch);
        }
        Holding::Queued
    }

    /// More frames of a port may be booked.
    pub(crate) fn handle_booking(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        // A look that an earlier one has overtaken does nothing.
        self.with_held(schedule, now, |held, moment| held.catch_up(moment, index));
    }

    /// A switch that has stopped neighbours has given memory back.
    pub(crate) fn handle_levels(&mut self, schedule: &mut Schedule, now: u64, switch: u32) {
        self.with_held(schedule, now, |held, moment| {
            if moment.links.switches[switch as usize].look_at <= now {
                held.look_at_levels(moment, switch as usize);
            }
        });
    }

    /// A signal works at the port that it was sent to.
    pub(crate) fn handle_signal(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        self.with_held(schedule, now, |held, moment| held.handle_signal(moment, index));
    }

    fn with_held(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        handle: impl FnOnce(&mut HeldPorts, &mut Moment<'_>),
    ) {
        let Self { held: Some(held), ports, totals: switches, unstored_bytes: unstored, .. } = self else {
            return;
        };
        handle(held, &mut Moment { links: Links { ports, switches, now, unstored: *unstored }, schedule });
    }
}

#[cfg(test)]
mod tests;
