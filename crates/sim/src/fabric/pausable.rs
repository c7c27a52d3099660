//! An output that PAUSE can stop, and how its sender obeys PAUSE. It is driven naively.

use fanin_network::PortIndex;
use fanin_queueing::{Class, InService, NaiveOutput};
use fanin_units::Instant;

use super::link::LinkState;
use super::output::PendingDeparture;
use super::parcel::Parcel;
use crate::occurrence::Occurrence;
use crate::schedule::Schedule;

/// A frame in an output that can be paused.
#[derive(Clone, Copy, Default)]
pub(super) struct PausableFrame {
    pub(super) parcel: Parcel,
    /// The sending port of its last link; none at its own host.
    pub(super) input: PortIndex,
}

/// State of a sender that obeys its receiver's PAUSE.
#[derive(Default)]
pub(super) struct PausedSender {
    /// A PAUSE is for bulk data only.
    pub(super) only_bulk: bool,
    pub(super) reaction: u64,
    pub(super) paused_since: u64,
    pub(super) pauses: u64,
    pub(super) paused_for: u64,
    pub(super) longest: u64,
}

impl PausedSender {
    /// A sender that a PAUSE stops after `reaction` picoseconds.
    pub(super) fn new(only_bulk: bool, reaction: u64) -> Self {
        Self { only_bulk, reaction, ..Self::default() }
    }

    /// The classes that a PAUSE stops.
    pub(super) fn stopped_classes(&self) -> impl Iterator<Item = Class> + use<> {
        let urgent = (!self.only_bulk).then_some(Class::Urgent);
        [Class::Bulk].into_iter().chain(urgent)
    }
}

/// An output that can be paused.
pub(super) struct PausableOutput {
    pub(super) output: NaiveOutput<PausableFrame>,
    pub(super) departure: PendingDeparture,
    pub(super) sender: PausedSender,
}

impl PausableOutput {
    pub(super) fn new(in_service: InService, sender: PausedSender) -> Self {
        Self { output: NaiveOutput::new(in_service), departure: PendingDeparture::none(), sender }
    }

    /// Schedules the next step: the end of the frame in service, or a departure when the link is free.
    pub(super) fn schedule(&mut self, schedule: &mut Schedule, link: &LinkState, index: PortIndex) {
        let next = self.output.next_departure(Instant::new(link.free_at()));
        if let Some(at) = next.map(Instant::get)
            && self.departure.expect(at)
        {
            schedule.insert_first(at, Occurrence::Departure(index));
        }
    }
}
