//! A supervisor in a system with a standby: it leads, or it follows the leader's log and takes over if the leader is lost.
//!
//! [`succession`](crate::succession) decides who leads. A leader sends a message of its role once the records before it
//! are on its disk. A paired leader also waits until they are on the partner's disk. A follower that takes over continues
//! from its log as from the journal of an earlier incarnation.

mod files;
mod follower;
mod leader;
mod leaderless;
mod leading;
mod log;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use fanin_dataflow::{EventRecord, Message, Peer, Unexpected};
use fanin_units::{Duration, Instant};

use super::SupervisorNode;
use crate::config::System;
use crate::data::Data;
use crate::journal::{self, JournalSpan};
use crate::metrics::{self, Metrics};
use crate::names::name;
use crate::node::{LogChange, ProcessError, RoleNode, SuccessionState};
use crate::succession::{Leadership, Proposer, SuccessionMessage, TermLine, identity_path};

use files::LogReader;
use follower::{FollowRequest, Follower};
pub(super) use leader::{FromSupervisor, LeaderTracker};
pub use log::LogLines;
use log::SharedLog;

/// Interval at which a leader announces itself to the other supervisor.
const SAY_EVERY: Duration = Duration::from_millis(300);
/// Time without a message after which a follower takes its leader for lost.
const SILENT_MAX: Duration = Duration::from_millis(1500);

/// One of the two supervisors in a system with a standby.
pub struct PairedSupervisor {
    system: System,
    /// Number of this supervisor: 0, or 1 for the standby.
    me: u8,
    path: PathBuf,
    /// The latest decided term that this supervisor knows.
    known: Leadership,
    log: SharedLog,
    proposer: Proposer,
    peers: BTreeSet<Peer>,
    /// True if its own term was decided. It leads once the term is in the log.
    is_elected: bool,
    lead: Option<Box<SupervisorNode>>,
    /// Messages of the role whose records are not committed yet.
    fresh: VecDeque<(Peer, Message<Data>)>,
    /// Messages of the role that wait for the partner, each with the log's size behind its records.
    held: VecDeque<(u64, Peer, Message<Data>)>,
    out: VecDeque<(Peer, Message<Data>)>,
    changes: VecDeque<LogChange>,
    /// True if the other supervisor leads and has announced it on the present connection.
    has_leader: bool,
    /// Time since which this supervisor has no leader.
    lost_since: Instant,
    /// Time of the last message of the other supervisor.
    heard_at: Instant,
    /// Time at which this leader last announced itself.
    said_at: Instant,
    asked_at: Instant,
    /// True if received lines of the leader are not acknowledged yet.
    owes_answer: bool,
    /// The other supervisor while it follows.
    follower: Option<Follower>,
    /// The other supervisor's request to follow that waits for an answer.
    request: Option<FollowRequest>,
    /// Bytes of the log that the partner has on disk.
    acknowledged: u64,
    /// Size of the log when the present term was learned, bytes.
    alone_from: u64,
    /// Time of the partner's last acknowledgement, of the loss of its connection, or of the start of the term.
    partner_since: Instant,
    waiting_since: Option<Instant>,
    reader: LogReader,
    /// Offset at which this leader last began a file, or tried to; 0 if it did not.
    file_tried: u64,
    /// True while the unfinished work is too much for the header of a file.
    has_much_work: bool,
    /// True if a line about a term was added to the log since the last commit.
    wrote_term: bool,
    wants_turn: bool,
    is_stopping: bool,
    failure: Option<ProcessError>,
}

