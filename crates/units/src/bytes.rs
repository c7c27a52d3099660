//! Amounts of data: bytes and packets.

use crate::Unit;
use crate::quantity::quantity;

quantity!(
    /// An amount of data in bytes: `"1.1 kB"` (powers of 1000) or `"64 KiB"` (powers of 1024).
    Bytes,
    "bytes",
    "a number of bytes",
    &[
        Unit::new("B", 1),
        Unit::new("kB", 1_000),
        Unit::new("KiB", 1 << 10),
        Unit::new("MB", 1_000_000),
        Unit::new("MiB", 1 << 20),
        Unit::new("GB", 1_000_000_000),
        Unit::new("GiB", 1 << 30),
        Unit::new("TB", 1_000_000_000_000),
        Unit::new("TiB", 1 << 40),
        Unit::new("PB", 1_000_000_000_000_000),
    ]
);

quantity!(
    /// A number of packets (TCP segments, frames): `"2 packets"`; a bare number is also valid.
    Packets,
    "packets",
    "a number of packets",
    &[Unit::new("packets", 1), Unit::alias("", 1), Unit::alias("packet", 1)]
);

impl Packets {
    /// The bytes of this number of packets of `size` each; `None` if they do not fit.
    pub const fn checked_times(self, size: Bytes) -> Option<Bytes> {
        size.checked_mul(self.get())
    }
}

impl Bytes {
    /// The number of pieces of at most `size`: the quotient rounded up.
    ///
    /// # Panics
    /// If `size` is zero.
    #[inline]
    pub const fn div_ceil(self, size: Self) -> u64 {
        self.get().div_ceil(size.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn prints_the_shortest_exact_text() {
        let cases = [
            (0, "0 B"),
            (1, "1 B"),
            (999, "999 B"),
            (1_100, "1.1 kB"),
            (2_112_000, "2112 kB"),
            (65_536, "64 KiB"),
            (64_000, "64 kB"),
            (12_600_000, "12.6 MB"),
            (1 << 30, "1 GiB"),
            (1_500_000_000, "1.5 GB"),
            (1_500_000_001, "1.500000001 GB"),
        ];
        for (value, text) in cases {
            assert_eq!(Bytes::new(value).to_string(), text);
            assert_eq!(text.parse(), Ok(Bytes::new(value)));
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_text() {
        let message = |text: &str| text.parse::<Bytes>().unwrap_err().to_string();
        assert_eq!(message("many"), "expected a number and a unit, such as \"10 kB\" for a number of bytes");
        assert!(message("12").starts_with("a number of bytes needs a unit, one of B, kB, KiB, MB"));
        assert!(message("12 KB").ends_with("did you mean kB?"), "{}", message("12 KB"));
        assert_eq!(message("0.5 B"), "a number of bytes is finer than 1 B, the smallest step");
        assert_eq!(message("1.0001 kB"), "a number of bytes is finer than 1 B, the smallest step");
        assert!(message("99999999999 GB").starts_with("a number of bytes is too large"));
        assert_eq!(message("-1 B"), "a number of bytes cannot be negative");
        assert!(message("1. kB").starts_with("expected a number"));
        assert!(message("1_ kB").starts_with("expected a number"));
    }

    #[test]
    fn packets_need_no_unit() {
        assert_eq!("2".parse(), Ok(Packets::new(2)));
        assert_eq!("1 packet".parse(), Ok(Packets::new(1)));
        assert_eq!(Packets::new(2).to_string(), "2 packets");
    }
}
