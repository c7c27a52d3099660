//! Levels of a whole event-building system, as the metrics of its roles have them.

use crate::{Collector, FragmentPayload, Supervisor};

/// Levels of an event-building system at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SystemLevels {
    /// Events that are assigned and not finished.
    pub events_outstanding: u64,
    /// Processing units that wait for an event.
    pub units_free: u64,
    /// Credits that requests of all collectors hold.
    pub credits_used: u64,
    /// Requests of all collectors that wait for credits.
    pub requests_waiting: u64,
}

impl SystemLevels {
    /// Returns the present levels of a supervisor and all its collectors.
    pub fn of<P: FragmentPayload>(supervisor: &Supervisor<P>, collectors: &[Collector<P>]) -> Self {
        Self {
            events_outstanding: supervisor.outstanding().count() as u64,
            units_free: u64::from(supervisor.units_free()),
            credits_used: collectors.iter().map(|one| u64::from(one.credits_used())).sum(),
            requests_waiting: collectors.iter().map(|one| one.requests_waiting() as u64).sum(),
        }
    }
}
