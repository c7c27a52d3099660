//! The checksums of the formats.

/// Computes Adler-32 (RFC 1950 §8.2), the checksum of ATLAS fragments.
pub fn adler32(bytes: &[u8]) -> u32 {
    const PRIME: u32 = 65_521;
    // The largest block for which the sums fit into 32 bits.
    const BLOCK: usize = 5552;
    let (mut a, mut b) = (1_u32, 0_u32);
    for block in bytes.chunks(BLOCK) {
        for &byte in block {
            a += u32::from(byte);
            b += a;
        }
        a %= PRIME;
        b %= PRIME;
    }
    b << 16 | a
}

/// Computes the checksum of an MDF record: Bob Jenkins' one-at-a-time hash. Bytes above 127 count as negative, like `char` on
/// the machines that write such files.
pub fn one_at_a_time(bytes: &[u8]) -> u32 {
    let mut hash = 0_u32;
    for &byte in bytes {
        hash = hash.wrapping_add(i32::from(byte.cast_signed()) as u32);
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_of_known_texts() {
        assert_eq!(one_at_a_time(b"a"), 0xca2e_9442);
        assert_eq!(one_at_a_time(b"The quick brown fox jumps over the lazy dog"), 0x519e_91f5);
        // Read as positive values, these bytes have another hash.
        assert_ne!(one_at_a_time(&[0x80, 0xff]), one_at_a_time(&[0x00, 0x7f]));
    }

    #[test]
    fn adler32_of_known_texts() {
        assert_eq!(adler32(b""), 1);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        // Long enough to need a reduction within the text; zlib returns the same value.
        assert_eq!(adler32(&[0xff; 1_000_000]), 0x3843_e1be);
    }
}
