//! The readout (ROS): keeps the fragments of its readout links until they are cleared, and answers requests.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use fanin_units::{Bytes, Duration, Instant};

use crate::timers::{Timers, later};
use crate::{
    Delay, EventRecord, EventStep, FragmentPayload, FragmentSet, FragmentSource, L1Id, Message, Peer, Random,
    Unexpected,
};

/// Settings of a readout.
#[derive(Debug, Clone)]
pub struct ReadoutConfig {
    /// Time from a request to its answer; requests do not wait for each other.
    pub response_delay: Delay,
    /// The most bytes of stored fragments. `None` is the simple server of thesis §5.1.2: nothing is stored, and the
    /// source answers for any event at any time.
    pub memory: Option<Bytes>,
    /// The most stored events, and the largest distance between the oldest and the newest of them; at least 1.
    pub events_max: u32,
    /// Longest time that a request waits for fragments from the detector.
    pub fragment_wait: Duration,
    /// The most answers in preparation; a further request is an error of its sender. At least 1.
    pub answers_max: u32,
    /// The seed of its random numbers.
    pub seed: u64,
}

impl Default for ReadoutConfig {
    /// Returns settings that answer at once and store nothing. At most a million events and a million answers; 100 ms
    /// for late fragments.
    fn default() -> Self {
        Self {
            response_delay: Delay::ZERO,
            memory: None,
            events_max: 1_000_000,
            fragment_wait: Duration::from_millis(100),
            answers_max: 1_000_000,
            seed: 0,
        }
    }
}

/// Settings that a readout refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadoutError {
    /// The memory holds no event.
    #[error("a readout's memory has to take at least one event")]
    NoMemory,
    /// `answers_max` is zero.
    #[error("a readout has to be allowed at least one answer in preparation")]
    NoAnswers,
}

/// Counters of a readout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadoutCounters {
    /// Requests that were received.
    pub requests: u64,
    /// Answers that were sent.
    pub answers: u64,
    /// Payload bytes in the answers.
    pub bytes: u64,
    /// Fragments that were requested and do not exist here.
    pub missing: u64,
    /// Answers not sent because the collector's connection was lost.
    pub undeliverable: u64,
    /// Events kept now.
    pub events: u64,
    /// Bytes kept now.
    pub held: u64,
    /// The most bytes that were ever kept.
    pub held_max: u64,
    /// Events that were deleted.
    pub deleted: u64,
    /// Number of times that memory was full.
    pub xoffs: u64,
    /// Time for which memory was full, up to the latest XON.
    pub xoff_time: Duration,
}

/// An answer in preparation.
#[derive(Debug, Clone, Copy)]
struct PendingAnswer {
    to: Peer,
    /// The connection of the request.
    connection: u32,
    tag: u32,
    event: L1Id,
    fragments: FragmentSet,
    /// Time at which the answer is sent, even without the fragments.
    until: Instant,
}

/// One readout; `S` is the source of its fragments.
#[derive(Debug)]
pub struct Readout<P, S> {
    config: ReadoutConfig,
    source: S,
    random: Random,
    answers: Timers<PendingAnswer>,
    answers_count: u32,
    /// The event of the first entry in `kept`.
    base: L1Id,
    /// The bytes of each kept event from `base` on.
    kept: VecDeque<Option<u64>>,
    /// The number of lost connections of each collector.
    connections: Vec<u32>,
    is_supervisor_up: bool,
    /// True if the readout stops in order; the supervisor then assigns nothing.
    is_stopping: bool,
    full_since: Option<Instant>,
    out: VecDeque<(Peer, Message<P>)>,
    records: VecDeque<EventRecord>,
    counters: ReadoutCounters,
}

impl<P: FragmentPayload, S: FragmentSource<P>> Readout<P, S> {
    /// Makes a readout with an empty memory.
    ///
    /// # Errors
    /// [`ReadoutError`] with the first refused setting.
    pub fn new(config: ReadoutConfig, source: S) -> Result<Self, ReadoutError> {
        if config.memory.is_some_and(Bytes::is_zero) || config.events_max == 0 {
            return Err(ReadoutError::NoMemory);
        }
        if config.answers_max == 0 {
            return Err(ReadoutError::NoAnswers);
        }
        Ok(Self {
            random: Random::new(config.seed),
            answers: Timers::new(),
            answers_count: 0,
            base: L1Id(0),
            kept: VecDeque::new(),
            connections: Vec::new(),
            is_supervisor_up: false,
            is_stopping: false,
            full_since: None,
            out: VecDeque::new(),
            records: VecDeque::new(),
            counters: ReadoutCounters::default(),
            config,
            source,
        })
    }

