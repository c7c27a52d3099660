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
    /// Returns the value of a row in base units; 0 if the plan lacks it.
    pub(crate) base: &'a dyn Fn(&str) -> u64,
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
    /// Returns the reason for which bytes in flight have no proven bound.
    pub(crate) unproven: fn(&Scenario) -> Option<&'static str>,
    /// Returns rows of the section on windows. The memory of the queue before a collector is `None` without a limit.
    pub(crate) window_rows: fn(&Scenario, &SystemFigures, Option<Bytes>) -> Vec<Derivation>,
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
        unproven: |_| None,
        window_rows: |_, _, _| Vec::new(),
        rows: |_, _| Vec::new(),
        warnings: |_, _| Vec::new(),
    };
}
