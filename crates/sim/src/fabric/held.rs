//! Ports that can be stopped: PAUSE (IEEE 802.3 annex 31B) and priority flow control (IEEE 802.1Qbb).
//!
//! A queue that may have to wait has no departures that can be foreseen, so that in a network with PAUSE every port keeps
//! its frames by itself and spends an occurrence on each departure. A switch counts what came in by a port and still
//! waits; where that passes the upper threshold, it tells the neighbour to stop, and at the lower one to go on. The
//! signal is a frame of its own on the way back: it waits for the frame that is being sent, takes its time on the wire, and
//! works after the neighbour's reaction time. What is behind a stopped port waits wherever it is going (head-of-line
//! blocking), fills the neighbour's memory, and stops that one's neighbours in turn.
//!
//! With priority flow control bulk data (answers) are one priority, everything else another that goes first and is never
//! stopped; a stop still holds the bulk data of all receivers. A stop lasts until it is taken back: the frames that would
//! renew it before its 65535 quanta are over are left out.

use std::collections::VecDeque;

use fanin_queueing::{Memory, PauseSignal, PauseThresholds, Verdict};
use fanin_scenario::PauseMode;
use fanin_units::{Duration, Instant};

use super::{Descriptor, Fabric, Flags, INDEX_BITS, NIL, Parcel, Port, PortIndex, Schedule};
use crate::Error;
use crate::lists::{List, Lists};
use crate::network::{Network, NodeKind};

/// A frame has been sent.
pub(crate) const TRANSMITTED: u32 = 5;
/// A signal to stop or go on works.
pub(crate) const SIGNAL: u32 = 6;
/// It is time to look for a deadlock.
pub(crate) const DEADLOCK_CHECK: u32 = 7;

/// A MAC control frame on the wire: 64 bytes, preamble and gap.
const SIGNAL_BYTES: u32 = 84;
/// A port that is stopped for so long is looked at: it may be part of a deadlock.
const SUSPECT: u64 = Duration::from_millis(10).get();
/// A stop that lasts so long is a storm: the least time after which switches' own watchdogs act.
const STORM: u64 = Duration::from_millis(100).get();

/// Bulk data, and what goes before it under priority flow control.
const BULK: usize = 0;
const URGENT: usize = 1;

/// A frame that waits, and the port that it came in by.
#[derive(Clone, Copy)]
struct Waiting {
    parcel: Parcel,
    from: PortIndex,
}

/// What is being sent and still takes memory; nothing where `from` is [`NIL`].
struct Sending {
    from: PortIndex,
    wire_bytes: u32,
    class: usize,
}

impl Default for Sending {
    fn default() -> Self {
        Self { from: NIL, wire_bytes: 0, class: BULK }
    }
}

/// One direction of a link, seen by who sends on it. In the order of use: what a frame touches fills two cache lines.
#[derive(Default)]
#[repr(C, align(64))]
struct Held {
    /// By class, in [`HeldPorts::frames`].
    waiting: [List; 2],
    sending: Sending,
    /// Of a switch in which a frame takes memory until it has been sent.
    keeps_memory: bool,
    /// An occurrence is pending at which it looks again; never two.
    wakes: bool,
    /// By class: whether the neighbour has told it to stop.
    stopped: [bool; 2],
    /// At the far end: whether only bulk data count, what came in by it and waits there, and the thresholds for that.
    class_only: bool,
    level: u64,
    level_max: u64,
    thresholds: Option<PauseThresholds>,
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
    #[inline(always)]
    const fn waits_for_nobody(&self) -> bool {
        self.waiting[BULK].is_empty() && self.waiting[URGENT].is_empty()
    }
}

/// What flow control has done.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(crate) struct PauseFigures {
    /// Signals to stop and to go on.
    pub(crate) pauses: u64,
    pub(crate) resumes: u64,
    /// Ports of hosts and of switches that were stopped at least once.
    pub(crate) hosts_stopped: u64,
    pub(crate) switch_ports_stopped: u64,
    /// The longest stop, and the most of the whole time that a port was stopped, in picoseconds.
    pub(crate) longest: u64,
    pub(crate) stopped_most: u64,
    /// Ports that were stopped for a tenth of a second or longer in one go.
    pub(crate) storms: u64,
    /// The most bytes that waited behind one input.
    pub(crate) input_bytes_max: u64,
}

