//! Exact bytes on the wire: how a message becomes segments and frames, and what these cost.

use fanin_network::Framing;
use fanin_units::{Bytes, Duration, Frequency, Packets, Rate, Ratio};

use crate::derived::{Derived, brief, ratio_of};

/// How TCP cuts a message into segments, and the bytes around each of them on a link. All sizes are bytes.
///
/// IEEE 802.3 for the frame, RFC 791 and RFC 9293 for the headers, RFC 7323 for the timestamp option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFraming {
    /// The bytes that the links add to an IP packet.
    pub framing: Framing,
    /// TCP options in every segment: 12 with timestamps (10 and 2 of padding). SACK blocks appear only after a
    /// loss, so a lossless ideal has none.
    pub options: u64,
    /// Largest IP datagram.
    pub mtu: u64,
    /// Largest payload of a segment where it is set below what the MTU allows.
    pub mss_max: u64,
}

/// One message as it crosses a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireMessage {
    /// Application bytes.
    pub payload: Bytes,
    /// Segments that carry it, the last one short where the payload is no multiple of the MSS.
    pub segments: Packets,
    /// Bytes of link time: everything from the preamble to the gap.
    pub wire: Bytes,
    /// Bytes of switch memory: frames from addresses to check sequence, no preamble and no gap.
    pub buffered: Bytes,
}

impl SegmentFraming {
    /// Ethernet with an MTU of 1500, IPv4, TCP without options.
    pub const ETHERNET: Self = Self { framing: Framing::ETHERNET, options: 0, mtu: 1500, mss_max: u64::MAX };

    /// The point-to-point framing of ns-3, which the M21TCP paper ran on: two bytes and nothing else.
    pub const NS3_POINT_TO_POINT: Self = Self { framing: Framing::PPP, ..Self::ETHERNET };

    /// The same with TCP timestamps, the default of Linux.
    #[must_use]
    pub const fn with_timestamps(self) -> Self {
        Self { options: 12, ..self }
    }

    /// The same with another MTU.
    #[must_use]
    pub const fn with_mtu(self, mtu: u64) -> Self {
        Self { mtu, ..self }
    }

    /// The same with segments held to `mss` bytes of payload.
    #[must_use]
    pub const fn with_mss(self, mss: u64) -> Self {
        Self { mss_max: mss, ..self }
    }

    /// Bytes of IP and TCP headers, options included.
    pub const fn headers(&self) -> u64 {
        Framing::HEADER_BYTES as u64 + self.options
    }

    /// Bytes of link time a frame costs over its IP datagram: 38 on Ethernet (thesis §2.2.1).
    pub const fn frame_overhead(&self) -> u64 {
        self.framing.link_bytes as u64
    }

    /// Bytes of link time a segment costs over its payload: 78 on Ethernet (thesis §2.2.2).
    pub const fn segment_overhead(&self) -> u64 {
        self.frame_overhead() + self.headers()
    }

    /// The largest payload of a segment.
    ///
    /// # Panics
    /// If the headers leave no room.
    pub const fn mss(&self) -> u64 {
        let headers = self.headers();
        assert!(self.mtu > headers && self.mss_max > 0, "the headers leave no room for a payload");
        if self.mtu - headers < self.mss_max { self.mtu - headers } else { self.mss_max }
    }

    /// The frame in a switch's memory that carries a segment of so many payload bytes.
    pub const fn buffered(&self, segment: u64) -> u64 {
        self.framing.frame_bytes(packet(self.headers() + segment)) as u64
    }

    /// The link time in bytes of a segment of so many payload bytes.
    pub const fn wire(&self, segment: u64) -> u64 {
        self.framing.wire_bytes(packet(self.headers() + segment)) as u64
    }

    /// The frame that carries a full segment, in link time: 1538 B on Ethernet.
    pub const fn wire_max(&self) -> Bytes {
        Bytes::new(self.wire(self.mss()))
    }

    /// A message of `payload` bytes, sent in full segments and a last one with the rest.
    ///
    /// # Panics
    /// If the sizes overflow, past 1e18 bytes.
    pub fn message(&self, payload: Bytes) -> WireMessage {
        let mss = self.mss();
        let (full, rest) = (payload.get() / mss, payload.get() % mss);
        let tail = u64::from(rest > 0);
        let sum = |frame: &dyn Fn(u64) -> u64| {
            Bytes::new(frame(mss)) * full + Bytes::new(if rest > 0 { frame(rest) } else { 0 })
        };
        WireMessage {
            payload,
            segments: Packets::new(full + tail),
            wire: sum(&|segment| self.wire(segment)),
            buffered: sum(&|segment| self.buffered(segment)),
        }
    }

    /// A bare acknowledgement: 64 B of frame and 84 B of link time on Ethernet without options.
    pub const fn ack(&self) -> Bytes {
        Bytes::new(self.wire(0))
    }

    /// The share of a link that is left for payload when all segments are full.
    pub fn payload_share_max(&self) -> Derived<Ratio> {
        let (mss, wire) = (self.mss(), self.wire(self.mss()));
        Derived::new(
            "payload_share_max",
            ratio_of(mss, wire),
            "MSS / (MSS + headers, preamble and gap)",
            format!("{mss} B / {wire} B"),
            "thesis §2.2.2",
        )
    }

