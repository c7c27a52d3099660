//! Segments that arrived out of order, and the SACK blocks that report them (RFC 2018, RFC 2883).

use alloc::vec::Vec;

use crate::config::Config;
use crate::segment::{Flags, SackBlock, Segment};

/// Number of recent ranges to remember: a segment carries at most 3, the kernel keeps 4.
const RECENT_MAX: usize = 4;

/// Ranges received above RCV.NXT, and their order in reports.
#[derive(Clone, Debug, Default)]
pub(super) struct OutOfOrder {
    /// Disjoint ranges in stream order, none empty.
    ranges: Vec<(u64, u64)>,
    /// Starts of the ranges that grew last, newest first (RFC 2018 §4).
    recent: Vec<u64>,
    /// A range that arrived twice, until it is reported (RFC 2883).
    duplicate: Option<(u64, u64)>,
}

impl OutOfOrder {
    /// Returns true if a byte is missing below a received range.
    pub(super) fn has_gap(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Returns true if nothing is stored or to be reported.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.duplicate.is_none()
    }

    /// Reports a duplicate with the next ACK (RFC 2883).
    pub(super) fn report_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate = Some((start, end));
    }

    /// Stores `start..end`, and merges it with the ranges that it overlaps or touches.
    pub(super) fn insert(&mut self, config: &Config, start: u64, end: u64) {
        assert!(start < end, "an empty range");
        let (mut merged_start, mut merged_end) = (start, end);
        // The ranges from index `from` to before `to`.
        let from = self.ranges.partition_point(|range| range.1 < start);
        let mut to = from;
        while to < self.ranges.len() && self.ranges[to].0 <= merged_end {
            let (low, high) = self.ranges[to];
            if low <= start && end <= high && config.dsack {
                self.duplicate = Some((start, end));
            }
            merged_start = merged_start.min(low);
            merged_end = merged_end.max(high);
            if config.sack {
                self.recent.retain(|&recent| recent != low);
            }
            to += 1;
        }
        if from == to {
            self.ranges.insert(from, (merged_start, merged_end));
        } else {
            self.ranges[from] = (merged_start, merged_end);
            self.ranges.drain(from + 1..to);
        }
        assert!(from == 0 || self.ranges[from - 1].1 < merged_start, "ranges that touch are one");
        assert!(
            self.ranges.get(from + 1).is_none_or(|next| merged_end < next.0),
            "ranges that touch are one"
        );
        if config.sack {
            self.recent.insert(0, merged_start);
            self.recent.truncate(RECENT_MAX);
        }
    }

    /// Drops the ranges that are in order now, and returns RCV.NXT after them. If the segment in order repeats bytes of
    /// a range, they are a duplicate (`tcp_ofo_queue`).
    pub(super) fn join(&mut self, config: &Config, rcv_nxt: u64) -> u64 {
        let before = rcv_nxt;
        if let Some(&(start, end)) = self.ranges.first()
            && start < rcv_nxt
            && config.dsack
        {
            self.duplicate.get_or_insert((start, end.min(rcv_nxt)));
        }
        let mut rcv_nxt = rcv_nxt;
        let mut joined = 0;
        for range in &self.ranges {
            if range.0 > rcv_nxt {
                break;
            }
            rcv_nxt = rcv_nxt.max(range.1);
            self.recent.retain(|&recent| recent != range.0);
            joined += 1;
        }
        self.ranges.drain(..joined);
        assert!(rcv_nxt >= before && self.ranges.first().is_none_or(|range| range.0 > rcv_nxt));
        rcv_nxt
    }

    /// Writes SACK blocks: a duplicate first (RFC 2883), then the ranges that grew last (RFC 2018 §4).
    pub(super) fn write_blocks(&mut self, config: &Config, segment: &mut Segment) {
        let duplicate = self.duplicate.take();
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
        for &start in &self.recent {
            if count == blocks_max {
                break;
            }
            let index = self.ranges.partition_point(|range| range.0 < start);
            let range = self.ranges[index];
            assert_eq!(range.0, start, "a SACK block of data that did not arrive");
            segment.sack[count] = relative(range.0, range.1);
            count += 1;
        }
    }

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
