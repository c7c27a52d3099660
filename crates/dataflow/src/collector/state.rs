//! The parts of a collector's state: its connections, requests that are not sent yet, and timers.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use fanin_units::Instant;

use super::slot::SlotKey;
use crate::{FragmentSet, L1Id};

/// The connection to the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SupervisorLink {
    Down,
    /// The hello was sent; the answer, with the events to forget, is outstanding.
    Greeting,
    Up,
    /// This collector stops in order, and the supervisor has answered that it assigns nothing more.
    Left,
}

impl SupervisorLink {
    /// Returns true if the supervisor has answered the hello.
    pub(super) fn is_up(self) -> bool {
        matches!(self, Self::Up | Self::Left)
    }
}

#[derive(Debug)]
pub(super) struct ReadoutLink {
    pub(super) is_up: bool,
    /// Time at which its fragments are given up, while it is down.
    pub(super) give_up: Instant,
    /// Requests that wait for the readout to return.
    pub(super) stalled: Vec<Blocked>,
    /// Clears that the readout missed while it was disconnected.
    pub(super) owed: VecDeque<Arc<[L1Id]>>,
    pub(super) all: FragmentSet,
    /// Time of the latest reminder. Answers to requests sent before it need no other one.
    pub(super) reminded: Instant,
}

/// A request that is not sent yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocked {
    pub(super) slot: SlotKey,
    pub(super) readout: u16,
    pub(super) retries: u8,
    pub(super) fragments: FragmentSet,
    pub(super) planned: Instant,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum CollectorTimer {
    /// A drawn processing time ends.
    Processed(SlotKey, u16),
    /// A unit has had its event for too long.
    UnitLate(SlotKey, u16),
    /// A logger has not answered for too long.
    LoggerLate(SlotKey, u16),
    /// All loggers refused: offer again.
    OfferAgain(SlotKey),
    /// A readout has been down for too long: it should have returned by this time.
    GiveUp(u16, Instant),
}

/// Clear messages kept for a disconnected readout; the oldest are dropped first.
pub(super) const CLEARS_OWED_MAX: usize = 4096;
