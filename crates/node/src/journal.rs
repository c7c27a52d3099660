//! The journal: the records of a process, one line each, in files that survive it.
//!
//! The supervisor writes an assignment down before it is sent, and takes up its work from here when it is started
//! again. The audit and the result tables are made from the journals of all processes.
//!
//! A line is `TIME L1ID WHAT ARGUMENT…`, with the time in picoseconds since an epoch. The line `# fanin journal 1
//! PROCESS epoch-us MICROSECONDS` above it names that epoch, in microseconds since 1970. A process that is started
//! again writes another such line. The last line may be torn; the rest is whole.
//!
//! A journal that has grown to its size is renamed to `PROCESS.NUMBER.journal`, and a new one is begun. A process that
//! reads a folder's journals reads these as well; their names sort in the order in which they were written.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fanin_dataflow::{EventRecord, EventStep, EventStream, L1Id, Outcome};
use fanin_units::{Bytes, Duration, Instant};

use crate::lines;
use crate::machine::{HostMachine, MachineFile, OpenMode};
use crate::succession::TermLine;

pub(crate) const HEADER: &str = "# fanin journal 1";
/// Most bytes that wait in memory while the disk takes nothing.
const WAITING_BYTES_MAX: usize = 64 << 20;

const OUTCOMES: [(Outcome, &str); 4] = [
    (Outcome::Rejected, "rejected"),
    (Outcome::Accepted, "accepted"),
    (Outcome::Stored, "stored"),
    (Outcome::Debug, "debug"),
];
const STREAMS: [(EventStream, &str); 2] = [(EventStream::Physics, "physics"), (EventStream::Debug, "debug")];

/// The name of an outcome, in journals, metrics and explanations alike.
pub(crate) fn outcome_name(outcome: Outcome) -> &'static str {
    word(&OUTCOMES, &outcome)
}

/// A line of a journal: a record, and the additions of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalLine {
    /// The record; its time counts from the epoch of its process.
    pub record: EventRecord,
    /// For [`EventStep::Collected`]: bytes of fragments so far, without headers.
    pub data: u64,
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    machine: HostMachine,
    file: MachineFile,
    path: PathBuf,
    waiting: Vec<u8>,
    text: String,
    good: u64,
    /// True if bytes of a failed commit may lie behind the good ones.
    has_rest: bool,
    sync: bool,
    dropped: u64,
    process: String,
    epoch_us: u64,
    rotation: Rotation,
}

/// Size and number at which journals are put aside and deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rotation {
    /// Its size then, bytes; zero: never.
    pub size: u64,
    /// Number of journals kept of those put aside, the youngest; zero keeps all.
    pub keep: u32,
}

impl Journal {
    /// Opens or makes the journal of a process; a torn last line of an earlier life is cut off. A loss of power may have damaged
    /// more lines. With `sync`, everything behind the first of them was never committed, and is cut off. Without, the others stay.
    ///
    /// The times of its records count from `epoch_us`, in microseconds since 1970. With `sync`, committed records
    /// survive not only the process but the machine.
    ///
    /// # Errors
    /// If the file cannot be opened, read or written.
    pub fn open(path: &Path, process: &str, epoch_us: u64, sync: bool) -> io::Result<Self> {
        Self::open_on(&HostMachine::Real, path, process, epoch_us, sync)
    }

