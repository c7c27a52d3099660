//! The clock of a process in the unit of the state machines: picoseconds since the start of the process.

use std::time::{Duration as StdDuration, Instant as StdInstant};

use fanin_units::Instant;

use crate::machine::HostMachine;

/// Converts between the system's time and the time of a process's state machines.
#[derive(Debug, Clone, Copy)]
pub struct ProcessClock {
    start: StdInstant,
    epoch_us: u64,
}

impl ProcessClock {
    /// Returns a clock that starts now.
    pub fn start() -> Self {
        Self::start_on(&HostMachine::Real)
    }

    /// Returns a clock of this machine that starts now.
    pub fn start_on(machine: &HostMachine) -> Self {
        let now = machine.since_1970();
        // The start is moved back to a whole microsecond, so that `epoch_us` is exact.
        let rest = StdDuration::from_nanos(u64::from(now.subsec_nanos() % 1000));
        let start = machine.now();
        Self { start: start.checked_sub(rest).unwrap_or(start), epoch_us: now.as_micros() as u64 }
    }

    /// Returns the start of the clock, in microseconds since 1970.
    pub fn epoch_us(&self) -> u64 {
        self.epoch_us
    }

    /// Returns the present time of the real machine on this clock.
    pub fn now(&self) -> Instant {
        self.at(StdInstant::now())
    }

    /// Converts a time of the system to this clock; zero for times before its start.
    pub fn at(&self, now: StdInstant) -> Instant {
        let ps = now.saturating_duration_since(self.start).as_nanos().saturating_mul(1000);
        Instant::new(u64::try_from(ps).unwrap_or(u64::MAX - 1))
    }

    /// Converts a time of this clock to the system's, rounded up to nanoseconds; `None` for [`Instant::FAR_FUTURE`] and for
    /// times that the system cannot represent.
    pub fn system(&self, at: Instant) -> Option<StdInstant> {
        if at == Instant::FAR_FUTURE {
            return None;
        }
        // Rounded up: a deadline must not seem to be in the future when it is reported.
        self.start.checked_add(StdDuration::from_nanos(at.get().div_ceil(1000)))
    }
}

/// Converts a duration to the standard library's type, in whole nanoseconds.
pub fn std_duration(duration: fanin_units::Duration) -> StdDuration {
    StdDuration::from_nanos(duration.as_nanos())
}
