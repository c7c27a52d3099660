//! The processing unit (HLTPU): one event at a time, from idle over collecting and processing to a decision.

/// The state of a processing unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitState {
    /// Absent: not started yet, crashed, or killed.
    Down,
    /// Ready for an event.
    Idle,
    /// The fragments of the unit's event are being collected.
    Collecting,
    /// The unit processes the fragments collected so far.
    Processing,
}

/// The state of one processing unit at its collector.
///
/// A unit collects and processes in turn, any number of times, until it decides. A lost unit leaves its event behind
/// (thesis §3.7.4).
#[derive(Debug, Clone)]
pub struct ProcessingUnit {
    state: UnitState,
    slot: u32,
}

impl ProcessingUnit {
    pub(crate) fn new(up: bool) -> Self {
        Self { state: if up { UnitState::Idle } else { UnitState::Down }, slot: 0 }
    }

    /// Returns the state of the unit.
    pub fn state(&self) -> UnitState {
        self.state
    }

    /// Returns the slot of the unit's event; `None` without an event.
    pub(crate) fn slot(&self) -> Option<u32> {
        matches!(self.state, UnitState::Collecting | UnitState::Processing).then_some(self.slot)
    }

    /// Starts collecting: the unit received an event, or needs more of its event.
    pub(crate) fn collect(&mut self, slot: u32) {
        assert!(self.state != UnitState::Down, "a unit that is down was given an event");
        assert!(self.slot().is_none_or(|own| own == slot), "a unit gets a second event");
        self.state = UnitState::Collecting;
        self.slot = slot;
    }

    /// Starts processing: the requested fragments have arrived.
    pub(crate) fn process(&mut self) {
        assert!(self.state == UnitState::Collecting, "a unit was given data that it did not ask for");
        self.state = UnitState::Processing;
    }

    /// Releases the event: the unit decided, or the event was withdrawn.
    pub(crate) fn release(&mut self) {
        assert!(self.state != UnitState::Idle, "a unit without an event releases one");
        self.state = UnitState::Idle;
    }

    /// Marks the unit as crashed or killed.
    pub(crate) fn lose(&mut self) {
        self.state = UnitState::Down;
    }
}
