//! The event loop: hosts with their TCP endpoints on a fabric, driven by a workload.

use std::sync::atomic::{AtomicBool, Ordering};

use fanin_network::{Network, PortIndex};
use fanin_units::{Duration, Instant};

use crate::Error;
use crate::capture::Tapped;
use crate::diatcp::{Awaits, Diatcp};
use crate::fabric::{Fabric, Hop, Queue, Step};
use crate::ictcp::Ictcp;
use crate::index::{EndIndex, NIL, peer};
use crate::occurrence::{Occurrence, TechniqueStep};
use crate::pacer::Pacer;
use crate::schedule::Schedule;
use crate::sird::Sird;
use fanin_tcp::{self as tcp, Endpoint, Stats, Written};

mod foresight;
mod messages;
mod steering;

/// How many occurrences pass between two looks at the stop flag: below a tenth of a second even where each takes 6 µs.
const OCCURRENCES_UNWATCHED: u32 = 1 << 14;

/// What the hosts do with their connections.
///
/// Hosts are numbered as the workload likes; the numbers only tell their deadlines apart.
pub(crate) trait Workload {
    /// What travels: messages carry a length on the wire and this.
    type Message;

    /// Sends what is to be sent at the very start.
    fn start(&mut self, now: Instant, outbox: &mut Outbox<Self::Message>);

    /// A whole message has been received at one end of a connection.
    fn handle_message(
        &mut self,
        now: Instant,
        end: EndIndex,
        message: Self::Message,
        outbox: &mut Outbox<Self::Message>,
    );

    /// The deadline of a host has come.
    fn handle_deadline(&mut self, now: Instant, host: u32, outbox: &mut Outbox<Self::Message>);

    /// When a host's next deadline is.
    fn poll_deadline(&mut self, host: u32) -> Instant;

    /// A retransmission timer ran out at the sending end; `messages` are those that are not wholly received.
    fn handle_timeout(
        &mut self,
        now: Instant,
        end: EndIndex,
        messages: &mut dyn Iterator<Item = &Self::Message>,
    );

    /// What a message means for who waits for answers over its connection (DIATCP).
    fn awaits(&self, message: &Self::Message) -> Awaits;

    /// Whether nothing more is to be done.
    fn is_done(&self) -> bool;

    /// Changes with every step forward; a run in which it stands still for long is ended.
    fn progress(&self) -> u64;

    /// Who waits for whom, for a run that does not move.
    fn diagnose(&self) -> String;
}

/// Messages that a workload sends, in order.
pub(crate) struct Outbox<M> {
    messages: Vec<(EndIndex, u64, M)>,
    /// Hosts whose deadline may have changed beside the one that was called.
    hosts: Vec<u32>,
    /// Ends whose host's link is to be tapped, or no longer.
    taps: Vec<(EndIndex, bool)>,
}

impl<M> Outbox<M> {
    /// Sends `message`, `bytes` long, from one end of a connection to the other.
    #[inline]
    pub(crate) fn send(&mut self, end: EndIndex, bytes: u64, message: M) {
        self.messages.push((end, bytes, message));
    }

    /// From now on, or no longer, notes all frames on the link by which this end's host sends.
    pub(crate) fn tap(&mut self, end: EndIndex, on: bool) {
        self.taps.push((end, on));
    }
}

/// One end of a connection: its endpoint, and the messages on their way to it. What every call touches is the first
/// cache line; the endpoint follows in the same manner.
#[repr(C, align(64))]
struct End {
    /// The earliest pending timer occurrence.
    timer_at: u64,
    /// The stream offset at which the first message in the inbox is complete.
    inbox_due: u64,
    route: Step,
    host: u32,
    stack: u16,
    is_traced: bool,
    endpoint: Endpoint,
    inbox_head: u32,
    inbox_tail: u32,
}

/// A message on its way, in the inbox of the end it goes to.
struct Transit<M> {
    due: u64,
    next: u32,
    message: Option<M>,
}

/// Payload bytes by what became of them; at any time the first equals the sum of the others and of those in
/// flight.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct PayloadBytes {
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
    pub(crate) dropped: u64,
}

/// A watched queue at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueueSample {
    pub(crate) port: PortIndex,
    pub(crate) at: Instant,
    pub(crate) queue: Queue,
}

/// The queues that are watched.
pub(crate) struct Watch {
    pub(crate) ports: Vec<PortIndex>,
    pub(crate) interval: u64,
    pub(crate) next: u64,
    pub(crate) samples: Vec<QueueSample>,
}

