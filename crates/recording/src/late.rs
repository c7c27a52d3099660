//! The late event: its sources, and the causes of its lateness in order of time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fanin_network::PortIndex;
use fanin_report::{LateCause, LateEvent, LateSource, LateStall};
use fanin_units::Duration;

use crate::critical_path::{CriticalPath, Stall, stalls};
use crate::picture::Finished;
use crate::trace::{LateTrace, MessageStep, TraceEntry};

/// Most sources of a late event that are kept: the last ones to finish.
const LATE_SOURCES_MAX: usize = 512;
/// Delay from which a request counts as held back: a message of the supervisor arrives sooner.
const HELD_MIN: Duration = Duration::from_millis(1);
/// Least slowdown of a late event; an event with a smaller slowdown is not late, and has no causes.
const LATE_MIN: f64 = 1.5;
/// Most losses, timeouts and probes that are kept of each source.
const MARKS_MAX: usize = 64;

/// Reads the times of one kind from a source.
type TimesOf<'a> = &'a dyn Fn(&LateSource) -> Vec<u64>;

impl Finished<'_> {
    /// Returns the late event with its sources and the causes of its lateness.
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
                MessageStep::Loss(_) | MessageStep::LinkLoss(_) => keep(&mut source.losses_ps),
                MessageStep::Timeout => keep(&mut source.timeouts_ps),
                MessageStep::Probe => keep(&mut source.probes_ps),
            }
        }
        // Timers of other events that hold up these sources' connections.
        for stall in stalls(&late.around) {
            let is_other = stall.event != late.of.event as u32 && stall.until > late.of.assigned;
            if let Some(source) = sources.get_mut(&stall.connection).filter(|_| is_other)
                && source.held_by.len() < MARKS_MAX
            {
                source.held_by.push(LateStall {
                    event: u64::from(stall.event),
                    from_ps: stall.from.max(late.of.assigned),
                    until_ps: stall.until,
                    is_probe: stall.step == MessageStep::Probe,
                });
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

    /// Returns the causes of an event's lateness in the order of time, and the share of the event's time that these causes
    /// explain.
    fn chain(&self, late: &LateTrace, sources: &[LateSource], ideal: u64) -> (Vec<LateCause>, Option<f64>) {
        let mut chain = Vec::new();
        let is_request = |entry: &&TraceEntry| matches!(entry.step, MessageStep::Request);
        let requests: Vec<u64> = late.entries.iter().filter(is_request).map(|entry| entry.at).collect();
        // The collection time begins when the collector makes the requests. With several steps, the collection time is the sum
        // over the steps.
        let begin = late.of.at.saturating_sub(late.of.time).max(late.of.assigned);
        let begin = requests.iter().copied().fold(begin, u64::min);
        let since = |at: u64| Duration::new(at.saturating_sub(begin)).as_millis_f64();
        let ms = |time: u64| Some(Duration::new(time).as_millis_f64());
        let has_credits = self.recorder.holding.by_credit;
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
        let source_name = |connection: u32| self.name(self.connections[connection as usize].nodes[1]);
        if let (Some(&event), Some(last)) = (path.others.last(), late.last_byte())
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
        let rest = self.rest_causes(late, &path, ideal, &since);
        chain.extend(rest.causes);
        // Losses on the link and in the queue of a port count apart.
        let mut by_port: BTreeMap<(PortIndex, bool), u64> = BTreeMap::new();
        for entry in &late.entries {
            if let Some(port) = entry.step.losing_port() {
                *by_port.entry((port, matches!(entry.step, MessageStep::LinkLoss(_)))).or_default() += 1;
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
                kind: if losing.is_some_and(|((_, is_link), _)| is_link) { "link-loss" } else { "loss" }
                    .into(),
                from_ms: since(first),
                until_ms: since(last),
                time_ms: ms(rest.repair).filter(|_| rest.repair > 0),
                count: Some(losses),
                sources: Some(struck),
                port: losing.map(|((port, _), _)| self.network.port_name(port)),
                ..LateCause::default()
            });
        }
        // A probe of a source without losses repairs nothing: the source's answer waits in a queue.
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
                let before =
                    |entry: &&TraceEntry| entry.connection == longest.connection && entry.at < longest.until;
                let lost = late.around.iter().rev().filter(before).find_map(|entry| entry.step.losing_port());
                chain.push(LateCause {
                    kind: kind.into(),
                    from_ms: since(bound(|stall| stall.from).min().unwrap_or(0)),
                    until_ms: since(bound(|stall| stall.until).max().unwrap_or(0)),
                    time_ms: ms(time(false)),
                    event: Some(u64::from(longest.event)),
                    count: Some(on_path(false).count() as u64),
                    port: lost.map(|port| self.network.port_name(port)),
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
        let share = 1.0 - rest.unexplained as f64 / late.of.time.max(1) as f64;
        (chain, Some(share.clamp(0.0, 1.0)))
    }
}
