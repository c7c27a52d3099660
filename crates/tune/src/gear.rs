//! A catalogue of switches: packet buffer, port rate, price, and the sources of these figures.

use fanin_units::{Bytes, Rate};

/// A switch of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gear {
    /// Name of the chip or the switch.
    pub name: String,
    /// Packet buffer of the whole switch, in bytes.
    pub buffer: Bytes,
    /// Number of equal pools among which the ports are divided; at least 1.
    pub pools: u64,
    /// The kind of memory that holds the buffer.
    pub memory: GearMemory,
    /// Rate of the ports that hosts use.
    pub port: Rate,
    /// Source of the figures.
    pub source: String,
    /// A public price in the words of its source; `None` if unknown.
    pub price: Option<GearPrice>,
}

/// The kind of a switch's packet memory, from the least costly to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GearMemory {
    /// Memory on the switch chip.
    OnChip,
    /// In a server that works as a switch.
    Software,
    /// Outside the switch chip, with virtual output queues.
    OffChip,
}

/// A price and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GearPrice {
    /// The price with its unit and its year.
    pub text: String,
    /// Source of the price.
    pub source: String,
}

impl GearMemory {
    /// All kinds, in order.
    const ALL: [Self; 3] = [Self::OnChip, Self::Software, Self::OffChip];

    /// Returns the name in a catalogue.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnChip => "on-chip",
            Self::Software => "software",
            Self::OffChip => "off-chip",
        }
    }

    /// Returns a few words on the price of this kind of switch, with a source if there is one.
    pub const fn cost(self) -> &'static str {
        match self {
            Self::OnChip => "the least costly class: memory on the chip, a commodity",
            Self::Software => "a server: `fanin plan SCENARIO --cost` compares it with routers",
            Self::OffChip => {
                "the costly class: generous buffers may raise a switch's price tenfold \
                 [https://people.ucsc.edu/~warner/Bufs/summary]"
            }
        }
    }
}

/// An error in a catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GearError {
    /// The text is not TOML.
    #[error("the catalogue of switches is not TOML: {0}")]
    Toml(String),
    /// The catalogue has no switch.
    #[error("the catalogue has no `[[gear]]`; each has name, buffer, port and source")]
    Empty,
    /// A switch lacks a key, or its value is wrong.
    #[error(
        "switch {number} of the catalogue: `{key}` is missing or wrong; write for example {key} = {example}"
    )]
    Key {
        /// Number of the switch, from 1.
        number: usize,
        /// The missing or wrong key.
        key: &'static str,
        /// A correct value.
        example: &'static str,
    },
    /// A switch has an unknown key.
    #[error("switch {number} of the catalogue has the key `{key}`, which is not one of {}", KEYS.join(", "))]
    UnknownKey {
        /// Number of the switch, from 1.
        number: usize,
        /// The unknown key.
        key: String,
    },
}

/// The keys of a switch.
const KEYS: [&str; 8] = ["name", "buffer", "pools", "memory", "port", "source", "price", "price_source"];

impl Gear {
    /// Text of the included catalogue.
    pub const BUILT_IN: &str = include_str!("gear.toml");

    /// Reads a catalogue from text.
    ///
    /// # Errors
    /// If the text is not TOML, has no switch, or a switch lacks a key or has a wrong or unknown one.
    pub fn read(text: &str) -> Result<Vec<Self>, GearError> {
        let tree: toml::Table =
            text.parse().map_err(|error: toml::de::Error| GearError::Toml(error.message().to_owned()))?;
        let list = tree.get("gear").and_then(toml::Value::as_array).ok_or(GearError::Empty)?;
        if list.is_empty() {
            return Err(GearError::Empty);
        }
        list.iter().enumerate().map(|(index, entry)| Self::of(index + 1, entry)).collect()
    }

