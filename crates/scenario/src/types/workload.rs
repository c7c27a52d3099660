use fanin_units::{Bytes, Duration, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pattern of the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Collectors request the fragments of the events that are assigned to them, in one step or several.
    EventBuilding,
    /// Readouts send each event's fragments to its collector without a request.
    Push,
    /// One collector requests `request_size` from every sender, and again as soon as all have answered (M21TCP §II.A).
    FixedFragment,
    /// Like `fixed-fragment`, with `request_size` divided evenly among the senders.
    FixedBlock,
    /// Every readout host is also a collector: event building between all of them (LCN'15).
    AllToAll,
}

/// One step of a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The step's name in figures, such as `"L2"` or `"EB"`.
    pub name: String,
    /// Share of the readout hosts that are collected from by the end of this step, earlier steps included; above 0, at most 1.
    pub fraction: Ratio,
    /// Processing time after this step's collection, before the decision.
    pub processing_time: Duration,
    /// Share of the events that continue to the next step; the rest is rejected here. 0 to 1.
    pub accept: Ratio,
}

/// The requests of the collectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// The pattern of the traffic.
    pub kind: WorkloadKind,
    /// Share of the readout hosts that an event is collected from, without `steps`; above 0, at most 1.
    pub fraction: Ratio,
    /// Steps of an iterative or two-phase (L2, then EB) collection; without any, one step over `fraction`.
    pub steps: Vec<Step>,
    /// Senders of a barrier workload (`fixed-fragment`, `fixed-block`).
    #[schemars(range(min = 1, max = 65535))]
    pub senders: u32,
    /// Size of the answer to a request: of each sender (`fixed-fragment`), or of all together (`fixed-block`).
    pub request_size: Bytes,
    /// Longest delay of a sender before its answer, drawn uniformly from 0 on. Without a delay, simulated senders stay in phase.
    pub service_delay_max: Duration,
    /// Deadline of a request's answers; requests that take longer count as late. Zero: no deadline.
    pub deadline: Duration,
}

/// A step's part of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepPart {
    /// Number of readouts that the step asks.
    pub readouts: u64,
    /// Share of the events that reach the step.
    pub reach: Ratio,
}

impl Workload {
    /// Returns the part of each step, with `readouts` that a collector may ask. A step asks up to its share of them, rounded
    /// up, without those of earlier steps. Without `steps` there is one, over `fraction`.
    pub fn step_parts(&self, readouts: u64) -> Vec<StepPart> {
        let steps = self.steps.iter().map(|step| (step.fraction, step.accept));
        let whole = self.steps.is_empty().then_some((self.fraction, Ratio::ONE));
        let (mut before, mut reach) = (0, Ratio::ONE);
        let part = |(share, accept): (Ratio, Ratio)| {
            let by_its_end = share.ceil_of(readouts);
            let part = StepPart { readouts: by_its_end.saturating_sub(before), reach };
            before = by_its_end;
            reach = Ratio::new(accept.checked_of(reach.get()).unwrap_or(0));
            part
        };
        steps.chain(whole).map(part).collect()
    }
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            kind: WorkloadKind::EventBuilding,
            fraction: Ratio::ONE,
            steps: Vec::new(),
            senders: 16,
            request_size: Bytes::new(256_000),
            service_delay_max: Duration::from_micros(100),
            deadline: Duration::ZERO,
        }
    }
}
