//! Readouts that send unasked: the supervisor sends them an event's collector, and no request is sent.
//!
//! The collector's state machine knows only requests. The collector's requests are recorded instead of sent, and earlier
//! answers wait for the requests.

use alloc::collections::BTreeMap;

use crate::message::{Message, request_bytes};
use crate::payload::FragmentSet;
use crate::peer::L1Id;

/// Bytes of the message to a readout with an event's collector: as long as a request for one fragment.
pub const DESTINATION_BYTES: u64 = request_bytes(1).get();

/// The state of one readout's share of an event.
#[derive(Debug)]
enum Share<P> {
    /// The collector has issued its request, with this tag.
    Expected(u32),
    /// The answer arrived before the request.
    Early(FragmentSet, P),
}

/// Shares of events under way, by event and readout.
#[derive(Debug)]
pub struct PushedAnswers<P> {
    shares: BTreeMap<(u64, u16), Share<P>>,
}

impl<P> Default for PushedAnswers<P> {
    fn default() -> Self {
        Self { shares: BTreeMap::new() }
    }
}

impl<P> PushedAnswers<P> {
    /// Records a request of a collector. Returns the answer if it has arrived already.
    ///
    /// # Panics
    /// If the share was requested before.
    pub fn expect(&mut self, event: L1Id, readout: u16, tag: u32) -> Option<Message<P>> {
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
    pub fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    /// Takes a message for a collector. Returns the message with the tag of its request; `None` for an answer before its
    /// request.
    ///
    /// # Panics
    /// If the readout has answered before.
    pub fn handle_message(&mut self, readout: u16, message: Message<P>) -> Option<Message<P>> {
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
