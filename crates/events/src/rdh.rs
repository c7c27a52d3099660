//! ALICE pages with raw data headers (RDH) of version 7.
//!
//! An event is a heartbeat frame: all pages of one orbit, anywhere in the file. A source is the system and front-end
//! identifier, `system << 16 | fee`; a fragment is a run of consecutive pages of one source with their headers. If the
//! pages of several sources alternate, a source has one fragment for each of its runs.

use std::collections::HashMap;

use crate::words::{index, u16_at, u32_at};
use crate::{Event, EventId, Fault, Fragment, ReadError};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 64;
/// The supported version.
pub const VERSION: u8 = 7;
const VERSION_MIN: u8 = 3;

pub(crate) fn is_header(bytes: &[u8]) -> bool {
    bytes.len() >= 2
        && (VERSION_MIN..=VERSION + 2).contains(&bytes[0])
        && usize::from(bytes[1]) == HEADER_BYTES
}

/// One page: a header and its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RdhPage {
    /// Offset of the page in bytes from the start of the file.
    pub offset: u64,
    /// Bytes from the start of this page to the next one.
    pub size: u32,
    /// Bytes of header and data in the page.
    pub used: u32,
    /// The source, `system << 16 | fee`.
    pub source: u32,
    /// The heartbeat frame.
    pub orbit: u32,
    /// The bunch crossing.
    pub bc_id: u32,
    /// The number of the page within its source and heartbeat frame, from 0.
    pub counter: u16,
    /// True for the last page of its source and heartbeat frame.
    pub stop: bool,
}

/// Reads the page at `at`.
///
/// # Errors
/// If it is cut off, or not a page of version 7.
pub fn page(bytes: &[u8], at: usize) -> Result<RdhPage, ReadError> {
    let left = bytes.len().saturating_sub(at);
    let header = bytes.get(at..).and_then(|rest| rest.first_chunk::<HEADER_BYTES>());
    let Some(header) = header else {
        let needed = HEADER_BYTES as u64;
        return Err(Fault::Truncated { item: "a page's header", actual: left as u64, needed }.at(at));
    };
    if header[0] != VERSION {
        return Err(Fault::Version { item: "a page's header", actual: u32::from(header[0]) }.at(at));
    }
    if usize::from(header[1]) != HEADER_BYTES {
        let (actual, needed) = (u64::from(header[1]), HEADER_BYTES as u64);
        return Err(Fault::Value { field: "the header's size", actual, needed }.at(at + 1));
    }
    let size = u16_at(header, 8).unwrap_or_default();
    let used = u16_at(header, 10).unwrap_or_default();
    if usize::from(size) < HEADER_BYTES {
        let (actual, min, max) = (u64::from(size), HEADER_BYTES as u64, u64::from(u16::MAX));
        return Err(Fault::Range { field: "the offset to the next page", actual, min, max }.at(at + 8));
    }
    if usize::from(size) > left {
        return Err(Fault::Truncated { item: "a page", actual: left as u64, needed: u64::from(size) }.at(at));
    }
    if usize::from(used) < HEADER_BYTES || used > size {
        let (actual, min, max) = (u64::from(used), HEADER_BYTES as u64, u64::from(size));
        return Err(Fault::Range { field: "a page's used size", actual, min, max }.at(at + 10));
    }
    Ok(RdhPage {
        offset: at as u64,
        size: u32::from(size),
        used: u32::from(used),
        source: u32::from(header[5]) << 16 | u32::from(u16_at(header, 2).unwrap_or_default()),
        orbit: u32_at(header, 20).unwrap_or_default(),
        bc_id: u32_at(header, 16).unwrap_or_default() & 0xfff,
        counter: u16_at(header, 36).unwrap_or_default(),
        stop: header[38] != 0,
    })
}

/// An iterator over the heartbeat frames of a file, in the order of their first pages.
#[derive(Debug, Clone)]
pub struct RdhEvents<'a> {
    bytes: &'a [u8],
    /// The pages of the remaining frames, the next frame last.
    frames: Vec<Vec<RdhPage>>,
    /// The first fault, reported after the frames before it.
    fault: Option<ReadError>,
    /// The offset from which to search for pages after the fault.
    lost: Option<usize>,
}

impl<'a> RdhEvents<'a> {
    /// Makes an iterator over the events in the bytes of a file. It reads the headers of all pages at once.
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut events = Self { bytes, frames: Vec::new(), fault: None, lost: None };
        events.index(0);
        events
    }

    fn index(&mut self, mut at: usize) {
        let mut places: HashMap<u32, usize> = HashMap::new();
        while at < self.bytes.len() {
            match page(self.bytes, at) {
                Ok(page) => {
                    let place = *places.entry(page.orbit).or_insert(self.frames.len());
                    if place == self.frames.len() {
                        self.frames.push(Vec::new());
                    }
                    self.frames[place].push(page);
                    at += index(page.size);
                }
                Err(error) => {
                    self.fault = Some(error);
                    self.lost = Some(at + 1);
                    break;
                }
            }
        }
        self.frames.reverse();
    }

    /// Resumes after an error, as [`crate::Events::resync`] does. Frames after a fault count as new ones, even if an orbit
    /// continues.
    pub(crate) fn resync(&mut self) -> bool {
        if !self.frames.is_empty() || self.fault.is_some() {
            return true;
        }
        let Some(from) = self.lost.take() else { return false };
        let found = (from..self.bytes.len()).find(|&at| page(self.bytes, at).is_ok());
        if let Some(at) = found {
            self.index(at);
        }
        found.is_some()
    }
}

impl<'a> Iterator for RdhEvents<'a> {
    type Item = Result<Event<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(pages) = self.frames.pop() else { return self.fault.take().map(Err) };
        let first = pages.first()?;
        let id = EventId { l1_id: u64::from(first.orbit), bc_id: Some(first.bc_id), run: None };
        let (offset, mut size) = (first.offset, 0);
        let mut fragments: Vec<Fragment<'a>> = Vec::new();
        for page in pages {
            size += u64::from(page.size);
            let start = page.offset as usize;
            let bytes = &self.bytes[start..start + index(page.size)];
            match fragments.last_mut() {
                Some(last)
                    if last.source == page.source && last.offset + last.bytes.len() as u64 == page.offset =>
                {
                    last.bytes = &self.bytes[last.offset as usize..start + bytes.len()];
                }
                _ => fragments.push(Fragment { source: page.source, status: 0, offset: page.offset, bytes }),
            }
        }
        Some(Ok(Event { id, offset, size, fragments }))
    }
}
