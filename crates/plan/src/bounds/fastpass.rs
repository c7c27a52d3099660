//! Fastpass: timeslots, the queue of differing clocks, and the arbiter's margin.

use fanin_units::{Bytes, Duration, Frequency, Packets, Rate, Ratio};

use crate::derived::{Derived, brief, ratio_of};

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
