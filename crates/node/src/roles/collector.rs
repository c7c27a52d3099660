//! The collector's process: checks answers, and passes events to the processors of its host.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;

use fanin_dataflow::{
    Collector, EventRecord, EventStep, FragmentPayload as _, L1Id, Message, Outcome, Peer, Unexpected,
    UnitCommand,
};
use fanin_network::ideal_time;
use fanin_scenario::Processors;
use fanin_units::{Bytes, Duration, Instant, Rate};

use super::paired::{FromSupervisor, LeaderTracker};
use super::{processor, settings};
use crate::config::System;
use crate::data::{Chunk, Data, check};
use crate::journal;
use crate::metrics::{self, Metrics};
use crate::node::{ProcessError, RoleNode};
use crate::proof::with_proof;
use crate::source::{Sources, supply};
use crate::unit::server::{Happening, Launcher, UnitServer};
use crate::wake::Wake;

/// Runs the collector's state machine over connections.
pub struct CollectorNode {
    collector: Collector<Data>,
    sources: Sources,
    /// Fragment bytes received for each event, without headers.
    data: HashMap<L1Id, u64>,
    /// The supervisor's proof of the assignment of each event, for the logger.
    proofs: HashMap<L1Id, Data>,
    /// Events that have ended. The state machine may still send one of them, so that its proof stays until all is sent.
    ended: Vec<L1Id>,
    collections: Collections,
    has_loggers: bool,
    units: Option<UnitServer>,
    /// Tracks which of two supervisors leads; `None` in a system without a standby.
    leader: Option<LeaderTracker>,
    /// Messages that were polled before the supervisor changed, for other peers than the supervisor.
    taken: VecDeque<(Peer, Message<Data>)>,
    failure: Option<ProcessError>,
    /// True if an earlier incarnation of this process had an event: its processors have worked in this run.
    has_worked: bool,
}

/// Sum of the ideal times of collections, and counts of the readouts that answered last.
struct Collections {
    /// Payload rate of the ideal.
    rate: Rate,
    /// The mean delay of the readouts' answers.
    response: Duration,
    ideal_s: f64,
    /// By event: the readout that answered last, and the bytes of earlier steps.
    open: HashMap<L1Id, (Option<u16>, u64)>,
    last_answers: BTreeMap<u16, u64>,
}

impl Collections {
    fn new(system: &System) -> Self {
        let response = system.scenario().readout.response_delay;
        let rate = system.ideal_rate;
        Self { rate, response, ideal_s: 0.0, open: HashMap::new(), last_answers: BTreeMap::new() }
    }

    fn handle_assigned(&mut self, event: L1Id) {
        self.open.insert(event, (None, 0));
    }

    fn handle_answer(&mut self, event: L1Id, readout: u16) {
        if let Some(open) = self.open.get_mut(&event) {
            open.0 = Some(readout);
        }
    }

    /// Adds the ideal time of a collected step. `bytes` counts all steps of the event so far. Ignores an event without any
    /// answer.
    fn handle_collected(&mut self, event: L1Id, bytes: Bytes) {
        let Some((Some(readout), before)) = self.open.get_mut(&event) else { return };
        let step = bytes.get().saturating_sub(*before);
        *before = bytes.get();
        self.ideal_s += ideal_time(self.response, Bytes::new(step), self.rate).as_secs_f64();
        *self.last_answers.entry(*readout).or_default() += 1;
    }

    fn forget(&mut self, event: L1Id) {
        self.open.remove(&event);
    }
}

