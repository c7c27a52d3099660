//! The header of all fragments above the ROD, and a full event's additional fields.

use super::{FULL_EVENT, ROB, ROS, SUB_DETECTOR};
use crate::words::{Words, index, slice_at, u32_at, words_at};
use crate::{EventId, Fault, ReadError};

const V3: u32 = 0x0300;
const V4: u32 = 0x0400;
/// Words for marker, total size, header size, version, source, number of status words, and one word after the status words.
const HEADER_WORDS_MIN: usize = 7;

/// The level of a fragment in the event's hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FragmentLevel {
    /// A full event.
    FullEvent,
    /// A sub-detector's part of the event.
    SubDetector,
    /// A readout's part of the event.
    Ros,
    /// The part that one link carried.
    Rob,
}

impl FragmentLevel {
    const ALL: [(u32, Self); 4] = [
        (FULL_EVENT, Self::FullEvent),
        (SUB_DETECTOR, Self::SubDetector),
        (ROS, Self::Ros),
        (ROB, Self::Rob),
    ];

    /// Returns the level's name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FullEvent => "a full event",
            Self::SubDetector => "a sub-detector fragment",
            Self::Ros => "a ROS fragment",
            Self::Rob => "a ROB fragment",
        }
    }

    /// Returns the level with this marker.
    pub fn from_marker(marker: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|&(known, _)| known == marker).map(|(_, level)| level)
    }
}

/// Kind of a fragment's checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumType {
    /// No checksum, and no trailer.
    None,
    /// CRC-16 (CCITT) in the variant of the readout's hardware, which this crate does not compute.
    Crc16Ccitt,
    /// Adler-32 of the payload.
    Adler32,
}

impl ChecksumType {
    /// Returns the number in the header.
    pub const fn code(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Crc16Ccitt => 1,
            Self::Adler32 => 2,
        }
    }
}

/// A fragment's header. Its sizes are checked against the enclosing part.
#[derive(Debug, Clone, Copy)]
pub struct FragmentHeader<'a> {
    /// The level of the fragment.
    pub level: FragmentLevel,
    /// Offset of the fragment's first byte in the slice.
    pub at: usize,
    /// Offset after the fragment.
    pub end: usize,
    /// Offset of the payload: everything between header and trailer.
    pub payload: usize,
    /// Offset after the payload.
    pub payload_end: usize,
    /// Major version, such as 0x0400.
    pub version_major: u32,
    /// The source of the fragment.
    pub source: u32,
    /// Number of status words.
    pub status_count: usize,
    /// The first status word; 0 ("nothing to report") without one.
    pub status: u32,
    /// Kind of the checksum.
    pub checksum_type: ChecksumType,
    /// Offset of the words that only this level has.
    pub specific: usize,
    words: Words<'a>,
}

impl FragmentHeader<'_> {
    /// Returns the checksum in the trailer; `None` if the fragment has none.
    pub fn checksum(&self, bytes: &[u8]) -> Option<u32> {
        match self.checksum_type {
            ChecksumType::None => None,
            ChecksumType::Crc16Ccitt | ChecksumType::Adler32 => u32_at(bytes, self.payload_end),
        }
    }

    /// Returns the L1 ID in a ROS fragment's header of version 3; `None` for other fragments.
    pub fn ros_l1_id(&self) -> Option<u32> {
        (self.level == FragmentLevel::Ros && self.version_major == V3)
            .then(|| self.specific_word(1))
            .flatten()
    }

    /// Returns the run in a ROS fragment's header of version 3; `None` for other fragments.
    pub fn ros_run(&self) -> Option<u32> {
        (self.level == FragmentLevel::Ros && self.version_major == V3)
            .then(|| self.specific_word(0))
            .flatten()
    }

    fn specific_word(&self, number: usize) -> Option<u32> {
        u32_at(self.words.0, self.specific - self.at + number * 4)
    }
}

