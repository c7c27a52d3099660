//! Explains the history of one event from the journals and tables of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fanin_dataflow::{EventStep, L1Id, Outcome};
use fanin_report::{EventRow, FlowRow, WindowRow};
use fanin_units::Instant;
use serde::Serialize;

use crate::journal::{self, JournalError, JournalLine, outcome_name};
use crate::replaced;

/// A collection is late if it takes longer than this multiple of the run's median.
const LATE_FACTOR: f64 = 1.5;
/// Shortest wait that is reported as a reason, ms.
const WAIT_MS_MIN: f64 = 0.1;
/// Maximum number of listed answers of readouts.
const ANSWERS_MAX: usize = 5;

/// A step in the history of an event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExplainedStep {
    /// Time since the first assignment of the event, ms.
    pub at_ms: f64,
    /// Name of the process that recorded the step.
    pub process: String,
    /// Description of the step.
    pub text: String,
}

/// The history of one event, and the reasons if it was late, lost or undecided.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// Identifier of the event.
    pub event: u64,
    /// Final state of the event, as in `events.parquet`: `rejected`, `accepted`, `stored`, `debug` or `lost`; after a
    /// simulation also `collected` or `assigned`.
    pub outcome: &'static str,
    /// True if the event's collection took longer than 1.5 times the run's median.
    pub is_late: bool,
    /// Collection time of the event, ms; `None` if it was not collected.
    pub collection_time_ms: Option<f64>,
    /// Median of the run's collection times, ms; `None` if no event was collected.
    pub collection_time_median_ms: Option<f64>,
    /// Ideal collection time of the event, ms; `None` if the tables do not have it.
    pub ideal_ms: Option<f64>,
    /// The reasons, as sentences; the last one names the outcome.
    pub reasons: Vec<String>,
    /// Steps of the event in the order of time; empty without journals, as after a simulation.
    pub steps: Vec<ExplainedStep>,
}

/// The tables of a run.
#[derive(Debug, Clone, Copy)]
pub struct ExplainedTables<'a> {
    /// Rows of the table of events.
    pub events: &'a [EventRow],
    /// Rows of the table of connections.
    pub flows: &'a [FlowRow],
    /// Windows of traced connections.
    pub windows: &'a [WindowRow],
}

/// A journal line with its process, and its time in picoseconds since 1970.
struct ProcessLine {
    at: u128,
    process: String,
    epoch_us: u64,
    line: JournalLine,
}

/// The records of one event from all journals of a run.
#[derive(Default)]
struct Journals {
    entries: Vec<ProcessLine>,
    /// Start of each incarnation of each process, microseconds since 1970.
    incarnations: BTreeMap<String, BTreeSet<u64>>,
    /// Time of the last record of any event, picoseconds since 1970.
    end: u128,
}

fn absolute(epoch_us: u64, at: Instant) -> u128 {
    u128::from(epoch_us) * 1_000_000 + u128::from(at.get())
}

impl Journals {
    fn read(folders: &[&Path], event: L1Id) -> Result<Self, JournalError> {
        let mut journals = Self::default();
        let paths = replaced::journals(folders)?;
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // `PROCESS.journal`, or `PROCESS.NUMBER.journal`.
            let process = name.split('.').next().unwrap_or_default().to_owned();
            journal::read(&path, |epoch_us, line| {
                let at = absolute(epoch_us, line.record.at);
                journals.end = journals.end.max(at);
                journals.incarnations.entry(process.clone()).or_default().insert(epoch_us);
                let is_of_trigger = matches!(line.record.step, EventStep::Xoff | EventStep::Xon);
                if line.record.event == event && !is_of_trigger {
                    journals.entries.push(ProcessLine { at, process: process.clone(), epoch_us, line });
                }
            })?;
        }
        journals.entries.sort_by_key(|entry| entry.at);
        Ok(journals)
    }
}

