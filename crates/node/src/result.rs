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
    let mut lines: Vec<(u64, journal::JournalLine)> = Vec::new();
    let paths = replaced::journals(folders)?;
    for path in &paths {
        journal::read(path, |epoch, line| {
            // The tables do not use these steps.
            if !matches!(
                line.record.step,
                EventStep::Deleted | EventStep::Cleared | EventStep::Received { .. }
            ) {
                lines.push((epoch, line));
            }
        })?;
    }
    let Some(earliest) = lines.iter().map(|(epoch, _)| *epoch).min() else {
        return Ok(JournalTables::default());
    };
    let mut records: Vec<(EventRecord, u64)> =
        lines.iter().map(|(epoch, line)| (since(*epoch, earliest, line.record), line.data)).collect();
    records.sort_by_key(|(record, _)| record.at);
    let is_assigned = |record: &EventRecord| matches!(record.step, EventStep::Assigned { .. });
    let Some(start) = records.iter().find(|(record, _)| is_assigned(record)).map(|(record, _)| record.at)
    else {
        return Ok(JournalTables::default());
    };
    let start_unix_us = earliest.saturating_add(start.get() / 1_000_000);
    let mut tables = JournalTables { start_unix_us, ..JournalTables::default() };
    let mut rows: BTreeMap<L1Id, EventRow> = BTreeMap::new();
    for (record, data) in &records {
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
        EventStep::TimedOut { times } => row.timeouts += u64::from(times),
        EventStep::Missing { fragments, .. } => tables.missing += u64::from(fragments),
        EventStep::Reassigned { .. } => tables.reassigned += 1,
        EventStep::Completed { outcome, .. } => {
            row.outcome = outcome.into();
        }
        _ => {}
    }
}
