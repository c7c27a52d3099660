//! Violations of guarantees that an audit finds, and their text.

use std::path::PathBuf;

use fanin_dataflow::{AuditError, L1Id, Outcome};

use crate::journal::JournalError;

/// Maximum number of findings that an audit prints, and of events in one finding.
pub(super) const SHOWN_MAX: usize = 10;

/// Violation of a guarantee that the audit found.
#[derive(Debug, thiserror::Error)]
pub enum Finding {
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file of stored events has invalid records. Its undamaged events count.
    #[error("{}: {faults} faults; the first: {first}; {undamaged} of its events are undamaged", path.display())]
    Faults {
        /// Path of the file.
        path: PathBuf,
        /// Number of invalid records.
        faults: u64,
        /// Description of the first one.
        first: String,
        /// Number of events of the file that are undamaged.
        undamaged: u64,
    },
    /// The journal before this one is gone, although the system deletes none.
    #[error(
        "{}: the journal before it is gone, and `live.journal_parts` = 0 deletes none: nothing is proven about its events",
        path.display()
    )]
    JournalGone {
        /// Path of the journal behind the absent one.
        path: PathBuf,
    },
    /// Another process's journal names a process, which has no journal. A process writes its first one as it starts, and never
    /// deletes the newest one.
    #[error("{process} has no journal, and other journals name it: nothing is proven about its records")]
    ProcessGone {
        /// Name of the process.
        process: String,
    },
    /// The journals hold fewer assigned events than were seen while the system ran.
    #[error(
        "the journals in {} have {found} assigned events, and at least {seen} were assigned: journals were deleted",
        list_of_paths(folders)
    )]
    FewerAssigned {
        /// The folders of the journals.
        folders: Vec<PathBuf>,
        /// Assigned events in the journals.
        found: u64,
        /// Assigned events that were seen while the system ran.
        seen: u64,
    },
    /// The supervisor's machine was booted again under a journal that is not synchronised. The lines before may be gone, and
    /// their L1 IDs may belong to two events each.
    #[error(
        "{}: the machine was rebooted, and `live.journal_sync` was false: assignments may be gone, and their \
         L1 IDs assigned again",
        path.display()
    )]
    Unsynchronised {
        /// Path of the supervisor's journal.
        path: PathBuf,
    },
    /// Events were assigned and have no outcome.
    #[error("{} of {assigned} events were lost, assigned and never finished with: {}{}",
        events.len(), list_of(events), on_disk_note(*on_disk))]
    Lost {
        /// Number of assigned events.
        assigned: u64,
        /// The lost events.
        events: Vec<L1Id>,
        /// Number of lost events that are on disk nevertheless.
        on_disk: u64,
    },
    /// The records of an event contradict each other (`fanin_dataflow::Auditor`).
    #[error(transparent)]
    Event(#[from] AuditError),
    /// Events are recorded as stored, and no undamaged file has them.
    #[error("{} of {assigned} events were lost, recorded as stored, but no undamaged file has them: {}",
        events.len(), list_of(events))]
    NotInFiles {
        /// Number of assigned events.
        assigned: u64,
        /// The lost events.
        events: Vec<L1Id>,
    },
    /// No logger could write these events as they are. The debug stream has them, with stand-ins for damaged fragments.
    #[error("{} of {assigned} events are stored with stand-ins for damaged fragments: {}",
        events.len(), list_of(events))]
    StandIns {
        /// Number of assigned events.
        assigned: u64,
        /// The events with stand-ins.
        events: Vec<L1Id>,
    },
    /// A logger's journal has an event as stored, and no undamaged file has this event, which is not lost.
    #[error("a logger's journal has event {0} as stored, but no undamaged file has it")]
    FileGone(L1Id),
    /// The supervisor recorded an event as rejected, and no collector's journal has a processor's decision to reject it.
    #[error("event {0} was rejected, but no collector's journal has a processor's decision to reject it")]
    NotDecided(L1Id),
    /// An event was rejected and is on disk, although it was never taken from a collector and reassigned.
    #[error("event {0} was both rejected and stored")]
    RejectedAndStored(L1Id),
    /// An event is on disk only in a stream that does not fit its outcome.
    #[error("event {event} ended as {outcome:?}, but the {stream} stream has it alone")]
    WrongStream {
        /// Identifier of the event.
        event: L1Id,
        /// Recorded outcome of the event.
        outcome: Outcome,
        /// Name of the stream that has the event.
        stream: &'static str,
    },
    /// The number of missing fragments of an event on disk is in no record of a shipment of this event.
    #[error(
        "event {event} has {stored} fragments marked missing on disk; its collector shipped it with {shipped}"
    )]
    Missing {
        /// Identifier of the event.
        event: L1Id,
        /// Fragments that are marked missing on disk.
        stored: u32,
        /// Fragments that were missing in the last shipment; 0 without a shipment.
        shipped: u32,
    },
    /// The fragments of an event on disk have other bytes than its collector shipped, although none is marked missing.
    #[error(
        "event {event} has {stored} bytes of fragments and their headers on disk; its collector shipped {shipped}"
    )]
    Size {
        /// Identifier of the event.
        event: L1Id,
        /// Bytes on disk.
        stored: u64,
        /// Bytes in the last shipment.
        shipped: u64,
    },
    /// An event is on disk more often than the collectors' journals have it as shipped.
    #[error("event {event} is on disk {copies} times; collectors shipped it {shipments} times")]
    MoreCopies {
        /// Identifier of the event.
        event: L1Id,
        /// Number of copies on disk.
        copies: usize,
        /// Number of shipments in the journals.
        shipments: usize,
    },
}

fn list_of_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Returns the L1 IDs of the first [`SHOWN_MAX`] events as text.
fn list_of(events: &[L1Id]) -> String {
    let shown: Vec<String> = events.iter().take(SHOWN_MAX).map(|event| event.0.to_string()).collect();
    let more = events.len() - shown.len();
    shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

fn on_disk_note(on_disk: u64) -> String {
    if on_disk == 0 { String::new() } else { format!("; {on_disk} of them are on disk all the same") }
}
