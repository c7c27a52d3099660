//! Ports whose frames wait in rings.

use super::one_ring::{Link, NEVER};
use super::{Fabric, Hop, Parcel, RingFigures, Schedule};
use crate::occurrence::Occurrence;
use crate::rings::{OTHERS, RingQueue, RingedPort};

impl Fabric {
    #[inline(never)]
    pub(super) fn arrive_at_rings(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        number: u32,
        step: u32,
        parcel: Parcel,
    ) -> Hop {
        let ringed = &mut self.ringed[number as usize];
        let ring = usize::from(self.rings[step as usize]);
        let RingedPort { port: to, look_at, queue: RingQueue::One(one), .. } = ringed else {
            return self.arrive_at_several(schedule, now, number, ring, parcel);
        };
        let to = *to;
        let port = &mut self.ports[to as usize];
        let mut link = Link { port, index: to, schedule, now };
        // What is due now comes first; its occurrence does nothing then.
        let mut next = NEVER;
        if *look_at <= now {
            *look_at = NEVER;
            next = one.handle_look(&mut link);
        }
        let accepted = one.handle_arrival(&mut link, ring != OTHERS, parcel);
        let next = next.min(accepted.unwrap_or(NEVER));
        if next < *look_at {
            *look_at = next;
            schedule.insert(next, Occurrence::RingService(number));
        }
        if accepted.is_some() {
            return Hop::Forwarded;
        }
        port.drops += 1;
        Hop::Dropped { segment: parcel.segment() }
    }

    #[inline(always)]
    fn arrive_at_several(
        &mut self,
        schedule: &mut Schedule,
        now: u64,
        number: u32,
        ring: usize,
        parcel: Parcel,
    ) -> Hop {
        let ringed = &mut self.ringed[number as usize];
        let to = ringed.port;
        let RingQueue::Several(several) = &mut ringed.queue else {
            unreachable!("a port with one ring is served by itself");
        };
        let payload = self.segments[parcel.segment()].payload;
        if !several.handle_arrival(now, ring, parcel, payload) {
            self.ports[to as usize].drops += 1;
            return Hop::Dropped { segment: parcel.segment() };
        }
        self.serve_rings(schedule, now, number);
        Hop::Forwarded
    }

    /// The time has come at which a port with rings was to be looked at.
    pub(crate) fn look_at_rings(&mut self, schedule: &mut Schedule, now: u64, number: u32) {
        let ringed = &mut self.ringed[number as usize];
        // A look that an earlier one has overtaken does nothing.
        if ringed.look_at > now {
            return;
        }
        ringed.look_at = NEVER;
        let RingQueue::One(one) = &mut ringed.queue else {
            return self.serve_rings(schedule, now, number);
        };
        let port = &mut self.ports[ringed.port as usize];
        let next = one.handle_look(&mut Link { port, index: ringed.port, schedule, now });
        if next < NEVER {
            ringed.look_at = next;
            schedule.insert(next, Occurrence::RingService(number));
        }
    }

    /// Where several rings take turns: sends a frame if the link is free, and sees to it that the port is looked at again when
    /// the next may go.
    fn serve_rings(&mut self, schedule: &mut Schedule, now: u64, number: u32) {
        let ringed = &mut self.ringed[number as usize];
        let index = ringed.port;
        let RingQueue::Several(several) = &mut ringed.queue else { return };
        let port = &mut self.ports[index as usize];
        let mut look_at = port.departure;
        if port.departure <= now {
            match several.poll_departure(now) {
                Ok(parcel) => {
                    several.payload -= u64::from(self.segments[parcel.segment()].payload);
                    let departure = now + port.time_to_send(parcel.wire_bytes());
                    port.accept(schedule, departure, index, parcel);
                    // Where all that is left lacks tokens at the departure too, it is of no use to look there.
                    look_at = departure.max(several.none_before());
                }
                Err(Some(at)) => look_at = at,
                Err(None) => return,
            }
        }
        if several.frames() > 0 && look_at < ringed.look_at {
            ringed.look_at = look_at;
            schedule.insert(look_at, Occurrence::RingService(number));
        }
    }

    /// Frames in rings that are not on their links yet.
    pub(super) fn frames_in_rings(&self) -> usize {
        let frames = |ringed: &RingedPort| match &ringed.queue {
            RingQueue::One(one) => one.waiting().count(),
            RingQueue::Several(several) => several.frames() as usize,
        };
        self.ringed.iter().map(frames).sum()
    }

    /// Their payload.
    pub(super) fn payload_in_rings(&self) -> u64 {
        let payload = |parcel: Parcel| u64::from(self.segments[parcel.segment()].payload);
        let of_port = |ringed: &RingedPort| match &ringed.queue {
            RingQueue::One(one) => one.waiting().map(payload).sum(),
            RingQueue::Several(several) => several.payload,
        };
        self.ringed.iter().map(of_port).sum()
    }

    /// What the rings of destinations did; `None` where there are none.
    pub(crate) fn ring_figures(&self) -> Option<RingFigures> {
        let mut figures = RingFigures::default();
        self.ringed.iter().for_each(|ringed| ringed.add_to(&mut figures));
        (!self.ringed.is_empty()).then_some(figures)
    }
}
