//! SIRD without I/O: receivers grant credit in bytes for messages (Prasopoulos et al., NSDI 2025), in the tradition of
//! Homa (Montazeri et al., SIGCOMM 2018). Inputs are packets and times, outputs are packets.
//!
//! A sender sends a message up to a threshold at once. For a larger one it requests credit, and sends as much as it has
//! credit for. A receiver's outstanding credit never exceeds its bucket B (§4.1). Its credit for one sender never exceeds
//! that sender's bucket, which follows the marks of the network and of the sender (§4.2, §4.3). Credit returns with the
//! data. The next credit goes to the message with the fewest remaining bytes, or to the senders in turn.
//!
//! The messages between two hosts form a stream and are delivered in order. A receiver requests overdue data again. A
//! sender without an answer asks about its oldest message.

mod bucket;
mod config;
mod counters;
mod incoming;
mod packet;

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Bytes, Ratio};

use bucket::{Bounds, SenderBucket};
use incoming::{InMessage, InStream, ReceivingHost};

pub use config::{AccessLink, CreditPolicy, SirdConfig};
pub use counters::{SirdCounters, SirdEndCounters};
pub use packet::SirdPacket;

/// The most gaps that a receiver requests again at once.
const RESENDS_MAX: usize = 64;
/// The most doublings of a timeout while nothing arrives.
const BACKOFF_MAX: u32 = 6;

/// The stream that one end of a connection sends.
#[derive(Debug, Default)]
struct OutStream {
    /// End of the written data.
    written: u64,
    /// Offset of the first byte that was never sent.
    sent: u64,
    /// Offset up to which scheduled messages may be sent.
    credited: u64,
    /// Offset below which the receiver has acknowledged all bytes.
    arrived: u64,
    /// Messages that are not acknowledged as a whole, in order.
    messages: VecDeque<OutMessage>,
    /// Number of messages, from the back, without a request for credit.
    unrequested: usize,
    /// Ranges to send again.
    resend: VecDeque<(u64, u64)>,
    deadline: Option<u64>,
    backoff: u32,
    segments: u64,
    retransmits: u64,
}

#[derive(Clone, Copy, Debug)]
struct OutMessage {
    start: u64,
    end: u64,
    scheduled: bool,
}

/// One end of a connection.
#[derive(Debug)]
struct SirdEnd {
    outgoing: OutStream,
    incoming: InStream,
    /// Control packets to send.
    control: VecDeque<SirdPacket>,
    /// Index of its host.
    receiver: u32,
    /// Backlog of its own link, in picoseconds, above which the end reports congestion.
    congested_after: u64,
    /// The largest message that is sent without credit, in bytes.
    unscheduled: u64,
}

/// The transport of all hosts. `index` is the number of an end: connection `k` has the ends `2 k` and `2 k + 1`. Times
/// are in picoseconds.
#[derive(Debug)]
pub struct Sird {
    ends: Vec<SirdEnd>,
    receivers: Vec<ReceivingHost>,
    policy: CreditPolicy,
    mss: u32,
    timeout: u64,
    /// Ends with control packets to send.
    touched: Vec<u32>,
    /// The counters of all hosts.
    pub counters: SirdCounters,
}

