//! Requests to the readouts: made, queued for credits, sent, answered, repeated, given up.

use fanin_units::Instant;

use super::Collector;
use super::config::RequestOrder;
use super::pending::{PendingRequest, REMINDER_TAG};
use super::slot::{Phase, SlotKey};
use super::state::{Blocked, CollectorTimer};
use crate::timers::later;
use crate::{
    ByteCredit, EventRecord, EventStep, FragmentPayload, FragmentSet, L1Id, Message, Peer, RelativeSize,
    Selection,
};

/// All fragments that a readout can have.
const EVERY: FragmentSet = FragmentSet::first(FragmentSet::FRAGMENTS_MAX);

impl<P: FragmentPayload> Collector<P> {
    /// Makes the requests of a step. If nothing is left to request, the step is complete at once.
    pub(super) fn collect(&mut self, now: Instant, index: u32, selection: &Selection) {
        if self.paced.is_some() {
            self.credits.set_urgent(index);
        }
        let slot = &mut self.slots[index];
        slot.began = now;
        slot.first_request = None;
        let region = slot.region.clone();
        let selection = if *selection == Selection::Region { &region } else { selection };
        if self.config.request_order == RequestOrder::Random && !matches!(selection, Selection::List(_)) {
            self.random.shuffle(&mut self.order);
        }
        match selection {
            Selection::Rest | Selection::Region => {
                for place in 0..self.order.len() {
                    let readout = self.order[place];
                    self.plan(now, index, readout, EVERY);
                }
            }
            Selection::Readouts(share) => {
                let all = self.readouts.iter().filter(|readout| !readout.all.is_empty()).count();
                let mut left = share.ceil_of(all as u64);
                for place in 0..self.order.len() {
                    let readout = self.order[place];
                    if left == 0 {
                        break;
                    }
                    left -= u64::from(self.plan(now, index, readout, EVERY));
                }
            }
            Selection::Fragments(share) => {
                for place in 0..self.order.len() {
                    let readout = self.order[place];
                    let all = self.readouts[usize::from(readout)].all;
                    let left = all.without(self.slots[index].requested[usize::from(readout)]);
                    let count = share.ceil_of(u64::from(all.len())) as u16;
                    self.plan(now, index, readout, left.lowest(count));
                }
            }
            Selection::List(list) => {
                // A region may name readouts outside this system.
                let count = self.readouts.len();
                for wanted in list.iter().filter(|wanted| usize::from(wanted.readout) < count) {
                    self.plan(now, index, wanted.readout, wanted.fragments);
                }
            }
        }
        if self.slots[index].outstanding == 0 {
            let key = self.slots.key(index);
            self.completed.push_back(key);
        }
    }

    /// Makes one request for the fragments that exist and are not requested yet; returns false if none is left.
    #[inline]
    fn plan(&mut self, now: Instant, index: u32, readout: u16, fragments: FragmentSet) -> bool {
        let slot = SlotKey { index, generation: self.slots[index].generation };
        let requested = &mut self.slots[index].requested[usize::from(readout)];
        let fragments = self.readouts[usize::from(readout)].all.intersection(fragments).without(*requested);
        if fragments.is_empty() {
            return false;
        }
        *requested = requested.union(fragments);
        self.slots[index].outstanding += 1;
        self.enqueue(now, Blocked { slot, readout, retries: 0, fragments, planned: now });
        true
    }

    /// Queues a request until there are credits, or until its readout is back.
    #[inline]
    fn enqueue(&mut self, now: Instant, blocked: Blocked) {
        let link = &mut self.readouts[usize::from(blocked.readout)];
        if link.is_up {
            self.credits.push(blocked.slot.index, blocked.fragments.len(), blocked);
        } else if now < link.give_up {
            if link.stalled.is_empty() {
                self.timers.set(link.give_up, CollectorTimer::GiveUp(blocked.readout, link.give_up));
            }
            link.stalled.push(blocked);
        } else {
            self.lose_fragments(now, blocked);
        }
    }

