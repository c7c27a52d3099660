//! The events of a file in any supported format.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::words::{u32_at, u64_at};
use crate::{Event, Fault, ReadError, atlas, frag, mdf, rdh};

/// The supported formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// ATLAS-style bytestream, with or without file records (thesis §3.7.1).
    Atlas,
    /// LHCb MDF with raw banks.
    Mdf,
    /// ALICE pages with raw data headers (RDH) of version 7.
    Rdh,
    /// The plain fragment container.
    Frag,
}

impl Format {
    /// All supported formats.
    pub const ALL: [Self; 4] = [Self::Atlas, Self::Mdf, Self::Rdh, Self::Frag];

    /// Returns the name in commands and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Atlas => "atlas",
            Self::Mdf => "mdf",
            Self::Rdh => "rdh",
            Self::Frag => "frag",
        }
    }

    /// Detects the format from a file's first bytes; `None` for other files.
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        let first = u32_at(bytes, 0)?;
        if u64_at(bytes, 0) == Some(frag::MAGIC) {
            Some(Self::Frag)
        } else if matches!(first, atlas::FILE_START | atlas::FULL_EVENT) {
            Some(Self::Atlas)
        } else if mdf::is_header(bytes) {
            Some(Self::Mdf)
        } else if rdh::is_header(bytes) {
            Some(Self::Rdh)
        } else {
            None
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or(UnknownName)
    }
}

/// An error: no format has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a format: use atlas, mdf, rdh or frag")]
pub struct UnknownName;

/// An iterator over the events of a file.
///
/// After an error the iterator ends, unless [`Events::resync`] finds another event.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    reader: Reader<'a>,
}

#[derive(Debug, Clone)]
enum Reader<'a> {
    Atlas(atlas::AtlasEvents<'a>),
    Mdf(mdf::MdfEvents<'a>),
    Rdh(rdh::RdhEvents<'a>),
    Frag(frag::FragEvents<'a>),
}

impl<'a> Events<'a> {
    /// Reads the events of a file, and detects the format from the content.
    ///
    /// # Errors
    /// If no format begins with these bytes.
    pub fn open(bytes: &'a [u8]) -> Result<Self, ReadError> {
        match Format::detect(bytes) {
            Some(format) => Ok(Self::with_format(bytes, format)),
            None if bytes.is_empty() => Err(Fault::Empty.at(0)),
            None if bytes.len() < 4 => {
                Err(Fault::Truncated { item: "a file", actual: bytes.len() as u64, needed: 4 }.at(0))
            }
            None => Err(Fault::UnknownFormat { actual: u32_at(bytes, 0).unwrap_or_default() }.at(0)),
        }
    }

    /// Makes an iterator over the events of a file of a known format.
    pub fn with_format(bytes: &'a [u8], format: Format) -> Self {
        let reader = match format {
            Format::Atlas => Reader::Atlas(atlas::AtlasEvents::new(bytes)),
            Format::Mdf => Reader::Mdf(mdf::MdfEvents::new(bytes)),
            Format::Rdh => Reader::Rdh(rdh::RdhEvents::new(bytes)),
            Format::Frag => Reader::Frag(frag::FragEvents::new(bytes)),
        };
        Self { reader }
    }

    /// Returns the format that is read.
    pub const fn format(&self) -> Format {
        match self.reader {
            Reader::Atlas(_) => Format::Atlas,
            Reader::Mdf(_) => Format::Mdf,
            Reader::Rdh(_) => Format::Rdh,
            Reader::Frag(_) => Format::Frag,
        }
    }

    /// Searches after an error for the next offset at which an event may begin. Returns false if there is none.
    ///
    /// All searches together pass over the file once, with any number of faults.
    pub fn resync(&mut self) -> bool {
        match &mut self.reader {
            Reader::Atlas(events) => events.resync(),
            Reader::Mdf(events) => events.resync(),
            Reader::Rdh(events) => events.resync(),
            Reader::Frag(events) => events.resync(),
        }
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<Event<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.reader {
            Reader::Atlas(events) => events.next(),
            Reader::Mdf(events) => events.next(),
            Reader::Rdh(events) => events.next(),
            Reader::Frag(events) => events.next(),
        }
    }
}
