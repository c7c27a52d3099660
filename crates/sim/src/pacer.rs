//! Fastpass below TCP: hosts queue their packets until the central arbiter gives them timeslots.
//!
//! J. Perry et al., "Fastpass", SIGCOMM 2014; thesis §6.4. Who may send when is decided by
//! [`fanin_dataflow::Arbiter`]; here are the hosts' queues, the messages to and from the arbiter with their delays, the
//! hosts' clocks, and what happens when the arbiter dies. The messages are not frames of the simulation: each takes
//! the delay that the scenario says, and a request takes the time of a smallest frame on its host's link.

use std::collections::{HashMap, VecDeque};

use fanin_dataflow::{Arbiter, Delay, NormalBound};
use fanin_network::{Network, PortIndex, Roles};
use fanin_scenario::{Fastpass, Scenario};
use fanin_units::{Bytes, Duration, Instant, Rate};
use serde_json::{Value, json};

use crate::fabric::{Fabric, Parcel, Step};
use crate::lists::{List, Lists};
use crate::occurrence::{Occurrence, TechniqueStep};
use crate::prefetch::prefetch;
use crate::random::{Kind, Purpose, Random, host, seed};
use crate::schedule::Schedule;

/// Requests that are heeded no later than so many timeslots from now wait by timeslot.
const SLOTS_IN_SIGHT: u64 = 1024;

/// Bytes on the wire of a message to or from the arbiter: a smallest frame.
const MESSAGE_BYTES: u32 = 84;

/// A packet that waits for a timeslot. Its segment stays in the fabric, and is not looked at before it has arrived.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) parcel: Parcel,
    payload: u32,
    since: u64,
}

/// A message that asks for timeslots.
#[derive(Clone, Copy)]
struct Request {
    pair: u32,
    slots: u32,
    arrival: u64,
}

