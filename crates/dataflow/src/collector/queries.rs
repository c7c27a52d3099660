//! The state of a collector, for metrics, diagnoses and tests.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::slot::Phase;
use super::state::SupervisorLink;
use super::{Collector, CollectorCounters};
use crate::{FragmentPayload, L1Id, PacedCredits, ProcessingUnit, UnitState};

/// The resource that an event in a collector waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsFor {
    /// Credits, or the answers to requests.
    Fragments {
        /// Requests without an answer, sent or not.
        requests: u32,
    },
    /// The decision of a processing unit.
    Decision {
        /// The processing unit's number on its collector.
        unit: u16,
    },
    /// A logger: one in particular, or any.
    Logger(Option<u16>),
}

impl<P: FragmentPayload> Collector<P> {
    /// Returns the counters up to now.
    pub fn counters(&self) -> &CollectorCounters {
        &self.counters
    }

    /// Returns the credits of the collector; `None` without shaping.
    pub fn credits_total(&self) -> Option<u32> {
        self.credits.credits()
    }

    /// Returns the credits that requests hold now.
    pub fn credits_used(&self) -> u32 {
        self.credits.used()
    }

    /// Returns the credits that requests of withdrawn events hold: no event waits for their answers.
    pub fn credits_withdrawn(&self) -> u32 {
        self.pending.credits_if(|request| self.slots.find(request.slot).is_none())
    }

    /// Returns a line for the requests of collector `place`, if any wait, and one for each of its events.
    pub fn waiting_lines(&self, place: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let (waiting, pending) = (self.requests_waiting(), self.requests_pending());
        if waiting + pending > 0 {
            let mut line = format!("collector {place} waits for {pending} answers");
            if waiting > 0 {
                line += &format!(" and holds {waiting} requests back");
            }
            if let Some(credits) = self.credits_total() {
                line += &format!(" ({} of {credits} credits used)", self.credits_used());
            }
            lines.push(line);
        }
        let events = self.waits();
        lines.extend(
            events
                .map(|(event, waits)| format!("event {} on collector {place} waits for {waits:?}", event.0)),
        );
        lines
    }

    /// Returns the paced credits, if requests are paced.
    pub fn paced_credits(&self) -> Option<&PacedCredits> {
        self.paced.as_ref()
    }

    /// Returns the number of requests that wait for credits.
    pub fn requests_waiting(&self) -> usize {
        self.credits.waiting()
    }

    /// Returns the number of outstanding requests, which are neither answered nor given up.
    pub fn requests_pending(&self) -> usize {
        self.pending.len()
    }

    /// Returns the events of the collector, each with the resource that the event waits for.
    pub fn waits(&self) -> impl Iterator<Item = (L1Id, WaitsFor)> {
        self.slots.iter().map(|(_, slot)| {
            let waits = match (slot.phase, slot.unit) {
                (Phase::Step(_), Some(unit)) if slot.outstanding == 0 => WaitsFor::Decision { unit },
                (Phase::Unshipped, _) => WaitsFor::Logger(None),
                (Phase::Offered(logger) | Phase::Sent(logger), _) => WaitsFor::Logger(Some(logger)),
                _ => WaitsFor::Fragments { requests: slot.outstanding },
            };
            (slot.event, waits)
        })
    }

    /// Returns true if no supervisor assigns events to the collector. Either none is connected, or it has answered that
    /// the collector stops in order.
    pub fn has_left(&self) -> bool {
        matches!(self.link, SupervisorLink::Down | SupervisorLink::Left)
    }

    /// Returns true if the collector works on `event`.
    pub fn has(&self, event: L1Id) -> bool {
        self.slots.iter().any(|(_, slot)| slot.event == event)
    }

    /// Returns the event of a unit, with its L1 result and the fragments collected so far; `None` without an event.
    pub fn event_of(&self, unit: u16) -> Option<(L1Id, &P, &P)> {
        let index = self.units.get(usize::from(unit))?.slot()?;
        let slot = &self.slots[index];
        Some((slot.event, &slot.result, &slot.payload))
    }

    /// Returns the state of a unit; `None` if there is no such unit.
    pub fn unit(&self, unit: u16) -> Option<&ProcessingUnit> {
        self.units.get(usize::from(unit))
    }

    /// Checks that units and events have one state each and no credit is lost: in tests, and at the end of a simulation.
    ///
    /// # Panics
    /// If a check fails.
    pub fn check_invariants(&self) {
        assert_eq!(
            self.credits.used(),
            self.pending.credits(),
            "the credits in use are not those of requests without an answer"
        );
        if let Some(paced) = &self.paced {
            paced.check_invariants();
            let bytes = paced.outstanding().get() + paced.overdue().get();
            let held: u64 = self.pending.paced_credits().map(|credit| paced.predicted(credit).get()).sum();
            assert_eq!(bytes, held, "the bytes held are not those of requests without an answer");
        }
        assert!(self.credits.credits().is_none_or(|credits| self.credits.used() <= credits));
        for (index, slot) in self.slots.iter() {
            let is_with_unit = matches!(slot.phase, Phase::Step(_));
            assert_eq!(
                slot.unit.is_some(),
                is_with_unit,
                "an event without a decision is with no unit, or a decided one is with one"
            );
            if let Some(unit) = slot.unit {
                assert_eq!(
                    self.units[usize::from(unit)].slot(),
                    Some(index),
                    "a unit and its event name different partners"
                );
            }
        }
        let shipping = self.slots.iter().filter(|(_, slot)| slot.unit.is_none()).count();
        assert_eq!(
            usize::from(self.shipping),
            shipping,
            "the number of events on their way to storage is wrong"
        );
        for (place, unit) in self.units.iter().enumerate() {
            let number = place as u16;
            assert!(unit.slot().is_none_or(|index| self.slots[index].unit == Some(number)));
            assert!(!self.announced[place] || unit.slot().is_none(), "an announced unit has an event");
            assert!(!self.withheld.contains(&number) || unit.state() == UnitState::Idle);
        }
    }
}
