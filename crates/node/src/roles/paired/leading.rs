//! A supervisor that leads: it sends its log to the follower, pairs with it, and gives it up.

use std::io;

use fanin_units::{Duration, Instant};

use super::PairedSupervisor;
use super::files::LogReader;
use super::follower::{FollowRequest, Follower};
use crate::journal::{self, JournalSpan};
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
            assert!(left.goes_on_from(&read), "the journal leaves {read:?}, the log {left:?}");
        }
        match SupervisorNode::continuing(&self.system, left, now) {
            Ok(lead) => self.lead = Some(Box::new(lead)),
            Err(error) => {
                self.failure = Some(error);
                return;
            }
        }
        (self.follower, self.request, self.reader, self.acknowledged) = (None, None, LogReader::default(), 0);
        (self.file_tried, self.has_much_work) = (0, false);
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
            let text = match self.reader.read(&self.system.machine, &self.path, (from, size), CHUNK) {
                Ok(text) if !text.is_empty() => text,
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot read the log for the other supervisor; trying again");
                    self.reader = LogReader::default();
                    if error.kind() == io::ErrorKind::NotFound
                        && let Ok(kept) = self.kept()
                        && kept > from
                    {
                        // The lines that it lacks are deleted.
                        self.follower = None;
                        self.say(self.other(), &SuccessionMessage::Restart { position: kept });
                    }
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

    /// Returns the offset of the first line that is kept.
    fn kept(&self) -> io::Result<u64> {
        let files = journal::log_files(&self.system.machine, &self.path)?;
        Ok(files.first().map_or(0, |(start, _)| *start))
    }

    /// Answers the request of the other supervisor to follow, after a commit: no file is about to be deleted.
    pub(super) fn answer_follow(&mut self, now: Instant) {
        let Some(mut request) = self.request.take() else { return };
        let kept = match self.kept() {
            Ok(kept) => kept,
            Err(error) => {
                if !std::mem::replace(&mut request.is_late, true) {
                    tracing::warn!(%error, "cannot list the log for the other supervisor; trying again");
                }
                self.request = Some(request);
                return;
            }
        };
        let FollowRequest { log, position, term, .. } = request;
        if self.log.begins_with(position, term, kept) {
            self.follower = Some(Follower { log, shipped: position, held: position });
            self.handle_held(now, log, position);
        } else {
            self.follower = None;
            self.say(self.other(), &SuccessionMessage::Restart { position: kept });
        }
    }

    /// Puts the file of the log aside once it has its maximum size, if closed files are deleted. The first lines of the next file
    /// replace all before them: the unfinished work and the latest term. The files of a follower begin at the same lines.
    pub(super) fn begin_file(&mut self, span: JournalSpan) {
        let live = &self.system.scenario().live;
        // If the last change of files failed, its header is in the present file.
        let bytes = span.end.saturating_sub(span.start.max(self.file_tried));
        if live.journal_parts == 0 || live.journal_size.get() == 0 || bytes < live.journal_size.get() {
            return;
        }
        // Every line before is on disk, and no pairing may be decided whose line would be deleted.
        let is_settled = self.changes.is_empty()
            && self.request.is_none()
            && self.log.known() == self.known
            && self.log.pairing(self.known).is_none();
        // The other supervisor has all before this file. Its log ends in a file that is kept here.
        let has_older = self.follower.is_none_or(|follower| follower.held >= span.start)
            && self.partner().is_none_or(|_| self.acknowledged >= span.start);
        if !is_settled || !has_older {
            return;
        }
        // The unfinished work must not fill the next file or a message.
        let words_max = self.log.words_max() as u64;
        let has_much_work = words_max > CHUNK / 2;
        if has_much_work && !self.has_much_work {
            tracing::warn!(
                bytes = words_max,
                "the journal goes on growing: its unfinished events are too many"
            );
        }
        self.has_much_work = has_much_work;
        // Without words, nothing was ever assigned.
        if words_max == 0 || words_max > CHUNK.min(bytes) / 2 {
            return;
        }
        let words = self.log.work().to_words();
        self.file_tried = span.end;
        self.changes.push_back(LogChange::PutAside);
        let lines = TermLine::Leads(self.known).to_text();
        self.changes.push_back(LogChange::Begin { words: format!(" at {}{words}", span.end), lines });
        self.wants_turn = true;
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
