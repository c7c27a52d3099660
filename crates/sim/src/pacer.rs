//! Fastpass below TCP: hosts queue their packets until the central arbiter gives them timeslots.
//!
//! J. Perry et al., "Fastpass", SIGCOMM 2014; thesis §6.4. Who may send when is decided by
//! [`fanin_dataflow::Arbiter`]; here are the hosts' queues, the messages to and from the arbiter with their delays, the
//! hosts' clocks, and what happens when the arbiter dies. The messages are not frames of the simulation: each takes
//! the delay that the scenario says, and a request takes the time of a smallest frame on its host's link.

use std::collections::HashMap;

use fanin_dataflow::{Arbiter, Delay};
use fanin_scenario::{Fastpass, Scenario};
use fanin_units::{Bytes, Duration, Instant};
use serde_json::{Value, json};

use crate::fabric::{Fabric, INDEX_BITS, Parcel, Step};
use crate::lists::{List, Lists};
use crate::network::{Network, PortIndex};
use crate::prefetch::prefetch;
use crate::random::{Kind, Purpose, Random, host, seed};
use crate::schedule::Schedule;
use crate::topology::Roles;

/// An occurrence of the arbiter or of a host's queue.
pub(crate) const PACING: u32 = 9;

/// What such an occurrence is, in the two lowest bits of its number; the rest is a pair, or which fault.
mod what {
    pub(super) const TIMESLOT: u32 = 0;
    pub(super) const DEMAND: u32 = 1;
    pub(super) const SEND: u32 = 2;
    pub(super) const FAULT: u32 = 3;
}

const DIES: u32 = 0;
const NOTICED: u32 = 1;

/// Bytes on the wire of a message to or from the arbiter: a smallest frame.
const MESSAGE_BYTES: u32 = 84;

/// A packet that waits for a timeslot. Its segment stays in the fabric, and is not looked at before it has arrived.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) parcel: Parcel,
    payload: u32,
    since: u64,
}

