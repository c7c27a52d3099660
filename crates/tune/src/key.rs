//! Settings that a search may change, and their ranges.

use std::str::FromStr;

use fanin_scenario::Scenario;

use crate::SearchAxis;
use crate::number::NumberKind;

/// A setting to tune in the user's form: `KEY` or `KEY=LOW..HIGH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The dotted key.
    pub key: String,
    /// The two ends as text.
    range: Option<(String, String)>,
    /// Without a given range, the ends are the setting's value divided by this factor and multiplied by it.
    factor: u64,
}

/// The factor of a setting that changes a figure.
const FACTOR: u64 = 16;
/// The factor of a setting that is the objective: bisection is cheap, and the best value may be far away.
const OBJECTIVE_FACTOR: u64 = 64;

impl KeyRange {
    /// Makes a setting that is the objective, without a range.
    pub fn objective(key: &str) -> Self {
        Self { key: key.to_owned(), range: None, factor: OBJECTIVE_FACTOR }
    }

    /// Returns true if the user gave the ends.
    pub fn is_given(&self) -> bool {
        self.range.is_some()
    }
}

/// Ways to write a setting to tune, for messages.
const FORMS: &str =
    "write KEY or KEY=LOW..HIGH, for example shaping.credits=60..1200 or \"tor.buffer=64 kB..4 MB\"";

impl FromStr for KeyRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, range) = text.split_once('=').map_or((text, None), |(key, range)| (key, Some(range)));
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(format!("`{text}` has no key: {FORMS}"));
        }
        let range = range.map(|range| {
            let ends = range.split_once("..").map(|(low, high)| (low.trim(), high.trim()));
            let ends = ends.filter(|(low, high)| !low.is_empty() && !high.is_empty());
            ends.map(|(low, high)| (low.to_owned(), high.to_owned()))
                .ok_or_else(|| format!("`{range}` is not a range: {FORMS}"))
        });
        Ok(Self { key: key.to_owned(), range: range.transpose()?, factor: FACTOR })
    }
}

/// An error: a setting cannot be tuned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TunedKeyError {
    /// The scenario has no such setting.
    #[error("there is no setting `{key}`; `fanin scenario show NAME` lists those of a scenario")]
    Unknown {
        /// The given key.
        key: String,
    },
    /// The setting is a section, a word or a list.
    #[error("`{key}` is {given}, not a number: only numbers and quantities can be tuned")]
    NotNumeric {
        /// The given key.
        key: String,
        /// The key's value in the scenario.
        given: String,
    },
    /// An end of the range has another quantity than the setting.
    #[error("`{key}` is {quantity}, not `{given}`: write for example \"{key}={example}\"")]
    Unit {
        /// The given key.
        key: String,
        /// The setting's quantity.
        quantity: &'static str,
        /// The wrong end.
        given: String,
        /// A correct range.
        example: &'static str,
    },
    /// The range has no value, or only one.
    #[error("the range {low}..{high} of `{key}` is empty: the lower end comes first")]
    Empty {
        /// The given key.
        key: String,
        /// The lower end.
        low: String,
        /// The upper end.
        high: String,
    },
    /// The scenario's value gives no range.
    #[error(
        "`{key}` is {value} in the scenario, which gives no range: write for example \"{key}={example}\""
    )]
    NoRange {
        /// The given key.
        key: String,
        /// The scenario's value.
        value: String,
        /// A range of such a setting.
        example: &'static str,
    },
    /// The key is `run.seed`. A point already runs several seeds.
    #[error(
        "`run.seed` cannot be tuned, as a point runs several seeds: choose the first with --seed, their number with --seeds"
    )]
    Seed,
    /// A key was given more than once.
    #[error("`{key}` is given twice under --over")]
    Twice {
        /// The given key.
        key: String,
    },
}

/// A setting to tune with its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunedKey {
    /// The dotted key.
    pub key: String,
    /// The quantity of its values.
    pub kind: NumberKind,
    /// The key's range and the scenario's own value.
    pub axis: SearchAxis,
}

