//! Numeric settings: their quantities, and their text.

use std::str::FromStr;

use fanin_units::{Bytes, Duration, Frequency, Packets, Rate, Ratio};

/// The quantity of a numeric setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    /// A whole number.
    Count,
    /// An amount of data, in bytes.
    Bytes,
    /// A time, in picoseconds.
    Duration,
    /// Bits a second.
    Rate,
    /// Packets of the MTU's size.
    Packets,
    /// A frequency, in millihertz.
    Frequency,
    /// A share or factor, in millionths.
    Ratio,
}

impl NumberKind {
    /// All kinds, in the order in which a text is tried.
    const ALL: [Self; 7] =
        [Self::Count, Self::Bytes, Self::Duration, Self::Rate, Self::Packets, Self::Frequency, Self::Ratio];

    /// Returns the kind of a text with a unit, and its value in the base unit. A plain number is a count.
    pub fn of(text: &str) -> Option<(Self, u64)> {
        Self::ALL.into_iter().find_map(|kind| Some((kind, kind.parse(text)?)))
    }

    /// Reads a text of this kind as a value in the base unit.
    pub fn parse(self, text: &str) -> Option<u64> {
        let text = text.trim();
        match self {
            Self::Count => text.parse().ok(),
            Self::Bytes => Bytes::from_str(text).ok().map(Bytes::get),
            Self::Duration => Duration::from_str(text).ok().map(Duration::get),
            Self::Rate => Rate::from_str(text).ok().map(Rate::get),
            Self::Packets => Packets::from_str(text).ok().map(Packets::get),
            Self::Frequency => Frequency::from_str(text).ok().map(Frequency::get),
            Self::Ratio => Ratio::from_str(text).ok().map(Ratio::get),
        }
    }

    /// Writes a value in the scenario's form.
    pub fn text(self, value: u64) -> String {
        match self {
            Self::Count => value.to_string(),
            Self::Bytes => Bytes::new(value).to_string(),
            Self::Duration => Duration::new(value).to_string(),
            Self::Rate => Rate::new(value).to_string(),
            Self::Packets if value == 1 => "1 packet".to_owned(),
            Self::Packets => Packets::new(value).to_string(),
            Self::Frequency => Frequency::new(value).to_string(),
            Self::Ratio => Ratio::new(value).to_string(),
        }
    }

    /// Returns the words for a message: the kind of the setting, and an example of a range.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Count => ("a whole number", "60..1200"),
            Self::Bytes => ("a size", "64 kB..4 MB"),
            Self::Duration => ("a time", "1 ms..200 ms"),
            Self::Rate => ("a rate", "100 Mb/s..1 Gb/s"),
            Self::Packets => ("a number of packets", "2 packets..64 packets"),
            Self::Frequency => ("a frequency", "100 Hz..2 kHz"),
            Self::Ratio => ("a ratio", "0.1..0.9"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_text_and_prints_it() {
        let cases = [
            ("480", NumberKind::Count),
            ("786 kB", NumberKind::Bytes),
            ("200 ms", NumberKind::Duration),
            ("10 Gb/s", NumberKind::Rate),
            ("2 packets", NumberKind::Packets),
            ("1 packet", NumberKind::Packets),
            ("2 kHz", NumberKind::Frequency),
            ("0.25", NumberKind::Ratio),
        ];
        for (text, kind) in cases {
            let (found, value) = NumberKind::of(text).unwrap();
            assert_eq!((found, found.text(value).as_str()), (kind, text));
        }
        assert_eq!(NumberKind::of("fcfs"), None);
    }
}