/// Explains an event of a run with journals in `folders`, such as those of several hosts. Returns `None` if neither
/// journals nor tables have the event.
///
/// # Errors
/// If a journal cannot be read, or if two folders have a journal of the same name.
pub fn explain(
    folders: &[&Path],
    tables: ExplainedTables<'_>,
    event: u64,
) -> Result<Option<Explanation>, JournalError> {
    let journals = Journals::read(folders, L1Id(event))?;
    let row = tables.events.iter().find(|row| row.id == event);
    if journals.entries.is_empty() && row.is_none() {
        return Ok(None);
    }
    let ms = |ps: u64| ps as f64 / 1e9;
    let median = median(tables.events);
    let collection = row.and_then(|row| row.collection_time_ps).map(ms);
    let is_late = matches!((collection, median), (Some(time), Some(median)) if time > LATE_FACTOR * median);
    let mut reasons = Vec::new();
    reasons.extend(from_journals(&journals));
    if let (true, Some(time), Some(median)) = (is_late, collection, median) {
        reasons.push(format!(
            "Its collection took {time:.2} ms, {:.1} times the median of {median:.2} ms.",
            time / median
        ));
    }
    if let Some(row) = row {
        if let Some(timeouts) = row.timeouts.filter(|&timeouts| timeouts > 0) {
            reasons.push(format!(
                "TCP waited for {timeouts} retransmission timeouts on connections that carried it."
            ));
        }
        reasons.extend(smallest_window(tables, row));
    }
    let outcome = outcome(&journals, row);
    reasons.push(conclusion(outcome, &journals));
    let start =
        journals.entries.iter().find(|entry| matches!(entry.line.record.step, EventStep::Assigned { .. }));
    let start = start.or(journals.entries.first()).map_or(0, |entry| entry.at);
    Ok(Some(Explanation {
        event,
        outcome,
        is_late,
        collection_time_ms: collection,
        collection_time_median_ms: median,
        ideal_ms: row.and_then(|row| row.ideal_ps).map(ms),
        reasons,
        steps: steps(&journals, start),
    }))
}

fn median(events: &[EventRow]) -> Option<f64> {
    let mut times: Vec<u64> = events.iter().filter_map(|row| row.collection_time_ps).collect();
    times.sort_unstable();
    times.get(times.len() / 2).map(|&ps| ps as f64 / 1e9)
}

fn difference_ms(earlier: u128, later: u128) -> f64 {
    (later as f64 - earlier as f64) / 1e9
}

