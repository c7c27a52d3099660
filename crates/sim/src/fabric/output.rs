//! A port: the queue before a link, and the link.

use fanin_queueing::BookedDedicated;
use fanin_units::Instant;

use super::link::LinkState;
use super::pausable::PausableOutput;
use super::rings::RingOutput;

/// The queue before a link, by its discipline.
pub(super) enum OutputQueue {
    /// A host's: first in, first out, without a limit. Departures are booked on the link.
    Host,
    /// A switch's output with a buffer of its own; departures are booked.
    Dedicated(Box<BookedDedicated>),
    /// An output of a switch whose outputs share memory: shared pools, a dynamic threshold or virtual output queues. The queue
    /// is in [`Fabric::memories`](super::Fabric); departures are booked.
    Shared,
    /// An output with rings, driven naively.
    Rings(Box<RingOutput>),
    /// An output that PAUSE can stop, driven naively.
    Pausable(Box<PausableOutput>),
}

/// One direction of a link and the queue before it.
pub(crate) struct Port {
    pub(crate) link: LinkState,
    pub(super) queue: OutputQueue,
    /// The number of the switch it belongs to; [`NIL`](crate::index::NIL) at a host.
    pub(super) switch: u32,
    /// The port's number among those that leave its node.
    pub(super) output: u16,
    /// The number, at the node that the link leads to, of the port that its frames come in by.
    pub(super) input: u16,
}

impl Port {
    /// The largest queue since the marks were reset, in bytes; none where another has the account, and at hosts.
    pub(super) fn bytes_max(&self) -> Option<u64> {
        match &self.queue {
            OutputQueue::Host | OutputQueue::Shared => None,
            OutputQueue::Dedicated(queue) => Some(queue.buffer().occupancy().bytes_max),
            OutputQueue::Rings(queue) => Some(queue.bytes_max()),
            OutputQueue::Pausable(queue) => queue.dedicated().map(|buffer| buffer.occupancy().bytes_max),
        }
    }

    /// Starts the high-water marks afresh.
    pub(super) fn reset_marks(&mut self, now: u64) {
        match &mut self.queue {
            OutputQueue::Host | OutputQueue::Shared => {}
            OutputQueue::Dedicated(queue) => queue.reset_marks(Instant::new(now)),
            OutputQueue::Rings(queue) => queue.reset_marks(),
            OutputQueue::Pausable(queue) => queue.reset_marks(),
        }
    }
}