    /// Sends requests while credits are left.
    #[inline]
    pub(super) fn send_requests(&mut self, now: Instant) {
        while self.paced.as_mut().is_none_or(|paced| paced.may_send(now))
            && let Some(blocked) = self.credits.pop()
        {
            let Blocked { slot: key, readout, retries, mut fragments, planned } = blocked;
            let mut cost = fragments.len();
            assert!(cost > 0 && planned <= now, "a request of nothing, or planned later");
            if !self.readouts[usize::from(readout)].is_up {
                self.credits.give_back(cost);
                self.enqueue(now, blocked);
                continue;
            }
            if self.slots.find(key).is_none() {
                self.credits.give_back(cost);
                continue;
            }
            let slot = &mut self.slots[key.index];
            let mut paced_credit = None;
            if let Some(paced) = &mut self.paced {
                let count = paced.fragments_of_part(readout, cost, slot.size);
                assert!(
                    (1..=cost).contains(&count),
                    "a part has none of the request's fragments, or more than all"
                );
                if count < cost {
                    let part = fragments.lowest(count);
                    let rest = Blocked { fragments: fragments.without(part), ..blocked };
                    self.credits.put_behind(key.index, cost - count, rest);
                    (fragments, cost) = (part, count);
                    slot.outstanding += 1;
                }
                paced_credit = Some(paced.on_sent(now, readout, cost, slot.size));
            }
            slot.requests += 1;
            let event = slot.event;
            if slot.first_request.is_none() {
                slot.first_request = Some(now);
                if let Phase::Step(step) = slot.phase {
                    self.records.push_back(EventRecord {
                        at: now,
                        event,
                        step: EventStep::FirstRequest { step },
                    });
                }
            }
            let wait = now.saturating_since(planned);
            if !wait.is_zero() {
                self.counters.waited += 1;
                self.counters.wait_time = self.counters.wait_time.saturating_add(wait);
            }
            self.counters.requests += 1;
            self.counters.retries += u64::from(retries > 0);
            let tag = self.pending.insert(PendingRequest {
                slot: key,
                readout,
                cost,
                paced: paced_credit,
                retries,
                fragments,
                sent: now,
            });
            if self.paced.is_some() {
                self.unreminded.push_back((now, tag));
            }
            if let Some(timeout) = self.config.request_timeout {
                self.timeouts.push_back((later(now, timeout), tag));
            }
            self.out.push_back((Peer::Readout(readout), Message::Request { tag, event, fragments }));
        }
    }

