//! Files of the key that all processes share.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fanin_message::SharedKey;

use super::ConfigError;

/// Reads the key in a file. Adds the file to `open` if every user of this host may read it.
///
/// # Errors
/// If the file cannot be read or holds no key.
pub(super) fn read_key(path: &Path, open: &mut Vec<PathBuf>) -> Result<SharedKey, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| ConfigError::Read { path: path.to_owned(), error })?;
    if is_open_to_others(path) {
        open.push(path.to_owned());
    }
    SharedKey::from_hex(&text).map_err(|error| ConfigError::Key { path: path.to_owned(), error })
}

/// Returns true if users other than the owner and the group of a file may read or write it.
pub fn is_open_to_others(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o006 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;
    use crate::config::System;

    #[test]
    fn keys_that_every_user_may_read_are_named() {
        let folder = std::env::temp_dir().join(format!("fanin-open-keys-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let text = "scenario = \"replay\"\nset = [\"readout.hosts=1\", \"logger.hosts=1\"]\nkey = \"new.key\"\n\
                    key_previous = \"old.key\"\n[hosts]\nsupervisor = \"daq:7000\"\nreadouts = [\"ros:7100\"]\n\
                    collectors = [\"dcm-[0-3]\"]\nloggers = [\"sfo:7200\"]\n";
        std::fs::write(folder.join("system.toml"), text).unwrap();
        let open = |modes: [u32; 2]| {
            for (name, mode) in ["new.key", "old.key"].into_iter().zip(modes) {
                let path = folder.join(name);
                std::fs::write(&path, SharedKey::random().unwrap().to_hex()).unwrap();
                std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            }
            System::load(&folder.join("system.toml")).unwrap().open_keys
        };
        assert_eq!(open([0o600, 0o640]), [""; 0].map(PathBuf::from));
        assert_eq!(open([0o644, 0o640]), [folder.join("new.key")]);
        assert_eq!(open([0o600, 0o604]), [folder.join("old.key")]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
