//! The supervisor (HLTSV): assigns each event to a processing unit, and follows it until it is finished.

mod assign;
mod config;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use fanin_units::{Duration, Instant};

pub use config::{Arrivals, StartOrder, SupervisorConfig, SupervisorCounters, SupervisorError};

use crate::clear::ClearBatch;
use crate::timers::later;
use crate::{
    Assignment, EventRecord, EventStep, FinishedEvent, FragmentPayload, Hello, L1Id, Message, Outcome, Peer,
    Random, Selection, Unexpected, UnitLayout,
};

/// The least number of recently cleared events that are cleared again when a readout connects.
const CLEARED_KEPT_MIN: usize = 25_600;
/// The most events that are cleared again when a readout connects, the newest ones.
const CLEARED_AGAIN_MAX: u64 = 4_000_000;
/// The number of the newest events that are cleared again after a restart of the supervisor, at least.
const CLEARED_RESTORED_MIN: u64 = 100_000;
/// The most events in one message that clears events again.
const CLEARED_AGAIN_GROUP: usize = 1_000;

/// The supervisor of one data-acquisition system.
pub struct Supervisor<P> {
    config: SupervisorConfig<P>,
    layout: UnitLayout,
    random: Random,
    pool: Box<dyn Assignment>,
    /// True, by unit number, for units in the pool or in `announced`.
    free: Vec<bool>,
    free_count: u32,
    /// Units that announced themselves before the first event.
    announced: Vec<u32>,
    has_started: bool,
    collectors: Vec<CollectorState<P>>,
    /// The earliest time at which the events of a lost collector are taken, if a collector is lost.
    give_up: Option<Instant>,
    readouts: Vec<ReadoutState>,
    readouts_full: u32,
    /// Events of lost collectors that have to be assigned again.
    returned: VecDeque<(L1Id, Selection, P)>,
    next_event: L1Id,
    /// Events that an earlier supervisor had assigned ([`Self::restore`]).
    restored: u64,
    /// The origin of the times at which events fall due; `None` until enough units are announced.
    origin: Option<Instant>,
    /// Number of events that fell due.
    ticks: u64,
    due: Option<Instant>,
    xoff_since: Option<Instant>,
    clear: Option<ClearBatch>,
    /// The latest clears, and the times when they were sent.
    cleared: VecDeque<(Instant, Arc<[L1Id]>)>,
    /// Number of events in `cleared`.
    cleared_kept: usize,
    /// Number of events that were cleared.
    cleared_count: u64,
    /// True if no new event is assigned.
    is_stopping: bool,
    out: VecDeque<(Peer, Message<P>)>,
    records: VecDeque<EventRecord>,
    counters: SupervisorCounters,
}

struct CollectorState<P> {
    /// True if the collector is connected and has sent its hello.
    is_up: bool,
    outstanding: Vec<Outstanding<P>>,
    /// Events taken from the collector that it may still finish.
    taken: Vec<L1Id>,
    /// The time at which its events are taken away, unless it returns.
    give_up: Option<Instant>,
}

struct Outstanding<P> {
    event: L1Id,
    region: Selection,
    result: P,
}

#[derive(Clone, Copy)]
struct ReadoutState {
    is_up: bool,
    is_full: bool,
    /// The readout has the clears of all finished events before this one.
    missed_from: L1Id,
    /// The time of its latest connection, and the value of `cleared_count` then.
    connected: (Instant, u64),
}

impl ReadoutState {
    const fn new(missed_from: L1Id) -> Self {
        Self { is_up: false, is_full: false, missed_from, connected: (Instant::START, 0) }
    }
}

impl<P: FragmentPayload> Supervisor<P> {
    /// Makes a supervisor that knows its collectors by number and waits for their connections.
    ///
    /// # Errors
    /// [`SupervisorError`] with the first refused setting.
    pub fn new(config: SupervisorConfig<P>) -> Result<Self, SupervisorError> {
        config.validate()?;
        let layout = UnitLayout::new(&config.units);
        let collector = || CollectorState { is_up: false, outstanding: vec![], taken: vec![], give_up: None };
        Ok(Self {
            pool: config.policy.build(config.tie_break, &layout),
            free: vec![false; layout.units()],
            free_count: 0,
            announced: Vec::new(),
            has_started: false,
            collectors: (0..layout.collectors()).map(|_| collector()).collect(),
            give_up: None,
            readouts: vec![ReadoutState::new(config.first_event); usize::from(config.readouts)],
            readouts_full: 0,
            returned: VecDeque::new(),
            next_event: config.first_event,
            restored: 0,
            origin: (config.units_awaited == 0).then_some(config.start),
            ticks: 0,
            due: None,
            xoff_since: None,
            clear: config.clear.map(ClearBatch::new),
            cleared: VecDeque::new(),
            cleared_kept: 0,
            cleared_count: 0,
            is_stopping: false,
            out: VecDeque::new(),
            records: VecDeque::new(),
            counters: SupervisorCounters::default(),
            random: Random::new(config.seed),
            layout,
            config,
        })
    }

