//! Ports that can be stopped: PAUSE (IEEE 802.3 annex 31B) and priority flow control (IEEE 802.1Qbb).
//!
//! Departures are foreseen here too, but only of a port's first few frames, its line: those go onto the link with their
//! times like the frames of a plain port. Whatever changes what was foreseen, a stop, a signal that passes before all that
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

use super::{Descriptor, Fabric, Flags, INDEX_BITS, NIL, Parcel, Port, PortIndex, Schedule};
use crate::Error;
use crate::memories::Place;
use crate::network::{Network, NodeKind};
use crate::prefetch::prefetch;

mod deadlock;
mod figures;
mod levels;
mod line;

use line::{Booked, Line};

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

/// At each so many frames a line is settled, so that it holds little that has left.
const LINE_LONG: u32 = 64;

/// A frame that waits behind so many others is fetched.
const FRAMES_AHEAD: usize = 8;

/// Nothing is due.
const NEVER: u64 = u64::MAX;

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

/// A frame that waits, and the port that it came in by.
#[derive(Clone, Copy)]
struct Waiting {
    parcel: Parcel,
    from: PortIndex,
}

/// One direction of a link, seen by who sends on it.
#[derive(Default)]
#[repr(C, align(64))]
struct Held {
    line: Line,
    /// When the last frame that was booked will have left; the link's own departure is later behind a signal.
    line_end: u64,
    /// When its line is looked at next: what is scheduled for later is of no account.
    look_at: u64,
    /// Its place among the outputs of all switches; [`NIL`] at a host.
    slot: u32,
    /// By class: whether the neighbour has told it to stop.
    stopped: [bool; 2],
    /// Of a switch in which a frame takes memory until it has been sent.
    keeps_memory: bool,
    /// Nothing waits, nothing is stopped, and there is nothing to look after but its own limit.
    is_calm: bool,
    /// By class; one behind the other in memory, since they wait for so long that they have left the near caches.
    waiting: [VecDeque<Waiting>; 2],
    /// Its number among the outputs of its switch.
    output: u16,
    /// A stop is for bulk data only.
    class_only: bool,
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

    /// Whether nothing is amiss, so that a frame may be booked behind those that are without a closer look: it need not pass any, and
    /// those are fewer than so many.
    #[inline(always)]
    fn takes(&self, port: &Port, now: u64, class: usize, line_max: u32) -> bool {
        let passes = class == URGENT && self.line.last().is_some_and(|booked| booked.class() == BULK);
        self.is_calm && self.is_open(port, now) && self.line.len() < line_max && !passes
    }

    /// Whether a frame may be booked behind those that are: whatever else the link is busy with may still be passed.
    #[inline(always)]
    fn is_open(&self, port: &Port, now: u64) -> bool {
        port.departure <= now || port.departure == self.line_end
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
    /// Its number among the inputs of its switch.
    number: u16,
    /// Whether only bulk data count.
    class_only: bool,
    thresholds: Option<PauseThresholds>,
    /// While its neighbour is stopped: not before this it may go on.
    falls_at: u64,
    /// How far ahead that was when it was found.
    fall_time: u32,
}

impl Input {
    fn counts(&self, class: usize) -> bool {
        !self.class_only || class == BULK
    }

