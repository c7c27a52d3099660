//! The critical path of a late event, from its last byte back to its begin.
//!
//! The path leads from the last byte of the last answer to the request of that answer. From there it leads to the answer that
//! freed the credits of this request, and so on. The parts of the path add up to the time of the event.

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
    /// Time behind answers of other events on the connection of the last answer.
    pub(crate) others_wait: u64,
    /// The events of these answers, in the order of their last bytes.
    pub(crate) others: Vec<u32>,
    /// The begin of the rest: the last answer is on its way, and no other answer is in front on its connection.
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
    /// Time of the answer's request, in picoseconds; `None` if the request precedes the log.
    requested: Option<u64>,
}

impl CriticalPath {
    /// Returns the critical path of an event that began at `begin`. With `has_credits`, any event's answer can free the credits
    /// of a request.
    pub(crate) fn of(late: &LateTrace, begin: u64, has_credits: bool) -> Self {
        let own = late.of.event as u32;
        let answers = complete_answers(&late.around);
        let mut path = Self { rest_from: begin, ..Self::default() };
        let Some(mut index) = answers.iter().rposition(|answer| answer.event == own) else { return path };
        let last = answers[index];
        let stalls = stalls(&late.around);
        loop {
            let answer = answers[index];
            let start = answer.requested.map_or(begin, |at| at.max(begin));
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
                path.request_wait += answer.at.saturating_sub(start).saturating_sub(stalled);
            }
            let freed = answers[..index]
                .iter()
                .rposition(|one| one.at <= start && one.at > begin && (has_credits || one.event == own));
            let Some(freed) = freed.filter(|_| start > begin) else {
                path.request_wait += start - begin;
                path.leave_out((late.of.at - begin).saturating_sub(late.of.time));
                return path;
            };
            path.request_wait += start - answers[freed].at;
            index = freed;
        }
    }

    /// Leaves out the processing between the steps of a collection, which is no part of the collection time. A stall that
    /// lasted meanwhile delayed the event by less.
    fn leave_out(&mut self, processing: u64) {
        let waiting = self.request_wait.min(processing);
        self.request_wait -= waiting;
        let mut left = processing - waiting;
        // The stalls are in reverse order of time.
        for stall in self.stalls.iter_mut().rev() {
            let cut = left.min(stall.until - stall.from);
            stall.from += cut;
            left -= cut;
        }
        self.stalls.retain(|stall| stall.from < stall.until);
    }

    /// Splits the time of the last answer since its request at `start` into the wait behind other answers, and the rest.
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
                self.others.push(answer.event);
            }
        }
        let stalled = |from: u64, until: u64| -> u64 {
            let within = self.stalls.iter().map(|stall| {
                let end = stall.until.min(until);
                end.saturating_sub(stall.from.max(from))
            });
            within.sum()
        };
        self.others_wait = (self.rest_from - start).saturating_sub(stalled(start, self.rest_from));
        self.rest = last.at.saturating_sub(self.rest_from).saturating_sub(stalled(self.rest_from, last.at));
    }
}

/// Returns the complete answers of all events, each with its request. The answers of an event on a connection come in the order
/// of the event's requests. The log may begin between a request and its answer.
fn complete_answers(entries: &[TraceEntry]) -> Vec<CompleteAnswer> {
    #[derive(Default)]
    struct AnswerPairing {
        requests: Vec<u64>,
        /// Places in the list of answers.
        answers: Vec<usize>,
        /// Answers without a request in the log: no request comes after its answer.
        unknown: usize,
    }
    let mut pairings: BTreeMap<(u32, u32), AnswerPairing> = BTreeMap::new();
    let mut answers = Vec::new();
    for entry in entries {
        let &TraceEntry { at, event, connection, step } = entry;
        if !matches!(step, MessageStep::Request | MessageStep::LastByte) {
            continue;
        }
        let pairing = pairings.entry((connection, event)).or_default();
        if step == MessageStep::Request {
            pairing.requests.push(at);
        } else {
            pairing.answers.push(answers.len());
            pairing.unknown =
                pairing.unknown.max(pairing.answers.len().saturating_sub(pairing.requests.len()));
            answers.push(CompleteAnswer { at, connection, event, requested: None });
        }
    }
    for pairing in pairings.into_values() {
        for (&answer, &request) in pairing.answers.iter().skip(pairing.unknown).zip(&pairing.requests) {
            answers[answer].requested = Some(request);
        }
    }
    answers
}

