//! Links, output queues and the frames in them: everything between a host's TCP and another's.
//!
//! A port is a FIFO queue before a link of constant rate and delay. When a frame leaves it is therefore known as
//! soon as it is accepted: no occurrence is spent on departures, and only the first arrival of each link is
//! pending in the schedule: its frame lies in the port, and the others wait in a ring, in order.

use std::collections::HashMap;

use fanin_queueing::{Decision, FifoMemory, Frame as Descriptor, Passage};
use fanin_units::Instant;

use crate::Error;
use crate::index::NIL;
use crate::m21::M21Switches;
use crate::memories::{Memories, Place, Plain};
use crate::random::{Kind, Purpose, Random, host, seed};
use crate::rings::{RINGED, RingFigures, RingedPort};
use crate::schedule::Schedule;
use fanin_network::{Network, NodeKind, PortIndex};
use fanin_tcp::{Flags, Segment};

mod held;
mod marker;
mod one_ring;
mod parcel;
mod port;
mod ringed;

use held::Holding;
use parcel::ECN_CAPABLE;

pub(crate) use held::HeldPorts;
pub(crate) use marker::Marker;
pub(crate) use one_ring::OneRing;
pub(crate) use parcel::Parcel;
use port::Hold;
pub(crate) use port::{Frame, Port};

/// A step on a path: a port, and which step comes after it, or [`NIL`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Step {
    pub(crate) port: PortIndex,
    next: u32,
}

/// A switch as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SwitchTotals {
    /// Bytes in it as far as anybody has looked, at least as many as there are; where ports count by themselves.
    held: u64,
    /// Up to so many of them no limit but a port's own can be met.
    ample: u64,
    /// Where ports can be stopped: when its levels are looked at next; what is scheduled for later is of no account.
    look_at: u64,
    /// There, too: where its inputs and its outputs begin among those of all switches, for hosts beyond all of them.
    base: u32,
    /// And whether only bulk data count behind an input.
    counts_bulk_only: bool,
    /// It knows M21TCP's option.
    writes_windows: bool,
}

/// A queue at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Queue {
    pub(crate) bytes: u64,
    pub(crate) frames: u64,
    pub(crate) drops: u64,
    pub(crate) marks: u64,
}

/// What became of a frame that arrived over a link.
pub(crate) enum Hop {
    /// It waits at the next port on its way.
    Forwarded,
    /// It is at its destination.
    Delivered {
        /// The end that it is for.
        end: u32,
        /// Where its segment is.
        segment: usize,
        /// Bytes on the wire.
        wire_bytes: u32,
    },
    /// A switch dropped it.
    Dropped {
        /// Where its segment is.
        segment: usize,
    },
}

/// All ports and the frames in flight.
pub(crate) struct Fabric {
    pub(crate) ports: Vec<Port>,
    /// The packet memories of the switches.
    pub(crate) memories: Vec<FifoMemory>,
    /// The queues of all ports, where some can be stopped.
    pub(crate) held: Option<Box<HeldPorts>>,
    /// Switches that write M21TCP's option, where connections use it.
    pub(crate) m21: Option<M21Switches>,
    /// For switches that mark or drop by chance.
    chances: Vec<Random>,
    /// By port: those that mark and count by themselves; empty where none does.
    markers: Vec<Option<Marker>>,
    /// What the frames carry; `free` lists the unused places.
    pub(crate) segments: Vec<Segment>,
    free: Vec<u32>,
    /// By switch; one more, so that a host's ports have one to leave alone.
    totals: Vec<SwitchTotals>,
    /// A switch that was taken for ample may not have been.
    pub(crate) is_doubtful: bool,
    /// What follows the first step of each path. Paths that end alike share their ends, so that even of many paths all
    /// stays in the cache.
    steps: Vec<Step>,
    /// Where in `steps` each stands, by the ring that its frames wait in too.
    known_steps: HashMap<(Step, u16), u32>,
    /// For each port, the one that was stored or found last there: most paths are like the one before.
    last_steps: Vec<((Step, u16), u32)>,
    /// The path that is being stored; kept for its memory.
    way: Vec<PortIndex>,
    /// Ports whose frames wait in rings.
    ringed: Vec<RingedPort>,
    /// For each of `steps`, the ring that its frames wait in there; empty where no port has rings.
    rings: Vec<u16>,
    /// Frames that have arrived over a link.
    arrived: u64,
    link_bytes: u32,
    ip_bytes_min: u32,
    /// The part of a frame's bytes on the wire that a switch does not store.
    unstored_bytes: u32,
}

