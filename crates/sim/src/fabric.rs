//! Links, output queues and the frames in them: everything between one host's network card and another's.
//!
//! A frame arrives over a link ([`Fabric::arrive`]). At its destination it is delivered. At a switch it goes to the queue of
//! its next port. The queue admits, marks or drops the frame. An admitted frame departs, and travels over that port's link.
//! Where the order of departures is known when a frame arrives, its departure is booked at once and costs no occurrence.
//! Outputs with rings, or under PAUSE, spend an occurrence on each departure of a frame that had to wait.
//!
//! At one instant departures come first. `Schedule` orders all other occurrences of the instant.

use fanin_dataflow::Random;
use fanin_queueing::{BookedMemory, EcnCodepoint, Memory, MemoryOccupancy, OutputBuffer, Passage, Verdict};
use fanin_recording::{QueueState, RingVisitor};
use fanin_tcp::{Flags, Segment};
use fanin_units::{Duration, Instant};

use crate::Error;
use crate::index::NIL;
use crate::parcel::Parcel;
use crate::schedule::Schedule;
use fanin_network::{FrameOverhead, PortIndex, reverse};

mod boundary;
mod build;
mod conserve;
mod link;
mod losses;
mod output;
mod paths;
mod pausable;
mod pause;
mod rings;

pub(crate) use boundary::LeavingFrame;
pub(crate) use build::switch_layouts;
use link::FarEnd;
use losses::LinkLosses;
use output::{OutputQueue, Port, PortParts};
pub(crate) use paths::{Crossing, PathStep};
use pausable::PauseFigures;
use pause::FlowControl;
pub(crate) use pause::{LeavingSignal, PausingPorts};
pub(crate) use rings::RingFigures;

/// Returns the state of a buffer, as it is recorded.
fn state(buffer: &OutputBuffer) -> QueueState {
    let (held, counters) = (buffer.occupancy(), buffer.counters());
    QueueState {
        bytes: held.bytes,
        frames: held.frames,
        drops: counters.dropped_total().frames,
        marks: counters.marked.frames,
    }
}

/// Returns the ECN bits of a segment's IP header.
fn ecn(segment: &Segment) -> EcnCodepoint {
    match segment.flags {
        flags if flags.contains(Flags::CE) => EcnCodepoint::Congestion,
        flags if flags.contains(Flags::ECT) => EcnCodepoint::Capable,
        _ => EcnCodepoint::NotCapable,
    }
}

/// The fate of a frame that arrived over a link.
pub(crate) enum ArrivalFate {
    /// The frame is queued at the next port of its path.
    Forwarded,
    /// The frame is at its destination.
    Delivered {
        /// The connection end that receives the frame.
        end: u32,
        /// The place of the frame's segment.
        segment: usize,
        /// Bytes of the frame on the wire.
        wire_bytes: u32,
    },
    /// A switch dropped the frame.
    Dropped {
        /// The place of the frame's segment.
        segment: usize,
        /// The connection end that the frame was sent to.
        end: u32,
        /// The output that had no room.
        port: PortIndex,
    },
}

/// All ports and the frames in flight.
pub(crate) struct Fabric {
    ports: Vec<Port>,
    /// Memory shared by the outputs of each switch, in networks without PAUSE.
    memories: Vec<Option<BookedMemory>>,
    /// Flow control, in a network with PAUSE.
    flow_control: Option<Box<FlowControl>>,
    /// Random streams of each switch, for markers that mark or drop by chance.
    chances: Vec<Random>,
    /// The segments that the frames carry; `free` lists the unused places.
    segments: Vec<Segment>,
    free: Vec<u32>,
    paths: paths::StoredPaths,
    /// The links that lose frames; `None` if none does. They count as one observer.
    pub(crate) losses: Option<LinkLosses>,
    /// Number of observers, over all links.
    observers: u32,
    /// Frames that have arrived over any link.
    arrived: u64,
    framing: FrameOverhead,
    /// Bytes of a frame on the wire that no buffer stores, such as preamble and gap. A value of `framing`, read at each hop.
    unstored_bytes: u32,
}

