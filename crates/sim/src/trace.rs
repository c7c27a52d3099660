//! The trace of messages: a bounded log of the requests, answers, losses and time-outs of the last events, from which the
//! history of an event that was late is taken when it is complete.

use std::collections::VecDeque;

use fanin_network::PortIndex;

use crate::index::{EndIndex, NIL};

/// Entries of the log. The oldest are forgotten.
const ENTRIES_MAX: usize = 1 << 18;

/// A thing that happens to an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TraceKind {
    /// Its collector requests data.
    Request,
    /// The first byte of an answer can be read.
    FirstByte,
    /// An answer is complete.
    LastByte,
    /// A frame was refused.
    Loss,
    /// A retransmission timer expired.
    Timeout,
}

/// One line of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TraceEntry {
    /// In picoseconds.
    pub(crate) at: u64,
    event: u32,
    pub(crate) connection: u32,
    /// Where a frame was refused; [`NIL`] for everything else.
    pub(crate) port: PortIndex,
    pub(crate) what: TraceKind,
}

/// An event that is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CollectedEvent {
    pub(crate) event: u64,
    /// When it was assigned, when it was complete, and its collection time, in picoseconds.
    pub(crate) assigned: u64,
    pub(crate) at: u64,
    pub(crate) time: u64,
}

/// A late event with its history.
pub(crate) struct LateTrace {
    pub(crate) of: CollectedEvent,
    pub(crate) entries: Vec<TraceEntry>,
}

/// See the [module](self).
#[derive(Default)]
pub(crate) struct MessageTrace {
    log: VecDeque<TraceEntry>,
    /// Events that were assigned before are not considered.
    pub(crate) from: u64,
    pub(crate) late: Option<LateTrace>,
}

impl MessageTrace {
    /// Notes what happens to an event on the connection of an end.
    #[inline(never)]
    pub(crate) fn note(&mut self, at: u64, event: u64, end: EndIndex, what: TraceKind) {
        self.push(TraceEntry { at, event: event as u32, connection: end / 2, port: NIL, what });
    }

    /// Notes that an output refused a frame of an event.
    pub(crate) fn note_loss(&mut self, at: u64, event: u64, end: EndIndex, port: PortIndex) {
        self.push(TraceEntry { at, event: event as u32, connection: end / 2, port, what: TraceKind::Loss });
    }

    fn push(&mut self, entry: TraceEntry) {
        if self.log.len() == ENTRIES_MAX {
            self.log.pop_front();
        }
        self.log.push_back(entry);
    }

    /// Takes the history of an event that took longer than all before. One that is longer by less than a twentieth does not
    /// count, so that times which creep up cost little.
    pub(crate) fn consider(&mut self, collected: CollectedEvent) {
        let longest = self.late.as_ref().map_or(0, |late| late.of.time);
        if collected.assigned < self.from || collected.time <= longest + longest / 20 {
            return;
        }
        let first = self.log.partition_point(|entry| entry.at < collected.assigned);
        let event = collected.event as u32;
        let entries = self.log.range(first..).filter(|entry| entry.event == event).copied().collect();
        self.late = Some(LateTrace { of: collected, entries });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_event_keeps_its_history() {
        let mut trace = MessageTrace { from: 10, ..MessageTrace::default() };
        let collected = |event, assigned, at| CollectedEvent { event, assigned, at, time: at - assigned };
        for event in 0..4 {
            let begin = event * 100;
            trace.note(begin, event, 6, TraceKind::Request);
            trace.note(begin + 5, event, 6, TraceKind::LastByte);
        }
        trace.consider(collected(0, 0, 90));
        assert!(trace.late.is_none(), "assigned in the warm-up");
        trace.consider(collected(1, 100, 150));
        trace.consider(collected(2, 200, 250));
        trace.note_loss(320, 3, 6, 9);
        trace.consider(collected(3, 300, 380));
        let late = trace.late.unwrap();
        assert_eq!((late.of.event, late.entries.len()), (3, 3));
        assert_eq!((late.entries[2].connection, late.entries[2].port), (3, 9));
    }

    #[test]
    fn the_log_is_bounded() {
        let mut trace = MessageTrace::default();
        for at in 0..ENTRIES_MAX as u64 + 10 {
            trace.note(at, 1, 0, TraceKind::Request);
        }
        assert_eq!((trace.log.len(), trace.log[0].at), (ENTRIES_MAX, 10));
    }
}
