//! Parses frames. A length in a header is never trusted.

use fanin_units::wire;

use crate::address::Mac;

/// Length in memory of an Ethernet frame's addresses and type, [`wire::ETHERNET_HEADER`].
pub const ETHERNET_HEADER: usize = wire::ETHERNET_HEADER as usize;
/// Length of a VLAN tag.
pub const TAG_BYTES: usize = 4;

pub(crate) const ETHERTYPE_VLAN: u16 = 0x8100;
pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86dd;
pub(crate) const ETHERTYPE_CONTROL: u16 = 0x8808;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// An Ethernet header. Addresses are numbers, because the data path only hashes and compares them; see [`Mac::from_u64`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ethernet {
    /// Destination address: 48 bits.
    pub destination: u64,
    /// Source address: 48 bits.
    pub source: u64,
    /// The tag control word of its outermost VLAN tag.
    pub tag: Option<u16>,
    /// EtherType of its payload.
    pub ethertype: u16,
    /// Offset of the payload.
    pub payload: usize,
}

impl Ethernet {
    /// Parses the header; `None` if the frame is too short.
    #[inline]
    pub fn parse(frame: &[u8]) -> Option<Self> {
        // Two overlapping words hold the header.
        let header = frame.first_chunk::<ETHERNET_HEADER>()?;
        let [first, second] =
            [header.first_chunk()?, header.last_chunk()?].map(|&word| u64::from_be_bytes(word));
        let mut ethernet = Self {
            destination: first >> 16,
            source: second >> 16,
            tag: None,
            ethertype: second as u16,
            payload: ETHERNET_HEADER,
        };
        if ethernet.ethertype == ETHERTYPE_VLAN {
            let &[c0, c1, t0, t1] = frame[ETHERNET_HEADER..].first_chunk::<TAG_BYTES>()?;
            ethernet.tag = Some(u16::from_be_bytes([c0, c1]));
            ethernet.ethertype = u16::from_be_bytes([t0, t1]);
            ethernet.payload += TAG_BYTES;
        }
        Some(ethernet)
    }

    /// Returns true if the destination is a multicast or broadcast address.
    #[inline]
    pub const fn is_for_group(&self) -> bool {
        self.destination & Mac::GROUP != 0
    }

    /// Returns true if the source is a group address, which is malformed.
    #[inline]
    pub const fn is_from_group(&self) -> bool {
        self.source & Mac::GROUP != 0
    }

    /// Returns true if a bridge must not forward it: to 01-80-C2-00-00-00 to -0F (IEEE 802.1Q, table 8-1).
    #[inline]
    pub const fn is_link_local(&self) -> bool {
        self.destination >> 4 == Mac::LINK_LOCAL >> 4
    }
}

/// The IP header of a frame and the ports behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IpHeader {
    /// 4, 6, or 0 for anything but a valid IP header.
    pub version: u8,
    /// The IP protocol.
    pub protocol: u8,
    /// The two ECN bits.
    pub ecn: u8,
    /// The source, an IPv4 address in the lowest 32 bits.
    pub source: u128,
    /// Address of the receiver; IPv4 in the lowest 32 bits.
    pub destination: u128,
    /// Ports of TCP or UDP; 0 without them, as in all fragments but the first.
    pub ports: (u16, u16),
    /// Offset of the header of TCP or UDP; 0 without one.
    pub transport: usize,
}

impl IpHeader {
    /// Parses the headers; missing or invalid fields keep their defaults.
    #[inline]
    pub fn parse(frame: &[u8], ethernet: &Ethernet) -> Self {
        let Some(packet) = frame.get(ethernet.payload..) else { return Self::default() };
        let mut network = match ethernet.ethertype {
            ETHERTYPE_IPV4 => Self::parse_v4(packet),
            ETHERTYPE_IPV6 => Self::parse_v6(packet),
            _ => Self::default(),
        };
        if network.transport != 0 {
            if let TCP | UDP = network.protocol
                && let Some(&[s0, s1, d0, d1]) = packet.get(network.transport..).and_then(<[u8]>::first_chunk)
            {
                network.ports = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
                network.transport += ethernet.payload;
            } else {
                network.transport = 0;
            }
        }
        network
    }

