//! A supervisor's attempts to have the next term decided: the proposer of Paxos.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fanin_units::{Duration, Instant};

use super::{Leadership, SuccessionMessage};

/// Time after which the first attempt is repeated.
const RETRY: Duration = Duration::from_millis(150);
/// Increase of this time with each attempt.
const RETRY_MORE: Duration = Duration::from_millis(100);
/// Number of attempts after which the time stays constant.
const ATTEMPTS_MAX: u64 = 15;

/// Has one term after the other decided.
#[derive(Debug)]
pub struct Proposer {
    /// Number of this supervisor, 0 or 1. It is part of the ballot, so two supervisors never use equal ballots.
    me: u8,
    majority: usize,
    round: u64,
    attempt: Option<Attempt>,
    attempts: u64,
    out: VecDeque<SuccessionMessage>,
}

#[derive(Debug)]
struct Attempt {
    known: Leadership,
    /// The value of this supervisor, proposed unless a promise names an accepted value.
    value: Leadership,
    ballot: u64,
    promises: BTreeMap<u16, Option<(u64, Leadership)>>,
    accepting: Option<Leadership>,
    accepted: BTreeSet<u16>,
    retry_at: Instant,
}

impl Proposer {
    /// Creates the proposer of supervisor `me` (0 or 1) for this number of witnesses.
    pub fn new(me: u8, witnesses: usize) -> Self {
        let (attempt, out) = (None, VecDeque::new());
        Self { me, majority: witnesses / 2 + 1, round: 0, attempt, attempts: 0, out }
    }

    /// Proposes a value for the term after `known` until a value is decided. During an attempt at this term, replaces the
    /// value for later attempts.
    pub fn propose(&mut self, now: Instant, known: Leadership, value: Leadership) {
        let is_new = self.attempt.as_ref().is_none_or(|attempt| attempt.known.term < known.term);
        if is_new {
            self.attempts = 0;
            self.begin(now, known, value);
        } else if let Some(attempt) = &mut self.attempt {
            attempt.value = value;
        }
    }

    /// Gives up the attempt, unless a witness may have accepted a value already.
    pub fn withdraw(&mut self) {
        self.attempt = self.attempt.take().filter(|attempt| attempt.accepting.is_some());
    }

    /// Ends an attempt at a term that was decided meanwhile.
    pub fn handle_decided(&mut self, known: Leadership) {
        self.attempt = self.attempt.take().filter(|attempt| attempt.known.term >= known.term);
    }

    /// Returns true during an attempt.
    pub fn is_busy(&self) -> bool {
        self.attempt.is_some()
    }

    fn begin(&mut self, now: Instant, known: Leadership, value: Leadership) {
        self.round += 1;
        self.attempts = (self.attempts + 1).min(ATTEMPTS_MAX);
        let ballot = 2 * self.round + u64::from(self.me);
        // Different times keep two proposers from refusing each other's ballots again and again.
        let more = RETRY_MORE.get() * (self.attempts - 1)
            + u64::from(self.me) * self.attempts * RETRY_MORE.get() / 2;
        let wait = Duration::new(RETRY.get() + more);
        self.attempt = Some(Attempt {
            known,
            value,
            ballot,
            promises: BTreeMap::new(),
            accepting: None,
            accepted: BTreeSet::new(),
            retry_at: now.checked_add(wait).unwrap_or(Instant::FAR_FUTURE),
        });
        self.out.push_back(SuccessionMessage::Prepare { known, ballot });
    }

    /// Handles a witness's answer. Returns the value of the term if this answer decides it.
    pub fn handle(&mut self, witness: u16, message: &SuccessionMessage) -> Option<Leadership> {
        let attempt = self.attempt.as_mut()?;
        let next = attempt.known.term + 1;
        match *message {
            SuccessionMessage::Promise { term, ballot, accepted }
                if term == next && ballot == attempt.ballot && attempt.accepting.is_none() =>
            {
                attempt.promises.insert(witness, accepted);
                if attempt.promises.len() >= self.majority {
                    // A value that may have been decided already must be proposed again.
                    let older = attempt.promises.values().flatten().max_by_key(|(ballot, _)| *ballot);
                    let value = older.map_or(attempt.value, |(_, value)| *value);
                    attempt.accepting = Some(value);
                    let (known, ballot) = (attempt.known, attempt.ballot);
                    self.out.push_back(SuccessionMessage::Accept { known, ballot, value });
                }
                None
            }
            SuccessionMessage::Accepted { term, ballot } if term == next && ballot == attempt.ballot => {
                attempt.accepted.insert(witness);
                let value = attempt.accepting.filter(|_| attempt.accepted.len() >= self.majority)?;
                self.attempt = None;
                Some(value)
            }
            SuccessionMessage::Refused { term, ballot } if term == next => {
                self.round = self.round.max(ballot / 2);
                None
            }
            _ => None,
        }
    }

    /// Returns the next message to all witnesses; `None` if there is none.
    pub fn poll_transmit(&mut self) -> Option<SuccessionMessage> {
        self.out.pop_front()
    }

    /// Returns the time at which [`Self::handle_deadline`] must be called; `None` without an attempt.
    pub fn poll_deadline(&self) -> Option<Instant> {
        self.attempt.as_ref().map(|attempt| attempt.retry_at)
    }

    /// Begins the next attempt, with a newer ballot, if its time has come.
    pub fn handle_deadline(&mut self, now: Instant) {
        if let Some(attempt) = self.attempt.take_if(|attempt| attempt.retry_at <= now) {
            self.begin(now, attempt.known, attempt.value);
        }
    }
}