impl Fabric {
    pub(crate) fn new(network: &Network, run: u64, exact: bool) -> Result<Self, Error> {
        let Memories { memories, plain, ample, places, nodes, held, m21, ringed } =
            Memories::new(network, exact)?;
        let unstored_bytes = network.framing.link_bytes - network.framing.stored_bytes;
        let limits = ample.iter().chain([&u64::MAX]).enumerate();
        let totals: Vec<SwitchTotals> = limits
            .map(|(switch, &ample)| SwitchTotals {
                held: 0,
                ample,
                look_at: u64::MAX,
                base: held.as_ref().map_or(0, |held| held.base(switch)),
                counts_bulk_only: held.as_ref().is_some_and(|held| held.counts_bulk_only(switch)),
                writes_windows: m21.as_ref().is_some_and(|m21| m21.knows(switch)),
            })
            .collect();
        let port = |index: PortIndex| {
            let link = &network.links[index as usize / 2];
            let Plain { limit, overhead, counts_in_service, switch, threshold } = plain[index as usize];
            let place = places[index as usize];
            let mut port = Port::new(link.rate, place);
            port.delay = (link.delay + network.latency(index)).get();
            port.is_plain = place.memory == NIL && switch != NIL;
            port.switch = if switch == NIL { ample.len() as u32 } else { switch };
            (port.limit, port.overhead, port.counts_in_service) = (limit, overhead, counts_in_service);
            port.marks = threshold.is_some();
            if held.as_ref().is_some_and(|held| held.holds(network, index)) {
                port.hold = Hold::Watched;
            }
            port.leads_to_host = network.nodes[network.destination(index) as usize].kind == NodeKind::Host;
            port
        };
        let chance =
            |&node: &u32| Random::new(seed(run, host(Kind::Switch, u64::from(node)), Purpose::Marking));
        Ok(Self {
            ports: (0..2 * network.links.len() as PortIndex).map(port).collect(),
            memories,
            held: held.map(Box::new),
            m21,
            chances: nodes.iter().map(chance).collect(),
            markers: markers(&plain),
            segments: Vec::new(),
            free: Vec::new(),
            totals,
            is_doubtful: false,
            steps: Vec::new(),
            known_steps: HashMap::new(),
            last_steps: vec![((Step { port: NIL, next: NIL }, 0), NIL); 2 * network.links.len()],
            way: Vec::new(),
            ringed: ringed
                .iter()
                .map(|(port, settings)| RingedPort::new(*port, settings, unstored_bytes))
                .collect::<Result<_, _>>()?,
            rings: Vec::new(),
            arrived: 0,
            link_bytes: network.framing.link_bytes,
            ip_bytes_min: network.framing.ip_bytes_min,
            unstored_bytes,
        })
    }

    /// Stores a path; returns its first step. Where it passes ports with rings, its frames wait in those of
    /// `destination`, or before them. A path of no step may be stored, and not be used.
    pub(crate) fn add_route(
        &mut self,
        ports: impl Iterator<Item = PortIndex>,
        destination: Option<u32>,
    ) -> Result<Step, Error> {
        let mut way = std::mem::take(&mut self.way);
        way.clear();
        way.extend(ports);
        let mut next = NIL;
        for &port in way.iter().skip(1).rev() {
            let step = Step { port, next };
            let memory = self.ports[port as usize].place.memory;
            let ring = if memory != NIL && memory & RINGED != 0 {
                self.ringed[(memory & !RINGED) as usize].ring(destination)?
            } else {
                0
            };
            let ring = u16::try_from(ring).expect("a port has 65536 rings at most");
            let (last, number) = self.last_steps[port as usize];
            next = if last == (step, ring) {
                number
            } else {
                *self.known_steps.entry((step, ring)).or_insert_with(|| {
                    self.steps.push(step);
                    if !self.ringed.is_empty() {
                        self.rings.push(ring);
                    }
                    (self.steps.len() - 1) as u32
                })
            };
            self.last_steps[port as usize] = ((step, ring), next);
        }
        let port = way.first().copied().unwrap_or(NIL);
        self.way = way;
        Ok(Step { port, next })
    }