    #[inline]
    fn parse_v4(packet: &[u8]) -> Self {
        let Some(header) = packet.first_chunk::<20>() else { return Self::default() };
        let words = usize::from(header[0] & 0xf);
        if header[0] >> 4 != 4 || words < 5 {
            return Self::default();
        }
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
        let address = |at: usize| {
            u128::from(u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]))
        };
        Self {
            version: 4,
            protocol: header[9],
            ecn: header[1] & 3,
            source: address(12),
            destination: address(16),
            ports: (0, 0),
            // Only the first fragment has ports.
            transport: if fragment == 0 { words * 4 } else { 0 },
        }
    }

    #[inline]
    fn parse_v6(packet: &[u8]) -> Self {
        let Some(header) = packet.first_chunk::<40>() else { return Self::default() };
        if header[0] >> 4 != 6 {
            return Self::default();
        }
        let address = |at: usize| {
            header[at..at + 16].iter().fold(0u128, |value, &byte| (value << 8) | u128::from(byte))
        };
        Self {
            version: 6,
            // Extension headers are not skipped: a packet with one has no ports here.
            protocol: header[6],
            ecn: (header[1] >> 4) & 3,
            source: address(8),
            destination: address(24),
            ports: (0, 0),
            transport: 40,
        }
    }
}

/// Sets CE in an IP header (RFC 3168 §5) and updates the checksum of IPv4. Returns true if the frame has an IP header.
pub(crate) fn mark_congestion(frame: &mut [u8], ethernet: &Ethernet) -> bool {
    let Some(packet) = frame.get_mut(ethernet.payload..) else { return false };
    match ethernet.ethertype {
        ETHERTYPE_IPV4 if packet.len() >= 20 && packet[0] >> 4 == 4 => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 3;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            packet[10..12].copy_from_slice(&checksum_update(sum, before, after).to_be_bytes());
            true
        }
        ETHERTYPE_IPV6 if packet.len() >= 40 && packet[0] >> 4 == 6 => {
            packet[1] |= 0x30;
            true
        }
        _ => false,
    }
}

