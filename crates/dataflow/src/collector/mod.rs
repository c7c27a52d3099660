//! The collector (DCM): collects events for its processing units and ships accepted events to the loggers.

mod collect;
mod config;
mod order;
mod pending;
mod queries;
mod reminders;
mod ship;
mod slot;
mod state;
mod units;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Bytes, Duration, Instant, Ratio};

pub use config::{CollectionStep, CollectorCounters, CollectorError, RequestOrder, UnitModel};
pub use pending::REMINDER_TAG;
pub use queries::WaitsFor;

use self::pending::PendingTable;
use self::slot::{EventSlots, Phase, SlotKey};
use self::state::{Blocked, CollectorTimer, ReadoutLink, SupervisorLink};
use crate::clear::ClearBatch;
use crate::timers::{Timers, later};
use crate::{
    ClearConfig, CreditDiscipline, CreditPool, Delay, EventRecord, EventStep, FinishedEvent, FragmentPayload,
    FragmentSet, Hello, L1Id, Message, PacedCredits, PacedCreditsConfig, Peer, ProcessingUnit, Random,
    Selection, Unexpected, UnitState,
};

/// A processing unit's decision on its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Rejected: the readouts delete the event.
    Reject,
    /// Interesting: store it.
    Accept,
    /// Undecided: collect these fragments, and let the unit decide again.
    Collect(Selection),
}

/// A command to a real processing unit ([`UnitModel::External`]), which the driver passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitCommand {
    /// Process the collected fragments; the decision goes to [`Collector::handle_decision`].
    Process {
        /// The processing unit's number on its collector.
        unit: u16,
        /// The event of the unit.
        event: L1Id,
        /// The step of the event, from zero.
        step: u16,
    },
    /// The unit took too long, or its event was withdrawn: end the process, start another, and call
    /// [`Collector::handle_unit_up`].
    Kill {
        /// The processing unit's number on its collector.
        unit: u16,
    },
}

/// Settings of a collector.
#[derive(Debug, Clone)]
pub struct CollectorConfig {
    /// The number of its processing units.
    pub units: u16,
    /// The number of fragments that each readout serves; zero is allowed.
    pub readouts: Vec<u16>,
    /// The number of data loggers. Without any, accepted events leave the system as soon as they are complete.
    pub loggers: u16,
    /// Credits that its units share: a request costs one for each fragment. `None`: no shaping.
    pub credits: Option<u32>,
    /// Credits in bytes at the pace of the collector's link, instead of a fixed number (`shaping.method =
    /// "paced-credits"`).
    pub paced_credits: Option<PacedCreditsConfig>,
    /// Order of requests that wait for credits.
    pub discipline: CreditDiscipline,
    /// The order of the requests of one step.
    pub request_order: RequestOrder,
    /// The first readout of [`RequestOrder::Rotated`] and of paced credits.
    pub first_readout: u16,
    /// The behaviour of the units.
    pub model: UnitModel,
    /// True: an accepted event is completed before it is shipped. False: it is shipped with the fragments collected so
    /// far.
    pub build_accepted: bool,
    /// The longest time until an answer; then the request is repeated or given up. `None`: no limit.
    pub request_timeout: Option<Duration>,
    /// The number of repetitions of a request; after them its fragments count as missing.
    pub request_retries: u8,
    /// The longest absence of a readout, from the start or from the loss of its connection; after it, its fragments count
    /// as missing.
    pub readout_wait: Duration,
    /// Longest time for one step of a unit, after which the unit counts as lost. `None`: no limit.
    pub processor_timeout: Option<Duration>,
    /// Longest time for a logger to grant or store an event; then the next logger is tried. `None`: no limit.
    pub logger_timeout: Option<Duration>,
    /// Largest event that a logger can receive. A larger one is stored without its fragments in the debug stream. `None`: any.
    pub event_max: Option<Bytes>,
    /// Number of decided events in storage from which free units are no longer announced; at least 1.
    pub shipping_max: u16,
    /// The grouping of clears to the readouts. `None`: the supervisor sends them, or the readouts keep nothing.
    pub clear: Option<ClearConfig>,
    /// True: an accepted event is cleared from the readouts after it was sent to a logger, not after it is on disk.
    /// Early clearing is faster, but events are lost with a lost logger (thesis §3.7.4).
    pub clear_before_stored: bool,
    /// True if each answer is recorded.
    pub trace_requests: bool,
    /// The seed of its random numbers.
    pub seed: u64,
}

