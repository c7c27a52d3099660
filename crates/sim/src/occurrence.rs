//! The kinds of scheduled occurrences.

use crate::index::{EndIndex, NIL};
use fanin_network::PortIndex;
use fanin_units::mix;

/// An occurrence of the schedule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Occurrence {
    /// The first frame on a port's link arrives at the far end.
    Arrival(PortIndex),
    /// A port without booked departures has sent a frame, or may send its next one.
    Departure(PortIndex),
    /// The ingress occupancy of a paused input of a switch has fallen to XON.
    ResumeCheck(u32),
    /// A PAUSE or RESUME takes effect at a port.
    PauseSignal(PortIndex),
    /// Paused ports are searched for a deadlock.
    DeadlockCheck,
    /// A timer of an endpoint may have expired.
    EndpointTimer(EndIndex),
    /// A deadline of a host's application may have come.
    HostTimer(u32),
    /// The watched queues are sampled.
    QueueSample,
    /// The workload is checked for progress.
    StallCheck,
    /// A technique acts. The fields are those of a [`TechniqueStep`], which with a tag would take more than eight bytes.
    Technique { technique: u8, kind: u8, of: u32 },
}

/// A step that a technique schedules. Only that technique reads `kind` and `of`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TechniqueStep {
    /// The technique's number in the table of techniques.
    pub(crate) technique: u8,
    /// The kind of the step, from 1 on.
    pub(crate) kind: u8,
    /// The object of the step, or [`NIL`].
    pub(crate) of: u32,
}

impl TechniqueStep {
    /// Returns the occurrence to schedule.
    pub(crate) const fn occurrence(self) -> Occurrence {
        let Self { technique, kind, of } = self;
        Occurrence::Technique { technique, kind, of }
    }

    /// Returns the step's name for the order of ties.
    pub(crate) const fn name(self) -> u64 {
        if self.of == NIL { self.kind as u64 } else { mix(self.of as u64) }
    }
}
