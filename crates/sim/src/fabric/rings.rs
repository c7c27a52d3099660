//! An output with rings: the deep queues of a software switch ("daqrings").
//!
//! LCN'15 ("A Lossless Switch"), multi-host paper §II.B. Incast-sensitive flows are stored in a ring of their destination. A
//! ring holds a number of frames and is emptied at its own rate. Other frames wait in the port's plain queue, a ring without a
//! rate, and go first. The output is driven naively: whenever its link is free, it sends the next permitted frame. Each frame
//! that had to wait costs an occurrence.

use std::collections::BTreeMap;

use fanin_queueing::{Departure, Frame as Descriptor, Rings, Verdict};
use fanin_recording::RingVisitor;
use fanin_scenario::Daqrings;
use fanin_units::Instant;

use super::link::LinkState;
use super::output::PendingDeparture;
use crate::Error;
use crate::occurrence::Occurrence;
use crate::parcel::Parcel;
use crate::schedule::{NEVER, Schedule};
use fanin_network::PortIndex;

/// The ring of frames without a rule, which is served before all other rings.
pub(super) const PLAIN: u16 = 0;

/// An output with rings.
pub(super) struct RingOutput {
    rings: Rings<Parcel>,
    settings: Daqrings,
    /// The ring of each destination.
    ring_of: BTreeMap<u32, u16>,
    unstored_bytes: u32,
    departure: PendingDeparture,
}

/// Figures of the rings of all destinations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RingFigures {
    /// Rings of destinations.
    pub(crate) rings: u64,
    /// The most frames that a ring held.
    pub(crate) frames_max: u64,
    /// The most bytes that a ring held.
    pub(crate) bytes_max: u64,
    /// Frames that passed through the rings.
    pub(crate) frames: u64,
    /// Frames that the rings refused.
    pub(crate) drops: u64,
    /// Memory that full rings take, in bytes.
    pub(crate) memory_bytes: u64,
}

impl RingOutput {
    /// Makes an output with the plain queue only. A ring stores a frame without its `unstored_bytes`. Its token bucket counts
    /// the whole frame, so that a rate equal to the next link's matches that link.
    pub(super) fn new(settings: &Daqrings, unstored_bytes: u32) -> Result<Self, Error> {
        let mut rings = Rings::new(settings.service, None)?.with_overhead(unstored_bytes);
        let others = rings.add_ring(&settings.plain_queue())?;
        assert_eq!(others, usize::from(PLAIN), "the first ring is not that of frames that no rule names");
        rings.serve_first(others);
        Ok(Self {
            rings,
            settings: settings.clone(),
            ring_of: BTreeMap::new(),
            unstored_bytes,
            departure: PendingDeparture::none(),
        })
    }

    /// Returns the ring of a destination, and makes it if needed. Without a destination, returns the plain queue.
    pub(super) fn ring(&mut self, destination: Option<u32>) -> Result<u16, Error> {
        let Some(destination) = destination else { return Ok(PLAIN) };
        if let Some(&ring) = self.ring_of.get(&destination) {
            return Ok(ring);
        }
        let ring = self.rings.add_ring(&self.settings.ring())?;
        let ring = u16::try_from(ring).expect("a port has 65536 rings at most");
        self.ring_of.insert(destination, ring);
        Ok(ring)
    }

    /// Queues a frame in a ring; returns false if the ring is full.
    pub(super) fn arrive(&mut self, now: u64, ring: u16, parcel: Parcel) -> bool {
        let frame = Descriptor::new(parcel.wire_bytes() - self.unstored_bytes);
        let verdict = self.rings.arrive(Instant::new(now), usize::from(ring), frame, parcel, || 0);
        matches!(verdict, Verdict::Accepted { .. })
    }

    /// Returns the next permitted frame, or the time from which one is permitted.
    fn depart(&mut self, now: Instant) -> Result<Parcel, u64> {
        match self.rings.depart(now) {
            Departure::Frame { handle, .. } => Ok(handle),
            Departure::NotBefore(at) => Err(at.get()),
            Departure::Empty => Err(NEVER),
        }
    }

