//! Finished events to delete from the readouts, in groups as in ATLAS.

use alloc::sync::Arc;
use alloc::vec::Vec;

use fanin_units::{Duration, Instant};

use crate::L1Id;

/// Rule for clearing finished events from the readouts. The message goes to every readout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClearConfig {
    /// The most events in one message; at least 1.
    pub clear_group: u16,
    /// The longest wait of an event for its group to fill.
    pub delay_max: Duration,
}

impl Default for ClearConfig {
    /// Clears after 100 events, or fewer after 100 ms.
    fn default() -> Self {
        Self { clear_group: 100, delay_max: Duration::from_millis(100) }
    }
}

/// Collects events until a group is full or has waited long enough.
#[derive(Debug)]
pub(crate) struct ClearBatch {
    config: ClearConfig,
    events: Vec<L1Id>,
    flush_at: Option<Instant>,
}

impl ClearBatch {
    pub(crate) fn new(config: ClearConfig) -> Self {
        Self { config, events: Vec::new(), flush_at: None }
    }

    /// Returns the most events of a group.
    pub(crate) fn group_len(&self) -> usize {
        self.config.clear_group.into()
    }

    /// Returns the events of the group so far.
    pub(crate) fn events(&self) -> &[L1Id] {
        &self.events
    }

    pub(crate) fn add(&mut self, now: Instant, event: L1Id) {
        if self.events.is_empty() {
            self.flush_at = now.checked_add(self.config.delay_max);
        }
        self.events.push(event);
    }

    pub(crate) fn forget(&mut self, event: L1Id) {
        self.events.retain(|&waiting| waiting != event);
        if self.events.is_empty() {
            self.flush_at = None;
        }
    }

    /// Returns the time at which the group's first event has waited `delay_max`; `None` without events.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.flush_at
    }

    /// Takes the group's events if the group is full or its deadline has passed; otherwise returns `None`.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Arc<[L1Id]>> {
        let full = self.events.len() >= usize::from(self.config.clear_group);
        let late = self.flush_at.is_some_and(|at| at <= now);
        assert!(!self.events.is_empty() || self.flush_at.is_none(), "a clear of no event is due");
        if self.events.is_empty() || !(full || late) {
            return None;
        }
        let events = Arc::from(self.events.as_slice());
        self.events.clear();
        self.flush_at = None;
        Some(events)
    }
}