    fn of(number: usize, entry: &toml::Value) -> Result<Self, GearError> {
        let text = |key: &'static str, example: &'static str| {
            entry.get(key).and_then(toml::Value::as_str).ok_or(GearError::Key { number, key, example })
        };
        let wrong = |key, example| GearError::Key { number, key, example };
        let pools = match entry.get("pools") {
            None => 1,
            Some(value) => value
                .as_integer()
                .and_then(|pools| u64::try_from(pools).ok())
                .filter(|&pools| pools > 0)
                .ok_or_else(|| wrong("pools", "4"))?,
        };
        let memory = match entry.get("memory") {
            None => GearMemory::OnChip,
            Some(value) => GearMemory::ALL
                .into_iter()
                .find(|memory| value.as_str() == Some(memory.name()))
                .ok_or_else(|| wrong("memory", "\"off-chip\""))?,
        };
        let price = match entry.get("price") {
            None => None,
            Some(_) => Some(GearPrice {
                text: text("price", "\"9000 EUR, 2026\"")?.to_owned(),
                source: text("price_source", "\"our offer\"")?.to_owned(),
            }),
        };
        if let Some(key) =
            entry.as_table().and_then(|keys| keys.keys().find(|key| !KEYS.contains(&key.as_str())))
        {
            return Err(GearError::UnknownKey { number, key: key.clone() });
        }
        Ok(Self {
            name: text("name", "\"my switch\"")?.to_owned(),
            buffer: text("buffer", "\"16 MB\"")?.parse().map_err(|_| wrong("buffer", "\"16 MB\""))?,
            pools,
            memory,
            price,
            port: text("port", "\"25 Gb/s\"")?.parse().map_err(|_| wrong("port", "\"25 Gb/s\""))?,
            source: text("source", "\"the data sheet\"")?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_catalogue_has_sizes_and_sources() {
        let gear = Gear::read(Gear::BUILT_IN).unwrap();
        let names: std::collections::BTreeSet<_> = gear.iter().map(|gear| &gear.name).collect();
        assert_eq!(names.len(), gear.len(), "a name is the folder of its runs");
        for port in ["10 Gb/s", "40 Gb/s", "100 Gb/s", "400 Gb/s", "800 Gb/s"] {
            assert!(gear.iter().any(|gear| gear.port == port.parse().unwrap()), "{port}");
        }
        assert!(gear.iter().all(|gear| !gear.buffer.is_zero() && !gear.source.is_empty()));
        assert!(GearMemory::ALL.iter().all(|memory| gear.iter().any(|gear| gear.memory == *memory)));
        let of = |name: &str| gear.iter().find(|gear| gear.name.contains(name)).unwrap();
        assert_eq!((of("Tomahawk (").pools, of("Spectrum (").pools), (4, 1));
        assert_eq!(of("Tomahawk 5").buffer, Bytes::new(165_000_000));
        assert!(of("Jericho 2").price.as_ref().unwrap().text.contains("USD"));
    }

    #[test]
    fn a_wrong_catalogue_names_switch_and_key() {
        let message = |text: &str| Gear::read(text).unwrap_err().to_string();
        assert!(message("x = ").contains("not TOML"));
        assert!(message("[gear]").contains("no `[[gear]]`"));
        let one = |rest: &str| format!("[[gear]]\nname = \"a\"\nport = \"1 Gb/s\"\nsource = \"b\"\n{rest}");
        assert!(message(&one("")).contains("switch 1 of the catalogue: `buffer` is missing"));
        assert!(message(&one("buffer = \"1 Gb/s\"")).contains("buffer = \"16 MB\""));
        let with = |more: &str| message(&one(&format!("buffer = \"1 MB\"\n{more}")));
        assert!(with("pools = 0").contains("pools = 4"));
        assert!(with("memory = \"tape\"").contains("memory = \"off-chip\""));
        assert!(with("price = \"1 EUR\"").contains("`price_source` is missing"));
        assert!(with("cost = \"1 EUR\"").contains("`cost`, which is not one of name"));
        assert_eq!(Gear::read(&one("buffer = \"1 MB\"")).unwrap()[0].buffer, Bytes::new(1_000_000));
    }
}
