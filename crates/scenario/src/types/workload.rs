use fanin_units::{Bytes, Duration, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the collectors ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Collectors request the fragments of the events assigned to them, in one step or several.
    EventBuilding,
    /// Readouts send each event's fragments to its collector unasked.
    Push,
    /// One collector asks every sender for `request_size`, again as soon as all have answered (M21TCP §II.A).
    FixedFragment,
    /// As `fixed-fragment`, but `request_size` is shared out evenly among the senders.
    FixedBlock,
    /// Every readout host is a collector too: full event building between all of them (LCN'15).
    AllToAll,
}

/// One step of a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What the step is called in figures: `"L2"`, `"EB"`.
    pub name: String,
    /// Share of the readout hosts whose fragments have been collected by the end of this step.
    pub fraction: Ratio,
    /// Time that the unit works on them before it decides.
    pub processing_time: Duration,
    /// Share of the events that goes on from this step to the next; the rest is rejected here.
    pub accept: Ratio,
}

/// What the collectors ask for, and in which pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// The pattern.
    pub kind: WorkloadKind,
    /// Share of the readout hosts that an event is collected from, where there are no `steps`.
    pub fraction: Ratio,
    /// Steps of an iterative or two-phase (L2, then EB) collection; none means one step over `fraction`.
    pub steps: Vec<Step>,
    /// Senders of a barrier-synchronised workload.
    #[schemars(range(min = 1, max = 65536))]
    pub senders: u32,
    /// Bytes each sender (`fixed-fragment`), or all together (`fixed-block`), answer a request with.
    pub request_size: Bytes,
    /// Each sender waits a random time up to this before it answers; without it, simulated senders lock in phase.
    pub service_delay_max: Duration,
    /// A request that takes longer has missed its deadline; zero means that there is none.
    pub deadline: Duration,
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
