//! A partition: a group of hosts and switches that is simulated on its own, with its event loop.
//!
//! A partition owns everything that it changes: its schedule, links, switches, frames, random streams, endpoints, messages
//! and applications. It borrows nothing (`Partition<W>: Send + 'static`), and the data that it shares by `Arc` never change.
//! It is built for a set of nodes; frames leave it as values ([`BoundaryFrame`]). A run has one partition with all nodes.

use std::sync::atomic::{AtomicBool, Ordering};

use fanin_network::PortIndex;
use fanin_recording::{EndStats, FrameSeen, MessageStep, Recorder};
use fanin_tcp::Written;
use fanin_units::{Duration, Instant};

use crate::boundary::{BoundaryFrame, PlayedNodes};
use crate::engine::Engine;
use crate::fabric::{ArrivalFate, LeavingSignal};
use crate::index::{EndIndex, peer};
use crate::messages::{StreamMessage, Streams};
use crate::occurrence::{Occurrence, TechniqueStep};
use crate::schedule::LATEST;
use crate::techniques::{MessageKind, TechniqueSet};
use crate::workload::{BarrierWorkload, Building, HostOutbox, HostWorkload};

/// Asserts that a partition can move to another thread. `tests/house/test_arrows.py` finds no shared state that changes.
const _: () = {
    const fn owns_all<T: Send + 'static>() {}
    owns_all::<(Partition<Building>, Partition<BarrierWorkload>)>();
};

/// Occurrences between two checks of the stop flag.
const OCCURRENCES_UNWATCHED: u32 = 1 << 14;
/// The most waits for all running timers without progress: Linux sends a segment again as often (`tcp_retries2`).
const WAITS_MAX: u32 = 15;

/// Reasons for the end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The time was over.
    Time,
    /// The workload was done.
    Done,
    /// The stop flag was set.
    Stopped,
    /// Nothing was scheduled, though the workload was not done.
    Stuck,
    /// The workload made no progress for the time allowed.
    Stalled,
    /// Paused ports wait for one another.
    Deadlock,
}

/// Returns true for the end that sends requests and receives answers: the first of its connection.
const fn receives_answers(end: EndIndex) -> bool {
    end.is_multiple_of(2)
}

/// A group of hosts and switches, with everything that they change.
pub(crate) struct Partition<W: HostWorkload> {
    pub(crate) engine: Engine,
    pub(crate) workload: W,
    pub(crate) techniques: TechniqueSet,
    pub(crate) recorder: Recorder,
    streams: Streams<W::Message>,
    outbox: HostOutbox<W::Message>,
    /// The partition's hosts and switches. All others of the engine and the workload stay idle here.
    played: PlayedNodes,
    /// Time of each host's earliest scheduled timer, in picoseconds; [`LATEST`] without one. Later ones never expire.
    host_timers: Vec<u64>,
    /// Kinds of the messages in the outbox, for techniques.
    kinds: Vec<(EndIndex, MessageKind)>,
    /// Scheduled occurrences that only observe.
    housekeeping: usize,
    /// The longest time without progress, in picoseconds.
    stall_limit: u64,
    bulk_connections: u32,
    /// The value of [`Self::progress`] at the last check, and the checks since it changed.
    progress: u64,
    waits: u32,
}

impl<W: HostWorkload> Partition<W> {
    /// Makes a partition of some nodes. The engine has the whole network with open connections, the workload all hosts.
    pub(crate) fn new(
        mut engine: Engine,
        workload: W,
        played: PlayedNodes,
        techniques: TechniqueSet,
        recorder: Recorder,
    ) -> Self {
        played.leading_out().iter().for_each(|&port| engine.fabric.lead_out(port));
        Self {
            streams: Streams::new(engine.ends().len()),
            engine,
            workload,
            techniques,
            recorder,
            outbox: HostOutbox::default(),
            host_timers: vec![LATEST; played.hosts()],
            played,
            kinds: Vec::new(),
            housekeeping: 0,
            stall_limit: u64::MAX,
            bulk_connections: 0,
            progress: 0,
            waits: 0,
        }
    }

