//! An output that PAUSE can stop, and how its sender obeys PAUSE. It is driven naively.

use std::collections::VecDeque;

use fanin_network::PortIndex;
use fanin_queueing::{Dedicated, PausableQueue, PauseSignal};

use super::link::LinkState;
use super::parcel::Parcel;
use crate::occurrence::Occurrence;
use crate::schedule::{NEVER, Schedule};

/// A frame in an output that can be paused.
#[derive(Clone, Copy, Default)]
pub(super) struct PausableFrame {
    pub(super) parcel: Parcel,
    /// The port over whose link it came in; none at its own host.
    pub(super) input: PortIndex,
}

/// The memory that an output's frames take.
pub(super) enum OutputBuffer {
    /// A host's, which has no limit.
    Unlimited,
    /// The output's own.
    Dedicated(Box<Dedicated>),
    /// The switch's.
    Shared,
}

/// How the sender at one end of a link obeys the receiver's PAUSE.
#[derive(Default)]
pub(super) struct PausedSender {
    /// A PAUSE is for bulk data only.
    pub(super) only_bulk: bool,
    pub(super) reaction: u64,
    /// Propagation of the link, by which signals come.
    pub(super) link_delay: u64,
    /// Signals on their way.
    pub(super) signals: VecDeque<PauseSignal>,
    pub(super) paused_since: u64,
    pub(super) pauses: u64,
    pub(super) paused_for: u64,
    pub(super) longest: u64,
}

impl PausedSender {
    /// A sender that a PAUSE stops after `reaction` picoseconds; signals travel for `link_delay`.
    pub(super) fn new(only_bulk: bool, reaction: u64, link_delay: u64) -> Self {
        Self { only_bulk, reaction, link_delay, ..Self::default() }
    }
}

/// An output that can be paused.
pub(super) struct PausableOutput {
    pub(super) queue: PausableQueue<PausableFrame>,
    pub(super) buffer: OutputBuffer,
    /// True if a frame takes memory until its last bit has left.
    pub(super) counts_in_service: bool,
    /// The frame that is being sent and takes memory, and until when.
    pub(super) in_service: Option<(u64, PausableFrame)>,
    /// When the pending occurrence is due; earlier ones do nothing.
    pub(super) departure_at: u64,
    pub(super) sender: PausedSender,
}

impl PausableOutput {
    pub(super) fn new(buffer: OutputBuffer, counts_in_service: bool, sender: PausedSender) -> Self {
        Self {
            queue: PausableQueue::default(),
            buffer,
            counts_in_service,
            in_service: None,
            departure_at: NEVER,
            sender,
        }
    }

    pub(super) const fn is_switch(&self) -> bool {
        !matches!(self.buffer, OutputBuffer::Unlimited)
    }

    /// The output's own buffer, if it has one.
    pub(super) fn dedicated(&self) -> Option<&Dedicated> {
        if let OutputBuffer::Dedicated(buffer) = &self.buffer { Some(buffer) } else { None }
    }

    pub(super) fn reset_marks(&mut self) {
        if let OutputBuffer::Dedicated(buffer) = &mut self.buffer {
            buffer.reset_marks();
        }
    }

    /// The frames that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Parcel> {
        self.queue.waiting().map(|waiting| waiting.parcel)
    }

    /// The frames that take memory here: those that wait, and the one in service where that counts.
    pub(super) fn stored(&self) -> impl Iterator<Item = PausableFrame> {
        self.queue.waiting().chain(self.in_service.map(|(_, waiting)| waiting))
    }

    /// Schedules what comes next: the end of the frame in service, or a departure when the link is free.
    pub(super) fn schedule(&mut self, schedule: &mut Schedule, link: &LinkState, index: PortIndex) {
        let at = match self.in_service {
            Some((until, _)) => until,
            None if self.queue.has_ready() => link.free_at(),
            None => return,
        };
        if at < self.departure_at {
            self.departure_at = at;
            schedule.insert_first(at, Occurrence::Departure(index));
        }
    }
}
