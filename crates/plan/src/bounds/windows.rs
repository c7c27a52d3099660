//! Windows in general: bandwidth-delay product, and ICC'15 equations (1) to (6).

use fanin_units::{Bytes, Duration, Packets, Rate};

use crate::derived::{Derived, Factor, brief};

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