    /// Starts the workload; its first connections carry bulk data. Without progress for `stall_limit` the run ends.
    pub(crate) fn start(&mut self, stall_limit: Duration, bulk_connections: u32) {
        self.stall_limit = stall_limit.get();
        self.bulk_connections = bulk_connections;
        self.progress = self.progress();
        self.schedule_housekeeping(self.stall_limit, Occurrence::StallCheck);
        if let Some(first) = self.recorder.next_sample() {
            self.schedule_housekeeping(first, Occurrence::QueueSample);
        }
        self.techniques.on_start(&mut self.engine);
        if self.techniques.act_at_switches() {
            self.engine.fabric.observe_all();
        }
        self.workload.start(self.engine.time(), &|host| self.played.has_host(host), &mut self.outbox);
        self.outbox.hosts.extend(0..self.host_timers.len() as u32);
        self.post();
    }

    fn schedule_housekeeping(&mut self, at: u64, occurrence: Occurrence) {
        self.engine.schedule.insert(at, occurrence);
        self.housekeeping += 1;
    }

    /// Runs until the workload is done or `until` is reached.
    pub(crate) fn run(
        &mut self,
        until: Instant,
        stop: &AtomicBool,
        mut progress: impl FnMut(Instant),
    ) -> Ending {
        loop {
            // The loop pauses at the end of each bin of the timeline; occurrences need not compare times.
            let pause = until.get().min(self.recorder.bin_end());
            for _ in 0..OCCURRENCES_UNWATCHED {
                match self.step(pause) {
                    Ok(None) => {}
                    Ok(Some(ending)) => return ending,
                    Err(later) => {
                        if let Some(ending) = self.pass(later, until.get()) {
                            return ending;
                        }
                        break;
                    }
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Ending::Stopped;
            }
            progress(self.engine.time());
        }
    }

    /// Handles the earliest occurrence; returns the reason if the run ends with it. If no occurrence is due by `until`, does
    /// nothing and returns as an error a time after `until`, before or at the next occurrence.
    #[inline]
    fn step(&mut self, until: u64) -> Result<Option<Ending>, u64> {
        let Some((time, occurrence)) = self.engine.schedule.pop(until) else {
            return Ok(Some(if self.workload.is_done() { Ending::Done } else { Ending::Stuck }));
        };
        let Some(occurrence) = occurrence else { return Err(time) };
        self.engine.advance(time);
        Ok(match occurrence {
            Occurrence::Arrival(port) => self.handle_arrival(port),
            _ => self.handle_rarer(occurrence),
        })
    }

    /// Lets time pass up to `later`: closes the timeline's bins that end before it. Ends the run if `later` is after `until`.
    #[cold]
    fn pass(&mut self, later: u64, until: u64) -> Option<Ending> {
        if later > self.recorder.bin_end() {
            self.close_bins(later.min(until));
        }
        (later > until).then(|| {
            self.engine.advance(until);
            Ending::Time
        })
    }

    /// Handles an occurrence other than an arrival; returns the reason if the run ends with it.
    #[inline(never)]
    fn handle_rarer(&mut self, occurrence: Occurrence) -> Option<Ending> {
        let engine = &mut self.engine;
        let now = engine.now();
        let (fabric, schedule) = (&mut engine.fabric, &mut engine.schedule);
        match occurrence {
            Occurrence::Arrival(_) => unreachable!("an arrival is handled apart"),
            Occurrence::EndpointTimer(end) => self.handle_endpoint_timer(end),
            Occurrence::HostTimer(host) => return self.handle_host_timer(host),
            Occurrence::QueueSample => self.sample(),
            Occurrence::StallCheck => return self.is_stalled().then_some(Ending::Stalled),
            Occurrence::Technique { technique, kind, of } => {
                self.techniques.on_step(engine, TechniqueStep { technique, kind, of });
                self.pump_awake();
            }
            Occurrence::Departure(port) => fabric.depart(schedule, now, port),
            Occurrence::ResumeCheck(switch) => fabric.pause().check_resumes(schedule, now, switch),
            Occurrence::PauseSignal(port) => fabric.pause().handle_signal(schedule, now, port),
            Occurrence::DeadlockCheck => {
                return fabric.pause().check_deadlock(schedule, now).then_some(Ending::Deadlock);
            }
        }
        None
    }

    /// Returns a number that changes with each step of the workload, and with each arrived byte of an answer.
    fn progress(&self) -> u64 {
        let arrived = |connection| self.techniques.arrived(&self.engine, 2 * connection + 1);
        self.workload.progress() + (0..self.bulk_connections).map(arrived).sum::<u64>()
    }

    /// Returns true if nothing has moved since the last check, and no timer runs or all were awaited [`WAITS_MAX`] times.
    /// Schedules the next check, unless only housekeeping is left: the run then ends with its last occurrence.
    fn is_stalled(&mut self) -> bool {
        self.housekeeping -= 1;
        let progress = self.progress();
        let has_moved = std::mem::replace(&mut self.progress, progress) != progress;
        self.waits = if has_moved { 0 } else { self.waits + 1 };
        // Background traffic always runs timers.
        let of_ends = self.engine.split_ends().0.iter().map(|end| end.timer_at);
        let of_hosts = (0..).zip(&self.host_timers).map(|(host, &at)| self.workload.awaited(host, at));
        let timers = of_ends.chain(of_hosts);
        let last_timer = timers.filter(|&at| !has_moved && at < LATEST).max();
        if self.engine.schedule.holds_more_than(self.housekeeping) {
            let next = (self.engine.now() + self.stall_limit).max(last_timer.unwrap_or(0));
            self.schedule_housekeeping(next, Occurrence::StallCheck);
        }
        !has_moved && (last_timer.is_none() || self.waits > WAITS_MAX)
    }

    fn sample(&mut self) {
        self.housekeeping -= 1;
        let now = self.engine.now();
        let fabric = &mut self.engine.fabric;
        let next = self.recorder.sample(now, |port| fabric.queue(now, port));
        if let Some(next) = next
            && self.engine.schedule.holds_more_than(self.housekeeping)
        {
            self.schedule_housekeeping(next, Occurrence::QueueSample);
        }
    }

    /// Handles the arrival of a frame at the far end of a port's link.
    #[inline]
    fn handle_arrival(&mut self, port: PortIndex) -> Option<Ending> {
        if self.engine.fabric.is_observed() && self.observe(port) {
            return None;
        }
        let engine = &mut self.engine;
        match engine.arrive(port) {
            ArrivalFate::Forwarded => None,
            ArrivalFate::Delivered { end, segment, wire_bytes } => {
                self.deliver(port, end, segment, wire_bytes)
            }
            ArrivalFate::Dropped { segment, end, port } => {
                self.drop_frame(segment, end, port);
                None
            }
        }
    }

    /// Records a frame on a tapped link. Lets techniques act on it at a switch. Returns true if its link has lost it.
    #[cold]
    fn observe(&mut self, port: PortIndex) -> bool {
        if let Some(parcel) = self.engine.fabric.lose(&mut self.engine.schedule, port) {
            self.note_lost(parcel.segment(), parcel.end(), MessageStep::LinkLoss(port));
            return true;
        }
        if self.engine.fabric.is_tapped(port) {
            self.record_frame(port);
        }
        if self.techniques.act_at_switches()
            && let Some((crossing, end, place)) =
                self.engine.fabric.peek_forward(port, self.engine.schedule.frame(port))
        {
            self.techniques.on_forward(&mut self.engine, crossing, end, place);
        }
        false
    }

    /// Accounts for a frame to `end` that was dropped because output `port` had no room.
    #[cold]
    fn drop_frame(&mut self, segment: usize, end: EndIndex, port: PortIndex) {
        let at = self.engine.now();
        let fabric = &mut self.engine.fabric;
        let wire_bytes = fabric.wire_bytes(fabric.segment(segment));
        let queue_bytes = fabric.queue(at, port).bytes;
        self.recorder.note_loss(at, port, queue_bytes, end, wire_bytes);
        self.note_lost(segment, end, MessageStep::Loss(port));
    }

    /// Takes back a lost segment to `end`, and records the loss for the event that waits for it.
    fn note_lost(&mut self, segment: usize, end: EndIndex, step: MessageStep) {
        let lost = self.engine.take_dropped(segment);
        let waiting = self.streams.waiting(peer(end)).next().filter(|_| lost.payload > 0);
        if let Some(event) = waiting.and_then(|message| self.workload.event(message)) {
            self.recorder.note_message(self.engine.now(), event, end, step);
        }
    }

    /// Hands an arrived segment to the transport of its destination.
    fn deliver(&mut self, port: PortIndex, index: EndIndex, place: usize, wire_bytes: u32) -> Option<Ending> {
        let engine = &mut self.engine;
        let payload = engine.note_arrival(port, place);
        let delivered = if let Some(transport) = self.techniques.transport(engine, index) {
            transport.handle_packet(engine, index, place);
            transport.delivered(index)
        } else {
            let is_background = W::HAS_BACKGROUND && engine.is_background(index);
            let delivered = engine.handle_segment(index, place, is_background);
            if self.techniques.act() && !is_background {
                self.techniques.on_segment(engine, index, payload, wire_bytes);
            }
            delivered
        };
        self.engine.fabric.remove(place);
        self.hand_over(index, delivered)
    }

    /// Hands the complete messages of an end to its application, and sends the answers.
    #[inline]
    fn hand_over(&mut self, index: EndIndex, delivered: u64) -> Option<Ending> {
        if self.streams.is_due(peer(index), delivered) {
            return self.take_messages(index, delivered);
        }
        self.pump(index);
        None
    }

    /// Hands messages over as [`Self::hand_over`] does, after a message has begun or is complete.
    #[inline(never)]
    fn take_messages(&mut self, index: EndIndex, delivered: u64) -> Option<Ending> {
        let now = self.engine.time();
        self.note_first_byte(index, delivered);
        if !self.streams.is_due(peer(index), delivered) {
            self.pump(index);
            return None;
        }
        while let Some(message) = self.streams.take(peer(index), delivered) {
            if self.techniques.act() {
                let kind = self.workload.kind(&message);
                self.techniques.on_received(&mut self.engine, index, kind);
            }
            if let Some(event) = self.workload.event(&message).filter(|_| receives_answers(index)) {
                self.recorder.note_message(now.get(), event, index, MessageStep::LastByte);
            }
            self.workload.handle_message(now, index, message, &mut self.outbox);
            if let Some(collected) = self.workload.take_collected() {
                self.recorder.note_collected(collected);
            }
            self.note_first_byte(index, delivered);
        }
        self.pump(index);
        let host = self.engine.end(index).host;
        self.outbox.hosts.push(host);
        self.post();
        self.workload.is_done().then_some(Ending::Done)
    }

    /// Records the first readable byte of an answer, once.
    fn note_first_byte(&mut self, index: EndIndex, delivered: u64) {
        if let Some(message) = self.streams.begin(peer(index), delivered)
            && receives_answers(index)
            && let Some(event) = self.workload.event(message)
        {
            self.recorder.note_message(self.engine.now(), event, index, MessageStep::FirstByte);
        }
    }

    /// Carries out the requests of an application after a call.
    #[inline]
    fn post(&mut self) {
        let mut messages = std::mem::take(&mut self.outbox.messages);
        if self.techniques.act() {
            self.kinds.clear();
            self.kinds.extend(messages.iter().map(|(end, _, message)| (*end, self.workload.kind(message))));
            self.techniques.on_messages(&mut self.engine, &self.kinds);
            self.pump_awake();
        }
        for (index, bytes, message) in messages.drain(..) {
            assert!(self.played.has_end(index), "an end of another partition sends here");
            self.write(index, bytes, message);
            self.pump(index);
        }
        self.outbox.messages = messages;
        while let Some(host) = self.outbox.hosts.pop() {
            self.arm_host(host);
        }
        while let Some((end, on)) = self.outbox.taps.pop() {
            self.engine.tap(end, on);
        }
    }

    /// Appends a message to the stream of an end.
    fn write(&mut self, index: EndIndex, bytes: u64, message: W::Message) {
        if let Some(event) = self.workload.event(&message).filter(|_| receives_answers(index)) {
            self.recorder.note_message(self.engine.now(), event, index, MessageStep::Request);
        }
        let due = if let Some(transport) = self.techniques.transport(&self.engine, index) {
            transport.write(index, bytes)
        } else {
            let endpoint = &mut self.engine.end(index).endpoint;
            endpoint.write(bytes);
            endpoint.written()
        };
        self.streams.write(index, due, bytes, message);
    }

    /// Sends for the ends that techniques have woken.
    fn pump_awake(&mut self) {
        for end in self.engine.take_awake() {
            self.pump(end);
        }
    }

    /// Sends all segments that an end may send, and arms its timer.
    fn pump(&mut self, index: EndIndex) {
        let engine = &mut self.engine;
        if let Some(transport) = self.techniques.transport(engine, index) {
            return transport.pump(engine, index);
        }
        let is_background = W::HAS_BACKGROUND && engine.is_background(index);
        let acts = self.techniques.act() && !is_background;
        loop {
            let (place, written) = engine.write_segment(index, is_background);
            if written == Written::Nothing {
                break;
            }
            if !(acts && self.techniques.on_send(engine, index, place)) {
                engine.transmit(index, place);
            }
            if written == Written::Last {
                break;
            }
        }
        let end = engine.end(index);
        let (deadline, is_traced) = (end.endpoint.poll_deadline().get(), end.is_traced);
        engine.arm_timer(index, deadline);
        if is_traced {
            self.record_windows(index);
        }
        if acts {
            self.techniques.on_sent(&mut self.engine, index);
        }
    }

    /// Handles the timer of an end; the deadline may have moved away meanwhile.
    fn handle_endpoint_timer(&mut self, index: EndIndex) {
        let engine = &mut self.engine;
        if !engine.take_timer(index) {
            return;
        }
        let expired = match self.techniques.transport(engine, index) {
            Some(transport) => {
                transport.handle_timer(engine.now(), index).map(|end| (end, MessageStep::Timeout))
            }
            None => engine.handle_deadline(index).map(|step| (index, step)),
        };
        if let Some((sender, step)) = expired {
            let first = self.streams.waiting(sender).next();
            if let Some(event) = first.and_then(|message| self.workload.event(message)) {
                self.recorder.note_message(self.engine.now(), event, sender, step);
            }
            if step == MessageStep::Timeout && !self.engine.is_background(sender) {
                self.recorder.note_timeout();
                let mut waiting = self.streams.waiting(sender);
                self.workload.handle_timeout(self.engine.time(), sender, &mut waiting);
            }
        }
        self.pump(index);
    }

    fn handle_host_timer(&mut self, host: u32) -> Option<Ending> {
        if self.host_timers[host as usize] > self.engine.now() {
            return None;
        }
        self.host_timers[host as usize] = LATEST;
        let now = self.engine.time();
        if self.workload.poll_deadline(host) <= now {
            self.workload.handle_deadline(now, host, &mut self.outbox);
        }
        self.outbox.hosts.push(host);
        self.post();
        self.workload.is_done().then_some(Ending::Done)
    }

    /// Schedules a host's timer, unless an earlier one is scheduled.
    #[inline]
    fn arm_host(&mut self, host: u32) {
        if !self.played.has_host(host) {
            return;
        }
        let deadline = self.workload.poll_deadline(host).get();
        if deadline < self.host_timers[host as usize] {
            self.host_timers[host as usize] = deadline;
            self.engine.schedule.insert(deadline.max(self.engine.now()), Occurrence::HostTimer(host));
        }
    }

    /// Closes the bins of the timeline that end before `time`.
    #[cold]
    fn close_bins(&mut self, time: u64) {
        let arrived = self.engine.arrived();
        self.recorder.close_bins(time, arrived, |at, port, rings| self.engine.level(at, port, rings));
        self.recorder.note_levels(time, self.workload.levels());
    }

    /// Records the frame that arrives over a tapped link.
    fn record_frame(&mut self, port: PortIndex) {
        let (fabric, at) = (&self.engine.fabric, self.engine.time());
        let parcel = self.engine.schedule.frame(port);
        let segment = *fabric.segment(parcel.segment());
        let (end, wire_bytes) = (parcel.end(), parcel.wire_bytes());
        self.recorder.note_frame(FrameSeen { at, port, end, wire_bytes, segment });
    }

    /// Records the windows of a traced end.
    #[cold]
    fn record_windows(&mut self, index: EndIndex) {
        let cwnd = self.engine.stats(index).cwnd;
        let in_flight = self.engine.end(index).endpoint.outstanding();
        self.recorder.note_windows(self.engine.now(), index, cwnd, in_flight);
    }

    /// Returns the nodes that the partition simulates.
    pub(crate) fn played(&self) -> &PlayedNodes {
        &self.played
    }

    /// Takes the frames that have left by links to other partitions, port by port.
    pub(crate) fn take_leaving(&mut self) -> Vec<BoundaryFrame<W::Message>> {
        let mut leaving = Vec::new();
        for &port in self.played.leading_out() {
            while let Some(frame) = self.engine.take_leaving(port) {
                let payload = u64::from(frame.segment.payload);
                // The sender's partition hands its messages to the receiver's. A partition between these two holds no messages
                // of the frame.
                let is_first = self.played.has_end(peer(frame.end)) && !self.played.has_end(frame.end);
                let has_messages = payload > 0 && is_first;
                let sent = if has_messages { frame.segment.offset + payload } else { 0 };
                let messages = std::iter::from_fn(|| self.streams.hand_over(peer(frame.end), sent)).collect();
                leaving.push(BoundaryFrame { frame, messages });
            }
        }
        leaving
    }

    /// Takes the signals of PAUSE that have left by links to other partitions, port by port.
    pub(crate) fn take_leaving_signals(&mut self) -> Vec<LeavingSignal> {
        let fabric = &mut self.engine.fabric;
        let signals = |&port| std::iter::from_fn(|| fabric.take_leaving_signal(port)).collect::<Vec<_>>();
        self.played.leading_out().iter().flat_map(signals).collect()
    }

    /// Takes a signal of PAUSE from another partition.
    pub(crate) fn accept_signal(&mut self, signal: LeavingSignal) {
        self.engine.fabric.pause().accept_signal(&mut self.engine.schedule, signal);
    }

    /// Takes messages for an end of this partition from the sender's partition.
    pub(crate) fn accept_messages(&mut self, end: EndIndex, messages: Vec<StreamMessage<W::Message>>) {
        messages.into_iter().for_each(|message| self.streams.accept(peer(end), message));
    }

    /// Returns the counters of all ends that sent data.
    pub(crate) fn end_stats(&self) -> impl Iterator<Item = EndStats> {
        let ends = (0..).zip(self.engine.ends()).filter(|(_, end)| end.endpoint.counts()[0] > 0);
        ends.map(|(end, _)| {
            let (stats, acked_bytes) = self.techniques.stats(&self.engine, end);
            EndStats { end, stats, acked_bytes }
        })
    }

    /// Asserts that every byte, frame and message is accounted for; costs a walk over all frames in flight.
    pub(crate) fn assert_conserved(&mut self) {
        self.engine.assert_conserved(self.techniques.held_back(), &self.played);
        // Accounts of techniques add up over the whole network.
        if self.played.leading_out().is_empty() {
            self.techniques.assert_conserved(&self.engine);
        }
        self.streams.assert_conserved();
        self.workload.assert_conserved();
    }
}
