use fanin_units::{Duration, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The length of a run, and its seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Run {
    /// Measured time, after the warm-up: above 0, at most 24 h.
    pub duration: Duration,
    /// Time before the measurement, which no figure counts: at most 24 h.
    pub warmup: Duration,
    /// Seed of every random stream, below 2⁶³; the same scenario and seed give the same result to the bit.
    pub seed: u64,
    /// Time without progress after which a run ends with a diagnosis of the waiting hosts. A simulation awaits all running
    /// timers first, at most 15 times in a row.
    pub stall_limit: Duration,
    /// Factor for `fanin run` in namespaces that lowers all rates and stretches all times, so that one machine keeps
    /// up; 0 to 1. Zero: the largest factor that this machine holds. Figures are converted back to the scenario's
    /// rates.
    pub scale: Ratio,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(10),
            warmup: Duration::from_secs(1),
            seed: 1,
            stall_limit: Duration::from_secs(60),
            scale: Ratio::ZERO,
        }
    }
}

/// Records that are written in addition to the summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Record {
    /// Queues with sampled occupancy, such as `"tor->collector:0"` or `"core:1->tor:0"`; `"*"` stands for any number.
    pub queues: Vec<String>,
    /// Time between two samples of a queue, and of a traced window in live runs; above 0.
    pub queue_interval: Duration,
    /// Connections with traced congestion windows, by number from 0. Those with fragments come first, collector by
    /// collector and readout by readout.
    pub windows: Vec<u32>,
    /// Events with traced traffic into and out of the collector's switch (ICC'15 figs 6 and 10), by number; only in
    /// simulations of event building.
    pub events: Vec<u64>,
    /// The link that `--pcap` captures.
    pub capture: String,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            queues: Vec::new(),
            queue_interval: Duration::from_millis(1),
            windows: Vec::new(),
            events: Vec::new(),
            capture: "tor->collector:0".to_owned(),
        }
    }
}
