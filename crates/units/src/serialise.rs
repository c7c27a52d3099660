//! Quantities as strings in files: `"200 ms"`, never a bare number without its unit.

use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Bytes, Duration, Frequency, Packets, ParseError, Rate, Ratio};

struct QuantityText<T> {
    quantity: &'static str,
    /// True if a number without a unit is valid, as for packets and ratios.
    bare: bool,
    of: PhantomData<T>,
}

impl<T: FromStr<Err = ParseError>> Visitor<'_> for QuantityText<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} with its unit, in quotes", self.quantity)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::custom(format_args!("{} is zero or more, not {number}", self.quantity))),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        if self.bare || number == 0 {
            return bare(number);
        }
        Err(E::custom(format_args!(
            "{} needs a unit and quotes: \"{number} …\" instead of {number}",
            self.quantity
        )))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        if self.bare {
            // The shortest decimal text of the float is the text in the file.
            return bare(number);
        }
        Err(E::custom(format_args!(
            "{} needs a unit and quotes: \"{number} …\" instead of {number}",
            self.quantity
        )))
    }
}

/// Parses the printed form of a number, without allocating.
fn bare<T: FromStr<Err = ParseError>, E: Error>(number: impl fmt::Display) -> Result<T, E> {
    use fmt::Write;

    struct Small([u8; 64], usize);
    impl Write for Small {
        fn write_str(&mut self, more: &str) -> fmt::Result {
            let end = self.1 + more.len();
            self.0.get_mut(self.1..end).ok_or(fmt::Error)?.copy_from_slice(more.as_bytes());
            self.1 = end;
            Ok(())
        }
    }

    let mut text = Small([0; 64], 0);
    write!(text, "{number}").map_err(|_| E::custom("a number with too many digits"))?;
    core::str::from_utf8(&text.0[..text.1]).unwrap_or_default().parse().map_err(E::custom)
}

macro_rules! as_text {
    ($($name:ident, $bare:literal, $example:literal;)*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                let text = QuantityText { quantity: $name::NAME, bare: $bare, of: PhantomData };
                input.deserialize_any(text)
            }
        }

        #[cfg(feature = "schemars")]
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> alloc::borrow::Cow<'static, str> {
                alloc::borrow::Cow::Borrowed(stringify!($name))
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                // Names contain no special character of patterns.
                let names = $name::UNITS
                    .iter()
                    .map(|unit| unit.name)
                    .collect::<alloc::vec::Vec<_>>()
                    .join("|");
                let pattern = alloc::format!("^[0-9][0-9_]*(\\.[0-9_]+)? ?({names})$");
                if $bare {
                    schemars::json_schema!({
                        "type": ["string", "number"],
                        "pattern": pattern,
                        "minimum": 0,
                        "examples": [$example],
                    })
                } else {
                    // Zero needs no unit.
                    schemars::json_schema!({
                        "type": ["string", "integer"],
                        "pattern": alloc::format!("^0$|{pattern}"),
                        "minimum": 0,
                        "maximum": 0,
                        "examples": [$example],
                    })
                }
            }
        }
    )*};
}

as_text! {
    Bytes, false, "1.1 kB";
    Duration, false, "200 ms";
    Frequency, false, "1 kHz";
    Packets, true, "2 packets";
    Rate, false, "10 Gb/s";
    Ratio, true, "0.25";
}