impl Sird {
    /// Makes the transport. `wires` has the host and the link of each end, in the order of the ends.
    ///
    /// # Panics
    /// If a connection lacks one of its two ends.
    pub fn new(config: &SirdConfig, wires: &[AccessLink]) -> Self {
        let mss = u32::from(config.mss);
        let mut nodes: Vec<u32> = wires.iter().map(|wire| wire.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let place = |node: u32| nodes.binary_search(&node).expect("every node is listed");
        // A receiver's BDP: its link's rate times the longest round-trip time to it.
        let mut bdp = vec![0_u64; nodes.len()];
        for wire in wires {
            let bytes = wire.rate.bytes_in(wire.rtt).get();
            let known = &mut bdp[place(wire.node)];
            *known = (*known).max(bytes);
        }
        let of = |share: Ratio, bytes: u64| share.of_bytes(Bytes::new(bytes)).get();
        let least = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX).max(mss);
        let receivers: Vec<ReceivingHost> = bdp
            .iter()
            .map(|&bdp| ReceivingHost {
                bucket: least(of(config.bucket, bdp)),
                outstanding: 0,
                waiting: VecDeque::new(),
                asked: 0,
                turns: 0,
                bounds: Bounds {
                    step: mss,
                    most: least(of(config.sender_bucket, bdp)),
                    gain: config.gain.get() as u32,
                },
            })
            .collect();
        let end = |(index, wire): (usize, &AccessLink)| {
            // This end sends to the host of the other end.
            let peer = bdp[place(wires[index ^ 1].node)];
            let receiver = place(wire.node);
            let backlog = Bytes::new(of(config.sender_threshold, peer));
            SirdEnd {
                outgoing: OutStream::default(),
                incoming: InStream {
                    delivered: 0,
                    ranges: Vec::new(),
                    expected: 0,
                    uncredited: VecDeque::new(),
                    outstanding: 0,
                    bucket: SenderBucket::new(&receivers[receiver].bounds),
                    place: None,
                    deadline: None,
                    backoff: 0,
                    timeouts: 0,
                },
                control: VecDeque::new(),
                receiver: receiver as u32,
                congested_after: wire.rate.time_to_send(backlog).get(),
                unscheduled: of(config.unscheduled, peer),
            }
        };
        let ends = wires.iter().enumerate().map(end).collect();
        Self {
            ends,
            receivers,
            policy: config.policy,
            mss,
            timeout: config.timeout.get(),
            touched: Vec::new(),
            counters: SirdCounters::default(),
        }
    }

    /// Returns the largest bucket of a receiver in bytes.
    pub fn bucket_max(&self) -> u32 {
        self.receivers.iter().map(|receiver| receiver.bucket).max().unwrap_or(0)
    }

    /// Queues a message of `bytes` bytes; returns the stream offset after its last byte.
    pub fn write_message(&mut self, index: u32, bytes: u64) -> u64 {
        let end = &mut self.ends[index as usize];
        let out = &mut end.outgoing;
        let start = out.written;
        out.written += bytes;
        out.messages.push_back(OutMessage { start, end: out.written, scheduled: bytes > end.unscheduled });
        out.unrequested += 1;
        out.written
    }

    /// Returns the next packet of an end; `None` if the end may send nothing now. `now`, and the time `backlog` for which the
    /// end's link is busy, are in picoseconds.
    pub fn poll_transmit(&mut self, index: u32, now: u64, backlog: u64) -> Option<SirdPacket> {
        let end = &mut self.ends[index as usize];
        if let Some(packet) = end.control.pop_front() {
            return Some(packet);
        }
        let out = &mut end.outgoing;
        let wait = (2 * self.timeout) << out.backoff;
        while out.unrequested > 0 {
            let message = out.messages[out.messages.len() - out.unrequested];
            out.unrequested -= 1;
            out.deadline = Some(now + wait);
            if message.scheduled {
                let OutMessage { start, end, scheduled } = message;
                self.counters.requests += 1;
                return Some(SirdPacket::Request { start, end, scheduled });
            }
        }
        let is_copy = !out.resend.is_empty();
        let (offset, until, message) = if let Some(range) = out.resend.front_mut() {
            // Messages that were acknowledged meanwhile need not be sent again.
            range.0 = range.0.max(out.messages.front().map_or(range.1, |message| message.start));
            let Some(&message) = out.messages.iter().find(|message| message.end > range.0) else {
                out.resend.clear();
                return self.poll_transmit(index, now, backlog);
            };
            if range.0 >= range.1 {
                out.resend.pop_front();
                return self.poll_transmit(index, now, backlog);
            }
            let offset = range.0;
            let until = range.1.min(message.end).min(offset + u64::from(self.mss));
            range.0 = until;
            if range.0 >= range.1 {
                out.resend.pop_front();
            }
            (offset, until, message)
        } else {
            let sent = out.sent;
            let message = *out.messages.iter().find(|message| message.end > sent)?;
            let limit = if message.scheduled { out.credited.min(message.end) } else { message.end };
            let until = limit.min(sent + u64::from(self.mss));
            if until <= sent {
                return None;
            }
            out.sent = until;
            (sent, until, message)
        };
        out.deadline = Some(now + wait);
        let congested = backlog > end.congested_after;
        out.segments += 1;
        self.counters.packets += 1;
        self.counters.congested += u64::from(congested);
        if is_copy {
            out.retransmits += 1;
            self.counters.retransmits += 1;
        } else if !message.scheduled {
            self.counters.unscheduled_bytes += until - offset;
        }
        let OutMessage { end: message_end, scheduled, .. } = message;
        Some(SirdPacket::Data { start: offset, end: until, message_end, scheduled, congested, is_copy })
    }