/// The windows of a traced connection at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WindowSample {
    pub(crate) end: EndIndex,
    pub(crate) at: Instant,
    pub(crate) cwnd: u64,
    pub(crate) in_flight: u64,
}

/// Bytes on the wire of a frame without payload, as a handshake's are.
const FRAME_BYTES_MIN: u32 = 84;

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The time was over.
    Time,
    /// The workload was done.
    Done,
    /// The stop flag was set.
    Stopped,
    /// Nothing was pending, though the workload was not done.
    Stuck,
    /// The workload made no progress for the time allowed.
    Stalled,
    /// Ports that PAUSE has stopped wait for one another.
    Deadlock,
}

pub(crate) struct World<W: Workload> {
    pub(crate) now: u64,
    pub(crate) schedule: Schedule,
    pub(crate) fabric: Fabric,
    pub(crate) workload: W,
    stacks: Vec<tcp::Config>,
    ends: Vec<End>,
    transits: Vec<Transit<W::Message>>,
    transit_free: u32,
    outbox: Outbox<W::Message>,
    host_timers: Vec<u64>,
    pub(crate) payload: PayloadBytes,
    pub(crate) occurrences: u64,
    /// Frames that hosts sent, and their bytes on the wire.
    pub(crate) frames_sent: u64,
    pub(crate) wire_bytes_sent: u64,
    pub(crate) watch: Option<Watch>,
    pub(crate) tapped: Vec<Tapped>,
    pub(crate) windows: Vec<WindowSample>,
    needs_foresight: bool,
    /// Pending occurrences that only observe.
    housekeeping: usize,
    patience: u64,
    moved: u64,
    check_done: bool,
    /// Whether receivers steer: one of the following is there.
    steers: bool,
    /// Receivers that adjust windows by throughput, if they do.
    pub(crate) ictcp: Option<Box<Ictcp>>,
    /// Receivers that share their windows out, if they do.
    diatcp: Option<Box<Diatcp>>,
    /// The round-trip time that connections know from before the run, if they carried data before.
    pub(crate) warm_rtt: Option<Duration>,
    /// Hosts that wait for timeslots, and who gives them.
    pub(crate) pacer: Option<Box<Pacer>>,
    /// The transport of messages that takes TCP's place, if one does.
    pub(crate) sird: Option<Box<Sird>>,
}

impl<W: Workload> World<W> {
    pub(crate) fn new(
        network: &Network,
        stacks: Vec<tcp::Config>,
        hosts: usize,
        workload: W,
        seed: u64,
    ) -> Result<Self, Error> {
        // About one frame in four buckets when an eighth of all links is busy with full frames.
        let frames_per_second: u64 =
            network.links.iter().map(|link| link.rate.get() / (1538 * 8) + 1).sum::<u64>().max(1);
        Ok(Self {
            now: 0,
            schedule: Schedule::new(2_000_000_000_000 / frames_per_second, 2 * network.links.len() as u32),
            fabric: Fabric::new(network, seed)?,
            workload,
            stacks,
            ends: Vec::new(),
            transits: Vec::new(),
            transit_free: NIL,
            outbox: Outbox { messages: Vec::new(), hosts: Vec::new(), taps: Vec::new() },
            host_timers: vec![u64::MAX; hosts],
            payload: PayloadBytes::default(),
            occurrences: 0,
            frames_sent: 0,
            wire_bytes_sent: 0,
            watch: None,
            tapped: Vec::new(),
            windows: Vec::new(),
            needs_foresight: false,
            housekeeping: 0,
            patience: u64::MAX,
            moved: 0,
            check_done: false,
            steers: false,
            ictcp: None,
            diatcp: None,
            warm_rtt: None,
            pacer: None,
            sird: None,
        })
    }

    /// Makes room for so many connections.
    pub(crate) fn reserve(&mut self, connections: usize) {
        self.ends.reserve_exact(2 * connections);
    }

    /// Adds an open connection; `routes` lead from its first end to its second and back.
    pub(crate) fn connect(&mut self, routes: [Step; 2], hosts: [u32; 2], stacks: [u16; 2]) {
        let first = self.ends.len() as EndIndex;
        assert!(first < NIL - 1, "more than 2^31 connections");
        let handshake = routes.iter().map(|&route| self.fabric.crossing_time(route, FRAME_BYTES_MIN)).sum();
        for side in 0..2 {
            self.ends.push(End {
                endpoint: self.endpoint(stacks[side], handshake),
                inbox_due: u64::MAX,
                inbox_head: NIL,
                inbox_tail: NIL,
                timer_at: u64::MAX,
                route: routes[side],
                host: hosts[side],
                stack: stacks[side],
                is_traced: false,
            });
        }
    }

