//! Sizes that standards define on the wire, in bytes: Ethernet (IEEE 802.3), IPv4 (RFC 791), TCP (RFC 9293, RFC 7323).

/// The addresses and the type of an Ethernet frame.
pub const ETHERNET_HEADER: u32 = 14;
/// The check sequence at the end of an Ethernet frame.
pub const ETHERNET_CHECK: u32 = 4;
/// Preamble and start delimiter before a frame.
pub const ETHERNET_PREAMBLE: u32 = 8;
/// The least gap after a frame.
pub const ETHERNET_GAP: u32 = 12;
/// Bytes that a switch stores in addition to an IP packet: header and check sequence.
pub const ETHERNET_STORED: u32 = ETHERNET_HEADER + ETHERNET_CHECK;
/// Bytes of link time in addition to an IP packet.
pub const ETHERNET_LINK: u32 = ETHERNET_STORED + ETHERNET_PREAMBLE + ETHERNET_GAP;
/// The two-byte PPP header of ns-3's point-to-point links; they add no other bytes to an IP packet.
pub const PPP_HEADER: u32 = 2;
/// Bytes of link time that network cards and kernels do not count: check sequence, preamble, gap.
pub const ETHERNET_UNCOUNTED: u32 = ETHERNET_LINK - ETHERNET_HEADER;
/// The shortest Ethernet frame, header and check sequence included.
pub const ETHERNET_FRAME_MIN: u32 = 64;
/// Link time of the shortest frame.
pub const ETHERNET_WIRE_MIN: u32 = ETHERNET_FRAME_MIN + ETHERNET_PREAMBLE + ETHERNET_GAP;
/// The usual longest IP packet on Ethernet.
pub const ETHERNET_MTU: u32 = 1500;

/// An IPv4 header without options.
pub const IP_HEADER: u32 = 20;
/// A TCP header without options.
pub const TCP_HEADER: u32 = 20;
/// IPv4 and TCP headers without options.
pub const IP_TCP_HEADERS: u32 = IP_HEADER + TCP_HEADER;
/// The most bytes of TCP options.
pub const TCP_OPTIONS_MAX: u32 = 40;
/// TCP's timestamp option with two bytes of padding.
pub const TCP_TIMESTAMPS: u32 = 12;
/// M21TCP's option: kind, length, 16-bit id, 32-bit window.
pub const TCP_M21: u32 = 8;

/// The bytes that a link adds to an IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FrameOverhead {
    /// Bytes added on the wire: for Ethernet preamble 7, delimiter 1, header 14, check sequence 4, gap 12.
    pub link_bytes: u32,
    /// Least bytes of an IP packet on the link. Shorter packets are padded to it.
    pub ip_bytes_min: u32,
    /// The part of `link_bytes` that a switch stores: header and check sequence.
    pub stored_bytes: u32,
}

impl FrameOverhead {
    /// IPv4 and TCP headers without options.
    pub const HEADER_BYTES: u32 = IP_TCP_HEADERS;
    /// IPv4 without options, and the longest TCP header.
    pub const HEADER_BYTES_MAX: u32 = Self::HEADER_BYTES + TCP_OPTIONS_MAX;
    /// Ethernet without VLAN tag.
    pub const ETHERNET: Self = Self {
        link_bytes: ETHERNET_LINK,
        ip_bytes_min: ETHERNET_FRAME_MIN - ETHERNET_STORED,
        stored_bytes: ETHERNET_STORED,
    };
    /// The two-byte PPP header of ns-3's point-to-point links.
    pub const POINT_TO_POINT: Self =
        Self { link_bytes: PPP_HEADER, ip_bytes_min: 0, stored_bytes: PPP_HEADER };

    /// Bytes on the wire of an IP packet of `ip_bytes`.
    #[inline]
    pub const fn wire_bytes(self, ip_bytes: u32) -> u32 {
        self.link_bytes + if ip_bytes < self.ip_bytes_min { self.ip_bytes_min } else { ip_bytes }
    }

    /// The part of a frame's bytes on the wire that a switch does not store.
    pub const fn unstored_bytes(self) -> u32 {
        self.link_bytes - self.stored_bytes
    }

    /// Bytes on the wire of a PAUSE or RESUME frame, which carries an opcode and a time (IEEE 802.3 annex 31B).
    #[inline]
    pub const fn pause_bytes(self) -> u32 {
        self.wire_bytes(4)
    }

    /// Bytes that a switch stores of an IP packet of `ip_bytes`.
    #[inline]
    pub const fn frame_bytes(self, ip_bytes: u32) -> u32 {
        self.stored_bytes + if ip_bytes < self.ip_bytes_min { self.ip_bytes_min } else { ip_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_standards() {
        assert_eq!((ETHERNET_STORED, ETHERNET_LINK, ETHERNET_UNCOUNTED), (18, 38, 24));
        assert_eq!((ETHERNET_WIRE_MIN, ETHERNET_MTU + ETHERNET_LINK), (84, 1538));
    }

    #[test]
    fn short_packets_are_padded_on_ethernet_alone() {
        // A full segment of 1460 bytes, and an acknowledgement, with 40 bytes of headers each.
        assert_eq!([1500, 40].map(|ip| FrameOverhead::ETHERNET.wire_bytes(ip)), [1538, 84]);
        assert_eq!([1500, 40].map(|ip| FrameOverhead::POINT_TO_POINT.wire_bytes(ip)), [1502, 42]);
        assert_eq!(
            [FrameOverhead::ETHERNET, FrameOverhead::POINT_TO_POINT].map(FrameOverhead::pause_bytes),
            [84, 6]
        );
        assert_eq!([1500, 40].map(|ip| FrameOverhead::ETHERNET.frame_bytes(ip)), [1518, 64]);
    }
}
