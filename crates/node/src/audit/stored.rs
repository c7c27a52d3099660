//! Reads the files of stored events.

use std::io;
use std::path::Path;

use fanin_dataflow::L1Id;
use fanin_events::{Event, Events, Format, atlas};

use crate::data::FRAGMENT_HEADER_BYTES;
use crate::machine::HostMachine;
use crate::store::{WRITING, sound};

/// Size of an event: what its shipment and its copies on disk must have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ShippedSize {
    /// Number of fragments that are marked missing.
    pub(super) missing: u32,
    /// Bytes of all fragments, each with its header in a message; a missing fragment has a header alone.
    pub(super) bytes: u64,
}

/// The undamaged events of a file.
#[derive(Debug, Default)]
pub(super) struct StoredFile {
    /// Each event with its size.
    pub(super) events: Vec<(L1Id, ShippedSize)>,
    /// Checksums that were recomputed and are right.
    pub(super) checksums: u64,
    /// Number of invalid records, and a description of the first one; `None` in a file without faults.
    pub(super) faults: Option<(u64, String)>,
}

/// Reads a file. `None`: a logger died after it had created the file and before it wrote the first events.
///
/// # Errors
/// If the file cannot be read.
pub(super) fn read_file(machine: &HostMachine, path: &Path) -> io::Result<Option<StoredFile>> {
    let bytes = machine.read(path)?;
    let is_unfinished = path.to_string_lossy().ends_with(WRITING);
    if bytes.is_empty() && is_unfinished {
        return Ok(None);
    }
    let mut file = StoredFile::default();
    // The first bytes may be damaged, too: the format is known without them.
    let mut events = Events::with_format(&bytes, Format::Atlas);
    if !is_unfinished {
        match sound(&bytes) {
            Ok(checksums) => {
                file.checksums = checksums;
                file.events = events.map_while(Result::ok).map(|event| summary(&event)).collect();
                return Ok(Some(file));
            }
            Err(faults) => file.faults = Some(faults),
        }
    }
    // The file of a logger that died may end with incomplete events, which were never acknowledged. These are the faults behind
    // the last sound event.
    let mut tail: Option<(u64, String)> = None;
    let note = |tail: &mut Option<(u64, String)>, (count, first): (u64, String)| {
        tail.get_or_insert((0, first)).0 += count;
    };
    loop {
        match events.next() {
            None => break,
            Some(Ok(event)) => {
                let range = event.offset as usize..(event.offset + event.size) as usize;
                match sound(&bytes[range]) {
                    Ok(checksums) => {
                        file.events.push(summary(&event));
                        file.checksums += checksums;
                        if is_unfinished && let Some(faults) = tail.take() {
                            note(&mut file.faults, faults);
                        }
                    }
                    Err(faults) => note(&mut tail, faults),
                }
            }
            Some(Err(error)) => {
                note(&mut tail, (1, error.to_string()));
                if !events.resync() {
                    break;
                }
            }
        }
    }
    Ok(Some(file))
}

/// Returns the L1 ID of an event, and its size.
fn summary(event: &Event<'_>) -> (L1Id, ShippedSize) {
    let is_missing = |status: u32| status == atlas::status::MISSING;
    let missing = event.fragments.iter().filter(|fragment| is_missing(fragment.status)).count();
    let bytes = event.fragments.iter().map(|fragment| (fragment.bytes.len() + FRAGMENT_HEADER_BYTES) as u64);
    (L1Id(event.id.l1_id), ShippedSize { missing: missing as u32, bytes: bytes.sum() })
}

#[cfg(test)]
mod tests {
    use fanin_events::Fragment;
    use fanin_events::atlas::{AtlasWriter, EventHeader, FileEnd, FileHeader};

    use super::*;

    /// Returns a file with five events of two fragments each.
    fn file() -> Vec<u8> {
        let mut writer = AtlasWriter::new(Vec::new(), &FileHeader::default()).unwrap();
        for l1_id in 0..5 {
            let header = EventHeader { l1_id, global_id: l1_id, run: 7, ..EventHeader::default() };
            let bytes = [l1_id as u8; 40];
            let fragments = [1, 2].map(|source| Fragment { source, status: 0, offset: 0, bytes: &bytes });
            writer.write_event(&header, fragments).unwrap();
        }
        writer.finish(&FileEnd::default()).unwrap()
    }

    #[test]
    fn a_damaged_byte_costs_one_event_at_most() {
        let whole = file();
        let places: Vec<_> = Events::open(&whole)
            .unwrap()
            .map(|event| {
                event.map(|event| event.offset as usize..(event.offset + event.size) as usize).unwrap()
            })
            .collect();
        for suffix in ["", WRITING] {
            let name = format!("fanin-damaged-{}.data{suffix}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let (mut lost, mut without_fault) = ([0; 5], 0);
            for place in 0..whole.len() {
                let mut bytes = whole.clone();
                bytes[place] ^= 0x10;
                std::fs::write(&path, bytes).unwrap();
                let found = read_file(&HostMachine::Real, &path).unwrap().unwrap();
                for (l1_id, range) in places.iter().enumerate() {
                    let copies = found.events.iter().filter(|(event, _)| event.0 == l1_id as u64).count();
                    let expected = usize::from(!range.contains(&place));
                    assert!(
                        copies == 1 || copies == expected,
                        "byte {place} cost event {l1_id} at {range:?}"
                    );
                    lost[l1_id] += usize::from(copies == 0);
                }
                // A logger that died leaves no fault at the end of its file.
                let is_last = places[4].start <= place;
                assert!(suffix.is_empty() || !is_last || found.faults.is_none(), "byte {place}");
                without_fault += usize::from(found.faults.is_none() && !is_last);
            }
            std::fs::remove_file(path).unwrap();
            // All bytes of fragments and nearly all of headers are protected.
            assert!(lost.iter().all(|&bytes| bytes > 2 * 40), "{lost:?}");
            assert!(without_fault < whole.len() / 2, "{without_fault} bytes are unprotected");
        }
    }
}
