//! Audit: proves from journals and stored files that no event was lost, stored twice without a reason, or damaged.

mod finding;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use fanin_dataflow::{AuditError, Auditor, EventRecord, EventStep, EventStream, L1Id, Outcome, Peer, Totals};
use fanin_units::Instant;

use crate::journal::{self, JournalEntry, JournalError, header_words};
use crate::machine::HostMachine;
use crate::replaced;
use crate::resume::Resume;
use crate::store::stream_name;

pub use finding::Finding;
use finding::SHOWN_MAX;
use stored::{ShippedSize, UnfinishedFile, read_file};

/// Maximum difference between the clocks of two hosts, in picoseconds.
const SKEW_MAX: u128 = 10_000_000_000_000;

/// Scope of an audit, which runs after all processes of a system have ended.
#[derive(Debug, Clone, Copy)]
pub struct AuditScope<'a> {
    /// Folders with the journals of all processes. All journals of one process are in one folder.
    pub folders: &'a [&'a Path],
    /// Folders with the files of stored events.
    pub data: &'a [&'a Path],
    /// True if the system has loggers.
    pub loggers: bool,
    /// Number of events that were certainly assigned. Fewer assigned events in the journals are a finding.
    pub assigned_min: u64,
    /// True if processes delete their older journals (`live.journal_parts`): events in these are unproven. If false, an absent
    /// journal is a finding.
    pub deletes_journals: bool,
}

/// Result of an audit: the events of a run by outcome, and the contents of its files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audit {
    /// Numbers of events by outcome.
    pub totals: Totals,
    /// Files of stored events that were read.
    pub files: u64,
    /// Events in these files.
    pub events: u64,
    /// Fragments in these files that are marked missing.
    pub missing: u64,
    /// Checksums in these files that were recomputed and are right.
    pub checksums: u64,
    /// Events about which nothing can be proven, because older journals were deleted (`live.journal_parts`).
    pub unproven: u64,
    /// Events about which something is unknown, because their collector's machine was booted again.
    pub unknown: Box<UnknownEvents>,
}

/// Events with lines that may be missing in the journal of their collector. A rejection or a shipment is not there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnknownEvents {
    /// Number of events.
    pub events: u64,
    /// The collectors of these events.
    pub collectors: BTreeSet<u16>,
}

/// Error of an audit: the run violated a guarantee, or its files cannot be read.
#[derive(Debug)]
pub struct AuditFailure {
    /// Figures of the audit, as far as it came.
    pub audit: Box<Audit>,
    /// All violations, at least one. Lost events come first.
    pub findings: Vec<Finding>,
}

impl std::error::Error for AuditFailure {}

impl fmt::Display for AuditFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, finding) in self.findings.iter().take(SHOWN_MAX).enumerate() {
            out.write_str(if number == 0 { "" } else { "\n  " })?;
            finding.fmt(out)?;
        }
        match self.findings.len() {
            count if count > SHOWN_MAX => write!(out, "\n  and {} more", count - SHOWN_MAX),
            _ => Ok(()),
        }
    }
}

impl AuditFailure {
    /// Returns the lost events: they have no outcome, or are recorded as stored and in no file.
    pub fn lost_events(&self) -> impl Iterator<Item = L1Id> {
        let lost = |finding| match finding {
            &Finding::Lost { ref events, .. } | &Finding::NotInFiles { ref events, .. } => events.as_slice(),
            _ => &[],
        };
        self.findings.iter().flat_map(lost).copied()
    }

    /// Returns the number of lost events.
    pub fn lost(&self) -> u64 {
        self.lost_events().count() as u64
    }
}

/// Copies of an event on disk: their number by stream, and the size of each copy.
#[derive(Debug, Default, Clone)]
struct OnDisk {
    physics: u32,
    debug: u32,
    sizes: Vec<ShippedSize>,
}

/// Records of all events for the checks that [`Auditor`] does not make.
#[derive(Debug, Default)]
struct Trails {
    auditor: Auditor,
    shipped: BTreeMap<L1Id, Vec<ShippedSize>>,
    outcomes: BTreeMap<L1Id, Outcome>,
    rejected_by_unit: BTreeSet<L1Id>,
    reassigned: BTreeSet<L1Id>,
    said_stored: BTreeSet<L1Id>,
    assigned_at: BTreeMap<L1Id, u128>,
    /// Collectors and loggers that records of other processes name.
    named: BTreeSet<Peer>,
    /// Times without lines of a collector's journal, which a loss of power may have cost.
    gaps: BTreeMap<u16, Vec<Gap>>,
    /// Events that a collector had at a gap, with the collector: its journal may lack lines.
    torn: BTreeMap<L1Id, u16>,
    /// Events of `torn` whose journals contradict each other.
    unknown: BTreeSet<L1Id>,
}

