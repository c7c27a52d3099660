//! The retransmission queue: segments sent and not yet acknowledged (FlightSize of RFC 5681), and their state.
//!
//! Consecutive segments in the same state form one run if sent at the same time. Without loss, each sent burst is one
//! run. A SACK splits runs where the kernel splits its segmentation-offload buffers.

use crate::config::Config;
use crate::runs::Runs;

// Bits of `SegmentRun::state`, as in the kernel's scoreboard (`TCPCB_*`).
/// Received above the cumulative acknowledgement. Without SACK ns-3 guesses it from duplicate ACKs.
pub(crate) const SACKED: u8 = 1;
/// Flag of a segment that was declared lost.
pub(crate) const LOST: u8 = 2;
/// Retransmitted, and the copy is believed to be in the network.
pub(crate) const RETRANSMITTED: u8 = 4;
/// Retransmitted at some time (Karn's algorithm).
pub(crate) const EVER_RETRANSMITTED: u8 = 8;

/// Consecutive segments in the same state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentRun {
    /// Stream offset of the first byte.
    pub(crate) start: u64,
    /// Time of the last transmission, in picoseconds.
    pub(crate) sent_at: u64,
    /// Length of the run in bytes.
    pub(crate) len: u32,
    /// Segment size in bytes: segment boundaries lie at its multiples from `start`.
    pub(crate) mss: u16,
    /// [`SACKED`], [`LOST`], [`RETRANSMITTED`], [`EVER_RETRANSMITTED`].
    pub(crate) state: u8,
}

impl SegmentRun {
    /// The offset after the last byte.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    /// Returns true if any of these bits is set.
    #[inline]
    pub(crate) fn is(&self, bits: u8) -> bool {
        self.state & bits != 0
    }
}

/// The runs outstanding, in stream order and without gaps, and their sums in units of the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    pub(crate) runs: Runs,
    /// Everything outstanding (FlightSize, `packets_out`).
    pub(crate) size: u32,
    /// SACKed part of the flight (`sacked_out`). Without SACK, counted from duplicate ACKs, in ns-3 as marks of segments.
    pub(crate) sacked: u32,
    /// Lost part of the flight (`lost_out`).
    pub(crate) lost: u32,
    /// Part of the flight with a copy in the network (`retrans_out`).
    pub(crate) retransmitted: u32,
    /// Lost part without a copy in the network.
    unrepaired: u32,
    /// Units declared lost so far, lost copies included (`tp->lost`). It never falls.
    pub(crate) declared_lost: u64,
    /// True if the segment sent last is full, so that the next segment may join its run.
    ends_full: bool,
}

/// Most pairs of neighbouring runs that one change compares, to join them.
const JOIN_STEPS_MAX: usize = 8;

/// The data that an ACK newly covers, cumulatively or selectively.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewlyAcked {
    /// A copy sent at this time or later cannot have caused the ACK.
    pub(crate) spurious_from: u64,
    /// Transmission time of the last covered run that may have caused the ACK (RACK's round trip).
    pub(crate) latest: u64,
    /// Units that left the network: the covered units without an earlier SACK.
    pub(crate) delivered: u32,
    /// Units covered cumulatively.
    pub(crate) acked: u32,
    /// Transmission time of the oldest covered run without a retransmission.
    pub(crate) first_sent_at: Option<u64>,
    /// Transmission time of the newest covered run without a retransmission.
    pub(crate) last_sent_at: Option<u64>,
    /// True if a retransmitted run is covered.
    pub(crate) has_retransmitted: bool,
    /// True if the ACK covers a run that was neither retransmitted nor SACKed before, and ends at or below `high_seq`.
    /// This is the evidence of F-RTO and Eifel.
    pub(crate) has_original: bool,
    /// The newest transmission covered: time, end, and whether it was a retransmission (RFC 8985 §6.2 step 1).
    pub(crate) newest: Option<(u64, u64, bool)>,
    /// Time of the newest transmission covered, even of a copy that cannot have caused the ACK (`tcp_rate_skb_delivered`).
    pub(crate) newest_sent_at: Option<u64>,
    /// Lowest covered offset without a retransmission: the evidence of reordering.
    pub(crate) lowest_original: Option<u64>,
}

impl Flight {
    /// Units believed to be in the network (the pipe of RFC 6675; `tcp_packets_in_flight`).
    #[inline]
    pub(crate) fn pipe(&self) -> u32 {
        (self.size + self.retransmitted).saturating_sub(self.sacked + self.lost)
    }