impl PairedSupervisor {
    /// Creates one of the two supervisors, with the log of its earlier incarnation.
    ///
    /// # Errors
    /// If the scenario is not supported, or the log is invalid or cannot be read. Also if closed files have no identity of a log,
    /// so that they were written without a standby.
    pub fn new(system: &System, me: Peer, lines: LogLines, now: Instant) -> Result<Self, ProcessError> {
        let path = system.journal(&name(me));
        let list = |error| ProcessError::Own { failure: "cannot list the parts of the journal", error };
        let parts = journal::parts(&system.machine, &path).map_err(list)?;
        let is_shared = system.machine.exists(&identity_path(&path)).map_err(list)?;
        if let Some((_, part)) = parts.first().filter(|_| !is_shared) {
            return Err(ProcessError::Settings(format!(
                "{}: this file was closed by a supervisor without a standby, or the identity of its log is lost. Begin a new run with a new folder, or \
                 leave `standby` out",
                part.display()
            )));
        }
        let log = SharedLog::open(&system.machine, &path, lines)?;
        // Wrong settings are reported at the start, not at a takeover.
        super::settings::check(system.scenario())?;
        let known = log.known();
        let me = u8::from(me == Peer::Standby);
        let mut node = Self {
            system: system.clone(),
            me,
            path,
            known,
            log,
            proposer: Proposer::new(me, system.readouts.len()),
            peers: BTreeSet::new(),
            is_elected: false,
            lead: None,
            fresh: VecDeque::new(),
            held: VecDeque::new(),
            out: VecDeque::new(),
            changes: VecDeque::new(),
            has_leader: false,
            lost_since: now,
            heard_at: now,
            said_at: now,
            asked_at: now,
            owes_answer: false,
            follower: None,
            request: None,
            acknowledged: 0,
            alone_from: 0,
            partner_since: now,
            waiting_since: None,
            reader: LogReader::default(),
            file_tried: 0,
            has_much_work: false,
            wrote_term: false,
            wants_turn: true,
            is_stopping: false,
            failure: None,
        };
        if node.is_mine(known) {
            node.is_elected = true;
            node.begin_lines(String::new());
        } else if node.is_first() && node.log.end() == 0 {
            // An empty log gets a header: a log with a line keeps its identity, which is proposed next.
            node.begin_lines(String::new());
        }
        Ok(node)
    }

    /// Adds a header of this process, and lines behind it.
    fn begin_lines(&mut self, lines: String) {
        self.changes.push_back(LogChange::Begin { words: String::new(), lines });
    }

    fn other(&self) -> Peer {
        if self.me == 0 { Peer::Standby } else { Peer::Supervisor }
    }

    /// Returns true for a term in which this supervisor leads with its present log.
    fn is_mine(&self, one: Leadership) -> bool {
        one.term > 0 && one.leader == self.me && one.log == self.log.id()
    }

    /// Returns the identity of the log whose acknowledgements a leader needs; `None` if it leads alone.
    fn partner(&self) -> Option<u64> {
        let pairing = self.log.pairing(self.known).map(|(value, _)| value.partner);
        pairing.or(self.known.is_paired().then_some(self.known.partner))
    }

    fn say(&mut self, to: Peer, message: &SuccessionMessage) {
        if self.peers.contains(&to) {
            self.out.push_back((to, Message::Succession(message.encode())));
        }
    }

    fn say_to_readouts(&mut self, message: &SuccessionMessage) {
        let readouts: Vec<Peer> =
            self.peers.iter().copied().filter(|peer| matches!(peer, Peer::Readout(_))).collect();
        readouts.into_iter().for_each(|readout| self.say(readout, message));
    }

    /// Returns the term after the known one, in which this supervisor leads alone.
    fn alone(&self) -> Leadership {
        Leadership { term: self.known.term + 1, leader: self.me, log: self.log.id(), partner: 0 }
    }

    fn learn(&mut self, now: Instant, decided: Leadership) {
        if decided.term <= self.known.term {
            return;
        }
        self.known = decided;
        self.proposer.handle_decided(decided);
        (self.waiting_since, self.partner_since, self.alone_from) = (None, now, self.log.end());
        if !self.is_mine(decided) {
            // A follower learns of later terms of its leader from the log.
            if !self.has_leader || decided.leader == self.me {
                self.step_down(now);
            }
            return;
        }
        let line = TermLine::Leads(decided).to_text();
        let paired = decided.is_paired();
        if self.lead.is_some() || self.is_elected {
            tracing::info!(term = decided.term, paired, "leads in a new term");
            // The standby may have had this term decided. A readout that abstains says so in its answer, and the leader then
            // renews the term.
            self.say_to_readouts(&SuccessionMessage::Learned(decided));
            self.changes.push_back(LogChange::Append(line.into_bytes()));
        } else {
            tracing::warn!(term = decided.term, "takes over: this supervisor leads from now on");
            (self.is_elected, self.has_leader) = (true, false);
            self.begin_lines(line);
        }
        (self.wants_turn, self.wrote_term) = (true, true);
    }