/// What one host has for another. Half a cache line: there are tens of thousands.
#[repr(align(32))]
struct Pair {
    /// Packets, in [`Pacer::packets`].
    queue: List,
    /// Bytes left in the last timeslot that was asked for.
    room: u32,
    /// Timeslots that were asked for, or will be, and are not used yet.
    outstanding: u32,
    /// Of these, given out already.
    granted: u32,
    /// Of these, not asked for yet.
    unasked: u32,
    /// The first link on the way.
    first: PortIndex,
    /// Which of [`Pacer::clocks`] is the host's.
    clock: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arbitration {
    Alive,
    Dead,
    /// There is none any more; hosts send as they like.
    GivenUp,
}

#[derive(Default)]
struct Figures {
    slots: u64,
    slots_late: u64,
    slots_unused: u64,
    requests: u64,
    requests_lost: u64,
    bytes: u64,
    packets: u64,
    waited: u128,
    /// How often an arbiter died, and another took its place.
    deaths: u64,
    takeovers: u64,
    /// Packets that were sent without a timeslot when hosts gave up waiting.
    packets_given_up: u64,
}

/// The arbiter and the queues of all hosts.
pub(crate) struct Pacer {
    settings: Fastpass,
    delay: Delay,
    random: Random,
    slot: u64,
    slot_bytes: u32,
    arbiter: Arbiter,
    state: Arbitration,
    pairs: Vec<Pair>,
    /// How far hosts' clocks are ahead, in picoseconds.
    clocks: Vec<i64>,
    packets: Lists<Waiting>,
    requests: Lists<Request>,
    /// By timeslot, round a ring: the requests that are heeded first when it is decided.
    heeded: Box<[List]>,
    /// How many those are.
    in_sight: usize,
    /// Requests that are further away.
    out_of_sight: VecDeque<Request>,
    /// The pair that each end sends by.
    pair_of_end: Vec<u32>,
    /// The first timeslot that is not decided.
    slot_next: u64,
    /// When it will be, if that is scheduled.
    decided_at: Option<u64>,
    given: Vec<u32>,
    /// Pairs whose timeslot begins at the same time for all, and how many of them have the first, the second and so on.
    going: VecDeque<u32>,
    going_together: VecDeque<u32>,
    /// A delay that does not come near this lets an allocation be there in time.
    in_time: NormalBound,
    /// Payload in all queues, and packets.
    pub(crate) payload: u64,
    pub(crate) waiting: usize,
    figures: Figures,
}

impl Pacer {
    /// `routes` are those of all ends, in order; of the first `bulk` ends every second one sends answers.
    pub(crate) fn new(
        scenario: &Scenario,
        network: &Network,
        roles: &Roles,
        fabric: &Fabric,
        (routes, bulk): (&[Step], usize),
        run: u64,
    ) -> Self {
        let settings = scenario.shaping.fastpass.clone();
        let slot_bytes =
            settings.slot_mtus * (network.framing.link_bytes + scenario.transport.mtu.get() as u32);
        // The fastest link that joins a computer to the network: those of the services are left out.
        let hosts: std::collections::HashSet<u32> =
            roles.readouts.iter().chain(&roles.collectors).copied().collect();
        let fastest = (network.links.iter())
            .filter(|link| link.ends.iter().any(|node| hosts.contains(node)))
            .map(|link| link.rate)
            .max()
            .expect("a network has hosts");
        // Every link is lent for longer than it is busy, where it is not to be filled.
        let lent = |rate: Rate| {
            let busy = rate.time_to_send(Bytes::new(u64::from(slot_bytes)));
            scenario.shaping.stretched(busy)
        };
        let slot = lent(fastest);
        let mut random = Random::new(seed(run, host(Kind::Arbiter, 0), Purpose::Role));
        let mut clocks = Vec::new();
        let mut clock_of: HashMap<u32, u32> = HashMap::new();
        let mut arbiter = Arbiter::new(slot);
        // The arbiter's number of each port's link.
        let mut links = vec![u32::MAX; 2 * network.links.len()];
        let mut way = Vec::new();
        let mut known: HashMap<Vec<PortIndex>, u32> = HashMap::with_capacity(routes.len());
        let mut pairs: Vec<Pair> = Vec::with_capacity(routes.len());
        let mut pair_of_end = Vec::with_capacity(routes.len());
        for (end, &route) in routes.iter().enumerate() {
            if settings.answers_only && (end >= bulk || end % 2 == 0) {
                pair_of_end.push(u32::MAX);
                continue;
            }
            let path: Vec<PortIndex> = fabric.ports_on(route).collect();
            let Some(&first) = path.first() else {
                // A connection of a host with itself.
                pair_of_end.push(u32::MAX);
                continue;
            };
            let pair = *known.entry(path).or_insert_with_key(|path| {
                way.clear();
                for &port in path {
                    let link = &mut links[port as usize];
                    if *link == u32::MAX {
                        let rate = network.links[port as usize / 2].rate;
                        *link = arbiter.add_link(lent(rate));
                    }
                    way.push(*link);
                }
                // Clocks differ by `clock_error` at most: each is off by up to half of it either way (thesis §6.4.2).
                let width = settings.clock_error.get();
                let clock = *clock_of.entry(network.source(first)).or_insert_with(|| {
                    let off = Delay::Uniform { min: Duration::ZERO, max: Duration::new(width) };
                    clocks.push(off.draw(&mut random).get() as i64 - (width / 2) as i64);
                    (clocks.len() - 1) as u32
                });
                pairs.push(Pair {
                    queue: List::default(),
                    room: 0,
                    outstanding: 0,
                    granted: 0,
                    unasked: 0,
                    first,
                    clock,
                });
                arbiter.add_pair(&way)
            });
            pair_of_end.push(pair);
        }
        let clock_max = clocks.iter().copied().max().unwrap_or(0);
        let spare = settings.advance.get() as i64 - clock_max - settings.delay.get() as i64;
        Self {
            delay: Delay::Normal { mean: settings.delay, sd: settings.delay_sd },
            in_time: NormalBound::new(spare as f64 / settings.delay_sd.get() as f64),
            settings,
            random,
            slot: slot.get(),
            slot_bytes,
            arbiter,
            state: Arbitration::Alive,
            pairs,
            clocks,
            packets: Lists::new(),
            requests: Lists::new(),
            heeded: vec![List::default(); SLOTS_IN_SIGHT as usize].into(),
            in_sight: 0,
            out_of_sight: VecDeque::new(),
            pair_of_end,
            slot_next: 0,
            decided_at: None,
            given: Vec::new(),
            going: VecDeque::new(),
            going_together: VecDeque::new(),
            payload: 0,
            waiting: 0,
            figures: Figures::default(),
        }
    }

