//! DIATCP at a collector: its window, divided among the readouts with outstanding answers (ICC'15 §IV.D).
//!
//! [`WindowShares`] computes the size of each share; this module decides when a share takes effect. An offered window
//! cannot be withdrawn, so a readout may still use its earlier, larger share. Therefore, a share grows and a request is
//! sent only if all bytes that may be in flight fit into the global window. A request without room is sent later, because
//! the kernel cannot offer a window of zero.

use std::collections::BTreeMap;
use std::time::Instant;

use fanin_dataflow::WindowShares;
use fanin_scenario::Scenario;

use super::GlobalWindow;

/// Windows that a collector offers to its readouts.
#[derive(Debug)]
pub(crate) struct Windows {
    pub(crate) shares: WindowShares,
    /// Global window: bytes that may be in flight from all readouts together.
    global: u64,
    /// Payload of a full segment, bytes.
    pub(crate) segment: u64,
    readouts: BTreeMap<u16, ReadoutWindow>,
    start: Instant,
}

#[derive(Debug, Clone, Copy, Default)]
struct ReadoutWindow {
    /// The readout's share, bytes.
    share: u64,
    /// The window that the kernel offers, bytes.
    clamp: u64,
    /// Largest window that the readout may still assume, bytes; `u64::MAX` for a new connection.
    believed: u64,
    /// Bytes received on the readout's connection.
    received: u64,
    /// Highest offset in the readout's stream that an offered window has allowed.
    edge: u64,
    /// Number of admitted requests without a complete answer.
    asked: u32,
}

impl ReadoutWindow {
    /// Returns the bytes that may be in flight from the readout.
    const fn in_flight_max(&self) -> u64 {
        if self.asked > 0 { self.edge.saturating_sub(self.received) } else { 0 }
    }

    fn offer(&mut self, clamp: u64) {
        self.clamp = clamp;
        self.edge = self.edge.max(self.received + clamp);
    }
}

impl Windows {
    /// Creates the windows of a collector; returns `None` unless the scenario uses DIATCP.
    pub(crate) fn of(scenario: &Scenario) -> Option<Self> {
        let global = GlobalWindow::of(scenario)?;
        Some(Self {
            shares: global.shares(scenario),
            global: global.bytes(),
            segment: global.segment.into(),
            readouts: BTreeMap::new(),
            start: Instant::now(),
        })
    }

