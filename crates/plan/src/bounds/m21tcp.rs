//! The windows that an M21TCP switch grants, from the rule of `fanin-queueing`.

use fanin_queueing::{M21Charge, M21WindowRule};
use fanin_units::{Bytes, Packets};

use crate::derived::{Count, Derived, brief};

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
