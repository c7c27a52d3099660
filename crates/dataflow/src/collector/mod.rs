//! The collector (DCM): collects events for its processing units and ships accepted events to the loggers.

mod collect;
mod config;
mod pending;
mod ship;
mod slot;
mod state;
mod units;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use fanin_units::Instant;

pub use config::{
    CollectionStep, CollectorConfig, CollectorCounters, CollectorError, RequestOrder, UnitModel,
};

use self::pending::PendingTable;
use self::slot::{EventSlots, Phase, SlotKey};
use self::state::{Blocked, CollectorTimer, ReadoutLink, SupervisorLink};
use crate::clear::ClearBatch;
use crate::timers::{Timers, later};
use crate::{
    CreditPool, EventRecord, EventStep, FinishedEvent, FragmentPayload, FragmentSet, Hello, L1Id, Message,
    Peer, ProcessingUnit, Random, Selection, Unexpected, UnitState,
};

/// A processing unit's decision on its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Not interesting: delete it.
    Reject,
    /// Interesting: store it.
    Accept,
    /// Undecided: collect these fragments and ask again.
    Collect(Selection),
}

/// A command to a real processing unit ([`UnitModel::External`]), which the driver passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitCommand {
    /// Process what was collected; the answer goes to [`Collector::handle_decision`].
    Process {
        /// The unit.
        unit: u16,
        /// Its event.
        event: L1Id,
        /// Which step of it, from zero.
        step: u16,
    },
    /// The unit took too long, or its event was taken away: end the process, start another, and call
    /// [`Collector::handle_unit_up`].
    Kill {
        /// The unit.
        unit: u16,
    },
}

/// The resource that an event in a collector waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsFor {
    /// Credits, or the answers to requests.
    Fragments {
        /// Requests that are not answered yet, sent or not.
        requests: u32,
    },
    /// The decision of a processing unit.
    Decision {
        /// The unit.
        unit: u16,
    },
    /// A logger: a certain one, or any.
    Logger(Option<u16>),
}

/// One collector with its processing units.
#[derive(Debug)]
pub struct Collector<P> {
    config: CollectorConfig,
    random: Random,
    units: Vec<ProcessingUnit>,
    /// True for units that were announced to the supervisor as idle.
    announced: Vec<bool>,
    /// Idle units that are not announced because `shipping_max` events wait for storage.
    withheld: Vec<u16>,
    link: SupervisorLink,
    readouts: Vec<ReadoutLink>,
    loggers: Vec<bool>,
    next_logger: u16,
    /// The readouts in the order of requests.
    order: Vec<u16>,
    slots: EventSlots<P>,
    /// Events without a unit, from their decision to storage.
    shipping: u16,
    unshipped: VecDeque<SlotKey>,
    credits: CreditPool<Blocked>,
    pending: PendingTable,
    /// Request time-outs in order: all are equally long.
    timeouts: VecDeque<(Instant, u32)>,
    timers: Timers<CollectorTimer>,
    /// Events whose last open request was just closed.
    completed: VecDeque<SlotKey>,
    clear: Option<ClearBatch>,
    /// Events finished lately, for a supervisor that may have missed the news.
    done: VecDeque<FinishedEvent>,
    out: VecDeque<(Peer, Message<P>)>,
    commands: VecDeque<UnitCommand>,
    records: VecDeque<EventRecord>,
    counters: CollectorCounters,
}

