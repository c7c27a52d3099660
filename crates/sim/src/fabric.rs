//! Links, output queues and the frames in them: everything between a host's TCP and another's.
//!
//! A port is a FIFO queue before a link of constant rate and delay. When a frame leaves it is therefore known as
//! soon as it is accepted: no occurrence is spent on departures, and only the first arrival of each link is
//! pending in the schedule; the others wait in the link's list, in order.

use fanin_queueing::{Ecn, FifoMemory, Frame as Descriptor, Limit, Passage};
use fanin_units::{Bytes, Instant, Rate};

use crate::Error;
use crate::memories::{Memories, Place};
use crate::network::{Network, PortIndex};
use crate::random::{Kind, Purpose, Random, host};
use crate::schedule::Schedule;
use crate::tcp::{Flags, Segment};

/// No frame, port or end.
pub(crate) const NIL: u32 = u32::MAX;

/// What an occurrence is: the upper bits of its number say which kind, the rest of them which one.
pub(crate) const INDEX_BITS: u32 = 29;

/// A frame arrives over the link of a port.
pub(crate) const ARRIVAL: u32 = 0;

/// A frame on its way. Its segment lies at the same place of `Fabric::segments`: what is touched at every hop
/// fits into half a cache line.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    /// When its last bit arrives at the far end of the present link, in picoseconds.
    pub(crate) arrival: u64,
    /// The next frame of the same link, or [`NIL`].
    next: u32,
    /// Where in `Fabric::routes` its present port stands.
    hop: u32,
    /// The end of a connection that it is for.
    pub(crate) end: u32,
    /// Bytes on the wire, everything counted.
    pub(crate) wire_bytes: u32,
}

/// One direction of a link and the queue before it.
pub(crate) struct Port {
    head: u32,
    tail: u32,
    /// When the last accepted frame will have left.
    free_at: u64,
    /// Picoseconds a byte lasts; zero where that is no whole number.
    ps_per_byte: u64,
    /// Propagation, and the latency of the switch at the far end.
    delay: u64,
    rate: Rate,
    pub(crate) place: Place,
    /// How many wish that each frame that arrives over the link is noted.
    pub(crate) taps: u32,
    /// Frames put on the link.
    pub(crate) frames: u64,
    /// Bytes put on the link, everything on the wire counted.
    pub(crate) wire_bytes: u64,
    /// Bytes that arrived, and when the last did: checked against the rate at the end of a run.
    pub(crate) arrived_bytes: u64,
    last_arrival: u64,
}

impl Port {
    #[inline]
    fn time_to_send(&self, wire_bytes: u32) -> u64 {
        if self.ps_per_byte == 0 { self.time_to_send_exact(wire_bytes) } else { u64::from(wire_bytes) * self.ps_per_byte }
    }

    #[cold]
    fn time_to_send_exact(&self, wire_bytes: u32) -> u64 {
        self.rate.time_to_send(Bytes::new(u64::from(wire_bytes))).get()
    }
}

/// Where a frame is after a hop.
pub(crate) enum Hop {
    /// At another switch, on its way through this port.
    Forward(PortIndex),
    /// At its destination.
    Deliver,
}

/// All ports and the frames in flight.
pub(crate) struct Fabric {
    pub(crate) ports: Vec<Port>,
    /// The packet memories of the switches.
    pub(crate) memories: Vec<FifoMemory>,
    /// For switches that mark or drop by chance.
    chances: Vec<Random>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) segments: Vec<Segment>,
    free: u32,
    /// Paths, one after another: ports, each path ended by [`NIL`].
    routes: Vec<u32>,
    link_bytes: u32,
    ip_bytes_min: u32,
    /// The part of a frame's bytes on the wire that a switch does not store.
    unstored_bytes: u32,
}

impl Fabric {
    pub(crate) fn new(network: &Network, seed: u64) -> Result<Self, Error> {
        let Memories { memories, places, nodes } = Memories::new(network)?;
        let port = |index: PortIndex| {
            let link = &network.links[index as usize / 2];
            let ps_bits = 8_000_000_000_000;
            Port {
                head: NIL,
                tail: NIL,
                free_at: 0,
                ps_per_byte: if ps_bits % link.rate.get() == 0 { ps_bits / link.rate.get() } else { 0 },
                delay: (link.delay + network.latency(index)).get(),
                place: places[index as usize],
                taps: 0,
                rate: link.rate,
                frames: 0,
                wire_bytes: 0,
                arrived_bytes: 0,
                last_arrival: 0,
            }
        };
        let chances = nodes.iter().map(|&node| {
            Random::new(crate::random::seed(seed, host(Kind::Switch, u64::from(node)), Purpose::Marking))
        });
        Ok(Self {
            ports: (0..2 * network.links.len() as PortIndex).map(port).collect(),
            memories,
            chances: chances.collect(),
            frames: Vec::new(),
            segments: Vec::new(),
            free: NIL,
            routes: Vec::new(),
            link_bytes: network.framing.link_bytes,
            ip_bytes_min: network.framing.ip_bytes_min,
            unstored_bytes: network.framing.link_bytes - network.framing.stored_bytes,
        })
    }

    /// Stores a path; returns where it starts.
    pub(crate) fn add_route(&mut self, ports: impl Iterator<Item = PortIndex>) -> u32 {
        let start = u32::try_from(self.routes.len()).expect("more than 2^32 hops in all paths");
        self.routes.extend(ports);
        self.routes.push(NIL);
        start
    }

    /// The ports of a path.
    pub(crate) fn route(&self, start: u32) -> &[PortIndex] {
        let path = &self.routes[start as usize..];
        &path[..path.iter().position(|&port| port == NIL).unwrap_or(path.len())]
    }