    /// Schedules the arbiter's death, if it dies.
    pub(crate) fn start(&self, schedule: &mut Schedule) {
        if !self.settings.fail_at.is_zero() {
            let at = self.settings.fail_at.get();
            schedule.insert(at, Occurrence::Technique(TechniqueStep::ArbiterFailure));
            schedule.insert(
                at + self.settings.failover.get(),
                Occurrence::Technique(TechniqueStep::ArbiterFailover),
            );
        }
    }

    /// Whether an end's packets wait for timeslots.
    #[inline]
    pub(crate) fn holds(&self, end: u32) -> bool {
        self.state != Arbitration::GivenUp && self.pair_of_end[end as usize] != u32::MAX
    }

    /// Has what is soon needed of an end fetched.
    #[inline(always)]
    pub(crate) fn prefetch(&self, end: u32) {
        if let Some(pair) = self.pairs.get(self.pair_of_end[end as usize] as usize) {
            prefetch(pair);
        }
    }

    /// An endpoint has a packet with so much payload: it waits for a timeslot.
    pub(crate) fn enqueue(&mut self, now: u64, from: u32, parcel: Parcel, payload: u32) {
        let wire_bytes = parcel.wire_bytes();
        let pair = &mut self.pairs[self.pair_of_end[from as usize] as usize];
        // Small packets for one destination share a timeslot.
        if pair.room < wire_bytes {
            pair.outstanding += 1;
            pair.unasked += 1;
            pair.room = self.slot_bytes;
        }
        pair.room -= wire_bytes.min(pair.room);
        self.payload += u64::from(payload);
        self.waiting += 1;
        self.packets.push(&mut pair.queue, Waiting { parcel, payload, since: now });
    }

    /// Asks for what an end's last packets need.
    pub(crate) fn ask(&mut self, schedule: &mut Schedule, fabric: &mut Fabric, now: u64, from: u32) {
        let number = self.pair_of_end[from as usize];
        if number != u32::MAX {
            self.ask_pair(schedule, fabric, now, number);
        }
    }

    fn ask_pair(&mut self, schedule: &mut Schedule, fabric: &mut Fabric, now: u64, number: u32) {
        let pair = &mut self.pairs[number as usize];
        if pair.unasked == 0 {
            return;
        }
        let backlog = fabric.occupy(pair.first, now, MESSAGE_BYTES);
        let ahead = if self.settings.priority { 0 } else { backlog };
        let slots = std::mem::take(&mut pair.unasked);
        self.figures.requests += 1;
        let arrival = now + ahead + self.delay.draw(&mut self.random).get();
        let request = Request { pair: number, slots, arrival };
        match self.state {
            Arbitration::Alive => self.handle_request(schedule, now, request),
            Arbitration::Dead | Arbitration::GivenUp => self.lose(request),
        }
    }

    /// Something of the arbiter's has come; `send` gets the packets that may go.
    pub(crate) fn handle(
        &mut self,
        schedule: &mut Schedule,
        fabric: &mut Fabric,
        now: u64,
        step: TechniqueStep,
        send: impl FnMut(&mut Schedule, &mut Fabric, PortIndex, Parcel),
    ) {
        match step {
            TechniqueStep::SlotDecision => self.decide(schedule, now),
            TechniqueStep::SlotStart => self.begin(schedule, fabric, now, send),
            TechniqueStep::RequestInHorizon => self.demand(schedule, now),
            TechniqueStep::PairSlot(number) => self.release(schedule, fabric, now, number, send),
            TechniqueStep::ArbiterFailure => self.fail(now),
            TechniqueStep::ArbiterFailover => self.fail_over(schedule, fabric, now, send),
        }
    }

    /// A request is on its way: it is heeded when the first timeslot after its arrival is decided.
    fn handle_request(&mut self, schedule: &mut Schedule, now: u64, request: Request) {
        let advance = self.settings.advance.get();
        let sight = (now + advance) / self.slot + SLOTS_IN_SIGHT;
        let slot = (request.arrival + advance).div_ceil(self.slot).max(self.slot_next);
        if slot >= sight {
            let at = request.arrival - self.slot * (SLOTS_IN_SIGHT / 2);
            let place = self.out_of_sight.partition_point(|before| before.arrival <= request.arrival);
            self.out_of_sight.insert(place, request);
            schedule.insert(at, Occurrence::Technique(TechniqueStep::RequestInHorizon));
            return;
        }
        self.requests.push(&mut self.heeded[(slot % SLOTS_IN_SIGHT) as usize], request);
        self.in_sight += 1;
        self.decide_at(schedule, slot);
    }

