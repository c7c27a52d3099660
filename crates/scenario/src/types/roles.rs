use fanin_units::{Bytes, Duration, Frequency, Rate, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Link;
pub use crate::size::SizeModel;
pub use fanin_dataflow::{Arrivals, Policy, StartOrder, TieBreak};

/// The hosts that hold the fragments of every event until told to delete them (ROS; thesis §3.7.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Readout {
    /// Readout hosts.
    #[schemars(range(min = 1, max = 65536))]
    pub hosts: u32,
    /// Fragments of each event on each host; a request to a host asks for all it needs there in one message.
    #[schemars(range(min = 1, max = 65536))]
    pub fragments_per_host: u32,
    /// Size of a fragment: a size, or a table with a `distribution`.
    pub fragment_size: SizeModel,
    /// Mean time from a request's arrival to its answer.
    pub response_delay: Duration,
    /// Standard deviation of that time: normal, cut off at zero.
    pub response_delay_sd: Duration,
    /// The link of each readout host.
    pub link: Link,
    /// Links of this kind a host has; its traffic is spread over them by connection.
    #[schemars(range(min = 1, max = 16))]
    pub links_per_host: u32,
    /// Memory for fragments on each host; full, the host asserts XOFF.
    pub memory: Bytes,
}

impl Default for Readout {
    fn default() -> Self {
        Self {
            hosts: 160,
            fragments_per_host: 12,
            fragment_size: SizeModel::Fixed(Bytes::new(1100)),
            response_delay: Duration::from_micros(392),
            response_delay_sd: Duration::ZERO,
            link: Link::default(),
            links_per_host: 1,
            memory: Bytes::new(8_000_000_000),
        }
    }
}

/// The hosts that collect events (DCM) on behalf of their processing units (HLTPU; thesis §3.7.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Collectors {
    /// Racks, each with a switch of its own.
    #[schemars(range(min = 1, max = 4096))]
    pub racks: u32,
    /// Collector hosts in each rack.
    #[schemars(range(min = 1, max = 4096))]
    pub hosts_per_rack: u32,
    /// Processing units on each host; each works on one event at a time.
    #[schemars(range(min = 1, max = 4096))]
    pub units_per_host: u32,
    /// Mean time that a unit works on a collected event before it decides.
    pub processing_time: Duration,
    /// Standard deviation of that time: normal, cut off at zero.
    pub processing_time_sd: Duration,
}

impl Default for Collectors {
    fn default() -> Self {
        Self {
            racks: 1,
            hosts_per_rack: 39,
            units_per_host: 24,
            processing_time: Duration::from_millis(100),
            processing_time_sd: Duration::ZERO,
        }
    }
}

/// The supervisor that assigns events to processing units (HLTSV; thesis §3.7.3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Supervisor {
    /// Events a second, over the whole system.
    pub rate: Frequency,
    /// How events come.
    pub arrivals: Arrivals,
    /// Who gets the next event.
    pub policy: Policy,
    /// The order in which the units first announce themselves.
    pub start_order: StartOrder,
    /// Which host wins a tie of `node-load-balancing`.
    pub tie_break: TieBreak,
    /// Completed events that one delete message to the readouts names.
    #[schemars(range(min = 1, max = 65536))]
    pub clear_group: u32,
    /// The supervisor's link.
    pub link: Link,
}

impl Default for Supervisor {
    fn default() -> Self {
        Self {
            rate: Frequency::new(1_000_000),
            arrivals: Arrivals::Periodic,
            policy: Policy::Fcfs,
            start_order: StartOrder::ByHost,
            tie_break: TieBreak::LeastRecent,
            clear_group: 100,
            link: Link { rate: Rate::new(10_000_000_000), ..Link::default() },
        }
    }
}

/// The data loggers that store accepted events (thesis §3.7.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Logger {
    /// Logger hosts.
    #[schemars(range(min = 0, max = 4096))]
    pub hosts: u32,
    /// Share of the events that is accepted and sent to a logger.
    pub accept: Ratio,
    /// The link of each logger.
    pub link: Link,
}

impl Default for Logger {
    fn default() -> Self {
        Self {
            hosts: 1,
            accept: Ratio::ZERO,
            link: Link { rate: Rate::new(10_000_000_000), ..Link::default() },
        }
    }
}
