//! Checks that every frame and every byte in the fabric is accounted for.

use fanin_queueing::BookedMemory;
use fanin_units::Instant;

use super::{Fabric, OutputQueue, Parcel};

impl Fabric {
    /// All frames in queues that are driven naively.
    fn waiting(&self) -> impl Iterator<Item = Parcel> {
        self.ports.iter().flat_map(|port| {
            let waiting: Box<dyn Iterator<Item = Parcel>> = match &port.queue {
                OutputQueue::Rings(queue) => Box::new(queue.waiting()),
                OutputQueue::Pausable(queue) => Box::new(queue.waiting()),
                // Frames whose departure is booked are on the link.
                OutputQueue::Host | OutputQueue::Dedicated(_) | OutputQueue::Shared => {
                    Box::new(std::iter::empty())
                }
            };
            waiting
        })
    }

    /// Payload of all frames on their way.
    pub(crate) fn payload_in_flight(&self) -> u64 {
        let on_links = self.ports.iter().flat_map(|port| port.link.frames()).map(|frame| frame.parcel);
        on_links.chain(self.waiting()).map(|parcel| u64::from(self.segments[parcel.segment()].payload)).sum()
    }

    /// Asserts that no link carried more than its rate, that each port kept its order, that every segment's place is either used
    /// once or free, and that every account of every queue adds up to the frames that are in it. `elsewhere` segments were
    /// taken and not sent yet.
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
                    queue.buffer().assert_conserved();
                    let is_idle = port.link.free_at() <= now;
                    let is_empty = queue.buffer().occupancy().frames == 0;
                    assert!(!is_idle || is_empty, "port {index} stores frames that have left");
                }
                OutputQueue::Rings(queue) => queue.assert_conserved(),
                OutputQueue::Pausable(queue) => {
                    if let Some(buffer) = queue.dedicated() {
                        buffer.assert_conserved();
                    }
                }
                OutputQueue::Host | OutputQueue::Shared => {}
            }
        }
        for memory in self.memories.iter_mut().flatten() {
            memory.settle(at);
        }
        let pausable = self.flow_control.iter().flat_map(|flow_control| flow_control.memories());
        let memories: Vec<_> =
            self.memories.iter().flatten().map(BookedMemory::memory).chain(pausable).collect();
        for memory in memories {
            memory.assert_conserved();
        }
        for (index, port) in self.ports.iter().enumerate() {
            if let (OutputQueue::Shared, true) = (&port.queue, port.link.free_at() <= now) {
                let memory = self.memories[port.switch as usize].as_ref().expect("its outputs share one");
                let held = memory.memory().output(usize::from(port.output));
                assert_eq!(held.frames, 0, "port {index} stores frames that have left");
            }
        }
        self.assert_pausable_conserved();
        assert_eq!(in_flight + self.free.len(), self.segments.len(), "frames are unaccounted for");
    }
}
