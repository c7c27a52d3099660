//! The parts of a plan that belong to one technique.

use fanin_scenario::Scenario;
use fanin_units::Bytes;

use crate::derived::Derivation;
use crate::event_burst::{Burst, EventBurst};
use crate::system::SystemFigures;

/// The figures of a plan that warnings read.
pub(crate) struct WarningFigures<'a> {
    pub(crate) system: &'a SystemFigures,
    /// The memory of the queue before a collector; `None` without a limit.
    pub(crate) capacity: Option<Bytes>,
    /// Finds a row of the plan by its name.
    pub(crate) find: &'a dyn Fn(&str) -> Option<&'a Derivation>,
}

impl WarningFigures<'_> {
    /// Returns the value of a row in base units; 0 if the plan lacks it.
    pub(crate) fn base(&self, row: &str) -> u64 {
        (self.find)(row).map_or(0, |row| row.value.base_value())
    }

    /// Returns the value of a row with its unit; empty if the plan lacks it.
    pub(crate) fn text(&self, row: &str) -> String {
        (self.find)(row).map_or_else(String::new, |row| row.value.to_string())
    }
}

/// The functions of one technique. Each returns nothing if the scenario does not choose the technique, rows of figures aside.
#[derive(Clone, Copy)]
pub(crate) struct PlannedTechnique {
    /// Returns the limit that the technique's windows or credits set to a burst.
    pub(crate) limit: fn(&Scenario, &EventBurst<'_>) -> Option<Burst>,
    /// Returns true if windows of a fixed size take the place of TCP's growing ones.
    pub(crate) fixes_windows: fn(&Scenario) -> bool,
    /// Returns true if senders slow down a round trip after a signal, without a lost frame.
    pub(crate) is_signalled: fn(&Scenario) -> bool,
    /// Returns true if hosts send in turns, so that next to nothing waits in a switch.
    pub(crate) takes_turns: fn(&Scenario) -> bool,
    /// Returns true if answers may wait at their senders, so that no bytes wait in a switch for certain.
    pub(crate) delays_answers: fn(&Scenario) -> bool,
    /// Returns the most answers that one collector permits at once.
    pub(crate) outstanding_max: fn(&Scenario, &SystemFigures) -> Option<u64>,
    /// Returns the most packets that a sender can have in flight.
    pub(crate) window_max: fn(&Scenario) -> Option<u64>,
    /// Returns the packets that a sender certainly sends at once, where these are not the initial window; 0 if unknown.
    pub(crate) first_window: fn(&Scenario) -> Option<u64>,
    /// Returns true if answers begin in slow start, where `transport.slow_start_after_idle` does not decide it.
    pub(crate) starts_slowly: fn(&Scenario) -> Option<bool>,
    /// Returns the reason for which bytes in flight have no proven bound.
    pub(crate) unproven: fn(&Scenario) -> Option<&'static str>,
    /// Returns rows of the section on windows. The memory of the queue before a collector is `None` without a limit.
    pub(crate) window_rows: fn(&Scenario, &SystemFigures, Option<Bytes>) -> Vec<Derivation>,
    /// Returns rows of the section on credits.
    pub(crate) credit_rows: fn(&Scenario, &SystemFigures) -> Vec<Derivation>,
    /// Returns rows of the section on techniques.
    pub(crate) rows: fn(&Scenario, &SystemFigures) -> Vec<Derivation>,
    /// Returns sentences on settings that cannot work.
    pub(crate) warnings: fn(&Scenario, &WarningFigures<'_>) -> Vec<String>,
}

impl PlannedTechnique {
    /// A technique without an effect on a plan.
    pub(crate) const NONE: Self = Self {
        limit: |_, _| None,
        fixes_windows: |_| false,
        is_signalled: |_| false,
        takes_turns: |_| false,
        delays_answers: |_| false,
        outstanding_max: |_, _| None,
        window_max: |_| None,
        first_window: |_| None,
        starts_slowly: |_| None,
        unproven: |_| None,
        window_rows: |_, _, _| Vec::new(),
        credit_rows: |_, _| Vec::new(),
        rows: |_, _| Vec::new(),
        warnings: |_, _| Vec::new(),
    };
}
