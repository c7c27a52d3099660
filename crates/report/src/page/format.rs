//! Writes figures for people: few digits, one unit, the same everywhere.

use serde_json::Value;

/// The kind of a figure, which decides how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FigureForm {
    Number,
    Millis,
    Seconds,
    Bits,
    Bytes,
    Share,
    Factor,
    /// A ratio as the signed difference from one in per cent; a large one as a factor.
    Change,
    Hertz,
    Text,
    /// A text that stands alone. It begins with a capital and ends with a full stop.
    Sentence,
}

impl FigureForm {
    pub(crate) const ALL: [(Self, &'static str); 11] = [
        (Self::Number, "number"),
        (Self::Millis, "ms"),
        (Self::Seconds, "s"),
        (Self::Bits, "bps"),
        (Self::Bytes, "bytes"),
        (Self::Share, "share"),
        (Self::Factor, "factor"),
        (Self::Change, "change"),
        (Self::Hertz, "hz"),
        (Self::Text, "text"),
        (Self::Sentence, "sentence"),
    ];

    /// Returns the word for the form in the page's markup.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(form, _)| *form == self).map_or("", |(_, name)| name)
    }

    /// Returns the form that a key's unit names, and the key as words without the unit: `window_bytes_min` holds bytes and
    /// becomes "Window, min".
    pub(crate) fn of_key(key: &str) -> (Self, String) {
        let units = [
            ("_per_cpu_s", Self::Number),
            ("_ms", Self::Millis),
            ("_bytes", Self::Bytes),
            ("_bps", Self::Bits),
            ("_hz", Self::Hertz),
            ("_s", Self::Seconds),
            ("_ratio", Self::Factor),
            ("_share", Self::Share),
        ];
        let (stem, qualifier) = key
            .rsplit_once('_')
            .filter(|(_, last)| ["max", "mean", "min", "p50", "p99", "total"].contains(last))
            .map_or((key, None), |(stem, last)| (stem, Some(last)));
        let (form, stem) = units
            .iter()
            .find_map(|&(unit, form)| stem.strip_suffix(unit).map(|rest| (form, rest)))
            .unwrap_or((Self::Number, stem));
        let name = words(stem);
        // A share often stands next to the count of the same name.
        let name = if form == Self::Share { format!("{name}, share") } else { name };
        (form, qualifier.map_or(name.clone(), |qualifier| format!("{name}, {qualifier}")))
    }
}

/// Writes a figure for people; `None` if the value does not have that form.
pub(crate) fn format(value: &Value, form: FigureForm) -> Option<String> {
    if let FigureForm::Text | FigureForm::Sentence = form {
        let text = typeset(value.as_str()?);
        return Some(if form == FigureForm::Text { text } else { sentence(&text) });
    }
    if let (FigureForm::Number, Some(flag)) = (form, value.as_bool()) {
        return Some(if flag { "yes" } else { "no" }.into());
    }
    if let (FigureForm::Number, Some(text)) = (form, value.as_str()) {
        return Some(text.into());
    }
    if let (FigureForm::Number, Some(whole)) = (form, value.as_u64()) {
        return Some(group(&whole.to_string()));
    }
    value.as_f64().map(|number| format_f64(number, form))
}

