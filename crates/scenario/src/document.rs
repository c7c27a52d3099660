//! Configuration files other than scenarios, read with the same errors: every problem with its line, column and a correct
//! value.

use std::path::Path;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::errors::{Errors, Problem};
use crate::tree::{self, SourcePlace, SourceText, TomlNode, TomlTable, Value};

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A TOML file that keeps the place of every key and value.
#[derive(Debug, Clone)]
pub struct Document {
    tree: TomlTable,
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read, is above 16 MiB or is not TOML.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        let name = path.display().to_string();
        let fail = |error: &dyn std::fmt::Display| {
            Errors(vec![Problem::anywhere(format!("cannot read {name}: {error}"))])
        };
        let bytes = std::fs::metadata(path).map_err(|error| fail(&error))?.len();
        if bytes > FILE_BYTES_MAX {
            let message = format_args!("the configuration has {bytes} bytes; the limit is {FILE_BYTES_MAX}");
            return Err(fail(&message));
        }
        let text = std::fs::read_to_string(path).map_err(|error| fail(&error))?;
        Self::parse(&name, &text)
    }

    /// Loads as [`Self::load`] does, from text that messages call `name`.
    ///
    /// # Errors
    /// Every syntax error.
    pub fn parse(name: &str, text: &str) -> Result<Self, Errors> {
        let source = SourceText { name: name.to_owned(), text: text.to_owned(), is_outermost: true };
        Ok(Self { tree: tree::parse(&Arc::new(source)).map_err(Errors)? })
    }

    /// Reads the content as a `T`. Each section, and each element of a list of sections, is read by itself first, so that one
    /// mistake does not hide another. Therefore `T` must have a default for every key of the top level.
    ///
    /// # Errors
    /// Every mismatch with `T`: unknown keys with the near miss, wrong kinds and values.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Errors> {
        let mut problems = Vec::new();
        let mut attempt = |key: &str, node: TomlNode| {
            if let Err(error) = T::deserialize(&TomlTable(vec![(key.to_owned(), node)])) {
                problems.push(error.into_problem());
            }
        };
        for (key, node) in &self.tree.0 {
            match &node.value {
                Value::Array(items) if !items.is_empty() => {
                    for item in items {
                        let value = Value::Array(vec![item.clone()]);
                        attempt(key, TomlNode { value, ..node.clone() });
                    }
                }
                _ => attempt(key, node.clone()),
            }
        }
        if !problems.is_empty() {
            return Err(Errors(problems));
        }
        T::deserialize(&self.tree).map_err(|error| Errors(vec![error.into_problem()]))
    }

    /// Returns true if a dotted path has a value; elements of lists are numbered, as in `port.2.rate`.
    pub fn has(&self, path: &str) -> bool {
        self.tree.find(path).is_some()
    }

    /// Makes a problem at a dotted path, or at the nearest section around the path if the path has no value.
    pub fn problem(&self, path: &str, message: impl Into<String>) -> Problem {
        match self.place(path) {
            Some(place) => Problem::at(place.clone(), message.into()),
            None => Problem::anywhere(message.into()),
        }
    }

    fn place(&self, mut path: &str) -> Option<&SourcePlace> {
        loop {
            if let Some(node) = self.tree.find(path) {
                // The header of a section is a better place than the section's first value.
                let of_table = matches!(node.value, Value::Table(_)).then_some(node.key.as_ref()).flatten();
                return of_table.or_else(|| node.place());
            }
            path = path.rsplit_once('.')?.0;
        }
    }
}

impl Problem {
    /// Adds a label to the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a correct value or a remedy.
    #[must_use]
    pub fn advise(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Adds a second place of the same document, as a secondary label.
    #[must_use]
    pub fn secondary(mut self, document: &Document, path: &str, label: impl Into<String>) -> Self {
        if let Some(place) = document.place(path) {
            self.other = Some((place.clone(), label.into()));
        }
        self
    }

    /// Adds the name most similar to a wrong one, if any is similar.
    #[must_use]
    pub fn near<'a>(self, wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Self {
        match crate::de::nearest(wrong, names.into_iter()) {
            Some(name) => self.advise(format!("did you mean `{name}`?")),
            None => self,
        }
    }
}

impl From<Vec<Problem>> for Errors {
    fn from(problems: Vec<Problem>) -> Self {
        Self(problems)
    }
}

impl From<Vec<Problem>> for crate::Warnings {
    fn from(problems: Vec<Problem>) -> Self {
        Self(problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct File {
        rate: Option<fanin_units::Rate>,
        port: Vec<Port>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Port {
        name: String,
    }

    #[test]
    fn every_mistake_is_found_and_placed() {
        let text = "rate = 10\n\n[[port]]\nname = \"a\"\n\n[[port]]\nnane = \"b\"\n";
        let errors = Document::parse("x.toml", text).unwrap().read::<File>().unwrap_err();
        let places: Vec<_> = errors.problems().iter().map(|p| p.location().unwrap()).collect();
        assert_eq!(places, [("x.toml", 1, 8), ("x.toml", 7, 1)]);
        assert!(errors.render(false).contains("did you mean `name`?"), "{errors}");
    }

    #[test]
    fn read_values_can_be_blamed_later() {
        let text = "rate = \"1 Gb/s\"\n[[port]]\nname = \"a\"\n";
        let document = Document::parse("x.toml", text).unwrap();
        let file: File = document.read().unwrap();
        assert_eq!((file.rate.unwrap().get(), file.port[0].name.as_str()), (1_000_000_000, "a"));
        let problem = document.problem("port.0.name", "taken").secondary(&document, "rate", "by this");
        assert_eq!(problem.location(), Some(("x.toml", 3, 8)));
        assert_eq!(document.problem("port.0.missing", "?").location().unwrap().1, 2);
        assert!(document.has("port.0") && !document.has("port.1"));
        let rendered = Errors::from(vec![problem.label("here").near("rat", ["rate"])]).render(false);
        assert!(rendered.contains("by this") && rendered.contains("did you mean `rate`?"), "{rendered}");
    }
}
