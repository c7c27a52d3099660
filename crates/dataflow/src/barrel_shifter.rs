//! Event building by linear shift: hosts send to each other in turns, separated by barriers.
//!
//! The event builders of CMS ("barrel shifter"; G. Antchev et al., "The CMS event builder demonstrator and results with
//! Myrinet", Comput. Phys. Commun. 140, 2001) and LHCb ("linear shift"; F. Pisani et al., "Design and commissioning of
//! the first 32-Tbit/s event-builder", IEEE Trans. Nucl. Sci. 70, 2023) use a linear shift. In phase `k` source `i`
//! sends to destination `(i + k) mod N`, so that two sources never share a destination's link. If one side has fewer
//! hosts, or some have failed, their places stay empty ("ghost nodes"). The bandwidth of these phases is lost, and all
//! other hosts keep their turns.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Duration, Instant};

use crate::timers::later;

/// The source-destination pairs of each phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearShift {
    sources: u32,
    destinations: u32,
}

impl LinearShift {
    /// Makes a shift in which each of `sources` sends to each of `destinations` once a turn.
    ///
    /// # Panics
    /// If `sources` or `destinations` is zero.
    pub fn new(sources: u32, destinations: u32) -> Self {
        assert!(sources > 0 && destinations > 0, "a shift has no host on one side");
        Self { sources, destinations }
    }

    /// Returns the number of phases in a turn.
    pub fn phases(&self) -> u32 {
        self.sources.max(self.destinations)
    }

    /// Returns the destination of a source in a phase; `None` if the source's place is empty. Phases are counted from
    /// the start of the shift.
    pub fn destination(&self, phase: u64, source: u32) -> Option<u32> {
        let phases = u64::from(self.phases());
        let destination = ((u64::from(source) + phase) % phases) as u32;
        (source < self.sources && destination < self.destinations).then_some(destination)
    }

    /// Returns the source that sends to a destination in a phase; `None` if the destination's place is empty.
    pub fn source(&self, phase: u64, destination: u32) -> Option<u32> {
        let phases = u64::from(self.phases());
        let source = ((u64::from(destination) + phases - phase % phases) % phases) as u32;
        (destination < self.destinations && source < self.sources).then_some(source)
    }
}

/// A host of a shift, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShiftHost {
    /// A host that sends.
    Source(u32),
    /// A host that receives.
    Destination(u32),
}

/// The reports of a transfer that the barrier still waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingReport {
    /// The source's report that it has sent all data for its destination.
    Sending,
    /// The destination's report that it has received the data.
    Receiving,
    /// Both reports have arrived.
    Nothing,
}

/// Counters of a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BarrierCounters {
    /// Phases that were completed.
    pub phases: u64,
    /// Transfers with data for the destination.
    pub transfers: u64,
    /// Places in the turn that stayed empty: no host, or nothing to send.
    pub empty: u64,
    /// Hosts excluded after a timeout.
    pub excluded: u64,
}

/// The barrier between phases. The next phase starts when every transfer of the present one is reported complete.
///
/// Sources report when they have sent, destinations when they have received. A host that does not report within the
/// timeout is excluded, and the shift continues without it.
#[derive(Debug, Clone)]
pub struct PhaseBarrier {
    shift: LinearShift,
    timeout: Duration,
    phase: u64,
    began: Instant,
    pending: Vec<PendingReport>,
    pending_count: u32,
    sources: Vec<bool>,
    destinations: Vec<bool>,
    has_begun: bool,
    excluded: VecDeque<ShiftHost>,
    counters: BarrierCounters,
    /// Transfers of sources excluded before their report.
    missed: u64,
}

impl PhaseBarrier {
    /// Makes a barrier, and begins phase 0 at `now`. A host that does not report within `timeout` is excluded.
    pub fn new(now: Instant, shift: LinearShift, timeout: Duration) -> Self {
        let mut barrier = Self {
            shift,
            timeout,
            phase: 0,
            began: now,
            pending: vec![PendingReport::Nothing; shift.sources as usize],
            pending_count: 0,
            sources: vec![true; shift.sources as usize],
            destinations: vec![true; shift.destinations as usize],
            has_begun: false,
            excluded: VecDeque::new(),
            counters: BarrierCounters::default(),
            missed: 0,
        };
        barrier.begin(now, 0);
        barrier
    }

    /// Returns the present phase, counted from 0.
    pub fn phase(&self) -> u64 {
        self.phase
    }

    /// Returns the start of the present phase, which is the end of the phase before it.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Returns the counters up to now.
    pub fn counters(&self) -> &BarrierCounters {
        &self.counters
    }

