//! Reads events from a file, with or without file records.

use super::header::{FragmentHeader, FragmentLevel, FullEvent, header};
use super::rod::rod;
use super::{
    EVENT_RECORD, FILE_END, FILE_END_LAST, FILE_NAMES, FILE_START, FREE_STRINGS, FULL_EVENT, RUN_PARAMETERS,
};
use crate::event::Position;
use crate::words::{index, slice_at, u32_at, words_at};
use crate::{Event, Fault, Fragment, ReadError};

const FILE_START_WORDS: usize = 8;
const EVENT_RECORD_WORDS: usize = 4;
const FILE_END_WORDS: usize = 10;
/// Possible sizes of the record, with detector masks of one word, as in BESIII, or of two, as in ATLAS.
const RUN_PARAMETERS_WORDS: [usize; 2] = [9, 10];
/// Most texts in a record. No file has more, and the limit bounds the work that a false count can cause.
const STRINGS_MAX: usize = 65_536;

/// One record or event of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileRecord {
    /// A record without an event.
    Other {
        /// Offset of the next record.
        next: usize,
    },
    /// A full-event fragment.
    Event {
        /// Offset of its first byte.
        at: usize,
        /// Offset after it.
        end: usize,
        /// The number of the data block in its event record, if it has one.
        block: Option<u32>,
    },
    /// The record that ends a file.
    End {
        /// Offset after it.
        next: usize,
        /// Number of events in the record.
        events: u32,
    },
}

/// Reads the record at `at`.
///
/// # Errors
/// If it is cut off or unknown, or one of its sizes does not fit.
pub(crate) fn record(bytes: &[u8], at: usize) -> Result<FileRecord, ReadError> {
    let end = bytes.len();
    let two = words_at(bytes, at, 2, end, "a record")?;
    let (marker, size) = (two.word(0), index(two.word(1)));
    let fixed = |needed: usize, item: &'static str| {
        if size == needed {
            words_at(bytes, at, needed, end, item)
        } else {
            let (actual, needed) = (size as u64, needed as u64);
            Err(Fault::Value { field: "a record's size in words", actual, needed }.at(at + 4))
        }
    };
    Ok(match marker {
        FULL_EVENT => {
            slice_at(bytes, at, size.saturating_mul(4), end, "a full event")?;
            FileRecord::Event { at, end: at + size * 4, block: None }
        }
        EVENT_RECORD => {
            let words = fixed(EVENT_RECORD_WORDS, "an event record")?;
            let (at, len) = (at + EVENT_RECORD_WORDS * 4, index(words.word(3)));
            slice_at(bytes, at, len, end, "the event behind its record")?;
            FileRecord::Event { at, end: at + len, block: Some(words.word(2)) }
        }
        FILE_START => {
            fixed(FILE_START_WORDS, "the file's first record")?;
            FileRecord::Other { next: at + FILE_START_WORDS * 4 }
        }
        RUN_PARAMETERS => {
            let needed = if size == RUN_PARAMETERS_WORDS[0] { size } else { RUN_PARAMETERS_WORDS[1] };
            fixed(needed, "the run parameters")?;
            FileRecord::Other { next: at + size * 4 }
        }
        FILE_NAMES => FileRecord::Other { next: strings(bytes, at + 4, 2)?.0 },
        FREE_STRINGS => FileRecord::Other { next: free_strings(bytes, at, size)? },
        FILE_END => {
            let words = fixed(FILE_END_WORDS, "the end record")?;
            let last = words.word(FILE_END_WORDS - 1);
            if last != FILE_END_LAST {
                let fault = Fault::Marker { actual: last, needed: "the last word of the end record" };
                return Err(fault.at(at + (FILE_END_WORDS - 1) * 4));
            }
            FileRecord::End { next: at + FILE_END_WORDS * 4, events: words.word(4) }
        }
        _ => return Err(Fault::Marker { actual: marker, needed: "a record" }.at(at)),
    })
}

/// Skips `count` texts, each padded to whole words and preceded by its length in bytes. Returns the offset after them
/// and the last text.
fn strings(bytes: &[u8], mut at: usize, count: usize) -> Result<(usize, &[u8]), ReadError> {
    let mut last: &[u8] = &[];
    for _ in 0..count {
        let len = index(words_at(bytes, at, 1, bytes.len(), "a text's length")?.word(0));
        let padded = len.checked_next_multiple_of(4).unwrap_or(usize::MAX);
        last = &slice_at(bytes, at + 4, padded, bytes.len(), "a text")?[..len];
        at += 4 + padded;
    }
    Ok((at, last))
}

fn free_strings(bytes: &[u8], at: usize, count: usize) -> Result<usize, ReadError> {
    if count > STRINGS_MAX {
        let (actual, max) = (count as u64, STRINGS_MAX as u64);
        return Err(Fault::Range { field: "the number of texts", actual, min: 0, max }.at(at + 4));
    }
    let mut next = at + 8;
    for _ in 0..count {
        let place = next;
        let text;
        (next, text) = strings(bytes, next, 1)?;
        // The record of a compressed file has this text. Its events do not begin with a marker.
        if let Some(method) = text.strip_prefix(b"Compression=")
            && !method.eq_ignore_ascii_case(b"none")
        {
            return Err(Fault::Compressed { method: u32_at(method, 0).unwrap_or_default() }.at(place));
        }
    }
    Ok(next)
}

