//! The ROD fragment inside a ROB fragment: header, data and status words, trailer.

use super::ROD;
use crate::words::{Words, index, slice_at};
use crate::{Fault, ReadError};

/// Version of a ROD fragment that the writer puts around bytes without a ROB fragment: major version 3.1, with a minor version
/// of this project. Its second status word is the number of bytes, because the last data word may be partly filled.
pub const WRAPPED_VERSION: u32 = 0x0301_fa11;

pub(super) const HEADER_WORDS: usize = 9;
pub(super) const TRAILER_WORDS: usize = 3;

/// A ROD fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rod<'a> {
    /// Format version of the fragment.
    pub version: u32,
    /// The source of the fragment.
    pub source: u32,
    /// Run number of the fragment.
    pub run: u32,
    /// The L1 ID.
    pub l1_id: u32,
    /// The bunch crossing.
    pub bc_id: u32,
    /// Offset of the data in the slice, in bytes.
    pub data_at: usize,
    /// The data words.
    pub data: &'a [u8],
    /// The status words.
    pub status: &'a [u8],
}

impl<'a> Rod<'a> {
    /// Returns the bytes that a writer wrapped in this fragment; `None` for other fragments.
    pub fn wrapped(&self) -> Option<&'a [u8]> {
        if self.version != WRAPPED_VERSION || self.status.len() != 8 {
            return None;
        }
        let len = index(Words(self.status).word(1));
        (len.next_multiple_of(4) == self.data.len()).then(|| &self.data[..len])
    }
}

/// Reads the ROD fragment that fills `at..end`.
///
/// # Errors
/// If the marker is missing, or header, status, data and trailer do not fill it exactly.
pub fn rod(bytes: &[u8], at: usize, end: usize) -> Result<Rod<'_>, ReadError> {
    let header = slice_at(bytes, at, HEADER_WORDS * 4, end, "a ROD fragment's header").map(Words)?;
    if header.word(0) != ROD {
        return Err(Fault::Marker { actual: header.word(0), needed: "a ROD fragment" }.at(at));
    }
    if index(header.word(1)) != HEADER_WORDS {
        let (actual, needed) = (u64::from(header.word(1)), HEADER_WORDS as u64);
        return Err(
            Fault::Value { field: "a ROD fragment's header size in words", actual, needed }.at(at + 4)
        );
    }
    let body = at + HEADER_WORDS * 4;
    let trailer_at = (body + (end - body).saturating_sub(TRAILER_WORDS * 4)).max(body);
    let trailer =
        slice_at(bytes, trailer_at, TRAILER_WORDS * 4, end, "a ROD fragment's trailer").map(Words)?;
    let (status_words, data_words) = (index(trailer.word(0)), index(trailer.word(1)));
    let actual = status_words.saturating_add(data_words) as u64;
    let needed = ((trailer_at - body) / 4) as u64;
    if actual != needed {
        let field = "the status and data words of a ROD fragment";
        return Err(Fault::Value { field, actual, needed }.at(trailer_at));
    }
    // The last word of the trailer is 0 if the status words come before the data, 1 if they follow it.
    let split = match trailer.word(2) {
        0 => status_words,
        1 => data_words,
        position => {
            let actual = u64::from(position);
            let fault = Fault::Range { field: "the position of the status words", actual, min: 0, max: 1 };
            return Err(fault.at(trailer_at + 8));
        }
    };
    let (first, second) = bytes[body..trailer_at].split_at(split * 4);
    let (data_at, data, status) =
        if trailer.word(2) == 0 { (body + split * 4, second, first) } else { (body, first, second) };
    Ok(Rod {
        version: header.word(2),
        source: header.word(3),
        run: header.word(4),
        l1_id: header.word(5),
        bc_id: header.word(6),
        data_at,
        data,
        status,
    })
}
