//! Segments that arrived out of order, and the SACK blocks that report them (RFC 2018, RFC 2883).

use alloc::vec::Vec;

use super::Receiver;
use super::delayed_ack::QUICK_ACKS_MAX;
use crate::config::Config;
use crate::segment::{Flags, SackBlock, Segment};

/// Ranges remembered as recent: a segment carries at most 3, the kernel keeps 4.
const RECENT_MAX: usize = 4;

/// Ranges received above RCV.NXT, and the order in which they are reported.
#[derive(Clone, Debug, Default)]
pub(super) struct OutOfOrder {
    /// Disjoint, in stream order, none empty.
    ranges: Vec<(u64, u64)>,
    /// Starts of the ranges that grew last, newest first (RFC 2018 §4).
    recent: Vec<u64>,
    /// A range that arrived twice, until it is reported (RFC 2883).
    duplicate: Option<(u64, u64)>,
}

impl OutOfOrder {
    /// Panics if an invariant does not hold. For tests.
    pub(super) fn check(&self, rcv_nxt: u64) {
        let mut last = rcv_nxt;
        for &(start, end) in &self.ranges {
            assert!(start > last && end > start, "ranges are disjoint and above RCV.NXT");
            last = end;
        }
        for recent in &self.recent {
            assert!(self.ranges.iter().any(|range| range.0 == *recent), "a recent range exists");
        }
        assert!(self.recent.len() <= RECENT_MAX);
    }
}

impl Receiver {
    /// Reports a duplicate with the next ACK.
    pub(super) fn report_duplicate(&mut self, start: u64, end: u64) {
        self.out_of_order.get_or_insert_default().duplicate = Some((start, end));
    }

    /// Takes a segment that does not start at RCV.NXT; `end` is the offset after it.
    #[cold]
    pub(super) fn handle_out_of_order(&mut self, config: &Config, segment: &Segment, end: u64) {
        self.ack_now();
        if end <= self.rcv_nxt {
            // Received before: a needless retransmission, or the ACK was lost.
            if config.dsack {
                self.report_duplicate(segment.offset, end);
            }
            self.enter_quick_acks(QUICK_ACKS_MAX);
            return;
        }
        let store = self.out_of_order.get_or_insert_default();
        let (mut start, mut stop) = (segment.offset, end);
        // Merge with the ranges that the segment overlaps or touches: those from `from` to before `to`.
        let from = store.ranges.partition_point(|range| range.1 < start);
        let mut to = from;
        while to < store.ranges.len() && store.ranges[to].0 <= stop {
            let (low, high) = store.ranges[to];
            if low <= segment.offset && end <= high && config.dsack {
                store.duplicate = Some((segment.offset, end));
            }
            start = start.min(low);
            stop = stop.max(high);
            if config.sack {
                store.recent.retain(|&recent| recent != low);
            }
            to += 1;
        }
        if from == to {
            store.ranges.insert(from, (start, stop));
        } else {
            store.ranges[from] = (start, stop);
            store.ranges.drain(from + 1..to);
        }
        if config.sack {
            store.recent.insert(0, start);
            store.recent.truncate(RECENT_MAX);
        }
    }

    /// Moves RCV.NXT over the ranges that are in order now. Returns whether there was a gap.
    #[cold]
    pub(super) fn join_out_of_order(&mut self) -> bool {
        let Some(store) = &mut self.out_of_order else { return false };
        let had_gap = !store.ranges.is_empty();
        let mut joined = 0;
        for range in &store.ranges {
            if range.0 > self.rcv_nxt {
                break;
            }
            self.rcv_nxt = self.rcv_nxt.max(range.1);
            store.recent.retain(|&recent| recent != range.0);
            joined += 1;
        }
        store.ranges.drain(..joined);
        if store.ranges.is_empty() && store.duplicate.is_none() {
            self.out_of_order = None;
        }
        had_gap
    }

    /// Writes SACK blocks: a duplicate first (RFC 2883), then the ranges that grew last (RFC 2018 §4).
    #[cold]
    pub(super) fn fill_sack(&mut self, config: &Config, segment: &mut Segment) {
        let Some(store) = &mut self.out_of_order else { return };
        let duplicate = store.duplicate.take();
        if !config.sack {
            return;
        }
        let blocks_max = Segment::sack_blocks_max(segment.flags);
        let ack = segment.ack;
        let relative = |start: u64, end: u64| SackBlock {
            start: (start as i64 - ack as i64) as i32,
            end: (end as i64 - ack as i64) as i32,
        };
        let mut count = 0;
        if let Some((start, end)) = duplicate {
            segment.sack[0] = relative(start, end);
            segment.flags.insert(Flags::DSACK);
            count = 1;
        }
        for &start in &store.recent {
            if count == blocks_max {
                break;
            }
            let index = store.ranges.partition_point(|range| range.0 < start);
            let range = store.ranges[index];
            segment.sack[count] = relative(range.0, range.1);
            count += 1;
        }
        if store.ranges.is_empty() {
            self.out_of_order = None;
        }
    }
}
