//! Ports whose frames wait in rings: nobody knows their departures before.

use super::{Fabric, Hop, INDEX_BITS, Parcel, RINGS, RingFigures, Schedule};

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
        let payload = self.segments[parcel.segment()].payload;
        let to = ringed.port;
        if !ringed.handle_arrival(now, ring, parcel, payload) {
            self.ports[to as usize].drops += 1;
            return Hop::Dropped { segment: parcel.segment() };
        }
        self.serve_rings(schedule, now, number);
        Hop::Forwarded { to, is_next: false }
    }

    /// The time has come at which a port with rings was to be looked at.
    pub(crate) fn look_at_rings(&mut self, schedule: &mut Schedule, now: u64, number: u32) {
        let ringed = &mut self.ringed[number as usize];
        // A look that an earlier one has overtaken does nothing.
        if ringed.look_at <= now {
            ringed.look_at = u64::MAX;
            self.serve_rings(schedule, now, number);
        }
    }

    /// Sends a frame if the link is free, and sees to it that the port is looked at again when the next may go.
    fn serve_rings(&mut self, schedule: &mut Schedule, now: u64, number: u32) {
        let ringed = &mut self.ringed[number as usize];
        let index = ringed.port;
        let port = &mut self.ports[index as usize];
        let mut look_at = port.departure;
        if port.departure <= now {
            match ringed.poll_departure(now) {
                Ok(parcel) => {
                    ringed.payload -= u64::from(self.segments[parcel.segment()].payload);
                    let departure = now + port.time_to_send(parcel.wire_bytes());
                    port.accept(schedule, departure, index, parcel);
                    // Where all that is left lacks tokens at the departure too, it is of no use to look there.
                    look_at = departure.max(ringed.none_before());
                }
                Err(Some(at)) => look_at = at,
                Err(None) => return,
            }
        }
        if ringed.frames() > 0 && look_at < ringed.look_at {
            ringed.look_at = look_at;
            schedule.insert(look_at, RINGS << INDEX_BITS | number);
        }
    }

    /// What the rings of destinations did; `None` where there are none.
    pub(crate) fn ring_figures(&self) -> Option<RingFigures> {
        let mut figures = RingFigures::default();
        self.ringed.iter().for_each(|ringed| ringed.add_to(&mut figures));
        (!self.ringed.is_empty()).then_some(figures)
    }
}
