//! What workers tell one another: frames for each other's ports, and what they know of stations.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::driver::Received;
use crate::lane::{Receiver, Sender, lane};
use crate::sys::Wakeup;

/// Messages between two workers that wait at a time.
const LANE_LEN: usize = 4096;
/// News of stations that wait for room; beyond that the other worker floods until it hears of the station again.
const NEWS_MAX: usize = 65_536;

/// A message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Message<H> {
    /// A frame for one of the receiver's ports; its tag is as that port wants it.
    Frame { input: u16, output: u16, vlan: u16, frame: Received<H> },
    /// A station is behind one of the sender's ports.
    Learned { station: u64, port: u16 },
    /// A station has aged.
    Forgotten { station: u64 },
    /// A port has lost its link.
    Down { port: u16 },
    /// Memory that belongs to the receiver.
    Back(H),
}

#[derive(Debug)]
struct Other<H> {
    sender: Sender<Message<H>>,
    receiver: Receiver<Message<H>>,
    wakeup: Arc<Wakeup>,
    /// News that found the lane full.
    waiting: VecDeque<Message<H>>,
    told: bool,
}

/// One worker's lanes to and from the others.
#[derive(Debug)]
pub(crate) struct Lanes<H> {
    /// By worker; none to oneself.
    others: Vec<Option<Other<H>>>,
    /// By port.
    owners: Vec<u16>,
}

impl<H: Copy + Send> Lanes<H> {
    /// Lanes between all workers, by how each is woken. `owners` says whose each port is.
    pub(crate) fn between(wakeups: &[Arc<Wakeup>], owners: &[u16]) -> Vec<Self> {
        let workers = wakeups.len();
        let mut senders: Vec<Vec<_>> = (0..workers).map(|_| (0..workers).map(|_| None).collect()).collect();
        let mut receivers: Vec<Vec<_>> = (0..workers).map(|_| (0..workers).map(|_| None).collect()).collect();
        for from in 0..workers {
            for to in (0..workers).filter(|&to| to != from) {
                let (sender, receiver) = lane(LANE_LEN);
                senders[from][to] = Some(sender);
                receivers[to][from] = Some(receiver);
            }
        }
        let ends = senders.into_iter().zip(receivers);
        ends.map(|(senders, receivers)| Self {
            others: senders
                .into_iter()
                .zip(receivers)
                .zip(wakeups)
                .map(|((sender, receiver), wakeup)| {
                    Some(Other {
                        sender: sender?,
                        receiver: receiver?,
                        wakeup: Arc::clone(wakeup),
                        waiting: VecDeque::new(),
                        told: false,
                    })
                })
                .collect(),
            owners: owners.to_vec(),
        })
        .collect()
    }

    /// Number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.others.len()
    }

    /// The worker of a port.
    #[inline]
    pub(crate) fn owner(&self, port: usize) -> usize {
        self.owners[port].into()
    }

    /// Sends a frame, or gives it back where the lane is full.
    #[inline]
    pub(crate) fn send_frame(&mut self, to: usize, message: Message<H>) -> Result<(), Message<H>> {
        let Some(other) = &mut self.others[to] else { return Err(message) };
        other.told = true;
        other.sender.put(message)
    }

    /// Tells one worker something that must not be lost.
    pub(crate) fn tell(&mut self, to: usize, message: Message<H>) {
        let Some(other) = &mut self.others[to] else { return };
        other.told = true;
        if !other.waiting.is_empty() || other.sender.put(message).is_err() {
            // Memory always comes back; news is only news.
            if matches!(message, Message::Back(_)) || other.waiting.len() < NEWS_MAX {
                other.waiting.push_back(message);
            }
        }
    }

    /// Tells all others.
    pub(crate) fn tell_all(&mut self, message: Message<H>) {
        for to in 0..self.others.len() {
            self.tell(to, message);
        }
    }

    /// Whether any worker has sent something.
    pub(crate) fn has_messages(&self) -> bool {
        self.others.iter().flatten().any(|other| !other.receiver.is_empty())
    }

    /// A message from one worker.
    #[inline]
    pub(crate) fn take(&mut self, from: usize) -> Option<Message<H>> {
        self.others[from].as_mut()?.receiver.take()
    }

    /// Ends a round: what waited goes if it can, and who sleeps is woken.
    #[inline]
    pub(crate) fn flush(&mut self) {
        for other in self.others.iter_mut().flatten() {
            while let Some(&message) = other.waiting.front()
                && other.sender.put(message).is_ok()
            {
                other.told = true;
                other.waiting.pop_front();
            }
            if std::mem::take(&mut other.told) {
                other.wakeup.wake_sleeper();
            }
        }
    }
}

#[cfg(test)]
mod churn;
#[cfg(test)]
mod tests;
