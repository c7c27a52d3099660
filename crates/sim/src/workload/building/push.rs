//! Readouts that send unasked: the supervisor sends them an event's collector, and no request is sent.
//!
//! The collector's state machine knows only requests. The collector's requests are recorded instead of sent, and earlier
//! answers wait for the requests.

use std::collections::HashMap;

use fanin_dataflow::{FragmentSet, L1Id, Message, request_bytes};
use fanin_units::Bytes;

/// Bytes of the message to a readout with an event's collector: as long as a request for one fragment.
pub(super) const DESTINATION_BYTES: u64 = request_bytes(1).get();

/// The state of one readout's share of an event.
enum Share {
    /// The collector has issued its request, with this tag.
    Expected(u32),
    /// The answer arrived before the request.
    Early(FragmentSet, Bytes),
}

/// Shares of events under way, by event and readout.
#[derive(Default)]
pub(super) struct Push {
    shares: HashMap<(u64, u16), Share>,
}

impl Push {
    /// Records a request of a collector. Returns the answer if it has arrived already.
    pub(super) fn expect(&mut self, event: L1Id, readout: u16, tag: u32) -> Option<Message<Bytes>> {
        match self.shares.remove(&(event.0, readout)) {
            None => {
                self.shares.insert((event.0, readout), Share::Expected(tag));
                None
            }
            Some(Share::Early(missing, payload)) => Some(Message::Answer { tag, event, missing, payload }),
            Some(Share::Expected(_)) => unreachable!("a share is requested once"),
        }
    }

    /// Returns true if no share waits for its request or the other way round.
    pub(super) fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    /// Takes a message for a collector. Returns the message with the tag of its request; `None` for an answer before its
    /// request.
    pub(super) fn handle_message(&mut self, readout: u16, message: Message<Bytes>) -> Option<Message<Bytes>> {
        let Message::Answer { event, missing, payload, .. } = message else { return Some(message) };
        match self.shares.remove(&(event.0, readout)) {
            Some(Share::Expected(tag)) => Some(Message::Answer { tag, event, missing, payload }),
            None => {
                self.shares.insert((event.0, readout), Share::Early(missing, payload));
                None
            }
            Some(Share::Early(..)) => unreachable!("a readout answers once"),
        }
    }
}