    /// Returns an end that a packet or a deadline gave control packets to send, each such end at least once. `None` if
    /// there is none.
    pub fn poll_touched(&mut self) -> Option<u32> {
        self.touched.pop()
    }

    /// Handles a packet that arrives at `now`, in picoseconds. A switch may have marked it. Afterwards [`poll_touched`](Self::poll_touched) returns the ends
    /// with control packets to send.
    pub fn handle_packet(&mut self, index: u32, now: u64, packet: SirdPacket, marked: bool) {
        match packet {
            SirdPacket::Data { start, end, message_end, scheduled, congested, .. } => {
                self.handle_data(index, now, [start, end, message_end], scheduled, [marked, congested]);
            }
            SirdPacket::Request { start, end, scheduled } => {
                self.handle_request(index, now, [start, end], scheduled);
            }
            SirdPacket::Credit { until } => {
                let out = &mut self.ends[index as usize].outgoing;
                out.credited = out.credited.max(until);
                out.backoff = 0;
            }
            SirdPacket::Resend { start, end } => {
                let out = &mut self.ends[index as usize].outgoing;
                // The receiver does not count bytes without credit as missing.
                out.credited = out.credited.max(end);
                out.backoff = 0;
                let range = (start, end.min(out.sent));
                let is_known = out.resend.iter().any(|known| known.0 <= range.0 && known.1 >= range.1);
                if range.0 < range.1 && !is_known {
                    out.resend.push_back(range);
                }
            }
            SirdPacket::Arrived { until } => {
                let out = &mut self.ends[index as usize].outgoing;
                out.arrived = out.arrived.max(until);
                out.backoff = 0;
                while out.messages.front().is_some_and(|message| message.end <= until) {
                    out.messages.pop_front();
                }
                if out.messages.is_empty() {
                    out.deadline = None;
                }
            }
        }
    }

    fn handle_data(
        &mut self,
        index: u32,
        now: u64,
        [offset, until, message_end]: [u64; 3],
        scheduled: bool,
        [marked, congested]: [bool; 2],
    ) {
        let end = &mut self.ends[index as usize];
        let receiver = &mut self.receivers[end.receiver as usize];
        let incoming = &mut end.incoming;
        let new = incoming.cover(offset, until) as u32;
        if scheduled {
            // Credit comes back with the data.
            incoming.outstanding -= new;
            receiver.outstanding -= new;
            self.counters.credit_returned += u64::from(new);
            incoming.bucket.note((until - offset) as u32, marked, congested, &receiver.bounds);
        } else {
            incoming.expected = incoming.expected.max(message_end);
        }
        if new > 0 {
            incoming.backoff = 0;
        }
        incoming.deadline = (incoming.delivered < incoming.expected).then_some(now + self.timeout);
        if incoming.delivered >= message_end {
            self.acknowledge(index);
        }
        self.reconsider(index);
        self.give(index, now);
    }

