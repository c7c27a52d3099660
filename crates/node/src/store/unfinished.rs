//! Reads an unfinished file event by event, so that a start holds one event of it in memory. What follows the first damage is read
//! at once, since the next record may be anywhere in it. A torn end is no longer than a group.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

use fanin_events::atlas::{AtlasWriter, FileHeader};
use fanin_events::{Events, Format};

use super::file::into_io;
use super::scan::{DamagedPlace, range, scan_at, sound};

/// Bytes that are read, or copied, at once.
pub(super) const PIECE_BYTES: usize = 1 << 20;
/// Size of the record in front of an event. Its last word is the event's size.
const EVENT_RECORD_BYTES: usize = 16;

/// An undamaged event in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundEvent {
    pub(super) l1_id: u64,
    /// Place in the file.
    pub(super) range: Range<u64>,
}

/// Content of an unfinished file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnfinishedScan {
    /// The undamaged events, in the file's order.
    pub(super) events: Vec<FoundEvent>,
    /// Damaged places, in the file's order.
    pub(super) faults: Vec<DamagedPlace>,
    /// True if the records in front of the first event, and in front of each, are those that a logger writes. No checksum
    /// protects them.
    pub(super) has_right_records: bool,
    /// Bytes that were read at once, from the first damage on.
    pub(super) read_at_once: usize,
}

impl UnfinishedScan {
    /// Reads a file that begins with the records of `header`.
    pub(super) fn read(file: &mut (impl Read + Seek), header: &FileHeader) -> io::Result<Self> {
        let size = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let mut input = BufReader::with_capacity(PIECE_BYTES, file);
        let (mut events, mut end, mut bytes) = (Vec::new(), 0, Vec::new());
        let mut writer = AtlasWriter::new(Vec::new(), header).map_err(into_io)?;
        if take(&mut input, size, writer.output().len(), &mut bytes)? && bytes == *writer.output() {
            end = bytes.len() as u64;
            while let Some(event) = next_event(&mut input, size, end, events.len() as u32, &mut bytes)? {
                end = event.range.end;
                events.push(event);
            }
            writer = AtlasWriter::resume(Vec::new(), events.len() as u32, end);
        }
        drop(bytes);
        let mut rest = Vec::new();
        input.seek(SeekFrom::Start(end))?;
        input.read_to_end(&mut rest)?;
        let (behind, undamaged) = (scan_at(&rest, end), events.len());
        let (mut has_right_records, mut last) = (true, 0);
        for event in &behind.events {
            let place = range(event);
            writer.begin_event(place.len()).map_err(into_io)?;
            has_right_records &= rest.get(last..place.start) == Some(writer.output().as_slice());
            writer.output().clear();
            last = place.end;
            let range = end + place.start as u64..end + place.end as u64;
            events.push(FoundEvent { l1_id: event.id.l1_id, range });
        }
        let mut faults = behind.faults;
        faults.iter_mut().for_each(|place| place.events_before += undamaged);
        Ok(Self { events, faults, has_right_records, read_at_once: rest.len() })
    }

    /// Returns true if an undamaged event follows some damage.
    pub(super) fn has_events_behind_damage(&self) -> bool {
        self.faults.first().is_some_and(|place| place.events_before < self.events.len())
    }
}

/// Reads `len` bytes. Returns false if fewer than these are `left`.
fn take(input: &mut impl Read, left: u64, len: usize, bytes: &mut Vec<u8>) -> io::Result<bool> {
    if left < len as u64 {
        return Ok(false);
    }
    bytes.resize(len, 0);
    input.read_exact(bytes)?;
    Ok(true)
}

