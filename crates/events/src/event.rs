//! What all formats have in common: an event with an identity, and a fragment from each source.

use fanin_units::Bytes;
use serde::Serialize;

/// What identifies an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
pub struct EventId {
    /// The L1 ID; in formats without one, what stands for it: the orbit of a heartbeat frame, or a plain number.
    pub l1_id: u64,
    /// The bunch crossing, where the format has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bc_id: Option<u32>,
    /// The run, where the format has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
}

/// What one source contributed to an event: bytes lent from the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The source, as the format identifies it.
    pub source: u32,
    /// First status word of the fragment; 0, "nothing to report", in formats without one.
    pub status: u32,
    /// Bytes from the start of the file to the first byte of `bytes`.
    pub offset: u64,
    /// What a readout held, headers of its own included.
    pub bytes: &'a [u8],
}

/// One physics event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<'a> {
    /// What identifies it.
    pub id: EventId,
    /// Bytes from the start of the file to the first byte of the event.
    pub offset: u64,
    /// Bytes that the event takes in the file, headers included.
    pub size: u64,
    /// What the sources contributed, in the file's order.
    pub fragments: Vec<Fragment<'a>>,
}

impl Event<'_> {
    /// The sizes of all fragments together.
    pub fn fragment_bytes(&self) -> Bytes {
        Bytes::new(self.fragments.iter().map(|fragment| fragment.bytes.len() as u64).sum())
    }
}

/// Where a reader stands in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    /// Before an event or record, or at the end of the file.
    At(usize),
    /// Behind an error; the place from which to look for the next event.
    Lost(usize),
}