    /// Takes over from a supervisor that failed, with the values of that supervisor's journal. `next` is the next event
    /// to assign; `outstanding` are the unfinished events and their collectors.
    ///
    /// Collectors that say hello within the re-assignment delay keep their events.
    ///
    /// # Errors
    /// The first event whose collector does not exist.
    pub fn restore(
        &mut self,
        now: Instant,
        next: L1Id,
        outstanding: impl IntoIterator<Item = (L1Id, u16)>,
    ) -> Result<(), L1Id> {
        for (event, collector) in outstanding {
            let (region, result) = (self.config.region.clone(), self.config.result.clone());
            let state = self.collectors.get_mut(usize::from(collector)).ok_or(event)?;
            state.outstanding.push(Outstanding { event, region, result });
            self.restored += 1;
            state.give_up = Some(later(now, self.config.reassign_delay));
            self.give_up = self.give_up.min(state.give_up).or(state.give_up);
        }
        self.next_event = next;
        Ok(())
    }

    /// Sends clears for events that were finished before the restart, as the readouts may have missed the first clears.
    /// To be called after [`Self::restore`]. Has no effect if collectors send the clears.
    ///
    /// `cleared` are the latest events whose clears were recorded, the oldest first. Each readout receives the clears again
    /// when it connects, and those of all finished events behind the oldest one.
    pub fn restore_clears(&mut self, now: Instant, events: impl IntoIterator<Item = L1Id>, cleared: &[L1Id]) {
        if let Some(clear) = &mut self.clear {
            events.into_iter().for_each(|event| clear.add(now, event));
            let groups: Vec<Arc<[L1Id]>> = cleared.chunks(clear.group_len()).map(Arc::from).collect();
            groups.into_iter().for_each(|group| self.keep_cleared(now, group));
            // A readout may have lost the earlier supervisor long before, and older journals may be gone.
            let before =
                self.next_event.0.saturating_sub(CLEARED_RESTORED_MIN).max(self.config.first_event.0);
            let missed_from = self.oldest_missed().min(L1Id(before));
            self.readouts.iter_mut().for_each(|state| state.missed_from = missed_from);
        }
    }

    /// Stops assigning new events; events of lost collectors are still assigned again.
    pub fn handle_stop(&mut self, now: Instant) {
        self.is_stopping = true;
        self.due = None;
        self.pump(now);
    }

    /// Handles a new connection. A collector's units count only after its [`Message::Hello`].
    pub fn handle_connected(&mut self, now: Instant, peer: Peer) {
        match peer {
            Peer::Readout(readout) => {
                if let Some(state) = self.readouts.get_mut(usize::from(readout)) {
                    (state.is_up, state.connected) = (true, (now, self.cleared_count));
                    let missed_from = state.missed_from;
                    self.clear_again(peer, missed_from);
                }
            }
            // A new connection means that the old one has ended, even if it seems open.
            Peer::Collector(_) => self.handle_closed(now, peer),
            Peer::Supervisor | Peer::Standby | Peer::Logger(_) => {}
        }
    }