    /// A request that was far away has come into sight.
    fn demand(&mut self, schedule: &mut Schedule, now: u64) {
        if let Some(request) = self.out_of_sight.pop_front() {
            self.handle_request(schedule, now, request);
        }
    }

    /// Sees to it that a timeslot is decided.
    fn decide_at(&mut self, schedule: &mut Schedule, slot: u64) {
        let at = slot * self.slot - self.settings.advance.get();
        if self.decided_at.is_none_or(|before| at < before) {
            self.decided_at = Some(at);
            schedule.insert(at, Occurrence::Technique(TechniqueStep::SlotDecision));
        }
    }

    /// Thesis §6.4.1: a timeslot is decided `advance` before it begins.
    fn decide(&mut self, schedule: &mut Schedule, now: u64) {
        // What a nearer one has overtaken, or the arbiter's death, does nothing.
        if self.decided_at != Some(now) {
            return;
        }
        self.decided_at = None;
        let start = now + self.settings.advance.get();
        let slot = start / self.slot;
        self.slot_next = slot + 1;
        let asked = &mut self.heeded[(slot % SLOTS_IN_SIGHT) as usize];
        while let Some(request) = self.requests.pop(asked) {
            self.in_sight -= 1;
            self.arbiter.handle_demand(request.pair, request.slots);
        }
        let mut given = std::mem::take(&mut self.given);
        self.arbiter.allocate(Instant::new(start), |pair| given.push(pair));
        // Pairs have lain idle since they asked: they are fetched together, not one after the other.
        given.iter().for_each(|&number| prefetch(&self.pairs[number as usize]));
        let mut together = 0;
        for number in given.drain(..) {
            let pair = &mut self.pairs[number as usize];
            pair.granted += 1;
            self.figures.slots += 1;
            let begins = (start as i64 - self.clocks[pair.clock as usize]).max(0) as u64;
            // What comes too late is used at once.
            let late = self
                .delay
                .draw_above(&mut self.random, &self.in_time)
                .map(|delay| now + delay.get())
                .filter(|&arrival| arrival > begins);
            self.figures.slots_late += u64::from(late.is_some());
            let at = late.unwrap_or(begins);
            if at == start {
                self.going.push_back(number);
                together += 1;
            } else {
                schedule.insert(at, Occurrence::Technique(TechniqueStep::PairSlot(number)));
            }
        }
        self.given = given;
        if together > 0 {
            self.going_together.push_back(together);
            schedule.insert(start, Occurrence::Technique(TechniqueStep::SlotStart));
        }
        if !self.arbiter.is_idle() {
            self.decide_at(schedule, slot + 1);
        } else if self.in_sight > 0 {
            let is_asked_for = |slot: &u64| !self.heeded[(slot % SLOTS_IN_SIGHT) as usize].is_empty();
            if let Some(next) = (slot + 1..slot + 1 + SLOTS_IN_SIGHT).find(is_asked_for) {
                self.decide_at(schedule, next);
            }
        }
    }

    /// A timeslot begins, for all whose clocks are right and who have heard of it.
    fn begin(
        &mut self,
        schedule: &mut Schedule,
        fabric: &mut Fabric,
        now: u64,
        mut send: impl FnMut(&mut Schedule, &mut Fabric, PortIndex, Parcel),
    ) {
        let together = self.going_together.pop_front().unwrap_or(0) as usize;
        // As above, and so do their packets.
        for place in 0..together {
            let pair = |place: usize| self.going.get(place).map(|&number| &self.pairs[number as usize]);
            if let Some(pair) = pair(place + 8) {
                prefetch(pair);
            }
            if let Some(waiting) = pair(place + 4).and_then(|pair| self.packets.first(pair.queue)) {
                prefetch(waiting);
            }
            let Some(&number) = self.going.get(place) else { break };
            self.release(schedule, fabric, now, number, &mut send);
        }
        self.going.drain(..together);
    }

