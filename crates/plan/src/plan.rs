//! The plan of a scenario: its load on every link, its ideal times, the bytes that every queue has to hold, and the
//! techniques' settings.

use std::borrow::Cow;

use fanin_network::SwitchRole;
use fanin_scenario::{FragmentSizes, Scenario, WorkloadKind};
use fanin_units::{Duration, Rate, Ratio};

use crate::bracket::LossBracket;
use crate::bursts::burst;
use crate::catalogue::Catalogue;
use crate::cost::{CostComparison, compare, sweep};
use crate::derived::{Derivation, Derived, brief, percent, ratio_of};
use crate::proof::never_loses;
use crate::queues::{BurstOutcome, Losses, Queue, queues};
use crate::sections::{buffers, credits, link_loads, rates, techniques, windows, workload};
use crate::system::{PlanError, SystemFigures};
use crate::warnings::warnings;
use crate::wire::goodput_ideal;

/// Options of the planner, in addition to the scenario.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Prices and dimensions.
    pub catalogue: Catalogue,
    /// The fragment sizes, if the scenario takes them from a file. They override the scenario's own.
    pub fragment_sizes: Option<FragmentSizes>,
    /// Share of the events, or of the time, for which a buffer must be large enough; above 0 and below 1.
    pub quantile: Ratio,
    /// True to add cost and space for any topology, with a sweep over port counts. Otherwise only networks with spine switches
    /// have them, without a sweep.
    pub cost: bool,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            catalogue: Catalogue::shipped(),
            fragment_sizes: None,
            quantile: Ratio::new(999_000),
            cost: false,
        }
    }
}

/// Port counts and spines of the sweep in cost and space (multi-host figs 3 and 4).
const SWEEP_PORTS: [u64; 8] = [100, 200, 300, 400, 500, 600, 700, 800];
const SWEEP_SPINES: [u64; 4] = [2, 6, 10, 20];

/// The best figures that the network allows, without other traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct IdealCase {
    /// Data-collection time of a whole event, or of a request of a barrier-synchronised workload.
    pub collection_time: Derived<Duration>,
    /// Payload over that time.
    pub goodput: Derived<Rate>,
}

/// All links of one kind and their load.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkLoad {
    /// The kinds of nodes at the two ends, such as `tor->collector`.
    pub name: String,
    /// Number of links.
    pub count: u64,
    /// Rate of one link.
    pub rate: Rate,
    /// The rate offered to all these links together, on the wire.
    pub offered: Derived<Rate>,
    /// Mean load of the links.
    pub load: Derived<Ratio>,
    /// Mean load by requests and acknowledgements in the reverse direction.
    pub load_reverse: Option<Derived<Ratio>>,
}

/// Results that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The subject of the rows.
    pub title: &'static str,
    /// The results in order of reading.
    pub rows: Vec<Derivation>,
}

/// Cost and space of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Ports for hosts that the scenario's network has.
    pub ports: u64,
    /// The scenario's network; `None` if the catalogue's server has too few ports for the spines.
    pub network: Option<CostComparison>,
    /// A sweep over port counts and spines, if requested.
    pub sweep: Vec<CostComparison>,
}

/// The plan of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The scenario's title.
    pub title: String,
    /// True if the workload is barrier-synchronised: requests, not events.
    pub is_barrier: bool,
    /// True if the next request waits for the one before. Loads are then the highest possible ones.
    pub is_closed_loop: bool,
    /// The best figures that the network allows.
    pub ideal: IdealCase,
    /// The load offered to the links, from the readouts to the collectors.
    pub links: Vec<LinkLoad>,
    /// The queues, the last hop first.
    pub queues: Vec<Queue>,
    /// Share of the events for which a buffer must be large enough.
    pub quantile: Ratio,
    /// Proof that no frame can be lost, or the reason why there is none.
    pub proof: Result<String, String>,
    /// All other figures, in reading order.
    pub sections: Vec<Section>,
    /// Warnings, in sentences.
    pub warnings: Vec<String>,
    /// Cost and space, for a leaf-spine network or on request.
    pub cost: Option<Cost>,
}