    /// The steps of a path.
    fn path(&self, route: Step) -> impl Iterator<Item = Step> + Clone {
        let first = (route.port != NIL).then_some(route);
        std::iter::successors(first, |step| self.steps.get(step.next as usize).copied())
    }

    /// Where a path passes through switches: each one's number, and the ports in and out.
    fn switches_passed(&self, route: Step) -> impl Iterator<Item = (u32, u16, u16)> {
        self.path(route).zip(self.path(route).skip(1)).map(|(from, to)| {
            let (input, output) =
                (self.ports[from.port as usize].place.input, self.ports[to.port as usize].place.output);
            (self.ports[to.port as usize].switch, input, output)
        })
    }

    /// Opens a flow at all M21TCP switches of a path, as its handshake did before the run.
    pub(crate) fn open_flow(&mut self, route: Step, flow: u32) {
        let Some(mut m21) = self.m21.take() else { return };
        for (switch, input, output) in self.switches_passed(route) {
            m21.open(switch, flow, input, output);
        }
        self.m21 = Some(m21);
    }

    /// The least window that the M21TCP switches of a path grant a flow; `None` without such switches.
    pub(crate) fn granted(&self, route: Step) -> Option<u32> {
        let m21 = self.m21.as_ref()?;
        self.switches_passed(route).map(|(switch, input, output)| m21.granted(switch, input, output)).min()
    }

    /// How long a frame takes along an idle path.
    pub(crate) fn crossing_time(&self, route: Step, wire_bytes: u32) -> fanin_units::Duration {
        self.path(route)
            .map(|step| {
                let port = &self.ports[step.port as usize];
                fanin_units::Duration::new(port.delay + port.time_to_send(wire_bytes))
            })
            .sum()
    }

    /// The ports of a path.
    pub(crate) fn ports_on(&self, route: Step) -> impl Iterator<Item = PortIndex> {
        self.path(route).map(|step| step.port)
    }

    /// Lets a host's link be busy with a message that is no frame of the simulation; returns for how long it was
    /// before.
    pub(crate) fn occupy(&mut self, port: PortIndex, now: u64, wire_bytes: u32) -> u64 {
        let link = &mut self.ports[port as usize];
        let backlog = link.departure.saturating_sub(now);
        link.departure = now + backlog + link.time_to_send(wire_bytes);
        if let Some(held) = &mut self.held {
            let until = link.departure;
            held.block(link, port, until);
        }
        backlog
    }

    /// How long a host's link is busy with what waits for it already; nothing is known where PAUSE may stop it.
    #[inline]
    pub(crate) fn backlog(&self, port: PortIndex, now: u64) -> u64 {
        let port = self.ports.get(port as usize).filter(|port| port.hold == Hold::Never);
        port.map_or(0, |port| port.departure.saturating_sub(now))
    }

    /// Bytes on the wire of a segment.
    #[inline]
    pub(crate) fn wire_bytes(&self, segment: &Segment) -> u32 {
        self.link_bytes + segment.ip_bytes().max(self.ip_bytes_min)
    }

    /// The frame that will arrive next over a port's link.
    #[inline]
    pub(crate) fn first(&self, port: PortIndex) -> Option<&Frame> {
        self.ports[port as usize].first()
    }

    /// Notes all frames on the link of a port, both ways, or no longer.
    pub(crate) fn tap_link(&mut self, port: PortIndex, on: bool) {
        for port in [port, port ^ 1] {
            let taps = &mut self.ports[port as usize].taps;
            *taps = if on { *taps + 1 } else { *taps - 1 };
        }
    }

    /// A place for the next segment. It is not taken before [`send_from`](Self::send_from) is called: what is written
    /// there is all the copying that a segment costs.
    #[inline(always)]
    pub(crate) fn free_place(&mut self) -> u32 {
        if let Some(&place) = self.free.last() {
            return place;
        }
        self.add_place()
    }

