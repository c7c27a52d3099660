//! A port: the queue before a link, and the link.

use fanin_queueing::BookedDedicated;

use super::link::LinkState;
use super::pausable::PausableOutput;
use super::rings::RingOutput;
use crate::schedule::NEVER;

/// The queue before a link, by its discipline.
pub(super) enum OutputQueue {
    /// A host's: first in, first out, without a limit. Departures are booked on the link.
    Host,
    /// A switch's output with a buffer of its own (`dedicated.rs` of `queueing`); departures are booked.
    Dedicated(Box<BookedDedicated>),
    /// An output whose frames take memory of shared pools (`shared.rs`). The accounts are in
    /// [`Fabric::memories`](super::Fabric); departures are booked.
    Shared,
    /// An output of a pool with a dynamic threshold (`dynamic_threshold.rs`); otherwise as [`Self::Shared`].
    DynamicThreshold,
    /// An output with a queue in each input module (`voq.rs`); otherwise as [`Self::Shared`].
    Voq,
    /// An output with rings (`rings.rs`), driven naively.
    Rings(Box<RingOutput>),
    /// An output that PAUSE can stop (`pausable.rs`), driven naively. The memory of its frames is accounted in the
    /// [`PausingSwitch`](super::flow_control::PausingSwitch).
    Pausable(Box<PausableOutput>),
}

/// One direction of a link and the queue before it.
pub(super) struct Port {
    pub(super) link: LinkState,
    pub(super) queue: OutputQueue,
    /// The number of the switch it belongs to; [`NIL`](crate::index::NIL) at a host.
    pub(super) switch: u32,
    /// The port's number among those that leave its node.
    pub(super) output: u16,
    /// The number, at the node that the link leads to, of the port that its frames come in by.
    pub(super) input: u16,
}

/// The departure that is pending in the schedule, of an output that is driven naively.
pub(super) struct PendingDeparture {
    /// When it is due; occurrences of other times do nothing.
    at: u64,
}

impl PendingDeparture {
    pub(super) const fn none() -> Self {
        Self { at: NEVER }
    }

    /// Lets a departure be due at `at`, unless an earlier one is. Returns true if it has to be scheduled.
    pub(super) fn expect(&mut self, at: u64) -> bool {
        let is_earlier = at < self.at;
        if is_earlier {
            self.at = at;
        }
        is_earlier
    }

    /// Takes the departure that is due at `now`. Returns false if the occurrence is out of date.
    pub(super) fn take(&mut self, now: u64) -> bool {
        assert!(self.at >= now, "a departure was left out");
        let is_due = self.at == now;
        if is_due {
            self.at = NEVER;
        }
        is_due
    }

    pub(super) const fn is_expected(&self) -> bool {
        self.at != NEVER
    }
}
