pub use fanin_dataflow::{CreditDiscipline, RequestOrder};
use fanin_units::{Duration, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Traffic shaping: methods that keep bursts smaller than the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShapingMethod {
    /// No shaping: every fragment of an event is requested at once.
    None,
    /// Each collector has a fixed number of credits; a request takes one for each fragment, its answer returns them (thesis §4.3,
    /// ICC'15 §III.B).
    Credits,
    /// Each collector requests bytes at the rate of its own link, with a window of a measured round trip and its variation. A
    /// large answer is requested in parts, and late answers lower the pace. Requests are spread over the readouts, unless
    /// `request_order` is `random`. The default of `discipline` is `smallest-remaining`.
    PacedCredits,
    /// A central arbiter allocates a timeslot to every packet (Fastpass; thesis §6.4).
    Fastpass,
    /// Hosts send to one another in phases that are separated by barriers (linear shift, as in LHCb and CMS).
    BarrelShifter,
}

impl ShapingMethod {
    /// Returns true if the method limits the requests of collectors.
    pub(crate) const fn limits_requests(self) -> bool {
        matches!(self, Self::Credits | Self::PacedCredits)
    }
}

/// Defaults that follow from another key: its name and value (`None`: any), the following key with its value, and the
/// reason.
pub(crate) const FOLLOWS: &[(&str, Option<&str>, &str, &str, &str)] = &[
    ("shaping.credits", None, "shaping.method", "credits", "because shaping.credits is set"),
    // Paced credits learn an event's size from its first answers.
    (
        "shaping.method",
        Some("paced-credits"),
        "shaping.discipline",
        "smallest-remaining",
        "by shaping.method",
    ),
];

/// The central arbiter (thesis §6.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FastpassSettings {
    /// Length of a timeslot, in MTUs.
    #[schemars(range(min = 1, max = 64))]
    pub slot_mtus: u32,
    /// Time from an allocation to its timeslot.
    pub advance: Duration,
    /// Mean one-way delay between a host and the arbiter.
    pub delay: Duration,
    /// Standard deviation of that delay.
    pub delay_sd: Duration,
    /// Largest difference between the clocks of two hosts.
    pub clock_error: Duration,
    /// Only data of readouts wait for timeslots; requests and acknowledgements are sent at once.
    pub answers_only: bool,
    /// The arbiter's messages have priority in hosts and switches; if not, they wait in the hosts' queues.
    pub priority: bool,
    /// Time at which the arbiter fails; zero: never.
    pub fail_at: Duration,
    /// Time from the arbiter's failure until the hosts react to it.
    pub failover: Duration,
    /// A second arbiter takes over after a failure; without one, hosts send without timeslots from then on.
    pub standby: bool,
}

impl Default for FastpassSettings {
    fn default() -> Self {
        Self {
            slot_mtus: 1,
            advance: Duration::from_micros(500),
            delay: Duration::from_micros(100),
            delay_sd: Duration::from_micros(50),
            clock_error: Duration::ZERO,
            answers_only: false,
            priority: true,
            fail_at: Duration::ZERO,
            failover: Duration::from_millis(10),
            standby: true,
        }
    }
}

/// The end of a phase of a barrel shifter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Barrier {
    /// The supervisor starts the next phase when all transfers of this one are reported complete.
    Complete,
    /// Every phase lasts `slot`.
    Clock,
}

/// The barrel shifter: in phase k, readout i sends to collector (i + k) mod N (LHCb and CMS event builders).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BarrelShifterSettings {
    /// The end of a phase.
    pub barrier: Barrier,
    /// Length of a phase with `barrier = "clock"`; zero: the time of the largest answer on the slowest link.
    pub slot: Duration,
    /// Events that a pair of hosts may transfer in one phase.
    #[schemars(range(min = 1, max = 1024))]
    pub events: u32,
    /// Time that a barrier waits for a host; a slower host counts as dead, and its phases stay empty.
    pub timeout: Duration,
    /// Readouts that fail, by number.
    pub failed_readouts: Vec<u32>,
    /// Collectors that fail, by number.
    pub failed_collectors: Vec<u32>,
    /// Time at which they fail.
    pub fail_at: Duration,
}

impl Default for BarrelShifterSettings {
    fn default() -> Self {
        Self {
            barrier: Barrier::Complete,
            slot: Duration::ZERO,
            events: 1,
            timeout: Duration::from_millis(100),
            failed_readouts: Vec::new(),
            failed_collectors: Vec::new(),
            fail_at: Duration::ZERO,
        }
    }
}

/// Traffic shaping: methods that keep bursts smaller than the buffers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Shaping {
    /// The method of shaping.
    pub method: ShapingMethod,
    /// Credits of a collector: fragments that its units together may have requested and not received. Setting this key selects
    /// `method = "credits"`.
    #[schemars(range(min = 1))]
    pub credits: u32,
    /// The waiting request that is sent first when credits come back. With `method = "paced-credits"` the default is
    /// `smallest-remaining`.
    pub discipline: CreditDiscipline,
    /// Order of a collector's requests to the readouts.
    pub request_order: RequestOrder,
    /// Share of the link rate that a schedule uses, above 0, at most 1. Timeslots of the arbiter and phases of a barrel shifter's
    /// clock become longer by its inverse.
    pub utilisation: Ratio,
    /// The central arbiter.
    pub fastpass: FastpassSettings,
    /// The barrel shifter.
    pub barrel_shifter: BarrelShifterSettings,
}

impl Shaping {
    /// Returns the time that a schedule reserves on a link for a transmission of duration `busy`.
    #[must_use]
    pub fn stretched(&self, busy: Duration) -> Duration {
        busy.checked_mul_ratio(Ratio::ONE.get(), self.utilisation.get()).unwrap_or(Duration::MAX)
    }
}

impl Default for Shaping {
    fn default() -> Self {
        Self {
            method: ShapingMethod::None,
            credits: 480,
            discipline: CreditDiscipline::Fifo,
            request_order: RequestOrder::Fixed,
            utilisation: Ratio::ONE,
            fastpass: FastpassSettings::default(),
            barrel_shifter: BarrelShifterSettings::default(),
        }
    }
}