    /// After a change of what was signalled, or of the most that any input ever held.
    fn watch(&mut self, level_max: u64) {
        self.matters_at = match self.thresholds {
            Some(thresholds) if !thresholds.is_paused() => thresholds.xoff().get().min(level_max + 1),
            _ => level_max + 1,
        };
    }
}

/// A switch.
struct Node {
    /// Its memory; none where an output's own limit is all there is, which ports look after by themselves.
    memory: Option<Memory>,
    /// Bookkeeping of each frame.
    overhead: u32,
    /// Inputs whose neighbours it has stopped.
    stopping: Vec<PortIndex>,
    /// Its outputs, in [`HeldPorts::outputs`].
    outputs: Range<usize>,
}

impl Node {
    #[inline(always)]
    fn charge(&self, bytes: u32) -> u64 {
        u64::from(bytes + self.overhead)
    }
}

/// The queues of all ports of a network in which some can be stopped.
pub(crate) struct HeldPorts {
    ports: Vec<Held>,
    /// By port, too.
    inputs: Vec<Input>,
    /// By switch number.
    nodes: Vec<Node>,
    /// By switch number: when its levels are looked at next; what is scheduled for later is of no account.
    looks: Vec<u64>,
    /// The switch that a port belongs to; [`NIL`] at a host.
    switch_of: Vec<u32>,
    /// The ports that leave switches, those of one together, and the first release of each.
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
    has_priorities: bool,
    /// Ends below this are those of connections whose second ends answer with bulk data.
    pub(crate) bulk_ends: u32,
    pauses: u64,
    resumes: u64,
    checks: bool,
    /// The ports of a deadlock, once there is one: each waits for the next, the last for the first.
    pub(crate) deadlock: Vec<PortIndex>,
}

/// The parts of the fabric that ports need at one moment.
struct Moment<'a> {
    ports: &'a mut [Port],
    schedule: &'a mut Schedule,
    now: u64,
    /// The part of a frame's bytes on the wire that a switch does not store.
    unstored: u32,
}

/// The memory of a switch, if it needs one, and the bookkeeping of each frame.
pub(crate) type Buffer = (Option<Memory>, u32);

impl HeldPorts {
    /// For a network of which a switch uses PAUSE; `memories` in the order of the switches.
    pub(crate) fn new(
        network: &Network,
        memories: Vec<Buffer>,
        switch_of: Vec<u32>,
        places: &[Place],
    ) -> Result<Self, Error> {
        let counts = |kind: NodeKind| match kind {
            NodeKind::Switch { like } => network.switches[like].settings.count_in_service,
            NodeKind::Host => false,
        };
        let (mut ports, mut inputs) = (Vec::new(), Vec::new());
        for (port, place) in (0..).zip(places) {
            let mut held = Held {
                link_delay: network.links[port as usize / 2].delay.get(),
                keeps_memory: counts(network.nodes[network.source(port) as usize].kind),
                output: place.output,
                slot: NIL,
                look_at: NEVER,
                ..Held::default()
            };
            let mut input = Input { number: place.input, ..Input::default() };
            if let NodeKind::Switch { like } = network.nodes[network.destination(port) as usize].kind {
                let pause = &network.switches[like].settings.pause;
                if pause.mode != PauseMode::Off {
                    input.thresholds = Some(PauseThresholds::new(pause.xoff, pause.xon)?);
                    input.class_only = pause.mode == PauseMode::Priority;
                    (held.class_only, held.reaction) = (input.class_only, pause.reaction.get());
                }
            }
            input.watch(0);
            ports.push(held);
            inputs.push(input);
        }
        let (mut outputs, mut nodes) = (Vec::new(), Vec::new());
        for (number, (memory, overhead)) in (0..).zip(memories) {
            let first = outputs.len();
            outputs
                .extend((0..).zip(&switch_of).filter(|(_, switch)| **switch == number).map(|(port, _)| port));
            let outputs = first..outputs.len();
            nodes.push(Node { memory, overhead, stopping: Vec::new(), outputs });
        }
        for (slot, &port) in (0..).zip(&outputs) {
            ports[port as usize].slot = slot;
        }
        let has_priorities =
            network.switches.iter().any(|kind| kind.settings.pause.mode == PauseMode::Priority);
        for (held, &switch) in ports.iter_mut().zip(&switch_of) {
            let node: Option<&Node> = nodes.get(switch as usize);
            held.is_calm = node.is_none_or(|node| node.memory.is_none());
        }
        Ok(Self {
            ports,
            inputs,
            looks: vec![NEVER; nodes.len()],
            nodes,
            switch_of,
            fronts: vec![NEVER; outputs.len()],
            outputs,
            line_max: line::LINE_MAX,
            line_low: line::LINE_MAX / 4,
            // A frame of a higher priority has all others taken back.
            line_free: if has_priorities { line::LINE_MAX } else { u32::MAX },
            falls: Vec::new(),
            foresees_levels: true,
            level_max: 0,
            has_priorities,
            bulk_ends: u32::MAX,
            pauses: 0,
            resumes: 0,
            checks: false,
            deadlock: Vec::new(),
        })
    }

