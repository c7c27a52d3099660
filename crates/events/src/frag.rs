//! The plain fragment container: a table of sources and sizes, and the fragments back to back.
//!
//! Little-endian. The file begins with `DAQFRAG1`. Each event is a 32-bit marker, the 32-bit number of its fragments
//! and its 64-bit id. A 32-bit source and a 32-bit size of each fragment follow, then their bytes. `docs/events.md`
//! has it as a table.

use std::io::{self, Write};

use crate::event::Position;
use crate::words::{index, slice_at, u32_at, u64_at};
use crate::{Event, EventId, Fault, Fragment, ReadError};

/// `DAQFRAG1`, the first bytes of a container, as a little-endian number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"DAQFRAG1");
/// `1TVE`, the first bytes of an event.
pub const EVENT: u32 = 0x4556_5431;

const EVENT_HEADER_BYTES: usize = 16;
const TABLE_ENTRY_BYTES: usize = 8;

/// An iterator over the events of a fragment container.
#[derive(Debug, Clone)]
pub struct FragEvents<'a> {
    bytes: &'a [u8],
    position: Position,
}

impl<'a> FragEvents<'a> {
    /// Makes an iterator over the events in the bytes of a file.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: Position::At(0) }
    }

    /// Resumes after an error, as [`crate::Events::resync`] does.
    pub(crate) fn resync(&mut self) -> bool {
        let Position::Lost(from) = self.position else { return true };
        let marker = EVENT.to_le_bytes();
        let found = self.bytes.get(from..).and_then(|rest| rest.windows(4).position(|w| w == marker));
        if let Some(distance) = found {
            self.position = Position::At(from + distance);
        }
        found.is_some()
    }

    fn read(&self, at: usize) -> Result<(Event<'a>, usize), ReadError> {
        let bytes = self.bytes;
        let end = bytes.len();
        let header = slice_at(bytes, at, EVENT_HEADER_BYTES, end, "an event's header")?;
        let marker = u32_at(header, 0).unwrap_or_default();
        if marker != EVENT {
            return Err(Fault::Marker { actual: marker, needed: "an event" }.at(at));
        }
        let count = index(u32_at(header, 4).unwrap_or_default());
        let table_at = at + EVENT_HEADER_BYTES;
        let table = slice_at(
            bytes,
            table_at,
            count.saturating_mul(TABLE_ENTRY_BYTES),
            end,
            "the table of an event's fragments",
        )?;
        let mut next = table_at + table.len();
        let mut fragments = Vec::with_capacity(count);
        for entry in table.chunks_exact(TABLE_ENTRY_BYTES) {
            let size = index(u32_at(entry, 4).unwrap_or_default());
            let fragment = slice_at(bytes, next, size, end, "a fragment")?;
            fragments.push(Fragment {
                source: u32_at(entry, 0).unwrap_or_default(),
                status: 0,
                offset: next as u64,
                bytes: fragment,
            });
            next += size;
        }
        let id = EventId { l1_id: u64_at(header, 8).unwrap_or_default(), ..EventId::default() };
        Ok((Event { id, offset: at as u64, size: (next - at) as u64, fragments }, next))
    }
}

impl<'a> Iterator for FragEvents<'a> {
    type Item = Result<Event<'a>, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Position::At(mut at) = self.position else { return None };
        if at == 0 {
            if u64_at(self.bytes, 0) != Some(MAGIC) {
                // Otherwise a marker of an event at offset 0 would be mistaken for the magic again.
                self.position = Position::Lost(1);
                let actual = u32_at(self.bytes, 0).unwrap_or_default();
                return Some(Err(Fault::Marker { actual, needed: "a fragment container" }.at(0)));
            }
            at = 8;
        }
        if at == self.bytes.len() {
            return None;
        }
        let result = self.read(at);
        self.position = match &result {
            Ok((_, next)) => Position::At(*next),
            // The search continues after the parts that were read, and after the marker of the faulty event.
            Err(error) => Position::Lost((error.offset as usize).max(at + 1)),
        };
        Some(result.map(|(event, _)| event))
    }
}

/// Writes a fragment container.
#[derive(Debug)]
pub struct FragWriter<W> {
    out: W,
    table: Vec<u8>,
}

impl<W: Write> FragWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&MAGIC.to_le_bytes())?;
        Ok(Self { out, table: Vec::new() })
    }

    /// Adds an event.
    ///
    /// # Errors
    /// If it cannot be written, or has 2³² fragments or a fragment of 4 GiB (`InvalidInput`).
    pub fn write_event<'b, I>(&mut self, id: u64, fragments: I) -> io::Result<()>
    where
        I: IntoIterator<Item = (u32, &'b [u8])> + Clone,
    {
        let too_large = |_| io::Error::new(io::ErrorKind::InvalidInput, "a count or size takes 32 bits");
        self.table.clear();
        let mut count = 0_u64;
        for (source, bytes) in fragments.clone() {
            count += 1;
            self.table.extend_from_slice(&source.to_le_bytes());
            self.table.extend_from_slice(&u32::try_from(bytes.len()).map_err(too_large)?.to_le_bytes());
        }
        self.out.write_all(&EVENT.to_le_bytes())?;
        self.out.write_all(&u32::try_from(count).map_err(too_large)?.to_le_bytes())?;
        self.out.write_all(&id.to_le_bytes())?;
        self.out.write_all(&self.table)?;
        for (_, bytes) in fragments {
            self.out.write_all(bytes)?;
        }
        Ok(())
    }

    /// Ends the file, and returns the output.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}
