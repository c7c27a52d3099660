//! One supervisor's copy of the log that two supervisors share.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

use fanin_dataflow::EventRecord;

use super::files::LogReader;
use crate::journal::{self, EarlierLines, HEADER};
use crate::machine::{HostMachine, OpenMode};
use crate::node::{LogChange, ProcessError};
use crate::resume::{Resume, UnfinishedWork};
use crate::succession::{Leadership, TermLine, identity_path};

/// State of the log of one supervisor: its identity, its size, its terms and its unfinished work. Sizes and places are
/// offsets from the beginning of the log, deleted files included.
#[derive(Debug)]
pub(super) struct SharedLog {
    id: u64,
    /// Offset of the first byte that was read or written here: older files were deleted before.
    start: u64,
    /// Bytes on disk.
    size: u64,
    /// Bytes on disk and bytes that wait for the next commit.
    end: u64,
    /// The decided terms in the log, in their order.
    terms: Vec<LoggedTerm>,
    /// The last pairing, and the end of its line; `u64::MAX` while its line is not on disk.
    pairing: Option<(Leadership, u64)>,
    /// Number of bytes that were searched for lines about terms.
    scanned: u64,
    /// Offset of the last searched line, if it is a header.
    header: Option<u64>,
    /// The unfinished work by the log's records, so that a takeover reads no file.
    work: UnfinishedWork,
}

/// The log of an earlier incarnation, whose lines are read as the journal is opened.
#[derive(Debug)]
pub struct LogLines(Result<SharedLog, ProcessError>);

impl Default for LogLines {
    fn default() -> Self {
        Self(Ok(SharedLog::empty(0, 0)))
    }
}

impl LogLines {
    /// Reads the closed files of a log. The lines of the present file follow them. Completes or undoes a change of files that the
    /// end of the process has interrupted.
    ///
    /// # Errors
    /// If a file cannot be read or renamed, or a line is no record.
    pub fn of_parts(machine: &HostMachine, path: &Path) -> Result<Self, ProcessError> {
        let mut lines = Self::default();
        let mut read = || -> io::Result<()> {
            journal::restore(machine, path)?;
            for (_, part) in journal::parts(machine, path)? {
                for line in BufReader::new(machine.open(&part, OpenMode::Read)?).lines() {
                    lines.take_line(&line?);
                }
            }
            Ok(())
        };
        read().map_err(|error| ProcessError::JournalWrite { path: path.to_owned(), error })?;
        Ok(lines)
    }
}

impl EarlierLines for LogLines {
    fn take_line(&mut self, line: &str) {
        if let Ok(log) = &mut self.0
            && let Err(error) = log.append(format!("{line}\n").as_bytes())
        {
            self.0 = Err(error);
        }
    }
}

/// A decided term in a log, with the offsets of its line in bytes.
#[derive(Debug, Clone, Copy)]
struct LoggedTerm {
    value: Leadership,
    /// Offset of the line, or of the header before it: a supervisor that takes over writes both.
    begin: u64,
    end: u64,
}

impl SharedLog {
    /// Goes on with the log of an earlier incarnation. A log without a line or without an identity gets a new identity.
    pub(super) fn open(machine: &HostMachine, path: &Path, lines: LogLines) -> Result<Self, ProcessError> {
        let read = |error| ProcessError::JournalWrite { path: path.to_owned(), error };
        let mut log = lines.0?;
        log.size = log.end;
        if machine.exists(path).map_err(read)? {
            let size = machine.open(path, OpenMode::Read).and_then(|mut file| file.seek(SeekFrom::End(0)));
            let end = journal::start_of(machine, path).map_err(read)? + size.map_err(read)?;
            if end != log.end {
                let why =
                    format!("the lines end at offset {}, the files at {end}: {}", log.end, path.display());
                return Err(ProcessError::Own {
                    failure: "a part of the log is missing",
                    error: io::Error::new(io::ErrorKind::InvalidData, why),
                });
            }
        }
        let identity = identity_path(path);
        let stored = if machine.exists(&identity).map_err(read)? {
            let text = machine.read(&identity).map_err(read)?;
            String::from_utf8_lossy(&text).trim().parse().ok()
        } else {
            None
        };
        match stored.filter(|_| log.end > 0) {
            Some(id) => log.id = id,
            None => log.id = new_identity(machine, path, stored.unwrap_or(0))?,
        }
        Ok(log)
    }