    fn step_down(&mut self, now: Instant) {
        let had_lead = self.lead.take().is_some();
        if had_lead {
            // The other supervisor decides now where files begin.
            let is_file = |change: &LogChange| match change {
                LogChange::Begin { words, .. } => !words.is_empty(),
                change => *change == LogChange::PutAside,
            };
            self.changes.retain(|change| !is_file(change));
        }
        let led = had_lead || self.is_elected;
        if led || self.has_leader {
            self.lost_since = now;
        }
        if led {
            tracing::error!(term = self.known.term, "stops assigning: the other supervisor has taken over");
            // The audit chooses the log with the latest term, which is the other one: the pairing in this log is void.
            self.log.forget_pairing();
        }
        (self.is_elected, self.has_leader) = (false, false);
        (self.follower, self.request) = (None, None);
        self.fresh.clear();
        self.held.clear();
        self.reader = LogReader::default();
        // The leader of the term announces itself again when it receives the term of this supervisor.
        let known = SuccessionMessage::Learned(self.known);
        self.say(self.other(), &known);
    }

    fn handle_succession(&mut self, now: Instant, peer: Peer, message: SuccessionMessage) {
        let leads = self.lead.is_some();
        if peer == self.other() {
            self.heard_at = now;
        } else if !matches!(peer, Peer::Readout(_)) {
            return;
        }
        match (peer, message) {
            (_, SuccessionMessage::Learned(one)) => {
                self.learn(now, one);
                if peer == self.other() {
                    if one.term < self.known.term {
                        self.say(peer, &SuccessionMessage::Learned(self.known));
                    } else if leads && self.lead.is_some() && self.follower.is_none() {
                        self.say(peer, &SuccessionMessage::Leads(self.known));
                    }
                }
            }
            (Peer::Readout(_), SuccessionMessage::Abstains { term }) => self.renew(now, term),
            (Peer::Readout(readout), message) => {
                if let Some(value) = self.proposer.handle(readout, &message) {
                    let decided = SuccessionMessage::Learned(value);
                    self.learn(now, value);
                    if self.lead.is_none() {
                        self.say_to_readouts(&decided);
                    }
                    self.say(self.other(), &decided);
                }
            }
            (_, SuccessionMessage::Leads(one)) => {
                self.learn(now, one);
                if one == self.known && one.leader != self.me {
                    self.proposer.withdraw();
                    if !std::mem::replace(&mut self.has_leader, true) {
                        self.follow();
                    }
                } else {
                    self.say(peer, &SuccessionMessage::Learned(self.known));
                }
            }
            (_, SuccessionMessage::Restart { position }) if self.has_leader => {
                tracing::warn!(position, "starts a new log: the leader's log does not continue this one");
                self.changes.clear();
                self.changes.push_back(LogChange::Restart(position));
                match self.log.restart(&self.system.machine, &self.path, position) {
                    Ok(()) => self.follow(),
                    Err(error) => self.failure = Some(error),
                }
            }
            (_, SuccessionMessage::Log { term, position, text }) => {
                if !self.has_leader || term > self.known.term {
                    return;
                }
                if position != self.log.end() {
                    // Lines are missing: this supervisor dropped them before it knew of its leader.
                    return self.follow();
                }
                if let Err(error) = self.log.append(&text) {
                    self.failure = Some(error);
                    return;
                }
                self.changes.extend(log::changes(text, position));
                self.owes_answer = true;
            }
            (_, SuccessionMessage::Follow { log, position, term }) => {
                if leads {
                    self.follower = None;
                    self.request = Some(FollowRequest { log, position, term, is_late: false });
                } else {
                    self.say(peer, &SuccessionMessage::Learned(self.known));
                }
                self.wants_turn = true;
            }
            (_, SuccessionMessage::Held { log, position }) if leads && position <= self.log.end() => {
                if let Some(follower) = self.follower.as_mut().filter(|follower| follower.log == log) {
                    follower.held = follower.held.max(position);
                    self.handle_held(now, log, position);
                }
                self.wants_turn = true;
            }
            (_, SuccessionMessage::Leaves) if leads => {
                (self.follower, self.request) = (None, None);
                if self.partner().is_some() {
                    self.proposer.propose(now, self.known, self.alone());
                }
            }
            _ => {}
        }
    }

    fn handle_held(&mut self, now: Instant, log: u64, position: u64) {
        if self.partner() == Some(log) {
            self.acknowledged = self.acknowledged.max(position);
            self.partner_since = now;
            self.waiting_since = None;
        }
    }

    fn follow(&mut self) {
        if self.is_stopping {
            self.say(self.other(), &SuccessionMessage::Leaves);
            return;
        }
        let (log, position, term) = (self.log.id(), self.log.end(), self.log.term());
        self.say(self.other(), &SuccessionMessage::Follow { log, position, term });
    }