    #[inline]
    pub(super) fn answer(
        &mut self,
        now: Instant,
        readout: u16,
        tag: u32,
        event: L1Id,
        missing: FragmentSet,
        payload: P,
    ) -> Result<(), &'static str> {
        if tag == REMINDER_TAG {
            return Ok(());
        }
        let Some(pending) = self.pending.find(tag) else {
            self.counters.stale_answers += 1;
            return Ok(());
        };
        let PendingRequest { slot: key, readout: asked, cost, paced: credit, fragments, sent, .. } = *pending;
        if asked != readout {
            return Err("another readout was asked");
        }
        if self.slots.find(key).is_some_and(|slot| slot.event != event) {
            return Err("another event was asked for");
        }
        assert!(sent <= now, "an answer before its request");
        self.pending.remove(tag);
        self.credits.give_back(cost);
        if let (Some(paced), Some(credit)) = (&mut self.paced, credit) {
            let size = self.slots.find(key).map_or_else(RelativeSize::default, |slot| slot.size);
            let size = paced.on_answer(now, readout, cost, credit, sent, (payload.size(), size));
            if self.slots.find(key).is_some() {
                self.slots[key.index].size = size;
                self.credits.set_scale(key.index, size.factor().unwrap_or(1.0));
            }
        }
        if self.slots.find(key).is_none() {
            self.counters.stale_answers += 1;
            return Ok(());
        }
        let slot = &mut self.slots[key.index];
        let bytes = payload.size();
        slot.bytes += bytes;
        slot.payload.append(readout, payload);
        slot.outstanding -= 1;
        if slot.outstanding == 0 {
            self.completed.push_back(key);
        }
        self.counters.answers += 1;
        self.counters.bytes += bytes.get();
        let missing = missing.intersection(fragments);
        if !missing.is_empty() {
            self.note_missing(now, key.index, readout, missing);
        }
        if self.config.trace_requests {
            self.record(now, event, EventStep::Answered { readout, requested: sent, bytes });
        }
        Ok(())
    }

    /// Repeats requests without an answer in time, or gives them up.
    pub(super) fn expire_requests(&mut self, now: Instant) {
        while let Some(&(at, tag)) = self.timeouts.front()
            && at <= now
        {
            self.timeouts.pop_front();
            let late = self.pending.find(tag).and_then(|pending| pending.paced);
            if let (Some(paced), Some(credit)) = (&mut self.paced, late) {
                paced.on_timeout(credit);
            }
            self.repeat(now, tag);
        }
    }

    /// Repeats a request, or gives it up after `request_retries` repetitions.
    pub(super) fn repeat(&mut self, now: Instant, tag: u32) {
        let Some(pending) = self.pending.remove(tag) else { return };
        self.credits.give_back(pending.cost);
        self.return_paced(pending.paced);
        let PendingRequest { slot, readout, retries, fragments, .. } = pending;
        let blocked = Blocked { slot, readout, retries, fragments, planned: now };
        if self.slots.find(slot).is_none() {
            return;
        }
        if retries < self.config.request_retries {
            self.enqueue(now, Blocked { retries: retries + 1, ..blocked });
        } else {
            self.lose_fragments(now, blocked);
        }
    }

    pub(super) fn readout_connected(&mut self, readout: u16) {
        let Some(link) = self.readouts.get_mut(usize::from(readout)) else { return };
        link.is_up = true;
        for events in link.owed.drain(..) {
            self.out.push_back((Peer::Readout(readout), Message::Clear(events)));
        }
        for blocked in core::mem::take(&mut link.stalled) {
            if self.slots.find(blocked.slot).is_some() {
                self.credits.push(blocked.slot.index, blocked.fragments.len(), blocked);
            }
        }
    }

    pub(super) fn readout_closed(&mut self, now: Instant, readout: u16) {
        let Some(link) = self.readouts.get_mut(usize::from(readout)).filter(|link| link.is_up) else {
            return;
        };
        link.is_up = false;
        link.give_up = later(now, self.config.readout_wait);
        for tag in self.pending.tags_to(readout) {
            let Some(PendingRequest { slot, cost, paced, retries, fragments, sent, .. }) =
                self.pending.remove(tag)
            else {
                continue;
            };
            self.credits.give_back(cost);
            self.return_paced(paced);
            if self.slots.find(slot).is_some() {
                self.enqueue(now, Blocked { slot, readout, retries, fragments, planned: sent });
            }
        }
    }

    pub(super) fn give_readout_up(&mut self, now: Instant, readout: u16) {
        let link = &mut self.readouts[usize::from(readout)];
        for blocked in core::mem::take(&mut link.stalled) {
            self.lose_fragments(now, blocked);
        }
    }

    /// Returns the credit of a request that will have no answer.
    fn return_paced(&mut self, credit: Option<ByteCredit>) {
        if let (Some(paced), Some(credit)) = (&mut self.paced, credit) {
            paced.on_withdrawn(credit);
        }
    }

    /// Marks the fragments of an abandoned request as missing from the event.
    fn lose_fragments(&mut self, now: Instant, blocked: Blocked) {
        let Blocked { slot: key, readout, fragments, .. } = blocked;
        if self.slots.find(key).is_none() {
            return;
        }
        self.note_missing(now, key.index, readout, fragments);
        let slot = &mut self.slots[key.index];
        slot.outstanding -= 1;
        if slot.outstanding == 0 {
            self.completed.push_back(key);
        }
    }

    fn note_missing(&mut self, now: Instant, index: u32, readout: u16, fragments: FragmentSet) {
        let slot = &mut self.slots[index];
        let count = fragments.len();
        assert!(count > 0, "no fragment is missing");
        slot.missing += u32::from(count);
        slot.payload.mark_missing(readout, fragments);
        self.counters.missing += u64::from(count);
        let event = slot.event;
        self.record(now, event, EventStep::Missing { readout, fragments: count });
    }
}
