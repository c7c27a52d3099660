//! The length of a queue, in packets or in bytes.

use core::fmt;
use core::str::FromStr;

use fanin_units::{Bytes, Packets, ParseError};

use crate::frame::Occupancy;

/// A queue length, in bytes or in frames: `"20 packets"` or `"30 kB"`. The variant chooses the measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Occupied bytes: with bookkeeping in a switch's memory, without in a ring.
    Bytes(Bytes),
    /// The number of queued frames.
    Packets(Packets),
}

impl Depth {
    pub(super) const fn value(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.get(),
            Self::Packets(packets) => packets.get(),
        }
    }

    /// The length of `queue` in the measure of this depth.
    #[inline]
    pub(super) const fn measure(self, queue: &Occupancy) -> u64 {
        match self {
            Self::Bytes(_) => queue.bytes,
            Self::Packets(_) => queue.frames,
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(out),
            Self::Packets(packets) => packets.fmt(out),
        }
    }
}

/// The text is neither a number of packets nor one of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DepthError {
    /// The text has no unit of packets, and is wrong as a number of bytes.
    #[error("{0}, or packets, as in \"20 packets\"")]
    Bytes(ParseError),
    /// The number of packets is wrong.
    #[error("{0}")]
    Packets(ParseError),
}

impl FromStr for Depth {
    type Err = DepthError;

    fn from_str(text: &str) -> Result<Self, DepthError> {
        match text.parse() {
            Ok(packets) => Ok(Self::Packets(packets)),
            Err(ParseError::Unit { .. } | ParseError::Number { .. }) => {
                text.parse().map(Self::Bytes).map_err(DepthError::Bytes)
            }
            Err(error) => Err(DepthError::Packets(error)),
        }
    }
}

#[cfg(feature = "schemars")]
impl serde::Serialize for Depth {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

#[cfg(feature = "schemars")]
impl<'de> serde::Deserialize<'de> for Depth {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(DepthText)
    }
}

#[cfg(feature = "schemars")]
struct DepthText;

#[cfg(feature = "schemars")]
impl serde::de::Visitor<'_> for DepthText {
    type Value = Depth;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a number of packets, or of bytes with its unit, in quotes")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Depth, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, packets: u64) -> Result<Depth, E> {
        Ok(Depth::Packets(Packets::new(packets)))
    }

    fn visit_i64<E: serde::de::Error>(self, packets: i64) -> Result<Depth, E> {
        let packets = u64::try_from(packets)
            .map_err(|_| E::custom(format_args!("a queue holds zero or more packets, not {packets}")))?;
        self.visit_u64(packets)
    }

    fn visit_f64<E: serde::de::Error>(self, packets: f64) -> Result<Depth, E> {
        Err(E::custom(format_args!("a queue holds whole packets, not {packets}")))
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for Depth {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        alloc::borrow::Cow::Borrowed("Depth")
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (packets, bytes) = (Packets::json_schema(generator), Bytes::json_schema(generator));
        schemars::json_schema!({ "anyOf": [packets, bytes], "examples": ["20 packets", "30 kB"] })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;

    #[test]
    fn a_depth_is_a_number_of_packets_or_of_bytes() {
        let packets = |number| Ok(Depth::Packets(Packets::new(number)));
        let bytes = |number| Ok(Depth::Bytes(Bytes::new(number)));
        for (text, depth, printed) in [
            ("20", packets(20), "20 packets"),
            ("1 packet", packets(1), "1 packets"),
            ("0 B", bytes(0), "0 B"),
            ("3 kB", bytes(3_000), "3 kB"),
            ("1.5 kB", bytes(1_500), "1.5 kB"),
        ] {
            let parsed: Result<Depth, DepthError> = text.parse();
            assert_eq!(parsed, depth, "{text}");
            assert_eq!(parsed.unwrap().to_string(), printed);
            assert_eq!(printed.parse(), depth);
        }
    }

    #[test]
    fn a_wrong_text_says_what_is_right() {
        let error = |text: &str| -> String { text.parse::<Depth>().unwrap_err().to_string() };
        for (text, words) in [
            ("3 kb", ["did you mean kB?", "20 packets"]),
            ("3 frames", ["unknown unit for a number of bytes", "20 packets"]),
            ("many", ["a number and a unit", "20 packets"]),
            ("1.5 packets", ["a number of packets is finer than 1 packets", ""]),
            ("-3 kB", ["a number of packets cannot be negative", ""]),
            ("0.5 B", ["a number of bytes is finer than 1 B", ""]),
        ] {
            assert!(words.iter().all(|word| error(text).contains(word)), "{text}: {}", error(text));
        }
    }
}
