//! A port: one direction of a link and the queue before it.

use fanin_units::{Bytes, Rate};

use super::{Parcel, SwitchTotals};
use crate::memories::Place;
use crate::schedule::Schedule;
use fanin_network::PortIndex;

mod parked;

/// Picoseconds in a second times bits in a byte.
const PS_BITS: u64 = 8_000_000_000_000;

/// A frame on its way: what is looked at on every hop. It is copied from port to port, so that a port's frames lie one
/// behind the other in memory; its segment stays where it is.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Frame {
    /// When its last bit arrives at the far end of the present link, in picoseconds.
    pub(crate) arrival: u64,
    pub(crate) parcel: Parcel,
}

/// Whether a port's frames wait where they can be stopped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(super) enum Hold {
    Never,
    /// They do, and nothing is amiss there.
    Calm,
    /// They do, and bulk data that comes parks behind what does.
    Parks,
    /// They do, and there may be something amiss.
    Watched,
}

/// One direction of a link and the queue before it.
///
/// The frame that arrives next lies in the port itself, and when the one after it arrives stands beside: a ring of frames
/// that wait for milliseconds has left the near caches by the time they arrive, and nothing has to wait for it so. What an
/// arrival over the link needs fills the first cache line; the accounts of the queue, the second; what is seldom needed, the
/// third.
#[repr(C, align(64))]
pub(crate) struct Port {
    /// The frame that arrives next, where there is one.
    first: Frame,
    /// When the frame after it arrives, where there is one.
    next_arrival: u64,
    /// The frames behind the first, in the queue and on the link, by their time of arrival, then those that are parked; a power of
    /// two of slots.
    ring: Box<[Frame]>,
    head: u32,
    /// How many frames have a time, the first among them.
    pub(super) len: u32,
    /// How many of them, from the first, have left the queue as far as anybody has looked.
    pub(super) released: u32,
    /// How many wish that each frame that arrives over the link is noted.
    pub(crate) taps: u16,
    pub(super) leads_to_host: bool,
    pub(super) hold: Hold,
    /// When the last accepted frame will have left.
    pub(super) departure: u64,
    /// Propagation, and the latency of the switch at the far end.
    pub(super) delay: u64,
    /// Bytes in the queue as far as anybody has looked, bookkeeping included, and the most there ever were, which the
    /// limit bounds; where no memory counts them.
    pub(super) held: u64,
    pub(super) held_max: u64,
    /// Bytes accepted, everything on the wire counted.
    pub(crate) wire_bytes: u64,
    pub(crate) place: Place,
    /// Picoseconds a byte lasts; zero where that is no whole number, or a large one.
    ps_per_byte: u32,
    /// Bookkeeping of each frame.
    pub(super) overhead: u32,
    /// Which of the switches it belongs to; their number at a host.
    pub(super) switch: u32,
    /// It counts what is queued by itself: a port of a switch without a memory.
    pub(super) is_plain: bool,
    /// It marks, too.
    pub(super) marks: bool,
    pub(super) counts_in_service: bool,
    /// Bytes that the queue may hold.
    pub(super) limit: u64,
    /// Frames that its own limit refused.
    pub(crate) drops: u64,
    pub(super) rate: Rate,
    /// Before this nothing leaves the queue that has not been released; a full queue is looked at far more often than
    /// something leaves it.
    unchanged_until: u64,
    /// Frames that wait behind those that have a time, without one.
    parked: u32,
}

impl Port {
    /// A port without a limit, and without a frame.
    pub(super) fn new(rate: Rate, place: Place) -> Self {
        let is_whole = PS_BITS.is_multiple_of(rate.get());
        Self {
            first: Frame::default(),
            next_arrival: 0,
            ring: Box::default(),
            head: 0,
            len: 0,
            released: 0,
            taps: 0,
            leads_to_host: false,
            hold: Hold::Never,
            departure: 0,
            delay: 0,
            held: 0,
            held_max: 0,
            wire_bytes: 0,
            place,
            ps_per_byte: if is_whole { u32::try_from(PS_BITS / rate.get()).unwrap_or(0) } else { 0 },
            overhead: 0,
            switch: 0,
            is_plain: false,
            marks: false,
            counts_in_service: true,
            limit: u64::MAX,
            drops: 0,
            rate,
            unchanged_until: 0,
            parked: 0,
        }
    }

