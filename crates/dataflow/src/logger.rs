//! The data logger: accepts events while it has memory, and reports when they are on disk (thesis §3.7.5, §3.8.1).

use alloc::collections::{BTreeMap, VecDeque};

use fanin_units::{Bytes, Duration, Instant, Rate};

use crate::timers::{Timers, later};
use crate::{EventRecord, EventStep, EventStream, FragmentPayload, L1Id, Message, Peer, Unexpected};

/// The largest event that may be offered. Counts of bytes cannot overflow with it.
const OFFER_BYTES_MAX: Bytes = Bytes::new(1 << 40);

/// The model of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteModel {
    /// The driver takes [`WriteJob`]s and reports their end.
    External,
    /// Events are written one after the other at `rate`, and acknowledged `latency` later.
    Timed {
        /// The disk's rate.
        rate: Rate,
        /// Time from the last byte to the acknowledgement.
        latency: Duration,
    },
}

/// Settings of a logger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggerConfig {
    /// The model of the disk.
    pub write: WriteModel,
    /// The most bytes that may be granted or in memory. A single event is accepted even if it is larger.
    pub logger_memory: Bytes,
    /// The most offers that may wait for memory; further ones are refused.
    pub offers_max: u32,
}

impl Default for LoggerConfig {
    /// Returns settings with an external disk, 256 MB of memory and 100 000 offers.
    fn default() -> Self {
        Self { write: WriteModel::External, logger_memory: Bytes::new(256_000_000), offers_max: 100_000 }
    }
}

/// Settings that a logger refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoggerError {
    /// The disk's rate is zero.
    #[error("the disk's rate is zero")]
    NoRate,
}

/// Counters of a logger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoggerCounters {
    /// Events on disk.
    pub stored: u64,
    /// Stored events of the debug stream.
    pub debug: u64,
    /// Payload bytes on disk.
    pub bytes: u64,
    /// Offers that were refused.
    pub refused: u64,
    /// Events that could not be written.
    pub failed: u64,
    /// Events that are on disk with stand-ins, since they cannot be written as they are.
    pub stand_ins: u64,
    /// Bytes granted or in memory now.
    pub held: u64,
    /// The largest value of `held`.
    pub held_max: u64,
}

/// The id of an event during its write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub u64);

/// An event for the driver to write.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteJob<P> {
    /// The id for [`Logger::handle_stored`].
    pub id: StoreId,
    /// The event's L1 ID.
    pub event: L1Id,
    /// The collector that sent it.
    pub collector: u16,
    /// The stream of files for the event.
    pub stream: EventStream,
    /// Number of its missing fragments.
    pub missing: u32,
    /// The fragments of the event.
    pub payload: P,
}

#[derive(Debug, Clone, Copy)]
struct Writing {
    event: L1Id,
    collector: u16,
    stream: EventStream,
    missing: u32,
    size: u64,
}

/// One data logger.
#[derive(Debug)]
pub struct Logger<P> {
    config: LoggerConfig,
    /// Offers that wait for memory, in the order of arrival, and the position of each.
    offers: BTreeMap<u64, (u16, L1Id, u64)>,
    places: BTreeMap<(u16, L1Id), u64>,
    next_place: u64,
    /// Granted bytes by collector and event, until the event arrives.
    granted: BTreeMap<(u16, L1Id), u64>,
    writing: BTreeMap<StoreId, Writing>,
    jobs: VecDeque<WriteJob<P>>,
    next_id: StoreId,
    is_refusing: bool,
    disk_free: Instant,
    timers: Timers<StoreId>,
    out: VecDeque<(Peer, Message<P>)>,
    records: VecDeque<EventRecord>,
    counters: LoggerCounters,
}

impl<P: FragmentPayload> Logger<P> {
    /// Makes a logger with nothing to write.
    ///
    /// # Errors
    /// [`LoggerError::NoRate`] if the disk's rate is zero.
    pub fn new(config: LoggerConfig) -> Result<Self, LoggerError> {
        if let WriteModel::Timed { rate, .. } = config.write
            && rate.is_zero()
        {
            return Err(LoggerError::NoRate);
        }
        Ok(Self {
            config,
            offers: BTreeMap::new(),
            places: BTreeMap::new(),
            next_place: 0,
            granted: BTreeMap::new(),
            writing: BTreeMap::new(),
            jobs: VecDeque::new(),
            next_id: StoreId(0),
            is_refusing: false,
            disk_free: Instant::START,
            timers: Timers::new(),
            out: VecDeque::new(),
            records: VecDeque::new(),
            counters: LoggerCounters::default(),
        })
    }

