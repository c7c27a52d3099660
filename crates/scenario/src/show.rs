//! A resolved scenario as a file: every setting with its origin.

use std::fmt::Write;

use serde_json::Value;

use crate::load::Loaded;
use crate::reference::{json_schema, meaning_of};
use crate::tree::{self, Origin, TomlNode};

/// The column of the origins, if the setting is short enough.
const ORIGIN_COLUMN: usize = 48;

impl Loaded {
    /// Returns the scenario as a complete file with every default; each line has its origin.
    pub fn to_toml_with_origins(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "# {} as resolved; {}", self.name, self.hash());
        if let Ok(toml::Value::Table(table)) = toml::Value::try_from(&self.scenario) {
            self.write_table(&table, "", &mut out);
        }
        out
    }

    /// Returns the scenario as a complete file without origins: the `scenario.toml` of a result folder.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.scenario).unwrap_or_default()
    }

    fn write_table(&self, table: &toml::Table, path: &str, out: &mut String) {
        let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let (tables, values): (Vec<_>, Vec<_>) = table.iter().partition(|(_, value)| is_section(value));
        for (key, value) in values {
            let setting = format!("{key} = {}", inline(value));
            let origin = self.origin(&join(key));
            let _ = writeln!(out, "{setting:<ORIGIN_COLUMN$} # {origin}");
        }
        for (key, value) in tables {
            match value {
                toml::Value::Table(inner) => {
                    let _ = writeln!(out, "\n[{}]", join(key));
                    self.write_table(inner, &join(key), out);
                }
                toml::Value::Array(items) => {
                    for (index, item) in items.iter().enumerate() {
                        let _ = writeln!(out, "\n[[{}]]", join(key));
                        if let toml::Value::Table(inner) = item {
                            self.write_table(inner, &format!("{}.{index}", join(key)), out);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the settings that files and `--set` give, each with its meaning as a comment: a file to begin with.
    pub fn to_toml_with_meanings(&self) -> String {
        let mut out = String::new();
        if let Ok(toml::Value::Table(table)) = toml::Value::try_from(&self.scenario) {
            self.write_meanings(&json_schema(), &table, "", &mut out);
        }
        out
    }

    /// Returns true if a file or `--set` gives a setting, or a setting of a section.
    fn is_written(&self, path: &str) -> bool {
        fn any(node: &TomlNode) -> bool {
            match &node.value {
                tree::Value::Table(table) => table.0.iter().any(|(_, node)| any(node)),
                _ => matches!(node.origin, Origin::Written(_)),
            }
        }
        self.tree.find(path).is_some_and(any)
    }

    fn write_meanings(&self, schema: &Value, table: &toml::Table, path: &str, out: &mut String) {
        let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let written = table.iter().filter(|(key, _)| self.is_written(&join(key)));
        let (sections, values): (Vec<_>, Vec<_>) = written.partition(|(_, value)| is_section(value));
        for (key, value) in values {
            let meaning = meaning_of(schema, &join(key), value.as_str().unwrap_or_default());
            comment(&meaning.unwrap_or_default(), out);
            let _ = writeln!(out, "{key} = {}", inline(value));
        }
        for (key, value) in sections {
            let path = join(key);
            let about = meaning_of(schema, &path, "").unwrap_or_default();
            match value {
                toml::Value::Table(inner) => {
                    out.push('\n');
                    // A section that contains only another section needs no header.
                    let has_values = inner
                        .iter()
                        .any(|(key, value)| !is_section(value) && self.is_written(&format!("{path}.{key}")));
                    if has_values {
                        comment(&about, out);
                        let _ = writeln!(out, "[{path}]");
                    }
                    self.write_meanings(schema, inner, &path, out);
                }
                toml::Value::Array(items) => {
                    for (index, item) in items.iter().enumerate() {
                        out.push('\n');
                        if index == 0 {
                            comment(&about, out);
                        }
                        let _ = writeln!(out, "[[{path}]]");
                        if let toml::Value::Table(inner) = item {
                            for (key, value) in inner {
                                let _ = writeln!(out, "{key} = {}", inline(value));
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the origin of a setting: a file and line, `--set`, another setting, or the default.
    pub fn origin(&self, path: &str) -> String {
        let written = |node: &TomlNode| match &node.origin {
            Origin::Written(place) if place.source.name == "--set" => "--set".to_owned(),
            Origin::Written(place) => format!("{}:{}", place.source.name, place.line()),
            Origin::Derived(words) => (*words).to_owned(),
            Origin::Default => "default".to_owned(),
        };
        // Keys that are optional inside a table have no node of their own.
        self.tree.find(path).map_or_else(|| "default".to_owned(), written)
    }
}

/// Columns of a comment.
const COMMENT_COLUMNS: usize = 100;

/// Writes words as comment lines.
fn comment(words: &str, out: &mut String) {
    let mut line = String::from("#");
    for word in words.split_whitespace() {
        if line.len() + 1 + word.len() > COMMENT_COLUMNS {
            let _ = writeln!(out, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    if line.len() > 1 {
        let _ = writeln!(out, "{line}");
    }
}

fn is_section(value: &toml::Value) -> bool {
    match value {
        // A size model is one setting, and is written on one line.
        toml::Value::Table(table) => !table.contains_key("distribution"),
        toml::Value::Array(items) => items.iter().any(toml::Value::is_table),
        _ => false,
    }
}

fn inline(value: &toml::Value) -> String {
    match value {
        toml::Value::Table(table) => {
            let entries: Vec<_> =
                table.iter().map(|(key, value)| format!("{key} = {}", inline(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}
