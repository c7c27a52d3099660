//! Messages that wait because a peer's connection is full.

use std::collections::{HashMap, VecDeque};

use fanin_dataflow::{L1Id, Peer};
use fanin_message::Payload;

/// Maximum number of messages that wait for one peer.
const MESSAGES_MAX: usize = 100_000;

/// An encoded message that its connection has not taken yet.
#[derive(Debug)]
pub(super) struct QueuedMessage {
    pub(super) kind: u32,
    pub(super) stream: u32,
    /// The event of a request or an answer.
    pub(super) event: Option<L1Id>,
    pub(super) head: Vec<u8>,
    pub(super) bodies: Vec<Payload>,
}

impl QueuedMessage {
    /// Returns the bytes of the message with its header.
    pub(super) fn bytes(&self) -> u64 {
        let bodies: usize = self.bodies.iter().map(|body| body.len()).sum();
        (self.head.len() + bodies) as u64 + fanin_dataflow::FRAME_HEADER_BYTES
    }
}

/// Queues of waiting messages, one for each peer that has any.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    queues: HashMap<Peer, VecDeque<QueuedMessage>>,
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Returns the number of waiting messages of all peers.
    pub(super) fn len(&self) -> usize {
        self.queues.values().map(VecDeque::len).sum()
    }

    /// Returns true if messages wait for a peer. A further message must queue behind them.
    pub(super) fn has(&self, peer: Peer) -> bool {
        self.queues.contains_key(&peer)
    }

    /// Queues a message.
    ///
    /// # Errors
    /// The number of waiting messages, if the peer's queue is full. The message is dropped.
    pub(super) fn push(&mut self, peer: Peer, message: QueuedMessage) -> Result<(), usize> {
        let queue = self.queues.entry(peer).or_default();
        if queue.len() >= MESSAGES_MAX {
            return Err(queue.len());
        }
        queue.push_back(message);
        Ok(())
    }

    /// Removes and returns a peer's queue for sending. [`Self::put_back`] takes the unsent rest.
    pub(super) fn take(&mut self, peer: Peer) -> Option<VecDeque<QueuedMessage>> {
        self.queues.remove(&peer)
    }

    pub(super) fn put_back(&mut self, peer: Peer, queue: VecDeque<QueuedMessage>) {
        if !queue.is_empty() {
            let other = self.queues.insert(peer, queue);
            assert!(other.is_none(), "the queue of {peer} was taken, and another one grew meanwhile");
        }
    }

    /// Drops the messages for a disconnected peer.
    pub(super) fn clear(&mut self, peer: Peer) {
        self.queues.remove(&peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_refuses_and_a_cleared_one_is_gone() {
        let message = || QueuedMessage { kind: 1, stream: 0, event: None, head: vec![7], bodies: Vec::new() };
        let (slow, other) = (Peer::Readout(1), Peer::Readout(2));
        let mut backlog = Backlog::default();
        for _ in 0..MESSAGES_MAX {
            backlog.push(slow, message()).unwrap();
        }
        assert_eq!(backlog.push(slow, message()), Err(MESSAGES_MAX));
        assert!(backlog.has(slow) && !backlog.has(other));
        let mut queue = backlog.take(slow).unwrap();
        queue.truncate(1);
        backlog.put_back(slow, queue);
        assert!(backlog.has(slow));
        backlog.clear(slow);
        assert!(backlog.is_empty());
    }
}
