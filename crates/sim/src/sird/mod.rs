//! SIRD: receivers hand out credit in bytes for messages (Prasopoulos et al., NSDI 2025), in the tradition of Homa
//! (Montazeri et al., SIGCOMM 2018).
//!
//! A message up to a threshold goes at once. For a larger one the sender asks, and sends what it has credit for. A
//! receiver never has more credit outstanding than its bucket B (§4.1), nor more for one sender than that sender's bucket,
//! which follows marks of the network and of the sender (§4.2, §4.3). Credit comes back with the data. It goes to the
//! message of which the least is left, or to the senders in turn.
//!
//! Messages between two hosts form a stream and are handed over in order. What was expected and has not come for a
//! while is asked for again; a sender that hears nothing asks about its oldest message.
//!
//! This is the transport alone, without I/O: packets come and go through the event loop (`world/messages.rs`).

mod bucket;
mod packet;

use std::collections::VecDeque;

use fanin_scenario::{CreditPolicy, Sird as Settings};
use fanin_units::{Bytes, Duration, Rate, Ratio};

use bucket::{Bounds, SenderBucket};
use packet::Packet;

use crate::index::EndIndex;
use crate::prefetch::prefetch;
use fanin_tcp::{Flags, Segment, Stats};

/// Gaps that are asked for at a time.
const RESENDS_MAX: usize = 64;
/// Waiting times double up to so many times while nothing comes.
const BACKOFF_MAX: u32 = 6;

/// What one end of a connection sends.
#[derive(Default)]
struct Outgoing {
    /// End of all that was written.
    written: u64,
    /// The first byte that was never sent.
    sent: u64,
    /// Scheduled messages may be sent up to here.
    credited: u64,
    /// All below has arrived, as the receiver says.
    arrived: u64,
    /// Not known to have arrived as a whole, in order.
    messages: VecDeque<OutMessage>,
    /// How many of them, from the back, have not been asked for.
    unasked: usize,
    /// To be sent again.
    resend: VecDeque<(u64, u64)>,
    deadline: Option<u64>,
    backoff: u32,
    segments: u64,
    retransmits: u64,
}

#[derive(Clone, Copy)]
struct OutMessage {
    start: u64,
    end: u64,
    scheduled: bool,
}

/// What one end of a connection receives.
struct Incoming {
    /// All below has arrived.
    delivered: u64,
    /// What has arrived beyond, in order.
    islands: Vec<(u64, u64)>,
    /// All below has been sent, or may be: it should arrive.
    expected: u64,
    /// Scheduled messages without all of their credit, in order.
    wanting: VecDeque<InMessage>,
    /// Bytes of credit that have not come back as data.
    outstanding: u32,
    bucket: SenderBucket,
    /// Its place among the receiver's senders, while it could have credit.
    place: Option<(u64, u64)>,
    deadline: Option<u64>,
    backoff: u32,
    timeouts: u64,
}

#[derive(Clone, Copy)]
struct InMessage {
    start: u64,
    end: u64,
    /// Bytes up to here have credit.
    credited: u64,
    /// The how-manieth message that asked this receiver.
    number: u64,
}

/// One end of a connection.
struct End {
    outgoing: Outgoing,
    incoming: Incoming,
    /// Answers to the other end that wait to be sent.
    control: VecDeque<Packet>,
    /// The receiver that it belongs to.
    receiver: u32,
    /// A backlog of its own link that lasts longer is told, in picoseconds.
    congested_after: u64,
    /// Messages up to so many bytes go at once.
    unscheduled: u64,
}

/// A host that receives.
struct Receiver {
    /// B.
    bucket: u32,
    outstanding: u32,
    /// Senders that could have credit, the next one first. Nearly all that happens is at one of the ends: a tree took a
    /// tenth of an incast's time.
    waiting: VecDeque<(u64, u64, EndIndex)>,
    /// Messages that have asked, and turns given.
    asked: u64,
    turns: u64,
    bounds: Bounds,
}

/// What it has come to.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct SirdCounters {
    /// Control packets by kind: requests for credit, credit, "send again", "has arrived".
    pub(crate) requests: u64,
    pub(crate) credits: u64,
    pub(crate) resends: u64,
    pub(crate) acknowledgements: u64,
    /// Bytes of credit that were given.
    pub(crate) credit_bytes: u64,
    /// Payload sent without credit.
    pub(crate) unscheduled_bytes: u64,
    /// Data packets, and those that told of a congested sender.
    pub(crate) packets: u64,
    pub(crate) congested: u64,
    /// Times that a receiver had waited in vain.
    pub(crate) timeouts: u64,
    /// Data packets sent again.
    pub(crate) retransmits: u64,
    /// The most credit that a receiver had outstanding, in bytes.
    pub(crate) outstanding_max: u32,
}

