//! Segments that arrived out of order, and the SACK blocks reporting them (RFC 2018, RFC 2883).

use alloc::vec::Vec;

use fanin_units::{Duration, Instant};

use crate::config::Config;
use crate::segment::{Flags, SackBlock, Segment};

/// Number of recent ranges to remember: a segment carries at most 3, the kernel keeps 4.
const RECENT_MAX: usize = 4;
/// Ranges that each ACK reports, with all options (`TCP_SACK_BLOCKS_EXPECTED`).
const BLOCKS_EXPECTED: usize = 2;
/// Duplicate ACKs that are sent at once for each RCV.NXT (`TCP_FASTRETRANS_THRESH`).
const DUPLICATE_ACKS: u8 = 3;
/// Most ACKs that are compressed (`tcp_comp_sack_nr`).
const COMPRESSED_MAX: u8 = 44;
/// Most time for which an ACK waits for others (`tcp_comp_sack_delay_ns`).
const COMPRESSED_DELAY_MAX: Duration = Duration::from_millis(1);
/// Inaccuracy of that timer (`tcp_comp_sack_slack_ns`): an idle processor uses all of it.
const COMPRESSED_SLACK: Duration = Duration::from_micros(100);

/// The effect of new data on the ranges that the next ACK reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReportChange {
    /// The first two stay among the first three.
    Reported,
    /// A new range moves the second to the third place.
    Opens,
    /// So does the range at this place, which the data extends.
    Extends(usize),
}

/// Ranges received above RCV.NXT, and their order in reports.
#[derive(Clone, Debug)]
pub(super) struct OutOfOrder {
    /// Disjoint ranges in stream order, none empty.
    ranges: Vec<(u64, u64)>,
    /// Starts of the ranges that grew last, newest first (RFC 2018 §4).
    recent: Vec<u64>,
    /// A range that arrived twice, until it is reported (RFC 2883).
    duplicate: Option<(u64, u64)>,
    /// RCV.NXT of the last data out of order, and the ACKs sent at once since then (`compressed_ack_rcv_nxt`, `dup_ack_counter`).
    acked_at: u64,
    duplicate_acks: u8,
    /// ACKs that wait to be sent as one (`compressed_ack`), and the time at which it is sent, in ps.
    compressed: u8,
    compressed_until: u64,
    /// The change by data that the next ACK leaves out.
    unreported: ReportChange,
}

impl Default for OutOfOrder {
    fn default() -> Self {
        Self {
            ranges: Vec::new(),
            recent: Vec::new(),
            duplicate: None,
            acked_at: u64::MAX,
            duplicate_acks: 0,
            compressed: 0,
            compressed_until: u64::MAX,
            unreported: ReportChange::Reported,
        }
    }
}

impl OutOfOrder {
    /// Compresses ACKs: the ACK of data out of order waits for later ones (`__tcp_ack_snd_check`). Returns the time at which one is
    /// sent for all, or `None` if this one has to be sent now. ACKs wait for a twentieth of the `rtt`. New data can move an
    /// unreported range to the third SACK block. Then one ACK goes at once without the new data, which the next ACK reports
    /// (`tcp_sack_compress_send_ack`).
    pub(super) fn compress(
        &mut self,
        rcv_nxt: u64,
        change: ReportChange,
        now: Instant,
        rtt: Duration,
    ) -> Option<Instant> {
        if change != ReportChange::Reported && self.compressed > 0 {
            self.unreported = change;
            return None;
        }
        if self.compressed >= COMPRESSED_MAX {
            return None;
        }
        if self.acked_at != rcv_nxt || self.duplicate_acks < DUPLICATE_ACKS {
            self.note_at_once(rcv_nxt);
            return None;
        }
        if self.compressed == 0 {
            let delay = Duration::new(rtt.get() / 20).min(COMPRESSED_DELAY_MAX);
            self.compressed_until = (now + delay + COMPRESSED_SLACK).get();
        }
        self.compressed += 1;
        Some(Instant::new(self.compressed_until))
    }

    /// Counts an ACK that is sent at once.
    pub(super) fn note_at_once(&mut self, rcv_nxt: u64) {
        let before = if self.acked_at == rcv_nxt { self.duplicate_acks } else { 0 };
        (self.acked_at, self.duplicate_acks) = (rcv_nxt, before + 1);
    }

    /// Time at which one ACK is sent for all that wait, in ps; `u64::MAX` if none waits.
    pub(super) fn compressed_until(&self) -> u64 {
        self.compressed_until
    }

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

    /// Stores `start..end`, and merges it with the ranges that it overlaps or touches. Returns the effect on the reports.
    pub(super) fn insert(&mut self, config: &Config, start: u64, end: u64) -> ReportChange {
        assert!(start < end, "an empty range");
        let (mut merged_start, mut merged_end) = (start, end);
        // The ranges from index `from` to before `to`.
        let from = self.ranges.partition_point(|range| range.1 < start);
        let mut to = from;
        let known = self.recent.len();
        // Place of the merged range that was reported last.
        let mut place = known;
        while to < self.ranges.len() && self.ranges[to].0 <= merged_end {
            let (low, high) = self.ranges[to];
            if low <= start && end <= high && config.dsack {
                self.duplicate = Some((start, end));
            }
            merged_start = merged_start.min(low);
            merged_end = merged_end.max(high);
            if config.sack {
                place = self.recent.iter().position(|&recent| recent == low).unwrap_or(place).min(place);
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
        assert!(from == 0 || self.ranges[from - 1].1 < merged_start, "ranges touch and are two");
        assert!(self.ranges.get(from + 1).is_none_or(|next| merged_end < next.0), "ranges touch and are two");
        if config.sack {
            self.recent.insert(0, merged_start);
            self.recent.truncate(RECENT_MAX);
        }
        match place {
            _ if place < BLOCKS_EXPECTED => ReportChange::Reported,
            _ if place == known => ReportChange::Opens,
            _ => ReportChange::Extends(place),
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
        (self.compressed, self.compressed_until) = (0, u64::MAX);
        if !config.sack {
            return;
        }
        let mut order = self.recent.clone();
        match core::mem::replace(&mut self.unreported, ReportChange::Reported) {
            ReportChange::Reported => {}
            ReportChange::Opens => _ = order.remove(0),
            ReportChange::Extends(place) => order[..=place].rotate_left(1),
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
        for start in order {
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
            assert!(start > last && end > start, "ranges overlap, or lie below RCV.NXT");
            last = end;
        }
        for recent in &self.recent {
            assert!(self.ranges.iter().any(|range| range.0 == *recent), "a recent range does not exist");
        }
        assert!(self.recent.len() <= RECENT_MAX);
    }
}