    /// One end of a connection that is open already.
    fn endpoint(&self, stack: u16, handshake: Duration) -> Endpoint {
        let config = &self.stacks[usize::from(stack)];
        match self.warm_rtt {
            Some(rtt) => Endpoint::warm(config, config.receive_window / u32::from(config.mss), rtt),
            None => Endpoint::established(config, handshake),
        }
    }

    /// Lets the workload begin; it is ended where nothing moves for as long as `patience`.
    pub(crate) fn start(&mut self, patience: Duration) {
        self.patience = patience.get();
        self.moved = self.workload.progress();
        self.needs_foresight = self.needs_foresight();
        self.schedule.insert(self.patience, Occurrence::StallCheck);
        self.housekeeping += 1;
        if let Some(watch) = &self.watch {
            self.schedule.insert(watch.next, Occurrence::QueueSample);
            self.housekeeping += 1;
        }
        if let Some(pacer) = &self.pacer {
            pacer.start(&mut self.schedule);
        }
        self.grant_windows();
        self.workload.start(Instant::new(self.now), &mut self.outbox);
        self.outbox.hosts.extend(0..self.host_timers.len() as u32);
        self.post();
    }

    /// The handshakes before the run told M21TCP's switches of all flows, and the senders their windows.
    fn grant_windows(&mut self) {
        if self.fabric.m21.is_none() {
            return;
        }
        for (index, end) in self.ends.iter().enumerate() {
            self.fabric.open_flow(end.route, peer(index as EndIndex));
        }
        for end in &mut self.ends {
            if let Some(granted) = self.fabric.granted(end.route) {
                end.endpoint.limit_window(&self.stacks[usize::from(end.stack)], granted);
            }
        }
    }

    /// Runs on until the workload is done or `until` is reached.
    pub(crate) fn run(
        &mut self,
        until: Instant,
        stop: &AtomicBool,
        mut progress: impl FnMut(Instant),
    ) -> Ending {
        let mut unwatched = 0;
        loop {
            unwatched += 1;
            if unwatched == OCCURRENCES_UNWATCHED {
                unwatched = 0;
                if stop.load(Ordering::Relaxed) {
                    return Ending::Stopped;
                }
                progress(Instant::new(self.now));
            }
            let Some((time, what)) = self.schedule.pop() else {
                return if self.workload.is_done() { Ending::Done } else { Ending::Stuck };
            };
            if time > until.get() {
                if what.comes_first() {
                    self.schedule.insert_first(time, what);
                } else {
                    self.schedule.insert(time, what);
                }
                self.now = until.get();
                return Ending::Time;
            }
            self.now = time;
            self.occurrences += 1;
            if let Some(ports) = self.schedule.came_near() {
                self.foresee_arrivals(ports);
            }
            match what {
                Occurrence::Arrival(port) => self.handle_arrival(port),
                Occurrence::EndpointTimer(end) => self.handle_endpoint_timer(end),
                Occurrence::HostTimer(host) => self.handle_host_timer(host),
                Occurrence::QueueSample => self.sample(),
                Occurrence::StallCheck => {
                    if self.is_stalled() {
                        return Ending::Stalled;
                    }
                }
                Occurrence::Technique(step) => self.pace(step),
                Occurrence::Departure(port) => self.fabric.depart(&mut self.schedule, self.now, port),
                Occurrence::ResumeCheck(switch) => {
                    self.fabric.check_resumes(&mut self.schedule, self.now, switch);
                }
                Occurrence::PauseSignal(port) => {
                    self.fabric.handle_signal(&mut self.schedule, self.now, port);
                }
                Occurrence::DeadlockCheck => {
                    if self.fabric.check_deadlock(&mut self.schedule, self.now) {
                        return Ending::Deadlock;
                    }
                }
            }
            if self.check_done && self.workload.is_done() {
                return Ending::Done;
            }
            self.check_done = false;
        }
    }

    /// Looks whether the workload moved since the last look. Where nothing is pending but such looks, none is
    /// scheduled any more, so that the run ends.
    fn is_stalled(&mut self) -> bool {
        self.housekeeping -= 1;
        let moved = self.workload.progress();
        if self.schedule.pending() > self.housekeeping {
            self.schedule.insert(self.now + self.patience, Occurrence::StallCheck);
            self.housekeeping += 1;
        }
        std::mem::replace(&mut self.moved, moved) == moved
    }