/// What one host has for another. A cache line: there are tens of thousands.
#[repr(align(64))]
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
    /// Timeslots in requests on their way to the arbiter, in [`Pacer::requests`].
    requests: List,
    /// The first link on the way.
    first: PortIndex,
    /// How far the host's clock is ahead, in picoseconds.
    clock: i64,
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
    packets: Lists<Waiting>,
    requests: Lists<u32>,
    /// The pair that each end sends by.
    pair_of_end: Vec<u32>,
    /// The first timeslot that is not decided.
    slot_next: u64,
    /// When it will be, if that is scheduled.
    decided_at: Option<u64>,
    given: Vec<u32>,
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
        let slot = fastest.time_to_send(Bytes::new(u64::from(slot_bytes)));
        let mut random = Random::new(seed(run, host(Kind::Arbiter, 0), Purpose::Role));
        let mut clocks: HashMap<u32, i64> = HashMap::new();
        let mut arbiter = Arbiter::new(slot);
        let mut links: HashMap<PortIndex, u32> = HashMap::new();
        let mut known: HashMap<Vec<PortIndex>, u32> = HashMap::new();
        let mut pairs: Vec<Pair> = Vec::new();
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
                let way: Vec<u32> = path
                    .iter()
                    .map(|&port| {
                        *links.entry(port).or_insert_with(|| {
                            let rate = network.links[port as usize / 2].rate;
                            arbiter.add_link(rate.time_to_send(Bytes::new(u64::from(slot_bytes))))
                        })
                    })
                    .collect();
                // Clocks differ by `clock_error` at most: each is off by up to half of it either way (thesis §6.4.2).
                let width = settings.clock_error.get();
                let clock = *clocks.entry(network.source(first)).or_insert_with(|| {
                    let off = Delay::Uniform { min: Duration::ZERO, max: Duration::new(width) };
                    off.draw(&mut random).get() as i64 - (width / 2) as i64
                });
                pairs.push(Pair {
                    queue: List::default(),
                    room: 0,
                    outstanding: 0,
                    granted: 0,
                    unasked: 0,
                    requests: List::default(),
                    first,
                    clock,
                });
                arbiter.add_pair(&way)
            });
            pair_of_end.push(pair);
        }
        assert!(pairs.len() < 1 << (INDEX_BITS - 2), "more than 2^26 pairs of hosts");
        Self {
            delay: Delay::Normal { mean: settings.delay, sd: settings.delay_sd },
            settings,
            random,
            slot: slot.get(),
            slot_bytes,
            arbiter,
            state: Arbitration::Alive,
            pairs,
            packets: Lists::new(),
            requests: Lists::new(),
            pair_of_end,
            slot_next: 0,
            decided_at: None,
            given: Vec::new(),
            payload: 0,
            waiting: 0,
            figures: Figures::default(),
        }
    }

    /// Schedules the arbiter's death, if it dies.
    pub(crate) fn start(&self, schedule: &mut Schedule) {
        if !self.settings.fail_at.is_zero() {
            let at = self.settings.fail_at.get();
            schedule.insert(at, occurrence(what::FAULT, DIES));
            schedule.insert(at + self.settings.failover.get(), occurrence(what::FAULT, NOTICED));
        }
    }

    /// Whether an end's packets wait for timeslots.
    #[inline]
    pub(crate) fn holds(&self, end: u32) -> bool {
        self.state != Arbitration::GivenUp && self.pair_of_end[end as usize] != u32::MAX
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
        self.requests.push(&mut pair.requests, std::mem::take(&mut pair.unasked));
        self.figures.requests += 1;
        let at = now + ahead + self.delay.draw(&mut self.random).get();
        schedule.insert(at, occurrence(what::DEMAND, number));
    }

    /// Something of the arbiter's has come; `send` gets the packets that may go.
    pub(crate) fn handle(
        &mut self,
        schedule: &mut Schedule,
        fabric: &mut Fabric,
        now: u64,
        index: u32,
        send: impl FnMut(&mut Schedule, &mut Fabric, PortIndex, Parcel),
    ) {
        let number = index >> 2;
        match index & 3 {
            what::TIMESLOT => self.decide(schedule, now),
            what::DEMAND => self.demand(schedule, now, number),
            what::SEND => self.release(schedule, fabric, now, number, send),
            _ => self.fault(schedule, fabric, now, number, send),
        }
    }

    fn demand(&mut self, schedule: &mut Schedule, now: u64, number: u32) {
        let Some(slots) = self.requests.pop(&mut self.pairs[number as usize].requests) else { return };
        if self.state == Arbitration::Alive {
            self.arbiter.handle_demand(number, slots);
            self.look_ahead(schedule, now);
        } else {
            self.figures.requests_lost += 1;
        }
    }

    /// Sees to it that the next timeslot is decided in time, if somebody waits for one.
    fn look_ahead(&mut self, schedule: &mut Schedule, now: u64) {
        if self.arbiter.is_idle() || self.decided_at.is_some() {
            return;
        }
        let advance = self.settings.advance.get();
        self.slot_next = self.slot_next.max((now + advance).div_ceil(self.slot));
        let at = self.slot_next * self.slot - advance;
        self.decided_at = Some(at);
        schedule.insert(at, occurrence(what::TIMESLOT, 0));
    }

    /// Thesis §6.4.1: a timeslot is decided `advance` before it begins.
    fn decide(&mut self, schedule: &mut Schedule, now: u64) {
        if self.decided_at != Some(now) {
            return;
        }
        self.decided_at = None;
        if self.state != Arbitration::Alive {
            return;
        }
        let start = self.slot_next * self.slot;
        let mut given = std::mem::take(&mut self.given);
        self.arbiter.allocate(Instant::new(start), |pair| given.push(pair));
        // Pairs and their packets have lain idle since they asked: they are fetched together, not one after the other.
        given.iter().for_each(|&number| prefetch(&self.pairs[number as usize]));
        for number in given.drain(..) {
            let pair = &mut self.pairs[number as usize];
            if let Some(waiting) = self.packets.first(pair.queue) {
                prefetch(waiting);
            }
            pair.granted += 1;
            self.figures.slots += 1;
            let arrival = now + self.delay.draw(&mut self.random).get();
            let begins = (start as i64 - pair.clock).max(0) as u64;
            // What comes too late is used at once.
            self.figures.slots_late += u64::from(arrival > begins);
            schedule.insert(arrival.max(begins), occurrence(what::SEND, number));
        }
        self.given = given;
        self.slot_next += 1;
        self.look_ahead(schedule, now);
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
        while self.packets.first(pair.queue).is_some_and(|waiting| waiting.parcel.wire_bytes() <= left) {
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

    fn fault(
        &mut self,
        schedule: &mut Schedule,
        fabric: &mut Fabric,
        now: u64,
        which: u32,
        mut send: impl FnMut(&mut Schedule, &mut Fabric, PortIndex, Parcel),
    ) {
        if which == DIES {
            self.state = Arbitration::Dead;
            self.arbiter.forget();
        } else if self.settings.standby {
            // Hosts tell the new arbiter all that they still wait for.
            self.state = Arbitration::Alive;
            for number in 0..self.pairs.len() as u32 {
                let pair = &mut self.pairs[number as usize];
                while self.requests.pop(&mut pair.requests).is_some() {}
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

fn occurrence(what: u32, number: u32) -> u32 {
    PACING << INDEX_BITS | number << 2 | what
}
