//! Proof from journals and files that no event was lost, doubled without a reason, or damaged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fanin_dataflow::{AuditError, Auditor, L1Id, Outcome, Record, Stream, Totals, What};
use fanin_events::{Events, FAULTS_KEPT, Fault, ReadError, atlas, verify};
use fanin_units::Instant;

use crate::journal::{self, JournalError};
use crate::store::{WRITING, stream_name};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audit {
    /// What became of the events.
    pub totals: Totals,
    /// Files that were read.
    pub files: u64,
    /// Events in them.
    pub events: u64,
    /// Fragments in them that never came, and say so.
    pub missing: u64,
    /// Checksums that were made again and are right.
    pub checksums: u64,
}

/// The first thing that is not as it was promised.
#[derive(Debug, thiserror::Error)]
pub enum Finding {
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file has faults.
    #[error("{}: {faults} faults; the first: {first}", path.display())]
    Faults {
        /// Which.
        path: PathBuf,
        /// How many.
        faults: u64,
        /// The first.
        first: String,
    },
    /// An event breaks the rule.
    #[error(transparent)]
    Event(#[from] AuditError),
    /// A logger said that an event is on disk, and no file has it.
    #[error("a logger's journal has event {0} as stored, but no file has it")]
    NotInFiles(L1Id),
    /// An event is in a stream that does not suit its outcome.
    #[error("event {event} ended as {outcome:?}, but the {stream} stream has it alone")]
    WrongStream {
        /// The event.
        event: L1Id,
        /// How it ended.
        outcome: Outcome,
        /// Where it is.
        stream: &'static str,
    },
    /// An event in a file lacks more fragments than its collector knew of, or says of fewer.
    #[error(
        "event {event} has {stored} fragments marked missing on disk; its collector shipped it with {shipped}"
    )]
    Missing {
        /// The event.
        event: L1Id,
        /// On disk.
        stored: u32,
        /// Shipped with.
        shipped: u32,
    },
}

/// What the files say of an event.
#[derive(Debug, Default, Clone)]
struct OnDisk {
    physics: u32,
    debug: u32,
    missing: Vec<u32>,
}

/// Reads all journals in a system's folder and all files of stored events in `data`, when all its processes have ended.
///
/// # Errors
/// The first thing that is not as it was promised.
pub fn audit(folder: &Path, data: &Path, loggers: bool) -> Result<Audit, Finding> {
    let mut audit = Audit::default();
    let mut on_disk: BTreeMap<L1Id, OnDisk> = BTreeMap::new();
    for path in list(data)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !name.contains(".data") {
            continue;
        }
        read_file(&path, &name, &mut audit, &mut on_disk)?;
    }
    let mut auditor = Auditor::new();
    let mut shipped: BTreeMap<L1Id, Vec<u32>> = BTreeMap::new();
    let mut outcomes: BTreeMap<L1Id, Outcome> = BTreeMap::new();
    for path in list(folder)? {
        if path.extension().is_none_or(|extension| extension != "journal") {
            continue;
        }
        let mut not_in_files = None;
        journal::read(&path, |_, line| {
            let event = line.record.event;
            match line.record.what {
                // Whether it is on disk, the disk says.
                What::Stored { .. } => {
                    if !on_disk.contains_key(&event) {
                        not_in_files = not_in_files.or(Some(event));
                    }
                    return;
                }
                What::Shipped { missing, .. } => shipped.entry(event).or_default().push(missing),
                What::Completed { outcome, .. } => {
                    outcomes.insert(event, outcome);
                }
                _ => {}
            }
            auditor.record(&line.record);
        })?;
        if let Some(event) = not_in_files {
            return Err(Finding::NotInFiles(event));
        }
    }
    for (&event, found) in &on_disk {
        for (copies, stream) in [(found.physics, Stream::Physics), (found.debug, Stream::Debug)] {
            for _ in 0..copies {
                let what = What::Stored { collector: 0, stream, missing: 0 };
                auditor.record(&Record { at: Instant::START, event, what });
            }
        }
        let outcome = outcomes.get(&event).copied();
        let wrong = match outcome {
            Some(Outcome::Stored) if found.physics == 0 => Some(Stream::Debug),
            Some(Outcome::Debug) if found.debug == 0 => Some(Stream::Physics),
            _ => None,
        };
        if let (Some(stream), Some(outcome)) = (wrong, outcome) {
            return Err(Finding::WrongStream { event, outcome, stream: stream_name(stream) });
        }
        let known = shipped.get(&event).map(Vec::as_slice).unwrap_or_default();
        for &stored in &found.missing {
            if !known.contains(&stored) {
                let shipped = known.last().copied().unwrap_or_default();
                return Err(Finding::Missing { event, stored, shipped });
            }
        }
    }
    audit.totals = auditor.finish(loggers)?;
    Ok(audit)
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, Finding> {
    let fail = |error| Finding::Io { path: folder.to_owned(), error };
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries: Result<Vec<PathBuf>, _> =
        std::fs::read_dir(folder).map_err(fail)?.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries.map_err(fail)?;
    entries.sort();
    Ok(entries)
}

fn read_file(
    path: &Path,
    name: &str,
    audit: &mut Audit,
    on_disk: &mut BTreeMap<L1Id, OnDisk>,
) -> Result<(), Finding> {
    let bytes = std::fs::read(path).map_err(|error| Finding::Io { path: path.to_owned(), error })?;
    let faults = |faults, first: String| Finding::Faults { path: path.to_owned(), faults, first };
    if bytes.is_empty() && name.ends_with(WRITING) {
        // Its logger died between making it and the first group.
        return Ok(());
    }
    audit.files += 1;
    // What a logger that died left behind may be torn: what stands behind the last whole event was promised to nobody.
    if !name.ends_with(WRITING) {
        audit.checksums += sound(&bytes).map_err(|(count, first)| faults(count, first))?;
    }
    let is_debug = name.contains("-debug-");
    for event in Events::open(&bytes).map_err(|error| faults(1, error.to_string()))?.map_while(Result::ok) {
        let missing =
            event.fragments.iter().filter(|fragment| fragment.status == atlas::status::MISSING).count()
                as u32;
        audit.events += 1;
        audit.missing += u64::from(missing);
        let found = on_disk.entry(L1Id(event.id.l1_id)).or_default();
        if is_debug {
            found.debug += 1;
        } else {
            found.physics += 1;
        }
        found.missing.push(missing);
    }
    Ok(())
}

/// Checks a file, and counts its checksums. L1 IDs that detectors wrote into their fragments are their own: a replay
/// gives the same fragments to other events. Whether there is a reason for an event to be there twice, the journals say.
fn sound(bytes: &[u8]) -> Result<u64, (u64, String)> {
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
        // Too many to be kept: event by event, none is hidden behind them.
        for event in Events::open(bytes).map_err(|error| (1, error.to_string()))?.flatten() {
            checked(&bytes[event.offset as usize..(event.offset + event.size) as usize])?;
        }
    }
    Ok(checksums)
}
