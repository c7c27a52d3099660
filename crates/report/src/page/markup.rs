//! Text into markup that is well-formed both as HTML and as XML.

use std::fmt::Write;

use serde_json::Value;

use super::format::{FigureForm, format};

/// Escapes text for use between tags and in quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            // Neither HTML nor XML can hold these.
            '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
    out
}

/// Escapes JSON text for a script element: no character ends the element or starts a tag.
pub(crate) fn json_for_script(tree: &Value) -> String {
    let text = tree.to_string();
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for character in text.chars() {
        match character {
            // In JSON these characters occur only within strings, where an escape has the same meaning.
            '<' | '>' | '&' | '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out
}

/// Escapes a key as a part of a JSON pointer (RFC 6901 §3).
pub(crate) fn pointer_part(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Writes a figure of the page's data, with the JSON pointer to its value. `None` without such a figure.
pub(crate) fn figure(data: &Value, pointer: &str, form: FigureForm) -> Option<String> {
    let value = data.pointer(pointer)?;
    let text = format(value, form)?;
    let raw = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some(format!(
        r#"<data value="{}" data-key="{}" data-as="{}">{}</data>"#,
        escape(&raw),
        escape(pointer),
        form.name(),
        escape(&text)
    ))
}

/// Writes the ratio of two figures of the page's data; `None` if the second is not above zero.
pub(crate) fn ratio(data: &Value, pointer: &str, over: &str, form: FigureForm) -> Option<String> {
    let (value, over_value) = (data.pointer(pointer)?.as_f64()?, data.pointer(over)?.as_f64()?);
    let ratio = value / over_value;
    let sound = over_value > 0.0 && ratio.is_finite();
    sound.then(|| {
        format!(
            r#"<data value="{ratio}" data-key="{}" data-over="{}" data-as="{}">{}</data>"#,
            escape(pointer),
            escape(over),
            form.name(),
            escape(&super::format::format_f64(ratio, form))
        )
    })
}