    #[cold]
    fn add_place(&mut self) -> u32 {
        assert!(self.segments.len() < ECN_CAPABLE as usize, "more than 2^30 frames are on their way");
        self.segments.push(Segment::default());
        let place = (self.segments.len() - 1) as u32;
        self.free.push(place);
        place
    }

    /// For tests: as [`send_from`](Self::send_from), for a segment that lies elsewhere.
    #[cfg(test)]
    pub(crate) fn send(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        segment: &Segment,
        route: Step,
        end: u32,
    ) -> u32 {
        let place = self.free_place();
        self.segments[place as usize] = *segment;
        self.send_from(place, schedule, now, route, end)
    }

    /// Sends the segment in the [free place](Self::free_place) on its way: behind all others of its host's port. Hosts
    /// queue without limit. Returns its bytes on the wire.
    #[inline(always)]
    pub(crate) fn send_from(
        &mut self,
        place: u32,
        schedule: &mut Schedule,
        now: u64,
        route: Step,
        end: u32,
    ) -> u32 {
        let parcel = self.wrap(place, route, end);
        self.send_parcel(schedule, now, route.port, parcel);
        parcel.wire_bytes()
    }

    /// Takes the segment in the [free place](Self::free_place), for it to be sent now or later.
    #[inline(always)]
    pub(crate) fn wrap(&mut self, place: u32, route: Step, end: u32) -> Parcel {
        debug_assert_eq!(self.free.last(), Some(&place));
        self.free.pop();
        let segment = &self.segments[place as usize];
        let wire_bytes = self.wire_bytes(segment);
        let ecn = if segment.flags.contains(Flags::ECT) { ECN_CAPABLE } else { 0 };
        Parcel::new(route.next, end, wire_bytes, place | ecn)
    }

    /// Sends a frame by its host's port.
    #[inline(always)]
    pub(crate) fn send_parcel(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        index: PortIndex,
        parcel: Parcel,
    ) {
        let port = &mut self.ports[index as usize];
        if port.hold != Hold::Never
            && let Some(held) = &self.held
            && (port.hold > Hold::Calm || held.passes(port, parcel))
        {
            return self.hold_at_host(schedule, now, index, parcel);
        }
        let departure = now.max(port.departure) + port.time_to_send(parcel.wire_bytes());
        port.accept(schedule, departure, index, parcel);
    }

    /// Frees the place of a segment: it was delivered or dropped.
    #[inline]
    pub(crate) fn remove(&mut self, segment: usize) {
        self.free.push(segment as u32);
    }

