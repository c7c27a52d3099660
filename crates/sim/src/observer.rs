//! Recordings of a run: samples of watched queues, frames on tapped links, the timeline and the trace of the last events.

use fanin_network::PortIndex;
use fanin_units::Instant;

use crate::capture::Tapped;
use crate::engine::Engine;
use crate::fabric::Queue;
use crate::timeline::TimelineRecorder;
use crate::trace::MessageTrace;

/// A watched queue at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueueSample {
    pub(crate) port: PortIndex,
    pub(crate) at: Instant,
    pub(crate) queue: Queue,
}

/// The queues that are sampled, and when.
pub(crate) struct Watch {
    pub(crate) ports: Vec<PortIndex>,
    /// Picoseconds between samples.
    pub(crate) interval: u64,
    /// The time of the next sample.
    pub(crate) next: u64,
    pub(crate) samples: Vec<QueueSample>,
}

/// The recordings of a partition.
#[derive(Default)]
pub(crate) struct Observer {
    pub(crate) watch: Option<Watch>,
    pub(crate) tapped: Vec<Tapped>,
    pub(crate) timeline: TimelineRecorder,
    pub(crate) trace: MessageTrace,
}

impl Observer {
    /// Samples all watched queues; returns the time of the next sample.
    pub(crate) fn sample(&mut self, engine: &mut Engine) -> Option<u64> {
        let watch = self.watch.as_mut()?;
        for &port in &watch.ports {
            let queue = engine.fabric.queue(engine.now, port);
            watch.samples.push(QueueSample { port, at: engine.time(), queue });
        }
        watch.next += watch.interval;
        Some(watch.next)
    }

    /// Records the frame that arrives over a tapped link.
    #[cold]
    pub(crate) fn record(&mut self, engine: &Engine, port: PortIndex) {
        let Some(frame) = engine.fabric.first(port) else { return };
        let (end, wire_bytes) = (frame.parcel.end(), frame.parcel.wire_bytes());
        let segment = engine.fabric.segments[frame.parcel.segment()];
        self.tapped.push(Tapped { at: engine.time(), port, end, wire_bytes, segment });
    }
}
