//! Windows: bandwidth-delay product, ICC'15 equations (1) to (10), and the M21TCP rule.

use fanin_queueing::{M21Charge, M21WindowRule};
use fanin_units::{Bytes, Duration, Packets, Rate};

use crate::derived::{Count, Derived, Factor, brief};

/// Computes the bytes in flight that keep a path busy: ICC'15 eq. (1).
pub fn bandwidth_delay_product(rate: Rate, rtt: Duration) -> Derived<Bytes> {
    Derived::new(
        "bdp",
        rate.bytes_in(rtt),
        "rate × RTT",
        format!("{} × {}", brief(rate), brief(rtt)),
        "ICC'15 §III.A eq. (1)",
    )
}

/// Computes the number of packets of `size` that hold `bytes`, rounded up.
///
/// # Panics
/// If the size is zero.
pub fn packets_of(bytes: Bytes, size: Bytes) -> Derived<Packets> {
    Derived::new(
        "bdp_packets",
        Packets::new(bytes.div_ceil(size)),
        "⌈bytes / packet⌉",
        format!("⌈{} / {}⌉", brief(bytes), brief(size)),
        "ICC'15 §III.A",
    )
}

/// Computes the factor by which `senders`, each with one packet of `size` in flight, exceed the bandwidth-delay product.
///
/// # Panics
/// If the product is zero.
pub fn overload(senders: u64, size: Bytes, bdp: Bytes) -> Derived<Factor> {
    Derived::new(
        "overload",
        Factor::of((size * senders).get(), bdp.get()),
        "senders × packet / BDP",
        format!("{senders} × {} / {}", brief(size), brief(bdp)),
        "ICC'15 §III.A",
    )
}

/// Computes the highest rate that a window permits on any link: thesis §2.2.2.
///
/// # Panics
/// If the round-trip time is zero.
pub fn throughput_bound(window: Bytes, rtt: Duration) -> Derived<Rate> {
    Derived::new(
        "throughput_bound",
        Rate::checked_from(window, rtt).expect("a round trip takes time"),
        "cwnd / RTT",
        format!("{} / {}", brief(window), brief(rtt)),
        "thesis §2.2.2",
    )
}

/// The windows of one flow that keep the path busy and lose nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowRange {
    /// The smallest window that fills the path, rounded up.
    pub min: Derived<Bytes>,
    /// The largest window that cannot overflow the buffer.
    pub max: Derived<Bytes>,
}

impl WindowRange {
    /// Returns true if `window` lies in the range.
    pub fn contains(&self, window: Bytes) -> bool {
        self.min.value <= window && window <= self.max.value
    }

    /// Returns true if no window both fills the path and avoids loss.
    pub fn is_empty(&self) -> bool {
        self.min.value > self.max.value
    }
}

/// Computes the window of each of `flows` equal flows: ICC'15 eqs (3), (4) and (6), `BDP / N ≤ W < (BDP + B) / N`.
///
/// With one flow this is eq. (3). The flows share the bottleneck queue of `buffer` bytes.
///
/// # Panics
/// If there is no flow.
pub fn window_range(bdp: Bytes, buffer: Bytes, flows: u64) -> WindowRange {
    WindowRange {
        min: Derived::new(
            "window_min",
            Bytes::new(bdp.get().div_ceil(flows)),
            "BDP / flows",
            format!("{} / {flows}", brief(bdp)),
            "ICC'15 §IV.C eq. (6)",
        ),
        max: Derived::new(
            "window_max",
            // The bound itself is excluded.
            Bytes::new(bdp.saturating_add(buffer).get().saturating_sub(1) / flows),
            "less than (BDP + buffer) / flows",
            format!("({} + {}) / {flows}", brief(bdp), brief(buffer)),
            "ICC'15 §IV.C eq. (6)",
        ),
    }
}

/// Computes the largest lossless window in whole packets of `size`; zero if not even one packet of each flow fits.
///
/// # Panics
/// If there is no flow or the size is zero.
pub fn window_packets_max(bdp: Bytes, buffer: Bytes, flows: u64, size: Bytes) -> Derived<Packets> {
    let all = (size * flows).get();
    Derived::new(
        "window_packets_max",
        Packets::new(bdp.saturating_add(buffer).get().saturating_sub(1) / all),
        "⌊less than (BDP + buffer) / (flows × packet)⌋",
        format!("⌊({} + {}) / ({flows} × {})⌋", brief(bdp), brief(buffer), brief(size)),
        "ICC'15 §IV.C eq. (6)",
    )
}

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

