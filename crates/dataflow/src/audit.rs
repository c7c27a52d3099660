//! The audit: proof that no event was lost or counted twice.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::{EventRecord, EventStep, L1Id, Outcome};

/// Follows the records of all roles, from one process or from the journals of many, in any order.
///
/// The rule: every assigned L1 ID is finished exactly once, as rejected, accepted, stored or debug. A stored event is
/// on disk exactly once. An event that was taken from a collector, or sent to a logger twice, may have further copies.
#[derive(Debug, Default)]
pub struct Auditor {
    events: BTreeMap<L1Id, Life>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Life {
    assigned: u32,
    completed: u32,
    stored: u32,
    reassigned: u32,
    /// True if it was assigned as an event of a lost collector. The record of the loss may be in a journal that was deleted.
    was_lost: bool,
    resent: bool,
    outcome: Option<Outcome>,
}

/// The number of events by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Events that were assigned.
    pub assigned: u64,
    /// Events that were rejected.
    pub rejected: u64,
    /// Events accepted in a system without loggers.
    pub accepted: u64,
    /// Events that were accepted and stored.
    pub stored: u64,
    /// Events in the debug stream.
    pub debug: u64,
    /// Copies on disk beyond those that the outcome requires, each explained by a record.
    pub duplicates: u64,
}

impl Totals {
    /// Counts an event by its outcome.
    pub fn add(&mut self, outcome: Outcome) {
        let count = match outcome {
            Outcome::Rejected => &mut self.rejected,
            Outcome::Accepted => &mut self.accepted,
            Outcome::Stored => &mut self.stored,
            Outcome::Debug => &mut self.debug,
        };
        *count += 1;
    }
}

/// An event that breaks the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// Records name an event that was never assigned.
    #[error("event {0} was never assigned")]
    NeverAssigned(L1Id),
    /// The event was assigned again, although it was not taken from its collector.
    #[error("event {event} was assigned {assigned} times, but taken back {reassigned} times")]
    AssignedTwice {
        /// The event's L1 ID.
        event: L1Id,
        /// Number of its assignments.
        assigned: u32,
        /// Times that it was taken from a collector.
        reassigned: u32,
    },
    /// The event has no outcome.
    #[error("event {0} was lost: it was assigned and has no outcome")]
    Lost(L1Id),
    /// The event was finished more than once.
    #[error("event {event} was completed {completed} times")]
    CompletedTwice {
        /// The event's L1 ID.
        event: L1Id,
        /// The number of times that it was finished.
        completed: u32,
    },
    /// The event was reported as stored, but is not on disk.
    #[error("event {0} is said to be stored, but no logger has it")]
    NotOnDisk(L1Id),
    /// The event is on disk more often than its records explain.
    #[error("event {event} is on disk {copies} times without a reason")]
    StoredTwice {
        /// The event's L1 ID.
        event: L1Id,
        /// The number of its copies on disk.
        copies: u32,
    },
    /// The event is on disk although it was rejected, without an explaining record.
    #[error("event {0} was rejected, but is on disk")]
    RejectedOnDisk(L1Id),
}

impl Auditor {
    /// Makes an auditor without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record. XOFF and XON are ignored, as they belong to no event.
    pub fn record(&mut self, record: &EventRecord) {
        if matches!(record.step, EventStep::Xoff | EventStep::Xon) {
            return;
        }
        let life = self.events.entry(record.event).or_default();
        match record.step {
            EventStep::Assigned { direct, .. } => {
                life.assigned += 1;
                life.was_lost |= direct;
            }
            EventStep::Reassigned { .. } => life.reassigned += 1,
            EventStep::Completed { outcome, .. } => {
                life.completed += 1;
                life.outcome = Some(outcome);
            }
            EventStep::Stored { .. } => life.stored += 1,
            EventStep::Shipped { attempt, .. } if attempt > 1 => life.resent = true,
            _ => {}
        }
    }

    /// Returns the recorded events in the order of L1 IDs.
    pub fn events(&self) -> impl Iterator<Item = L1Id> {
        self.events.keys().copied()
    }

    /// Leaves an event out, because some of its records are missing.
    pub fn forget(&mut self, event: L1Id) {
        self.events.remove(&event);
    }

    /// Checks the rule when every event must be finished, and returns the totals. With `loggers`, an event of the debug
    /// stream must be on disk, too.
    ///
    /// # Errors
    /// The first event, by L1 ID, that breaks the rule.
    pub fn finish(&self, loggers: bool) -> Result<Totals, AuditError> {
        let (totals, breaches) = self.account(loggers);
        breaches.first().map_or(Ok(totals), |first| Err(*first))
    }