    /// The frame whose arrival over a port's link was due has arrived: moves it on.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, schedule: &mut Schedule, now: u64, from: PortIndex) -> Hop {
        self.arrived += 1;
        let port = &mut self.ports[from as usize];
        let arrived = port.arrive(schedule, now, from);
        let (step, wire_bytes) = (arrived.next(), arrived.wire_bytes());
        // Without branches: whose port it is follows no pattern.
        let is_unseen = port.released == 0;
        let held = u64::from(port.is_plain) & u64::from(is_unseen);
        let charge = held * port.charge(wire_bytes, self.unstored_bytes);
        port.released = port.released.saturating_sub(1);
        port.held -= charge;
        let switch = &mut self.totals[port.switch as usize];
        switch.held -= charge;
        if is_unseen
            && port.hold != Hold::Never
            && let Some(held) = &mut self.held
        {
            held.leave_unseen(now, port, switch, arrived, charge, self.unstored_bytes);
        }
        let Some(&Step { port: index, next }) = self.steps.get(step as usize) else {
            return Hop::Delivered { end: arrived.end(), segment: arrived.segment(), wire_bytes };
        };
        let mut parcel = arrived.moved(next);
        if self.m21.is_some() && self.totals[self.ports[index as usize].switch as usize].writes_windows {
            self.write_window(now, [from, index], parcel);
        }
        if self.ports[index as usize].hold != Hold::Never {
            parcel = parcel.come_by(self.ports[from as usize].place.input);
            return match self.hold(schedule, now, index, parcel) {
                Holding::Queued => Hop::Forwarded,
                Holding::Dropped => Hop::Dropped { segment: arrived.segment() },
            };
        }
        let port = &mut self.ports[index as usize];
        let Place { memory, output, .. } = port.place;
        if memory == NIL {
            let charge = port.charge(wire_bytes, self.unstored_bytes);
            let switch = &mut self.totals[port.switch as usize];
            let mut marks = None;
            if port.marks
                && let Some(Some(marker)) = self.markers.get_mut(index as usize)
            {
                match marker.decide(port, now, parcel.ecn(), switch, self.unstored_bytes) {
                    Decision::Pass => {}
                    Decision::Mark => marks = Some(marker),
                    Decision::Drop => {
                        port.drops += 1;
                        return Hop::Dropped { segment: arrived.segment() };
                    }
                }
            }
            let settle = |port: &mut Port| port.settle(now, self.unstored_bytes);
            if !port.admit(charge, switch, &mut self.is_doubtful, settle) {
                return Hop::Dropped { segment: arrived.segment() };
            }
            if let Some(marker) = marks {
                marker.marked += 1;
                parcel = parcel.marked();
                self.segments[parcel.segment()].flags.insert(Flags::CE);
            }
            let departure = now.max(port.departure) + port.time_to_send(wire_bytes);
            port.accept(schedule, departure, index, parcel);
            return Hop::Forwarded;
        }
        if memory & RINGED != 0 {
            return self.arrive_at_rings(schedule, now, memory & !RINGED, step, parcel);
        }
        let bytes = wire_bytes - self.unstored_bytes;
        let input = self.ports[from as usize].place.input;
        let port = &mut self.ports[index as usize];
        let chance = &mut self.chances[memory as usize];
        let passage = self.memories[memory as usize].handle_arrival(
            Instant::new(now),
            usize::from(input),
            usize::from(output),
            Descriptor { bytes, ecn: parcel.ecn() },
            || (chance.bits() >> 32) as u32,
        );
        match passage {
            Passage::Queued { end: departure, marked, .. } => {
                if marked {
                    parcel = parcel.marked();
                    self.segments[parcel.segment()].flags.insert(Flags::CE);
                }
                port.accept(schedule, departure.get(), index, parcel);
                Hop::Forwarded
            }
            Passage::Dropped(_) => Hop::Dropped { segment: arrived.segment() },
        }
    }

    /// What a switch does with M21TCP's option.
    #[inline(never)]
    fn write_window(&mut self, now: u64, [from, index]: [PortIndex; 2], parcel: Parcel) {
        let Some(m21) = &mut self.m21 else { return };
        let port = &self.ports[index as usize];
        let ports = [self.ports[from as usize].place.input, port.place.output];
        m21.handle_frame(now, port.switch, ports, parcel.end(), &mut self.segments[parcel.segment()]);
    }

    /// The memories of all switches that keep their accounts in one.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = &fanin_queueing::Memory> {
        let held = self.held.iter().flat_map(|held| held.memories());
        self.memories.iter().map(FifoMemory::memory).chain(held)
    }

    /// The ports that mark and count by themselves.
    pub(crate) fn markers(&self) -> impl Iterator<Item = &Marker> {
        self.markers.iter().flatten()
    }

    /// What is queued before a port of a switch.
    pub(crate) fn queue(&mut self, now: u64, index: PortIndex) -> Queue {
        self.settle_held(now, index);
        let port = &mut self.ports[index as usize];
        let Place { memory, output, .. } = port.place;
        if let Some(memory) = self.held.as_ref().and_then(|held| held.memory(port.switch)) {
            let (held, counters) = (memory.output(usize::from(output)), memory.counters(usize::from(output)));
            let (drops, marks) = (counters.dropped_total().frames, counters.marked.frames);
            return Queue { bytes: held.bytes, frames: held.frames, drops, marks };
        }
        if memory == NIL {
            let before = port.held;
            let (bytes, frames) = port.queue(now, self.unstored_bytes);
            let frames = frames + self.held.as_ref().map_or(0, |held| held.urgent_len(index));
            if port.is_plain {
                self.totals[port.switch as usize].held -= before - bytes;
            }
            let marks = self.markers.get(index as usize).and_then(|marker| *marker);
            let marks = marks.map_or(0, |marker| marker.marked);
            return Queue { bytes, frames, drops: port.drops, marks };
        }
        if memory & RINGED != 0 {
            let ringed = &mut self.ringed[(memory & !RINGED) as usize];
            ringed.settle(now);
            return Queue { bytes: ringed.bytes(), frames: ringed.frames(), drops: port.drops, marks: 0 };
        }
        let memory = &mut self.memories[memory as usize];
        let held = *memory.queue(Instant::new(now), usize::from(output));
        let counters = memory.memory().counters(usize::from(output));
        let (drops, marks) = (counters.dropped_total().frames, counters.marked.frames);
        Queue { bytes: held.bytes, frames: held.frames, drops, marks }
    }

    /// The largest queue of any switch since the marks were reset, in bytes.
    pub(crate) fn queue_bytes_max(&self) -> Option<u64> {
        let in_memories = self.accounts().map(|memory| {
            (0..memory.outputs_len()).map(|output| memory.output(output).bytes_max).max().unwrap_or(0)
        });
        let in_rings = self.ringed.iter().map(RingedPort::bytes_max);
        let plain = self.ports.iter().filter(|port| port.is_plain).map(|port| port.held_max);
        in_memories.chain(plain).chain(in_rings).max()
    }

    /// Starts all high-water marks afresh.
    pub(crate) fn reset_marks(&mut self, now: u64) {
        for memory in &mut self.memories {
            memory.reset_marks(Instant::new(now));
        }
        self.ringed.iter_mut().for_each(|ringed| ringed.reset_marks(now));
        self.reset_held_marks(now);
        for index in 0..self.ports.len() {
            // Hosts and memories' ports count nothing, so there is nothing to release.
            if self.ports[index].is_plain {
                self.queue(now, index as PortIndex);
                self.ports[index].held_max = self.ports[index].held;
            }
        }
    }

    /// Frames that switches dropped and marked.
    pub(crate) fn drops_and_marks(&self) -> (u64, u64) {
        let marked = self.markers().map(|marker| marker.marked).sum();
        let mut sum = (self.ports.iter().map(|port| port.drops).sum(), marked);
        for memory in self.accounts() {
            for output in 0..memory.outputs_len() {
                sum.0 += memory.counters(output).dropped_total().frames;
                sum.1 += memory.counters(output).marked.frames;
            }
        }
        sum
    }

    /// Frames put on links so far.
    pub(crate) fn hops(&self) -> u64 {
        self.arrived + self.ports.iter().map(|port| u64::from(port.len)).sum::<u64>()
    }

    /// Payload of all frames on their way.
    pub(crate) fn payload_in_flight(&self) -> u64 {
        let payload = |segment: usize| u64::from(self.segments[segment].payload);
        let urgent = self.held.iter().flat_map(|held| held.urgent());
        let parked = self.ports.iter().flat_map(Port::parked);
        let in_rings = self.payload_in_rings();
        let on_links = self.ports.iter().flat_map(Port::waiting).map(|frame| frame.parcel.segment());
        on_links.chain(urgent.chain(parked).map(Parcel::segment)).map(payload).sum::<u64>() + in_rings
    }

    /// Asserts that no link carried more than its rate, that every port kept its order, and that every segment's
    /// place is either used once or free; `elsewhere` are those that were taken and not sent yet.
    pub(crate) fn assert_conserved(&self, elsewhere: usize) {
        let mut in_flight = elsewhere + self.held.iter().flat_map(|held| held.urgent()).count();
        for (index, port) in self.ports.iter().enumerate() {
            let carried = u128::from(port.rate.get()) * u128::from(port.departure) / 8_000_000_000_000;
            assert!(
                u128::from(port.wire_bytes) <= carried,
                "port {index} accepted {} bytes to be sent until {} ps, where its rate allows {carried}",
                port.wire_bytes,
                port.departure
            );
            let arrivals: Vec<u64> = port.waiting().map(|frame| frame.arrival).collect();
            assert!(arrivals.is_sorted(), "frames overtake each other on port {index}");
            in_flight += arrivals.len() + port.parked_len() as usize;
        }
        in_flight += self.frames_in_rings();
        assert_eq!(in_flight + self.free.len(), self.segments.len(), "frames are unaccounted for");
    }
}

fn markers(plain: &[Plain]) -> Vec<Option<Marker>> {
    if plain.iter().all(|port| port.threshold.is_none()) {
        return Vec::new();
    }
    plain.iter().map(|port| port.threshold.map(Marker::new)).collect()
}