    /// Handles a new connection, which changes nothing.
    pub fn handle_connected(&mut self, _now: Instant, _peer: Peer) {}

    /// Handles the loss of a connection: drops the collector's offers and grants. A second call has no effect. Received
    /// events are still written.
    pub fn handle_closed(&mut self, _now: Instant, peer: Peer) {
        let Peer::Collector(collector) = peer else { return };
        self.offers.retain(|_, (from, ..)| *from != collector);
        self.places.retain(|(from, _), _| *from != collector);
        self.granted.retain(|(from, _), size| {
            if *from == collector {
                self.counters.held -= *size;
            }
            *from != collector
        });
        self.grant();
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
        let Peer::Collector(collector) = peer else {
            return unexpected(message.name(), "only collectors talk to loggers");
        };
        match message {
            Message::Offer { event, size } => {
                let key = (collector, event);
                if size > OFFER_BYTES_MAX {
                    return unexpected("offer", "it is larger than any event");
                }
                // A refusal of an earlier copy and an offer can cross. The collector then offers the event once more: the
                // first of the two stands.
                if self.places.contains_key(&key) || self.granted.contains_key(&key) {
                    return Ok(());
                }
                if self.is_refusing || self.offers.len() >= self.config.offers_max as usize {
                    self.counters.refused += 1;
                    self.out.push_back((peer, Message::Refuse { event }));
                } else {
                    self.offers.insert(self.next_place, (collector, event, size.get()));
                    self.places.insert(key, self.next_place);
                    self.next_place += 1;
                }
            }
            Message::Withdraw { event } => {
                self.forget_offer(collector, event);
                if let Some(size) = self.granted.remove(&(collector, event)) {
                    self.counters.held -= size;
                }
            }
            Message::Event { event, stream, missing, payload } => {
                // A grant and a withdrawal can cross. If the event is offered again, it arrives by the earlier grant,
                // while its second offer waits or was refused.
                let offered = self.forget_offer(collector, event);
                let granted = match self.granted.remove(&(collector, event)) {
                    Some(granted) => granted,
                    None if offered => 0,
                    None => {
                        self.counters.refused += 1;
                        self.out.push_back((peer, Message::Refuse { event }));
                        return Ok(());
                    }
                };
                let size = payload.size().get();
                self.counters.held = self.counters.held - granted + size;
                self.counters.held_max = self.counters.held_max.max(self.counters.held);
                self.write(now, collector, event, stream, missing, payload);
            }
            message => return unexpected(message.name(), "a collector does not send this here"),
        }
        self.grant();
        Ok(())
    }

    /// Handles the deadline that [`Self::poll_deadline`] returned.
    pub fn handle_deadline(&mut self, now: Instant) {
        while let Some(id) = self.timers.pop_due(now) {
            self.handle_stored(now, id);
        }
    }

    /// Handles the end of a write: the event is on disk, and its collector receives the report now.
    pub fn handle_stored(&mut self, now: Instant, id: StoreId) {
        let Some(Writing { event, collector, stream, missing, size }) = self.writing.remove(&id) else {
            return;
        };
        self.counters.stored += 1;
        self.counters.debug += u64::from(stream == EventStream::Debug);
        self.counters.bytes += size;
        self.counters.held -= size;
        self.records.push_back(EventRecord {
            at: now,
            event,
            step: EventStep::Stored { collector, stream, missing },
        });
        self.out.push_back((Peer::Collector(collector), Message::Stored { event, stream }));
        self.grant();
    }

    /// Handles the end of a write of an event that no logger can write as it is. On disk, in the debug stream, is an event
    /// with stand-ins for some of its fragments. Its collector receives the report, and does not send the event again.
    pub fn handle_stand_in(&mut self, now: Instant, id: StoreId, fragments: u32) {
        if let Some(writing) = self.writing.get_mut(&id) {
            writing.stream = EventStream::Debug;
            writing.missing = writing.missing.saturating_add(fragments);
            self.counters.stand_ins += 1;
            let event = writing.event;
            self.records.push_back(EventRecord { at: now, event, step: EventStep::StandIns { fragments } });
        }
        self.handle_stored(now, id);
    }

