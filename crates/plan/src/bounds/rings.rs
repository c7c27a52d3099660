//! Software queues (daqrings): memory, drain times and rates.

use fanin_units::{Bytes, Duration, Packets, Rate, Ratio};

use crate::derived::{Derived, brief, ratio_of};

/// Computes the memory of `rings` rings of `slots` packet slots each (LCN'15, rate limitation and buffering). Saturates.
pub fn ring_memory(rings: u64, slots: Packets, slot: Bytes) -> Derived<Bytes> {
    Derived::new(
        "ring_memory",
        slots.checked_times(slot).and_then(|ring| ring.checked_mul(rings)).unwrap_or(Bytes::MAX),
        "rings × slots × slot size",
        format!("{rings} × {} × {}", slots.get(), brief(slot)),
        "LCN'15, rate limitation",
    )
}

/// Compares the sum of the limits of the rings that leave through one port with that port's rate.
///
/// If the sum exceeds the port's rate, the port itself is the limit, and its queue grows.
///
/// # Panics
/// If the port's rate is zero.
pub fn ring_rate_sum(rings: u64, limit: Rate, port: Rate) -> (Derived<Rate>, Derived<Ratio>) {
    let sum = limit * rings;
    (
        Derived::new(
            "ring_rate_sum",
            sum,
            "rings a port × limit",
            format!("{rings} × {}", brief(limit)),
            "LCN'15, rate limitation",
        ),
        Derived::new(
            "ring_rate_share",
            ratio_of(sum.get(), port.get()),
            "sum of limits / port rate",
            format!("{} / {}", brief(sum), brief(port)),
            "LCN'15, rate limitation",
        ),
    )
}

/// Computes the time in which a ring sends `packets` of `size` wire bytes at its limit.
///
/// # Panics
/// If the limit is zero.
pub fn ring_drain_time(packets: Packets, size: Bytes, limit: Rate) -> Derived<Duration> {
    let bytes = packets.checked_times(size).expect("a ring overflows");
    Derived::new(
        "ring_drain_time",
        limit.time_to_send(bytes),
        "packets × packet / limit",
        format!("{} × {} / {}", packets.get(), brief(size), brief(limit)),
        "LCN'15, buffering",
    )
}