    /// Handles an event's fragments that the source received from the detector. Returns false if they cannot be stored:
    /// the event is known, or more than `events_max` from the oldest event.
    ///
    /// After XOFF the driver should deliver no more; fragments in flight are still accepted.
    pub fn handle_fragments(&mut self, now: Instant, event: L1Id, bytes: Bytes) -> bool {
        if self.kept.is_empty() {
            self.base = event;
        }
        if event < self.base {
            // Fragments may overtake each other: the window extends in either direction.
            let more = self.base.0 - event.0;
            if more.saturating_add(self.kept.len() as u64) > u64::from(self.config.events_max) {
                return false;
            }
            (0..more).for_each(|_| self.kept.push_front(None));
            self.base = event;
        }
        let place = event.0 - self.base.0;
        if place >= u64::from(self.config.events_max) {
            return false;
        }
        while self.kept.len() as u64 <= place {
            self.kept.push_back(None);
        }
        let entry = &mut self.kept[place as usize];
        if entry.is_some() {
            return false;
        }
        *entry = Some(bytes.get());
        self.counters.events += 1;
        self.counters.held += bytes.get();
        self.counters.held_max = self.counters.held_max.max(self.counters.held);
        self.check_memory(now);
        true
    }

    /// Handles a new connection. The supervisor receives XOFF if memory is full or the readout stops in order.
    pub fn handle_connected(&mut self, _now: Instant, peer: Peer) {
        if peer == Peer::Supervisor {
            self.is_supervisor_up = true;
            if self.is_stopping || self.full_since.is_some() {
                self.out.push_back((Peer::Supervisor, Message::Flow { stop: true }));
            }
        }
    }

    /// Handles the loss of a connection. A second call has no effect. Answers in preparation for this connection are
    /// dropped when they fall due.
    pub fn handle_closed(&mut self, _now: Instant, peer: Peer) {
        match peer {
            Peer::Supervisor => self.is_supervisor_up = false,
            Peer::Collector(collector) => {
                let index = usize::from(collector);
                if self.connections.len() <= index {
                    self.connections.resize(index + 1, 0);
                }
                self.connections[index] = self.connections[index].wrapping_add(1);
            }
            Peer::Standby | Peer::Readout(_) | Peer::Logger(_) => {}
        }
    }

    /// Begins to stop in order. Sends XOFF to the supervisor, so that open events are finished and their fragments
    /// deleted.
    pub fn handle_stop(&mut self) {
        let says = !core::mem::replace(&mut self.is_stopping, true) && self.full_since.is_none();
        if says && self.is_supervisor_up {
            self.out.push_back((Peer::Supervisor, Message::Flow { stop: true }));
        }
    }

    /// Returns true if no answer is in preparation, and no supervisor is connected or no fragment is kept.
    pub fn is_idle(&self) -> bool {
        self.answers_count == 0 && (!self.is_supervisor_up || self.counters.events == 0)
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
        let unexpected = |message, why| Err(Unexpected { peer, message, why });
        match (peer, message) {
            (Peer::Collector(collector), Message::Request { tag, event, fragments }) => {
                if fragments.is_empty() {
                    return unexpected("request", "it asks for nothing");
                }
                if self.answers_count >= self.config.answers_max {
                    return unexpected("request", "too many answers are in preparation");
                }
                self.counters.requests += 1;
                let due = later(now, self.config.response_delay.draw(&mut self.random));
                let connection = self.connection(collector);
                let until = later(due, self.config.fragment_wait);
                self.answers_count += 1;
                let answer = PendingAnswer { to: peer, connection, tag, event, fragments, until };
                if due <= now {
                    self.answer(now, answer);
                } else {
                    self.answers.set(due, answer);
                }
            }
            (Peer::Supervisor, Message::Clear(events)) if matches!(*events, [one, other] if one == other) => {
                self.delete_up_to(now, events[0]);
                self.check_memory(now);
            }
            (Peer::Collector(_) | Peer::Supervisor, Message::Clear(events)) => {
                events.iter().for_each(|&event| self.delete(now, event));
                self.check_memory(now);
            }
            (_, message) => return unexpected(message.name(), "such a peer does not send this here"),
        }
        Ok(())
    }

    /// Handles the deadline that [`Self::poll_deadline`] returned.
    pub fn handle_deadline(&mut self, now: Instant) {
        while let Some(answer) = self.answers.pop_due(now) {
            self.answer(now, answer);
        }
    }

    /// Returns true if memory is full: the detector must stop.
    pub fn is_full(&self) -> bool {
        self.full_since.is_some()
    }

