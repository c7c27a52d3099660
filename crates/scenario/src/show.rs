//! A resolved scenario as a file: every setting with its origin.

use std::fmt::Write;

use crate::load::Loaded;
use crate::tree::Origin;

/// The column of the origins, if the setting is short enough.
const ORIGIN_COLUMN: usize = 48;

impl Loaded {
    /// The scenario as a complete file with every default; each line has its origin.
    pub fn to_toml_with_origins(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "# {} as resolved; {}", self.name, self.hash());
        if let Ok(toml::Value::Table(table)) = toml::Value::try_from(&self.scenario) {
            self.write_table(&table, "", &mut out);
        }
        out
    }

    /// The same without the origins: the `scenario.toml` of a result folder.
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

    /// The origin of a setting: a file and line, `--set`, another setting, or the default.
    pub fn origin(&self, path: &str) -> String {
        let written = |node: &crate::tree::TomlNode| match &node.origin {
            Origin::Written(place) if place.source.name == "--set" => "--set".to_owned(),
            Origin::Written(place) => format!("{}:{}", place.source.name, place.line()),
            Origin::Derived(words) => (*words).to_owned(),
            Origin::Default => "default".to_owned(),
        };
        // Keys that are optional inside a table have no node of their own.
        self.tree.find(path).map_or_else(|| "default".to_owned(), written)
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