    /// Handles a failed write: nothing of the event is on disk. Its collector, which still has the event, receives a
    /// refusal.
    pub fn handle_store_failed(&mut self, id: StoreId) {
        let Some(Writing { event, collector, size, .. }) = self.writing.remove(&id) else { return };
        self.counters.failed += 1;
        self.counters.held -= size;
        self.out.push_back((Peer::Collector(collector), Message::Refuse { event }));
        self.grant();
    }

    /// Handles a disk that is full, or has space again. While the disk is full, offers are refused, and collectors try
    /// other loggers.
    pub fn handle_disk_full(&mut self, full: bool) {
        self.is_refusing = full;
        if full {
            self.places.clear();
            for (collector, event, _) in core::mem::take(&mut self.offers).into_values() {
                self.counters.refused += 1;
                self.out.push_back((Peer::Collector(collector), Message::Refuse { event }));
            }
        }
    }

    /// Returns the next event for the driver to write ([`WriteModel::External`]).
    pub fn poll_write(&mut self) -> Option<WriteJob<P>> {
        self.jobs.pop_front()
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
        self.timers.first().map(|(at, _)| at)
    }

    /// Checks that the counts agree with the events: in tests, and at the end of a simulation.
    ///
    /// # Panics
    /// If they do not.
    pub fn check_invariants(&self) {
        assert!(self.offers.len() <= self.config.offers_max as usize);
        assert_eq!(self.offers.len(), self.places.len());
        for (&place, &(collector, event, _)) in &self.offers {
            assert_eq!(self.places.get(&(collector, event)), Some(&place));
        }
        let granted: u64 = self.granted.values().sum();
        let writing: u64 = self.writing.values().map(|writing| writing.size).sum();
        assert_eq!(self.counters.held, granted + writing, "a held byte is neither granted nor being written");
        assert!(self.counters.held_max >= self.counters.held);
    }

    /// Returns the counters up to now.
    pub fn counters(&self) -> &LoggerCounters {
        &self.counters
    }

    /// Returns the number of offers that wait for memory.
    pub fn offers_waiting(&self) -> usize {
        self.offers.len()
    }

    /// Returns the number of granted events that have not arrived.
    pub fn events_granted(&self) -> usize {
        self.granted.len()
    }

    /// Returns the number of received events that are not on disk yet.
    pub fn unwritten(&self) -> usize {
        self.writing.len()
    }

    fn write(
        &mut self,
        now: Instant,
        collector: u16,
        event: L1Id,
        stream: EventStream,
        missing: u32,
        payload: P,
    ) {
        let id = self.next_id;
        self.next_id = StoreId(id.0 + 1);
        let size = payload.size();
        self.writing.insert(id, Writing { event, collector, stream, missing, size: size.get() });
        match self.config.write {
            WriteModel::External => {
                self.jobs.push_back(WriteJob { id, event, collector, stream, missing, payload });
            }
            WriteModel::Timed { rate, latency } => {
                let time = rate.checked_time_to_send(size).unwrap_or(Duration::MAX);
                self.disk_free = later(self.disk_free.max(now), time);
                self.timers.set(later(self.disk_free, latency), id);
            }
        }
    }

    fn forget_offer(&mut self, collector: u16, event: L1Id) -> bool {
        self.places.remove(&(collector, event)).is_some_and(|place| self.offers.remove(&place).is_some())
    }

    /// Grants offers in their order while `logger_memory` has room.
    fn grant(&mut self) {
        while let Some((_, &(collector, event, size))) = self.offers.first_key_value() {
            let empty = self.counters.held == 0;
            if !empty && self.counters.held.saturating_add(size) > self.config.logger_memory.get() {
                break;
            }
            self.forget_offer(collector, event);
            self.granted.insert((collector, event), size);
            self.counters.held += size;
            self.counters.held_max = self.counters.held_max.max(self.counters.held);
            self.out.push_back((Peer::Collector(collector), Message::Grant { event }));
        }
    }
}
