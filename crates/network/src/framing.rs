//! The bytes that a link adds to an IP packet.

use fanin_units::wire;

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
    pub const HEADER_BYTES: u32 = wire::IP_TCP_HEADERS;
    /// IPv4 without options, and the longest TCP header.
    pub const HEADER_BYTES_MAX: u32 = Self::HEADER_BYTES + wire::TCP_OPTIONS_MAX;
    /// Ethernet without VLAN tag.
    pub const ETHERNET: Self = Self {
        link_bytes: wire::ETHERNET_LINK,
        ip_bytes_min: wire::ETHERNET_FRAME_MIN - wire::ETHERNET_STORED,
        stored_bytes: wire::ETHERNET_STORED,
    };
    /// The two-byte PPP header of ns-3's point-to-point links.
    pub const POINT_TO_POINT: Self =
        Self { link_bytes: wire::PPP_HEADER, ip_bytes_min: 0, stored_bytes: wire::PPP_HEADER };

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