/// Plans a scenario that has passed its checks.
///
/// # Errors
/// If fragment sizes are known only from a file, answers are empty, the network is unsuitable, or products of numbers overflow.
pub fn plan(scenario: &Scenario, options: &PlanOptions) -> Result<Plan, PlanError> {
    assert!(
        !options.quantile.is_zero() && options.quantile < Ratio::ONE,
        "a quantile is above 0 and below 1, not {}",
        options.quantile
    );
    let system = SystemFigures::new(scenario, options.fragment_sizes)?;
    let burst = burst(scenario, &system);
    let queues = queues(scenario, &system, &burst, options.quantile);
    let ideal = IdealCase {
        collection_time: system.ideal.clone(),
        goodput: goodput_ideal(system.payload, system.ideal.value),
    };
    let links: Vec<LinkLoad> = link_loads(scenario, &system);
    let mut sections = vec![
        workload(scenario, &system),
        rates(&system),
        windows(scenario, &system, &queues[0]),
        buffers(&system, &burst, &queues, options.quantile),
    ];
    if scenario.workload.kind != WorkloadKind::Push && !scenario.is_barrier() {
        sections.push(credits(scenario, &system, &queues[0]));
    }
    sections.push(techniques(scenario, &system, &burst));
    let cost = (options.cost || system.has(SwitchRole::Spine)).then(|| cost(scenario, &system, options));
    let mut plan = Plan {
        title: scenario.title.clone(),
        is_barrier: scenario.is_barrier(),
        is_closed_loop: system.is_closed_loop,
        ideal,
        links,
        quantile: options.quantile,
        proof: never_loses(scenario, &system),
        queues,
        sections,
        warnings: Vec::new(),
        cost,
    };
    plan.warnings = warnings(scenario, &system, &plan);
    Ok(plan)
}

impl Plan {
    /// Returns the verdict: the deciding outcome, and one sentence on losses of frames.
    pub fn verdict(&self) -> (BurstOutcome, String) {
        let first = |outcome| self.queues.iter().find(|queue| queue.outcome == outcome);
        if let Some(link) = self.links.iter().find(|link| link.load.value > Ratio::ONE) {
            let load = brief(link.load.value);
            let why = format!("{} cannot keep up, offered {load} of its rate", link.name);
            let text = match (self.losses(), self.losing()) {
                (Losses::Always, _) => format!("always loses frames: {why}"),
                (Losses::InShare(_), Some(queue)) => format!("{}: {why}", self.in_share(queue)),
                _ => format!("depends on how long it lasts: {why}"),
            };
            return (BurstOutcome::Loses, text);
        }
        if let (Losses::Never, Ok(proof)) = (self.losses(), &self.proof) {
            return (BurstOutcome::Fits, format!("never loses frames: {proof}"));
        }
        let open = || self.open().or(self.queues.first());
        match (self.losses(), self.losing()) {
            (Losses::Always, Some(queue)) => {
                return (queue.outcome, format!("always loses frames: {}", queue.reason));
            }
            (Losses::InShare(_), Some(queue)) => {
                return (queue.outcome, format!("{}: {}", self.in_share(queue), queue.reason));
            }
            _ => {}
        }
        for outcome in [BurstOutcome::Loses, BurstOutcome::MayLose] {
            if let Some(queue) = first(outcome) {
                return (outcome, self.depends(queue));
            }
        }
        if let Some(queue) = first(BurstOutcome::HoldsBack) {
            return (
                BurstOutcome::HoldsBack,
                format!("stops senders instead of losing frames: {}", queue.reason),
            );
        }
        (BurstOutcome::Fits, open().map_or_else(String::new, |queue| self.depends(queue)))
    }

    /// Writes the sentence on a queue whose losses depend on more than the model covers: the estimate, the bracket, and the
    /// obstacle to a proof.
    fn depends(&self, queue: &Queue) -> String {
        if queue.outcome == BurstOutcome::Unlimited {
            let why = self.proof.as_ref().err().map_or("", String::as_str);
            return format!(
                "depends on other frames than data, whose queues have no limit: {}; not proven for the others, since {why}",
                queue.reason
            );
        }
        let mut parts = Vec::new();
        if let Some(bracket) = &queue.bracket {
            parts.extend(self.expected_text(queue, bracket));
        }
        let is_estimated =
            queue.bracket.is_some_and(|bracket| bracket.expected.is_some_and(|share| !share.is_zero()));
        let has_reason = queue.outcome != BurstOutcome::Fits || is_estimated;
        match &queue.bracket {
            Some(bracket) if !has_reason || bracket.waiting_max.is_some() => {
                if has_reason {
                    // The reason states the bytes that wait and the room for them.
                    parts.push(queue.reason.clone());
                    parts.extend(bracket.waiting_max_text());
                } else {
                    parts.push(bracket.waiting_text(&queue.name));
                }
            }
            _ => parts.push(queue.reason.clone()),
        }
        // The bound states the same as the failed proof.
        let is_bounded = queue.bracket.is_some_and(|bracket| bracket.waiting_max.is_some());
        if let Err(why) = &self.proof
            && !is_bounded
            && queue.outcome == BurstOutcome::Fits
        {
            parts.push(format!("not proven, since {why}"));
        }
        format!("depends on how events meet: {}", parts.join("; "))
    }