/// Computes DIATCP's global window of each collector: ICC'15 eqs (8) to (10), `BDP / N ≤ gwnd < (BDP + B) / N`.
///
/// # Panics
/// If there is no collector.
pub fn gwnd_range(bdp: Bytes, buffer: Bytes, collectors: u64) -> WindowRange {
    let WindowRange { mut min, mut max } = window_range(bdp, buffer, collectors);
    (min.formula, min.source) = ("BDP / collectors", "ICC'15 §IV.D eq. (10)");
    (max.formula, max.source) = ("less than (BDP + buffer) / collectors", "ICC'15 §IV.D eq. (10)");
    WindowRange { min: min.named("gwnd_min"), max: max.named("gwnd_max") }
}

/// Computes the window that an M21TCP switch grants to each flow: M21TCP eq. (1). Zero if the headers alone fill the buffer.
///
/// `header` is charged once for each flow, as in the paper; [`m21tcp_packets`] charges it for every packet. No flow counts as one.
pub fn m21tcp_window(buffer: Bytes, flows: u64, header: Bytes) -> Derived<Bytes> {
    Derived::new(
        "m21tcp_window",
        M21WindowRule { charge: M21Charge::Flow, mss: Bytes::ZERO, header }.window(buffer, saturated(flows)),
        "(buffer − header × flows) / flows",
        format!("({} − {} × {flows}) / {flows}", brief(buffer), brief(header)),
        "M21TCP §III.C eq. (1)",
    )
}

/// Computes the most flows for which [`m21tcp_window`] still grants a full segment.
pub fn m21tcp_senders_max(buffer: Bytes, mss: Bytes, header: Bytes) -> Derived<Count> {
    Derived::new(
        "m21tcp_senders_max",
        Count(M21WindowRule { charge: M21Charge::Flow, mss, header }.flows_max(buffer)),
        "⌊buffer / (MSS + header)⌋",
        format!("⌊{} / ({} + {})⌋", brief(buffer), brief(mss), brief(header)),
        "M21TCP §III.C eq. (1), solved for the flows",
    )
}

/// Computes the whole packets in flight of each flow if every packet's header is charged.
///
/// # Panics
/// If the packet is empty.
pub fn m21tcp_packets(buffer: Bytes, flows: u64, mss: Bytes, header: Bytes) -> Derived<Packets> {
    let rule = M21WindowRule { charge: M21Charge::Packet, mss, header };
    let window = rule.window(buffer, saturated(flows));
    Derived::new(
        "m21tcp_packets",
        Packets::new(window.get() / mss.get()),
        "⌊buffer / (flows × (MSS + header))⌋",
        format!("⌊{} / ({flows} × ({} + {}))⌋", brief(buffer), brief(mss), brief(header)),
        "M21TCP §III.C, each packet charged",
    )
}

fn saturated(flows: u64) -> u32 {
    u32::try_from(flows).unwrap_or(u32::MAX)
}

/// Computes the queue's occupancy if every flow sends its full window of eq. (1), with a short last segment.
///
/// # Panics
/// If the number of flows or the segment's size is zero.
pub fn m21tcp_occupancy(buffer: Bytes, flows: u64, mss: Bytes, header: Bytes) -> Derived<Bytes> {
    let window = m21tcp_window(buffer, flows, header).value;
    let segments = window.div_ceil(mss);
    Derived::new(
        "m21tcp_occupancy",
        (window + header * segments) * flows,
        "flows × (window + ⌈window / MSS⌉ × header)",
        format!("{flows} × ({} + {segments} × {})", brief(window), brief(header)),
        "M21TCP §III.C eq. (1), each packet charged",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_bound_is_excluded() {
        let (bdp, buffer) = (Bytes::new(25_000), Bytes::new(125_000));
        let range = window_range(bdp, buffer, 100);
        assert_eq!((range.min.value, range.max.value), (Bytes::new(250), Bytes::new(1_499)));
        assert_eq!(window_packets_max(bdp, buffer, 100, Bytes::new(1_500)).value, Packets::ZERO);
        assert_eq!(
            window_packets_max(bdp, buffer + Bytes::new(1), 100, Bytes::new(1_500)).value,
            Packets::new(1)
        );
        assert!(range.contains(Bytes::new(1_499)) && !range.contains(Bytes::new(1_500)));
        assert!(window_range(Bytes::new(101), Bytes::ZERO, 100).is_empty());
    }

    #[test]
    fn results_say_what_went_in() {
        assert_eq!(
            bandwidth_delay_product(Rate::new(1_000_000_000), Duration::from_micros(200)).text(),
            "rate × RTT = 1 Gb/s × 200 us = 25 kB"
        );
    }
}