impl Default for CollectorConfig {
    /// Returns settings for one unit that collects everything, decides at once and rejects. No readouts and no credits.
    /// The only timeout is the 5 s for a readout's return. At most 64 events are in storage. Events are cleared after
    /// they are stored, with [`ClearConfig::default`].
    fn default() -> Self {
        let step =
            CollectionStep { collect: Selection::Rest, processing_time: Delay::ZERO, accept: Ratio::ZERO };
        Self {
            units: 1,
            readouts: Vec::new(),
            loggers: 0,
            credits: None,
            paced_credits: None,
            discipline: CreditDiscipline::Fifo,
            request_order: RequestOrder::Fixed,
            first_readout: 0,
            model: UnitModel::Steps(alloc::vec![step]),
            build_accepted: true,
            request_timeout: None,
            request_retries: 0,
            readout_wait: Duration::from_secs(5),
            processor_timeout: None,
            logger_timeout: None,
            event_max: None,
            shipping_max: 64,
            clear: Some(ClearConfig::default()),
            clear_before_stored: false,
            trace_requests: false,
            seed: 0,
        }
    }
}

impl CollectorConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first setting that a collector refuses.
    pub fn validate(&self) -> Result<(), CollectorError> {
        if self.units == 0 {
            return Err(CollectorError::NoUnits);
        }
        if self.readouts.len() > usize::from(u16::MAX) {
            return Err(CollectorError::TooManyReadouts { readouts: self.readouts.len() });
        }
        for (readout, &fragments) in self.readouts.iter().enumerate() {
            let (readout, max) = (readout as u16, FragmentSet::FRAGMENTS_MAX);
            if fragments > max {
                return Err(CollectorError::TooManyFragments { readout, fragments, max });
            }
            // An event of a lost collector is collected as a whole, whatever the steps select.
            if let Some(credits) = self.credits.filter(|&credits| credits < u32::from(fragments)) {
                return Err(CollectorError::CreditsBelowRequest { credits, readout, fragments });
            }
        }
        if let (Some(credits), Some(_)) = (self.credits, self.paced_credits) {
            return Err(CollectorError::TwoCredits { credits });
        }
        if let Some(paced) = self.paced_credits.filter(|paced| !paced.is_valid()) {
            let PacedCreditsConfig { rate, segment, frame, .. } = paced;
            return Err(CollectorError::NoPace { rate, segment, frame });
        }
        let first = self.first_readout;
        if usize::from(first) >= self.readouts.len().max(1) {
            return Err(CollectorError::NoSuchReadout { first, readouts: self.readouts.len() });
        }
        let share_is_bad = |selection: &Selection| match selection {
            Selection::Readouts(share) | Selection::Fragments(share) => *share > Ratio::ONE,
            Selection::Rest | Selection::Region | Selection::List(_) => false,
        };
        let bad = match &self.model {
            UnitModel::Steps(steps) if steps.is_empty() => return Err(CollectorError::NoSteps),
            UnitModel::Steps(steps) => {
                steps.iter().any(|step| step.accept > Ratio::ONE || share_is_bad(&step.collect))
            }
            UnitModel::External(selection) => share_is_bad(selection),
        };
        if bad {
            return Err(CollectorError::ShareAboveOne);
        }
        if self.shipping_max == 0 {
            return Err(CollectorError::NoShipping);
        }
        if self.clear.is_some_and(|clear| clear.clear_group == 0) {
            return Err(CollectorError::EmptyClear);
        }
        Ok(())
    }
}

/// One collector with its processing units.
#[derive(Debug)]
pub struct Collector<P> {
    config: CollectorConfig,
    random: Random,
    units: Vec<ProcessingUnit>,
    /// True for units that the supervisor considers idle.
    announced: Vec<bool>,
    /// Idle units that are not announced because `shipping_max` events wait for storage.
    withheld: Vec<u16>,
    link: SupervisorLink,
    /// True if the collector stops in order, and announces no unit.
    is_stopping: bool,
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
    paced: Option<PacedCredits>,
    pending: PendingTable,
    /// Request timeouts, in order: all have the same duration.
    timeouts: VecDeque<(Instant, u32)>,
    /// Paced requests without a reminder: when they were sent, in order, and their tags.
    unreminded: VecDeque<(Instant, u32)>,
    timers: Timers<CollectorTimer>,
    /// Events without outstanding requests, to complete.
    completed: VecDeque<SlotKey>,
    clear: Option<ClearBatch>,
    /// Recently finished events, for a supervisor that may have missed the report.
    done: VecDeque<FinishedEvent>,
    out: VecDeque<(Peer, Message<P>)>,
    commands: VecDeque<UnitCommand>,
    records: VecDeque<EventRecord>,
    counters: CollectorCounters,
}

