//! Techniques against incast, one folder each. A folder holds everything that its technique does to data, to control messages
//! and to the summary. The event loop calls the hooks of [`TechniqueSet`] and names no technique.
//!
//! `docs/CONTRIBUTING.md` says how to add one. A technique above the transport schedules the answers of an event-building
//! system ([`AnswerHooks`]); the workload drives it.

mod barrel_shifter;
mod bbr;
mod credits;
mod daqring;
mod dctcp;
mod diatcp;
mod ecn;
mod fastpass;
mod hooks;
mod ictcp;
mod m21tcp;
mod paced_credits;
mod pause;
mod sird;
mod static_window;
mod swift;

use fanin_dataflow::Collector;
use fanin_recording::HoldingTechniques;
use fanin_report::Summary;
use fanin_scenario::Transport;
use fanin_tcp::Config;
use fanin_units::Bytes;
use serde_json::Value;

use crate::Error;
use crate::engine::{Engine, HeldBack};
use crate::fabric::Crossing;
use crate::index::{EndIndex, peer};
use crate::occurrence::TechniqueStep;

use hooks::{ActsAt, Installed, TechniqueFunctions, TechniqueHooks, TransportHooks};

pub(crate) use hooks::{AnswerAction, AnswerHooks, AnswerSetup, MessageKind, RunView, Setup, packets};

/// Every technique: one row each. Of several that hold data back at hosts, the last names the cause. Ties depend on the order.
const TECHNIQUES: [TechniqueFunctions; 15] = [
    ecn::TECHNIQUE,
    pause::TECHNIQUE,
    m21tcp::TECHNIQUE,
    ictcp::TECHNIQUE,
    swift::TECHNIQUE,
    daqring::TECHNIQUE,
    fastpass::TECHNIQUE,
    sird::TECHNIQUE,
    diatcp::TECHNIQUE,
    dctcp::TECHNIQUE,
    static_window::TECHNIQUE,
    barrel_shifter::TECHNIQUE,
    credits::TECHNIQUE,
    paced_credits::TECHNIQUE,
    bbr::TECHNIQUE,
];

/// Lets the techniques of a scenario change TCP's settings, after the profile and the keys have set them.
pub(crate) fn configure(transport: &Transport, config: &mut Config) {
    TECHNIQUES.iter().for_each(|technique| (technique.configure)(transport, config));
}

/// Builds the technique that schedules the answers of a scenario, if it uses one.
pub(crate) fn answer_technique(setup: &AnswerSetup<'_>) -> Option<Box<dyn AnswerHooks>> {
    TECHNIQUES.iter().find_map(|technique| (technique.schedule_answers)(setup))
}

/// Adds the counts of the collectors' techniques to the summary.
pub(crate) fn report_collectors(collectors: &[Collector<Bytes>], summary: &mut Summary) {
    TECHNIQUES.iter().for_each(|technique| (technique.report_collectors)(collectors, summary));
}

/// The techniques of a run.
#[derive(Default)]
pub(crate) struct TechniqueSet {
    /// The transport in TCP's place; `None` with TCP.
    transport: Option<Box<dyn TransportHooks>>,
    /// Techniques that act on hosts.
    acting: Vec<Box<dyn TechniqueHooks>>,
    /// Place in `acting`, by the number in [`TECHNIQUES`].
    places: [Option<usize>; TECHNIQUES.len()],
    /// Techniques that act at switches.
    at_switches: Vec<Box<dyn TechniqueHooks>>,
    /// Techniques that only have figures.
    reporting: Vec<Box<dyn TechniqueHooks>>,
    /// The ways in which techniques hold data back, for the causes of a late event.
    pub(crate) holding: HoldingTechniques,
}

impl TechniqueSet {
    /// Builds the techniques that a scenario uses.
    pub(crate) fn new(mut setup: Setup<'_>) -> Result<Self, Error> {
        let mut techniques = Self::default();
        for (number, technique) in TECHNIQUES.into_iter().enumerate() {
            setup.technique = number as u8;
            let holding = &mut techniques.holding;
            holding.cause = (technique.holding_cause)(&setup).or(holding.cause);
            holding.by_credit |= (technique.holds_requests)(&setup);
            match (technique.build)(&setup)? {
                Some(Installed::Transport(transport)) => techniques.transport = Some(transport),
                Some(Installed::Technique(technique)) => {
                    let list = match technique.acts_at() {
                        ActsAt::Nowhere => &mut techniques.reporting,
                        ActsAt::Hosts => {
                            techniques.places[number] = Some(techniques.acting.len());
                            &mut techniques.acting
                        }
                        ActsAt::Switches => &mut techniques.at_switches,
                    };
                    list.push(technique);
                }
                None => {}
            }
        }
        Ok(techniques)
    }

