//! Reads the files of stored events.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use fanin_dataflow::{EventStream, L1Id, Peer};
use fanin_events::{Event, Fragment, atlas};

use super::finding::Finding;
use crate::data::{FRAGMENT_HEADER_BYTES, STAND_IN};
use crate::machine::HostMachine;
use crate::store::{DamagedPlace, WRITING, scan, sound, stream_name};

/// Size of an event: what its shipment and its copies on disk must have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ShippedSize {
    /// Number of fragments that are marked missing.
    pub(super) missing: u32,
    /// Bytes of all fragments, each with its header in a message; a missing fragment has a header alone.
    pub(super) bytes: u64,
    /// Number of stand-ins for damaged fragments. A shipment has none.
    pub(super) stand_ins: u32,
}

/// The undamaged events of a file.
#[derive(Debug, Default)]
pub(super) struct StoredFile {
    /// Each event with its size.
    pub(super) events: Vec<(L1Id, ShippedSize)>,
    /// Checksums that were recomputed and are right.
    pub(super) checksums: u64,
    /// Number of invalid records, and a description of the first one; `None` in a file without faults. Always `None` in an
    /// unfinished file.
    pub(super) faults: Option<(u64, String)>,
    /// Damaged places of an unfinished file.
    pub(super) unfinished: Vec<DamagedPlace>,
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
    let found = scan(&bytes);
    let events = found.events.iter().map(summary).collect();
    let mut file = StoredFile { events, checksums: found.checksums, ..StoredFile::default() };
    if is_unfinished {
        file.unfinished = found.faults;
    } else {
        // Records between events count, too.
        file.faults = sound(&bytes).err();
    }
    Ok(Some(file))
}

/// An unfinished file with damage. Groups are brought to disk one after the other, and acknowledged after that. A group that
/// a loss of power tore was not acknowledged, and is no finding. Damage in front of an acknowledged event is one.
#[derive(Debug)]
pub(super) struct UnfinishedFile {
    path: PathBuf,
    logger: Option<Peer>,
    stream: EventStream,
    /// Number of undamaged events up to each of them, and the damaged places.
    places: HashMap<L1Id, usize>,
    faults: Vec<DamagedPlace>,
    /// Number of undamaged events up to the last one that the logger acknowledged.
    acknowledged: usize,
}

impl UnfinishedFile {
    pub(super) fn new(path: PathBuf, file: StoredFile) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_of = |stream: &EventStream| name.contains(&format!("-{}-", stream_name(*stream)));
        let stream = Some(EventStream::Debug).filter(is_of).unwrap_or(EventStream::Physics);
        let process = name.split(&format!("-{}-", stream_name(stream))).next().unwrap_or_default();
        let places = file.events.iter().enumerate().map(|(place, &(event, _))| (event, place + 1));
        Self {
            logger: crate::names::peer(process),
            stream,
            places: places.collect(),
            faults: file.unfinished,
            acknowledged: 0,
            path,
        }
    }

    /// Notes an event that a logger's journal has as stored.
    pub(super) fn note_stored(&mut self, logger: Option<Peer>, event: L1Id, stream: EventStream) {
        if logger.is_some()
            && logger == self.logger
            && stream == self.stream
            && let Some(&place) = self.places.get(&event)
        {
            self.acknowledged = self.acknowledged.max(place);
        }
    }

    /// Returns the damage in front of acknowledged events.
    pub(super) fn finding(self) -> Option<Finding> {
        let mut before = self.faults.iter().filter(|fault| fault.events_before < self.acknowledged);
        let first = before.next()?;
        let faults = first.faults + before.map(|fault| fault.faults).sum::<u64>();
        let undamaged = self.places.len() as u64;
        Some(Finding::Faults { first: first.first.clone(), path: self.path, faults, undamaged })
    }
}

/// Returns the L1 ID of an event, and its size.
fn summary(event: &Event<'_>) -> (L1Id, ShippedSize) {
    let is_missing = |status: u32| status == atlas::status::MISSING;
    let missing = event.fragments.iter().filter(|fragment| is_missing(fragment.status)).count();
    let bytes = event.fragments.iter().map(|fragment| (fragment.bytes.len() + FRAGMENT_HEADER_BYTES) as u64);
    let is_stand_in = |fragment: &&Fragment<'_>| fragment.status == STAND_IN && fragment.bytes.is_empty();
    let stand_ins = event.fragments.iter().filter(is_stand_in).count() as u32;
    (L1Id(event.id.l1_id), ShippedSize { missing: missing as u32, bytes: bytes.sum(), stand_ins })
}

#[cfg(test)]
mod tests {
    use fanin_events::Events;
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
                let is_inside = |damage: &DamagedPlace| damage.events_before < found.events.len();
                let is_damaged = found.faults.is_some() || found.unfinished.iter().any(is_inside);
                // A logger that died leaves no fault at the end of its file.
                let is_last = places[4].start <= place;
                assert!(suffix.is_empty() || !is_last || !is_damaged, "byte {place}");
                without_fault += usize::from(!is_damaged && !is_last);
            }
            std::fs::remove_file(path).unwrap();
            // All bytes of fragments and nearly all of headers are protected.
            assert!(lost.iter().all(|&bytes| bytes > 2 * 40), "{lost:?}");
            assert!(without_fault < whole.len() / 2, "{without_fault} bytes are unprotected");
        }
    }
}
