//! The readout's process: buffers fragments of the detector and sends them on request.

use std::collections::VecDeque;
use std::path::PathBuf;

use fanin_dataflow::{EventRecord, FragmentSource, Message, Peer, Readout, Unexpected};
use fanin_units::{Duration, Instant};

use super::paired::{FromSupervisor, LeaderTracker};
use super::settings;
use crate::config::System;
use crate::data::Data;
use crate::machine::HostMachine;
use crate::metrics::{self, Metrics};
use crate::names::name;
use crate::node::{ProcessError, RoleNode};
use crate::source::{FragmentMemory, supply};
use crate::succession::{SuccessionMessage, Witness};

/// Runs the readout's state machine over connections.
pub struct ReadoutNode {
    readout: Readout<Data, FragmentMemory>,
    /// The readout's vote on the leading supervisor; `None` in a system without a standby.
    vote: Option<Vote>,
}

/// The vote of a readout on the leading supervisor, stored in `readout-N.witness`.
struct Vote {
    machine: HostMachine,
    path: PathBuf,
    witness: Witness,
    /// Present content of the file.
    written: String,
    leader: LeaderTracker,
    out: VecDeque<(Peer, Message<Data>)>,
    /// The newest message whose vote could not be written, and the time of the next attempt.
    unwritten: Option<(Peer, SuccessionMessage, Instant)>,
}

/// Time after which a vote that could not be written is tried again.
const VOTE_RETRY: Duration = Duration::from_secs(1);

impl Vote {
    fn open(system: &System, place: u16) -> Result<Self, ProcessError> {
        let machine = system.machine.clone();
        let path = system.folder.join(format!("{}.witness", name(Peer::Readout(place))));
        let own = |error| ProcessError::Own { failure: "cannot read the vote of this readout", error };
        let (witness, written) = if machine.exists(&path).map_err(own)? {
            let text = String::from_utf8_lossy(&machine.read(&path).map_err(own)?).into_owned();
            let invalid = || {
                ProcessError::Settings(format!(
                    "{} is not a vote of a readout; without the file, this readout votes again after two further terms",
                    path.display()
                ))
            };
            (Witness::parse(&text).ok_or_else(invalid)?, text)
        } else {
            (Witness::default(), String::new())
        };
        let (leader, out) = (LeaderTracker::default(), VecDeque::new());
        Ok(Self { machine, path, witness, written, leader, out, unwritten: None })
    }

    /// Answers a supervisor's message after the new state of the vote is on disk. If it cannot be written, sends no answer, and
    /// tries again later unless a newer message comes.
    fn answer(&mut self, now: Instant, peer: Peer, message: SuccessionMessage) {
        let was_written = self.unwritten.take().is_none();
        let mut next = self.witness;
        let answer = next.handle(&message);
        let text = next.to_text();
        if text != self.written {
            if let Err(error) = self.machine.replace(&self.path, text.as_bytes()) {
                if was_written {
                    let vote = self.path.display();
                    tracing::error!(%error, %vote, "cannot write the vote; it does not count, trying again");
                }
                self.unwritten = Some((peer, message, now + VOTE_RETRY));
                return;
            }
            self.written = text;
        }
        let before = std::mem::replace(&mut self.witness, next);
        match (before.is_abstaining(), next.is_abstaining()) {
            (false, true) => {
                tracing::warn!(
                    "has no record of earlier votes: abstains until two further terms are decided"
                );
            }
            (true, false) => tracing::info!("votes on the leading supervisor again"),
            _ => {}
        }
        if let Some(answer) = answer {
            self.out.push_back((peer, Message::Succession(answer.encode())));
        }
    }
}

impl ReadoutNode {
    /// Creates a readout with an empty memory.
    ///
    /// # Errors
    /// If the scenario is not supported, or the data or the file of the vote cannot be read.
    pub fn new(system: &System, place: u16) -> Result<Self, ProcessError> {
        settings::check(system.scenario())?;
        let (supply, sources) = supply(system.scenario(), &system.scenario_folder)?;
        let has_noise = !system.machine.is_simulated();
        let memory = FragmentMemory::new(supply, &sources, place, has_noise);
        let readout = Readout::new(settings::readout(system.scenario(), place), memory)
            .map_err(|error| ProcessError::Settings(error.to_string()))?;
        let vote = system.standby.is_some().then(|| Vote::open(system, place)).transpose()?;
        Ok(Self { readout, vote })
    }
}

impl RoleNode for ReadoutNode {
    fn handle_connected(&mut self, now: Instant, peer: Peer) {
        // With a standby, the connection counts once the supervisor has said that it leads.
        if self.vote.is_some() && peer.is_supervisor() {
            return;
        }
        self.readout.handle_connected(now, peer);
    }

    fn handle_closed(&mut self, now: Instant, peer: Peer) {
        match &mut self.vote {
            Some(vote) if peer.is_supervisor() => {
                vote.witness.handle_closed();
                vote.unwritten.take_if(|(asker, ..)| *asker == peer);
                if vote.leader.handle_closed(peer) {
                    self.readout.handle_closed(now, Peer::Supervisor);
                }
            }
            _ => self.readout.handle_closed(now, peer),
        }
    }

