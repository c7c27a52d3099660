//! The frame of a message, as on the wire (thesis fig. 3.15).

use crate::limits::Limits;

/// Bytes of the header in front of each payload: type, stream and size, each 32 bits, little-endian.
pub const HEADER_BYTES: usize = 12;

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The type of the message: the application's, below [`RESERVED_KINDS`](crate::RESERVED_KINDS).
    pub kind: u32,
    /// Which of the logically separate streams of a connection it belongs to: the application's.
    pub stream: u32,
    /// Bytes of the payload that follows.
    pub size: u32,
}

impl Header {
    /// The header on the wire.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.stream.to_le_bytes());
        bytes[8..].copy_from_slice(&self.size.to_le_bytes());
        bytes
    }

    /// The header that these bytes are; any bytes are one.
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self { kind: word(0), stream: word(4), size: word(8) }
    }

    /// Check the size against the limit of the type.
    ///
    /// # Errors
    ///
    /// [`Oversize`] where it exceeds that.
    pub fn check(self, limits: &Limits) -> Result<(), Oversize> {
        let limit = limits.size_max(self.kind);
        if self.size > limit { Err(Oversize { kind: self.kind, size: self.size, limit }) } else { Ok(()) }
    }
}

/// A frame whose size exceeds the limit of its type: the peer's mistake, or bytes that are no frame at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message of type {kind:#x} claims {size} bytes, and at most {limit} are allowed")]
pub struct Oversize {
    /// Type of the message.
    pub kind: u32,
    /// Bytes that its header claims.
    pub size: u32,
    /// Bytes that a message of this type may have.
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
