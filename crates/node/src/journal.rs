//! The journal: the records of a process, one line each, in files that outlive the process.
//!
//! The supervisor writes an assignment into its journal before it sends it. A restarted supervisor resumes its work from
//! the journal. The audit and the result tables use the journals of all processes.
//!
//! A record is a line `TIME L1ID STEP ARGUMENT…`, with the time in picoseconds since an epoch. A header line `# fanin
//! journal 1 PROCESS epoch-us MICROSECONDS` before the records names the epoch, in microseconds since 1970. Each start of
//! the process writes a header. The last line may be incomplete. The header of a journal that is not synchronised also has
//! `boot ID` before the epoch. After another boot of the machine, lines of the earlier one may be missing.
//!
//! Where older journals are deleted, the header of a supervisor's next journal also has its unfinished work before the epoch
//! (`Resume::to_words`).
//!
//! A journal that has reached its maximum size is renamed to `PROCESS.NUMBER.journal`, and a new file is begun. Readers
//! of a folder's journals read the renamed files as well. Their names sort in the order in which they were written.
//!
//! Two supervisors have copies of one log. Its files begin at the same lines in both copies. These are headers with `at
//! OFFSET`, in bytes from the beginning of the log, and the unfinished work.

mod files;
mod line;

use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fanin_dataflow::{EventRecord, EventStep};
use fanin_units::{Duration, Instant};

pub use self::files::follows_deleted;
use self::files::{EXTENSION, NEW_EXTENSION};
pub(crate) use self::files::{LogFiles, in_order, is_present, log_files, offset, parts, restore, start_of};
pub use self::line::JournalLine;
use self::line::format;
pub(crate) use self::line::{HEADER, OUTCOMES, header_words, outcome_name, parse};
use crate::lines;
pub use crate::lines::EarlierLines;
use crate::machine::{HostMachine, MachineFile, OpenMode};
use crate::succession::TermLine;

/// Maximum number of bytes that wait in memory while the file cannot be written.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    machine: HostMachine,
    file: MachineFile,
    path: PathBuf,
    waiting: Vec<u8>,
    text: String,
    good: u64,
    /// True if bytes of a failed commit may follow the first `good` bytes of the file.
    has_rest: bool,
    sync: bool,
    dropped: u64,
    process: String,
    /// The machine's present boot, for a journal that is not synchronised.
    boot: Option<String>,
    epoch_us: u64,
    rotation: Rotation,
    /// After a failed rotation: the size of the file at which the next one is tried.
    rotation_again: u64,
    /// Offset of the file's first byte in the log that two supervisors share; 0 for other journals.
    start: u64,
    /// Places in the waiting bytes at which a new file begins.
    asides: Vec<usize>,
}

/// Offsets of a journal's file in the log that two supervisors share. Other journals start at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalSpan {
    /// Offset of the file's first byte.
    pub start: u64,
    /// Offset behind the last committed byte.
    pub end: u64,
}

/// Limits of journal rotation (`live.journal_size`, `live.journal_parts`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rotation {
    /// Size at which a journal is rotated, bytes; zero disables rotation.
    pub size: u64,
    /// Number of rotated files to keep, the youngest ones; zero keeps all.
    pub keep: u32,
}

impl Journal {
    /// Opens or creates the journal of a process, and writes its header. An incomplete last line is cut off.
    ///
    /// A loss of power may have damaged more lines. With `sync`, the lines from the first damaged one on were never committed
    /// and are cut off. Without `sync`, only the damaged lines are removed.
    ///
    /// The times of new records count from `epoch_us`, in microseconds since 1970. With `sync`, committed records survive a
    /// loss of power as well as the end of the process.
    ///
    /// # Errors
    /// If the file cannot be opened, read or written.
    pub fn open(path: &Path, process: &str, epoch_us: u64, sync: bool) -> io::Result<Self> {
        Self::open_on(&HostMachine::Real, path, process, epoch_us, sync)
    }

