//! The namespaces of a run, written down before they are created, so that a killed run can be cleaned up.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::RunName;
use crate::inside::DIRECTORY;
use crate::name::PREFIX;

/// The directory of the ledgers. A reboot empties its file system, and also removes the namespaces.
const LEDGERS: &str = "/run/fanin";

/// The list of everything that a run may have created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The run that made the namespaces.
    pub run: RunName,
    /// The process of the run.
    pub pid: u32,
    /// Start time of that process, in clock ticks since boot (`/proc/PID/stat`, field 22), as process numbers are reused.
    pub started: u64,
    /// All namespaces of the run; devices, addresses and routes are removed with them.
    pub namespaces: Vec<String>,
}

/// Errors of writing, reading or processing a ledger.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file's content is not a ledger; no part of it is used.
    #[error("{path} is not a ledger of a run ({source}): look into it, and delete it by hand")]
    Garbled {
        /// Path of the ledger.
        path: PathBuf,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// `ip netns del` refused.
    #[error("cannot remove the network namespace {namespace}: {said}")]
    Stuck {
        /// Name of the namespace.
        namespace: String,
        /// The message of `ip`.
        said: String,
    },
}

/// The result of [`clean`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Number of dead runs.
    pub runs: usize,
    /// Number of namespaces removed.
    pub namespaces: usize,
    /// Processes that were still inside, and were killed.
    pub processes: usize,
}

impl Ledger {
    /// Makes the ledger of this process.
    pub(crate) fn new(run: RunName, namespaces: Vec<String>) -> Result<Self, LedgerError> {
        let pid = std::process::id();
        let path = PathBuf::from(format!("/proc/{pid}/stat"));
        let gone = || io::Error::new(io::ErrorKind::InvalidData, "no start time in it");
        let started = start_time(pid).ok_or_else(|| LedgerError::File { path, source: gone() })?;
        Ok(Self { run, pid, started, namespaces })
    }

    pub(crate) fn write(&self) -> Result<(), LedgerError> {
        let path = self.path();
        let error = |source| LedgerError::File { path: path.clone(), source };
        fs::create_dir_all(LEDGERS).map_err(error)?;
        // Renamed into place: a ledger is whole or absent.
        let draft = path.with_extension("new");
        let text =
            serde_json::to_vec(self).map_err(|source| LedgerError::Garbled { path: path.clone(), source })?;
        fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path)).map_err(error)
    }

    /// Returns true if the run's process is still alive.
    #[must_use]
    pub fn alive(&self) -> bool {
        start_time(self.pid) == Some(self.started)
    }

    /// Kills the processes inside, and removes the namespaces and the ledger. Returns the numbers of removed objects.
    pub(crate) fn work_off(&self) -> Result<Cleaned, LedgerError> {
        let mut cleaned = Cleaned { runs: 1, ..Cleaned::default() };
        // A ledger with foreign names is not followed.
        let is_ours = |namespace: &&String| {
            namespace.starts_with(PREFIX)
                && !namespace.contains(|c: char| c == '/' || c.is_whitespace())
                && Path::new(DIRECTORY).join(namespace).exists()
        };
        let ours: Vec<&String> = self.namespaces.iter().filter(is_ours).collect();
        cleaned.processes += end_processes(&ours);
        let lines: Vec<String> = ours.iter().map(|namespace| format!("netns del {namespace}")).collect();
        match crate::ip::batch(None, &lines) {
            Ok(()) => cleaned.namespaces += ours.len(),
            Err(crate::BuildError::Refused { line, said, .. }) => {
                let namespace = line.trim_start_matches("netns del ").to_owned();
                return Err(LedgerError::Stuck { namespace, said });
            }
            Err(error) => {
                let namespace = ours.first().map_or_else(String::new, |first| (*first).clone());
                return Err(LedgerError::Stuck { namespace, said: error.to_string() });
            }
        }
        let path = self.path();
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(LedgerError::File { path, source })
            }
            _ => Ok(cleaned),
        }
    }

    fn path(&self) -> PathBuf {
        Path::new(LEDGERS).join(format!("{}.json", self.run))
    }
}

/// Returns the ledgers of dead processes' runs, in the order of their names.
///
/// # Errors
/// [`LedgerError`] for an unreadable directory or file, or a file that is no ledger.
pub fn leftovers() -> Result<Vec<Ledger>, LedgerError> {
    let directory = PathBuf::from(LEDGERS);
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(LedgerError::File { path: directory, source }),
        Ok(entries) => entries,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|source| LedgerError::File { path: directory.clone(), source })?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = match fs::read(&path) {
            // The ledger's run ended in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => return Err(LedgerError::File { path, source }),
            Ok(text) => text,
        };
        let ledger: Ledger = serde_json::from_slice(&text)
            .map_err(|source| LedgerError::Garbled { path: path.clone(), source })?;
        if !ledger.alive() {
            found.push(ledger);
        }
    }
    found.sort_by(|a, b| a.run.cmp(&b.run));
    Ok(found)
}

/// Removes the remains of dead runs; live runs are not touched.
///
/// # Errors
/// [`LedgerError`]; parts removed before it stay removed, and another call continues.
pub fn clean() -> Result<Cleaned, LedgerError> {
    let mut total = Cleaned::default();
    for ledger in leftovers()? {
        let cleaned = ledger.work_off()?;
        total.runs += cleaned.runs;
        total.namespaces += cleaned.namespaces;
        total.processes += cleaned.processes;
    }
    Ok(total)
}

/// Kills the processes inside this run's namespaces, which only the run can have started. Returns their number.
fn end_processes(namespaces: &[&String]) -> usize {
    let number = |path: &Path| fs::metadata(path).ok().map(|found| found.ino());
    let numbers: Vec<u64> =
        namespaces.iter().filter_map(|namespace| number(&Path::new(DIRECTORY).join(namespace))).collect();
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let inside = pids.filter(|pid| {
        number(Path::new(&format!("/proc/{pid}/ns/net"))).is_some_and(|inside| numbers.contains(&inside))
    });
    inside
        .filter_map(rustix::process::Pid::from_raw)
        .filter(|&pid| rustix::process::kill_process(pid, rustix::process::Signal::KILL).is_ok())
        .count()
}

/// Reads a process's start time in clock ticks since boot: field 22 of `/proc/PID/stat`. The second field is a name in brackets
/// with any characters.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_another_ones_id_is_not_it() {
        let ledger = Ledger::new(RunName::new(), Vec::new()).unwrap();
        assert!(ledger.alive());
        assert!(!Ledger { started: ledger.started + 1, ..ledger }.alive());
    }
}
