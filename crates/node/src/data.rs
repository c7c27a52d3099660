//! The payload of live messages: fragments, each behind a header with its source, status, size and checksum.
//!
//! The readout computes the checksum of a fragment once. Each process that receives the fragment checks it again.

use fanin_dataflow::{FragmentPayload, FragmentSet};
pub use fanin_message::Payload as Chunk;
use fanin_units::Bytes;

/// Size of a fragment's header in bytes: source, status, size and checksum, 32 bits each, little-endian.
pub const FRAGMENT_HEADER_BYTES: usize = 16;

/// Status of a fragment that did not arrive in time: an empty fragment stands in its place (`fanin_events::atlas::status`).
pub const MISSING: u32 = fanin_events::atlas::status::MISSING;

/// Status of an empty fragment in the place of a damaged one, which a logger could not store.
pub const STAND_IN: u32 = fanin_events::atlas::status::CORRUPT | fanin_events::atlas::status::DUMMY;

/// The payload in the state machines: pieces of received messages, which are not copied into one buffer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Data {
    parts: Vec<Chunk>,
    missing: Vec<(u16, FragmentSet)>,
    size: u64,
}

impl Data {
    /// Creates a payload of one piece.
    pub fn new(chunk: Chunk) -> Self {
        let size = chunk.len() as u64;
        Self { parts: if size == 0 { Vec::new() } else { vec![chunk] }, missing: Vec::new(), size }
    }

    /// Returns the pieces in the order of their arrival.
    pub fn parts(&self) -> &[Chunk] {
        &self.parts
    }

    /// Returns the fragments that did not arrive, by readout.
    pub fn missing(&self) -> &[(u16, FragmentSet)] {
        &self.missing
    }

    /// Iterates over the fragments that arrived. Within a piece, an error ends the iteration.
    pub fn fragments(&self) -> impl Iterator<Item = Result<LiveFragment<'_>, FragmentError>> {
        self.parts.iter().flat_map(|part| fragments(part))
    }

    /// Appends a header with the status [`MISSING`] for each missing fragment. `source` maps a readout and the fragment's
    /// number on it to the source.
    pub fn encode_missing(&self, source: &impl Fn(u16, u16) -> u32, out: &mut Vec<u8>) {
        for &(readout, set) in &self.missing {
            for fragment in set.iter() {
                append(out, source(readout, fragment), MISSING, &[]);
            }
        }
    }
}

impl FragmentPayload for Data {
    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }

    fn append(&mut self, _readout: u16, part: Self) {
        self.size += part.size;
        self.parts.extend(part.parts);
        self.missing.extend(part.missing);
    }

    fn mark_missing(&mut self, readout: u16, fragments: FragmentSet) {
        self.size += u64::from(fragments.len()) * FRAGMENT_HEADER_BYTES as u64;
        self.missing.push((readout, fragments));
    }
}

/// A fragment within a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveFragment<'a> {
    /// Identifier of the fragment's source.
    pub source: u32,
    /// Status of the fragment: 0 without a fault, [`MISSING`] if it did not arrive.
    pub status: u32,
    /// CRC-32 (IEEE) of the fragment's bytes, computed by the readout.
    pub checksum: u32,
    /// Bytes of the fragment, without its header.
    pub bytes: &'a [u8],
}

impl LiveFragment<'_> {
    /// Returns true if the checksum of the bytes is right.
    pub fn is_sound(&self) -> bool {
        crc32fast::hash(self.bytes) == self.checksum
    }
}

/// Errors of parsing fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError {
    /// The bytes end within a header.
    #[error("a fragment's header at byte {at} needs 16 bytes; {left} are left")]
    Header {
        /// Offset of the header.
        at: usize,
        /// Bytes from the header to the end.
        left: usize,
    },
    /// The bytes end within a fragment.
    #[error("the fragment of source {source_id:#x} at byte {at} needs {size} bytes; {left} are left")]
    Size {
        /// Identifier of the source.
        source_id: u32,
        /// Offset of the fragment's bytes behind the header.
        at: usize,
        /// Size of the fragment according to its header.
        size: u32,
        /// Bytes from `at` to the end.
        left: usize,
    },
    /// The checksum of the bytes is wrong.
    #[error("the fragment of source {source_id:#x} at byte {at} is corrupted: its checksum is wrong")]
    Checksum {
        /// Identifier of the source.
        source_id: u32,
        /// Offset of the fragment's bytes behind the header.
        at: usize,
    },
}

