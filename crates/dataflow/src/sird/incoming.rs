//! The receiving side: the streams into an end, and the credit of a host.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::bucket::{Bounds, SenderBucket};

/// The stream that one end of a connection receives.
#[derive(Debug)]
pub(super) struct InStream {
    /// All bytes below this offset have arrived.
    pub(super) delivered: u64,
    /// Ranges that have arrived beyond `delivered`, in order.
    pub(super) ranges: Vec<(u64, u64)>,
    /// Offset below which the sender has sent all bytes, or has credit to send them.
    pub(super) expected: u64,
    /// Scheduled messages that still need credit, in order.
    pub(super) uncredited: VecDeque<InMessage>,
    /// Bytes of granted credit without data so far.
    pub(super) outstanding: u32,
    pub(super) bucket: SenderBucket,
    /// Key of the sender in the host's queue, while the sender waits for credit.
    pub(super) place: Option<(u64, u64)>,
    pub(super) deadline: Option<u64>,
    pub(super) backoff: u32,
    pub(super) timeouts: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct InMessage {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Offset up to which bytes have credit.
    pub(super) credited: u64,
    /// The number of its request at this host.
    pub(super) number: u64,
}

/// The credit of a receiving host.
#[derive(Debug)]
pub(super) struct ReceivingHost {
    /// The receiver's bucket B (SIRD, §4.1), in bytes.
    pub(super) bucket: u32,
    pub(super) outstanding: u32,
    /// Key and end of each sender that waits for credit, the next one first. Nearly all changes are at the ends.
    pub(super) waiting: VecDeque<(u64, u64, u32)>,
    /// Number of requests received, and number of turns given.
    pub(super) asked: u64,
    pub(super) turns: u64,
    pub(super) bounds: Bounds,
}

impl ReceivingHost {
    /// Moves a sender within the queue, into it, or out of it.
    pub(super) fn move_sender(&mut self, index: u32, from: Option<(u64, u64)>, to: Option<(u64, u64)>) {
        let waiting = &mut self.waiting;
        let find = |waiting: &VecDeque<(u64, u64, u32)>, key| waiting.partition_point(|&before| before < key);
        let key = |(first, second): (u64, u64)| (first, second, index);
        debug_assert_eq!(
            from.is_some(),
            waiting.iter().any(|&(.., other)| other == index),
            "a sender waits twice, or is noted and does not wait"
        );
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
    /// Records a range that has arrived; returns the number of new bytes.
    pub(super) fn cover(&mut self, start: u64, end: u64) -> u64 {
        assert!(start < end, "a packet without data");
        if end <= self.delivered {
            return 0;
        }
        let start = start.max(self.delivered);
        if start == self.delivered && self.ranges.is_empty() {
            self.delivered = end;
            return end - start;
        }
        let known = |ranges: &[(u64, u64)]| -> u64 { ranges.iter().map(|(from, to)| to - from).sum() };
        let before = self.delivered + known(&self.ranges);
        // Joins the range with all ranges that it touches.
        let first = self.ranges.partition_point(|&(_, to)| to < start);
        let last = self.ranges.partition_point(|&(from, _)| from <= end);
        let (mut from, mut to) = (start, end);
        if first < last {
            from = from.min(self.ranges[first].0);
            to = to.max(self.ranges[last - 1].1);
        }
        self.ranges.splice(first..last, [(from, to)]);
        assert!(self.ranges.is_sorted_by(|before, next| before.1 < next.0), "ranges touch and are two");
        if self.ranges[0].0 <= self.delivered {
            self.delivered = self.ranges.remove(0).1;
        }
        self.delivered + known(&self.ranges) - before
    }

    /// Returns the ranges that are expected and have not arrived, in order.
    pub(super) fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let starts = core::iter::once(self.delivered).chain(self.ranges.iter().map(|range| range.1));
        let ends = self.ranges.iter().map(|range| range.0).chain([self.expected]);
        starts.zip(ends).filter(|(start, end)| start < end)
    }
}
