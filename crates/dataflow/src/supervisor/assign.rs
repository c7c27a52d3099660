//! Assigns due events to units, and stops the trigger (XOFF) while none can be assigned.

use fanin_units::{Duration, Instant};

use super::config::{Arrivals, StartOrder};
use super::{Outstanding, Supervisor};
use crate::{Delay, EventStep, FragmentPayload, L1Id, Message, Peer, Selection};

impl<P: FragmentPayload> Supervisor<P> {
    /// Assigns as many events as possible, records XOFF and XON, and sends clears.
    pub(super) fn pump(&mut self, now: Instant) {
        loop {
            self.set_due(now);
            let waiting = !self.returned.is_empty() || self.due.is_some_and(|due| due <= now);
            if !waiting {
                break;
            }
            if self.free_count == 0 || self.readouts_full > 0 {
                self.stop(now);
                break;
            }
            self.begin();
            self.resume_assigning(now);
            if let Some((event, region, result)) = self.returned.pop_front() {
                self.assign(now, event, now, true, region, result);
            } else if let Some(due) = self.due.filter(|&due| due <= now) {
                self.assign_new(now, due);
            }
        }
        if self.free_count > 0 && self.readouts_full == 0 {
            self.resume_assigning(now);
        }
        assert!(
            self.xoff_since.is_none() || self.free_count == 0 || self.readouts_full > 0,
            "the trigger is stopped, and an event can be assigned"
        );
        self.flush_clear(now);
    }

    /// Sets the time at which the next new event falls due, if it is known.
    fn set_due(&mut self, now: Instant) {
        if self.is_stopping
            || self.due.is_some()
            || self.config.events_max.is_some_and(|max| self.counters.assigned >= max)
        {
            return;
        }
        let Some(origin) = self.origin else { return };
        self.due = match self.config.arrivals {
            Arrivals::Periodic => {
                let rate = self.config.rate;
                rate.nth(self.ticks).and_then(|time| origin.checked_add(time - Instant::START))
            }
            Arrivals::Poisson => {
                let mean = self.config.rate.nth(1).map_or(Duration::MAX, |time| time - Instant::START);
                let wait = Delay::Exponential { mean }.draw(&mut self.random);
                self.due.unwrap_or(origin).checked_add(wait)
            }
            Arrivals::OnDemand => (self.free_count > 0 && self.readouts_full == 0).then(|| now.max(origin)),
        };
    }

    fn assign_new(&mut self, now: Instant, due: Instant) {
        let (region, result) = (self.config.region.clone(), self.config.result.clone());
        assert!(due <= now && !self.is_stopping, "an event is assigned before it is due");
        let event = self.next_event;
        self.next_event = L1Id(event.0 + 1);
        self.counters.assigned += 1;
        let late = now.saturating_since(due);
        if !late.is_zero() {
            self.counters.held += 1;
            self.counters.held_time = self.counters.held_time.saturating_add(late);
        }
        self.ticks += 1;
        self.due = None;
        if self.config.arrivals == Arrivals::Poisson {
            // The next arrival is drawn from this one.
            self.origin = Some(due);
        }
        self.assign(now, event, due, false, region, result);
    }

    fn assign(
        &mut self,
        now: Instant,
        event: L1Id,
        due: Instant,
        direct: bool,
        region: Selection,
        result: P,
    ) {
        let number = self.pool.take(&mut self.random).expect("the pool holds each free unit");
        assert!(self.free[number as usize], "an event is assigned to a busy unit");
        self.free[number as usize] = false;
        self.free_count -= 1;
        let (collector, unit) = self.layout.place(number);
        let one = Outstanding { event, region: region.clone(), result: result.clone() };
        self.collectors[usize::from(collector)].outstanding.push(one);
        self.record(now, event, EventStep::Assigned { collector, unit, due, direct });
        let message = Message::Assign { event, unit, direct, region, result };
        self.out.push_back((Peer::Collector(collector), message));
    }

    /// Sorts the announcements before the first event, and adds these units to the pool. Later calls have no effect.
    fn begin(&mut self) {
        if core::mem::replace(&mut self.has_started, true) {
            return;
        }
        let layout = &self.layout;
        match self.config.start_order {
            StartOrder::Arrival => {}
            StartOrder::ByHost => self.announced.sort_unstable(),
            StartOrder::Interleaved => self.announced.sort_unstable_by_key(|&unit| {
                let (collector, unit) = layout.place(unit);
                (unit, collector)
            }),
            StartOrder::Random => self.random.shuffle(&mut self.announced),
        }
        for unit in self.announced.drain(..) {
            self.pool.add(unit);
        }
    }

    fn stop(&mut self, now: Instant) {
        if self.xoff_since.is_none() {
            self.xoff_since = Some(now);
            self.counters.xoffs += 1;
            self.record(now, self.next_event, EventStep::Xoff);
        }
    }

    fn resume_assigning(&mut self, now: Instant) {
        let Some(since) = self.xoff_since.take() else { return };
        self.counters.xoff_time = self.counters.xoff_time.saturating_add(now.saturating_since(since));
        self.record(now, self.next_event, EventStep::Xon);
    }

    fn flush_clear(&mut self, now: Instant) {
        let Some(events) = self.clear.as_mut().and_then(|clear| clear.take_due(now)) else { return };
        for (readout, state) in self.readouts.iter().enumerate() {
            if state.is_up {
                self.out.push_back((Peer::Readout(readout as u16), Message::Clear(events.clone())));
            }
        }
        for &event in events.iter() {
            self.record(now, event, EventStep::Cleared);
        }
        self.keep_cleared(now, events);
    }
}