impl<P: FragmentPayload> Collector<P> {
    /// A collector that waits for its connections. Its units are idle, or down until
    /// [`Self::handle_unit_up`] where they are real.
    ///
    /// # Errors
    /// The first setting that it refuses.
    pub fn new(config: CollectorConfig) -> Result<Self, CollectorError> {
        config.validate()?;
        let readouts = config.readouts.len();
        let is_rotated = config.request_order == RequestOrder::Rotated;
        let first = if is_rotated { usize::from(config.first_readout) } else { 0 };
        let link = |&fragments: &u16| ReadoutLink {
            up: false,
            give_up: later(Instant::START, config.readout_wait),
            stalled: Vec::new(),
            owed: VecDeque::new(),
            all: FragmentSet::first(fragments),
        };
        let up = matches!(config.model, UnitModel::Steps(_));
        Ok(Self {
            random: Random::new(config.seed),
            units: vec![ProcessingUnit::new(up); usize::from(config.units)],
            announced: vec![false; usize::from(config.units)],
            withheld: Vec::new(),
            link: SupervisorLink::Down,
            readouts: config.readouts.iter().map(link).collect(),
            loggers: vec![false; usize::from(config.loggers)],
            next_logger: 0,
            order: (0..readouts).map(|n| ((first + n) % readouts) as u16).collect(),
            slots: EventSlots::new(readouts),
            shipping: 0,
            unshipped: VecDeque::new(),
            credits: CreditPool::new(config.credits, config.discipline),
            pending: PendingTable::default(),
            timeouts: VecDeque::new(),
            timers: Timers::new(),
            completed: VecDeque::new(),
            clear: config.clear.map(ClearBatch::new),
            done: VecDeque::new(),
            out: VecDeque::new(),
            commands: VecDeque::new(),
            records: VecDeque::new(),
            counters: CollectorCounters::default(),
            config,
        })
    }

    /// Handles a new connection.
    pub fn handle_connected(&mut self, now: Instant, peer: Peer) {
        match peer {
            Peer::Supervisor => {
                self.link = SupervisorLink::Greeting;
                let idle = (0..self.config.units)
                    .filter(|unit| self.units[usize::from(*unit)].state() == UnitState::Idle)
                    .filter(|unit| !self.withheld.contains(unit));
                let idle: Vec<u16> = idle.collect();
                self.announced.fill(false);
                idle.iter().for_each(|&unit| self.announced[usize::from(unit)] = true);
                let hello = Hello {
                    idle,
                    busy: self.slots.iter().map(|(_, slot)| slot.event).collect(),
                    done: self.done.iter().copied().collect(),
                };
                self.out.push_back((peer, Message::Hello(Box::new(hello))));
            }
            Peer::Readout(readout) => self.readout_connected(readout),
            Peer::Logger(logger) => {
                if let Some(up) = self.loggers.get_mut(usize::from(logger)) {
                    *up = true;
                    self.offer_unshipped(now);
                }
            }
            Peer::Collector(_) => {}
        }
        self.settle(now);
    }

    /// Handles the loss of a connection. A second call does no harm.
    pub fn handle_closed(&mut self, now: Instant, peer: Peer) {
        match peer {
            // It continues with the events it has, and reports them in its next hello.
            Peer::Supervisor => self.link = SupervisorLink::Down,
            Peer::Readout(readout) => self.readout_closed(now, readout),
            Peer::Logger(logger) => self.logger_closed(now, logger),
            Peer::Collector(_) => {}
        }
        self.settle(now);
    }

    /// Handles a message.
    ///
    /// # Errors
    /// If the message is not expected in this state. The state is unchanged then.
    pub fn handle_message(
        &mut self,
        now: Instant,
        peer: Peer,
        message: Message<P>,
    ) -> Result<(), Unexpected> {
        let name = message.name();
        let handled = match (peer, message) {
            (Peer::Readout(readout), Message::Answer { tag, event, missing, payload }) => {
                self.answer(now, readout, tag, event, missing, payload)
            }
            (Peer::Supervisor, Message::Assign { event, unit, direct, region, result }) => {
                self.assign(now, event, unit, direct, region, result)
            }
            (Peer::Supervisor, Message::Welcome(events)) if self.link == SupervisorLink::Greeting => {
                self.link = SupervisorLink::Up;
                events.iter().for_each(|&event| self.abandon(now, event));
                Ok(())
            }
            (Peer::Logger(logger), Message::Grant { event }) => self.granted(now, logger, event),
            (Peer::Logger(logger), Message::Refuse { event }) => self.refused(now, logger, event),
            (Peer::Logger(logger), Message::Stored { event }) => self.stored(now, logger, event),
            _ => Err("such a peer does not send this here"),
        };
        handled.map_err(|why| Unexpected { peer, message: name, why })?;
        self.settle(now);
        Ok(())
    }

    /// Handles the deadline that [`Self::poll_deadline`] returned.
    pub fn handle_deadline(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_due(now) {
            if !self.is_stale(&timer) {
                self.fire(now, timer);
                self.settle(now);
            }
        }
        self.expire_requests(now);
        self.settle(now);
    }

