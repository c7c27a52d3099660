//! The planner's result: a verdict, loads, queues, and derivations with formula and numbers.
//!
//! A plan's summary is read into these types. The planner writes the same names from its own results. So a plan has the same
//! page whether it comes from a file, a script or memory.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The planner's part of a summary, under its key `plan`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanSummary {
    /// The verdict on the system as the scenario describes it, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<PlanVerdict>,
    /// Notes that do not decide the verdict.
    pub warnings: Vec<String>,
    /// Groups of like links, in the direction of the data.
    pub links: Vec<PlanLink>,
    /// Queues on the way to a collector.
    pub queues: Vec<PlanQueue>,
    /// Every result with its formula, in reading order.
    pub derivations: Vec<PlanRow>,
    /// Cost and space, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<PlanCost>,
    /// Keys that a later version added.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

/// The planner's verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanVerdict {
    /// `fits`, `depends`, `loses`, `holds-back` or `unlimited`, for as many events as the quantile says. Plans of older
    /// versions have `may-lose`, too.
    pub outcome: String,
    /// True if some events lose frames, false if none can; absent where that depends on how events meet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loses_frames: Option<bool>,
    /// Losses of frames: `never`, `in-share`, `always` or `depends`; absent in plans of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<String>,
    /// Share of the events that lose frames, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losing_share: Option<f64>,
    /// Bounds of the losses, where they depend on the overlap of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bracket: Option<PlanBracket>,
    /// Text, in one sentence.
    pub text: String,
}

/// Bounds of a queue's losses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanBracket {
    /// The queue, such as `tor->collector`.
    pub queue: String,
    /// The least share of the events that lose frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losing_share_min: Option<f64>,
    /// The largest share of the events that lose frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losing_share_max: Option<f64>,
    /// The share that the model expects; absent where it has no estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losing_share_expected: Option<f64>,
    /// Bytes that wait at the deepest if events do not meet.
    pub waiting_bytes_min: u64,
    /// The most bytes that can wait; absent where nothing limits them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_bytes_max: Option<u64>,
    /// Bytes that fit.
    pub fits_bytes: u64,
}

/// The load offered to a group of like links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanLink {
    /// The group, such as `tor->collector`.
    pub name: String,
    /// Number of links in the group.
    pub count: u64,
    /// Rate of one link, in bit/s.
    pub rate_bps: u64,
    /// The rate offered to all together, in bit/s on the wire.
    pub offered_bps: u64,
    /// Offered over carried rate; a load above 1 cannot be carried.
    pub load: f64,
    /// Load in the reverse direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_reverse: Option<f64>,
}

/// A queue and the burst that it meets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanQueue {
    /// The queue, such as `tor->collector`.
    pub name: String,
    /// As in [`PlanVerdict::outcome`], or `may-lose` where only some orders of hosts overfill it.
    pub outcome: String,
    /// As in [`PlanVerdict::losses`]; absent in plans of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<String>,
    /// The most that arrives, in bit/s.
    pub inflow_bps: u64,
    /// The departure rate, in bit/s.
    pub outflow_bps: u64,
    /// The largest burst, in bytes.
    pub burst_bytes: u64,
    /// The most bytes of the burst that wait at once.
    pub peak_bytes: u64,
    /// The queue's limit in bytes; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Share of the events that overflow it, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow_share: Option<f64>,
    /// Bounds of its losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bracket: Option<PlanBracket>,
    /// The reason, in one sentence.
    pub text: String,
}

/// One derived quantity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanRow {
    /// A stable name for scripts, in snake case, qualified by dots: `load.tor.collector`.
    pub name: String,
    /// The result in the base unit of its kind.
    pub value: u64,
    /// The name of that base unit, such as `B` or `ps`.
    pub unit: String,
    /// The result as printed, with a unit that suits it.
    pub text: String,
    /// The formula in words or symbols; may be empty.
    pub formula: String,
    /// The formula with its numbers filled in; may be empty.
    pub numbers: String,
    /// Source of the formula: a paper's equation or section, an RFC; may be empty.
    pub source: String,
}

/// The cost of networks of software switches, compared with chassis routers (multi-host paper §III).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanCost {
    /// Ports that the scenario needs.
    pub ports: u64,
    /// The scenario's own network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<PlanComparison>,
    /// Other port counts and oversubscriptions.
    pub sweep: Vec<PlanComparison>,
}

/// One network, built both ways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanComparison {
    /// Number of host ports.
    pub ports: u64,
    /// Spines a plane.
    pub spines: u64,
    /// Host ports of a leaf over its spines.
    pub oversubscription: f64,
    /// Number of software switches.
    pub switches: u64,
    /// Chassis of the routers.
    pub chassis: u64,
    /// Line modules in them.
    pub modules: u64,
    /// Code of the currency.
    pub currency: String,
    /// Price of the software switches, in that currency.
    pub software_price: f64,
    /// Price of the routers.
    pub router_price: f64,
    /// Routers' price over software switches' price.
    pub price_ratio: f64,
    /// Floor that the software switches take, in square metres.
    pub software_area_m2: f64,
    /// Floor that the routers take.
    pub router_area_m2: f64,
    /// Software switches' floor over routers' floor.
    pub area_ratio: f64,
    /// Results behind the comparison, with their formulas.
    pub derivations: Vec<PlanRow>,
}
