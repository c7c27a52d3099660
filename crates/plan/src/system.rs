//! The figures of a scenario that the planner computes with: answers, events, round trip, links and rates.

use std::collections::BTreeSet;

use fanin_network::{
    Collection, DataPaths, Link, LinkClass, Network, NetworkError, Node, NodeKind, Roles, SegmentFraming,
    SwitchKind, SwitchRole, WireMessage, topology,
};
use fanin_scenario::{
    Arrivals, FlowDistribution, FragmentSizes, Policy, Scenario, WorkloadKind, role_configs,
};
use fanin_units::{Bytes, Duration, Frequency, Packets, Rate, Ratio};

use crate::bounds::Requests;
use crate::derived::{Derived, brief};
use crate::wire::{ack_bytes, collection_time_ideal};

/// Errors of planning a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Fragment sizes are in a file, which the caller must read.
    #[error("readout.fragment_size: give the mean of the sizes in {path}")]
    FragmentSizeUnknown {
        /// The file that has the sizes.
        path: String,
    },
    /// Answers are empty on average, so that no ratio to them exists.
    #[error("the answers of the readouts have less than 1 B on average: there is nothing to plan")]
    Empty,
    /// A product of the scenario's numbers exceeds the range of a quantity.
    #[error("{quantity} is too large to compute with")]
    TooLarge {
        /// The quantity that does not fit.
        quantity: &'static str,
    },
    /// The network has no path for the data, or a link that is too slow.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// One step of a collection: the hosts that answer, and the share of events reaching it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlannedStep {
    pub(crate) name: String,
    /// Hosts that answer in this step.
    pub(crate) answers: u64,
    /// Share of the events that reach this step.
    pub(crate) reach: Ratio,
}

/// Spread of events over the collectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSpread {
    /// One collector after another.
    InTurn,
    /// To the unit that has waited longest: at random at first, and more and more in turn as the run goes on (thesis §6.5).
    Fcfs,
    /// Without regard to hosts.
    AtRandom,
}

/// The figures that follow from a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SystemFigures {
    pub(crate) segments: SegmentFraming,
    /// Payload of a whole event of mean size.
    pub(crate) payload: Bytes,
    /// The answer of one host, of mean size: its fragments, in segments with the message's header fields. Of a block that does
    /// not divide evenly, the smallest answer.
    pub(crate) answer: WireMessage,
    /// Bytes of the answer in its connection's stream.
    pub(crate) answer_bytes: Bytes,
    /// Payload of the largest answer; `None` where sizes have no upper bound.
    pub(crate) answer_max: Option<Bytes>,
    /// Payload of the largest event; `None` where sizes have no upper bound.
    pub(crate) event_max: Option<Bytes>,
    /// The request for an answer; empty if sources push.
    pub(crate) request: WireMessage,
    /// Scale parameter of the event sizes.
    pub(crate) sigma: f64,
    pub(crate) steps: Vec<PlannedStep>,
    /// Hosts that a whole event is collected from.
    pub(crate) answers: u64,
    /// Hosts that an event is collected from on average, in millionths.
    pub(crate) answers_mean: Ratio,
    pub(crate) senders: u64,
    pub(crate) fragments: u64,
    pub(crate) racks: u64,
    pub(crate) collectors: u64,
    pub(crate) units: u64,
    /// Events that one collector may collect at once from the start.
    pub(crate) overlap: u64,
    pub(crate) rtt: Derived<Duration>,
    pub(crate) last_hop: Rate,
    /// Rate of the slowest link, those of the supervisor and the loggers included.
    pub(crate) slowest: Rate,
    pub(crate) ideal: Derived<Duration>,
    pub(crate) processing: Duration,
    pub(crate) rate: Derived<Frequency>,
    /// The links that event data cross, from the readouts to the collectors.
    pub(crate) classes: Vec<LinkClass>,
    /// Links to the loggers that carry stored events.
    pub(crate) logger_links: u64,
    /// The settings of the switches, by role.
    pub(crate) switches: Vec<SwitchKind>,
    /// The indices of the kinds in `switches` that the network has.
    pub(crate) switches_used: BTreeSet<usize>,
    /// True if racks are connected to other switches.
    pub(crate) has_uplinks: bool,
    /// Ports for hosts and racks, which measure the size of a network.
    pub(crate) ports: u64,
    /// Spread of events over the collectors.
    pub(crate) spread: EventSpread,
    /// True if the next request waits for the answer to the one before.
    pub(crate) is_closed_loop: bool,
}

