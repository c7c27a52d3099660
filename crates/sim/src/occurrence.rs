//! The things that can be scheduled.

use crate::index::EndIndex;
use fanin_network::PortIndex;

/// One thing that happens at a scheduled time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Occurrence {
    /// The first frame on a port's link arrives at the far end.
    Arrival(PortIndex),
    /// A frame has left a port whose departures are not booked ahead, or its next one may leave.
    Departure(PortIndex),
    /// The ingress occupancy of a paused input of a switch has fallen to XON.
    ResumeCheck(u32),
    /// A PAUSE or RESUME takes effect at a port.
    PauseSignal(PortIndex),
    /// Ports that PAUSE has stopped are searched for a deadlock.
    DeadlockCheck,
    /// A timer of an endpoint may have expired.
    EndpointTimer(EndIndex),
    /// A deadline of a host's application may have come.
    HostTimer(u32),
    /// The watched queues are sampled.
    QueueSample,
    /// The workload is checked for progress.
    StallCheck,
    /// A technique acts.
    Technique(TechniqueStep),
}

/// A step that a technique schedules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TechniqueStep {
    /// Fastpass: the arbiter decides a timeslot.
    SlotDecision,
    /// Fastpass: a timeslot begins for the pairs that start it together.
    SlotStart,
    /// Fastpass: a timeslot begins for one pair of hosts.
    PairSlot(u32),
    /// Fastpass: a request enters the horizon of the list of requests.
    RequestInHorizon,
    /// Fastpass: the arbiter fails.
    ArbiterFailure,
    /// Fastpass: hosts notice that the arbiter failed.
    ArbiterFailover,
}

const _: () = assert!(size_of::<Occurrence>() == 8);
