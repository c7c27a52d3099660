//! The values of a swept setting: lists, ranges and logarithmic ranges.

use std::str::FromStr;

/// The most values of one range.
const VALUES_MAX: usize = 10_000;

/// Forms of a sweep on the command line.
const FORMS: &str = "write KEY=V1,V2,..., KEY=FROM..TO:STEP or KEY=log:FROM..TO:COUNT, for example \
                     shaping.credits=48,96,480, workload.senders=60..240:60 or \"tor.buffer=log:64..4096:7 kB\"";

/// One setting and the values to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sweep {
    pub(super) key: String,
    pub(super) values: Vec<String>,
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, list) = text.split_once('=').ok_or(FORMS)?;
        let key = key.trim();
        let mut values = Vec::new();
        for part in list.split(',').map(str::trim) {
            if key.is_empty() || part.is_empty() || part.split(':').filter(|part| is_number(part)).count() > 1
            {
                return Err(FORMS.to_owned());
            }
            match Range::of(part)? {
                Some(range) => values.extend(range.values()?),
                None => values.push(part.to_owned()),
            }
        }
        if let Some(twice) = values.iter().enumerate().find(|(place, value)| values[..*place].contains(value))
        {
            return Err(format!("the value `{}` of `{key}` is given twice", twice.1));
        }
        Ok(Self { key: key.to_owned(), values })
    }
}

fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok()
}

/// Equal steps, or equal factors, from one value to another.
struct Range<'a> {
    from: f64,
    to: f64,
    /// The step; in a logarithmic range, the number of values.
    by: f64,
    unit: &'a str,
    is_log: bool,
}

impl<'a> Range<'a> {
    /// Parses a range; returns `None` for a plain value.
    fn of(text: &'a str) -> Result<Option<Self>, String> {
        let (is_log, rest) = match text.strip_prefix("log:") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let Some((from, rest)) = rest.split_once("..") else {
            return if is_log { Err(FORMS.to_owned()) } else { Ok(None) };
        };
        let Some((from, first)) = quantity(from) else { return Ok(None) };
        let (to, by) = rest.split_once(':').ok_or_else(|| {
            let missing = if is_log { "number of values" } else { "step" };
            format!("the range `{text}` has no {missing}: {FORMS}")
        })?;
        let (Some((to, second)), Some((by, third))) = (quantity(to), quantity(by)) else {
            return Err(FORMS.to_owned());
        };
        let mut units = [first, second, third].into_iter().filter(|unit| !unit.is_empty());
        let unit = units.next().unwrap_or("");
        if units.any(|other| other != unit) {
            return Err(format!("the range `{text}` has several units: give one, as in 10..40:10 ms"));
        }
        Ok(Some(Self { from, to, by, unit, is_log }))
    }

    fn values(&self) -> Result<Vec<String>, String> {
        let Self { from, to, by, is_log, .. } = *self;
        let numbers: Vec<f64> = if is_log {
            if !(from > 0.0 && to > from && by >= 2.0 && by.fract() == 0.0 && by <= VALUES_MAX as f64) {
                return Err(format!(
                    "a logarithmic range goes up from a number above 0, in 2 to {VALUES_MAX} values: {FORMS}"
                ));
            }
            let are_whole = from.fract() == 0.0 && to.fract() == 0.0;
            let at = |index: f64| from * (to / from).powf(index / (by - 1.0));
            (0..by as usize)
                .map(|index| if are_whole { at(index as f64).round() } else { at(index as f64) })
                .collect()
        } else {
            let steps = (to - from) / by;
            if !(by > 0.0 && (0.0..VALUES_MAX as f64).contains(&steps)) {
                return Err(format!("a range goes up in 1 to {VALUES_MAX} steps above 0: {FORMS}"));
            }
            // A step of 0.1 is not exact.
            (0..=(steps + 1e-9) as usize).map(|index| from + index as f64 * by).collect()
        };
        let mut values: Vec<String> = numbers.into_iter().map(|number| self.text(number)).collect();
        values.dedup();
        Ok(values)
    }

    /// Returns a number with the range's unit, rounded to six digits.
    fn text(&self, number: f64) -> String {
        let digits = if number == 0.0 { 0 } else { 5 - number.abs().log10().floor() as i32 };
        let factor = 10_f64.powi(digits.clamp(0, 12));
        let number = (number * factor).round() / factor;
        if self.unit.is_empty() { number.to_string() } else { format!("{number} {}", self.unit) }
    }
}

/// Splits a text into a number and its unit; `None` if it does not begin with a number.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        text.parse::<Sweep>().unwrap().values
    }

    #[test]
    fn lists_and_ranges_become_values() {
        assert_eq!(values("shaping.credits=48, 96,480"), ["48", "96", "480"]);
        assert_eq!(values("workload.senders=60..240:60"), ["60", "120", "180", "240"]);
        assert_eq!(values("workload.senders=4,60..130:60"), ["4", "60", "120"]);
        assert_eq!(values("logger.accept=0..0.3:0.1"), ["0", "0.1", "0.2", "0.3"]);
        assert_eq!(values("tor.buffer=64..192:64 kB"), ["64 kB", "128 kB", "192 kB"]);
        assert_eq!(values("tor.buffer=log:64..4096:4 kB"), ["64 kB", "256 kB", "1024 kB", "4096 kB"]);
        assert_eq!(values("workload.senders=log:1..3:9"), ["1", "2", "3"]);
        assert_eq!(values("readout.fragment_size=../sizes.csv"), ["../sizes.csv"]);
    }

    #[test]
    fn a_wrong_range_names_the_right_forms() {
        for text in ["60:240:60", "a", "=1", "a=", "a=1,,2", "a=60:240:60", "a=log:4", "a=1..3", "a=log:1..9"]
        {
            let error = text.parse::<Sweep>().unwrap_err();
            assert!(error.contains("KEY=FROM..TO:STEP"), "{text}: {error}");
        }
        let error = "a=4,5,4".parse::<Sweep>().unwrap_err();
        assert!(error.contains("`4` of `a` is given twice"), "{error}");
        let error = "a=1 ms..3 s:1".parse::<Sweep>().unwrap_err();
        assert!(error.contains("several units"), "{error}");
        for text in ["a=3..1:1", "a=1..3:0", "a=0..1:0.000001", "a=log:0..9:3", "a=log:1..9:1"] {
            assert!(text.parse::<Sweep>().is_err(), "{text}");
        }
    }
}
