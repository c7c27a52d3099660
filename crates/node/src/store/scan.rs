//! Reads a file of stored events, and reads on behind damage. Recovery and the audit follow the same rule.

use fanin_events::{Event, Events, FAULTS_KEPT, Fault, Format, ReadError, verify};

/// Content of a file: its undamaged events and its faults.
#[derive(Debug, Default)]
pub(crate) struct Scan<'a> {
    /// The events whose records, sizes and checksums are right, in the file's order.
    pub(crate) events: Vec<Event<'a>>,
    /// Number of their checksums.
    pub(crate) checksums: u64,
    /// Damaged places, in the file's order.
    pub(crate) faults: Vec<DamagedPlace>,
}

/// Damage between two undamaged events of a file, or at one of its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DamagedPlace {
    /// Number of undamaged events in front of the damage.
    pub(crate) events_before: usize,
    /// Number of invalid records.
    pub(crate) faults: u64,
    /// Description of the first one.
    pub(crate) first: String,
}

impl Scan<'_> {
    fn note(&mut self, faults: u64, first: String) {
        let events_before = self.events.len();
        match self.faults.last_mut() {
            Some(last) if last.events_before == events_before => last.faults += faults,
            _ => self.faults.push(DamagedPlace { events_before, faults, first }),
        }
    }
}

/// Reads all events of a file, behind damage from the next record on. The end record is not needed.
pub(crate) fn scan(bytes: &[u8]) -> Scan<'_> {
    scan_at(bytes, 0)
}

/// The same from the offset `base` of a file on, in front of which are whole records. Places of events are those in `bytes`.
pub(super) fn scan_at(bytes: &[u8], base: u64) -> Scan<'_> {
    let mut found = Scan::default();
    // The first bytes may be damaged, too: the format is known without them.
    let mut events = Events::with_format(bytes, Format::Atlas);
    loop {
        match events.next() {
            None => return found,
            Some(Ok(event)) => match sound(&bytes[range(&event)]) {
                Ok(checksums) => {
                    found.checksums += checksums;
                    found.events.push(event);
                }
                Err((faults, first)) => found.note(faults, first),
            },
            Some(Err(error)) => {
                let error = ReadError { offset: base + error.offset, ..error };
                found.note(1, error.to_string());
                if !events.resync() {
                    return found;
                }
            }
        }
    }
}

/// Returns the place of an event in the bytes that were scanned.
pub(super) fn range(event: &Event<'_>) -> std::ops::Range<usize> {
    event.offset as usize..(event.offset + event.size) as usize
}

/// Checks a file, and returns the number of its checksums. Ignores L1 IDs in fragments, since a replay gives the same
/// fragments to several events, and duplicate events, which the audit checks by the journals.
///
/// # Errors
/// The number of faults, and a description of the first one.
pub(crate) fn sound(bytes: &[u8]) -> Result<u64, (u64, String)> {
    let checked = |bytes: &[u8]| -> Result<(u64, bool), (u64, String)> {
        let report = verify(bytes).map_err(|error| (1, error.to_string()))?;
        let ours =
            |error: &&ReadError| !matches!(error.fault, Fault::L1Id { .. } | Fault::DuplicateEvent { .. });
        match report.faults.iter().find(ours) {
            Some(first) => Err((report.fault_count, first.to_string())),
            None => Ok((report.checksums_checked, report.fault_count as usize <= FAULTS_KEPT)),
        }
    };
    let (checksums, all_seen) = checked(bytes)?;
    if !all_seen {
        // The report may lack faults beyond its limit. Checking each event on its own reports all of them.
        for event in Events::open(bytes).map_err(|error| (1, error.to_string()))?.flatten() {
            checked(&bytes[range(&event)])?;
        }
    }
    Ok(checksums)
}