/// Calls `visit` for a full event's header and the headers of all fragments inside it, in the file's order.
///
/// # Errors
/// The fault of a header, or the error that `visit` returns.
pub(crate) fn walk<'a>(
    bytes: &'a [u8],
    at: usize,
    end: usize,
    visit: &mut dyn FnMut(&FragmentHeader<'a>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let event = header(bytes, at, end)?;
    if event.level != FragmentLevel::FullEvent {
        let actual = u32_at(bytes, at).unwrap_or_default();
        return Err(Fault::Marker { actual, needed: "a full event" }.at(at));
    }
    if event.end != end {
        let (actual, needed) = ((event.end - at) as u64, (end - at) as u64);
        return Err(Fault::Value { field: "the event's size in bytes", actual, needed }.at(at + 4));
    }
    visit(&event)?;
    children(bytes, &event, visit)
}

/// Visits the fragments inside a fragment. Each level holds only lower ones, so that the recursion is at most three levels
/// deep.
fn children<'a>(
    bytes: &'a [u8],
    parent: &FragmentHeader<'a>,
    visit: &mut dyn FnMut(&FragmentHeader<'a>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut at = parent.payload;
    while at < parent.payload_end {
        let child = header(bytes, at, parent.payload_end)?;
        if child.level <= parent.level {
            let actual = u32_at(bytes, at).unwrap_or_default();
            return Err(Fault::Marker { actual, needed: "a fragment of a lower level" }.at(at));
        }
        visit(&child)?;
        if child.level != FragmentLevel::Rob {
            children(bytes, &child, visit)?;
        }
        at = child.end;
    }
    Ok(())
}

/// Returns the source's bytes in a ROB fragment: the whole fragment, or the bytes that a writer wrapped in it.
pub(crate) fn fragment<'a>(bytes: &'a [u8], rob: &FragmentHeader<'a>) -> Fragment<'a> {
    let inside = rod(bytes, rob.payload, rob.payload_end).ok();
    let (offset, bytes) = match inside.and_then(|rod| Some((rod.data_at, rod.wrapped()?))) {
        Some(wrapped) => wrapped,
        None => (rob.at, &bytes[rob.at..rob.end]),
    };
    Fragment { source: rob.source, status: rob.status, offset: offset as u64, bytes }
}

/// An iterator over the events of an ATLAS-style file.
#[derive(Debug, Clone)]
pub struct AtlasEvents<'a> {
    bytes: &'a [u8],
    position: Position,
}

impl<'a> AtlasEvents<'a> {
    /// Makes an iterator over the events in the bytes of a file, with or without file records.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: Position::At(0) }
    }

    /// Resumes after an error, as [`crate::Events::resync`] does.
    pub(crate) fn resync(&mut self) -> bool {
        let Position::Lost(from) = self.position else { return true };
        let found = find_record(self.bytes, from);
        if let Some(at) = found {
            self.position = Position::At(at);
        }
        found.is_some()
    }
}

/// Finds the next event record, event or end record at or after `from`, judged by marker and size.
pub(crate) fn find_record(bytes: &[u8], from: usize) -> Option<usize> {
    (from..bytes.len().saturating_sub(7)).find(|&at| begins_record(bytes, at))
}

/// Returns true if an event record, an event or an end record begins at `at`, judged by marker and size.
fn begins_record(bytes: &[u8], at: usize) -> bool {
    matches!(u32_at(bytes, at), Some(EVENT_RECORD | FULL_EVENT | FILE_END)) && record(bytes, at).is_ok()
}

/// Reads the event at `at..end`.
pub(crate) fn event(bytes: &[u8], at: usize, end: usize) -> Result<Event<'_>, ReadError> {
    let mut fragments = Vec::new();
    let mut id = None;
    walk(bytes, at, end, &mut |header| {
        match header.level {
            FragmentLevel::FullEvent => id = Some(FullEvent::read(header)?.id),
            FragmentLevel::Rob => fragments.push(fragment(bytes, header)),
            FragmentLevel::SubDetector | FragmentLevel::Ros => {}
        }
        Ok(())
    })?;
    Ok(Event { id: id.unwrap_or_default(), offset: at as u64, size: (end - at) as u64, fragments })
}

/// Returns the offset at which to continue after a fault in the record at `at`.
pub(crate) fn behind_fault(bytes: &[u8], at: usize) -> usize {
    match record(bytes, at) {
        // The size in the event record is damaged, and the event's own leads to a record.
        Ok(FileRecord::Event { at: inner, end, block: Some(_) })
            if matches!(record(bytes, inner), Ok(FileRecord::Event { end: own, .. })
                if own != end && begins_record(bytes, own)) =>
        {
            inner
        }
        // A damaged size would lead into a later event.
        Ok(FileRecord::Event { end, .. }) if end == bytes.len() || begins_record(bytes, end) => {
            end.max(at + 1)
        }
        _ => at + 1,
    }
}

impl<'a> Iterator for AtlasEvents<'a> {
    type Item = Result<Event<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Position::At(mut at) = self.position else { return None };
        while at < self.bytes.len() {
            let result = record(self.bytes, at).and_then(|record| {
                Ok(match record {
                    FileRecord::Other { next } | FileRecord::End { next, .. } => (next, None),
                    FileRecord::Event { at, end, .. } => (end, Some(event(self.bytes, at, end)?)),
                })
            });
            match result {
                Ok((next, None)) => at = next,
                Ok((next, Some(event))) => {
                    self.position = Position::At(next);
                    return Some(Ok(event));
                }
                Err(error) => {
                    self.position = Position::Lost(behind_fault(self.bytes, at));
                    return Some(Err(error));
                }
            }
        }
        self.position = Position::At(at);
        None
    }
}
