//! The folders of a run.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fanin_node::launch::FolderLock;

use crate::commands::temporary;
use crate::failure::Failure;

/// The subfolder of the live system's files.
pub(super) const LIVE_FOLDER: &str = "live";
/// The subfolder of the switches' files.
const NETWORK_FOLDER: &str = "network";

/// The file of the launcher's warnings, with `--quiet`. `scripts/rack.sh` reads it.
const LAUNCHER_LOG: &str = "launcher.log";

/// Prefix of temporary folders' names; a random number follows.
const TEMPORARY: &str = "fanin-run-";

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
        let path = temporary::create(TEMPORARY)?;
        let lock = FolderLock::take(&path)?;
        Ok(Self { path, is_kept: false, _lock: lock })
    }

    pub(super) fn live(&self) -> PathBuf {
        self.path.join(LIVE_FOLDER)
    }

    pub(super) fn network(&self) -> PathBuf {
        self.path.join(NETWORK_FOLDER)
    }

    /// The launcher's warnings with `--quiet`: outside of the folder that a further attempt empties. That of an earlier run is
    /// removed.
    pub(super) fn launcher_log(&self) -> PathBuf {
        let path = self.path.join(LAUNCHER_LOG);
        let _ = std::fs::remove_file(&path);
        path
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
    use super::*;

    #[test]
    fn the_folder_of_a_run_is_removed_with_it_and_no_earlier() {
        let folder = RunFolder::temporary().unwrap();
        let path = folder.path.clone();
        assert!(!remove_ended(&path).unwrap(), "its run lives");
        let link = path.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(!remove_ended(&link).unwrap(), "it is a link");
        drop(folder);
        assert!(!path.exists());
    }
}