    #[inline]
    pub(super) fn time_to_send(&self, wire_bytes: u32) -> u64 {
        if self.ps_per_byte == 0 {
            self.time_to_send_exact(wire_bytes)
        } else {
            u64::from(wire_bytes) * u64::from(self.ps_per_byte)
        }
    }

    #[cold]
    fn time_to_send_exact(&self, wire_bytes: u32) -> u64 {
        self.rate.time_to_send(Bytes::new(u64::from(wire_bytes))).get()
    }

    /// Bytes that a frame takes in the queue.
    #[inline]
    pub(super) fn charge(&self, wire_bytes: u32, unstored_bytes: u32) -> u64 {
        u64::from(wire_bytes - unstored_bytes + self.overhead)
    }

    /// Frames that have not left the queue, as far as anybody has looked.
    #[inline(always)]
    pub(super) fn queued(&self) -> u32 {
        self.len - self.released
    }

    /// One of those, from the first on.
    #[inline(always)]
    pub(super) fn get_queued(&self, place: u32) -> Option<&Frame> {
        (place < self.queued()).then(|| self.frame(self.released + place))
    }

    /// When a frame leaves the queue.
    #[inline(always)]
    pub(super) fn leaves_at(&self, frame: &Frame) -> u64 {
        let in_service =
            if self.counts_in_service { 0 } else { self.time_to_send(frame.parcel.wire_bytes()) };
        frame.arrival - self.delay - in_service
    }

    /// Shows when each of those leaves, from the first on, until one is not `wanted`; returns when that leaves.
    #[inline(always)]
    pub(super) fn each_queued(&self, mut wanted: impl FnMut(u64, Parcel) -> bool) -> Option<u64> {
        let mut place = self.released;
        if place == 0 && self.len > 0 {
            let leaves_at = self.leaves_at(&self.first);
            if !wanted(leaves_at, self.first.parcel) {
                return Some(leaves_at);
            }
            place = 1;
        }
        for offset in place..self.len {
            let frame = &self.ring[self.slot(offset - 1)];
            let leaves_at = self.leaves_at(frame);
            if !wanted(leaves_at, frame.parcel) {
                return Some(leaves_at);
            }
        }
        None
    }

    /// Takes out of the queue what has left it by `now`, and tells each, with when it left and its charge.
    #[inline(always)]
    pub(super) fn release(&mut self, now: u64, unstored_bytes: u32, mut left: impl FnMut(u64, Parcel, u64)) {
        if now < self.unchanged_until {
            return;
        }
        while let Some(frame) = self.get_queued(0) {
            let (left_at, parcel) = (self.leaves_at(frame), frame.parcel);
            if left_at > now {
                self.unchanged_until = left_at;
                break;
            }
            left(left_at, parcel, self.charge(parcel.wire_bytes(), unstored_bytes));
            self.released += 1;
        }
    }

    /// Releases what has left the queue by `now`.
    #[inline]
    pub(super) fn settle(&mut self, now: u64, unstored_bytes: u32) -> u64 {
        let mut released = 0;
        self.release(now, unstored_bytes, |_, _, charge| released += charge);
        self.held -= released;
        released
    }

    /// Whether a frame fits the queue, which it enters then. `settle` releases what has left.
    #[inline(always)]
    pub(super) fn admit(
        &mut self,
        charge: u64,
        switch: &mut SwitchTotals,
        is_doubtful: &mut bool,
        settle: impl FnOnce(&mut Self) -> u64,
    ) -> bool {
        // What has left the queue but not yet arrived still counts, until the difference could matter.
        if self.held + charge > self.held_max || switch.held + charge > switch.ample {
            switch.held -= settle(self);
            if self.held + charge > self.limit {
                self.drops += 1;
                return false;
            }
            self.held_max = self.held_max.max(self.held + charge);
            *is_doubtful |= switch.held + charge > switch.ample;
        }
        switch.held += charge;
        self.held += charge;
        true
    }

