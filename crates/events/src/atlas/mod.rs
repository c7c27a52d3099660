//! ATLAS-style bytestream: nested fragments with headers, in files with records (thesis §3.7.1).
//!
//! All fields are little-endian 32-bit words; sizes count words. A full event holds sub-detector, ROS and ROB fragments
//! (version 3) or ROB fragments only (version 4). A ROB fragment holds one ROD fragment. BESIII writes version 3. `eformat` of
//! the ATLAS software defines version 4 ("Raw event format", v4.0). Version 5 is refused. `docs/events.md` has the headers as
//! tables.
//!
//! **Borrowed fragments.** The fragment of a source is its whole ROB fragment. If [`AtlasWriter`] wrapped other bytes in a ROB
//! fragment, the fragment is those bytes, so that reading returns exactly the written bytes.

mod header;
mod marker;
mod read;
mod rod;
mod write;

pub use header::{ChecksumType, FragmentHeader, FragmentLevel, FullEvent, header};
pub use marker::{
    EVENT_RECORD, FILE_END, FILE_END_LAST, FILE_NAMES, FILE_START, FREE_STRINGS, FULL_EVENT, ROB, ROD, ROS,
    RUN_PARAMETERS, SUB_DETECTOR,
};
pub use read::AtlasEvents;
pub(crate) use read::{FileRecord, event, find_record, record, walk};
pub use rod::{Rod, WRAPPED_VERSION, rod};
pub use write::{AtlasWriter, EventHeader, FileEnd, FileHeader, WriteError, encode_event};

/// Bits of a fragment's first status word: its lower half, which all sub-detectors share.
pub mod status {
    /// The bunch crossing differs from the event's.
    pub const BC_ID: u32 = 0x1;
    /// The L1 ID differs from the event's.
    pub const L1_ID: u32 = 0x2;
    /// The fragment did not arrive in time.
    pub const TIMEOUT: u32 = 0x4;
    /// The data are known to be corrupt.
    pub const CORRUPT: u32 = 0x8;
    /// A buffer overflowed on the path.
    pub const OVERFLOW: u32 = 0x10;
    /// A stand-in without data.
    pub const DUMMY: u32 = 0x20;
    /// Set by the writer for a missing fragment: a stand-in after a timeout.
    pub const MISSING: u32 = TIMEOUT | DUMMY;
}
