//! The critical path of a late event, from its last byte back to its begin.
//!
//! The path leads from the last byte to the request of that answer. From there it leads to the answer that freed the credits of this
//! request, and so on. The parts of the path add up to the time of the event.

use std::collections::{BTreeMap, BTreeSet};

use crate::trace::{LateTrace, MessageStep, TraceEntry};

/// A time without data on a connection: from a loss until the timer or the probe that repairs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    pub(crate) from: u64,
    pub(crate) until: u64,
    /// [`MessageStep::Timeout`] or [`MessageStep::Probe`].
    pub(crate) step: MessageStep,
    pub(crate) connection: u32,
    /// The first event whose answer was not complete.
    pub(crate) event: u32,
}

/// The parts of a critical path. Times are in picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CriticalPath {
    /// Time before the request of the last answer, without the stalls of the answers that it waited for.
    pub(crate) request_wait: u64,
    /// The stalls on the path, each as long as it delayed the event.
    pub(crate) stalls: Vec<Stall>,
    /// Time behind answers of earlier events on the connection of the last answer.
    pub(crate) earlier_wait: u64,
    /// The events of these answers, in the order of their last bytes.
    pub(crate) earlier: Vec<u32>,
    /// The begin of the rest: the last answer is on its way, and no earlier one is in front on its connection.
    pub(crate) rest_from: u64,
    /// The rest without stalls.
    pub(crate) rest: u64,
}

/// A complete answer.
#[derive(Clone, Copy)]
struct CompleteAnswer {
    at: u64,
    connection: u32,
    event: u32,
    /// Its place among the answers of its event on its connection.
    place: usize,
}

impl CriticalPath {
    /// The path of an event that began at `begin`. If any event can hold its credits, any answer can free them.
    pub(crate) fn of(late: &LateTrace, begin: u64, has_credits: bool) -> Self {
        let own = late.of.event as u32;
        let mut requests: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
        let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        let mut answers = Vec::new();
        for entry in &late.around {
            let of = (entry.connection, entry.event);
            match entry.step {
                MessageStep::Request => requests.entry(of).or_default().push(entry.at),
                MessageStep::LastByte => {
                    let count = counts.entry(of).or_default();
                    let TraceEntry { at, connection, event, .. } = *entry;
                    answers.push(CompleteAnswer { at, connection, event, place: *count });
                    *count += 1;
                }
                _ => {}
            }
        }
        let mut path = Self { rest_from: begin, ..Self::default() };
        let Some(mut index) = answers.iter().rposition(|answer| answer.event == own) else { return path };
        let last = answers[index];
        let stalls = stalls(&late.around);
        loop {
            let answer = answers[index];
            let of = (answer.connection, answer.event);
            let known: &[u64] = requests.get(&of).map_or(&[], Vec::as_slice);
            // Of an earlier event, the first requests were sent before this event was assigned.
            let unknown = counts[&of].saturating_sub(known.len());
            let request = answer.place.checked_sub(unknown).and_then(|place| known.get(place));
            let start = request.map_or(begin, |&at| at.max(begin));
            let mut stalled = 0;
            for stall in stalls.iter().filter(|stall| stall.connection == answer.connection) {
                let (from, until) = (stall.from.max(start), stall.until.min(answer.at));
                if from < until {
                    stalled += until - from;
                    path.stalls.push(Stall { from, until, ..*stall });
                }
            }
            if answer.at == last.at && answer.connection == last.connection {
                path.split_last(&answers, answer, start);
            } else {
                path.request_wait += (answer.at - start).saturating_sub(stalled);
            }
            let freed = answers[..index]
                .iter()
                .rposition(|one| one.at <= start && one.at > begin && (has_credits || one.event == own));
            let Some(freed) = freed.filter(|_| start > begin) else {
                path.request_wait += start - begin;
                return path;
            };
            path.request_wait += start - answers[freed].at;
            index = freed;
        }
    }

    /// Splits the time of the last answer since its request at `start`: behind earlier answers, and the rest.
    fn split_last(&mut self, answers: &[CompleteAnswer], last: CompleteAnswer, start: u64) {
        let in_front = |one: &&CompleteAnswer| {
            one.connection == last.connection
                && one.event != last.event
                && one.at > start
                && one.at <= last.at
        };
        let mut seen = BTreeSet::new();
        self.rest_from = start;
        for answer in answers.iter().filter(in_front) {
            self.rest_from = answer.at;
            if seen.insert(answer.event) {
                self.earlier.push(answer.event);
            }
        }
        let stalled = |from: u64, until: u64| -> u64 {
            let within = self.stalls.iter().map(|stall| {
                let end = stall.until.min(until);
                end.saturating_sub(stall.from.max(from))
            });
            within.sum()
        };
        self.earlier_wait = (self.rest_from - start).saturating_sub(stalled(start, self.rest_from));
        self.rest = (last.at - self.rest_from).saturating_sub(stalled(self.rest_from, last.at));
    }
}

