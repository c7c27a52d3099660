//! Frame header of a message on the wire (thesis fig. 3.15).

use crate::limits::Limits;

/// Length of the header before each payload, bytes: type, stream and size, each 32 bits, little-endian.
pub const HEADER_BYTES: usize = 12;

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// Type of the message, set by the application, below [`RESERVED_KINDS`](crate::RESERVED_KINDS).
    pub kind: u32,
    /// Stream of the message, set by the application: a connection carries logically separate streams.
    pub stream: u32,
    /// Size of the payload that follows, bytes.
    pub size: u32,
}

impl Header {
    /// Encodes the header.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.stream.to_le_bytes());
        bytes[8..].copy_from_slice(&self.size.to_le_bytes());
        bytes
    }

    /// Decodes a header; any 12 bytes are valid.
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { kind: word(0), stream: word(4), size: word(8) }
    }

    /// Checks the size against the limit of the type.
    ///
    /// # Errors
    ///
    /// [`Oversize`] if the size exceeds the limit.
    pub fn check(self, limits: &Limits) -> Result<(), Oversize> {
        let limit = limits.size_max(self.kind);
        if self.size > limit { Err(Oversize { kind: self.kind, size: self.size, limit }) } else { Ok(()) }
    }
}

/// An error: the size of a frame exceeds the limit of its type. The peer is faulty, or the bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of type {kind:#x} claims {size} bytes; the limit is {limit}")]
pub struct Oversize {
    /// Type of the message.
    pub kind: u32,
    /// Size that the header claims, bytes.
    pub size: u32,
    /// Limit of the type, bytes.
    pub limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RESERVED_KINDS;

    #[test]
    fn the_header_is_three_little_endian_words() {
        let header = Header { kind: 0x0403_0201, stream: 5, size: 0x0102 };
        let bytes = header.to_bytes();
        assert_eq!(bytes, [1, 2, 3, 4, 5, 0, 0, 0, 2, 1, 0, 0]);
        assert_eq!(Header::from_bytes(&bytes), header);
        assert_eq!(HEADER_BYTES as u64, fanin_dataflow::FRAME_HEADER_BYTES, "as the simulator counts it");
    }

    #[test]
    fn sizes_are_checked_by_type() {
        let limits =
            Limits { message_bytes_max: 100, by_kind: vec![(7, 10), (900, 1000)], ..Limits::default() };
        let check = |kind, size| Header { kind, stream: 0, size }.check(&limits);
        assert_eq!(check(7, 10), Ok(()));
        assert_eq!(check(7, 11), Err(Oversize { kind: 7, size: 11, limit: 10 }));
        assert_eq!(check(8, 100), Ok(()));
        assert!(check(8, 101).is_err());
        assert_eq!(check(900, 1000), Ok(()));
        assert!(check(RESERVED_KINDS, 100_000).is_err(), "the room's own messages are small");
    }
}
