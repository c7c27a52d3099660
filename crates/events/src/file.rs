//! Files, read whole and with a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use fanin_units::Bytes;
use flate2::read::MultiGzDecoder;

/// The default limit. Every sample is smaller, and a desktop computer can hold it in memory.
pub const LIMIT: Bytes = Bytes::new(4_000_000_000);

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Errors of reading a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system cannot read it, or its compression is broken.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is larger than the limit.
    #[error("the file holds more than {limit}")]
    TooLarge {
        /// The most that may be read.
        limit: Bytes,
    },
}

/// Reads the content of a file of at most `limit`. A gzip file is uncompressed, and the limit holds for both sizes.
///
/// # Errors
/// If it cannot be read, or holds more.
pub fn read(path: &Path, limit: Bytes) -> Result<Vec<u8>, FileError> {
    expand(read_stored(path, limit)?, limit)
}

/// Reads the stored bytes of a file of at most `limit`, without uncompressing them.
///
/// # Errors
/// If it cannot be read, or holds more.
pub fn read_stored(path: &Path, limit: Bytes) -> Result<Vec<u8>, FileError> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    if size > limit.get() {
        return Err(FileError::TooLarge { limit });
    }
    // The size is only a hint, because a file may grow or have no size. The limit applies to the bytes read.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    read_limited(&mut file, limit, &mut bytes)?;
    Ok(bytes)
}

/// Returns the content of a file from its stored bytes. A gzip file is uncompressed, other files are returned unchanged.
///
/// # Errors
/// If its compression is broken, or it holds more than `limit`.
pub fn expand(stored: Vec<u8>, limit: Bytes) -> Result<Vec<u8>, FileError> {
    if stored.starts_with(&GZIP) { uncompress(&stored, limit) } else { Ok(stored) }
}

/// Uncompresses a gzip file.
///
/// # Errors
/// If its compression is broken, or it holds more than `limit`.
pub fn uncompress(bytes: &[u8], limit: Bytes) -> Result<Vec<u8>, FileError> {
    let mut content = Vec::new();
    read_limited(MultiGzDecoder::new(bytes), limit, &mut content)?;
    Ok(content)
}

fn read_limited(input: impl Read, limit: Bytes, bytes: &mut Vec<u8>) -> Result<(), FileError> {
    input.take(limit.get().saturating_add(1)).read_to_end(bytes)?;
    if bytes.len() as u64 > limit.get() { Err(FileError::TooLarge { limit }) } else { Ok(()) }
}
