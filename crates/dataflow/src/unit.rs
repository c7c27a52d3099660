//! The processing unit (HLTPU): one event at a time, from idle over collecting and processing to a decision.

/// The state of a processing unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitState {
    /// Absent: not started yet, crashed, or killed.
    Down,
    /// Ready for an event.
    Idle,
    /// Its event's fragments are being collected.
    Collecting,
    /// The unit processes the fragments collected so far.
    Processing,
}

/// One processing unit, as its collector sees it.
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

    /// The state of the unit.
    pub fn state(&self) -> UnitState {
        self.state
    }

    /// The slot of its event, if it has one.
    pub(crate) fn slot(&self) -> Option<u32> {
        matches!(self.state, UnitState::Collecting | UnitState::Processing).then_some(self.slot)
    }

    /// Is given an event, or wants more of it.
    pub(crate) fn collect(&mut self, slot: u32) {
        assert!(self.state != UnitState::Down, "a unit that is down was given an event");
        self.state = UnitState::Collecting;
        self.slot = slot;
    }

    /// Has the fragments that it requested.
    pub(crate) fn process(&mut self) {
        assert!(self.state == UnitState::Collecting, "a unit was given data that it did not ask for");
        self.state = UnitState::Processing;
    }

    /// Decided, or its event was taken away.
    pub(crate) fn release(&mut self) {
        self.state = UnitState::Idle;
    }

    /// Crashed or was killed.
    pub(crate) fn lose(&mut self) {
        self.state = UnitState::Down;
    }
}
