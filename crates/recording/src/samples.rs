//! Samples: the queues and congestion windows that a scenario records over time.

use fanin_network::{Network, PortIndex};
use fanin_scenario::Scenario;

/// A queue at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueState {
    /// Bytes that the queue holds.
    pub bytes: u64,
    /// Frames that the queue holds.
    pub frames: u64,
    /// Frames that the queue has dropped so far.
    pub drops: u64,
    /// Frames that the queue has marked so far.
    pub marks: u64,
}

/// A watched queue at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueueSample {
    pub(crate) port: PortIndex,
    /// Time of the sample, in picoseconds.
    pub(crate) at: u64,
    pub(crate) queue: QueueState,
}

/// The queues to sample, and the time of the next sample.
pub(crate) struct SampledQueues {
    pub(crate) ports: Vec<PortIndex>,
    /// Picoseconds between samples.
    interval: u64,
    /// The time of the next sample.
    pub(crate) next: u64,
    pub(crate) samples: Vec<QueueSample>,
}

impl SampledQueues {
    /// Watches the outputs of switches in `record.queues`, from the end of the warm-up; `None` if the patterns name no output.
    pub(crate) fn new(scenario: &Scenario, network: &Network) -> Option<Self> {
        let record = &scenario.record;
        let mut ports: Vec<PortIndex> =
            record.queues.iter().flat_map(|pattern| network.ports_named(pattern)).collect();
        ports.retain(|&port| !network.is_host(network.source(port)));
        ports.sort_unstable();
        ports.dedup();
        let interval = record.queue_interval.get();
        let next = scenario.run.warmup.get();
        (!ports.is_empty() && interval > 0).then(|| Self { ports, interval, next, samples: Vec::new() })
    }

    /// Samples all watched queues; returns the time of the next sample.
    pub(crate) fn sample(&mut self, at: u64, mut queue: impl FnMut(PortIndex) -> QueueState) -> u64 {
        for &port in &self.ports {
            self.samples.push(QueueSample { port, at, queue: queue(port) });
        }
        self.next += self.interval;
        self.next
    }
}

/// The windows of a traced connection at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WindowSample {
    pub(crate) end: u32,
    /// Time of the sample, in picoseconds.
    pub(crate) at: u64,
    pub(crate) cwnd: u64,
    pub(crate) in_flight: u64,
}

/// Records the windows of an end, if they have changed.
pub(crate) fn note_windows(samples: &mut Vec<WindowSample>, sample: WindowSample) {
    let last = samples.iter().rev().find(|last| last.end == sample.end);
    if last.is_none_or(|last| (last.cwnd, last.in_flight) != (sample.cwnd, sample.in_flight)) {
        samples.push(sample);
    }
}
