//! Ports that can be stopped: PAUSE (IEEE 802.3 annex 31B) and priority flow control (IEEE 802.1Qbb).
//!
//! Departures are foreseen here too, but where frames wait only of the first few, the port's line: those go onto the link with
//! their times like the frames of a plain port, and lie in its ring. Whatever changes what was foreseen, a stop, a signal that passes before all that
//! waits, a frame of a higher priority, takes those back that have not begun to leave. An occurrence is spent only where a
//! line runs low and more waits, about one in a dozen frames of a long queue.
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
use fanin_units::{Duration, Instant};

use super::{
    Descriptor, Fabric, Flags, Frame, Hold, INDEX_BITS, Parcel, Port, PortIndex, Schedule, SwitchTotals,
};
use crate::Error;
use crate::network::{Network, NodeKind};
use crate::prefetch::prefetch;

mod deadlock;
mod figures;
mod levels;

pub(crate) use figures::PauseFigures;

/// A port's line runs low, or the link is free behind a signal.
pub(crate) const BOOKING: u32 = 5;
/// A signal to stop or go on works.
pub(crate) const SIGNAL: u32 = 6;
/// It is time to look for a deadlock.
pub(crate) const DEADLOCK_CHECK: u32 = 7;
/// A switch that has stopped a neighbour gives memory back.
pub(crate) const LEVELS: u32 = 10;

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

/// A frame that waits behind so many others is fetched.
const FRAMES_AHEAD: usize = 8;

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
    Queued {
        /// Nothing else is there, and the link leads to its destination.
        is_next: bool,
    },
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
    /// By class; one behind the other in memory, since they wait for so long that they have left the near caches.
    waiting: [VecDeque<Parcel>; 2],
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
    fn may_go(&self, class: usize) -> bool {
        !self.stopped[class] && !self.waiting[class].is_empty()
    }
}

/// One direction of a link, seen by who receives from it: what came in by it and waits there.
#[derive(Default)]
#[repr(C, align(64))]
struct Input {
    /// At least as much as there is; exact where it could matter.
    level: u64,
    /// From here on it matters.
    matters_at: u64,
    thresholds: Option<PauseThresholds>,
    /// While its neighbour is stopped: not before this it may go on.
    falls_at: u64,
    /// How many picoseconds a byte took to leave when that was found.
    pace: u32,
    /// The port that it is.
    port: PortIndex,
    /// Whether only bulk data count.
    class_only: bool,
}

impl Input {
    /// After a change of what was signalled, or of the most that any input ever held.
    fn watch(&mut self, level_max: u64) {
        self.matters_at = match self.thresholds {
            Some(thresholds) if !thresholds.is_paused() => thresholds.xoff().get().min(level_max + 1),
            _ => level_max + 1,
        };
    }
}

impl SwitchTotals {
    /// Where the accounts are of what a frame in the switch came in by.
    #[inline(always)]
    fn input(&self, parcel: Parcel) -> usize {
        self.base as usize + usize::from(parcel.input())
    }

    /// A port's place among the outputs of all switches; none of them at a host.
    #[inline(always)]
    fn slot(&self, port: &Port) -> usize {
        self.base as usize + usize::from(port.place.output)
    }
}

/// Which frames are of which class.
#[derive(Clone, Copy)]
struct Classes {
    has_priorities: bool,
    /// Ends below this are those of connections whose second ends answer with bulk data.
    bulk_ends: u32,
}

impl Classes {
    #[inline(always)]
    fn of(self, parcel: Parcel) -> usize {
        let is_bulk = || parcel.end() < self.bulk_ends && parcel.end().is_multiple_of(2);
        if self.has_priorities && !is_bulk() { URGENT } else { BULK }
    }

