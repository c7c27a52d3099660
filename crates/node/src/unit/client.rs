//! The processor's side: waits for events, calls a function for each, and sends its decisions.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use fanin_dataflow::{Decision, L1Id};
use fanin_message::NoCommonVersion;

use super::protocol::{
    self, ANY_UNIT, ENTRY_BYTES, EVENT, HELLO, MEMORY, OTHER_VERSIONS, UnitFrame, VERSIONS,
};
use crate::data::LiveFragment;
use crate::shared::{View, ViewError};

/// Errors that end a processor.
#[derive(Debug, thiserror::Error)]
pub enum ProcessorError {
    /// No collector listens.
    #[error("no collector listens at {}: {error}", path.display())]
    Connect {
        /// Path of the collector's socket.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The connection failed.
    #[error("the connection to the collector failed: {0}")]
    Io(#[from] io::Error),
    /// The collector's memory cannot be used.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The collector violated the protocol.
    #[error("the collector sent {0}")]
    Protocol(&'static str),
    /// The two sides speak no common version of their messages.
    #[error("{0}")]
    NoCommonVersion(NoCommonVersion),
    /// The collector ended the connection in place of its greeting.
    #[error(
        "the collector at {} refused the processor: it expects no unit with this number, or is stopping",
        path.display()
    )]
    Refused {
        /// Path of the collector's socket.
        path: PathBuf,
    },
}

/// An event for a processor, in shared memory.
#[derive(Debug)]
pub struct ProcessorEvent<'a> {
    /// L1 ID of the event.
    pub l1_id: L1Id,
    /// Number of the collection step, from 0.
    pub step: u16,
    memory: &'a [u8],
    count: usize,
}

impl<'a> ProcessorEvent<'a> {
    /// Returns the number of fragments in the event's table, those marked missing included.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns true if the event has no fragments.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns a fragment by its index; `None` if the index is too large or the fragment lies outside the memory.
    pub fn fragment(&self, place: usize) -> Option<LiveFragment<'a>> {
        let entry = self.memory.get(place * ENTRY_BYTES..(place + 1) * ENTRY_BYTES);
        let entry = entry.filter(|_| place < self.count)?;
        let word = |at: usize| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let start = usize::try_from(long(16)).ok()?;
        let end = start.checked_add(usize::try_from(long(24)).ok()?)?;
        let bytes = self.memory.get(start..end)?;
        Some(LiveFragment { source: word(0), status: word(4), checksum: word(8), bytes })
    }

    /// Returns all fragments in the order of the table; skips fragments outside the memory.
    pub fn fragments(&self) -> impl Iterator<Item = LiveFragment<'a>> {
        (0..self.count).filter_map(|place| self.fragment(place))
    }
}

/// Checks the collector's answer to the greeting. Without another version, nothing depends on the common one yet.
fn check_answer(answer: &UnitFrame, path: &Path) -> Result<(), ProcessorError> {
    let peer_versions = answer.versions().filter(|_| matches!(answer.kind, HELLO | OTHER_VERSIONS));
    let peer_versions = peer_versions.ok_or(ProcessorError::Protocol("no valid greeting"))?;
    match (answer.kind, VERSIONS.common(peer_versions)) {
        (HELLO, Some(_)) => Ok(()),
        (_, Some(_)) => Err(ProcessorError::Protocol("a refusal of a version that it speaks")),
        (_, None) => Err(ProcessorError::NoCommonVersion(NoCommonVersion {
            name: "processor".into(),
            versions: VERSIONS,
            peer: collector_name(path).into(),
            peer_versions,
        })),
    }
}

/// Returns the name of the collector with this socket.
pub(super) fn collector_name(path: &Path) -> &str {
    path.file_stem().and_then(|name| name.to_str()).unwrap_or("collector")
}

/// Serves the collector with the socket `path` until it closes the connection. `unit` is the processor's unit; `None`
/// lets the collector choose a free one. `decide` returns the decision on an event.
///
/// # Errors
/// If no collector listens or it refuses, the connection fails or the collector violates the protocol.
pub fn serve(
    path: &Path,
    unit: Option<u16>,
    mut decide: impl FnMut(&ProcessorEvent<'_>) -> Decision,
) -> Result<(), ProcessorError> {
    let mut stream = UnixStream::connect(path)
        .map_err(|error| ProcessorError::Connect { path: path.to_owned(), error })?;
    let first = unit.map_or(ANY_UNIT, u64::from);
    let second = u64::from(std::process::id());
    protocol::send(&stream, UnitFrame::with_versions(HELLO, first, second), None)?;
    let Some((answer, _)) = protocol::receive(&mut stream)? else {
        return Err(ProcessorError::Refused { path: path.to_owned() });
    };
    check_answer(&answer, path)?;
    let mut view: Option<View> = None;
    while let Some((frame, fd)) = protocol::receive(&mut stream)? {
        match (frame.kind, fd) {
            (MEMORY, Some(fd)) => view = Some(View::new(&fd, frame.first)?),
            (EVENT, None) => {
                let memory =
                    view.as_ref().ok_or(ProcessorError::Protocol("an event before its memory"))?.bytes();
                let count = usize::try_from(frame.first).unwrap_or(usize::MAX);
                if count.checked_mul(ENTRY_BYTES).is_none_or(|bytes| bytes > memory.len()) {
                    return Err(ProcessorError::Protocol("a table that is larger than its memory"));
                }
                let l1_id = L1Id(frame.event);
                let decision = decide(&ProcessorEvent { l1_id, step: frame.small as u16, memory, count });
                protocol::send(&stream, protocol::encode_decision(l1_id, &decision), None)?;
            }
            _ => return Err(ProcessorError::Protocol("a message of an unknown kind")),
        }
    }
    Ok(())
}
