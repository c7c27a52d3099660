//! Quantities as text, and as whole numbers of their base unit.

use fanin_units::{Bytes, Duration, Frequency, Packets, ParseError, Rate, Ratio};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

/// One quantity: its name in Python, and the functions that read and write it.
struct QuantityFunctions {
    name: &'static str,
    parse: fn(&str) -> Result<u64, ParseError>,
    format: fn(u64) -> String,
}

macro_rules! quantity {
    ($name:literal, $type:ty) => {
        QuantityFunctions {
            name: $name,
            parse: |text| text.parse::<$type>().map(<$type>::get),
            format: |value| <$type>::new(value).to_string(),
        }
    };
}

const QUANTITIES: [QuantityFunctions; 6] = [
    quantity!("bytes", Bytes),
    quantity!("duration", Duration),
    quantity!("frequency", Frequency),
    quantity!("packets", Packets),
    quantity!("rate", Rate),
    quantity!("ratio", Ratio),
];

fn quantity(name: &str) -> PyResult<&'static QuantityFunctions> {
    let found = QUANTITIES.iter().find(|quantity| quantity.name == name);
    found.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
}

/// The whole number of base units that a text stands for.
#[pyfunction]
pub(crate) fn parse_quantity(name: &str, text: &str) -> PyResult<u64> {
    (quantity(name)?.parse)(text).map_err(|error| PyValueError::new_err(format!("{text:?}: {error}")))
}

/// The shortest text that stands for a whole number of base units.
#[pyfunction]
pub(crate) fn format_quantity(name: &str, value: u64) -> PyResult<String> {
    Ok((quantity(name)?.format)(value))
}
