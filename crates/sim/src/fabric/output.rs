//! A port: the queue before a link, and the link.

use fanin_queueing::{BookedDedicated, BookedMemory, OutputBuffer};
use fanin_units::Instant;

use super::link::LinkState;
use super::paths::Crossing;
use super::pausable::PausableOutput;
use super::rings::RingOutput;
use crate::Error;
use crate::index::NIL;
use crate::parcel::Parcel;
use crate::schedule::NEVER;

/// The queue before a link, by its discipline.
pub(super) enum OutputQueue {
    /// A switch's output with its own buffer (`dedicated.rs` of `queueing`); departures are booked.
    Dedicated(Box<BookedDedicated>),
    /// A switch's output that shares memory with others; departures are booked. The switch's [`BookedMemory`] knows the scheme
    /// (`shared.rs`, `dynamic_threshold.rs`, `voq.rs`).
    Memory,
    /// An output with rings (`rings.rs`), driven naively.
    Rings(Box<RingOutput>),
    /// An output that PAUSE can stop (`pausable.rs`), driven naively. Its memory is accounted by its switch.
    Pausable(Box<PausableOutput>),
    /// A host's output: first in, first out, without a limit. Departures are booked on the link.
    Host,
}

/// One direction of a link and the queue before it.
pub(super) struct Port {
    link: LinkState,
    queue: OutputQueue,
    /// The number of the port's switch; [`NIL`] at a host.
    switch: u32,
    /// The port's number among the ports of its node.
    output: u16,
    /// The number of the input port at the far end of the link, among the ports of that node.
    input: u16,
}

/// The parts of a port of a switch.
pub(super) struct PortParts<'a> {
    pub(super) link: &'a mut LinkState,
    pub(super) queue: &'a mut OutputQueue,
    pub(super) switch: usize,
    pub(super) output: usize,
}

impl Port {
    /// Makes a port of a host. `output` is its number at its own node, `input` the number at the far end of the link.
    pub(super) const fn new(link: LinkState, [output, input]: [u16; 2]) -> Self {
        Self { link, queue: OutputQueue::Host, switch: NIL, output, input }
    }

    /// Makes the port an output of a switch.
    pub(super) const fn join(&mut self, switch: u32) {
        self.switch = switch;
    }

    pub(super) fn set_queue(&mut self, queue: OutputQueue) {
        self.queue = queue;
    }

    #[inline]
    pub(super) const fn link(&self) -> &LinkState {
        &self.link
    }

    #[inline]
    pub(super) const fn link_mut(&mut self) -> &mut LinkState {
        &mut self.link
    }

    /// Returns the numbers of the port's switch and of the port there; `None` at a host.
    #[inline]
    pub(super) fn at_switch(&self) -> Option<(usize, usize)> {
        (self.switch != NIL).then_some((self.switch as usize, usize::from(self.output)))
    }

    #[inline]
    pub(super) const fn input(&self) -> u16 {
        self.input
    }

    /// Returns the crossing from this port's link to another port of the switch that the link leads to.
    #[inline]
    pub(super) const fn crossing(&self, onto: &Self) -> Crossing {
        Crossing { switch: onto.switch, input: self.input, output: onto.output }
    }

    /// Returns the ring for frames to a destination; 0 where the port has no rings.
    pub(super) fn ring(&mut self, destination: Option<u32>) -> Result<u16, Error> {
        if let OutputQueue::Rings(rings) = &mut self.queue { rings.ring(destination) } else { Ok(0) }
    }

    /// Returns the link of a host that no PAUSE can stop, whose frames need no queue before the link; otherwise `None`.
    pub(super) fn host_link(&mut self) -> Option<&mut LinkState> {
        if let OutputQueue::Host = self.queue { Some(&mut self.link) } else { None }
    }

