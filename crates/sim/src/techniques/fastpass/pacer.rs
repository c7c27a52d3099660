//! The hosts' queues, the messages between hosts and arbiter, and the arbiter's failure.

use std::collections::VecDeque;

use fanin_dataflow::{Arbiter, Delay, NormalBound, Random};
use fanin_network::PortIndex;
use fanin_scenario::FastpassSettings;
use fanin_units::Instant;

use crate::engine::{Engine, HeldBack};
use crate::index::{EndIndex, NIL, peer};
use crate::lists::{List, Lists};
use crate::occurrence::Occurrence;
use crate::parcel::Parcel;

use super::step::PacerStep;

/// Number of the next timeslots that have a list of requests each; later requests wait in one queue.
pub(super) const HORIZON_SLOTS: u64 = 1024;

/// A packet that waits for a timeslot. Its segment stays in the fabric.
#[derive(Clone, Copy)]
struct WaitingPacket {
    parcel: Parcel,
    payload: u32,
    since: u64,
}

/// A message that requests timeslots.
#[derive(Clone, Copy)]
struct SlotRequest {
    pair: u32,
    slots: u32,
    arrival: u64,
}

/// The packets of one host for another.
pub(super) struct PairQueue {
    /// The packets that wait, in [`Pacer::packets`].
    queue: List,
    /// Free bytes in the last requested timeslot.
    room: u32,
    /// Timeslots that the queue needs and has not used yet: granted, requested, or not requested yet.
    outstanding: u32,
    /// Allocated timeslots among `outstanding`.
    granted: u32,
    /// Timeslots among `outstanding` that are not requested yet.
    unrequested: u32,
    /// The first link of the path.
    first: PortIndex,
    /// Index of the sending host in [`Pacer::clocks`].
    clock: u32,
}

