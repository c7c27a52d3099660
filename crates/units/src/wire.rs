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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_standards() {
        assert_eq!((ETHERNET_STORED, ETHERNET_LINK, ETHERNET_UNCOUNTED), (18, 38, 24));
        assert_eq!((ETHERNET_WIRE_MIN, ETHERNET_MTU + ETHERNET_LINK), (84, 1538));
    }
}
