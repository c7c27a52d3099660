//! Tracks which of two supervisors leads, for a collector or a readout.

use fanin_dataflow::{Message, Peer};

use crate::data::Data;
use crate::succession::SuccessionMessage;

/// Tracks the leading supervisor: the one with the highest term that this process has received.
#[derive(Debug, Default)]
pub(in crate::roles) struct LeaderTracker {
    leader: Option<Peer>,
    term: u64,
}

/// Meaning of a supervisor's message for the role.
#[derive(Debug)]
pub(in crate::roles) enum FromSupervisor {
    /// The role ignores the message.
    Nothing,
    /// The sender leads: its connection becomes the role's connection to the supervisor.
    Leads {
        /// True if the role had a leader before, whose connection must be reported as closed first.
        was_up: bool,
    },
    /// A message of the leader for the role.
    Message(Message<Data>),
}

impl LeaderTracker {
    /// Returns the supervisor that leads; `None` if no leader is connected.
    pub(in crate::roles) fn leader(&self) -> Option<Peer> {
        self.leader
    }

    /// Returns a description if no leading supervisor is connected; `None` otherwise.
    pub(in crate::roles) fn lacks(&self) -> Option<&'static str> {
        self.leader.is_none().then_some("no supervisor leads")
    }

    /// Handles the end of a connection. Returns true if it was the leader's.
    pub(in crate::roles) fn handle_closed(&mut self, peer: Peer) -> bool {
        self.leader.take_if(|leader| *leader == peer).is_some()
    }

    /// Handles a message of one of the two supervisors.
    pub(in crate::roles) fn handle_message(&mut self, peer: Peer, message: Message<Data>) -> FromSupervisor {
        if let Message::Succession(bytes) = &message {
            return match SuccessionMessage::decode(bytes) {
                Some(SuccessionMessage::Leads(one)) if one.term >= self.term => {
                    self.term = one.term;
                    let was_up = self.leader.replace(peer).is_some();
                    tracing::info!(leader = %peer, term = one.term, "a supervisor leads");
                    FromSupervisor::Leads { was_up }
                }
                _ => FromSupervisor::Nothing,
            };
        }
        if self.leader == Some(peer) { FromSupervisor::Message(message) } else { FromSupervisor::Nothing }
    }
}
