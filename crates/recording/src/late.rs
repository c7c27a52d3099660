//! The late event: its sources, and the causes of its lateness in order of time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fanin_network::{PortIndex, find_route};
use fanin_report::{LateCause, LateEvent, LateSource};
use fanin_scenario::ShapingMethod;
use fanin_units::{Bytes, Duration};

use crate::picture::Finished;
use crate::trace::{LateTrace, MessageStep, TraceEntry};

/// Most sources of a late event that are kept: those that finished last.
const LATE_SOURCES_MAX: usize = 512;
/// Delay from which a request counts as held back: a message of the supervisor arrives sooner.
const HELD_MIN: Duration = Duration::from_millis(1);
/// Least slowdown of a late event; an event below it is not late, and has no causes.
const LATE_MIN: f64 = 1.5;
/// Most losses, timeouts and probes that are kept of each source.
const MARKS_MAX: usize = 64;

/// Reads the times of one kind from a source.
type TimesOf<'a> = &'a dyn Fn(&LateSource) -> Vec<u64>;

impl Finished<'_> {
    /// The late event with its sources and the causes of its lateness.
    pub(crate) fn late_event(&self, late: &LateTrace) -> LateEvent {
        let mut sources: BTreeMap<u32, LateSource> = BTreeMap::new();
        for entry in &late.entries {
            let source = sources.entry(entry.connection).or_insert_with(|| LateSource {
                name: self.name(self.connections[entry.connection as usize].nodes[1]),
                ..LateSource::default()
            });
            let keep = |times: &mut Vec<u64>| {
                if times.len() < MARKS_MAX {
                    times.push(entry.at);
                }
            };
            match entry.step {
                MessageStep::Request => _ = source.request_ps.get_or_insert(entry.at),
                MessageStep::FirstByte => _ = source.first_byte_ps.get_or_insert(entry.at),
                MessageStep::LastByte => source.last_byte_ps = Some(entry.at),
                MessageStep::Loss(_) => keep(&mut source.losses_ps),
                MessageStep::Timeout => keep(&mut source.timeouts_ps),
                MessageStep::Probe => keep(&mut source.probes_ps),
            }
        }
        let collector =
            late.entries.first().map(|entry| self.connections[entry.connection as usize].nodes[0]);
        let mut sources: Vec<LateSource> = sources.into_values().collect();
        sources.sort_by_key(|source| Reverse(source.last_byte_ps));
        let sources_total = sources.len() as u64;
        let ideal_ps = self.rows.get(late.of.event as usize).and_then(|row| row.ideal_ps);
        let is_late = ideal_ps.is_none_or(|ideal| late.of.time as f64 >= LATE_MIN * ideal as f64);
        let mut event = LateEvent {
            id: late.of.event,
            collector: collector.map_or_else(String::new, |node| self.name(node)),
            assigned_ps: late.of.assigned,
            collected_ps: late.of.at,
            time_ps: late.of.time,
            ideal_ps,
            chain: if is_late { self.chain(late, &sources) } else { Vec::new() },
            sources,
            sources_total,
            text: String::new(),
        };
        event.text = fanin_report::late_text(&event);
        event.sources.truncate(LATE_SOURCES_MAX);
        event
    }

    /// The largest queue of an output while an event was collected; `None` if it was not recorded.
    fn queue_during(&self, late: &LateTrace, port: PortIndex) -> Option<u64> {
        let timeline = &self.recorder.timeline;
        let queue_bytes = &timeline.row(port)?.queue_bytes;
        let bin = |at: u64| ((at / timeline.width) as usize).min(queue_bytes.len() - 1);
        queue_bytes[bin(late.of.assigned)..=bin(late.of.at)].iter().max().copied()
    }

    /// The output with the longest drain time on the path from the source that finished last.
    fn fullest_on_the_way(&self, late: &LateTrace) -> Option<PortIndex> {
        let is_last_byte = |entry: &&TraceEntry| matches!(entry.step, MessageStep::LastByte);
        let last = late.entries.iter().filter(is_last_byte).max_by_key(|entry| entry.at)?;
        let drain = |port: PortIndex| {
            let bytes = self.queue_during(late, port).filter(|&bytes| bytes > 0)?;
            self.network.link(port).rate.checked_time_to_send(Bytes::new(bytes))
        };
        // The collector is the first end. The network was simulated: it has a path for every connection.
        let side = (last.connection as usize, 1);
        let path = find_route(self.scenario, self.network, self.roles, self.connections, side).ok()?;
        path.into_iter().filter_map(|port| Some((drain(port)?, port))).max().map(|(_, port)| port)
    }

    /// The causes of an event's lateness, in order of time.
    fn chain(&self, late: &LateTrace, sources: &[LateSource]) -> Vec<LateCause> {
        let mut chain = Vec::new();
        let requests: Vec<u64> = sources.iter().filter_map(|source| source.request_ps).collect();
        // The collection time begins when the collector makes the requests. With several steps it is the sum over them.
        let begin = late.of.at.saturating_sub(late.of.time).max(late.of.assigned);
        let begin = requests.iter().copied().fold(begin, u64::min);
        let since = |at: u64| Duration::new(at.saturating_sub(begin)).as_millis_f64();
        if let (Some(&first), Some(&last)) = (requests.iter().min(), requests.iter().max()) {
            let method = self.scenario.shaping.method;
            let has_credits = matches!(method, ShapingMethod::Credits | ShapingMethod::PacedCredits);
            // Earlier events may hold the credits that the first request needs.
            let is_held = has_credits && last.saturating_sub(late.of.assigned) > HELD_MIN.get();
            if is_held || last > first {
                let from = if is_held { begin } else { first };
                chain.push(LateCause {
                    kind: if has_credits { "credit-wait" } else { "request-wait" }.into(),
                    from_ms: since(from),
                    until_ms: since(last),
                    count: Some(requests.iter().filter(|&&at| at > first || is_held).count() as u64),
                    ..LateCause::default()
                });
            }
        }
        let mut by_port: BTreeMap<PortIndex, u64> = BTreeMap::new();
        for entry in &late.entries {
            if let MessageStep::Loss(port) = entry.step {
                *by_port.entry(port).or_default() += 1;
            }
        }
        let losses: u64 = by_port.values().sum();
        let losing = by_port.into_iter().max_by_key(|&(port, count)| (count, Reverse(port)));
        if let Some(port) = losing.map(|(port, _)| port).or_else(|| self.fullest_on_the_way(late))
            && let Some(queue_bytes) = self.queue_during(late, port)
        {
            chain.push(LateCause {
                kind: "queue".into(),
                from_ms: 0.0,
                until_ms: since(late.of.at),
                port: Some(self.network.port_name(port)),
                queue_bytes: Some(queue_bytes),
                ..LateCause::default()
            });
        }
        let of = |times: TimesOf<'_>| {
            let all: Vec<u64> = sources.iter().flat_map(times).collect();
            let struck = sources.iter().filter(|source| !times(source).is_empty());
            let longest = struck.clone().max_by_key(|source| source.last_byte_ps);
            let (first, last) = (all.iter().min().copied()?, all.iter().max().copied()?);
            Some((
                first,
                last,
                all.len() as u64,
                struck.count() as u64,
                longest.map(|source| source.name.clone()),
            ))
        };
        if let Some((first, last, _, struck, _)) = of(&|source| source.losses_ps.clone()) {
            chain.push(LateCause {
                kind: "loss".into(),
                from_ms: since(first),
                until_ms: since(last),
                count: Some(losses),
                sources: Some(struck),
                port: losing.map(|(port, _)| self.network.port_name(port)),
                ..LateCause::default()
            });
        }
        // A probe of a source without losses repairs nothing: its answer waits in a queue.
        let probes = |source: &LateSource| {
            let lost = source.losses_ps.first().copied().unwrap_or(u64::MAX);
            source.probes_ps.iter().copied().filter(|&at| at > lost).collect()
        };
        let timers: [(&str, TimesOf<'_>); 2] =
            [("tail-loss-probe", &probes), ("rto", &|source| source.timeouts_ps.clone())];
        for (kind, times) in timers {
            if let Some((first, last, count, struck, source)) = of(times) {
                chain.push(LateCause {
                    kind: kind.into(),
                    from_ms: since(first),
                    until_ms: since(last),
                    count: Some(count),
                    sources: Some(struck),
                    source,
                    ..LateCause::default()
                });
            }
        }
        chain
    }
}