    /// Returns the next message to send.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<(Peer, Message<P>)> {
        self.out.pop_front()
    }

    /// Returns the next record.
    pub fn poll_record(&mut self) -> Option<EventRecord> {
        self.records.pop_front()
    }

    /// Returns the next time at which [`Self::handle_deadline`] must be called.
    #[inline]
    pub fn poll_deadline(&self) -> Option<Instant> {
        self.answers.first().map(|(at, _)| at)
    }

    /// Returns the source of its fragments.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Returns the source of its fragments, to change it.
    pub fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// Returns the number of answers in preparation.
    pub fn answers_pending(&self) -> usize {
        self.answers.len()
    }

    /// Returns the number of events from the oldest kept event to the newest one.
    pub fn events_spanned(&self) -> usize {
        self.kept.len()
    }

    /// Returns the counters up to now.
    pub fn counters(&self) -> &ReadoutCounters {
        &self.counters
    }

    /// Checks that the counts agree with the events and answers: in tests, and at the end of a simulation.
    ///
    /// # Panics
    /// If they do not.
    pub fn check_invariants(&self) {
        assert_eq!(self.counters.held, self.kept.iter().flatten().sum::<u64>());
        assert_eq!(self.counters.events, self.kept.iter().flatten().count() as u64);
        assert!(self.kept.len() as u64 <= u64::from(self.config.events_max));
        assert_eq!(self.answers_count as usize, self.answers.len());
        assert!(self.answers_count <= self.config.answers_max);
        assert!(self.full_since.is_none() || self.config.memory.is_some());
    }

    fn connection(&self, collector: u16) -> u32 {
        self.connections.get(usize::from(collector)).copied().unwrap_or(0)
    }

    fn answer(&mut self, now: Instant, answer: PendingAnswer) {
        let PendingAnswer { to, connection, tag, event, fragments, until } = answer;
        if let Peer::Collector(collector) = to
            && self.connection(collector) != connection
        {
            self.answers_count -= 1;
            self.counters.undeliverable += 1;
            return;
        }
        let here = self.config.memory.is_none() || self.keeps(event);
        // A missing event that is older than the newest one is lost or deleted; a later one may still arrive.
        if !here && now < until && event.0 >= self.base.0.saturating_add(self.kept.len() as u64) {
            let again = later(now, Duration::from_millis(1)).min(until);
            self.answers.set(again, answer);
            return;
        }
        let (payload, missing) =
            if here { self.source.read(event, fragments) } else { (P::default(), fragments) };
        self.answers_count -= 1;
        self.counters.answers += 1;
        self.counters.bytes += payload.size().get();
        self.counters.missing += u64::from(missing.len());
        self.out.push_back((to, Message::Answer { tag, event, missing, payload }));
    }

    fn keeps(&self, event: L1Id) -> bool {
        let place = event.0.checked_sub(self.base.0).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.kept.get(place)).is_some_and(Option::is_some)
    }

    fn delete(&mut self, now: Instant, event: L1Id) {
        // Also for an event that is not kept: the detector must not deliver it again because of a request under way.
        self.source.delete(event);
        if self.config.memory.is_none() {
            self.counters.deleted += 1;
            return;
        }
        if !self.keeps(event) {
            return;
        }
        let bytes = self.kept[(event.0 - self.base.0) as usize].take().unwrap_or(0);
        self.counters.events -= 1;
        self.counters.held -= bytes;
        self.counters.deleted += 1;
        self.records.push_back(EventRecord { at: now, event, step: EventStep::Deleted });
        while let Some(None) = self.kept.front() {
            self.kept.pop_front();
            self.base = L1Id(self.base.0.saturating_add(1));
        }
    }

    /// Deletes an event and all events before it. The source forgets the latest of them, too, which may be requested late.
    fn delete_up_to(&mut self, now: Instant, event: L1Id) {
        // The simple server keeps what its source delivers.
        while self.config.memory.is_some() && !self.kept.is_empty() && self.base <= event {
            if self.keeps(self.base) {
                self.delete(now, self.base);
            } else {
                self.kept.pop_front();
                self.base = L1Id(self.base.0.saturating_add(1));
            }
        }
        self.source.delete_up_to(event);
    }

    /// Returns the time for which memory was full until `now`. [`ReadoutCounters::xoff_time`] lacks a stop that lasts.
    pub fn xoff_time(&self, now: Instant) -> Duration {
        let present = self.full_since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        self.counters.xoff_time.saturating_add(present)
    }

    /// Sends XOFF when memory becomes full, and XON when it is no longer full.
    fn check_memory(&mut self, now: Instant) {
        let Some(memory) = self.config.memory else { return };
        let full =
            self.counters.held >= memory.get() || self.kept.len() as u64 >= u64::from(self.config.events_max);
        if full == self.full_since.is_some() {
            return;
        }
        if let Some(since) = self.full_since.take() {
            let time = now.saturating_since(since);
            self.counters.xoff_time = self.counters.xoff_time.saturating_add(time);
        } else {
            self.full_since = Some(now);
            self.counters.xoffs += 1;
        }
        if self.is_supervisor_up && !self.is_stopping {
            self.out.push_back((Peer::Supervisor, Message::Flow { stop: full }));
        }
    }
}
