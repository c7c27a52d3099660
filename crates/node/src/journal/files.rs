//! The files of a journal: their names, and where those of a shared log start.

use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::line::{HEADER, header_words};
use crate::lines;
use crate::machine::{HostMachine, OpenMode};

pub(super) const EXTENSION: &str = "journal";
pub(super) const NEW_EXTENSION: &str = "journal-new";

/// Returns the rotated files of a journal with their numbers, the oldest first.
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

/// Files of a shared log with the offsets at which they start, the oldest first.
pub(crate) type LogFiles = Vec<(u64, PathBuf)>;

/// Returns the files of a shared log: the closed ones that are kept, and the present one.
///
/// # Errors
/// If a file or the folder cannot be read. A file that does not exist is left out: its process may be renaming or deleting it.
pub(crate) fn log_files(machine: &HostMachine, path: &Path) -> io::Result<LogFiles> {
    let parts = parts(machine, path)?.into_iter().map(|(_, part)| part);
    in_order(machine, parts.chain([path.to_owned()]))
}

/// As [`log_files`], from the paths of one log's files.
///
/// # Errors
/// As for [`log_files`].
pub(crate) fn in_order(
    machine: &HostMachine,
    paths: impl IntoIterator<Item = PathBuf>,
) -> io::Result<LogFiles> {
    let mut files = Vec::new();
    for path in paths {
        match start_of(machine, &path) {
            Ok(start) => files.push((number(&path), start, path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, start, path)| (start, path)).collect())
}

/// Returns the number of a journal's file, from `PROCESS.NUMBER.journal`; the greatest one for the present file.
fn number(path: &Path) -> u64 {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    stem.split_once('.').and_then(|(_, number)| number.parse().ok()).unwrap_or(u64::MAX)
}

/// Returns true if these files of a log end with its present one. The end of a process between two renames leaves it under the
/// name that it has before.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn is_present(machine: &HostMachine, files: &LogFiles, path: &Path) -> io::Result<bool> {
    let Some((start, last)) = files.last() else { return Ok(false) };
    if last == path {
        return Ok(true);
    }
    let new = path.with_extension(NEW_EXTENSION);
    if !machine.exists(&new)? {
        return Ok(false);
    }
    let size = machine.open(last, OpenMode::Read)?.seek(SeekFrom::End(0))?;
    Ok(start_of(machine, &new)? == start + size)
}

/// Gives the name of a shared log back to its last closed file, if the process ended before the next file had the name.
///
/// # Errors
/// If the folder cannot be read, or the file cannot be renamed.
pub(crate) fn restore(machine: &HostMachine, path: &Path) -> io::Result<()> {
    if let Some((_, last)) = parts(machine, path)?.last()
        && !machine.exists(path)?
    {
        machine.rename(last, path)?;
        lines::sync_folder(machine, path)?;
    }
    Ok(())
}

/// Returns the offset in the shared log at which a file with this first line starts. `None` without a header that names it.
pub(crate) fn offset(line: &str) -> Option<u64> {
    header_words(line.strip_prefix(HEADER)?, "at").next()?.parse().ok()
}

/// Returns the offset in the shared log at which a file starts: 0 for the first file, and for other journals.
pub(crate) fn start_of(machine: &HostMachine, path: &Path) -> io::Result<u64> {
    let mut line = String::new();
    BufReader::new(machine.open(path, OpenMode::Read)?).read_line(&mut line)?;
    Ok(offset(line.trim_end()).unwrap_or(0))
}

/// Returns true if an older file of the same process is gone. A rotated file follows another one, and the first file of a
/// shared log starts at offset 0.
///
/// # Errors
/// If the folder cannot be read.
pub fn follows_deleted(machine: &HostMachine, path: &Path) -> io::Result<bool> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // `PROCESS.NUMBER.journal`; numbers begin at 1. The newest journal has no number, the rotated ones have.
    let mut words = name.rsplit('.').skip(1);
    let last = words.next().unwrap_or_default();
    let (process, number) = match (last.parse::<u64>(), words.next()) {
        (Ok(number), Some(process)) => (process, number),
        _ => (last, u64::MAX),
    };
    let parts = parts(machine, &path.with_file_name(format!("{process}.{EXTENSION}")))?;
    let has_older = parts.iter().any(|(other, _)| *other < number);
    if !has_older && start_of(machine, path)? > 0 {
        return Ok(true);
    }
    Ok(number != u64::MAX && number > 1 && parts.iter().all(|(other, _)| other + 1 != number))
}
