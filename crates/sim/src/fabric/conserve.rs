//! Checks that every frame and every byte in the fabric is accounted for.

use fanin_units::Instant;

use super::Fabric;
use crate::parcel::Parcel;
use crate::schedule::Schedule;
use fanin_network::PortIndex;

impl Fabric {
    /// Returns all frames in queues and on links; a frame with a booked departure occurs once.
    fn frames(&self, schedule: &Schedule) -> impl Iterator<Item = Parcel> {
        let first = schedule.frames().map(|(_, parcel)| parcel);
        first.chain(self.ports.iter().flat_map(|port| port.link().frames().chain(port.waiting())))
    }

    /// Returns the payload bytes of all frames on their way.
    pub(crate) fn payload_in_flight(&self, schedule: &Schedule) -> u64 {
        self.frames(schedule).map(|parcel| u64::from(self.segments[parcel.segment()].payload)).sum()
    }

    /// Asserts that no link carried more than its rate, and each port kept its order. Every segment's place must be either
    /// used once or free. Every account of every queue must add up to the frames in the queue. `elsewhere` segments were
    /// taken and not sent yet.
    pub(crate) fn assert_conserved(&mut self, schedule: &Schedule, now: u64, elsewhere: usize) {
        for (index, port) in self.ports.iter_mut().enumerate() {
            port.assert_conserved(now, index);
        }
        for memory in self.memories.iter_mut().flatten() {
            memory.settle(Instant::new(now));
            memory.assert_conserved();
        }
        for (index, port) in self.ports.iter().enumerate() {
            let is_over = port.pausable().is_none() && port.link().free_at() <= now;
            let frames = self.buffer(index as PortIndex).map_or(0, |buffer| buffer.occupancy().frames);
            assert!(!is_over || frames == 0, "port {index} stores frames that have left");
        }
        self.flow_control.iter().for_each(|flow_control| flow_control.assert_conserved(&self.ports));
        let in_flight = elsewhere + self.frames(schedule).count();
        assert_eq!(in_flight + self.free.len(), self.segments.len(), "frames are unaccounted for");
        let mut is_used = vec![false; self.segments.len()];
        let frames = self.frames(schedule).map(|parcel| parcel.segment());
        for place in frames.chain(self.free.iter().map(|&place| place as usize)) {
            assert!(!std::mem::replace(&mut is_used[place], true), "segment {place} is used twice");
        }
    }
}
