//! The late event: its sources, and the causes of its lateness in order of time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fanin_network::{PortIndex, find_route};
use fanin_report::{LateCause, LateEvent, LateSource};
use fanin_scenario::ShapingMethod;
use fanin_units::{Bytes, Duration};

use crate::critical_path::{CriticalPath, Stall};
use crate::picture::Finished;
use crate::trace::{LateTrace, MessageStep, TraceEntry};

/// Most sources of a late event that are kept: those that finished last.
const LATE_SOURCES_MAX: usize = 512;
/// Delay from which a request counts as held back: a message of the supervisor arrives sooner.
const HELD_MIN: Duration = Duration::from_millis(1);
/// Least slowdown of a late event; an event below it is not late, and has no causes.
const LATE_MIN: f64 = 1.5;
/// Bytes that a full frame takes on a link besides itself: preamble and gap.
const LINK_BYTES: u64 = 20;
/// Bytes of a full frame that are no payload: Ethernet, IP and TCP with time stamps.
const HEADER_BYTES: u64 = 70;
/// Most losses, timeouts and probes that are kept of each source.
const MARKS_MAX: usize = 64;

/// Reads the times of one kind from a source.
type TimesOf<'a> = &'a dyn Fn(&LateSource) -> Vec<u64>;

/// The output that held up an answer. The longest one is the greatest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FullestOutput {
    /// Most time for which it held up the answer, in picoseconds.
    held: u64,
    /// The time that its link takes for its largest queue; `None` if the queue was not recorded.
    drain: Option<u64>,
    port: PortIndex,
}

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
            sources_total,
            ..LateEvent::default()
        };
        if is_late {
            (event.chain, event.explained) = self.chain(late, &sources, ideal_ps.unwrap_or(0));
        }
        event.sources = sources;
        event.text = fanin_report::late_text(&event);
        event.sources.truncate(LATE_SOURCES_MAX);
        event
    }

    /// The largest queue of an output from one time until another; `None` if it was not recorded.
    fn queue_during(&self, port: PortIndex, [from, until]: [u64; 2]) -> Option<u64> {
        let timeline = &self.recorder.timeline;
        let queue_bytes = &timeline.row(port)?.queue_bytes;
        let bin = |at: u64| ((at / timeline.width) as usize).min(queue_bytes.len() - 1);
        queue_bytes[bin(from)..=bin(until)].iter().max().copied()
    }

    /// The time for which an output sent payload from one time until another, as far as its bins tell.
    fn busy_during(&self, port: PortIndex, [from, until]: [u64; 2]) -> Option<u64> {
        let timeline = &self.recorder.timeline;
        let bins = timeline.bins();
        let delivered = timeline.row(port)?.delivered_until(bins, self.after.port_payload[port as usize]);
        let bytes: f64 = (0_u64..)
            .zip(&delivered)
            .map(|(bin, &bytes)| {
                let begin = bin * timeline.width;
                let within = until.min(begin + timeline.width).saturating_sub(from.max(begin));
                bytes as f64 * within as f64 / timeline.width as f64
            })
            .sum();
        self.time_to_send(port, bytes as u64)
    }

    /// The time that a link takes for payload, in full frames.
    fn time_to_send(&self, port: PortIndex, payload: u64) -> Option<u64> {
        let frame = u64::from(self.network.frame_bytes);
        let on_wire = payload.saturating_mul(frame + LINK_BYTES) / (frame - HEADER_BYTES).max(1);
        self.network.link(port).rate.checked_time_to_send(Bytes::new(on_wire)).map(Duration::get)
    }

    /// The output on the path of the last answer that held it up longest from one time until another.
    fn fullest_on_the_way(&self, late: &LateTrace, during: [u64; 2]) -> Option<FullestOutput> {
        let is_last_byte = |entry: &&TraceEntry| matches!(entry.step, MessageStep::LastByte);
        let last = late.entries.iter().filter(is_last_byte).max_by_key(|entry| entry.at)?;
        // The collector is the first end. The network was simulated: it has a path for every connection.
        let side = (last.connection as usize, 1);
        let path = find_route(self.scenario, self.network, self.roles, self.connections, side).ok()?;
        let last_hop = path.last().copied();
        let held =
            path.into_iter().filter(|&port| !self.network.is_host(self.network.source(port))).map(|port| {
                let drain = self.queue_during(port, during).and_then(|bytes| {
                    self.network.link(port).rate.checked_time_to_send(Bytes::new(bytes)).map(Duration::get)
                });
                let busy = self.busy_during(port, during);
                let answers =
                    (Some(port) == last_hop).then(|| self.answers_during(late, port, during)).flatten();
                let held = [drain, busy, answers].into_iter().flatten().max().unwrap_or(0);
                FullestOutput { held, drain, port }
            });
        held.max().filter(|fullest| fullest.held > 0)
    }

    /// The time that the answers took on a collector's link, which were complete from one time until another.
    fn answers_during(&self, late: &LateTrace, port: PortIndex, [from, until]: [u64; 2]) -> Option<u64> {
        let answers = late.entries.iter().filter(|entry| entry.step == MessageStep::LastByte).count();
        let complete = late
            .around
            .iter()
            .filter(|entry| entry.step == MessageStep::LastByte && entry.at > from && entry.at <= until);
        let bytes: u64 =
            complete.filter_map(|entry| self.rows.get(entry.event as usize)).map(|row| row.size_bytes).sum();
        self.time_to_send(port, bytes / answers.max(1) as u64)
    }

    /// The other event with most answers that were complete from one time until another, if it has more than the event itself.
    fn main_event_during(late: &LateTrace, [from, until]: [u64; 2]) -> Option<u64> {
        let mut answers: BTreeMap<u32, u64> = BTreeMap::new();
        for entry in &late.around {
            if entry.step == MessageStep::LastByte && entry.at > from && entry.at <= until {
                *answers.entry(entry.event).or_default() += 1;
            }
        }
        let (event, _) = answers.into_iter().max_by_key(|&(event, count)| (count, Reverse(event)))?;
        (event != late.of.event as u32).then_some(u64::from(event))
    }

    /// The causes of an event's lateness, in the order of time, and the share of its time that they explain.
    fn chain(&self, late: &LateTrace, sources: &[LateSource], ideal: u64) -> (Vec<LateCause>, Option<f64>) {
        let mut chain = Vec::new();
        let is_request = |entry: &&TraceEntry| matches!(entry.step, MessageStep::Request);
        let requests: Vec<u64> = late.entries.iter().filter(is_request).map(|entry| entry.at).collect();
        // The collection time begins when the collector makes the requests. With several steps it is the sum over them.
        let begin = late.of.at.saturating_sub(late.of.time).max(late.of.assigned);
        let begin = requests.iter().copied().fold(begin, u64::min);
        let since = |at: u64| Duration::new(at.saturating_sub(begin)).as_millis_f64();
        let ms = |time: u64| Some(Duration::new(time).as_millis_f64());
        let method = self.scenario.shaping.method;
        let has_credits = matches!(method, ShapingMethod::Credits | ShapingMethod::PacedCredits);
        let path = CriticalPath::of(late, begin, has_credits);
        if let (Some(&first), Some(&last)) = (requests.iter().min(), requests.iter().max()) {
            // Earlier events may hold the credits that the first request needs.
            let is_held = has_credits && last.saturating_sub(late.of.assigned) > HELD_MIN.get();
            if is_held || last > first {
                let from = if is_held { begin } else { first };
                chain.push(LateCause {
                    kind: if has_credits { "credit-wait" } else { "request-wait" }.into(),
                    from_ms: since(from),
                    until_ms: since(last),
                    time_ms: ms(path.request_wait),
                    count: Some(requests.iter().filter(|&&at| at > first || is_held).count() as u64),
                    ..LateCause::default()
                });
            }
        }
        let last_source = late
            .entries
            .iter()
            .filter(|entry| entry.step == MessageStep::LastByte)
            .max_by_key(|entry| entry.at);
        let source_name = |connection: u32| self.name(self.connections[connection as usize].nodes[1]);
        if let (Some(&event), Some(last)) = (path.others.last(), last_source)
            && path.others_wait > 0
        {
            chain.push(LateCause {
                kind: "other-answer".into(),
                from_ms: since(path.rest_from.saturating_sub(path.others_wait)),
                until_ms: since(path.rest_from),
                time_ms: ms(path.others_wait),
                event: Some(u64::from(event)),
                count: Some(path.others.len() as u64),
                source: Some(source_name(last.connection)),
                ..LateCause::default()
            });
        }
        let rest = [path.rest_from, late.of.at];
        let fullest = self.fullest_on_the_way(late, rest);
        // Of the rest, its own data take the ideal on an idle network.
        let alone = ideal.min(path.rest);
        let explained = path.rest.min(fullest.map_or(0, |fullest| fullest.held)).max(alone);
        if let Some(FullestOutput { drain, port, .. }) = fullest
            && let added = explained - alone
            && let is_queue = drain.is_some_and(|drain| added <= drain)
            && (is_queue || added > 0)
        {
            chain.push(LateCause {
                kind: if is_queue { "queue" } else { "link" }.into(),
                from_ms: since(path.rest_from),
                until_ms: since(late.of.at),
                time_ms: ms(added),
                event: Self::main_event_during(late, rest),
                port: Some(self.network.port_name(port)),
                queue_bytes: self.queue_during(port, rest).filter(|_| is_queue),
                ..LateCause::default()
            });
        }
        let mut by_port: BTreeMap<PortIndex, u64> = BTreeMap::new();
        for entry in &late.entries {
            if let MessageStep::Loss(port) = entry.step {
                *by_port.entry(port).or_default() += 1;
            }
        }
        let losses: u64 = by_port.values().sum();
        let losing = by_port.into_iter().max_by_key(|&(port, count)| (count, Reverse(port)));
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
        let timers: [(&str, MessageStep, TimesOf<'_>); 2] = [
            ("tail-loss-probe", MessageStep::Probe, &probes),
            ("rto", MessageStep::Timeout, &|source| source.timeouts_ps.clone()),
        ];
        for (kind, step, times) in timers {
            let on_path = |is_own: bool| {
                let own = late.of.event as u32;
                path.stalls.iter().filter(move |stall| stall.step == step && (stall.event == own) == is_own)
            };
            let time = |is_own| on_path(is_own).map(|stall| stall.until - stall.from).sum::<u64>();
            if let Some(longest) = on_path(false).max_by_key(|stall| stall.until - stall.from) {
                let bound = |of: fn(&Stall) -> u64| on_path(false).map(of);
                let lost = late.around.iter().rev().find_map(|entry| match entry.step {
                    MessageStep::Loss(port)
                        if entry.connection == longest.connection && entry.at < longest.until =>
                    {
                        Some(self.network.port_name(port))
                    }
                    _ => None,
                });
                chain.push(LateCause {
                    kind: kind.into(),
                    from_ms: since(bound(|stall| stall.from).min().unwrap_or(0)),
                    until_ms: since(bound(|stall| stall.until).max().unwrap_or(0)),
                    time_ms: ms(time(false)),
                    event: Some(u64::from(longest.event)),
                    count: Some(on_path(false).count() as u64),
                    port: lost,
                    source: Some(source_name(longest.connection)),
                    ..LateCause::default()
                });
            }
            if let Some((first, last, count, struck, source)) = of(times) {
                // The cause lasts from the loss, not from the first timer on.
                let from = on_path(true).map(|stall| stall.from).fold(first, u64::min);
                chain.push(LateCause {
                    kind: kind.into(),
                    from_ms: since(from),
                    until_ms: since(last),
                    time_ms: ms(time(true)),
                    count: Some(count),
                    sources: Some(struck),
                    source,
                    ..LateCause::default()
                });
            }
        }
        let share = 1.0 - (path.rest - explained) as f64 / late.of.time.max(1) as f64;
        (chain, Some(share.clamp(0.0, 1.0)))
    }
}
