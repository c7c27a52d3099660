//! Fastpass below TCP: hosts queue their packets until a central arbiter gives them timeslots.
//!
//! J. Perry et al., "Fastpass", SIGCOMM 2014; thesis §6.4. [`fanin_dataflow::Arbiter`] allocates the timeslots. Messages
//! to and from the arbiter are not frames of the simulation. Each takes the delay that the scenario gives, and a request
//! occupies its host's link for a smallest frame.

mod pacer;
mod step;

use std::collections::{HashMap, HashSet};

use fanin_dataflow::{Arbiter, Delay, Purpose, Random, SeedOwner, stream_seed};
use fanin_network::{NodeIndex, PortIndex};
use fanin_scenario::{Scenario, ShapingMethod};
use fanin_units::{Bytes, Duration, Rate};
use serde_json::{Value, json};

use super::hooks::{ActsAt, Installed, RunView, Setup, TechniqueFunctions, TechniqueHooks};
use crate::Error;
use crate::engine::{Engine, HeldBack};
use crate::index::{EndIndex, NIL};
use crate::occurrence::TechniqueStep;

use pacer::{Pacer, PairQueue, Parts};
use step::PacerStep;

pub(super) const TECHNIQUE: TechniqueFunctions = TechniqueFunctions {
    build,
    holding_cause: |s| is_used(s.scenario).then_some(("timeslot-wait", "timeslots of the arbiter")),
    ..TechniqueFunctions::NONE
};

fn is_used(scenario: &Scenario) -> bool {
    scenario.shaping.method == ShapingMethod::Fastpass
}

fn build(setup: &Setup<'_>) -> Result<Option<Installed>, Error> {
    Ok(is_used(setup.scenario).then(|| Installed::technique(Pacer::new(parts(setup)))))
}

/// Makes the parts of a [`Pacer`]: the arbiter with all links, and the pairs of hosts with their paths and clocks.
fn parts(setup: &Setup<'_>) -> Parts {
    let Setup { scenario, network, roles, engine, .. } = setup;
    let settings = scenario.shaping.fastpass.clone();
    let slot_bytes = settings.slot_mtus * (network.framing.link_bytes + scenario.transport.mtu.get() as u32);
    // If the scenario leaves a share of each link free, a link is allocated for longer than a timeslot's bytes keep it busy.
    let lent = |rate: Rate| {
        let busy = rate.time_to_send(Bytes::new(u64::from(slot_bytes)));
        scenario.shaping.stretched(busy)
    };
    // A timeslot fits the fastest link of a readout or collector; the links of other hosts do not count.
    let hosts: HashSet<NodeIndex> = roles.readouts.iter().chain(&roles.collectors).copied().collect();
    let fastest = (network.links.iter())
        .filter(|link| link.ends.iter().any(|node| hosts.contains(node)))
        .map(|link| link.rate)
        .max()
        .expect("a network has hosts");
    let slot = lent(fastest);
    let mut random = Random::new(stream_seed(setup.seed, SeedOwner::Arbiter, 0, Purpose::Role));
    let mut clocks = Vec::new();
    let mut clock_of: HashMap<NodeIndex, u32> = HashMap::new();
    let mut arbiter = Arbiter::new(slot);
    // The arbiter's number of each port's link.
    let mut links = vec![NIL; 2 * network.links.len()];
    let mut known: HashMap<Vec<PortIndex>, u32> = HashMap::with_capacity(engine.ends().len());
    let mut pairs: Vec<PairQueue> = Vec::new();
    let mut pair_of_end = Vec::with_capacity(engine.ends().len());
    for (index, end) in engine.ends().iter().enumerate() {
        let is_answer = index < 2 * setup.bulk_connections as usize && index % 2 == 1;
        let path: Vec<PortIndex> = engine.fabric.ports_on(end.route).collect();
        let Some(&first) = path.first().filter(|_| is_answer || !settings.answers_only) else {
            // A connection of a host with itself has no path.
            pair_of_end.push(NIL);
            continue;
        };
        let pair = *known.entry(path).or_insert_with_key(|path| {
            let links = path.iter().map(|&port| {
                let link = &mut links[port as usize];
                if *link == NIL {
                    *link = arbiter.add_link(lent(network.link(port).rate));
                }
                *link
            });
            let links: Vec<u32> = links.collect();
            // Clocks differ by `clock_error` at most: each is off by up to half of it either way (thesis §6.4.2).
            let width = settings.clock_error.get();
            let clock = *clock_of.entry(network.source(first)).or_insert_with(|| {
                let off = Delay::Uniform { min: Duration::ZERO, max: Duration::new(width) };
                clocks.push(off.draw(&mut random).get() as i64 - (width / 2) as i64);
                (clocks.len() - 1) as u32
            });
            pairs.push(PairQueue::new(first, clock));
            arbiter.add_pair(&links)
        });
        pair_of_end.push(pair);
    }
    Parts {
        technique: setup.technique,
        settings,
        random,
        slot: slot.get(),
        slot_bytes,
        message_bytes: setup.engine.fabric.header_wire_bytes(),
        arbiter,
        pairs,
        clocks,
        pair_of_end,
    }
}

impl TechniqueHooks for Pacer {
    fn key(&self) -> &'static str {
        "fastpass"
    }

    fn acts_at(&self) -> ActsAt {
        ActsAt::Hosts
    }

    fn on_start(&mut self, engine: &mut Engine) {
        self.start(engine);
    }

    fn on_send(&mut self, engine: &mut Engine, end: EndIndex, place: u32) -> bool {
        if !self.holds(end) {
            return false;
        }
        self.enqueue(engine, end, place);
        true
    }

    fn on_sent(&mut self, engine: &mut Engine, end: EndIndex) {
        self.request_slots(engine, end);
    }

    fn on_step(&mut self, engine: &mut Engine, step: TechniqueStep) {
        match PacerStep::of(step) {
            PacerStep::SlotDecision => self.decide(engine),
            PacerStep::SlotStart => self.begin_slot(engine),
            PacerStep::PairSlot(pair) => self.use_slot(engine, pair),
            PacerStep::RequestInHorizon => self.handle_request_in_horizon(engine),
            PacerStep::ArbiterFailure => self.fail(engine.now()),
            PacerStep::ArbiterFailover => self.fail_over(engine),
        }
    }

    fn held_back(&self) -> HeldBack {
        self.held_back
    }

    fn assert_conserved(&self, _: &Engine) {
        self.assert_slots_conserved();
    }

    fn figures(&self, _: &RunView<'_>) -> Option<Value> {
        let (counters, slot_bytes) = (&self.counters, self.slot_bytes);
        let messages = counters.requests + counters.slots;
        let mut value = json!({
            "timeslot_us": self.slot as f64 / 1e6,
            "slots": counters.slots,
            "slots_late": counters.slots_late,
            "slots_unused": counters.slots_unused,
            "requests": counters.requests,
            "requests_lost": counters.requests_lost,
            "control_bytes": messages * u64::from(self.message_bytes),
        });
        if counters.deaths > 0 {
            value["deaths"] = json!(counters.deaths);
            value["takeovers"] = json!(counters.takeovers);
            value["packets_given_up"] = json!(counters.packets_given_up);
        }
        if counters.packets > 0 {
            value["wait_ms_mean"] = json!(counters.waited as f64 / counters.packets as f64 / 1e9);
        }
        if counters.slots > 0 {
            let room = counters.slots as f64 * f64::from(slot_bytes);
            value["slot_fill"] = json!(counters.bytes as f64 / room);
        }
        Some(value)
    }
}