/// Returns the stalls of all connections. A timer that expires without an earlier loss is no stall: its segments wait in a
/// queue.
pub(crate) fn stalls(entries: &[TraceEntry]) -> Vec<Stall> {
    #[derive(Default)]
    struct StallSearch {
        lost: Option<u64>,
        /// Time of the last data that arrived, or of the last timer.
        at: u64,
        has_timer: bool,
    }
    let mut connections: BTreeMap<u32, StallSearch> = BTreeMap::new();
    let mut stalls = Vec::new();
    if !entries.iter().any(|entry| matches!(entry.step, MessageStep::Timeout | MessageStep::Probe)) {
        return stalls;
    }
    for entry in entries {
        let &TraceEntry { at, event, connection, step } = entry;
        let progress = connections.entry(connection).or_default();
        match step {
            MessageStep::Request => {}
            MessageStep::Loss(_) | MessageStep::LinkLoss(_) => progress.lost = Some(at),
            MessageStep::FirstByte | MessageStep::LastByte => {
                progress.at = at;
                // Data that arrive after a timer are its retransmissions.
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
        let all = entries
            .iter()
            .map(|&(at, event, connection, step)| TraceEntry { at, event, connection, step })
            .collect();
        let of = CollectedEvent { event: 2, assigned: 100, at, time: at - 100, ideal: Some(10) };
        LateTrace::new(of, all)
    }

    fn sum(path: &CriticalPath) -> u64 {
        let stalled: u64 = path.stalls.iter().map(|stall| stall.until - stall.from).sum();
        path.request_wait + stalled + path.others_wait + path.rest
    }

    #[test]
    fn a_timer_of_another_event_on_the_connection_is_found() {
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
        assert_eq!((path.others_wait, path.others.as_slice(), path.rest), (10, &[1][..], 20));
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
            (311, 2, 7, FirstByte),
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

    #[test]
    fn an_answer_belongs_to_no_later_request() {
        // Event 1 has one request before event 2 was assigned and one after it, and is incomplete at the end of event 2.
        let entries = [
            (90, 1, 7, Request),
            (100, 2, 7, Request),
            (110, 1, 7, LastByte),
            (120, 1, 7, Request),
            (130, 2, 7, Request),
            (140, 2, 7, LastByte),
            (150, 2, 7, LastByte),
        ];
        for known in [&entries[..], &entries[1..]] {
            let path = CriticalPath::of(&late(150, known), 100, true);
            assert_eq!((path.request_wait, path.rest, sum(&path)), (30, 20, 50));
            let start = complete_answers(&late(150, known).around)[0].requested;
            assert!(start.is_none_or(|at| at <= 110), "{start:?}");
        }
    }

    #[test]
    fn the_processing_between_steps_is_no_wait() {
        // A step from 100 to 110, processing until 160, and a step until 200.
        let entries = [
            (100, 2, 7, Request),
            (110, 2, 7, LastByte),
            (160, 2, 8, Request),
            (170, 2, 8, FirstByte),
            (200, 2, 8, LastByte),
        ];
        let mut late = late(200, &entries);
        late.of.time = 50;
        let path = CriticalPath::of(&late, 100, false);
        assert_eq!((path.request_wait, path.rest, sum(&path)), (10, 40, 50));
        // A stall of another event delayed this one only until it was processed.
        let mut path = CriticalPath { request_wait: 20, ..path };
        path.stalls.push(Stall { from: 105, until: 160, step: Timeout, connection: 9, event: 1 });
        path.leave_out(50);
        assert_eq!((path.request_wait, path.stalls[0].until - path.stalls[0].from), (0, 25));
    }
}
