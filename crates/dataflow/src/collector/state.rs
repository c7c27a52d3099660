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
    /// Said hello; which of its events are no longer its own is not known yet.
    Greeting,
    Up,
}

#[derive(Debug)]
pub(super) struct ReadoutLink {
    pub(super) up: bool,
    /// While it is down: when its fragments are given up.
    pub(super) give_up: Instant,
    /// Requests that wait for the readout to come back.
    pub(super) stalled: Vec<Blocked>,
    /// Clears that the readout missed while it was away.
    pub(super) owed: VecDeque<Arc<[L1Id]>>,
    pub(super) all: FragmentSet,
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
    /// A unit has had its event too long.
    UnitLate(SlotKey, u16),
    /// A logger has been silent too long.
    LoggerLate(SlotKey, u16),
    /// All loggers refused; time to ask again.
    OfferAgain(SlotKey),
    /// A readout has been away too long: since it was to be back at this time.
    GiveUp(u16, Instant),
}

/// Clear messages kept for a disconnected readout; the oldest are dropped first.
pub(super) const CLEARS_OWED_MAX: usize = 4096;
