//! The folders of a run.

use std::collections::hash_map::RandomState;
use std::fs::DirBuilder;
use std::hash::BuildHasher as _;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use fanin_node::launch::{FolderLock, LaunchError};

use crate::failure::Failure;

/// The subfolder of the live system's files.
pub(super) const LIVE_FOLDER: &str = "live";
/// The subfolder of the switches' files.
const NETWORK_FOLDER: &str = "network";

/// Prefix of temporary folders' names; a random number follows.
const TEMPORARY: &str = "fanin-run-";
/// Attempts to create a temporary folder.
const ATTEMPTS_MAX: u32 = 16;

/// The folders of a run, removed at the end unless they were asked for.
pub(super) struct RunFolder {
    path: PathBuf,
    is_kept: bool,
    /// Keeps other runs out.
    _lock: FolderLock,
}

impl RunFolder {
    /// Takes the folder of `--out` for this run alone.
    ///
    /// # Errors
    /// If another run works in the folder.
    pub(super) fn kept(path: &Path) -> Result<Self, Failure> {
        Ok(Self { path: path.to_owned(), is_kept: true, _lock: FolderLock::take(path)? })
    }

    /// Makes a temporary folder that only this user can enter. It is removed with the run.
    ///
    /// # Errors
    /// If the folder cannot be created and locked.
    pub(super) fn temporary() -> Result<Self, Failure> {
        Self::temporary_in(&std::env::temp_dir(), || RandomState::new().hash_one(std::process::id()))
    }

    /// Does the same in a given folder, with names from a given source of random numbers.
    fn temporary_in(parent: &Path, mut random: impl FnMut() -> u64) -> Result<Self, Failure> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let path = parent.join(format!("{TEMPORARY}{:016x}", random()));
            // A folder or link of this name may belong to another user, who could replace the files in it.
            let made = DirBuilder::new().mode(0o700).create(&path);
            let made = made.map_err(|error| LaunchError::Io { path: path.clone(), error });
            match made.and_then(|()| FolderLock::take(&path)) {
                Ok(lock) => return Ok(Self { path, is_kept: false, _lock: lock }),
                Err(error) if attempts == ATTEMPTS_MAX => return Err(error.into()),
                Err(_) => {}
            }
        }
    }

    pub(super) fn live(&self) -> PathBuf {
        self.path.join(LIVE_FOLDER)
    }

    pub(super) fn network(&self) -> PathBuf {
        self.path.join(NETWORK_FOLDER)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            // Files that remain in the folder for temporary files do no harm.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes the temporary folders of runs that were killed or ended by a second Ctrl-C. Returns their number.
pub(super) fn remove_left_behind() -> usize {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return 0 };
    let is_temporary = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with(TEMPORARY));
    let folders =
        entries.flatten().filter(|entry| is_temporary(&entry.file_name())).map(|entry| entry.path());
    folders.filter(|folder| remove_ended(folder).unwrap_or(false)).count()
}

/// Removes the folder of a run of this user that has ended. Its lock says so, whatever namespace the run's process was in.
fn remove_ended(folder: &Path) -> io::Result<bool> {
    let found = folder.symlink_metadata()?;
    // A run that begins has created its folder and not yet its lock.
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() || !FolderLock::is_in(folder) {
        return Ok(false);
    }
    let Ok(_lock) = FolderLock::take(folder) else { return Ok(false) };
    std::fs::remove_dir_all(folder)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_temporary_folder_is_new_and_for_this_user_alone() {
        let parent = std::env::temp_dir().join(format!("fanin-folder-{}", std::process::id()));
        std::fs::create_dir_all(parent.join("elsewhere")).unwrap();
        // Another user has guessed two names: a folder and a link.
        std::fs::create_dir(parent.join("fanin-run-0000000000000000")).unwrap();
        std::os::unix::fs::symlink("elsewhere", parent.join("fanin-run-0000000000000001")).unwrap();
        let mut numbers = 0..;
        let folder = RunFolder::temporary_in(&parent, || numbers.next().unwrap()).unwrap();
        assert_eq!(folder.path, parent.join("fanin-run-0000000000000002"));
        assert_eq!(folder.path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!remove_ended(&folder.path).unwrap(), "its run lives");
        assert!(!remove_ended(&parent.join("fanin-run-0000000000000001")).unwrap(), "it is a link");
        let path = folder.path.clone();
        drop(folder);
        assert!(!path.exists());
        // Every name is taken.
        assert!(RunFolder::temporary_in(&parent, || 0).is_err());
        std::fs::remove_dir_all(parent).unwrap();
    }
}
