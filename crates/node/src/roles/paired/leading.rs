//! A supervisor that leads: it sends its log to the follower, pairs with it, and gives it up.

use std::io::{Read, Seek, SeekFrom};

use fanin_units::{Duration, Instant};

use super::PairedSupervisor;
use crate::machine::OpenMode;
use crate::node::{LogChange, RoleNode};
use crate::resume::resume_on;
use crate::roles::SupervisorNode;
use crate::succession::{Leadership, SuccessionMessage, TermLine};

/// Time without the partner after which a leader proposes a term alone.
const ALONE_AFTER: Duration = Duration::from_millis(150);
/// The same time if the partner follows, but does not acknowledge the log.
const UNANSWERED_MAX: Duration = Duration::from_millis(1000);
/// Maximum number of bytes of the log that a follower may lack when a pairing begins.
const PAIRING_LACK_MAX: u64 = 64 << 10;
/// Maximum number of bytes of the log in one message.
const CHUNK: u64 = 256 << 10;
/// A leader sends no further message while this many bytes of the log are unacknowledged.
const ON_WAY_MAX: u64 = 1 << 20;

impl PairedSupervisor {
    /// Begins to lead with the unfinished work of the log, and announces it to all peers.
    pub(super) fn begin_lead(&mut self, now: Instant) {
        self.is_elected = false;
        let left = self.log.work();
        if cfg!(debug_assertions)
            && let Ok(read) = resume_on(&self.system.machine, &self.path)
        {
            assert_eq!(left, read, "the work that the journal leaves");
        }
        match SupervisorNode::continuing(&self.system, left, now) {
            Ok(lead) => self.lead = Some(Box::new(lead)),
            Err(error) => {
                self.failure = Some(error);
                return;
            }
        }
        (self.follower, self.reader, self.acknowledged) = (None, None, 0);
        (self.partner_since, self.waiting_since, self.wants_turn) = (now, None, true);
        let leads = SuccessionMessage::Leads(self.known);
        for peer in self.peers.clone() {
            self.say(peer, &leads);
            if let Some(lead) = self.lead.as_mut().filter(|_| !peer.is_supervisor()) {
                lead.handle_connected(now, peer);
            }
        }
        if let Some(lead) = self.lead.as_mut().filter(|_| self.is_stopping) {
            lead.handle_stop(now);
        }
    }

    /// Sends the follower the lines of the log that it lacks.
    pub(super) fn ship(&mut self) {
        let size = self.log.size();
        while let Some(follower) = self.follower
            && follower.shipped < size
            && follower.shipped.saturating_sub(follower.held) < ON_WAY_MAX
        {
            let from = follower.shipped;
            let text = match self.read(from, size) {
                Ok(text) if !text.is_empty() => text,
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot read the log for the other supervisor; trying again");
                    self.reader = None;
                    return;
                }
            };
            if let Some(follower) = &mut self.follower {
                follower.shipped += text.len() as u64;
            }
            let message = SuccessionMessage::Log { term: self.known.term, position: from, text };
            self.say(self.other(), &message);
        }
    }

    /// Reads whole lines of the log from offset `from` on, up to offset `to` and at most [`CHUNK`] bytes.
    fn read(&mut self, from: u64, to: u64) -> std::io::Result<Vec<u8>> {
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.system.machine.open(&self.path, OpenMode::Read)?,
        };
        reader.seek(SeekFrom::Start(from))?;
        let mut text = vec![0; (to - from).min(CHUNK) as usize];
        reader.read_exact(&mut text)?;
        self.reader = Some(reader);
        text.truncate(text.iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1));
        Ok(text)
    }

    /// Begins a pairing with a follower that lacks few bytes. Proposes the pairing once the follower has its line on disk.
    pub(super) fn pair(&mut self, now: Instant) {
        if let Some((value, end)) = self.log.pairing(self.known) {
            if self.acknowledged >= end && !self.proposer.is_busy() {
                self.proposer.propose(now, self.known, value);
            }
            return;
        }
        let Some(follower) = self.follower else { return };
        let lacks = self.log.size().saturating_sub(follower.held);
        // The follower has written since this term began, so it does not hang.
        let has_written = follower.held > self.alone_from;
        let is_free = !self.known.is_paired() && !self.proposer.is_busy() && !self.is_stopping;
        if !is_free || !has_written || lacks > PAIRING_LACK_MAX {
            return;
        }
        let value = Leadership { partner: follower.log, ..self.alone() };
        let line = TermLine::Pairs(value).to_text();
        self.log.begin_pairing(value);
        self.acknowledged = follower.held;
        self.changes.push_back(LogChange::Append(line.into_bytes()));
        (self.wants_turn, self.wrote_term) = (true, true);
    }

    /// Renews the term for a readout that has lost the record of its votes: it votes again after two further terms.
    pub(super) fn renew(&mut self, now: Instant, term: u64) {
        // A pairing in progress brings the next term. One or two readouts have no majority without the abstaining one.
        let is_free = !self.proposer.is_busy() && self.log.pairing(self.known).is_none();
        if self.lead.is_some() && term == self.known.term && is_free && self.system.readouts.len() > 2 {
            let value = Leadership { term: term + 1, ..self.known };
            self.proposer.propose(now, self.known, value);
        }
    }

    /// Returns the time at which a leader gives its partner up; `None` without a partner or a reason.
    pub(super) fn alone_at(&self) -> Option<Instant> {
        let partner = self.partner().filter(|_| self.lead.is_some())?;
        let is_here = self.follower.is_some_and(|follower| follower.log == partner);
        let (since, limit) =
            if is_here { (self.waiting_since?, UNANSWERED_MAX) } else { (self.partner_since, ALONE_AFTER) };
        since.checked_add(limit)
    }
}
