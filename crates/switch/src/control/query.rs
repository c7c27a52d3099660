//! Query parameters and percent-encoding.

use std::collections::BTreeMap;

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::control::answer::Refusal;

/// A parameter of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) kind: ParameterKind,
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ParameterKind {
    /// Any text of 1 to 64 bytes.
    Text,
    /// A whole number within bounds, with its default.
    Number { min: u64, max: u64, default: u64 },
}

/// The longest text of a parameter.
const TEXT_BYTES_MAX: usize = 64;

impl ParameterKind {
    /// Returns the parameter's JSON Schema.
    pub(crate) fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string", "minLength": 1, "maxLength": TEXT_BYTES_MAX}),
            Self::Number { min, max, default } => {
                json!({"type": "integer", "minimum": min, "maximum": max, "default": default})
            }
        }
    }
}

/// The parameters of one request, checked.
#[derive(Debug, Default)]
pub(crate) struct Query {
    texts: BTreeMap<&'static str, String>,
    numbers: BTreeMap<&'static str, u64>,
}

impl Query {
    /// Parses the query of a request. Each error is a refusal with status 400.
    pub(crate) fn parse(text: Option<&str>, known: &'static [Parameter]) -> Result<Self, Refusal> {
        let bad = |detail: String| Refusal::new(StatusCode::BAD_REQUEST, detail);
        let mut query = Self::default();
        for parameter in known {
            if let ParameterKind::Number { default, .. } = parameter.kind {
                query.numbers.insert(parameter.name, default);
            }
        }
        let mut seen: Vec<&str> = Vec::new();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name, true)?, decode(value, true)?);
            let Some(parameter) = known.iter().find(|parameter| parameter.name == name) else {
                let names: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(bad(format!("unknown parameter `{name}`; known here: {names}")));
            };
            if seen.contains(&parameter.name) {
                return Err(bad(format!("`{name}` is given twice")));
            }
            seen.push(parameter.name);
            match parameter.kind {
                ParameterKind::Text if value.is_empty() || value.chars().count() > TEXT_BYTES_MAX => {
                    let length = value.chars().count();
                    return Err(bad(format!("`{name}` has 1 to {TEXT_BYTES_MAX} characters, not {length}")));
                }
                ParameterKind::Text => {
                    query.texts.insert(parameter.name, value);
                }
                ParameterKind::Number { min, max, .. } => {
                    let number = Some(value.as_str())
                        .filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()))
                        .and_then(|value| value.parse().ok())
                        .filter(|number| (min..=max).contains(number));
                    let wrong =
                        || bad(format!("`{name}` is a whole number from {min} to {max}, not `{value}`"));
                    query.numbers.insert(parameter.name, number.ok_or_else(wrong)?);
                }
            }
        }
        Ok(query)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        self.numbers.get(name).copied().unwrap_or_default()
    }
}

/// Decodes percent-encoding (RFC 3986 §2.1); `+` is a space in a query only.
pub(crate) fn decode(text: &str, is_query: bool) -> Result<String, Refusal> {
    let bad = || Refusal::new(StatusCode::BAD_REQUEST, format_args!("`{text}` is not percent-encoded UTF-8"));
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(bytes.next()), digit(bytes.next()));
                let (Some(high), Some(low)) = (high, low) else { return Err(bad()) };
                out.push((high * 16 + low) as u8);
            }
            b'+' if is_query => out.push(b' '),
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).map_err(|_| bad())
}

/// Percent-encodes all but unreserved characters.
pub(crate) fn encode(text: &str) -> String {
    use std::fmt::Write;

    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Parameter] = &[
        Parameter { name: "port", about: "", kind: ParameterKind::Text },
        Parameter {
            name: "seconds",
            about: "",
            kind: ParameterKind::Number { min: 1, max: 600, default: 10 },
        },
    ];

    #[test]
    fn parameters_are_read() {
        let query = Query::parse(Some("port=a%20b%2Fc"), KNOWN).unwrap();
        assert_eq!((query.text("port"), query.number("seconds")), (Some("a b/c"), 10));
        assert_eq!(Query::parse(None, KNOWN).unwrap().text("port"), None);
        for text in ["", "ä/ \"%", "a&b=c+d", "\n\u{1F600}"] {
            assert_eq!(decode(&encode(text), true).unwrap(), text);
            assert_eq!(decode(&encode(text), false).unwrap(), text);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("prot=a", "unknown parameter `prot`; known here: port, seconds"),
            ("seconds=0", "from 1 to 600, not `0`"),
            ("seconds=+7", "from 1 to 600, not ` 7`"),
            ("seconds=99999999999999999999", "from 1 to 600"),
            ("port=a&port=b", "`port` is given twice"),
            ("port=", "1 to 64 characters, not 0"),
            ("port=%zz", "not percent-encoded"),
            ("port=%ff", "not percent-encoded"),
        ] {
            let refusal = Query::parse(Some(text), KNOWN).unwrap_err();
            assert!(serde_json::to_string(&refusal).unwrap().contains(message), "{text}: {refusal:?}");
        }
    }
}
