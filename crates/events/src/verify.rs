//! Complete check of a file: every size, marker, checksum and L1 ID.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::atlas::{self, ChecksumType, FragmentHeader, FragmentLevel, FullEvent};
use crate::checksum::{adler32, one_at_a_time};
use crate::words::{index, u32_at};
use crate::{Event, EventId, Events, Fault, Format, Fragment, ReadError, rdh};

/// Most faults listed in a report. Further faults are only counted.
pub const FAULTS_KEPT: usize = 1000;

/// The report of [`verify`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The format of the file.
    pub format: Format,
    /// Events that could be read.
    pub events: u64,
    /// Fragments in them.
    pub fragments: u64,
    /// Bytes in these fragments.
    pub fragment_bytes: u64,
    /// Number of all faults, including unlisted ones.
    pub fault_count: u64,
    /// The first faults, in the order of the file.
    pub faults: Vec<ReadError>,
    /// Number of recomputed checksums. Those that differ are among the faults.
    pub checksums_checked: u64,
    /// Checksums that this crate cannot compute: CRC-16 of ATLAS fragments.
    pub checksums_unchecked: u64,
    /// Events that appear again with the same fragments. This is no fault: a logger may store an event twice if an
    /// acknowledgement was lost.
    pub duplicates: u64,
    /// Events with a smaller L1 ID than an earlier one. This is no fault: events are stored when they are complete.
    pub out_of_order: u64,
    /// L1 IDs between the smallest and the largest one without an event. This is no fault: events may be rejected.
    pub l1_ids_absent: u64,
    /// Fragments with neither L1 ID nor run in their headers.
    pub fragments_without_l1_id: u64,
    /// Sources with L1 IDs that differ from the events' by a constant, which is no fault.
    pub l1_id_offsets: Vec<L1IdOffset>,
}

/// A source with L1 IDs that differ from the events' by a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct L1IdOffset {
    /// Identifier of the source.
    pub source: u32,
    /// The fragment's L1 ID minus the event's.
    pub offset: i64,
    /// Fragments of the source.
    pub fragments: u64,
}

/// Checks a whole file. A part that cannot be read after a fault is skipped, and counts as one fault.
///
/// # Errors
/// If no format begins with the file's first bytes.
pub fn verify(bytes: &[u8]) -> Result<Report, ReadError> {
    let events = Events::open(bytes)?;
    let mut check = FileCheck::new(bytes, events.format());
    match events.format() {
        Format::Atlas => check.atlas(),
        Format::Rdh => check.rdh(events),
        Format::Mdf | Format::Frag => check.plain(events),
    }
    Ok(check.finish())
}

struct FileCheck<'a> {
    bytes: &'a [u8],
    report: Report,
    /// The offset of the first event with each run and L1 ID.
    seen: HashMap<(Option<u32>, u64), u64>,
    l1_id_max: Option<u64>,
    /// For each source and level: the differences of its L1 ID from the event's, with their counts and first offsets.
    distances: BTreeMap<(u32, &'static str), BTreeMap<i64, Distance>>,
    sources: Vec<u32>,
}

/// Returns the fragments of an event in the order of sources. A collector writes fragments as they arrive, and those that never
/// came at the end.
fn by_source<'a>(event: &Event<'a>) -> Vec<Fragment<'a>> {
    let mut fragments = event.fragments.clone();
    fragments.sort_by_key(|fragment| fragment.source);
    fragments
}

struct Distance {
    count: u64,
    first: ReadError,
}

impl<'a> FileCheck<'a> {
    fn new(bytes: &'a [u8], format: Format) -> Self {
        let report = Report {
            format,
            events: 0,
            fragments: 0,
            fragment_bytes: 0,
            fault_count: 0,
            faults: Vec::new(),
            checksums_checked: 0,
            checksums_unchecked: 0,
            duplicates: 0,
            out_of_order: 0,
            l1_ids_absent: 0,
            fragments_without_l1_id: 0,
            l1_id_offsets: Vec::new(),
        };
        Self {
            bytes,
            report,
            seen: HashMap::new(),
            l1_id_max: None,
            distances: BTreeMap::new(),
            sources: Vec::new(),
        }
    }