impl CollectorNode {
    /// Creates a collector and begins to start its processors.
    ///
    /// # Errors
    /// If the scenario is not supported, its data cannot be read, or the processors' socket or threads cannot be created.
    pub fn new(system: &System, place: u16, wake: &Wake) -> Result<Self, ProcessError> {
        let scenario = system.scenario();
        settings::check(scenario)?;
        processor::check(scenario, &system.scenario_folder)?;
        let (_, sources) = supply(scenario, &system.scenario_folder)?;
        let config = settings::collector(scenario, place, sources.counts())?;
        let collections = Collections::new(system);
        let collector = Collector::new(config).map_err(|error| ProcessError::Settings(error.to_string()))?;
        let has_loggers = scenario.logger.hosts > 0;
        let units = match scenario.live.processors {
            Processors::Processes => Some(serve(system, place, wake)?),
            Processors::Timers => None,
        };
        let (data, proofs) = (HashMap::new(), HashMap::new());
        let leader = system.standby.is_some().then(LeaderTracker::default);
        // The journal is open already, as a new file or as that of an earlier incarnation.
        let journal = system.journal(&format!("collector-{place}"));
        let has_worked = !system.machine.is_simulated() && journal::had_records(&journal).unwrap_or(true);
        Ok(Self {
            collector,
            sources,
            data,
            proofs,
            ended: Vec::new(),
            collections,
            has_loggers,
            units,
            leader,
            taken: VecDeque::new(),
            failure: None,
            has_worked,
        })
    }

    /// Returns the end of the process because a unit's process ends before it connects, again and again. Before the first event
    /// of a run the settings are wrong. Later, a file of the processor may come back: a restart helps then.
    fn hopeless(&self, unit: u16, status: ExitStatus) -> ProcessError {
        let text = format!(
            "processor {unit} repeatedly ended before it connected ({status}). See its output above. \
             `live.processor` names the command"
        );
        if self.has_worked || self.collector.counters().requests > 0 {
            ProcessError::Processors(text)
        } else {
            ProcessError::Settings(text)
        }
    }

    /// Ends the role's connection to its supervisor, and drops the messages for it.
    fn end_supervisor(&mut self, now: Instant) {
        while let Some(message) = self.collector.poll_transmit() {
            if message.0 != Peer::Supervisor {
                self.taken.push_back(message);
            }
        }
        self.collector.handle_closed(now, Peer::Supervisor);
    }

    /// Executes the commands of the state machine for processing units.
    fn command(&mut self) {
        while let Some(command) = self.collector.poll_unit() {
            let Some(units) = &self.units else { continue };
            match command {
                UnitCommand::Process { unit, event, step } => {
                    let Some((_, _, payload)) = self.collector.event_of(unit) else { continue };
                    let mut data = payload.clone();
                    if !data.missing().is_empty() {
                        // The processor receives an empty fragment, marked missing, in place of each missing fragment.
                        let mut missing = Vec::new();
                        let name = |readout, fragment| self.sources.name(readout, fragment);
                        data.encode_missing(&name, &mut missing);
                        data.append(0, Data::new(Chunk::from(missing)));
                    }
                    units.process(unit, event, step, data);
                }
                UnitCommand::Kill { unit } => {
                    tracing::warn!(
                        unit,
                        "killed the processor: it took too long, or its event was reassigned"
                    );
                    units.kill(unit);
                }
            }
        }
    }
}

/// Starts the server for a collector's processors, which starts the processors.
fn serve(system: &System, place: u16, wake: &Wake) -> Result<UnitServer, ProcessError> {
    let own = |failure| move |error| ProcessError::Own { failure, error };
    let program = std::env::current_exe().map_err(own("cannot find this program"))?;
    let (path, parent) = (system.path.clone(), std::process::id());
    let launcher: Launcher = Arc::new(move |unit| {
        let mut command = Command::new(&program);
        command.args(["node", "processor"]).arg(&path);
        command.args(["--index", &place.to_string(), "--unit", &unit.to_string()]);
        command.env(processor::PARENT, parent.to_string()).stdin(Stdio::null());
        command
    });
    let units = system.scenario().collectors.units_per_host as u16;
    UnitServer::start(&system.socket(place), units, Some(&launcher), wake)
        .map_err(own("cannot serve processors"))
}

impl RoleNode for CollectorNode {
    fn handle_connected(&mut self, now: Instant, peer: Peer) {
        // With a standby, the connection counts once the supervisor has said that it leads.
        if self.leader.is_some() && peer.is_supervisor() {
            return;
        }
        self.collector.handle_connected(now, peer);
        self.command();
    }

