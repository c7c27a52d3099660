//! Writes events into a file, with file records, as format version 4.0.

use std::io::{self, Write};

use super::header::{ChecksumType, FragmentLevel, header};
use super::rod::{self, WRAPPED_VERSION, rod};
use super::{
    EVENT_RECORD, FILE_END, FILE_END_LAST, FILE_NAMES, FILE_START, FULL_EVENT, ROB, ROD, RUN_PARAMETERS,
};
use crate::Fragment;
use crate::checksum::adler32;

/// The version in the headers of full events and ROB fragments.
const VERSION: u32 = 0x0400_0000;
/// The version in the first record of a file.
const FILE_VERSION: u32 = 5;
const ROB_HEADER_WORDS: usize = 8;

/// Errors of writing an event.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A size or count of the event does not fit its 32-bit field.
    #[error("{field} is {actual}, more than 32 bits hold")]
    TooLarge {
        /// Name of the field.
        field: &'static str,
        /// The value to store.
        actual: u64,
    },
    /// CRC-16 is requested; this crate has no definition of its variant.
    #[error("only checksums of type Adler-32 are written")]
    ChecksumType,
}

/// The fields of a full event's header (`eformat` v4.0, `FullEventFragment`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHeader<'a> {
    /// The L1 ID.
    pub l1_id: u32,
    /// The bunch crossing within the orbit.
    pub bc_id: u16,
    /// Run number of all events.
    pub run: u32,
    /// The number of the event within the run.
    pub global_id: u32,
    /// Time of the event in whole seconds since 1970.
    pub time_seconds: u32,
    /// Nanoseconds in addition to `time_seconds`.
    pub time_nanoseconds: u32,
    /// The type of the run.
    pub run_type: u32,
    /// The luminosity block.
    pub lumi_block: u16,
    /// The type of the level-1 trigger.
    pub trigger_type: u8,
    /// The source of the full event, which is the event builder.
    pub source: u32,
    /// The event's status word, with bits of [`super::status`].
    pub status: u32,
    /// Words of the level-1 trigger.
    pub l1_info: &'a [u32],
    /// Words of the level-2 trigger.
    pub l2_info: &'a [u32],
    /// Words of the event filter.
    pub filter_info: &'a [u32],
    /// The streams of the event as text. It is padded with zeros to whole words.
    pub stream_tag: &'a str,
    /// The checksum of the event.
    pub checksum: ChecksumType,
    /// The checksum of each ROB fragment that the writer makes.
    pub rob_checksum: ChecksumType,
}

impl Default for EventHeader<'_> {
    /// All fields zero, with Adler-32 for the event and its fragments.
    fn default() -> Self {
        Self {
            l1_id: 0,
            bc_id: 0,
            run: 0,
            global_id: 0,
            time_seconds: 0,
            time_nanoseconds: 0,
            run_type: 0,
            lumi_block: 0,
            trigger_type: 0,
            source: 0,
            status: 0,
            l1_info: &[],
            l2_info: &[],
            filter_info: &[],
            stream_tag: "",
            checksum: ChecksumType::Adler32,
            rob_checksum: ChecksumType::Adler32,
        }
    }
}

/// Appends an event to `out`.
///
/// A fragment that is a ROB fragment of its source is written unchanged. Any other bytes are wrapped in a ROB and a ROD
/// fragment, and the reader returns exactly these bytes. The fragments' `offset` fields are ignored.
///
/// # Errors
/// If a size takes more than 32 bits, or CRC-16 is requested; `out` is then unchanged.
pub fn encode_event<'b>(
    event: &EventHeader<'_>,
    fragments: impl IntoIterator<Item = Fragment<'b>>,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let start = out.len();
    let result = append_event(event, fragments, out);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

fn append_event<'b>(
    event: &EventHeader<'_>,
    fragments: impl IntoIterator<Item = Fragment<'b>>,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let start = out.len();
    // Total size and header size are set at the end.
    push(out, &[FULL_EVENT, 0, 0, VERSION, event.source, 1, event.status]);
    push(out, &[checksum_code(event.checksum)?, event.time_seconds, event.time_nanoseconds, event.global_id]);
    push(out, &[event.run_type, event.run, u32::from(event.lumi_block), event.l1_id]);
    push(out, &[u32::from(event.bc_id), u32::from(event.trigger_type)]);
    for words in [event.l1_info, event.l2_info, event.filter_info] {
        push(out, &[count("the number of trigger words", words.len())?]);
        push(out, words);
    }
    let tag_words = event.stream_tag.len().div_ceil(4);
    push(out, &[count("the size of the stream tag", tag_words)?]);
    out.extend_from_slice(event.stream_tag.as_bytes());
    pad(out, start);
    let header_words = count("the header's size", (out.len() - start) / 4)?;
    set(out, start + 8, header_words);
    for fragment in fragments {
        append_fragment(event, &fragment, out)?;
    }
    close(out, start, header_words, event.checksum)
}