    /// What is queued: bytes and frames. Only where no memory counts them.
    pub(super) fn queue(&mut self, now: u64, unstored_bytes: u32) -> (u64, u64) {
        self.settle(now, unstored_bytes);
        (self.held, u64::from(self.queued() + self.parked))
    }

    /// Takes a frame that will have left at `departure`; none is parked.
    #[inline(always)]
    pub(super) fn accept(
        &mut self,
        schedule: &mut Schedule,
        departure: u64,
        index: PortIndex,
        parcel: Parcel,
    ) {
        self.departure = departure;
        self.wire_bytes += u64::from(parcel.wire_bytes());
        let arrival = departure + self.delay;
        let place = if self.len == 0 {
            schedule.insert_arrival(arrival, index);
            &mut self.first
        } else {
            let behind = self.len - 1;
            // Without a branch: how many there are follows no pattern. A ring that ran empty starts over, so that one which stays
            // short stays in one place of the cache.
            (self.next_arrival, self.head) =
                if behind == 0 { (arrival, 0) } else { (self.next_arrival, self.head) };
            if behind as usize == self.ring.len() {
                self.grow();
            }
            let slot = self.slot(behind);
            &mut self.ring[slot]
        };
        (place.arrival, place.parcel) = (arrival, parcel);
        self.len += 1;
    }

    /// Takes the last frame back, which has not begun to leave; the link is free then when the one before it has left. It is
    /// not the first on the link, whose arrival is scheduled.
    pub(super) fn unbook(&mut self) -> Parcel {
        assert!(self.len > 1, "what is first on a link has begun to leave");
        let parcel = self.frame(self.len - 1).parcel;
        self.len -= 1;
        self.wire_bytes -= u64::from(parcel.wire_bytes());
        self.departure = self.frame(self.len - 1).arrival - self.delay;
        parcel
    }

    /// Gives the frame whose arrival over the link was due, which is `now`, and schedules that of the one behind it.
    #[inline(always)]
    pub(super) fn arrive(&mut self, schedule: &mut Schedule, now: u64, index: PortIndex) -> Parcel {
        let Frame { arrival, parcel } = self.first;
        debug_assert_eq!(arrival, now);
        self.len -= 1;
        if self.len > 0 {
            schedule.insert_arrival(self.next_arrival, index);
            let Frame { arrival, parcel } = self.ring[self.slot(0)];
            self.first = Frame { arrival, parcel };
            self.head = self.head.wrapping_add(1);
            // Where it is empty this is an old one, of no account.
            self.next_arrival = self.ring[self.slot(0)].arrival;
        }
        parcel
    }

    #[inline(always)]
    fn slot(&self, offset: u32) -> usize {
        (self.head.wrapping_add(offset)) as usize & (self.ring.len().wrapping_sub(1))
    }

    #[cold]
    fn grow(&mut self) {
        let mut ring = vec![Frame::default(); (self.ring.len() * 2).max(4)].into_boxed_slice();
        for (slot, offset) in ring.iter_mut().zip(0..self.behind_first() + self.parked) {
            *slot = self.ring[self.slot(offset)];
        }
        self.ring = ring;
        self.head = 0;
    }

    #[inline]
    fn frame(&self, place: u32) -> &Frame {
        if place == 0 { &self.first } else { &self.ring[self.slot(place - 1)] }
    }

    /// The frame that will arrive next.
    #[inline]
    pub(super) fn first(&self) -> Option<&Frame> {
        (self.len > 0).then_some(&self.first)
    }

    /// The frames in the queue and on the link, in order.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Frame> {
        (0..self.len).map(|place| self.frame(place))
    }

    /// Bytes that have arrived at the far end.
    pub(crate) fn arrived_bytes(&self) -> u64 {
        self.wire_bytes - self.waiting().map(|frame| u64::from(frame.parcel.wire_bytes())).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn what_a_frame_needs_fills_two_cache_lines() {
        assert_eq!((size_of::<Port>(), size_of::<Frame>()), (192, 24));
        assert_eq!((offset_of!(Port, departure), offset_of!(Port, limit)), (64, 128));
    }
}
