//! A result as a trace that Perfetto opens (<https://ui.perfetto.dev>): tracks in time instead of tables.
//!
//! The file has the Trace Event Format in JSON, in which Perfetto and Chrome agree. Each collector is a process with a thread
//! for each processing unit; a slice is an event from its assignment to its last byte, and within it the collection from the
//! first request on. Queues and congestion windows that were recorded are counters.

use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::{EventRow, RunResult};

/// The process that holds the counters of queues.
const QUEUES: u64 = 1;
/// The process that holds the counters of connections.
const CONNECTIONS: u64 = 2;
/// The process of the first collector; the others follow.
const COLLECTORS: u64 = 10;

/// Writes events, queues and windows of a result as a trace. Times are microseconds since the run began, exact to the
/// picosecond in the file; Perfetto rounds them to nanoseconds.
///
/// # Errors
/// If writing fails.
pub fn write_trace(result: &RunResult, out: impl Write) -> io::Result<()> {
    let mut trace = TraceWriter { out, is_first: true };
    let records = &result.records;
    write!(trace.out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let units: BTreeSet<(u32, u32)> = records.events.iter().map(|row| (row.collector, row.unit)).collect();
    for collector in units.iter().map(|(collector, _)| *collector).collect::<BTreeSet<u32>>() {
        trace.name("process_name", collector_process(collector), 0, &format!("collector {collector}"))?;
    }
    for (collector, unit) in units {
        let thread = thread(unit);
        trace.name("thread_name", collector_process(collector), thread, &format!("unit {unit}"))?;
    }
    for row in &records.events {
        trace.event(row)?;
    }
    if !records.queues.is_empty() {
        trace.name("process_name", QUEUES, 0, "queues")?;
    }
    for row in &records.queues {
        let values = [("bytes", row.queue_bytes), ("drops", row.drops)];
        trace.counter(QUEUES, &row.queue, row.time_ps, &values)?;
    }
    if !records.windows.is_empty() {
        trace.name("process_name", CONNECTIONS, 0, "connections")?;
    }
    for row in &records.windows {
        let values = [("cwnd_bytes", row.cwnd_bytes), ("in_flight_bytes", row.in_flight_bytes)];
        trace.counter(CONNECTIONS, &format!("connection {}", row.flow), row.time_ps, &values)?;
    }
    writeln!(trace.out, "\n]}}")?;
    trace.out.flush()
}

fn collector_process(collector: u32) -> u64 {
    COLLECTORS + u64::from(collector)
}

/// Threads count from 1: a thread of number 0 has no name of its own in Perfetto.
fn thread(unit: u32) -> u64 {
    u64::from(unit) + 1
}

struct TraceWriter<W> {
    out: W,
    is_first: bool,
}

impl<W: Write> TraceWriter<W> {
    /// Begins an entry on a line of its own.
    fn entry(&mut self) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.is_first) { "" } else { "," };
        writeln!(self.out, "{comma}")
    }

    fn name(&mut self, what: &str, process: u64, thread: u64, name: &str) -> io::Result<()> {
        self.entry()?;
        let name = quoted(name);
        write!(
            self.out,
            r#"{{"ph":"M","name":"{what}","pid":{process},"tid":{thread},"args":{{"name":{name}}}}}"#
        )
    }

    fn event(&mut self, row: &EventRow) -> io::Result<()> {
        let (process, thread) = (collector_process(row.collector), thread(row.unit));
        let begin = micros(row.assigned_ps);
        let category = if row.timeouts > 0 { "event,timeout" } else { "event" };
        let details = format!(
            r#"{{"id":{},"size_bytes":{},"timeouts":{},"outcome":"{}"}}"#,
            row.id,
            row.size_bytes,
            row.timeouts,
            row.outcome.name()
        );
        let place = format!(r#""pid":{process},"tid":{thread}"#);
        self.entry()?;
        let Some(last) = row.last_byte_ps else {
            // Begun and never ended, as it stands in the trace too.
            return write!(
                self.out,
                r#"{{"ph":"B","name":"event {}","cat":"{category}","ts":{begin},{place},"args":{details}}}"#,
                row.id
            );
        };
        let lasted = micros(last.saturating_sub(row.assigned_ps));
        write!(
            self.out,
            r#"{{"ph":"X","name":"event {}","cat":"{category}","ts":{begin},"dur":{lasted},{place},"args":{details}}}"#,
            row.id
        )?;
        if let Some(first) = row.first_request_ps {
            self.entry()?;
            let (begin, lasted) = (micros(first), micros(last.saturating_sub(first)));
            write!(
                self.out,
                r#"{{"ph":"X","name":"collection","cat":"collection","ts":{begin},"dur":{lasted},{place}}}"#
            )?;
        }
        Ok(())
    }

    fn counter(&mut self, process: u64, name: &str, at: u64, values: &[(&str, u64)]) -> io::Result<()> {
        self.entry()?;
        let (name, at) = (quoted(name), micros(at));
        let values: Vec<String> = values.iter().map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
        let values = values.join(",");
        write!(self.out, r#"{{"ph":"C","name":{name},"pid":{process},"ts":{at},"args":{{{values}}}}}"#)
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Picoseconds as microseconds with all their digits.
fn micros(ps: u64) -> String {
    format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{QueueRow, ResultKind, ScenarioName, Summary, WindowRow};

    #[test]
    fn events_queues_and_windows_stand_in_the_trace() {
        let mut result = RunResult::new(Summary::new(ResultKind::Sim, "1", ScenarioName::default()));
        let whole = EventRow {
            id: 4,
            assigned_ps: 1_000_001,
            first_request_ps: Some(2_000_000),
            last_byte_ps: Some(5_000_001),
            collector: 3,
            unit: 1,
            timeouts: 2,
            ..EventRow::default()
        };
        let unfinished = EventRow { id: 5, assigned_ps: 7, collector: 3, ..EventRow::default() };
        result.records.events = vec![whole, unfinished];
        result.records.queues =
            vec![QueueRow { queue: "tor->\"x\"".into(), queue_bytes: 9, ..QueueRow::default() }];
        result.records.windows = vec![WindowRow { flow: 8, cwnd_bytes: 11, ..WindowRow::default() }];
        let mut out = Vec::new();
        write_trace(&result, &mut out).unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        let entries = trace["traceEvents"].as_array().unwrap();
        let named = |name: &str| entries.iter().filter(|entry| entry["name"] == name).collect::<Vec<_>>();
        let event = named("event 4")[0];
        assert_eq!(
            (&event["ts"], &event["dur"], &event["pid"], &event["tid"]),
            (&1.000001.into(), &4.0.into(), &13.into(), &2.into())
        );
        assert_eq!((&event["args"]["timeouts"], &event["cat"]), (&2.into(), &"event,timeout".into()));
        assert_eq!(named("collection").len(), 1);
        assert_eq!((&named("event 5")[0]["ph"], &named("event 5")[0]["dur"]), (&"B".into(), &Value::Null));
        assert_eq!(named("tor->\"x\"")[0]["args"]["bytes"], 9);
        assert_eq!(named("connection 8")[0]["args"]["cwnd_bytes"], 11);
        assert_eq!(named("thread_name").len(), 2);
        assert_eq!(named("process_name").len(), 3);
    }

    #[test]
    fn an_empty_result_is_an_empty_trace() {
        let mut out = Vec::new();
        write_trace(&RunResult::new(Summary::new(ResultKind::Plan, "1", ScenarioName::default())), &mut out)
            .unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(trace["traceEvents"], Value::Array(Vec::new()));
    }
}