    #[inline]
    fn class(&self, end: u32) -> usize {
        let is_bulk = || end < self.bulk_ends && end.is_multiple_of(2);
        if self.has_priorities && !is_bulk() { URGENT } else { BULK }
    }

    /// All frames that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Parcel> {
        self.ports.iter().flat_map(|held| held.waiting.iter().flatten()).map(|waiting| waiting.parcel)
    }

    /// Whether the frames of a port have to wait here: not where it is a host's whose neighbour never stops it. Its order and
    /// its times are the same.
    pub(crate) fn holds(&self, port: PortIndex) -> bool {
        let can_be_stopped = self.inputs[port as usize].thresholds.is_some();
        can_be_stopped || self.has_priorities || self.switch_of[port as usize] != NIL
    }

    /// The memory of the switch that a port leaves, if it leaves one that has it, with what has left that port by `now` given
    /// back.
    pub(crate) fn settled(&mut self, now: u64, port: PortIndex) -> Option<&Memory> {
        let switch = self.node_of(port)?;
        self.settle(now, port);
        self.nodes[switch].memory.as_ref()
    }

    /// How many frames wait at a port without a time.
    pub(crate) fn waiting_len(&self, port: PortIndex) -> u64 {
        self.ports[port as usize].waiting.iter().map(VecDeque::len).sum::<usize>() as u64
    }

    /// The memories of all switches, in which all marks are exact.
    pub(crate) fn memories(&self) -> impl Iterator<Item = &Memory> {
        self.nodes.iter().filter_map(|node| node.memory.as_ref())
    }

    pub(crate) fn reset_marks(&mut self, now: u64) {
        for switch in 0..self.nodes.len() {
            self.settle_switch(now, switch);
            self.nodes[switch].memory.iter_mut().for_each(Memory::reset_marks);
        }
    }

    /// Gives back the memory of what has left a port by `now`.
    #[inline(always)]
    fn settle(&mut self, now: u64, index: PortIndex) {
        if self.ports[index as usize].line.front() <= now {
            self.settle_due(now, index);
        }
    }

    fn settle_due(&mut self, now: u64, index: PortIndex) {
        let (state, inputs) = (&mut self.ports[index as usize], &mut self.inputs);
        let Some(node) = self.nodes.get_mut(self.switch_of[index as usize] as usize) else {
            return state.line.release(now, |_| {});
        };
        let (overhead, output) = (node.overhead, usize::from(state.output));
        let mut give_back = |booked: Booked| {
            let input = &mut inputs[booked.from() as usize];
            if input.counts(booked.class()) {
                input.level -= u64::from(booked.bytes + overhead);
            }
            usize::from(input.number)
        };
        match &mut node.memory {
            None => state.line.release(now, |booked| _ = give_back(booked)),
            Some(memory) => state.line.release(now, |booked| {
                let input = give_back(booked);
                memory.release(Instant::new(booked.release), input, output, booked.bytes);
            }),
        }
        self.fronts[state.slot as usize] = state.line.front();
    }

    /// Gives back the memory of all that has left a switch by `now`.
    fn settle_switch(&mut self, now: u64, switch: usize) {
        let outputs = self.nodes[switch].outputs.clone();
        let mut slot = outputs.start;
        while let Some(due) = self.fronts[slot..outputs.end].iter().position(|&front| front <= now) {
            slot += due;
            self.settle_due(now, self.outputs[slot]);
            slot += 1;
        }
    }

    /// Whether the memory of a switch takes a frame that came in by the first port and goes out by the second.
    fn admit(
        &mut self,
        now: u64,
        switch: usize,
        [from, index]: [PortIndex; 2],
        frame: Descriptor,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        let input = usize::from(self.inputs[from as usize].number);
        let output = usize::from(self.ports[index as usize].output);
        let charge = self.nodes[switch].charge(frame.bytes);
        if self.nodes[switch]
            .memory
            .as_ref()
            .is_some_and(|memory| memory.depends_on_others(input, output, charge))
        {
            self.settle_switch(now, switch);
        }
        match &mut self.nodes[switch].memory {
            Some(memory) => memory.admit(Instant::new(now), input, output, frame, draw),
            None => Verdict::Accepted { marked: false },
        }
    }

    /// What is due at a port comes before anything else that happens to it now.
    #[inline(always)]
    fn catch_up(&mut self, moment: &mut Moment<'_>, index: PortIndex) {
        self.settle(moment.now, index);
        if self.ports[index as usize].look_at <= moment.now {
            self.book_waiting(moment, index);
        }
    }

    /// Puts a frame onto the link behind all others; it [is open](Held::is_open).
    #[inline(always)]
    fn book(&mut self, moment: &mut Moment<'_>, index: PortIndex, class: usize, waiting: Waiting) {
        let port = &mut moment.ports[index as usize];
        let state = &mut self.ports[index as usize];
        let Waiting { parcel, from } = waiting;
        let wire_bytes = parcel.wire_bytes();
        let start = port.departure.max(moment.now);
        let departure = start + port.time_to_send(wire_bytes);
        let release = if state.keeps_memory { departure } else { start };
        state.line_end = departure;
        // A host's memory has no end, and nobody waits for room in it.
        if state.slot != NIL && state.line.len() == 0 {
            self.fronts[state.slot as usize] = release;
        }
        state.line.push(Booked::new(release, from, class, wire_bytes - moment.unstored));
        port.accept(moment.schedule, departure, index, parcel);
    }

    /// Books what waits at a port and may go, and sees to it that somebody looks again where more waits.
    #[inline(never)]
    fn book_waiting(&mut self, moment: &mut Moment<'_>, index: PortIndex) {
        let now = moment.now;
        self.settle(now, index);
        let state = &mut self.ports[index as usize];
        if state.look_at <= now {
            state.look_at = NEVER;
        }
        let was_empty = state.line.len() == 0;
        loop {
            let state = &self.ports[index as usize];
            let class = match [state.may_go(URGENT), state.may_go(BULK)] {
                [true, _] => URGENT,
                [_, true] => BULK,
                _ => break,
            };
            let state = &mut self.ports[index as usize];
            let is_open = state.is_open(&moment.ports[index as usize], now);
            if !is_open || state.line.len() >= self.line_max {
                // The link is taken by something that is no frame, or the line is full.
                let at = if !is_open {
                    moment.ports[index as usize].departure
                } else {
                    state.line.release_before_last(self.line_low)
                };
                if at < state.look_at {
                    state.look_at = at;
                    moment.schedule.insert(at, BOOKING << INDEX_BITS | index);
                }
                break;
            }
            let queue = &mut self.ports[index as usize].waiting[class];
            let Some(waiting) = queue.pop_front() else { break };
            if let Some(later) = queue.get(FRAMES_AHEAD) {
                prefetch(later);
            }
            self.book(moment, index, class, waiting);
        }
        let state = &mut self.ports[index as usize];
        let is_stopped = state.stopped[BULK] || state.stopped[URGENT];
        let waits = !state.waiting[BULK].is_empty() || !state.waiting[URGENT].is_empty();
        let node = self.nodes.get(self.switch_of[index as usize] as usize);
        state.is_calm = node.is_none_or(|node| node.memory.is_none()) && !is_stopped && !waits;
        if was_empty
            && state.line.len() > 0
            && let Some(switch) = self.node_of(index)
        {
            self.handle_begin(moment, switch, index);
        }
    }

    /// Takes the frames back that are booked and have not begun to leave: they wait again, before all others. Who calls this
    /// lets [`Self::book_waiting`] follow.
    fn take_back(&mut self, moment: &mut Moment<'_>, index: PortIndex, bulk_only: bool) {
        let state = &mut self.ports[index as usize];
        (state.look_at, state.is_calm) = (NEVER, false);
        while let Some(booked) = state.line.last() {
            if bulk_only && booked.class() != BULK {
                break;
            }
            let Some((parcel, time)) = moment.ports[index as usize].take_back(moment.now) else { break };
            state.line.pop_last();
            state.line_end -= time;
            let waiting = Waiting { parcel, from: booked.from() };
            state.waiting[booked.class()].push_front(waiting);
        }
        if state.slot != NIL {
            self.fronts[state.slot as usize] = state.line.front();
        }
    }

    /// Tells the neighbour at the other end of a port to stop or to go on.
    #[cold]
    fn signal(&mut self, moment: &mut Moment<'_>, from: PortIndex, signal: PauseSignal) {
        let index = from ^ 1;
        // It goes after the frame that is being sent, and before all that waits.
        self.catch_up(moment, index);
        self.take_back(moment, index, false);
        let back = &mut moment.ports[index as usize];
        let sent = moment.now.max(back.departure) + back.time_to_send(SIGNAL_BYTES);
        back.departure = sent;
        back.wire_bytes += u64::from(SIGNAL_BYTES);
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
            moment.schedule.insert(moment.now + SUSPECT, DEADLOCK_CHECK << INDEX_BITS);
        }
    }

    /// The switch that a port leaves.
    fn node_of(&self, port: PortIndex) -> Option<usize> {
        let switch = self.switch_of[port as usize];
        (switch != NIL).then_some(switch as usize)
    }

    /// A signal works at a port.
    fn handle_signal(&mut self, moment: &mut Moment<'_>, index: PortIndex) {
        self.catch_up(moment, index);
        let state = &mut self.ports[index as usize];
        let signal = state.signals.pop_front().expect("a signal for each of its occurrences");
        let (now, stop) = (moment.now, signal == PauseSignal::Pause);
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
        let is_line_empty = self.ports[index as usize].line.len() == 0;
        self.book_waiting(moment, index);
        if !stop
            && !is_line_empty
            && let Some(switch) = self.node_of(index)
        {
            // One class, behind the other.
            self.handle_begin(moment, switch, index);
        }
    }
}