/// A new boot of a collector's machine. Lines between the two times may be gone, which are in picoseconds since 1970.
#[derive(Debug, Clone, Copy)]
struct Gap {
    /// Time of the last line before the last header of the earlier boot. A header is written at a start and when a journal is put
    /// aside, and everything before it is on disk then.
    synchronised: u128,
    /// Start of the process after the new boot.
    booted: u128,
}

impl Trails {
    fn note(&mut self, epoch_us: u64, record: &EventRecord) {
        let event = record.event;
        match record.step {
            // The files prove what is on disk; `check_stored` passes their events to the auditor.
            EventStep::Stored { collector, .. } => {
                self.said_stored.insert(event);
                self.named.insert(Peer::Collector(collector));
                return;
            }
            EventStep::Assigned { collector, .. } => {
                let at = absolute(epoch_us, record.at);
                let gaps = self.gaps.get(&collector).map_or(&[][..], Vec::as_slice);
                if gaps.iter().any(|gap| at <= gap.booted) {
                    self.torn.insert(event, collector);
                }
                self.assigned_at.entry(event).or_insert(at);
            }
            EventStep::Reassigned { .. } => {
                self.reassigned.insert(event);
            }
            EventStep::Shipped { missing, bytes, .. } => {
                self.shipped.entry(event).or_default().push(ShippedSize {
                    missing,
                    bytes: bytes.get(),
                    stand_ins: 0,
                });
            }
            EventStep::Decided { outcome: Outcome::Rejected, .. } => {
                self.rejected_by_unit.insert(event);
            }
            EventStep::Acknowledged { logger } => {
                self.named.insert(Peer::Logger(logger));
            }
            EventStep::Completed { collector, outcome } => {
                self.named.insert(Peer::Collector(collector));
                self.outcomes.insert(event, outcome);
                self.handle_completed(event, absolute(epoch_us, record.at));
            }
            _ => {}
        }
        self.auditor.record(record);
    }

    /// Drops an event from those with lines that may be missing, if no gap can have cost them. A collector writes its lines
    /// before it reports an event.
    fn handle_completed(&mut self, event: L1Id, completed: u128) {
        let (Some(collector), Some(&assigned)) = (self.torn.get(&event), self.assigned_at.get(&event)) else {
            return;
        };
        let gaps = self.gaps.get(collector).map_or(&[][..], Vec::as_slice);
        if gaps.iter().all(|gap| assigned > gap.booted || completed + SKEW_MAX < gap.synchronised) {
            self.torn.remove(&event);
        }
    }

    /// Returns true for an event with lines that may be missing, and notes it as partly unknown.
    fn is_unknown(&mut self, event: L1Id) -> bool {
        let is_torn = self.torn.contains_key(&event);
        if is_torn {
            self.unknown.insert(event);
        }
        is_torn
    }

    /// Returns the first event from which on each assignment is at or after `covered_since`. L1 IDs are assigned one after the
    /// other. Where one is absent, or later than the next, its first assignment was in a deleted journal.
    fn first_covered(&self, covered_since: u128) -> Option<L1Id> {
        let mut first: Option<(L1Id, u128)> = None;
        for (&event, &at) in self.assigned_at.iter().rev() {
            let follows = first.is_none_or(|(next, later)| event.0 + 1 == next.0 && at <= later);
            if at < covered_since || !follows {
                break;
            }
            first = Some((event, at));
        }
        first.map(|(event, _)| event)
    }

    /// Removes the events whose records may be incomplete because older journals were deleted. Returns their number.
    ///
    /// `covered_since` is in picoseconds since 1970. Events before [`Self::first_covered`] are removed. The number leaves out
    /// the events of `lost`.
    fn forget_before(
        &mut self,
        covered_since: u128,
        on_disk: &mut BTreeMap<L1Id, OnDisk>,
        lost: &BTreeSet<L1Id>,
    ) -> u64 {
        let first = self.first_covered(covered_since);
        let seen: BTreeSet<L1Id> = self.auditor.events().chain(on_disk.keys().copied()).collect();
        let is_covered = |event: &L1Id| first.is_some_and(|first| *event >= first);
        let gone: Vec<L1Id> = seen.into_iter().filter(|event| !is_covered(event)).collect();
        for event in &gone {
            self.auditor.forget(*event);
            self.outcomes.remove(event);
            self.said_stored.remove(event);
            on_disk.remove(event);
        }
        gone.iter().filter(|event| !lost.contains(event)).count() as u64
    }
}