    fn sample(&mut self) {
        self.housekeeping -= 1;
        let Some(watch) = &mut self.watch else { return };
        let now = Instant::new(self.now);
        for &port in &watch.ports {
            let queue = self.fabric.queue(self.now, port);
            watch.samples.push(QueueSample { port, at: now, queue });
        }
        if self.schedule.pending() > self.housekeeping {
            watch.next += watch.interval;
            self.schedule.insert(watch.next, Occurrence::QueueSample);
            self.housekeeping += 1;
        }
    }

    #[inline]
    fn handle_arrival(&mut self, port: PortIndex) {
        if self.fabric.ports[port as usize].link.taps > 0 {
            self.note(port);
        }
        match self.fabric.arrive(&mut self.schedule, self.now, port) {
            Hop::Forwarded { to, is_next } => {
                if is_next {
                    self.foresee(to);
                }
            }
            Hop::Delivered { end, segment, wire_bytes } => {
                self.foresee(port);
                self.deliver(end, segment, wire_bytes);
            }
            Hop::Dropped { segment } => {
                self.payload.dropped += u64::from(self.fabric.segments[segment].payload);
                self.fabric.remove(segment);
            }
        }
    }

    #[cold]
    fn note(&mut self, port: PortIndex) {
        let Some(&frame) = self.fabric.first(port) else { return };
        let (end, wire_bytes) = (frame.parcel.end(), frame.parcel.wire_bytes());
        let segment = self.fabric.segments[frame.parcel.segment()];
        self.tapped.push(Tapped { at: Instant::new(self.now), port, end, wire_bytes, segment });
    }

    fn deliver(&mut self, index: EndIndex, place: usize, wire_bytes: u32) {
        if self.sird.is_some() {
            return self.deliver_packet(index, place);
        }
        let now = Instant::new(self.now);
        let segment = &self.fabric.segments[place];
        let payload = u32::from(segment.payload);
        self.payload.arrived += u64::from(payload);
        let end = &mut self.ends[index as usize];
        end.endpoint.handle_segment(&self.stacks[usize::from(end.stack)], now, segment);
        self.fabric.remove(place);
        if self.steers {
            self.tell_used_up(index);
            if payload > 0 {
                self.adjust_window(index, payload, wire_bytes);
            }
        }
        let delivered = self.ends[index as usize].endpoint.delivered();
        self.hand_over(index, delivered);
    }

    /// Hands over the messages of which so many bytes of the stream are the last, and sends what follows from that.
    #[inline]
    fn hand_over(&mut self, index: EndIndex, delivered: u64) {
        let now = Instant::new(self.now);
        let end = &mut self.ends[index as usize];
        if delivered >= end.inbox_due {
            let host = end.host;
            while let Some(message) = self.take_message(index, delivered) {
                if let Some(diatcp) = &mut self.diatcp
                    && self.workload.awaits(&message) == Awaits::Closes
                    && diatcp.close(now, host, index)
                {
                    // With the acknowledgement of the last byte: a window that shrinks without one is not heeded.
                    self.ends[index as usize].endpoint.set_window_clamp(0);
                }
                self.workload.handle_message(now, index, message, &mut self.outbox);
            }
            self.check_done = true;
            self.pump(index);
            self.outbox.hosts.push(host);
            self.post();
        } else {
            self.pump(index);
        }
    }

    fn take_message(&mut self, index: EndIndex, delivered: u64) -> Option<W::Message> {
        let end = &mut self.ends[index as usize];
        if delivered < end.inbox_due {
            return None;
        }
        let slot = end.inbox_head;
        let transit = &mut self.transits[slot as usize];
        end.inbox_head = transit.next;
        transit.next = self.transit_free;
        self.transit_free = slot;
        let message = transit.message.take();
        end.inbox_due =
            if end.inbox_head == NIL { u64::MAX } else { self.transits[end.inbox_head as usize].due };
        message
    }

