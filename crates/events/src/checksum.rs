//! The checksums of the formats.

/// Adler-32 (RFC 1950 §8.2), as ATLAS fragments carry it.
pub fn adler32(bytes: &[u8]) -> u32 {
    const PRIME: u32 = 65_521;
    // The most bytes whose sums cannot exceed 32 bits.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adler32_of_known_texts() {
        assert_eq!(adler32(b""), 1);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        // Long enough to need the reduction within the text; zlib gives the same.
        assert_eq!(adler32(&[0xff; 1_000_000]), 0x3843_e1be);
    }
}