/// Returns a record's time in picoseconds since 1970.
fn absolute(epoch_us: u64, at: Instant) -> u128 {
    u128::from(epoch_us) * 1_000_000 + u128::from(at.get())
}

/// Audits a system whose processes have all ended: reads all journals and all files of stored events.
///
/// # Errors
/// All violations of a guarantee, and the first file or folder that cannot be read.
pub fn audit(scope: &AuditScope<'_>) -> Result<Audit, AuditFailure> {
    audit_on(&HostMachine::Real, scope)
}

/// Audits a system on any machine, as [`audit`] does on this one.
///
/// # Errors
/// As for [`audit`].
pub fn audit_on(machine: &HostMachine, scope: &AuditScope<'_>) -> Result<Audit, AuditFailure> {
    let mut audit = Audit::default();
    let mut findings = Vec::new();
    if let Err(finding) = examine(machine, scope, &mut audit, &mut findings) {
        findings.push(finding);
    }
    if findings.is_empty() { Ok(audit) } else { Err(AuditFailure { audit: Box::new(audit), findings }) }
}

/// Reads files and journals and adds to `audit` and `findings`.
///
/// # Errors
/// If a folder or a journal cannot be read, which ends the audit.
fn examine(
    machine: &HostMachine,
    scope: &AuditScope<'_>,
    audit: &mut Audit,
    findings: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let mut on_disk: BTreeMap<L1Id, OnDisk> = BTreeMap::new();
    let mut unfinished = Vec::new();
    for path in list(machine, scope.data)? {
        let name = file_name(&path);
        if !name.contains(".data") {
            continue;
        }
        let mut file = match read_file(machine, &path) {
            Ok(None) => continue,
            Ok(Some(file)) => file,
            Err(error) => {
                findings.push(Finding::Io { path, error });
                continue;
            }
        };
        audit.files += 1;
        audit.checksums += file.checksums;
        audit.events += file.events.len() as u64;
        audit.missing += file.events.iter().map(|(_, size)| u64::from(size.missing)).sum::<u64>();
        let is_debug = name.contains("-debug-");
        for &(event, size) in &file.events {
            let found = on_disk.entry(event).or_default();
            *(if is_debug { &mut found.debug } else { &mut found.physics }) += 1;
            found.sizes.push(size);
        }
        if let Some((faults, first)) = file.faults.take() {
            findings.push(Finding::Faults { path, faults, first, undamaged: file.events.len() as u64 });
        } else if !file.unfinished.is_empty() {
            unfinished.push(UnfinishedFile::new(path, file));
        }
    }
    let (mut covered_since, mut open_before, mut next) = (0, Vec::new(), 0);
    let mut journals = list(machine, scope.folders)?;
    let (mut trails, mut boots, mut last_lines) = (Trails::default(), BTreeMap::new(), BTreeMap::new());
    let mut never_assigned = replaced::never_assigned(machine, &journals)?;
    replaced::keep_leading(machine, &mut journals)?;
    never_assigned.retain(|event| !on_disk.contains_key(event));
    let (mut withheld, mut with_journal) = (Vec::new(), BTreeSet::new());
    for path in journals {
        if path.extension().is_none_or(|extension| extension != "journal") {
            continue;
        }
        let (mut first, mut gaps) = (None, Vec::new());
        let process = file_name(&path).split('.').next().and_then(crate::names::peer);
        // The rotated files of a process come in order, before the newest one.
        let (earlier, mut synchronised) =
            process.and_then(|process| last_lines.get(&process).copied()).unwrap_or((0, 0));
        let mut last_line = earlier;
        let mut open_at_start = None;
        journal::read_with_headers(machine, &path, |epoch_us, entry| {
            let line = match entry {
                JournalEntry::Header(header) => {
                    if let Some(open) = Resume::of_header(header) {
                        next = next.max(open.next.map_or(0, |event| event.0));
                        if first.is_none() && open_at_start.is_none() {
                            open_at_start = Some(open);
                        }
                    }
                    let Some(boot) = header_words(header, "boot").next() else { return };
                    let earlier = process.and_then(|process| boots.insert(process, boot.to_owned()));
                    if earlier.is_some_and(|earlier| earlier != boot) {
                        gaps.push(Gap { synchronised, booted: absolute(epoch_us, Instant::START) });
                    }
                    synchronised = last_line;
                    return;
                }
                JournalEntry::Record(line) => line,
            };
            last_line = absolute(epoch_us, line.record.at);
            first.get_or_insert(last_line);
            if let EventStep::Stored { stream, .. } = line.record.step {
                unfinished.iter_mut().for_each(|file| file.note_stored(process, line.record.event, stream));
            }
            match line.record.step {
                EventStep::Assigned { .. } | EventStep::Reassigned { .. }
                    if never_assigned.contains(&line.record.event) =>
                {
                    withheld.push((epoch_us, line.record));
                }
                _ => {
                    // Any other record of an event proves that the event was assigned.
                    never_assigned.remove(&line.record.event);
                    trails.note(epoch_us, &line.record);
                }
            }
        })?;
        // The journals are sorted by name. Those of collectors thus come before those that have the assignments.
        match process {
            Some(Peer::Collector(collector)) => trails.gaps.entry(collector).or_default().extend(gaps),
            Some(Peer::Supervisor | Peer::Standby) if !gaps.is_empty() => {
                findings.push(Finding::Unsynchronised { path: path.clone() });
            }
            _ => {}
        }
        process.map(|process| last_lines.insert(process, (last_line, synchronised)));
        with_journal.extend(process);
        if journal::follows_deleted(machine, &path)
            .map_err(|error| Finding::Io { path: path.clone(), error })?
        {
            covered_since = covered_since.max(first.unwrap_or_default());
            // All records since then are there, so that each of these events has an outcome if it was finished.
            if let Some(open) = open_at_start {
                open_before = open.outstanding;
            }
            if !scope.deletes_journals {
                findings.push(Finding::JournalGone { path });
            }
        }
    }
    let gone = trails.named.difference(&with_journal);
    findings.extend(gone.map(|&process| Finding::ProcessGone { process: crate::names::name(process) }));
    findings.extend(unfinished.into_iter().filter_map(UnfinishedFile::finding));
    for (epoch_us, record) in withheld.iter().filter(|(_, record)| !never_assigned.contains(&record.event)) {
        trails.note(*epoch_us, record);
    }
    let lost_before = open_before.into_iter().map(|(event, _)| event);
    let lost_before: BTreeSet<L1Id> =
        lost_before.filter(|event| !trails.outcomes.contains_key(event)).collect();
    let mut found = (trails.assigned_at.len() + never_assigned.len()) as u64;
    if covered_since > 0 {
        audit.unproven = trails.forget_before(covered_since, &mut on_disk, &lost_before);
        // L1 IDs are assigned one after the other.
        let last = trails.assigned_at.keys().chain(&never_assigned).max();
        found = last.map_or(0, |event| event.0 + 1).max(next);
    }
    if found < scope.assigned_min {
        let folders = scope.folders.iter().map(|&folder| folder.to_owned()).collect();
        findings.push(Finding::FewerAssigned { folders, found, seen: scope.assigned_min });
    }
    for (&event, found) in &on_disk {
        check_stored(event, found, &mut trails, findings);
    }
    let rejected = trails.outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Rejected);
    for event in rejected.map(|(&event, _)| event).collect::<Vec<_>>() {
        if !trails.rejected_by_unit.contains(&event) && !trails.is_unknown(event) {
            findings.push(Finding::NotDecided(event));
        } else if on_disk.contains_key(&event) && !trails.reassigned.contains(&event) {
            findings.push(Finding::RejectedAndStored(event));
        }
    }
    let (mut totals, breaches) = trails.auditor.account(scope.loggers);
    // Their assignments were in journals that were deleted.
    let counted: BTreeSet<L1Id> =
        trails.auditor.events().filter(|event| trails.assigned_at.contains_key(event)).collect();
    totals.assigned += lost_before.difference(&counted).count() as u64;
    audit.totals = totals;
    let (mut lost, mut lost_on_disk, mut not_in_files) =
        (lost_before.into_iter().collect::<Vec<_>>(), 0, Vec::new());
    for breach in breaches {
        match breach {
            AuditError::Lost(event) => {
                lost_on_disk += u64::from(on_disk.contains_key(&event));
                lost.push(event);
            }
            AuditError::NotOnDisk(event) => not_in_files.push(event),
            AuditError::RejectedOnDisk(event) if trails.outcomes.get(&event) == Some(&Outcome::Rejected) => {}
            // A collector that sends an event again notes it in its journal.
            AuditError::StoredTwice { event, copies } if trails.is_unknown(event) => {
                trails.outcomes.get(&event).into_iter().for_each(|outcome| audit.totals.add(*outcome));
                audit.totals.duplicates += u64::from(copies - 1);
            }
            breach => findings.push(breach.into()),
        }
    }
    *audit.unknown = UnknownEvents {
        events: trails.unknown.len() as u64,
        collectors: trails.unknown.iter().filter_map(|event| trails.torn.get(event).copied()).collect(),
    };
    lost.sort_unstable();
    lost.dedup();
    let is_lost = |event| lost.binary_search(event).or_else(|_| not_in_files.binary_search(event)).is_ok();
    let gone = trails.said_stored.iter().filter(|event| !on_disk.contains_key(event) && !is_lost(event));
    findings.extend(gone.map(|&event| Finding::FileGone(event)));
    let is_whole = |found: &OnDisk| found.sizes.iter().any(|size| size.stand_ins == 0);
    let stand_ins = on_disk.iter().filter(|(_, found)| !is_whole(found)).map(|(&event, _)| event);
    let stand_ins: Vec<L1Id> = stand_ins.collect();
    if !stand_ins.is_empty() {
        findings.insert(0, Finding::StandIns { assigned: totals.assigned, events: stand_ins });
    }
    if !not_in_files.is_empty() {
        findings.insert(0, Finding::NotInFiles { assigned: totals.assigned, events: not_in_files });
    }
    if !lost.is_empty() {
        let finding = Finding::Lost { assigned: totals.assigned, events: lost, on_disk: lost_on_disk };
        // Losses are reported first.
        findings.insert(0, finding);
    }
    Ok(())
}

