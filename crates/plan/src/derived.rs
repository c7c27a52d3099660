//! A result with its derivation: the formula, and the formula with its numbers filled in.

use std::borrow::Cow;
use std::fmt;

use fanin_units::{Bytes, Duration, Frequency, Packets, Rate, Ratio};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// A value with its name, its formula, the formula's numbers and its source.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived<T> {
    /// A key that is stable between versions, in snake case, qualified by dots: `bdp`, `load.last_hop`.
    pub name: Cow<'static, str>,
    /// The value of the result.
    pub value: T,
    /// The formula in words: `rate × RTT`.
    pub formula: &'static str,
    /// The right-hand side with numbers: `1 Gb/s × 200 us`.
    pub numbers: String,
    /// Source of the formula: a paper's section, an RFC or a standard.
    pub source: &'static str,
}

/// A result of any kind, as the planner lists it.
pub type Derivation = Derived<Quantity>;

impl<T> Derived<T> {
    /// Makes a result. `name` is the default name; [`Self::named`] replaces it.
    pub fn new(
        name: &'static str,
        value: T,
        formula: &'static str,
        numbers: String,
        source: &'static str,
    ) -> Self {
        Self { name: Cow::Borrowed(name), value, formula, numbers, source }
    }

    /// Returns the result under another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
        self
    }
}

impl<T: Clone + Into<Quantity>> Derived<T> {
    /// Returns the result without its static type.
    pub fn erase(&self) -> Derivation {
        Derived {
            name: self.name.clone(),
            value: self.value.clone().into(),
            formula: self.formula,
            numbers: self.numbers.clone(),
            source: self.source,
        }
    }

    /// Writes the whole derivation: `rate × RTT = 1 Gb/s × 200 us = 25 kB`.
    pub fn text(&self) -> String {
        format!("{} = {} = {}", self.formula, self.numbers, self.value.clone().into())
    }
}

impl Serialize for Derived<Quantity> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Derivation", 7)?;
        object.serialize_field("name", &self.name)?;
        object.serialize_field("value", &self.value.base_value())?;
        object.serialize_field("unit", &self.value.base_unit())?;
        object.serialize_field("text", &self.value.to_string())?;
        object.serialize_field("formula", self.formula)?;
        object.serialize_field("numbers", &self.numbers)?;
        object.serialize_field("source", self.source)?;
        object.end()
    }
}

/// A number of things: flows, servers, credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

/// A ratio that is a factor (`2.46 ×`), where [`Ratio`] itself is shown as a share (`24.6 %`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor(pub Ratio);

/// A floor area in square millimetres.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Area(pub u64);

/// An amount of money in hundredths of its currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Money {
    /// Hundredths of the currency's unit.
    pub hundredths: u64,
    /// The currency's code, such as `GBP`.
    pub currency: Cow<'static, str>,
}

/// A typed quantity of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// An amount of data.
    Bytes(Bytes),
    /// A time in picoseconds.
    Duration(Duration),
    /// A bit rate.
    Rate(Rate),
    /// A number of occurrences.
    Frequency(Frequency),
    /// A number of packets.
    Packets(Packets),
    /// A share of a whole.
    Share(Ratio),
    /// A factor between two things of a kind.
    Factor(Ratio),
    /// A number of things.
    Count(u64),
    /// A floor area in square millimetres.
    Area(u64),
    /// An amount of money.
    Money(Money),
}

impl Quantity {
    /// Returns the value in the base unit of its kind.
    pub fn base_value(&self) -> u64 {
        match self {
            Self::Bytes(value) => value.get(),
            Self::Duration(value) => value.get(),
            Self::Rate(value) => value.get(),
            Self::Frequency(value) => value.get(),
            Self::Packets(value) => value.get(),
            Self::Share(value) | Self::Factor(value) => value.get(),
            Self::Count(value) | Self::Area(value) => *value,
            Self::Money(value) => value.hundredths,
        }
    }

    /// Returns the name of the base unit.
    pub fn base_unit(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Bytes(_) => "B",
            Self::Duration(_) => "ps",
            Self::Rate(_) => "b/s",
            Self::Frequency(_) => "mHz",
            Self::Packets(_) => "packets",
            Self::Share(_) | Self::Factor(_) => "ppm",
            Self::Count(_) => "1",
            Self::Area(_) => "mm2",
            Self::Money(money) => return Cow::Owned(format!("{}/100", money.currency)),
        })
    }
}