/// Returns the reasons that follow from the records of the event, as sentences.
fn from_journals(journals: &Journals) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut missing: BTreeMap<u16, u32> = BTreeMap::new();
    let mut answers: Vec<(f64, u16)> = Vec::new();
    let mut copies = 0;
    // Collectors that dropped the fragments because the event is too large: no readout is the reason.
    let mut dropped = BTreeSet::new();
    // Collectors that no unit of theirs decided for: they store the event unprocessed.
    let mut unprocessed = BTreeSet::new();
    for ProcessLine { at, process, epoch_us, line } in &journals.entries {
        match line.record.step {
            EventStep::Assigned { collector, unit, due, direct } => {
                let held = difference_ms(absolute(*epoch_us, due), *at);
                if held >= WAIT_MS_MIN && !direct {
                    reasons.push(format!(
                        "It waited {held:.2} ms for its assignment: no unit was free, or a readout was full."
                    ));
                }
                if direct {
                    unprocessed.insert(format!("collector-{collector}"));
                    reasons.push(format!(
                        "Collector {collector} received it for unit {unit} to store it unprocessed, since an earlier collector \
                         was lost with it."
                    ));
                }
            }
            EventStep::Reassigned { from } => reasons.push(format!("Collector {from} was lost with it.")),
            EventStep::Duplicated { collector, .. } => {
                reasons.push(format!("Collector {collector}, taken for lost, finished it as well."));
            }
            EventStep::Collected { began, first_request, .. } => {
                let wait = difference_ms(absolute(*epoch_us, began), absolute(*epoch_us, first_request));
                if wait >= WAIT_MS_MIN {
                    reasons.push(format!(
                        "Its first request waited {wait:.2} ms for credits or for a connection to a readout."
                    ));
                }
            }
            EventStep::Answered { readout, requested, .. } => {
                answers.push((difference_ms(absolute(*epoch_us, requested), *at), readout));
            }
            EventStep::TooLarge { bytes, limit } => {
                dropped.insert(process);
                reasons.push(format!(
                    "It has {} B, and a logger stores {} B at most: the debug stream has it without its fragments.",
                    bytes.get(),
                    limit.get()
                ));
            }
            EventStep::StandIns { fragments } => reasons.push(format!(
                "{fragments} of its fragments were damaged when they reached {process}, which could not write them: the debug stream \
                 has it with empty stand-ins."
            )),
            EventStep::Missing { .. } if dropped.contains(process) => {}
            EventStep::Missing { readout, fragments } => {
                *missing.entry(readout).or_default() += u32::from(fragments);
            }
            EventStep::Decided { outcome: Outcome::Debug, .. } if unprocessed.contains(process) => {}
            EventStep::Decided { unit, outcome: Outcome::Debug } => reasons.push(format!(
                "Unit {unit} of {process} was lost before it decided: it crashed, or took longer than \
                 `live.processor_timeout`."
            )),
            EventStep::Shipped { logger, attempt: 2.., .. } => {
                reasons.push(format!(
                    "It was sent again, to logger {logger}: an earlier logger did not store it."
                ));
            }
            EventStep::Stored { .. } => copies += 1,
            _ => {}
        }
    }
    for (readout, fragments) in missing {
        reasons.push(format!("Readout {readout} did not deliver {fragments} of its fragments."));
    }
    answers.sort_by(|one, other| other.0.total_cmp(&one.0));
    if let (Some((slowest, readout)), Some((middle, _))) = (answers.first(), answers.get(answers.len() / 2))
        && *slowest > LATE_FACTOR * middle
    {
        reasons.push(format!(
            "Readout {readout} answered last, after {slowest:.2} ms; half of the answers came within {middle:.2} ms."
        ));
    }
    if copies > 1 {
        reasons.push(format!("It is on disk {copies} times."));
    }
    reasons.extend(restarts(journals));
    reasons
}

/// Returns a sentence for each restart of a process between the first record of the event and its end.
fn restarts(journals: &Journals) -> Vec<String> {
    let Some(first) = journals.entries.first() else { return Vec::new() };
    let is_end = |entry: &&ProcessLine| matches!(entry.line.record.step, EventStep::Completed { .. });
    let end = journals.entries.iter().find(is_end).map_or(journals.end, |entry| entry.at);
    let mut found = Vec::new();
    for (process, incarnations) in &journals.incarnations {
        for &incarnation in incarnations.iter().skip(1) {
            let at = u128::from(incarnation) * 1_000_000;
            if at > first.at && at < end {
                let after = difference_ms(first.at, at);
                found.push(format!("{process} was started again {after:.0} ms after its assignment."));
            }
        }
    }
    found
}

/// Returns a sentence on the smallest congestion window of a traced connection to the collector while it collected the
/// event. Windows are recorded when they change, so the last one before the first request is still in force.
fn smallest_window(tables: ExplainedTables<'_>, row: &EventRow) -> Option<String> {
    let (from, until) = (row.first_request_ps?, row.last_byte_ps?);
    let collector = format!("collector-{}", row.collector);
    let is_collector = |flow: &&FlowRow| *flow.destination == *collector || *flow.source == *collector;
    let smallest_of = |flow: &FlowRow| {
        let own = || tables.windows.iter().filter(|window| window.flow == flow.flow);
        let in_force = own().filter(|window| window.time_ps < from).max_by_key(|window| window.time_ps);
        let changes = own().filter(|window| (from..=until).contains(&window.time_ps));
        in_force.into_iter().chain(changes).map(|window| window.cwnd_bytes).min()
    };
    let (cwnd_bytes, flow) = tables
        .flows
        .iter()
        .filter(is_collector)
        .filter_map(|flow| Some((smallest_of(flow)?, flow)))
        .min_by_key(|(cwnd_bytes, _)| *cwnd_bytes)?;
    Some(format!(
        "The smallest congestion window during its collection was {cwnd_bytes} B, on connection {} from {} to {}.",
        flow.flow, flow.source, flow.destination
    ))
}