    fn handle_closed(&mut self, now: Instant, peer: Peer) {
        match &mut self.leader {
            Some(leader) if peer.is_supervisor() => {
                if leader.handle_closed(peer) {
                    self.end_supervisor(now);
                }
            }
            _ => self.collector.handle_closed(now, peer),
        }
        self.command();
    }

    fn handle_message(&mut self, now: Instant, peer: Peer, message: Message<Data>) -> Result<(), Unexpected> {
        let (peer, message) = match &mut self.leader {
            Some(leader) if peer.is_supervisor() => match leader.handle_message(peer, message) {
                FromSupervisor::Nothing => return Ok(()),
                FromSupervisor::Leads { was_up } => {
                    if was_up {
                        self.end_supervisor(now);
                    }
                    self.collector.handle_connected(now, Peer::Supervisor);
                    self.command();
                    return Ok(());
                }
                FromSupervisor::Message(message) => (Peer::Supervisor, message),
            },
            _ => (peer, message),
        };
        let mut answer = None;
        if let (Peer::Readout(readout), Message::Answer { tag, event, payload, .. }) = (peer, &message) {
            let mut bytes = 0;
            for part in payload.parts() {
                match check(part) {
                    Ok(content) => bytes += content.bytes,
                    Err(error) => {
                        tracing::error!(%peer, event = event.0, %error, "an answer is corrupted");
                        self.collector.handle_corrupted(now, readout, *tag);
                        self.command();
                        return Ok(());
                    }
                }
            }
            answer = Some((*event, readout, bytes));
        }
        let assigned = match (peer, &message) {
            (Peer::Supervisor, Message::Assign { event, result, .. }) => {
                // The proof is copied: a slice of the received block would keep the whole block in memory.
                let bytes: Vec<u8> = result.parts().iter().flat_map(|part| part.to_vec()).collect();
                Some((*event, Data::new(Chunk::from(bytes))))
            }
            _ => None,
        };
        let answers = self.collector.counters().answers;
        self.collector.handle_message(now, peer, message)?;
        // Not every answer is part of its event: some are to reminders, to repeated requests, or to events that were given
        // up.
        let is_counted = self.collector.counters().answers > answers;
        if let Some((event, readout, bytes)) = answer.filter(|_| is_counted) {
            if let Some(data) = self.data.get_mut(&event) {
                *data += bytes;
            }
            self.collections.handle_answer(event, readout);
        }
        if let Some((event, proof)) = assigned {
            self.proofs.insert(event, proof);
            self.data.insert(event, 0);
            self.collections.handle_assigned(event);
        }
        self.command();
        Ok(())
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.collector.handle_deadline(now);
        self.command();
    }

    fn handle_woken(&mut self, now: Instant) {
        while let Some(happening) = self.units.as_ref().and_then(UnitServer::poll) {
            match happening {
                Happening::Up { unit, pid, version } => {
                    tracing::debug!(unit, pid, version, "a processor is connected");
                    self.collector.handle_unit_up(now, unit);
                }
                Happening::Lost { unit, why } => {
                    tracing::warn!(unit, why, "a processor is lost");
                    self.collector.handle_unit_lost(now, unit);
                }
                Happening::Hopeless { unit, status } => {
                    self.failure = Some(self.hopeless(unit, status));
                }
                Happening::Decided { unit, event, decision } => {
                    if !self.collector.handle_decision(now, unit, event, decision) {
                        tracing::info!(unit, event = event.0, "a decision came too late");
                    }
                }
            }
        }
        self.command();
    }

    fn failure(&mut self) -> Option<ProcessError> {
        self.failure.take()
    }

    fn handle_stop(&mut self, _now: Instant) {
        self.collector.handle_stop();
    }

    fn is_idle(&mut self) -> bool {
        self.collector.has_left() && self.collector.waits().next().is_none()
    }