impl SystemFigures {
    /// Computes the figures of a scenario. `fragment_sizes` replace sizes that only a file has.
    pub(crate) fn new(s: &Scenario, fragment_sizes: Option<FragmentSizes>) -> Result<Self, PlanError> {
        let (network, roles) = topology::build(s)?;
        let paths = DataPaths::new(s, &network, &roles)?;
        let framing = SegmentFraming::of(&s.transport, network.framing);
        let senders = paths.sources;
        let readout = &s.readout;
        let sizes = fragment_sizes
            .or_else(|| readout.fragment_size.sizes(readout.hosts, readout.fragments_per_host))
            .filter(|_| !s.is_barrier());
        let (payload, fragments) = answer_payload(s, sizes)?;
        if payload.is_zero() {
            return Err(PlanError::Empty);
        }
        let answer_max = match s.is_barrier() {
            true => Some(role_configs::request_size(s).answer(0, s.workload.senders)),
            false => sizes.and_then(|sizes| sizes.answer_max),
        };
        let event_max = sizes.and_then(|sizes| sizes.event_max);
        let whole = if s.is_barrier() {
            Collection::round(s, &network, &roles)?
        } else {
            Collection::event(s, &network, &roles, payload)?
        };
        let stream_bytes = if s.is_barrier() { payload } else { Bytes::new(whole.answer_bytes) };
        let answer = WireMessage { payload, ..framing.message(stream_bytes) };
        let request = framing.message(Bytes::new(whole.request_bytes));
        let steps = steps(s, senders);
        let answers = steps.iter().map(|step| step.answers).sum();
        let answers_mean = steps.iter().map(|step| step.reach * step.answers).sum();
        let sigma = sizes.map_or(0.0, |sizes| sizes.event_sigma);
        let rtt = round_trip(s, &paths);
        let last_hop = paths.classes.last().map_or(s.link.rate, |class| class.rate);
        let size = match s.is_barrier() {
            true => "the size of an event (workload.senders, workload.request_size)",
            false => {
                "the size of an event (readout.hosts, readout.fragments_per_host, readout.fragment_size)"
            }
        };
        let wire = checked(answer.wire, answers, size)?;
        let round_trip = whole.ideal.round_trip_mean();
        let time = last_hop.checked_time_to_send(wire);
        if time.and_then(|time| round_trip.checked_add(time)).is_none() {
            return Err(PlanError::TooLarge { quantity: "the time that an event takes" });
        }
        let ideal = collection_time_ideal(round_trip, wire, whole.ideal.rate());
        let processing = processing_time(s, &steps);
        let is_closed_loop = s.is_barrier() || s.supervisor.arrivals == Arrivals::OnDemand;
        let collectors = s.receivers();
        let units = if s.is_barrier() { 1 } else { s.units_total() };
        let mut system = Self {
            segments: framing,
            payload: if s.is_barrier() { whole.payload } else { payload * answers },
            answer,
            answer_bytes: stream_bytes,
            answer_max,
            event_max,
            request,
            sigma,
            steps,
            answers,
            answers_mean,
            senders,
            fragments,
            racks: if s.is_barrier() { 1 } else { u64::from(s.collectors.racks) },
            collectors,
            units,
            overlap: if is_closed_loop { units / collectors } else { 1 },
            rtt,
            last_hop,
            slowest: network.links.iter().map(|link| link.rate).min().unwrap_or(last_hop),
            ideal,
            processing,
            rate: Derived::new(
                "event_rate",
                s.supervisor.rate,
                "as set",
                s.supervisor.rate.to_string(),
                "scenario",
            ),
            logger_links: logger_links(s, &network, &roles),
            ports: network
                .outer_links(|node| roles.supervisor == Some(node) || roles.loggers.contains(&node)),
            switches_used: switches_used(&network),
            has_uplinks: network.ports().any(|port| network.is_uplink(port)),
            classes: paths.classes,
            switches: network.switches,
            spread: match s.supervisor.policy {
                Policy::NodeRoundRobin | Policy::NodeLoadBalancing => EventSpread::InTurn,
                Policy::Fcfs => EventSpread::Fcfs,
                Policy::Random | Policy::UnitRoundRobin => EventSpread::AtRandom,
            },
            is_closed_loop,
        };
        if is_closed_loop {
            system.rate = system.rate_max();
        }
        if u128::from(system.rate.value.get()) * u128::from(wire.get()) > u128::from(u64::MAX) * 100 {
            return Err(PlanError::TooLarge { quantity: "the rate of data (supervisor.rate)" });
        }
        Ok(system)
    }

