//! The steps that Fastpass schedules.

use crate::index::NIL;
use crate::occurrence::TechniqueStep;

/// A step of the arbiter or of a pair of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PacerStep {
    /// The arbiter decides a timeslot.
    SlotDecision,
    /// A timeslot begins for the pairs that start it together.
    SlotStart,
    /// A request enters the horizon of the list of requests.
    RequestInHorizon,
    /// The arbiter fails.
    ArbiterFailure,
    /// Hosts notice that the arbiter failed.
    ArbiterFailover,
    /// A timeslot begins for one pair of hosts.
    PairSlot(u32),
}

impl PacerStep {
    /// Returns the step as the schedule keeps it.
    pub(super) const fn scheduled(self, technique: u8) -> TechniqueStep {
        let (kind, of) = match self {
            Self::SlotDecision => (1, NIL),
            Self::SlotStart => (2, NIL),
            Self::RequestInHorizon => (3, NIL),
            Self::ArbiterFailure => (4, NIL),
            Self::ArbiterFailover => (5, NIL),
            Self::PairSlot(pair) => (6, pair),
        };
        TechniqueStep { technique, kind, of }
    }

    /// Returns the step that was [scheduled](Self::scheduled).
    pub(super) fn of(step: TechniqueStep) -> Self {
        match step.kind {
            1 => Self::SlotDecision,
            2 => Self::SlotStart,
            3 => Self::RequestInHorizon,
            4 => Self::ArbiterFailure,
            5 => Self::ArbiterFailover,
            6 => Self::PairSlot(step.of),
            kind => unreachable!("Fastpass schedules no step of kind {kind}"),
        }
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/fastpass_step.rs"]
mod tests;