/// The queues of all ports of a network in which some can be stopped.
pub(crate) struct HeldPorts {
    ports: Vec<Held>,
    /// What waits at them.
    frames: Lists<Waiting>,
    /// By switch number.
    memories: Vec<Memory>,
    /// The switch that a port belongs to; [`NIL`] at a host.
    switch_of: Vec<u32>,
    has_priorities: bool,
    /// Ends below this are those of connections whose second ends answer with bulk data.
    pub(crate) bulk_ends: u32,
    pauses: u64,
    resumes: u64,
    checks: bool,
    /// The ports of a deadlock, once there is one: each waits for the next, the last for the first.
    pub(crate) deadlock: Vec<PortIndex>,
}

impl HeldPorts {
    /// For a network of which a switch uses PAUSE; `memories` in the order of the switches.
    pub(crate) fn new(network: &Network, memories: Vec<Memory>, switch_of: Vec<u32>) -> Result<Self, Error> {
        let ports = 2 * network.links.len() as PortIndex;
        let counts = |kind: NodeKind| match kind {
            NodeKind::Switch { like } => network.switches[like].settings.count_in_service,
            NodeKind::Host => false,
        };
        let held = |port: PortIndex| -> Result<Held, Error> {
            let mut held = Held {
                link_delay: network.links[port as usize / 2].delay.get(),
                keeps_memory: counts(network.nodes[network.source(port) as usize].kind),
                ..Held::default()
            };
            if let NodeKind::Switch { like } = network.nodes[network.destination(port) as usize].kind {
                let pause = &network.switches[like].settings.pause;
                if pause.mode != PauseMode::Off {
                    held.thresholds = Some(PauseThresholds::new(pause.xoff, pause.xon)?);
                    held.class_only = pause.mode == PauseMode::Priority;
                    held.reaction = pause.reaction.get();
                }
            }
            Ok(held)
        };
        let has_priorities =
            network.switches.iter().any(|kind| kind.settings.pause.mode == PauseMode::Priority);
        Ok(Self {
            ports: (0..ports).map(held).collect::<Result<_, _>>()?,
            switch_of,
            frames: Lists::new(),
            memories,
            has_priorities,
            bulk_ends: u32::MAX,
            pauses: 0,
            resumes: 0,
            checks: false,
            deadlock: Vec::new(),
        })
    }

    fn class(&self, end: u32) -> usize {
        let is_bulk = end < self.bulk_ends && end.is_multiple_of(2);
        if self.has_priorities && !is_bulk { URGENT } else { BULK }
    }

