//! The messages of an event-building system.

use fanin_dataflow::{ControlMessage, L1Id, Message};
use fanin_units::{Bytes, Instant};

use crate::techniques::MessageKind;

/// A message of the simulated system.
pub(crate) enum BuildingMessage {
    /// Message from role to role.
    Role(Message<Bytes>),
    /// Supervisor to collector, with the time of the assignment: the collector may be in another partition.
    Assign { event: L1Id, at: Instant, message: Box<Message<Bytes>> },
    /// Supervisor to readout that pushes: the collector of an assigned event.
    Destination { event: L1Id, collector: u16 },
    /// Message of the technique that holds answers back.
    Control(ControlMessage),
}

impl BuildingMessage {
    /// Returns the event that a request or an answer belongs to; otherwise `None`.
    pub(super) fn event(&self) -> Option<u64> {
        match self {
            Self::Role(Message::Request { event, .. } | Message::Answer { event, .. }) => Some(event.0),
            _ => None,
        }
    }

    /// Returns the message's kind, for techniques that act on requests and answers.
    pub(super) fn kind(&self) -> MessageKind {
        match self {
            Self::Role(Message::Request { .. }) => MessageKind::Request,
            Self::Role(Message::Answer { .. }) => MessageKind::Answer,
            _ => MessageKind::Other,
        }
    }
}