impl Fabric {
    /// From now on the frames of all hosts wait like those of switches, for somebody who looks at how busy their links are
    /// with what is being sent.
    pub(crate) fn hold_hosts(&mut self) {
        let is_held = self.held.is_some();
        self.ports.iter_mut().for_each(|port| port.is_held = is_held);
    }

    /// Queues a frame at a switch's port that may be stopped, in short where nothing is amiss there. `from` is the port that it
    /// came in by.
    #[inline(always)]
    pub(super) fn hold(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        [from, index]: [PortIndex; 2],
        parcel: Parcel,
    ) -> Holding {
        let Self { held: Some(held), ports, ample, unstored_bytes, .. } = self else {
            return Holding::Dropped;
        };
        let unstored = *unstored_bytes;
        let wire_bytes = parcel.wire_bytes();
        let class = held.class(parcel.end());
        let (state, port) = (&mut held.ports[index as usize], &mut ports[index as usize]);
        if !state.takes(port, now, class, held.line_free) || held.looks[port.switch as usize] <= now {
            return self.hold_carefully(schedule, now, [from, index], parcel, false);
        }
        let charge = port.charge(wire_bytes, unstored);
        let (in_switch, ample) = &mut ample[port.switch as usize];
        if !port.admit(now, charge, in_switch, *ample, unstored, &mut self.is_doubtful) {
            return Holding::Dropped;
        }
        let input = &mut held.inputs[from as usize];
        let counted = if input.counts(class) { charge } else { 0 };
        if input.level + counted >= input.matters_at || state.line.len() % LINE_LONG == LINE_LONG - 1 {
            return self.hold_carefully(schedule, now, [from, index], parcel, true);
        }
        input.level += counted;
        let mut moment = Moment { ports, schedule, now, unstored };
        held.book(&mut moment, index, class, Waiting { parcel, from });
        let port = &ports[index as usize];
        Holding::Queued { is_next: port.leads_to_host & (port.len == 1) }
    }

