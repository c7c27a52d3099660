//! Computes the rows of a result from a run's journals, in the format of a simulation.

use std::collections::BTreeMap;
use std::path::Path;

use fanin_dataflow::{EventRecord, EventStep, L1Id};
use fanin_report::{EventOutcome, EventRow};
use fanin_units::{Duration, Instant};

use crate::journal::{self, JournalError, since};
use crate::replaced;

/// Tables and counts from the journals of a run.
#[derive(Debug, Clone, Default)]
pub struct JournalTables {
    /// One row for each event, by L1 ID. Times are picoseconds since the first assignment.
    pub rows: Vec<EventRow>,
    /// Fragments that collectors gave up.
    pub missing: u64,
    /// Times that an event was taken from a lost collector.
    pub reassigned: u64,
    /// Time of the first assignment, in microseconds since 1970.
    pub start_unix_us: u64,
}

/// Reads the journals of a run that has ended from its folders. `racks` has the rack of each collector. An event
/// without an outcome is lost.
///
/// # Errors
/// If a journal cannot be read, or if two folders have a journal of the same name.
pub fn read_tables(folders: &[&Path], racks: &[u32]) -> Result<JournalTables, JournalError> {
    let mut records = used_records(folders)?;
    let Some(earliest) = records.iter().map(|used| used.epoch_us).min() else {
        return Ok(JournalTables::default());
    };
    for used in &mut records {
        used.record = since(used.epoch_us, earliest, used.record);
    }
    records.sort_by_key(|used| used.record.at);
    let is_assigned = |used: &&UsedRecord| matches!(used.record.step, EventStep::Assigned { .. });
    let Some(start) = records.iter().find(is_assigned).map(|used| used.record.at) else {
        return Ok(JournalTables::default());
    };
    let start_unix_us = earliest.saturating_add(start.get() / 1_000_000);
    let mut tables = JournalTables { start_unix_us, ..JournalTables::default() };
    let mut rows: BTreeMap<L1Id, EventRow> = BTreeMap::new();
    for UsedRecord { record, data, .. } in &records {
        note(&mut rows, &mut tables, record, *data, start, racks);
    }
    for row in rows.values_mut() {
        if matches!(row.outcome, EventOutcome::Assigned | EventOutcome::Collected) {
            row.outcome = EventOutcome::Lost;
        }
    }
    tables.rows = rows.into_values().collect();
    Ok(tables)
}

/// A record that the tables use, with its data and the epoch of its journal.
#[derive(Debug)]
struct UsedRecord {
    epoch_us: u64,
    record: EventRecord,
    data: u64,
}

/// Reads the records that the tables use. A long run has many more of the others, such as one for each readout's answer.
fn used_records(folders: &[&Path]) -> Result<Vec<UsedRecord>, JournalError> {
    let mut records = Vec::new();
    for path in &replaced::journals(folders)? {
        journal::read(path, |epoch_us, line| {
            if is_used(&line.record.step) {
                records.push(UsedRecord { epoch_us, record: line.record, data: line.data });
            }
        })?;
    }
    Ok(records)
}

/// Returns true if [`note`] uses a step.
fn is_used(step: &EventStep) -> bool {
    match step {
        EventStep::Assigned { .. }
        | EventStep::FirstRequest { .. }
        | EventStep::Collected { .. }
        | EventStep::TimedOut { .. }
        | EventStep::Missing { .. }
        | EventStep::Reassigned { .. }
        | EventStep::Completed { .. } => true,
        EventStep::Duplicated { .. }
        | EventStep::Xoff
        | EventStep::Xon
        | EventStep::Received { .. }
        | EventStep::Answered { .. }
        | EventStep::Decided { .. }
        | EventStep::TooLarge { .. }
        | EventStep::Shipped { .. }
        | EventStep::Acknowledged { .. }
        | EventStep::Abandoned
        | EventStep::Cleared
        | EventStep::Stored { .. }
        | EventStep::StandIns { .. }
        | EventStep::Deleted => false,
    }
}

fn note(
    rows: &mut BTreeMap<L1Id, EventRow>,
    tables: &mut JournalTables,
    record: &EventRecord,
    data: u64,
    start: Instant,
    racks: &[u32],
) {
    let EventRecord { at, event, step } = *record;
    let at = at.saturating_since(start).get();
    if let EventStep::Assigned { collector, unit, .. } = step {
        let row =
            rows.entry(event).or_insert(EventRow { id: event.0, assigned_ps: at, ..EventRow::default() });
        row.collector = u32::from(collector);
        row.rack = racks.get(usize::from(collector)).copied().unwrap_or_default();
        row.unit = u32::from(unit);
        // Collections of a lost collector do not count.
        (row.first_request_ps, row.last_byte_ps, row.collection_time_ps) = (None, None, None);
        return;
    }
    let Some(row) = rows.get_mut(&event) else { return };
    match step {
        EventStep::FirstRequest { .. } => {
            row.first_request_ps.get_or_insert(at);
        }
        EventStep::Collected { began, requests, .. } => {
            // An event without requests has no collection time.
            if requests > 0 {
                let time: Duration = record.at.saturating_since(began);
                row.collection_time_ps = Some(row.collection_time_ps.unwrap_or(0) + time.get());
                row.last_byte_ps.get_or_insert(at);
                if data > row.size_bytes {
                    row.last_byte_ps = Some(at);
                }
            }
            row.size_bytes = row.size_bytes.max(data);
            if row.outcome == EventOutcome::Assigned {
                row.outcome = EventOutcome::Collected;
            }
        }
        EventStep::TimedOut { times } => row.add_timeouts(u64::from(times)),
        EventStep::Missing { fragments, .. } => tables.missing += u64::from(fragments),
        EventStep::Reassigned { .. } => tables.reassigned += 1,
        EventStep::Completed { outcome, .. } => {
            row.outcome = outcome.into();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn answers_of_readouts_change_no_row_and_are_not_kept() {
        const ANSWERS: usize = 100_000;
        let folder = std::env::temp_dir().join(format!("fanin-result-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let supervisor = "# fanin journal 1 supervisor epoch-us 1000\n20000000000 7 assigned 0 1 10000000000 0\n\
                          90000000000 7 completed 0 rejected\n";
        let header = "# fanin journal 1 collector-0 epoch-us 900\n21000000000 7 received 1\n\
                      30000000000 7 first-request 0\n";
        let end =
            "80000000000 7 collected 0 0 21000000000 30000000000 3 15 0 15\n80000000000 7 missing 2 1\n";
        let mut answers = String::new();
        for answer in 0..ANSWERS {
            writeln!(answers, "31000000000 7 answered {} 30000000000 5", answer % 1000).unwrap();
        }
        std::fs::write(folder.join("supervisor.journal"), supervisor).unwrap();
        let tables = |answers: &str| {
            std::fs::write(folder.join("collector-0.journal"), format!("{header}{answers}{end}")).unwrap();
            assert_eq!(used_records(&[&folder]).unwrap().len(), 5);
            read_tables(&[&folder], &[0]).unwrap()
        };
        let (without, with) = (tables(""), tables(&answers));
        assert_eq!(without.rows.len(), 1);
        assert_eq!((without.rows[0].size_bytes, without.missing), (15, 1));
        assert_eq!((&with.rows, with.missing, with.start_unix_us), (&without.rows, 1, without.start_unix_us));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