    /// Returns true if the network has switches of a role.
    pub(crate) fn has(&self, role: SwitchRole) -> bool {
        self.switches_used.contains(&role.index())
    }

    /// Returns the requests for an event under credits.
    pub(crate) fn requests(&self) -> Requests {
        Requests { per_event: self.answers, fragments: self.fragments, answer: self.answer }
    }

    /// Returns the number of hosts that answer in the largest step. Their answers arrive at once.
    pub(crate) fn answers_at_once(&self) -> u64 {
        self.steps.iter().map(|step| step.answers).max().unwrap_or(0)
    }

    /// Returns the rate of the whole system if each answer causes `bytes`.
    pub(crate) fn offered(&self, bytes: Bytes) -> Rate {
        let bits = u128::from(self.rate.value.get()) * u128::from(bytes.get()) * 8 / 1_000
            * u128::from(self.answers_mean.get())
            / 1_000_000;
        Rate::new(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// Returns the wire bytes in the reverse direction for one answer: its acknowledgements and its request.
    pub(crate) fn reverse(&self, segments_per_ack: u64) -> Bytes {
        self.request.wire + ack_bytes(&self.segments, self.answer.segments, segments_per_ack).value
    }

    /// Computes the most events a second in a closed loop: units never wait, and no link is overloaded.
    fn rate_max(&self) -> Derived<Frequency> {
        /// Picoseconds in a second times millihertz in a hertz.
        const PS_MILLI: u128 = 1_000_000_000_000_000;
        let cycle = self.ideal.value.saturating_add(self.processing);
        let mut rate = u128::from(self.units) * PS_MILLI / u128::from(cycle.get().max(1));
        let mut why = format!("{} / ({} + {})", self.units, brief(self.ideal.value), brief(self.processing));
        let mut formula = "units / (ideal time + processing)";
        let wire = u128::from(self.answer.wire.get()) * u128::from(self.answers_mean.get());
        for link in self.classes.iter().filter(|link| !link.share.is_zero()) {
            let bits = u128::from(link.rate.get()) * u128::from(link.count);
            let bound = bits * 1_000 / 8 * 1_000_000 / wire.max(1) * 1_000_000 / u128::from(link.share.get());
            if bound < rate {
                rate = bound;
                formula = "links × rate / wire bytes of an event";
                let event = Bytes::new(u64::try_from(wire / 1_000_000).unwrap_or(u64::MAX));
                why = format!("{} × {} / {} ({})", link.count, brief(link.rate), brief(event), link.name);
            }
        }
        let rate = Frequency::new(u64::try_from(rate).unwrap_or(u64::MAX));
        Derived::new("event_rate_max", rate, formula, why, "closed loop")
    }
}

fn checked(bytes: Bytes, times: u64, quantity: &'static str) -> Result<Bytes, PlanError> {
    // A margin of a million keeps every later sum in range.
    match bytes.checked_mul(times) {
        Some(product) if product.get() < u64::MAX / 1_000_000 => Ok(product),
        _ => Err(PlanError::TooLarge { quantity }),
    }
}

/// Returns the indices of the kinds of switches in a network.
fn switches_used(network: &Network) -> BTreeSet<usize> {
    let settings = |node: &Node| match node.kind {
        NodeKind::Switch { settings } => Some(settings),
        NodeKind::Host => None,
    };
    network.nodes.iter().filter_map(settings).collect()
}

/// Counts the links to the loggers that carry events. If paths depend on the destination only, each logger's events take one
/// link.
fn logger_links(s: &Scenario, network: &Network, roles: &Roles) -> u64 {
    let joins = |link: &&Link| link.ends.iter().any(|end| roles.loggers.contains(end));
    match s.network.flow_distribution {
        FlowDistribution::Ecmp => network.links.iter().filter(joins).count() as u64,
        FlowDistribution::PerDestination => roles.loggers.len() as u64,
    }
}

/// Returns the payload of one host's answer, and its number of fragments. Of a block that does not divide evenly, the smallest
/// answer.
fn answer_payload(s: &Scenario, sizes: Option<FragmentSizes>) -> Result<(Bytes, u64), PlanError> {
    let fragments = u64::from(s.readout.fragments_per_host);
    if s.is_barrier() {
        let senders = s.workload.senders;
        return Ok((role_configs::request_size(s).answer(senders - 1, senders), 1));
    }
    let Some(sizes) = sizes else {
        let path = s.readout.fragment_size.path().unwrap_or_default().to_owned();
        return Err(PlanError::FragmentSizeUnknown { path });
    };
    Ok((checked(sizes.mean, fragments, "the size of an answer")?, fragments))
}

fn steps(s: &Scenario, senders: u64) -> Vec<PlannedStep> {
    let whole = |answers| vec![PlannedStep { name: "collection".to_owned(), answers, reach: Ratio::ONE }];
    if s.is_barrier() {
        return whole(senders);
    }
    let parts = s.workload.step_parts(senders);
    if s.workload.steps.is_empty() {
        return whole(parts[0].readouts);
    }
    let planned = |(step, part): (&fanin_scenario::Step, fanin_scenario::StepPart)| PlannedStep {
        name: step.name.clone(),
        answers: part.readouts,
        reach: part.reach,
    };
    s.workload.steps.iter().zip(parts).map(planned).collect()
}

/// Computes the mean time that a unit works on an event.
fn processing_time(s: &Scenario, steps: &[PlannedStep]) -> Duration {
    if s.is_barrier() {
        return Duration::ZERO;
    }
    if s.workload.steps.is_empty() {
        return s.collectors.processing_time;
    }
    steps.iter().zip(&s.workload.steps).map(|(step, set)| step.reach.of_duration(set.processing_time)).sum()
}

/// Computes the time from a request to its answer in an idle network (thesis §4.2.2): both directions, and the host's response
/// delay. With push, one direction only.
fn round_trip(s: &Scenario, paths: &DataPaths) -> Derived<Duration> {
    let links = paths.link_delay;
    let switches = paths.switch_latency.saturating_add(paths.detour_delay);
    let response = s.readout.response_delay;
    let (value, formula, numbers) = match s.workload.kind {
        WorkloadKind::Push => (
            response.saturating_add(links).saturating_add(switches),
            "response delay + link delays + switch latencies",
            format!("{} + {} + {}", brief(response), brief(links), brief(switches)),
        ),
        _ => (
            response.saturating_add(links * 2).saturating_add(switches * 2),
            "response delay + 2 × (link delays + switch latencies)",
            format!("{} + 2 × ({} + {})", brief(response), brief(links), brief(switches)),
        ),
    };
    Derived::new("rtt", value, formula, numbers, "thesis §4.2.2")
}

/// Computes the round trips of slow start for a message of `segments`; the window begins at `initial` and doubles.
pub(crate) fn slow_start_rounds(segments: Packets, initial: Packets) -> u64 {
    let (mut rounds, mut sent, mut window) = (0, 0, initial.get().max(1));
    while sent < segments.get() {
        sent += window;
        window = window.saturating_mul(2);
        rounds += 1;
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(name: &str) -> SystemFigures {
        SystemFigures::new(&fanin_scenario::load(name, &[]).unwrap().scenario, None).unwrap()
    }

    #[test]
    fn round_trips_are_those_of_the_papers() {
        for (name, micros) in
            [("thesis-a-1000hz", 400), ("icc15-1dcm", 200), ("icc15-147", 200), ("icc15-router", 500)]
        {
            assert_eq!(system(name).rtt.value, Duration::from_micros(micros), "{name}");
        }
    }

    #[test]
    fn two_phases_ask_for_the_rest_of_what_is_accepted() {
        let system = system("icc15-39dcm");
        assert_eq!(system.steps.iter().map(|step| step.answers).collect::<Vec<_>>(), [15, 132]);
        assert_eq!(system.answers_mean, Ratio::new(28_200_000));
        assert_eq!(system.answers_at_once(), 132);
    }

    #[test]
    fn a_closed_loop_is_as_fast_as_its_narrowest_place() {
        // One collector at a time, one unit: ideal time and a millisecond of processing.
        let alone = system("icc15-147");
        assert!(alone.rate.formula.starts_with("units"));
        // Thirty collectors with twelve units each fill the 10 Gb/s of their rack.
        let rack = system("multihost");
        assert!(rack.rate.numbers.ends_with("(core->tor)"), "{}", rack.rate.numbers);
        assert_eq!(rack.offered(rack.answer.wire).get() / 1_000_000, 9_999);
    }

    #[test]
    fn slow_start_doubles() {
        let rounds = |segments, initial| slow_start_rounds(Packets::new(segments), Packets::new(initial));
        assert_eq!([rounds(10, 10), rounds(10, 3), rounds(178, 10), rounds(1, 10)], [1, 3, 5, 1]);
    }
}