impl PairQueue {
    pub(super) fn new(first: PortIndex, clock: u32) -> Self {
        Self { queue: List::default(), room: 0, outstanding: 0, granted: 0, unrequested: 0, first, clock }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ArbiterState {
    Alive,
    Failed,
    /// Hosts send without an arbiter.
    GivenUp,
}

/// The arbiter's and the hosts' counters.
#[derive(Default)]
pub(super) struct FastpassCounters {
    /// Timeslots allocated; allocations that reached their host too late; and timeslots without a packet.
    pub(super) slots: u64,
    pub(super) slots_late: u64,
    pub(super) slots_unused: u64,
    /// Timeslots that have begun.
    slots_begun: u64,
    pub(super) requests: u64,
    pub(super) requests_lost: u64,
    /// Packets sent in timeslots, their bytes on the wire and their waiting time in picoseconds.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) waited: u128,
    /// Packets that had to wait for a timeslot.
    packets_queued: u64,
    /// Failures of an arbiter, and successors that took over.
    pub(super) deaths: u64,
    pub(super) takeovers: u64,
    /// Packets sent without a timeslot when hosts gave up waiting.
    pub(super) packets_given_up: u64,
}

/// The arbiter and the queues of all hosts.
pub(super) struct Pacer {
    technique: u8,
    settings: FastpassSettings,
    delay: Delay,
    random: Random,
    /// Duration of a timeslot in picoseconds, and its bytes on the wire.
    pub(super) slot: u64,
    pub(super) slot_bytes: u32,
    /// Bytes on the wire of a request, and of an allocation.
    pub(super) message_bytes: u32,
    arbiter: Arbiter,
    state: ArbiterState,
    pairs: Vec<PairQueue>,
    /// Offset of each host's clock, in picoseconds; positive if the clock is ahead.
    clocks: Vec<i64>,
    packets: Lists<WaitingPacket>,
    requests: Lists<SlotRequest>,
    /// Requests that the arbiter uses in each timeslot's decision, by timeslot modulo the horizon.
    by_slot: Vec<List>,
    /// Requests in `by_slot`.
    in_horizon: usize,
    /// Requests beyond the horizon, by their arrival.
    beyond_horizon: VecDeque<SlotRequest>,
    /// Pair of each sending end, or [`NIL`].
    pair_of_end: Vec<u32>,
    /// The first timeslot that is not decided.
    slot_next: u64,
    /// The time of the next decision, if one is scheduled.
    decision_at: Option<u64>,
    /// Pairs that start at the nominal time of each future timeslot.
    starting: VecDeque<Vec<u32>>,
    /// Largest delay of an allocation that still arrives in time, in standard deviations.
    in_time: NormalBound,
    pub(super) held_back: HeldBack,
    pub(super) counters: FastpassCounters,
}

/// The fixed parts of a [`Pacer`].
pub(super) struct Parts {
    /// The number of Fastpass among the techniques.
    pub(super) technique: u8,
    pub(super) settings: FastpassSettings,
    pub(super) random: Random,
    pub(super) slot: u64,
    pub(super) slot_bytes: u32,
    pub(super) message_bytes: u32,
    pub(super) arbiter: Arbiter,
    pub(super) pairs: Vec<PairQueue>,
    pub(super) clocks: Vec<i64>,
    pub(super) pair_of_end: Vec<u32>,
}

impl Pacer {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { technique, settings, random, slot, slot_bytes, message_bytes, .. } = parts;
        let Parts { arbiter, pairs, clocks, pair_of_end, .. } = parts;
        let clock_max = clocks.iter().copied().max().unwrap_or(0);
        let spare = settings.advance.get() as i64 - clock_max - settings.delay.get() as i64;
        Self {
            technique,
            delay: Delay::Normal { mean: settings.delay, sd: settings.delay_sd },
            in_time: NormalBound::new(spare as f64 / settings.delay_sd.get() as f64),
            settings,
            random,
            slot,
            slot_bytes,
            message_bytes,
            arbiter,
            state: ArbiterState::Alive,
            pairs,
            clocks,
            packets: Lists::new(),
            requests: Lists::new(),
            by_slot: vec![List::default(); HORIZON_SLOTS as usize],
            in_horizon: 0,
            beyond_horizon: VecDeque::new(),
            pair_of_end,
            slot_next: 0,
            decision_at: None,
            starting: VecDeque::new(),
            held_back: HeldBack::default(),
            counters: FastpassCounters::default(),
        }
    }

    /// Schedules the arbiter's failure, if it fails.
    pub(super) fn start(&self, engine: &mut Engine) {
        if !self.settings.fail_at.is_zero() {
            let at = self.settings.fail_at.get();
            engine.schedule.insert(at, self.step(PacerStep::ArbiterFailure));
            let failover = self.step(PacerStep::ArbiterFailover);
            engine.schedule.insert(at + self.settings.failover.get(), failover);
        }
    }

    fn step(&self, step: PacerStep) -> Occurrence {
        step.scheduled(self.technique).occurrence()
    }

    /// Returns true if packets of an end wait for timeslots.
    pub(super) fn holds(&self, end: EndIndex) -> bool {
        self.state != ArbiterState::GivenUp && self.pair_of_end[end as usize] != NIL
    }

    /// Queues the segment in the free place until its pair has a timeslot.
    pub(super) fn enqueue(&mut self, engine: &mut Engine, end: EndIndex, place: u32) {
        assert!(self.holds(end), "a packet waits for a timeslot that it does not need");
        let payload = u32::from(engine.fabric.segment(place as usize).payload);
        let route = engine.end(end).route;
        let parcel = engine.fabric.wrap(place, route, peer(end));
        let wire_bytes = parcel.wire_bytes();
        let pair = &mut self.pairs[self.pair_of_end[end as usize] as usize];
        // Small packets for one destination share a timeslot.
        if pair.room < wire_bytes {
            pair.outstanding += 1;
            pair.unrequested += 1;
            pair.room = self.slot_bytes;
        }
        pair.room -= wire_bytes.min(pair.room);
        self.held_back.payload += u64::from(payload);
        self.held_back.frames += 1;
        self.counters.packets_queued += 1;
        self.packets.push(&mut pair.queue, WaitingPacket { parcel, payload, since: engine.now() });
    }

    /// Requests the timeslots that an end's queued packets need.
    pub(super) fn request_slots(&mut self, engine: &mut Engine, end: EndIndex) {
        let pair = self.pair_of_end[end as usize];
        if pair != NIL {
            self.request_pair_slots(engine, pair);
        }
    }

    fn request_pair_slots(&mut self, engine: &mut Engine, number: u32) {
        let pair = &mut self.pairs[number as usize];
        if pair.unrequested == 0 {
            return;
        }
        assert!(pair.granted + pair.unrequested <= pair.outstanding, "timeslots beyond the needed ones");
        let backlog = engine.fabric.occupy(pair.first, engine.now(), self.message_bytes);
        let ahead = if self.settings.priority { 0 } else { backlog };
        let slots = std::mem::take(&mut pair.unrequested);
        self.counters.requests += 1;
        let arrival = engine.now() + ahead + self.delay.draw(&mut self.random).get();
        let request = SlotRequest { pair: number, slots, arrival };
        match self.state {
            ArbiterState::Alive => self.handle_request(engine, request),
            ArbiterState::Failed | ArbiterState::GivenUp => self.lose(request),
        }
    }

    /// Handles a request that has left its host. The arbiter uses it in the first timeslot decided after its arrival.
    fn handle_request(&mut self, engine: &mut Engine, request: SlotRequest) {
        let advance = self.settings.advance.get();
        let horizon = (engine.now() + advance) / self.slot + HORIZON_SLOTS;
        let slot = (request.arrival + advance).div_ceil(self.slot).max(self.slot_next);
        if slot >= horizon {
            let at = request.arrival - self.slot * (HORIZON_SLOTS / 2);
            let place = self.beyond_horizon.partition_point(|before| before.arrival <= request.arrival);
            self.beyond_horizon.insert(place, request);
            engine.schedule.insert(at, self.step(PacerStep::RequestInHorizon));
            return;
        }
        self.requests.push(&mut self.by_slot[(slot % HORIZON_SLOTS) as usize], request);
        self.in_horizon += 1;
        self.schedule_decision(engine, slot);
    }

    /// Moves the first request from beyond the horizon to its timeslot.
    pub(super) fn handle_request_in_horizon(&mut self, engine: &mut Engine) {
        if let Some(request) = self.beyond_horizon.pop_front() {
            self.handle_request(engine, request);
        }
    }

    /// Schedules the decision of a timeslot, unless an earlier one is scheduled.
    fn schedule_decision(&mut self, engine: &mut Engine, slot: u64) {
        let at = slot * self.slot - self.settings.advance.get();
        if self.decision_at.is_none_or(|before| at < before) {
            self.decision_at = Some(at);
            engine.schedule.insert(at, self.step(PacerStep::SlotDecision));
        }
    }

    /// Decides a timeslot, `advance` before it begins (thesis §6.4.1).
    pub(super) fn decide(&mut self, engine: &mut Engine) {
        let now = engine.now();
        // A decision does nothing if an earlier one or the arbiter's failure has replaced it.
        if self.decision_at != Some(now) {
            return;
        }
        self.decision_at = None;
        let start = now + self.settings.advance.get();
        let slot = start / self.slot;
        assert!(slot >= self.slot_next, "a timeslot is decided twice");
        self.slot_next = slot + 1;
        let asked = &mut self.by_slot[(slot % HORIZON_SLOTS) as usize];
        while let Some(request) = self.requests.pop(asked) {
            assert!(request.arrival <= now, "the arbiter knows a request that has not arrived");
            self.in_horizon -= 1;
            self.arbiter.handle_demand(request.pair, request.slots);
        }
        let mut allocated = Vec::new();
        self.arbiter.allocate(Instant::new(start), |pair| allocated.push(pair));
        let mut together = Vec::with_capacity(allocated.len());
        for number in allocated {
            let pair = &mut self.pairs[number as usize];
            pair.granted += 1;
            assert!(pair.granted <= pair.outstanding, "a pair has more timeslots than it asked for");
            self.counters.slots += 1;
            let begins = (start as i64 - self.clocks[pair.clock as usize]).max(0) as u64;
            // A host that receives its timeslot too late uses it at once.
            let late = self
                .delay
                .draw_above(&mut self.random, &self.in_time)
                .map(|delay| now + delay.get())
                .filter(|&arrival| arrival > begins);
            self.counters.slots_late += u64::from(late.is_some());
            let at = late.unwrap_or(begins);
            if at == start {
                together.push(number);
            } else {
                engine.schedule.insert(at, self.step(PacerStep::PairSlot(number)));
            }
        }
        if !together.is_empty() {
            self.starting.push_back(together);
            engine.schedule.insert(start, self.step(PacerStep::SlotStart));
        }
        if !self.arbiter.is_idle() {
            self.schedule_decision(engine, slot + 1);
        } else if self.in_horizon > 0 {
            let is_asked_for = |slot: &u64| !self.by_slot[(slot % HORIZON_SLOTS) as usize].is_empty();
            if let Some(next) = (slot + 1..slot + 1 + HORIZON_SLOTS).find(is_asked_for) {
                self.schedule_decision(engine, next);
            }
        }
    }

    /// Begins a timeslot for the pairs that start it at its nominal time.
    pub(super) fn begin_slot(&mut self, engine: &mut Engine) {
        for pair in self.starting.pop_front().expect("a list for each start of a slot") {
            self.use_slot(engine, pair);
        }
    }

    /// Begins a pair's timeslot: the host sends the packets that fit.
    pub(super) fn use_slot(&mut self, engine: &mut Engine, number: u32) {
        let pair = &mut self.pairs[number as usize];
        assert!(pair.granted > 0, "a pair uses a timeslot that it was not given");
        pair.granted -= 1;
        pair.outstanding -= 1;
        let mut left = self.slot_bytes;
        self.counters.slots_begun += 1;
        self.counters.slots_unused += u64::from(pair.queue.is_empty());
        // A full segment with SACK blocks is longer than a timeslot, and has one of its own.
        let fits = |bytes, left| bytes <= left || left == self.slot_bytes;
        while self.packets.first(pair.queue).is_some_and(|waiting| fits(waiting.parcel.wire_bytes(), left)) {
            let Some(waiting) = self.packets.pop(&mut pair.queue) else { break };
            left = left.saturating_sub(waiting.parcel.wire_bytes());
            self.held_back.payload -= u64::from(waiting.payload);
            self.held_back.frames -= 1;
            self.counters.packets += 1;
            self.counters.bytes += u64::from(waiting.parcel.wire_bytes());
            self.counters.waited += u128::from(engine.now() - waiting.since);
            engine.transmit_parcel(pair.first, waiting.parcel);
        }
        if pair.queue.is_empty() {
            pair.room = 0;
        }
    }

    /// Counts a request that reaches no arbiter. If the request would arrive after a failover, its host has repeated it.
    fn lose(&mut self, request: SlotRequest) {
        let settings = &self.settings;
        let until = settings.fail_at.get() + settings.failover.get();
        self.counters.requests_lost += u64::from(!settings.standby || request.arrival <= until);
    }

    /// Lets the arbiter fail, which loses all requests.
    pub(super) fn fail(&mut self, now: u64) {
        assert_eq!(self.state, ArbiterState::Alive, "an arbiter fails twice");
        self.state = ArbiterState::Failed;
        self.counters.deaths += 1;
        self.arbiter.forget();
        self.decision_at = None;
        self.in_horizon = 0;
        for place in 0..self.by_slot.len() {
            while let Some(request) = self.requests.pop(&mut self.by_slot[place]) {
                // Requests that have arrived were not lost under way.
                if request.arrival > now {
                    self.lose(request);
                }
            }
        }
        while let Some(request) = self.beyond_horizon.pop_front() {
            self.lose(request);
        }
    }

    /// Lets hosts request all timeslots that they still need from the next arbiter, or send without an arbiter.
    pub(super) fn fail_over(&mut self, engine: &mut Engine) {
        assert_eq!(self.state, ArbiterState::Failed, "an arbiter is replaced that has not failed");
        if self.settings.standby {
            self.state = ArbiterState::Alive;
            self.counters.takeovers += 1;
            for number in 0..self.pairs.len() as u32 {
                let pair = &mut self.pairs[number as usize];
                pair.unrequested = pair.outstanding - pair.granted;
                self.request_pair_slots(engine, number);
            }
        } else {
            self.state = ArbiterState::GivenUp;
            for pair in &mut self.pairs {
                (pair.outstanding, pair.unrequested, pair.room) = (pair.granted, 0, 0);
                while let Some(waiting) = self.packets.pop(&mut pair.queue) {
                    self.held_back.payload -= u64::from(waiting.payload);
                    self.held_back.frames -= 1;
                    self.counters.packets_given_up += 1;
                    engine.transmit_parcel(pair.first, waiting.parcel);
                }
            }
        }
    }

    /// Asserts that every timeslot has begun or is granted, and every packet was sent or waits.
    pub(super) fn assert_slots_conserved(&self) {
        let granted: u64 = self.pairs.iter().map(|pair| u64::from(pair.granted)).sum();
        let counters = &self.counters;
        assert_eq!(counters.slots, counters.slots_begun + granted, "timeslots are unaccounted for");
        let waiting = self.pairs.iter().flat_map(|pair| self.packets.iter(pair.queue));
        let held = waiting.fold(HeldBack::default(), |sum, packet| HeldBack {
            payload: sum.payload + u64::from(packet.payload),
            frames: sum.frames + 1,
        });
        assert_eq!(held, self.held_back, "packets that wait for timeslots are unaccounted for");
        let sent = counters.packets + counters.packets_given_up;
        assert_eq!(counters.packets_queued, sent + held.frames as u64, "packets are unaccounted for");
        let listed: usize = self.by_slot.iter().map(|list| self.requests.iter(*list).count()).sum();
        assert_eq!(listed, self.in_horizon, "requests are unaccounted for");
    }
}
