//! The receiving side: the streams into an end, and the credit of a host.

use std::collections::VecDeque;

use super::bucket::{Bounds, SenderBucket};
use crate::index::EndIndex;

/// What one end of a connection receives.
pub(super) struct InStream {
    /// All below has arrived.
    pub(super) delivered: u64,
    /// What has arrived beyond, in order.
    pub(super) islands: Vec<(u64, u64)>,
    /// All below has been sent, or may be: it should arrive.
    pub(super) expected: u64,
    /// Scheduled messages without all of their credit, in order.
    pub(super) wanting: VecDeque<InMessage>,
    /// Bytes of credit that have not come back as data.
    pub(super) outstanding: u32,
    pub(super) bucket: SenderBucket,
    /// Its place among the receiver's senders, while it could have credit.
    pub(super) place: Option<(u64, u64)>,
    pub(super) deadline: Option<u64>,
    pub(super) backoff: u32,
    pub(super) timeouts: u64,
}

#[derive(Clone, Copy)]
pub(super) struct InMessage {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Bytes up to here have credit.
    pub(super) credited: u64,
    /// The how-manieth message that asked this receiver.
    pub(super) number: u64,
}

/// A host that receives.
pub(super) struct ReceivingHost {
    /// B.
    pub(super) bucket: u32,
    pub(super) outstanding: u32,
    /// Senders that could have credit, the next one first. Nearly all that happens is at one of the ends: a tree took a
    /// tenth of an incast's time.
    pub(super) waiting: VecDeque<(u64, u64, EndIndex)>,
    /// Messages that have asked, and turns given.
    pub(super) asked: u64,
    pub(super) turns: u64,
    pub(super) bounds: Bounds,
}

impl ReceivingHost {
    /// Moves a sender from one place to another, or in, or out.
    pub(super) fn move_sender(&mut self, index: EndIndex, from: Option<(u64, u64)>, to: Option<(u64, u64)>) {
        let waiting = &mut self.waiting;
        let find =
            |waiting: &VecDeque<(u64, u64, EndIndex)>, key| waiting.partition_point(|&before| before < key);
        let key = |(first, second): (u64, u64)| (first, second, index);
        let from = from.map(|place| find(waiting, key(place)));
        match (from, to) {
            (Some(from), Some(to)) => {
                let to = key(to);
                let follows = from == 0 || waiting[from - 1] < to;
                if follows && waiting.get(from + 1).is_none_or(|&next| to < next) {
                    waiting[from] = to;
                    return;
                }
                waiting.remove(from);
                waiting.insert(find(waiting, to), to);
            }
            (Some(from), None) => _ = waiting.remove(from),
            (None, Some(to)) => waiting.insert(find(waiting, key(to)), key(to)),
            (None, None) => {}
        }
    }
}

impl InStream {
    /// Notes that bytes have arrived; returns how many of them are new.
    pub(super) fn cover(&mut self, start: u64, end: u64) -> u64 {
        if end <= self.delivered {
            return 0;
        }
        let start = start.max(self.delivered);
        if start == self.delivered && self.islands.is_empty() {
            self.delivered = end;
            return end - start;
        }
        let known = |islands: &[(u64, u64)]| -> u64 { islands.iter().map(|(from, to)| to - from).sum() };
        let before = self.delivered + known(&self.islands);
        // Join it with all that it touches.
        let first = self.islands.partition_point(|&(_, to)| to < start);
        let last = self.islands.partition_point(|&(from, _)| from <= end);
        let (mut from, mut to) = (start, end);
        if first < last {
            from = from.min(self.islands[first].0);
            to = to.max(self.islands[last - 1].1);
        }
        self.islands.splice(first..last, [(from, to)]);
        if self.islands[0].0 <= self.delivered {
            self.delivered = self.islands.remove(0).1;
        }
        self.delivered + known(&self.islands) - before
    }

    /// What is missing of all that should be here.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let starts = std::iter::once(self.delivered).chain(self.islands.iter().map(|island| island.1));
        let ends = self.islands.iter().map(|island| island.0).chain([self.expected]);
        starts.zip(ends).filter(|(start, end)| start < end)
    }
}
