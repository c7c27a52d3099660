//! Violations of a file's format, with the offset.

use serde::Serialize;

/// The offset at which a file contradicts its format, and the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("at byte {offset}: {fault}")]
pub struct ReadError {
    /// Offset of the faulty field in bytes from the start of the file. In a compressed file, from the start of the uncompressed
    /// content.
    pub offset: u64,
    /// The fault at this offset.
    pub fault: Fault,
}

/// A violation of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fault {
    /// No supported format begins with these bytes.
    #[error("{}", begins_with(*actual))]
    UnknownFormat {
        /// The first four bytes, little-endian.
        actual: u32,
    },
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file, or the enclosing part, ends too early.
    #[error("{item} needs {needed} bytes, {actual} are left")]
    Truncated {
        /// The part that is cut off.
        item: &'static str,
        /// Bytes that are available.
        actual: u64,
        /// Bytes that the part needs.
        needed: u64,
    },
    /// A marker is missing.
    #[error("{actual:#010x} instead of the marker of {needed}")]
    Marker {
        /// The word found.
        actual: u32,
        /// The part that should begin there.
        needed: &'static str,
    },
    /// A field does not have the value that follows from the others.
    #[error("{field} is {actual}, expected {needed}")]
    Value {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        actual: u64,
        /// The value that follows from the rest.
        needed: u64,
    },
    /// A field lies outside its possible range.
    #[error("{field} is {actual}, expected {min} to {max}")]
    Range {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        actual: u64,
        /// The least that is possible.
        min: u64,
        /// The most that is possible.
        max: u64,
    },
    /// A version that this crate does not read.
    #[error("{item} has version {actual:#x}, which is not supported")]
    Version {
        /// The part that has the version.
        item: &'static str,
        /// The version field.
        actual: u32,
    },
    /// The payload is compressed inside the file.
    #[error("the events are compressed inside the file (method {method}), which is not supported")]
    Compressed {
        /// The format's number for the method.
        method: u32,
    },
    /// A checksum differs from that of its bytes.
    #[error("the checksum of {item} is {actual:#010x}, expected {needed:#010x}")]
    Checksum {
        /// The part that the checksum covers.
        item: &'static str,
        /// The checksum in the file.
        actual: u32,
        /// The checksum of the bytes.
        needed: u32,
    },
    /// A part of an event has another L1 ID than the event.
    #[error("{item} has L1 ID {actual}, its event {needed}")]
    L1Id {
        /// Name of the part.
        item: &'static str,
        /// L1 ID of this part.
        actual: u64,
        /// L1 ID of the event.
        needed: u64,
    },
    /// An earlier event of the same run has the same L1 ID.
    #[error("L1 ID {l1_id} is repeated: the event at byte {first} has it, too")]
    DuplicateEvent {
        /// The L1 ID.
        l1_id: u64,
        /// Offset of the first event with this L1 ID.
        first: u64,
    },
    /// Another fragment of the same event has the same source.
    #[error("source {source_id:#x} is repeated in the same event")]
    DuplicateSource {
        /// Identifier of the source.
        source_id: u32,
    },
    /// The file has no end record.
    #[error("the file ends without its end record")]
    NoEndRecord,
    /// Bytes follow after the end of the file's content.
    #[error("{actual} bytes after the end record")]
    Trailing {
        /// Number of these bytes.
        actual: u64,
    },
}

/// Writes the message for a file that begins with these four bytes.
fn begins_with(actual: u32) -> String {
    let known = "ATLAS bytestream, LHCb MDF, ALICE pages (RDH 7) and plain fragment containers are read";
    match &actual.to_le_bytes() {
        b"\x89HDF" => format!("an HDF5 file, which is only written here; {known}"),
        b"root" => format!("it looks like a ROOT file; {known}"),
        _ => format!("no known format begins with {actual:#010x}; {known}"),
    }
}

impl Fault {
    pub(crate) fn at(self, offset: usize) -> ReadError {
        ReadError { offset: offset as u64, fault: self }
    }
}