    /// Appends a segment that was just sent for the first time.
    #[inline(always)]
    pub(crate) fn push(&mut self, config: &Config, start: u64, len: u32, mss: u16, now: u64) {
        assert!(len > 0, "an empty segment is noted as outstanding");
        debug_assert!(self.runs.back().is_none_or(|last| last.sent_at <= now), "time runs backwards");
        self.size += config.units(len, mss);
        let last = self.runs.back_mut();
        let last = last.inspect(|last| assert!(last.end() == start, "the flight has a gap before {start}"));
        if let Some(last) = last
            && last.sent_at == now
            && last.state == 0
            && last.mss == mss
            && self.ends_full
        {
            last.len += len;
        } else {
            self.runs.push_back(SegmentRun { start, sent_at: now, len, mss, state: 0 });
        }
        self.ends_full = len == u32::from(mss);
    }

    /// The fast path of [`acknowledge`](Self::acknowledge), while nothing is lost, SACKed or retransmitted. Returns the
    /// newly acknowledged units, and the transmission times of the oldest and newest run.
    #[inline]
    pub(crate) fn acknowledge_fast(&mut self, config: &Config, ack: u64) -> (u32, u64, u64) {
        debug_assert_eq!(
            (self.sacked, self.lost, self.retransmitted),
            (0, 0, 0),
            "an ACK that repairs a loss takes the fast path"
        );
        let mut units = 0;
        let mut first = 0;
        let mut last = 0;
        while let Some(run) = self.runs.front_mut() {
            if run.start >= ack {
                break;
            }
            if units == 0 {
                first = run.sent_at;
            }
            last = run.sent_at;
            let end = run.end();
            if end <= ack {
                units += config.units(run.len, run.mss);
                self.runs.pop_front();
            } else {
                let covered = (ack - run.start) as u32;
                let mss = u32::from(run.mss);
                // Mostly one or two whole segments; only the general case needs divisions.
                units += if covered == mss || covered == 2 * mss {
                    config.units(covered, run.mss)
                } else {
                    config.units(run.len, run.mss) - config.units(run.len - covered, run.mss)
                };
                run.len -= covered;
                run.start = ack;
                break;
            }
        }
        assert!(units <= self.size, "{units} units acknowledged of {}", self.size);
        self.size -= units;
        debug_assert!(first <= last, "segments acknowledged out of order");
        (units, first, last)
    }

    /// Removes the segments below `ack`, and adds them to `newly`. `high_seq` ends the present episode of recovery.
    pub(crate) fn acknowledge(&mut self, config: &Config, ack: u64, high_seq: u64, newly: &mut NewlyAcked) {
        let uncounted = if config.recovers_as_ns3() { self.split_acked_as_ns3(config, ack) } else { 0 };
        while let Some(run) = self.runs.front_mut() {
            if run.start >= ack {
                break;
            }
            let end = run.end();
            let before = config.units(run.len, run.mss);
            let state = run.state;
            let sent_at = run.sent_at;
            let start = run.start;
            let units = if end <= ack {
                self.runs.pop_front();
                before
            } else {
                run.len = (end - ack) as u32;
                run.start = ack;
                before - config.units(run.len, run.mss)
            };
            self.size -= units;
            self.forget(state, units);
            newly.acked += units;
            // The marks of ns-3 are guesses: the ACK is the first news of the segment.
            if state & SACKED == 0 || config.recovers_as_ns3() {
                newly.delivered += units;
                newly.note(start, end.min(ack), sent_at, state, high_seq);
            }
        }
        newly.delivered -= uncounted;
        assert!(newly.delivered <= newly.acked + self.sacked, "more delivered than acknowledged and SACKed");
        self.verify_left_out(config);
    }

    /// Asserts that what has left the network was in it (`tcp_verify_left_out`). Without SACK, `sacked` only estimates.
    fn verify_left_out(&self, config: &Config) {
        assert!(!config.sack || self.sacked + self.lost <= self.size, "more left the network than was sent");
        assert!(self.unrepaired <= self.lost, "more to repair than was lost");
        assert!(self.retransmitted <= self.size, "more sent again than is outstanding");
    }

