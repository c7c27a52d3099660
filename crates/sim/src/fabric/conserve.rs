//! Checks that every frame and every byte in the fabric is accounted for.

use fanin_units::Instant;

use super::{Fabric, OutputQueue, Parcel};

impl Fabric {
    /// All frames in queues that are driven naively.
    fn waiting(&self) -> impl Iterator<Item = Parcel> {
        self.ports.iter().flat_map(|port| {
            let waiting: Box<dyn Iterator<Item = Parcel>> = match &port.queue {
                OutputQueue::Rings(queue) => Box::new(queue.waiting()),
                OutputQueue::Pausable(queue) => Box::new(queue.output.waiting().map(|frame| frame.parcel)),
                // Frames whose departure is booked are on the link.
                _ => Box::new(std::iter::empty()),
            };
            waiting
        })
    }

    /// Payload of all frames on their way.
    pub(crate) fn payload_in_flight(&self) -> u64 {
        let on_links = self.ports.iter().flat_map(|port| port.link.frames()).map(|frame| frame.parcel);
        on_links.chain(self.waiting()).map(|parcel| u64::from(self.segments[parcel.segment()].payload)).sum()
    }

    /// Asserts that no link carried more than its rate and that each port kept its order. Every segment's place must be either
    /// used once or free. Every account of every queue must add up to the frames in the queue. `elsewhere` segments were taken
    /// and not sent yet.
    ///
    /// # Panics
    /// If one of these does not hold.
    pub(crate) fn assert_conserved(&mut self, now: u64, elsewhere: usize) {
        let at = Instant::new(now);
        let mut in_flight = elsewhere + self.waiting().count();
        for (index, port) in self.ports.iter_mut().enumerate() {
            port.link.assert_conserved(index);
            in_flight += port.link.len() as usize;
            match &mut port.queue {
                OutputQueue::Dedicated(queue) => {
                    queue.settle(at);
                    queue.assert_conserved();
                    let is_idle = port.link.free_at() <= now;
                    let is_empty = queue.buffer().occupancy().frames == 0;
                    assert!(!is_idle || is_empty, "port {index} stores frames that have left");
                }
                OutputQueue::Rings(queue) => queue.assert_conserved(),
                // The accounts of the others are those of their switch, below; a host's frames are on the link.
                _ => {}
            }
        }
        for memory in self.memories.iter_mut().flatten() {
            memory.settle(at);
            memory.assert_conserved();
        }
        for (index, port) in self.ports.iter().enumerate() {
            let memory = self.memories.get(port.switch as usize).and_then(Option::as_ref);
            if let Some(memory) = memory.filter(|_| port.link.free_at() <= now) {
                let held = memory.memory().occupancy(usize::from(port.output));
                assert_eq!(held.frames, 0, "port {index} stores frames that have left");
            }
        }
        self.assert_pausable_conserved();
        assert_eq!(in_flight + self.free.len(), self.segments.len(), "frames are unaccounted for");
        let mut is_used = vec![false; self.segments.len()];
        let on_links = self.ports.iter().flat_map(|port| port.link.frames()).map(|frame| frame.parcel);
        let frames = on_links.chain(self.waiting()).map(|parcel| parcel.segment());
        for place in frames.chain(self.free.iter().map(|&place| place as usize)) {
            assert!(!std::mem::replace(&mut is_used[place], true), "segment {place} is used twice");
        }
    }
}
