//! Frames that wait at a port without a time, behind those that have one, in the same ring: so one that gets its time, or loses
//! it again, stays where it is.

use super::{Frame, Parcel, Port, PortIndex, Schedule};

impl Port {
    /// The frames of the ring that have a time.
    #[inline(always)]
    pub(super) fn behind_first(&self) -> u32 {
        self.len.saturating_sub(1)
    }

    /// How many are parked.
    #[inline(always)]
    pub(in crate::fabric) fn parked_len(&self) -> u32 {
        self.parked
    }

    /// Those that are, in order.
    pub(in crate::fabric) fn parked(&self) -> impl Iterator<Item = Parcel> {
        (0..self.parked).map(|place| self.ring[self.slot(self.behind_first() + place)].parcel)
    }

    /// Parks a frame behind all others.
    #[inline(always)]
    pub(in crate::fabric) fn park(&mut self, parcel: Parcel) {
        let offset = self.behind_first() + self.parked;
        if offset as usize == self.ring.len() {
            self.grow();
        }
        let slot = self.slot(offset);
        self.ring[slot].parcel = parcel;
        self.parked += 1;
    }

    /// The frame that has waited longest of those that are parked.
    #[inline(always)]
    pub(in crate::fabric) fn first_parked(&self) -> Option<Parcel> {
        (self.parked > 0).then(|| self.ring[self.slot(self.behind_first())].parcel)
    }

    /// Gives that frame its time: it will have left at `departure`.
    #[inline(always)]
    pub(in crate::fabric) fn unpark(&mut self, schedule: &mut Schedule, departure: u64, index: PortIndex) {
        let arrival = departure + self.delay;
        let slot = self.slot(self.behind_first());
        let frame = &mut self.ring[slot];
        frame.arrival = arrival;
        (self.departure, self.wire_bytes) =
            (departure, self.wire_bytes + u64::from(frame.parcel.wire_bytes()));
        match self.len {
            0 => {
                self.first = *frame;
                self.head = self.head.wrapping_add(1);
                schedule.insert_arrival(arrival, index);
            }
            1 => self.next_arrival = arrival,
            _ => {}
        }
        (self.len, self.parked) = (self.len + 1, self.parked - 1);
    }

    /// Takes a frame that will have left at `departure` before all that are parked.
    pub(in crate::fabric) fn accept_before_parked(
        &mut self,
        schedule: &mut Schedule,
        departure: u64,
        index: PortIndex,
        parcel: Parcel,
    ) {
        let frame = Frame { arrival: departure + self.delay, parcel };
        (self.departure, self.wire_bytes) = (departure, self.wire_bytes + u64::from(parcel.wire_bytes()));
        if self.len == 0 {
            self.first = frame;
            schedule.insert_arrival(frame.arrival, index);
        } else {
            if (self.behind_first() + self.parked) as usize == self.ring.len() {
                self.grow();
            }
            // Those that have a time are few, and make room.
            self.head = self.head.wrapping_sub(1);
            for offset in 0..self.behind_first() {
                self.ring[self.slot(offset)] = self.ring[self.slot(offset + 1)];
            }
            let slot = self.slot(self.behind_first());
            self.ring[slot] = frame;
            if self.len == 1 {
                self.next_arrival = frame.arrival;
            }
        }
        self.len += 1;
    }

    /// Parks the last frame that has a time again, before all that are, if it has not begun to leave by `now`; returns how long it
    /// would have taken. It is not the first on the link, whose arrival is scheduled.
    pub(in crate::fabric) fn park_last(&mut self, now: u64) -> Option<u64> {
        let time = self.withdraw_last(now)?;
        self.parked += 1;
        Some(time)
    }

    /// Takes the last frame that has a time out, likewise.
    pub(in crate::fabric) fn take_back(&mut self, now: u64) -> Option<(Parcel, u64)> {
        let time = self.withdraw_last(now)?;
        let behind = self.behind_first();
        let parcel = self.ring[self.slot(behind)].parcel;
        // Those before it close up.
        for offset in (0..behind).rev() {
            self.ring[self.slot(offset + 1)] = self.ring[self.slot(offset)];
        }
        self.head = self.head.wrapping_add(1);
        Some((parcel, time))
    }

    fn withdraw_last(&mut self, now: u64) -> Option<u64> {
        let &Frame { arrival, parcel } = self.frame(self.len.checked_sub(1)?);
        let time = self.time_to_send(parcel.wire_bytes());
        if arrival - self.delay - time <= now {
            return None;
        }
        assert!(self.len > 1, "what is first on a link has begun to leave");
        self.len -= 1;
        self.unchanged_until = 0;
        self.departure -= time;
        self.wire_bytes -= u64::from(parcel.wire_bytes());
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use fanin_units::Rate;
    use proptest::prelude::*;

    use super::*;
    use crate::memories::Place;

    proptest! {
        /// Whatever is parked, booked and taken back again: frames keep their order, those that go before all that are parked among
        /// them, and what arrives is what was booked.
        #[test]
        fn frames_keep_their_order(steps in prop::collection::vec(0_u8..7, 1..200)) {
            const WIRE: u32 = 1538;
            let mut port = Port::new(Rate::new(1_000_000_000), Place { memory: u32::MAX, output: 0, input: 0 });
            port.delay = 30_000_000;
            let mut schedule = Schedule::new(1 << 20, 1);
            // Those with a time and those without, by the ends that they are for.
            let (mut booked, mut parked): (VecDeque<u32>, VecDeque<u32>) = Default::default();
            let mut now = 0;
            for (end, step) in (0..).zip(steps) {
                let departure = port.departure.max(now) + port.time_to_send(WIRE);
                match step {
                    0 | 1 => {
                        port.park(Parcel::of(WIRE, end));
                        parked.push_back(end);
                    }
                    2 => {
                        port.accept_before_parked(&mut schedule, departure, 0, Parcel::of(WIRE, end));
                        booked.push_back(end);
                    }
                    3 => {
                        prop_assert_eq!(port.first_parked().map(Parcel::end), parked.front().copied());
                        if let Some(end) = parked.pop_front() {
                            port.unpark(&mut schedule, departure, 0);
                            booked.push_back(end);
                        }
                    }
                    4 => {
                        if port.park_last(now).is_some() {
                            prop_assert!(port.departure > now, "it has begun");
                            parked.push_front(booked.pop_back().unwrap());
                        }
                    }
                    5 => {
                        if let Some((parcel, time)) = port.take_back(now) {
                            prop_assert!(port.departure > now, "it has begun");
                            prop_assert_eq!((Some(parcel.end()), time), (booked.pop_back(), port.time_to_send(WIRE)));
                        }
                    }
                    _ => {
                        prop_assert_eq!(schedule.pending(), usize::from(!booked.is_empty()));
                        if let Some((at, _)) = schedule.pop() {
                            now = at;
                            prop_assert_eq!(port.arrive(&mut schedule, at, 0).end(), booked.pop_front().unwrap());
                        }
                    }
                }
                prop_assert_eq!((port.len as usize, port.parked_len() as usize), (booked.len(), parked.len()));
                prop_assert!(port.parked().map(Parcel::end).eq(parked.iter().copied()));
                prop_assert!(port.waiting().map(|frame| frame.parcel.end()).eq(booked.iter().copied()));
                prop_assert!(port.waiting().map(|frame| frame.arrival).is_sorted());
            }
        }
    }
}
