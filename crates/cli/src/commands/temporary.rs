//! Folders for temporary files.

use std::collections::hash_map::RandomState;
use std::fs::DirBuilder;
use std::hash::BuildHasher as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Attempts to create a folder.
const ATTEMPTS_MAX: u32 = 16;

/// Creates a new folder that only this user can enter. Its name is `prefix` and a random number.
///
/// # Errors
/// If it cannot be created.
pub(crate) fn create(prefix: &str) -> Result<PathBuf, Failure> {
    create_in(&std::env::temp_dir(), prefix, || RandomState::new().hash_one(std::process::id()))
}

/// Does the same in a given folder, with names from a given source of random numbers.
fn create_in(parent: &Path, prefix: &str, mut random: impl FnMut() -> u64) -> Result<PathBuf, Failure> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let path = parent.join(format!("{prefix}{:016x}", random()));
        // A folder or link of this name may belong to another user, who could replace the files in it.
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if attempts == ATTEMPTS_MAX => return Err(Failure::Write { path, error }),
            Err(_) => {}
        }
    }
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
        std::fs::create_dir(parent.join("mine-0000000000000000")).unwrap();
        std::os::unix::fs::symlink("elsewhere", parent.join("mine-0000000000000001")).unwrap();
        let mut numbers = 0..;
        let folder = create_in(&parent, "mine-", || numbers.next().unwrap()).unwrap();
        assert_eq!(folder, parent.join("mine-0000000000000002"));
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        // Every name is taken.
        assert!(create_in(&parent, "mine-", || 0).is_err());
        std::fs::remove_dir_all(parent).unwrap();
    }
}