fn outcome(journals: &Journals, row: Option<&EventRow>) -> &'static str {
    let completed = journals.entries.iter().rev().find_map(|entry| match entry.line.record.step {
        EventStep::Completed { outcome, .. } => Some(outcome_name(outcome)),
        _ => None,
    });
    completed.unwrap_or_else(|| match row.map(|row| row.outcome) {
        Some(fanin_report::EventOutcome::Rejected) => "rejected",
        Some(fanin_report::EventOutcome::Accepted) => "accepted",
        Some(fanin_report::EventOutcome::Stored) => "stored",
        Some(fanin_report::EventOutcome::Debug) => "debug",
        Some(fanin_report::EventOutcome::Collected) => "collected",
        Some(fanin_report::EventOutcome::Assigned) => "assigned",
        Some(fanin_report::EventOutcome::Lost) | None => "lost",
    })
}

/// Returns the outcome as a sentence.
fn conclusion(outcome: &str, journals: &Journals) -> String {
    match outcome {
        "rejected" => "A processing unit rejected it.".to_owned(),
        "accepted" => "A processing unit accepted it; the system has no loggers.".to_owned(),
        "stored" => "A processing unit accepted it, and a logger stored it.".to_owned(),
        "debug" if is_accepted(journals) => {
            "A processing unit accepted it; it is in the debug stream.".to_owned()
        }
        "debug" => "It is in the debug stream, undecided.".to_owned(),
        "collected" => "All its fragments arrived; no decision was asked for.".to_owned(),
        "assigned" => "It was still being collected when the run ended.".to_owned(),
        _ => match journals.entries.last() {
            Some(last) => format!(
                "It is lost: no process finished it. The last record is from {}, {:.0} ms before the end of the run: {}.",
                last.process,
                difference_ms(last.at, journals.end),
                words(last)
            ),
            None => "It is lost: some fragment never came, or its collector died.".to_owned(),
        },
    }
}

fn is_accepted(journals: &Journals) -> bool {
    journals.entries.iter().any(|entry| {
        matches!(
            entry.line.record.step,
            EventStep::Decided { outcome: Outcome::Accepted | Outcome::Stored, .. }
        )
    })
}

fn steps(journals: &Journals, start: u128) -> Vec<ExplainedStep> {
    let mut answers = 0;
    let mut steps = Vec::new();
    for entry in &journals.entries {
        let is_answer = matches!(entry.line.record.step, EventStep::Answered { .. });
        answers += usize::from(is_answer);
        if is_answer && answers > ANSWERS_MAX {
            continue;
        }
        steps.push(ExplainedStep {
            at_ms: difference_ms(start, entry.at),
            process: entry.process.clone(),
            text: words(entry),
        });
    }
    steps
}

