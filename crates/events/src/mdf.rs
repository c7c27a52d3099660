//! LHCb's MDF files: events of raw banks.
//!
//! Header version 3 with banks in the body, as `MDFHeader` and `RawBank` of the LHCb software define them. A source is
//! a bank's type and source id, `type << 16 | id`; a fragment is a bank with its header and without its padding. The
//! run and, up to version 6 of it, the L0 event id come from the ODIN bank.

use crate::event::Position;
use crate::words::{index, slice_at, u16_at, u32_at};
use crate::{Event, EventId, Fault, Fragment, ReadError};

/// The magic word at the start of every bank.
pub const BANK: u16 = 0xcbcb;

const HEADER_BYTES: usize = 20;
/// Bytes of the trigger mask (four words), run, orbit and bunch.
const SUBHEADER_BYTES: usize = 28;
const BANK_HEADER_BYTES: usize = 8;
const BODY_BANKS: u8 = 1;
const HEADER_VERSION: u8 = 3;
const ODIN: u8 = 16;
/// Latest supported version of the ODIN bank; later ones have another layout.
const ODIN_VERSION_MAX: u8 = 6;

pub(crate) fn is_header(bytes: &[u8]) -> bool {
    let size = u32_at(bytes, 0);
    size.is_some()
        && size == u32_at(bytes, 4)
        && size == u32_at(bytes, 8)
        && size.map(index).is_some_and(|size| size >= HEADER_BYTES)
}

/// An iterator over the events of an MDF file.
#[derive(Debug, Clone)]
pub struct MdfEvents<'a> {
    bytes: &'a [u8],
    position: Position,
    number: u64,
}

impl<'a> MdfEvents<'a> {
    /// Makes an iterator over the events in the bytes of a file.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: Position::At(0), number: 0 }
    }

    /// Resumes after an error, as [`crate::Events::resync`] does.
    pub(crate) fn resync(&mut self) -> bool {
        let Position::Lost(from) = self.position else { return true };
        let bytes = self.bytes;
        let found = (from..bytes.len()).find(|&at| {
            is_header(&bytes[at..]) && u32_at(bytes, at).is_some_and(|size| index(size) <= bytes.len() - at)
        });
        if let Some(at) = found {
            self.position = Position::At(at);
        }
        found.is_some()
    }

    fn read(&self, at: usize) -> Result<(Event<'a>, usize), ReadError> {
        let bytes = self.bytes;
        let header = slice_at(bytes, at, HEADER_BYTES, bytes.len(), "an event's header")?;
        let size = u32_at(header, 0).unwrap_or_default();
        for copy in [4, 8] {
            let actual = u32_at(header, copy).unwrap_or_default();
            if actual != size {
                let (actual, needed) = (u64::from(actual), u64::from(size));
                return Err(Fault::Value { field: "a copy of the event size", actual, needed }.at(at + copy));
            }
        }
        let needed = (HEADER_BYTES + SUBHEADER_BYTES) as u64;
        if u64::from(size) < needed {
            let (actual, max) = (u64::from(size), u64::from(u32::MAX));
            return Err(Fault::Range { field: "the event size", actual, min: needed, max }.at(at));
        }
        slice_at(bytes, at, index(size), bytes.len(), "an event")?;
        let end = at + index(size);
        let (compression, kind, body_type) = (header[16], header[17], header[18]);
        if compression != 0 {
            return Err(Fault::Compressed { method: u32::from(compression) }.at(at + 16));
        }
        if kind >> 4 != HEADER_VERSION {
            return Err(
                Fault::Version { item: "an event's header", actual: u32::from(kind >> 4) }.at(at + 17)
            );
        }
        let subheader_bytes = usize::from(kind & 0xf) * 4;
        if subheader_bytes != SUBHEADER_BYTES {
            let (actual, needed) = (subheader_bytes as u64, SUBHEADER_BYTES as u64);
            return Err(Fault::Value { field: "the size of the second header", actual, needed }.at(at + 17));
        }
        if body_type != BODY_BANKS {
            let (actual, needed) = (u64::from(body_type), u64::from(BODY_BANKS));
            return Err(Fault::Value { field: "the type of the body", actual, needed }.at(at + 18));
        }
        let subheader = at + HEADER_BYTES;
        let mut id = EventId {
            l1_id: self.number,
            bc_id: u32_at(bytes, subheader + 24),
            run: u32_at(bytes, subheader + 16),
        };
        let mut fragments = Vec::new();
        let mut next = subheader + SUBHEADER_BYTES;
        while next < end {
            let fragment = bank(bytes, next, end)?;
            if let Some(number) = l0_event_id(fragment.bytes) {
                id.l1_id = number;
            }
            next += fragment.bytes.len().next_multiple_of(4);
            fragments.push(fragment);
        }
        Ok((Event { id, offset: at as u64, size: u64::from(size), fragments }, end))
    }
}

/// Reads the bank at `at`, with its header and without its padding.
fn bank(bytes: &[u8], at: usize, end: usize) -> Result<Fragment<'_>, ReadError> {
    let header = slice_at(bytes, at, BANK_HEADER_BYTES, end, "a bank's header")?;
    let magic = u16_at(header, 0).unwrap_or_default();
    if magic != BANK {
        return Err(Fault::Marker { actual: u32::from(magic), needed: "a bank" }.at(at));
    }
    let size = usize::from(u16_at(header, 2).unwrap_or_default());
    let left = end - at;
    if size < BANK_HEADER_BYTES || size.next_multiple_of(4) > left {
        let (min, max) = (BANK_HEADER_BYTES as u64, left as u64);
        return Err(Fault::Range { field: "a bank's size", actual: size as u64, min, max }.at(at + 2));
    }
    Ok(Fragment {
        source: u32::from(header[4]) << 16 | u32::from(u16_at(header, 6).unwrap_or_default()),
        status: 0,
        offset: at as u64,
        bytes: &bytes[at..at + size],
    })
}

/// Returns the event number in an ODIN bank; `None` for other banks, and for versions with another layout.
fn l0_event_id(bank: &[u8]) -> Option<u64> {
    if bank[4] != ODIN || bank[5] > ODIN_VERSION_MAX {
        return None;
    }
    let high = u32_at(bank, BANK_HEADER_BYTES + 12)?;
    let low = u32_at(bank, BANK_HEADER_BYTES + 16)?;
    Some(u64::from(high) << 32 | u64::from(low))
}

impl<'a> Iterator for MdfEvents<'a> {
    type Item = Result<Event<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Position::At(at) = self.position else { return None };
        if at == self.bytes.len() {
            return None;
        }
        let result = self.read(at);
        self.number += 1;
        self.position = match &result {
            Ok((_, next)) => Position::At(*next),
            // If the three sizes agree, the next event begins after this one, even if its content is faulty.
            Err(_) => {
                let size = u32_at(self.bytes, at).map_or(0, index);
                let whole = is_header(&self.bytes[at..]) && size <= self.bytes.len() - at;
                Position::Lost(if whole { at + size } else { at + 1 })
            }
        };
        Some(result.map(|(event, _)| event))
    }
}