    /// Returns every event that breaks the rule, by L1 ID, with the totals. `assigned` counts all assigned events; the
    /// other totals count only events that keep the rule.
    pub fn account(&self, loggers: bool) -> (Totals, Vec<AuditError>) {
        let mut totals = Totals::default();
        let mut breaches = Vec::new();
        for (&event, life) in &self.events {
            totals.assigned += u64::from(life.assigned > 0);
            match life.check(event, loggers) {
                Ok((outcome, on_disk)) => {
                    totals.duplicates += u64::from(life.stored.saturating_sub(u32::from(on_disk)));
                    totals.add(outcome);
                }
                Err(breach) => breaches.push(breach),
            }
        }
        (totals, breaches)
    }
}

impl Life {
    /// Returns the outcome of an event that keeps the rule, and true if the event must be on disk.
    fn check(&self, event: L1Id, loggers: bool) -> Result<(Outcome, bool), AuditError> {
        let Self { assigned, completed, stored, reassigned, was_lost, resent, outcome } = *self;
        if assigned == 0 {
            return Err(AuditError::NeverAssigned(event));
        }
        if assigned > reassigned + 1 {
            return Err(AuditError::AssignedTwice { event, assigned, reassigned });
        }
        let Some(outcome) = outcome else { return Err(AuditError::Lost(event)) };
        if completed > 1 {
            return Err(AuditError::CompletedTwice { event, completed });
        }
        let explained = reassigned > 0 || was_lost || resent;
        let on_disk = match outcome {
            Outcome::Rejected | Outcome::Accepted => false,
            Outcome::Stored => true,
            Outcome::Debug => loggers,
        };
        match (on_disk, stored) {
            (true, 0) => Err(AuditError::NotOnDisk(event)),
            (true, copies @ 2..) if !explained => Err(AuditError::StoredTwice { event, copies }),
            (false, 1..) if !explained => Err(AuditError::RejectedOnDisk(event)),
            _ => Ok((outcome, on_disk)),
        }
    }
}

#[cfg(test)]
mod tests {
    use fanin_units::Instant;

    use super::*;
    use crate::EventStream;

    const ASSIGNED: EventStep =
        EventStep::Assigned { collector: 0, unit: 0, due: Instant::START, direct: false };
    const STORED: EventStep = EventStep::Stored { collector: 0, stream: EventStream::Physics, missing: 0 };

    fn audit(steps: &[EventStep]) -> Result<Totals, AuditError> {
        let mut auditor = Auditor::new();
        for &step in steps {
            auditor.record(&EventRecord { at: Instant::START, event: L1Id(5), step });
        }
        auditor.finish(true)
    }

    fn completed(outcome: Outcome) -> EventStep {
        EventStep::Completed { collector: 0, outcome }
    }

    #[test]
    fn every_breach_is_found() {
        let id = L1Id(5);
        let rejected = completed(Outcome::Rejected);
        let stored = completed(Outcome::Stored);
        assert_eq!(audit(&[STORED]), Err(AuditError::NeverAssigned(id)));
        assert_eq!(audit(&[ASSIGNED]), Err(AuditError::Lost(id)));
        let twice = AuditError::AssignedTwice { event: id, assigned: 2, reassigned: 0 };
        assert_eq!(audit(&[ASSIGNED, ASSIGNED, rejected]), Err(twice));
        let twice = AuditError::CompletedTwice { event: id, completed: 2 };
        assert_eq!(audit(&[ASSIGNED, rejected, rejected]), Err(twice));
        assert_eq!(audit(&[ASSIGNED, stored]), Err(AuditError::NotOnDisk(id)));
        assert_eq!(audit(&[ASSIGNED, rejected, STORED]), Err(AuditError::RejectedOnDisk(id)));
        let twice = AuditError::StoredTwice { event: id, copies: 2 };
        assert_eq!(audit(&[ASSIGNED, stored, STORED, STORED]), Err(twice));
    }

    #[test]
    fn explained_duplicates_are_counted() {
        let reassigned = EventStep::Reassigned { from: 0 };
        let debug = completed(Outcome::Debug);
        let totals = audit(&[ASSIGNED, reassigned, ASSIGNED, STORED, debug, STORED]).unwrap();
        let expected = Totals { assigned: 1, debug: 1, duplicates: 1, ..Totals::default() };
        assert_eq!(totals, expected);
        // The journal with the first assignment was deleted.
        let again = EventStep::Assigned { collector: 0, unit: 0, due: Instant::START, direct: true };
        assert_eq!(audit(&[again, STORED, debug, STORED]), Ok(expected));
    }
}