    /// Link time that headers, preambles and gaps take, as a share of the payload.
    pub fn overhead_share(&self, payload: Bytes) -> Derived<Ratio> {
        let message = self.message(payload);
        Derived::new(
            "overhead",
            ratio_of((message.wire - payload).get(), payload.get()),
            "(wire bytes − payload) / payload",
            format!("({} − {}) / {}", brief(message.wire), brief(payload), brief(payload)),
            "thesis §2.2.2",
        )
    }

    /// The wire bytes of `count` messages of `payload` bytes each.
    pub fn wire_bytes(&self, payload: Bytes, count: u64) -> Derived<Bytes> {
        let message = self.message(payload);
        Derived::new(
            "wire_bytes",
            message.wire * count,
            "messages × (payload + segments × overhead), short frames padded",
            format!(
                "{count} × ({} + {} × {} B)",
                brief(payload),
                message.segments.get(),
                self.segment_overhead()
            ),
            "thesis §2.2; IEEE 802.3",
        )
    }

    /// The wire bytes of the acknowledgements for `segments`, one for every `per_ack` of them.
    ///
    /// Two segments an acknowledgement is what RFC 9293 §3.8.6.3 asks of delayed acknowledgement; one is the most.
    /// With receive offload (GRO), fewer segments are acknowledged.
    ///
    /// # Panics
    /// If `per_ack` is zero.
    pub fn ack_bytes(&self, segments: Packets, per_ack: u64) -> Derived<Bytes> {
        Derived::new(
            "ack_bytes",
            self.ack() * segments.get().div_ceil(per_ack),
            "segments / segments an acknowledgement × acknowledgement on the wire",
            format!("{} / {per_ack} × {}", segments.get(), self.ack()),
            "RFC 9293 §3.8.6.3",
        )
    }
}

/// The length of an IP packet.
const fn packet(bytes: u64) -> u32 {
    assert!(bytes <= u32::MAX as u64 >> 1, "an IP packet is shorter");
    bytes as u32
}

/// Ideal data-collection time: a round trip, then all answers back to back on the slowest last hop (thesis §4.2.2).
///
/// # Panics
/// If the rate is zero, or sending takes more than 213 days.
pub fn collection_time_ideal(rtt: Duration, wire: Bytes, rate: Rate) -> Derived<Duration> {
    Derived::new(
        "collection_time_ideal",
        rtt.saturating_add(rate.time_to_send(wire)),
        "RTT + wire bytes / rate",
        format!("{} + {} / {}", brief(rtt), brief(wire), brief(rate)),
        "thesis §4.2.2",
    )
}

/// Payload delivered over the ideal time: what one requester after another gets at best.
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

/// The rate that `bytes` sent `frequency` times a second amount to, rounded down.
///
/// # Panics
/// If the rate does not fit, past 1.8e19 b/s.
pub fn rate_of(frequency: Frequency, bytes: Bytes) -> Rate {
    let bits = u128::from(frequency.get()) * u128::from(bytes.get()) * 8 / 1_000;
    Rate::new(u64::try_from(bits).expect("a rate overflows"))
}

/// Data-collection throughput: events a second times the size of a collection (thesis §4.2.1).
pub fn throughput(frequency: Frequency, size: Bytes) -> Derived<Rate> {
    Derived::new(
        "throughput",
        rate_of(frequency, size),
        "event rate × collection size",
        format!("{} × {}", brief(frequency), brief(size)),
        "thesis §4.2.1",
    )
}

/// The share of `links` links of `rate` that `offered` takes.
///
/// # Panics
/// If there is no link or the rate is zero.
pub fn load(offered: Rate, rate: Rate, links: u64) -> Derived<Ratio> {
    // Parts per million of one link first: the sum of all links' rates need not fit.
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
    fn short_frames_are_padded() {
        let plain = SegmentFraming::ETHERNET;
        assert_eq!(plain.ack(), Bytes::new(84));
        assert_eq!(plain.with_timestamps().ack(), Bytes::new(90));
        assert_eq!(plain.message(Bytes::new(6)).wire, Bytes::new(84));
        assert_eq!(plain.message(Bytes::new(7)).wire, Bytes::new(85));
        assert_eq!(plain.message(Bytes::ZERO).wire, Bytes::ZERO);
        assert_eq!(plain.with_mtu(9000).mss(), 8960);
    }

    #[test]
    fn the_last_segment_is_short() {
        let answer = SegmentFraming::ETHERNET.message(Bytes::new(13_200));
        assert_eq!(answer.segments, Packets::new(10));
        assert_eq!(answer.wire, Bytes::new(13_980));
        assert_eq!(answer.buffered, Bytes::new(13_780));
        let exact = SegmentFraming::ETHERNET.message(Bytes::new(14_600));
        assert_eq!(exact.segments, Packets::new(10));
        assert_eq!(exact.wire, Bytes::new(15_380));
    }

    #[test]
    fn ceilings_for_payload_are_the_known_ones() {
        assert_eq!(SegmentFraming::ETHERNET.payload_share_max().value, Ratio::new(949_285));
        assert_eq!(SegmentFraming::ETHERNET.with_timestamps().payload_share_max().value, Ratio::new(941_482));
    }

    #[test]
    fn acknowledgements_are_counted_each_way() {
        let acks = SegmentFraming::ETHERNET.ack_bytes(Packets::new(1601), 2);
        assert_eq!(acks.value, Bytes::new(801 * 84));
        assert_eq!(acks.text().rsplit(" = ").next(), Some("67.284 kB"));
    }
}
