//! The unfinished work of a supervisor's earlier incarnation, from its journal.
//!
//! A standby updates this state as lines of the leader's log arrive, so a takeover reads no file. The state takes 128 kB
//! for the last cleared events, and about 30 bytes for each event that is not cleared.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use fanin_dataflow::{EventRecord, EventStep, L1Id};

use crate::journal::{self, EarlierLines, HEADER, JournalEntry, JournalError, header_words};
use crate::machine::HostMachine;

/// Maximum number of events that are cleared again. They cover several seconds, whose clears a readout may have missed.
const CLEARED_MAX: usize = 16_384;

/// The state from which a restarted supervisor continues.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resume {
    /// The next event to assign; `None` if no event was ever assigned.
    pub next: Option<L1Id>,
    /// Assigned and unfinished events, each with its collector.
    pub outstanding: Vec<(L1Id, u16)>,
    /// Finished events that the readouts may still hold.
    pub uncleared: Vec<L1Id>,
    /// The last cleared events, the oldest first. A clear is sent after its record is on disk, so it may not have been sent.
    pub cleared: Vec<L1Id>,
}

impl Resume {
    /// Returns ` open NEXT EVENT:COLLECTOR,… UNCLEARED,…` for the header of a journal, with `-` for an empty list. An earlier
    /// release takes no notice of these words.
    pub fn to_words(&self) -> String {
        let list = |mut words: Vec<String>| {
            if words.is_empty() {
                words.push("-".to_owned());
            }
            words.join(",")
        };
        let outstanding =
            self.outstanding.iter().map(|(event, collector)| format!("{}:{collector}", event.0));
        let uncleared = self.uncleared.iter().map(|event| event.0.to_string());
        self.next.map_or_else(String::new, |next| {
            format!(" open {} {} {}", next.0, list(outstanding.collect()), list(uncleared.collect()))
        })
    }

    /// Returns true if this state has the same work as `read`, and at least its cleared events. Files with the older ones may be
    /// deleted.
    pub(crate) fn goes_on_from(&self, read: &Self) -> bool {
        let work = |one: &Self| (one.next, one.outstanding.clone(), one.uncleared.clone());
        work(self) == work(read) && self.cleared.ends_with(&read.cleared)
    }

    /// Parses the words of a journal's header; `None` if it names no unfinished work.
    pub(crate) fn of_header(header: &str) -> Option<Self> {
        let mut words = header_words(header, "open");
        let (next, outstanding, uncleared) = (words.next()?, words.next()?, words.next()?);
        let event = |word: &str| word.parse().ok().map(L1Id);
        let at = |word: &str| {
            let (of, collector) = word.split_once(':')?;
            Some((event(of)?, collector.parse().ok()?))
        };
        let is_entry = |word: &&str| *word != "-";
        Some(Self {
            next: Some(event(next)?),
            outstanding: outstanding.split(',').filter(is_entry).map(at).collect::<Option<_>>()?,
            uncleared: uncleared.split(',').filter(is_entry).map(event).collect::<Option<_>>()?,
            cleared: Vec::new(),
        })
    }
}

/// Unfinished work, updated with each record of a journal.
#[derive(Debug, Default)]
pub struct UnfinishedWork {
    next: Option<L1Id>,
    outstanding: BTreeMap<L1Id, u16>,
    uncleared: BTreeSet<L1Id>,
    cleared: VecDeque<L1Id>,
}

impl UnfinishedWork {
    /// Updates the state with the next record.
    pub fn take(&mut self, record: &EventRecord) {
        match record.step {
            EventStep::Assigned { collector, .. } => {
                self.next = self.next.max(Some(L1Id(record.event.0 + 1)));
                self.outstanding.insert(record.event, collector);
            }
            EventStep::Completed { .. } => {
                self.outstanding.remove(&record.event);
                self.uncleared.insert(record.event);
            }
            EventStep::Cleared => {
                self.uncleared.remove(&record.event);
                if self.cleared.len() == CLEARED_MAX {
                    self.cleared.pop_front();
                }
                self.cleared.push_back(record.event);
            }
            _ => {}
        }
    }