impl<P: FragmentPayload> Collector<P> {
    /// Makes a collector that waits for its connections. Its units are idle; real units are down until
    /// [`Self::handle_unit_up`].
    ///
    /// # Errors
    /// [`CollectorError`] with the first refused setting.
    pub fn new(config: CollectorConfig) -> Result<Self, CollectorError> {
        config.validate()?;
        let readouts = config.readouts.len();
        let first = usize::from(config.first_readout);
        let order = match (config.paced_credits, config.request_order) {
            (Some(_), _) => order::spread(readouts, first).collect(),
            (None, RequestOrder::Rotated) => (0..readouts).map(|n| ((first + n) % readouts) as u16).collect(),
            (None, RequestOrder::Fixed | RequestOrder::Random) => (0..readouts as u16).collect(),
        };
        let link = |&fragments: &u16| ReadoutLink {
            is_up: false,
            give_up: later(Instant::START, config.readout_wait),
            stalled: Vec::new(),
            owed: VecDeque::new(),
            all: FragmentSet::first(fragments),
            reminded: Instant::START,
        };
        let up = matches!(config.model, UnitModel::Steps(_));
        Ok(Self {
            random: Random::new(config.seed),
            units: vec![ProcessingUnit::new(up); usize::from(config.units)],
            announced: vec![false; usize::from(config.units)],
            withheld: Vec::new(),
            link: SupervisorLink::Down,
            is_stopping: false,
            readouts: config.readouts.iter().map(link).collect(),
            loggers: vec![false; usize::from(config.loggers)],
            next_logger: 0,
            order,
            slots: EventSlots::new(readouts),
            shipping: 0,
            unshipped: VecDeque::new(),
            credits: CreditPool::new(config.credits, config.discipline),
            paced: config.paced_credits.map(|paced| PacedCredits::new(paced, readouts)),
            pending: PendingTable::default(),
            timeouts: VecDeque::new(),
            unreminded: VecDeque::new(),
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
                    .filter(|unit| !self.is_stopping && !self.withheld.contains(unit));
                let idle: Vec<u16> = idle.collect();
                self.announced.fill(false);
                idle.iter().for_each(|&unit| self.announced[usize::from(unit)] = true);
                let hello = Hello {
                    idle,
                    busy: self.slots.iter().map(|(_, slot)| slot.event).collect(),
                    done: self.done.iter().copied().collect(),
                };
                self.out.push_back((peer, Message::Hello(Box::new(hello))));
                if self.is_stopping {
                    self.send_to_supervisor(Message::Flow { stop: true });
                }
            }
            Peer::Readout(readout) => self.readout_connected(readout),
            Peer::Logger(logger) => {
                if let Some(up) = self.loggers.get_mut(usize::from(logger)) {
                    *up = true;
                    self.offer_unshipped(now);
                }
            }
            Peer::Standby | Peer::Collector(_) => {}
        }
        self.send_and_complete(now);
    }

    /// Handles the loss of a connection. A second call has no effect.
    pub fn handle_closed(&mut self, now: Instant, peer: Peer) {
        match peer {
            // The collector continues with its events, and reports them in its next hello.
            Peer::Supervisor => self.link = SupervisorLink::Down,
            Peer::Readout(readout) => self.readout_closed(now, readout),
            Peer::Logger(logger) => self.logger_closed(now, logger),
            Peer::Standby | Peer::Collector(_) => {}
        }
        self.send_and_complete(now);
    }

