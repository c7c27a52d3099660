//! The frames of a port whose departures are known.

use super::{NIL, PortIndex};

/// The most frames of one port that are booked while others wait: few enough to be taken back often, enough to be looked
/// after seldom.
pub(super) const LINE_MAX: u32 = 16;

/// The class of a frame, above the port that it came in by.
const URGENT_BIT: u32 = 1 << 31;

/// A frame that was put onto the link with its time.
#[derive(Clone, Copy, Default)]
pub(super) struct Booked {
    /// Until when it takes memory.
    pub(super) release: u64,
    tag: u32,
    /// Bytes that a switch stores of it.
    pub(super) bytes: u32,
}

impl Booked {
    #[inline(always)]
    pub(super) const fn new(release: u64, from: PortIndex, class: usize, bytes: u32) -> Self {
        Self { release, tag: from & !URGENT_BIT | (class as u32) << 31, bytes }
    }

    /// The port that it came in by, [`NIL`] at its own host.
    #[inline(always)]
    pub(super) const fn from(self) -> PortIndex {
        let from = self.tag & !URGENT_BIT;
        if from == NIL & !URGENT_BIT { NIL } else { from }
    }

    #[inline(always)]
    pub(super) const fn class(self) -> usize {
        (self.tag >> 31) as usize
    }
}

/// Those of them that still took memory when somebody looked, in order.
#[derive(Default)]
pub(super) struct Line {
    /// A power of two of slots, in a ring.
    ring: Box<[Booked]>,
    head: u32,
    len: u32,
}

impl Line {
    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    #[inline(always)]
    fn slot(&self, place: u32) -> usize {
        self.head.wrapping_add(place) as usize & self.ring.len().wrapping_sub(1)
    }

    /// One of them, from the first on.
    #[inline(always)]
    pub(super) fn get(&self, place: u32) -> Option<&Booked> {
        if place < self.len { self.ring.get(self.slot(place)) } else { None }
    }

    /// The first release; never where there is none.
    #[inline(always)]
    pub(super) fn front(&self) -> u64 {
        self.get(0).map_or(u64::MAX, |booked| booked.release)
    }

    #[inline(always)]
    pub(super) fn push(&mut self, booked: Booked) {
        if self.len as usize == self.ring.len() {
            self.grow();
        }
        let slot = self.slot(self.len);
        self.ring[slot] = booked;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut ring = vec![Booked::default(); (2 * self.ring.len()).max(4)].into_boxed_slice();
        for (slot, place) in ring.iter_mut().zip(0..self.len) {
            *slot = self.ring[self.slot(place)];
        }
        (self.ring, self.head) = (ring, 0);
    }

    /// Takes out what has left by `now`.
    #[inline(always)]
    pub(super) fn release(&mut self, now: u64, mut released: impl FnMut(Booked)) {
        let (mut head, mut len) = (self.head, self.len);
        while len > 0 {
            let booked = self.ring[head as usize & (self.ring.len() - 1)];
            if booked.release > now {
                break;
            }
            released(booked);
            (head, len) = (head.wrapping_add(1), len - 1);
        }
        // A ring that ran empty starts over, so that one which stays short stays in one place of the cache.
        (self.head, self.len) = (if len == 0 { 0 } else { head }, len);
    }

    /// The last of them, if there is any.
    #[inline(always)]
    pub(super) fn last(&self) -> Option<Booked> {
        self.get(self.len.wrapping_sub(1)).copied()
    }

    /// Takes the last one out.
    #[inline(always)]
    pub(super) fn pop_last(&mut self) {
        self.len -= 1;
    }

    /// When so many will be left.
    pub(super) fn release_before_last(&self, left: u32) -> u64 {
        self.ring[self.slot(self.len - 1 - left)].release
    }
}