    /// Handles an answer with a wrong checksum, which the driver dropped. The request is repeated, or its fragments are
    /// taken as missing after `request_retries` repetitions.
    pub fn handle_corrupted(&mut self, now: Instant, readout: u16, tag: u32) {
        if self.pending.find(tag).is_some_and(|pending| pending.readout == readout) {
            self.counters.corrupted += 1;
            self.repeat(now, tag);
            self.settle(now);
        }
    }

    /// Handles the decision of a real processing unit. Returns false, and does nothing, if the unit no longer has this event.
    pub fn handle_decision(&mut self, now: Instant, unit: u16, event: L1Id, decision: Decision) -> bool {
        let state = self.units.get(usize::from(unit));
        let slot = state.filter(|unit| unit.state() == UnitState::Processing).and_then(ProcessingUnit::slot);
        let Some(index) = slot.filter(|&index| self.slots[index].event == event) else { return false };
        self.decide(now, index, decision);
        self.settle(now);
        true
    }

    /// Handles the start of a real processing unit, its first or a later one.
    pub fn handle_unit_up(&mut self, now: Instant, unit: u16) {
        if let Some(state) = self.units.get_mut(usize::from(unit))
            && state.state() == UnitState::Down
        {
            state.release();
            // A unit that was idle when it was lost is still announced.
            if !self.announced[usize::from(unit)] {
                self.announce(unit, None);
            }
            self.settle(now);
        }
    }

    /// Handles the crash of a processing unit. Its event goes to the debug stream, untouched (thesis §3.7.4).
    pub fn handle_unit_lost(&mut self, now: Instant, unit: u16) {
        if usize::from(unit) < self.units.len() {
            self.lose_unit(now, unit);
            self.settle(now);
        }
    }