/// Appends a fragment with its header.
///
/// # Panics
/// If the fragment has 4 GiB or more.
pub fn append(out: &mut Vec<u8>, source: u32, status: u32, bytes: &[u8]) {
    let size = u32::try_from(bytes.len()).expect("a fragment is smaller than 4 GiB");
    for word in [source, status, size, crc32fast::hash(bytes)] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(bytes);
}

/// Iterates over the fragments in `bytes`; ends after the first error. Checksums are not checked.
pub fn fragments(bytes: &[u8]) -> impl Iterator<Item = Result<LiveFragment<'_>, FragmentError>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= bytes.len() {
            return None;
        }
        let next = read(bytes, at);
        at = match &next {
            Ok(fragment) => at + FRAGMENT_HEADER_BYTES + fragment.bytes.len(),
            Err(_) => bytes.len(),
        };
        Some(next)
    })
}

fn read(bytes: &[u8], at: usize) -> Result<LiveFragment<'_>, FragmentError> {
    let left = bytes.len() - at;
    let header = bytes.get(at..at + FRAGMENT_HEADER_BYTES).ok_or(FragmentError::Header { at, left })?;
    let word = |n: usize| u32::from_le_bytes([header[n], header[n + 1], header[n + 2], header[n + 3]]);
    let (source, status, size, checksum) = (word(0), word(4), word(8), word(12));
    let at = at + FRAGMENT_HEADER_BYTES;
    let left = bytes.len() - at;
    let bytes = bytes.get(at..at.saturating_add(size as usize)).ok_or(FragmentError::Size {
        source_id: source,
        at,
        size,
        left,
    })?;
    Ok(LiveFragment { source, status, checksum, bytes })
}

/// Numbers of fragments and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FragmentCounts {
    /// Fragments that arrived.
    pub fragments: u32,
    /// Fragments that are marked missing.
    pub missing: u32,
    /// Bytes of the fragments, without headers.
    pub bytes: u64,
}

/// Checks the checksum of every fragment in `bytes`, and counts the fragments.
///
/// # Errors
/// The first error.
pub fn check(bytes: &[u8]) -> Result<FragmentCounts, FragmentError> {
    let mut content = FragmentCounts::default();
    let mut at = 0;
    for fragment in fragments(bytes) {
        let fragment = fragment?;
        at += FRAGMENT_HEADER_BYTES;
        if !fragment.is_sound() {
            return Err(FragmentError::Checksum { source_id: fragment.source, at });
        }
        at += fragment.bytes.len();
        content.bytes += fragment.bytes.len() as u64;
        if fragment.status == MISSING { content.missing += 1 } else { content.fragments += 1 }
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Vec<u8> {
        let mut bytes = Vec::new();
        append(&mut bytes, 7, 0, b"hello");
        append(&mut bytes, 8, 0, b"");
        bytes
    }

    #[test]
    fn fragments_come_back() {
        let bytes = two();
        let found: Vec<_> = fragments(&bytes).map(Result::unwrap).collect();
        assert_eq!(
            found.iter().map(|f| (f.source, f.bytes)).collect::<Vec<_>>(),
            [(7, &b"hello"[..]), (8, b"")]
        );
        assert_eq!(check(&bytes), Ok(FragmentCounts { fragments: 2, missing: 0, bytes: 5 }));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found_or_harmless() {
        let bytes = two();
        for cut in 1..bytes.len() {
            // Only a cut at the end of the first fragment leaves valid bytes.
            assert_eq!(check(&bytes[..cut]).is_ok(), cut == 21, "{cut}");
        }
        let mut flipped = bytes.clone();
        flipped[18] ^= 4;
        assert_eq!(check(&flipped), Err(FragmentError::Checksum { source_id: 7, at: 16 }));
        let mut larger = bytes;
        larger[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(check(&larger), Err(FragmentError::Size { size: u32::MAX, .. })));
    }

    #[test]
    fn an_event_is_as_large_as_what_is_sent_of_it() {
        let mut event = Data::default();
        event.append(0, Data::new(two().into()));
        event.mark_missing(3, FragmentSet::first(2));
        let mut rest = Vec::new();
        event.encode_missing(&|readout, fragment| u32::from(readout) * 100 + u32::from(fragment), &mut rest);
        let sent = event.parts().iter().map(|part| part.len()).sum::<usize>() + rest.len();
        assert_eq!(event.size(), Bytes::new(sent as u64));
        assert_eq!(check(&rest), Ok(FragmentCounts { fragments: 0, missing: 2, bytes: 0 }));
        assert_eq!(fragments(&rest).map(|f| f.unwrap().source).collect::<Vec<_>>(), [300, 301]);
    }
}
