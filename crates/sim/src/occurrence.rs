//! What can be scheduled.

use crate::index::EndIndex;
use fanin_network::PortIndex;

/// One thing that happens at a scheduled time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Occurrence {
    /// The first frame on a port's link arrives at the far end.
    Arrival(PortIndex),
    /// A port that PAUSE can stop has few departures left, or its link is free again: it books further ones.
    Booking(PortIndex),
    /// The occupancy behind a paused input of a switch may have fallen below XON.
    SwitchLevels(u32),
    /// A PAUSE or RESUME takes effect at a port.
    PauseSignal(PortIndex),
    /// Ports that PAUSE has stopped are searched for a deadlock.
    DeadlockCheck,
    /// A port with rings may send.
    RingService(u32),
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

/// What a technique schedules.
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
