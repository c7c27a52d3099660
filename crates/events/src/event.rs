//! The common part of all formats: an event has an identity, and fragments from its sources.

use fanin_units::Bytes;
use serde::Serialize;

/// The identity of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
pub struct EventId {
    /// The L1 ID. Formats without one use another number: the orbit of a heartbeat frame, or a plain count.
    pub l1_id: u64,
    /// The bunch crossing, if the format has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bc_id: Option<u32>,
    /// The run, if the format has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
}

/// One source's part of an event. The bytes are borrowed from the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The source's identifier in the format.
    pub source: u32,
    /// First status word of the fragment; 0 ("nothing to report") in formats without one.
    pub status: u32,
    /// Bytes from the start of the file to the first byte of `bytes`.
    pub offset: u64,
    /// The readout's bytes, with its own headers.
    pub bytes: &'a [u8],
}

/// One physics event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// The identity of the event.
    pub id: EventId,
    /// Bytes from the start of the file to the first byte of the event.
    pub offset: u64,
    /// Bytes that the event takes in the file, headers included.
    pub size: u64,
    /// The fragments, in the file's order.
    pub fragments: Vec<Fragment<'a>>,
}

impl Event<'_> {
    /// Returns the sum of all fragments' sizes.
    pub fn fragment_bytes(&self) -> Bytes {
        Bytes::new(self.fragments.iter().map(|fragment| fragment.bytes.len() as u64).sum())
    }
}

/// The position of a reader in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// Before an event or record, or at the end of the file.
    At(usize),
    /// State after an error, with the offset from which to search for the next event.
    Lost(usize),
}