impl Fabric {
    /// Stores a path; returns its first step. `destination` gives the ring of its frames at a port, or `None` for the plain
    /// queue. An empty path may be stored but not used.
    pub(crate) fn add_route(
        &mut self,
        path: &[PortIndex],
        destination: impl Fn(PortIndex) -> Option<u32>,
    ) -> Result<PathStep, Error> {
        let mut next = NIL;
        for &port in path.iter().skip(1).rev() {
            let ring = self.ports[port as usize].ring(destination(port))?;
            next = self.paths.add(paths::StoredStep { step: PathStep { port, next }, ring });
        }
        Ok(PathStep { port: path.first().copied().unwrap_or(NIL), next })
    }

    /// Returns true if a switch of the network uses PAUSE.
    pub(crate) fn uses_pause(&self) -> bool {
        self.flow_control.is_some()
    }

    /// Returns the ports with their flow control, in a network with PAUSE.
    pub(crate) fn pause(&mut self) -> PausingPorts<'_> {
        let flow_control = self.flow_control.as_mut().expect("a network with PAUSE");
        PausingPorts { ports: &mut self.ports, flow_control }
    }

    /// Returns the ports of a deadlock of PAUSE that was found.
    pub(crate) fn deadlock(&self) -> &[PortIndex] {
        self.flow_control.as_ref().map_or(&[], |flow_control| &flow_control.deadlock)
    }

    /// Returns the figures of PAUSE up to `now`; `None` in a network without.
    pub(crate) fn pause_figures(&self, now: u64) -> Option<PauseFigures> {
        Some(self.flow_control.as_ref()?.figures(&self.ports, now))
    }

    /// Returns the switches on a path.
    pub(crate) fn crossings(&self, route: PathStep) -> impl Iterator<Item = Crossing> {
        let next = self.paths.steps(route).skip(1);
        self.paths.steps(route).zip(next).map(|(from, to)| self.crossing(from.port, to.port))
    }

    fn crossing(&self, from: PortIndex, to: PortIndex) -> Crossing {
        self.ports[from as usize].crossing(&self.ports[to as usize])
    }

    /// Returns the ports at the next switch, the connection end and the segment's place of a frame that arrives over a link.
    /// `None` if a host is at its far end.
    pub(crate) fn peek_forward(&self, port: PortIndex, parcel: Parcel) -> Option<(Crossing, u32, usize)> {
        let next = self.paths.get(parcel.next())?.step.port;
        Some((self.crossing(port, next), parcel.end(), parcel.segment()))
    }

    /// Returns the time that a frame of `wire_bytes` takes along an idle path.
    pub(crate) fn crossing_time(&self, route: PathStep, wire_bytes: u32) -> Duration {
        let of_link = |step: PathStep| {
            let link = self.ports[step.port as usize].link();
            Duration::new(link.delay() + link.time_to_send(wire_bytes))
        };
        self.paths.steps(route).map(of_link).sum()
    }

    /// Returns the ports of a path.
    pub(crate) fn ports_on(&self, route: PathStep) -> impl Iterator<Item = PortIndex> {
        self.paths.steps(route).map(|step| step.port)
    }

    /// Occupies a host's link with a message outside the simulated frames. Returns the time for which the link was busy before,
    /// in ps. Where the switch may pause the host, the message goes before the waiting frames.
    pub(crate) fn occupy(&mut self, port: PortIndex, now: u64, wire_bytes: u32) -> u64 {
        let link = self.ports[port as usize].link_mut();
        let backlog = link.free_at().saturating_sub(now);
        link.occupy(now, wire_bytes);
        backlog
    }

    /// Returns the time in ps for which queued frames occupy a host's link; zero with PAUSE, where the time is unknown.
    #[inline]
    pub(crate) fn backlog(&self, port: PortIndex, now: u64) -> u64 {
        let port = self.ports.get(port as usize).filter(|_| self.flow_control.is_none());
        port.map_or(0, |port| port.link().free_at().saturating_sub(now))
    }

    /// Returns the bytes on the wire of a segment.
    #[inline]
    pub(crate) fn wire_bytes(&self, segment: &Segment) -> u32 {
        self.framing.wire_bytes(segment.ip_bytes())
    }

    /// Returns the bytes on the wire of a segment without payload and options.
    pub(crate) const fn header_wire_bytes(&self) -> u32 {
        self.framing.wire_bytes(FrameOverhead::HEADER_BYTES)
    }

    /// Returns the segment in a place.
    #[inline]
    pub(crate) fn segment(&self, place: usize) -> &Segment {
        &self.segments[place]
    }

    /// Returns the segment in a place, for writing.
    #[inline]
    pub(crate) fn segment_mut(&mut self, place: usize) -> &mut Segment {
        &mut self.segments[place]
    }

    /// Returns true if arriving frames are observed on at least one link.
    #[inline]
    pub(crate) const fn is_observed(&self) -> bool {
        self.observers > 0
    }

    /// Adds an observer of all arriving frames.
    pub(crate) const fn observe_all(&mut self) {
        self.observers += 1;
    }

    /// Returns true if an observer records the frames on a port's link.
    pub(crate) fn is_tapped(&self, port: PortIndex) -> bool {
        self.ports[port as usize].link().is_tapped()
    }

    /// Starts or stops recording all frames on the link of a port, in both directions.
    pub(crate) fn tap_link(&mut self, port: PortIndex, on: bool) {
        self.observers = if on { self.observers + 1 } else { self.observers - 1 };
        for port in [port, reverse(port)] {
            self.ports[port as usize].link_mut().tap(on);
        }
    }

    /// Returns an unused place for the next segment, free until [`wrap`](Self::wrap) is called. Writing in place avoids a copy.
    #[inline]
    pub(crate) fn free_place(&mut self) -> u32 {
        if let Some(&place) = self.free.last() {
            return place;
        }
        self.add_place()
    }

    #[cold]
    fn add_place(&mut self) -> u32 {
        assert!(self.segments.len() < NIL as usize, "more than 2^32 frames are on their way");
        self.segments.push(Segment::default());
        let place = (self.segments.len() - 1) as u32;
        self.free.push(place);
        place
    }

    /// Takes the [free place](Self::free_place).
    fn take_place(&mut self) -> u32 {
        let place = self.free_place();
        self.free.pop();
        place
    }

    /// Makes a frame of the segment in the [free place](Self::free_place), to be sent now or later.
    #[inline(always)]
    pub(crate) fn wrap(&mut self, place: u32, route: PathStep, end: u32) -> Parcel {
        let taken = self.free.pop();
        debug_assert_eq!(taken, Some(place), "a segment is written in another place than the free one");
        let segment = &self.segments[place as usize];
        Parcel::new(route.next, end, self.wire_bytes(segment), place)
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
        match self.ports[index as usize].host_link() {
            Some(link) => _ = link.send_next(schedule, now, index, parcel),
            None => self.pause().enqueue(schedule, now, [NIL, index], parcel),
        }
    }

    /// Frees the place of a segment that was delivered or dropped.
    #[inline]
    pub(crate) fn remove(&mut self, segment: usize) {
        assert!(self.free.len() < self.segments.len(), "a place is freed twice");
        self.free.push(segment as u32);
    }

    /// Removes the frame that arrives first over a port's link, if the link loses it.
    pub(crate) fn lose(&mut self, schedule: &mut Schedule, port: PortIndex) -> Option<Parcel> {
        if !self.losses.as_mut()?.loses(port) {
            return None;
        }
        self.arrived += 1;
        Some(self.ports[port as usize].link_mut().arrive(schedule, port))
    }

    /// Delivers or forwards the first frame on a port's link, which arrives at the far end.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, schedule: &mut Schedule, now: u64, from: PortIndex) -> ArrivalFate {
        self.arrived += 1;
        let port = &mut self.ports[from as usize];
        let parcel = port.link_mut().arrive(schedule, from);
        // The link knows its far end before the frame's path is read.
        if port.link().far_end() == FarEnd::Host {
            debug_assert_eq!(parcel.next(), NIL, "a path goes on behind its host");
            return ArrivalFate::Delivered {
                end: parcel.end(),
                segment: parcel.segment(),
                wire_bytes: parcel.wire_bytes(),
            };
        }
        let &paths::StoredStep { step, ring } =
            self.paths.get(parcel.next()).expect("a path goes on at a switch");
        let input = port.input();
        let (index, parcel) = (step.port, parcel.moved(step.next));
        let bytes = parcel.wire_bytes() - self.unstored_bytes;
        let ecn = || ecn(&self.segments[parcel.segment()]);
        let PortParts { link, queue, switch, output } = self.ports[index as usize].parts_mut();
        let (at, draw) = (Instant::new(now), || (self.chances[switch].bits() >> 32) as u32);
        let passage = match queue {
            OutputQueue::Dedicated(queue) => queue.arrive(at, bytes, ecn, draw),
            OutputQueue::Memory => {
                let memory = self.memories[switch].as_mut().expect("its outputs share one");
                memory.arrive(at, usize::from(input), output, bytes, ecn, draw)
            }
            OutputQueue::Rings(_) | OutputQueue::Pausable(_) => {
                return self.arrive_at_naive(schedule, now, [from, index], ring, parcel);
            }
            OutputQueue::Host => unreachable!("only switches forward"),
        };
        let Passage::Queued { start, end, marked } = passage else {
            return ArrivalFate::Dropped { segment: parcel.segment(), end: parcel.end(), port: index };
        };
        if marked {
            self.segments[parcel.segment()].flags.insert(Flags::CE);
        }
        link.send(schedule, [start.get(), end.get()], index, parcel);
        ArrivalFate::Forwarded
    }

    /// Queues a frame at an output that is driven naively.
    #[inline(never)]
    fn arrive_at_naive(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        [from, index]: [PortIndex; 2],
        ring: u16,
        parcel: Parcel,
    ) -> ArrivalFate {
        let PortParts { link, queue, switch, .. } = self.ports[index as usize].parts_mut();
        let dropped = ArrivalFate::Dropped { segment: parcel.segment(), end: parcel.end(), port: index };
        if let OutputQueue::Rings(rings) = queue {
            if !rings.arrive(now, ring, parcel) {
                return dropped;
            }
            rings.serve(schedule, now, link, index);
            return ArrivalFate::Forwarded;
        }
        let (ecn, chance) = (ecn(&self.segments[parcel.segment()]), &mut self.chances[switch]);
        let flow_control = self.flow_control.as_mut().expect("a network with PAUSE");
        let mut pause = PausingPorts { ports: &mut self.ports, flow_control };
        let draw = || (chance.bits() >> 32) as u32;
        let verdict = pause.arrive(schedule, now, [from, index], parcel, ecn, draw);
        let Verdict::Accepted { marked } = verdict else { return dropped };
        if marked {
            self.segments[parcel.segment()].flags.insert(Flags::CE);
        }
        ArrivalFate::Forwarded
    }

    /// Carries out a due departure from a port that is driven naively.
    pub(crate) fn depart(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) {
        let PortParts { link, queue, .. } = self.ports[index as usize].parts_mut();
        match queue {
            OutputQueue::Rings(rings) => {
                if rings.take_departure(now) {
                    rings.serve(schedule, now, link, index);
                }
            }
            OutputQueue::Pausable(_) => self.pause().depart(schedule, now, index),
            _ => unreachable!("other departures are booked"),
        }
    }

    /// Returns the buffers of all switch outputs without rings.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &OutputBuffer> {
        let booked = self.memories.iter().flatten().map(BookedMemory::memory);
        let pausing = self.flow_control.iter().flat_map(|flow_control| flow_control.memories());
        let dedicated = self.ports.iter().filter_map(Port::buffer);
        booked.chain(pausing).flat_map(Memory::outputs).chain(dedicated)
    }

    /// Returns the buffer of a switch's port, as of the last settle; `None` at hosts and with rings.
    #[inline]
    fn buffer(&self, index: PortIndex) -> Option<&OutputBuffer> {
        let port = &self.ports[index as usize];
        let of_switch = || {
            let (switch, output) = port.at_switch()?;
            let booked = self.memories[switch].as_ref().map(BookedMemory::memory);
            let memory = booked.or_else(|| self.flow_control.as_ref()?.memories().nth(switch))?;
            Some(&memory.outputs()[output])
        };
        port.buffer().or_else(of_switch)
    }

    /// Settles the queue of a switch's port, and returns its state.
    pub(crate) fn queue(&mut self, now: u64, index: PortIndex) -> QueueState {
        self.ports[index as usize].settle(&mut self.memories, Instant::new(now));
        if let Some(queue) = self.ports[index as usize].rings() {
            let (bytes, frames, drops) = (queue.bytes(), queue.frames(), queue.drops());
            return QueueState { bytes, frames, drops, marks: 0 };
        }
        self.buffer(index).map_or_else(QueueState::default, state)
    }

    /// Returns the high-water mark of the queue at a switch's port, in bytes. With rings, returns the mark of the deepest ring.
    pub(crate) fn port_bytes_max(&self, index: PortIndex) -> u64 {
        if let Some(queue) = self.ports[index as usize].rings() {
            return queue.bytes_max();
        }
        self.buffer(index).map_or(0, |buffer| buffer.occupancy().bytes_max)
    }

    /// Returns the bytes queued at a switch's port and their [maximum](Self::port_bytes_max). Calls `visit` for each ring.
    #[inline]
    pub(crate) fn port_level(
        &mut self,
        now: u64,
        index: PortIndex,
        visit: &mut RingVisitor<'_>,
    ) -> MemoryOccupancy {
        self.ports[index as usize].settle(&mut self.memories, Instant::new(now));
        if let Some(queue) = self.ports[index as usize].rings() {
            queue.visit_rings(visit);
            return MemoryOccupancy { bytes: queue.bytes(), bytes_max: queue.bytes_max() };
        }
        self.buffer(index).map_or_else(MemoryOccupancy::default, |buffer| buffer.occupancy().level())
    }

    /// Returns the frames that have arrived over any link.
    pub(crate) const fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Starts all high-water marks afresh.
    pub(crate) fn reset_high_water_marks(&mut self, now: u64) {
        for memory in self.memories.iter_mut().flatten() {
            memory.reset_high_water_marks(Instant::new(now));
        }
        if let Some(flow_control) = &mut self.flow_control {
            flow_control.reset_high_water_marks();
        }
        self.ports.iter_mut().for_each(|port| port.reset_high_water_marks(Instant::new(now)));
    }

    /// Returns the numbers of frames that switches dropped and marked.
    pub(crate) fn drops_and_marks(&self) -> (u64, u64) {
        let in_rings = self.ports.iter().filter_map(Port::rings).map(rings::RingOutput::drops).sum();
        self.buffers().fold((in_rings, 0), |(drops, marks), buffer| {
            let counters = buffer.counters();
            (drops + counters.dropped_total().frames, marks + counters.marked.frames)
        })
    }

    /// Returns the figures of the rings of destinations; `None` where no port has rings.
    pub(crate) fn ring_figures(&self) -> Option<RingFigures> {
        let mut figures = None;
        for rings in self.ports.iter().filter_map(Port::rings) {
            rings.add_to(figures.get_or_insert_with(RingFigures::default));
        }
        figures
    }

    /// Returns the bytes that have arrived over each port's link in this partition.
    pub(crate) fn arrived_bytes(&self, schedule: &Schedule) -> Vec<u64> {
        let mut arrived: Vec<u64> = self.ports.iter().map(|port| port.link().started_bytes()).collect();
        for (port, parcel) in schedule.frames() {
            arrived[port as usize] -= u64::from(parcel.wire_bytes());
        }
        arrived
    }

    /// Returns the bytes put on links so far.
    pub(crate) fn wire_bytes_sent(&self) -> u64 {
        self.ports.iter().map(|port| port.link().wire_bytes()).sum()
    }

    /// Returns the frames put on links so far.
    pub(crate) fn hops(&self, schedule: &Schedule) -> u64 {
        let waiting = self.ports.iter().map(|port| port.link().frames().count()).sum::<usize>();
        self.arrived + (schedule.frames().count() + waiting) as u64
    }
}