macro_rules! into_quantity {
    ($($from:ty => $variant:ident $(($inner:ident))?),* $(,)?) => {$(
        impl From<$from> for Quantity {
            fn from(value: $from) -> Self {
                Self::$variant(value$(.$inner())?)
            }
        }
    )*};
}

into_quantity!(
    Bytes => Bytes,
    Duration => Duration,
    Rate => Rate,
    Frequency => Frequency,
    Packets => Packets,
    Ratio => Share,
    Money => Money,
    Factor => Factor(into_ratio),
    Count => Count(into_number),
    Area => Area(into_number),
);

impl Factor {
    /// Computes `numerator / denominator` to a millionth, rounded to the nearest; saturates at 1.8e13.
    ///
    /// # Panics
    /// If the denominator is zero.
    pub fn of(numerator: u64, denominator: u64) -> Self {
        Self(ratio_of(numerator, denominator))
    }

    fn into_ratio(self) -> Ratio {
        self.0
    }
}

impl Count {
    fn into_number(self) -> u64 {
        self.0
    }
}

impl Area {
    fn into_number(self) -> u64 {
        self.0
    }
}

/// Computes `numerator / denominator` to a millionth, rounded to the nearest; saturates at 1.8e13.
///
/// # Panics
/// If the denominator is zero.
pub fn ratio_of(numerator: u64, denominator: u64) -> Ratio {
    assert!(denominator != 0, "a ratio of something to nothing");
    let (numerator, denominator) = (u128::from(numerator), u128::from(denominator));
    let ppm = (numerator * 1_000_000 + denominator / 2) / denominator;
    Ratio::new(u64::try_from(ppm).unwrap_or(u64::MAX))
}

/// Writes a share as a percentage with two significant digits, the precision of models of random sizes.
pub(crate) fn percent(share: Ratio) -> String {
    let percent = share.as_f64() * 100.0;
    // From 99 % on three digits keep 99.6 % from being rounded to 100 %.
    let digits = if (99.0..100.0).contains(&percent) { 3.0 } else { 2.0 };
    let whole = libm::floor(libm::log10(percent.max(1e-4))) + 1.0;
    format!("{percent:.*} %", (digits - whole).max(0.0) as usize)
}

/// Significant digits of printed numbers; longer numbers are rounded.
const SIGNIFICANT_DIGITS: u32 = 5;
/// Amounts of data change to the next larger unit from this value on, because papers write 2112 kB. Other quantities change
/// from 1000 on.
const BYTES_IN_UNIT_MAX: u64 = 10_000;

const BYTE_STEPS: &[(u64, &str)] = &[
    (1_000_000_000_000_000, "PB"),
    (1_000_000_000_000, "TB"),
    (1_000_000_000, "GB"),
    (1_000_000, "MB"),
    (1_000, "kB"),
    (1, "B"),
];
const BINARY_STEPS: &[(u64, &str)] =
    &[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
const TIME_STEPS: &[(u64, &str)] =
    &[(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns"), (1, "ps")];
const RATE_STEPS: &[(u64, &str)] =
    &[(1_000_000_000_000, "Tb/s"), (1_000_000_000, "Gb/s"), (1_000_000, "Mb/s"), (1_000, "kb/s"), (1, "b/s")];
const FREQUENCY_STEPS: &[(u64, &str)] =
    &[(1_000_000_000, "MHz"), (1_000_000, "kHz"), (1_000, "Hz"), (1, "mHz")];

/// Writes a quantity for people, with at most five significant digits.
impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Bytes(value) => bytes(value.get()),
            Self::Duration(value) => in_steps(value.get(), TIME_STEPS, 1),
            Self::Rate(value) => in_steps(value.get(), RATE_STEPS, 1),
            Self::Frequency(value) => in_steps(value.get(), FREQUENCY_STEPS, 1),
            Self::Packets(value) => value.to_string(),
            Self::Share(value) => format!("{} %", rounded(value.get(), 10_000)),
            Self::Factor(value) => rounded(value.get(), 1_000_000),
            Self::Count(value) => value.to_string(),
            Self::Area(value) => format!("{} m2", rounded(*value, 1_000_000)),
            Self::Money(money) => match money.hundredths % 100 {
                0 => format!("{} {}", money.hundredths / 100, money.currency),
                cents => format!("{}.{cents:02} {}", money.hundredths / 100, money.currency),
            },
        };
        out.pad(&text)
    }
}

