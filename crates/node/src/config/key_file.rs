//! Files with secrets: the key that all processes share, and a process's own private key.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fanin_message::SharedKey;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// Paths of the TLS files of a process (section `[tls]`). `{process}` stands for the process's name, such as `readout-3`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The process's certificate, and the intermediate certificates up to the authority (PEM).
    pub certificates: String,
    /// The private key of the certificate (PEM).
    pub key: String,
    /// The authorities that the process trusts (PEM).
    pub authorities: String,
}

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

/// Settings of the file for authentication.
#[derive(Debug)]
pub(super) struct Authentication {
    pub(super) key: Option<PathBuf>,
    pub(super) key_previous: Option<PathBuf>,
    pub(super) insecure: bool,
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
            System::load(&folder.join("system.toml")).unwrap().open_secrets("collector-2")
        };
        assert_eq!(open([0o600, 0o640]), [""; 0].map(PathBuf::from));
        assert_eq!(open([0o644, 0o640]), [folder.join("new.key")]);
        assert_eq!(open([0o600, 0o604]), [folder.join("old.key")]);
        // The private keys of TLS, of which a process reads its own.
        let tls =
            "[tls]\ncertificates = \"{process}.pem\"\nkey = \"{process}.tls\"\nauthorities = \"ca.pem\"\n";
        std::fs::write(folder.join("system.toml"), format!("{text}{tls}")).unwrap();
        for (process, mode) in [("collector-1", 0o604), ("collector-2", 0o640)] {
            let path = folder.join(format!("{process}.tls"));
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        assert_eq!(open([0o600, 0o600]), [""; 0].map(PathBuf::from));
        std::fs::set_permissions(folder.join("collector-2.tls"), Permissions::from_mode(0o644)).unwrap();
        assert_eq!(open([0o600, 0o600]), [folder.join("collector-2.tls")]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
