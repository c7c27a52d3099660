//! Readouts that send unasked: the supervisor tells them where an event goes, and nobody requests anything.
//!
//! The collector's rules are those of the roles, which know requests only: what would be requested is expected instead,
//! and an answer that is early waits until the collector has heard of its event.

use std::collections::HashMap;

use fanin_dataflow::{FragmentSet, L1Id, Message, Peer};
use fanin_units::{Bytes, Instant};

use super::{Building, Travel, Word, expected};
use crate::world::Outbox;

/// Bytes of the message that tells a readout where an event goes: a header, the event and the collector.
const DESTINATION_BYTES: u64 = 12 + 8 + 4;

/// What one collector expects from one readout of one event, or has already.
enum Share {
    /// The tag of the request that is not sent.
    Expected(u32),
    /// The answer came before the collector had heard of the event.
    Early(FragmentSet, Bytes),
}

/// Shares of events on their way, by event and readout.
#[derive(Default)]
pub(super) struct Push {
    shares: HashMap<(u64, u16), Share>,
}

impl Building {
    /// The supervisor assigned an event: all readouts hear where it goes.
    pub(super) fn tell_destination(&self, event: L1Id, collector: u16, outbox: &mut Outbox<Travel>) {
        for readout in 0..self.readouts.len() as u16 {
            if self.is_remote(collector, readout) {
                let end = self.end(&Peer::Supervisor, Peer::Readout(readout));
                outbox.send(end, DESTINATION_BYTES, Travel::Word(Word::Destination { event, collector }));
            }
        }
    }

    /// A readout heard where an event goes: as if it was asked.
    pub(super) fn handle_destination(&mut self, now: Instant, readout: u16, event: L1Id, collector: u16) {
        let request = Message::Request { tag: 0, event, fragments: FragmentSet::first(self.fragments) };
        self.asked[usize::from(readout)].push((event.0, now));
        let role = &mut self.readouts[usize::from(readout)];
        expected(role.handle_message(now, Peer::Collector(collector), request));
    }

    /// A collector would ask now. Hands in the answer if it is there already.
    pub(super) fn expect(
        &mut self,
        now: Instant,
        collector: u16,
        readout: u16,
        event: L1Id,
        tag: u32,
        outbox: &mut Outbox<Travel>,
    ) {
        let Some(push) = &mut self.push else { return };
        match push.shares.remove(&(event.0, readout)) {
            None => _ = push.shares.insert((event.0, readout), Share::Expected(tag)),
            Some(Share::Early(missing, payload)) => {
                let answer = Message::Answer { tag, event, missing, payload };
                let role = &mut self.collectors[usize::from(collector)];
                expected(role.handle_message(now, Peer::Readout(readout), answer));
                self.drain(now, &Peer::Collector(collector), outbox);
            }
            Some(Share::Expected(_)) => unreachable!("a share is requested once"),
        }
    }

    /// A share of an event has arrived: the answer to the request that was not sent, if the collector knows the event.
    pub(super) fn arrived(&mut self, readout: u16, message: Message<Bytes>) -> Option<Message<Bytes>> {
        let Some(push) = &mut self.push else { return Some(message) };
        let Message::Answer { event, missing, payload, .. } = message else { return Some(message) };
        match push.shares.remove(&(event.0, readout)) {
            Some(Share::Expected(tag)) => Some(Message::Answer { tag, event, missing, payload }),
            _ => {
                push.shares.insert((event.0, readout), Share::Early(missing, payload));
                None
            }
        }
    }
}