    /// Subtracts `units` in state `state` from all sums except `size`.
    fn forget(&mut self, state: u8, units: u32) {
        assert!(
            state & SACKED == 0 || state & (LOST | RETRANSMITTED) == 0,
            "SACKed, and yet lost or in the network"
        );
        if state & SACKED != 0 {
            self.sacked -= units;
        }
        if state & LOST != 0 {
            self.lost -= units;
        }
        if state & RETRANSMITTED != 0 {
            self.retransmitted -= units;
        } else if state & LOST != 0 {
            self.unrepaired -= units;
        }
    }

    /// Marks the segments that lie entirely within `start..end` as SACKed, never a part of a segment
    /// (`tcp_match_skb_to_sack`), and adds them to `newly`.
    pub(crate) fn sack(
        &mut self,
        config: &Config,
        start: u64,
        end: u64,
        high_seq: u64,
        newly: &mut NewlyAcked,
    ) {
        let start = self.boundary_from(start);
        let end = self.boundary_to(end);
        if start >= end {
            return;
        }
        self.split_at(config, start);
        self.split_at(config, end);
        let from = self.runs.partition_point(|run| run.start < start);
        for index in from..self.runs.len() {
            let run = self.runs[index];
            if run.end() > end {
                break;
            }
            if run.is(SACKED) {
                continue;
            }
            let units = config.units(run.len, run.mss);
            self.forget(run.state, units);
            self.sacked += units;
            newly.delivered += units;
            newly.note(run.start, run.end(), run.sent_at, run.state, high_seq);
            self.runs[index].state = run.state & EVER_RETRANSMITTED | SACKED;
        }
        self.verify_left_out(config);
        self.join(from);
    }

    /// The run that has `offset` in its middle.
    fn run_around(&self, offset: u64) -> Option<SegmentRun> {
        let index = self.runs.partition_point(|run| run.end() <= offset);
        (index < self.runs.len()).then(|| self.runs[index]).filter(|run| run.start < offset)
    }

    /// The first segment boundary at or after `offset`.
    fn boundary_from(&self, offset: u64) -> u64 {
        self.run_around(offset).map_or(offset, |run| {
            let mss = u64::from(run.mss);
            run.end().min(run.start + (offset - run.start).div_ceil(mss) * mss)
        })
    }

    /// The last segment boundary at or before `offset`.
    fn boundary_to(&self, offset: u64) -> u64 {
        self.run_around(offset).map_or(offset, |run| {
            let mss = u64::from(run.mss);
            run.start + (offset - run.start) / mss * mss
        })
    }

    /// Declares lost the runs in the pipe that `choose` selects. A lost copy no longer counts as retransmitted.
    pub(crate) fn mark_lost(&mut self, config: &Config, mut choose: impl FnMut(&SegmentRun) -> bool) {
        for run in self.runs.iter_mut() {
            let is_in_pipe = run.state & (LOST | SACKED) == 0 || run.is(RETRANSMITTED);
            if run.is(SACKED) || !is_in_pipe || !choose(run) {
                continue;
            }
            let units = config.units(run.len, run.mss);
            if run.is(RETRANSMITTED) {
                self.retransmitted -= units;
            }
            if !run.is(LOST) {
                self.lost += units;
            }
            self.declared_lost += u64::from(units);
            self.unrepaired += units;
            run.state = run.state & !RETRANSMITTED | LOST;
        }
        self.verify_left_out(config);
    }

    /// Declares the first segment lost, which must be neither lost nor SACKed.
    pub(crate) fn mark_first_lost(&mut self, config: &Config) {
        let Some(&SegmentRun { start, len, mss, .. }) = self.runs.front() else { return };
        if len > u32::from(mss) {
            self.split_at(config, start + u64::from(mss));
        }
        let Some(run) = self.runs.front_mut() else { return };
        assert!(!run.is(LOST | SACKED), "a segment is declared lost that is lost or SACKed");
        let units = config.units(run.len, run.mss);
        self.retransmitted -= if run.is(RETRANSMITTED) { units } else { 0 };
        self.lost += units;
        self.declared_lost += u64::from(units);
        self.unrepaired += units;
        run.state = run.state & !RETRANSMITTED | LOST;
        self.verify_left_out(config);
    }