/// Reads the fragment header at `at` of a slice; the enclosing part ends at `end`.
///
/// # Errors
/// If the marker does not belong to a fragment above the ROD, a size does not fit, or the version is not 3.0 or 4.0.
pub fn header(bytes: &[u8], at: usize, end: usize) -> Result<FragmentHeader<'_>, ReadError> {
    let start = slice_at(bytes, at, HEADER_WORDS_MIN * 4, end, "a fragment's header").map(Words)?;
    let marker = start.word(0);
    let Some(level) = FragmentLevel::from_marker(marker) else {
        return Err(Fault::Marker { actual: marker, needed: "a fragment" }.at(at));
    };
    let (total, header_words) = (index(start.word(1)), index(start.word(2)));
    if header_words < HEADER_WORDS_MIN || header_words > total {
        let (actual, max) = (header_words as u64, total as u64);
        let fault =
            Fault::Range { field: "the header size in words", actual, min: HEADER_WORDS_MIN as u64, max };
        return Err(fault.at(at + 8));
    }
    let whole = words_at(bytes, at, total, end, level.name())?;
    let version = start.word(3);
    let status_count = index(start.word(5));
    let status_max = header_words - HEADER_WORDS_MIN;
    if status_count > status_max {
        let (actual, max) = (status_count as u64, status_max as u64);
        return Err(Fault::Range { field: "the number of status words", actual, min: 0, max }.at(at + 20));
    }
    // Version 3 has the number of specific words where version 4 has the type of the checksum.
    let behind_status = 6 + status_count;
    let word = whole.word(behind_status);
    let checksum_type = match version >> 16 {
        V3 => {
            let needed = (header_words - behind_status - 1) as u64;
            if u64::from(word) != needed {
                let field = "the number of specific words";
                let fault = Fault::Value { field, actual: u64::from(word), needed };
                return Err(fault.at(at + behind_status * 4));
            }
            ChecksumType::None
        }
        V4 => match word {
            0 => ChecksumType::None,
            1 => ChecksumType::Crc16Ccitt,
            2 => ChecksumType::Adler32,
            _ => {
                let fault =
                    Fault::Range { field: "the checksum type", actual: u64::from(word), min: 0, max: 2 };
                return Err(fault.at(at + behind_status * 4));
            }
        },
        _ => return Err(Fault::Version { item: level.name(), actual: version }.at(at + 12)),
    };
    let trailer_words = usize::from(checksum_type != ChecksumType::None);
    if header_words + trailer_words > total {
        let (actual, min) = (total as u64, (header_words + trailer_words) as u64);
        let fault = Fault::Range { field: "the total size in words", actual, min, max: u64::from(u32::MAX) };
        return Err(fault.at(at + 4));
    }
    Ok(FragmentHeader {
        level,
        at,
        end: at + total * 4,
        payload: at + header_words * 4,
        payload_end: at + (total - trailer_words) * 4,
        version_major: version >> 16,
        source: start.word(4),
        status_count,
        status: if status_count == 0 { 0 } else { whole.word(6) },
        checksum_type,
        specific: at + (behind_status + 1) * 4,
        words: Words(&whole.0[..header_words * 4]),
    })
}

/// The identity and the time of an event, from a full event's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullEvent {
    /// L1 ID, bunch crossing (version 4 only) and run.
    pub id: EventId,
    /// The number of the event within the run.
    pub global_id: u32,
    /// Seconds since 1970.
    pub time_seconds: u32,
}

impl FullEvent {
    /// Reads the event's fields from the header of a full event.
    ///
    /// # Errors
    /// If the header is too short, or its counts do not add up to its size.
    pub fn read(header: &FragmentHeader<'_>) -> Result<Self, ReadError> {
        let word = |number: usize| {
            header.specific_word(number).ok_or_else(|| {
                let (actual, needed) = ((header.payload - header.specific) as u64, (number as u64 + 1) * 4);
                Fault::Truncated { item: "a full event's header", actual, needed }.at(header.specific)
            })
        };
        if header.version_major == V3 {
            let id = EventId { l1_id: u64::from(word(3)?), bc_id: None, run: Some(word(2)?) };
            return Ok(Self { id, global_id: word(1)?, time_seconds: word(0)? });
        }
        let id = EventId { l1_id: u64::from(word(6)?), bc_id: Some(word(7)? & 0xffff), run: Some(word(4)?) };
        // The words of level-1, level-2 and event filter and the stream tags follow, each after their number.
        let mut number = 9;
        for _ in 0..4 {
            number += 1 + index(word(number)?).min(usize::MAX / 8 - number);
        }
        let (actual, needed) = ((header.payload - header.specific) as u64, number as u64 * 4);
        if actual != needed {
            return Err(
                Fault::Value { field: "the size of a full event's header", actual, needed }.at(header.at + 8)
            );
        }
        Ok(Self { id, global_id: word(2)?, time_seconds: word(0)? })
    }
}
