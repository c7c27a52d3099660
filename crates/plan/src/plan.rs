//! The plan of a scenario: its load on every link, its ideal times, the bytes that every queue has to hold, and the
//! techniques' settings.

use std::borrow::Cow;

use fanin_scenario::{FragmentSizes, Scenario, Topology, WorkloadKind};
use fanin_units::{Duration, Rate, Ratio};

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
pub struct Options {
    /// Prices and dimensions.
    pub catalogue: Catalogue,
    /// The fragment sizes, where the scenario leaves them to a file. They override the scenario's own.
    pub fragment_sizes: Option<FragmentSizes>,
    /// Share of the events, or of the time, that a buffer has to be large enough for; above 0 and below 1.
    pub quantile: Ratio,
    /// True if cost and space are wanted for networks that are not leaf-spine too, with a sweep over port counts.
    pub cost: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            catalogue: Catalogue::shipped(),
            fragment_sizes: None,
            quantile: Ratio::new(999_000),
            cost: false,
        }
    }
}

/// Port counts and spines of the sweep that comes with cost and space (multi-host figs 3 and 4).
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
    /// The kinds of nodes that they lead from and to: `tor->collector`.
    pub name: String,
    /// Number of links.
    pub count: u64,
    /// Rate of one.
    pub rate: Rate,
    /// The rate offered to all of them together, on the wire.
    pub offered: Derived<Rate>,
    /// Their mean load.
    pub load: Derived<Ratio>,
    /// Mean load by requests and acknowledgements in the other direction.
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
    /// The scenario's network; `None` where the catalogue's server has too few ports for its spines.
    pub network: Option<CostComparison>,
    /// A sweep over port counts and spines, where it was asked for.
    pub sweep: Vec<CostComparison>,
}

