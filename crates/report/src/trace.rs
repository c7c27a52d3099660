//! A result as a trace that Perfetto opens (<https://ui.perfetto.dev>): tracks in time instead of tables.
//!
//! The file is in the JSON of the Trace Event Format, which Perfetto and Chrome both read. A track is a host or a port:
//!
//! - *network*: counters of the payload that arrives and of the timeouts;
//! - *port NAME*, the worst first: counters of its queue, of the frames that it refused, and of each of its rings;
//! - *late event N*: a thread for each source, with its request and its retransmission timeouts as slices;
//! - *collector N*: a thread for each processing unit, with its events as slices; within an event lies its collection;
//! - *watched queues* and *connections*: counters that the scenario asked to record.

use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::{EventRow, LateEvent, LateSource, PortTimeline, RunResult, RunTimeline};

/// The process that holds the counters of watched queues.
const QUEUES: u64 = 1;
/// The process that holds the counters of connections.
const CONNECTIONS: u64 = 2;
/// The process that holds the counters of the whole network.
const NETWORK: u64 = 3;
/// The process that holds the sources of the late event.
const LATE: u64 = 4;
/// The process of the worst port; the others follow.
const PORTS: u64 = 5;
/// Ports that have processes.
const PORTS_MAX: usize = 5;
/// The process of the first collector; the others follow.
const COLLECTORS: u64 = PORTS + PORTS_MAX as u64;

/// Returns the position of a process on the screen, from the top: the network, its worst ports, the late event, then the
/// others.
fn place(process: u64) -> u64 {
    match process {
        NETWORK => 0,
        LATE => COLLECTORS,
        QUEUES | CONNECTIONS => process + COLLECTORS,
        PORTS..COLLECTORS => process,
        collector => collector + COLLECTORS,
    }
}

