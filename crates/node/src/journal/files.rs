//! The files of a journal: their names, and where those of a shared log start.

use std::io::{self, BufRead as _, BufReader};
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
