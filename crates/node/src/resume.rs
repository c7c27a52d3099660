//! The work that a supervisor of an earlier life has left, by its journal.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use fanin_dataflow::{EventStep, L1Id};

use crate::journal::{self, JournalError, JournalLine};
use crate::machine::HostMachine;

/// Most events that are cleared once more: those of several seconds, whose clears a readout may have missed.
const CLEARED_MAX: usize = 16_384;

/// The state that a restarted supervisor takes up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resume {
    /// The next event to assign, unless nothing was ever assigned.
    pub next: Option<L1Id>,
    /// Unfinished events, each with its collector.
    pub outstanding: Vec<(L1Id, u16)>,
    /// Finished events that the readouts may still hold.
    pub uncleared: Vec<L1Id>,
    /// The last cleared events. The clear is sent after its record is on disk, so that it may not have left.
    pub cleared: Vec<L1Id>,
}

/// Reads the unfinished work from a supervisor's journal and its rotated parts. Without a journal there is none.
///
/// # Errors
/// As for [`journal::read`].
pub fn resume(path: &Path) -> Result<Resume, JournalError> {
    resume_on(&HostMachine::Real, path)
}

/// The same on any machine.
///
/// # Errors
/// As for [`journal::read`].
pub fn resume_on(machine: &HostMachine, path: &Path) -> Result<Resume, JournalError> {
    let mut next = None;
    let mut outstanding = BTreeMap::new();
    let mut uncleared = BTreeSet::new();
    let mut cleared = VecDeque::new();
    let io = |error| JournalError::Io { path: path.to_owned(), error };
    let mut paths: Vec<PathBuf> = Vec::new();
    let has_folder = |folder: &Path| folder.as_os_str().is_empty() || machine.exists(folder).unwrap_or(true);
    if path.parent().is_none_or(has_folder) {
        paths.extend(journal::parts(machine, path).map_err(io)?.into_iter().map(|(_, path)| path));
    }
    if machine.exists(path).map_err(io)? {
        paths.push(path.to_owned());
    }
    let mut take = |JournalLine { record, .. }: JournalLine| match record.step {
        EventStep::Assigned { collector, .. } => {
            next = next.max(Some(L1Id(record.event.0 + 1)));
            outstanding.insert(record.event, collector);
        }
        EventStep::Completed { .. } => {
            outstanding.remove(&record.event);
            uncleared.insert(record.event);
        }
        EventStep::Cleared => {
            uncleared.remove(&record.event);
            if cleared.len() == CLEARED_MAX {
                cleared.pop_front();
            }
            cleared.push_back(record.event);
        }
        _ => {}
    };
    for path in &paths {
        journal::read_on(machine, path, |_, line| take(line))?;
    }
    let outstanding = outstanding.into_iter().collect();
    Ok(Resume { next, outstanding, uncleared: uncleared.into_iter().collect(), cleared: cleared.into() })
}
