//! Conversion from one format to another, and a comparison that proves the fragments unchanged.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;

use crate::atlas::{AtlasWriter, EventHeader, FileEnd, FileHeader, WriteError, status};
use crate::{Event, Events, Fragment, ReadError, frag};

/// Errors of a conversion.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The input contradicts its format.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An event does not fit the format of the output.
    #[error("the event at byte {offset}: {error}")]
    Event {
        /// Offset of the event in the input.
        offset: u64,
        /// The reason why it does not fit.
        error: WriteError,
    },
    /// An L1 ID does not fit the format of the output.
    #[error("the event at byte {offset} has L1 ID {l1_id}; the output has 32 bits for it")]
    L1Id {
        /// Offset of the event in the input.
        offset: u64,
        /// The L1 ID of the event.
        l1_id: u64,
    },
}

/// The totals of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Converted {
    /// Number of events written.
    pub events: u64,
    /// Fragments in them.
    pub fragments: u64,
    /// Bytes in these fragments.
    pub fragment_bytes: u64,
}

impl Converted {
    fn add(&mut self, event: &Event<'_>) {
        self.events += 1;
        self.fragments += event.fragments.len() as u64;
        self.fragment_bytes += event.fragment_bytes().get();
    }
}

/// Writes the events of a file as a plain fragment container.
///
/// # Errors
/// If the input contradicts its format, or the output cannot be written.
pub fn to_frag(bytes: &[u8], out: impl Write) -> Result<Converted, ConvertError> {
    let mut writer = frag::FragWriter::new(out)?;
    let mut converted = Converted::default();
    for event in Events::open(bytes)? {
        let event = event?;
        writer.write_event(event.id.l1_id, event.fragments.iter().map(|f| (f.source, f.bytes)))?;
        converted.add(&event);
    }
    writer.finish()?;
    Ok(converted)
}

/// Writes the events of a file as ATLAS-style full events with file records.
///
/// # Errors
/// If the input contradicts its format, an event does not fit 32-bit fields, or the output cannot be written.
pub fn to_atlas(bytes: &[u8], file: &FileHeader, out: impl Write) -> Result<Converted, ConvertError> {
    let io = |error| match error {
        WriteError::Io(error) => ConvertError::Io(error),
        error => ConvertError::Event { offset: 0, error },
    };
    let mut events = Events::open(bytes)?.peekable();
    // The first records hold the run, so it is read from the first event.
    let run = match events.peek() {
        Some(Ok(event)) => event.id.run.unwrap_or(file.run),
        _ => file.run,
    };
    let mut writer = AtlasWriter::new(out, &FileHeader { run, ..file.clone() }).map_err(io)?;
    let mut converted = Converted::default();
    for event in events {
        let event = event?;
        let offset = event.offset;
        let l1_id = u32::try_from(event.id.l1_id)
            .map_err(|_| ConvertError::L1Id { offset, l1_id: event.id.l1_id })?;
        let header = EventHeader {
            l1_id,
            global_id: l1_id,
            bc_id: event.id.bc_id.unwrap_or_default() as u16,
            run: event.id.run.unwrap_or(file.run),
            ..EventHeader::default()
        };
        writer.write_event(&header, event.fragments.iter().copied()).map_err(|error| match error {
            WriteError::Io(error) => ConvertError::Io(error),
            error => ConvertError::Event { offset, error },
        })?;
        converted.add(&event);
    }
    writer.finish(&FileEnd { last_of_run: true, ..FileEnd::default() }).map_err(io)?;
    Ok(converted)
}

/// The rule that pairs an event of the output with an event of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// The same L1 ID.
    SameL1Id,
    /// Event n of the output is event n modulo the number of input events: the input was replayed repeatedly.
    Cycle,
}

/// Differences of two files, fragment by fragment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FragmentComparison {
    /// Events of the output.
    pub events: u64,
    /// Fragments that are equal in both.
    pub same: u64,
    /// Bytes in these equal fragments.
    pub same_bytes: u64,
    /// Fragments in both with different bytes.
    pub different: u64,
    /// Fragments that the output marks as missing, but the input has.
    pub missing: u64,
    /// Fragments that only the output has.
    pub added: u64,
    /// Fragments that only the input has.
    pub absent: u64,
    /// Events of the output that the input does not have.
    pub unknown_events: u64,
    /// Offset of the first difference in the output, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
}

impl FragmentComparison {
    /// Returns true if the fragments of each output event equal those of its input event. Fragments that are marked as missing
    /// do not count.
    pub const fn is_same(&self) -> bool {
        self.different == 0 && self.added == 0 && self.absent == 0 && self.unknown_events == 0
    }
}

/// Compares a stored file with its input. The two may have different formats.
///
/// # Errors
/// If one of them contradicts its format.
pub fn compare(output: &[u8], input: &[u8], pairing: Pairing) -> Result<FragmentComparison, CompareError> {
    let input: Result<Vec<Event<'_>>, ReadError> =
        Events::open(input).map_err(CompareError::Input)?.collect();
    let input = input.map_err(CompareError::Input)?;
    let by_id: HashMap<u64, usize> =
        input.iter().enumerate().map(|(place, event)| (event.id.l1_id, place)).collect();
    let mut found = FragmentComparison::default();
    let mut fragments: HashMap<u32, Vec<&Fragment<'_>>> = HashMap::new();
    for event in Events::open(output).map_err(CompareError::Output)? {
        let event = event.map_err(CompareError::Output)?;
        found.events += 1;
        let place = match pairing {
            Pairing::SameL1Id => by_id.get(&event.id.l1_id).copied(),
            Pairing::Cycle if input.is_empty() => None,
            Pairing::Cycle => Some((event.id.l1_id % input.len() as u64) as usize),
        };
        let Some(place) = place else {
            found.unknown_events += 1;
            found.first = found.first.or(Some(event.offset));
            continue;
        };
        fragments.clear();
        for fragment in input[place].fragments.iter().rev() {
            fragments.entry(fragment.source).or_default().push(fragment);
        }
        for fragment in &event.fragments {
            match fragments.get_mut(&fragment.source).and_then(Vec::pop) {
                Some(original) if original.bytes == fragment.bytes => {
                    found.same += 1;
                    found.same_bytes += fragment.bytes.len() as u64;
                    continue;
                }
                // The output marks the fragment as missing, which is not a different content.
                Some(_) if fragment.status == status::MISSING && fragment.bytes.is_empty() => {
                    found.missing += 1;
                    continue;
                }
                Some(_) => found.different += 1,
                None => found.added += 1,
            }
            found.first = found.first.or(Some(fragment.offset));
        }
        let absent: u64 = fragments.values().map(|left| left.len() as u64).sum();
        if absent > 0 {
            found.absent += absent;
            found.first = found.first.or(Some(event.offset));
        }
    }
    Ok(found)
}

/// Errors of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The output contradicts its format.
    #[error("in the output: {0}")]
    Output(ReadError),
    /// The input contradicts its format.
    #[error("in the input: {0}")]
    Input(ReadError),
}