    fn empty(id: u64, start: u64) -> Self {
        Self {
            id,
            start,
            size: start,
            end: start,
            terms: Vec::new(),
            pairing: None,
            scanned: start,
            header: None,
            work: UnfinishedWork::default(),
        }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Returns the number of bytes on disk.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of bytes, those that are not on disk yet included.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the number of the last term in the log; 0 without one.
    pub(super) fn term(&self) -> u64 {
        self.known().term
    }

    /// Returns the last term in the log; the default without one.
    pub(super) fn known(&self) -> Leadership {
        self.terms.last().map(|term| term.value).unwrap_or_default()
    }

    /// Returns the pairing for the term after `known`, and the end of its line (`u64::MAX` while that is not on disk).
    pub(super) fn pairing(&self, known: Leadership) -> Option<(Leadership, u64)> {
        self.pairing.filter(|(value, _)| value.term == known.term + 1)
    }

    pub(super) fn begin_pairing(&mut self, value: Leadership) {
        self.pairing = Some((value, u64::MAX));
    }

    pub(super) fn forget_pairing(&mut self) {
        self.pairing = None;
    }

    /// Returns true if a log of `size` bytes with the last term `term` is the start of this log. The lines behind it must be
    /// kept here: `kept` is the offset of the oldest kept file.
    ///
    /// Only one supervisor writes in a term, so the logs agree within it. The other log must end before the next term begins
    /// here. Behind this offset, the other supervisor wrote further lines of the old term. A log without a line is the start if
    /// it waits for the oldest kept file.
    pub(super) fn begins_with(&self, size: u64, term: u64, kept: u64) -> bool {
        if term == 0 || size < kept {
            return term == 0 && size == kept;
        }
        let Some(place) = self.terms.iter().position(|logged| logged.value.term == term) else {
            return false;
        };
        let limit = self.terms.get(place + 1).map_or(self.size, |next| next.begin);
        self.terms[place].end <= size && size <= limit
    }

    /// Returns the pairing with this log that its leader may have had decided before it was lost; `None` if there is none.
    /// Its line is on disk here, so this log has every record that was acted upon.
    pub(super) fn pairing_with_this(&self, known: Leadership) -> Option<Leadership> {
        let (value, end) = self.pairing(known)?;
        (value.partner == self.id && end <= self.size).then_some(value)
    }

    /// Returns the unfinished work by the log's records.
    pub(super) fn work(&self) -> Resume {
        self.work.to_resume()
    }

    /// Returns a number of bytes that the words of the unfinished work do not exceed; 0 if nothing was ever assigned.
    pub(super) fn words_max(&self) -> usize {
        self.work.words_max()
    }

    /// Returns true if an event is assigned and not finished.
    pub(super) fn has_outstanding(&self) -> bool {
        self.work.has_outstanding()
    }

    /// Updates the unfinished work with a record of this process, before the record is added to the journal.
    pub(super) fn note_record(&mut self, record: &EventRecord) {
        self.work.take(record);
    }

    /// Updates the state with whole lines of the leader, before they are added to the journal.
    pub(super) fn append(&mut self, text: &[u8]) -> Result<(), ProcessError> {
        self.scan(text);
        self.end = self.scanned;
        for line in String::from_utf8_lossy(text).lines() {
            if line.starts_with('#') {
                if self.work.has_begun()
                    && let Some(open) = Resume::of_header(line)
                    && !self.work().goes_on_from(&open)
                {
                    return Err(ProcessError::Own {
                        failure: "a header of the log names other work than the lines before it",
                        error: io::Error::new(io::ErrorKind::InvalidData, line.to_owned()),
                    });
                }
                self.work.take_line(line);
                continue;
            }
            let wrong = |why| ProcessError::Own {
                failure: "a line of the log is not a record",
                error: io::Error::new(io::ErrorKind::InvalidData, format!("{line}: {why}")),
            };
            self.work.take(&journal::parse(line).map_err(wrong)?.record);
        }
        Ok(())
    }

    fn scan(&mut self, text: &[u8]) {
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            if let Some(start) = file_start(line).filter(|&start| start != self.scanned) {
                // The files before this one are deleted. Its header has their unfinished work.
                *self = Self::empty(self.id, start);
            }
            let begin = self.scanned;
            self.scanned += line.len() as u64;
            let header = self.header.take();
            match TermLine::parse(line) {
                // The first lines of a file repeat the term.
                Some(TermLine::Leads(value)) if value.term == self.term() => {}
                Some(TermLine::Leads(value)) => {
                    let is_older = self.start > 0 && self.terms.is_empty();
                    let (begin, end) = if is_older {
                        (self.start, self.start)
                    } else {
                        (header.unwrap_or(begin), self.scanned)
                    };
                    self.terms.push(LoggedTerm { value, begin, end });
                }
                Some(TermLine::Pairs(value)) => self.pairing = Some((value, self.scanned)),
                None => self.header = line.starts_with(HEADER.as_bytes()).then_some(begin),
            }
        }
    }

