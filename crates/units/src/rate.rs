//! Bit rates.

use crate::quantity::quantity;
use crate::{Bytes, Duration, Unit};

/// Picoseconds in a second times bits in a byte.
pub const PS_BITS: u64 = 8_000_000_000_000;

quantity!(
    /// A rate in bits a second: `"10 Gb/s"` (also `Gbps`, `Gbit/s`); `"1.06 GB/s"` counts bytes.
    Rate,
    "bits a second",
    "a bit rate",
    &[
        Unit::new("b/s", 1),
        Unit::new("kb/s", 1_000),
        Unit::new("Mb/s", 1_000_000),
        Unit::new("Gb/s", 1_000_000_000),
        Unit::new("Tb/s", 1_000_000_000_000),
        Unit::alias("bps", 1),
        Unit::alias("kbps", 1_000),
        Unit::alias("Mbps", 1_000_000),
        Unit::alias("Gbps", 1_000_000_000),
        Unit::alias("Tbps", 1_000_000_000_000),
        Unit::alias("bit/s", 1),
        Unit::alias("kbit/s", 1_000),
        Unit::alias("Mbit/s", 1_000_000),
        Unit::alias("Gbit/s", 1_000_000_000),
        Unit::alias("Tbit/s", 1_000_000_000_000),
        Unit::alias("B/s", 8),
        Unit::alias("kB/s", 8_000),
        Unit::alias("MB/s", 8_000_000),
        Unit::alias("GB/s", 8_000_000_000),
        Unit::alias("TB/s", 8_000_000_000_000),
    ]
);

impl Rate {
    /// The time for which `bytes` occupy a link of this rate, rounded up to a picosecond: a link never exceeds its
    /// rate.
    ///
    /// # Panics
    /// If the rate is zero, or the time exceeds 213 days.
    #[inline]
    pub const fn time_to_send(self, bytes: Bytes) -> Duration {
        match self.checked_time_to_send(bytes) {
            Some(time) => time,
            None => panic!("sending takes for ever: the rate is zero, or the time exceeds 213 days"),
        }
    }

    /// The checked form of [`Self::time_to_send`], with `None` instead of a panic.
    #[inline]
    pub const fn checked_time_to_send(self, bytes: Bytes) -> Option<Duration> {
        if self.get() == 0 {
            return None;
        }
        let ps = (bytes.get() as u128 * PS_BITS as u128).div_ceil(self.get() as u128);
        if ps > u64::MAX as u128 { None } else { Some(Duration::new(ps as u64)) }
    }

    /// Picoseconds a byte, for [`Self::time_by_byte`]; zero if that is not a whole number, or too large.
    pub const fn byte_ps(self) -> u32 {
        if self.get() == 0 || !PS_BITS.is_multiple_of(self.get()) {
            return 0;
        }
        let ps = PS_BITS / self.get();
        if ps > u32::MAX as u64 { 0 } else { ps as u32 }
    }

    /// The time of [`Self::time_to_send`], by one multiplication where `byte_ps` is not zero. `byte_ps` is that of this rate.
    ///
    /// # Panics
    /// As [`Self::time_to_send`].
    #[inline]
    pub const fn time_by_byte(self, byte_ps: u32, bytes: u32) -> Duration {
        if byte_ps != 0 {
            return Duration::new(bytes as u64 * byte_ps as u64);
        }
        match (bytes as u64).checked_mul(PS_BITS) {
            Some(bits) if self.get() != 0 => Duration::new(bits.div_ceil(self.get())),
            _ => self.time_to_send(Bytes::new(bytes as u64)),
        }
    }

    /// The whole bytes that this rate carries in `time`, rounded down, at most [`Bytes::MAX`].
    #[inline]
    pub const fn bytes_in(self, time: Duration) -> Bytes {
        let bytes = self.get() as u128 * time.get() as u128 / PS_BITS as u128;
        // The quotient exceeds a u64 only at a rate above 8 Tb/s.
        Bytes::new(if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 })
    }

    /// The rate that carries `bytes` in `time`, rounded down; `None` if `time` is zero or the rate does not fit.
    pub const fn checked_from(bytes: Bytes, time: Duration) -> Option<Self> {
        if time.get() == 0 {
            return None;
        }
        let rate = match (bytes.get() as u128).checked_mul(PS_BITS as u128) {
            Some(bits) => bits / time.get() as u128,
            None => return None,
        };
        if rate > u64::MAX as u128 { None } else { Some(Self::new(rate as u64)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn reads_bits_and_bytes() {
        assert_eq!("10 Gb/s".parse(), Ok(Rate::new(10_000_000_000)));
        assert_eq!("10Gbps".parse(), Ok(Rate::new(10_000_000_000)));
        assert_eq!("1.06 GB/s".parse(), Ok(Rate::new(8_480_000_000)));
        assert_eq!(Rate::new(8_480_000_000).to_string(), "8.48 Gb/s");
        assert!("10 GB".parse::<Rate>().is_err());
    }

    #[test]
    fn sending_is_exact_or_rounded_up() {
        let gigabit = Rate::new(1_000_000_000);
        assert_eq!(gigabit.time_to_send(Bytes::new(1538)), Duration::from_nanos(12_304));
        assert_eq!(Rate::new(3).time_to_send(Bytes::new(3)), Duration::from_secs(8));
        assert_eq!(Rate::new(7).time_to_send(Bytes::new(1)).get(), 1_142_857_142_858);
        assert_eq!(gigabit.bytes_in(Duration::from_micros(200)), Bytes::new(25_000));
        assert_eq!(Rate::checked_from(Bytes::new(25_000), Duration::from_micros(200)), Some(gigabit));
        assert_eq!(Rate::ZERO.checked_time_to_send(Bytes::new(1)), None);
        for rate in [gigabit, Rate::new(3), Rate::new(7), Rate::new(780_000_000), Rate::new(400_000_000_000)]
        {
            for bytes in [0, 1, 84, 1538, 65_535, u32::MAX] {
                let expected = rate.checked_time_to_send(Bytes::new(bytes.into()));
                let actual = expected.map(|_| rate.time_by_byte(rate.byte_ps(), bytes));
                assert_eq!(actual, expected, "{bytes} B at {rate}");
            }
        }
    }
}
