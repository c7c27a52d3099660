//! A readout's vote on who leads: the acceptor of Paxos.

use super::{Leadership, SuccessionMessage};

/// The state of a witness. It has to be on disk before an answer leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Witness {
    /// The latest term that it knows to be decided.
    known: Leadership,
    /// For the term after it: the newest ballot promised, and the value accepted last.
    promised: u64,
    accepted: Option<(u64, Leadership)>,
}

impl Witness {
    /// Handles a supervisor's message. Returns the answer; the state is to be stored before it is sent.
    pub fn handle(&mut self, message: &SuccessionMessage) -> Option<SuccessionMessage> {
        let known = match message {
            SuccessionMessage::Prepare { known, .. } | SuccessionMessage::Accept { known, .. } => known,
            SuccessionMessage::Learned(known) => known,
            _ => return None,
        };
        if known.term > self.known.term {
            *self = Self { known: *known, promised: 0, accepted: None };
        } else if known.term < self.known.term {
            return Some(SuccessionMessage::Learned(self.known));
        }
        let term = self.known.term + 1;
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

    /// The state as a line of text.
    pub fn to_text(&self) -> String {
        let (ballot, value) = self.accepted.unwrap_or_default();
        format!("# fanin witness 1\n{} {} {ballot} {value}\n", self.known, self.promised)
    }

    /// Reads the state; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.strip_prefix("# fanin witness 1\n")?.strip_suffix('\n')?;
        let words: Vec<&str> = line.split(' ').collect();
        let [known, promised, ballot, value] = match words.len() {
            10 => [&words[..4], &words[4..5], &words[5..6], &words[6..]].map(|part| part.join(" ")),
            _ => return None,
        };
        let value = (ballot.parse().ok()?, Leadership::parse(&value)?);
        let accepted = (value.0 > 0).then_some(value);
        Some(Self { known: Leadership::parse(&known)?, promised: promised.parse().ok()?, accepted })
    }
}