    /// The same on any machine.
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
        let mut journal = Self::open_shared(machine, path, process, epoch_us, sync)?;
        journal.waiting = journal.header().into_bytes();
        journal.commit()?;
        Ok(journal)
    }

    /// The same for a log that two supervisors share: no line is added.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_shared(
        machine: &HostMachine,
        path: &Path,
        process: &str,
        epoch_us: u64,
        sync: bool,
    ) -> io::Result<Self> {
        lines::repair(machine, path, sync, is_whole())?;
        let mut file = machine.open(path, OpenMode::ReadWrite)?;
        let good = lines::whole(&mut file)?;
        file.set_len(good)?;
        file.seek(SeekFrom::Start(good))?;
        if sync {
            // A name that is not on disk takes the file with it.
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
            epoch_us,
            rotation: Rotation::default(),
        })
    }

    /// The line that begins a life of the process.
    pub fn header(&self) -> String {
        format!("{HEADER} {} epoch-us {}\n", self.process, self.epoch_us)
    }

    /// Adds whole lines of another journal.
    pub fn append(&mut self, text: &[u8]) {
        self.waiting.extend_from_slice(text);
    }

    /// Bytes that are on file.
    pub fn size(&self) -> u64 {
        self.good
    }

    /// Puts the file aside under a name that no audit reads, and begins an empty one.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn restart(&mut self) -> io::Result<()> {
        self.waiting.clear();
        self.machine.rename(&self.path, &self.path.with_extension("journal-replaced"))?;
        self.file = self.machine.open(&self.path, OpenMode::ReadWrite)?;
        lines::sync_folder(&self.machine, &self.path)?;
        (self.good, self.has_rest) = (0, false);
        Ok(())
    }

    /// Puts the file aside from now on whenever it has grown to its size.
    #[must_use]
    pub fn rotating(mut self, rotation: Rotation) -> Self {
        self.rotation = rotation;
        self
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line, which is on file after the next [`Self::commit`].
    pub fn add(&mut self, record: &EventRecord, data: u64) {
        if self.waiting.len() > WAITING_BYTES_MAX {
            self.dropped += 1;
            return;
        }
        self.text.clear();
        format(record, data, &mut self.text);
        self.waiting.extend_from_slice(self.text.as_bytes());
    }

    /// Bytes that wait for the next commit.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// Lines that were given up because the disk took nothing for too long.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Writes the added lines to the file.
    ///
    /// # Errors
    /// If it cannot be written; nothing of it is on file then, and the next commit tries again.
    pub fn commit(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.cut_rest()?;
        let written = self
            .file
            .write_all(&self.waiting)
            .and_then(|()| if self.sync { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            self.has_rest = true;
            // The next commit tries again if this fails, too.
            let _ = self.cut_rest();
            return Err(error);
        }
        self.good += self.waiting.len() as u64;
        self.waiting.clear();
        if self.rotation.size > 0 && self.good >= self.rotation.size {
            // Committed records are safe either way.
            if let Err(error) = self.rotate() {
                tracing::warn!(%error, journal = %self.path.display(), "the journal goes on growing");
                self.rotation.size = self.rotation.size.saturating_add(self.good);
            }
        }
        Ok(())
    }

    /// Cuts off the remains of a failed commit, since a partial line with whole lines behind it is unreadable.
    fn cut_rest(&mut self) -> io::Result<()> {
        if self.has_rest {
            self.file.set_len(self.good)?;
            self.file.seek(SeekFrom::Start(self.good))?;
            self.has_rest = false;
        }
        Ok(())
    }

    /// Puts the file aside and begins a new one. If that fails, keeps writing the old one.
    fn rotate(&mut self) -> io::Result<()> {
        let parts = parts(&self.machine, &self.path)?;
        let number = parts.last().map_or(1, |(number, _)| number + 1);
        let next = self.path.with_extension(NEW_EXTENSION);
        let header = self.header();
        let mut file = self.machine.open(&next, OpenMode::Create)?;
        file.write_all(header.as_bytes())?;
        // A file put aside is not synchronised again: it must survive a loss of power without `sync`, too.
        self.file.sync_data()?;
        file.sync_data()?;
        // Between the two there is no journal of the plain name; a process that starts then begins one.
        let aside = self.path.with_extension(format!("{number:05}.{EXTENSION}"));
        if self.machine.exists(&self.path)? {
            self.machine.rename(&self.path, &aside)?;
        }
        self.machine.rename(&next, &self.path)?;
        lines::sync_folder(&self.machine, &self.path)?;
        (self.file, self.good) = (file, header.len() as u64);
        let surplus = match self.rotation.keep {
            0 => 0,
            keep => (parts.len() + 1).saturating_sub(keep as usize),
        };
        for (_, path) in parts.iter().take(surplus) {
            self.machine.remove(path)?;
        }
        Ok(())
    }
}

const EXTENSION: &str = "journal";
const NEW_EXTENSION: &str = "journal-new";

/// The rotated files of a journal by number, the oldest first.
pub(crate) fn parts(machine: &HostMachine, path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { return Ok(Vec::new()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut parts = Vec::new();
    for entry in machine.list(folder)? {
        let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name
            .strip_prefix(stem)
            .and_then(|rest| rest.strip_prefix('.'))
            .and_then(|rest| rest.strip_suffix(EXTENSION))
            .and_then(|rest| rest.strip_suffix('.'));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            parts.push((number, entry));
        }
    }
    parts.sort();
    Ok(parts)
}

/// True if older journals of the same process were deleted, this being the oldest that is left.
///
/// # Errors
/// If the folder cannot be read.
pub fn follows_deleted(machine: &HostMachine, path: &Path) -> io::Result<bool> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // `PROCESS.NUMBER.journal`; numbers begin at 1. The newest journal has no number, and those before it do.
    let mut words = name.rsplit('.').skip(1);
    let (Some(number), Some(process)) = (words.next(), words.next()) else { return Ok(false) };
    let Ok(number) = number.parse::<u64>() else { return Ok(false) };
    let oldest = parts(machine, &path.with_file_name(format!("{process}.{EXTENSION}")))?
        .first()
        .map(|&(oldest, _)| oldest);
    Ok(number > 1 && oldest == Some(number))
}

/// True for the lines of a journal, in their order.
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

fn word<T: PartialEq>(all: &[(T, &'static str)], one: &T) -> &'static str {
    all.iter().find(|(other, _)| other == one).map_or("", |(_, word)| word)
}

fn format(record: &EventRecord, data: u64, out: &mut String) {
    let EventRecord { at, event, step } = record;
    // Writing to a string cannot fail.
    let _ = write!(out, "{} {} ", at.get(), event.0);
    let _ = match step {
        EventStep::Assigned { collector, unit, due, direct } => {
            write!(out, "assigned {collector} {unit} {} {}", due.get(), u8::from(*direct))
        }
        EventStep::Reassigned { from } => write!(out, "reassigned {from}"),
        EventStep::Completed { collector, outcome } => {
            write!(out, "completed {collector} {}", outcome_name(*outcome))
        }
        EventStep::Duplicated { collector, outcome } => {
            write!(out, "duplicated {collector} {}", outcome_name(*outcome))
        }
        EventStep::Xoff => write!(out, "xoff"),
        EventStep::Xon => write!(out, "xon"),
        EventStep::Received { unit } => write!(out, "received {unit}"),
        EventStep::FirstRequest { step } => write!(out, "first-request {step}"),
        EventStep::Answered { readout, requested, bytes } => {
            write!(out, "answered {readout} {} {}", requested.get(), bytes.get())
        }
        EventStep::Missing { readout, fragments } => write!(out, "missing {readout} {fragments}"),
        EventStep::Collected { step, building, began, first_request, requests, bytes, missing } => write!(
            out,
            "collected {step} {} {} {} {requests} {} {missing} {data}",
            u8::from(*building),
            began.get(),
            first_request.get(),
            bytes.get()
        ),
        EventStep::Decided { unit, outcome } => write!(out, "decided {unit} {}", outcome_name(*outcome)),
        EventStep::Shipped { logger, attempt, stream, bytes, missing } => {
            write!(out, "shipped {logger} {attempt} {} {} {missing}", word(&STREAMS, stream), bytes.get())
        }
        EventStep::Acknowledged { logger } => write!(out, "acknowledged {logger}"),
        EventStep::Abandoned => write!(out, "abandoned"),
        EventStep::Cleared => write!(out, "cleared"),
        EventStep::Stored { collector, stream, missing } => {
            write!(out, "stored {collector} {} {missing}", word(&STREAMS, stream))
        }
        EventStep::Deleted => write!(out, "deleted"),
        EventStep::TimedOut { times } => write!(out, "timed-out {times}"),
    };
    out.push('\n');
}

/// Errors of reading a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system does not give it.
    #[error("cannot read the journal {}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A line means nothing.
    #[error("{}:{line}: {why}", path.display())]
    Line {
        /// Path of the journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Description of the error.
        why: &'static str,
    },
}

/// Reads a journal: each of its lines, with the epoch that its time counts from in microseconds since 1970.
///
/// # Errors
/// The first thing that is wrong; a torn last line is not.
pub fn read(path: &Path, each: impl FnMut(u64, JournalLine)) -> Result<(), JournalError> {
    read_on(&HostMachine::Real, path, each)
}

/// The same on any machine.
///
/// # Errors
/// As for [`read`].
pub fn read_on(
    machine: &HostMachine,
    path: &Path,
    mut each: impl FnMut(u64, JournalLine),
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
            epoch = Some(us.ok_or_else(|| wrong("its header names no epoch"))?);
            continue;
        }
        if TermLine::parse(line.as_bytes()).is_some() {
            continue;
        }
        let epoch = epoch.ok_or_else(|| wrong("a journal begins with `# fanin journal 1`"))?;
        each(epoch, parse(line).map_err(wrong)?);
    }
}

/// Reads the line of a record, without its end.
pub(crate) fn parse(line: &str) -> Result<JournalLine, &'static str> {
    let mut words = line.split(' ');
    let mut next = || words.next().ok_or("it has too few words");
    fn number<T: std::str::FromStr>(word: &str) -> Result<T, &'static str> {
        word.parse().map_err(|_| "a word is no number that can stand there")
    }
    fn time(word: &str) -> Result<Instant, &'static str> {
        number(word).map(Instant::new)
    }
    fn one_of<T: Copy>(all: &[(T, &str)], word: &str) -> Result<T, &'static str> {
        all.iter()
            .find(|(_, name)| *name == word)
            .map(|(one, _)| *one)
            .ok_or("a word is none of those that can stand there")
    }
    let flag = |word: &str| number::<u8>(word).map(|flag| flag != 0);
    let at = time(next()?)?;
    let event = L1Id(number(next()?)?);
    let mut data = 0;
    let step = match next()? {
        "assigned" => EventStep::Assigned {
            collector: number(next()?)?,
            unit: number(next()?)?,
            due: time(next()?)?,
            direct: flag(next()?)?,
        },
        "reassigned" => EventStep::Reassigned { from: number(next()?)? },
        "completed" => {
            EventStep::Completed { collector: number(next()?)?, outcome: one_of(&OUTCOMES, next()?)? }
        }
        "duplicated" => {
            EventStep::Duplicated { collector: number(next()?)?, outcome: one_of(&OUTCOMES, next()?)? }
        }
        "xoff" => EventStep::Xoff,
        "xon" => EventStep::Xon,
        "received" => EventStep::Received { unit: number(next()?)? },
        "first-request" => EventStep::FirstRequest { step: number(next()?)? },
        "answered" => EventStep::Answered {
            readout: number(next()?)?,
            requested: time(next()?)?,
            bytes: Bytes::new(number(next()?)?),
        },
        "missing" => EventStep::Missing { readout: number(next()?)?, fragments: number(next()?)? },
        "collected" => {
            let step = EventStep::Collected {
                step: number(next()?)?,
                building: flag(next()?)?,
                began: time(next()?)?,
                first_request: time(next()?)?,
                requests: number(next()?)?,
                bytes: Bytes::new(number(next()?)?),
                missing: number(next()?)?,
            };
            data = number(next()?)?;
            step
        }
        "decided" => EventStep::Decided { unit: number(next()?)?, outcome: one_of(&OUTCOMES, next()?)? },
        "shipped" => EventStep::Shipped {
            logger: number(next()?)?,
            attempt: number(next()?)?,
            stream: one_of(&STREAMS, next()?)?,
            bytes: Bytes::new(number(next()?)?),
            missing: number(next()?)?,
        },
        "acknowledged" => EventStep::Acknowledged { logger: number(next()?)? },
        "abandoned" => EventStep::Abandoned,
        "cleared" => EventStep::Cleared,
        "stored" => EventStep::Stored {
            collector: number(next()?)?,
            stream: one_of(&STREAMS, next()?)?,
            missing: number(next()?)?,
        },
        "deleted" => EventStep::Deleted,
        "timed-out" => EventStep::TimedOut { times: number(next()?)? },
        _ => return Err("it tells of something unknown"),
    };
    if words.next().is_some() {
        return Err("it has too many words");
    }
    Ok(JournalLine { record: EventRecord { at, event, step }, data })
}

/// Shifts a record's time from its own epoch to an earlier one.
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
