use fanin_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the processing units of a live system are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Processors {
    /// Processes of their own, which look into events and decide.
    Processes,
    /// Timers in their collector: times and decisions are drawn, events are not looked into.
    Timers,
}

/// The live system (`fanin run`, `fanin node`): what only real processes have. `plan` and `sim` do not read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Live {
    /// Raw data that the readouts replay over and over: a file, or the name of a sample (`km3net`, `bes3`). Its
    /// sources are shared out evenly among the readouts. Empty: fragments by `readout.fragment_size`.
    pub replay: String,
    /// What the processing units are.
    pub processors: Processors,
    /// The command that a processor runs, word by word, such as `["python3", "choose.py"]`; the name of its collector's
    /// socket is in its environment, `FANIN_COLLECTOR`. Empty: the one that is built in, which checks every fragment,
    /// takes the time and decides at random as the scenario says.
    pub processor: Vec<String>,
    /// How long a processor may have an event before it is taken for dead.
    pub processor_timeout: Duration,
    /// How long an answer may take before the request is repeated.
    pub request_timeout: Duration,
    /// How often a request is repeated before its fragments are taken as missing.
    pub request_retries: u8,
    /// How long a readout may be away before its fragments are taken as missing.
    pub readout_wait: Duration,
    /// How long a logger may take to store an event before another is asked.
    pub logger_timeout: Duration,
    /// How long a collector may be away before its events are assigned to others.
    pub reassign_delay: Duration,
    /// Memory of a logger for events that are not on disk yet.
    pub logger_memory: Bytes,
    /// Decided events that may wait for storage on a collector before its units get no more.
    #[schemars(range(min = 1, max = 65535))]
    pub shipping_max: u32,
    /// A stored file of this size is finished, and the next one begun.
    pub file_size: Bytes,
    /// Whether assignments are brought to disk before they are sent: then they survive not only the supervisor but its
    /// machine.
    pub journal_sync: bool,
    /// A journal of this size is put aside, and a new one begun; zero: never.
    pub journal_size: Bytes,
    /// How many of those that were put aside a process keeps; zero: all. The audit of a whole run needs all.
    pub journal_parts: u32,
    /// A peer that is silent for so long is taken for lost.
    pub silence_max: Duration,
    /// How long sent bytes may stay unacknowledged before the kernel gives a connection up (`TCP_USER_TIMEOUT`); zero: as
    /// long as the kernel does by itself.
    pub user_timeout: Duration,
    /// How long a process that is stopped may take to finish what it has.
    pub drain: Duration,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            replay: String::new(),
            processors: Processors::Processes,
            processor: Vec::new(),
            processor_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(2),
            request_retries: 3,
            readout_wait: Duration::from_secs(2),
            logger_timeout: Duration::from_secs(10),
            reassign_delay: Duration::from_secs(1),
            logger_memory: Bytes::new(256_000_000),
            shipping_max: 64,
            file_size: Bytes::new(1_000_000_000),
            journal_sync: false,
            journal_size: Bytes::new(256_000_000),
            journal_parts: 0,
            silence_max: Duration::from_secs(5),
            user_timeout: Duration::ZERO,
            drain: Duration::from_secs(10),
        }
    }
}