fn append_fragment(
    event: &EventHeader<'_>,
    fragment: &Fragment<'_>,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    if is_rob(fragment) {
        out.extend_from_slice(fragment.bytes);
        return Ok(());
    }
    let start = out.len();
    let (source, bytes) = (fragment.source, fragment.bytes);
    let (len, data_words) =
        (count("a fragment's size", bytes.len())?, count("a fragment's size", bytes.len().div_ceil(4))?);
    let header_words = ROB_HEADER_WORDS as u32;
    let checksum = checksum_code(event.rob_checksum)?;
    push(out, &[ROB, 0, header_words, VERSION, source, 1, fragment.status, checksum]);
    push(out, &[ROD, rod::HEADER_WORDS as u32, WRAPPED_VERSION, source, event.run, event.l1_id]);
    push(out, &[u32::from(event.bc_id), u32::from(event.trigger_type), 0]);
    // The status words precede the data, as in the format's default.
    push(out, &[fragment.status, len]);
    out.extend_from_slice(bytes);
    pad(out, start);
    push(out, &[2, data_words, 0]);
    close(out, start, header_words, event.rob_checksum)
}

/// Returns true if the fragment is a whole ROB fragment of its source. A ROB fragment that wraps other bytes counts as other
/// bytes: it is wrapped again, because the reader removes one layer.
fn is_rob(fragment: &Fragment<'_>) -> bool {
    let bytes = fragment.bytes;
    header(bytes, 0, bytes.len()).is_ok_and(|header| {
        header.level == FragmentLevel::Rob
            && header.end == bytes.len()
            && header.source == fragment.source
            && rod(bytes, header.payload, header.payload_end).map_or(true, |rod| rod.wrapped().is_none())
    })
}

/// Adds the trailer, and sets the total size of the fragment that begins at `start`.
fn close(
    out: &mut Vec<u8>,
    start: usize,
    header_words: u32,
    checksum: ChecksumType,
) -> Result<(), WriteError> {
    if checksum == ChecksumType::Adler32 {
        let sum = adler32(&out[start + header_words as usize * 4..]);
        push(out, &[sum]);
    }
    let total = count("a total size", (out.len() - start) / 4)?;
    set(out, start + 4, total);
    Ok(())
}

fn checksum_code(checksum: ChecksumType) -> Result<u32, WriteError> {
    match checksum {
        ChecksumType::None | ChecksumType::Adler32 => Ok(checksum.code()),
        ChecksumType::Crc16Ccitt => Err(WriteError::ChecksumType),
    }
}

fn count(field: &'static str, value: usize) -> Result<u32, WriteError> {
    u32::try_from(value).map_err(|_| WriteError::TooLarge { field, actual: value as u64 })
}

