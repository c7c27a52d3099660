//! What workers tell one another: frames for each other's ports, and what they know of stations.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

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
                // Either we see that it sleeps, or it sees our messages before it does: see `Wakeup::begin_sleep`.
                fence(Ordering::SeqCst);
                other.wakeup.wake_sleeper();
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use fanin_units::{Bytes, Duration, Instant};

    use super::*;
    use crate::config::{Config, Hugepages, PortSpec};
    use crate::memory::MemoryPorts;
    use crate::pool::Pool;
    use crate::switch::Switch;

    /// Two workers with two ports each, both driven by this thread.
    fn pair() -> Vec<Switch<MemoryPorts>> {
        let mut config = Config {
            port: (0..4).map(|port| PortSpec::new(&format!("p{port}"))).collect(),
            ..Config::default()
        };
        config.switch.cores = vec![0, 1];
        config.switch.memory = Bytes::new(4 << 20);
        let pools = Pool::new(config.switch.memory, config.switch.mtu, Hugepages::Off, 2).unwrap();
        let wakeups: Vec<_> = (0..2).map(|_| Arc::new(Wakeup::new().unwrap())).collect();
        let lanes = Lanes::between(&wakeups, &[0, 1, 0, 1]);
        let workers = pools.into_iter().zip(lanes).enumerate();
        workers
            .map(|(number, (pool, lanes))| {
                let ports = MemoryPorts::new(pool, 4);
                let mut switch = Switch::for_worker(config.clone(), ports, number).unwrap();
                switch.lanes = Some(lanes);
                switch
            })
            .collect()
    }

    fn frame(from: u8, to: u8, number: u8) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5, number];
        frame.resize(60, 0);
        frame
    }

    #[test]
    fn frames_pass_between_workers_in_order_and_memory_comes_home() {
        let mut workers = pair();
        let mut now = Instant::START + Duration::from_millis(1);
        let mut rounds = |workers: &mut Vec<Switch<MemoryPorts>>, count: u32| {
            for _ in 0..count {
                now = now + Duration::from_micros(1);
                for worker in workers.iter_mut() {
                    worker.poll(now, true);
                }
            }
        };
        // Station 1 is behind port 1, the other worker's; a frame of its own makes it known to both.
        workers[1].driver_mut().inject(1, &frame(1, 99, 0));
        rounds(&mut workers, 4);
        for (worker, port) in [(0, 0), (0, 2), (1, 3)] {
            assert_eq!(
                workers[worker].driver_mut().take(port),
                Some(frame(1, 99, 0)),
                "flooded to port {port}"
            );
        }
        for number in 0..200u8 {
            workers[0].driver_mut().inject(0, &frame(10, 1, number));
            workers[0].driver_mut().inject(2, &frame(12, 1, number));
            if number % 7 == 0 {
                rounds(&mut workers, 1);
            }
        }
        rounds(&mut workers, 40);
        let mut next = [0u8; 2];
        while let Some(out) = workers[1].driver_mut().take(1) {
            let source = usize::from(out[11] == 12);
            assert_eq!(out[14], next[source], "a flow was reordered");
            next[source] += 1;
        }
        assert_eq!(next, [200, 200]);
        for (worker, port) in [(0, 0), (0, 2), (1, 3)] {
            assert_eq!(
                workers[worker].driver_mut().take(port),
                None,
                "a known station was flooded to {port}"
            );
        }
        rounds(&mut workers, 40);
        for worker in &workers {
            let pool = worker.driver().pool();
            assert_eq!(pool.free_len(), pool.share_len(), "memory did not come home");
        }
        let mut all = workers[0].snapshot(false);
        all.merge(workers[1].snapshot(false));
        assert_eq!((all.drops(), all.ports.len()), (0, 4));
        assert_eq!(all.ports[1].sent.frames, 400);
    }

    #[test]
    fn a_loop_through_two_workers_starts_no_storm() {
        let mut workers = pair();
        let mut now = Instant::START + Duration::from_millis(1);
        let mut broadcast = frame(10, 0, 0);
        broadcast[..6].copy_from_slice(&[0xff; 6]);
        workers[0].driver_mut().inject(0, &broadcast);
        let mut looped = 0;
        for _ in 0..50 {
            now = now + Duration::from_micros(10);
            for worker in &mut workers {
                worker.poll(now, true);
            }
            // Ports 1 and 2, of different workers, are the ends of one cable.
            for (from, to) in [(1, 2), (2, 1)] {
                while let Some(frame) = workers[from % 2].driver_mut().take(from) {
                    looped += 1;
                    workers[to % 2].driver_mut().inject(to, &frame);
                }
            }
        }
        assert_eq!(looped, 2, "the broadcast goes round");
    }
}