    fn fault(&mut self, error: ReadError) {
        self.faults(error, 1);
    }

    fn faults(&mut self, first: ReadError, count: u64) {
        self.report.fault_count += count;
        // Faults come nearly in the file's order. Twice as many are kept, so that sorting finds the first ones.
        if self.report.faults.len() < 2 * FAULTS_KEPT {
            self.report.faults.push(first);
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        self.report.events += 1;
        self.report.fragments += event.fragments.len() as u64;
        self.report.fragment_bytes += event.fragment_bytes().get();
        let EventId { l1_id, run, .. } = event.id;
        if self.l1_id_max.is_some_and(|max| l1_id < max) {
            self.report.out_of_order += 1;
        }
        self.l1_id_max = self.l1_id_max.max(Some(l1_id));
        if let Some(&first) = self.seen.get(&(run, l1_id)) {
            if self.is_repetition(first, event) {
                self.report.duplicates += 1;
            } else {
                self.fault(ReadError { offset: event.offset, fault: Fault::DuplicateEvent { l1_id, first } });
            }
        } else {
            self.seen.insert((run, l1_id), event.offset);
        }
    }

    /// Returns true if an event has the fragments of the event at `first`. Fragments marked as missing in either do not
    /// count.
    fn is_repetition(&self, first: u64, event: &Event<'_>) -> bool {
        let Some(bytes) = self.bytes.get(first as usize..) else { return false };
        let Some(Ok(earlier)) = Events::with_format(bytes, self.report.format).next() else { return false };
        let is_missing = |status: u32| status == atlas::status::MISSING;
        earlier.fragments.len() == event.fragments.len()
            && by_source(&earlier).iter().zip(&by_source(event)).all(|(one, other)| {
                one.source == other.source
                    && (one.bytes == other.bytes || is_missing(one.status) || is_missing(other.status))
            })
    }

    fn each_source_once(&mut self, event: &Event<'_>) {
        self.sources.clear();
        self.sources.extend(event.fragments.iter().map(|fragment| fragment.source));
        self.sources.sort_unstable();
        if self.sources.windows(2).all(|pair| pair[0] != pair[1]) {
            return;
        }
        let mut seen = std::collections::HashSet::new();
        for fragment in &event.fragments {
            if !seen.insert(fragment.source) {
                let fault = Fault::DuplicateSource { source_id: fragment.source };
                self.fault(ReadError { offset: fragment.offset, fault });
            }
        }
    }

    fn plain(&mut self, mut events: Events<'a>) {
        loop {
            match events.next() {
                Some(Ok(event)) => {
                    self.event(&event);
                    self.each_source_once(&event);
                    if self.report.format == Format::Mdf {
                        self.record_checksum(&event);
                    }
                }
                Some(Err(error)) => {
                    self.fault(error);
                    if !events.resync() {
                        return;
                    }
                }
                None => return,
            }
        }
    }

    /// Checks the fourth word of an MDF header, the checksum of the bytes after it. Zero means no checksum.
    fn record_checksum(&mut self, event: &Event<'a>) {
        let at = event.offset as usize + 12;
        let end = event.offset as usize + event.size as usize;
        let (Some(actual), Some(covered)) = (u32_at(self.bytes, at), self.bytes.get(at + 4..end)) else {
            return;
        };
        if actual == 0 {
            return;
        }
        self.report.checksums_checked += 1;
        let needed = one_at_a_time(covered);
        if actual != needed {
            self.fault(Fault::Checksum { item: "an event", actual, needed }.at(at));
        }
    }

    fn rdh(&mut self, mut events: Events<'a>) {
        loop {
            match events.next() {
                Some(Ok(event)) => {
                    self.event(&event);
                    self.pages(&event);
                }
                Some(Err(error)) => {
                    self.fault(error);
                    if !events.resync() {
                        return;
                    }
                }
                None => return,
            }
        }
    }

    /// Checks that the pages of each source in a heartbeat frame are numbered from 0, and the last one is marked.
    fn pages(&mut self, event: &Event<'_>) {
        let mut next: BTreeMap<u32, (u16, bool, u64)> = BTreeMap::new();
        for fragment in &event.fragments {
            let mut at = fragment.offset as usize;
            let end = at + fragment.bytes.len();
            while at < end {
                let Ok(page) = rdh::page(self.bytes, at) else { break };
                let (counter, stopped, last) = next.entry(page.source).or_insert((0, false, page.offset));
                let (needed, was_stopped) = (*counter, *stopped);
                (*counter, *stopped, *last) = (page.counter.wrapping_add(1), page.stop, page.offset);
                if page.counter != needed {
                    let (actual, needed) = (u64::from(page.counter), u64::from(needed));
                    self.fault(Fault::Value { field: "the page counter", actual, needed }.at(at + 36));
                } else if was_stopped {
                    let fault =
                        Fault::Value { field: "the stop bit of the page before", actual: 1, needed: 0 };
                    self.fault(fault.at(at + 38));
                }
                at += index(page.size);
            }
        }
        for (_, stopped, last) in next.into_values() {
            if !stopped {
                let fault = Fault::Value { field: "the stop bit of a last page", actual: 0, needed: 1 };
                self.fault(fault.at(last as usize + 38));
            }
        }
    }

    fn atlas(&mut self) {
        let mut at = 0;
        let (mut has_records, mut ended) = (false, false);
        let (mut block_before, mut events_before) = (None::<u32>, 0);
        while at < self.bytes.len() {
            let record = atlas::record(self.bytes, at);
            let next = match record {
                Err(error) => {
                    // All bytes after the end are one fault, whatever their content.
                    if ended {
                        let actual = (self.bytes.len() - at) as u64;
                        self.fault(Fault::Trailing { actual }.at(at));
                        break;
                    }
                    self.fault(error);
                    atlas::find_record(self.bytes, at + 1).unwrap_or(self.bytes.len())
                }
                Ok(atlas::FileRecord::Other { next }) => {
                    (has_records, ended) = (true, false);
                    next
                }
                Ok(atlas::FileRecord::Event { at: event_at, end, block }) => {
                    if let (Some(before), Some(block)) = (block_before, block)
                        && block != before.wrapping_add(1)
                    {
                        let (actual, needed) = (u64::from(block), u64::from(before.wrapping_add(1)));
                        self.fault(
                            Fault::Value { field: "the number of the data block", actual, needed }.at(at + 8),
                        );
                    }
                    has_records |= block.is_some();
                    block_before = block;
                    self.full_event(event_at, end);
                    end.max(at + 1)
                }
                Ok(atlas::FileRecord::End { next, events }) => {
                    let needed = self.report.events - events_before;
                    if u64::from(events) != needed {
                        let field = "the number of events in the end record";
                        self.fault(Fault::Value { field, actual: u64::from(events), needed }.at(at + 16));
                    }
                    (ended, block_before, events_before) = (true, None, self.report.events);
                    next
                }
            };
            at = next;
        }
        if has_records && !ended {
            self.fault(Fault::NoEndRecord.at(self.bytes.len()));
        }
        self.l1_id_distances();
    }

    fn full_event(&mut self, at: usize, end: usize) {
        // Reading checks that the headers fit; the contents are checked only after that.
        let event = match atlas::event(self.bytes, at, end) {
            Ok(event) => event,
            Err(error) => return self.fault(error),
        };
        self.event(&event);
        self.each_source_once(&event);
        let bytes = self.bytes;
        let mut id = event.id;
        let walked = atlas::walk(bytes, at, end, &mut |header| {
            self.checksum(header);
            match header.level {
                FragmentLevel::FullEvent => id = FullEvent::read(header)?.id,
                FragmentLevel::SubDetector => {}
                FragmentLevel::Ros => {
                    if let Some(l1_id) = header.ros_l1_id() {
                        let run = header.ros_run().unwrap_or_default();
                        self.l1_id(header, "a ROS fragment", header.specific + 4, (l1_id, run), id);
                    }
                }
                FragmentLevel::Rob => match atlas::rod(bytes, header.payload, header.payload_end) {
                    Ok(rod) => {
                        let item = "a ROD fragment";
                        self.l1_id(header, item, header.payload + 20, (rod.l1_id, rod.run), id);
                    }
                    // A missing fragment has no ROD fragment inside.
                    Err(_) if header.payload == header.payload_end && header.status != 0 => {}
                    Err(error) => self.fault(error),
                },
            }
            Ok(())
        });
        if let Err(error) = walked {
            self.fault(error);
        }
    }

    fn checksum(&mut self, header: &FragmentHeader<'_>) {
        let Some(actual) = header.checksum(self.bytes) else { return };
        if header.checksum_type != ChecksumType::Adler32 {
            self.report.checksums_unchecked += 1;
            return;
        }
        self.report.checksums_checked += 1;
        let needed = adler32(&self.bytes[header.payload..header.payload_end]);
        if actual != needed {
            self.fault(Fault::Checksum { item: header.level.name(), actual, needed }.at(header.payload_end));
        }
    }

    fn l1_id(
        &mut self,
        header: &FragmentHeader<'_>,
        item: &'static str,
        at: usize,
        actual: (u32, u32),
        event: EventId,
    ) {
        let (l1_id, run) = actual;
        if l1_id == 0 && run == 0 && event.l1_id != 0 {
            self.report.fragments_without_l1_id += u64::from(header.level == FragmentLevel::Rob);
            return;
        }
        let (actual, needed) = (u64::from(l1_id), event.l1_id);
        let first = Fault::L1Id { item, actual, needed }.at(at);
        // Both fit into 32 bits, so that the difference cannot overflow.
        let distance = actual as i64 - needed as i64;
        let of_source = self.distances.entry((header.source, item)).or_default();
        of_source.entry(distance).or_insert(Distance { count: 0, first }).count += 1;
    }

    /// Takes the most frequent distance of each source as its offset. Fragments with another distance are faults.
    fn l1_id_distances(&mut self) {
        for ((source, item), of_source) in std::mem::take(&mut self.distances) {
            let fragments: u64 = of_source.values().map(|distance| distance.count).sum();
            let usual = of_source
                .iter()
                .max_by_key(|&(&distance, entry)| (entry.count, distance == 0))
                // A single fragment does not show that its distance is constant.
                .filter(|&(_, entry)| entry.count > 1)
                .map_or(0, |(&distance, _)| distance);
            if usual != 0 && item == "a ROD fragment" {
                self.report.l1_id_offsets.push(L1IdOffset { source, offset: usual, fragments });
            }
            for (distance, entry) in of_source {
                if distance != usual {
                    self.faults(entry.first, entry.count);
                }
            }
        }
    }

    fn finish(mut self) -> Report {
        let ids = self.seen.keys().map(|&(_, l1_id)| l1_id);
        if let (Some(min), Some(max)) = (ids.clone().min(), ids.max()) {
            let distinct: std::collections::HashSet<u64> =
                self.seen.keys().map(|&(_, l1_id)| l1_id).collect();
            self.report.l1_ids_absent = (max - min).saturating_sub(distinct.len() as u64 - 1);
        }
        self.report.faults.sort_by_key(|error| error.offset);
        self.report.faults.truncate(FAULTS_KEPT);
        self.report
    }
}