    /// Opens a journal on any machine, as [`Self::open`] does on this one.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_on(
        machine: &HostMachine,
        path: &Path,
        process: &str,
        epoch_us: u64,
        sync: bool,
    ) -> io::Result<Self> {
        Self::open_reading(machine, path, process, epoch_us, sync, &mut ())
    }

    /// Opens a journal as [`Self::open_on`] does, and passes its lines to `earlier`.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_reading(
        machine: &HostMachine,
        path: &Path,
        process: &str,
        epoch_us: u64,
        sync: bool,
        earlier: &mut impl EarlierLines,
    ) -> io::Result<Self> {
        let mut journal = Self::open_repaired(machine, path, process, epoch_us, sync, earlier)?;
        journal.waiting = journal.header().into_bytes();
        journal.commit()?;
        if !sync {
            // The header shows a later reader that the machine was booted again, so it must survive a loss of power.
            journal.file.sync_data()?;
            lines::sync_folder(machine, path)?;
        }
        Ok(journal)
    }

    /// Opens the log that two supervisors share, as [`Self::open_reading`] does, but without writing a header. If no line of the
    /// present file is left, the last closed one goes on.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_shared(
        machine: &HostMachine,
        path: &Path,
        process: &str,
        epoch_us: u64,
        sync: bool,
        earlier: &mut impl EarlierLines,
    ) -> io::Result<Self> {
        let mut journal = Self::open_repaired(machine, path, process, epoch_us, sync, earlier)?;
        if journal.good == 0
            && let Some((_, last)) = parts(machine, path)?.last()
        {
            // Records need a header before them in their file.
            tracing::warn!(journal = %path.display(), "no line of the journal is left: goes on with the last closed one");
            machine.rename(last, path)?;
            lines::sync_folder(machine, path)?;
            journal.file = machine.open(path, OpenMode::ReadWrite)?;
            journal.good = lines::whole(&mut journal.file)?;
            journal.file.set_len(journal.good)?;
            journal.file.seek(SeekFrom::Start(journal.good))?;
            journal.start = start_of(machine, path)?;
        }
        Ok(journal)
    }

    /// Opens or creates the file without its damaged lines, and writes nothing.
    fn open_repaired(
        machine: &HostMachine,
        path: &Path,
        process: &str,
        epoch_us: u64,
        sync: bool,
        earlier: &mut impl EarlierLines,
    ) -> io::Result<Self> {
        let (mut is_whole, mut start) = (is_whole(), None);
        lines::repair(machine, path, sync, |line| {
            let is_whole = is_whole(line);
            if is_whole {
                start.get_or_insert_with(|| offset(line).unwrap_or(0));
                earlier.take_line(line);
            }
            is_whole
        })?;
        let mut file = machine.open(path, OpenMode::ReadWrite)?;
        let good = lines::whole(&mut file)?;
        file.set_len(good)?;
        file.seek(SeekFrom::Start(good))?;
        if sync {
            // After a loss of power, the file is gone if its directory entry is not on disk.
            lines::sync_folder(machine, path)?;
        }
        Ok(Self {
            machine: machine.clone(),
            file,
            path: path.to_owned(),
            waiting: Vec::new(),
            text: String::new(),
            good,
            has_rest: false,
            sync,
            dropped: 0,
            process: process.to_owned(),
            boot: machine.boot().filter(|_| !sync),
            epoch_us,
            rotation: Rotation::default(),
            rotation_again: 0,
            start: start.unwrap_or(0),
            asides: Vec::new(),
        })
    }

    /// Returns the header line of this incarnation of the process.
    pub fn header(&self) -> String {
        self.header_with("")
    }

    /// Returns the header line with words about the log's offset and unfinished work.
    pub fn header_with(&self, open: &str) -> String {
        let boot = self.boot.as_ref().map_or_else(String::new, |boot| format!(" boot {boot}"));
        format!("{HEADER} {}{boot}{open} epoch-us {}\n", self.process, self.epoch_us)
    }

    /// Adds whole lines, such as lines of the leader's log. They are in the file after the next [`Self::commit`].
    pub fn append(&mut self, text: &[u8]) {
        self.waiting.extend_from_slice(text);
    }

    /// Lets the lines that are added from now on begin a new file. Does nothing if the present file has no line.
    pub fn put_aside(&mut self) {
        if self.good > 0 || !self.waiting.is_empty() {
            self.asides.push(self.waiting.len());
        }
    }

    /// Returns the number of committed bytes in the file.
    pub fn size(&self) -> u64 {
        self.good
    }

    /// Returns the offsets of the file in the shared log.
    pub fn span(&self) -> JournalSpan {
        JournalSpan { start: self.start, end: self.start + self.good }
    }

    /// Renames the file to `PROCESS.journal-replaced`, which no audit reads, and begins an empty file at offset `start` of the
    /// shared log. Removes rotated files, and drops lines that are not committed.
    ///
    /// # Errors
    /// If a file cannot be renamed, removed or created.
    pub fn restart(&mut self, start: u64) -> io::Result<()> {
        self.waiting.clear();
        self.asides.clear();
        for (_, part) in parts(&self.machine, &self.path)? {
            self.machine.remove(&part)?;
        }
        self.machine.rename(&self.path, &self.path.with_extension("journal-replaced"))?;
        self.file = self.machine.open(&self.path, OpenMode::ReadWrite)?;
        lines::sync_folder(&self.machine, &self.path)?;
        (self.start, self.good, self.has_rest, self.rotation_again) = (start, 0, false, 0);
        Ok(())
    }

    /// Returns the journal with rotation from now on.
    #[must_use]
    pub fn rotating(mut self, rotation: Rotation) -> Self {
        self.rotation = rotation;
        self
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a record, which is in the file after the next [`Self::commit`]. Drops the record if more than 64 MiB wait.
    pub fn add(&mut self, record: &EventRecord, data: u64) {
        if self.waiting.len() > WAITING_BYTES_MAX {
            self.dropped += 1;
            return;
        }
        self.text.clear();
        format(record, data, &mut self.text);
        self.waiting.extend_from_slice(self.text.as_bytes());
    }

    /// Returns the number of bytes that wait for the next commit.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of records that were dropped because too many bytes waited.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Writes the added lines to the file, and rotates it if it has reached its maximum size.
    ///
    /// # Errors
    /// If the file cannot be written. The lines still wait, and the next commit writes them again.
    pub fn commit(&mut self) -> io::Result<()> {
        self.commit_with(String::new)
    }

    /// As [`Self::commit`]. If older journals are deleted, the header of a new one has the words about unfinished work that `open`
    /// returns.
    ///
    /// # Errors
    /// As for [`Self::commit`].
    pub fn commit_with(&mut self, open: impl FnOnce() -> String) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if !self.asides.is_empty() {
            return self.commit_parts();
        }
        self.write_waiting()?;
        if self.rotation.size > 0 && self.good >= self.rotation.size.max(self.rotation_again) {
            // A failed rotation loses no committed record.
            let open = if self.rotation.keep > 0 { open() } else { String::new() };
            let header = self.header_with(&open);
            self.rotation_again = match self.prepare(header.as_bytes()).and_then(|file| self.rotate(file)) {
                Ok(()) => 0,
                Err(error) => {
                    tracing::warn!(%error, journal = %self.path.display(), "the journal goes on growing");
                    self.good.saturating_add(self.rotation.size)
                }
            };
        }
        Ok(())
    }

    /// Writes the waiting lines of a shared log, with a new file at each place where one begins.
    ///
    /// # Errors
    /// If a file cannot be written or renamed. The process must end then: the next start repairs what was left.
    fn commit_parts(&mut self) -> io::Result<()> {
        let mut lines = std::mem::take(&mut self.waiting);
        let mut behind = Vec::new();
        for place in std::mem::take(&mut self.asides).into_iter().rev() {
            behind.push(lines.split_off(place));
        }
        self.waiting = lines;
        self.write_waiting()?;
        while let Some(lines) = behind.pop() {
            let prepared = self.prepare(&lines);
            self.waiting = lines;
            match prepared {
                Ok(file) => {
                    let start = self.start + self.good;
                    self.rotate(file)?;
                    self.start = start;
                    self.waiting.clear();
                }
                Err(error) => {
                    tracing::warn!(%error, journal = %self.path.display(), "the journal goes on growing");
                    self.write_waiting()?;
                }
            }
        }
        Ok(())
    }

    /// Writes the waiting lines to the file.
    fn write_waiting(&mut self) -> io::Result<()> {
        self.cut_rest()?;
        let written = self
            .file
            .write_all(&self.waiting)
            .and_then(|()| if self.sync { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            self.has_rest = true;
            // If this fails too, the next commit cuts the rest off.
            let _ = self.cut_rest();
            return Err(error);
        }
        self.good += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    /// Cuts off the bytes of a failed commit: readers fail at an incomplete line that is not the last.
    fn cut_rest(&mut self) -> io::Result<()> {
        if self.has_rest {
            self.file.set_len(self.good)?;
            self.file.seek(SeekFrom::Start(self.good))?;
            self.has_rest = false;
        }
        Ok(())
    }

    /// Writes the first lines of the next file, under a name of its own, and synchronises both files. A failure changes nothing.
    fn prepare(&mut self, lines: &[u8]) -> io::Result<PreparedFile> {
        let parts = parts(&self.machine, &self.path)?;
        let mut file = self.machine.open(&self.path.with_extension(NEW_EXTENSION), OpenMode::Create)?;
        file.write_all(lines)?;
        // A rotated file is not synchronised later: it must survive a loss of power even without `sync`.
        self.file.sync_data()?;
        file.sync_data()?;
        Ok(PreparedFile { file, size: lines.len() as u64, parts })
    }

    /// Renames the file, gives its name to the next one, and removes surplus rotated files.
    fn rotate(&mut self, next: PreparedFile) -> io::Result<()> {
        let parts = next.parts;
        let number = parts.last().map_or(1, |(number, _)| number + 1);
        // Between the two renames no file has the plain name. A process that starts at this moment creates the file.
        let aside = self.path.with_extension(format!("{number:05}.{EXTENSION}"));
        if self.machine.exists(&self.path)? {
            self.machine.rename(&self.path, &aside)?;
        }
        self.machine.rename(&self.path.with_extension(NEW_EXTENSION), &self.path)?;
        lines::sync_folder(&self.machine, &self.path)?;
        (self.file, self.good) = (next.file, next.size);
        let surplus = match self.rotation.keep {
            0 => 0,
            keep => (parts.len() + 1).saturating_sub(keep as usize),
        };
        for (_, path) in parts.iter().take(surplus) {
            if let Err(error) = self.machine.remove(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                // The next rotation removes it, and those behind it.
                tracing::warn!(%error, journal = %path.display(), "cannot remove a closed journal");
                break;
            }
        }
        Ok(())
    }
}

/// The next file of a journal, which does not have the journal's name yet.
#[derive(Debug)]
struct PreparedFile {
    file: MachineFile,
    size: u64,
    /// The closed files so far, with their numbers.
    parts: Vec<(u64, PathBuf)>,
}

/// Returns a check that is true for each valid line of a journal, if it sees the lines in their order.
fn is_whole() -> impl FnMut(&str) -> bool {
    let mut has_epoch = false;
    move |line| {
        if line.starts_with(HEADER) {
            has_epoch = line.rsplit(' ').next().is_some_and(|us| us.parse::<u64>().is_ok());
            return has_epoch;
        }
        TermLine::parse(line.as_bytes()).is_some() || has_epoch && parse(line).is_ok()
    }
}

/// Errors of reading a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The journal or its folder cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A line is invalid.
    #[error("{}:{line}: {why}", path.display())]
    Line {
        /// Path of the journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Description of the mistake.
        why: &'static str,
    },
    /// Two folders have a journal or a stored file of the same name, so they belong to two runs of one system.
    #[error("{} and {} are journals of one process in two runs: name the folders of one run, each once", first.display(), second.display())]
    TwoRuns {
        /// Path of the first one.
        first: PathBuf,
        /// Path of the second one.
        second: PathBuf,
    },
}

