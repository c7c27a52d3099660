//! Time as the state machines have it: picoseconds since the process began.

use std::time::{Duration as StdDuration, Instant as StdInstant};

use fanin_units::Instant;

use crate::machine::HostMachine;

/// The clock of a process.
#[derive(Debug, Clone, Copy)]
pub struct ProcessClock {
    start: StdInstant,
    epoch_us: u64,
}

impl ProcessClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self::start_on(&HostMachine::Real)
    }

    /// A clock of a machine that starts now.
    pub fn start_on(machine: &HostMachine) -> Self {
        let now = machine.since_1970();
        // Whole microseconds, so that the name of the epoch is exact.
        let rest = StdDuration::from_nanos(u64::from(now.subsec_nanos() % 1000));
        let start = machine.now();
        Self { start: start.checked_sub(rest).unwrap_or(start), epoch_us: now.as_micros() as u64 }
    }

    /// Start of the clock, in microseconds since 1970.
    pub fn epoch_us(&self) -> u64 {
        self.epoch_us
    }

    /// The time now.
    pub fn now(&self) -> Instant {
        self.at(StdInstant::now())
    }

    /// A time of the system as this clock has it.
    pub fn at(&self, now: StdInstant) -> Instant {
        let ps = now.saturating_duration_since(self.start).as_nanos().saturating_mul(1000);
        Instant::new(u64::try_from(ps).unwrap_or(u64::MAX - 1))
    }

    /// The system's time for a time of this clock; `None` for [`Instant::FAR_FUTURE`].
    pub fn system(&self, at: Instant) -> Option<StdInstant> {
        if at == Instant::FAR_FUTURE {
            return None;
        }
        // Rounded up: a deadline must not seem to be in the future when it is reported.
        self.start.checked_add(StdDuration::from_nanos(at.get().div_ceil(1000)))
    }
}

/// A span of time as the system has it.
pub fn std_duration(duration: fanin_units::Duration) -> StdDuration {
    StdDuration::from_nanos(duration.as_nanos())
}
