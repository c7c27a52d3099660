//! The rest of a late event's time, and its causes.
//!
//! The rest lasts from the request of the last answer until its last byte. The rest begins later if answers of other events are
//! in front. Its causes are the outputs on the way, the hosts' own outputs, frames sent again, and a technique that holds data
//! back.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fanin_network::{NodeIndex, PortIndex, SegmentFraming, find_route};
use fanin_report::LateCause;
use fanin_units::{Bytes, Duration, Rate};

use crate::critical_path::CriticalPath;
use crate::picture::Finished;
use crate::trace::{LateTrace, MessageStep, TraceEntry, between};

/// An output that held up an answer.
#[derive(Clone, Copy)]
struct FullestOutput {
    /// Longest time for which the output can have held up the answer, in picoseconds.
    held: u64,
    /// The time that the output takes for its largest queue, in picoseconds; `None` if the queue was not recorded.
    drain: Option<u64>,
    /// The largest queue, in bytes.
    queue_bytes: Option<u64>,
    port: PortIndex,
    /// The rate of the collector's ring, if that is less than the link's.
    ring: Option<Rate>,
}

/// The causes of the rest.
#[derive(Default)]
pub(crate) struct RestCauses {
    /// The rest's begin and end, in picoseconds.
    during: [u64; 2],
    pub(crate) causes: Vec<LateCause>,
    /// The time in which frames of the last answer that had been dropped were sent again, in picoseconds.
    pub(crate) repair: u64,
    /// The rest that has no cause, in picoseconds.
    pub(crate) unexplained: u64,
}

impl RestCauses {
    /// Takes at most `held` from the unexplained rest; returns the part taken.
    fn take(&mut self, held: u64) -> u64 {
        let added = self.unexplained.min(held);
        self.unexplained -= added;
        added
    }

    /// Adds a cause that explains at most `held`. A queue is named even if it explains nothing.
    fn add(&mut self, held: u64, cause: LateCause, since: &dyn Fn(u64) -> f64) {
        let added = self.take(held);
        if added > 0 || cause.queue_bytes.is_some() {
            let [from_ms, until_ms] = self.during.map(since);
            let time_ms = Some(Duration::new(added).as_millis_f64());
            self.causes.push(LateCause { from_ms, until_ms, time_ms, ..cause });
        }
    }
}