impl TunedKey {
    /// Finds the setting in a scenario, and checks the units of the range's ends. The scenario's own checks decide later
    /// whether it accepts the values.
    ///
    /// # Errors
    /// If the key is unknown, `run.seed` or no number, or if its range is empty or of another unit.
    pub fn new(range: &KeyRange, scenario: &Scenario) -> Result<Self, TunedKeyError> {
        let key = range.key.clone();
        if key == "run.seed" {
            return Err(TunedKeyError::Seed);
        }
        let tree = toml::Value::try_from(scenario).ok();
        let found =
            key.split('.').try_fold(tree.as_ref(), |node, part| Some(Some(node?.get(part)?))).flatten();
        let value = found.ok_or_else(|| TunedKeyError::Unknown { key: key.clone() })?;
        let number = match value {
            toml::Value::Integer(number) => {
                u64::try_from(*number).ok().map(|number| (NumberKind::Count, number))
            }
            // A ratio is written as text, too. A whole ratio looks like a count.
            toml::Value::String(text) => match NumberKind::of(text) {
                Some((NumberKind::Count, _)) => {
                    NumberKind::Ratio.parse(text).map(|value| (NumberKind::Ratio, value))
                }
                other => other,
            },
            _ => None,
        };
        let Some((kind, start)) = number else {
            return Err(TunedKeyError::NotNumeric { key, given: described(value) });
        };
        let (quantity, example) = kind.words();
        let (low, high) = match &range.range {
            Some((low, high)) => {
                let parse = |text: &str, other: &str| {
                    // `64..4096 kB`: the unit may be given once.
                    let unit =
                        other.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
                    let with_unit = || kind.parse(&format!("{text}{unit}")).filter(|_| is_plain(text));
                    let refused = || TunedKeyError::Unit {
                        key: key.clone(),
                        quantity,
                        given: text.to_owned(),
                        example,
                    };
                    kind.parse(text).or_else(with_unit).ok_or_else(refused)
                };
                (parse(low, high)?, parse(high, high)?)
            }
            None if start == 0 => {
                return Err(TunedKeyError::NoRange { key, value: kind.text(start), example });
            }
            None => {
                let limit =
                    if kind == NumberKind::Ratio && start <= 1_000_000 { 1_000_000 } else { u64::MAX };
                ((start / range.factor).max(1), start.saturating_mul(range.factor).min(limit))
            }
        };
        if low >= high {
            return Err(TunedKeyError::Empty { key, low: kind.text(low), high: kind.text(high) });
        }
        Ok(Self { key, kind, axis: SearchAxis { low, high, start } })
    }

    /// Moves the ends of a default range towards the scenario's value, by factors of 2, until `takes` accepts them.
    #[must_use]
    pub fn narrowed(mut self, takes: &mut dyn FnMut(u64) -> bool) -> Self {
        let SearchAxis { low, high, start } = self.axis;
        let mut up =
            std::iter::successors(Some(low), |value| value.checked_mul(2)).take_while(|low| *low < start);
        let mut down =
            std::iter::successors(Some(high), |value| Some(value / 2)).take_while(|high| *high > start);
        self.axis.low = up.find(|value| takes(*value)).unwrap_or(start);
        self.axis.high = down.find(|value| takes(*value)).unwrap_or(start);
        self
    }

    /// Writes the setting with a value, in the form of `--set`.
    pub fn set(&self, value: u64) -> String {
        format!("{}={}", self.key, self.kind.text(value))
    }

    /// Writes the range as text.
    pub fn range(&self) -> String {
        format!("{}..{}", self.kind.text(self.axis.low), self.kind.text(self.axis.high))
    }
}

fn is_plain(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
}

/// Describes a scenario's value for a message.
fn described(value: &toml::Value) -> String {
    match value {
        toml::Value::Table(_) => "a section".to_owned(),
        toml::Value::Array(_) => "a list".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuned(text: &str) -> Result<TunedKey, TunedKeyError> {
        let loaded = fanin_scenario::load("thesis-a-1000hz", &[]).unwrap();
        TunedKey::new(&text.parse().unwrap(), &loaded.scenario)
    }

    #[test]
    fn ranges_are_read_in_the_settings_unit() {
        let credits = tuned("shaping.credits=60..1200").unwrap();
        assert_eq!(
            (credits.kind, credits.axis),
            (NumberKind::Count, SearchAxis { low: 60, high: 1200, start: 480 })
        );
        assert_eq!(credits.set(480), "shaping.credits=480");
        let buffer = tuned("tor.buffer=64 kB .. 4 MB").unwrap();
        assert_eq!((buffer.axis.low, buffer.axis.high, buffer.axis.start), (64_000, 4_000_000, 786_000));
        assert_eq!(tuned("tor.buffer=64..4096 kB").unwrap().range(), "64 kB..4096 kB");
        assert_eq!(tuned("shaping.utilisation=0.5..1").unwrap().axis.high, 1_000_000);
        assert_eq!(tuned("shaping.utilisation").unwrap().range(), "0.0625..1");
        assert_eq!(tuned("shaping.credits").unwrap().range(), "30..7680");
    }

    #[test]
    fn keys_that_cannot_be_tuned_are_reported() {
        let message = |text: &str| tuned(text).unwrap_err().to_string();
        assert!(message("shaping.credit").contains("no setting `shaping.credit`"));
        assert!(message("supervisor.policy").contains("is \"fcfs\", not a number"));
        assert!(message("shaping").contains("a section"));
        assert!(message("tor.buffer=60..1200").contains("`tor.buffer` is a size, not `60`"));
        assert!(message("tor.buffer=1 ms..2 ms").contains("not `1 ms`"));
        assert!(message("shaping.credits=480..480").contains("empty"));
        assert!(message("shaping.credits=480..60").contains("480..60"));
        assert!(message("transport.min_rto_none").contains("no setting"));
        assert!(message("run.seed=1..9").contains("`run.seed` cannot be tuned"));
        for text in ["", "=1..2", "a b=1..2", "a=1", "a=1..", "a=..2"] {
            assert!(text.parse::<KeyRange>().unwrap_err().contains("KEY=LOW..HIGH"), "{text}");
        }
    }
}