    /// Does what the workload asked for while a host's application was called.
    #[inline]
    fn post(&mut self) {
        let mut messages = std::mem::take(&mut self.outbox.messages);
        if self.diatcp.is_some() {
            self.share_windows(&messages);
        }
        let mut waiting = messages.drain(..);
        while let Some((index, bytes, message)) = waiting.next() {
            self.foresee_messages(waiting.as_slice());
            self.write(index, bytes, message);
            self.pump(index);
        }
        drop(waiting);
        self.outbox.messages = messages;
        while let Some(host) = self.outbox.hosts.pop() {
            self.arm_host(host);
        }
        while let Some((end, on)) = self.outbox.taps.pop() {
            let port = self.ends[end as usize].route.port;
            self.fabric.tap_link(port, on);
        }
    }

    fn write(&mut self, index: EndIndex, bytes: u64, message: W::Message) {
        assert!(bytes > 0, "a message without a length");
        let end = &mut self.ends[index as usize];
        let due = if let Some(sird) = &mut self.sird {
            sird.write(index, bytes)
        } else {
            end.endpoint.write(bytes);
            end.endpoint.written()
        };
        let transit = Transit { due, next: NIL, message: Some(message) };
        let slot = if self.transit_free == NIL {
            self.transits.push(transit);
            (self.transits.len() - 1) as u32
        } else {
            let slot = self.transit_free;
            self.transit_free = self.transits[slot as usize].next;
            self.transits[slot as usize] = transit;
            slot
        };
        let peer = &mut self.ends[peer(index) as usize];
        if peer.inbox_head == NIL {
            peer.inbox_head = slot;
            peer.inbox_due = due;
        } else {
            self.transits[peer.inbox_tail as usize].next = slot;
        }
        peer.inbox_tail = slot;
    }

    /// Sends what an endpoint has to send, and arms its timer.
    #[inline(never)]
    fn pump(&mut self, index: EndIndex) {
        if self.sird.is_some() {
            return self.pump_packets(index);
        }
        let now = Instant::new(self.now);
        let end = &mut self.ends[index as usize];
        let stack = &self.stacks[usize::from(end.stack)];
        loop {
            let place = self.fabric.free_place();
            let segment = &mut self.fabric.segments[place as usize];
            let written = end.endpoint.write_transmit(stack, now, segment);
            if written == Written::Nothing {
                break;
            }
            self.payload.sent += u64::from(segment.payload);
            if let Some(pacer) = &mut self.pacer
                && pacer.holds(index)
            {
                let payload = u32::from(segment.payload);
                let parcel = self.fabric.wrap(place, end.route, peer(index));
                pacer.enqueue(self.now, index, parcel, payload);
                continue;
            }
            let wire_bytes =
                self.fabric.send_from(place, &mut self.schedule, self.now, end.route, peer(index));
            self.frames_sent += 1;
            self.wire_bytes_sent += u64::from(wire_bytes);
            if written == Written::Last {
                break;
            }
        }
        let deadline = end.endpoint.poll_deadline().get();
        if deadline < end.timer_at {
            end.timer_at = deadline;
            self.schedule.insert(deadline.max(self.now), Occurrence::EndpointTimer(index));
        }
        if end.is_traced {
            self.trace(index);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.ask(&mut self.schedule, &mut self.fabric, self.now, index);
        }
    }

    /// Something of the arbiter's has come: packets whose timeslot it is go.
    fn pace(&mut self, step: TechniqueStep) {
        let Some(pacer) = &mut self.pacer else { return };
        let (now, frames, bytes) = (self.now, &mut self.frames_sent, &mut self.wire_bytes_sent);
        pacer.handle(&mut self.schedule, &mut self.fabric, now, step, |schedule, fabric, port, parcel| {
            fabric.send_parcel(schedule, now, port, parcel);
            *bytes += u64::from(parcel.wire_bytes());
            *frames += 1;
        });
    }

    /// The paths by which the ends send, in order.
    pub(crate) fn routes(&self) -> Vec<Step> {
        self.ends.iter().map(|end| end.route).collect()
    }

    #[cold]
    fn trace(&mut self, index: EndIndex) {
        let end = &self.ends[index as usize];
        let cwnd = end.endpoint.stats(&self.stacks[usize::from(end.stack)]).cwnd;
        let in_flight = end.endpoint.outstanding();
        let same = |sample: &&WindowSample| sample.end == index;
        if self
            .windows
            .iter()
            .rev()
            .find(same)
            .is_none_or(|last| (last.cwnd, last.in_flight) != (cwnd, in_flight))
        {
            self.windows.push(WindowSample { end: index, at: Instant::new(self.now), cwnd, in_flight });
        }
    }

    /// Traces the windows of one end from now on.
    pub(crate) fn trace_windows(&mut self, index: EndIndex) {
        self.ends[index as usize].is_traced = true;
    }

