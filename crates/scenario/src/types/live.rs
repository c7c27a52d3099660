use fanin_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most bytes of received messages that a process of a live system holds.
pub const RECEIVE_BYTES_MAX: u64 = 2 << 30;

/// The processing units of a live system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Processors {
    /// Separate processes that examine events and decide.
    Processes,
    /// Timers in the collector: times and decisions are drawn at random, events are not examined.
    Timers,
}

/// Settings of real processes (`fanin run`, `fanin node`); `plan` and `sim` do not read them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Live {
    /// Raw data that the readouts replay in a loop: a file, or the name of a sample (`km3net`, `bes3`). Its sources are
    /// distributed evenly over the readouts. Empty: fragments of `readout.fragment_size`.
    pub replay: String,
    /// The kind of processing units.
    pub processors: Processors,
    /// The command of a processor, word by word, such as `["python3", "choose.py"]`; the environment variable
    /// `FANIN_COLLECTOR` holds the name of its collector's socket. Empty: the built-in processor, which checks every
    /// fragment, takes the scenario's processing time and decides at random.
    pub processor: Vec<String>,
    /// Longest processing time of one step of an event; a processor that takes longer counts as dead.
    pub processor_timeout: Duration,
    /// Time without an answer after which a request is repeated.
    pub request_timeout: Duration,
    /// Repetitions of a request before its fragments count as missing.
    pub request_retries: u8,
    /// Time without a connection to a readout after which its fragments count as missing.
    pub readout_wait: Duration,
    /// Time that a logger may take to store an event before the collector tries another.
    pub logger_timeout: Duration,
    /// Time without a connection to a collector after which its events are assigned to others.
    pub reassign_delay: Duration,
    /// Memory of a logger for events that are not yet on disk.
    pub logger_memory: Bytes,
    /// Accepted events that may wait for storage on a collector; at the limit its units get no new events.
    #[schemars(range(min = 1, max = 65535))]
    pub shipping_max: u32,
    /// Size at which a logger closes a file and begins the next.
    pub file_size: Bytes,
    /// Writes assignments to disk before they are sent, so that they survive a failure of the supervisor's machine. If
    /// false, they survive a failure of its process only.
    pub journal_sync: bool,
    /// Size at which a process closes its journal and begins a new one; zero: never.
    pub journal_size: Bytes,
    /// Closed journals that a process keeps; zero: all. The audit of a whole run needs all.
    pub journal_parts: u32,
    /// Starts a second supervisor, which takes over if the first one is lost. Only `fanin run` reads this; a system's file has
    /// `standby` in `[hosts]`. Absent: false.
    // Absent where it is false: it changes no simulation, and hashes of scenarios from before it stay.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub standby: bool,
    /// Time without a message after which a peer counts as lost.
    pub silence_max: Duration,
    /// Time that sent bytes may stay unacknowledged before the kernel closes a connection (`TCP_USER_TIMEOUT`); zero: the
    /// kernel's own limit.
    pub user_timeout: Duration,
    /// Time that a process has, after a request to stop, to finish its events.
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
            standby: false,
            silence_max: Duration::from_secs(5),
            user_timeout: Duration::ZERO,
            drain: Duration::from_secs(10),
        }
    }
}