    /// All frames that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Parcel> {
        self.ports.iter().flat_map(|held| self.waiting_at(held)).map(|waiting| waiting.parcel)
    }

    fn waiting_at(&self, held: &Held) -> impl Iterator<Item = &Waiting> {
        held.waiting.into_iter().flat_map(|list| self.frames.iter(list))
    }

    /// Whether the frames of a port have to wait here: not where it is a host's whose neighbour never stops it, so that
    /// departures are known. Its order and its times are the same.
    pub(crate) fn holds(&self, port: PortIndex) -> bool {
        let can_be_stopped = self.ports[port as usize].thresholds.is_some();
        can_be_stopped || self.has_priorities || self.switch_of[port as usize] != NIL
    }

    /// The memory of the switch that a port leaves, if it leaves one.
    pub(crate) fn memory(&self, port: PortIndex) -> Option<&Memory> {
        self.memories.get(self.switch_of[port as usize] as usize)
    }

    /// The memories of all switches.
    pub(crate) fn memories(&self) -> &[Memory] {
        &self.memories
    }

    pub(crate) fn reset_marks(&mut self) {
        self.memories.iter_mut().for_each(Memory::reset_marks);
    }

    /// What was done up to `now`.
    pub(crate) fn figures(&self, now: u64) -> PauseFigures {
        let mut figures =
            PauseFigures { pauses: self.pauses, resumes: self.resumes, ..PauseFigures::default() };
        for (held, &switch) in self.ports.iter().zip(&self.switch_of) {
            let open = if held.stopped[BULK] { now - held.stopped_since } else { 0 };
            let longest = held.longest.max(open);
            if held.stops > 0 {
                *(if switch == NIL {
                    &mut figures.hosts_stopped
                } else {
                    &mut figures.switch_ports_stopped
                }) += 1;
            }
            figures.longest = figures.longest.max(longest);
            figures.stopped_most = figures.stopped_most.max(held.stopped_for + open);
            figures.storms += u64::from(longest >= STORM);
            figures.input_bytes_max = figures.input_bytes_max.max(held.level_max);
        }
        figures
    }

    /// Begins to send the next frame of a port, if there is one that may go and the link is free.
    fn kick(
        &mut self,
        ports: &mut [Port],
        schedule: &mut Schedule,
        now: u64,
        index: PortIndex,
        unstored: u32,
    ) {
        let state = &mut self.ports[index as usize];
        if state.wakes {
            return;
        }
        let departure = ports[index as usize].departure;
        if departure > now {
            state.wakes = true;
            schedule.insert(departure, TRANSMITTED << INDEX_BITS | index);
            return;
        }
        let may_go = |class: usize| !state.stopped[class] && !state.waiting[class].is_empty();
        let class = if may_go(URGENT) { URGENT } else { BULK };
        if class == BULK && !may_go(BULK) {
            return;
        }
        let Some(waiting) = self.frames.pop(&mut state.waiting[class]) else { return };
        self.transmit(ports, schedule, now, index, class, waiting, unstored);
    }

    /// Sends a frame by a port whose link is free.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "the parts of the fabric that it borrows")]
    fn transmit(
        &mut self,
        ports: &mut [Port],
        schedule: &mut Schedule,
        now: u64,
        index: PortIndex,
        class: usize,
        Waiting { parcel, from }: Waiting,
        unstored: u32,
    ) {
        let port = &mut ports[index as usize];
        let state = &mut self.ports[index as usize];
        let departure = now + port.time_to_send(parcel.wire_bytes());
        state.sending = Sending { from, wire_bytes: parcel.wire_bytes(), class };
        // Only where something is to be done then.
        if state.keeps_memory || !state.waits_for_nobody() {
            state.wakes = true;
            schedule.insert(departure, TRANSMITTED << INDEX_BITS | index);
        }
        let gives_back = !state.keeps_memory && from != NIL;
        port.accept(schedule, departure, index, parcel);
        if gives_back {
            self.release(ports, schedule, now, index, unstored);
        }
    }

    /// Gives the memory of the frame back that a port sends or has sent.
    #[inline]
    fn release(
        &mut self,
        ports: &mut [Port],
        schedule: &mut Schedule,
        now: u64,
        index: PortIndex,
        unstored: u32,
    ) {
        let state = &mut self.ports[index as usize];
        let Sending { from, wire_bytes, class } = state.sending;
        if from == NIL {
            return;
        }
        state.sending.from = NIL;
        let bytes = wire_bytes - unstored;
        let (input, output) = (ports[from as usize].place.input, ports[index as usize].place.output);
        let memory = &mut self.memories[self.switch_of[index as usize] as usize];
        memory.release(Instant::new(now), usize::from(input), usize::from(output), bytes);
        let charge = memory.charge(bytes);
        self.change_level(ports, schedule, now, from, class, -(charge as i64));
    }

    /// What came in by a port and waits has changed: a signal may be due.
    #[inline]
    fn change_level(
        &mut self,
        ports: &mut [Port],
        schedule: &mut Schedule,
        now: u64,
        from: PortIndex,
        class: usize,
        by: i64,
    ) {
        let state = &mut self.ports[from as usize];
        if state.class_only && class != BULK {
            return;
        }
        state.level = state.level.wrapping_add_signed(by);
        state.level_max = state.level_max.max(state.level);
        if let Some(signal) =
            state.thresholds.as_mut().and_then(|thresholds| thresholds.handle_level(state.level))
        {
            self.signal(ports, schedule, now, from, signal);
        }
    }

    /// Tells the neighbour at the other end of a port to stop or to go on.
    #[cold]
    fn signal(
        &mut self,
        ports: &mut [Port],
        schedule: &mut Schedule,
        now: u64,
        from: PortIndex,
        signal: PauseSignal,
    ) {
        let state = &mut self.ports[from as usize];
        // It goes after the frame that is being sent, and before all that waits.
        let back = &mut ports[from as usize ^ 1];
        let sent = now.max(back.departure) + back.time_to_send(SIGNAL_BYTES);
        back.departure = sent;
        back.wire_bytes += u64::from(SIGNAL_BYTES);
        state.signals.push_back(signal);
        schedule.insert(sent + state.link_delay + state.reaction, SIGNAL << INDEX_BITS | from);
        match signal {
            PauseSignal::Pause => self.pauses += 1,
            PauseSignal::Resume => self.resumes += 1,
        }
        if signal == PauseSignal::Pause && !self.checks {
            self.checks = true;
            schedule.insert(now + SUSPECT, DEADLOCK_CHECK << INDEX_BITS);
        }
    }

    /// Whether pausing has come to a circle in which each port waits for the next, so that none will ever go on. A port is
    /// stuck where what came in by it waits, as far as it must leave for the port to go on, at outputs that are stuck.
    fn find_deadlock(&mut self, unstored_bytes: u32) {
        let is_paused = |held: &Held| held.thresholds.is_some_and(|thresholds| thresholds.is_paused());
        let mut stuck: Vec<bool> = self.ports.iter().map(is_paused).collect();
        // What of each port waits where: pairs of input and output.
        let mut behind: std::collections::BTreeMap<(PortIndex, PortIndex), u64> =
            std::collections::BTreeMap::new();
        for (output, held) in self.ports.iter().enumerate() {
            let Some(memory) = self.memory(output as PortIndex) else { continue };
            for waiting in self.waiting_at(held) {
                let bytes = memory.charge(waiting.parcel.wire_bytes() - unstored_bytes);
                *behind.entry((waiting.from, output as PortIndex)).or_default() += bytes;
            }
        }
        loop {
            let mut held_fast = vec![0; self.ports.len()];
            for (&(input, output), bytes) in &behind {
                if stuck[output as usize] {
                    held_fast[input as usize] += bytes;
                }
            }
            let before = stuck.iter().filter(|&&stuck| stuck).count();
            for (port, is_stuck) in stuck.iter_mut().enumerate() {
                let goes_on_at = self.ports[port].thresholds.map_or(0, |thresholds| thresholds.xon().get());
                *is_stuck &= held_fast[port] > goes_on_at;
            }
            if stuck.iter().filter(|&&stuck| stuck).count() == before {
                break;
            }
        }
        let Some(first) = stuck.iter().position(|&stuck| stuck) else { return };
        let mut path = vec![first as PortIndex];
        loop {
            let last = path[path.len() - 1];
            let next = behind
                .range((last, 0)..(last + 1, 0))
                .filter(|((_, output), _)| stuck[*output as usize])
                .max_by_key(|(_, bytes)| **bytes)
                .map(|((_, output), _)| *output)
                .expect("a stuck port has frames behind one that is stuck");
            if let Some(start) = path.iter().position(|&port| port == next) {
                self.deadlock = path.split_off(start);
                return;
            }
            path.push(next);
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

    /// Queues a frame at a port that may be stopped. `from` is the port that it came in by, [`NIL`] at its own host.
    pub(super) fn hold(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        [from, index]: [PortIndex; 2],
        mut parcel: Parcel,
    ) -> Option<Parcel> {
        let unstored = self.unstored_bytes;
        let Self { held, ports, .. } = self;
        let held = held.as_deref_mut()?;
        let class = held.class(parcel.end());
        if from != NIL {
            let (input, output) = (ports[from as usize].place.input, ports[index as usize].place.output);
            let switch = held.switch_of[index as usize] as usize;
            let descriptor = Descriptor { bytes: parcel.wire_bytes() - unstored, ecn: parcel.ecn() };
            let chance = &mut self.chances[switch];
            let (at, input, output) = (Instant::new(now), usize::from(input), usize::from(output));
            let memory = &mut held.memories[switch];
            match memory.admit(at, input, output, descriptor, || (chance.bits() >> 32) as u32) {
                Verdict::Dropped(_) => return Some(parcel),
                Verdict::Accepted { marked: true } => {
                    parcel = parcel.marked();
                    self.segments[parcel.segment()].flags.insert(Flags::CE);
                }
                Verdict::Accepted { marked: false } => {}
            }
            let charge = memory.charge(descriptor.bytes);
            held.change_level(ports, schedule, now, from, class, charge as i64);
        }
        let state = &mut held.ports[index as usize];
        let is_idle = !state.wakes && ports[index as usize].departure <= now;
        if is_idle && !state.stopped[class] && state.waits_for_nobody() {
            held.transmit(ports, schedule, now, index, class, Waiting { parcel, from }, unstored);
        } else {
            held.frames.push(&mut state.waiting[class], Waiting { parcel, from });
            if !state.wakes {
                held.kick(ports, schedule, now, index, unstored);
            }
        }
        None
    }

    /// A frame has been sent, or a signal has passed before the next.
    pub(crate) fn handle_transmitted(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let unstored = self.unstored_bytes;
        let Self { held: Some(held), ports, .. } = self else { return };
        held.ports[index as usize].wakes = false;
        held.release(ports, schedule, now, index, unstored);
        held.kick(ports, schedule, now, index, unstored);
    }

    /// A signal works at the port that it was sent to.
    pub(crate) fn handle_signal(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let unstored = self.unstored_bytes;
        let Self { held: Some(held), ports, .. } = self else { return };
        let state = &mut held.ports[index as usize];
        let signal = state.signals.pop_front().expect("a signal for each of its occurrences");
        let stop = signal == PauseSignal::Pause;
        state.stopped = [stop, stop && !state.class_only];
        if stop {
            state.stops += 1;
            state.stopped_since = now;
        } else {
            state.stopped_for += now - state.stopped_since;
            state.longest = state.longest.max(now - state.stopped_since);
            held.kick(ports, schedule, now, index, unstored);
        }
    }

    /// Looks for a deadlock where a port has been stopped for long. Returns whether there is one.
    pub(crate) fn handle_deadlock_check(&mut self, schedule: &mut Schedule, now: u64) -> bool {
        let Some(held) = &mut self.held else { return false };
        let suspect = |held: &Held| held.stopped[BULK] && now - held.stopped_since >= SUSPECT;
        if held.ports.iter().any(suspect) {
            held.find_deadlock(self.unstored_bytes);
        }
        held.checks = held.ports.iter().any(|held| held.stopped[BULK] || !held.signals.is_empty());
        if held.checks {
            schedule.insert(now + SUSPECT, DEADLOCK_CHECK << INDEX_BITS);
        }
        !held.deadlock.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use fanin_scenario::Switch;
    use fanin_units::{Bytes, Rate};

    use super::super::{ARRIVAL, Hop, Step};
    use super::*;
    use crate::network::SwitchKind;
    use crate::tcp::Segment;

    /// Switches in a ring, a host at each, that all send to the host `ahead` switches further on.
    fn ring(switches: u32, ahead: u32, mode: PauseMode, xoff: u64) -> (Fabric, Vec<Step>, Network) {
        let mut settings = Switch { buffer: Bytes::new(200_000), ..Switch::default() };
        settings.pause.mode = mode;
        (settings.pause.xoff, settings.pause.xon) = (Bytes::new(xoff), Bytes::new(xoff / 2));
        let kinds = vec![SwitchKind { settings, has_uplinks: false, section: "tor" }];
        let mut network = Network { switches: kinds, ..Network::default() };
        let (rate, delay) = (Rate::new(1_000_000_000), Duration::from_micros(1));
        let nodes: Vec<_> =
            (0..switches).map(|place| network.add_switch(format!("switch:{place}"), 0)).collect();
        let hosts: Vec<_> = (0..switches).map(|place| network.add_host(format!("host:{place}"))).collect();
        for place in 0..switches as usize {
            network.join(nodes[place], nodes[(place + 1) % switches as usize], rate, delay);
            network.join(hosts[place], nodes[place], rate, delay);
        }
        let mut fabric = Fabric::new(&network, 1, true).unwrap();
        let at = |place: u32| place % switches;
        let routes = (0..switches).map(|place| {
            // Link 2 k joins switches, link 2 k + 1 a host to its switch.
            let into = [4 * place + 2];
            let along = (0..ahead).map(|step| 4 * at(place + step));
            fabric.add_route(into.into_iter().chain(along).chain([4 * at(place + ahead) + 3]), None).unwrap()
        });
        let routes: Vec<Step> = routes.collect();
        (fabric, routes, network)
    }

    /// Sends `frames` from each host at once; returns what was delivered and dropped, and whether it came to a deadlock.
    fn play(fabric: &mut Fabric, routes: &[Step], frames: u32) -> (u32, u32, bool) {
        let mut schedule = Schedule::new(1 << 20, fabric.ports.len() as u32);
        let segment = Segment { payload: 1460, flags: Flags::ACK, ..Segment::default() };
        for _ in 0..frames {
            for &route in routes {
                fabric.send(&mut schedule, 0, &segment, route, 0);
            }
        }
        let (mut delivered, mut dropped) = (0, 0);
        while let Some((now, what)) = schedule.pop() {
            let index = what & ((1 << INDEX_BITS) - 1);
            match what >> INDEX_BITS {
                ARRIVAL => match fabric.arrive(&mut schedule, now, index) {
                    Hop::Forwarded { .. } => {}
                    Hop::Delivered { segment, .. } => {
                        delivered += 1;
                        fabric.remove(segment);
                    }
                    Hop::Dropped { segment } => {
                        dropped += 1;
                        fabric.remove(segment);
                    }
                },
                TRANSMITTED => fabric.handle_transmitted(&mut schedule, now, index),
                SIGNAL => fabric.handle_signal(&mut schedule, now, index),
                _ => {
                    if fabric.handle_deadlock_check(&mut schedule, now) {
                        fabric.assert_conserved(0);
                        return (delivered, dropped, true);
                    }
                }
            }
        }
        fabric.assert_conserved(0);
        (delivered, dropped, false)
    }

    #[test]
    fn a_ring_of_stopped_ports_is_found_and_named() {
        for mode in [PauseMode::Pause, PauseMode::Priority] {
            let (mut fabric, routes, network) = ring(5, 3, mode, 30_000);
            let (delivered, dropped, deadlock) = play(&mut fabric, &routes, 400);
            assert!(deadlock && dropped == 0 && delivered < 5 * 400, "{delivered} {dropped}");
            let cycle = fabric.held.as_ref().unwrap().deadlock.clone();
            assert_eq!(cycle.len(), 5, "each switch waits for the next");
            for (place, &port) in cycle.iter().enumerate() {
                let next = cycle[(place + 1) % 5];
                assert_eq!(network.destination(port), network.source(next), "{}", network.port_name(port));
            }
        }
    }

    #[test]
    fn without_a_circle_all_arrives() {
        // To the next switch only: no port waits for another of the ring.
        for (ahead, mode, xoff) in
            [(1, PauseMode::Pause, 30_000), (1, PauseMode::Priority, 4_000), (0, PauseMode::Pause, 4_000)]
        {
            let (mut fabric, routes, _) = ring(5, ahead, mode, xoff);
            assert_eq!(play(&mut fabric, &routes, 400), (5 * 400, 0, false));
        }
    }

    #[test]
    fn a_stop_takes_effect_after_the_signal_has_passed() {
        // Five hosts of one switch each send to the same host, so that their switch has to stop them.
        let settings = |xoff: u64, buffer: u64| {
            let mut settings = Switch { buffer: Bytes::new(buffer), ..Switch::default() };
            settings.pause.mode = PauseMode::Pause;
            (settings.pause.xoff, settings.pause.xon) = (Bytes::new(xoff), Bytes::new(xoff - 2_000));
            settings
        };
        let (rate, delay) = (Rate::new(1_000_000_000), Duration::from_micros(25));
        let reaction = Switch::default().pause.reaction;
        let headroom = fanin_queueing::pause_headroom(rate, delay, reaction, Bytes::new(1538)).get();
        for (xoff, spare) in [(10_000, headroom), (40_000, headroom), (10_000, headroom / 8)] {
            let kinds = vec![SwitchKind {
                settings: settings(xoff, 5 * (xoff + spare)),
                has_uplinks: false,
                section: "tor",
            }];
            let mut network = Network { switches: kinds, ..Network::default() };
            let switch = network.add_switch("switch:0".into(), 0);
            for place in 0..6 {
                let host = network.add_host(format!("host:{place}"));
                network.join(host, switch, rate, delay);
            }
            let mut fabric = Fabric::new(&network, 1, true).unwrap();
            let routes: Vec<Step> =
                (0..5).map(|host| fabric.add_route([2 * host, 11].into_iter(), None).unwrap()).collect();
            let (delivered, dropped, deadlock) = play(&mut fabric, &routes, 500);
            assert!(!deadlock);
            assert_eq!(delivered + dropped, 2_500);
            assert_eq!(dropped == 0, spare == headroom, "{xoff} {spare} {dropped}");
            let figures = fabric.held.as_ref().unwrap().figures(1);
            assert!(figures.input_bytes_max <= xoff + headroom && figures.input_bytes_max > xoff);
            assert_eq!((figures.hosts_stopped, figures.switch_ports_stopped), (5, 0));
            assert_eq!(figures.pauses, figures.resumes);
        }
    }
}
