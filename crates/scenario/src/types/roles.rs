use fanin_units::{Bytes, Duration, Frequency, Rate, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LinkSettings;
pub use crate::size::{FragmentSizes, SizeModel};
pub use fanin_dataflow::{Arrivals, Policy, StartOrder, TieBreak};

/// The hosts that keep the fragments of every event until they receive a delete message (ROS; thesis §3.7.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReadoutSettings {
    /// The number of readout hosts.
    #[schemars(range(min = 1, max = 65535))]
    pub hosts: u32,
    /// Fragments of each event on each host. One message requests all that an event needs from a host.
    #[schemars(range(min = 1, max = 65536))]
    pub fragments_per_host: u32,
    /// Size of a fragment: a size from 1 B to 1 GiB, or a table with a `distribution`.
    pub fragment_size: SizeModel,
    /// Header in front of each fragment in an answer. The papers count it in the fragment; live systems have `"16 B"`.
    pub fragment_header: Bytes,
    /// SHA-256 of the file that `fragment_size` names, when the scenario was loaded; `None` without a file.
    #[serde(skip)]
    pub sizes_digest: Option<[u8; 32]>,
    /// Mean time from the arrival of a request to its answer.
    pub response_delay: Duration,
    /// Standard deviation of that time (normal distribution, negative draws become zero). Zero: constant.
    pub response_delay_sd: Duration,
    /// The link of each readout host.
    pub link: LinkSettings,
    /// Links of each host; its connections are spread over them.
    #[schemars(range(min = 1, max = 16))]
    pub links_per_host: u32,
    /// Memory for fragments on each host; a host with a full memory asserts XOFF.
    pub memory: Bytes,
}

impl Default for ReadoutSettings {
    fn default() -> Self {
        Self {
            hosts: 160,
            fragments_per_host: 12,
            fragment_size: SizeModel::Fixed(Bytes::new(1100)),
            fragment_header: Bytes::ZERO,
            sizes_digest: None,
            response_delay: Duration::from_micros(392),
            response_delay_sd: Duration::ZERO,
            link: LinkSettings::default(),
            links_per_host: 1,
            memory: Bytes::new(8_000_000_000),
        }
    }
}

/// The hosts that collect events (DCM) on behalf of their processing units (HLTPU; thesis §3.7.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CollectorSettings {
    /// Racks, each with one top-of-rack switch.
    #[schemars(range(min = 1, max = 4096))]
    pub racks: u32,
    /// Collector hosts in each rack.
    #[schemars(range(min = 1, max = 4096))]
    pub hosts_per_rack: u32,
    /// Processing units on each host; each works on one event at a time.
    #[schemars(range(min = 1, max = 4096))]
    pub units_per_host: u32,
    /// Mean processing time of a collected event, before the decision.
    pub processing_time: Duration,
    /// Standard deviation of that time (normal distribution, negative draws become zero). Zero: constant.
    pub processing_time_sd: Duration,
}

impl Default for CollectorSettings {
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
pub struct SupervisorSettings {
    /// Events per second in the whole system.
    pub rate: Frequency,
    /// Times at which events arrive.
    pub arrivals: Arrivals,
    /// The unit that gets the next event.
    pub policy: Policy,
    /// Order of the units' first announcements.
    pub start_order: StartOrder,
    /// The host that wins a tie of `node-load-balancing`.
    pub tie_break: TieBreak,
    /// Completed events that one delete message to the readouts lists.
    #[schemars(range(min = 1, max = 65536))]
    pub clear_group: u32,
    /// The supervisor's link.
    pub link: LinkSettings,
}

impl Default for SupervisorSettings {
    fn default() -> Self {
        Self {
            rate: Frequency::new(1_000_000),
            arrivals: Arrivals::Periodic,
            policy: Policy::Fcfs,
            start_order: StartOrder::ByHost,
            tie_break: TieBreak::LeastRecent,
            clear_group: 100,
            link: LinkSettings { rate: Rate::new(10_000_000_000), ..LinkSettings::default() },
        }
    }
}

/// The data loggers that store accepted events (thesis §3.7.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoggerSettings {
    /// The number of logger hosts.
    #[schemars(range(min = 0, max = 4096))]
    pub hosts: u32,
    /// Share of the events that are accepted and sent to a logger; 0 to 1.
    pub accept: Ratio,
    /// The link of each logger.
    pub link: LinkSettings,
}

impl Default for LoggerSettings {
    fn default() -> Self {
        Self {
            hosts: 1,
            accept: Ratio::ZERO,
            link: LinkSettings { rate: Rate::new(10_000_000_000), ..LinkSettings::default() },
        }
    }
}
