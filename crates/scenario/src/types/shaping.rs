pub use fanin_dataflow::{CreditDiscipline, RequestOrder};
use fanin_units::{Duration, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What keeps bursts below the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShapingMethod {
    /// Nothing: every fragment of an event is requested at once.
    None,
    /// A fixed number of fragments may be on order at each collector (thesis §4.3, ICC'15 §III.B).
    Credits,
    /// A central arbiter gives every packet a time slot (Fastpass; thesis §6.4).
    Fastpass,
    /// Hosts send to one another in turns separated by barriers (linear shift, as LHCb and CMS do).
    BarrelShifter,
}

/// The central arbiter (thesis §6.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Fastpass {
    /// MTUs in a time slot.
    #[schemars(range(min = 1, max = 64))]
    pub slot_mtus: u32,
    /// How far ahead of their slot allocations are made.
    pub advance: Duration,
    /// Mean one-way delay between a host and the arbiter.
    pub delay: Duration,
    /// Standard deviation of that delay.
    pub delay_sd: Duration,
    /// Largest difference between any two clocks.
    pub clock_error: Duration,
    /// Whether only data of readouts wait for timeslots: requests and acknowledgements go when they like.
    pub answers_only: bool,
    /// Whether switches and hosts let the arbiter's messages pass all others; if not, they wait in the hosts' queues.
    pub priority: bool,
    /// When the arbiter dies; zero: never.
    pub fail_at: Duration,
    /// Time from the arbiter's death until hosts have noticed and done something about it.
    pub failover: Duration,
    /// Whether a second arbiter then takes over; without one, hosts send unscheduled from then on.
    pub standby: bool,
}

impl Default for Fastpass {
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

/// What ends a phase of a barrel shifter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Barrier {
    /// All transfers of the phase are reported complete to the supervisor, who lets all go on.
    Complete,
    /// The clock: every phase lasts `slot`.
    Clock,
}

/// The barrel shifter: in phase k, readout i sends to collector (i + k) mod N (LHCb and CMS event builders).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BarrelShifter {
    /// What ends a phase.
    pub barrier: Barrier,
    /// Length of a phase that the clock ends; zero: as long as the largest answer takes on the slowest link.
    pub slot: Duration,
    /// Events that a pair of hosts may exchange in one phase.
    #[schemars(range(min = 1, max = 1024))]
    pub events: u32,
    /// How long a barrier waits for a host before that is taken for dead, and its place in the turn stays empty.
    pub timeout: Duration,
    /// Readouts that die.
    pub failed_readouts: Vec<u32>,
    /// Collectors that die.
    pub failed_collectors: Vec<u32>,
    /// When they die.
    pub fail_at: Duration,
}

impl Default for BarrelShifter {
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

/// What keeps bursts below the buffers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Shaping {
    /// The method.
    pub method: ShapingMethod,
    /// Fragments that may be on order at a collector, over all its units; setting it turns `credits` on.
    #[schemars(range(min = 1))]
    pub credits: u32,
    /// Which blocked request is sent first when credits come back.
    pub discipline: CreditDiscipline,
    /// The order in which a collector asks the readouts.
    pub request_order: RequestOrder,
    /// Share of the links that schedules fill: timeslots of the arbiter, and of a barrel shifter's clock, last longer.
    pub utilisation: Ratio,
    /// The central arbiter.
    pub fastpass: Fastpass,
    /// The barrel shifter.
    pub barrel_shifter: BarrelShifter,
}

impl Shaping {
    /// Fragments that may be on order at a collector; `None` unless `credits` is the method.
    #[must_use]
    pub fn credit_limit(&self) -> Option<u32> {
        (self.method == ShapingMethod::Credits).then_some(self.credits)
    }

    /// For how long a link is lent that is busy for so long, where only a share of it is to be filled.
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
            fastpass: Fastpass::default(),
            barrel_shifter: BarrelShifter::default(),
        }
    }
}
