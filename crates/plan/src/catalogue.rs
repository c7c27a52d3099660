//! Prices and dimensions: a file included in the program, which users can replace.

use std::fmt;
use std::str::FromStr;

use fanin_units::Rate;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use crate::derived::{Area, Money};

/// Prices and sizes of the parts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// Currency of all prices but those of the chips.
    pub currency: String,
    /// A server used as a leaf or spine switch.
    pub server: Server,
    /// A server with multi-host controllers used the same way.
    pub multi_host: MultiHost,
    /// The reference router.
    pub router: Router,
    /// The cabinet for servers.
    pub rack: Rack,
    /// The chips of network adapters.
    pub chips: Chips,
}

/// A server used as a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Price of the equipped server.
    pub price: Price,
    /// Ports, at least 2.
    pub ports: u64,
    /// Height in rack units.
    pub rack_units: u64,
}

/// A device with multi-host controllers; its price is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultiHost {
    /// Ports, at least 2.
    pub ports: u64,
    /// Height in rack units.
    pub rack_units: u64,
}

/// A chassis router with modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// Price of an empty chassis.
    pub chassis_price: Price,
    /// Price of a module of ports.
    pub module_price: Price,
    /// Ports of a module.
    pub module_ports: u64,
    /// Price of a switch fabric module.
    pub fabric_price: Price,
    /// Slots for modules of ports.
    pub module_slots: u64,
    /// Switch fabric modules in every chassis.
    pub fabric_modules: u64,
    /// Width in millimetres.
    pub width: u64,
    /// Depth in millimetres.
    pub depth: u64,
}

/// A cabinet for servers and switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rack {
    /// Height in rack units.
    pub rack_units: u64,
    /// Width in millimetres.
    pub width: u64,
    /// Depth in millimetres.
    pub depth: u64,
}

/// The chips of network adapters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chips {
    /// Currency of the chips' prices.
    pub currency: String,
    /// Price of the chip of a network adapter.
    pub adapter_price: Price,
    /// Bandwidth of that chip towards the host.
    pub adapter_bandwidth: Rate,
    /// Price of a multi-host controller chip.
    pub multi_host_price: Price,
    /// Bandwidth of that chip towards its hosts.
    pub multi_host_bandwidth: Rate,
}

/// A price in hundredths of its currency, written as text: `"159.99"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price(pub u64);

impl FromStr for Price {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (whole, cents) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(cents) || cents.len() > 2 {
            return Err(());
        }
        let whole: u64 = whole.parse().map_err(drop)?;
        let cents = cents.parse::<u64>().map_err(drop)? * if cents.len() == 1 { 10 } else { 1 };
        whole.checked_mul(100).and_then(|price| price.checked_add(cents)).map(Self).ok_or(())
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|()| {
            D::Error::custom(format_args!("a price is text such as \"12000\" or \"159.99\", not \"{text}\""))
        })
    }
}

/// Errors of a catalogue.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The text is not a catalogue. The message names line and column.
    #[error("{0}")]
    Invalid(toml::de::Error),
    /// A number is too small to compute with.
    #[error("the catalogue has {key} = {actual}; at least {least} is needed")]
    TooSmall {
        /// The key of the catalogue.
        key: &'static str,
        /// The value in the file.
        actual: u64,
        /// The smallest permitted value.
        least: u64,
    },
}

impl Catalogue {
    /// Text of the included catalogue.
    pub const SHIPPED: &'static str = include_str!("../catalogue.toml");

    /// Returns the included catalogue.
    pub fn shipped() -> Self {
        Self::parse(Self::SHIPPED).expect("the shipped catalogue is tested")
    }

    /// Reads a catalogue from text.
    ///
    /// # Errors
    /// If the text is not a catalogue in TOML, or a number is too small to compute with.
    pub fn parse(text: &str) -> Result<Self, CatalogueError> {
        let catalogue: Self = toml::from_str(text).map_err(CatalogueError::Invalid)?;
        let needed = [
            ("server.ports", catalogue.server.ports, 2),
            ("server.rack_units", catalogue.server.rack_units, 1),
            ("multi_host.ports", catalogue.multi_host.ports, 2),
            ("multi_host.rack_units", catalogue.multi_host.rack_units, 1),
            ("router.module_ports", catalogue.router.module_ports, 1),
            ("router.module_slots", catalogue.router.module_slots, 1),
            ("router.width", catalogue.router.width, 1),
            ("router.depth", catalogue.router.depth, 1),
            ("rack.rack_units", catalogue.rack.rack_units, catalogue.server.rack_units),
            ("rack.rack_units", catalogue.rack.rack_units, catalogue.multi_host.rack_units),
            ("rack.width", catalogue.rack.width, 1),
            ("rack.depth", catalogue.rack.depth, 1),
            ("chips.adapter_bandwidth", catalogue.chips.adapter_bandwidth.get(), 1),
            ("chips.multi_host_bandwidth", catalogue.chips.multi_host_bandwidth.get(), 1),
        ];
        match needed.into_iter().find(|(_, actual, least)| actual < least) {
            Some((key, actual, least)) => Err(CatalogueError::TooSmall { key, actual, least }),
            None => Ok(catalogue),
        }
    }

    /// Makes an amount in the catalogue's currency.
    pub(crate) fn money(&self, hundredths: u64) -> Money {
        Money { hundredths, currency: self.currency.clone().into() }
    }
}

impl Router {
    /// Returns the floor area of one chassis.
    pub const fn area(&self) -> Area {
        Area(self.width * self.depth)
    }
}

impl Rack {
    /// Returns the floor area of one cabinet.
    pub const fn area(&self) -> Area {
        Area(self.width * self.depth)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 100 {
            0 => write!(out, "{}", self.0 / 100),
            cents => write!(out, "{}.{cents:02}", self.0 / 100),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_exact() {
        for (text, hundredths) in [("12000", 1_200_000), ("159.99", 15_999), ("577.8", 57_780), ("0.05", 5)] {
            assert_eq!(text.parse(), Ok(Price(hundredths)));
        }
        for text in ["", ".5", "1.", "1.234", "-1", "1e3", "99999999999999999999"] {
            assert_eq!(text.parse::<Price>(), Err(()), "{text}");
        }
    }

    #[test]
    fn mistakes_are_pointed_at() {
        let message = |from: &str, to: &str| {
            assert!(Catalogue::SHIPPED.contains(from));
            Catalogue::parse(&Catalogue::SHIPPED.replace(from, to)).unwrap_err().to_string()
        };
        assert!(message("\"62808\"", "62808").contains("chassis_price"));
        assert!(message("\"62808\"", "\"a lot\"").contains("not \"a lot\""));
        assert!(message("module_slots", "slots").contains("unknown field `slots`"));
        assert_eq!(
            message("ports = 40", "ports = 1"),
            "the catalogue has server.ports = 1; at least 2 is needed"
        );
        assert_eq!(
            message("rack_units = 42", "rack_units = 3"),
            "the catalogue has rack.rack_units = 3; at least 4 is needed"
        );
    }
}
