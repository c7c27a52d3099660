//! The time within which a system must assign its first event.

use std::time::Duration;

use fanin_dataflow::Arrivals;
use fanin_scenario::SupervisorSettings;
use fanin_units::Instant;

use crate::clock::std_duration;

/// Maximum time from the start of the processes to the first assigned event, where the trigger accepts one at once.
const READY_MAX: Duration = Duration::from_secs(60);
/// Mean intervals of Poisson arrivals in addition. The first event takes longer in one of 22 000 runs.
const INTERVALS_MAX: u32 = 10;

/// Returns the maximum time from the start of the processes to the first assigned event.
pub(super) fn ready_limit(supervisor: &SupervisorSettings) -> Duration {
    let interval = match supervisor.arrivals {
        Arrivals::Poisson => supervisor.rate.nth(1).map(|first| std_duration(first - Instant::START)),
        // Their first event falls due at the start.
        Arrivals::Periodic | Arrivals::OnDemand => None,
    };
    READY_MAX.saturating_add(interval.unwrap_or_default().saturating_mul(INTERVALS_MAX))
}

#[cfg(test)]
mod tests {
    use fanin_units::Frequency;

    use super::*;

    #[test]
    fn rare_events_are_awaited_and_others_are_not() {
        let limit = |arrivals, milli_hertz| {
            let rate = Frequency::new(milli_hertz);
            ready_limit(&SupervisorSettings { rate, arrivals, ..SupervisorSettings::default() }).as_secs()
        };
        assert_eq!(limit(Arrivals::Poisson, 1_000_000), 60);
        // One event in 100 s.
        assert_eq!(limit(Arrivals::Poisson, 10), 1060);
        assert_eq!(limit(Arrivals::Periodic, 10), 60);
        assert_eq!(limit(Arrivals::OnDemand, 0), 60);
    }
}
