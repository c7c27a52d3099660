//! The plan as one JSON object with the summary's schema, and with every derivation under `plan`.

use fanin_units::Ratio;
use serde::Serialize;

use crate::bracket::LossBracket;
use crate::cost::CostComparison;
use crate::derived::Derivation;
use crate::plan::{LinkLoad, Plan, key};
use crate::queues::{BurstOutcome, Losses, Queue};

/// The schema of summaries of all kinds.
pub const SCHEMA: &str = "fanin.summary/1";

/// The scenario of a summary.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedScenario {
    /// The name of the scenario.
    pub name: String,
    /// A digest of all its settings.
    pub hash: String,
}

/// A plan's summary as one JSON object. A key that does not apply is absent.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedSummary {
    schema: &'static str,
    kind: &'static str,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    scenario: PlannedScenario,
    load: PlannedLoad,
    ideal: PlannedIdeal,
    plan: Details,
}

#[derive(Clone, Debug, Serialize)]
struct PlannedLoad {
    last_hop: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    uplink: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct PlannedIdeal {
    collection_time_ms: f64,
    goodput_bps: u64,
    how: String,
}

#[derive(Clone, Debug, Serialize)]
struct Details {
    verdict: SummaryVerdict,
    warnings: Vec<String>,
    links: Vec<LinkFigures>,
    queues: Vec<QueueFigures>,
    derivations: Vec<Derivation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<CostFigures>,
}

#[derive(Clone, Debug, Serialize)]
struct SummaryVerdict {
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    loses_frames: Option<bool>,
    losses: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    losing_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bracket: Option<BracketFigures>,
    text: String,
}

/// Bounds of the losses.
#[derive(Clone, Debug, Serialize)]
struct BracketFigures {
    queue: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    losing_share_min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    losing_share_max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    losing_share_expected: Option<f64>,
    waiting_bytes_min: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_bytes_max: Option<u64>,
    fits_bytes: u64,
}

#[derive(Clone, Debug, Serialize)]
struct LinkFigures {
    name: String,
    count: u64,
    rate_bps: u64,
    offered_bps: u64,
    load: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_reverse: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct QueueFigures {
    name: String,
    outcome: &'static str,
    losses: &'static str,
    inflow_bps: u64,
    outflow_bps: u64,
    burst_bytes: u64,
    peak_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overflow_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bracket: Option<BracketFigures>,
    text: String,
}

#[derive(Clone, Debug, Serialize)]
struct CostFigures {
    ports: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<ComparisonFigures>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweep: Vec<ComparisonFigures>,
}

#[derive(Clone, Debug, Serialize)]
struct ComparisonFigures {
    ports: u64,
    spines: u64,
    oversubscription: f64,
    switches: u64,
    chassis: u64,
    modules: u64,
    currency: String,
    software_price: f64,
    router_price: f64,
    price_ratio: f64,
    software_area_m2: f64,
    router_area_m2: f64,
    area_ratio: f64,
    derivations: Vec<Derivation>,
}

impl BurstOutcome {
    /// Returns the rank of the outcome; the worst outcome has the highest.
    pub(crate) const fn risk(self) -> u8 {
        match self {
            Self::Unlimited => 0,
            Self::HoldsBack => 1,
            Self::Fits => 2,
            Self::MayLose => 3,
            Self::Loses => 4,
        }
    }

    /// Returns the name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::MayLose => "may-lose",
            Self::Loses => "loses",
            Self::HoldsBack => "holds-back",
            Self::Unlimited => "unlimited",
        }
    }
}

impl Losses {
    /// Returns the name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::InShare(_) => "in-share",
            Self::Always => "always",
            Self::Depends => "depends",
        }
    }

    /// Returns the share of the events that lose frames; `None` if it is unknown.
    pub const fn share(self) -> Option<Ratio> {
        match self {
            Self::Never => Some(Ratio::ZERO),
            Self::InShare(share) => Some(share),
            Self::Always => Some(Ratio::ONE),
            Self::Depends => None,
        }
    }
}

fn share(ratio: Ratio) -> f64 {
    ratio.as_f64()
}

