//! Finishes the files that an earlier incarnation of a logger left unfinished. No event that was acknowledged is removed.

use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use fanin_dataflow::{EventStep, EventStream, L1Id};
use fanin_events::atlas::{AtlasWriter, FileEnd, FileHeader};

use super::file::{DATA, StoreConfig, WRITING, file_header, finish, into_io, place, room_file, stream_name};
use super::unfinished::{PIECE_BYTES, UnfinishedScan};
use crate::journal::{EarlierLines, HEADER, header_words, parse};
use crate::machine::{HostMachine, MachineFile, OpenMode};

/// Extension of a copy of an unfinished file, made before a start takes bytes away from it.
const DAMAGED: &str = "damaged";
/// Extension of a file that is to replace a damaged one.
const REPAIRED: &str = "repaired";
/// Extension of a copy that is not complete.
const NEW: &str = "new";

/// The last event of each stream that a logger acknowledged, from its journal.
///
/// A logger writes a line before it acknowledges, so this holds after the end of a process. After a loss of power it is unknown.
#[derive(Debug, Clone, Default)]
pub struct LastAcknowledged {
    boot: Option<String>,
    events: [Option<L1Id>; 2],
}

impl LastAcknowledged {
    /// Returns true if all acknowledged events of a stream are certainly among the events of a file and of those before it.
    fn is_in(&self, stream: usize, found: &UnfinishedScan) -> bool {
        let is_last = |last: L1Id| found.events.iter().rev().any(|event| event.l1_id == last.0);
        self.events.get(stream).copied().flatten().is_some_and(is_last)
    }
}

impl EarlierLines for LastAcknowledged {
    fn take_line(&mut self, line: &str) {
        if let Some(header) = line.strip_prefix(HEADER) {
            let boot = header_words(header, "boot").next().map(str::to_owned);
            if boot.is_none() || boot != self.boot {
                // Lines of the earlier boot may be gone.
                *self = Self { boot, events: [None; 2] };
            }
        } else if let Ok(line) = parse(line)
            && let EventStep::Stored { stream, .. } = line.record.step
        {
            self.events[place(stream)] = Some(line.record.event);
        }
    }
}

/// Result of a start in the folder of stored events.
#[derive(Debug, Default)]
pub(super) struct Recovered {
    /// Number of the next file.
    pub(super) next_number: u32,
    /// Copies of damaged files, those of earlier starts included.
    pub(super) copies: Vec<PathBuf>,
}

/// Finishes the files of an earlier incarnation.
///
/// An incomplete end is cut off. Damaged events in front of undamaged ones are left out. In both cases the file is copied
/// before, unless nothing that was acknowledged is taken away.
pub(super) fn recover(
    machine: &HostMachine,
    config: &StoreConfig,
    earlier: &LastAcknowledged,
) -> io::Result<Recovered> {
    let (mut recovered, mut unfinished) = (Recovered::default(), Vec::new());
    let prefix = format!("{}-", config.process);
    for path in machine.list(&config.folder)? {
        if path == room_file(config) {
            // An earlier incarnation left the test file.
            machine.remove(&path)?;
            continue;
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some((stem, kind)) = name.strip_prefix(&prefix).and_then(|rest| rest.split_once('.')) else {
            continue;
        };
        let Some((stream, number)) = stem.rsplit_once('-') else { continue };
        let Ok(number) = number.parse::<u32>() else { continue };
        // The number of a copy without its file is used up, too.
        recovered.next_number = recovered.next_number.max(number + 1);
        if kind == REPAIRED || kind == NEW {
            // An earlier start did not complete it.
            machine.remove(&path)?;
        } else if kind.ends_with(DAMAGED) {
            recovered.copies.push(path);
        } else if format!(".{kind}") == format!("{DATA}{WRITING}") {
            unfinished.push((path, stream.to_owned(), number));
        }
    }
    for (path, stream, number) in &unfinished {
        let file = Unfinished { machine, config, path, stream, number: *number };
        if let Some((events, bytes)) = file.recover(earlier, &mut recovered.copies)? {
            tracing::warn!(file = %path.display(), events, bytes, "finished a file of an earlier process");
        }
    }
    if let Some(first) = recovered.copies.first() {
        let (copies, first) = (recovered.copies.len(), first.display());
        tracing::warn!(copies, %first, "copies of damaged files are kept until they are deleted by hand");
    }
    Ok(recovered)
}

/// A file of an earlier process without its end.
struct Unfinished<'a> {
    machine: &'a HostMachine,
    config: &'a StoreConfig,
    path: &'a Path,
    stream: &'a str,
    number: u32,
}