    /// Timers are lazy: the pending occurrence is left alone when the deadline moves away, and looks again when it
    /// comes; one that a nearer deadline has overtaken does nothing.
    fn handle_endpoint_timer(&mut self, index: EndIndex) {
        let end = &mut self.ends[index as usize];
        if end.timer_at > self.now {
            return;
        }
        end.timer_at = u64::MAX;
        if self.sird.is_some() {
            return self.handle_packet_timer(index);
        }
        if end.endpoint.poll_deadline().get() <= self.now {
            let now = Instant::new(self.now);
            let stack = &self.stacks[usize::from(end.stack)];
            let timeouts = end.endpoint.timeouts();
            end.endpoint.handle_deadline(stack, now);
            if end.endpoint.timeouts() > timeouts {
                self.tell_of_timeout(index);
            }
        }
        self.pump(index);
    }

    /// A sender, or who waits for it, has waited in vain.
    fn tell_of_timeout(&mut self, index: EndIndex) {
        let first = self.ends[peer(index) as usize].inbox_head;
        let at = |place: u32| (place != NIL).then(|| &self.transits[place as usize]);
        let mut waiting = core::iter::successors(at(first), |transit| at(transit.next))
            .filter_map(|transit| transit.message.as_ref());
        self.workload.handle_timeout(Instant::new(self.now), index, &mut waiting);
    }

    fn handle_host_timer(&mut self, host: u32) {
        if self.host_timers[host as usize] > self.now {
            return;
        }
        self.host_timers[host as usize] = u64::MAX;
        let now = Instant::new(self.now);
        if self.workload.poll_deadline(host) <= now {
            self.workload.handle_deadline(now, host, &mut self.outbox);
        }
        self.check_done = true;
        self.outbox.hosts.push(host);
        self.post();
    }

    #[inline]
    fn arm_host(&mut self, host: u32) {
        let deadline = self.workload.poll_deadline(host).get();
        if deadline < self.host_timers[host as usize] {
            self.host_timers[host as usize] = deadline;
            self.schedule.insert(deadline.max(self.now), Occurrence::HostTimer(host));
        }
    }

    /// How many ends of connections there are.
    pub(crate) fn ends_len(&self) -> usize {
        self.ends.len()
    }

    /// What an end has counted, and the bytes of its stream that were acknowledged.
    pub(crate) fn end_stats(&self, index: EndIndex) -> (Stats, u64) {
        if let Some(sird) = &self.sird {
            return (sird.stats(index), sird.written_and_arrived(index)[1]);
        }
        let end = &self.ends[index as usize];
        (end.endpoint.stats(&self.stacks[usize::from(end.stack)]), end.endpoint.acked())
    }

    /// Whether an end never sent any payload.
    pub(crate) fn is_silent(&self, index: EndIndex) -> bool {
        self.ends[index as usize].endpoint.counts()[0] == 0
    }

    /// What all ends have counted, in the order of [`Endpoint::counts`].
    pub(crate) fn counts(&self) -> [u64; 5] {
        let mut sums = [0; 5];
        for end in &self.ends {
            sums.iter_mut().zip(end.endpoint.counts()).for_each(|(sum, count)| *sum += count);
        }
        sums
    }

    /// Asserts that every byte and message is accounted for; costs a walk over all that is in flight.
    ///
    /// # Panics
    /// If the simulator lost or invented something.
    pub(crate) fn assert_conserved(&mut self) {
        let (waiting, packets) = self.pacer.as_ref().map_or((0, 0), |pacer| (pacer.payload, pacer.waiting));
        self.fabric.assert_conserved(self.now, packets);
        let in_flight = self.fabric.payload_in_flight() + waiting;
        let PayloadBytes { sent, arrived, dropped } = self.payload;
        assert_eq!(sent, arrived + dropped + in_flight, "payload is unaccounted for");
        if let Some(sird) = &self.sird {
            self.assert_messages_conserved(sird);
        }
        for (index, end) in self.ends.iter().enumerate() {
            let peer = &self.ends[peer(index as EndIndex) as usize];
            assert!(peer.endpoint.delivered() <= end.endpoint.written(), "more was delivered than written");
            assert!(
                end.endpoint.acked() <= peer.endpoint.delivered(),
                "more was acknowledged than delivered"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_fills_eight_cache_lines() {
        assert_eq!((size_of::<End>(), core::mem::offset_of!(End, endpoint)), (512, 32));
    }
}