/// Reads the next event, whose record is at `at`; `events` are in front of it. Returns `None` at the end of the file, and if the
/// record or the event is damaged.
fn next_event(
    input: &mut impl Read,
    size: u64,
    at: u64,
    events: u32,
    bytes: &mut Vec<u8>,
) -> io::Result<Option<FoundEvent>> {
    if !take(input, size - at, EVENT_RECORD_BYTES, bytes)? {
        return Ok(None);
    }
    let &[.., a, b, c, d] = bytes.as_slice() else { return Ok(None) };
    let (start, len) = (at + EVENT_RECORD_BYTES as u64, u32::from_le_bytes([a, b, c, d]) as usize);
    let mut writer = AtlasWriter::resume(Vec::new(), events, at);
    writer.begin_event(len).map_err(into_io)?;
    if bytes != writer.output() || !take(input, size - start, len, bytes)? {
        return Ok(None);
    }
    let event = Events::with_format(bytes, Format::Atlas).next().and_then(Result::ok);
    let whole = event.filter(|event| range(event) == (0..len) && sound(bytes).is_ok());
    Ok(whole.map(|event| FoundEvent { l1_id: event.id.l1_id, range: start..start + len as u64 }))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use fanin_events::Fragment;
    use fanin_events::atlas::EventHeader;

    use super::super::scan::scan;
    use super::*;

    /// Returns a file without its end, and the places of its events.
    fn file() -> (FileHeader, Vec<u8>, Vec<Range<u64>>) {
        let header = FileHeader { application: "logger-0".into(), ..FileHeader::default() };
        let mut writer = AtlasWriter::new(Vec::new(), &header).unwrap();
        let mut places = Vec::new();
        for l1_id in 1..5 {
            let start = writer.written_bytes() + EVENT_RECORD_BYTES as u64;
            let fragments = (0..l1_id).map(|source| Fragment {
                source,
                status: 0,
                offset: 0,
                bytes: &[7, 6, 5, 4, 3, 2, 1],
            });
            writer.write_event(&EventHeader { l1_id, ..EventHeader::default() }, fragments).unwrap();
            places.push(start..writer.written_bytes());
        }
        (header, std::mem::take(writer.output()), places)
    }

    fn read(header: &FileHeader, bytes: &[u8]) -> UnfinishedScan {
        UnfinishedScan::read(&mut Cursor::new(bytes), header).unwrap()
    }

    /// Compares with the scan of all bytes at once.
    fn check(header: &FileHeader, bytes: &[u8], case: &str) {
        let (found, whole) = (read(header, bytes), scan(bytes));
        let places: Vec<_> = whole
            .events
            .iter()
            .map(|event| (event.id.l1_id, event.offset..event.offset + event.size))
            .collect();
        let events: Vec<_> = found.events.iter().map(|event| (event.l1_id, event.range.clone())).collect();
        assert_eq!((events, &found.faults), (places, &whole.faults), "{case}");
        let (mut writer, mut end) = (AtlasWriter::new(Vec::new(), header).unwrap(), 0);
        let is_right = whole.events.iter().all(|event| {
            let place = range(event);
            writer.begin_event(place.len()).unwrap();
            let is_right = bytes.get(end..place.start) == Some(writer.output().as_slice());
            writer.output().clear();
            end = place.end;
            is_right
        });
        assert_eq!(found.has_right_records, is_right, "{case}");
    }

    #[test]
    fn a_file_read_in_pieces_has_the_events_and_faults_of_its_whole() {
        let (header, whole, places) = file();
        let found = read(&header, &whole);
        assert_eq!((found.events.len(), found.read_at_once, found.has_right_records), (4, 0, true));
        for cut in 0..whole.len() {
            check(&header, &whole[..cut], &format!("cut at {cut}"));
            let found = read(&header, &whole[..cut]);
            assert!(found.has_right_records, "cut at {cut}");
            // Whole events in front of a torn end are read one by one.
            if cut as u64 >= places[0].start {
                let whole_events = places.iter().filter(|place| place.end <= cut as u64);
                let end = whole_events.map(|place| place.end as usize).max().unwrap_or(0);
                assert!(found.read_at_once <= cut - end, "cut at {cut}: {}", found.read_at_once);
            }
        }
        for place in 0..whole.len() {
            for bit in [0x01, 0x10, 0x80] {
                let mut damaged = whole.clone();
                damaged[place] ^= bit;
                check(&header, &damaged, &format!("{bit:#x} at {place}"));
            }
        }
    }
}