    /// The next message to send.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<(Peer, Message<P>)> {
        self.out.pop_front()
    }

    /// The next command to a real processing unit.
    pub fn poll_unit(&mut self) -> Option<UnitCommand> {
        self.commands.pop_front()
    }

    /// The next record.
    #[inline]
    pub fn poll_record(&mut self) -> Option<EventRecord> {
        self.records.pop_front()
    }

    /// The next time at which [`Self::handle_deadline`] must be called.
    pub fn poll_deadline(&mut self) -> Option<Instant> {
        while let Some((_, timer)) = self.timers.first()
            && self.is_stale(timer)
        {
            self.timers.drop_first();
        }
        while let Some(&(_, tag)) = self.timeouts.front()
            && self.pending.find(tag).is_none()
        {
            self.timeouts.pop_front();
        }
        let timer = self.timers.first().map(|(at, _)| at);
        let request = self.timeouts.front().map(|&(at, _)| at);
        let clear =
            self.clear.as_ref().filter(|_| self.link == SupervisorLink::Up).and_then(ClearBatch::deadline);
        [timer, request, clear].into_iter().flatten().min()
    }

    /// The counters.
    pub fn counters(&self) -> &CollectorCounters {
        &self.counters
    }

    /// Credits that requests hold now.
    pub fn credits_used(&self) -> u32 {
        self.credits.used()
    }

    /// The most credits that requests ever held.
    pub fn credits_used_max(&self) -> u32 {
        self.credits.used_max()
    }

    /// Requests that wait for credits.
    pub fn requests_waiting(&self) -> usize {
        self.credits.waiting()
    }

    /// Requests that are outstanding: neither answered nor given up.
    pub fn requests_pending(&self) -> usize {
        self.pending.len()
    }

    /// The resource that each of its events waits for.
    pub fn waits(&self) -> impl Iterator<Item = (L1Id, WaitsFor)> {
        self.slots.iter().map(|(_, slot)| {
            let waits = match (slot.phase, slot.unit) {
                (Phase::Step(_), Some(unit)) if slot.open == 0 => WaitsFor::Decision { unit },
                (Phase::Unshipped, _) => WaitsFor::Logger(None),
                (Phase::Offered(logger) | Phase::Sent(logger), _) => WaitsFor::Logger(Some(logger)),
                _ => WaitsFor::Fragments { requests: slot.open },
            };
            (slot.event, waits)
        })
    }

    /// The event of a unit: its L1 result and the fragments collected so far.
    pub fn event_of(&self, unit: u16) -> Option<(L1Id, &P, &P)> {
        let index = self.units.get(usize::from(unit))?.slot()?;
        let slot = &self.slots[index];
        Some((slot.event, &slot.result, &slot.payload))
    }

    /// The state of a unit.
    pub fn unit(&self, unit: u16) -> Option<&ProcessingUnit> {
        self.units.get(usize::from(unit))
    }

    /// Checks that every unit and event is in exactly one state and that no credit is lost, for tests.
    ///
    /// # Panics
    /// If one is not.
    pub fn check_invariants(&self) {
        assert_eq!(
            self.credits.used(),
            self.pending.credits(),
            "requests without an answer hold the credits"
        );
        assert!(self.credits.limit().is_none_or(|limit| self.credits.used() <= limit));
        for (index, slot) in self.slots.iter() {
            let is_with_unit = matches!(slot.phase, Phase::Step(_));
            assert_eq!(slot.unit.is_some(), is_with_unit, "an event is with a unit until it is decided");
            if let Some(unit) = slot.unit {
                assert_eq!(self.units[usize::from(unit)].slot(), Some(index), "unit and event agree");
            }
        }
        let shipping = self.slots.iter().filter(|(_, slot)| slot.unit.is_none()).count();
        assert_eq!(usize::from(self.shipping), shipping, "events without a unit go to storage");
        for (place, unit) in self.units.iter().enumerate() {
            let number = place as u16;
            assert!(unit.slot().is_none_or(|index| self.slots[index].unit == Some(number)));
            assert!(!self.announced[place] || unit.slot().is_none(), "an announced unit has no event");
            assert!(!self.withheld.contains(&number) || unit.state() == UnitState::Idle);
        }
    }

    /// Sends the requests that credits allow and completes events, until nothing changes.
    #[inline]
    fn settle(&mut self, now: Instant) {
        loop {
            self.send_requests(now);
            let Some(key) = self.completed.pop_front() else { break };
            self.complete(now, key);
        }
        self.flush_clear(now);
    }

    fn is_stale(&self, timer: &CollectorTimer) -> bool {
        match *timer {
            CollectorTimer::Processed(key, step) | CollectorTimer::UnitLate(key, step) => self
                .slots
                .find(key)
                .is_none_or(|slot| slot.phase != Phase::Step(step) || slot.open > 0 || slot.unit.is_none()),
            CollectorTimer::LoggerLate(key, offers) => {
                self.slots.find(key).is_none_or(|slot| slot.offers != offers)
            }
            CollectorTimer::OfferAgain(key) => self.slots.find(key).is_none(),
            CollectorTimer::GiveUp(readout, at) => {
                let link = &self.readouts[usize::from(readout)];
                link.up || link.give_up != at
            }
        }
    }

    fn fire(&mut self, now: Instant, timer: CollectorTimer) {
        match timer {
            CollectorTimer::Processed(key, step) => {
                let UnitModel::Steps(steps) = &self.config.model else { return };
                let last = usize::from(step) + 1 == steps.len();
                let goes_on = self.random.chance(steps[usize::from(step)].accept);
                let decision = match (goes_on, last) {
                    (false, _) => Decision::Reject,
                    (true, true) => Decision::Accept,
                    (true, false) => Decision::Collect(steps[usize::from(step) + 1].collect.clone()),
                };
                self.decide(now, key.index, decision);
            }
            CollectorTimer::UnitLate(key, _) => {
                let Some(unit) = self.slots[key.index].unit else { return };
                self.lose_unit(now, unit);
                match self.config.model {
                    UnitModel::External(_) => self.commands.push_back(UnitCommand::Kill { unit }),
                    UnitModel::Steps(_) => self.handle_unit_up(now, unit),
                }
            }
            CollectorTimer::LoggerLate(key, _) => self.logger_late(now, key.index),
            CollectorTimer::OfferAgain(key) => {
                if self.slots[key.index].phase == Phase::Unshipped {
                    self.offer(now, key.index, None);
                }
            }
            CollectorTimer::GiveUp(readout, _) => self.give_readout_up(now, readout),
        }
    }

    #[inline]
    fn record(&mut self, at: Instant, event: L1Id, what: EventStep) {
        self.records.push_back(EventRecord { at, event, what });
    }
}
