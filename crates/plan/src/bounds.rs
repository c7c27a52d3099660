//! Bounds on windows, bursts, buffers and rates. Each result carries its formula and the formula's source.

mod burst;
mod credits;
mod diatcp;
mod fastpass;
mod host;
mod m21tcp;
mod rings;
mod static_window;
mod timeouts;
mod windows;

pub use burst::{
    EventSize, PortChoice, SharedLoad, burst_max, normal_cdf, normal_quantile, overflow_share,
    peak_occupancy, queueing_delay,
};
pub use credits::{
    Requests, credit_burst, credit_collection_time, credit_utilisation, credit_window, credits_for_window,
    credits_max,
};
pub use diatcp::gwnd_range;
pub use fastpass::{fastpass_queue_max, fastpass_slots, scheduler_margin};
pub use host::{memory_bandwidth, messaging, pcie_bandwidth, simulation_time};
pub use m21tcp::{m21tcp_occupancy, m21tcp_packets, m21tcp_senders_max, m21tcp_window};
pub use rings::{ring_drain_time, ring_memory, ring_rate_sum};
pub use static_window::{buffer_needed, in_flight_max};
pub use timeouts::{RTO_MIN_FREEBSD, RTO_MIN_RFC, retransmission_timeout, timeout_slowdown};
pub use windows::{
    WindowRange, bandwidth_delay_product, overload, packets_of, throughput_bound, window_packets_max,
    window_range,
};