    fn handle_request(&mut self, index: u32, now: u64, [start, until]: [u64; 2], scheduled: bool) {
        let end = &mut self.ends[index as usize];
        let incoming = &mut end.incoming;
        if until <= incoming.delivered {
            self.acknowledge(index);
        } else if !scheduled {
            // The data were sent, and have not arrived.
            incoming.expected = incoming.expected.max(until);
            self.miss(index, now);
        } else if start < incoming.expected
            && !incoming.uncredited.iter().any(|message| message.start == start)
        {
            // All credit of the message was granted. This packet replaces the last credit packet, if that was lost.
            end.control.push_back(SirdPacket::Credit { until: incoming.expected });
            self.counters.credits += 1;
            self.touched.push(index);
        } else if let Some(message) = incoming.uncredited.iter().find(|message| message.start == start) {
            if message.credited > start {
                end.control.push_back(SirdPacket::Credit { until: message.credited });
                self.counters.credits += 1;
                self.touched.push(index);
            }
        } else {
            let receiver = &mut self.receivers[end.receiver as usize];
            receiver.asked += 1;
            let message = InMessage { start, end: until, credited: start, number: receiver.asked };
            let place = incoming.uncredited.partition_point(|message| message.start < start);
            incoming.uncredited.insert(place, message);
        }
        self.reconsider(index);
        self.give(index, now);
    }

    /// Acknowledges all bytes that have arrived without a gap.
    fn acknowledge(&mut self, index: u32) {
        let end = &mut self.ends[index as usize];
        let packet = SirdPacket::Arrived { until: end.incoming.delivered };
        match end.control.back_mut() {
            Some(last @ SirdPacket::Arrived { .. }) => *last = packet,
            _ => {
                end.control.push_back(packet);
                self.counters.acknowledgements += 1;
                self.touched.push(index);
            }
        }
    }

    /// Requests all overdue bytes, and sets the next timeout.
    fn miss(&mut self, index: u32, now: u64) {
        let end = &mut self.ends[index as usize];
        let incoming = &mut end.incoming;
        for (start, until) in incoming.gaps().take(RESENDS_MAX) {
            end.control.push_back(SirdPacket::Resend { start, end: until });
            self.counters.resends += 1;
        }
        incoming.deadline = Some(now + (self.timeout << incoming.backoff));
        self.touched.push(index);
    }

    /// Updates an end's place in the queue of the ends that wait for credit.
    fn reconsider(&mut self, index: u32) {
        let end = &mut self.ends[index as usize];
        let receiver = &mut self.receivers[end.receiver as usize];
        let incoming = &mut end.incoming;
        let place = incoming.uncredited.front().and_then(|message| {
            // All messages before it must be announced, so that one offset describes the credit.
            (message.start <= incoming.expected).then(|| match self.policy {
                CreditPolicy::SmallestRemaining => (message.end - message.credited, message.number),
                CreditPolicy::RoundRobin => {
                    (incoming.place.map_or(receiver.turns, |place| place.0), message.number)
                }
            })
        });
        if place == incoming.place {
            return;
        }
        receiver.move_sender(index, incoming.place, place);
        incoming.place = place;
    }

    /// Grants the credit of an end's host to waiting ends, in their order, until the credit is used up.
    fn give(&mut self, index: u32, now: u64) {
        let place = self.ends[index as usize].receiver as usize;
        loop {
            let receiver = &mut self.receivers[place];
            let room = receiver.bucket - receiver.outstanding;
            // The smallest grant exceeds the remaining credit.
            if self.policy == CreditPolicy::SmallestRemaining
                && receiver
                    .waiting
                    .front()
                    .is_none_or(|&(remaining, ..)| remaining.min(u64::from(self.mss)) > u64::from(room))
            {
                return;
            }
            let (ends, mss) = (&self.ends, self.mss);
            let next = receiver.waiting.iter().find_map(|&(_, _, index)| {
                let incoming = &ends[index as usize].incoming;
                let message = incoming.uncredited.front()?;
                let bytes = (message.end - message.credited).min(u64::from(mss)) as u32;
                (incoming.outstanding + bytes <= incoming.bucket.bytes()).then_some((index, bytes))
            });
            let Some((index, bytes)) = next else { return };
            if bytes > room {
                return;
            }
            let end = &mut self.ends[index as usize];
            let incoming = &mut end.incoming;
            let message = incoming.uncredited.front_mut().expect("it wants credit");
            message.credited += u64::from(bytes);
            let until = message.credited;
            if message.credited == message.end {
                incoming.uncredited.pop_front();
            }
            incoming.expected = incoming.expected.max(until);
            incoming.deadline.get_or_insert(now + self.timeout);
            incoming.outstanding += bytes;
            receiver.outstanding += bytes;
            self.counters.outstanding_max = self.counters.outstanding_max.max(receiver.outstanding);
            self.counters.credit_bytes += u64::from(bytes);
            if let Some(SirdPacket::Credit { until: last }) = end.control.back_mut() {
                *last = until;
            } else {
                end.control.push_back(SirdPacket::Credit { until });
                self.counters.credits += 1;
                self.touched.push(index);
            }
            if self.policy == CreditPolicy::RoundRobin {
                // The sender goes behind all others.
                receiver.turns += 1;
                receiver.move_sender(index, incoming.place.take(), None);
            }
            self.reconsider(index);
        }
    }