    /// Handles the loss of a connection. A second call has no effect.
    pub fn handle_closed(&mut self, now: Instant, peer: Peer) {
        match peer {
            Peer::Readout(readout) => {
                let mut missed_from = self.oldest_missed();
                if let Some(state) = self.readouts.get_mut(usize::from(readout)) {
                    self.readouts_full -= u32::from(state.is_full);
                    // Clears that were sent again may have been lost, too, if the connection was short.
                    let (connected, before) = state.connected;
                    let is_short = now < later(connected, self.config.clear_on_way_max)
                        || self.cleared_count - before < CLEARED_KEPT_MIN as u64;
                    if !state.is_up || is_short {
                        missed_from = state.missed_from.min(missed_from);
                    }
                    *state = ReadoutState::new(missed_from);
                }
            }
            Peer::Collector(collector) => {
                let Some(state) = self.collectors.get_mut(usize::from(collector)) else { return };
                if !state.is_up {
                    return;
                }
                state.is_up = false;
                state.give_up = Some(later(now, self.config.reassign_delay));
                self.give_up = self.give_up.min(state.give_up).or(state.give_up);
                for unit in self.layout.units_of(collector) {
                    self.remove_free(unit);
                }
                self.take_from_lost(now);
            }
            Peer::Supervisor | Peer::Standby | Peer::Logger(_) => {}
        }
        self.pump(now);
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
        let unexpected = |message: &Message<P>, why| Unexpected { peer, message: message.name(), why };
        match (peer, message) {
            (Peer::Collector(collector), message) if usize::from(collector) < self.collectors.len() => {
                let is_up = self.collectors[usize::from(collector)].is_up;
                match message {
                    Message::Hello(hello) => {
                        if hello.idle.iter().any(|&unit| self.layout.unit(collector, unit).is_none()) {
                            return Err(unexpected(&Message::Hello(hello), "it names a unit too many"));
                        }
                        self.hello(now, collector, &hello);
                    }
                    message if !is_up => return Err(unexpected(&message, "it comes before hello")),
                    Message::Ready { unit, done } => {
                        let number = self
                            .layout
                            .unit(collector, unit)
                            .ok_or_else(|| unexpected(&message, "there is no such unit"))?;
                        if self.free[number as usize] {
                            return Err(unexpected(&message, "the unit is ready already"));
                        }
                        if let Some(done) = done {
                            self.done(now, collector, done);
                        }
                        self.add_free(now, number);
                    }
                    Message::Done(done) => self.done(now, collector, done),
                    Message::Flow { stop: true } => {
                        for unit in self.layout.units_of(collector) {
                            self.remove_free(unit);
                        }
                        self.out.push_back((peer, Message::Welcome(Box::default())));
                    }
                    message => return Err(unexpected(&message, "a collector does not send this here")),
                }
            }
            (Peer::Readout(readout), Message::Flow { stop }) if readout < self.config.readouts => {
                let state = &mut self.readouts[usize::from(readout)];
                if state.is_full != stop {
                    state.is_full = stop;
                    if stop {
                        self.readouts_full += 1;
                    } else {
                        self.readouts_full -= 1;
                    }
                }
            }
            (_, message) => {
                return Err(unexpected(&message, "there is no such peer, or it does not send this"));
            }
        }
        self.pump(now);
        Ok(())
    }

    /// Handles the deadline that [`Self::poll_deadline`] returned.
    pub fn handle_deadline(&mut self, now: Instant) {
        self.take_from_lost(now);
        self.pump(now);
    }

    /// Returns true if the trigger is stopped: no unit is free for a due event, or a readout is full.
    pub fn is_stopped(&self) -> bool {
        self.xoff_since.is_some()
    }

    /// Returns the next message to send.
    pub fn poll_transmit(&mut self) -> Option<(Peer, Message<P>)> {
        self.out.pop_front()
    }

    /// Returns the next record.
    pub fn poll_record(&mut self) -> Option<EventRecord> {
        self.records.pop_front()
    }

    /// Returns the next time at which [`Self::handle_deadline`] must be called.
    pub fn poll_deadline(&self) -> Option<Instant> {
        // While the trigger is stopped, only a message can start it again.
        let due = if self.xoff_since.is_some() { None } else { self.due };
        let clear = self.clear.as_ref().and_then(ClearBatch::deadline);
        [due, self.give_up, clear].into_iter().flatten().min()
    }

    /// Returns the counters up to now.
    pub fn counters(&self) -> &SupervisorCounters {
        &self.counters
    }

    /// Returns the time for which the trigger was stopped until `now`. [`SupervisorCounters::xoff_time`] lacks a stop that lasts.
    pub fn xoff_time(&self, now: Instant) -> Duration {
        let present = self.xoff_since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        self.counters.xoff_time.saturating_add(present)
    }

    /// Returns the number of units that are free now.
    pub fn units_free(&self) -> u32 {
        self.free_count
    }

    /// Returns the unfinished events with their collectors; `None` for events that wait for re-assignment.
    pub fn outstanding(&self) -> impl Iterator<Item = (L1Id, Option<u16>)> {
        let with = self.collectors.iter().enumerate().flat_map(|(collector, state)| {
            state.outstanding.iter().map(move |one| (one.event, Some(collector as u16)))
        });
        with.chain(self.returned.iter().map(|(event, ..)| (*event, None)))
    }

