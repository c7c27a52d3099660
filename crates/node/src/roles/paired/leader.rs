//! The supervisor that a collector or a readout obeys, of two.

use fanin_dataflow::{Message, Peer};

use crate::data::Data;
use crate::succession::SuccessionMessage;

/// The supervisor that a collector or a readout obeys: the one of the highest term that it has seen.
#[derive(Debug, Default)]
pub(in crate::roles) struct LeaderTracker {
    leader: Option<Peer>,
    term: u64,
}

/// The news that a message of a supervisor brings.
#[derive(Debug)]
pub(in crate::roles) enum FromSupervisor {
    /// Nothing for the role.
    Nothing,
    /// Another connection is the one to the supervisor; the role had one before if `was_up`.
    Leads {
        /// The role has to hear of the end of the former connection.
        was_up: bool,
    },
    /// A message of the leader.
    Message(Message<Data>),
}

impl LeaderTracker {
    /// The connection on which the role's supervisor is.
    pub(in crate::roles) fn leader(&self) -> Option<Peer> {
        self.leader
    }

    /// Says so if no supervisor leads on a connection of this process.
    pub(in crate::roles) fn lacks(&self) -> Option<&'static str> {
        self.leader.is_none().then_some("no supervisor leads")
    }

    /// True if the connection that ended was the leader's.
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
