//! A supervisor without a leader: it asks for the latest term, and proposes the next one.

use fanin_units::{Duration, Instant};

use super::PairedSupervisor;
use crate::succession::{Leadership, SuccessionMessage};

/// A follower proposes to take over after this time without a leader.
const TAKEOVER_AFTER: Duration = Duration::from_millis(500);
/// Interval at which a supervisor without a leader asks readouts for a later term.
const ASK_EVERY: Duration = Duration::from_millis(500);

impl PairedSupervisor {
    /// Returns true if this supervisor may propose the first term. Only the first supervisor of the two may.
    pub(super) fn is_first(&self) -> bool {
        self.me == 0 && self.known.term == 0
    }

    /// Returns true if this supervisor may take over: it is the partner, so its log has all records that were acted upon.
    pub(super) fn may_take_over(&self) -> bool {
        self.known.term > 0 && self.known.leader != self.me && self.known.partner == self.log.id()
    }

    /// Returns the term that this supervisor may propose to continue the work of a lost leader; `None` if it may not.
    ///
    /// A leader may be lost at the moment at which a pairing is decided. Only a vote shows the decision, so the follower
    /// proposes the same pairing. If the pairing is decided, now or before, the follower may take over. If the leader
    /// continued alone, the follower learns of that term instead.
    pub(super) fn succeeding(&self) -> Option<Leadership> {
        if self.may_take_over() {
            return Some(self.alone());
        }
        self.log.pairing_with_this(self.known).filter(|pairing| pairing.leader != self.me)
    }

    /// Returns the time at which [`Self::find_leader`] is due; `None` while this supervisor leads or has a leader.
    pub(super) fn without_leader_at(&self) -> Option<Instant> {
        if self.lead.is_some() || self.is_elected || self.has_leader {
            return None;
        }
        let asks = self.asked_at.checked_add(ASK_EVERY);
        let acts = if self.proposer.is_busy() {
            None
        } else if self.is_first() {
            Some(self.lost_since).filter(|_| self.log.size() > 0)
        } else {
            self.succeeding().and_then(|_| self.lost_since.checked_add(TAKEOVER_AFTER))
        };
        asks.into_iter().chain(acts).min()
    }

    pub(super) fn find_leader(&mut self, now: Instant) {
        if now.saturating_since(self.asked_at) >= ASK_EVERY {
            self.asked_at = now;
            self.say_to_readouts(&SuccessionMessage::Learned(self.known));
        }
        if self.proposer.is_busy() {
            return;
        }
        if self.is_first() {
            if self.log.size() > 0 {
                self.proposer.propose(now, self.known, self.alone());
            }
        } else if let Some(next) = self.succeeding()
            && now.saturating_since(self.lost_since) >= TAKEOVER_AFTER
        {
            tracing::warn!(term = next.term, "no leader: asks the readouts for the next term");
            self.proposer.propose(now, self.known, next);
        }
    }
}