fn push(out: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

fn set(out: &mut [u8], at: usize, word: u32) {
    out[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

/// Pads with zeros to a whole word, counted from `start`.
fn pad(out: &mut Vec<u8>, start: usize) {
    let len = (out.len() - start).next_multiple_of(4);
    out.resize(start + len, 0);
}

/// The fields of the first records of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileHeader {
    /// The writing application, such as `"fanin-logger-1"`.
    pub application: String,
    /// The common part of the names of the run's files.
    pub file_name: String,
    /// The number of the file within the run.
    pub file_number: u32,
    /// The date of the start as decimal digits, `ddmmyyyy`.
    pub date: u32,
    /// The time of the start as decimal digits, `hhmmss`.
    pub time: u32,
    /// Run number of the file.
    pub run: u32,
    /// The type of trigger of the run.
    pub trigger_type: u32,
    /// The participating detectors.
    pub detector_mask: u64,
    /// The kind of beam.
    pub beam_type: u32,
    /// The beam's energy in GeV.
    pub beam_energy: u32,
}

/// The fields of the last record of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileEnd {
    /// The date of the end as decimal digits, `ddmmyyyy`.
    pub date: u32,
    /// The time of the end as decimal digits, `hhmmss`.
    pub time: u32,
    /// Events in the earlier files of the run.
    pub earlier_events: u32,
    /// Megabytes in the earlier files of the run.
    pub earlier_megabytes: u32,
    /// True if the run ends with this file.
    pub last_of_run: bool,
}

/// Writes a file with its records. A file without its end can be read up to the last complete event.
#[derive(Debug)]
pub struct AtlasWriter<W> {
    out: W,
    event: Vec<u8>,
    events: u32,
    bytes: u64,
}

impl<W: Write> AtlasWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// If it cannot be written, or a name is larger than 4 GiB.
    pub fn new(mut out: W, file: &FileHeader) -> Result<Self, WriteError> {
        let mut bytes = Vec::new();
        push(&mut bytes, &[FILE_START, 8, FILE_VERSION, file.file_number, file.date, file.time, 0, 0]);
        push(&mut bytes, &[FILE_NAMES]);
        for name in [&file.application, &file.file_name] {
            push(&mut bytes, &[count("the length of a name", name.len())?]);
            bytes.extend_from_slice(name.as_bytes());
            // Texts are padded with spaces, as in files of BESIII.
            bytes.resize(bytes.len().next_multiple_of(4), b' ');
        }
        let (mask_low, mask_high) = (file.detector_mask as u32, (file.detector_mask >> 32) as u32);
        push(&mut bytes, &[RUN_PARAMETERS, 10, file.run, 0, 1, file.trigger_type, mask_low, mask_high]);
        push(&mut bytes, &[file.beam_type, file.beam_energy]);
        out.write_all(&bytes)?;
        Ok(Self { out, event: Vec::new(), events: 0, bytes: bytes.len() as u64 })
    }

    /// Adds an event as [`encode_event`] does.
    ///
    /// # Errors
    /// If it cannot be encoded (the file is then unchanged) or cannot be written.
    pub fn write_event<'b>(
        &mut self,
        event: &EventHeader<'_>,
        fragments: impl IntoIterator<Item = Fragment<'b>>,
    ) -> Result<(), WriteError> {
        self.event.clear();
        push(&mut self.event, &[EVENT_RECORD, 4, self.events.wrapping_add(1), 0]);
        let record_bytes = self.event.len();
        encode_event(event, fragments, &mut self.event)?;
        let size = count("an event's size", self.event.len() - record_bytes)?;
        set(&mut self.event, record_bytes - 4, size);
        self.out.write_all(&self.event)?;
        self.events += 1;
        self.bytes += self.event.len() as u64;
        Ok(())
    }

    /// Adds an event that is encoded already, such as an undamaged one of a damaged file.
    ///
    /// # Errors
    /// As for [`Self::write_event`].
    pub fn copy_event(&mut self, encoded: &[u8]) -> Result<(), WriteError> {
        self.begin_event(encoded.len())?;
        self.out.write_all(encoded)?;
        Ok(())
    }

    /// Adds the record in front of an encoded event of `size` bytes, which the caller writes next.
    ///
    /// # Errors
    /// If the size takes more than 32 bits, or the record cannot be written.
    pub fn begin_event(&mut self, size: usize) -> Result<(), WriteError> {
        self.event.clear();
        let bytes = count("an event's size", size)?;
        push(&mut self.event, &[EVENT_RECORD, 4, self.events.wrapping_add(1), bytes]);
        self.out.write_all(&self.event)?;
        self.events += 1;
        self.bytes += (self.event.len() + size) as u64;
        Ok(())
    }

    /// Continues a file that has `events` events and `bytes` bytes, and writes nothing. For files of an earlier process, and
    /// for files that were truncated after events could not be written to disk.
    pub const fn resume(out: W, events: u32, bytes: u64) -> Self {
        Self { out, event: Vec::new(), events, bytes }
    }

    /// Returns the number of events in the file so far.
    pub const fn written_events(&self) -> u32 {
        self.events
    }

    /// Returns the bytes written so far, by which a logger decides when to start the next file.
    pub const fn written_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the output to which events are written.
    pub const fn output(&mut self) -> &mut W {
        &mut self.out
    }

    /// Ends the file, and returns the output.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn finish(mut self, end: &FileEnd) -> Result<W, WriteError> {
        let megabytes = u32::try_from(self.bytes / 1_000_000).unwrap_or(u32::MAX);
        let mut bytes = Vec::new();
        push(&mut bytes, &[FILE_END, 10, end.date, end.time, self.events, megabytes]);
        let events_in_run = end.earlier_events.saturating_add(self.events);
        let megabytes_in_run = end.earlier_megabytes.saturating_add(megabytes);
        push(&mut bytes, &[events_in_run, megabytes_in_run, u32::from(end.last_of_run), FILE_END_LAST]);
        self.out.write_all(&bytes)?;
        self.out.flush()?;
        Ok(self.out)
    }
}