impl Finished<'_> {
    /// Finds the causes of the rest of a path, of which the data alone take `ideal` at most. `since` converts a time for the
    /// report.
    pub(crate) fn rest_causes(
        &self,
        late: &LateTrace,
        path: &CriticalPath,
        ideal: u64,
        since: &dyn Fn(u64) -> f64,
    ) -> RestCauses {
        let during = [path.rest_from, late.of.at];
        let alone = ideal.min(path.rest);
        let mut found = RestCauses { during, unexplained: path.rest - alone, ..RestCauses::default() };
        let Some(last) = late.last_byte() else { return found };
        // The collector is the first end. The network was simulated: it has a path for every connection.
        let side = (last.connection as usize, 1);
        let way = find_route(self.scenario, self.network, self.roles, self.connections, side);
        let way = way.unwrap_or_default();
        if let Some(fullest) = self.fullest(late, &way, last.connection, during) {
            let held = fullest.held.saturating_sub(alone);
            let is_queue = fullest.drain.is_some_and(|drain| found.unexplained.min(held) <= drain);
            let kind = match fullest.ring {
                Some(_) => "ring",
                None if is_queue => "queue",
                None => "link",
            };
            let cause = LateCause {
                kind: kind.into(),
                event: Self::main_event_during(late, during),
                port: Some(self.network.port_name(fullest.port)),
                queue_bytes: fullest.queue_bytes.filter(|_| is_queue),
                rate_bps: fullest.ring.map(Rate::get),
                ..LateCause::default()
            };
            found.add(held, cause, since);
        }
        let holding = self.holding_cause();
        // A source's answers to other collectors share its output. A collector's requests share its host's output with that
        // host's answers.
        if holding.is_none() && found.unexplained > 0 {
            let nodes = self.connections[last.connection as usize].nodes;
            let side = (last.connection as usize, 0);
            let back = find_route(self.scenario, self.network, self.roles, self.connections, side);
            let outputs = [way.first().copied(), back.unwrap_or_default().first().copied()];
            for (node, output) in [nodes[1], nodes[0]].into_iter().zip(outputs) {
                if let Some(port) = output {
                    let cause = LateCause {
                        kind: "link".into(),
                        port: Some(self.network.port_name(port)),
                        ..LateCause::default()
                    };
                    found.add(self.sent_during(late, node, port, during), cause, since);
                }
            }
        }
        if holding.is_none() && self.delays_answers() {
            let source = self.name(self.connections[last.connection as usize].nodes[1]);
            let cause =
                LateCause { kind: "response-delay".into(), source: Some(source), ..LateCause::default() };
            found.add(Self::wait_for_first_byte(late, last.connection, during[0]), cause, since);
        }
        let is_loss =
            |entry: &&TraceEntry| entry.step.losing_port().is_some() && entry.connection == last.connection;
        let lost = late.entries.iter().find(is_loss).map(|entry| entry.at.max(during[0]));
        found.repair = found.take(lost.map_or(0, |lost| during[1].saturating_sub(lost)));
        if let Some((kind, awaited)) = holding {
            let awaited = Some(awaited.to_owned());
            found.add(u64::MAX, LateCause { kind: kind.into(), awaited, ..LateCause::default() }, since);
        }
        found
    }

    /// Returns true if sources take time to answer. An ideal counts the shortest of an event's delays alone.
    fn delays_answers(&self) -> bool {
        let (readout, workload) = (&self.scenario.readout, &self.scenario.workload);
        let delays = [readout.response_delay, readout.response_delay_sd, workload.service_delay_max];
        delays.into_iter().any(|delay| !delay.is_zero())
    }

    /// Returns the time from the begin of the rest until the first byte of a connection's answer; zero if a frame was lost
    /// before.
    fn wait_for_first_byte(late: &LateTrace, connection: u32, from: u64) -> u64 {
        let own = || late.entries.iter().filter(|entry| entry.connection == connection);
        let first = own().find(|entry| entry.step == MessageStep::FirstByte).map_or(0, |entry| entry.at);
        let is_lost = own().any(|entry| entry.step.losing_port().is_some() && entry.at < first);
        if is_lost { 0 } else { first.saturating_sub(from) }
    }

    /// Returns the cause of time that passes in no queue, if a technique holds data back at hosts. `None` with random delays of
    /// answers, which may be the cause themselves.
    fn holding_cause(&self) -> Option<(&'static str, &'static str)> {
        self.recorder.holding.cause.filter(|_| self.scenario.readout.response_delay_sd.is_zero())
    }

    /// Returns the switch output on the path `way` that can have held up the last answer longest within `during`.
    fn fullest(
        &self,
        late: &LateTrace,
        way: &[PortIndex],
        connection: u32,
        during: [u64; 2],
    ) -> Option<FullestOutput> {
        let connection = &self.connections[connection as usize];
        let outputs = way.iter().filter_map(|&port| {
            self.network.switch(self.network.source(port))?;
            let limited = self.network.ring(port, connection, 1).zip(self.network.ring_rate(port));
            let is_last = Some(&port) == way.last();
            let rate = limited.map_or(self.network.link(port).rate, |(_, rate)| rate);
            let ring = limited.map(|(host, _)| host);
            let queue_bytes = match ring {
                Some(host) => self.ring_during(port, host, during),
                None => self.queue_during(port, during),
            };
            let drain =
                queue_bytes.and_then(|bytes| rate.checked_time_to_send(Bytes::new(bytes))).map(Duration::get);
            // Frames of other rings do not hold up this ring.
            let busy = self.busy_during(port, during).filter(|_| ring.is_none());
            let answers =
                (is_last || ring.is_some()).then(|| self.answers_during(late, rate, during)).flatten();
            let held = [drain, busy, answers].into_iter().flatten().max().unwrap_or(0);
            Some(FullestOutput { held, drain, queue_bytes, port, ring: ring.map(|_| rate) })
        });
        outputs.max_by_key(|output| (output.held, output.drain, output.port)).filter(|output| output.held > 0)
    }

    /// Returns an output's largest queue within `during`, in bytes; `None` if the queue was not recorded.
    fn queue_during(&self, port: PortIndex, during: [u64; 2]) -> Option<u64> {
        self.largest(&self.recorder.timeline.row(port)?.queue_bytes, during)
    }

    /// Returns the largest occupancy of the ring for a host within `during`, in bytes; `None` if the ring was not recorded.
    fn ring_during(&self, port: PortIndex, host: u32, during: [u64; 2]) -> Option<u64> {
        let rings = self.recorder.timeline.rings.of(port);
        let (_, bins) = rings.into_iter().find(|(of, _)| *of == host)?;
        self.largest(bins, during)
    }

    /// Returns the largest value of the bins from `from` until `until`.
    fn largest(&self, bins: &[u64], [from, until]: [u64; 2]) -> Option<u64> {
        let bin = |at: u64| ((at / self.recorder.timeline.width) as usize).min(bins.len() - 1);
        bins[bin(from)..=bin(until)].iter().max().copied()
    }

    /// Returns the time for which an output sent payload from `from` until `until`, by the payload of its bins; `None` without
    /// bins.
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
        self.time_to_send(self.network.link(port).rate, bytes as u64)
    }

    /// Returns the time in picoseconds that a link or a ring of this rate takes for payload, sent as one message.
    fn time_to_send(&self, rate: Rate, payload: u64) -> Option<u64> {
        let segments = SegmentFraming::of(&self.scenario.transport, self.network.framing);
        rate.checked_time_to_send(segments.message(Bytes::new(payload)).wire).map(Duration::get)
    }

    /// Returns the time at this rate for the answers to the collector that became complete within `during`.
    fn answers_during(&self, late: &LateTrace, rate: Rate, during: [u64; 2]) -> Option<u64> {
        self.time_to_send(rate, self.answer_bytes(late, between(&late.around, during).iter()))
    }

    /// Returns the time that a host's output took for answers to other events, which became complete within `during`.
    fn sent_during(&self, late: &LateTrace, node: NodeIndex, port: PortIndex, during: [u64; 2]) -> u64 {
        let own = late.of.event as u32;
        let sent = between(&late.all, during).iter().filter(|entry| {
            entry.event != own && self.connections[entry.connection as usize].nodes[1] == node
        });
        let bytes = self.answer_bytes(late, sent);
        self.time_to_send(self.network.link(port).rate, bytes).unwrap_or(0)
    }

    /// Returns the payload of the answers that these entries complete. All events have as many answers as the late one.
    fn answer_bytes<'a>(&self, late: &LateTrace, entries: impl Iterator<Item = &'a TraceEntry>) -> u64 {
        let answers = late.entries.iter().filter(|entry| entry.step == MessageStep::LastByte).count();
        let complete = entries.filter(|entry| entry.step == MessageStep::LastByte);
        let bytes: u64 =
            complete.filter_map(|entry| self.rows.get(entry.event as usize)).map(|row| row.size_bytes).sum();
        bytes / answers.max(1) as u64
    }

    /// Returns the event with most answers complete within `during`; `None` if that is the late event itself.
    fn main_event_during(late: &LateTrace, during: [u64; 2]) -> Option<u64> {
        let mut answers: BTreeMap<u32, u64> = BTreeMap::new();
        for entry in between(&late.around, during) {
            if entry.step == MessageStep::LastByte {
                *answers.entry(entry.event).or_default() += 1;
            }
        }
        let (event, _) = answers.into_iter().max_by_key(|&(event, count)| (count, Reverse(event)))?;
        (event != late.of.event as u32).then_some(u64::from(event))
    }
}
