//! Settings and counters of a supervisor.

use fanin_units::{Duration, Frequency, Instant};

use crate::{ClearConfig, L1Id, Policy, Selection, TieBreak};
use alloc::vec::Vec;

/// Times at which the first-level trigger accepts events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum Arrivals {
    /// One event every 1 / `supervisor.rate`.
    #[default]
    Periodic,
    /// A Poisson process with mean `supervisor.rate`.
    Poisson,
    /// One event whenever a unit is idle (multi-host paper §IV.B); `supervisor.rate` has no effect.
    OnDemand,
}

/// Order of the units' first announcements. Under `fcfs` it decides their sequence for seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum StartOrder {
    /// The order of arrival.
    #[default]
    #[cfg_attr(feature = "schemars", serde(skip))]
    Arrival,
    /// All units of the first collector host, then all of the second: the worst for `fcfs`.
    ByHost,
    /// The first unit of every host, then the second of every host: the best for `fcfs`.
    Interleaved,
    /// A random order, from the seed.
    Random,
}

/// Settings of a supervisor.
#[derive(Debug, Clone)]
pub struct SupervisorConfig<P> {
    /// The number of units on each collector.
    pub units: Vec<u16>,
    /// The number of readouts; they may send XOFF, and receive clears if `clear` is set.
    pub readouts: u16,
    /// Process of the times at which events fall due.
    pub arrivals: Arrivals,
    /// Events per second, for [`Arrivals::Periodic`] (event n falls due at the start plus [`Frequency::nth`] of n) and
    /// [`Arrivals::Poisson`].
    pub rate: Frequency,
    /// Time before which no event falls due.
    pub start: Instant,
    /// Number of announced units from which the first event may fall due.
    pub units_awaited: u32,
    /// The L1 ID of the first event.
    pub first_event: L1Id,
    /// The number of events; `None` without a limit.
    pub events_max: Option<u64>,
    /// The rule that chooses the unit of an event.
    pub policy: Policy,
    /// The collector that wins a tie of [`Policy::NodeLoadBalancing`].
    pub tie_break: TieBreak,
    /// The order of the first announcements.
    pub start_order: StartOrder,
    /// The payload of an event's L1 result, if the supervisor makes the result itself.
    pub result: P,
    /// The fragments in the L1 result, if the supervisor makes the result itself.
    pub region: Selection,
    /// Time for a lost collector to return; then its events are assigned again. A collector that returns in time keeps
    /// them.
    pub reassign_delay: Duration,
    /// The grouping of clears that the supervisor sends; no clear is then lost with a collector. `None`: collectors send
    /// them, as in thesis §3.7.4, or readouts store nothing.
    pub clear: Option<ClearConfig>,
    /// The longest time for which a clear may be on its way to a readout whose connection is dead, unnoticed. Clears of
    /// this time before the loss of a connection are sent again, and the latest ones before it.
    pub clear_on_way_max: Duration,
    /// The seed of its random numbers.
    pub seed: u64,
}

impl<P: Default> Default for SupervisorConfig<P> {
    /// Returns settings without collectors. 1 kHz from the start; FCFS in the order of arrival; immediate re-assignment; no clears
    /// from the supervisor. A clear is on its way for at most 20 s.
    fn default() -> Self {
        Self {
            units: Vec::new(),
            readouts: 0,
            arrivals: Arrivals::Periodic,
            rate: Frequency::new(1_000_000),
            start: Instant::START,
            units_awaited: 0,
            first_event: L1Id(0),
            events_max: None,
            policy: Policy::Fcfs,
            tie_break: TieBreak::LeastRecent,
            start_order: StartOrder::Arrival,
            result: P::default(),
            region: Selection::Rest,
            reassign_delay: Duration::ZERO,
            clear: None,
            clear_on_way_max: Duration::from_secs(20),
            seed: 0,
        }
    }
}

/// Settings that a supervisor refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SupervisorError {
    /// The number of units is zero.
    #[error("there is no processing unit to assign events to")]
    NoUnits,
    /// The rate is zero.
    #[error("the event rate is zero")]
    NoRate,
    /// The supervisor awaits more units than exist.
    #[error("{awaited} units are awaited, but there are only {units}")]
    TooManyAwaited {
        /// Number of awaited units.
        awaited: u32,
        /// The number of units.
        units: u32,
    },
    /// The number of collectors is too large.
    #[error("there are {collectors} collectors; at most 65535 can be numbered")]
    TooManyCollectors {
        /// The number of collectors.
        collectors: usize,
    },
    /// `clear_group` is zero.
    #[error("a clear message has to name at least one event")]
    EmptyClear,
}

impl<P> SupervisorConfig<P> {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first setting that a supervisor refuses.
    pub fn validate(&self) -> Result<(), SupervisorError> {
        if self.units.len() > usize::from(u16::MAX) {
            return Err(SupervisorError::TooManyCollectors { collectors: self.units.len() });
        }
        let units: u32 = self.units.iter().map(|&units| u32::from(units)).sum();
        if units == 0 {
            return Err(SupervisorError::NoUnits);
        }
        if self.units_awaited > units {
            return Err(SupervisorError::TooManyAwaited { awaited: self.units_awaited, units });
        }
        if matches!(self.arrivals, Arrivals::Periodic | Arrivals::Poisson) && self.rate.is_zero() {
            return Err(SupervisorError::NoRate);
        }
        if self.clear.is_some_and(|clear| clear.clear_group == 0) {
            return Err(SupervisorError::EmptyClear);
        }
        Ok(())
    }
}

/// Counters of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SupervisorCounters {
    /// Events that were assigned, each counted once.
    pub assigned: u64,
    /// Events with an outcome.
    pub completed: u64,
    /// Finished events that were rejected.
    pub rejected: u64,
    /// Finished events accepted in a system without loggers.
    pub accepted: u64,
    /// Finished events accepted and stored.
    pub stored: u64,
    /// Finished events stored in the debug stream.
    pub debug: u64,
    /// Number of reassignments of events from lost collectors.
    pub reassigned: u64,
    /// Number of reassigned events that the former collector finished too.
    pub duplicated: u64,
    /// Events that were assigned later than they fell due.
    pub held: u64,
    /// The sum of these delays.
    pub held_time: Duration,
    /// Number of times that the trigger was stopped.
    pub xoffs: u64,
    /// Time for which the trigger was stopped, up to the latest XON.
    pub xoff_time: Duration,
}