impl Unfinished<'_> {
    /// Finishes the file. Returns its numbers of events and bytes; `None` if it is damaged and cannot be repaired now. It stays
    /// as it is then.
    fn recover(
        &self,
        earlier: &LastAcknowledged,
        copies: &mut Vec<PathBuf>,
    ) -> io::Result<Option<(u32, u64)>> {
        let found = UnfinishedScan::read(&mut self.machine.open(self.path, OpenMode::Read)?, &self.header())?;
        let streams = [EventStream::Physics, EventStream::Debug];
        let stream = streams.into_iter().find(|stream| stream_name(*stream) == self.stream).map(place);
        if found.has_events_behind_damage() || !found.has_right_records {
            let (places, first) = (found.faults.len(), found.faults.first().map(|place| &place.first));
            let file = self.path.display();
            tracing::error!(%file, places, first, "an unfinished file is damaged; its undamaged events are kept");
            let rebuilt = self.keep_damaged(copies).and_then(|()| self.rebuild(&found));
            return Ok(self.or_leave(rebuilt));
        }
        if !found.faults.is_empty() && !stream.is_some_and(|stream| earlier.is_in(stream, &found)) {
            // Not necessarily incomplete: the last acknowledged event may be damaged.
            let file = self.path.display();
            tracing::warn!(%file, first = found.faults[0].first, "cuts off the damaged end of a file");
            if self.or_leave(self.keep_damaged(copies)).is_none() {
                return Ok(None);
            }
        }
        let Some(last) = found.events.last() else {
            // The file holds no whole event.
            self.machine.remove(self.path)?;
            return Ok(Some((0, 0)));
        };
        let (events, end) = (found.events.len() as u32, last.range.end);
        let mut file = self.machine.open(self.path, OpenMode::Write)?;
        // The events are written again, since they may be in the page cache only (`lines::repair`). `finish`
        // synchronises them with the end of the file.
        if io::copy(&mut self.input(self.path)?.take(end), &mut file)? < end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.set_len(end)?;
        let writer = AtlasWriter::resume(Vec::new(), events, end);
        finish(self.machine, self.path, &mut file, writer, false)?;
        Ok(Some((events, end)))
    }

    /// Returns the result of a step of the repair; `None` after an error. The file stays as it is then. The audit reads it, and
    /// the next start tries again.
    fn or_leave<T>(&self, result: io::Result<T>) -> Option<T> {
        let log = |error: &io::Error| {
            tracing::error!(%error, file = %self.path.display(), "cannot repair an unfinished file; the next start does");
            for extension in [NEW, REPAIRED] {
                // Incomplete copies only take space.
                let _ = self.machine.remove(&self.with_extension(extension));
            }
        };
        result.inspect_err(log).ok()
    }

    fn header(&self) -> FileHeader {
        file_header(self.config, self.stream, self.number)
    }

    /// Opens a file whose bytes are read one after the other.
    fn input(&self, path: &Path) -> io::Result<BufReader<MachineFile>> {
        Ok(BufReader::with_capacity(PIECE_BYTES, self.machine.open(path, OpenMode::Read)?))
    }

    /// Replaces the file by a finished one with its undamaged events.
    fn rebuild(&self, found: &UnfinishedScan) -> io::Result<(u32, u64)> {
        let (header, mut size) = (self.header(), 0);
        // The new file takes the place of the old one at once: at no moment do both count, or none.
        self.replace(&self.with_extension(REPAIRED), self.path, |file| {
            let (mut input, mut at, mut bytes) = (self.input(self.path)?, 0, Vec::new());
            let output = BufWriter::with_capacity(PIECE_BYTES, file);
            let mut writer = AtlasWriter::new(output, &header).map_err(into_io)?;
            for event in &found.events {
                bytes.resize((event.range.end - event.range.start) as usize, 0);
                // `seek` would read a whole piece again for each event.
                input.seek_relative((event.range.start - at) as i64)?;
                input.read_exact(&mut bytes)?;
                at = event.range.end;
                writer.copy_event(&bytes).map_err(into_io)?;
            }
            size = writer.written_bytes();
            writer.finish(&FileEnd::default()).map_err(into_io)?.flush()
        })?;
        self.machine.rename(self.path, &self.config.folder.join(header.file_name))?;
        self.machine.sync_folder(&self.config.folder)?;
        Ok((found.events.len() as u32, size))
    }

    /// Keeps a copy of the file, which no later start removes, and adds its path to `copies`.
    fn keep_damaged(&self, copies: &mut Vec<PathBuf>) -> io::Result<()> {
        let mut kept = self.with_extension(DAMAGED);
        for copy in 2_u32.. {
            if !self.machine.exists(&kept)? {
                self.replace(&self.with_extension(NEW), &kept, |file| {
                    io::copy(&mut self.input(self.path)?, file).map(drop)
                })?;
                tracing::warn!(copy = %kept.display(), "copied a damaged file");
                copies.push(kept);
                break;
            }
            // An earlier start may have ended behind this step.
            if have_same_bytes(self.input(self.path)?, self.input(&kept)?)? {
                break;
            }
            kept = self.with_extension(&format!("{copy}.{DAMAGED}"));
        }
        Ok(())
    }

    /// Returns the path of another file of this number. No audit reads it, since its name lacks `.data`.
    fn with_extension(&self, extension: &str) -> PathBuf {
        let Self { config, stream, number, .. } = self;
        config.folder.join(format!("{}-{stream}-{number:05}.{extension}", config.process))
    }

    /// Creates `new` with `write`, brings it to disk, and gives it the name `path`.
    fn replace(
        &self,
        new: &Path,
        path: &Path,
        write: impl FnOnce(&mut MachineFile) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut file = self.machine.open(new, OpenMode::Create)?;
        write(&mut file)?;
        file.sync_all()?;
        self.machine.rename(new, path)?;
        self.machine.sync_folder(&self.config.folder)
    }
}

fn have_same_bytes(mut one: impl BufRead, mut other: impl BufRead) -> io::Result<bool> {
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let len = left.len().min(right.len());
        if left[..len] != right[..len] || len == 0 {
            return Ok(left.is_empty() && right.is_empty());
        }
        one.consume(len);
        other.consume(len);
    }
}