    /// Notes all frames on the link of a port, both ways, or no longer.
    pub(crate) fn tap_link(&mut self, port: PortIndex, on: bool) {
        for port in [port, port ^ 1] {
            let taps = &mut self.ports[port as usize].taps;
            *taps = if on { *taps + 1 } else { *taps - 1 };
        }
    }

    /// Makes a frame of a segment; it is on no link yet.
    #[inline]
    pub(crate) fn add(&mut self, segment: &Segment, route: u32, end: u32) -> u32 {
        let wire_bytes = self.link_bytes + segment.ip_bytes().max(self.ip_bytes_min);
        let frame = Frame { arrival: 0, next: NIL, hop: route, end, wire_bytes };
        if self.free == NIL {
            self.frames.push(frame);
            self.segments.push(*segment);
            (self.frames.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.frames[index as usize].next;
            self.frames[index as usize] = frame;
            self.segments[index as usize] = *segment;
            index
        }
    }

    /// Forgets a frame that was delivered or dropped.
    #[inline]
    pub(crate) fn remove(&mut self, frame: u32) {
        self.frames[frame as usize].next = self.free;
        self.free = frame;
    }

    /// The port at which a frame stands according to its path.
    #[inline]
    pub(crate) fn present_port(&self, frame: u32) -> PortIndex {
        self.routes[self.frames[frame as usize].hop as usize]
    }

    /// Puts a frame behind all others of a host's port; hosts queue without limit.
    #[inline]
    pub(crate) fn send(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex, frame: u32) {
        let port = &mut self.ports[index as usize];
        let departure = now.max(port.free_at) + port.time_to_send(self.frames[frame as usize].wire_bytes);
        port.free_at = departure;
        self.depart(schedule, departure, index, frame);
    }

    /// Hands a frame that came in by port `from` to the switch's memory before port `index`, and says which limit
    /// dropped it, if one did.
    #[inline]
    pub(crate) fn forward(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        from: PortIndex,
        index: PortIndex,
        frame: u32,
    ) -> Option<Limit> {
        let input = self.ports[from as usize].place.input;
        let Place { memory, output, .. } = self.ports[index as usize].place;
        let flags = self.segments[frame as usize].flags;
        let ecn = if flags.contains(Flags::CE) {
            Ecn::Congestion
        } else if flags.contains(Flags::ECT) {
            Ecn::Capable
        } else {
            Ecn::NotCapable
        };
        let bytes = self.frames[frame as usize].wire_bytes - self.unstored_bytes;
        let chance = &mut self.chances[memory as usize];
        let passage = self.memories[memory as usize].handle_arrival(
            Instant::new(now),
            usize::from(input),
            usize::from(output),
            Descriptor { bytes, ecn },
            || (chance.bits() >> 32) as u32,
        );
        match passage {
            Passage::Queued { end, marked, .. } => {
                if marked {
                    self.segments[frame as usize].flags.insert(Flags::CE);
                }
                self.depart(schedule, end.get(), index, frame);
                None
            }
            Passage::Dropped(limit) => Some(limit),
        }
    }

    /// Notes that a frame will have left a port at `departure`.
    #[inline]
    fn depart(&mut self, schedule: &mut Schedule, departure: u64, index: PortIndex, frame: u32) {
        let port = &mut self.ports[index as usize];
        let entry = &mut self.frames[frame as usize];
        entry.arrival = departure + port.delay;
        entry.next = NIL;
        port.frames += 1;
        port.wire_bytes += u64::from(entry.wire_bytes);
        if port.head == NIL {
            port.head = frame;
            schedule.insert(entry.arrival, ARRIVAL << INDEX_BITS | index);
        } else {
            self.frames[port.tail as usize].next = frame;
        }
        port.tail = frame;
    }

    /// Takes the frame that has just arrived over a port's link, and says where it goes.
    #[inline]
    pub(crate) fn arrive(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) -> (u32, Hop) {
        let port = &mut self.ports[index as usize];
        let frame = port.head;
        let entry = &mut self.frames[frame as usize];
        debug_assert_eq!(entry.arrival, now);
        port.arrived_bytes += u64::from(entry.wire_bytes);
        port.last_arrival = now;
        port.head = entry.next;
        entry.hop += 1;
        let next_port = self.routes[entry.hop as usize];
        if port.head != NIL {
            schedule.insert(self.frames[port.head as usize].arrival, ARRIVAL << INDEX_BITS | index);
        }
        (frame, if next_port == NIL { Hop::Deliver } else { Hop::Forward(next_port) })
    }

    /// Frames on a port's link or in its queue, in order.
    pub(crate) fn on_port(&self, index: PortIndex) -> impl Iterator<Item = u32> {
        let some = |frame: u32| (frame != NIL).then_some(frame);
        std::iter::successors(some(self.ports[index as usize].head), move |&frame| {
            some(self.frames[frame as usize].next)
        })
    }

    /// Frames put on links so far.
    pub(crate) fn hops(&self) -> u64 {
        self.ports.iter().map(|port| port.frames).sum()
    }

    /// Asserts that no link carried more than its rate, and that what was put on it arrived or is still there.
    pub(crate) fn assert_conserved(&self) {
        for (index, port) in self.ports.iter().enumerate() {
            let rest: u64 =
                self.on_port(index as PortIndex).map(|frame| u64::from(self.frames[frame as usize].wire_bytes)).sum();
            assert_eq!(port.wire_bytes, port.arrived_bytes + rest, "bytes of port {index} are unaccounted for");
            let carried = u128::from(port.rate.get()) * u128::from(port.last_arrival.saturating_sub(port.delay))
                / 8_000_000_000_000;
            assert!(
                u128::from(port.arrived_bytes) <= carried,
                "port {index} carried {} bytes where its rate allows {carried}",
                port.arrived_bytes
            );
        }
    }
}