    /// Returns the time at which a leader announces itself to the other supervisor; `None` without a connection to it.
    fn says_at(&self) -> Option<Instant> {
        let says = self.lead.is_some() && self.peers.contains(&self.other());
        self.said_at.checked_add(SAY_EVERY).filter(|_| says)
    }

    /// Moves the role's messages into `fresh`, so that none is sent before its records are in the log.
    fn drain(&mut self) {
        if let Some(lead) = &mut self.lead {
            self.fresh.extend(std::iter::from_fn(|| lead.poll_transmit()));
        }
    }
}

impl RoleNode for PairedSupervisor {
    fn handle_connected(&mut self, now: Instant, peer: Peer) {
        self.peers.insert(peer);
        if self.lead.is_some() {
            self.say(peer, &SuccessionMessage::Leads(self.known));
        } else if peer == self.other() && self.known.term > 0 {
            self.say(peer, &SuccessionMessage::Learned(self.known));
        }
        if let Some(lead) = self.lead.as_mut().filter(|_| !peer.is_supervisor()) {
            lead.handle_connected(now, peer);
        }
    }

    fn handle_closed(&mut self, now: Instant, peer: Peer) {
        self.peers.remove(&peer);
        self.drain();
        // Waiting messages must not be sent on the next connection. The process drops the messages in `out`.
        self.fresh.retain(|(to, _)| *to != peer);
        self.held.retain(|(_, to, _)| *to != peer);
        if peer == self.other() {
            (self.follower, self.request, self.partner_since) = (None, None, now);
            if std::mem::replace(&mut self.has_leader, false) {
                self.lost_since = now;
            }
        } else if let Some(lead) = &mut self.lead {
            lead.handle_closed(now, peer);
        }
    }

    fn handle_message(&mut self, now: Instant, peer: Peer, message: Message<Data>) -> Result<(), Unexpected> {
        match (message, &mut self.lead) {
            (Message::Succession(bytes), _) => {
                let why = "its content means nothing";
                let unexpected = Unexpected { peer, message: "succession", why };
                let message = SuccessionMessage::decode(&bytes).ok_or(unexpected)?;
                self.handle_succession(now, peer, message);
                Ok(())
            }
            (message, Some(lead)) => lead.handle_message(now, peer, message),
            // The sender does not know yet that this supervisor does not lead.
            (_, None) => Ok(()),
        }
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.proposer.handle_deadline(now);
        if self.has_leader && now.saturating_since(self.heard_at) >= SILENT_MAX {
            tracing::warn!("the leader is silent");
            (self.has_leader, self.lost_since) = (false, self.heard_at);
        }
        if self.says_at().is_some_and(|at| at <= now) {
            self.said_at = now;
            self.say(self.other(), &SuccessionMessage::Leads(self.known));
        }
        if self.without_leader_at().is_some_and(|at| at <= now) {
            self.find_leader(now);
        }
        if self.alone_at().is_some_and(|at| at <= now) {
            tracing::warn!("the other supervisor is away: asks the readouts to lead alone");
            self.proposer.propose(now, self.known, self.alone());
            // One call is enough: the proposer repeats the proposal until a term is decided.
            (self.partner_since, self.waiting_since) = (Instant::FAR_FUTURE, None);
        }
        if let Some(lead) = &mut self.lead
            && lead.poll_deadline().is_some_and(|at| at <= now)
        {
            lead.handle_deadline(now);
        }
    }

    fn failure(&mut self) -> Option<ProcessError> {
        self.failure.take()
    }

    fn handle_stop(&mut self, now: Instant) {
        self.is_stopping = true;
        match &mut self.lead {
            Some(lead) => lead.handle_stop(now),
            None => self.say(self.other(), &SuccessionMessage::Leaves),
        }
    }

    fn handle_reload(&mut self, system: &System) {
        (self.system.key, self.system.key_previous) = (system.key.clone(), system.key_previous.clone());
        if let Some(lead) = &mut self.lead {
            lead.handle_reload(system);
        }
    }

    fn is_idle(&mut self) -> bool {
        if let Some(lead) = &mut self.lead {
            return lead.is_idle()
                && self.held.is_empty()
                && self.fresh.is_empty()
                && self.changes.is_empty();
        }
        // This supervisor finishes the events of a lost leader. A connected leader first gets a term alone.
        !self.is_elected && (self.succeeding().is_none() || !self.has_leader && !self.log.has_outstanding())
    }

