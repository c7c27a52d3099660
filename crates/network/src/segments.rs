//! Segmentation of messages by TCP, and the bytes of segments in frames and on links.

use fanin_scenario::Transport;
use fanin_units::wire::{self, FrameOverhead};
use fanin_units::{Bytes, Packets};

/// Segments of a message, and the bytes around each of them on a link. All sizes are bytes.
///
/// Sources: IEEE 802.3 for the frame, RFC 791 and RFC 9293 for the headers, RFC 7323 for the timestamp option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFraming {
    /// The bytes that the links add to an IP packet.
    pub framing: FrameOverhead,
    /// TCP options in every segment: 12 with timestamps (10 and 2 of padding). SACK blocks appear only after a loss, so
    /// a lossless ideal has none.
    pub options: u64,
    /// Largest IP datagram.
    pub mtu: u64,
    /// Largest payload of a segment, if it is lower than the MTU permits.
    pub mss_max: u64,
}

/// A message on a link, cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireMessage {
    /// Bytes of the application.
    pub payload: Bytes,
    /// Number of segments. The last one is short if the payload is not a multiple of the MSS.
    pub segments: Packets,
    /// Bytes of link time, from the preamble to the gap.
    pub wire: Bytes,
    /// Bytes of switch memory: frames from addresses to check sequence, without preamble and gap.
    pub buffered: Bytes,
}

impl SegmentFraming {
    /// Ethernet with an MTU of 1500, IPv4, TCP without options.
    pub const ETHERNET: Self = Self {
        framing: FrameOverhead::ETHERNET,
        options: 0,
        mtu: wire::ETHERNET_MTU as u64,
        mss_max: u64::MAX,
    };

    /// The segments of a scenario's connections, on links with this framing.
    pub fn of(transport: &Transport, framing: FrameOverhead) -> Self {
        Self {
            framing,
            options: transport.option_bytes().get(),
            mtu: transport.mtu.get(),
            mss_max: transport.segment_payload().get().max(1),
        }
    }

    /// Bytes of IP and TCP headers, options included.
    pub const fn headers(&self) -> u64 {
        FrameOverhead::HEADER_BYTES as u64 + self.options
    }

    /// Bytes of link time of a frame in addition to its IP datagram: 38 on Ethernet (thesis §2.2.1).
    pub const fn frame_overhead(&self) -> u64 {
        self.framing.link_bytes as u64
    }

    /// Bytes of link time of a segment in addition to its payload: 78 on Ethernet (thesis §2.2.2).
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

    /// Bytes in a switch's memory of the frame that carries `segment` bytes of payload.
    pub const fn buffered(&self, segment: u64) -> u64 {
        self.framing.frame_bytes(packet(self.headers() + segment)) as u64
    }

    /// The link time in bytes of the frame that carries `segment` bytes of payload.
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

    /// Bytes of link time of a message of `bytes`, as [`Self::message`] counts them.
    #[inline]
    pub const fn wire_bytes(&self, bytes: u64) -> u64 {
        let mss = self.mss();
        let (full, rest) = (bytes / mss, bytes % mss);
        full * self.wire(mss) + if rest > 0 { self.wire(rest) } else { 0 }
    }

    /// The largest frame without payload in a switch's memory, in bytes: an acknowledgement with the most options of
    /// TCP.
    pub const fn ack_buffered_max(&self) -> u64 {
        self.framing.frame_bytes(FrameOverhead::HEADER_BYTES_MAX) as u64
    }

    /// Bytes of link time of the largest frame without payload.
    pub const fn ack_wire_max(&self) -> u64 {
        self.framing.wire_bytes(FrameOverhead::HEADER_BYTES_MAX) as u64
    }

    /// An acknowledgement without payload and options: 64 B of frame and 84 B of link time on Ethernet.
    pub const fn ack(&self) -> Bytes {
        Bytes::new(self.wire(0))
    }
}

/// Converts the length of an IP packet in bytes.
const fn packet(bytes: u64) -> u32 {
    assert!(bytes <= u32::MAX as u64 >> 1, "an IP packet is shorter");
    bytes as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_frames_are_padded() {
        let plain = SegmentFraming::ETHERNET;
        assert_eq!(plain.ack(), Bytes::new(84));
        let stamped = SegmentFraming { options: wire::TCP_TIMESTAMPS.into(), ..plain };
        assert_eq!(stamped.ack(), Bytes::new(90));
        assert_eq!(plain.message(Bytes::new(6)).wire, Bytes::new(84));
        assert_eq!(plain.message(Bytes::new(7)).wire, Bytes::new(85));
        assert_eq!(plain.message(Bytes::ZERO).wire, Bytes::ZERO);
        assert_eq!(SegmentFraming { mtu: 9000, ..plain }.mss(), 8960);
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
}
