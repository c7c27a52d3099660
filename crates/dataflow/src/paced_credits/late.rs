//! Late answers, of which the last segments may be lost.

use fanin_units::Duration;

use super::{ByteCredit, OVERDUE_FACTOR, PacedCredits};

/// Least time until an answer is late, in picoseconds.
const LATE_MIN: f64 = 1e9;
/// The least limit of the share with which a late answer causes a reminder. Below it losses are frequent: what is
/// requested or sent again sooner only loads the full queue.
const SHARE_WITH_REMINDERS: f64 = 0.9;
/// Part of a late answer's bytes that lowers the share: not each late answer has lost a segment.
const LATE_LOSS: f64 = 0.5;
/// Duplicate acknowledgements after which a sender retransmits (RFC 5681 §3.2).
const DUPLICATES: u32 = 3;

impl PacedCredits {
    /// Returns the time after which an answer is late; `None` while no usual time is known.
    #[inline]
    pub(crate) fn late_after(&self) -> Option<Duration> {
        self.delay.as_ref()?;
        Some(Duration::new((OVERDUE_FACTOR * self.response_time).max(LATE_MIN) as u64))
    }

    /// Lowers the share for a late answer of a readout. Returns the number of requests in a reminder. The answers to
    /// them fill as many segments as a sender needs to find the loss. Zero while losses are frequent.
    pub(crate) fn on_late(&mut self, readout: u16, credit: ByteCredit) -> u32 {
        if self.share_max < SHARE_WITH_REMINDERS {
            return 0;
        }
        // An overdue request has lowered the share before.
        if let Some(place) = credit.number.checked_sub(self.first) {
            let predicted = self.requests[place as usize].bytes;
            self.requests[place as usize].decrease = self.on_loss(LATE_LOSS * predicted as f64);
        }
        let segments = (self.usual(readout) / self.config.segment.get() as f64) as u32;
        DUPLICATES.div_ceil(segments.max(1))
    }
}
