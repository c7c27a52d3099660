//! The key of a frame: the bits of its headers that rules can match, in words.

use crate::frame::{ETHERTYPE_IPV4, Ethernet, IpHeader, TCP, UDP};

/// Words of a key: destination address and VLAN, source address and input, then the words named below. One word holds
/// the fields of rules for collectors, so that most rules cost one comparison.
pub(super) const WORDS: usize = 7;
pub(super) type KeyWords = [u64; WORDS];

/// The low 32 bits of the IP destination; from bit 32 on the version, from bit 40 on the protocol.
pub(super) const TO: usize = 2;
/// The low 32 bits of the IP source; then the source's port, then the destination's.
pub(super) const FROM: usize = 3;
/// Bits 32 to 95 of the destination; the next word has those of the source, and the last word bits 96 to 127 of both.
pub(super) const TO_MIDDLE: usize = 4;
pub(super) const FROM_MIDDLE: usize = 5;
pub(super) const HIGH: usize = 6;
pub(super) const VERSION_SHIFT: u32 = 32;
pub(super) const PROTOCOL_SHIFT: u32 = 40;
pub(super) const SOURCE_PORT_SHIFT: u32 = 32;
pub(super) const DESTINATION_PORT_SHIFT: u32 = 48;

/// The headers that the rules of an output compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum KeyDepth {
    #[default]
    Ethernet,
    Network,
    Ports,
}

/// The key of one frame.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RuleKey(KeyWords);

impl RuleKey {
    /// Reads the key of a frame from an input port and a VLAN. Words beyond `depth` may stay zero.
    #[inline]
    pub(super) fn read(input: usize, vlan: u16, head: &[u8], ethernet: &Ethernet, depth: KeyDepth) -> Self {
        let mut words = [0; WORDS];
        words[0] = ethernet.destination | u64::from(vlan) << 48;
        words[1] = ethernet.source | (input as u64) << 48;
        if depth >= KeyDepth::Network {
            let plain = (ethernet.ethertype == ETHERTYPE_IPV4)
                .then(|| addresses_v4(head.get(ethernet.payload..)?, depth))
                .flatten();
            [words[TO], words[FROM]] = match plain {
                Some(words) => words,
                None => addresses(&IpHeader::parse(head, ethernet), &mut words[TO_MIDDLE..]),
            };
        }
        Self(words)
    }

    /// Returns one 64-bit word of the key.
    #[inline]
    pub(super) const fn word(&self, word: usize) -> u64 {
        self.0[word]
    }
}

/// Returns the words [`TO`] and [`FROM`] of any IP header. Writes bits 32 to 127 of both addresses to the three words of `far`.
#[inline(never)]
fn addresses(network: &IpHeader, far: &mut [u64]) -> [u64; 2] {
    let (to, from, ports) = (network.destination, network.source, network.ports);
    let high = (to >> 96) as u64 | ((from >> 96) as u64) << 32;
    far.copy_from_slice(&[(to >> 32) as u64, (from >> 32) as u64, high]);
    [
        u64::from(to as u32)
            | u64::from(network.version) << VERSION_SHIFT
            | u64::from(network.protocol) << PROTOCOL_SHIFT,
        u64::from(from as u32)
            | u64::from(ports.0) << SOURCE_PORT_SHIFT
            | u64::from(ports.1) << DESTINATION_PORT_SHIFT,
    ]
}

/// The fast path of [`addresses`] for an IPv4 header without options; `None` if [`IpHeader::parse`] must read the
/// frame.
#[inline]
fn addresses_v4(packet: &[u8], depth: KeyDepth) -> Option<[u64; 2]> {
    let header = packet.first_chunk::<20>()?;
    // No options.
    if header[0] != 0x45 {
        return None;
    }
    let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
    let of_all = 4 << VERSION_SHIFT | u64::from(header[9]) << PROTOCOL_SHIFT;
    let to = u64::from(u32::from_be_bytes([d0, d1, d2, d3])) | of_all;
    let mut from = u64::from(u32::from_be_bytes([s0, s1, s2, s3]));
    if depth == KeyDepth::Ports {
        let is_whole = (header[6] & 0x1f) | header[7] == 0;
        let (true, TCP | UDP, Some(&[p0, p1, q0, q1])) = (is_whole, header[9], packet[20..].first_chunk())
        else {
            return None;
        };
        from |= u64::from(u16::from_be_bytes([p0, p1])) << SOURCE_PORT_SHIFT
            | u64::from(u16::from_be_bytes([q0, q1])) << DESTINATION_PORT_SHIFT;
    }
    Some([to, from])
}