    /// Returns the number of events of each collector that were taken from it and may still be finished there.
    pub fn events_taken(&self) -> impl Iterator<Item = usize> {
        self.collectors.iter().map(|state| state.taken.len())
    }

    /// Returns the next event to assign.
    pub fn next_event(&self) -> L1Id {
        self.next_event
    }

    /// Returns the finished events whose clears have not been sent.
    pub fn uncleared(&self) -> &[L1Id] {
        self.clear.as_ref().map_or(&[], ClearBatch::events)
    }

    /// Returns true if all `events_max` events are finished.
    pub fn is_finished(&self) -> bool {
        let all = self.config.events_max.is_some_and(|max| self.counters.assigned >= max);
        all && self.outstanding().next().is_none()
    }

    /// Checks that every unit and event is in exactly one state: in tests, and at the end of a simulation.
    ///
    /// # Panics
    /// If one is not.
    pub fn check_invariants(&self) {
        assert_eq!(self.free_count as usize, self.free.iter().filter(|&&free| free).count());
        assert_eq!(
            self.readouts_full as usize,
            self.readouts.iter().filter(|readout| readout.is_full).count()
        );
        let mut events: Vec<L1Id> = self.outstanding().map(|(event, _)| event).collect();
        let count = events.len() as u64;
        let begun = self.counters.assigned + self.restored;
        assert_eq!(
            begun,
            self.counters.completed + count,
            "an event is neither with a collector, nor returned, nor completed"
        );
        events.sort_unstable();
        events.dedup();
        assert_eq!(events.len() as u64, count, "an event is in two places");
        assert_eq!(self.cleared_kept, self.cleared.iter().map(|(_, group)| group.len()).sum::<usize>());
        assert!(self.has_started || self.announced.len() == self.free_count as usize);
        for (collector, state) in self.collectors.iter().enumerate() {
            let is_free = |unit: u32| self.free[unit as usize];
            assert!(
                state.is_up || !self.layout.units_of(collector as u16).any(is_free),
                "an idle unit is not connected"
            );
        }
    }

    fn hello(&mut self, now: Instant, collector: u16, hello: &Hello) {
        let index = usize::from(collector);
        for unit in self.layout.units_of(collector) {
            self.remove_free(unit);
        }
        let mut unknown = Vec::new();
        for done in &hello.done {
            if self.collectors[index].outstanding.iter().any(|one| one.event == done.event) {
                self.done(now, collector, *done);
            } else if self.collectors[index].taken.contains(&done.event) {
                self.done(now, collector, *done);
                unknown.push(done.event);
            }
        }
        let state = &mut self.collectors[index];
        state.is_up = true;
        if state.give_up.take().is_some() {
            self.give_up = self.collectors.iter().filter_map(|collector| collector.give_up).min();
        }
        let state = &mut self.collectors[index];
        unknown.extend(
            hello.busy.iter().filter(|&event| state.outstanding.iter().all(|one| one.event != *event)),
        );
        // Events that the collector may still finish. It has forgotten the other events that were taken from it.
        state.taken = unknown.iter().copied().filter(|event| hello.busy.contains(event)).collect();
        let gone = state.outstanding.extract_if(.., |one| !hello.busy.contains(&one.event));
        let gone: Vec<_> = gone.collect();
        self.out.push_back((Peer::Collector(collector), Message::Welcome(unknown.into())));
        for one in gone {
            self.take(now, collector, one);
        }
        for &unit in &hello.idle {
            if let Some(number) = self.layout.unit(collector, unit)
                && !self.free[number as usize]
            {
                self.add_free(now, number);
            }
        }
    }

    fn done(&mut self, now: Instant, collector: u16, done: FinishedEvent) {
        let FinishedEvent { event, outcome } = done;
        let state = &mut self.collectors[usize::from(collector)];
        if let Some(place) = state.outstanding.iter().position(|one| one.event == event) {
            state.outstanding.swap_remove(place);
            self.counters.completed += 1;
            match outcome {
                Outcome::Rejected => self.counters.rejected += 1,
                Outcome::Accepted => self.counters.accepted += 1,
                Outcome::Stored => self.counters.stored += 1,
                Outcome::Debug => self.counters.debug += 1,
            }
            self.record(now, event, EventStep::Completed { collector, outcome });
            if let Some(clear) = &mut self.clear {
                clear.add(now, event);
            }
        } else if let Some(place) = state.taken.iter().position(|&taken| taken == event) {
            state.taken.swap_remove(place);
            self.counters.duplicated += 1;
            self.record(now, event, EventStep::Duplicated { collector, outcome });
        }
        // Any other event was reported before the connection was lost.
    }

