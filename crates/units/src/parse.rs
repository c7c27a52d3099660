//! Decimal text to integers and back, exactly.

use core::fmt::{self, Write};

/// A unit in text: its name and the number of base units in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// The name as written, for example `kB`.
    pub name: &'static str,
    /// Number of base units in this unit.
    pub factor: u64,
    /// True if printing may choose the unit; aliases are only read.
    pub printed: bool,
}

impl Unit {
    /// A unit that is read and printed.
    pub(crate) const fn new(name: &'static str, factor: u64) -> Self {
        Self { name, factor, printed: true }
    }

    /// A unit that is read but never printed.
    pub(crate) const fn alias(name: &'static str, factor: u64) -> Self {
        Self { name, factor, printed: false }
    }
}

/// Errors of parsing a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text does not start with a decimal number.
    #[error("expected a number and a unit, such as \"{example}\" for {quantity}")]
    Number {
        /// The quantity that was expected.
        quantity: &'static str,
        /// A correct text.
        example: Example,
    },
    /// The number is below zero.
    #[error("{quantity} cannot be negative")]
    Negative {
        /// The quantity that was expected.
        quantity: &'static str,
    },
    /// The number has no unit.
    #[error("{quantity} needs a unit, one of {units}")]
    NoUnit {
        /// The quantity that was expected.
        quantity: &'static str,
        /// The units of the quantity.
        units: Names,
    },
    /// The quantity has no such unit.
    #[error("unknown unit for {quantity}; expected one of {units}{near}")]
    Unit {
        /// The quantity that was expected.
        quantity: &'static str,
        /// The units of the quantity.
        units: Names,
        /// The same letters in another case, if such a unit exists.
        near: Near,
    },
    /// The value is finer than the smallest unit.
    #[error("{quantity} is finer than 1 {smallest}, the smallest step")]
    Fraction {
        /// The quantity that was expected.
        quantity: &'static str,
        /// The smallest unit.
        smallest: &'static str,
    },
    /// The value does not fit.
    #[error("{quantity} is too large: the largest is {max}")]
    Range {
        /// The quantity that was expected.
        quantity: &'static str,
        /// The largest value, as text.
        max: Largest,
    },
}

/// Prints a correct text for a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example(&'static [Unit]);

impl fmt::Display for Example {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match printed(self.0).nth(1).or_else(|| printed(self.0).next()) {
            Some(unit) if !unit.name.is_empty() => write!(out, "10 {}", unit.name),
            _ => out.write_str("0.5"),
        }
    }
}

/// Prints the names of a quantity's units, one name for each size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names(&'static [Unit]);

impl fmt::Display for Names {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_new = |&(index, unit): &(usize, &Unit)| {
            unit.printed
                || !self
                    .0
                    .iter()
                    .enumerate()
                    .any(|(other, o)| o.factor == unit.factor && (o.printed || other < index))
        };
        for (place, (_, unit)) in self.0.iter().enumerate().filter(is_new).enumerate() {
            if place > 0 {
                out.write_str(", ")?;
            }
            out.write_str(unit.name)?;
        }
        Ok(())
    }
}

/// Prints the unit that differs from the given one only in upper and lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Near(Option<&'static str>);

impl fmt::Display for Near {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |name| write!(out, "; did you mean {name}?"))
    }
}

/// Prints the largest value of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Largest(&'static [Unit]);

impl fmt::Display for Largest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(u64::MAX, self.0, out)
    }
}

fn printed(units: &'static [Unit]) -> impl Iterator<Item = &'static Unit> {
    units.iter().filter(|unit| unit.printed)
}

/// Reads `"1.1 kB"`: digits (with `_` between them), an optional fraction, an optional space, a unit.
pub(crate) fn parse(text: &str, quantity: &'static str, units: &'static [Unit]) -> Result<u64, ParseError> {
    let text = text.trim();
    let is_negative =
        text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if is_negative {
        return Err(ParseError::Negative { quantity });
    }
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, name) = (&text[..split], text[split..].trim_start());
    let decimal = Decimal::parse(number).ok_or(ParseError::Number { quantity, example: Example(units) })?;
    if name.is_empty() {
        // A quantity without a name for its base unit, such as a ratio, can be a bare number.
        if let Some(bare) = units.iter().find(|unit| unit.name.is_empty()) {
            return decimal.times(bare.factor, quantity, units);
        }
        if decimal.mantissa == 0 {
            return Ok(0);
        }
        return Err(ParseError::NoUnit { quantity, units: Names(units) });
    }
    // Unicode has two micro signs; both mean "us".
    let micro = name.strip_prefix(['µ', 'μ']);
    let unit = units.iter().find(|unit| match micro {
        Some(rest) => unit.name.strip_prefix('u') == Some(rest),
        None => unit.name == name,
    });
    match unit {
        Some(unit) => decimal.times(unit.factor, quantity, units),
        None => {
            let near = units.iter().find(|unit| unit.name.eq_ignore_ascii_case(name));
            Err(ParseError::Unit { quantity, units: Names(units), near: Near(near.map(|u| u.name)) })
        }
    }
}