    /// Queues a frame at its own host's port that may be stopped.
    #[inline(never)]
    pub(super) fn hold_at_host(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        index: PortIndex,
        parcel: Parcel,
    ) {
        let Self { held: Some(held), ports, unstored_bytes, .. } = self else { return };
        let class = held.class(parcel.end());
        let line_max = held.line_free.min(LINE_LONG - 1);
        if held.ports[index as usize].takes(&ports[index as usize], now, class, line_max) {
            let mut moment = Moment { ports, schedule, now, unstored: *unstored_bytes };
            return held.book(&mut moment, index, class, Waiting { parcel, from: NIL });
        }
        let sent = self.hold_carefully(schedule, now, [NIL, index], parcel, false);
        debug_assert!(sent != Holding::Dropped, "hosts queue without limit");
    }

    /// Queues a frame at any port that may be stopped, as [`Self::hold`]; `from` is [`NIL`] at its own host. It may have passed
    /// the port's own limit already.
    #[inline(never)]
    pub(super) fn hold_carefully(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        [from, index]: [PortIndex; 2],
        mut parcel: Parcel,
        is_admitted: bool,
    ) -> Holding {
        let Self { held: Some(held), ports, ample, unstored_bytes, .. } = self else {
            return Holding::Dropped;
        };
        let unstored = *unstored_bytes;
        let wire_bytes = parcel.wire_bytes();
        let mut moment = Moment { ports, schedule, now, unstored };
        let class = held.class(parcel.end());
        let mut stops = false;
        let switch = held.switch_of[index as usize] as usize;
        let state = &held.ports[index as usize];
        if held.has_priorities || state.look_at <= now || state.line.len() >= LINE_LONG - 1 {
            held.catch_up(&mut moment, index);
        }
        if from != NIL {
            if held.looks[switch] <= now {
                held.look_at_levels(&mut moment, switch);
            }
            let frame = Descriptor { bytes: wire_bytes - unstored, ecn: parcel.ecn() };
            let charge = held.nodes[switch].charge(frame.bytes);
            if is_admitted {
                // By the port itself, above.
            } else if held.nodes[switch].memory.is_none() {
                let port = &mut moment.ports[index as usize];
                let (in_switch, ample) = &mut ample[port.switch as usize];
                if !port.admit(now, charge, in_switch, *ample, unstored, &mut self.is_doubtful) {
                    return Holding::Dropped;
                }
            } else {
                held.catch_up(&mut moment, index);
                let chance = &mut self.chances[switch];
                match held.admit(now, switch, [from, index], frame, || (chance.bits() >> 32) as u32) {
                    Verdict::Dropped(_) => return Holding::Dropped,
                    Verdict::Accepted { marked: true } => {
                        parcel = parcel.marked();
                        self.segments[parcel.segment()].flags.insert(Flags::CE);
                    }
                    Verdict::Accepted { marked: false } => {}
                }
            }
            let input = &mut held.inputs[from as usize];
            if input.counts(class) {
                input.level += charge;
                if input.level >= input.matters_at {
                    stops = held.handle_rise(&mut moment, switch, from);
                }
            }
        }
        let state = &held.ports[index as usize];
        let overtakes = class == URGENT && state.line.last().is_some_and(|booked| booked.class() == BULK);
        let is_first =
            state.waiting[URGENT].is_empty() && (class == URGENT || state.waiting[BULK].is_empty());
        let has_room = state.line.len() < held.line_free;
        let is_open = state.is_open(&moment.ports[index as usize], now);
        let waiting = Waiting { parcel, from };
        if is_first && !overtakes && !state.stopped[class] && has_room && is_open {
            held.book(&mut moment, index, class, waiting);
            if stops {
                // Its own release may be the one that the switch has to look after.
                held.watch_levels(&mut moment, switch);
            }
            let port = &ports[index as usize];
            return Holding::Queued { is_next: port.leads_to_host & (port.len == 1) };
        }
        let state = &mut held.ports[index as usize];
        state.is_calm = false;
        state.waiting[class].push_back(waiting);
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
        let Self { held: Some(held), ports, unstored_bytes: unstored, .. } = self else { return };
        // A look that an earlier one has overtaken does nothing.
        held.catch_up(&mut Moment { ports, schedule, now, unstored: *unstored }, index);
    }

    /// A switch that has stopped neighbours has given memory back.
    pub(crate) fn handle_levels(&mut self, schedule: &mut Schedule, now: u64, switch: u32) {
        let Self { held: Some(held), ports, unstored_bytes: unstored, .. } = self else { return };
        if held.looks[switch as usize] <= now {
            held.look_at_levels(&mut Moment { ports, schedule, now, unstored: *unstored }, switch as usize);
        }
    }

    /// A signal works at the port that it was sent to.
    pub(crate) fn handle_signal(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let Self { held: Some(held), ports, unstored_bytes: unstored, .. } = self else { return };
        held.handle_signal(&mut Moment { ports, schedule, now, unstored: *unstored }, index);
    }
}

#[cfg(test)]
mod tests;
