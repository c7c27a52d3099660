//! The scenario in the making: settings with their source, and the keys that were not taken.

use std::fmt::Write;

/// A key of a file that is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedKey {
    /// The key, as in the file.
    pub key: String,
    /// The reason for which the key is not taken.
    pub why: String,
}

/// A setting, with its source key in the file.
#[derive(Debug, Clone)]
struct TakenSetting {
    key: String,
    value: toml::Value,
    from: String,
}

/// The result of an import.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The name of the format.
    pub format: &'static str,
    /// Keys of the file that have no counterpart, each with the reason.
    pub refused: Vec<RefusedKey>,
    /// Remarks on how the file was understood.
    pub remarks: Vec<String>,
    title: String,
    extends: Option<String>,
    taken: Vec<TakenSetting>,
}

impl Imported {
    /// Returns the scenario as TOML: settings with their source, and the refused keys as comments.
    pub fn to_toml(&self) -> String {
        let text = |text: &str| toml::Value::String(text.to_owned());
        let mut out = String::new();
        for remark in &self.remarks {
            comment(&mut out, "", remark);
        }
        // Writing to a string cannot fail.
        if let Some(extends) = &self.extends {
            let _ = writeln!(out, "extends = {}", text(extends));
        }
        let _ = writeln!(out, "title = {}", text(&self.title));
        let mut sections: Vec<&str> = Vec::new();
        for setting in &self.taken {
            let section = section(&setting.key).0;
            if !sections.contains(&section) {
                sections.push(section);
            }
        }
        for name in sections {
            let _ = writeln!(out, "\n[{name}]");
            for setting in self.taken.iter().filter(|setting| section(&setting.key).0 == name) {
                let _ = writeln!(out, "{} = {}  # {}", section(&setting.key).1, setting.value, setting.from);
            }
        }
        if !self.refused.is_empty() {
            out.push_str("\n# Not taken:\n");
        }
        for refused in &self.refused {
            comment(&mut out, "- ", &format!("{}: {}", refused.key, refused.why));
        }
        out
    }
}

/// Splits a dotted key into section and name; the section may be empty.
fn section(key: &str) -> (&str, &str) {
    key.rsplit_once('.').unwrap_or(("", key))
}

/// Writes comment lines of at most 110 letters.
fn comment(out: &mut String, mark: &str, text: &str) {
    const WIDTH: usize = 108;
    let mut line = String::from(mark);
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(out, "# {}", line.trim_end());
            line = " ".repeat(mark.len());
        }
        if !line.ends_with(' ') && !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(out, "# {}", line.trim_end());
}

/// A scenario in the making.
pub(super) struct Draft {
    name: String,
    imported: Imported,
}

impl Draft {
    pub(super) fn new(name: &str, extends: Option<&str>) -> Self {
        let imported = Imported {
            format: "",
            refused: Vec::new(),
            remarks: Vec::new(),
            title: String::new(),
            extends: extends.map(str::to_owned),
            taken: Vec::new(),
        };
        Self { name: name.to_owned(), imported }
    }

    /// Sets the format, and the name that the file gives itself.
    pub(super) fn is_from(&mut self, format: &'static str, name: Option<&str>) {
        self.imported.format = format;
        self.imported.title = format!("{}, imported from {format}", name.unwrap_or(&self.name));
    }

    /// Sets a key; `from` is its source in the file.
    pub(super) fn take(
        &mut self,
        key: impl Into<String>,
        value: impl Into<toml::Value>,
        from: impl Into<String>,
    ) {
        self.imported.taken.push(TakenSetting { key: key.into(), value: value.into(), from: from.into() });
    }

    /// Notes a key that is not taken, with the reason, once.
    pub(super) fn refuse(&mut self, key: impl Into<String>, why: impl Into<String>) {
        let refused = RefusedKey { key: key.into(), why: why.into() };
        if !self.imported.refused.contains(&refused) {
            self.imported.refused.push(refused);
        }
    }

    /// Adds a remark on how the file was understood.
    pub(super) fn remark(&mut self, text: impl Into<String>) {
        self.imported.remarks.push(text.into());
    }

    pub(super) fn finish(self) -> Imported {
        self.imported
    }
}
