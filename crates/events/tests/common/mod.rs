//! Files that are not in the repository: they lie in a folder beside its checkout, where there is one.

use std::path::Path;

/// The content of a file of the folder `shared/data` beside the checkout; `None`, and a line that says so, where it is
/// absent.
pub(crate) fn shared(name: &str) -> Option<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            eprintln!("skipped: {} cannot be read: {error}", path.display());
            None
        }
    }
}