    /// Begins to stop in order: no unit is announced any more, and the collector finishes its events. Once
    /// [`Self::has_left`] is true, no further event arrives.
    pub fn handle_stop(&mut self) {
        if !core::mem::replace(&mut self.is_stopping, true) {
            self.send_to_supervisor(Message::Flow { stop: true });
        }
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
            (Peer::Supervisor, Message::Welcome(_))
                if self.link == SupervisorLink::Up && self.is_stopping =>
            {
                self.link = SupervisorLink::Left;
                Ok(())
            }
            (Peer::Logger(logger), Message::Grant { event }) => self.granted(now, logger, event),
            (Peer::Logger(logger), Message::Refuse { event }) => self.refused(now, logger, event),
            (Peer::Logger(logger), Message::Stored { event, stream }) => {
                self.stored(now, logger, event, stream)
            }
            _ => Err("such a peer does not send this here"),
        };
        handled.map_err(|why| Unexpected { peer, message: name, why })?;
        self.send_and_complete(now);
        Ok(())
    }

    /// Handles the deadline that [`Self::poll_deadline`] returned.
    pub fn handle_deadline(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_due(now) {
            if !self.is_stale(&timer) {
                self.fire(now, timer);
                self.send_and_complete(now);
            }
        }
        self.expire_requests(now);
        self.remind(now);
        self.send_and_complete(now);
    }

    /// Handles an answer with a wrong checksum, which the driver dropped. The request is repeated; after
    /// `request_retries` repetitions its fragments count as missing.
    pub fn handle_corrupted(&mut self, now: Instant, readout: u16, tag: u32) {
        if self.pending.find(tag).is_some_and(|pending| pending.readout == readout) {
            self.counters.corrupted += 1;
            self.repeat(now, tag);
            self.send_and_complete(now);
        }
    }

    /// Handles the decision of a real processing unit. Returns false, with no effect, if the unit no longer has this
    /// event.
    pub fn handle_decision(&mut self, now: Instant, unit: u16, event: L1Id, decision: Decision) -> bool {
        let state = self.units.get(usize::from(unit));
        let slot = state.filter(|unit| unit.state() == UnitState::Processing).and_then(ProcessingUnit::slot);
        let Some(index) = slot.filter(|&index| self.slots[index].event == event) else { return false };
        self.decide(now, index, decision);
        self.send_and_complete(now);
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
            self.send_and_complete(now);
        }
    }

    /// Handles the crash of a processing unit. Its event goes to the debug stream, without processing (thesis §3.7.4).
    pub fn handle_unit_lost(&mut self, now: Instant, unit: u16) {
        if usize::from(unit) < self.units.len() {
            self.lose_unit(now, unit);
            self.send_and_complete(now);
        }
    }

    /// Returns the next message to send.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<(Peer, Message<P>)> {
        self.out.pop_front()
    }

    /// Returns the next command to a real processing unit.
    pub fn poll_unit(&mut self) -> Option<UnitCommand> {
        self.commands.pop_front()
    }

    /// Returns the next record.
    #[inline]
    pub fn poll_record(&mut self) -> Option<EventRecord> {
        self.records.pop_front()
    }

    /// Returns the next time at which [`Self::handle_deadline`] must be called.
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
        let clear = self.clear.as_ref().filter(|_| self.link.is_up()).and_then(ClearBatch::deadline);
        let paced = self.paced.as_ref().filter(|_| self.credits.waiting() > 0);
        let paced = paced.and_then(PacedCredits::poll_deadline);
        [timer, request, clear, paced, self.reminder_deadline()].into_iter().flatten().min()
    }

    /// Sends the requests that credits allow and completes events, until nothing changes.
    #[inline]
    fn send_and_complete(&mut self, now: Instant) {
        loop {
            self.send_requests(now);
            let Some(key) = self.completed.pop_front() else { break };
            self.complete(now, key);
        }
        self.flush_clear(now);
    }

    fn is_stale(&self, timer: &CollectorTimer) -> bool {
        match *timer {
            CollectorTimer::Processed(key, step) | CollectorTimer::UnitLate(key, step) => {
                self.slots.find(key).is_none_or(|slot| {
                    slot.phase != Phase::Step(step) || slot.outstanding > 0 || slot.unit.is_none()
                })
            }
            CollectorTimer::LoggerLate(key, offers) => {
                self.slots.find(key).is_none_or(|slot| slot.offers != offers)
            }
            CollectorTimer::OfferAgain(key) => self.slots.find(key).is_none(),
            CollectorTimer::GiveUp(readout, at) => {
                let link = &self.readouts[usize::from(readout)];
                link.is_up || link.give_up != at
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
    fn record(&mut self, at: Instant, event: L1Id, step: EventStep) {
        self.records.push_back(EventRecord { at, event, step });
    }
}
