//! The folders of a run.

use std::path::{Path, PathBuf};

use fanin_node::launch::FolderLock;

use crate::failure::Failure;

/// The subfolder of the live system's files.
pub(super) const LIVE_FOLDER: &str = "live";
/// The subfolder of the switches' files.
const NETWORK_FOLDER: &str = "network";

/// Prefix of temporary folders' names; the run's process number follows.
const TEMPORARY: &str = "fanin-run-";

/// The folders of a run, removed at the end unless they were asked for.
pub(super) struct RunFolder {
    path: PathBuf,
    is_kept: bool,
    /// Keeps other runs out of a folder that was asked for.
    _lock: Option<FolderLock>,
}

impl RunFolder {
    /// Takes the folder of `--out` for this run alone.
    ///
    /// # Errors
    /// If another run works in the folder.
    pub(super) fn kept(path: &Path) -> Result<Self, Failure> {
        Ok(Self { path: path.to_owned(), is_kept: true, _lock: Some(FolderLock::take(path)?) })
    }

    /// Makes a temporary folder, which is removed with the run.
    pub(super) fn temporary() -> Self {
        let path = std::env::temp_dir().join(format!("{TEMPORARY}{}", std::process::id()));
        Self { path, is_kept: false, _lock: None }
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

/// Removes the temporary folders of dead runs, which were killed or ended by a second Ctrl-C. Returns their number.
pub(super) fn remove_left_behind() -> usize {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return 0 };
    let mut removed = 0;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // This user may not remove the folder of another user.
            removed += usize::from(std::fs::remove_dir_all(entry.path()).is_ok());
        }
    }
    removed
}
