//! A readout's vote on the leading supervisor: the acceptor of Paxos.

use super::{Leadership, SuccessionMessage};

/// The state of a witness. It must be on disk before an answer is sent.
///
/// A witness without a record of its votes abstains, as [`succession`](crate::succession) explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Witness {
    /// The latest decided term that the witness knows.
    known: Leadership,
    /// First term in which the witness votes; `u64::MAX` until it knows a term in which it cannot have voted before.
    votes_from: u64,
    /// The newest promised ballot for the term after `known`.
    promised: u64,
    /// The value accepted last for the term after `known`, with its ballot.
    accepted: Option<(u64, Leadership)>,
    /// The known term and the ballot of the last `Prepare` on the present connections. This field is not on disk.
    pub(super) asked: Option<(u64, u64)>,
}

impl Default for Witness {
    /// Creates a witness without a record of its votes.
    fn default() -> Self {
        Self { known: Leadership::default(), votes_from: u64::MAX, promised: 0, accepted: None, asked: None }
    }
}

impl Witness {
    /// Handles a supervisor's message and returns the answer, if any. The state must be stored before the answer is sent.
    pub fn handle(&mut self, message: &SuccessionMessage) -> Option<SuccessionMessage> {
        let known = match message {
            SuccessionMessage::Prepare { known, .. } | SuccessionMessage::Accept { known, .. } => known,
            SuccessionMessage::Learned(known) | SuccessionMessage::Leads(known) => known,
            _ => return None,
        };
        if known.term > self.known.term {
            // A witness without a vote for the first term that it learns may have voted in an earlier incarnation.
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

    /// Sets the first term in which an earlier incarnation cannot have voted, if the message proves one.
    fn find_first_vote(&mut self, message: &SuccessionMessage) {
        match *message {
            SuccessionMessage::Prepare { known, ballot } => {
                self.asked = Some((known.term, ballot));
                if known.term == 0 {
                    self.votes_from = 1;
                }
            }
            // A majority has promised since this witness was asked: its earlier incarnation knew at most the term after `known`.
            SuccessionMessage::Accept { known, ballot, .. } if self.asked == Some((known.term, ballot)) => {
                self.votes_from = self.votes_from.min(known.term + 3);
            }
            _ => {}
        }
    }

    /// Handles the end of a connection to a supervisor. The next incarnation of the supervisor may reuse ballots.
    pub fn handle_closed(&mut self) {
        self.asked = None;
    }

    fn votes(&self) -> bool {
        self.votes_from <= self.known.term + 1
    }

    /// Returns true if the witness knows a decided term, and votes in all later ones.
    pub fn is_voter(&self) -> bool {
        self.known.term > 0 && self.votes()
    }

    /// Returns true if the witness knows a decided term, and does not vote in the next one.
    pub fn is_abstaining(&self) -> bool {
        self.known.term > 0 && !self.votes()
    }

    /// Returns the newest term for which the witness knows a decided leader or has accepted a value.
    pub fn newest_term(&self) -> u64 {
        self.known.term + u64::from(self.accepted.is_some())
    }

    /// Returns the state as text: a header line, and a line of numbers.
    pub fn to_text(&self) -> String {
        let (ballot, value) = self.accepted.unwrap_or_default();
        format!("# fanin witness 1\n{} {} {} {ballot} {value}\n", self.known, self.votes_from, self.promised)
    }

    /// Parses the text of [`Self::to_text`]; returns `None` for any other text.
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
