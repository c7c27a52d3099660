//! Locks the folder of a run against other runs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::LaunchError;
use crate::lock::{LockAttempt, open_lock, try_lock};

/// Name of the lock's file in the folder.
const LOCK_FILE: &str = ".lock";

/// Lock on a folder (`flock(2)`). The kernel releases it when the process ends or is killed.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Creates the folder if it does not exist, and locks it.
    ///
    /// # Errors
    /// [`LaunchError::InUse`] if another run holds the lock; [`LaunchError::Io`] if the folder cannot be written.
    pub fn take(folder: &Path) -> Result<Self, LaunchError> {
        let io = |path: &Path, error| LaunchError::Io { path: path.to_owned(), error };
        let path = folder.join(LOCK_FILE);
        loop {
            std::fs::create_dir_all(folder).map_err(|error| io(folder, error))?;
            match open_lock(&path).and_then(|file| try_lock(&path, file)) {
                Ok(LockAttempt::Locked(file)) => return Ok(Self { _file: file }),
                Ok(LockAttempt::Held) => return Err(LaunchError::InUse { path: folder.to_owned() }),
                // Another run has moved or removed the folder in between.
                Ok(LockAttempt::Gone) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io(&path, error)),
            }
        }
    }

    /// Checks that no run and no process holds a lock in the folder, without creating a file. A lock that cannot be opened
    /// counts as free.
    ///
    /// # Errors
    /// [`LaunchError::InUse`] if a run holds the folder's lock, [`LaunchError::Runs`] if a process holds its own.
    pub fn check_free(folder: &Path) -> Result<(), LaunchError> {
        if is_held(&folder.join(LOCK_FILE)) {
            return Err(LaunchError::InUse { path: folder.to_owned() });
        }
        let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
        let is_lock = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "lock");
        match entries.flatten().map(|entry| entry.path()).filter(is_lock).find(|path| is_held(path)) {
            Some(path) => Err(LaunchError::Runs { path }),
            None => Ok(()),
        }
    }

    /// Returns true if a folder has the file of a lock, held or free.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(LOCK_FILE).is_file()
    }

    /// Returns true if a folder holds no file except its lock, or cannot be read.
    pub(super) fn is_alone_in(folder: &Path) -> bool {
        let Ok(entries) = std::fs::read_dir(folder) else { return true };
        entries.flatten().all(|entry| entry.file_name() == LOCK_FILE)
    }
}

/// Returns true if another open file holds an exclusive lock on this one.
fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
}

/// Renames a folder to the first of `FOLDER.1`, `FOLDER.2`, … that does not exist, and returns the new path.
pub(super) fn move_aside(folder: &Path) -> io::Result<PathBuf> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let aside = (1..).map(|number: u64| folder.with_file_name(format!("{name}.{number}")));
    let aside = aside.into_iter().find(|path| path.symlink_metadata().is_err());
    let aside = aside.ok_or(io::ErrorKind::AlreadyExists)?;
    std::fs::rename(folder, &aside)?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::ProcessLock;
    use crate::machine::HostMachine;

    #[test]
    fn a_folder_is_free_when_neither_a_run_nor_a_process_works_in_it() {
        let folder = std::env::temp_dir().join(format!("fanin-check-free-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        FolderLock::check_free(&folder).unwrap();
        let process = ProcessLock::take(&HostMachine::Real, &folder, "collector-3").unwrap();
        let text = FolderLock::check_free(&folder).unwrap_err().to_string();
        assert!(text.contains("collector-3.lock"), "{text}");
        drop(process);
        let files = ProcessLock::take_data(&HostMachine::Real, &folder, "logger-0").unwrap();
        assert!(matches!(FolderLock::check_free(&folder), Err(LaunchError::Runs { .. })));
        drop(files);
        FolderLock::check_free(&folder).unwrap();
        let run = FolderLock::take(&folder).unwrap();
        assert!(matches!(FolderLock::check_free(&folder), Err(LaunchError::InUse { .. })));
        drop(run);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_lock_that_another_run_removed_does_not_hold_its_new_folder() {
        let folder = std::env::temp_dir().join(format!("fanin-lock-gone-{}", std::process::id()));
        let path = folder.join(LOCK_FILE);
        for aside in [false, true] {
            let first = FolderLock::take(&folder).unwrap();
            // A second run has opened the file, and locks it after the first run has begun a new folder.
            let opened = open_lock(&path).unwrap();
            if aside {
                std::fs::remove_dir_all(move_aside(&folder).unwrap()).unwrap();
            } else {
                std::fs::remove_dir_all(&folder).unwrap();
            }
            let again = FolderLock::take(&folder).unwrap();
            drop(first);
            assert!(matches!(try_lock(&path, opened), Ok(LockAttempt::Gone)));
            assert!(matches!(FolderLock::take(&folder), Err(LaunchError::InUse { .. })));
            drop(again);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
