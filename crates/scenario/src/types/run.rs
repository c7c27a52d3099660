use fanin_units::{Duration, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long the system runs, and from which seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Run {
    /// Measured time, after the warm-up.
    pub duration: Duration,
    /// Time at the start that no figure counts.
    pub warmup: Duration,
    /// Seed of every random stream; the same scenario and seed give the same result to the bit.
    pub seed: u64,
    /// A run without progress for this long ends with a diagnosis of who waits for whom.
    pub stall_limit: Duration,
    /// `fanin run` in namespaces: the share of its rates at which the system runs, its times being as much longer; zero:
    /// the largest that this machine holds. Figures are the scenario's again.
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

/// What is written down beside the summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Record {
    /// Queues whose occupancy is sampled: `"tor->collector:0"`, `"core:1->tor:0"`; `"*"` stands for any one number.
    pub queues: Vec<String>,
    /// Time between two samples of a watched queue, and of a traced window where a kernel is asked for it.
    pub queue_interval: Duration,
    /// Connections whose congestion window is traced, by number: those that carry fragments come first, collector by collector.
    pub windows: Vec<u32>,
    /// Events whose input and output is traced (ICC'15 figs 6 and 10), by number; simulations only.
    pub events: Vec<u64>,
    /// The link that a capture taken with `--pcap` shows.
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
