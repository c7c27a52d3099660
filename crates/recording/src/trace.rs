//! The trace of messages: a bounded log of the requests, answers, losses, timeouts and probes of the last events. The
//! history of a late event is taken from this log when the event is complete.

use std::collections::{BTreeSet, VecDeque};

use fanin_network::PortIndex;

/// Most entries of the log; the oldest are removed first.
const ENTRIES_MAX: usize = 1 << 18;

/// A step of an event's message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageStep {
    /// The event's collector requests data.
    Request,
    /// The first byte of an answer can be read.
    FirstByte,
    /// An answer is complete.
    LastByte,
    /// This output dropped a frame.
    Loss(PortIndex),
    /// A frame was lost on the link of this port.
    LinkLoss(PortIndex),
    /// A retransmission timer expired.
    Timeout,
    /// The probe timeout expired: a tail loss probe is sent.
    Probe,
}

impl MessageStep {
    /// Returns the output that dropped a frame, or whose link lost it; `None` for the other steps.
    pub(crate) const fn losing_port(self) -> Option<PortIndex> {
        match self {
            Self::Loss(port) | Self::LinkLoss(port) => Some(port),
            _ => None,
        }
    }
}

/// An entry of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TraceEntry {
    /// Time of the step, in picoseconds.
    pub(crate) at: u64,
    pub(crate) event: u32,
    pub(crate) connection: u32,
    pub(crate) step: MessageStep,
}

/// A completed event. Times are in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectedEvent {
    /// The number of the event.
    pub event: u64,
    /// Time of the event's assignment.
    pub assigned: u64,
    /// Time of the event's completion.
    pub at: u64,
    /// The event's collection time.
    pub time: u64,
    /// The least time that the event can take; `None` if unknown.
    pub ideal: Option<u64>,
}

impl CollectedEvent {
    /// Returns the collection time over the ideal. An event without an ideal ranks by its collection time, below all events
    /// with an ideal.
    fn slowdown(&self) -> f64 {
        const UNKNOWN: f64 = 1e-24;
        let time = self.time as f64;
        self.ideal.map_or(time * UNKNOWN, |ideal| time / ideal as f64)
    }
}

/// A late event with its history.
#[derive(Clone)]
pub(crate) struct LateTrace {
    pub(crate) of: CollectedEvent,
    /// The entries of the event.
    pub(crate) entries: Vec<TraceEntry>,
    /// The entries of all events on the event's connections, from the begin of the log until the event was complete.
    pub(crate) around: Vec<TraceEntry>,
    /// The entries of all connections, over the same time.
    pub(crate) all: Vec<TraceEntry>,
}

impl LateTrace {
    /// Takes the history of an event from the log until the event was complete.
    pub(crate) fn new(of: CollectedEvent, all: Vec<TraceEntry>) -> Self {
        let event = of.event as u32;
        let since = &all[all.partition_point(|entry| entry.at < of.assigned)..];
        let entries: Vec<TraceEntry> = since.iter().filter(|entry| entry.event == event).copied().collect();
        let connections = entries.iter().map(|entry| entry.connection as usize);
        let mut is_its = vec![false; connections.clone().max().map_or(0, |most| most + 1)];
        connections.for_each(|connection| is_its[connection] = true);
        let is_around = |entry: &&TraceEntry| is_its.get(entry.connection as usize) == Some(&true);
        let around = all.iter().filter(is_around).copied().collect();
        Self { of, entries, around, all }
    }

    /// Returns the entry of the last byte of the event's last answer.
    pub(crate) fn last_byte(&self) -> Option<&TraceEntry> {
        self.entries.iter().filter(|entry| entry.step == MessageStep::LastByte).max_by_key(|entry| entry.at)
    }
}

/// Returns the entries after `from` and up to `until`; `entries` are in the order of time.
pub(crate) fn between(entries: &[TraceEntry], [from, until]: [u64; 2]) -> &[TraceEntry] {
    let until = entries.partition_point(|entry| entry.at <= until);
    let from = entries.partition_point(|entry| entry.at <= from);
    &entries[from.min(until)..until]
}

/// A late event with the log until it was complete.
struct SavedLog {
    of: CollectedEvent,
    log: Vec<TraceEntry>,
}

/// The log of messages, with the slowest event; see the [module](self).
pub(crate) struct MessageTrace {
    log: VecDeque<TraceEntry>,
    /// Events assigned before this time are ignored.
    from: u64,
    late: Option<SavedLog>,
    /// The event with the largest slowdown, if that exceeds the slowdown of `late` by at most a fifth. Its history is still in
    /// the log.
    slowest: Option<CollectedEvent>,
    /// Events that lost a frame. A loss counts for the event of the first incomplete answer on its connection.
    losing: BTreeSet<u32>,
    /// Time of the newest entry when the history of `slowest` was last saved from removal.
    taken_at: u64,
}

impl MessageTrace {
    pub(crate) fn new(from: u64) -> Self {
        // Room for a short run, which is then never copied to grow.
        let log = VecDeque::with_capacity(ENTRIES_MAX / 8);
        Self { log, from, late: None, slowest: None, losing: BTreeSet::new(), taken_at: 0 }
    }

    /// Records a step of an event's message on the connection of an end.
    pub(crate) fn note(&mut self, at: u64, event: u64, end: u32, step: MessageStep) {
        if self.log.len() == ENTRIES_MAX {
            if self.slowest.is_some() {
                self.keep_slowest();
            }
            self.log.pop_front();
        }
        if step.losing_port().is_some() {
            self.losing.insert(event as u32);
        }
        self.log.push_back(TraceEntry { at, event: event as u32, connection: end / 2, step });
    }

