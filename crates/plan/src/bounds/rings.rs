//! Software queues (daqrings) and the central scheduler: memory, drain times and rates.

use fanin_units::{Bytes, Duration, Frequency, Packets, Rate, Ratio};

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

/// Computes the timeslots a second that a Fastpass arbiter allocates on the fastest edge link, each of `frames` full frames.
///
/// # Panics
/// If a slot is empty or the rate is zero.
pub fn fastpass_slots(rate: Rate, frame: Bytes, frames: u64) -> Derived<Frequency> {
    let slot = frame * frames;
    let per_second = u128::from(rate.get()) * 1_000 / (u128::from(slot.get()) * 8);
    Derived::new(
        "fastpass_slots",
        Frequency::new(u64::try_from(per_second).expect("a rate of slots overflows")),
        "rate / (frames a slot × frame on the wire)",
        format!("{} / ({frames} × {})", brief(rate), brief(frame)),
        "thesis §6.4.3",
    )
}

/// Computes the most packets that queue if clocks differ by up to `skew`.
///
/// # Panics
/// If the rate is zero or the frame empty.
pub fn fastpass_queue_max(skew: Duration, rate: Rate, frame: Bytes) -> Derived<Packets> {
    let slot = rate.time_to_send(frame);
    Derived::new(
        "fastpass_queue_max",
        Packets::new(skew.get().div_ceil(slot.get())),
        "⌈clock difference / slot⌉",
        format!("⌈{} / {}⌉", brief(skew), brief(slot)),
        "thesis §6.4.2",
    )
}

/// Computes the ratio of an arbiter's `capacity` to the `needed` throughput.
///
/// # Panics
/// If `needed` is zero.
pub fn scheduler_margin(capacity: Rate, needed: Rate) -> Derived<Ratio> {
    Derived::new(
        "scheduler_margin",
        ratio_of(capacity.get(), needed.get()),
        "scheduler capacity / throughput",
        format!("{} / {}", brief(capacity), brief(needed)),
        "thesis §6.4",
    )
}
