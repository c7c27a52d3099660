//! A request on the wire, 64 bytes: 8 bytes of a fixed text, then the round (64 bits, little-endian). The next byte is 1 in
//! measured rounds and 0 in the warm-up. The other bytes are zero.

use fanin_dataflow::{BARRIER_REQUEST_BYTES, BarrierMessage};

/// Size of a request in bytes.
pub(super) const REQUEST_BYTES: usize = BARRIER_REQUEST_BYTES as usize;
const MAGIC: [u8; 8] = *b"fanin-rq";

/// Encodes a request.
pub(super) fn encode(round: u64, is_measured: bool) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&round.to_le_bytes());
    bytes[16] = u8::from(is_measured);
    bytes
}

/// Decodes a request; returns `None` if the fixed text or the flag is wrong.
pub(super) fn decode(bytes: &[u8; REQUEST_BYTES]) -> Option<BarrierMessage> {
    let (head, rest) = bytes.split_first_chunk::<8>()?;
    let (round, rest) = rest.split_first_chunk::<8>()?;
    let message = BarrierMessage::Request { round: u64::from_le_bytes(*round), is_measured: rest[0] == 1 };
    (*head == MAGIC && rest[0] <= 1).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_the_wire() {
        for (round, is_measured) in [(7 << 40, true), (0, false)] {
            let request = BarrierMessage::Request { round, is_measured };
            assert_eq!(decode(&encode(round, is_measured)), Some(request));
        }
        let mut wrong = encode(1, true);
        wrong[0] ^= 1;
        assert_eq!(decode(&wrong), None);
        wrong = encode(1, true);
        wrong[16] = 2;
        assert_eq!(decode(&wrong), None);
    }
}
