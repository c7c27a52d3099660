//! Locks of files (`flock(2)`): one run a folder, one process a journal. The kernel releases a lock when its process ends.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::machine::HostMachine;
use crate::node::ProcessError;

/// Maximum wait for the lock of a process. A killed process may leave it to a child for an instant, between fork and exec.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Creates a file if it does not exist, and locks it. Returns `None` if another process holds the lock.
pub(crate) fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = File::options().create(true).append(true).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Lock against a second process of the same name in the same folder, which would write the same journal.
#[derive(Debug)]
pub(crate) struct ProcessLock {
    _file: Option<File>,
}

impl ProcessLock {
    /// Locks `PROCESS.lock` in the folder. A simulated machine runs each process once, and has no lock.
    ///
    /// # Errors
    /// [`ProcessError::Runs`] if another process holds the lock, [`ProcessError::Lock`] if the file cannot be locked.
    pub(crate) fn take(machine: &HostMachine, folder: &Path, process: &str) -> Result<Self, ProcessError> {
        if machine.is_simulated() {
            return Ok(Self { _file: None });
        }
        let path: PathBuf = folder.join(format!("{process}.lock"));
        let until = Instant::now() + WAIT_MAX;
        loop {
            match try_lock(&path) {
                Ok(Some(file)) => return Ok(Self { _file: Some(file) }),
                Ok(None) if Instant::now() < until => std::thread::sleep(PAUSE),
                Ok(None) => {
                    let (process, folder) = (process.to_owned(), folder.to_owned());
                    return Err(ProcessError::Runs { process, folder });
                }
                Err(error) => return Err(ProcessError::Lock { path, error }),
            }
        }
    }
}