    /// Saves the history of the slowest event, if the oldest entry, which is removed next, is not earlier than the event's
    /// assignment. An event that exceeds the saved one by less than a twentieth is saved at most once for a whole log, which
    /// bounds the cost.
    #[cold]
    fn keep_slowest(&mut self) {
        let (oldest, newest) = (self.log[0].at, self.log[self.log.len() - 1].at);
        let saved = self.saved_slowdown();
        if let Some(slowest) = self.slowest.take_if(|slowest| slowest.assigned <= oldest)
            && (oldest > self.taken_at || self.taken_at == 0 || slowest.slowdown() > saved * 1.05)
        {
            self.save(slowest);
            self.taken_at = newest;
        }
    }

    fn saved_slowdown(&self) -> f64 {
        self.late.as_ref().map_or(0.0, |late| late.of.slowdown())
    }

    /// Considers a completed event. If its slowdown exceeds the saved event's by more than a fifth, saves its history at once.
    /// An event with a smaller excess is only remembered, so that rising times cost little.
    pub(crate) fn consider(&mut self, collected: CollectedEvent) {
        let saved = self.saved_slowdown();
        let largest = self.slowest.map_or(saved, |slowest| slowest.slowdown());
        let slowdown = collected.slowdown();
        if collected.assigned < self.from || slowdown <= largest {
            return;
        }
        if slowdown <= saved * 1.2 {
            self.slowest = Some(collected);
        } else {
            self.slowest = None;
            self.save(collected);
        }
    }

    /// Returns true if a frame of the event was dropped.
    pub(crate) fn is_losing(&self, event: u64) -> bool {
        self.losing.contains(&(event as u32))
    }

    /// Returns the event with the largest slowdown, with its history; `None` before any event is complete.
    pub(crate) fn latest(&self) -> Option<LateTrace> {
        if let Some(slowest) = self.slowest {
            return Some(LateTrace::new(slowest, self.log_until(slowest, Vec::new())));
        }
        self.late.as_ref().map(|saved| LateTrace::new(saved.of, saved.log.clone()))
    }

    /// Saves the log of a complete event. Copies it whole: the entries that matter are selected after the run.
    fn save(&mut self, of: CollectedEvent) {
        let memory = self.late.take().map_or_else(Vec::new, |saved| saved.log);
        self.late = Some(SavedLog { of, log: self.log_until(of, memory) });
    }

    /// Copies the log until an event was complete into `memory`, and returns the copy.
    fn log_until(&self, of: CollectedEvent, mut memory: Vec<TraceEntry>) -> Vec<TraceEntry> {
        let until = self.log.partition_point(|entry| entry.at <= of.at);
        let (first, second) = self.log.as_slices();
        memory.clear();
        memory.reserve(until);
        memory.extend_from_slice(&first[..until.min(first.len())]);
        memory.extend_from_slice(&second[..until.saturating_sub(first.len())]);
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_for_its_ideal_is_the_latest() {
        let mut trace = MessageTrace::new(0);
        let collected = |event, time, ideal| {
            let assigned = 1000 * event;
            CollectedEvent { event, assigned, at: assigned + time, time, ideal }
        };
        trace.consider(collected(1, 900, None));
        trace.consider(collected(2, 400, Some(350)));
        trace.consider(collected(3, 100, Some(20)));
        trace.consider(collected(4, 500, Some(400)));
        trace.consider(collected(5, 990, None));
        assert_eq!(trace.latest().unwrap().of.event, 3);
    }

    #[test]
    fn the_longest_event_keeps_its_history() {
        let mut trace = MessageTrace::new(10);
        let collected = |event, assigned, at| CollectedEvent {
            event,
            assigned,
            at,
            time: at - assigned,
            ideal: Some(10),
        };
        for event in 0..4 {
            let begin = event * 100;
            trace.note(begin, event, 6, MessageStep::Request);
            trace.note(begin + 5, event, 6, MessageStep::LastByte);
        }
        trace.consider(collected(0, 0, 90));
        assert!(trace.latest().is_none(), "assigned in the warm-up");
        trace.consider(collected(1, 100, 150));
        trace.consider(collected(2, 200, 250));
        trace.note(320, 3, 6, MessageStep::Loss(9));
        trace.consider(collected(3, 300, 380));
        let late = trace.latest().unwrap();
        assert_eq!((late.of.event, late.entries.len()), (3, 3));
        assert_eq!([2, 3].map(|event| trace.is_losing(event)), [false, true]);
        assert_eq!((late.entries[2].connection, late.entries[2].step), (3, MessageStep::Loss(9)));
    }

    #[test]
    fn a_slightly_longer_event_is_the_latest_as_long_as_it_is_known() {
        let mut trace = MessageTrace::new(0);
        let collected = |event, time| CollectedEvent {
            event,
            assigned: 1000 * event,
            at: 1000 * event + time,
            time,
            ideal: Some(10),
        };
        for (event, time) in [(1, 100), (2, 104), (3, 103)] {
            trace.note(1000 * event + 1, event, 6, MessageStep::Request);
            trace.consider(collected(event, time));
        }
        let late = trace.latest().unwrap();
        assert_eq!((late.of.event, late.entries.len()), (2, 1));
        // Its history is saved before the log removes it.
        for at in 0..ENTRIES_MAX as u64 {
            trace.note(10_000 + at, 9, 0, MessageStep::Request);
        }
        let late = trace.latest().unwrap();
        assert_eq!((late.of.event, late.entries.len(), trace.log[0].event), (2, 1, 9));
    }

    #[test]
    fn the_log_is_bounded() {
        let mut trace = MessageTrace::new(0);
        for at in 0..ENTRIES_MAX as u64 + 10 {
            trace.note(at, 1, 0, MessageStep::Request);
        }
        assert_eq!((trace.log.len(), trace.log[0].at), (ENTRIES_MAX, 10));
    }
}