/// Returns true if a journal has a line of a record, valid or not, or cannot be read to its end.
///
/// # Errors
/// If the file cannot be opened.
pub(crate) fn has_records(path: &Path) -> io::Result<bool> {
    let mut lines = BufReader::new(std::fs::File::open(path)?).split(b'\n');
    Ok(lines.any(|line| !line.is_ok_and(|line| line.starts_with(b"#"))))
}

/// Returns true if a process has recorded an event: in its journal, or before this was put aside.
///
/// # Errors
/// If the journal or its folder cannot be read.
pub(crate) fn had_records(path: &Path) -> io::Result<bool> {
    Ok(!parts(&HostMachine::Real, path)?.is_empty() || path.try_exists()? && has_records(path)?)
}

/// Reads a journal and calls `each` for each record, with the epoch of its times in microseconds since 1970.
///
/// # Errors
/// If the file cannot be read, or at the first invalid line. An incomplete last line is ignored.
pub fn read(path: &Path, each: impl FnMut(u64, JournalLine)) -> Result<(), JournalError> {
    read_on(&HostMachine::Real, path, each)
}

/// Reads a journal on any machine, as [`read`] does on this one.
///
/// # Errors
/// As for [`read`].
pub fn read_on(
    machine: &HostMachine,
    path: &Path,
    mut each: impl FnMut(u64, JournalLine),
) -> Result<(), JournalError> {
    read_with_headers(machine, path, |epoch_us, entry| {
        if let JournalEntry::Record(line) = entry {
            each(epoch_us, line);
        }
    })
}

