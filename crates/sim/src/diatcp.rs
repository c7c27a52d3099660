//! DIATCP in the simulated world: the receiving hosts, each with its [`WindowShares`], which say how it works.
//!
//! Whoever owes nothing has a window of zero, which the next request opens, and whoever gets more is told by a window
//! update, an acknowledgement like any other on the way back.

use std::collections::BTreeMap;

use fanin_dataflow::WindowShares;
use fanin_units::{Duration, Instant};

use crate::index::EndIndex;

/// What a message means for the connection that it goes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Awaits {
    /// Nothing.
    Nothing,
    /// It asks for an answer.
    Opens,
    /// It is one.
    Closes,
}

/// What sharing out has come to.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct DiatcpCounters {
    /// Window updates sent.
    pub(crate) updates: u64,
    /// Acknowledgements sent because a window was used up.
    pub(crate) used_up: u64,
}

/// The receiving hosts.
#[derive(Debug)]
pub(crate) struct Diatcp {
    /// Of a host that has received nothing so far.
    fresh: WindowShares,
    pub(crate) mss: u32,
    hosts: BTreeMap<u32, WindowShares>,
    changed: Vec<u32>,
    pub(crate) counters: DiatcpCounters,
}

impl Diatcp {
    /// `global_window` is in segments.
    pub(crate) fn new(global_window: u32, mss: u16, deadline: Duration, deadline_aware: bool) -> Self {
        Self {
            fresh: WindowShares::new(global_window, deadline, deadline_aware),
            mss: u32::from(mss),
            hosts: BTreeMap::new(),
            changed: Vec::new(),
            counters: DiatcpCounters::default(),
        }
    }

    /// An answer was asked for over the connection of `end`, which stands at `host`.
    pub(crate) fn open(&mut self, now: Instant, host: u32, end: EndIndex) {
        if self.hosts.entry(host).or_insert_with(|| self.fresh.clone()).open(now, end) {
            self.change(host);
        }
    }

    /// An answer is complete. Returns whether it was the last that the connection owed: its window is then to be closed.
    pub(crate) fn close(&mut self, now: Instant, host: u32, end: EndIndex) -> bool {
        let Some(shares) = self.hosts.get_mut(&host) else { return false };
        let was_last = shares.close(now, end);
        if shares.has_changed() {
            self.change(host);
        }
        was_last
    }

    fn change(&mut self, host: u32) {
        if !self.changed.contains(&host) {
            self.changed.push(host);
        }
    }

    /// Whether a connection owes an answer.
    pub(crate) fn is_debtor(&self, host: u32, end: EndIndex) -> bool {
        self.hosts.get(&host).is_some_and(|shares| shares.is_debtor(end))
    }

    /// Shares the windows of hosts out anew where something changed; `tell` is handed each end whose share did, its window in
    /// bytes, and whether it grew.
    pub(crate) fn share_out(&mut self, now: Instant, mut tell: impl FnMut(EndIndex, u32, bool)) {
        while let Some(host) = self.changed.pop() {
            if let Some(shares) = self.hosts.get_mut(&host) {
                shares.share_out(now, |end, share, grew| tell(end, share * self.mss, grew));
            }
        }
    }

    /// The receivers.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &WindowShares> {
        self.hosts.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_share_out_windows_of_their_own() {
        let at = |ms| Instant::START + Duration::from_millis(ms);
        let mut diatcp = Diatcp::new(12, 1000, Duration::ZERO, false);
        (0..3).for_each(|end| diatcp.open(at(0), 7, end));
        diatcp.open(at(0), 8, 9);
        let mut told = Vec::new();
        diatcp.share_out(at(0), |end, bytes, grew| told.push((end, bytes, grew)));
        told.sort_unstable();
        assert_eq!(told, [(0, 4000, true), (1, 4000, true), (2, 4000, true), (9, 12_000, true)]);
        assert!(diatcp.close(at(1), 7, 1) && !diatcp.close(at(1), 6, 1));
        assert!(diatcp.is_debtor(7, 2) && !diatcp.is_debtor(7, 1) && !diatcp.is_debtor(8, 2));
    }
}