impl Plan {
    /// Makes the plan's summary. `version` is that of the program, `commit` its source commit if known.
    pub fn summary(
        &self,
        scenario: PlannedScenario,
        version: &'static str,
        commit: Option<String>,
    ) -> PlannedSummary {
        let (outcome, text) = self.verdict();
        PlannedSummary {
            schema: SCHEMA,
            kind: "plan",
            version,
            commit,
            scenario,
            load: PlannedLoad {
                last_hop: share(self.last_hop_load()),
                uplink: self.uplink_load().map(share),
            },
            ideal: PlannedIdeal {
                collection_time_ms: self.ideal.collection_time.value.as_millis_f64(),
                goodput_bps: self.ideal.goodput.value.get(),
                how: self.ideal.collection_time.text(),
            },
            plan: Details {
                verdict: SummaryVerdict {
                    outcome: match (outcome, self.losses()) {
                        (BurstOutcome::HoldsBack, _) => outcome.name(),
                        (_, Losses::Depends) if !self.is_overloaded() => "depends",
                        _ => outcome.name(),
                    },
                    loses_frames: match self.losses() {
                        Losses::Never => Some(false),
                        Losses::InShare(_) | Losses::Always => Some(true),
                        Losses::Depends => None,
                    },
                    losses: self.losses().name(),
                    losing_share: self.losses().share().map(share),
                    bracket: match self.losses() {
                        Losses::Depends => self.open(),
                        Losses::InShare(_) => self.losing(),
                        Losses::Never | Losses::Always => None,
                    }
                    .and_then(|queue| bracket(&queue.name, queue.bracket)),
                    text,
                },
                warnings: self.warnings.clone(),
                links: self.links.iter().map(link).collect(),
                queues: self.queues.iter().map(queue).collect(),
                derivations: self.derivations(),
                cost: self.cost.as_ref().map(|cost| CostFigures {
                    ports: cost.ports,
                    network: cost.network.as_ref().map(comparison),
                    sweep: cost.sweep.iter().map(comparison).collect(),
                }),
            },
        }
    }

    /// Returns every result with its formula, in the table's order. Arrows in names become dots.
    pub fn derivations(&self) -> Vec<Derivation> {
        let ideal = [self.ideal.collection_time.erase(), self.ideal.goodput.erase()];
        let links = self.links.iter().flat_map(|link| {
            let reverse = link.load_reverse.as_ref().map(|load| load.erase());
            [link.offered.erase(), link.load.erase()].into_iter().chain(reverse)
        });
        let rows = self.sections.iter().flat_map(|section| section.rows.iter().cloned());
        ideal
            .into_iter()
            .chain(links)
            .chain(rows)
            .map(|row| {
                let name = key(&row.name).into_owned();
                row.named(name)
            })
            .collect()
    }
}

fn link(link: &LinkLoad) -> LinkFigures {
    LinkFigures {
        name: link.name.clone(),
        count: link.count,
        rate_bps: link.rate.get(),
        offered_bps: link.offered.value.get(),
        load: share(link.load.value),
        load_reverse: link.load_reverse.as_ref().map(|load| share(load.value)),
    }
}

fn queue(queue: &Queue) -> QueueFigures {
    QueueFigures {
        name: queue.name.clone(),
        outcome: queue.outcome.name(),
        losses: queue.losses.name(),
        inflow_bps: queue.inflow.get(),
        outflow_bps: queue.outflow.get(),
        burst_bytes: queue.burst.value.get(),
        peak_bytes: queue.peak.value.get(),
        capacity_bytes: queue.capacity.map(|capacity| capacity.get()),
        overflow_share: queue.overflow_share.as_ref().map(|overflow| share(overflow.value)),
        bracket: bracket(&queue.name, queue.bracket),
        text: queue.reason.clone(),
    }
}

fn bracket(queue: &str, bracket: Option<LossBracket>) -> Option<BracketFigures> {
    let bracket = bracket?;
    Some(BracketFigures {
        queue: queue.to_owned(),
        losing_share_min: bracket.share.map(|[least, _]| share(least)),
        losing_share_max: bracket.share.map(|[_, most]| share(most)),
        losing_share_expected: bracket.expected.map(share),
        waiting_bytes_min: bracket.waiting.get(),
        waiting_bytes_max: bracket.waiting_max.map(|most| most.get()),
        fits_bytes: bracket.fits.get(),
    })
}

fn comparison(comparison: &CostComparison) -> ComparisonFigures {
    let square_metres = |area: crate::derived::Area| area.0 as f64 / 1e6;
    let units = |hundredths: u64| hundredths as f64 / 1e2;
    ComparisonFigures {
        ports: comparison.fabric.ports,
        spines: comparison.fabric.spines,
        oversubscription: share(comparison.oversubscription.value.0),
        switches: comparison.switches.value.0,
        chassis: comparison.routers.chassis,
        modules: comparison.routers.modules,
        currency: comparison.fabric_price.value.currency.to_string(),
        software_price: units(comparison.fabric_price.value.hundredths),
        router_price: units(comparison.routers_price.value.hundredths),
        price_ratio: share(comparison.price_ratio.value.0),
        software_area_m2: square_metres(comparison.fabric_area.value),
        router_area_m2: square_metres(comparison.routers_area.value),
        area_ratio: share(comparison.area_ratio.value.0),
        derivations: comparison.derivations(),
    }
}