    /// Sends the next frame if the link is free, and schedules the departure after it.
    pub(super) fn serve(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        link: &mut LinkState,
        index: PortIndex,
    ) {
        let next = if link.free_at() > now {
            link.free_at()
        } else {
            match self.depart(Instant::new(now)) {
                Ok(parcel) => {
                    let departure = link.send_next(schedule, now, index, parcel);
                    // If all rings lack tokens at this departure, the next one is later.
                    departure.max(self.rings.none_before().get())
                }
                Err(at) => at,
            }
        };
        if self.rings.frames() > 0 && self.departure.expect(next) {
            assert!(next > now, "a frame that may go is kept");
            // With rings for several destinations, a departure has no precedence over an arrival at the same instant.
            if self.ring_of.len() > 1 {
                schedule.insert(next, Occurrence::Departure(index));
            } else {
                schedule.insert_first(next, Occurrence::Departure(index));
            }
        }
    }

    /// Takes the departure that is due at `now`. Returns false if the occurrence is out of date.
    pub(super) fn take_departure(&mut self, now: u64) -> bool {
        self.departure.take(now)
    }

    /// Returns the frames in all rings.
    pub(super) fn frames(&self) -> u64 {
        self.rings.frames()
    }

    /// Returns the bytes in all rings.
    pub(super) fn bytes(&self) -> u64 {
        self.each_ring().map(|ring| self.rings.occupancy(ring).bytes).sum()
    }

    /// Returns the high-water mark of the deepest ring, in bytes.
    pub(super) fn bytes_max(&self) -> u64 {
        self.each_ring().map(|ring| self.rings.occupancy(ring).bytes_max).max().unwrap_or(0)
    }

    /// Returns the frames that all rings refused.
    pub(super) fn drops(&self) -> u64 {
        self.each_ring().map(|ring| self.rings.counters(ring).dropped_total().frames).sum()
    }

    fn each_ring(&self) -> std::ops::Range<usize> {
        0..self.rings.rings_len()
    }

    /// Calls `visit` with each destination, the bytes of its ring, and the ring's high-water mark.
    pub(super) fn visit_rings(&self, visit: &mut RingVisitor<'_>) {
        for (&destination, &ring) in &self.ring_of {
            let held = self.rings.occupancy(usize::from(ring));
            visit(destination, (held.bytes, held.bytes_max));
        }
    }

    /// Returns the frames that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Parcel> {
        self.each_ring().flat_map(|ring| self.rings.waiting(ring))
    }

    /// Starts the high-water marks afresh.
    pub(super) fn reset_high_water_marks(&mut self) {
        self.each_ring().for_each(|ring| self.rings.reset_high_water_marks(ring));
    }

    /// Adds the figures of this output's destinations.
    pub(super) fn add_to(&self, figures: &mut RingFigures) {
        let rings = self.ring_of.len() as u64;
        figures.rings += rings;
        figures.memory_bytes += rings * u64::from(self.settings.frames) * self.settings.slot.get();
        for ring in self.each_ring().skip(usize::from(PLAIN) + 1) {
            let (held, counters) = (self.rings.occupancy(ring), self.rings.counters(ring));
            figures.frames_max = figures.frames_max.max(held.frames_max);
            figures.bytes_max = figures.bytes_max.max(held.bytes_max);
            figures.frames += counters.enqueued.frames;
            figures.drops += counters.dropped_total().frames;
        }
    }

    /// Asserts that every admitted frame, with all its bytes, has departed or waits.
    pub(super) fn assert_conserved(&self) {
        self.rings.assert_conserved();
        for ring in self.each_ring() {
            let held = self.rings.occupancy(ring);
            let bytes = |parcel: Parcel| u64::from(parcel.wire_bytes() - self.unstored_bytes);
            assert_eq!(
                self.rings.waiting(ring).map(bytes).sum::<u64>(),
                held.bytes,
                "ring {ring} miscounts bytes"
            );
        }
        let frames = self.rings.frames();
        assert!(frames == 0 || self.departure.is_expected(), "frames wait in rings and none is to be sent");
    }
}

#[cfg(test)]
#[path = "../../tests/unit/rings.rs"]
mod tests;
