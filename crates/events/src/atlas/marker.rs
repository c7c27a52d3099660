//! The first words of records and fragments.

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
/// Fragment of one readout link.
pub const ROB: u32 = 0xdd12_34dd;
/// The data of the sub-detector's electronics.
pub const ROD: u32 = 0xee12_34ee;