/// A decimal number as written: `mantissa / 10^scale`.
struct Decimal {
    mantissa: u128,
    scale: u32,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return None,
            None => (text, ""),
        };
        let grouped = |digits: &str| {
            digits.starts_with(|c: char| c.is_ascii_digit()) && digits.ends_with(|c: char| c.is_ascii_digit())
        };
        if !grouped(whole) || (!fraction.is_empty() && !grouped(fraction)) {
            return None;
        }
        let mut mantissa: u128 = 0;
        let mut scale = 0;
        // Trailing zeros of a fraction have no value, and would only use up the range.
        let fraction = fraction.trim_end_matches(['0', '_']);
        for (digits, step) in [(whole, 0), (fraction, 1)] {
            for digit in digits.bytes().filter(|&b| b != b'_') {
                if !digit.is_ascii_digit() {
                    return None;
                }
                // Saturating is exact enough: such a number is refused as too large or too fine.
                mantissa = mantissa.saturating_mul(10).saturating_add(u128::from(digit - b'0'));
                scale += step;
            }
        }
        Some(Self { mantissa, scale })
    }

    fn times(&self, factor: u64, quantity: &'static str, units: &'static [Unit]) -> Result<u64, ParseError> {
        let range = ParseError::Range { quantity, max: Largest(units) };
        let smallest = printed(units).next().map_or("", |unit| unit.name);
        let fraction = ParseError::Fraction { quantity, smallest };
        if self.mantissa == u128::MAX {
            return Err(if self.scale == 0 { range } else { fraction });
        }
        let divisor = 10u128.checked_pow(self.scale).ok_or(fraction)?;
        let product = self.mantissa.checked_mul(u128::from(factor)).ok_or(range)?;
        if product % divisor != 0 {
            return Err(fraction);
        }
        u64::try_from(product / divisor).map_err(|_| range)
    }
}

/// Prints the shortest exact text; of two equally short ones, the one with the larger unit.
pub(crate) fn print(value: u64, units: &[Unit], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut best: Option<NumberText> = None;
    for (index, unit) in units.iter().filter(|unit| unit.printed).enumerate() {
        // A value below 0.01 of a unit is hard to read in that unit; zero prints in the smallest unit.
        if index > 0 && value < unit.factor / 100 {
            continue;
        }
        if let Some(text) = NumberText::exact(value, unit)
            && best.as_ref().is_none_or(|best| text.cost <= best.cost)
        {
            best = Some(text);
        }
        if value == 0 {
            break;
        }
    }
    match best {
        Some(text) => out.pad(text.as_str()),
        None => write!(out, "{value}"),
    }
}

/// A number with its unit, stored without allocation.
struct NumberText {
    buffer: [u8; 48],
    length: usize,
    /// The number of characters, with a penalty for text that is hard to read: many digits before the point, or a
    /// leading zero.
    cost: usize,
}

impl NumberText {
    fn exact(value: u64, unit: &Unit) -> Option<Self> {
        let mut text = Self { buffer: [0; 48], length: 0, cost: 0 };
        let (whole, mut rest) = (value / unit.factor, value % unit.factor);
        write!(text, "{whole}").ok()?;
        text.cost = if whole == 0 && value > 0 || whole >= 100_000 { 2 } else { 0 };
        if rest > 0 {
            text.write_char('.').ok()?;
            // Binary units have long fractions, which are left to the other units.
            for _ in 0..18 {
                let scaled = u128::from(rest) * 10;
                let digit = (scaled / u128::from(unit.factor)) as u8;
                rest = (scaled % u128::from(unit.factor)) as u64;
                text.write_char(char::from(b'0' + digit)).ok()?;
                if rest == 0 {
                    break;
                }
            }
            if rest > 0 {
                return None;
            }
        }
        if !unit.name.is_empty() {
            write!(text, " {}", unit.name).ok()?;
        }
        text.cost += text.length;
        Some(text)
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.buffer[..self.length]).unwrap_or_default()
    }
}

impl Write for NumberText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let end = self.length + more.len();
        self.buffer.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(more.as_bytes());
        self.length = end;
        Ok(())
    }
}
