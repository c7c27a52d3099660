//! Locks of files (`flock(2)`): one run a folder, one process a journal. The kernel releases a lock when its process ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::machine::HostMachine;
use crate::node::ProcessError;

/// Maximum wait for the lock of a process. A killed process may leave it to a child for an instant, between fork and exec.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Result of an attempt to lock an open file.
#[derive(Debug)]
pub(crate) enum LockAttempt {
    Locked(File),
    /// Another open file holds the lock.
    Held,
    /// Another file has the path, or none: a former owner removed or moved the file after it was opened here.
    Gone,
}

/// Opens a lock's file. Creates it if it does not exist.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// Locks an open file that still has its path.
pub(crate) fn try_lock(path: &Path, file: File) -> io::Result<LockAttempt> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(LockAttempt::Held),
        Err(error) => return Err(error.into()),
    }
    let place = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
    let own = place(&file.metadata()?);
    match std::fs::metadata(path) {
        Ok(there) if place(&there) == own => Ok(LockAttempt::Locked(file)),
        Ok(_) => Ok(LockAttempt::Gone),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LockAttempt::Gone),
        Err(error) => Err(error),
    }
}

/// Lock against a second process of the same name, which would write the same files.
#[derive(Debug)]
pub(crate) struct ProcessLock {
    file: Option<File>,
    /// The file's path, if it is removed at the end.
    removed: Option<PathBuf>,
}

impl ProcessLock {
    /// Locks `PROCESS.lock` in the folder of the journals. A simulated machine runs each process once, and has no lock.
    ///
    /// # Errors
    /// [`ProcessError::Runs`] if another process holds the lock, [`ProcessError::Lock`] if the file cannot be locked.
    pub(crate) fn take(machine: &HostMachine, folder: &Path, process: &str) -> Result<Self, ProcessError> {
        Self::take_file(machine, folder, process, &format!("{process}.lock"))
    }

    fn take_file(
        machine: &HostMachine,
        folder: &Path,
        process: &str,
        name: &str,
    ) -> Result<Self, ProcessError> {
        if machine.is_simulated() {
            return Ok(Self { file: None, removed: None });
        }
        let path = folder.join(name);
        let until = Instant::now() + WAIT_MAX;
        loop {
            match open_lock(&path).and_then(|file| try_lock(&path, file)) {
                Ok(LockAttempt::Locked(file)) => return Ok(Self { file: Some(file), removed: None }),
                Ok(_) if Instant::now() < until => std::thread::sleep(PAUSE),
                Ok(_) => {
                    let (process, folder) = (process.to_owned(), folder.to_owned());
                    return Err(ProcessError::Runs { process, folder });
                }
                Err(error) => return Err(ProcessError::Lock { path, error }),
            }
        }
    }

    /// Locks the files of a logger in the folder of stored events, which may be another folder. The lock's file is removed at
    /// the end: the folder then holds nothing but events.
    ///
    /// # Errors
    /// As for [`Self::take`].
    pub(crate) fn take_data(
        machine: &HostMachine,
        folder: &Path,
        process: &str,
    ) -> Result<Self, ProcessError> {
        // The folder may be that of the journals, too.
        let name = format!("{process}-files.lock");
        let mut lock = Self::take_file(machine, folder, process, &name)?;
        lock.removed = lock.file.is_some().then(|| folder.join(name));
        Ok(lock)
    }
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        // The file is removed while it is locked. A file that stays is locked again by the next process.
        if let Some(path) = &self.removed {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_logger_have_one_writer_and_no_lock_is_left() {
        let folder = std::env::temp_dir().join(format!("fanin-data-lock-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let take = |process| ProcessLock::take_data(&HostMachine::Real, &folder, process);
        let journal = ProcessLock::take(&HostMachine::Real, &folder, "logger-0").unwrap();
        let first = take("logger-0").unwrap();
        assert!(matches!(take("logger-0"), Err(ProcessError::Runs { .. })));
        drop(take("logger-1").unwrap());
        // A process that opened the file before it was removed does not take the removed file for its lock.
        let path = folder.join("logger-0-files.lock");
        let opened = open_lock(&path).unwrap();
        drop(first);
        assert!(matches!(try_lock(&path, opened), Ok(LockAttempt::Gone)));
        drop((take("logger-0").unwrap(), journal));
        let left: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["logger-0.lock"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