    fn now(&self) -> fanin_units::Instant {
        fanin_units::Instant::START
            + fanin_units::Duration::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Adds an established connection, with a window of one segment.
    pub(crate) fn handle_connected(&mut self, readout: u16) {
        let believed = u64::MAX;
        self.readouts
            .insert(readout, ReadoutWindow { clamp: self.segment, believed, ..ReadoutWindow::default() });
    }

    /// Removes a lost connection with its requests.
    pub(crate) fn handle_lost(&mut self, readout: u16) {
        self.shares.forget(readout.into());
        self.readouts.remove(&readout);
    }

    /// Notes a request that waits for [`Self::admit`].
    pub(crate) fn handle_wanted(&mut self, readout: u16) {
        self.shares.open(self.now(), readout.into());
    }

    /// Sets the number of bytes received on a connection so far. The offered window moves along.
    pub(crate) fn handle_received(&mut self, readout: u16, bytes: u64) {
        if let Some(window) = self.readouts.get_mut(&readout) {
            window.received = bytes.max(window.received);
            window.offer(window.clamp);
        }
    }

    /// Notes a complete answer. If no further answer is outstanding, returns the clamp until the next request, in bytes.
    pub(crate) fn handle_answer(&mut self, readout: u16) -> Option<u64> {
        self.shares.close(self.now(), readout.into());
        let segment = self.segment;
        let window = self.readouts.get_mut(&readout)?;
        window.asked = window.asked.saturating_sub(1);
        (window.asked == 0).then(|| {
            window.believed = window.believed.max(window.clamp);
            window.clamp = segment;
            segment
        })
    }

    fn room(&self) -> u64 {
        self.global.saturating_sub(self.readouts.values().map(ReadoutWindow::in_flight_max).sum())
    }

    /// Returns true if a request to a readout may be sent now, and counts it as sent.
    pub(crate) fn admit(&mut self, readout: u16) -> bool {
        let room = self.room();
        // Without any outstanding answer, a request is admitted in any case.
        let is_idle = self.readouts.values().all(|window| window.asked == 0);
        let segment = self.segment;
        let Some(window) = self.readouts.get_mut(&readout) else { return true };
        if window.asked == 0 {
            if room < segment && !is_idle {
                return false;
            }
            window.edge = window.received;
            window.offer(segment);
        }
        window.asked += 1;
        true
    }

    /// Divides the window and changes the clamps that may change now. Calls `offer` with each readout whose clamp changes,
    /// and the clamp in bytes.
    pub(crate) fn apply_shares(&mut self, mut offer: impl FnMut(u16, u64)) {
        let (now, segment, readouts) = (self.now(), self.segment, &mut self.readouts);
        self.shares.share_out(now, |readout, segments, _| {
            if let Some(window) = readouts.get_mut(&(readout as u16)) {
                window.share = u64::from(segments.max(1)) * segment;
            }
        });
        for (&readout, window) in readouts.iter_mut().filter(|(_, window)| window.share < window.clamp) {
            if window.asked > 0 {
                window.clamp = window.share;
                offer(readout, window.clamp);
            }
        }
        let mut room = self.room();
        let wanting = |window: &ReadoutWindow| window.asked > 0 && window.share > window.clamp;
        for (&readout, window) in self.readouts.iter_mut().filter(|(_, window)| wanting(window)) {
            let more = (window.received + window.share).saturating_sub(window.edge);
            let granted = more.min(room);
            let clamp = (window.edge + granted).saturating_sub(window.received).min(window.share);
            let whole = clamp / segment * segment;
            if whole > window.clamp {
                let before = window.in_flight_max();
                window.offer(whole);
                room -= window.in_flight_max() - before;
                offer(readout, whole);
            }
        }
    }

    /// Returns true if the next request announces a smaller window than the readout may assume. TCP accepts a smaller window
    /// only from a segment with a newer sequence number (RFC 9293 §3.10.7.4, SND.WL1), so a byte must be sent first.
    pub(crate) fn shrinks(&mut self, readout: u16) -> bool {
        let Some(window) = self.readouts.get_mut(&readout) else { return false };
        let before = std::mem::replace(&mut window.believed, window.clamp);
        before > window.clamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(segments: u32) -> Windows {
        let text = format!(
            "[transport]\ncongestion_control = 'diatcp'\n[transport.diatcp]\nglobal_window = {segments}"
        );
        let scenario = fanin_scenario::load_text("test.toml", &text, &[]).unwrap().scenario;
        Windows::of(&scenario).unwrap()
    }

    /// The bytes in flight from all readouts of a simple network never exceed the window.
    #[test]
    fn outstanding_answers_fit_in_any_order_of_requests() {
        let (segments, readouts) = (20_u64, 12_u16);
        let mut windows = windows(segments as u32);
        let segment = windows.segment;
        (0..readouts).for_each(|readout| windows.handle_connected(readout));
        // For each readout: bytes owed, bytes sent, and the highest edge that it knows. An answer has 30 segments.
        let mut owed = vec![0_u64; readouts.into()];
        let (mut sent, mut known) = (owed.clone(), vec![0_u64; readouts.into()]);
        let (mut waiting, mut answered, mut most) = (Vec::new(), 0, 0);
        let mut state = 1_u64;
        for step in 0..40_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let one = (state >> 33) as u16 % readouts;
            if step % 250 == 0 && step < 30_000 {
                // One more event: every readout gets a request.
                (0..readouts).for_each(|readout| {
                    windows.handle_wanted(readout);
                    waiting.push(readout);
                });
            }
            let mut asked = Vec::new();
            waiting.retain(|&readout| {
                let goes = windows.admit(readout);
                asked.extend(goes.then_some(readout));
                !goes
            });
            windows.apply_shares(|_, _| {});
            for readout in asked {
                owed[usize::from(readout)] += 30 * segment;
            }
            for readout in 0..readouts {
                let place = usize::from(readout);
                known[place] = known[place].max(sent[place] + windows.readouts[&readout].clamp);
            }
            // One readout sends as much as its window allows. Half of its bytes in flight arrive, or all of them.
            let place = usize::from(one);
            let burst = owed[place].min(windows.readouts[&one].edge.saturating_sub(sent[place]));
            let on_its_way: u64 =
                (0..readouts).map(|other| sent[usize::from(other)] - windows.readouts[&other].received).sum();
            most = most.max(on_its_way + burst);
            assert!(on_its_way + burst <= segments * segment, "step {step}: {}", on_its_way + burst);
            (sent[place], owed[place]) = (sent[place] + burst, owed[place] - burst);
            let whole = |bytes: u64| bytes / (30 * segment);
            let before = windows.readouts[&one].received;
            let now = if step % 3 == 0 { sent[place] } else { before + (sent[place] - before) / 2 };
            windows.handle_received(one, now);
            for _ in whole(before)..whole(now) {
                answered += 1;
                windows.handle_answer(one);
            }
        }
        assert!(waiting.is_empty() && owed.iter().sum::<u64>() == 0, "{waiting:?} {owed:?}");
        // The window is used, too.
        assert!(answered == 120 * 12 && most > 10 * segment, "{answered} {most}");
    }

    #[test]
    fn a_smaller_window_is_announced_before_the_request_that_brings_it() {
        let mut windows = windows(10);
        windows.handle_connected(0);
        windows.handle_connected(1);
        // The kernel's own first window is larger than any share.
        windows.handle_wanted(0);
        assert!(windows.admit(0));
        let mut offered = Vec::new();
        windows.apply_shares(|readout, bytes| offered.push((readout, bytes)));
        assert_eq!(offered, [(0, 10 * windows.segment)]);
        assert!(windows.shrinks(0) && !windows.shrinks(0));
        // The whole window is offered: the request to readout 1 waits, and readout 0 gets a smaller share.
        windows.handle_wanted(1);
        assert!(!windows.admit(1));
        windows.apply_shares(|readout, bytes| offered.push((readout, bytes)));
        assert_eq!(offered[1..], [(0, 5 * windows.segment)]);
        windows.handle_received(0, 4 * windows.segment);
        assert!(windows.admit(1));
        assert_eq!(windows.handle_answer(0), Some(windows.segment));
        windows.apply_shares(|readout, bytes| offered.push((readout, bytes)));
        assert_eq!(offered[2..], [(1, 10 * windows.segment)]);
        windows.handle_wanted(0);
        windows.handle_lost(1);
        assert!(windows.admit(0) && !windows.shares.is_debtor(1));
        windows.apply_shares(|_, _| {});
        assert!(!windows.readouts.contains_key(&1));
    }
}