/// The stalls of all connections. A timer that expires without a loss before it is no stall: its segments wait in a queue.
fn stalls(entries: &[TraceEntry]) -> Vec<Stall> {
    #[derive(Default)]
    struct StallSearch {
        lost: Option<u64>,
        /// The last data that arrived, or the last timer.
        at: u64,
        has_timer: bool,
    }
    let mut connections: BTreeMap<u32, StallSearch> = BTreeMap::new();
    let mut stalls = Vec::new();
    for entry in entries {
        let &TraceEntry { at, event, connection, step } = entry;
        let progress = connections.entry(connection).or_default();
        match step {
            MessageStep::Request => {}
            MessageStep::Loss(_) => progress.lost = Some(at),
            MessageStep::FirstByte | MessageStep::LastByte => {
                progress.at = at;
                // Data that arrive after a timer are those that it sent again.
                if std::mem::take(&mut progress.has_timer) {
                    progress.lost = None;
                }
            }
            MessageStep::Timeout | MessageStep::Probe => {
                if let Some(lost) = progress.lost {
                    let from = lost.max(progress.at);
                    stalls.push(Stall { from, until: at, step, connection, event });
                    progress.has_timer = true;
                    progress.at = at;
                }
            }
        }
    }
    stalls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::CollectedEvent;
    use MessageStep::{FirstByte, LastByte, Loss, Request, Timeout};

    /// An event 2 that was assigned at 100, with the entries of all events (time, event, connection, step).
    fn late(at: u64, entries: &[(u64, u32, u32, MessageStep)]) -> LateTrace {
        let around: Vec<TraceEntry> = entries
            .iter()
            .map(|&(at, event, connection, step)| TraceEntry { at, event, connection, step })
            .collect();
        let entries = around.iter().filter(|entry| entry.event == 2).copied().collect();
        let of = CollectedEvent { event: 2, assigned: 100, at, time: at - 100, ideal: Some(10) };
        LateTrace { of, entries, around }
    }

    fn sum(path: &CriticalPath) -> u64 {
        let stalled: u64 = path.stalls.iter().map(|stall| stall.until - stall.from).sum();
        path.request_wait + stalled + path.earlier_wait + path.rest
    }

    #[test]
    fn a_timer_of_an_earlier_event_on_the_connection_is_found() {
        // Event 1 lost a frame before event 2 was assigned; the answer of event 2 waits in the send buffer.
        let late = late(
            330,
            &[
                (90, 1, 7, Loss(4)),
                (100, 2, 7, Request),
                (100, 2, 8, Request),
                (110, 2, 8, FirstByte),
                (115, 2, 8, LastByte),
                (300, 1, 7, Timeout),
                (310, 1, 7, LastByte),
                (320, 2, 7, FirstByte),
                (330, 2, 7, LastByte),
            ],
        );
        let path = CriticalPath::of(&late, 100, false);
        let stall = Stall { from: 100, until: 300, step: Timeout, connection: 7, event: 1 };
        assert_eq!(path.stalls, [stall]);
        assert_eq!((path.earlier_wait, path.earlier.as_slice(), path.rest), (10, &[1][..], 20));
        assert_eq!((sum(&path), path.rest_from), (230, 310));
    }

    #[test]
    fn a_timer_that_holds_the_credits_of_a_request_is_found() {
        let entries = [
            (90, 1, 7, Request),
            (95, 1, 7, Loss(4)),
            (300, 1, 7, Timeout),
            (310, 1, 7, LastByte),
            (310, 2, 8, Request),
            (320, 2, 8, FirstByte),
            (325, 2, 8, LastByte),
        ];
        let path = CriticalPath::of(&late(325, &entries), 100, true);
        assert_eq!(path.stalls.len(), 1);
        assert_eq!((path.stalls[0].from, path.stalls[0].until, path.stalls[0].event), (100, 300, 1));
        assert_eq!((path.request_wait, path.rest, sum(&path)), (10, 15, 225));
        // Without credits an answer of another event frees nothing: the request waits for its own event.
        let path = CriticalPath::of(&late(325, &entries), 100, false);
        assert_eq!((path.request_wait, path.rest), (210, 15));
    }

    #[test]
    fn a_timer_without_a_loss_is_no_stall() {
        let late = late(330, &[(100, 2, 7, Request), (300, 2, 7, Timeout), (330, 2, 7, LastByte)]);
        let path = CriticalPath::of(&late, 100, true);
        assert_eq!((path.stalls.len(), path.rest), (0, 230));
    }
}