    /// What a frame that takes so much memory counts for behind its input.
    #[inline(always)]
    fn count(self, input: &Input, parcel: Parcel, charge: u64) -> u64 {
        if !input.class_only || self.of(parcel) == BULK { charge } else { 0 }
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
    /// By switch number.
    nodes: Vec<Node>,
    /// The ports that leave switches, those of one together, and a time before which nothing leaves the queue of each that
    /// has not been seen to.
    outputs: Vec<PortIndex>,
    fronts: Vec<u64>,
    /// How many frames a line has at most that is filled from what waits, and with how many it is filled up.
    line_max: u32,
    line_low: u32,
    /// How many it has at most where nothing waits.
    line_free: u32,
    /// What leaves of that which a stopped neighbour sent: when, and how much. Empty, kept for its memory.
    falls: Vec<(u64, u64)>,
    /// Not so where tests compare: then a switch that has stopped somebody looks at each release.
    foresees_levels: bool,
    /// The most bytes that ever waited behind one input.
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
                inputs.push(Input { port: port ^ 1, ..Input::default() });
            }
            nodes.push(Node { memory, stopping: Vec::new(), outputs: first..outputs.len() });
        }
        for input in &mut inputs {
            if let NodeKind::Switch { like } = network.nodes[network.destination(input.port) as usize].kind {
                let pause = &network.switches[like].settings.pause;
                if pause.mode != PauseMode::Off {
                    input.thresholds = Some(PauseThresholds::new(pause.xoff, pause.xon)?);
                    input.class_only = pause.mode == PauseMode::Priority;
                    let held = &mut ports[input.port as usize];
                    (held.class_only, held.reaction) = (input.class_only, pause.reaction.get());
                }
            }
            input.watch(0);
        }
        let has_priorities =
            network.switches.iter().any(|kind| kind.settings.pause.mode == PauseMode::Priority);
        Ok(Self {
            ports,
            inputs,
            nodes,
            fronts: vec![NEVER; outputs.len()],
            outputs,
            line_max: LINE_MAX,
            line_low: LINE_MAX / 4,
            // A frame of a higher priority has all others taken back.
            line_free: if has_priorities { LINE_MAX } else { u32::MAX },
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

    /// All frames that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Parcel> {
        self.ports.iter().flat_map(|held| held.waiting.iter().flatten()).copied()
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

    /// How many frames wait at a port without a time.
    pub(crate) fn waiting_len(&self, port: PortIndex) -> u64 {
        self.ports[port as usize].waiting.iter().map(VecDeque::len).sum::<usize>() as u64
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

    /// Whether nothing is amiss at a watched port, so that a frame may be booked behind those that are without a closer look: it
    /// need not pass any, and those are few enough.
    #[inline(never)]
    fn calms_down(&self, port: &mut Port, index: PortIndex, now: u64, parcel: Parcel) -> bool {
        let state = &self.ports[index as usize];
        if !state.is_calm || state.blocked_until > now {
            return false;
        }
        if self.line_free == u32::MAX {
            port.hold = Hold::Calm;
            return true;
        }
        let passes = self.classes.of(parcel) == URGENT && self.is_bulk_last(port);
        port.queued() < self.line_free && !passes
    }

    /// Whether the last frame of a line is bulk data.
    #[inline(always)]
    fn is_bulk_last(&self, port: &Port) -> bool {
        let last = port.get_queued(port.queued().wrapping_sub(1));
        last.is_some_and(|frame| self.classes.of(frame.parcel) == BULK)
    }

    /// Gives back the memory of what has left a port by `now`.
    #[inline(always)]
    fn settle(&mut self, links: &mut Links<'_>, index: PortIndex) {
        let port = &mut links.ports[index as usize];
        match self.fronts.get(links.switches[port.switch as usize].slot(port)) {
            Some(&front) if front > links.now => {}
            Some(_) => self.settle_due(links, index),
            // A host's memory has no end.
            None => port.release(links.now, links.unstored, |_, _, _| {}),
        }
    }

    fn settle_due(&mut self, links: &mut Links<'_>, index: PortIndex) {
        let port = &mut links.ports[index as usize];
        let switch = &mut links.switches[port.switch as usize];
        switch.held -= self.release(port, *switch, links.now, links.unstored);
    }

    /// Gives back the memory of what has left a switch's port by `now`; returns what of it the port itself has counted.
    fn release(&mut self, port: &mut Port, switch: SwitchTotals, now: u64, unstored: u32) -> u64 {
        let (classes, inputs) = (self.classes, &mut self.inputs);
        let node = &mut self.nodes[port.switch as usize];
        let mut released = 0;
        let mut give_back = |parcel: Parcel, charge: u64| {
            let input = &mut inputs[switch.input(parcel)];
            input.level -= classes.count(input, parcel, charge);
            released += charge;
        };
        let output = usize::from(port.place.output);
        match &mut node.memory {
            None => port.release(now, unstored, |_, parcel, charge| give_back(parcel, charge)),
            Some(memory) => port.release(now, unstored, |left_at, parcel, charge| {
                give_back(parcel, charge);
                let bytes = parcel.wire_bytes() - unstored;
                memory.release(Instant::new(left_at), usize::from(parcel.input()), output, bytes);
            }),
        }
        self.fronts[switch.slot(port)] = front(port);
        if !port.is_plain {
            return 0;
        }
        port.held -= released;
        released
    }

    /// A frame has come over the link of a port of a switch with a memory, and nobody has seen it leave.
    #[inline(never)]
    fn leave_memory_unseen(
        &mut self,
        port: &Port,
        switch: SwitchTotals,
        now: u64,
        parcel: Parcel,
        unstored: u32,
    ) {
        let charge = port.charge(parcel.wire_bytes(), unstored);
        let input = &mut self.inputs[switch.input(parcel)];
        input.level -= self.classes.count(input, parcel, charge);
        if let Some(memory) = &mut self.nodes[port.switch as usize].memory {
            let left_at = Instant::new(port.leaves_at(&Frame { arrival: now, parcel }));
            let (input, output) = (usize::from(parcel.input()), usize::from(port.place.output));
            memory.release(left_at, input, output, parcel.wire_bytes() - unstored);
        }
    }

    /// Gives back the memory of all that has left a switch by `now`.
    fn settle_switch(&mut self, links: &mut Links<'_>, switch: usize) {
        let outputs = self.nodes[switch].outputs.clone();
        let mut slot = outputs.start;
        while let Some(due) = self.fronts[slot..outputs.end].iter().position(|&front| front <= links.now) {
            slot += due;
            self.settle_due(links, self.outputs[slot]);
            slot += 1;
        }
    }

    /// Whether the memory of a switch takes a frame that goes out by a port.
    fn admit(
        &mut self,
        moment: &mut Moment<'_>,
        switch: usize,
        index: PortIndex,
        parcel: Parcel,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        let port = &moment.links.ports[index as usize];
        let (input, output) = (usize::from(parcel.input()), usize::from(port.place.output));
        let frame = Descriptor { bytes: parcel.wire_bytes() - moment.links.unstored, ecn: parcel.ecn() };
        let charge = port.charge(parcel.wire_bytes(), moment.links.unstored);
        if self.nodes[switch]
            .memory
            .as_ref()
            .is_some_and(|memory| memory.depends_on_others(input, output, charge))
        {
            self.settle_switch(&mut moment.links, switch);
        }
        match &mut self.nodes[switch].memory {
            Some(memory) => memory.admit(Instant::new(moment.links.now), input, output, frame, draw),
            None => Verdict::Accepted { marked: false },
        }
    }

    /// Whether the limit of a port takes a frame; its switch has no other.
    #[inline(always)]
    fn admit_to_port(
        &mut self,
        links: &mut Links<'_>,
        index: PortIndex,
        charge: u64,
        is_doubtful: &mut bool,
    ) -> bool {
        let port = &mut links.ports[index as usize];
        let switch = &mut links.switches[port.switch as usize];
        let (as_it_was, now, unstored) = (*switch, links.now, links.unstored);
        port.admit(charge, switch, is_doubtful, |port| self.release(port, as_it_was, now, unstored))
    }

    /// What is due at a port comes before anything else that happens to it now.
    #[inline(always)]
    fn catch_up(&mut self, moment: &mut Moment<'_>, index: PortIndex) {
        self.settle(&mut moment.links, index);
        if self.ports[index as usize].look_at <= moment.links.now {
            self.book_waiting(moment, index);
        }
    }

    /// Puts a frame onto the link behind all others; nothing [blocks](Held::blocked_until) it.
    #[inline(always)]
    fn book(&mut self, moment: &mut Moment<'_>, index: PortIndex, parcel: Parcel) {
        let port = &mut moment.links.ports[index as usize];
        let start = port.departure.max(moment.links.now);
        let departure = start + port.time_to_send(parcel.wire_bytes());
        if port.queued() == 0 {
            let slot = moment.links.switches[port.switch as usize].slot(port);
            if let Some(front) = self.fronts.get_mut(slot) {
                *front = if port.counts_in_service { departure } else { start };
            }
        }
        port.accept(moment.schedule, departure, index, parcel);
    }

    /// Books what waits at a port and may go, and sees to it that somebody looks again where more waits.
    #[inline(never)]
    fn book_waiting(&mut self, moment: &mut Moment<'_>, index: PortIndex) {
        let now = moment.links.now;
        self.settle(&mut moment.links, index);
        let state = &mut self.ports[index as usize];
        if state.look_at <= now {
            state.look_at = NEVER;
        }
        let was_empty = moment.links.ports[index as usize].queued() == 0;
        loop {
            let state = &mut self.ports[index as usize];
            let class = match [state.may_go(URGENT), state.may_go(BULK)] {
                [true, _] => URGENT,
                [_, true] => BULK,
                _ => break,
            };
            let port = &moment.links.ports[index as usize];
            let is_blocked = state.blocked_until > now;
            if is_blocked || port.queued() >= self.line_max {
                // The line is filled up when few are left of it.
                let at = if is_blocked {
                    port.departure
                } else {
                    port.get_queued(port.queued() - 1 - self.line_low)
                        .map_or(NEVER, |frame| port.leaves_at(frame))
                };
                if at < state.look_at {
                    state.look_at = at;
                    moment.schedule.insert(at, BOOKING << INDEX_BITS | index);
                }
                break;
            }
            let queue = &mut state.waiting[class];
            let Some(parcel) = queue.pop_front() else { break };
            if let Some(later) = queue.get(FRAMES_AHEAD) {
                prefetch(later);
            }
            self.book(moment, index, parcel);
        }
        let state = &mut self.ports[index as usize];
        let is_stopped = state.stopped[BULK] || state.stopped[URGENT];
        let waits = !state.waiting[BULK].is_empty() || !state.waiting[URGENT].is_empty();
        let port = &mut moment.links.ports[index as usize];
        let node = self.nodes.get(port.switch as usize);
        state.is_calm = node.is_none_or(|node| node.memory.is_none()) && !is_stopped && !waits;
        port.hold = Hold::Watched;
        if was_empty && port.queued() > 0 {
            self.handle_begin(moment, index);
        }
    }

    /// Takes the frames back that are booked and have not begun to leave: they wait again, before all others. Who calls this
    /// lets [`Self::book_waiting`] follow.
    fn take_back(&mut self, moment: &mut Moment<'_>, index: PortIndex, bulk_only: bool) {
        let classes = self.classes;
        let state = &mut self.ports[index as usize];
        (state.look_at, state.is_calm) = (NEVER, false);
        let port = &mut moment.links.ports[index as usize];
        port.hold = Hold::Watched;
        let (until, mut time_back) = (port.departure, 0);
        while !bulk_only || self.is_bulk_last(port) {
            let Some((parcel, time)) = port.take_back(moment.links.now) else { break };
            time_back += time;
            self.ports[index as usize].waiting[classes.of(parcel)].push_front(parcel);
        }
        let state = &mut self.ports[index as usize];
        if state.blocked_until == until {
            // What is no frame comes forward.
            state.blocked_until -= time_back;
        }
        let slot = moment.links.switches[port.switch as usize].slot(port);
        if let Some(first) = self.fronts.get_mut(slot) {
            *first = front(port);
        }
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
        moment.schedule.insert(sent + state.link_delay + state.reaction, SIGNAL << INDEX_BITS | from);
        match signal {
            PauseSignal::Pause => self.pauses += 1,
            PauseSignal::Resume => self.resumes += 1,
        }
        if signal == PauseSignal::Pause && !self.checks {
            self.checks = true;
            moment.schedule.insert(moment.links.now + SUSPECT, DEADLOCK_CHECK << INDEX_BITS);
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

/// When the first frame leaves a queue.
fn front(port: &Port) -> u64 {
    port.get_queued(0).map_or(NEVER, |frame| port.leaves_at(frame))
}

impl Fabric {
    /// From now on the frames of all hosts wait like those of switches, for somebody who looks at how busy their links are
    /// with what is being sent.
    pub(crate) fn hold_hosts(&mut self) {
        if self.held.is_some() {
            self.ports.iter_mut().for_each(|port| port.hold = Hold::Watched);
        }
    }

    /// A frame has come over the link of a port that nobody has seen leave the queue, where it took so much of what the port
    /// itself counts: the rest of its memory is given back.
    #[inline(always)]
    pub(super) fn leave_unseen(&mut self, now: u64, index: PortIndex, parcel: Parcel, charge: u64) {
        let Some(held) = &mut self.held else { return };
        let port = &self.ports[index as usize];
        let switch = self.totals[port.switch as usize];
        if port.is_plain {
            let input = &mut held.inputs[switch.input(parcel)];
            input.level -= held.classes.count(input, parcel, charge);
        } else if (port.switch as usize) < held.nodes.len() {
            held.leave_memory_unseen(port, switch, now, parcel, self.unstored_bytes);
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
        let is_calm = port.hold == Hold::Calm || held.calms_down(port, index, now, parcel);
        if !is_calm || switches[port.switch as usize].look_at <= now {
            return self.hold_carefully(schedule, now, index, parcel, Came::ByLink);
        }
        let charge = port.charge(parcel.wire_bytes(), unstored);
        let mut links = Links { ports, switches, now, unstored };
        if !held.admit_to_port(&mut links, index, charge, &mut self.is_doubtful) {
            return Holding::Dropped;
        }
        let switch = links.switches[links.ports[index as usize].switch as usize];
        let input = &mut held.inputs[switch.input(parcel)];
        let counted = held.classes.count(input, parcel, charge);
        if input.level + counted >= input.matters_at {
            return self.hold_carefully(schedule, now, index, parcel, Came::Admitted);
        }
        input.level += counted;
        held.book(&mut Moment { links, schedule }, index, parcel);
        let port = &self.ports[index as usize];
        Holding::Queued { is_next: port.leads_to_host & (port.len == 1) }
    }

    /// Queues a frame at its own host's port that is watched.
    #[inline(never)]
    pub(super) fn hold_at_host(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        index: PortIndex,
        parcel: Parcel,
    ) {
        let Self { held: Some(held), ports, totals: switches, unstored_bytes, .. } = self else { return };
        if held.calms_down(&mut ports[index as usize], index, now, parcel) {
            let links = Links { ports, switches, now, unstored: *unstored_bytes };
            return held.book(&mut Moment { links, schedule }, index, parcel);
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
                if !held.admit_to_port(&mut moment.links, index, charge, &mut self.is_doubtful) {
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
            let place = moment.links.switches[switch].input(parcel);
            let input = &mut held.inputs[place];
            let counted = held.classes.count(input, parcel, charge);
            input.level += counted;
            if counted > 0 && input.level >= input.matters_at {
                stops = held.handle_rise(&mut moment, switch, place);
            }
        }
        let (state, port) = (&held.ports[index as usize], &moment.links.ports[index as usize]);
        let overtakes = class == URGENT && held.is_bulk_last(port);
        let is_first =
            state.waiting[URGENT].is_empty() && (class == URGENT || state.waiting[BULK].is_empty());
        let has_room = port.queued() < held.line_free;
        let is_open = state.blocked_until <= now;
        if is_first && !overtakes && !state.stopped[class] && has_room && is_open {
            held.book(&mut moment, index, parcel);
            if stops {
                // Its own release may be the one that the switch has to look after.
                held.watch_levels(&mut moment, switch);
            }
            let port = &self.ports[index as usize];
            return Holding::Queued { is_next: port.leads_to_host & (port.len == 1) };
        }
        let state = &mut held.ports[index as usize];
        state.is_calm = false;
        moment.links.ports[index as usize].hold = Hold::Watched;
        state.waiting[class].push_back(parcel);
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
        Holding::Queued { is_next: false }
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
