//! Reads typed values out of a [`TomlTable`]; every error keeps its place.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

use crate::errors::Problem;
use crate::reference::range_of;
use crate::tree::{SourcePlace, TomlNode, TomlTable, Value};

/// An error of serde with its place; the innermost place wins.
#[derive(Debug)]
pub(crate) struct Error {
    message: String,
    place: Option<SourcePlace>,
    /// The unknown key or value, and the possible names.
    near: Option<(String, &'static [&'static str])>,
    /// The keys that lead to the place, the last one first.
    path: Vec<String>,
}

impl Error {
    fn or_at(mut self, place: Option<&SourcePlace>) -> Self {
        if self.place.is_none() {
            self.place = place.cloned();
        }
        self
    }

    /// Replaces the range of the key's number type by the range in the scenario's schema.
    pub(crate) fn with_range_of_schema(mut self) -> Self {
        let path: Vec<&str> = self.path.iter().rev().map(String::as_str).collect();
        const WORDS: &str = "a whole number from ";
        if let Some((before, _)) = self.message.split_once(WORDS)
            && let Some((min, max)) = range_of(&path)
        {
            self.message = format!("{before}{WORDS}{min} to {max}");
        }
        self
    }

    /// Returns the possible name that is most similar to an unknown key or value; `None` if no name is similar.
    pub(crate) fn near_choice(&self) -> Option<&'static str> {
        let (wrong, expected) = self.near.as_ref()?;
        nearest(wrong, expected.iter().copied())
    }

    pub(crate) fn into_problem(self) -> Problem {
        let mut problem = match self.place {
            Some(place) => Problem::at(place, self.message),
            None => Problem::anywhere(self.message),
        };
        if let Some((wrong, expected)) = self.near {
            problem.help.extend(
                nearest(&wrong, expected.iter().copied()).map(|name| format!("did you mean `{name}`?")),
            );
            problem.help.push(format!("expected one of {}", expected.join(", ")));
        }
        problem
    }
}

/// Translates Serde's expectation for users: `u16` becomes "a whole number from 0 to 65535". Other words stay.
pub fn expected_in_words(expected: &str) -> &str {
    match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" | "u128" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "isize" | "i128" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        section if section.starts_with("struct ") => "a section with keys",
        other => other,
    }
}

/// Returns the name most similar to a wrong one; `None` if no name is similar.
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let folded = wrong.replace('-', "_").to_lowercase();
    names
        .map(|name| (strsim::jaro_winkler(&folded, &name.replace('-', "_").to_lowercase()), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), place: None, near: None, path: Vec::new() }
    }

    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let expected = expected.to_string();
        if unexpected == de::Unexpected::Map && expected == "a sequence" {
            return Self::custom("there may be several of these: write each with double brackets, [[…]]");
        }
        Self::custom(format_args!("invalid type: {unexpected}, expected {}", expected_in_words(&expected)))
    }

    fn invalid_value(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        let expected = expected.to_string();
        Self::custom(format_args!("invalid value: {unexpected}, expected {}", expected_in_words(&expected)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let message = format!("unknown key `{field}`");
        Self { message, place: None, near: Some((field.to_owned(), expected)), path: Vec::new() }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let message = format!("unknown value \"{variant}\"");
        Self { message, place: None, near: Some((variant.to_owned(), expected)), path: Vec::new() }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format_args!("the key `{field}` is missing"))
    }
}

impl<'de> Deserializer<'de> for &TomlNode {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let result = match &self.value {
            Value::String(text) => visitor.visit_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(flag) => visitor.visit_bool(*flag),
            Value::Array(nodes) => visitor.visit_seq(Sequence(nodes.iter())),
            Value::Table(table) => return table.deserialize_any(visitor).map_err(|e| e.or_at(self.place())),
        };
        result.map_err(|error: Error| error.or_at(self.place()))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let result = match &self.value {
            Value::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            other => Err(de::Error::custom(format_args!(
                "expected one of \"{}\", in quotes, not {}",
                names.join("\", \""),
                kind(other)
            ))),
        };
        result.map_err(|error: Error| error.or_at(self.place()))
    }

    /// Refuses a list, which serde would read as a section's keys in the order of its fields.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Value::Array(nodes) = &self.value else { return self.deserialize_any(visitor) };
        let has_tables = nodes.iter().any(|node| matches!(node.value, Value::Table(_)));
        let error: Error = if has_tables {
            de::Error::custom(
                "there is one section of this name: write it with single brackets, […], and once",
            )
        } else {
            de::Error::invalid_type(de::Unexpected::Other("a list"), &visitor)
        };
        Err(error.or_at(self.place()))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

impl<'de> Deserializer<'de> for &TomlTable {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(Entries { rest: self.0.iter(), value: None })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Sequence<'a>(std::slice::Iter<'a, TomlNode>);

impl<'de> de::SeqAccess<'de> for Sequence<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        self.0.next().map(|node| seed.deserialize(node)).transpose()
    }
}

struct Entries<'a> {
    rest: std::slice::Iter<'a, (String, TomlNode)>,
    value: Option<(&'a str, &'a TomlNode)>,
}

impl<'de> de::MapAccess<'de> for Entries<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((key, node)) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some((key, node));
        let key: de::value::StrDeserializer<'_, Error> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|error| error.or_at(node.key.as_ref()))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        match self.value.take() {
            Some((key, node)) => seed.deserialize(node).map_err(|mut error: Error| {
                error.path.push(key.to_owned());
                error
            }),
            None => Err(de::Error::custom("a value was asked for before its key")),
        }
    }
}
