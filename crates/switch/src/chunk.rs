//! Sizes of the chunks of packet memory.

use fanin_units::Bytes;

/// Free space at the start of a chunk (XDP_PACKET_HEADROOM).
pub const HEADROOM: u32 = 256;
/// The Ethernet header with two tags.
const HEADER_BYTES: u64 = 22;

/// Returns the size of chunks for frames of this MTU. AF_XDP permits 2048 and 4096 bytes.
pub(crate) const fn chunk_bytes(mtu: Bytes) -> u32 {
    if mtu.get() + HEADER_BYTES <= 2048 - HEADROOM as u64 { 2048 } else { 4096 }
}

/// Returns the number of chunks that a full frame of this MTU takes.
pub(crate) const fn chunks_of(mtu: Bytes) -> u64 {
    (mtu.get() + HEADER_BYTES).div_ceil((chunk_bytes(mtu) - HEADROOM) as u64)
}
