//! Locks the folder of a run against other runs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::LaunchError;
use crate::lock::try_lock;

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
        std::fs::create_dir_all(folder).map_err(|error| io(folder, error))?;
        let path = folder.join(LOCK_FILE);
        match try_lock(&path).map_err(|error| io(&path, error))? {
            Some(file) => Ok(Self { _file: file }),
            None => Err(LaunchError::InUse { path: folder.to_owned() }),
        }
    }

    /// Checks that no run holds the lock, without creating the lock's file. A folder without the file is free.
    ///
    /// # Errors
    /// [`LaunchError::InUse`] if a run holds the lock.
    pub fn check_free(folder: &Path) -> Result<(), LaunchError> {
        let Ok(file) = File::open(folder.join(LOCK_FILE)) else { return Ok(()) };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(rustix::io::Errno::WOULDBLOCK) => Err(LaunchError::InUse { path: folder.to_owned() }),
            _ => Ok(()),
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
    }

    /// Returns true if a folder holds no file except its lock, or cannot be read.
    pub(super) fn is_alone_in(folder: &Path) -> bool {
        let Ok(entries) = std::fs::read_dir(folder) else { return true };
        entries.flatten().all(|entry| entry.file_name() == LOCK_FILE)
    }
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