/// Writes bytes in powers of 1024 if the number is round in them, else in powers of 1000.
fn bytes(value: u64) -> String {
    let binary = BINARY_STEPS.iter().find(|(step, _)| value.is_multiple_of(*step));
    if let Some((step, unit)) = binary
        && value > 0
        && value / step < BYTES_IN_UNIT_MAX
        && !value.is_multiple_of(1_000)
    {
        return format!("{} {unit}", value / step);
    }
    in_steps(value, BYTE_STEPS, BYTES_IN_UNIT_MAX / 1_000)
}

/// Writes the value in the largest unit in which it is at least `least`.
fn in_steps(value: u64, steps: &[(u64, &str)], least: u64) -> String {
    let (step, unit) = steps
        .iter()
        .find(|(step, _)| value / step >= least)
        .or(steps.last())
        .expect("every quantity has units");
    format!("{} {unit}", rounded(value, *step))
}

/// Writes `value / step` with five significant digits, without trailing zeros.
fn rounded(value: u64, step: u64) -> String {
    let (value, step) = (u128::from(value), u128::from(step));
    let whole_digits = (value / step).checked_ilog10().map_or(1, |digits| digits + 1);
    let decimals = SIGNIFICANT_DIGITS.saturating_sub(whole_digits);
    let scale = 10_u128.pow(decimals);
    let scaled = (value * scale + step / 2) / step;
    let (whole, fraction) = (scaled / scale, scaled % scale);
    if fraction == 0 {
        return whole.to_string();
    }
    let fraction = format!("{fraction:0width$}", width = decimals as usize);
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

/// Writes a quantity in a form that is short enough for a formula.
pub fn brief(value: impl Into<Quantity>) -> String {
    value.into().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_two_digits() {
        let cases = [
            (1_000_000, "100 %"),
            (361_580, "36 %"),
            (1_759, "0.18 %"),
            (169, "0.017 %"),
            (996_400, "99.6 %"),
        ];
        for (share, text) in cases {
            assert_eq!(percent(Ratio::new(share)), text);
        }
    }

    #[test]
    fn prints_what_people_read() {
        let cases: [(Quantity, &str); 16] = [
            (Bytes::new(2_112_000).into(), "2112 kB"),
            (Bytes::new(2_236_800).into(), "2236.8 kB"),
            (Bytes::new(65_536).into(), "64 KiB"),
            (Bytes::new(4_096_000).into(), "4096 kB"),
            (Bytes::new(1_500).into(), "1500 B"),
            (Bytes::new(12_600_000).into(), "12.6 MB"),
            (Bytes::new(1_234_567_891).into(), "1234.6 MB"),
            (Bytes::new(1_207_959_552).into(), "1152 MiB"),
            (Bytes::new(0).into(), "0 B"),
            (Duration::new(18_294_400_000).into(), "18.294 ms"),
            (Duration::new(400_000_000).into(), "400 us"),
            (Rate::new(333_333_333).into(), "333.33 Mb/s"),
            (Frequency::new(81_274_382).into(), "81.274 kHz"),
            (Ratio::new(447_360).into(), "44.736 %"),
            (Factor::of(265_770, 108_000).into(), "2.4608"),
            (Area(1_926_000).into(), "1.926 m2"),
        ];
        for (quantity, text) in cases {
            assert_eq!(quantity.to_string(), text);
        }
        assert_eq!(
            Quantity::from(Money { hundredths: 15_999, currency: "USD".into() }).to_string(),
            "159.99 USD"
        );
    }

    #[test]
    fn a_derivation_serialises_with_base_unit_and_text() {
        let bdp = Derived::new(
            "bdp",
            Bytes::new(25_000),
            "rate × RTT",
            "1 Gb/s × 200 us".to_owned(),
            "ICC'15 eq. (1)",
        );
        assert_eq!(bdp.text(), "rate × RTT = 1 Gb/s × 200 us = 25 kB");
        assert_eq!(
            serde_json::to_string(&bdp.erase()).unwrap(),
            "{\"name\":\"bdp\",\"value\":25000,\"unit\":\"B\",\"text\":\"25 kB\",\"formula\":\"rate × RTT\",\
             \"numbers\":\"1 Gb/s × 200 us\",\"source\":\"ICC'15 eq. (1)\"}"
        );
    }
}