    /// Returns the pairs of live hosts of the present phase: source and destination.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.shift.sources).filter_map(|source| Some((source, self.partner(source)?)))
    }

    /// Returns true once after each start of a phase: its sources may send.
    pub fn poll_begun(&mut self) -> bool {
        core::mem::take(&mut self.has_begun)
    }

    /// Returns the next host that was excluded; `None` if there is none.
    pub fn poll_excluded(&mut self) -> Option<ShiftHost> {
        self.excluded.pop_front()
    }

    /// Returns the next time at which [`Self::handle_deadline`] must be called; `None` while no report is pending.
    pub fn poll_deadline(&self) -> Option<Instant> {
        (self.pending_count > 0).then(|| later(self.began, self.timeout))
    }

    /// Handles a source's report that it has sent its data of a phase; `anything` is false if the source had none. Late
    /// reports are ignored.
    pub fn handle_sent(&mut self, now: Instant, phase: u64, source: u32, anything: bool) {
        if phase != self.phase || self.pending.get(source as usize) != Some(&PendingReport::Sending) {
            return;
        }
        if anything {
            self.counters.transfers += 1;
            self.pending[source as usize] = PendingReport::Receiving;
        } else {
            self.counters.empty += 1;
            self.clear_report(source);
        }
        self.advance(now);
    }

    /// Handles a destination's report that it has received all data of a phase. Late reports are ignored.
    pub fn handle_received(&mut self, now: Instant, phase: u64, destination: u32) {
        if phase != self.phase {
            return;
        }
        // The destination's report may overtake the source's; the transfer was then not empty.
        if let Some(source) = self.shift.source(phase, destination) {
            if self.pending[source as usize] == PendingReport::Sending {
                self.counters.transfers += 1;
            }
            self.clear_report(source);
        }
        self.advance(now);
    }

    /// Handles the deadline that [`Self::poll_deadline`] returned: hosts without a report are excluded.
    pub fn handle_deadline(&mut self, now: Instant) {
        if self.poll_deadline().is_none_or(|deadline| deadline > now) {
            return;
        }
        for source in 0..self.shift.sources {
            match self.pending[source as usize] {
                PendingReport::Nothing => continue,
                PendingReport::Sending => {
                    self.missed += 1;
                    self.exclude(ShiftHost::Source(source));
                }
                PendingReport::Receiving => {
                    let destination = self.shift.destination(self.phase, source).expect("it has a partner");
                    self.exclude(ShiftHost::Destination(destination));
                }
            }
            self.clear_report(source);
        }
        self.advance(now);
    }

    /// Asserts that each place of each phase was counted once: as a transfer, as empty, or for an excluded host.
    ///
    /// # Panics
    /// If a place is unaccounted for.
    pub fn assert_conserved(&self) {
        let BarrierCounters { phases, transfers, empty, .. } = self.counters;
        let sending =
            self.pending.iter().filter(|&&pending| pending == PendingReport::Sending).count() as u64;
        let begun = phases + u64::from(self.pending_count > 0);
        let places = begun * u64::from(self.shift.phases());
        assert_eq!(transfers + empty + self.missed + sending, places, "places of phases are unaccounted for");
        let pending = self.pending.iter().filter(|&&pending| pending != PendingReport::Nothing).count();
        assert_eq!(pending, self.pending_count as usize, "reports are unaccounted for");
    }

    fn exclude(&mut self, host: ShiftHost) {
        match host {
            ShiftHost::Source(source) => self.sources[source as usize] = false,
            ShiftHost::Destination(destination) => self.destinations[destination as usize] = false,
        }
        self.counters.excluded += 1;
        self.excluded.push_back(host);
    }

    /// Returns the live destination of a live source in the present phase; `None` if there is none.
    fn partner(&self, source: u32) -> Option<u32> {
        let destination = self.shift.destination(self.phase, source)?;
        (self.sources[source as usize] && self.destinations[destination as usize]).then_some(destination)
    }

    fn clear_report(&mut self, source: u32) {
        let pending = &mut self.pending[source as usize];
        if *pending != PendingReport::Nothing {
            *pending = PendingReport::Nothing;
            self.pending_count -= 1;
        }
    }

    fn advance(&mut self, now: Instant) {
        assert!(now >= self.began, "time runs backwards");
        if self.pending_count > 0 {
            return;
        }
        self.counters.phases += 1;
        self.begin(now, self.phase + 1);
    }

    /// Begins a phase, or the next one with a live pair; without such a pair, ends the shift.
    fn begin(&mut self, now: Instant, phase: u64) {
        assert_eq!(self.pending_count, 0, "a phase begins before all of the last one have reported");
        for phase in phase..phase + u64::from(self.shift.phases()) {
            self.phase = phase;
            for source in 0..self.shift.sources {
                if self.partner(source).is_some() {
                    self.pending[source as usize] = PendingReport::Sending;
                    self.pending_count += 1;
                }
            }
            let places = u64::from(self.shift.phases());
            self.counters.empty += places - u64::from(self.pending_count);
            if self.pending_count > 0 {
                (self.began, self.has_begun) = (now, true);
                return;
            }
            self.counters.phases += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn four_hosts_take_turns() {
        let shift = LinearShift::new(4, 4);
        let phase = |k: u64| -> Vec<u32> { (0..4).map(|i| shift.destination(k, i).unwrap()).collect() };
        assert_eq!([phase(0), phase(1), phase(5)], [[0, 1, 2, 3], [1, 2, 3, 0], [1, 2, 3, 0]].map(Vec::from));
    }

    proptest! {
        /// In no phase does a host send or receive twice, and in a turn every pair meets once.
        #[test]
        fn every_pair_meets_once_in_a_turn(sources in 1u32..40, destinations in 1u32..40, first in 0u64..1000) {
            let shift = LinearShift::new(sources, destinations);
            let mut met = BTreeSet::new();
            for phase in first..first + u64::from(shift.phases()) {
                let mut busy = BTreeSet::new();
                for source in 0..sources {
                    if let Some(destination) = shift.destination(phase, source) {
                        prop_assert!(busy.insert(destination), "two senders for {}", destination);
                        prop_assert_eq!(shift.source(phase, destination), Some(source));
                        prop_assert!(met.insert((source, destination)));
                    }
                }
            }
            prop_assert_eq!(met.len() as u32, sources * destinations);
        }
    }

    fn at(us: u64) -> Instant {
        Instant::START + Duration::from_micros(us)
    }

    #[test]
    fn a_phase_ends_with_its_last_transfer() {
        let mut barrier = PhaseBarrier::new(at(0), LinearShift::new(2, 2), Duration::from_millis(1));
        assert!(barrier.poll_begun() && !barrier.poll_begun());
        assert_eq!(barrier.pairs().collect::<Vec<_>>(), [(0, 0), (1, 1)]);
        barrier.handle_sent(at(1), 0, 0, true);
        barrier.handle_sent(at(1), 0, 1, false);
        barrier.handle_sent(at(2), 0, 0, true);
        assert_eq!((barrier.phase(), barrier.poll_begun()), (0, false));
        barrier.handle_received(at(3), 0, 0);
        assert_eq!((barrier.phase(), barrier.poll_begun()), (1, true));
        // A report of an earlier phase changes nothing.
        barrier.handle_received(at(4), 0, 1);
        assert_eq!(barrier.pairs().collect::<Vec<_>>(), [(0, 1), (1, 0)]);
        assert_eq!((barrier.counters().transfers, barrier.counters().empty), (1, 1));
    }

    #[test]
    fn the_silent_are_left_behind() {
        let mut barrier = PhaseBarrier::new(at(0), LinearShift::new(3, 2), Duration::from_millis(1));
        // Source 0 does not report; destination 1 does not receive; source 2 has no partner in phase 0.
        barrier.handle_sent(at(5), 0, 1, true);
        assert_eq!(barrier.poll_deadline(), Some(at(1000)));
        barrier.handle_deadline(at(999));
        assert_eq!(barrier.phase(), 0);
        barrier.handle_deadline(at(1000));
        barrier.assert_conserved();
        let gone: Vec<_> = std::iter::from_fn(|| barrier.poll_excluded()).collect();
        assert_eq!(gone, [ShiftHost::Source(0), ShiftHost::Destination(1)]);
        // Phase 1 would be 0 to 1 and 2 to 0: one pair is left.
        assert_eq!((barrier.phase(), barrier.pairs().collect::<Vec<_>>()), (1, vec![(2, 0)]));
        // Without a destination, there is no report to wait for.
        barrier.handle_sent(at(1001), 1, 2, true);
        barrier.handle_deadline(at(3000));
        assert_eq!((barrier.pairs().count(), barrier.poll_deadline()), (0, None));
        assert_eq!(barrier.counters().excluded, 3);
        barrier.assert_conserved();
    }

    #[test]
    #[should_panic(expected = "places of phases are unaccounted for")]
    fn a_place_that_is_used_twice_is_found() {
        let mut barrier = PhaseBarrier::new(at(0), LinearShift::new(2, 2), Duration::from_millis(1));
        barrier.handle_sent(at(1), 0, 0, true);
        barrier.assert_conserved();
        barrier.counters.transfers += 1;
        barrier.assert_conserved();
    }
}