/// Returns the description of a record.
fn words(entry: &ProcessLine) -> String {
    match entry.line.record.step {
        EventStep::Assigned { collector, unit, .. } => {
            format!("assigned to unit {unit} of collector {collector}")
        }
        EventStep::Reassigned { from } => format!("taken from collector {from}"),
        EventStep::Completed { collector, outcome } => {
            format!("finished by collector {collector}: {}", outcome_name(outcome))
        }
        EventStep::Duplicated { collector, outcome } => {
            format!("finished again by collector {collector}: {}", outcome_name(outcome))
        }
        EventStep::Xoff => "trigger stopped".to_owned(),
        EventStep::Xon => "trigger resumed".to_owned(),
        EventStep::Received { unit } => format!("received for unit {unit}"),
        EventStep::FirstRequest { step } => format!("first request of step {step} sent"),
        EventStep::Answered { readout, bytes, .. } => {
            format!("readout {readout} answered with {} B", bytes.get())
        }
        EventStep::Missing { readout, fragments } => {
            format!("{fragments} fragments of readout {readout} given up")
        }
        EventStep::Collected { building, bytes, missing, requests, .. } => {
            let state = if building { "complete for storage" } else { "collected" };
            format!("{state}: {} B in {requests} requests, {missing} fragments missing", bytes.get())
        }
        EventStep::Decided { unit, outcome } => format!("unit {unit}: {}", outcome_name(outcome)),
        EventStep::TooLarge { bytes, limit } => {
            format!("too large for a logger: {} B, and {} B at most", bytes.get(), limit.get())
        }
        EventStep::Shipped { logger, attempt, .. } => format!("sent to logger {logger}, attempt {attempt}"),
        EventStep::Acknowledged { logger } => format!("logger {logger} has it on disk"),
        EventStep::Abandoned => "given up: the supervisor gave it to another collector".to_owned(),
        EventStep::Cleared => "cleared from the readouts".to_owned(),
        EventStep::Stored { collector, missing, .. } => {
            format!("stored for collector {collector}, {missing} fragments missing")
        }
        EventStep::StandIns { fragments } => format!("stand-ins written for {fragments} damaged fragments"),
        EventStep::Deleted => "fragments deleted".to_owned(),
        EventStep::TimedOut { times } => format!("{times} retransmission timeouts of TCP"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn journals(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("fanin-explain-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (process, text) in files {
            fs::write(folder.join(format!("{process}.journal")), text).unwrap();
        }
        folder
    }

    fn explained(folder: &Path, events: &[EventRow], event: u64) -> Explanation {
        let tables = ExplainedTables { events, flows: &[], windows: &[] };
        explain(&[folder], tables, event).unwrap().unwrap()
    }

    /// 10 ms in ps.
    const TEN: u64 = 10_000_000_000;

    #[test]
    fn a_late_event_names_its_waits_and_the_readout_that_was_last() {
        let supervisor = "# fanin journal 1 supervisor epoch-us 1000\n20000000000 7 assigned 0 1 10000000000 0\n\
                          90000000000 7 completed 0 rejected\n";
        let collector = "# fanin journal 1 collector-0 epoch-us 1000\n21000000000 7 received 1\n\
                         30000000000 7 first-request 0\n31000000000 7 answered 0 30000000000 5\n\
                         31000000000 7 answered 1 30000000000 5\n80000000000 7 answered 2 30000000000 5\n\
                         80000000000 7 collected 0 0 21000000000 30000000000 3 15 0 15\n\
                         85000000000 7 decided 1 rejected\n";
        let folder = journals("late", &[("supervisor", supervisor), ("collector-0", collector)]);
        let row = |id, time| EventRow {
            id,
            collection_time_ps: Some(time),
            timeouts: Some(id / 7),
            ..EventRow::default()
        };
        let rows = [row(5, TEN), row(6, TEN), row(7, 6 * TEN)];
        let found = explained(&folder, &rows, 7);
        assert_eq!((found.outcome, found.is_late), ("rejected", true));
        let text = found.reasons.join(" ");
        for part in [
            "waited 10.00 ms for its assignment",
            "waited 9.00 ms for credits",
            "Readout 2 answered last, after 50.00 ms",
            "60.00 ms, 6.0 times the median of 10.00 ms",
            "1 retransmission timeouts",
            "unit rejected it",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        assert_eq!(found.steps.first().map(|step| step.at_ms), Some(0.0));
        assert!(
            explain(&[&folder], ExplainedTables { events: &rows, flows: &[], windows: &[] }, 99)
                .unwrap()
                .is_none()
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_window_that_did_not_change_during_the_collection_counts() {
        let flow = |flow, destination: &str| FlowRow {
            flow,
            source: "readout-0".into(),
            destination: destination.into(),
            ..FlowRow::default()
        };
        let flows = [flow(1, "collector-0"), flow(2, "collector-1")];
        let window =
            |flow, time_ps, cwnd_bytes| WindowRow { flow, time_ps, cwnd_bytes, ..WindowRow::default() };
        // The window of 2 kB ended before the collection; the window of 1 kB belongs to another collector.
        let windows = [window(1, 10, 2000), window(1, 20, 5000), window(2, 40, 1000), window(1, 70, 3000)];
        let tables = ExplainedTables { events: &[], flows: &flows, windows: &windows };
        let row = |first, last| EventRow {
            first_request_ps: Some(first),
            last_byte_ps: Some(last),
            ..EventRow::default()
        };
        assert!(smallest_window(tables, &row(30, 60)).unwrap().contains(" 5000 B, on connection 1 "));
        assert!(smallest_window(tables, &row(30, 80)).unwrap().contains(" 3000 B, on connection 1 "));
        assert!(smallest_window(tables, &row(0, 5)).is_none());
    }

    #[test]
    fn an_event_of_a_lost_collector_is_in_debug_and_one_without_an_end_is_lost() {
        let supervisor = "# fanin journal 1 supervisor epoch-us 1000\n0 1 assigned 0 0 0 0\n0 2 assigned 0 1 0 0\n\
                          1000000000 1 reassigned 0\n1000000000 1 assigned 1 0 0 1\n5000000000 1 completed 1 debug\n";
        let incarnations = "# fanin journal 1 collector-0 epoch-us 1000\n500 2 received 1\n\
                     # fanin journal 1 collector-0 epoch-us 3000\n9000000000 9 cleared\n";
        let next = "# fanin journal 1 collector-1 epoch-us 1000\n4000000000 1 decided 0 debug\n";
        let folder = journals(
            "lost",
            &[("supervisor", supervisor), ("collector-0", incarnations), ("collector-1", next)],
        );
        let found = explained(&folder, &[], 1);
        let text = found.reasons.join(" ");
        assert_eq!(found.outcome, "debug");
        assert!(
            text.contains("Collector 0 was lost with it.") && text.contains("store it unprocessed"),
            "{text}"
        );
        assert!(!text.contains("lost before it decided"), "no unit of collector 1 had it: {text}");
        assert!(text.contains("collector-0 was started again 2 ms after its assignment."), "{text}");
        let found = explained(&folder, &[], 2);
        let text = found.reasons.join(" ");
        assert_eq!(found.outcome, "lost");
        assert!(text.contains("no process finished it. The last record is from collector-0"), "{text}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_event_that_no_logger_could_write_names_the_reason_and_no_readout() {
        let supervisor = "# fanin journal 1 supervisor epoch-us 1000\n0 1 assigned 0 0 0 0\n0 2 assigned 0 1 0 0\n\
                          9000000000 1 completed 0 debug\n9000000000 2 completed 0 debug\n";
        let collector = "# fanin journal 1 collector-0 epoch-us 1000\n5000 2 missing 1 3\n7000 1 decided 0 stored\n\
                         8000 1 too-large 700 600\n8000 1 missing 0 4\n8000 1 missing 1 4\n8000 2 decided 1 stored\n";
        let logger = "# fanin journal 1 logger-0 epoch-us 1000\n9000 1 stored 0 debug 8\n9000 2 stand-ins 5\n\
                      9000 2 stored 0 debug 8\n";
        let folder = journals(
            "unwritable",
            &[("supervisor", supervisor), ("collector-0", collector), ("logger-0", logger)],
        );
        let found = explained(&folder, &[], 1);
        let text = found.reasons.join(" ");
        assert_eq!(found.outcome, "debug");
        assert!(text.contains("It has 700 B, and a logger stores 600 B at most"), "{text}");
        assert!(
            !text.contains("did not deliver") && text.contains("accepted it; it is in the debug"),
            "{text}"
        );
        assert!(
            found.steps.iter().any(|step| step.text == "too large for a logger: 700 B, and 600 B at most")
        );
        let text = explained(&folder, &[], 2).reasons.join(" ");
        assert!(text.contains("5 of its fragments were damaged when they reached logger-0"), "{text}");
        // These never came.
        assert!(text.contains("Readout 1 did not deliver 3 of its fragments"), "{text}");
        fs::remove_dir_all(folder).unwrap();
    }
}