    fn poll_transmit(&mut self) -> Option<(Peer, Message<Data>)> {
        while let Some(message) = self.proposer.poll_transmit() {
            self.say_to_readouts(&message);
        }
        if let Some(message) = self.out.pop_front() {
            return Some(message);
        }
        let limit = self.partner().map_or(u64::MAX, |_| self.acknowledged);
        self.held.front().filter(|(size, ..)| *size <= limit)?;
        let (_, peer, message) = self.held.pop_front()?;
        Some((peer, message))
    }

    fn poll_record(&mut self) -> Option<(EventRecord, u64)> {
        let polled = self.lead.as_mut()?.poll_record()?;
        self.log.note_record(&polled.0);
        Some(polled)
    }

    fn poll_log(&mut self) -> Option<LogChange> {
        self.changes.pop_front()
    }

    fn handle_committed(&mut self, now: Instant, span: JournalSpan) {
        let size = span.end;
        self.wants_turn = false;
        self.drain();
        self.held.extend(self.fresh.drain(..).map(|(peer, message)| (size, peer, message)));
        let has_terms = std::mem::take(&mut self.wrote_term);
        if let Err(error) = self.log.handle_committed(&self.system.machine, &self.path, size, has_terms) {
            self.failure = Some(error);
        }
        if std::mem::take(&mut self.owes_answer) && self.has_leader {
            // The terms in the leader's lines are decided.
            self.learn(now, self.log.known());
            let log = self.log.id();
            self.say(self.other(), &SuccessionMessage::Held { log, position: size });
        }
        if self.is_elected {
            self.begin_lead(now);
        }
        if self.lead.is_some() {
            self.answer_follow(now);
            self.ship();
            self.pair(now);
            self.begin_file(span);
            if self.partner().is_some() && self.acknowledged < size {
                self.waiting_since.get_or_insert(now);
            } else {
                self.waiting_since = None;
            }
        }
    }

    fn succession(&self) -> Option<SuccessionState> {
        let leads = self.lead.is_some();
        let is_quiet = self.known.is_paired() && !self.proposer.is_busy();
        let is_paired = is_quiet && if leads { true } else { self.may_take_over() && self.has_leader };
        let is_pairing = self.log.pairing_with_this(self.known).is_some();
        Some(SuccessionState { term: self.known.term, leads, is_paired, is_pairing })
    }

    fn lacks(&self) -> Option<&'static str> {
        match (self.lead.is_some(), self.has_leader) {
            (true, _) => None,
            (false, false) => Some("no supervisor leads"),
            (false, true) => {
                (!self.may_take_over()).then_some("the leader is not paired with this supervisor")
            }
        }
    }

    fn poll_deadline(&mut self) -> Option<Instant> {
        let lead = self.lead.as_mut().and_then(|lead| lead.poll_deadline());
        let silent = self.heard_at.checked_add(SILENT_MAX).filter(|_| self.has_leader);
        let own = [
            self.proposer.poll_deadline(),
            self.without_leader_at(),
            self.alone_at(),
            self.says_at(),
            silent,
        ];
        let turn = (self.wants_turn || !self.changes.is_empty()).then_some(Instant::START);
        own.into_iter().chain([lead, turn]).flatten().min()
    }

    fn owns_journal(&self) -> bool {
        self.lead.is_some()
    }

    fn needs_journal(&self) -> bool {
        true
    }

    fn check(&self) {
        if let Some(lead) = &self.lead {
            lead.check();
        }
    }

    fn tables(&self) -> Vec<(&'static str, usize)> {
        let mut tables = self.lead.as_ref().map_or_else(Vec::new, |lead| lead.tables());
        tables.push(("messages held for the partner", self.held.len()));
        tables
    }

    fn measure(&self, now: Instant, metrics: &Metrics) {
        metrics::level(&metrics.leads, u64::from(self.lead.is_some()));
        metrics::level(&metrics.term, self.known.term);
        let is_paired = self.succession().is_some_and(|state| state.is_paired);
        metrics::level(&metrics.paired, u64::from(is_paired));
        match &self.lead {
            Some(lead) => lead.measure(now, metrics),
            // Its former events and units are those of the other supervisor.
            None => {
                metrics::level(&metrics.outstanding, 0);
                metrics::level(&metrics.units_free, 0);
            }
        }
    }
}