    fn handle_message(&mut self, now: Instant, peer: Peer, message: Message<Data>) -> Result<(), Unexpected> {
        let (peer, message) = match &mut self.vote {
            Some(vote) if peer.is_supervisor() => {
                if let Message::Succession(bytes) = &message
                    && let Some(message) = SuccessionMessage::decode(bytes)
                {
                    vote.answer(now, peer, message);
                }
                match vote.leader.handle_message(peer, message) {
                    FromSupervisor::Nothing => return Ok(()),
                    FromSupervisor::Leads { was_up } => {
                        if was_up {
                            self.readout.handle_closed(now, Peer::Supervisor);
                        }
                        self.readout.handle_connected(now, Peer::Supervisor);
                        return Ok(());
                    }
                    FromSupervisor::Message(message) => (Peer::Supervisor, message),
                }
            }
            _ => (peer, message),
        };
        // The simulated detector delivers an event when it is first requested. A deleted event is not delivered again.
        if let (Peer::Collector(_), Message::Request { event, .. }) = (peer, &message)
            && self.readout.source().awaits(*event)
        {
            let bytes = self.readout.source_mut().deliver(*event);
            if !self.readout.handle_fragments(now, *event, bytes) {
                tracing::error!(
                    event = event.0,
                    "dropped an event of the detector: too far from the oldest event"
                );
                self.readout.source_mut().delete(*event);
            }
        }
        self.readout.handle_message(now, peer, message)
    }

    fn handle_deadline(&mut self, now: Instant) {
        if let Some(vote) = &mut self.vote
            && let Some((peer, message, _)) = vote.unwritten.clone().filter(|(.., due)| *due <= now)
        {
            vote.answer(now, peer, message);
        }
        self.readout.handle_deadline(now);
    }

    fn handle_stop(&mut self, _now: Instant) {
        self.readout.handle_stop();
    }

    fn is_idle(&mut self) -> bool {
        self.readout.is_idle()
    }

    fn poll_transmit(&mut self) -> Option<(Peer, Message<Data>)> {
        if let Some(message) = self.vote.as_mut().and_then(|vote| vote.out.pop_front()) {
            return Some(message);
        }
        let (peer, message) = self.readout.poll_transmit()?;
        let leader = self.vote.as_ref().and_then(|vote| vote.leader.leader());
        Some((if peer == Peer::Supervisor { leader.unwrap_or(peer) } else { peer }, message))
    }

    fn poll_record(&mut self) -> Option<(EventRecord, u64)> {
        self.readout.poll_record().map(|record| (record, 0))
    }

    fn poll_deadline(&mut self) -> Option<Instant> {
        let vote = self.vote.as_ref().and_then(|vote| vote.unwritten.as_ref());
        [self.readout.poll_deadline(), vote.map(|(.., due)| *due)].into_iter().flatten().min()
    }

    fn lacks(&self) -> Option<&'static str> {
        self.vote.as_ref().and_then(|vote| vote.leader.lacks())
    }

    fn check(&self) {
        self.readout.check_invariants();
    }

    fn tables(&self) -> Vec<(&'static str, usize)> {
        let events = self.readout.counters().events as usize;
        vec![
            ("answers", self.readout.answers_pending()),
            ("fragments of no event", self.readout.source().events().abs_diff(events)),
            // Events that nothing clears stay, and are counted apart.
            ("places of no event", if events == 0 { self.readout.events_spanned() } else { 0 }),
        ]
    }

    fn events_kept(&self) -> u64 {
        self.readout.counters().events
    }

    fn measure(&self, now: Instant, metrics: &Metrics) {
        let counters = self.readout.counters();
        metrics::set(&metrics.requests, counters.requests);
        metrics::set(&metrics.fragment_bytes, counters.bytes);
        metrics::set(&metrics.fragments_missing, counters.missing);
        metrics::level(&metrics.events_held, counters.events);
        metrics::level(&metrics.held_bytes, counters.held);
        metrics::set(&metrics.xoff, counters.xoffs);
        metrics::set_time(&metrics.xoff_seconds, self.readout.xoff_time(now));
        let votes = self.vote.as_ref().is_some_and(|vote| !vote.witness.is_abstaining());
        metrics::level(&metrics.votes, u64::from(votes));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fanin_dataflow::{FragmentSet, L1Id};

    use super::*;

    #[test]
    fn a_request_behind_the_clear_of_its_event_keeps_nothing() {
        let scenario = fanin_scenario::load("replay", &[]).unwrap().scenario;
        let (supply, sources) = supply(&scenario, Path::new(".")).unwrap();
        let memory = FragmentMemory::new(supply, &sources, 0, false);
        let readout = Readout::new(settings::readout(&scenario, 0), memory).unwrap();
        let mut node = ReadoutNode { readout, vote: None };
        let mut handle = |peer, message| node.handle_message(Instant::START, peer, message).unwrap();
        let request =
            |event| Message::Request { tag: 0, event: L1Id(event), fragments: FragmentSet::first(1) };
        handle(Peer::Collector(0), request(4));
        // The readout was suspended while the collector's request of event 5 waited and timed out.
        handle(Peer::Supervisor, Message::Clear([L1Id(4), L1Id(5)].as_slice().into()));
        handle(Peer::Collector(0), request(5));
        assert_eq!(node.readout.counters().events, 0);
        node.check();
    }
}