    fn poll_transmit(&mut self) -> Option<(Peer, Message<Data>)> {
        let Some(next) = self.taken.pop_front().or_else(|| self.collector.poll_transmit()) else {
            // The process sends before its next input, so that no event was assigned again since its end was recorded.
            for event in self.ended.drain(..) {
                self.proofs.remove(&event);
            }
            return None;
        };
        let (mut peer, mut message) = next;
        if let (Peer::Supervisor, Some(leader)) = (peer, &self.leader) {
            peer = leader.leader().unwrap_or(peer);
        }
        if let Message::Event { event, payload, .. } = &mut message
            && let Some(proof) = self.proofs.get(&*event)
        {
            *payload = with_proof(proof, std::mem::take(payload));
        }
        Some((peer, message))
    }

    fn poll_record(&mut self) -> Option<(EventRecord, u64)> {
        let record = self.collector.poll_record()?;
        let event = record.event;
        let ends = match record.step {
            EventStep::Decided { outcome: Outcome::Rejected, .. }
            | EventStep::Acknowledged { .. }
            | EventStep::Abandoned => true,
            EventStep::Collected { building, .. } => building && !self.has_loggers,
            _ => false,
        };
        // The supervisor may have assigned a given-up event to this collector again. The entries then belong to the new
        // assignment.
        let is_over = ends && !self.collector.has(event);
        if let EventStep::TooLarge { bytes, limit } = record.step {
            tracing::error!(
                event = event.0,
                bytes = bytes.get(),
                bytes_max = limit.get(),
                "an event is too large for a message: the debug stream has it without its fragments"
            );
        }
        if let EventStep::Collected { bytes, .. } = record.step {
            self.collections.handle_collected(event, bytes);
        }
        let data = match record.step {
            EventStep::Collected { .. } => self.data.get(&event).copied(),
            _ => None,
        };
        if is_over {
            self.data.remove(&event);
            self.ended.push(event);
            self.collections.forget(event);
        }
        Some((record, data.unwrap_or_default()))
    }

    fn poll_deadline(&mut self) -> Option<Instant> {
        self.collector.poll_deadline()
    }

    fn lacks(&self) -> Option<&'static str> {
        self.leader.as_ref().and_then(LeaderTracker::lacks)
    }

    fn check(&self) {
        self.collector.check_invariants();
    }

    fn tables(&self) -> Vec<(&'static str, usize)> {
        // A request of a reassigned event holds its credits until it is answered or times out. No step waits for these credits.
        let credits_used = self.collector.credits_used() - self.collector.credits_withdrawn();
        vec![
            ("events", self.collector.waits().count()),
            ("bytes by event", self.data.len()),
            ("proofs", self.proofs.len()),
            ("ended events", self.ended.len()),
            ("polled messages", self.taken.len()),
            ("collections", self.collections.open.len()),
            ("credits used", credits_used as usize),
            ("requests waiting", self.collector.requests_waiting()),
        ]
    }

    fn measure(&self, _now: Instant, metrics: &Metrics) {
        let counters = self.collector.counters();
        metrics::set(&metrics.too_large, counters.too_large);
        metrics::set(&metrics.requests, counters.requests);
        metrics::set(&metrics.requests_repeated, counters.retries);
        metrics::set(&metrics.fragment_bytes, counters.bytes);
        metrics::set(&metrics.fragments_missing, counters.missing);
        metrics::set(&metrics.answers_corrupted, counters.corrupted);
        metrics::set(&metrics.units_lost, counters.units_lost);
        metrics::set(&metrics.reshipped, counters.reshipped);
        metrics::level(&metrics.requests_waiting, self.collector.requests_waiting() as u64);
        metrics::level(&metrics.credits_used, u64::from(self.collector.credits_used()));
        metrics::level(&metrics.credits, u64::from(self.collector.credits_total().unwrap_or_default()));
        metrics::set_seconds(&metrics.ideal_seconds, self.collections.ideal_s);
        for (&readout, &collections) in &self.collections.last_answers {
            metrics.set_last_answers(readout, collections);
        }
        metrics::level(&metrics.events_building, self.collector.waits().count() as u64);
    }
}

#[cfg(test)]
mod tests;