    /// Returns the transport in TCP's place at an end; `None` with TCP, which background connections always have.
    #[inline]
    pub(crate) fn transport(
        &mut self,
        engine: &Engine,
        end: EndIndex,
    ) -> Option<&mut (dyn TransportHooks + 'static)> {
        self.transport.as_deref_mut().filter(|_| !engine.is_background(end))
    }

    /// Returns true if TCP carries the messages.
    pub(crate) fn uses_tcp(&self) -> bool {
        self.transport.is_none()
    }

    /// Returns true if a technique acts on hosts.
    #[inline]
    pub(crate) fn act(&self) -> bool {
        !self.acting.is_empty()
    }

    /// Returns true if a technique acts at switches.
    #[inline]
    pub(crate) fn act_at_switches(&self) -> bool {
        !self.at_switches.is_empty()
    }

    pub(crate) fn on_forward(
        &mut self,
        engine: &mut Engine,
        crossing: Crossing,
        end: EndIndex,
        place: usize,
    ) {
        self.at_switches.iter_mut().for_each(|technique| technique.on_forward(engine, crossing, end, place));
    }

    /// Returns all techniques below TCP.
    fn all(&self) -> impl Iterator<Item = &dyn TechniqueHooks> {
        self.acting.iter().chain(&self.at_switches).chain(&self.reporting).map(|technique| &**technique)
    }

    pub(crate) fn on_start(&mut self, engine: &mut Engine) {
        self.transport.iter_mut().for_each(|transport| transport.on_start(engine));
        let techniques = self.acting.iter_mut().chain(&mut self.at_switches).chain(&mut self.reporting);
        techniques.for_each(|technique| technique.on_start(engine));
    }

    #[inline(never)]
    pub(crate) fn on_send(&mut self, engine: &mut Engine, end: EndIndex, place: u32) -> bool {
        self.acting.iter_mut().any(|technique| technique.on_send(engine, end, place))
    }

    #[inline(never)]
    pub(crate) fn on_sent(&mut self, engine: &mut Engine, end: EndIndex) {
        self.acting.iter_mut().for_each(|technique| technique.on_sent(engine, end));
    }

    #[inline(never)]
    pub(crate) fn on_segment(&mut self, engine: &mut Engine, end: EndIndex, payload: u32, wire_bytes: u32) {
        self.acting.iter_mut().for_each(|technique| technique.on_segment(engine, end, payload, wire_bytes));
    }

    pub(crate) fn on_messages(&mut self, engine: &mut Engine, messages: &[(EndIndex, MessageKind)]) {
        self.acting.iter_mut().for_each(|technique| technique.on_messages(engine, messages));
    }

    pub(crate) fn on_received(&mut self, engine: &mut Engine, end: EndIndex, kind: MessageKind) {
        self.acting.iter_mut().for_each(|technique| technique.on_received(engine, end, kind));
    }

    pub(crate) fn on_step(&mut self, engine: &mut Engine, step: TechniqueStep) {
        let place =
            self.places[usize::from(step.technique)].expect("only techniques that act on hosts have steps");
        self.acting[place].on_step(engine, step);
    }

    /// Returns the key and figures of each technique that has figures.
    pub(crate) fn figures(&self, view: &RunView<'_>) -> Vec<(&'static str, Value)> {
        let transport = self.transport.iter().map(|transport| (transport.key(), transport.figures()));
        let figures = self.all().filter_map(|technique| Some((technique.key(), technique.figures(view)?)));
        transport.chain(figures).collect()
    }

    /// Returns the counters of an end, and the number of its bytes known to have arrived.
    pub(crate) fn stats(&self, engine: &Engine, end: EndIndex) -> (fanin_tcp::Stats, u64) {
        match self.transport.as_ref().filter(|_| !engine.is_background(end)) {
            Some(transport) => transport.stats(end),
            None => (engine.stats(end), self.arrived(engine, end)),
        }
    }

    /// Returns the bytes of an end that its peer has received; over TCP, the acknowledged ones.
    pub(crate) fn arrived(&self, engine: &Engine, end: EndIndex) -> u64 {
        match self.transport.as_ref().filter(|_| !engine.is_background(end)) {
            Some(transport) => transport.delivered(peer(end)),
            None => engine.ends()[end as usize].endpoint.acked(),
        }
    }

    /// Returns the payload and frames that techniques hold back.
    pub(crate) fn held_back(&self) -> HeldBack {
        self.acting.iter().fold(HeldBack::default(), |sum, technique| {
            let HeldBack { payload, frames } = technique.held_back();
            HeldBack { payload: sum.payload + payload, frames: sum.frames + frames }
        })
    }

    /// Asserts that the accounts of every technique balance.
    pub(crate) fn assert_conserved(&self, engine: &Engine) {
        self.transport.iter().for_each(|transport| transport.assert_conserved());
        self.all().for_each(|technique| technique.assert_conserved(engine));
    }
}