    /// Notes that the log has `size` bytes on disk. `has_terms` is true if this process added a line about a term.
    pub(super) fn handle_committed(
        &mut self,
        machine: &HostMachine,
        path: &Path,
        size: u64,
        has_terms: bool,
    ) -> Result<(), ProcessError> {
        if has_terms && size > self.scanned {
            let mut reader = LogReader::default();
            while self.scanned < size {
                let text = reader.read(machine, path, (self.scanned, size), u64::MAX);
                let text = text.and_then(|text| match text.len() {
                    0 => Err(io::ErrorKind::UnexpectedEof.into()),
                    _ => Ok(text),
                });
                self.scan(
                    &text.map_err(|error| ProcessError::JournalWrite { path: path.to_owned(), error })?,
                );
            }
        }
        (self.size, self.end) = (size, size);
        if self.scanned != size {
            // The lines between are records, which are not searched.
            (self.scanned, self.header) = (size, None);
        }
        Ok(())
    }

    /// Begins an empty log with a new identity, at an offset of the leader's log.
    pub(super) fn restart(
        &mut self,
        machine: &HostMachine,
        path: &Path,
        start: u64,
    ) -> Result<(), ProcessError> {
        let id = new_identity(machine, path, self.id)?;
        *self = Self::empty(id, start);
        Ok(())
    }
}

/// Returns the offset that a line names, if it is the first one of a file of a log.
fn file_start(line: &[u8]) -> Option<u64> {
    journal::offset(std::str::from_utf8(line).ok().filter(|line| line.starts_with('#'))?.trim_end())
}

/// Returns the changes that append whole lines of the leader, which begin at offset `position`, to the journal.
pub(super) fn changes(mut text: Vec<u8>, position: u64) -> Vec<LogChange> {
    let mut places = Vec::new();
    let mut place = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if file_start(line) == Some(position + place as u64) {
            places.push(place);
        }
        place += line.len();
    }
    let mut changes = VecDeque::new();
    for place in places.into_iter().rev() {
        changes.push_front(LogChange::Append(text.split_off(place)));
        changes.push_front(LogChange::PutAside);
    }
    changes.push_front(LogChange::Append(text));
    changes.into()
}

/// Writes a new identity for the log: microseconds since 1970, and greater than `older`.
fn new_identity(machine: &HostMachine, path: &Path, older: u64) -> Result<u64, ProcessError> {
    let id = (machine.since_1970().as_micros() as u64).max(older + 1);
    machine
        .replace(&identity_path(path), id.to_string().as_bytes())
        .map_err(|error| ProcessError::JournalWrite { path: path.to_owned(), error })?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_goes_on_behind_a_takeover_is_no_beginning() {
        let folder = std::env::temp_dir().join(format!("fanin-shared-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("standby.journal");
        let term = |term, leader, partner| {
            TermLine::Leads(Leadership { term, leader, log: 7 + u64::from(leader), partner }).to_text()
        };
        let header = |process: &str| format!("{HEADER} {process} epoch-us 1000\n");
        let first = format!("{}{}0 1 assigned 0 0 0 0\n", header("supervisor"), term(1, 0, 8));
        let again = format!("{}{}", term(2, 0, 8), header("supervisor"));
        let taken = format!("{}{}1 2 assigned 0 0 0 0\n", header("standby"), term(3, 1, 0));
        std::fs::write(&path, format!("{first}{again}{taken}")).unwrap();
        let mut lines = LogLines::default();
        journal::Journal::open_shared(&HostMachine::Real, &path, "standby", 1000, true, &mut lines).unwrap();
        let log = SharedLog::open(&HostMachine::Real, &path, lines).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        let (one, two, all) = (first.len(), first.len() + again.len(), log.size() as usize);
        let begins = |size: usize, term| log.begins_with(size as u64, term, 0);
        assert!(begins(0, 0) && begins(one, 1) && begins(two, 2) && begins(all, 3));
        // The replaced leader wrote more: a header of its next incarnation, or lines that were not acknowledged.
        for more in 1..=taken.len() {
            assert!(!begins(two + more, 2), "{more} bytes behind the takeover");
        }
        assert!(!begins(one, 2) && !begins(one, 0) && !begins(0, 1) && !begins(all + 1, 3));
    }
}
