//! Little-endian fields at an offset of a slice; a field outside of the slice is an error, never a panic.

use crate::{Fault, ReadError};

/// Returns the `len` bytes at `at`, which must end at or before `end`.
pub(crate) fn slice_at<'a>(
    bytes: &'a [u8],
    at: usize,
    len: usize,
    end: usize,
    item: &'static str,
) -> Result<&'a [u8], ReadError> {
    let end = end.min(bytes.len());
    let left = end.saturating_sub(at);
    if len > left {
        return Err(Fault::Truncated { item, actual: left as u64, needed: len as u64 }.at(at));
    }
    Ok(&bytes[at..at + len])
}

/// Reads the 32-bit field at `at`; `None` if it does not end within the slice.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let end = at.checked_add(4)?;
    bytes.get(at..end).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes)
}

/// Reads the 16-bit field at `at`; `None` if it does not end within the slice.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let end = at.checked_add(2)?;
    bytes.get(at..end).and_then(|b| b.try_into().ok()).map(u16::from_le_bytes)
}

/// Reads the 64-bit field at `at`; `None` if it does not end within the slice.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let end = at.checked_add(8)?;
    bytes.get(at..end).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes)
}

/// Returns the `count` 32-bit words at `at` as bytes, after a check that they end at or before `end`.
pub(crate) fn words_at<'a>(
    bytes: &'a [u8],
    at: usize,
    count: usize,
    end: usize,
    item: &'static str,
) -> Result<Words<'a>, ReadError> {
    slice_at(bytes, at, count.saturating_mul(4), end, item).map(Words)
}

/// A run of little-endian 32-bit words within the slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a>(pub(crate) &'a [u8]);

impl Words<'_> {
    /// Returns the word with this index.
    ///
    /// # Panics
    /// If the index is out of range.
    pub(crate) fn word(self, index: usize) -> u32 {
        u32_at(self.0, index * 4).expect("the index lies inside the checked words")
    }
}

/// Converts a size or count of a file to an index. On a machine with shorter indices it saturates, above the size of any file.
pub(crate) fn index(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
