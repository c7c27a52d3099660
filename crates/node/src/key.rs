//! Writes the file of the key that all processes of a system share.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use fanin_message::SharedKey;

/// Name of the file with the shared key, in the run's folder.
pub(crate) const KEY_FILE: &str = "peers.key";

/// Writes a new random key into a file that only this user can read (mode 0600). Replaces an older file.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_key(path: &Path) -> io::Result<()> {
    let key = SharedKey::random()?;
    if path.exists() {
        std::fs::remove_file(path)?;
    }
    let mut file = File::options().create_new(true).write(true).mode(0o600).open(path)?;
    file.write_all(format!("{}\n", key.to_hex()).as_bytes())
}