/// Checks an event on disk against the journals, and notes its copies for the auditor.
fn check_stored(event: L1Id, found: &OnDisk, trails: &mut Trails, findings: &mut Vec<Finding>) {
    for (copies, stream) in [(found.physics, EventStream::Physics), (found.debug, EventStream::Debug)] {
        for _ in 0..copies {
            let step = EventStep::Stored { collector: 0, stream, missing: 0 };
            trails.auditor.record(&EventRecord { at: Instant::START, event, step });
        }
    }
    let outcome = trails.outcomes.get(&event).copied();
    let wrong = match outcome {
        Some(Outcome::Stored) if found.physics == 0 => Some(EventStream::Debug),
        Some(Outcome::Debug) if found.debug == 0 => Some(EventStream::Physics),
        _ => None,
    };
    if let (Some(stream), Some(outcome)) = (wrong, outcome) {
        findings.push(Finding::WrongStream { event, outcome, stream: stream_name(stream) });
    }
    let known = trails.shipped.get(&event).map(Vec::as_slice).unwrap_or_default();
    let shipped = known.last().copied().unwrap_or_default();
    let (copies, shipments) = (found.sizes.len(), known.len());
    let other = |stored: &&ShippedSize| stored.stand_ins == 0 && !known.contains(stored);
    let finding = match found.sizes.iter().find(other) {
        Some(stored) if stored.missing == shipped.missing && shipments > 0 => {
            Finding::Size { event, stored: stored.bytes, shipped: shipped.bytes }
        }
        Some(stored) => Finding::Missing { event, stored: stored.missing, shipped: shipped.missing },
        // Without a reason for a second copy, the auditor reports it.
        None if copies > shipments && (trails.reassigned.contains(&event) || shipments > 1) => {
            Finding::MoreCopies { event, copies, shipments }
        }
        None => return,
    };
    if !trails.is_unknown(event) {
        findings.push(finding);
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the paths of journals and of files of stored events in the folders that exist, sorted by name.
fn list(machine: &HostMachine, folders: &[&Path]) -> Result<Vec<PathBuf>, JournalError> {
    let existing = folders.iter().copied().filter(|folder| machine.exists(folder).unwrap_or(true));
    replaced::list(machine, existing, is_audited)
}

/// Returns true for the name of a journal or of a file of stored events.
pub fn is_audited(name: &str) -> bool {
    name.ends_with(".journal") || name.contains(".data")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_before_a_deleted_assignment_are_not_covered() {
        for assigned in [
            [(19, 50), (20, 200), (21, 250)],
            // Event 5 was assigned again.
            [(5, 300), (20, 200), (21, 250)],
            [(19, 230), (20, 200), (21, 250)],
        ] {
            let assigned_at = assigned.map(|(event, at)| (L1Id(event), at)).into();
            let trails = Trails { assigned_at, ..Trails::default() };
            assert_eq!(trails.first_covered(100), Some(L1Id(20)), "{assigned:?}");
            assert_eq!(trails.first_covered(251), None);
        }
    }
}
