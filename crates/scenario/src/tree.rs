//! A TOML document that keeps the place of every key and value.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::errors::Problem;

/// A source of settings: a file, a preset, or a `--set`.
#[derive(Debug, PartialEq)]
pub(crate) struct SourceText {
    /// The source's name in messages.
    pub(crate) name: String,
    /// The source's whole text.
    pub(crate) text: String,
    /// True if the user gave this file or argument; false for a file that another file extends.
    pub(crate) is_outermost: bool,
}

/// A place in a source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SourcePlace {
    pub(crate) source: Arc<SourceText>,
    pub(crate) span: Range<usize>,
}

impl SourcePlace {
    /// Returns the line, counted from 1.
    pub(crate) fn line(&self) -> usize {
        1 + self.source.text.as_bytes()[..self.span.start.min(self.source.text.len())]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count()
    }
}

/// The origin of a setting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Origin {
    /// A line of a source.
    Written(SourcePlace),
    /// Derived from another setting.
    Derived(&'static str),
    /// The default of its section.
    Default,
}

/// A value and the place of its key.
#[derive(Debug, Clone)]
pub(crate) struct TomlNode {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
    /// The key's own place, for messages about the key.
    pub(crate) key: Option<SourcePlace>,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Array(Vec<TomlNode>),
    Table(TomlTable),
}

/// Keys that name a scenario and set nothing.
const LABELS: [&str; 2] = ["title", "source"];

/// A table, its keys in the order of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct TomlTable(pub(crate) Vec<(String, TomlNode)>);

impl TomlTable {
    /// Returns true if a key sets a value; headers of sections, a title and a source do not count.
    pub(crate) fn has_values(&self) -> bool {
        self.0.iter().any(|(name, node)| match &node.value {
            Value::Table(table) => table.has_values(),
            _ => !LABELS.contains(&name.as_str()),
        })
    }

    pub(crate) fn child(&self, key: &str) -> Option<&TomlNode> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    fn child_mut(&mut self, key: &str) -> Option<&mut TomlNode> {
        self.0.iter_mut().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Returns the node at a dotted path; array elements are named by their number.
    pub(crate) fn find(&self, path: &str) -> Option<&TomlNode> {
        let (first, rest) = path.split_once('.').map_or((path, None), |(a, b)| (a, Some(b)));
        let node = self.child(first)?;
        match rest {
            None => Some(node),
            Some(rest) => node.find(rest),
        }
    }

    /// Merges `over` on top: tables merge, every other value is replaced.
    pub(crate) fn merge(&mut self, over: Self) {
        for (key, node) in over.0 {
            match self.child_mut(&key) {
                Some(TomlNode { value: Value::Table(below), .. }) if matches!(&node.value, Value::Table(above) if above.child("distribution").is_none()) => {
                    if let Value::Table(above) = node.value {
                        below.merge(above);
                    }
                }
                Some(below) => *below = node,
                None => self.0.push((key, node)),
            }
        }
    }

    /// Sets a value at a dotted path if the path has none.
    pub(crate) fn fill(&mut self, path: &str, value: Value, origin: &Origin) {
        let (first, rest) = path.split_once('.').map_or((path, None), |(a, b)| (a, Some(b)));
        match (self.child_mut(first), rest) {
            (None, None) => {
                self.0.push((first.to_owned(), TomlNode { value, origin: origin.clone(), key: None }));
            }
            (None, Some(rest)) => {
                let mut table = Self::default();
                table.fill(rest, value, origin);
                let value = Value::Table(table);
                self.0.push((first.to_owned(), TomlNode { value, origin: origin.clone(), key: None }));
            }
            (Some(TomlNode { value: Value::Table(table), .. }), Some(rest)) => {
                table.fill(rest, value, origin);
            }
            // The path leads through a value; the reader of the tree reports it if it does not fit.
            (Some(_), _) => {}
        }
    }
}

impl TomlNode {
    fn find(&self, path: &str) -> Option<&TomlNode> {
        match &self.value {
            Value::Table(table) => table.find(path),
            Value::Array(nodes) => {
                let (first, rest) = path.split_once('.').map_or((path, None), |(a, b)| (a, Some(b)));
                let node = nodes.get(first.parse::<usize>().ok()?)?;
                rest.map_or(Some(node), |rest| node.find(rest))
            }
            _ => None,
        }
    }

    /// Returns the place of this node's value for messages; `None` for a default or derived value.
    pub(crate) fn place(&self) -> Option<&SourcePlace> {
        match &self.origin {
            Origin::Written(place) => Some(place),
            Origin::Derived(_) | Origin::Default => None,
        }
    }
}

/// Parses a document; reports all of its syntax errors, not only the first.
pub(crate) fn parse(source: &Arc<SourceText>) -> Result<TomlTable, Vec<Problem>> {
    let (document, errors) = DeTable::parse_recoverable(&source.text);
    if !errors.is_empty() {
        return Err(errors
            .iter()
            .map(|error| {
                let span = error.span().unwrap_or(0..0);
                let mut lines = error.message().lines();
                let title = lines.next().unwrap_or("not valid TOML").to_owned();
                let place = SourcePlace { source: Arc::clone(source), span };
                let mut problem = Problem::at(place, format!("not valid TOML: {title}"));
                problem.help.extend(lines.map(str::to_owned));
                problem
            })
            .collect());
    }
    table(document.into_inner(), source, 0).map_err(|problem| vec![*problem])
}

/// Largest depth of nesting; the parser has its own limit as well.
const DEPTH_MAX: usize = 16;

fn table(from: DeTable<'_>, source: &Arc<SourceText>, depth: usize) -> Result<TomlTable, Box<Problem>> {
    let mut to = TomlTable::default();
    for (key, value) in from {
        let key_place = SourcePlace { source: Arc::clone(source), span: key.span() };
        let mut node = node(value, source, depth)?;
        node.key = Some(key_place);
        to.0.push((key.into_inner().into_owned(), node));
    }
    Ok(to)
}

fn node(
    from: Spanned<DeValue<'_>>,
    source: &Arc<SourceText>,
    depth: usize,
) -> Result<TomlNode, Box<Problem>> {
    let place = SourcePlace { source: Arc::clone(source), span: from.span() };
    let refuse = |message: &str| Err(Box::new(Problem::at(place.clone(), message.to_owned())));
    if depth > DEPTH_MAX {
        return refuse("tables are nested too deeply");
    }
    let value = match from.into_inner() {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => {
                return refuse(
                    "a whole number above 9223372036854775807, the largest of TOML, or below its smallest",
                );
            }
        },
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => Value::Float(number),
            _ => return refuse("not a finite number"),
        },
        DeValue::Boolean(flag) => Value::Boolean(flag),
        DeValue::Datetime(_) => return refuse("a scenario holds no dates"),
        DeValue::Array(items) => Value::Array(
            items.into_iter().map(|item| node(item, source, depth + 1)).collect::<Result<_, _>>()?,
        ),
        DeValue::Table(inner) => Value::Table(table(inner, source, depth + 1)?),
    };
    Ok(TomlNode { value, origin: Origin::Written(place), key: None })
}