/// What is known of an end from the network: what its host is, and the links beside it.
pub(crate) struct Wire {
    /// The host that it stands at.
    pub(crate) node: u32,
    /// A full frame to it and a smallest one back, on idle links.
    pub(crate) rtt: Duration,
    /// Its link's rate.
    pub(crate) rate: Rate,
}

/// The transport of all hosts.
pub(crate) struct Sird {
    ends: Vec<End>,
    receivers: Vec<Receiver>,
    policy: CreditPolicy,
    mss: u32,
    flags: Flags,
    timeout: u64,
    /// Ends whose control packets are to be sent.
    pub(crate) touched: Vec<EndIndex>,
    pub(crate) counters: SirdCounters,
}

impl Sird {
    /// `wires` are those of all ends, in order: each connection has two that follow one another.
    pub(crate) fn new(settings: &Settings, mss: u32, timestamps: bool, wires: &[Wire]) -> Self {
        let mut nodes: Vec<u32> = wires.iter().map(|wire| wire.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let place = |node: u32| nodes.binary_search(&node).expect("every node is listed");
        // A receiver's BDP: its link's rate times the longest way to it and back.
        let mut bdp = vec![0_u64; nodes.len()];
        for wire in wires {
            let bytes = wire.rate.bytes_in(wire.rtt).get();
            let known = &mut bdp[place(wire.node)];
            *known = (*known).max(bytes);
        }
        let of = |share: Ratio, bytes: u64| share.of_bytes(Bytes::new(bytes)).get();
        let least = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX).max(mss);
        let receivers: Vec<Receiver> = bdp
            .iter()
            .map(|&bdp| Receiver {
                bucket: least(of(settings.bucket, bdp)),
                outstanding: 0,
                waiting: VecDeque::new(),
                asked: 0,
                turns: 0,
                bounds: Bounds {
                    step: mss,
                    most: least(of(settings.sender_bucket, bdp)),
                    gain: settings.gain.get() as u32,
                },
            })
            .collect();
        let end = |(index, wire): (usize, &Wire)| {
            // The receiver of what this end sends is at the other one.
            let peer = bdp[place(wires[index ^ 1].node)];
            let receiver = place(wire.node);
            let backlog = Bytes::new(of(settings.sender_threshold, peer));
            End {
                outgoing: Outgoing::default(),
                incoming: Incoming {
                    delivered: 0,
                    islands: Vec::new(),
                    expected: 0,
                    wanting: VecDeque::new(),
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
                unscheduled: of(settings.unscheduled, peer),
            }
        };
        let ends = wires.iter().enumerate().map(end).collect();
        let flags = if timestamps { Flags::TIMESTAMP } else { Flags::NONE };
        Self {
            ends,
            receivers,
            policy: settings.policy,
            mss,
            flags,
            timeout: settings.timeout.get(),
            touched: Vec::new(),
            counters: SirdCounters::default(),
        }
    }

    /// The largest bucket of a receiver in bytes.
    pub(crate) fn bucket_max(&self) -> u32 {
        self.receivers.iter().map(|receiver| receiver.bucket).max().unwrap_or(0)
    }

    /// A message of so many bytes is to be sent; returns where in the stream it ends.
    pub(crate) fn write(&mut self, index: EndIndex, bytes: u64) -> u64 {
        let end = &mut self.ends[index as usize];
        let out = &mut end.outgoing;
        let start = out.written;
        out.written += bytes;
        out.messages.push_back(OutMessage { start, end: out.written, scheduled: bytes > end.unscheduled });
        out.unasked += 1;
        out.written
    }

    /// Writes the next packet that an end has to send, if there is one, where it will stay; `backlog` is how long its link is
    /// busy with others, in picoseconds.
    pub(crate) fn write_transmit(
        &mut self,
        index: EndIndex,
        now: u64,
        backlog: u64,
        to: &mut Segment,
    ) -> bool {
        let end = &mut self.ends[index as usize];
        if let Some(packet) = end.control.pop_front() {
            *to = packet.segment(0, self.flags);
            return true;
        }
        let out = &mut end.outgoing;
        let wait = (2 * self.timeout) << out.backoff;
        while out.unasked > 0 {
            let message = out.messages[out.messages.len() - out.unasked];
            out.unasked -= 1;
            out.deadline = Some(now + wait);
            if message.scheduled {
                let OutMessage { start, end, scheduled } = message;
                self.counters.requests += 1;
                *to = Packet::Request { start, end, scheduled }.segment(0, self.flags);
                return true;
            }
        }
        let is_copy = !out.resend.is_empty();
        let (offset, until, message) = if let Some(range) = out.resend.front_mut() {
            // What has arrived meanwhile is known no more, and is not needed.
            range.0 = range.0.max(out.messages.front().map_or(range.1, |message| message.start));
            let Some(&message) = out.messages.iter().find(|message| message.end > range.0) else {
                out.resend.clear();
                return self.write_transmit(index, now, backlog, to);
            };
            if range.0 >= range.1 {
                out.resend.pop_front();
                return self.write_transmit(index, now, backlog, to);
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
            let Some(&message) = out.messages.iter().find(|message| message.end > sent) else { return false };
            let limit = if message.scheduled { out.credited.min(message.end) } else { message.end };
            let until = limit.min(sent + u64::from(self.mss));
            if until <= sent {
                return false;
            }
            out.sent = until;
            (sent, until, message)
        };
        out.deadline = Some(now + wait);
        let payload = (until - offset) as u16;
        let congested = backlog > end.congested_after;
        out.segments += 1;
        self.counters.packets += 1;
        self.counters.congested += u64::from(congested);
        if is_copy {
            out.retransmits += 1;
            self.counters.retransmits += 1;
        } else if !message.scheduled {
            self.counters.unscheduled_bytes += u64::from(payload);
        }
        let copy = if is_copy { Flags::RETRANSMISSION } else { Flags::NONE };
        let packet =
            Packet::Data { offset, message_end: message.end, scheduled: message.scheduled, congested };
        *to = packet.segment(payload, self.flags | Flags::ECT | copy);
        true
    }

    /// A packet has come. Ends that have something to say then stand in `touched`.
    pub(crate) fn handle_segment(&mut self, index: EndIndex, now: u64, segment: &Segment) {
        match Packet::of(segment) {
            Packet::Data { offset, message_end, scheduled, congested } => {
                let until = offset + u64::from(segment.payload);
                let marked = segment.flags.contains(Flags::CE);
                self.handle_data(index, now, [offset, until, message_end], scheduled, [marked, congested]);
            }
            Packet::Request { start, end, scheduled } => {
                self.handle_request(index, now, [start, end], scheduled);
            }
            Packet::Credit { until } => {
                let out = &mut self.ends[index as usize].outgoing;
                out.credited = out.credited.max(until);
                out.backoff = 0;
            }
            Packet::Resend { start, end } => {
                let out = &mut self.ends[index as usize].outgoing;
                // The receiver would not miss what it has not given credit for.
                out.credited = out.credited.max(end);
                out.backoff = 0;
                let range = (start, end.min(out.sent));
                let is_known = out.resend.iter().any(|known| known.0 <= range.0 && known.1 >= range.1);
                if range.0 < range.1 && !is_known {
                    out.resend.push_back(range);
                }
            }
            Packet::Arrived { until } => {
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
        index: EndIndex,
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

    fn handle_request(&mut self, index: EndIndex, now: u64, [start, until]: [u64; 2], scheduled: bool) {
        let end = &mut self.ends[index as usize];
        let incoming = &mut end.incoming;
        if until <= incoming.delivered {
            self.acknowledge(index);
        } else if !scheduled {
            // It was sent, and here it is not.
            incoming.expected = incoming.expected.max(until);
            self.miss(index, now);
        } else if start < incoming.expected && !incoming.wanting.iter().any(|message| message.start == start)
        {
            // All of its credit was given; if the last of it was lost, this replaces it.
            end.control.push_back(Packet::Credit { until: incoming.expected });
            self.counters.credits += 1;
            self.touched.push(index);
        } else if let Some(message) = incoming.wanting.iter().find(|message| message.start == start) {
            if message.credited > start {
                end.control.push_back(Packet::Credit { until: message.credited });
                self.counters.credits += 1;
                self.touched.push(index);
            }
        } else {
            let receiver = &mut self.receivers[end.receiver as usize];
            receiver.asked += 1;
            let message = InMessage { start, end: until, credited: start, number: receiver.asked };
            let place = incoming.wanting.partition_point(|message| message.start < start);
            incoming.wanting.insert(place, message);
        }
        self.reconsider(index);
        self.give(index, now);
    }

    /// Says that all of a message is here.
    fn acknowledge(&mut self, index: EndIndex) {
        let end = &mut self.ends[index as usize];
        let packet = Packet::Arrived { until: end.incoming.delivered };
        match end.control.back_mut() {
            Some(last @ Packet::Arrived { .. }) => *last = packet,
            _ => {
                end.control.push_back(packet);
                self.counters.acknowledgements += 1;
                self.touched.push(index);
            }
        }
    }

    /// Asks for all that should have come, and waits.
    fn miss(&mut self, index: EndIndex, now: u64) {
        let end = &mut self.ends[index as usize];
        let incoming = &mut end.incoming;
        for (start, until) in incoming.gaps().take(RESENDS_MAX) {
            end.control.push_back(Packet::Resend { start, end: until });
            self.counters.resends += 1;
        }
        incoming.deadline = Some(now + (self.timeout << incoming.backoff));
        self.touched.push(index);
    }

    /// Puts an end in its place among those that could have credit, or takes it away.
    fn reconsider(&mut self, index: EndIndex) {
        let end = &mut self.ends[index as usize];
        let receiver = &mut self.receivers[end.receiver as usize];
        let incoming = &mut end.incoming;
        let place = incoming.wanting.front().and_then(|message| {
            // What lies before it must be known, so that credit is one offset.
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

    /// Gives credit as long as there is some, to whoever is next, at the receiver of an end.
    fn give(&mut self, index: EndIndex, now: u64) {
        let place = self.ends[index as usize].receiver as usize;
        loop {
            let receiver = &mut self.receivers[place];
            let room = receiver.bucket - receiver.outstanding;
            // Whoever is next, the least that anybody could be given is too much.
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
                let message = incoming.wanting.front()?;
                let bytes = (message.end - message.credited).min(u64::from(mss)) as u32;
                (incoming.outstanding + bytes <= incoming.bucket.bytes()).then_some((index, bytes))
            });
            let Some((index, bytes)) = next else { return };
            if bytes > room {
                return;
            }
            let end = &mut self.ends[index as usize];
            let incoming = &mut end.incoming;
            let message = incoming.wanting.front_mut().expect("it wants credit");
            message.credited += u64::from(bytes);
            let until = message.credited;
            if message.credited == message.end {
                incoming.wanting.pop_front();
            }
            incoming.expected = incoming.expected.max(until);
            incoming.deadline.get_or_insert(now + self.timeout);
            incoming.outstanding += bytes;
            receiver.outstanding += bytes;
            self.counters.outstanding_max = self.counters.outstanding_max.max(receiver.outstanding);
            self.counters.credit_bytes += u64::from(bytes);
            if let Some(Packet::Credit { until: last }) = end.control.back_mut() {
                *last = until;
            } else {
                end.control.push_back(Packet::Credit { until });
                self.counters.credits += 1;
                self.touched.push(index);
            }
            if self.policy == CreditPolicy::RoundRobin {
                // Behind all others.
                receiver.turns += 1;
                receiver.move_sender(index, incoming.place.take(), None);
            }
            self.reconsider(index);
        }
    }

    /// Has what the next packet for an end needs fetched.
    #[inline]
    pub(crate) fn prefetch(&self, index: EndIndex) {
        let end = &self.ends[index as usize];
        prefetch(&end.incoming.delivered);
        prefetch(&end.incoming.deadline);
        prefetch(&end.outgoing.messages);
        prefetch(&end.outgoing.deadline);
    }

    /// Where the next look at an end is due.
    #[inline]
    pub(crate) fn poll_deadline(&self, index: EndIndex) -> u64 {
        let end = &self.ends[index as usize];
        let incoming = end.incoming.deadline.unwrap_or(u64::MAX);
        incoming.min(end.outgoing.deadline.unwrap_or(u64::MAX))
    }

    /// Its time has come. Returns whether this end has waited in vain for data.
    pub(crate) fn handle_deadline(&mut self, index: EndIndex, now: u64) -> bool {
        let end = &mut self.ends[index as usize];
        let has_missed = end.incoming.deadline.is_some_and(|deadline| deadline <= now);
        let out = &mut end.outgoing;
        if out.deadline.is_some_and(|deadline| deadline <= now) {
            out.backoff = (out.backoff + 1).min(BACKOFF_MAX);
            out.deadline = Some(now + ((2 * self.timeout) << out.backoff));
            if let Some(&OutMessage { start, end: until, scheduled }) = out.messages.front() {
                end.control.push_back(Packet::Request { start, end: until, scheduled });
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

    /// Bytes that an end has received without a gap.
    #[inline]
    pub(crate) fn delivered(&self, index: EndIndex) -> u64 {
        self.ends[index as usize].incoming.delivered
    }

    /// Bytes that an end was given to send, and those known to have arrived.
    pub(crate) fn written_and_arrived(&self, index: EndIndex) -> [u64; 2] {
        let out = &self.ends[index as usize].outgoing;
        [out.written, out.arrived]
    }

    /// What an end has counted, in TCP's words; time-outs are those of its receiver.
    pub(crate) fn stats(&self, index: EndIndex) -> Stats {
        let out = &self.ends[index as usize].outgoing;
        let timeouts = self.ends[index as usize ^ 1].incoming.timeouts;
        Stats { segments: out.segments, retransmits: out.retransmits, timeouts, ..Stats::default() }
    }

    /// Asserts that no credit was lost or invented.
    ///
    /// # Panics
    /// If it was.
    pub(crate) fn assert_conserved(&self) {
        for (number, receiver) in self.receivers.iter().enumerate() {
            let own = self.ends.iter().filter(|end| end.receiver as usize == number);
            let sum: u32 = own.map(|end| end.incoming.outstanding).sum();
            assert_eq!(sum, receiver.outstanding, "credit is unaccounted for");
            assert!(receiver.outstanding <= receiver.bucket, "more credit than the bucket holds");
        }
    }
}

impl Receiver {
    /// Moves a sender from one place to another, or in, or out.
    fn move_sender(&mut self, index: EndIndex, from: Option<(u64, u64)>, to: Option<(u64, u64)>) {
        let waiting = &mut self.waiting;
        let find =
            |waiting: &VecDeque<(u64, u64, EndIndex)>, key| waiting.partition_point(|&before| before < key);
        let key = |(first, second): (u64, u64)| (first, second, index);
        let from = from.map(|place| find(waiting, key(place)));
        match (from, to) {
            (Some(from), Some(to)) => {
                let to = key(to);
                let follows = from == 0 || waiting[from - 1] < to;
                if follows && waiting.get(from + 1).is_none_or(|&next| to < next) {
                    waiting[from] = to;
                    return;
                }
                waiting.remove(from);
                waiting.insert(find(waiting, to), to);
            }
            (Some(from), None) => _ = waiting.remove(from),
            (None, Some(to)) => waiting.insert(find(waiting, key(to)), key(to)),
            (None, None) => {}
        }
    }
}

impl Incoming {
    /// Notes that bytes have arrived; returns how many of them are new.
    fn cover(&mut self, start: u64, end: u64) -> u64 {
        if end <= self.delivered {
            return 0;
        }
        let start = start.max(self.delivered);
        if start == self.delivered && self.islands.is_empty() {
            self.delivered = end;
            return end - start;
        }
        let known = |islands: &[(u64, u64)]| -> u64 { islands.iter().map(|(from, to)| to - from).sum() };
        let before = self.delivered + known(&self.islands);
        // Join it with all that it touches.
        let first = self.islands.partition_point(|&(_, to)| to < start);
        let last = self.islands.partition_point(|&(from, _)| from <= end);
        let (mut from, mut to) = (start, end);
        if first < last {
            from = from.min(self.islands[first].0);
            to = to.max(self.islands[last - 1].1);
        }
        self.islands.splice(first..last, [(from, to)]);
        if self.islands[0].0 <= self.delivered {
            self.delivered = self.islands.remove(0).1;
        }
        self.delivered + known(&self.islands) - before
    }

    /// What is missing of all that should be here.
    fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let starts = std::iter::once(self.delivered).chain(self.islands.iter().map(|island| island.1));
        let ends = self.islands.iter().map(|island| island.0).chain([self.expected]);
        starts.zip(ends).filter(|(start, end)| start < end)
    }
}