    /// A host's timeslot has come.
    fn release(
        &mut self,
        schedule: &mut Schedule,
        fabric: &mut Fabric,
        now: u64,
        number: u32,
        mut send: impl FnMut(&mut Schedule, &mut Fabric, PortIndex, Parcel),
    ) {
        let pair = &mut self.pairs[number as usize];
        pair.granted -= 1;
        pair.outstanding = pair.outstanding.saturating_sub(1);
        let mut left = self.slot_bytes;
        self.figures.slots_unused += u64::from(pair.queue.is_empty());
        // Where nothing is left, the next packet need not be looked at, which lies elsewhere.
        while left > 0
            && self.packets.first(pair.queue).is_some_and(|waiting| waiting.parcel.wire_bytes() <= left)
        {
            let Some(waiting) = self.packets.pop(&mut pair.queue) else { break };
            left -= waiting.parcel.wire_bytes();
            self.payload -= u64::from(waiting.payload);
            self.waiting -= 1;
            self.figures.packets += 1;
            self.figures.bytes += u64::from(waiting.parcel.wire_bytes());
            self.figures.waited += u128::from(now - waiting.since);
            send(schedule, fabric, pair.first, waiting.parcel);
        }
        if pair.queue.is_empty() {
            pair.room = 0;
        }
    }

    /// A request finds no arbiter. One that comes when another has taken over is of no account: its host has asked again.
    fn lose(&mut self, request: Request) {
        let settings = &self.settings;
        let until = settings.fail_at.get() + settings.failover.get();
        self.figures.requests_lost += u64::from(!settings.standby || request.arrival <= until);
    }

    /// The arbiter dies, and forgets what it was asked for.
    fn fail(&mut self, now: u64) {
        self.state = Arbitration::Dead;
        self.figures.deaths += 1;
        self.arbiter.forget();
        self.decided_at = None;
        self.in_sight = 0;
        for place in 0..self.heeded.len() {
            while let Some(request) = self.requests.pop(&mut self.heeded[place]) {
                // What was there before died with the arbiter's memory.
                if request.arrival > now {
                    self.lose(request);
                }
            }
        }
        while let Some(request) = self.out_of_sight.pop_front() {
            self.lose(request);
        }
    }

    /// Hosts ask the new arbiter for all that they still wait for, or send without one.
    fn fail_over(
        &mut self,
        schedule: &mut Schedule,
        fabric: &mut Fabric,
        now: u64,
        mut send: impl FnMut(&mut Schedule, &mut Fabric, PortIndex, Parcel),
    ) {
        if self.settings.standby {
            self.state = Arbitration::Alive;
            self.figures.takeovers += 1;
            for number in 0..self.pairs.len() as u32 {
                let pair = &mut self.pairs[number as usize];
                pair.unasked = pair.outstanding - pair.granted;
                self.ask_pair(schedule, fabric, now, number);
            }
        } else {
            self.state = Arbitration::GivenUp;
            for pair in &mut self.pairs {
                (pair.outstanding, pair.unasked, pair.room) = (pair.granted, 0, 0);
                while let Some(waiting) = self.packets.pop(&mut pair.queue) {
                    self.payload -= u64::from(waiting.payload);
                    self.waiting -= 1;
                    self.figures.packets_given_up += 1;
                    send(schedule, fabric, pair.first, waiting.parcel);
                }
            }
        }
    }

    /// Its figures for the summary.
    pub(crate) fn figures(&self) -> Value {
        let figures = &self.figures;
        let mut value = json!({
            "timeslot_us": self.slot as f64 / 1e6,
            "slots": figures.slots,
            "slots_late": figures.slots_late,
            "slots_unused": figures.slots_unused,
            "requests": figures.requests,
            "requests_lost": figures.requests_lost,
            "control_bytes": (figures.requests + figures.slots) * u64::from(MESSAGE_BYTES),
        });
        if figures.deaths > 0 {
            value["deaths"] = json!(figures.deaths);
            value["takeovers"] = json!(figures.takeovers);
            value["packets_given_up"] = json!(figures.packets_given_up);
        }
        if figures.packets > 0 {
            value["wait_ms_mean"] = json!(figures.waited as f64 / figures.packets as f64 / 1e9);
        }
        if figures.slots > 0 {
            let room = figures.slots as f64 * f64::from(self.slot_bytes);
            value["slot_fill"] = json!(figures.bytes as f64 / room);
        }
        value
    }
}