    /// Updates the state with a line: the unfinished work of a header holds whatever lines before it are gone.
    fn take_entry(&mut self, entry: &JournalEntry<'_>) {
        match entry {
            JournalEntry::Record(line) => self.take(&line.record),
            JournalEntry::Header(header) => {
                let Some(open) = Resume::of_header(header) else { return };
                self.next = self.next.max(open.next);
                self.outstanding = open.outstanding.into_iter().collect();
                self.uncleared = open.uncleared.into_iter().collect();
            }
        }
    }

    /// Reads the rotated files of a supervisor's journal. The records of the journal itself follow them.
    ///
    /// # Errors
    /// As for [`journal::read`].
    pub fn of_parts(machine: &HostMachine, path: &Path) -> Result<Self, JournalError> {
        let mut work = Self::default();
        let has_folder =
            |folder: &Path| folder.as_os_str().is_empty() || machine.exists(folder).unwrap_or(true);
        if path.parent().is_none_or(has_folder) {
            let io = |error| JournalError::Io { path: path.to_owned(), error };
            for (_, part) in journal::parts(machine, path).map_err(io)? {
                journal::read_with_headers(machine, &part, |_, entry| work.take_entry(&entry))?;
            }
        }
        Ok(work)
    }

    /// Returns true if an event is assigned and not finished.
    pub fn has_outstanding(&self) -> bool {
        !self.outstanding.is_empty()
    }

    /// Returns true if an event was ever assigned or finished.
    pub(crate) fn has_begun(&self) -> bool {
        self.next.is_some()
            || self.has_outstanding()
            || !self.uncleared.is_empty()
            || !self.cleared.is_empty()
    }

    /// Returns a number of bytes that [`Resume::to_words`] does not exceed; 0 if nothing was ever assigned.
    pub(crate) fn words_max(&self) -> usize {
        let Some(next) = self.next else { return 0 };
        // All events come before the next one. The number of a collector has five digits at most.
        let digits = next.0.checked_ilog10().unwrap_or(0) as usize + 1;
        let (open, uncleared) = (self.outstanding.len(), self.uncleared.len());
        " open  - -".len() + digits + open * (digits + ":65535,".len()) + uncleared * (digits + ",".len())
    }

    /// Returns the state from which a supervisor continues.
    pub fn to_resume(&self) -> Resume {
        Resume {
            next: self.next,
            outstanding: self.outstanding.iter().map(|(&event, &collector)| (event, collector)).collect(),
            uncleared: self.uncleared.iter().copied().collect(),
            cleared: self.cleared.iter().copied().collect(),
        }
    }
}

impl EarlierLines for UnfinishedWork {
    fn take_line(&mut self, line: &str) {
        // The other lines are about terms.
        if line.starts_with(HEADER) {
            self.take_entry(&JournalEntry::Header(line));
        } else if !line.starts_with('#')
            && let Ok(line) = journal::parse(line)
        {
            self.take(&line.record);
        }
    }
}

/// Reads the unfinished work from a supervisor's journal and its rotated files. Without a journal, there is none.
///
/// # Errors
/// As for [`journal::read`].
pub fn resume(path: &Path) -> Result<Resume, JournalError> {
    resume_on(&HostMachine::Real, path)
}

/// Reads the unfinished work on any machine, as [`resume`] does on this one.
///
/// # Errors
/// As for [`journal::read`].
pub fn resume_on(machine: &HostMachine, path: &Path) -> Result<Resume, JournalError> {
    let mut work = UnfinishedWork::of_parts(machine, path)?;
    if machine.exists(path).map_err(|error| JournalError::Io { path: path.to_owned(), error })? {
        journal::read_with_headers(machine, path, |_, entry| work.take_entry(&entry))?;
    }
    Ok(work.to_resume())
}