    /// Returns the port's parts for an arriving frame: the queue decides, the link sends.
    pub(super) fn parts_mut(&mut self) -> PortParts<'_> {
        let Self { link, queue, switch, output, .. } = self;
        PortParts { link, queue, switch: *switch as usize, output: usize::from(*output) }
    }

    pub(super) fn rings(&self) -> Option<&RingOutput> {
        if let OutputQueue::Rings(rings) = &self.queue { Some(rings) } else { None }
    }

    pub(super) fn pausable(&self) -> Option<&PausableOutput> {
        if let OutputQueue::Pausable(out) = &self.queue { Some(out) } else { None }
    }

    /// Returns the queue and the link of a port that PAUSE can stop.
    pub(super) fn pausable_mut(&mut self) -> (&mut PausableOutput, &mut LinkState) {
        let OutputQueue::Pausable(out) = &mut self.queue else { panic!("the output cannot be paused") };
        (out, &mut self.link)
    }

    /// Returns the dedicated buffer of an output that is not driven naively, as of the last settle.
    pub(super) fn buffer(&self) -> Option<&OutputBuffer> {
        if let OutputQueue::Dedicated(queue) = &self.queue { Some(queue.buffer()) } else { None }
    }

    /// Frees the memory of all frames that have departed by `now`. A naively driven queue settles at each departure instead.
    #[inline]
    pub(super) fn settle(&mut self, memories: &mut [Option<BookedMemory>], now: Instant) {
        if let OutputQueue::Dedicated(queue) = &mut self.queue {
            queue.settle(now);
        } else if let Some(Some(memory)) = memories.get_mut(self.switch as usize) {
            memory.occupancy(now, usize::from(self.output));
        }
    }

    /// Resets the high-water marks of the port's own queue; the switch's memory has its own marks.
    pub(super) fn reset_high_water_marks(&mut self, now: Instant) {
        match &mut self.queue {
            OutputQueue::Dedicated(queue) => queue.reset_high_water_marks(now),
            OutputQueue::Rings(rings) => rings.reset_high_water_marks(),
            _ => {}
        }
    }

    /// Returns the waiting frames without a booked departure.
    pub(super) fn waiting(&self) -> Box<dyn Iterator<Item = Parcel> + '_> {
        match &self.queue {
            OutputQueue::Rings(rings) => Box::new(rings.waiting()),
            OutputQueue::Pausable(out) => Box::new(out.waiting().map(|frame| frame.parcel)),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// Asserts that the link kept its rate and order, and the queue's own accounts add up.
    pub(super) fn assert_conserved(&mut self, now: u64, index: usize) {
        self.link.assert_conserved(index);
        match &mut self.queue {
            OutputQueue::Dedicated(queue) => {
                queue.settle(Instant::new(now));
                queue.assert_conserved();
            }
            OutputQueue::Rings(rings) => rings.assert_conserved(),
            OutputQueue::Pausable(out) => out.assert_departs(&self.link, index),
            // The switch checks the accounts of the other queues; a host's frames are on the link.
            _ => {}
        }
    }
}

/// The pending departure of a naively driven output.
pub(super) struct PendingDeparture {
    /// Time at which the departure is due; occurrences of other times do nothing.
    at: u64,
}

impl PendingDeparture {
    pub(super) const fn none() -> Self {
        Self { at: NEVER }
    }

    /// Notes that a departure is due at `at`, unless an earlier one is. Returns true if the caller has to schedule it.
    pub(super) fn expect(&mut self, at: u64) -> bool {
        let is_earlier = at < self.at;
        self.at = self.at.min(at);
        is_earlier
    }

    /// Takes the departure that is due at `now`. Returns false if the occurrence is out of date.
    pub(super) fn take(&mut self, now: u64) -> bool {
        assert!(self.at >= now, "a departure was left out");
        let is_due = self.at == now;
        if is_due {
            self.at = NEVER;
        }
        is_due
    }

    pub(super) const fn is_expected(&self) -> bool {
        self.at != NEVER
    }
}
