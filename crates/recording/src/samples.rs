//! Samples: the queues and congestion windows that a scenario records over time.

use fanin_network::{Network, PortIndex};
use fanin_scenario::Scenario;

/// The most samples of queues in the measured time: some 2 GB. Sampling ends when there are more.
pub const SAMPLES_MAX: u64 = 20_000_000;

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
    samples_max: u64,
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
        let (samples, samples_max) = (Vec::new(), SAMPLES_MAX);
        (!ports.is_empty() && interval > 0).then_some(Self { ports, interval, next, samples, samples_max })
    }

    /// Samples all watched queues; returns the time of the next sample, or `None` if that would be too many.
    pub(crate) fn sample(&mut self, at: u64, mut queue: impl FnMut(PortIndex) -> QueueState) -> Option<u64> {
        for &port in &self.ports {
            self.samples.push(QueueSample { port, at, queue: queue(port) });
        }
        self.next += self.interval;
        (self.samples.len() as u64 <= self.samples_max).then_some(self.next)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_ends_before_the_memory_is_full() {
        let (interval, samples, ports) = (10, Vec::new(), vec![2, 5]);
        let mut watch = SampledQueues { ports, interval, next: 0, samples, samples_max: 7 };
        let due = [0, 10, 20, 30].map(|at| watch.sample(at, |_| QueueState::default()));
        assert_eq!(due, [Some(10), Some(20), Some(30), None]);
    }
}
