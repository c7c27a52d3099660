//! Ships complete events to the data loggers (thesis §3.8.1: offer, grant, event, stored), and clears to the readouts.

use fanin_units::{Duration, Instant};

use super::Collector;
use super::slot::Phase;
use super::state::{CLEARS_OWED_MAX, CollectorTimer};
use crate::timers::later;
use crate::{EventStep, EventStream, FragmentPayload, L1Id, Message, Outcome, Peer};

/// Pause after every logger has refused.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);
/// Most doublings of this pause, for an event that loggers refuse again and again after they received it.
const REFUSED_DOUBLINGS_MAX: u16 = 4;

impl<P: FragmentPayload> Collector<P> {
    /// Offers a complete event to a logger. Without loggers, it is finished.
    pub(super) fn offer_first(&mut self, now: Instant, index: u32) {
        if self.loggers.is_empty() {
            let outcome = if self.slots[index].is_debug { Outcome::Debug } else { Outcome::Accepted };
            self.finish(now, index, outcome);
        } else {
            let (event, bytes) = (self.slots[index].event, self.slots[index].payload.size());
            if let Some(limit) = self.config.event_max.filter(|limit| bytes > *limit) {
                self.record(now, event, EventStep::TooLarge { bytes, limit });
                self.drop_fragments(now, index);
            }
            self.offer(now, index, None);
        }
    }

    /// Marks all fragments of an event as missing, and sends it to the debug stream. No logger could receive it: the event would
    /// be offered for ever.
    fn drop_fragments(&mut self, now: Instant, index: u32) {
        let slot = &mut self.slots[index];
        let (event, missing) = (slot.event, slot.missing);
        (slot.payload, slot.is_debug, slot.missing) = (P::default(), true, 0);
        for readout in 0..slot.requested.len() {
            let slot = &mut self.slots[index];
            let fragments = slot.requested[readout];
            if !fragments.is_empty() {
                let (readout, count) = (readout as u16, fragments.len());
                slot.payload.mark_missing(readout, fragments);
                slot.missing += u32::from(count);
                self.record(now, event, EventStep::Missing { readout, fragments: count });
            }
        }
        self.counters.missing += u64::from(self.slots[index].missing.saturating_sub(missing));
        self.counters.too_large += 1;
    }

    /// Offers an event to the next connected logger in turn; without one, the event waits.
    pub(super) fn offer(&mut self, now: Instant, index: u32, except: Option<u16>) {
        let count = self.loggers.len() as u16;
        let turns = (0..count).map(|turn| (self.next_logger + turn) % count);
        let next =
            turns.filter(|&logger| self.loggers[usize::from(logger)]).find(|&logger| except != Some(logger));
        let key = self.slots.key(index);
        let slot = &mut self.slots[index];
        assert!(slot.outstanding == 0 && slot.unit.is_none(), "an event is offered before it is complete");
        let Some(logger) = next else {
            slot.enter(Phase::Unshipped);
            self.unshipped.push_back(key);
            return;
        };
        self.next_logger = (logger + 1) % count;
        slot.enter(Phase::Offered(logger));
        slot.offers = slot.offers.wrapping_add(1);
        let (event, size, offers) = (slot.event, slot.payload.size(), slot.offers);
        self.out.push_back((Peer::Logger(logger), Message::Offer { event, size }));
        if let Some(timeout) = self.config.logger_timeout {
            self.timers.set(later(now, timeout), CollectorTimer::LoggerLate(key, offers));
        }
    }

    pub(super) fn offer_unshipped(&mut self, now: Instant) {
        for _ in 0..self.unshipped.len() {
            let Some(key) = self.unshipped.pop_front() else { break };
            if self.slots.find(key).is_some_and(|slot| slot.phase == Phase::Unshipped) {
                self.offer(now, key.index, None);
            }
        }
    }

