//! The links of one worker to the others: frames for their ports, and news of stations and ports.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::driver::Received;

use super::spsc::{SpscReceiver, SpscSender, spsc};
use super::wakeup::Wakeup;

/// Messages that one link holds.
const LINK_LEN: usize = 4096;
/// Most messages that wait for room in a link. Further news are lost: the other worker floods until it learns the station
/// itself.
const NEWS_MAX: usize = 65_536;

/// A message from one worker to another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PeerMessage<H> {
    /// A frame for one of the receiver's ports, tagged for that port.
    Frame { input: u16, output: u16, vlan: u16, frame: Received<H> },
    /// The sender learned a station behind one of its ports.
    Learned { station: u64, port: u16 },
    /// A station behind one of the sender's ports has aged out.
    Forgotten { station: u64 },
    /// A port of the sender has lost its link.
    Down { port: u16 },
    /// A buffer of the receiver that the sender has freed.
    Buffer(H),
}

/// Both directions between this worker and another.
#[derive(Debug)]
struct PeerLink<H> {
    sender: SpscSender<PeerMessage<H>>,
    receiver: SpscReceiver<PeerMessage<H>>,
    wakeup: Arc<Wakeup>,
    /// Messages that did not fit into the link.
    backlog: VecDeque<PeerMessage<H>>,
    /// True if something was sent since the other worker was last woken.
    has_sent: bool,
}

/// One worker among all workers of the switch: its ports, and its links to the others.
#[derive(Debug)]
pub(crate) struct Peers<H> {
    worker: usize,
    /// The worker of each port.
    owners: Vec<u16>,
    /// The ports of this worker.
    ports: Vec<usize>,
    /// Queues by worker; none to itself.
    links: Vec<Option<PeerLink<H>>>,
}

impl<H: Copy + Send> Peers<H> {
    /// Makes a worker without links. `owners` names the worker of each port.
    pub(crate) fn alone(worker: usize, owners: &[u16]) -> Self {
        let ports = (0..owners.len()).filter(|&port| usize::from(owners[port]) == worker).collect();
        Self { worker, owners: owners.to_vec(), ports, links: Vec::new() }
    }

    /// Makes all workers, with links between every two of them. `wakeups` has an entry for each worker.
    pub(crate) fn between(wakeups: &[Arc<Wakeup>], owners: &[u16]) -> Vec<Self> {
        let workers = wakeups.len();
        let mut all: Vec<Self> = (0..workers).map(|worker| Self::alone(worker, owners)).collect();
        if workers == 1 {
            return all;
        }
        let mut senders: Vec<Vec<_>> = (0..workers).map(|_| (0..workers).map(|_| None).collect()).collect();
        let mut receivers: Vec<Vec<_>> = (0..workers).map(|_| (0..workers).map(|_| None).collect()).collect();
        for from in 0..workers {
            for to in (0..workers).filter(|&to| to != from) {
                let (sender, receiver) = spsc(LINK_LEN);
                senders[from][to] = Some(sender);
                receivers[to][from] = Some(receiver);
            }
        }
        for (peers, (senders, receivers)) in all.iter_mut().zip(senders.into_iter().zip(receivers)) {
            let link = |((sender, receiver), wakeup): ((Option<_>, Option<_>), &Arc<Wakeup>)| {
                Some(PeerLink {
                    sender: sender?,
                    receiver: receiver?,
                    wakeup: Arc::clone(wakeup),
                    backlog: VecDeque::new(),
                    has_sent: false,
                })
            };
            peers.links = senders.into_iter().zip(receivers).zip(wakeups).map(link).collect();
        }
        all
    }

    /// Returns the number of this worker.
    pub(crate) const fn worker(&self) -> usize {
        self.worker
    }

    /// Returns the ports of this worker.
    #[inline]
    pub(crate) fn ports(&self) -> &[usize] {
        &self.ports
    }

    /// Returns true if a port belongs to this worker.
    #[inline]
    pub(crate) fn is_own(&self, port: usize) -> bool {
        usize::from(self.owners[port]) == self.worker
    }

    /// Returns true if the switch has other workers.
    #[inline]
    pub(crate) const fn has_others(&self) -> bool {
        !self.links.is_empty()
    }

    /// Returns the numbers of all other workers.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> + use<H> {
        let worker = self.worker;
        (0..self.links.len()).filter(move |&other| other != worker)
    }

    /// Sends a frame to the worker of its output. Returns `false` if the link is full: the caller keeps the frame.
    #[inline]
    pub(crate) fn send_frame(&mut self, input: usize, output: usize, vlan: u16, frame: Received<H>) -> bool {
        let owner = usize::from(self.owners[output]);
        let Some(Some(link)) = self.links.get_mut(owner) else { return false };
        link.has_sent = true;
        link.sender
            .put(PeerMessage::Frame { input: input as u16, output: output as u16, vlan, frame })
            .is_ok()
    }

    /// Sends a buffer or news to one worker. A buffer is never lost, and news only beyond [`NEWS_MAX`].
    pub(crate) fn send(&mut self, to: usize, message: PeerMessage<H>) {
        let Some(Some(link)) = self.links.get_mut(to) else { return };
        link.has_sent = true;
        let is_sent = link.backlog.is_empty() && link.sender.put(message).is_ok();
        if !is_sent && (matches!(message, PeerMessage::Buffer(_)) || link.backlog.len() < NEWS_MAX) {
            link.backlog.push_back(message);
        }
    }

    /// Sends news to all other workers.
    pub(crate) fn announce(&mut self, message: PeerMessage<H>) {
        for to in 0..self.links.len() {
            self.send(to, message);
        }
    }

    /// Returns true if a message has come.
    pub(crate) fn has_messages(&self) -> bool {
        self.links.iter().flatten().any(|link| !link.receiver.is_empty())
    }

    /// Takes the next message of one worker.
    #[inline]
    pub(crate) fn poll_message(&mut self, from: usize) -> Option<PeerMessage<H>> {
        self.links[from].as_mut()?.receiver.take()
    }

    /// Ends a round: sends the backlog as far as links have room, and wakes sleeping workers.
    #[inline]
    pub(crate) fn flush(&mut self) {
        for link in self.links.iter_mut().flatten() {
            while let Some(&message) = link.backlog.front()
                && link.sender.put(message).is_ok()
            {
                link.has_sent = true;
                link.backlog.pop_front();
            }
            if std::mem::take(&mut link.has_sent) {
                link.wakeup.wake_sleeper();
            }
        }
    }
}
