//! The recordings of a run. The simulator reports observations; results are read only after the run.

use fanin_network::{Network, PortIndex};
use fanin_report::{LevelRow, SystemLevels};
use fanin_scenario::Scenario;

use crate::capture::FrameSeen;
use crate::losses::LossLog;
use crate::ring_bins::RingVisitor;
use crate::samples::{QueueState, SampledQueues, WindowSample, note_windows};
use crate::timeline::{PortOccupancy, TimelineRecorder};
use crate::trace::{CollectedEvent, MessageStep, MessageTrace};

/// The ways in which the techniques of a run hold data back: causes of a late event.
#[derive(Clone, Copy, Default, Debug)]
pub struct HoldingTechniques {
    /// Kind and awaited thing of the [`LateCause`](fanin_report::LateCause) of time in no queue; `None` if no technique holds data
    /// back at hosts.
    pub cause: Option<(&'static str, &'static str)>,
    /// True if collectors send requests only within their credit.
    pub by_credit: bool,
}

/// The recordings of a run. Times are in picoseconds; `end` is the number of a connection's end.
pub struct Recorder {
    pub(crate) watch: Option<SampledQueues>,
    pub(crate) seen: Vec<FrameSeen>,
    pub(crate) windows: Vec<WindowSample>,
    pub(crate) losses: LossLog,
    pub(crate) timeline: TimelineRecorder,
    pub(crate) trace: MessageTrace,
    pub(crate) holding: HoldingTechniques,
    levels: Vec<LevelRow>,
}

impl Recorder {
    /// Makes the recordings of every run, plus those in the scenario's settings.
    pub fn new(scenario: &Scenario, network: &Network, holding: HoldingTechniques) -> Self {
        let run = scenario.run.warmup + scenario.run.duration;
        let outputs = network.ports().filter(|&port| !network.is_host(network.source(port))).collect();
        Self {
            watch: SampledQueues::new(scenario, network),
            seen: Vec::new(),
            windows: Vec::new(),
            losses: LossLog::default(),
            timeline: TimelineRecorder::new(run.get(), outputs, 2 * network.links.len()),
            trace: MessageTrace::new(scenario.run.warmup.get()),
            holding,
            levels: Vec::new(),
        }
    }

    /// Returns the time of the next sample of the watched queues; `None` if no queue is watched.
    pub fn next_sample(&self) -> Option<u64> {
        self.watch.as_ref().map(|watch| watch.next)
    }

    /// Samples all watched queues; returns the time of the next sample, or `None` if no queue is watched or there are more than
    /// [`SAMPLES_MAX`](crate::SAMPLES_MAX).
    pub fn sample(&mut self, at: u64, queue: impl FnMut(PortIndex) -> QueueState) -> Option<u64> {
        self.watch.as_mut().and_then(|watch| watch.sample(at, queue))
    }

    /// Returns the end of the present bin of the timeline. Call [`close_bins`](Self::close_bins) before any later occurrence.
    #[inline]
    pub fn bin_end(&self) -> u64 {
        self.timeline.due
    }

    /// Closes the bins that end before `time`. `frames` and `payload` are the frames and payload bytes that have arrived
    /// so far. `level` returns the state of a port at a time, and passes each of the port's rings to the visitor.
    #[cold]
    pub fn close_bins(
        &mut self,
        time: u64,
        [frames, payload]: [u64; 2],
        level: impl FnMut(u64, PortIndex, &mut RingVisitor<'_>) -> PortOccupancy,
    ) {
        self.timeline.close_until(time, [frames, payload], level);
    }

    /// Records the levels of the roles at a time, in picoseconds; `None` for a workload without roles.
    pub fn note_levels(&mut self, time_ps: u64, levels: Option<SystemLevels>) {
        self.levels.extend(levels.map(|levels| LevelRow { time_ps, levels }));
    }

    /// Returns the recorded levels, in the order of their times.
    pub fn into_levels(self) -> Vec<LevelRow> {
        self.levels
    }

    /// Ends the warm-up. Forgets earlier losses and recorded high-water marks; the caller resets the marks of the queues.
    pub fn start_measuring(&mut self) {
        self.losses.clear();
        self.timeline.start_measuring();
    }

    /// Records a frame that arrived over a tapped link.
    pub fn note_frame(&mut self, frame: FrameSeen) {
        self.seen.push(frame);
    }

    /// Records a frame for `end` that an output with `queue_bytes` queued dropped.
    #[cold]
    pub fn note_loss(&mut self, at: u64, port: PortIndex, queue_bytes: u64, end: u32, wire_bytes: u32) {
        self.timeline.note_loss(port, queue_bytes);
        self.losses.note(at, port, queue_bytes, end, wire_bytes);
    }

    /// Records an expired retransmission timer.
    pub fn note_timeout(&mut self) {
        self.timeline.note_timeout();
    }

    /// Records the windows of a traced end, in bytes.
    #[cold]
    pub fn note_windows(&mut self, at: u64, end: u32, cwnd: u64, in_flight: u64) {
        note_windows(&mut self.windows, WindowSample { end, at, cwnd, in_flight });
    }

    /// Records a step of an event's message on the connection of an end.
    #[inline(never)]
    pub fn note_message(&mut self, at: u64, event: u64, end: u32, step: MessageStep) {
        if step == MessageStep::Probe {
            self.timeline.note_probe();
        }
        self.trace.note(at, event, end, step);
    }

    /// Records a collected event.
    pub fn note_collected(&mut self, collected: CollectedEvent) {
        self.trace.consider(collected);
    }
}
