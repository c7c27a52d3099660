//! Records of events, the same in the simulator and in a live system.

use fanin_units::{Bytes, Instant};

use crate::{EventStream, L1Id, Outcome};

/// One step in the life of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRecord {
    /// The time of the step.
    pub at: Instant,
    /// The event. For [`EventStep::Xoff`] and [`EventStep::Xon`], the next event to assign.
    pub event: L1Id,
    /// The step in the event's life.
    pub step: EventStep,
}

/// A step in the life of an event. Each description begins with the role that records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventStep {
    /// Supervisor: given to a processing unit.
    Assigned {
        /// The unit's collector.
        collector: u16,
        /// The processing unit's number on its collector.
        unit: u16,
        /// Time at which the event fell due; earlier than the record if the event was held.
        due: Instant,
        /// True for an event of a lost collector, to be stored without processing.
        direct: bool,
    },
    /// Supervisor: taken from a collector that was lost; it will be assigned again.
    Reassigned {
        /// The lost collector.
        from: u16,
    },
    /// Supervisor: finished. Each event has exactly one such record.
    Completed {
        /// The collector that finished it.
        collector: u16,
        /// The event's final state.
        outcome: Outcome,
    },
    /// Supervisor: a collector that was thought lost finished it, too.
    Duplicated {
        /// The collector that finished it again.
        collector: u16,
        /// The final state that this collector reported.
        outcome: Outcome,
    },
    /// Supervisor: no unit is free or a readout is full, and the trigger stops.
    Xoff,
    /// Supervisor: the trigger may resume.
    Xon,
    /// Collector: arrived for a unit.
    Received {
        /// The processing unit's number on its collector.
        unit: u16,
    },
    /// Collector: the first request of a step was sent.
    FirstRequest {
        /// The step, from zero.
        step: u16,
    },
    /// Collector, only if requests are traced: an answer arrived.
    Answered {
        /// The readout's number.
        readout: u16,
        /// Time at which the request was sent.
        requested: Instant,
        /// The size of the payload.
        bytes: Bytes,
    },
    /// Collector: fragments of a readout will never arrive. The readout is lost, or does not have them.
    Missing {
        /// The readout's number.
        readout: u16,
        /// The number of fragments.
        fragments: u16,
    },
    /// Collector: all fragments of a step have arrived.
    Collected {
        /// The step, from zero.
        step: u16,
        /// True if the step completes the event for storage, after the decision.
        building: bool,
        /// Time of the step's requests, before they waited for credits.
        began: Instant,
        /// Time at which the step's first request was sent.
        first_request: Instant,
        /// Requests of the event so far.
        requests: u32,
        /// Payload bytes of the event so far.
        bytes: Bytes,
        /// Fragments of the event that are missing so far.
        missing: u32,
    },
    /// Collector: a processing unit decided on the event, or the event goes to the debug stream undecided (`Debug`).
    Decided {
        /// The processing unit's number on its collector.
        unit: u16,
        /// The final state of the event if storing succeeds.
        outcome: Outcome,
    },
    /// Collector: too large for a logger. All its fragments are recorded as missing next.
    TooLarge {
        /// The size of the payload.
        bytes: Bytes,
        /// The largest payload that a logger receives.
        limit: Bytes,
    },
    /// Collector: sent to a logger.
    Shipped {
        /// The logger's number.
        logger: u16,
        /// Number of the attempt, from 1. Above 1, an earlier attempt may have stored the event, too.
        attempt: u16,
        /// The stream that stores the event.
        stream: EventStream,
        /// The size of the payload.
        bytes: Bytes,
        /// Fragments that are missing.
        missing: u32,
    },
    /// Collector: the logger has it on disk.
    Acknowledged {
        /// The logger's number.
        logger: u16,
    },
    /// Collector: forgotten, as the supervisor gave it to another collector.
    Abandoned,
    /// Collector or supervisor: a clear was sent to the readouts.
    Cleared,
    /// Logger: on disk.
    Stored {
        /// The collector that sent the event.
        collector: u16,
        /// The stream that stores the event.
        stream: EventStream,
        /// Fragments that are missing.
        missing: u32,
    },
    /// Logger: some fragments are damaged and cannot be written. They will be on disk as empty stand-ins, in the debug stream.
    StandIns {
        /// Number of stand-ins.
        fragments: u32,
    },
    /// Readout: its fragments were deleted.
    Deleted,
    /// Driver of a live role: its connections timed out while messages of this event were waiting on them.
    TimedOut {
        /// The number of timeouts.
        times: u32,
    },
}
