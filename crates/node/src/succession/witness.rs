//! A readout's vote on who leads: the acceptor of Paxos.

use super::{Leadership, SuccessionMessage};

/// The state of a witness. It has to be on disk before an answer leaves.
///
/// A witness without a record of its votes abstains, as [`succession`](crate::succession) says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Witness {
    /// The latest term that it knows to be decided.
    known: Leadership,
    /// The first term in which it votes; `u64::MAX` until it knows one in which it cannot have voted before.
    votes_from: u64,
    /// For the term after the known one: the newest ballot promised, and the value accepted last.
    promised: u64,
    accepted: Option<(u64, Leadership)>,
    /// The known term and the ballot of the last request for a promise on the present connections. It is not on disk.
    pub(super) asked: Option<(u64, u64)>,
}

impl Default for Witness {
    /// A witness that has no record of its votes.
    fn default() -> Self {
        Self { known: Leadership::default(), votes_from: u64::MAX, promised: 0, accepted: None, asked: None }
    }
}

impl Witness {
    /// Handles a supervisor's message. Returns the answer; the state is to be stored before it is sent.
    pub fn handle(&mut self, message: &SuccessionMessage) -> Option<SuccessionMessage> {
        let known = match message {
            SuccessionMessage::Prepare { known, .. } | SuccessionMessage::Accept { known, .. } => known,
            SuccessionMessage::Learned(known) | SuccessionMessage::Leads(known) => known,
            _ => return None,
        };
        if known.term > self.known.term {
            // One that did not vote for the first term of which it hears may have voted before.
            if self.known.term == 0 && self.accepted.is_none_or(|(_, value)| value != *known) {
                self.votes_from = u64::MAX;
            }
            (self.known, self.promised, self.accepted) = (*known, 0, None);
        } else if known.term < self.known.term {
            return Some(SuccessionMessage::Learned(self.known));
        }
        self.find_first_vote(message);
        let term = self.known.term + 1;
        if !self.votes() {
            return Some(SuccessionMessage::Abstains { term: self.known.term });
        }
        match *message {
            SuccessionMessage::Prepare { ballot, .. } if ballot > self.promised => {
                self.promised = ballot;
                Some(SuccessionMessage::Promise { term, ballot, accepted: self.accepted })
            }
            SuccessionMessage::Accept { ballot, value, .. } if ballot >= self.promised => {
                self.promised = ballot;
                self.accepted = Some((ballot, value));
                Some(SuccessionMessage::Accepted { term, ballot })
            }
            SuccessionMessage::Prepare { .. } | SuccessionMessage::Accept { .. } => {
                Some(SuccessionMessage::Refused { term, ballot: self.promised })
            }
            _ => None,
        }
    }

    /// Finds a term in which an earlier life cannot have voted.
    fn find_first_vote(&mut self, message: &SuccessionMessage) {
        match *message {
            SuccessionMessage::Prepare { known, ballot } => {
                self.asked = Some((known.term, ballot));
                if known.term == 0 {
                    self.votes_from = 1;
                }
            }
            // Others have promised since this one was asked: an earlier life knew no later term than the one after `known`.
            SuccessionMessage::Accept { known, ballot, .. } if self.asked == Some((known.term, ballot)) => {
                self.votes_from = self.votes_from.min(known.term + 3);
            }
            _ => {}
        }
    }

    /// A connection to a supervisor has ended: its next one may be to another life of the process, which reuses ballots.
    pub fn handle_closed(&mut self) {
        self.asked = None;
    }

    fn votes(&self) -> bool {
        self.votes_from <= self.known.term + 1
    }

    /// True if it knows a decided term, and votes in all later ones.
    pub fn is_voter(&self) -> bool {
        self.known.term > 0 && self.votes()
    }

    /// True if a term was decided, and it does not vote in the next one.
    pub fn is_abstaining(&self) -> bool {
        self.known.term > 0 && !self.votes()
    }

    /// The newest term for which it knows or has accepted a leader, decided or not.
    pub fn newest_term(&self) -> u64 {
        self.known.term + u64::from(self.accepted.is_some())
    }

    /// The state as a line of text.
    pub fn to_text(&self) -> String {
        let (ballot, value) = self.accepted.unwrap_or_default();
        format!("# fanin witness 1\n{} {} {} {ballot} {value}\n", self.known, self.votes_from, self.promised)
    }

    /// Reads the state; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.strip_prefix("# fanin witness 1\n")?.strip_suffix('\n')?;
        let words: Vec<&str> = line.split(' ').collect();
        if words.len() != 11 {
            return None;
        }
        let number = |place: usize| words[place].parse::<u64>().ok();
        let value = (number(6)?, Leadership::parse(&words[7..].join(" "))?);
        Some(Self {
            known: Leadership::parse(&words[..4].join(" "))?,
            votes_from: number(4)?,
            promised: number(5)?,
            accepted: (value.0 > 0).then_some(value),
            asked: None,
        })
    }
}