/// Updates an internet checksum after a change of one of its words (RFC 1624, equation 3).
#[inline]
pub const fn checksum_update(sum: u16, before: u16, after: u16) -> u16 {
    let total = !sum as u32 + !before as u32 + after as u32;
    let folded = (total & 0xffff) + (total >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Computes the internet checksum (RFC 1071) of some bytes, starting from `sum`. It is not complemented yet.
pub fn checksum(bytes: &[u8], sum: u32) -> u32 {
    let (words, rest) = bytes.as_chunks::<2>();
    let total = words.iter().fold(u64::from(sum), |sum, word| sum + u64::from(u16::from_be_bytes(*word)))
        + rest.first().map_or(0, |&byte| u64::from(byte) << 8);
    let folded = (total & 0xffff) + (total >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u32
}

/// Makes a PAUSE frame (IEEE 802.3 annex 31B) of `quanta` times 512 bit times; 0 is RESUME.
pub(crate) fn pause_frame(source: Mac, quanta: u16) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..6].copy_from_slice(&Mac::PAUSE.0);
    frame[6..12].copy_from_slice(&source.0);
    frame[12..14].copy_from_slice(&ETHERTYPE_CONTROL.to_be_bytes());
    frame[14..16].copy_from_slice(&1u16.to_be_bytes());
    frame[16..18].copy_from_slice(&quanta.to_be_bytes());
    frame
}

/// Returns the quanta of a PAUSE frame; `None` for other frames.
pub(crate) fn pause_quanta(frame: &[u8], ethernet: &Ethernet) -> Option<u16> {
    let &[o0, o1, q0, q1] = frame.get(ethernet.payload..)?.first_chunk()?;
    let is_pause = ethernet.ethertype == ETHERTYPE_CONTROL && [o0, o1] == [0, 1];
    is_pause.then_some(u16::from_be_bytes([q0, q1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tcp_v4() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 9, 8, 0];
        frame.extend([0x45, 2, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 9, 10, 0, 0, 7]);
        let sum = !(checksum(&frame[14..34], 0) as u16);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame.extend([0x13, 0x88, 0x1f, 0x90]);
        frame.resize(54, 0);
        frame
    }

    #[test]
    fn reads_tcp_over_ipv4_with_and_without_a_tag() {
        let mut frame = tcp_v4();
        for payload in [14, 18] {
            let ethernet = Ethernet::parse(&frame).unwrap();
            assert_eq!((ethernet.ethertype, ethernet.payload), (ETHERTYPE_IPV4, payload));
            let network = IpHeader::parse(&frame, &ethernet);
            assert_eq!((network.version, network.protocol, network.ecn), (4, 6, 2));
            assert_eq!((network.source, network.destination), (0x0a00_0009, 0x0a00_0007));
            assert_eq!((network.ports, network.transport), ((5000, 8080), payload + 20));
            frame.splice(12..12, [0x81, 0, 0x60, 42]);
        }
        assert_eq!(Ethernet::parse(&frame).unwrap().tag, Some(0x602a));
    }

    #[test]
    fn marking_keeps_the_checksum_right() {
        let mut frame = tcp_v4();
        let ethernet = Ethernet::parse(&frame).unwrap();
        assert!(mark_congestion(&mut frame, &ethernet));
        assert_eq!(IpHeader::parse(&frame, &ethernet).ecn, 3);
        assert_eq!(checksum(&frame[14..34], 0), 0xffff);
    }

    #[test]
    fn pause_frames_read_back() {
        let frame = pause_frame(Mac([2, 0, 0, 0, 0, 1]), 0x1234);
        let ethernet = Ethernet::parse(&frame).unwrap();
        assert!(ethernet.is_link_local());
        assert_eq!(pause_quanta(&frame, &ethernet), Some(0x1234));
    }

    proptest! {
        /// Arbitrary bytes neither panic nor give offsets outside of the frame.
        #[test]
        fn any_bytes_can_be_read(
            mut frame in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..96),
                // Mutations of real frames reach further than random bytes.
                (0..54usize, any::<u8>(), 0..54usize).prop_map(|(at, byte, len)| {
                    let mut frame = tcp_v4();
                    frame[at] = byte;
                    frame.truncate(len);
                    frame
                }),
            ],
        ) {
            if let Some(ethernet) = Ethernet::parse(&frame) {
                prop_assert!(ethernet.payload <= frame.len());
                let network = IpHeader::parse(&frame, &ethernet);
                prop_assert!(network.transport == 0 || network.transport + 4 <= frame.len());
                pause_quanta(&frame, &ethernet);
                let was_right = frame.len() >= 34 && checksum(&frame[14..34], 0) == 0xffff;
                if mark_congestion(&mut frame, &ethernet) && was_right && ethernet.payload == 14
                    && ethernet.ethertype == ETHERTYPE_IPV4
                {
                    prop_assert_eq!(checksum(&frame[14..34], 0), 0xffff);
                }
            }
        }

        /// A changed word and an updated sum agree with a sum from scratch (RFC 1624).
        #[test]
        fn updated_checksums_are_right(mut words in prop::collection::vec(any::<u16>(), 2..20), at in any::<prop::sample::Index>(), new: u16) {
            let bytes = |words: &[u16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
            let sum = !(checksum(&bytes(&words), 0) as u16);
            let at = at.index(words.len());
            let updated = checksum_update(sum, words[at], new);
            words[at] = new;
            // Zero has two forms in ones' complement; the receiver's test accepts both.
            let total = checksum(&bytes(&words), u32::from(updated));
            prop_assert!(total == 0xffff || words.iter().all(|&word| word == 0));
        }
    }
}