/// The plan of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The scenario's title.
    pub title: String,
    /// True if the workload is barrier-synchronised: requests, not events.
    pub is_barrier: bool,
    /// True if the next request waits for the one before, so that loads are the highest possible ones.
    pub is_closed_loop: bool,
    /// The best that the network allows.
    pub ideal: IdealCase,
    /// The load offered to the links, from the readouts to the collectors.
    pub links: Vec<LinkLoad>,
    /// The queues, the last hop first.
    pub queues: Vec<Queue>,
    /// Share of the events that a buffer has to be large enough for.
    pub quantile: Ratio,
    /// Proof that no frame can be lost, or the reason for its lack.
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
/// If fragment sizes are known only from a file, or products of numbers overflow.
pub fn plan(scenario: &Scenario, options: &Options) -> Result<Plan, PlanError> {
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
        goodput: goodput_ideal(system.payload(), system.ideal.value),
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
    let cost = (options.cost || scenario.network.topology == Topology::LeafSpine)
        .then(|| cost(scenario, system.ports, options));
    let mut plan = Plan {
        title: scenario.title.clone(),
        is_barrier: scenario.is_barrier(),
        is_closed_loop: system.closed_loop,
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
    /// One sentence on where frames are lost, if they are.
    pub fn verdict(&self) -> (BurstOutcome, String) {
        let first = |outcome| self.queues.iter().find(|queue| queue.outcome == outcome);
        if let Some(link) = self.links.iter().find(|link| link.load.value > Ratio::ONE) {
            let load = brief(link.load.value);
            return (
                BurstOutcome::Loses,
                format!("cannot keep up: {} is offered {load} of its rate", link.name),
            );
        }
        if let (Losses::Never, Ok(proof)) = (self.losses(), &self.proof) {
            return (BurstOutcome::Fits, format!("never loses frames: {proof}"));
        }
        let worst = self.losing().filter(|queue| queue.outcome == BurstOutcome::Loses);
        if let Some(queue) = worst.or_else(|| first(BurstOutcome::Loses)) {
            let how_often = match queue.losses {
                Losses::Always => "always loses frames".to_owned(),
                Losses::InShare(_) => self.in_share(queue),
                Losses::Never | Losses::Depends => "is likely to lose frames".to_owned(),
            };
            let text = format!("{how_often}: {}", queue.reason);
            return (BurstOutcome::Loses, text + &bracket(queue));
        }
        if let Some(queue) = first(BurstOutcome::MayLose) {
            let text = format!("may lose frames: {}", queue.reason);
            return (BurstOutcome::MayLose, text + &bracket(queue));
        }
        if let Some(queue) = first(BurstOutcome::HoldsBack) {
            return (
                BurstOutcome::HoldsBack,
                format!("stops senders instead of losing frames: {}", queue.reason),
            );
        }
        if let (Losses::InShare(_), Some(queue)) = (self.losses(), self.losing()) {
            return (BurstOutcome::Fits, format!("{}: {}", self.in_share(queue), queue.reason));
        }
        let why = self.proof.as_ref().err().map_or(String::new(), |why| format!("; not proven, since {why}"));
        let queue = self.open().or(self.queues.first());
        match queue.and_then(|queue| Some((queue, queue.bracket?))) {
            Some((queue, bracket)) => {
                let text = bracket.text(&queue.name);
                // The bound says the same as the proof that fails.
                let why = if bracket.waiting_max.is_some() { String::new() } else { why };
                (BurstOutcome::Fits, format!("depends on how events meet: {text}{why}"))
            }
            None => {
                let reason = queue.map_or("", |queue| &queue.reason);
                (BurstOutcome::Fits, format!("depends on how events meet: {reason}{why}"))
            }
        }
    }

    /// Share of events that lose frames at a queue, and the share allowed by the quantile.
    fn in_share(&self, queue: &Queue) -> String {
        let share = queue.losses.share().unwrap_or_default();
        let bracket = queue.bracket.and_then(|bracket| bracket.share).unwrap_or([share; 2]);
        let [least, most] = bracket.map(percent);
        let range = match bracket[0] {
            Ratio::ZERO => format!("up to {most}"),
            _ if least == most => least,
            _ => format!("{} to {most}", least.trim_end_matches(" %")),
        };
        let allowed = brief(Ratio::ONE.saturating_sub(self.quantile));
        format!("loses frames in {range} of the events (allowed: {allowed})")
    }

    /// The queue with the deciding bracket of a verdict that depends. It may lose the largest share of the events, or
    /// be overfilled most.
    pub(crate) fn open(&self) -> Option<&Queue> {
        let risk = |queue: &&Queue| {
            let bracket = queue.bracket?;
            let share = bracket.share.map_or(Ratio::ONE, |[_, most]| most);
            let fill = bracket.waiting_max.map(|most| ratio_of(most.get(), bracket.fits.get().max(1)));
            Some((queue.outcome.risk(), share, fill.unwrap_or(Ratio::new(u64::MAX))))
        };
        let open = self.queues.iter().filter(|queue| queue.losses == Losses::Depends);
        // Of queues with the same risk, the one nearest to the collector.
        open.filter(|queue| queue.bracket.is_some()).rev().max_by_key(risk)
    }

    /// Losses of frames anywhere in the network.
    pub fn losses(&self) -> Losses {
        let overloaded = self.links.iter().any(|link| link.load.value > Ratio::ONE);
        let loses = self.queues.iter().any(|queue| queue.outcome == BurstOutcome::Loses);
        if self.proof.is_ok() && !overloaded && !loses {
            return Losses::Never;
        }
        self.losing().map_or(Losses::Depends, |queue| queue.losses)
    }

    /// The queue that loses frames most often, if its losses are known.
    pub(crate) fn losing(&self) -> Option<&Queue> {
        let often = |queue: &&Queue| match queue.losses {
            Losses::Always => Some(Ratio::ONE),
            Losses::InShare(share) => Some(share),
            Losses::Never | Losses::Depends => None,
        };
        let known = self.queues.iter().filter(|queue| often(queue).is_some());
        // Of queues that lose as often, the one nearest to the collector.
        known.rev().max_by_key(|queue| often(queue))
    }

    /// A result by its name.
    pub fn find(&self, name: &str) -> Option<&Derivation> {
        self.sections.iter().flat_map(|section| &section.rows).find(|row| row.name == name)
    }

    /// The mean load of the collectors' own links.
    pub fn last_hop_load(&self) -> Ratio {
        self.link_load("tor->collector").unwrap_or_default()
    }

    /// The mean load of the links into the racks; `None` in a star, which has none.
    pub fn uplink_load(&self) -> Option<Ratio> {
        self.link_load("core->tor").or_else(|| self.link_load("leaf->tor"))
    }

    fn link_load(&self, name: &str) -> Option<Ratio> {
        self.links.iter().find(|link| link.name == name).map(|link| link.load.value)
    }
}

/// The bracket of a queue as the end of a sentence.
fn bracket(queue: &Queue) -> String {
    let bracket = queue.bracket.filter(|_| queue.losses == Losses::Depends);
    bracket.map_or_else(String::new, |bracket| format!("; {}", bracket.text(&queue.name)))
}

fn cost(s: &Scenario, ports: u64, options: &Options) -> Cost {
    let has_spines = s.network.topology == Topology::LeafSpine;
    let spines = if has_spines { u64::from(s.network.leaf_spine.spines) } else { SWEEP_SPINES[1] };
    Cost {
        ports,
        network: compare(ports, spines, &options.catalogue).ok(),
        sweep: if options.cost { sweep(&SWEEP_PORTS, &SWEEP_SPINES, &options.catalogue) } else { Vec::new() },
    }
}

/// The name that a link or queue has in keys: arrows become dots.
pub(crate) fn key(name: &str) -> Cow<'_, str> {
    if name.contains("->") { Cow::Owned(name.replace("->", ".")) } else { Cow::Borrowed(name) }
}
