//! The events of the processing units: assigned, processed, decided, given up; and the reports to the supervisor.

use fanin_units::{Bytes, Instant};

use super::config::UnitModel;
use super::slot::{Phase, SlotKey};
use super::state::{CollectorTimer, SupervisorLink};
use super::{Collector, Decision, UnitCommand};
use crate::timers::later;
use crate::{EventStep, FinishedEvent, FragmentPayload, L1Id, Message, Outcome, Peer, Selection, UnitState};

impl<P: FragmentPayload> Collector<P> {
    pub(super) fn assign(
        &mut self,
        now: Instant,
        event: L1Id,
        unit: u16,
        direct: bool,
        region: Selection,
        result: P,
    ) -> Result<(), &'static str> {
        let state = self.units.get(usize::from(unit)).ok_or("there is no such unit")?;
        if !core::mem::replace(&mut self.announced[usize::from(unit)], false) {
            return Err("the unit was not announced");
        }
        // A unit may go down while an event is on its way to it. Then no unit can decide on the event, which goes to the
        // debug stream.
        let lost = state.state() == UnitState::Down;
        self.counters.events += 1;
        self.record(now, event, EventStep::Received { unit });
        if self.slots.index_of(event).is_some() {
            // The event was thought lost with this collector, but is at a logger already.
            if !lost {
                self.announce(unit, None);
            }
            return Ok(());
        }
        let index = self.slots.insert(event, unit, region, result);
        if direct || lost {
            self.send_undecided(now, index, unit);
            if !lost {
                self.announce(unit, None);
            }
            return Ok(());
        }
        self.units[usize::from(unit)].collect(index);
        let first = match &self.config.model {
            UnitModel::Steps(steps) => steps[0].collect.clone(),
            UnitModel::External(selection) => selection.clone(),
        };
        self.collect(now, index, &first);
        Ok(())
    }

    /// Handles the end of a step: all its fragments have arrived, or are given up.
    pub(super) fn complete(&mut self, now: Instant, key: SlotKey) {
        let Some(slot) = self.slots.find(key).filter(|slot| slot.outstanding == 0) else { return };
        assert!(slot.requests > 0 || slot.bytes == Bytes::ZERO, "an event has data that it did not request");
        // If requests are given up as soon as they are made, the same event may complete more than once.
        let collecting = |unit: u16| self.units[usize::from(unit)].state() == UnitState::Collecting;
        let (step, building) = match (slot.phase, slot.unit) {
            (Phase::Step(step), Some(unit)) if collecting(unit) => (step, false),
            (Phase::Building, None) => (0, true),
            _ => return,
        };
        let collected = EventStep::Collected {
            step,
            building,
            began: slot.began,
            first_request: slot.first_request.unwrap_or(now),
            requests: slot.requests,
            bytes: slot.bytes,
            missing: slot.missing,
        };
        let (event, unit) = (slot.event, slot.unit);
        self.record(now, event, collected);
        let Some(unit) = unit else {
            self.offer_first(now, key.index);
            return;
        };
        self.units[usize::from(unit)].process();
        match &self.config.model {
            UnitModel::Steps(steps) => {
                let time = steps[usize::from(step)].processing_time.draw(&mut self.random);
                self.timers.set(later(now, time), CollectorTimer::Processed(key, step));
            }
            UnitModel::External(_) => {
                self.commands.push_back(UnitCommand::Process { unit, event, step });
            }
        }
        if let Some(timeout) = self.config.processor_timeout {
            self.timers.set(later(now, timeout), CollectorTimer::UnitLate(key, step));
        }
    }

    pub(super) fn decide(&mut self, now: Instant, index: u32, decision: Decision) {
        let slot = &mut self.slots[index];
        let (event, Some(unit)) = (slot.event, slot.unit) else { return };
        match decision {
            Decision::Collect(selection) => {
                if let Phase::Step(step) = slot.phase {
                    slot.enter(Phase::Step(step.saturating_add(1)));
                }
                self.units[usize::from(unit)].collect(index);
                self.collect(now, index, &selection);
            }
            Decision::Reject => {
                self.record(now, event, EventStep::Decided { unit, outcome: Outcome::Rejected });
                self.units[usize::from(unit)].release();
                self.slots.remove(index);
                self.clear_later(now, event);
                self.announce(unit, Some(FinishedEvent { event, outcome: Outcome::Rejected }));
            }
            Decision::Accept => {
                slot.unit = None;
                slot.enter(Phase::Building);
                let stored = if self.loggers.is_empty() { Outcome::Accepted } else { Outcome::Stored };
                self.record(now, event, EventStep::Decided { unit, outcome: stored });
                self.units[usize::from(unit)].release();
                self.shipping += 1;
                if self.config.build_accepted {
                    self.collect(now, index, &Selection::Rest);
                } else {
                    self.offer_first(now, index);
                }
                self.announce(unit, None);
            }
        }
    }

    pub(super) fn lose_unit(&mut self, now: Instant, unit: u16) {
        let state = &mut self.units[usize::from(unit)];
        let slot = state.slot();
        if state.state() != UnitState::Down {
            self.counters.units_lost += 1;
        }
        state.lose();
        self.withheld.retain(|&other| other != unit);
        if let Some(index) = slot {
            self.send_undecided(now, index, unit);
        }
    }

    /// Sends an event without a unit to the debug stream: its fragments are collected and stored undecided.
    fn send_undecided(&mut self, now: Instant, index: u32, unit: u16) {
        let slot = &mut self.slots[index];
        assert_eq!(slot.unit, Some(unit), "a unit loses another unit's event");
        slot.unit = None;
        slot.is_debug = true;
        slot.enter(Phase::Building);
        let event = slot.event;
        self.shipping += 1;
        self.record(now, event, EventStep::Decided { unit, outcome: Outcome::Debug });
        self.collect(now, index, &Selection::Rest);
    }

    /// Reports a unit as ready to the supervisor, unless the collector stops or too many events are in storage.
    pub(super) fn announce(&mut self, unit: u16, done: Option<FinishedEvent>) {
        if let Some(done) = done {
            self.remember(done);
        }
        if self.is_stopping || self.shipping >= self.config.shipping_max {
            assert!(!self.withheld.contains(&unit), "a unit is withheld twice");
            self.withheld.push(unit);
            if let Some(done) = done {
                self.send_to_supervisor(Message::Done(done));
            }
        } else {
            self.announced[usize::from(unit)] = true;
            self.send_to_supervisor(Message::Ready { unit, done });
        }
    }

    /// Finishes an event without a unit.
    pub(super) fn finish(&mut self, now: Instant, index: u32, outcome: Outcome) {
        let (event, is_cleared) = (self.slots[index].event, self.slots[index].is_cleared);
        self.slots.remove(index);
        if !is_cleared {
            self.clear_later(now, event);
        }
        let done = FinishedEvent { event, outcome };
        self.remember(done);
        self.send_to_supervisor(Message::Done(done));
        self.one_less_shipping();
    }

    fn one_less_shipping(&mut self) {
        assert!(self.shipping > 0, "an event is shipped that was not counted");
        self.shipping -= 1;
        if self.is_stopping || self.shipping >= self.config.shipping_max {
            return;
        }
        // Announces all withheld units, although each may bring another event into storage: there may be more units
        // than places.
        while let Some(unit) = self.withheld.pop() {
            self.announced[usize::from(unit)] = true;
            self.send_to_supervisor(Message::Ready { unit, done: None });
        }
    }

    /// Forgets an event that the supervisor gave to another collector.
    pub(super) fn abandon(&mut self, now: Instant, event: L1Id) {
        self.done.retain(|done| done.event != event);
        if let Some(clear) = &mut self.clear {
            clear.forget(event);
        }
        let Some(index) = self.slots.index_of(event) else { return };
        let slot = &self.slots[index];
        let unit = slot.unit;
        match slot.phase {
            // The event may be on disk already. The supervisor then receives the report and notes the duplicate.
            Phase::Sent(_) => return,
            Phase::Offered(logger) => {
                self.out.push_back((Peer::Logger(logger), Message::Withdraw { event }));
            }
            Phase::Vacant | Phase::Step(_) | Phase::Building | Phase::Unshipped => {}
        }
        self.credits.remove(index);
        self.slots.remove(index);
        self.counters.abandoned += 1;
        self.record(now, event, EventStep::Abandoned);
        match (unit, &self.config.model) {
            (Some(unit), UnitModel::Steps(_)) => {
                self.units[usize::from(unit)].release();
                self.announce(unit, None);
            }
            (Some(unit), UnitModel::External(_)) => {
                self.units[usize::from(unit)].lose();
                self.commands.push_back(UnitCommand::Kill { unit });
            }
            (None, _) => self.one_less_shipping(),
        }
    }

    fn remember(&mut self, done: FinishedEvent) {
        // All events that the collector can finish while the supervisor is down, and as many whose reports were in
        // flight.
        let most = 2 * (usize::from(self.config.units) + usize::from(self.config.shipping_max)) + 64;
        if self.done.len() >= most {
            self.done.pop_front();
        }
        self.done.push_back(done);
    }

    pub(super) fn send_to_supervisor(&mut self, message: Message<P>) {
        if self.link != SupervisorLink::Down {
            self.out.push_back((Peer::Supervisor, message));
        }
    }
}