/// Writes a result as a trace. Times are microseconds since the run began, rounded down to nanoseconds. Perfetto itself rounds
/// begin and duration separately, and drops a slice that then ends after its enclosing slice.
///
/// # Errors
/// If writing fails.
pub fn write_trace(result: &RunResult, out: impl Write) -> io::Result<()> {
    let mut trace = TraceWriter { out, is_first: true };
    let records = &result.records;
    write!(trace.out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    if let Some(picture) = &result.picture {
        trace.timeline(&picture.timeline)?;
        if let Some(late) = &picture.late {
            trace.late_event(late)?;
        }
    }
    let units: BTreeSet<(u32, u32)> = records.events.iter().map(|row| (row.collector, row.unit)).collect();
    for collector in units.iter().map(|(collector, _)| *collector).collect::<BTreeSet<u32>>() {
        trace.process(collector_process(collector), &format!("collector {collector}"))?;
    }
    for (collector, unit) in units {
        let thread = thread(unit);
        trace.name("thread_name", collector_process(collector), thread, &format!("unit {unit}"))?;
    }
    for row in &records.events {
        trace.event(row)?;
    }
    if !records.queues.is_empty() {
        trace.process(QUEUES, "watched queues")?;
    }
    for row in &records.queues {
        let values = [("bytes", row.queue_bytes), ("drops", row.drops)];
        trace.counter(QUEUES, &row.queue, row.time_ps, &values)?;
    }
    if !records.windows.is_empty() {
        trace.process(CONNECTIONS, "connections")?;
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

/// Returns the thread number of a unit, from 1: Perfetto gives thread 0 no name.
fn thread(unit: u32) -> u64 {
    u64::from(unit) + 1
}

struct TraceWriter<W> {
    out: W,
    is_first: bool,
}

impl<W: Write> TraceWriter<W> {
    /// Starts an entry on a new line.
    fn entry(&mut self) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.is_first) { "" } else { "," };
        writeln!(self.out, "{comma}")
    }

    /// Names a process and sets its position.
    fn process(&mut self, process: u64, name: &str) -> io::Result<()> {
        self.name("process_name", process, 0, name)?;
        self.sort("process_sort_index", process, 0, place(process))
    }

    fn name(&mut self, kind: &str, process: u64, thread: u64, name: &str) -> io::Result<()> {
        self.entry()?;
        let name = quoted(name);
        write!(
            self.out,
            r#"{{"ph":"M","name":"{kind}","pid":{process},"tid":{thread},"args":{{"name":{name}}}}}"#
        )
    }

    fn sort(&mut self, kind: &str, process: u64, thread: u64, index: u64) -> io::Result<()> {
        self.entry()?;
        write!(
            self.out,
            r#"{{"ph":"M","name":"{kind}","pid":{process},"tid":{thread},"args":{{"sort_index":{index}}}}}"#
        )
    }

    /// Writes the counters of the network and of its worst ports.
    fn timeline(&mut self, timeline: &RunTimeline) -> io::Result<()> {
        let RunTimeline { bin_ps, delivered_bytes, timeouts, probes, ports } = timeline;
        if *bin_ps == 0 || delivered_bytes.is_empty() {
            return Ok(());
        }
        self.process(NETWORK, "network")?;
        let bps = |bytes: &u64| (u128::from(*bytes) * 8 * 1_000_000_000_000 / u128::from(*bin_ps)) as u64;
        let goodput: Vec<u64> = delivered_bytes.iter().map(bps).collect();
        self.bins(NETWORK, "goodput", "bits_per_second", *bin_ps, &goodput)?;
        self.bins(NETWORK, "timeouts", "expired", *bin_ps, timeouts)?;
        if !probes.is_empty() {
            self.bins(NETWORK, "tail loss probes", "sent", *bin_ps, probes)?;
        }
        for (process, port) in (PORTS..COLLECTORS).zip(ports) {
            let PortTimeline { name, limit_bytes, queue_bytes, drops, rings, .. } = port;
            let limit = limit_bytes.map_or_else(String::new, |limit| format!(", limit {limit} B"));
            self.process(process, &format!("port {name}{limit}"))?;
            self.bins(process, "queue", "bytes", *bin_ps, queue_bytes)?;
            self.bins(process, "dropped frames", "frames", *bin_ps, drops)?;
            for ring in rings {
                let name = format!("ring {}", ring.destination);
                self.bins(process, &name, "bytes", *bin_ps, &ring.queue_bytes)?;
            }
        }
        Ok(())
    }

    /// Writes a counter with the values of bins: an entry for each change, and zero at the end.
    fn bins(
        &mut self,
        process: u64,
        name: &str,
        value_name: &str,
        bin_ps: u64,
        values: &[u64],
    ) -> io::Result<()> {
        let mut last = None;
        for (bin, &value) in values.iter().chain([&0]).enumerate() {
            if last != Some(value) {
                self.counter(process, name, bin as u64 * bin_ps, &[(value_name, value)])?;
            }
            last = Some(value);
        }
        Ok(())
    }

    /// Writes the sources of the late event; those that finished last are on top.
    fn late_event(&mut self, late: &LateEvent) -> io::Result<()> {
        if late.sources.is_empty() {
            return Ok(());
        }
        self.process(LATE, &format!("late event {} at {}", late.id, late.collector))?;
        for (thread, source) in (1..).zip(&late.sources) {
            self.name("thread_name", LATE, thread, &source.name)?;
            self.sort("thread_sort_index", LATE, thread, thread)?;
            self.source(late, source, thread)?;
        }
        Ok(())
    }

    /// Writes one source of the late event. A timeout is a slice that begins at the last loss or timeout before it.
    fn source(&mut self, late: &LateEvent, source: &LateSource, thread: u64) -> io::Result<()> {
        let begin = source.request_ps.unwrap_or(late.assigned_ps);
        let end = source.last_byte_ps.unwrap_or(late.collected_ps).max(begin);
        let lost = source.losses_ps.len();
        let details = format!(r#"{{"event":{},"frames_dropped":{lost}}}"#, late.id);
        self.slice("request", "request", LATE, thread, [begin, end], &details)?;
        let mut waits_since = begin;
        for &expired in &source.timeouts_ps {
            let since = source.losses_ps.iter().copied().filter(|&at| at < expired).max().unwrap_or(begin);
            let expired = expired.min(end);
            let since = since.max(waits_since).min(expired);
            self.slice("RTO", "timeout", LATE, thread, [since, expired], "{}")?;
            waits_since = expired;
        }
        let marks = [("frame dropped", &source.losses_ps), ("tail loss probe", &source.probes_ps)];
        for (name, times) in marks {
            for &at in times {
                self.instant(name, LATE, thread, at)?;
            }
        }
        source.first_byte_ps.map_or(Ok(()), |at| self.instant("first byte", LATE, thread, at))
    }

    fn slice(
        &mut self,
        name: &str,
        category: &str,
        process: u64,
        thread: u64,
        [begin, end]: [u64; 2],
        details: &str,
    ) -> io::Result<()> {
        self.entry()?;
        let (begin, lasted) = (micros(begin), micros(nanos(end) - nanos(begin)));
        write!(
            self.out,
            r#"{{"ph":"X","name":"{name}","cat":"{category}","ts":{begin},"dur":{lasted},"pid":{process},"tid":{thread},"args":{details}}}"#
        )
    }

    fn instant(&mut self, name: &str, process: u64, thread: u64, at: u64) -> io::Result<()> {
        self.entry()?;
        let at = micros(at);
        write!(self.out, r#"{{"ph":"i","s":"t","name":"{name}","ts":{at},"pid":{process},"tid":{thread}}}"#)
    }

    fn event(&mut self, row: &EventRow) -> io::Result<()> {
        let (process, thread) = (collector_process(row.collector), thread(row.unit));
        let category = if row.has_timeouts() { "event,timeout" } else { "event" };
        let name = format!("event {}", row.id);
        let timeouts = row.timeouts.map_or_else(String::new, |count| format!(r#""timeouts":{count},"#));
        let details = format!(
            r#"{{"id":{},"size_bytes":{},{timeouts}"outcome":"{}"}}"#,
            row.id,
            row.size_bytes,
            row.outcome.name()
        );
        let Some(last) = row.last_byte_ps else {
            // The event began and never ended. The trace has it without an end, too.
            self.entry()?;
            let begin = micros(row.assigned_ps);
            return write!(
                self.out,
                r#"{{"ph":"B","name":"{name}","cat":"{category}","ts":{begin},"pid":{process},"tid":{thread},"args":{details}}}"#
            );
        };
        let end = last.max(row.assigned_ps);
        self.slice(&name, category, process, thread, [row.assigned_ps, end], &details)?;
        match row.first_request_ps {
            Some(first) => {
                let span = [first, last.max(first)];
                self.slice("collection", "collection", process, thread, span, "{}")
            }
            None => Ok(()),
        }
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

/// Rounds picoseconds down to whole nanoseconds.
const fn nanos(ps: u64) -> u64 {
    ps - ps % 1_000
}

/// Writes picoseconds as microseconds, rounded down to nanoseconds.
fn micros(ps: u64) -> String {
    format!("{}.{:03}", ps / 1_000_000, ps / 1_000 % 1_000)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{QueueRow, ResultKind, RingTimeline, RunPicture, ScenarioName, Summary, WindowRow};

    /// The entries of a result's trace.
    fn entries(result: &RunResult) -> Vec<Value> {
        let mut out = Vec::new();
        write_trace(result, &mut out).unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        trace["traceEvents"].as_array().unwrap().clone()
    }

    fn named<'a>(entries: &'a [Value], name: &str) -> Vec<&'a Value> {
        entries.iter().filter(|entry| entry["name"] == name).collect()
    }

    #[test]
    fn events_queues_and_windows_stand_in_the_trace() {
        let mut result = RunResult::new(Summary::new(ResultKind::Sim, "1", ScenarioName::default()));
        let whole = EventRow {
            id: 4,
            assigned_ps: 1_000_999,
            first_request_ps: Some(2_000_900),
            last_byte_ps: Some(5_001_800),
            collector: 3,
            unit: 1,
            timeouts: Some(2),
            ..EventRow::default()
        };
        let unfinished = EventRow { id: 5, assigned_ps: 7, collector: 3, ..EventRow::default() };
        result.records.events = vec![whole, unfinished];
        result.records.queues =
            vec![QueueRow { queue: "tor->\"x\"".into(), queue_bytes: 9, ..QueueRow::default() }];
        result.records.windows = vec![WindowRow { flow: 8, cwnd_bytes: 11, ..WindowRow::default() }];
        let entries = entries(&result);
        let named = |name: &str| named(&entries, name);
        let event = named("event 4")[0];
        assert_eq!(
            (&event["ts"], &event["dur"], &event["pid"], &event["tid"]),
            (&1.0.into(), &4.001.into(), &13.into(), &2.into())
        );
        assert_eq!((&event["args"]["timeouts"], &event["cat"]), (&2.into(), &"event,timeout".into()));
        // It ends with its event, whatever was rounded.
        let collection = named("collection")[0];
        assert_eq!((&collection["ts"], &collection["dur"]), (&2.0.into(), &3.001.into()));
        assert_eq!((&named("event 5")[0]["ph"], &named("event 5")[0]["dur"]), (&"B".into(), &Value::Null));
        assert_eq!(named("tor->\"x\"")[0]["args"]["bytes"], 9);
        assert_eq!(named("connection 8")[0]["args"]["cwnd_bytes"], 11);
        assert_eq!(named("thread_name").len(), 2);
        assert_eq!(named("process_name").len(), 3);
    }

    #[test]
    fn the_picture_becomes_counters_of_the_network_and_of_its_worst_ports() {
        let mut result = RunResult::new(Summary::new(ResultKind::Sim, "1", ScenarioName::default()));
        let port = |name: &str, drops: [u64; 4]| PortTimeline {
            name: name.into(),
            limit_bytes: Some(64_000),
            queue_bytes: vec![0, 500, 500, 0],
            drops: drops.to_vec(),
            delivered_bytes: None,
            rings: vec![RingTimeline { destination: "collector:9".into(), queue_bytes: vec![0, 300, 0, 0] }],
        };
        let timeline = RunTimeline {
            bin_ps: 1_000_000_000,
            delivered_bytes: vec![0, 125_000, 125_000, 0],
            timeouts: vec![0, 0, 3, 1],
            probes: Vec::new(),
            ports: vec![port("tor->collector:1", [0, 7, 0, 0]), port("tor->collector:0", [0; 4])],
        };
        result.picture = Some(RunPicture { timeline, ..RunPicture::default() });
        let entries = entries(&result);
        let counted = |process: u64, name: &str, key: &str| -> Vec<(f64, u64)> {
            let entries = named(&entries, name).into_iter().filter(|entry| entry["pid"] == process);
            let value = |entry: &Value| entry["args"][key].as_u64().unwrap();
            entries.map(|entry| (entry["ts"].as_f64().unwrap(), value(entry))).collect()
        };
        assert_eq!(
            counted(NETWORK, "goodput", "bits_per_second"),
            [(0.0, 0), (1000.0, 1_000_000_000), (3000.0, 0)]
        );
        // A timeout in the last bin ends with it.
        assert_eq!(
            counted(NETWORK, "timeouts", "expired"),
            [(0.0, 0), (2000.0, 3), (3000.0, 1), (4000.0, 0)]
        );
        assert_eq!(counted(PORTS, "dropped frames", "frames"), [(0.0, 0), (1000.0, 7), (2000.0, 0)]);
        assert_eq!(counted(PORTS + 1, "queue", "bytes"), [(0.0, 0), (1000.0, 500), (3000.0, 0)]);
        assert_eq!(counted(PORTS + 1, "ring collector:9", "bytes"), [(0.0, 0), (1000.0, 300), (2000.0, 0)]);
        let names = named(&entries, "process_name");
        let name = |process: u64| {
            let entry = names.iter().find(|entry| entry["pid"] == process);
            entry.unwrap()["args"]["name"].as_str().unwrap().to_owned()
        };
        assert_eq!(name(PORTS), "port tor->collector:1, limit 64000 B");
        assert_eq!(name(PORTS + 1), "port tor->collector:0, limit 64000 B");
        let mut order: Vec<(u64, u64)> = named(&entries, "process_sort_index")
            .iter()
            .map(|entry| (entry["args"]["sort_index"].as_u64().unwrap(), entry["pid"].as_u64().unwrap()))
            .collect();
        order.sort_unstable();
        let order: Vec<u64> = order.into_iter().map(|(_, process)| process).collect();
        assert_eq!(order, [NETWORK, PORTS, PORTS + 1], "the worst port comes first");
    }

    #[test]
    fn the_late_event_has_a_track_for_each_source() {
        let mut result = RunResult::new(Summary::new(ResultKind::Sim, "1", ScenarioName::default()));
        let us = 1_000_000;
        let struck = LateSource {
            name: "readout:7".into(),
            request_ps: Some(10 * us),
            first_byte_ps: Some(20 * us),
            last_byte_ps: Some(900 * us),
            losses_ps: vec![30 * us, 310 * us],
            timeouts_ps: vec![300 * us, 800 * us],
            probes_ps: vec![40 * us],
            held_by: Vec::new(),
        };
        let pushed =
            LateSource { name: "readout:2".into(), last_byte_ps: Some(50 * us), ..LateSource::default() };
        let late = LateEvent {
            id: 6,
            collector: "collector:0".into(),
            assigned_ps: 5 * us,
            collected_ps: 900 * us,
            sources: vec![struck, pushed],
            ..LateEvent::default()
        };
        result.picture = Some(RunPicture { late: Some(late), ..RunPicture::default() });
        let entries = entries(&result);
        let spans = |name: &str| -> Vec<(u64, f64, f64)> {
            let span = |entry: &&Value| {
                let number = |key: &str| entry[key].as_f64().unwrap();
                (entry["tid"].as_u64().unwrap(), number("ts"), number("ts") + number("dur"))
            };
            named(&entries, name).iter().map(span).collect()
        };
        assert_eq!(spans("request"), [(1, 10.0, 900.0), (2, 5.0, 50.0)]);
        // Each slice lies within its request and after the one before it, as Perfetto wants them.
        assert_eq!(spans("RTO"), [(1, 30.0, 300.0), (1, 310.0, 800.0)]);
        let at = |name: &str| named(&entries, name)[0]["ts"].as_f64().unwrap();
        assert_eq!((at("first byte"), at("tail loss probe"), at("frame dropped")), (20.0, 40.0, 30.0));
        let threads = named(&entries, "thread_name");
        let threads: Vec<&str> =
            threads.iter().map(|entry| entry["args"]["name"].as_str().unwrap()).collect();
        assert_eq!(threads, ["readout:7", "readout:2"], "the source that finished last comes first");
        assert_eq!(named(&entries, "process_name")[0]["args"]["name"], "late event 6 at collector:0");
    }

    #[test]
    fn an_empty_result_is_an_empty_trace() {
        let result = RunResult::new(Summary::new(ResultKind::Plan, "1", ScenarioName::default()));
        assert!(entries(&result).is_empty());
    }
}
