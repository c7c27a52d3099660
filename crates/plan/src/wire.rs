//! Link time of messages, frames and acknowledgements, as derivations.

use fanin_network::ideal_time;
pub use fanin_network::{SegmentFraming, WireMessage};
use fanin_units::{Bytes, Duration, Frequency, Packets, Rate, Ratio};

use crate::derived::{Derived, brief, ratio_of};

/// Computes the share of a link that is left for payload if all segments are full.
pub fn payload_share_max(framing: &SegmentFraming) -> Derived<Ratio> {
    let (mss, wire) = (framing.mss(), framing.wire(framing.mss()));
    Derived::new(
        "payload_share_max",
        ratio_of(mss, wire),
        "MSS / (MSS + headers, preamble and gap)",
        format!("{mss} B / {wire} B"),
        "thesis §2.2.2",
    )
}

/// Computes the link time of headers, preambles and gaps, as a share of the payload's.
pub fn overhead_share(message: &WireMessage) -> Derived<Ratio> {
    let payload = message.payload;
    Derived::new(
        "overhead",
        ratio_of((message.wire - payload).get(), payload.get()),
        "(wire bytes − payload) / payload",
        format!("({} − {}) / {}", brief(message.wire), brief(payload), brief(payload)),
        "thesis §2.2.2",
    )
}

/// Computes the wire bytes of `count` messages of `payload` bytes each.
pub fn wire_bytes(framing: &SegmentFraming, payload: Bytes, count: u64) -> Derived<Bytes> {
    let message = framing.message(payload);
    Derived::new(
        "wire_bytes",
        message.wire * count,
        "messages × (payload + segments × overhead), short frames padded",
        format!(
            "{count} × ({} + {} × {} B)",
            brief(payload),
            message.segments.get(),
            framing.segment_overhead()
        ),
        "thesis §2.2; IEEE 802.3",
    )
}

/// Computes the wire bytes of the acknowledgements for `segments`, one for every `per_ack` segments.
///
/// RFC 9293 §3.8.6.3 requires one delayed ACK for two segments; without delay each segment has one. With receive
/// offload (GRO), fewer segments are acknowledged.
///
/// # Panics
/// If `per_ack` is zero.
pub fn ack_bytes(framing: &SegmentFraming, segments: Packets, per_ack: u64) -> Derived<Bytes> {
    Derived::new(
        "ack_bytes",
        framing.ack() * segments.get().div_ceil(per_ack),
        "segments / segments an acknowledgement × acknowledgement on the wire",
        format!("{} / {per_ack} × {}", segments.get(), framing.ack()),
        "RFC 9293 §3.8.6.3",
    )
}

/// Computes the ideal data-collection time: a round trip, then all answers back to back on the slowest last hop (thesis
/// §4.2.2).
///
/// # Panics
/// If the rate is zero, or sending takes more than 213 days.
pub fn collection_time_ideal(rtt: Duration, wire: Bytes, rate: Rate) -> Derived<Duration> {
    Derived::new(
        "collection_time_ideal",
        ideal_time(rtt, wire, rate),
        "RTT + wire bytes / rate",
        format!("{} + {} / {}", brief(rtt), brief(wire), brief(rate)),
        "thesis §4.2.2",
    )
}

/// Computes the payload delivered over the ideal time: the highest goodput of requesters that take turns.
///
/// # Panics
/// If the time is zero.
pub fn goodput_ideal(payload: Bytes, time: Duration) -> Derived<Rate> {
    Derived::new(
        "goodput_ideal",
        Rate::checked_from(payload, time).expect("an ideal time is never zero"),
        "payload / ideal time",
        format!("{} / {}", brief(payload), brief(time)),
        "thesis §4.2.2",
    )
}

/// Computes the rate of `bytes` sent `frequency` times a second, rounded down.
///
/// # Panics
/// If the rate does not fit, past 1.8e19 b/s.
pub fn rate_of(frequency: Frequency, bytes: Bytes) -> Rate {
    let bits = u128::from(frequency.get()) * u128::from(bytes.get()) * 8 / 1_000;
    Rate::new(u64::try_from(bits).expect("a rate overflows"))
}

/// Computes the data-collection throughput: events a second times the size of a collection (thesis §4.2.1).
pub fn throughput(frequency: Frequency, size: Bytes) -> Derived<Rate> {
    Derived::new(
        "throughput",
        rate_of(frequency, size),
        "event rate × collection size",
        format!("{} × {}", brief(frequency), brief(size)),
        "thesis §4.2.1",
    )
}

/// Computes the share of `links` links of `rate` that `offered` takes.
///
/// # Panics
/// If there is no link or the rate is zero.
pub fn load(offered: Rate, rate: Rate, links: u64) -> Derived<Ratio> {
    // Parts per million of one link come first, because the sum of all links' rates may not fit.
    let ppm = u128::from(ratio_of(offered.get(), rate.get()).get()) / u128::from(links);
    let exact = rate.checked_mul(links).map(|all| ratio_of(offered.get(), all.get()));
    Derived::new(
        "load",
        exact.unwrap_or_else(|| Ratio::new(u64::try_from(ppm).unwrap_or(u64::MAX))),
        "offered wire rate / (links × rate)",
        format!("{} / ({links} × {})", brief(offered), brief(rate)),
        "thesis §4.2.1",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_for_payload_are_the_known_ones() {
        let plain = SegmentFraming::ETHERNET;
        assert_eq!(payload_share_max(&plain).value, Ratio::new(949_285));
        assert_eq!(payload_share_max(&SegmentFraming { options: 12, ..plain }).value, Ratio::new(941_482));
    }

    #[test]
    fn acknowledgements_are_counted_each_way() {
        let acks = ack_bytes(&SegmentFraming::ETHERNET, Packets::new(1601), 2);
        assert_eq!(acks.value, Bytes::new(801 * 84));
        assert_eq!(acks.text().rsplit(" = ").next(), Some("67.284 kB"));
    }
}
