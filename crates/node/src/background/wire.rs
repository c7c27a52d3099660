//! The bytes of a background connection: a greeting with the connection's number, then transfers, each with its header.

use fanin_dataflow::TRANSFER_HEADER_BYTES;

/// Length of a header: of a connection, or of a transfer.
pub(super) const HEADER_BYTES: usize = TRANSFER_HEADER_BYTES as usize;
const MAGIC: [u8; 8] = *b"fanin-bg";

/// Encodes the greeting of a connection.
pub(super) fn encode_greeting(connection: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..].copy_from_slice(&connection.to_le_bytes());
    bytes
}

/// Returns the connection that a greeting names; `None` if it is no greeting.
pub(super) fn decode_greeting(bytes: &[u8; HEADER_BYTES]) -> Option<u64> {
    let (magic, connection) = halves(bytes);
    (magic == u64::from_le_bytes(MAGIC)).then_some(connection)
}

/// Encodes the header of a transfer: the time at which it was due, in nanoseconds since 1970, and its length.
pub(super) fn encode_transfer(began_unix_ns: u64, bytes: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&began_unix_ns.to_le_bytes());
    header[8..].copy_from_slice(&bytes.to_le_bytes());
    header
}

/// Returns the time and the length in the header of a transfer; `None` for a length below that of the header.
pub(super) fn decode_transfer(header: &[u8; HEADER_BYTES]) -> Option<(u64, u64)> {
    let (began, bytes) = halves(header);
    (bytes >= TRANSFER_HEADER_BYTES).then_some((began, bytes))
}

fn halves(bytes: &[u8; HEADER_BYTES]) -> (u64, u64) {
    let (first, second) = bytes.split_at(8);
    let number = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("eight bytes"));
    (number(first), number(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_the_wire() {
        assert_eq!(decode_greeting(&encode_greeting(77)), Some(77));
        assert_eq!(decode_greeting(&encode_transfer(1, 2)), None);
        assert_eq!(decode_transfer(&encode_transfer(1 << 60, 1 << 59)), Some((1 << 60, 1 << 59)));
        assert_eq!(decode_transfer(&encode_transfer(0, 15)), None);
    }
}
