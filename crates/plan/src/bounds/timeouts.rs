//! Retransmission timeouts and their cost.

use fanin_units::Duration;

use crate::derived::{Derived, Factor, brief};

/// Minimum RTO of FreeBSD.
pub const RTO_MIN_FREEBSD: Duration = Duration::from_millis(30);
/// Minimum RTO of RFC 6298 §2.4.
pub const RTO_MIN_RFC: Duration = Duration::from_secs(1);

/// Computes the retransmission timeout: thesis §2.2.2 and RFC 6298, never below the minimum of the stack.
///
/// A stack that measures in ticks estimates SRTT and RTTVAR as at least one tick each. Its RTO is then at least five ticks
/// (§6.3).
pub fn retransmission_timeout(srtt: Duration, rttvar: Duration, minimum: Duration) -> Derived<Duration> {
    let estimate = srtt.saturating_add(rttvar.checked_mul(4).unwrap_or(Duration::MAX));
    Derived::new(
        "rto",
        if estimate > minimum { estimate } else { minimum },
        "SRTT + 4 × RTTVAR, at least the minimum",
        format!("{} + 4 × {}, at least {}", brief(srtt), brief(rttvar), brief(minimum)),
        "thesis §2.2.2; RFC 6298",
    )
}

/// Computes the factor by which `timeouts` expiries of `rto` lengthen an event that takes `undisturbed` without them.
///
/// # Panics
/// If the undisturbed time is zero.
pub fn timeout_slowdown(undisturbed: Duration, rto: Duration, timeouts: u64) -> Derived<Factor> {
    Derived::new(
        "timeout_slowdown",
        Factor::of(
            undisturbed.saturating_add(rto.checked_mul(timeouts).unwrap_or(Duration::MAX)).get(),
            undisturbed.get(),
        ),
        "(undisturbed + timeouts × RTO) / undisturbed",
        format!("({} + {timeouts} × {}) / {}", brief(undisturbed), brief(rto), brief(undisturbed)),
        "thesis §4.1",
    )
}