    /// Writes the share of the events that the model expects to lose frames.
    fn expected_text(&self, queue: &Queue, bracket: &LossBracket) -> Option<String> {
        let allowed = brief(Ratio::ONE.saturating_sub(self.quantile));
        let load = self.link_load(&queue.name).filter(|_| !self.is_closed_loop);
        let load = load.map_or_else(String::new, |load| format!(" at {} load", brief(load)));
        Some(match (bracket.expected, bracket.range_text()) {
            (Some(Ratio::ZERO), Some(_)) => {
                let most = bracket.share.map_or(Ratio::ONE, |[_, most]| most);
                format!("expected never{load}, in at most {} of the events", percent(most))
            }
            (Some(Ratio::ZERO), None) => format!("expected never{load}"),
            (Some(Ratio::ONE), Some(range)) => format!("expected always ({range} of the events)"),
            (Some(Ratio::ONE), None) => "expected always".to_owned(),
            (Some(share), Some(range)) => {
                format!("expected in about {} of the events ({range}; allowed: {allowed})", percent(share))
            }
            (Some(share), None) => {
                format!("expected in about {} of the events (allowed: {allowed})", percent(share))
            }
            (None, Some(range)) => format!("in {range} of the events (allowed: {allowed})"),
            (None, None) => return None,
        })
    }

    /// Writes the share of the events that lose frames at a queue, its range, and the share allowed by the quantile.
    fn in_share(&self, queue: &Queue) -> String {
        let share = percent(queue.losses.share().unwrap_or_default());
        let range = queue.bracket.and_then(|bracket| bracket.range_text()).filter(|range| *range != share);
        let range = range.map_or_else(String::new, |range| format!("{range}; "));
        let allowed = brief(Ratio::ONE.saturating_sub(self.quantile));
        format!("loses frames in about {share} of the events ({range}allowed: {allowed})")
    }

    /// Returns the queue with the deciding bracket of a verdict that depends: the one with the worst outcome. Among these it
    /// may lose the largest share of the events, or be overfilled most.
    pub(crate) fn open(&self) -> Option<&Queue> {
        let risk = |queue: &&Queue| {
            let bracket = queue.bracket?;
            let share = bracket.share.map_or(Ratio::ONE, |[_, most]| most);
            let fill = bracket.waiting_max.map(|most| ratio_of(most.get(), bracket.fits.get().max(1)));
            Some((queue.outcome.risk(), share, fill.unwrap_or(Ratio::new(u64::MAX))))
        };
        let open = self.queues.iter().filter(|queue| queue.losses == Losses::Depends);
        // Of queues with the same risk, the one nearest to the collector is taken.
        open.filter(|queue| queue.bracket.is_some()).rev().max_by_key(risk)
    }

    /// Returns true if a link is offered more than its rate.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.links.iter().any(|link| link.load.value > Ratio::ONE)
    }

    /// Returns the losses of frames in the whole network.
    pub fn losses(&self) -> Losses {
        let loses = self.queues.iter().any(|queue| queue.outcome == BurstOutcome::Loses);
        if self.proof.is_ok() && !self.is_overloaded() && !loses {
            return Losses::Never;
        }
        self.losing().map_or(Losses::Depends, |queue| queue.losses)
    }

    /// Returns the queue that loses frames most often, of the queues with known losses.
    pub(crate) fn losing(&self) -> Option<&Queue> {
        let often = |queue: &&Queue| match queue.losses {
            Losses::Always => Some(Ratio::ONE),
            Losses::InShare(share) => Some(share),
            Losses::Never | Losses::Depends => None,
        };
        let known = self.queues.iter().filter(|queue| often(queue).is_some());
        // Of queues that lose equally often, the one nearest to the collector is taken.
        known.rev().max_by_key(|queue| often(queue))
    }

    /// Finds a result in the sections by its name.
    pub fn find(&self, name: &str) -> Option<&Derivation> {
        self.sections.iter().flat_map(|section| &section.rows).find(|row| row.name == name)
    }

    /// Returns the mean load of the links between ToR switches and collectors.
    pub fn last_hop_load(&self) -> Ratio {
        self.link_load("tor->collector").unwrap_or_default()
    }

    /// Returns the mean load of the links into the racks; `None` in a star, which has no such links.
    pub fn uplink_load(&self) -> Option<Ratio> {
        self.link_load("core->tor").or_else(|| self.link_load("leaf->tor"))
    }

    fn link_load(&self, name: &str) -> Option<Ratio> {
        self.links.iter().find(|link| link.name == name).map(|link| link.load.value)
    }
}

fn cost(s: &Scenario, system: &SystemFigures, options: &PlanOptions) -> Cost {
    let ports = system.ports;
    let spines =
        if system.has(SwitchRole::Spine) { u64::from(s.network.leaf_spine.spines) } else { SWEEP_SPINES[1] };
    Cost {
        ports,
        network: compare(ports, spines, &options.catalogue).ok(),
        sweep: if options.cost { sweep(&SWEEP_PORTS, &SWEEP_SPINES, &options.catalogue) } else { Vec::new() },
    }
}

/// Returns the name of a link or queue in the form for keys: arrows become dots.
pub(crate) fn key(name: &str) -> Cow<'_, str> {
    if name.contains("->") { Cow::Owned(name.replace("->", ".")) } else { Cow::Borrowed(name) }
}
