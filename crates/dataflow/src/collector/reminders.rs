//! Reminders: small requests that let a readout's TCP find the loss of an answer's last segments.
//!
//! A sender retransmits before its timeout only if later segments arrive (RFC 5681 §3.2). Often none follows the last
//! answer to a collector for many milliseconds. So one fragment of a late answer is requested again, and this answer is
//! ignored. If the request itself was lost, three repetitions show that to the collector's own TCP.

use fanin_units::Instant;

use super::Collector;
use super::pending::{PendingRequest, REMINDER_TAG};
use crate::timers::later;
use crate::{FragmentPayload, Message, PacedCredits, Peer};

impl<P: FragmentPayload> Collector<P> {
    /// Reminds readouts of late answers, once each.
    pub(super) fn remind(&mut self, now: Instant) {
        let Some(paced) = &mut self.paced else { return };
        let Some(late) = paced.late_after() else { return };
        while let Some(&(sent, tag)) = self.unreminded.front()
            && later(sent, late) <= now
        {
            self.unreminded.pop_front();
            let Some(&PendingRequest { slot, readout, fragments, paced: credit, .. }) =
                self.pending.find(tag)
            else {
                continue;
            };
            let link = &mut self.readouts[usize::from(readout)];
            let (Some(slot), Some(credit)) = (self.slots.find(slot), credit) else { continue };
            if !link.is_up || sent < link.reminded {
                continue;
            }
            let copies = paced.on_late(readout, credit);
            if copies > 0 {
                link.reminded = now;
            }
            for _ in 0..copies {
                let fragments = fragments.lowest(1);
                let message = Message::Request { tag: REMINDER_TAG, event: slot.event, fragments };
                self.out.push_back((Peer::Readout(readout), message));
                self.counters.reminders += 1;
            }
        }
    }

    /// Returns the time at which the oldest outstanding request becomes late.
    pub(super) fn reminder_deadline(&mut self) -> Option<Instant> {
        while let Some(&(_, tag)) = self.unreminded.front()
            && self.pending.find(tag).is_none()
        {
            self.unreminded.pop_front();
        }
        let late = self.paced.as_ref().and_then(PacedCredits::late_after)?;
        self.unreminded.front().map(|&(sent, _)| later(sent, late))
    }
}
