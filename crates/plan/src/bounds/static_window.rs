//! Static windows: ICC'15 equations (5) and (7).

use fanin_units::{Bytes, Packets};

use crate::derived::{Derived, brief};

/// Computes the most bytes in flight with a static window: ICC'15 eqs (5) and (7). Saturates.
pub fn in_flight_max(readouts: u64, collectors: u64, window: Packets, size: Bytes) -> Derived<Bytes> {
    let window_bytes = window.checked_times(size).unwrap_or(Bytes::MAX);
    let flows = readouts.saturating_mul(collectors);
    Derived::new(
        "in_flight_max",
        window_bytes.checked_mul(flows).unwrap_or(Bytes::MAX),
        "readouts × collectors × cwnd × packet",
        format!("{readouts} × {collectors} × {} × {}", window.get(), brief(size)),
        "ICC'15 §IV.C eqs (5), (7)",
    )
}

/// Computes the buffer that holds the bytes in flight beyond the path itself: ICC'15 §IV.C.1.
pub fn buffer_needed(in_flight: Bytes, bdp: Bytes) -> Derived<Bytes> {
    Derived::new(
        "buffer_needed",
        in_flight.saturating_sub(bdp),
        "in flight − BDP",
        format!("{} − {}", brief(in_flight), brief(bdp)),
        "ICC'15 §IV.C.1",
    )
}
