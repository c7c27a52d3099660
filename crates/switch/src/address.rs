//! Addresses in the notation of a configuration. Each is parsed once, and kept as plain numbers.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An Ethernet address, such as `02:00:00:00:00:07`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The broadcast address, of all stations.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// Destination of PAUSE frames (IEEE 802.3 annex 31B).
    pub const PAUSE: Self = Self([0x01, 0x80, 0xc2, 0, 0, 1]);

    /// The group bit in [`Self::to_u64`]: multicast or broadcast.
    pub(crate) const GROUP: u64 = 1 << 40;
    /// The first of the sixteen addresses reserved for bridges (IEEE 802.1Q, table 8-1).
    pub(crate) const LINK_LOCAL: u64 = 0x0180_c200_0000;

    /// Returns true for a multicast or broadcast address.
    #[inline]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Returns the address as a number of 48 bits, with its first byte in the highest bits.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// Converts a number of [`Self::to_u64`] back to an address. Bits above the lowest 48 are ignored.
    #[inline]
    pub const fn from_u64(value: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = value.to_be_bytes();
        Self([a, b, c, d, e, f])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// An error: a text is not an address of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a valid {kind}; write it like {example}")]
pub struct AddressError {
    given: String,
    kind: &'static str,
    example: &'static str,
}

impl AddressError {
    fn new(given: &str, kind: &'static str, example: &'static str) -> Self {
        Self { given: given.to_owned(), kind, example }
    }
}

impl FromStr for Mac {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = || AddressError::new(text, "Ethernet address", "02:00:00:00:00:07");
        let mut bytes = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or_else(fail)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| fail())?;
        }
        if parts.next().is_some() { Err(fail()) } else { Ok(Self(bytes)) }
    }
}

/// An Ethernet address, or its first bits: `02:00:00:00:00:00/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MacPrefix {
    /// The address; bits beyond the prefix are zero.
    pub address: Mac,
    /// Length of the prefix in bits, at most 48.
    pub bits: u8,
}

impl MacPrefix {
    /// Returns the mask of the prefix for numbers of [`Mac::to_u64`].
    pub const fn mask(self) -> u64 {
        ((1 << 48) - 1) & !(((1u64 << 48) - 1) >> self.bits)
    }
}

impl FromStr for MacPrefix {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = || {
            AddressError::new(text, "Ethernet address with a prefix of 0 to 48 bits", "02:1b:00:00:00:00/16")
        };
        let (address, bits) = text.split_once('/').unwrap_or((text, "48"));
        let prefix = Self { address: address.parse()?, bits: bits.parse().map_err(|_| fail())? };
        if prefix.bits > 48 || prefix.address.to_u64() & !prefix.mask() != 0 {
            return Err(fail());
        }
        Ok(prefix)
    }
}

impl fmt::Display for MacPrefix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits {
            48 => write!(out, "{}", self.address),
            bits => write!(out, "{}/{bits}", self.address),
        }
    }
}

/// An IP address, or its first bits: `10.0.7.0/24`, `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpPrefix {
    /// The address; bits beyond the prefix are zero.
    pub address: IpAddr,
    /// Length of the prefix in bits: at most 32 for IPv4, 128 for IPv6.
    pub bits: u8,
}

impl IpPrefix {
    /// Returns the address and the mask of the prefix, each in 128 bits. IPv4 uses the lowest 32 bits.
    pub fn value_and_mask(self) -> (u128, u128) {
        let (value, width): (u128, u32) = match self.address {
            IpAddr::V4(address) => (u32::from(address).into(), 32),
            IpAddr::V6(address) => (address.into(), 128),
        };
        let all = u128::MAX >> (128 - width);
        (value, all & !all.checked_shr(self.bits.into()).unwrap_or(0))
    }
}

impl FromStr for IpPrefix {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = || AddressError::new(text, "IP address or prefix", "10.0.7.0/24");
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| fail())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), str::parse).map_err(|_| fail())?;
        let prefix = Self { address, bits };
        let (value, mask) = prefix.value_and_mask();
        if bits > width || value & !mask != 0 { Err(fail()) } else { Ok(prefix) }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = if self.address.is_ipv4() { 32 } else { 128 };
        match self.bits {
            bits if bits == width => write!(out, "{}", self.address),
            bits => write!(out, "{}/{bits}", self.address),
        }
    }
}

macro_rules! as_text {
    ($($name:ident, $kind:literal;)*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                struct AddressVisitor;
                impl serde::de::Visitor<'_> for AddressVisitor {
                    type Value = $name;
                    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                        out.write_str(concat!($kind, ", in quotes"))
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                input.deserialize_str(AddressVisitor)
            }
        }
    )*};
}

as_text! {
    Mac, "an Ethernet address";
    MacPrefix, "an Ethernet address or prefix";
    IpPrefix, "an IP address or prefix";
}

/// A VLAN, 1 to 4094 (IEEE 802.1Q §9.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Vlan(u16);

impl Vlan {
    /// The VLAN of ports without a configured one.
    pub const DEFAULT: Self = Self(1);
    /// The largest number of a VLAN.
    pub const MAX: u16 = 4094;

    /// Makes a VLAN from its number. Returns `None` outside 1 to 4094.
    pub const fn new(number: u16) -> Option<Self> {
        if number == 0 || number > Self::MAX { None } else { Some(Self(number)) }
    }

    /// Returns the number of the VLAN, 1 to 4094.
    #[inline]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Vlan {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Number;
        impl serde::de::Visitor<'_> for Number {
            type Value = Vlan;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "a VLAN, a number from 1 to {}", Vlan::MAX)
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Vlan, E> {
                let vlan = u16::try_from(number).ok().and_then(Vlan::new);
                vlan.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Vlan, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }
        }
        input.deserialize_i64(Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        let mac: Mac = "02:1b:00:00:00:07".parse().unwrap();
        assert_eq!(mac.to_string(), "02:1b:00:00:00:07");
        assert_eq!(Mac::from_u64(mac.to_u64()), mac);
        for wrong in ["", "02:1b", "02:1b:00:00:00:07:08", "2:1b:0:0:0:7", "02:1b:00:00:00:0g"] {
            assert!(wrong.parse::<Mac>().is_err(), "{wrong}");
        }
        let prefix: MacPrefix = "02:1b:00:00:00:00/16".parse().unwrap();
        assert_eq!(prefix.mask(), 0xffff_0000_0000);
        assert!("02:1b:00:00:00:01/16".parse::<MacPrefix>().is_err());
        assert!("02:1b:00:00:00:01/49".parse::<MacPrefix>().is_err());
        assert!(
            Mac::BROADCAST.is_group() && Mac::PAUSE.to_u64() >> 4 == Mac::LINK_LOCAL >> 4 && !mac.is_group()
        );
    }

    #[test]
    fn prefixes_have_masks() {
        for (text, value, mask) in [
            ("10.0.7.0/24", 0x0a00_0700, 0xffff_ff00),
            ("10.0.7.9", 0x0a00_0709, 0xffff_ffff),
            ("0.0.0.0/0", 0, 0),
            ("fd00::/8", 0xfd << 120, 0xff << 120),
            ("::1", 1, u128::MAX),
        ] {
            let prefix: IpPrefix = text.parse().unwrap();
            assert_eq!(prefix.value_and_mask(), (value, mask), "{text}");
            assert_eq!(prefix.to_string(), text);
        }
        for wrong in ["10.0.7.1/24", "10.0.0.0/33", "10.0.0", "x/8", "10.0.0.0/"] {
            assert!(wrong.parse::<IpPrefix>().is_err(), "{wrong}");
        }
    }
}