    pub(super) fn granted(&mut self, now: Instant, logger: u16, event: L1Id) -> Result<(), &'static str> {
        self.check_logger(logger)?;
        let offered =
            self.slots.index_of(event).filter(|&index| self.slots[index].phase == Phase::Offered(logger));
        let Some(index) = offered else {
            // Meanwhile the event has left, or is no longer offered to this logger.
            self.out.push_back((Peer::Logger(logger), Message::Withdraw { event }));
            return Ok(());
        };
        let slot = &mut self.slots[index];
        slot.enter(Phase::Sent(logger));
        slot.sends = slot.sends.saturating_add(1);
        let stream = if slot.is_debug { EventStream::Debug } else { EventStream::Physics };
        let (attempt, missing, bytes) = (slot.sends, slot.missing, slot.payload.size());
        // The collector keeps a copy until the event is on the logger's disk.
        let message = Message::Event { event, stream, missing, payload: slot.payload.clone() };
        if self.config.clear_before_stored && !core::mem::replace(&mut slot.is_cleared, true) {
            self.clear_later(now, event);
        }
        self.out.push_back((Peer::Logger(logger), message));
        self.record(now, event, EventStep::Shipped { logger, attempt, stream, bytes, missing });
        Ok(())
    }

    pub(super) fn refused(&mut self, now: Instant, logger: u16, event: L1Id) -> Result<(), &'static str> {
        self.check_logger(logger)?;
        let Some(index) = self.slots.index_of(event) else { return Ok(()) };
        let slot = &mut self.slots[index];
        if !matches!(slot.phase, Phase::Offered(at) | Phase::Sent(at) if at == logger) {
            return Ok(());
        }
        self.counters.reshipped += u64::from(matches!(slot.phase, Phase::Sent(_)));
        if slot.offers.is_multiple_of(self.config.loggers) {
            slot.enter(Phase::Unshipped);
            // No logger may ever take the event: its proof may be by a key that none of them has.
            let rounds = slot.sends / self.config.loggers;
            let pause = REFUSED_PAUSE * (1 << rounds.saturating_sub(1).min(REFUSED_DOUBLINGS_MAX));
            let key = self.slots.key(index);
            self.timers.set(later(now, pause), CollectorTimer::OfferAgain(key));
        } else {
            self.offer(now, index, None);
        }
        Ok(())
    }

    pub(super) fn stored(
        &mut self,
        now: Instant,
        logger: u16,
        event: L1Id,
        stream: EventStream,
    ) -> Result<(), &'static str> {
        self.check_logger(logger)?;
        // The report may come from a logger that timed out: the event is on disk.
        let sent = self.slots.index_of(event).filter(|&index| self.slots[index].sends > 0);
        let Some(index) = sent else { return Ok(()) };
        if let Phase::Offered(other) = self.slots[index].phase {
            self.out.push_back((Peer::Logger(other), Message::Withdraw { event }));
        }
        self.record(now, event, EventStep::Acknowledged { logger });
        // The stream decides, not the slot: before a restart the collector may have sent the event for the other stream.
        let outcome = match stream {
            EventStream::Physics => Outcome::Stored,
            EventStream::Debug => Outcome::Debug,
        };
        self.finish(now, index, outcome);
        Ok(())
    }

    pub(super) fn logger_closed(&mut self, now: Instant, logger: u16) {
        let Some(up) = self.loggers.get_mut(usize::from(logger)) else { return };
        if !core::mem::replace(up, false) {
            return;
        }
        let at = |phase| matches!(phase, Phase::Offered(at) | Phase::Sent(at) if at == logger);
        let mut indices = alloc::vec::Vec::new();
        indices.extend(self.slots.iter().filter(|(_, slot)| at(slot.phase)).map(|(index, _)| index));
        for index in indices {
            self.counters.reshipped += u64::from(self.slots[index].phase == Phase::Sent(logger));
            self.offer(now, index, None);
        }
    }

    /// Handles the timeout of a logger. An offer goes to the next logger, and a sent event to a different one.
    pub(super) fn logger_late(&mut self, now: Instant, index: u32) {
        match self.slots[index].phase {
            Phase::Offered(logger) => {
                let event = self.slots[index].event;
                self.out.push_back((Peer::Logger(logger), Message::Withdraw { event }));
                self.offer(now, index, None);
            }
            Phase::Sent(logger) => {
                let other = (0..self.config.loggers).any(|n| n != logger && self.loggers[usize::from(n)]);
                if other {
                    self.counters.reshipped += 1;
                    self.offer(now, index, Some(logger));
                } else if let Some(timeout) = self.config.logger_timeout {
                    let (key, offers) = (self.slots.key(index), self.slots[index].offers);
                    self.timers.set(later(now, timeout), CollectorTimer::LoggerLate(key, offers));
                }
            }
            Phase::Vacant | Phase::Step(_) | Phase::Building | Phase::Unshipped => {}
        }
    }

    fn check_logger(&self, logger: u16) -> Result<(), &'static str> {
        if logger < self.config.loggers { Ok(()) } else { Err("there is no such logger") }
    }

    /// Adds an event to the next clear message to the readouts.
    pub(super) fn clear_later(&mut self, now: Instant, event: L1Id) {
        if let Some(clear) = &mut self.clear {
            clear.add(now, event);
        }
    }

    /// Sends due clears. Clears wait for a supervisor's connection: the supervisor may have given the events to another
    /// collector.
    #[inline]
    pub(super) fn flush_clear(&mut self, now: Instant) {
        if !self.link.is_up() {
            return;
        }
        let Some(events) = self.clear.as_mut().and_then(|clear| clear.take_due(now)) else { return };
        for (readout, link) in self.readouts.iter_mut().enumerate() {
            if link.is_up {
                self.out.push_back((Peer::Readout(readout as u16), Message::Clear(events.clone())));
            } else {
                if link.owed.len() >= CLEARS_OWED_MAX {
                    link.owed.pop_front();
                }
                link.owed.push_back(events.clone());
            }
        }
        for &event in events.iter() {
            self.record(now, event, EventStep::Cleared);
        }
    }
}
