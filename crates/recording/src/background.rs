//! The figures of background traffic.

use fanin_report::{BackgroundFigures, Span, Summary, times};
use fanin_units::Instant;

use crate::picture::Finished;

/// A background transfer that has arrived as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompletedTransfer {
    /// Time at which it was due.
    pub began: Instant,
    /// Time at which its last byte was delivered.
    pub at: Instant,
}

impl Finished<'_> {
    /// Fills in the figures of the background connections, if the run has any. Goodput covers the measured time `span`, and
    /// transfers are those that ended within it. Counts cover the time after the warm-up, with the drain.
    pub fn fill_background(&self, summary: &mut Summary, transfers: &[CompletedTransfer], span: Span) {
        let delivered = self.within.background_delivered.iter().zip(&self.before.background_delivered);
        if delivered.len() == 0 {
            return;
        }
        let seconds = self.within.at.saturating_since(self.before.at).as_secs_f64();
        let [segments, retransmits, timeouts, ..] = self.after.background_since(self.before).map(Some);
        let ended = transfers.iter().filter(|transfer| span.holds(transfer.at.get()));
        let ended = ended.map(|transfer| (transfer.at - transfer.began).get());
        let mut figures = BackgroundFigures {
            connections: Some(delivered.len() as u64),
            segments,
            retransmits,
            timeouts,
            ..BackgroundFigures::default()
        };
        if seconds > 0.0 {
            figures.fill_goodput(delivered.map(|(after, before)| (after - before) as f64 * 8.0 / seconds));
        }
        if fanin_scenario::role_configs::background(self.scenario).is_some_and(|traffic| traffic.has_ends()) {
            figures.transfers = Some(ended.clone().count() as u64);
            figures.transfer_ms = times(ended, []);
        }
        summary.background = Some(figures);
    }
}
