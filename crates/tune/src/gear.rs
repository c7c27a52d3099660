//! A catalogue of switches: packet buffer, port rate, and where the numbers come from.

use fanin_units::{Bytes, Rate};

/// A switch of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gear {
    /// Name of the chip or the switch.
    pub name: String,
    /// Packet buffer that its ports share.
    pub buffer: Bytes,
    /// Rate of the ports that hosts use.
    pub port: Rate,
    /// Place of the figures.
    pub source: String,
}

/// A catalogue cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GearError {
    /// The text is not TOML.
    #[error("the catalogue of switches is not TOML: {0}")]
    Toml(String),
    /// There is no switch in it.
    #[error("the catalogue has no `[[gear]]`; each has name, buffer, port and source")]
    Empty,
    /// A switch lacks a key, or its value is wrong.
    #[error(
        "switch {number} of the catalogue: `{key}` is missing or wrong; write for example {key} = \"{example}\""
    )]
    Key {
        /// Number of the switch, from 1.
        number: usize,
        /// The missing or wrong key.
        key: &'static str,
        /// A right value.
        example: &'static str,
    },
}

impl Gear {
    /// The catalogue that comes with the program.
    pub const BUILT_IN: &str = include_str!("gear.toml");

    /// Reads a catalogue.
    ///
    /// # Errors
    /// If it is not TOML, has no switch, or if a switch lacks a key.
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
        Ok(Self {
            name: text("name", "my switch")?.to_owned(),
            buffer: text("buffer", "16 MB")?.parse().map_err(|_| wrong("buffer", "16 MB"))?,
            port: text("port", "25 Gb/s")?.parse().map_err(|_| wrong("port", "25 Gb/s"))?,
            source: text("source", "the data sheet")?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_catalogue_has_sizes_and_sources() {
        let gear = Gear::read(Gear::BUILT_IN).unwrap();
        assert!(gear.len() >= 8);
        assert!(gear.iter().all(|gear| !gear.buffer.is_zero() && !gear.source.is_empty()));
    }

    #[test]
    fn a_wrong_catalogue_names_switch_and_key() {
        let message = |text: &str| Gear::read(text).unwrap_err().to_string();
        assert!(message("x = ").contains("not TOML"));
        assert!(message("[gear]").contains("no `[[gear]]`"));
        let one = |rest: &str| format!("[[gear]]\nname = \"a\"\nport = \"1 Gb/s\"\nsource = \"b\"\n{rest}");
        assert!(message(&one("")).contains("switch 1 of the catalogue: `buffer` is missing"));
        assert!(message(&one("buffer = \"1 Gb/s\"")).contains("buffer = \"16 MB\""));
        assert_eq!(Gear::read(&one("buffer = \"1 MB\"")).unwrap()[0].buffer, Bytes::new(1_000_000));
    }
}