    /// Declares the first segment lost, whatever its state: a mark or a copy in the network counts no more
    /// (`TcpTxBuffer::MarkHeadAsLost` of ns-3).
    pub(crate) fn declare_head_lost(&mut self, config: &Config) {
        let Some(&SegmentRun { mss, .. }) = self.runs.front() else { return };
        self.split_at(config, self.head_end());
        let Some(&SegmentRun { len, state, .. }) = self.runs.front() else { return };
        let units = config.units(len, mss);
        self.forget(state, units);
        self.lost += units;
        self.unrepaired += units;
        if let Some(run) = self.runs.front_mut() {
            run.state = state & EVER_RETRANSMITTED | LOST;
        }
    }

    /// Declares the first segment lost if it is marked as received, and marks one more above it (`TcpTxBuffer::DiscardUpTo`).
    pub(crate) fn declare_marked_head_lost(&mut self, config: &Config) {
        if self.runs.front().is_some_and(|run| run.is(SACKED)) {
            self.declare_head_lost(config);
            self.mark_next(config);
        }
    }

    /// End of the first segment; 0 if nothing is outstanding.
    fn head_end(&self) -> u64 {
        self.runs.front().map_or(0, |run| run.end().min(run.start + u64::from(run.mss)))
    }

    /// Marks the first segment above the head that is not marked yet as received (`TcpTxBuffer::AddRenoSack` of ns-3).
    pub(crate) fn mark_next(&mut self, config: &Config) {
        let above = self.head_end();
        let Some(index) = self.runs.position(|run| run.end() > above && !run.is(SACKED)) else { return };
        let run = self.runs[index];
        let start = run.start.max(above);
        let end = run.end().min(start + u64::from(run.mss));
        self.sack(config, start, end, 0, &mut NewlyAcked::default());
    }

    /// Withdraws all declared losses (`tcp_undo_cwnd_reduction` with `unmark_loss`).
    pub(crate) fn unmark_lost(&mut self) {
        for run in self.runs.iter_mut() {
            run.state &= !LOST;
        }
        self.lost = 0;
        self.unrepaired = 0;
    }

    /// Forgets all SACKs: the receiver has discarded SACKed data (reneging, RFC 2018 §8), or they were guesses before a timeout.
    pub(crate) fn forget_sacks(&mut self) {
        for run in self.runs.iter_mut() {
            run.state &= !SACKED;
        }
        self.sacked = 0;
    }

    /// Splits the run around `offset`. If `offset` is not on a segment boundary, one segment becomes two, and the sums
    /// grow (`tcp_fragment`).
    pub(crate) fn split_at(&mut self, config: &Config, offset: u64) {
        let index = self.runs.partition_point(|run| run.end() <= offset);
        if let Some(run) = self.runs.get_mut(index)
            && run.start < offset
        {
            let mut upper = *run;
            run.len = (offset - run.start) as u32;
            upper.start = offset;
            upper.len -= run.len;
            assert!(run.len > 0 && upper.len > 0, "a run is split at its edge");
            let extra = config.units(run.len, run.mss) + config.units(upper.len, run.mss)
                - config.units(run.len + upper.len, run.mss);
            let state = run.state;
            self.runs.insert(index + 1, upper);
            if extra > 0 {
                self.size += extra;
                self.sacked += if state & SACKED != 0 { extra } else { 0 };
                self.lost += if state & LOST != 0 { extra } else { 0 };
                self.retransmitted += if state & RETRANSMITTED != 0 { extra } else { 0 };
                self.unrepaired += if state & (LOST | RETRANSMITTED) == LOST { extra } else { 0 };
            }
        }
    }

    /// Joins runs near `index` that have become equal in state.
    fn join(&mut self, index: usize) {
        let mut at = index.saturating_sub(1);
        // Only neighbours of the changed run can have become equal; a few steps reach them.
        let mut steps = 0;
        while at + 1 < self.runs.len() && steps < JOIN_STEPS_MAX {
            let next = self.runs[at + 1];
            let run = &mut self.runs[at];
            // The division comes last: it is the most expensive test.
            let alike = run.state == next.state
                && run.mss == next.mss
                && (run.sent_at == next.sent_at || run.is(SACKED))
                && run.len.is_multiple_of(u32::from(run.mss));
            if alike {
                run.len += next.len;
                run.sent_at = run.sent_at.max(next.sent_at);
                self.runs.remove(at + 1);
            } else {
                at += 1;
            }
            steps += 1;
        }
    }

    /// Index of the first run that is lost and has no copy in the network.
    pub(crate) fn next_lost(&self) -> Option<usize> {
        if self.unrepaired == 0 {
            return None;
        }
        self.runs.position(|run| run.state & (LOST | RETRANSMITTED) == LOST)
    }

