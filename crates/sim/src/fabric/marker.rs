//! Marking on the queue as it is, at ports that count what they hold by themselves.

use fanin_queueing::{Decision, Ecn, Occupancy, Threshold};

use super::{Port, SwitchTotals};

/// A threshold at one output, and what it has done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marker {
    threshold: Threshold,
    /// Frames that came to the output.
    pub(crate) offered: u64,
    /// Of them: marked, and dropped because they may not be.
    pub(crate) marked: u64,
    pub(crate) dropped: u64,
}

impl Marker {
    pub(super) const fn new(threshold: Threshold) -> Self {
        Self { threshold, offered: 0, marked: 0, dropped: 0 }
    }

    /// Decides about an arriving frame, as [`fanin_queueing::Aqm::decide`] does; who is told to mark it says whether it was let in.
    #[inline]
    pub(super) fn decide(
        &mut self,
        port: &mut Port,
        now: u64,
        ecn: Ecn,
        switch: &mut SwitchTotals,
        unstored_bytes: u32,
    ) -> Decision {
        self.offered += 1;
        // As far as anybody has looked, which is never too little.
        if self.threshold.decide(&occupancy(port), ecn) == Decision::Pass {
            return Decision::Pass;
        }
        switch.held -= port.settle(now, unstored_bytes);
        let decision = self.threshold.decide(&occupancy(port), ecn);
        self.dropped += u64::from(decision == Decision::Drop);
        decision
    }
}

/// What waits at a port as far as anybody has looked.
#[inline]
fn occupancy(port: &Port) -> Occupancy {
    Occupancy { bytes: port.held, frames: u64::from(port.len - port.released), ..Occupancy::default() }
}

#[cfg(test)]
mod tests {
    use fanin_queueing::{
        Aqm, Depth, FifoMemory, Frame, InService, Layout, Limit, Link, NotCapable, Passage,
    };
    use fanin_units::{Bytes, Instant, Packets, Rate};
    use proptest::prelude::*;

    use super::*;
    use crate::fabric::Parcel;
    use crate::memories::Place;
    use crate::schedule::Schedule;

    /// Bytes of a frame on the wire that are not stored.
    const UNSTORED: u32 = 20;
    const LIMIT: u64 = 20_000;

    /// What becomes of a frame: whether it is marked, or that it is dropped, by the marker or else.
    type Fate = Result<bool, bool>;

    /// By a port that counts by itself.
    fn by_port(frames: &[(u64, u32, Ecn)], threshold: Threshold, counts_in_service: bool) -> Vec<Fate> {
        let rate = Rate::new(10_000_000_000);
        let mut port = Port::new(rate, Place { memory: u32::MAX, output: 0, input: 0 });
        (port.limit, port.delay, port.is_plain) = (LIMIT, 2_000_000, true);
        port.counts_in_service = counts_in_service;
        let (mut marker, mut schedule) = (Marker::new(threshold), Schedule::new(1 << 20, 1));
        let mut switch = SwitchTotals {
            held: 0,
            ample: u64::MAX,
            look_at: u64::MAX,
            base: 0,
            counts_bulk_only: false,
            writes_windows: false,
        };
        // When the next frame arrives at the far end.
        let mut next = schedule.pop();
        let mut fate = |&(now, wire_bytes, ecn): &(u64, u32, Ecn)| {
            next = next.or_else(|| schedule.pop());
            while let Some((at, _)) = next.filter(|&(at, _)| at <= now) {
                let arrived = port.arrive(&mut schedule, at, 0);
                let held = u64::from(port.released == 0) * port.charge(arrived.wire_bytes(), UNSTORED);
                port.released = port.released.saturating_sub(1);
                (port.held, switch.held) = (port.held - held, switch.held - held);
                next = schedule.pop();
            }
            let decision = marker.decide(&mut port, now, ecn, &mut switch, UNSTORED);
            if decision == Decision::Drop {
                return Err(true);
            }
            let charge = port.charge(wire_bytes, UNSTORED);
            let settle = |port: &mut Port| port.settle(now, UNSTORED);
            if !port.admit(charge, &mut switch, &mut false, settle) {
                return Err(false);
            }
            let departure = now.max(port.departure) + port.time_to_send(wire_bytes);
            port.accept(&mut schedule, departure, 0, Parcel::of(wire_bytes, 0));
            Ok(decision == Decision::Mark)
        };
        frames.iter().map(&mut fate).collect()
    }

    /// By a memory that looks at every departure.
    fn by_memory(frames: &[(u64, u32, Ecn)], threshold: Threshold, counts_in_service: bool) -> Vec<Fate> {
        let link = Link::new(Rate::new(10_000_000_000), Bytes::new(UNSTORED.into()));
        let in_service = if counts_in_service { InService::Counted } else { InService::Free };
        let layout = Layout::dedicated(vec![Bytes::new(LIMIT)]);
        let mut memory = FifoMemory::new(&layout, &[link], in_service).unwrap();
        memory.set_aqm(0, Aqm::Threshold(threshold));
        let fate = |&(now, wire_bytes, ecn): &(u64, u32, Ecn)| {
            let frame = Frame { bytes: wire_bytes - UNSTORED, ecn };
            match memory.handle_arrival(Instant::new(now), 0, 0, frame, || 0) {
                Passage::Queued { marked, .. } => Ok(marked),
                Passage::Dropped(limit) => Err(limit == Limit::Early),
            }
        };
        frames.iter().map(fate).collect()
    }

    proptest! {
        #[test]
        fn marks_what_a_memory_marks(
            // Gaps of 0 to 3 µs, frames of 67 ns to 1.2 µs.
            frames in prop::collection::vec(
                (
                    0_u64..3_000_000,
                    84_u32..1_538,
                    prop::sample::select(vec![Ecn::NotCapable, Ecn::Capable, Ecn::Congestion]),
                ),
                1..400,
            ),
            burst in 1_u64..8,
            depth in 0_u64..12,
            by_bytes: bool,
            drops: bool,
            counts_in_service: bool,
        ) {
            let mut now = 0;
            let frames: Vec<(u64, u32, Ecn)> = frames
                .into_iter()
                .enumerate()
                .map(|(place, (gap, bytes, ecn))| {
                    // Several at one instant, then a rest.
                    now += if (place as u64).is_multiple_of(burst) { gap } else { 0 };
                    (now, bytes, ecn)
                })
                .collect();
            let threshold = Threshold {
                depth: if by_bytes { Depth::Bytes(Bytes::new(depth * 1_500)) } else { Depth::Packets(Packets::new(depth)) },
                not_capable: if drops { NotCapable::Drop } else { NotCapable::Pass },
            };
            prop_assert_eq!(
                by_port(&frames, threshold, counts_in_service),
                by_memory(&frames, threshold, counts_in_service)
            );
        }
    }
}