/// Writes a number for people.
pub(crate) fn format_f64(number: f64, form: FigureForm) -> String {
    let scaled = |units: &[(f64, &str)]| {
        let (factor, unit) = units
            .iter()
            .rev()
            .find(|(factor, _)| number.abs() >= *factor * 0.999_95)
            .or(units.first())
            .copied()
            .unwrap_or((1.0, ""));
        format!("{}\u{a0}{unit}", significant(number / factor))
    };
    match form {
        FigureForm::Number | FigureForm::Text | FigureForm::Sentence => significant(number),
        // Values of a column have two decimals. Smaller values need significant digits.
        FigureForm::Millis if (0.995..9999.995).contains(&number.abs()) => {
            format!("{}\u{a0}ms", fixed(number, 2))
        }
        FigureForm::Millis => format!("{}\u{a0}ms", significant(number)),
        FigureForm::Seconds => scaled(&[(1e-3, "ms"), (1.0, "s")]),
        FigureForm::Bits => {
            scaled(&[(1.0, "b/s"), (1e3, "kb/s"), (1e6, "Mb/s"), (1e9, "Gb/s"), (1e12, "Tb/s")])
        }
        FigureForm::Bytes => scaled(&[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")]),
        FigureForm::Share => format!("{}\u{a0}%", fixed(number * 100.0, 1)),
        FigureForm::Factor if number.abs() < 99.95 => format!("{}\u{a0}×", fixed(number, 2)),
        FigureForm::Factor => format!("{}\u{a0}×", significant(number)),
        FigureForm::Change => change(number),
        FigureForm::Hertz => scaled(&[(1.0, "Hz"), (1e3, "kHz"), (1e6, "MHz")]),
    }
}

/// Ratio from which a change is written as a factor: "10 ×" reads faster than "+900 %".
const FACTOR_FROM: f64 = 10.0;

/// Writes a ratio as a difference: `0.9` is −10 %. From [`FACTOR_FROM`] on it is a factor.
fn change(ratio: f64) -> String {
    if ratio >= FACTOR_FROM {
        return format!("{}\u{a0}×", fixed(ratio, if ratio < 99.95 { 1 } else { 0 }));
    }
    let percent = (ratio - 1.0) * 100.0;
    let text = fixed(percent, if percent.abs() < 99.95 { 1 } else { 0 });
    match text.as_str() {
        "0.0" | "−0.0" => "±0\u{a0}%".into(),
        _ if percent > 0.0 => format!("+{text}\u{a0}%"),
        _ => format!("{text}\u{a0}%"),
    }
}

/// Writes a number with four significant digits, without trailing zeros. Larger numbers are whole, and have an exponent from
/// 10^15 on.
pub(crate) fn significant(number: f64) -> String {
    if !number.is_finite() || number.abs() >= 1e15 {
        return format!("{number:.3e}");
    }
    if number == 0.0 {
        return "0".into();
    }
    let magnitude = number.abs().log10().floor() as i32;
    let decimals = (3 - magnitude).clamp(0, 12) as usize;
    let text = format!("{number:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    group(text)
}

/// Writes a number with a fixed number of decimals.
fn fixed(number: f64, decimals: usize) -> String {
    group(&format!("{number:.decimals$}"))
}

/// Groups the digits of the whole part by threes with narrow spaces, from five digits on.
fn group(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("−", rest));
    let whole = digits.find('.').unwrap_or(digits.len());
    let (whole, rest) = digits.split_at(whole);
    let mut out = sign.to_owned();
    for (index, digit) in whole.chars().enumerate() {
        if whole.len() > 4 && index > 0 && (whole.len() - index) % 3 == 0 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out + rest
}

/// Replaces ASCII arrows and `us` by the proper signs.
pub(crate) fn typeset(text: &str) -> String {
    let text = text.replace("->", "→");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(" us") {
        out.push_str(before);
        let is_unit = out.ends_with(|last: char| last.is_ascii_digit())
            && !after.starts_with(|next: char| next.is_alphanumeric() || next == '_');
        out.push_str(if is_unit { " µs" } else { " us" });
        rest = after;
    }
    out + rest
}

/// Shortens a label to at most `room` characters. Settings lose their sections, and long labels their middle.
pub(crate) fn shortened(label: &str, room: usize) -> String {
    let bare = |part: &str| match part.split_once('=') {
        Some((key, value)) => {
            // The name of a folder may stand in front.
            let (folder, key) = key.split_once(": ").map_or(("", key), |(folder, key)| (folder, key));
            let between = if folder.is_empty() { "" } else { ": " };
            format!("{folder}{between}{}={value}", key.rsplit('.').next().unwrap_or(key))
        }
        None => part.to_owned(),
    };
    // A word is clear without its key. A number keeps the last word of its key.
    let brief = |part: &str| match part.split_once('=') {
        Some((_, word)) if word.starts_with(char::is_alphabetic) && !["true", "false"].contains(&word) => {
            word.to_owned()
        }
        Some((key, value)) => format!("{}={value}", key.rsplit(['.', '_', '-']).next().unwrap_or(key)),
        None => part.to_owned(),
    };
    let each = |form: &dyn Fn(&str) -> String| label.split(", ").map(form).collect::<Vec<_>>().join(", ");
    let fits = |label: &String| label.chars().count() <= room;
    let value = |part: &str| part.split_once('=').map_or(part, |(_, value)| value).to_owned();
    // Values alone are enough if the label has nothing but settings.
    let are_settings = label.split(", ").all(|part| part.contains('=') && !part.contains(": "));
    let values = are_settings.then(|| each(&value));
    if let Some(label) = [Some(each(&bare)), Some(each(&brief)), values].into_iter().flatten().find(fits) {
        return label;
    }
    let label = each(&brief);
    let head = room / 3;
    let start: String = label.chars().take(head).collect();
    let end: String = label.chars().skip(label.chars().count() - (room - head - 1)).collect();
    format!("{start}…{}", end.trim_start())
}

pub(crate) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first: String = characters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    let end = if text.is_empty() || text.ends_with(['.', '!', '?']) { "" } else { "." };
    first + characters.as_str() + end
}

/// Writes a key as words: `fast_retransmits` is "Fast retransmits".
pub(crate) fn words(key: &str) -> String {
    let mut out = String::new();
    for (index, word) in key.split('_').enumerate() {
        if index > 0 {
            out.push(' ');
        }
        let name = NAMES.iter().find(|name| name.eq_ignore_ascii_case(word));
        match (name, index, word.chars().next()) {
            (Some(name), ..) => out.push_str(name),
            (None, 0, Some(first)) => {
                out.extend(first.to_uppercase());
                out.push_str(&word[first.len_utf8()..]);
            }
            _ => out.push_str(word),
        }
    }
    out
}

/// Abbreviations that keep their capitals.
const NAMES: [&str; 9] = ["RTT", "BDP", "RTO", "MSS", "TCP", "ECN", "M21TCP", "DIATCP", "SIRD"];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_read_well() {
        let cases = [
            (json!(18.2899), FigureForm::Millis, "18.29\u{a0}ms"),
            (json!(643.0), FigureForm::Millis, "643.00\u{a0}ms"),
            (json!(0.012_346), FigureForm::Millis, "0.01235\u{a0}ms"),
            (json!(12345.6), FigureForm::Millis, "12\u{202f}346\u{a0}ms"),
            (json!(923_800_000.0), FigureForm::Bits, "923.8\u{a0}Mb/s"),
            (json!(999_990_000), FigureForm::Bits, "1\u{a0}Gb/s"),
            (json!(786_432), FigureForm::Bytes, "786.4\u{a0}kB"),
            (json!(0), FigureForm::Bytes, "0\u{a0}B"),
            (json!(0.4567), FigureForm::Share, "45.7\u{a0}%"),
            (json!(1.05), FigureForm::Factor, "1.05\u{a0}×"),
            (json!(1.123), FigureForm::Change, "+12.3\u{a0}%"),
            (json!(0.9), FigureForm::Change, "−10.0\u{a0}%"),
            (json!(1.0001), FigureForm::Change, "±0\u{a0}%"),
            (json!(0.999_9), FigureForm::Change, "±0\u{a0}%"),
            (json!(9.99), FigureForm::Change, "+899\u{a0}%"),
            (json!(10.0), FigureForm::Change, "10.0\u{a0}×"),
            (json!(35.52), FigureForm::Change, "35.5\u{a0}×"),
            (json!(3622.62), FigureForm::Change, "3623\u{a0}×"),
            (json!(0.0), FigureForm::Change, "−100\u{a0}%"),
            (json!(3977), FigureForm::Number, "3977"),
            (json!(1_234_567), FigureForm::Number, "1\u{202f}234\u{202f}567"),
            (json!(-12.5), FigureForm::Number, "−12.5"),
            (
                json!(u64::MAX),
                FigureForm::Number,
                "18\u{202f}446\u{202f}744\u{202f}073\u{202f}709\u{202f}551\u{202f}615",
            ),
            (json!(true), FigureForm::Number, "yes"),
            (json!(1000), FigureForm::Hertz, "1\u{a0}kHz"),
            (json!(0.25), FigureForm::Seconds, "250\u{a0}ms"),
            (json!(1e300), FigureForm::Number, "1.000e300"),
            (json!("a burst > 64 kB at tor->dcm"), FigureForm::Sentence, "A burst > 64 kB at tor→dcm."),
            (json!("25 us"), FigureForm::Text, "25 µs"),
            (json!("2 us, 3 users, 4 us. let us"), FigureForm::Text, "2 µs, 3 users, 4 µs. let us"),
        ];
        for (value, form, text) in cases {
            assert_eq!(format(&value, form).as_deref(), Some(text), "{value} as {form:?}");
        }
        assert_eq!(format(&json!("no"), FigureForm::Bytes), None);
        assert_eq!(format(&json!([1]), FigureForm::Number), None);
    }

    #[test]
    fn a_key_says_its_unit() {
        assert_eq!(FigureForm::of_key("wait_ms"), (FigureForm::Millis, "Wait".into()));
        assert_eq!(FigureForm::of_key("window_bytes_min"), (FigureForm::Bytes, "Window, min".into()));
        assert_eq!(FigureForm::of_key("marked_share"), (FigureForm::Share, "Marked, share".into()));
        assert_eq!(FigureForm::of_key("marks"), (FigureForm::Number, "Marks".into()));
        assert_eq!(FigureForm::of_key("max"), (FigureForm::Number, "Max".into()));
        assert_eq!(words("fast_retransmits"), "Fast retransmits");
    }

    #[test]
    fn labels_keep_both_ends() {
        assert_eq!(shortened("none", 12), "none");
        assert_eq!(shortened("icc15-147, shaping.credits=396", 30), "icc15-147, credits=396");
        let long = "icc15-147, transport.congestion_control=static, transport.static_window=2";
        assert_eq!(shortened(long, 27), "icc15-147, static, window=2");
        assert_eq!(shortened("transport.receive_offload=false", 16), "offload=false");
        assert_eq!(shortened("icc15-147, transport.static_window=2", 15), "icc15…window=2");
        assert_eq!(shortened("workload.senders=4, workload.request_size=64 kB", 14), "4, 64 kB");
        assert_eq!(shortened("r1: run.seed=2", 14), "r1: seed=2");
    }
}