    /// Returns the time of an end's next timeout, in picoseconds; `u64::MAX` without one.
    #[inline]
    pub fn poll_deadline(&self, index: u32) -> u64 {
        let end = &self.ends[index as usize];
        let incoming = end.incoming.deadline.unwrap_or(u64::MAX);
        incoming.min(end.outgoing.deadline.unwrap_or(u64::MAX))
    }

    /// Handles the timeouts of an end that are due at `now`, in picoseconds. Returns true if data did not arrive in time.
    pub fn handle_deadline(&mut self, index: u32, now: u64) -> bool {
        let end = &mut self.ends[index as usize];
        let has_missed = end.incoming.deadline.is_some_and(|deadline| deadline <= now);
        let out = &mut end.outgoing;
        if out.deadline.is_some_and(|deadline| deadline <= now) {
            out.backoff = (out.backoff + 1).min(BACKOFF_MAX);
            out.deadline = Some(now + ((2 * self.timeout) << out.backoff));
            if let Some(&OutMessage { start, end: until, scheduled }) = out.messages.front() {
                end.control.push_back(SirdPacket::Request { start, end: until, scheduled });
                self.counters.requests += 1;
            } else {
                out.deadline = None;
            }
        }
        if has_missed {
            let incoming = &mut end.incoming;
            incoming.backoff = (incoming.backoff + 1).min(BACKOFF_MAX);
            incoming.timeouts += 1;
            self.counters.timeouts += 1;
            self.miss(index, now);
        }
        has_missed
    }

    /// Returns the number of bytes that an end has received without a gap.
    #[inline]
    pub fn delivered_bytes(&self, index: u32) -> u64 {
        self.ends[index as usize].incoming.delivered
    }

    /// Returns the counters of an end.
    pub fn end_counters(&self, index: u32) -> SirdEndCounters {
        let out = &self.ends[index as usize].outgoing;
        let timeouts = self.ends[index as usize ^ 1].incoming.timeouts;
        let OutStream { segments: packets, retransmits, arrived: arrived_bytes, .. } = *out;
        SirdEndCounters { packets, retransmits, timeouts, arrived_bytes }
    }

    /// Asserts that no credit was lost or invented.
    ///
    /// # Panics
    /// If credit was lost or invented.
    pub fn assert_conserved(&self) {
        let mut outstanding = vec![0_u64; self.receivers.len()];
        for end in &self.ends {
            outstanding[end.receiver as usize] += u64::from(end.incoming.outstanding);
        }
        for (receiver, sum) in self.receivers.iter().zip(&outstanding) {
            assert_eq!(*sum, u64::from(receiver.outstanding), "credit is unaccounted for");
            assert!(receiver.outstanding <= receiver.bucket, "more credit than the bucket holds");
        }
        let outstanding: u64 = outstanding.iter().sum();
        let counters = &self.counters;
        assert_eq!(
            counters.credit_bytes,
            counters.credit_returned + outstanding,
            "credit was lost or invented"
        );
        for (index, end) in self.ends.iter().enumerate() {
            let delivered = self.ends[index ^ 1].incoming.delivered;
            assert!(delivered <= end.outgoing.written, "more was delivered than written");
            assert!(end.outgoing.arrived <= delivered, "more was acknowledged than delivered");
        }
    }
}
