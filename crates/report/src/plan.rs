//! What the planner hands over: derivations with their formula and numbers, loads, bursts, a verdict.

use serde::{Deserialize, Serialize};

/// The planner's part of a summary, under its key `plan`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// Whether the system works as the scenario has it, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<PlanVerdict>,
    /// Derivations, in the order a reader wants them.
    pub sections: Vec<PlanSection>,
    /// Offered load of links, or of groups of like links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkLoad>,
    /// Bursts against the buffers they meet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<BufferLoad>,
}

/// The planner's verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanVerdict {
    /// False where frames would be lost or a link is offered more than it carries.
    pub holds: bool,
    /// One sentence.
    pub text: String,
}

/// Derivations that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanSection {
    /// Heading.
    pub title: String,
    /// One line that says what the section is for; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The derivations.
    pub rows: Vec<PlanRow>,
}

/// One derived quantity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanRow {
    /// A stable name for scripts, in snake case, qualified by dots: `load.last_hop`.
    pub name: String,
    /// The result in the base unit of its kind.
    pub value: u64,
    /// The name of that base unit, such as `B` or `ps`.
    pub unit: String,
    /// The result as printed, with a unit that suits it.
    pub text: String,
    /// The formula in words or symbols; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub formula: String,
    /// The formula with its numbers filled in; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub numbers: String,
    /// Where the formula stands: a paper's equation or section; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
}

/// How much is offered to a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkLoad {
    /// The link, such as `tor→collector`.
    pub name: String,
    /// Offered over its rate; above 1 it cannot be carried.
    pub load: f64,
    /// Its rate, in bit/s.
    pub rate_bps: u64,
}

/// A burst and the buffer it meets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BufferLoad {
    /// The buffer, such as `tor→collector`.
    pub name: String,
    /// The most that arrives before it drains, in bytes.
    pub burst_bytes: u64,
    /// What it holds, in bytes.
    pub buffer_bytes: u64,
}