    /// Takes the events of collectors that did not return in time.
    fn take_from_lost(&mut self, now: Instant) {
        if self.give_up.is_none_or(|at| at > now) {
            return;
        }
        for collector in 0..self.collectors.len() {
            let state = &mut self.collectors[collector];
            if state.give_up.is_none_or(|at| at > now) {
                continue;
            }
            state.give_up = None;
            for one in core::mem::take(&mut state.outstanding) {
                self.take(now, collector as u16, one);
            }
        }
        self.give_up = self.collectors.iter().filter_map(|collector| collector.give_up).min();
    }

    fn take(&mut self, now: Instant, collector: u16, one: Outstanding<P>) {
        debug_assert!(self.returned.iter().all(|(event, ..)| *event != one.event), "an event returns twice");
        self.collectors[usize::from(collector)].taken.push(one.event);
        self.counters.reassigned += 1;
        self.record(now, one.event, EventStep::Reassigned { from: collector });
        self.returned.push_back((one.event, one.region, one.result));
    }

    fn add_free(&mut self, now: Instant, unit: u32) {
        assert!(!self.free[unit as usize], "a unit is free twice");
        self.free[unit as usize] = true;
        self.free_count += 1;
        if self.has_started {
            self.pool.add(unit);
        } else {
            self.announced.push(unit);
        }
        if self.origin.is_none() && self.free_count >= self.config.units_awaited {
            self.origin = Some(now.max(self.config.start));
        }
    }

    fn remove_free(&mut self, unit: u32) {
        if core::mem::replace(&mut self.free[unit as usize], false) {
            self.free_count -= 1;
            if self.has_started {
                self.pool.remove(unit);
            } else {
                self.announced.retain(|&other| other != unit);
            }
        }
    }

    /// Returns the assigned events whose clears have not been sent.
    fn without_clear(&self) -> impl Iterator<Item = L1Id> {
        self.outstanding().map(|(event, _)| event).chain(self.uncleared().iter().copied())
    }

    /// Returns the oldest event whose clear a readout may lack if its connection is lost now.
    fn oldest_missed(&self) -> L1Id {
        let on_their_way = self.cleared.iter().flat_map(|(_, group)| group.iter().copied());
        self.without_clear().chain(on_their_way).min().unwrap_or(self.next_event).min(self.next_event)
    }

    /// Sends a readout the clears of all finished events from one on. A repeated clear has no effect; a missing one stays in
    /// the readout's memory, and stops the system in the end. The last message clears all events before the oldest unfinished
    /// one, since a readout may have missed more clears than this supervisor knows.
    fn clear_again(&mut self, readout: Peer, missed_from: L1Id) {
        if self.clear.is_none() {
            return;
        }
        let from = missed_from.0.max(self.next_event.0.saturating_sub(CLEARED_AGAIN_MAX));
        let mut kept: Vec<L1Id> = self.without_clear().collect();
        kept.sort_unstable();
        let missed = (from..self.next_event.0).map(L1Id);
        let mut missed = missed.filter(|event| kept.binary_search(event).is_err()).peekable();
        while missed.peek().is_some() {
            let group: Vec<L1Id> = missed.by_ref().take(CLEARED_AGAIN_GROUP).collect();
            self.out.push_back((readout, Message::Clear(group.into())));
        }
        let open = kept.first().map_or(self.next_event, |&oldest| oldest.min(self.next_event));
        if open > self.config.first_event {
            self.out.push_back((readout, Message::clear_up_to(L1Id(open.0 - 1))));
        }
    }

    /// Notes a clear whose message is on its way, and forgets those that have arrived by now.
    fn keep_cleared(&mut self, now: Instant, events: Arc<[L1Id]>) {
        self.cleared_kept += events.len();
        self.cleared_count += events.len() as u64;
        self.cleared.push_back((now, events));
        while let Some((sent, oldest)) = self.cleared.front()
            && self.cleared_kept - oldest.len() >= CLEARED_KEPT_MIN
            && later(*sent, self.config.clear_on_way_max) < now
        {
            self.cleared_kept -= oldest.len();
            self.cleared.pop_front();
        }
    }

    fn record(&mut self, at: Instant, event: L1Id, step: EventStep) {
        self.records.push_back(EventRecord { at, event, step });
    }
}
