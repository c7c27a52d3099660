//! ATLAS-style bytestream: nested fragments with headers, in files with records (thesis §3.7.1).
//!
//! Little-endian 32-bit words throughout; sizes count words. A full event holds sub-detector, ROS and ROB fragments
//! (version 3) or ROB fragments only (version 4); a ROB fragment holds one ROD fragment. Version 3 is what BESIII
//! writes, version 4 is defined by `eformat` of the ATLAS software ("Raw event format", v4.0); version 5 is refused.
//! `docs/events.md` has the headers as tables.
//!
//! **What is lent.** The fragment of a source is its whole ROB fragment. Where a ROB fragment was made by [`Writer`]
//! around bytes that were no ROB fragment, it is those bytes: what is written is what is read.

mod header;
mod read;
mod rod;
mod write;

pub use header::{ChecksumType, FullEvent, Header, Level, header};
pub use read::Events;
pub(crate) use read::{Record, event, find_record, record, walk};
pub use rod::{Rod, WRAPPED_VERSION, rod};
pub use write::{EventHeader, FileEnd, FileHeader, WriteError, Writer, encode_event};

/// First record of a file.
pub const FILE_START: u32 = 0x1234_aaaa;
/// Record with the names of the application and of the file.
pub const FILE_NAMES: u32 = 0x1234_aabb;
/// Record with free text.
pub const FREE_STRINGS: u32 = 0x1234_aabc;
/// Record with the run's parameters.
pub const RUN_PARAMETERS: u32 = 0x1234_bbbb;
/// Record before each event.
pub const EVENT_RECORD: u32 = 0x1234_cccc;
/// Last record of a file.
pub const FILE_END: u32 = 0x1234_dddd;
/// Last word of the last record.
pub const FILE_END_LAST: u32 = 0x1234_eeee;
/// A full event.
pub const FULL_EVENT: u32 = 0xaa12_34aa;
/// All of a sub-detector (version 3).
pub const SUB_DETECTOR: u32 = 0xbb12_34bb;
/// All of a readout (version 3).
pub const ROS: u32 = 0xcc12_34cc;
/// One link.
pub const ROB: u32 = 0xdd12_34dd;
/// What the sub-detector's electronics made of it.
pub const ROD: u32 = 0xee12_34ee;

/// Bits of a fragment's first status word: its lower half, the part that all sub-detectors share.
pub mod status {
    /// The bunch crossing is not the event's.
    pub const BC_ID: u32 = 0x1;
    /// The L1 ID is not the event's.
    pub const L1_ID: u32 = 0x2;
    /// The fragment did not come in time.
    pub const TIMEOUT: u32 = 0x4;
    /// The data are known to be corrupt.
    pub const CORRUPT: u32 = 0x8;
    /// A buffer overflowed on the way.
    pub const OVERFLOW: u32 = 0x10;
    /// A stand-in without data.
    pub const DUMMY: u32 = 0x20;
    /// What the writer sets for a fragment that never came: a stand-in, because the time was up.
    pub const MISSING: u32 = TIMEOUT | DUMMY;
}