    /// Notes that the first segment of run `index` is retransmitted now. Returns its start and length.
    pub(crate) fn retransmit(&mut self, config: &Config, index: usize, now: u64) -> (u64, u32) {
        let run = self.runs[index];
        assert!(!run.is(SACKED), "a SACKed segment is sent again");
        assert!(run.sent_at <= now, "sent again before it was sent");
        let len = run.len.min(u32::from(run.mss));
        if len < run.len {
            self.split_at(config, run.start + u64::from(len));
        }
        let run = &mut self.runs[index];
        let start = run.start;
        if !run.is(RETRANSMITTED) {
            let units = config.units(len, run.mss);
            self.retransmitted += units;
            self.unrepaired -= if run.is(LOST) { units } else { 0 };
        }
        run.state |= RETRANSMITTED | EVER_RETRANSMITTED;
        run.sent_at = now;
        self.join(index);
        (start, len)
    }

    /// Forgets the copy of run `index` that is in the network.
    pub(crate) fn forget_copy(&mut self, config: &Config, index: usize) {
        let run = &mut self.runs[index];
        let units = config.units(run.len, run.mss);
        run.state &= !RETRANSMITTED;
        self.retransmitted -= units;
        self.unrepaired += if run.is(LOST) { units } else { 0 };
    }

    /// End of the highest SACKed run (`tcp_highest_sack_seq`).
    pub(crate) fn highest_sacked(&self) -> Option<u64> {
        if self.sacked == 0 {
            return None;
        }
        self.runs.iter().rev().find(|run| run.is(SACKED)).map(SegmentRun::end)
    }

    /// Panics if the sums differ from the runs; it walks all runs.
    pub(crate) fn check(&self, config: &Config, snd_una: u64, snd_nxt: u64) {
        let mut expected = snd_una;
        let (mut out, mut sacked, mut lost, mut retransmitted, mut unrepaired) = (0, 0, 0, 0, 0);
        for run in self.runs.iter() {
            assert_eq!(run.start, expected, "runs leave a gap");
            expected = run.end();
            let units = config.units(run.len, run.mss);
            out += units;
            sacked += if run.is(SACKED) { units } else { 0 };
            lost += if run.is(LOST) { units } else { 0 };
            retransmitted += if run.is(RETRANSMITTED) { units } else { 0 };
            unrepaired += if run.state & (LOST | RETRANSMITTED) == LOST { units } else { 0 };
            assert!(!run.is(SACKED) || !run.is(LOST | RETRANSMITTED));
        }
        assert_eq!(expected, snd_nxt, "runs do not end at SND.NXT");
        assert_eq!(out, self.size);
        if config.sack {
            assert_eq!(sacked, self.sacked);
        }
        assert_eq!((lost, retransmitted), (self.lost, self.retransmitted));
        assert_eq!(unrepaired, self.unrepaired, "the units lost without a copy are miscounted");
    }
}

impl Default for NewlyAcked {
    fn default() -> Self {
        Self {
            newest_sent_at: None,
            spurious_from: u64::MAX,
            latest: 0,
            delivered: 0,
            acked: 0,
            first_sent_at: None,
            last_sent_at: None,
            has_retransmitted: false,
            has_original: false,
            newest: None,
            lowest_original: None,
        }
    }
}

impl NewlyAcked {
    /// Adds a run that was not SACKed before.
    fn note(&mut self, start: u64, end: u64, sent_at: u64, state: u8, high_seq: u64) {
        let again = state & EVER_RETRANSMITTED != 0;
        if again {
            self.has_retransmitted = true;
        } else {
            if self.first_sent_at.is_none() {
                self.first_sent_at = Some(sent_at);
            }
            self.last_sent_at = Some(sent_at);
            self.lowest_original = Some(self.lowest_original.map_or(start, |lowest| lowest.min(start)));
            if end <= high_seq {
                self.has_original = true;
            }
        }
        self.newest_sent_at = self.newest_sent_at.max(Some(sent_at));
        if again && sent_at >= self.spurious_from {
            return;
        }
        self.latest = sent_at;
        if self.newest.is_none_or(|(time, newest_end, _)| (sent_at, end) > (time, newest_end)) {
            self.newest = Some((sent_at, end, again));
        }
    }
}
