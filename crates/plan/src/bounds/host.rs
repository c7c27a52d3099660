//! Hosts: messaging rates, memory and bus bandwidth, and the run time of a simulation.

use fanin_units::{Bytes, Duration, Frequency, Rate};

use crate::derived::{Derived, brief};
use crate::wire::rate_of;

/// Computes message rate and bandwidth of an application with `peers` connections (thesis §3.8.1).
pub fn messaging(peers: u64, per_peer: Frequency, size: Bytes) -> (Derived<Frequency>, Derived<Rate>) {
    let messages = per_peer * peers;
    (
        Derived::new(
            "message_rate",
            messages,
            "peers × messages a second",
            format!("{peers} × {}", brief(per_peer)),
            "thesis §3.8.1",
        ),
        Derived::new(
            "message_bandwidth",
            rate_of(messages, size),
            "message rate × size",
            format!("{} × {}", brief(messages), brief(size)),
            "thesis §3.8.1",
        ),
    )
}

/// Computes the peak bandwidth of memory: `channels` of 64 bits with `transfers` a second.
pub fn memory_bandwidth(transfers: Frequency, channels: u64) -> Derived<Rate> {
    Derived::new(
        "memory_bandwidth",
        rate_of(transfers, Bytes::new(8)) * channels,
        "transfers × 8 B × channels",
        format!("{} × 8 B × {channels}", brief(transfers)),
        "LCN'15, backup",
    )
}

/// Computes the bandwidth of a PCI Express link after line coding: `payload` of every `coded` bits.
///
/// # Panics
/// If `coded` is zero or the rate does not fit.
pub fn pcie_bandwidth(lane: Rate, lanes: u64, payload: u64, coded: u64) -> Derived<Rate> {
    let rate = u128::from(lane.get()) * u128::from(lanes) * u128::from(payload) / u128::from(coded);
    Derived::new(
        "pcie_bandwidth",
        Rate::new(u64::try_from(rate).expect("a rate overflows")),
        "lane rate × lanes × coding",
        format!("{} × {lanes} × {payload}/{coded}", brief(lane)),
        "LCN'15, backup",
    )
}

/// Computes the run time of a simulation that simulates traffic at `speed`, in bits a second of real time (thesis §5.1.6).
///
/// # Panics
/// If the speed is zero or the time exceeds 213 days.
pub fn simulation_time(simulated: Duration, throughput: Rate, speed: Rate) -> Derived<Duration> {
    Derived::new(
        "simulation_time",
        simulated.checked_mul_ratio(throughput.get(), speed.get()).expect("a simulation takes for ever"),
        "simulated time × throughput / speed",
        format!("{} × {} / {}", brief(simulated), brief(throughput), brief(speed)),
        "thesis §5.1.6",
    )
}