/// A line of a journal that is not about terms.
#[derive(Debug)]
pub(crate) enum JournalEntry<'a> {
    /// Header of an incarnation of the process, without its newline.
    Header(&'a str),
    /// Record of an event, with its data.
    Record(JournalLine),
}

/// As [`read_on`]; calls `each` for headers, too.
///
/// # Errors
/// As for [`read`].
pub(crate) fn read_with_headers(
    machine: &HostMachine,
    path: &Path,
    mut each: impl FnMut(u64, JournalEntry<'_>),
) -> Result<(), JournalError> {
    let io = |error| JournalError::Io { path: path.to_owned(), error };
    let mut input = BufReader::new(machine.open(path, OpenMode::Read).map_err(io)?);
    let (mut text, mut number, mut epoch) = (String::new(), 0, None);
    loop {
        text.clear();
        input.read_line(&mut text).map_err(io)?;
        let Some(line) = text.strip_suffix('\n') else { return Ok(()) };
        number += 1;
        let wrong = |why| JournalError::Line { path: path.to_owned(), line: number, why };
        if let Some(header) = line.strip_prefix(HEADER) {
            let us = header.rsplit(' ').next().and_then(|us| us.parse::<u64>().ok());
            let us = us.ok_or_else(|| wrong("its header names no epoch"))?;
            epoch = Some(us);
            each(us, JournalEntry::Header(header));
            continue;
        }
        if TermLine::parse(line.as_bytes()).is_some() {
            continue;
        }
        let epoch = epoch.ok_or_else(|| wrong("a journal begins with `# fanin journal 1`"))?;
        each(epoch, JournalEntry::Record(parse(line).map_err(wrong)?));
    }
}

/// Returns a record with its times shifted from `epoch_us` to the earlier epoch `earlier_us`.
pub fn since(epoch_us: u64, earlier_us: u64, record: EventRecord) -> EventRecord {
    let later = Duration::new(epoch_us.saturating_sub(earlier_us).saturating_mul(1_000_000));
    let shift = |at: Instant| at.checked_add(later).unwrap_or(Instant::FAR_FUTURE);
    let step = match record.step {
        EventStep::Assigned { collector, unit, due, direct } => {
            EventStep::Assigned { collector, unit, due: shift(due), direct }
        }
        EventStep::Answered { readout, requested, bytes } => {
            EventStep::Answered { readout, requested: shift(requested), bytes }
        }
        EventStep::Collected { step, building, began, first_request, requests, bytes, missing } => {
            let (began, first_request) = (shift(began), shift(first_request));
            EventStep::Collected { step, building, began, first_request, requests, bytes, missing }
        }
        step => step,
    };
    EventRecord { at: shift(record.at), step, ..record }
}
